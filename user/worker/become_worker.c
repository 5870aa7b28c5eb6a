/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A child of the launcher, until it executes the worker: which of the requested libraries it may load, and
 * with whose ids, namespaces and limits. A worker for the host's libraries is nobody; one for the job's is
 * the job, and uses the dynamic linker and libc of the job's root directory. The launcher itself calls only
 * worker_fail() and worker_copy_program().
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_PATHS (2 * WORKER_MOST_LIBRARIES)
#define AT_EMPTY 0x1000 /* AT_EMPTY_PATH */
#define EXECUTABLE 0x10U /* MFD_EXEC */

/* What remains of a request after paths that other users could have changed are dropped. */
struct choice {
	char *argv[MOST_PATHS + 4];
	size_t n, n_libraries;
	char linker_path[NPS_WORKER_PATHS + 32]; /* LD_LIBRARY_PATH= */
};

int worker_fail(struct worker_error *e, int error, const char *format, ...)
{
	int saved = error ? -error : errno;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(e->why, sizeof(e->why), format, ap);
	va_end(ap);
	if (n > 0 && n < (int)sizeof(e->why))
		snprintf(e->why + n, sizeof(e->why) - (size_t)n, ": %s", strerror(saved));
	e->error = saved ? -saved : -EIO;
	return e->error;
}

static int request_next_path(const struct nps_launch_request *r, size_t *at, const char **path)
{
	size_t len = strnlen(r->paths + *at, sizeof(r->paths) - *at);

	if (*at + len >= sizeof(r->paths))
		return -EPROTO;
	*path = r->paths + *at;
	*at += len + 1;
	return 0;
}

/* Trusted library paths of R become arguments of the worker, trusted directories its LD_LIBRARY_PATH. */
static int choice_fill(const struct nps_launch_request *r, const struct worker_trust *trust, struct choice *c,
		       struct worker_error *e)
{
	/*
	 * The first is the library's own. The job may never have searched the others, so no group may be
	 * able to write to them.
	 */
	struct worker_trust searched = *trust;
	const char *path, *refused = NULL;
	size_t at = 0, len;

	searched.by_group = false;
	c->argv[c->n++] = (char *)"npuscope-device-worker";
	c->argv[c->n++] = (char *)"serve";
	for (uint32_t i = 0; i < r->n_hal + r->n_dcmi; i++) {
		if (i == r->n_hal)
			c->argv[c->n++] = (char *)"--";
		if (request_next_path(r, &at, &path))
			return worker_fail(e, -EPROTO, "launch request");
		if (!worker_path_trusted(path, trust)) {
			if (access(path, F_OK) == 0 && !refused)
				refused = path;
			continue;
		}
		c->argv[c->n++] = (char *)path;
		c->n_libraries++;
	}
	len = (size_t)snprintf(c->linker_path, sizeof(c->linker_path), "LD_LIBRARY_PATH=");
	for (uint32_t i = 0; i < r->n_dirs; i++) {
		if (request_next_path(r, &at, &path))
			return worker_fail(e, -EPROTO, "launch request");
		if (strpbrk(path, ":;$") || !worker_path_trusted(path, i ? &searched : trust))
			continue;
		len += (size_t)snprintf(c->linker_path + len, sizeof(c->linker_path) - len, "%s:", path);
	}
	c->linker_path[len - 1] = len > strlen("LD_LIBRARY_PATH=") ? '\0' : '=';
	if (c->n_libraries)
		return 0;
	return refused ? worker_fail(e, -EACCES, "%.90s, or what leads to it, can be written by others",
				     refused)
		       : worker_fail(e, -ENOENT, "the driver's library");
}

/* The worker gets an empty session keyring. */
static void drop_session_keyring(void)
{
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
}

/*
 * Standard input, output and error: no terminal, because a process can insert input there. For the job not
 * the host's /dev/null either: root of a container without user namespace owns it, and could change its mode.
 */
static int redirect_standard(enum nps_launch_from from, int control, struct worker_error *e)
{
	int null[2] = { -1, -1 };
	bool ok;

	if (from == NPS_LAUNCH_JOB)
		ok = !pipe2(null, O_CLOEXEC | O_NONBLOCK);
	else
		ok = (null[0] = null[1] = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0;
	if (!ok || dup2(null[0], 0) < 0 || dup2(null[1], 1) < 0 || dup2(null[1], 2) < 0)
		return worker_fail(e, 0, "standard input and output");
	close(null[0]);
	if (null[1] != null[0])
		close(null[1]);
	if (dup2(control, NPS_WORKER_FD) < 0)
		return worker_fail(e, 0, "dup2");
	close(control);
	return 0;
}

/*
 * Creates a sealed copy of this program. A process whose user cannot read its program is not dumpable: only
 * root can trace it.
 */
int worker_copy_program(mode_t mode)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd;
	char buf[65536];
	ssize_t n = -1;

	fd = (int)syscall(SYS_memfd_create, "npuscope-device-worker", flags | EXECUTABLE);
	if (fd < 0 && errno == EINVAL) /* Linux before 6.3 has no such flag, and needs none */
		fd = (int)syscall(SYS_memfd_create, "npuscope-device-worker", flags);
	while (self >= 0 && fd >= 0 && (n = read(self, buf, sizeof(buf))) > 0)
		if (write(fd, buf, (size_t)n) != n)
			break;
	if (self >= 0)
		close(self);
	if (fd >= 0 && (n || fchmod(fd, mode) ||
			fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int program_execute(int program, const struct choice *c, char **env, struct worker_error *e)
{
	int err = worker_filter_calls();

	if (err)
		return worker_fail(e, err, "the filter of system calls");
	syscall(SYS_execveat, program, "", c->argv, env, AT_EMPTY);
	return worker_fail(e, 0, "executing npuscope-device-worker there");
}

/* The collector's environment without variables of the dynamic linker. */
static char **host_environment(char *linker_path)
{
	static char *env[4096];
	size_t n = 0;

	for (char **v = environ; *v && n < sizeof(env) / sizeof(*env) - 2; v++)
		if (strncmp(*v, "LD_", 3) != 0 && strncmp(*v, "GLIBC_TUNABLES=", 15) != 0)
			env[n++] = *v;
	env[n] = linker_path;
	return env;
}

static bool requests_root(const struct nps_launch_request *r)
{
	bool root = !r->uid || !r->gid;

	for (uint32_t i = 0; i < r->n_groups; i++)
		root |= !r->groups[i];
	return root;
}

/* SEALED: programs in memory can be executed here. */
static int become_host_worker(const struct nps_launch_request *r, bool sealed, struct worker_error *e)
{
	const bool as_we_are = geteuid() != 0;
	const struct worker_trust root_alone = { .owners = { as_we_are ? geteuid() : 0 } };
	const struct worker_ids ids = { .uid = as_we_are ? geteuid() : r->uid,
					.gid = as_we_are ? getegid() : r->gid,
					.groups = r->groups,
					.n_groups = r->n_groups,
					.own_groups = as_we_are,
					.user_ns = -1 };
	int program = sealed ? worker_copy_program(0111) : -1, err, fd;
	static struct choice c;

	if (program < 0)
		program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (r->n_groups > NPS_WORKER_GROUPS || (!as_we_are && requests_root(r)))
		return worker_fail(e, -EPERM, "the driver's library is not run as root");
	err = choice_fill(r, &root_alone, &c, e);
	if (err)
		return err;
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "1000", 4) != 4)
		errno = 0; /* not fatal: the OOM killer then treats it as any process */
	if (fd >= 0)
		close(fd);
	drop_session_keyring();
	if (chdir("/"))
		return worker_fail(e, 0, "/");
	err = worker_set_ids(&ids, e);
	if (!err)
		err = worker_drop_privileges(&ids, e);
	return err ? err : program_execute(program, &c, host_environment(c.linker_path), e);
}

static int request_library_paths(const struct nps_launch_request *r, const char *paths[MOST_PATHS], size_t *n)
{
	size_t at = 0;

	for (uint32_t i = 0; i < r->n_hal + r->n_dcmi && *n < MOST_PATHS; i++) {
		if (request_next_path(r, &at, &paths[*n]))
			return -EPROTO;
		(*n)++;
	}
	return 0;
}

/*
 * Changes to the job's limits, namespaces, root directory and ids, and
 * drops all capabilities. *C: what to load.
 */
static int become_job(const struct nps_launch_request *r, int proc, struct worker_target *t, struct choice *c,
		      struct worker_error *e)
{
	const char *paths[MOST_PATHS];
	struct worker_trust trust = { .sticky = true };
	struct worker_ids ids;
	size_t n = 0;
	int err = request_library_paths(r, paths, &n);

	if (err) {
		worker_fail(e, err, "launch request");
		return err;
	}
	err = worker_target_read(t, proc, paths, n, e);
	if (err)
		return err;
	worker_target_apply_limits(t);
	drop_session_keyring();
	err = worker_target_enter(t, e);
	if (err)
		return err;
	ids = (struct worker_ids){ .uid = t->uid,
				   .gid = t->gid,
				   .groups = t->groups,
				   .n_groups = t->n_groups,
				   .user_ns = t->ns[NS_USER] };
	err = worker_set_ids(&ids, e);
	if (err)
		return err;
	/*
	 * With the job's ids and no effective capability, because its file systems can block; before its
	 * user namespace, in which stat(2) returns other ids.
	 */
	trust.owners[0] = t->uid;
	trust.owners[1] = t->ns_root;
	trust.owners[2] = r->also_trusted;
	trust.by_group = true;
	trust.group = t->gid;
	err = choice_fill(r, &trust, c, e);
	if (!err)
		err = worker_drop_privileges(&ids, e);
	if (t->ns[NS_USER] >= 0)
		close(t->ns[NS_USER]);
	return err;
}

static void progress_report(int report, int what, pid_t pid, const struct worker_error *e)
{
	struct worker_progress p = { .what = what, .pid = pid };

	if (e)
		p.e = *e;
	if (write(report, &p, sizeof(p)) != sizeof(p))
		_exit(2);
}

/*
 * Starts the worker in the job's pid namespace, where the job can see it, as a child of the launcher, which
 * can kill and reap it in any state. Returns only after a failure.
 */
static int start_in_job(const struct nps_launch_request *r, int proc, int go, int report,
			struct worker_error *e)
{
	int program = worker_copy_program(0111), known[2], err;
	struct worker_target t;
	static struct choice c;
	size_t n = 0;
	pid_t child;
	char byte;

	if (program < 0 || pipe2(known, O_CLOEXEC))
		return worker_fail(e, 0, "a program in memory");
	err = become_job(r, proc, &t, &c, e);
	if (err)
		return err;
	progress_report(report, WORKER_CONFINED, 0, NULL);
	if (read(go, &byte, 1) != 1)
		return worker_fail(e, -ECHILD, "the launcher");
	while (t.env[n])
		n++;
	t.env[n] = c.linker_path;
	/* The job can read the new process's memory until it executes its program. */
	for (char **v = environ; *v; v++)
		memset(*v, 0, strlen(*v));
	child = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
	if (child < 0)
		return worker_fail(e, 0, "starting a process in the job's pid namespace");
	if (child) {
		progress_report(report, WORKER_FORKED, child, NULL);
		_exit(write(known[1], "k", 1) != 1);
	}
	/*
	 * Not before the launcher knows the pid to kill. Its death signal works
	 * because it is root, or of the same user.
	 */
	close(known[1]);
	if (read(known[0], &byte, 1) != 1 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return worker_fail(e, -ECHILD, "the launcher");
	return program_execute(program, &c, t.env, e);
}

void worker_become(const struct nps_launch_request *r, const int fds[2], bool sealed, int go, int report)
{
	struct worker_error e = { 0 };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	/* Each returns only after a failure. */
	if (!redirect_standard(r->from, fds[0], &e)) {
		if (r->from == NPS_LAUNCH_HOST)
			become_host_worker(r, sealed, &e);
		else
			start_in_job(r, fds[1], go, report, &e);
	}
	progress_report(report, WORKER_FAILED, 0, &e);
	_exit(1);
}
