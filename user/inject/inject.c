/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "capture/agent_client.h"
#include "capture/discover.h"
#include "capture/process.h"
#include "core/clocks.h"
#include "core/log.h"
#include "inject/inject_impl.h"

#define AREA_NS 2000000000ULL /* until the job's thread has mapped the area */
#define LOAD_NS 20000000000ULL /* until the library is loaded: the loader may be busy with another one */
#define LEAVE_NS 2000000000ULL /* until both threads have left the code */
#define TURN_US 100
#define LONGEST_TURN_US 20000 /* between two stops of a thread that may return to the code */
#define MOST_CODE 4096 /* bytes */
#define LARGEST_LIBRARY (16UL << 20)

#define AT(job, field) ((job)->input.area + offsetof(struct nps_inject_area, field))

/* ---- the library ---- */

struct library {
	const char *path;
	char *bytes; /* NULL: the job can open the path */
	size_t size;
};

/* Reads a whole file, and closes it; NULL: failed. */
static char *read_whole(int fd, size_t *size)
{
	char *bytes = NULL;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0 && (size_t)st.st_size <= LARGEST_LIBRARY)
		bytes = malloc((size_t)st.st_size);
	*size = 0;
	while (bytes && *size < (size_t)st.st_size) {
		ssize_t n = read(fd, bytes + *size, (size_t)st.st_size - *size);

		if (n <= 0) {
			free(bytes);
			bytes = NULL;
		} else {
			*size += (size_t)n;
		}
	}
	if (fd >= 0)
		close(fd);
	return bytes;
}

/*
 * Is the library mapped without its memory, as in a forked child of a job with the helper? The loader would
 * treat it as loaded, and run no constructor, so it has to be loaded as a copy with another identity.
 */
static bool library_is_mapped(const struct nps_inject_job *job, const char *path)
{
	struct stat ours;

	if (stat(path, &ours))
		return false;
	for (size_t i = 0; i < job->maps.n; i++)
		if (job->maps.v[i].ino == ours.st_ino || strcmp(job->maps.v[i].path, path) == 0)
			return true;
	return false;
}

/* Is the path the same file inside of the job's root? If not the contents are passed. */
static bool same_in_job(pid_t pid, const char *path)
{
	int fd = nps_open_in_root(pid, path);
	struct stat ours, theirs;
	bool same = fd >= 0 && !fstat(fd, &theirs) && !stat(path, &ours) && ours.st_dev == theirs.st_dev &&
		    ours.st_ino == theirs.st_ino;

	if (fd >= 0)
		close(fd);
	return same;
}

/* A version of glibc that the library needs and the job's does not have; NULL: none. */
static const char *missing_version(struct nps_inject_job *job, const struct library *lib, const char *bytes,
				   char name[24])
{
	const char *end = bytes + lib->size, *at = bytes;
	const struct nps_mapping *m = nps_inject_job__libc(job);
	char *libc;
	size_t size;

	if (!m)
		return NULL;
	libc = read_whole(nps_mapping__open(job->pid, m, O_RDONLY), &size);
	while (libc && (at = memmem(at, (size_t)(end - at), "GLIBC_2.", 8))) {
		size_t n = strnlen(at, (size_t)(end - at));

		if (n < 24 && at > bytes && !at[-1] && !memmem(libc, size, at, n + 1)) {
			memcpy(name, at, n + 1);
			free(libc);
			return name;
		}
		at += n;
	}
	free(libc);
	return NULL;
}

static int read_library(struct nps_inject_job *job, struct library *lib)
{
	const char *missing;
	char name[24];

	lib->bytes = read_whole(open(lib->path, O_RDONLY | O_CLOEXEC), &lib->size);
	if (!lib->bytes)
		return nps_inject_job__refuse(job, ENOENT, "%s cannot be read", lib->path);
	missing = missing_version(job, lib, lib->bytes, name);
	if (missing)
		return nps_inject_job__refuse(job, ENOTSUP, "its C library is too old for the helper: no %s",
					      missing);
	if (same_in_job(job->pid, lib->path) && !library_is_mapped(job, lib->path)) {
		free(lib->bytes);
		lib->bytes = NULL;
		lib->size = 0;
	}
	return 0;
}

/* ---- redirecting a thread ---- */

/* What was written after the code of libraries, to be cleared later. */
struct cave {
	struct nps_range code, landing; /* the landing is part of the code, or separate */
	bool apart;
};

/* process_vm_writev cannot write code. Some kernels allow neither of these ways, or only the second. */
static int write_code(pid_t pid, pid_t tid, const struct nps_range *to, const char *bytes)
{
	size_t size = to->end - to->start;
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", pid, tid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		n = pwrite(fd, bytes, size, (off_t)to->start);
		close(fd);
	}
	for (size_t at = 0; n != (ssize_t)size && at < size; at += sizeof(long)) {
		long word = 0;

		memcpy(&word, bytes + at, size - at < sizeof(word) ? size - at : sizeof(word));
		if (ptrace(PTRACE_POKEDATA, tid, to->start + at, word))
			return -errno;
	}
	return 0;
}

static void clear_code(const struct nps_inject_job *job, pid_t tid, const struct cave *cave)
{
	static const char none[MOST_CODE];

	if (write_code(job->pid, tid, &cave->code, none) ||
	    (cave->apart && write_code(job->pid, tid, &cave->landing, none)))
		nps_debug("pid %d: up to %zu bytes stay behind its code", job->pid, NPS_INJECT_BYTES);
}

/* Chooses addresses of the code and its landing, for a thread that continues at PC. */
static bool find_cave(const struct nps_inject_job *job, uint64_t pc, struct cave *cave)
{
	uint64_t at = nps_inject_job__cave(job, pc, NPS_INJECT_BYTES), landing;

	cave->apart = !at;
	if (cave->apart) {
		at = nps_inject_job__cave(job, 0, NPS_INJECT_BYTES);
		landing = nps_inject_job__cave(job, pc, NPS_INJECT_LANDING);
	} else {
		landing = at + NPS_INJECT_OFFSET(nps_inject_landing);
	}
	cave->code = (struct nps_range){ at, at + NPS_INJECT_BYTES };
	cave->landing = (struct nps_range){ landing, landing + NPS_INJECT_LANDING };
	return at && landing;
}

static bool is_free(const struct nps_inject_job *job, const struct nps_range *r)
{
	return nps_inject_job__is_empty(job, r->start, r->end - r->start);
}

/* Prepares the registers that lead the thread to the code, and writes the code. */
static int put_code(struct nps_inject_job *job, struct nps_inject_thread *t, const struct cave *cave)
{
	const char *landing;
	char code[MOST_CODE];
	int err;

	memcpy(code, __start_nps_inject, NPS_INJECT_BYTES);
	memcpy(code + NPS_INJECT_OFFSET(nps_inject_input), &job->input, sizeof(job->input));
	landing = code + NPS_INJECT_OFFSET(nps_inject_landing);
	err = nps_inject_regs__lead(&t->rewound, cave->code.start, cave->landing.start, code);
	if (err)
		return err;
	if (!is_free(job, &cave->code) || (cave->apart && !is_free(job, &cave->landing)))
		return -EBUSY; /* another injector was faster, and did not use our lock */
	err = write_code(job->pid, t->tid, &cave->code, code);
	if (!err && cave->apart)
		err = write_code(job->pid, t->tid, &cave->landing, landing);
	if (err)
		clear_code(job, t->tid, cave);
	return err;
}

/*
 * From here on the thread returns without help: the registers are set in one call, after the code is written,
 * and the code restores them itself. If this process dies before that, only unused bytes have changed.
 */
static int lead(struct nps_inject_job *job, struct nps_inject_thread *t, struct cave *cave)
{
	int err;

	if (NPS_INJECT_BYTES > MOST_CODE)
		return -E2BIG;
	if (!find_cave(job, nps_inject_regs__pc(&t->rewound), cave))
		return nps_inject_job__refuse(job, ENOSPC, "none of its libraries has room for the code");
	err = put_code(job, t, cave);
	if (err)
		return nps_inject_job__refuse(job, -err, "its code cannot be written: %s", strerror(-err));
	err = nps_inject_regs__set(t->tid, &t->rewound);
	if (err) {
		clear_code(job, t->tid, cave);
		return nps_inject_job__refuse(job, -err, "its registers cannot be set: %s", strerror(-err));
	}
	if (ptrace(PTRACE_CONT, t->tid, 0, 0))
		return nps_inject_job__refuse(job, errno, "it cannot be continued: %s", strerror(errno));
	return 0;
}

/* Passes on the job's signals that arrive while it is traced. False: the thread has exited. */
static bool hand_on_signals(pid_t tid)
{
	int status;
	pid_t got;

	while ((got = waitpid(tid, &status, __WALL | WNOHANG)) == tid) {
		if (!WIFSTOPPED(status))
			return false;
		if (status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP)
			ptrace(PTRACE_LISTEN, tid, 0, 0); /* the job is being stopped, and stays so */
		else
			ptrace(PTRACE_CONT, tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	}
	return got == 0;
}

enum seen { SEEN, NOT_YET, EXITED };

static enum seen word_peek(const struct nps_inject_job *job, uint64_t at, uint32_t *word)
{
	int err = nps_inject__read(job->pid, at, word, sizeof(*word));

	return err == -ESRCH || err == -EPERM ? EXITED : err ? NOT_YET : SEEN;
}

/* Waits until a word of the area is not 0. -ESRCH: the job has exited; -ETIMEDOUT. */
static int wait_for_word(struct nps_inject_job *job, pid_t tid, uint64_t at, uint64_t ns)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	uint32_t word = 0;

	while (nps_now(CLOCK_MONOTONIC) - begin < ns) {
		enum seen seen;

		if (!hand_on_signals(tid))
			return -ESRCH;
		seen = word_peek(job, at, &word);
		if (seen == EXITED)
			return -ESRCH;
		if (seen == SEEN && word)
			return 0;
		usleep(TURN_US);
	}
	return -ETIMEDOUT;
}

static int set_word(struct nps_inject_job *job, uint64_t at, uint32_t value)
{
	return nps_inject__write(job->pid, at, &value, sizeof(value));
}

static int pass_library(struct nps_inject_job *job, const struct library *lib)
{
	const char *name = lib->bytes ? nps_basename(lib->path) : lib->path;
	uint64_t bytes = lib->bytes ? lib->size : 0;
	int err = nps_inject__write(job->pid, AT(job, path), name, strlen(name) + 1);

	if (err)
		return err;
	if (bytes) {
		err = nps_inject__write(job->pid, AT(job, library), lib->bytes, lib->size);
		if (err)
			return err;
	}
	return nps_inject__write(job->pid, AT(job, library_bytes), &bytes, sizeof(bytes));
}

/* Passes the library and waits until it is loaded. */
static int let_it_load(struct nps_inject_job *job, pid_t tid, const struct library *lib,
		       struct nps_inject_result *r)
{
	struct nps_inject_area head = { 0 };
	int err = wait_for_word(job, tid, AT(job, created), AREA_NS);

	if (err)
		return nps_inject_job__refuse(
			job, -err,
			err == -ESRCH ? "it ended meanwhile"
				      : "it could not map memory, or its thread does not run");
	err = nps_inject__read(job->pid, job->input.area, &head, offsetof(struct nps_inject_area, path));
	if (!err && head.create_error) {
		set_word(job, AT(job, bye), 1);
		return nps_inject_job__refuse(job, head.create_error, "it cannot make a thread: %s",
					      strerror(head.create_error));
	}
	if (!err)
		err = pass_library(job, lib);
	set_word(job, AT(job, go), err ? NPS_INJECT_ABORT : NPS_INJECT_LOAD);
	if (err)
		return nps_inject_job__refuse(job, -err, "its memory cannot be written: %s", strerror(-err));
	err = wait_for_word(job, tid, AT(job, done), LOAD_NS);
	if (err)
		return nps_inject_job__refuse(job, -err,
					      err == -ESRCH
						      ? "it ended meanwhile"
						      : "its loader has been busy for 20 s: the helper will "
							"be loaded when that ends");
	wait_for_word(job, tid, AT(job, left), AREA_NS); /* it may not have run since it created the thread */
	err = nps_inject__read(job->pid, job->input.area, &head, offsetof(struct nps_inject_area, path));
	set_word(job, AT(job, bye), 1);
	r->held_ns = head.left_ns - head.began_ns;
	if (err || head.loaded)
		return err;
	head.message[sizeof(head.message) - 1] = '\0';
	for (char *c = head.message; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
	return nps_inject_job__refuse(job, ENOEXEC, "its loader refused the helper: %s",
				      head.create_error ? strerror(head.create_error) : head.message);
}

/* The helper's thread, which sets its name when it first runs; 0: not found. */
static pid_t find_helper(pid_t pid)
{
	char path[64], name[32];
	struct dirent *d;
	pid_t found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !found && (d = readdir(dir))) {
		pid_t tid = atoi(d->d_name);
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
		f = tid > 0 ? fopen(path, "re") : NULL;
		if (f && fgets(name, sizeof(name), f) && strcmp(name, NPS_AGENT_COMM "\n") == 0)
			found = tid;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return found;
}

/*
 * The helper has inherited from the redirected thread, which may be bound to a CPU or have a real-time
 * policy: it gets the first thread's CPUs and the normal policy.
 */
static void settle_helper(pid_t pid)
{
	const struct sched_param normal = { 0 };
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	pid_t tid = find_helper(pid);
	cpu_set_t cpus;

	while (!tid && nps_now(CLOCK_MONOTONIC) - begin < LEAVE_NS) {
		usleep(10 * TURN_US);
		tid = find_helper(pid);
	}
	if (!tid)
		return;
	if (sched_getaffinity(pid, sizeof(cpus), &cpus) || sched_setaffinity(tid, sizeof(cpus), &cpus) ||
	    sched_setscheduler(tid, SCHED_OTHER, &normal))
		nps_debug("pid %d: the helper's thread stays as it is scheduled: %s", pid, strerror(errno));
}

/* Reads the mappings again; the area keeps its address. */
static int reread_maps(struct nps_inject_job *job)
{
	uint64_t area = job->input.area;
	int err = nps_inject_job__refresh(job);

	job->input.area = area;
	return err;
}

/*
 * When the loading thread has left the code, the area is unmapped. Then the job's thread is stopped, and
 * the code cleared. A signal that arrived meanwhile is delivered at the last system call in the code, and
 * its handler returns there, possibly much later. If a return cannot be excluded, the code stays.
 */
static void tidy_up(struct nps_inject_job *job, struct nps_inject_thread *t, const struct cave *cave,
		    struct nps_inject_result *r)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	unsigned int pause = TURN_US;
	uint32_t word;

	while (nps_now(CLOCK_MONOTONIC) - begin < LEAVE_NS && hand_on_signals(t->tid)) {
		if (word_peek(job, AT(job, created), &word) == SEEN) {
			usleep(TURN_US);
			continue;
		}
		if (nps_inject__stop(t))
			return;
		if (!nps_inject__may_return(job, &t->regs, &cave->code) &&
		    !(cave->apart && nps_inject__may_return(job, &t->regs, &cave->landing))) {
			clear_code(job, t->tid, cave);
			nps_inject__let_go(t);
			nps_inject__count_stop(t, r);
			return;
		}
		nps_inject__go_on(t);
		nps_inject__count_stop(t, r);
		usleep(pause);
		if (reread_maps(job)) /* its stack may have grown */
			return;
		pause = 2 * pause < LONGEST_TURN_US ? 2 * pause : LONGEST_TURN_US;
	}
}

/*
 * One injector at a time, because two would write to the same address. Returns the descriptor, which holds
 * a lock until this process ends, or -errno.
 */
static int injector_lock(struct nps_inject_job *job)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d", job->pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (fd < 0)
		return nps_inject_job__refuse(job, ESRCH, "it has ended");
	close(fd);
	return nps_inject_job__refuse(job, EBUSY, "another npuscope is loading it");
}

/*
 * The loader may report success without having run it, because it treats
 * a library of the same name as the same.
 */
static int check_memory(struct nps_inject_job *job)
{
	int err = nps_inject_job__refresh(job);

	if (!err && !nps_agent_client__present(&job->maps))
		return nps_inject_job__refuse(
			job, ENOEXEC,
			"the helper did not start: has its parent one, or does a limit of "
			"file sizes forbid its memory?");
	return err;
}

static int inject(struct nps_inject_job *job, struct library *lib, struct nps_inject_result *r)
{
	struct nps_inject_thread t = { 0 };
	struct cave cave = { 0 };
	int err, turn = injector_lock(job);

	if (turn < 0)
		return turn;
	/* No path releases the lock: it ends with this process. */
	nps_budget__begin_once(&job->budget);
	err = nps_inject_job__inspect(job);
	nps_budget__end(&job->budget);
	if (err)
		return err;
	if (nps_agent_client__present(&job->maps)) /* another injector was first */
		return -EALREADY;
	err = read_library(job, lib);
	if (err)
		return err;
	/* Only the length matters until the thread has mapped it. */
	job->input.area_size = (sizeof(struct nps_inject_area) + lib->size + 0xffff) & ~0xffffUL;
	err = nps_inject__stop_somewhere(job, &t, r);
	if (err)
		return err;
	r->tid = t.tid;
	err = lead(job, &t, &cave);
	if (err)
		nps_inject__let_go(&t);
	nps_inject__count_stop(&t, r);
	if (err)
		return err;
	err = let_it_load(job, t.tid, lib, r);
	tidy_up(job, &t, &cave, r);
	if (err)
		return err;
	err = check_memory(job);
	if (err)
		return err;
	settle_helper(job->pid);
	return 0;
}

/* ---- called by others ---- */

/* In a process of its own: when it ends, however it ends, the kernel detaches from what it traced. */
static void in_child(pid_t pid, const char *library, int out)
{
	struct nps_inject_result r = { 0 };
	struct nps_inject_job job = { .pid = pid, .why = r.why, .why_size = sizeof(r.why) };
	struct library lib = { .path = library };
	uint64_t begin = nps_now(CLOCK_MONOTONIC);

	nps_budget__init(&job.budget, NPS_BUDGET_CPU_NS, NPS_BUDGET_PERCENT, begin);
	r.error = inject(&job, &lib, &r);
	r.total_ns = nps_now(CLOCK_MONOTONIC) - begin;
	nps_inject_job__free(&job);
	free(lib.bytes);
	_exit(write(out, &r, sizeof(r)) == sizeof(r) ? 0 : 1);
}

int nps_inject(pid_t pid, const char *library, struct nps_inject_result *r)
{
	pid_t child;
	ssize_t n;
	int fds[2];

	memset(r, 0, sizeof(*r));
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	child = fork();
	if (child == 0)
		in_child(pid, library, fds[1]);
	close(fds[1]);
	do
		n = child < 0 ? 0 : read(fds[0], r, sizeof(*r));
	while (n < 0 && errno == EINTR);
	close(fds[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	if (n != (ssize_t)sizeof(*r)) {
		snprintf(r->why, sizeof(r->why), "the process that was to do it has ended");
		r->error = -ECHILD;
	}
	return r->error;
}

bool nps_inject__possible(char *why, size_t size)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = {};
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	char library[4096];
	int scope = 0;

	if (f) {
		if (fscanf(f, "%d", &scope) != 1)
			scope = 0;
		fclose(f);
	}
	why[0] = '\0';
	if (scope > 2)
		snprintf(why, size, "kernel.yama.ptrace_scope is 3: nobody may trace until the next boot");
	else if (syscall(SYS_capget, &h, d) || !(d[0].effective >> CAP_SYS_PTRACE & 1))
		snprintf(why, size, "CAP_SYS_PTRACE is missing");
	else if (nps_discover__agent_path(library, sizeof(library)))
		snprintf(why, size, "libnpuscope_agent.so is not beside this program");
	return !why[0];
}

struct inject_tree {
	unsigned int jobs; /* processes that use an NPU */
	int err;
	const char *library;
};

static bool uses_npu(const struct nps_maps *maps)
{
	static const char *const libraries[] = { "libascendcl.so", "libacl_rt.so", "libascend_hal.so" };

	for (size_t i = 0; i < maps->n; i++)
		for (size_t k = 0; k < sizeof(libraries) / sizeof(*libraries); k++)
			if (maps->v[i].exec &&
			    strncmp(nps_basename(maps->v[i].path), libraries[k], strlen(libraries[k])) == 0)
				return true;
	return false;
}

static void inject_into(struct inject_tree *tree, pid_t pid)
{
	struct nps_inject_result r;
	int err = nps_inject(pid, tree->library, &r);

	if (err == -EALREADY) {
		nps_info("pid %d: it has the helper library", pid);
		return;
	}
	if (err) {
		nps_warn("pid %d: the helper library was not loaded: %s: the job goes on as it was", pid,
			 r.why);
		tree->err = err;
		return;
	}
	nps_info("pid %d: the helper library is loaded: thread %d was led astray for %.2f ms; %u stops, the "
		 "longest "
		 "of %.2f ms; %.0f ms in all",
		 pid, r.tid, (double)r.held_ns / 1e6, r.stops, (double)r.stopped_ns / 1e6,
		 (double)r.total_ns / 1e6);
}

static int tree_visit(pid_t pid, void *arg)
{
	struct inject_tree *tree = arg;
	struct nps_budget budget;
	struct nps_maps maps;
	bool npu, has;
	int err;

	nps_budget__init(&budget, NPS_BUDGET_CPU_NS, NPS_BUDGET_PERCENT, nps_now(CLOCK_MONOTONIC));
	nps_budget__begin_once(&budget);
	err = nps_maps__read(pid, &budget, &maps);
	if (err == -ETIME) {
		nps_warn("pid %d: the helper library was not loaded: its mappings take too long to read",
			 pid);
		tree->err = err;
	}
	if (err)
		return 0;
	npu = uses_npu(&maps);
	has = nps_agent_client__present(&maps);
	nps_maps__free(&maps);
	tree->jobs += npu;
	if (npu && has)
		nps_info("pid %d: it has the helper library", pid);
	else if (npu)
		inject_into(tree, pid);
	return 0;
}

int nps_inject__tree(pid_t pid, bool children)
{
	struct inject_tree tree = { 0 };
	char why[128], library[4096];

	if (!nps_inject__possible(why, sizeof(why))) {
		nps_warn("pid %d: the helper library was not loaded: %s", pid, why);
		return -EPERM;
	}
	nps_discover__agent_path(library, sizeof(library));
	tree.library = library;
	if (nps_tree__for_each(pid, children, tree_visit, &tree)) {
		nps_warn("pid %d: it has too many threads or descendants: the helper library was not loaded "
			 "into all of "
			 "them",
			 pid);
		tree.err = -E2BIG;
	}
	if (!tree.jobs) {
		nps_warn("pid %d: the helper library was not loaded: no NPU library is mapped: is this the "
			 "NPU job?",
			 pid);
		return -ENOENT;
	}
	return tree.err;
}
