/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/pool.h"

#include "base/util.h"
#include "base/vec.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
	pid_t pid; /* 0: not running */
	FILE *file; /* what it hands over */
	FILE *output; /* its lines for stderr; NULL: it prints them itself */
	int err;
};

static FILE *hand_over(int tmpfd)
{
	int fd = nps_temp_file(tmpfd);
	FILE *file;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	file = fdopen(fd, "w+");

	if (!file && fd >= 0)
		close(fd);
	return file;
}

/* For a job's messages; in memory, as one of them may be that the disk is full. */
static FILE *output_file(void)
{
	int fd = memfd_create("npuscope-messages", MFD_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");

	if (!file && fd >= 0)
		close(fd);
	return file;
}

/* The exit status carries an errno; those above 255 do not exist on Linux. */
static void child_run(nps_job_fn fn, void *ctx, size_t i, FILE *file, FILE *output)
{
	int err;

	if (output) {
		setbuf(output, NULL); /* its lines are printed even if it is killed */
		nps_msg_into(output);
	}
	err = fn(ctx, i, file);
	if (!err && fflush(file))
		err = -errno;
	fflush(stderr);
	_exit(-err & 0xff);
}

static void child_start(struct child *job, nps_job_fn fn, void *ctx, size_t i, int tmpfd)
{
	pid_t parent = getpid();

	fflush(NULL); /* or both would write what is buffered */
	job->file = hand_over(tmpfd);
	job->output = job->file ? output_file() : NULL;
	job->pid = job->file ? fork() : -1;
	if (job->pid < 0) {
		job->err = -errno;
		job->pid = 0;
	} else if (!job->pid) {
		/* Nobody would take the result of a child whose parent was killed. */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(1);
		child_run(fn, ctx, i, job->file, job->output);
	}
}

/* Only for this one: the caller's process may have children of its own, which are not ours to reap. */
static void reap(struct child *job)
{
	int status;
	pid_t pid;

	if (!job->pid) {
		nps_msg_failure("cannot start a process for a part: %s", strerror(-job->err));
		return;
	}
	do
		pid = waitpid(job->pid, &status, 0);
	while (pid < 0 && errno == EINTR);
	job->pid = 0;
	if (job->output)
		nps_msg_pass_on(job->output);
	job->err = pid > 0 && WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
	if (pid > 0 && WIFSIGNALED(status))
		nps_msg_failure("a process that worked on a part was killed: %s: is there enough memory?",
				strsignal(WTERMSIG(status)));
}

/* Passes the output of job I on and closes it: the files of all jobs at once may exceed a process's limit. */
static int child_finish(struct child *job, size_t i, nps_job_done_fn done, void *ctx)
{
	int err;

	if (job->output)
		fclose(job->output);
	job->output = NULL;
	if (job->file)
		rewind(job->file);
	err = done(ctx, i, job->err, job->file);
	if (job->file)
		fclose(job->file);
	job->file = NULL;
	return err;
}

int nps_pool__run(size_t n, size_t max, nps_job_fn fn, nps_job_done_fn done, void *ctx, int tmpfd)
{
	struct child *jobs = calloc(n + 1, sizeof(*jobs));
	bool forks = max > 1 && n > 1;
	size_t started = 0;
	int err = 0;

	if (!jobs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct child *job = &jobs[i];
		int one;

		for (; forks && started < n && started - i < max; started++)
			child_start(&jobs[started], fn, ctx, started, tmpfd);
		if (forks) {
			reap(job);
		} else {
			job->file = hand_over(tmpfd);
			job->err = job->file ? fn(ctx, i, job->file) : -errno;
			if (!job->file)
				nps_msg_failure(
					"cannot make a temporary file: %s: is there room in the output "
					"directory?",
					strerror(-job->err));
		}
		one = child_finish(job, i, done, ctx);
		err = err ? err : one;
	}
	free(jobs);
	return err;
}

struct threads {
	int (*fn)(void *ctx, size_t i);
	void *ctx;
	size_t n;
	_Atomic size_t next;
	int *errs;
};

static void *worker(void *arg)
{
	struct threads *t = arg;
	size_t i;

	while ((i = t->next++) < t->n)
		t->errs[i] = t->fn(t->ctx, i);
	return NULL;
}

int nps_threads__run(size_t n, size_t max, int (*fn)(void *ctx, size_t i), void *ctx)
{
	struct threads t = { .fn = fn, .ctx = ctx, .n = n, .errs = calloc(n + 1, sizeof(int)) };
	pthread_t *ids = calloc(max + 1, sizeof(*ids));
	size_t started = 0;
	int err = t.errs && ids ? 0 : -ENOMEM;

	if (err)
		goto out;
	/* This thread works too; if no other can be created it does everything. */
	while (started + 1 < NPS_MIN(n, max) && !pthread_create(&ids[started], NULL, worker, &t))
		started++;
	worker(&t);
	for (size_t i = 0; i < started; i++)
		pthread_join(ids[i], NULL);
	for (size_t i = 0; !err && i < n; i++)
		err = t.errs[i];
out:
	free(t.errs);
	free(ids);
	return err;
}

size_t nps_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : NPS_MAX(CPU_COUNT(&set), 1);
}
