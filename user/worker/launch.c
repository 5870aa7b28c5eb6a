/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts workers. It keeps the capabilities of npuscope's start, and uses them for nothing else. Requests
 * are checked like those of an attacker, because the collector reads hostile data.
 *
 * The launcher runs from a sealed copy of the program in memory, and each worker from one of its own. A job
 * can see these processes in its pid namespace, and could otherwise write to the program's file through
 * /proc/PID/exe. A worker for the job uses the dynamic linker and libc of the job's root directory.
 */
#include "worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BEGIN_MS 4000 /* until a worker executes its program; file systems of the job can delay that */
#define GRACE_MS 200 /* for a worker that seems to be exiting, so that its own exit status is returned */
#define END_MS 1000 /* until one that was killed has been reaped */
#define MOST_PATHS 256
#define AT_EMPTY 0x1000 /* AT_EMPTY_PATH */
#define EXECUTABLE 0x10U /* MFD_EXEC */

struct launcher {
	bool sealed; /* this process runs from memory */
	int children; /* signalfd of SIGCHLD */
	pid_t pids[NPS_WORKER_MOST]; /* 0: free */
	/* has exited and been reaped; a pid namespace cannot end before its processes are */
	bool ended[NPS_WORKER_MOST];
	int statuses[NPS_WORKER_MOST];
	unsigned int serials[NPS_WORKER_MOST];
	unsigned int started;
};

/* What remains of a request after paths that other users could have changed are dropped. */
struct choice {
	char *argv[MOST_PATHS + 4];
	size_t n, n_libraries;
	char linker_path[NPS_WORKER_PATHS + 32]; /* LD_LIBRARY_PATH= */
};

/* What a starting worker writes to the launcher's pipe. The pipe is closed when it executes its program. */
struct progress {
	enum {
		CONFINED = 1, /* has no capability left, and waits to be moved to the job's control groups */
		FORKED, /* `pid` replaces it, and is the launcher's child */
		FAILED
	} what;
	pid_t pid;
	struct worker_error e;
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

/* --- a worker, until it executes its program ---------------------------------------------------------- */

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
static int copy_program(mode_t mode)
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
	int program = sealed ? copy_program(0111) : -1, err, fd;
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

	if (err)
		return worker_fail(e, err, "launch request");
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
	struct progress p = { .what = what, .pid = pid };

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
	int program = copy_program(0111), known[2], err;
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
	progress_report(report, CONFINED, 0, NULL);
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
		progress_report(report, FORKED, child, NULL);
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

static void begin_worker(const struct launcher *l, const struct nps_launch_request *r, const int fds[2],
			 int go, int report)
{
	struct worker_error e = { 0 };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	close(l->children);
	setsid();
	/* Each returns only after a failure. */
	if (!redirect_standard(r->from, fds[0], &e)) {
		if (r->from == NPS_LAUNCH_HOST)
			become_host_worker(r, l->sealed, &e);
		else
			start_in_job(r, fds[1], go, report, &e);
	}
	progress_report(report, FAILED, 0, &e);
	_exit(1);
}

/* --- the launcher -------------------------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Waits up to MS. False: the process has not exited. */
static bool reap_child(pid_t pid, int *status, unsigned int ms)
{
	uint64_t end = now_ms() + ms;
	pid_t got;

	while ((got = waitpid(pid, status, WNOHANG)) == 0 && now_ms() < end)
		poll(NULL, 0, 2);
	return got != 0;
}

/*
 * Kills and reaps a worker. Returns its wait status, -1 if it was
 * killed. GRACE: it first gets GRACE_MS to exit by itself.
 */
static int end_worker(struct launcher *l, int slot, bool grace)
{
	pid_t pid = l->pids[slot];
	int status = -1;

	if (l->ended[slot]) {
		status = l->statuses[slot];
	} else if (!reap_child(pid, &status, grace ? GRACE_MS : 0)) {
		kill(pid, SIGKILL);
		if (!reap_child(pid, &status, END_MS))
			return -1; /* its slot stays in use */
		status = -1;
	}
	l->pids[slot] = 0;
	l->ended[slot] = false;
	return status;
}

/* Reaps workers that have exited. */
static void reap_ended(struct launcher *l)
{
	struct signalfd_siginfo info;

	while (read(l->children, &info, sizeof(info)) > 0)
		;
	for (int i = 0; i < NPS_WORKER_MOST; i++)
		if (l->pids[i] && !l->ended[i])
			l->ended[i] = waitpid(l->pids[i], &l->statuses[i], WNOHANG) == l->pids[i];
}

static void end_all(struct launcher *l)
{
	for (int i = 0; i < NPS_WORKER_MOST; i++)
		if (l->pids[i] && !l->ended[i])
			kill(l->pids[i], SIGKILL);
	for (int i = 0; i < NPS_WORKER_MOST; i++)
		if (l->pids[i])
			end_worker(l, i, false);
}

/*
 * Reads the next message of a starting worker. False: the pipe is
 * closed, or END has passed, which is an error.
 */
static bool next_progress(int report, uint64_t end, struct progress *p, struct worker_error *e)
{
	struct pollfd fd = { .fd = report, .events = POLLIN };
	uint64_t now;
	ssize_t n;

	while ((now = now_ms()) < end && poll(&fd, 1, (int)(end - now)) < 0 && errno == EINTR)
		;
	if (!(fd.revents & (POLLIN | POLLHUP))) {
		worker_fail(e, -ETIMEDOUT, "looking at the job");
		return false;
	}
	n = read(report, p, sizeof(*p));
	if (n && n != sizeof(*p))
		worker_fail(e, -EIO, "the new process");
	p->e.why[sizeof(p->e.why) - 1] = '\0';
	return n == sizeof(*p);
}

/* Waits until the worker executes its program. *PID: its process, which changes on the way. */
static int await_start(int report, int go, int proc, pid_t *pid, struct worker_error *e)
{
	uint64_t end = now_ms() + BEGIN_MS;
	struct progress p;
	int status;

	while (!e->error && next_progress(report, end, &p, e)) {
		if (p.what == CONFINED) {
			/*
			 * Not earlier, because in a frozen group it could not be killed, and
			 * would keep its capabilities.
			 */
			if (!worker_cgroups_join(proc, *pid, e) && write(go, "g", 1) != 1)
				worker_fail(e, 0, "the new process");
		} else if (p.what == FORKED) {
			reap_child(*pid, &status, END_MS);
			*pid = p.pid;
		} else {
			*e = p.e;
		}
	}
	return e->error;
}

static int free_slot(const struct launcher *l)
{
	int slot = 0;

	while (slot < NPS_WORKER_MOST && l->pids[slot])
		slot++;
	return slot;
}

static int start_worker(struct launcher *l, const struct nps_launch_request *r, const int fds[2],
			struct nps_launch_reply *reply)
{
	struct worker_error e = { 0 };
	int report[2] = { -1, -1 }, go[2] = { -1, -1 }, slot = free_slot(l);
	pid_t pid = -1;

	if (slot == NPS_WORKER_MOST || r->n_hal > MOST_PATHS / 2 || r->n_dcmi > MOST_PATHS / 2)
		worker_fail(&e, -EAGAIN, "too many workers or paths");
	else if (r->from == NPS_LAUNCH_JOB && !l->sealed)
		worker_fail(&e, -EPERM, "programs in memory cannot be executed (vm.memfd_noexec)");
	else if (pipe2(report, O_CLOEXEC) || pipe2(go, O_CLOEXEC) || (pid = fork()) < 0)
		worker_fail(&e, 0, "starting a process");
	if (!pid) {
		close(report[0]);
		close(go[1]);
		begin_worker(l, r, fds, go[0], report[1]);
	}
	close(report[1]);
	close(go[0]);
	if (pid > 0) {
		await_start(report[0], go[1], fds[1], &pid, &e);
		l->pids[slot] = pid;
		l->serials[slot] = ++l->started;
		reply->id = l->started;
		reply->pid = pid;
		if (e.error)
			end_worker(l, slot, false);
	}
	close(report[0]);
	close(go[1]);
	memcpy(reply->why, e.why, sizeof(reply->why));
	return e.error;
}

static int launcher_slot(const struct launcher *l, uint32_t id)
{
	for (int i = 0; i < NPS_WORKER_MOST; i++)
		if (l->pids[i] && l->serials[i] == id)
			return i;
	return -1;
}

/* One request with its descriptors, -1 where there is none. False: the collector has closed the socket. */
static bool receive_request(struct nps_launch_request *r, int fds[2])
{
	union {
		char space[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { r, sizeof(*r) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	ssize_t n;

	do
		n = recvmsg(NPS_WORKER_FD, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	fds[0] = fds[1] = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); n > 0 && c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return n == sizeof(*r);
}

static void serve_request(struct launcher *l, const struct nps_launch_request *r, const int fds[2])
{
	struct nps_launch_reply reply = { .status = -1 };
	int slot = launcher_slot(l, r->id);

	if (r->op == NPS_LAUNCH_START && fds[0] >= 0 && fds[1] >= 0)
		reply.error = start_worker(l, r, fds, &reply);
	else if (r->op == NPS_LAUNCH_END && slot >= 0)
		reply.status = end_worker(l, slot, r->grace);
	else
		reply.error = -EINVAL;
	if (send(NPS_WORKER_FD, &reply, sizeof(reply), MSG_NOSIGNAL) < 0)
		return; /* the collector has exited: the next receive fails */
}

/* Closes descriptors that the collector was started with. */
static void close_inherited(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *d;

	while (dir && (d = readdir(dir))) {
		int fd = atoi(d->d_name);

		if (fd > NPS_WORKER_FD && fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

/* Executes a copy of this program in memory. Returns if programs in memory cannot be executed. */
static void run_from_memory(char **argv)
{
	int program = copy_program(0555);

	if (program < 0)
		return;
	argv[1] = (char *)"launch-sealed";
	syscall(SYS_execveat, program, "", argv, environ, AT_EMPTY);
	argv[1] = (char *)"launch";
	close(program);
}

/* Opens those of descriptors 0 to 2 that are closed, so that no other file gets one of these numbers. */
static void open_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd > NPS_WORKER_FD)
		close(fd);
}

static int watch_children(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int worker_launch(char **argv)
{
	static struct nps_launch_request request;
	struct launcher l = { .sealed = !strcmp(argv[1], "launch-sealed") };
	struct pollfd fds[2];
	int passed[2];

	open_standard_descriptors();
	if (!l.sealed)
		run_from_memory(argv);
	/* Ctrl-C must reach the collector alone. */
	setsid();
	close_inherited();
	fcntl(NPS_WORKER_FD, F_SETFD, FD_CLOEXEC);
	prctl(PR_SET_NAME, "npuscope-device", 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	l.children = watch_children();
	fds[0] = (struct pollfd){ .fd = NPS_WORKER_FD, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = l.children, .events = POLLIN };
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		reap_ended(&l);
		if (!fds[0].revents)
			continue;
		if (!receive_request(&request, passed))
			break;
		serve_request(&l, &request, passed);
		for (int i = 0; i < 2; i++)
			if (passed[i] >= 0)
				close(passed[i]);
	}
	end_all(&l);
	return 0;
}
