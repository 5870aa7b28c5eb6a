/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts workers. It keeps the capabilities of npuscope's start, and uses them for nothing else. Requests
 * are checked like those of an attacker, because the collector reads hostile data.
 *
 * The launcher runs from a sealed copy of the program in memory, and each worker from one of its own. A job
 * can see these processes in its pid namespace, and could otherwise write to the program's file through
 * /proc/PID/exe. What its children do before they execute a worker is in become_worker.c.
 */
#include "worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BEGIN_MS 4000 /* until a worker executes its program; file systems of the job can delay that */
#define GRACE_MS 200 /* for a worker that seems to be exiting, so that its own exit status is returned */
#define END_MS 1000 /* until one that was killed has been reaped */
#define AT_EMPTY 0x1000 /* AT_EMPTY_PATH */

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
static bool next_progress(int report, uint64_t end, struct worker_progress *p, struct worker_error *e)
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
	struct worker_progress p;
	int status;

	while (!e->error && next_progress(report, end, &p, e)) {
		if (p.what == WORKER_CONFINED) {
			/*
			 * Not earlier, because in a frozen group it could not be killed, and
			 * would keep its capabilities.
			 */
			if (!worker_cgroups_join(proc, *pid, e) && write(go, "g", 1) != 1)
				worker_fail(e, 0, "the new process");
		} else if (p.what == WORKER_FORKED) {
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

	if (slot == NPS_WORKER_MOST || r->n_hal > WORKER_MOST_LIBRARIES || r->n_dcmi > WORKER_MOST_LIBRARIES)
		worker_fail(&e, -EAGAIN, "too many workers or paths");
	else if (r->from == NPS_LAUNCH_JOB && !l->sealed)
		worker_fail(&e, -EPERM, "programs in memory cannot be executed (vm.memfd_noexec)");
	else if (pipe2(report, O_CLOEXEC) || pipe2(go, O_CLOEXEC) || (pid = fork()) < 0)
		worker_fail(&e, 0, "starting a process");
	if (!pid) {
		close(report[0]);
		close(go[1]);
		close(l->children);
		worker_become(r, fds, l->sealed, go[0], report[1]);
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
	int program = worker_copy_program(0555);

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
