/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Children of the tests of npuscope-device-worker's parts, and their files.
 * Nothing of cmocka's: see worker_child.h.
 */
#include "worker_child.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PATIENCE_S 60 /* until a child that hangs is killed */
#define WRONG_SIZE 512

char *worker_child_wrong; /* shared with the children */
static char dir[64]; /* "": there is none */
static pid_t staying; /* 0: none */

/* --- the group of tests --------------------------------------------------------------------------------- */

int worker_child_setup(void **state)
{
	static const char *const parents[] = { "/opt", "/var/lib" };

	(void)state;
	umask(022);
	worker_child_wrong =
		mmap(NULL, WRONG_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (worker_child_wrong == MAP_FAILED)
		return -1;
	for (size_t i = 0; i < 2 && !dir[0] && geteuid() == 0; i++) {
		snprintf(dir, sizeof(dir), "%s/npuscope-test-XXXXXX", parents[i]);
		if (!mkdtemp(dir))
			dir[0] = '\0';
	}
	return dir[0] ? chmod(dir, 0755) : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int worker_child_teardown(void **state)
{
	(void)state;
	worker_child_kill();
	munmap(worker_child_wrong, WRONG_SIZE);
	return dir[0] ? nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) : 0;
}

/* --- children ------------------------------------------------------------------------------------------- */

void worker_child_check(bool holds, const char *what, const char *file, int line)
{
	int saved = errno;

	if (!holds && !worker_child_wrong[0])
		snprintf(worker_child_wrong, WRONG_SIZE, "%s:%d: %s (errno %d: %s)", file, line, what, saved,
			 strerror(saved));
}

static void limit(void)
{
	struct rlimit core;

	alarm(PATIENCE_S);
	getrlimit(RLIMIT_CORE, &core);
	core.rlim_cur = 0; /* what is killed on purpose leaves no file */
	setrlimit(RLIMIT_CORE, &core);
}

/* Those of cmocka would go on with the test in the child. */
static void forget_handlers(void)
{
	static const int signals[] = { SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS };

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_DFL);
}

bool worker_child_run(void (*body)(const void *arg), const void *arg, int *status)
{
	pid_t pid;

	worker_child_wrong[0] = '\0';
	pid = fork();
	if (!pid) {
		forget_handlers();
		limit();
		body(arg);
		_exit(0); /* nothing of cmocka's, and no leak check, which traces */
	}
	return pid > 0 && waitpid(pid, status, 0) == pid;
}

void worker_child_kill(void)
{
	if (!staying)
		return;
	kill(staying, SIGKILL);
	waitpid(staying, NULL, 0);
	staying = 0;
}

void worker_child_end(struct worker_child *c)
{
	worker_child_kill();
	close(c->hold);
	close(c->proc);
}

static void stay(void (*prepare)(const void *arg), const void *arg, const char *program, char *const *env,
		 int hold, int ready)
{
	char *const argv[] = { (char *)program, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char byte = 'x';

	limit();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (prepare)
		prepare(arg);
	if (!worker_child_wrong[0] && program) { /* cat, which waits for the end of what it reads */
		dup2(hold, 0);
		dup2(null, 1);
		dup2(null, 2);
		execve(program, argv, env);
		CHECK(!"execve");
	}
	if (worker_child_wrong[0] && write(ready, &byte, 1) == 1)
		_exit(1);
	close(ready);
	_exit(read(hold, &byte, 1) < 0);
}

int worker_child_start(struct worker_child *c, void (*prepare)(const void *arg), const void *arg,
		       const char *program, char *const *env)
{
	int hold[2], ready[2];
	char path[32], byte;
	bool begun;

	worker_child_kill();
	worker_child_wrong[0] = '\0';
	CHECK(!pipe2(hold, O_CLOEXEC) && !pipe2(ready, O_CLOEXEC));
	if (worker_child_wrong[0])
		return -1;
	c->pid = fork();
	if (!c->pid) {
		close(hold[1]);
		stay(prepare, arg, program, env, hold[0], ready[1]);
	}
	CHECK(c->pid > 0);
	if (c->pid < 0)
		return -1;
	staying = c->pid;
	close(hold[0]);
	close(ready[1]);
	c->hold = hold[1];
	begun = read(ready[0], &byte, 1) == 0; /* closed, by itself or by execve(2) */
	close(ready[0]);
	snprintf(path, sizeof(path), "/proc/%d", c->pid);
	c->proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(c->proc >= 0);
	return c->proc < 0 ? -1 : begun;
}

bool worker_child_drop_to(uid_t uid)
{
	return !setgroups(0, NULL) && !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid);
}

void worker_child_unshare(const void *flags)
{
	CHECK(!unshare(*(const int *)flags));
}

bool worker_child_write(const struct worker_child *c, const char *file, const char *text)
{
	int fd = openat(c->proc, file, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return written;
}

bool worker_child_read_file(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = -1;

	while (fd >= 0 && len < size - 1 && (n = read(fd, to + len, size - 1 - len)) > 0)
		len += (size_t)n;
	if (fd >= 0)
		close(fd);
	to[len] = '\0';
	return n >= 0;
}

/* --- files ---------------------------------------------------------------------------------------------- */

bool worker_child_has_dir(void)
{
	return dir[0];
}

const char *worker_child_in_dir(const char *name)
{
	static char paths[10][PATH_MAX];
	static unsigned int next;
	char *path = paths[next++ % 10];

	snprintf(path, PATH_MAX, "%s/%s", dir, name);
	return path;
}

bool worker_child_put_file(const char *name, uid_t uid, gid_t gid, mode_t mode)
{
	const char *path = worker_child_in_dir(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return false;
	close(fd);
	return !chown(path, uid, gid) && !chmod(path, mode);
}

bool worker_child_put_dir(const char *name, uid_t uid, gid_t gid, mode_t mode)
{
	const char *path = worker_child_in_dir(name);
	char file[PATH_MAX];

	snprintf(file, sizeof(file), "%s/f", name);
	return !mkdir(path, 0700) && worker_child_put_file(file, 0, 0, 0644) && !chown(path, uid, gid) &&
	       !chmod(path, mode);
}
