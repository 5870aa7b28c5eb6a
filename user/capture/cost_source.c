/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/cost_source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/calibrate.h"
#include "capture/cost_cache.h"
#include "core/log.h"

#define LIMIT_S 60 /* for measuring: a measurement that takes longer is useless */
#define LAST_WAIT_MS 500 /* for its end */
#define TURN_MS 5

const char *nps_cost_basis__name(enum nps_cost_basis basis)
{
	static const char *const names[] = { [NPS_COST_ESTIMATED] = "estimated",
					     [NPS_COST_CACHED] = "cached",
					     [NPS_COST_MEASURED] = "measured" };

	return names[basis];
}

/* --- the child --- */

/*
 * The child must not keep our output open, because readers would wait
 * for its end, and must not print anything.
 */
static void leave_output(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= 2; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			close(fd);
}

static void measure(const struct nps_capability *cap, int parent)
{
	struct nps_cost_key key;
	struct nps_cost cost;
	char word;

	if (recv(parent, &word, 1, 0) != 1)
		_exit(0); /* the parent does not need it any more */
	alarm(LIMIT_S); /* kills this process */
	/* It measures CPU time, and must not compete with the job. */
	setpriority(PRIO_PROCESS, 0, 19);
	if (nps_calibrate(cap, &cost) || !nps_cost__is_valid(&cost))
		_exit(1);
	/*
	 * Before the result is sent, because the receiver then kills this process. If it cannot be cached,
	 * the next capture measures again.
	 */
	if (!nps_cost_key__fill(cap, &key))
		nps_cost_cache__write(&nps_cost_cache_here, &key, &cost);
	_exit(send(parent, &cost, sizeof(cost), MSG_NOSIGNAL) == sizeof(cost) ? 0 : 1);
}

static void measure_child(const struct nps_capability *cap, pid_t parent, int socket)
{
	sigset_t ours;

	/* kill -9 of the parent ends it, too, so that the kernel removes its probes. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	prctl(PR_SET_NAME, "npuscope-cost");
	signal(SIGALRM, SIG_DFL);
	sigemptyset(&ours);
	sigaddset(&ours, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &ours, NULL);
	leave_output();
	nps_log_verbose(0);
	measure(cap, socket);
}

static int start_child(struct nps_cost_source *s, const struct nps_capability *cap)
{
	pid_t parent = getpid(), pid;
	int ends[2], err;

	/* Packets, so that a result arrives whole or not at all. */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	pid = fork();
	if (pid < 0) {
		err = -errno;
		close(ends[0]);
		close(ends[1]);
		return err;
	}
	if (pid == 0) {
		close(ends[0]);
		measure_child(cap, parent, ends[1]);
	}
	close(ends[1]);
	s->socket = ends[0];
	s->child = pid;
	return 0;
}

/* --- the parent --- */

static void hang_up(struct nps_cost_source *s)
{
	if (s->socket >= 0)
		close(s->socket);
	s->socket = -1;
}

static int read_cached_cost(const struct nps_capability *cap, struct nps_cost *cost)
{
	struct nps_cost_key key;
	int err = nps_cost_key__fill(cap, &key);

	if (err)
		return err;
	return nps_cost_cache__read(&nps_cost_cache_here, &key, cost);
}

void nps_cost_source__open(struct nps_cost_source *s, const struct nps_capability *cap)
{
	int err;

	*s = (struct nps_cost_source){ .basis = NPS_COST_ESTIMATED, .socket = -1 };
	err = read_cached_cost(cap, &s->cost);
	if (!err) {
		s->basis = NPS_COST_CACHED;
		return;
	}
	nps_debug("what probes cost is not known yet: %s", strerror(-err));
	nps_cost__estimate(cap, &s->cost);
	err = start_child(s, cap);
	if (err) {
		nps_debug("what probes cost is not measured: %s", strerror(-err));
		s->failed = true;
	}
}

void nps_cost_source__start(struct nps_cost_source *s)
{
	/* If the child was killed, the socket's end shows that. */
	if (s->socket >= 0 && send(s->socket, "g", 1, MSG_NOSIGNAL) != 1)
		nps_debug("what probes cost is not measured: %s", strerror(errno));
}

static void receive(struct nps_cost_source *s, int flags)
{
	struct nps_cost cost;
	ssize_t n;

	do
		n = recv(s->socket, &cost, sizeof(cost), flags);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return;
	hang_up(s);
	s->failed = n != sizeof(cost) || !nps_cost__is_valid(&cost);
	if (s->failed)
		return;
	s->cost = cost;
	s->basis = NPS_COST_MEASURED;
}

bool nps_cost_source__poll(struct nps_cost_source *s)
{
	if (s->socket < 0)
		return false;
	receive(s, MSG_DONTWAIT);
	return s->socket < 0;
}

void nps_cost_source__wait(struct nps_cost_source *s)
{
	if (s->socket >= 0)
		receive(s, 0);
}

void nps_cost_source__end(struct nps_cost_source *s)
{
	/* It may be writing the cache: an incomplete file is never visible. */
	if (s->child)
		kill(s->child, SIGKILL);
	hang_up(s);
}

void nps_cost_source__close(struct nps_cost_source *s)
{
	nps_cost_source__end(s);
	for (int waited = 0; s->child && waited < LAST_WAIT_MS; waited += TURN_MS) {
		pid_t got = waitpid(s->child, NULL, WNOHANG);

		if (got == s->child || (got < 0 && errno != EINTR))
			s->child = 0;
		else
			poll(NULL, 0, TURN_MS);
	}
}
