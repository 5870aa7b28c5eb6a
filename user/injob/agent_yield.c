/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job's own profiler comes first. npuscope's probe of its driver call sends the calling thread a signal
 * of ours; the handler, which runs before the driver's function, waits until the device's thread has
 * released the device.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent_impl.h"

#define YIELD_MS 2000 /* longest delay of the job's own start of a channel, once per capture */

static struct nps_agent_control *ctl;
static pid_t own_pid; /* a forked child does not have the helper */
static uint32_t abandoned[NPS_AGENT_MAX_DEVICES]; /* the job has waited in vain once in this capture */

/*
 * The device of which the job starts a channel: the call's first
 * argument, because the call has just been entered.
 */
static uint32_t requested_device(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (uint32_t)context->uc_mcontext.gregs[REG_RDI];
#elif defined(__aarch64__)
	return (uint32_t)context->uc_mcontext.regs[0];
#else
	(void)context;
	return UINT32_MAX;
#endif
}

/*
 * Is device I still being released for a thread that starts a channel of DEVICE? With an idle helper the
 * collector has ended, or its heartbeat has stopped.
 */
static bool is_kept(unsigned i, uint32_t device)
{
	const struct nps_agent_device *d = &ctl->device[i];

	if (nps_agent_load(&abandoned[i]))
		return false;
	if (i == device && nps_agent_load(&ctl->command) == NPS_AGENT_RUN &&
	    __atomic_load_n(&d->sampled, __ATOMIC_SEQ_CST))
		return true;
	return nps_agent_load(&d->hold) && __atomic_load_n(&d->busy, __ATOMIC_SEQ_CST);
}

static bool any_kept(uint32_t device)
{
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++)
		if (is_kept(i, device))
			return true;
	return false;
}

/* A collector that is stopped, or a driver that does not return, delays the job once, not at every call. */
static void device_abandon(uint32_t device)
{
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++)
		if (is_kept(i, device)) {
			nps_agent_store(&abandoned[i], 1);
			__atomic_store_n(&ctl->device[i].sampled, 0, __ATOMIC_SEQ_CST);
		}
}

/*
 * Runs in the job's thread that is about to start a channel, as a signal
 * handler: only async-signal-safe calls.
 */
static void yield_device(int sig, siginfo_t *info, void *context)
{
	uint32_t device = requested_device(context);
	const struct timespec turn = { .tv_nsec = 5000000 };
	uint64_t begin = nps_agent_now(CLOCK_MONOTONIC);
	int saved = errno;

	(void)sig;
	(void)info;
	if (getpid() != own_pid)
		return;
	/*
	 * Hold all devices: one that is not busy now may be in a moment. Those
	 * that are not claimed open again at once.
	 */
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++)
		__atomic_fetch_add(&ctl->device[i].hold, 1, __ATOMIC_SEQ_CST);
	nps_agent_wake(&ctl->wake);
	for (;;) {
		uint32_t seen = nps_agent_load(&ctl->released);

		if (!any_kept(device))
			break;
		if (nps_agent_now(CLOCK_MONOTONIC) - begin >= YIELD_MS * 1000000ULL) {
			device_abandon(device);
			break;
		}
		syscall(SYS_futex, &ctl->released, FUTEX_WAIT, seen, &turn, NULL, 0);
	}
	errno = saved;
}

/*
 * Chooses a signal that the job does not use. It is never given back:
 * one may still be pending when we are idle.
 */
static void claim_signal(void)
{
	struct sigaction mine = { .sa_sigaction = yield_device, .sa_flags = SA_RESTART | SA_SIGINFO }, have;

	sigfillset(&mine.sa_mask);
	for (int n = SIGRTMAX - 1; !ctl->signal && n > SIGRTMIN; n--) {
		if (sigaction(n, NULL, &have) || have.sa_flags & SA_SIGINFO || have.sa_handler != SIG_DFL)
			continue;
		if (sigaction(n, &mine, NULL))
			continue;
		ctl->handler = (uintptr_t)yield_device;
		nps_agent_store(&ctl->signal, (uint32_t)n);
	}
}

void nps_agent_yield__init(struct nps_agent_control *control, pid_t pid)
{
	ctl = control;
	own_pid = pid;
}

void nps_agent_yield__begin(void)
{
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++)
		nps_agent_store(&abandoned[i], 0);
	claim_signal();
}
