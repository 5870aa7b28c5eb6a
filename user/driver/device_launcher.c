/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver/device_launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/own_file.h"

#define END_MS 1000
#define POLL_US 100000
#define ANSWER_S 10 /* longer than the launcher needs for any request */

struct nps_device_launcher {
	pid_t pid;
	int fd;
	pthread_mutex_t lock; /* protects the socket, because an answer belongs to the request before it */
	atomic_bool ended;
	struct nps_device_worker *workers;
};

static pid_t spawn(const char *program, int fd)
{
	char *const argv[] = { (char *)"npuscope-device-worker", (char *)"launch", NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	pid_t pid = -1;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	err = posix_spawn_file_actions_init(&actions);
	if (err)
		goto out_attr;
	err = posix_spawn_file_actions_adddup2(&actions, fd, NPS_WORKER_FD);
	if (err)
		goto out_actions;
	err = posix_spawn(&pid, program, &actions, &attr, argv, environ);
out_actions:
	posix_spawn_file_actions_destroy(&actions);
out_attr:
	posix_spawnattr_destroy(&attr);
	return err ? -err : pid;
}

int nps_device_launcher__start(struct nps_device_launcher **out)
{
	const struct timeval patience = { .tv_sec = ANSWER_S };
	struct nps_device_launcher *l;
	char program[PATH_MAX];
	int sock[2], err = nps_own_file__find("npuscope-device-worker", program, sizeof(program));

	if (err)
		return err;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock)) {
		err = -errno;
		free(l);
		return err;
	}
	setsockopt(sock[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	l->fd = sock[0];
	l->pid = spawn(program, sock[1]);
	close(sock[1]);
	if (l->pid < 0) {
		err = l->pid;
		close(l->fd);
		free(l);
		return err;
	}
	pthread_mutex_init(&l->lock, NULL);
	*out = l;
	return 0;
}

/* FDS: two descriptors to pass along, NULL: none. */
static int send_request(int fd, struct nps_launch_request *r, const int *fds)
{
	union {
		char space[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { r, sizeof(*r) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fds) {
		struct cmsghdr *c;

		m.msg_control = control.space;
		m.msg_controllen = sizeof(control.space);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
	}
	return sendmsg(fd, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int exchange(struct nps_device_launcher *l, struct nps_launch_request *r, const int *fds,
		    struct nps_launch_reply *reply)
{
	ssize_t n = -1;
	int err;

	pthread_mutex_lock(&l->lock);
	err = atomic_load(&l->ended) ? -EPIPE : send_request(l->fd, r, fds);
	while (!err && (n = recv(l->fd, reply, sizeof(*reply), 0)) < 0 && errno == EINTR)
		;
	if (!err && n != sizeof(*reply)) {
		err = n < 0 ? -errno : -EPIPE;
		shutdown(l->fd, SHUT_RDWR); /* a late answer would be mistaken for the next one's */
	}
	pthread_mutex_unlock(&l->lock);
	if (err)
		return err;
	reply->why[sizeof(reply->why) - 1] = '\0';
	return 0;
}

static int process_open_dir(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), pid ? "/proc/%d" : "/proc/self", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int request_worker(struct nps_device_launcher *l, struct nps_launch_request *r, const int *fds,
			  struct nps_launch_reply *reply)
{
	int err = exchange(l, r, fds, reply);

	if (err)
		return err;
	return reply->error;
}

int nps_device_launcher__worker(struct nps_device_launcher *l, struct nps_launch_request *r, pid_t pid,
				struct nps_device_worker **out, char *why, size_t why_size)
{
	struct nps_device_worker *w = calloc(1, sizeof(*w));
	struct nps_launch_reply reply = { 0 };
	int sock[2] = { -1, -1 }, proc = process_open_dir(pid), err = 0;

	r->op = NPS_LAUNCH_START;
	if (!w)
		err = -ENOMEM;
	else if (proc < 0)
		err = errno == ENOENT ? -ESRCH : -errno;
	else if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		err = -errno;
	else
		err = request_worker(l, r, (const int[2]){ sock[1], proc }, &reply);
	snprintf(why, why_size, "%s", err && reply.why[0] ? reply.why : err ? strerror(-err) : "");
	if (proc >= 0)
		close(proc);
	if (sock[1] >= 0)
		close(sock[1]);
	if (err) {
		if (sock[0] >= 0)
			close(sock[0]);
		free(w);
		return err;
	}
	w->launcher = l;
	w->id = reply.id;
	w->pid = reply.pid;
	memcpy(w->paths, r->paths, sizeof(w->paths));
	w->control = sock[0];
	pthread_mutex_lock(&l->lock);
	w->next = l->workers;
	l->workers = w;
	pthread_mutex_unlock(&l->lock);
	*out = w;
	return 0;
}

int nps_device_worker__connect(struct nps_device_worker *w)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	const struct timeval interval = { .tv_usec = POLL_US };
	int sock[2], err = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock))
		return -errno;
	/* Timeouts, so that a waiting thread regularly checks whether the worker still exists. */
	setsockopt(sock[0], SOL_SOCKET, SO_RCVTIMEO, &interval, sizeof(interval));
	setsockopt(sock[0], SOL_SOCKET, SO_SNDTIMEO, &interval, sizeof(interval));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &sock[1], sizeof(int));
	if (sendmsg(w->control, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		err = -errno;
	close(sock[1]);
	if (err)
		close(sock[0]);
	return err ? err : sock[0];
}

int nps_device_worker__end(struct nps_device_worker *w, bool grace)
{
	struct nps_launch_request *r = calloc(1, sizeof(*r));
	struct nps_launch_reply reply = { .status = -1 };

	atomic_store(&w->ended, true);
	if (!r)
		return -1;
	r->op = NPS_LAUNCH_END;
	r->id = w->id;
	r->grace = grace;
	if (exchange(w->launcher, r, NULL, &reply))
		reply.status = -1;
	free(r);
	return reply.status;
}

/*
 * The launcher ends its workers first. If it waits for the start of one, that can take too long: killing it
 * kills its workers.
 */
static void await_end(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	pid_t got = 0;

	for (int ms = 0; !got && ms < END_MS; ms += 2) {
		got = waitpid(pid, NULL, WNOHANG);
		if (!got)
			nanosleep(&pause, NULL);
	}
	if (got)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void nps_device_launcher__end(struct nps_device_launcher *l)
{
	if (!l || atomic_exchange(&l->ended, true))
		return;
	shutdown(l->fd, SHUT_RDWR); /* wakes the thread that waits with the lock held */
	await_end(l->pid);
}

bool nps_device_launcher__ended(const struct nps_device_launcher *l)
{
	return atomic_load(&l->ended);
}

void nps_device_launcher__free(struct nps_device_launcher *l)
{
	struct nps_device_worker *next;

	if (!l)
		return;
	nps_device_launcher__end(l);
	for (struct nps_device_worker *w = l->workers; w; w = next) {
		next = w->next;
		close(w->control);
		free(w);
	}
	close(l->fd);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
