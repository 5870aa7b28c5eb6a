/* SPDX-License-Identifier: BSD-2-Clause */
/* The signals that end a capture. */
#include <poll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "capture/capture_parts.h"

int nps_capture__catch_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigprocmask(SIG_BLOCK, set, NULL);
	return signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool nps_capture__read_signals(int fd)
{
	struct signalfd_siginfo si;
	bool terminated = false;

	while (read(fd, &si, sizeof(si)) > 0)
		terminated |= si.ssi_signo == SIGTERM;
	return terminated;
}

void nps_capture__release_signals(int fd, sigset_t *set, bool terminated)
{
	close(fd);
	if (terminated)
		sigdelset(set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, set, NULL);
}

void nps_capture__heed_sigterm(void)
{
	const struct timespec at_once = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	while (sigtimedwait(&set, NULL, &at_once) > 0)
		;
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

bool nps_capture__interrupted(const struct nps_capture *c)
{
	struct pollfd fd = { .fd = c->signals, .events = POLLIN };

	return poll(&fd, 1, 0) > 0 && fd.revents & POLLIN;
}
