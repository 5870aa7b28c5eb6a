/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_off.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "clocks.h"
#include "log.h"

#define MS 1000000ULL
#define TURN_MS 20

static void *run(void *s)
{
	nps_trace_switch__off(s);
	return NULL;
}

static bool join(pthread_t thread)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)(TURN_MS * MS);
	if (until.tv_nsec >= (long)(1000 * MS)) {
		until.tv_sec++;
		until.tv_nsec -= (long)(1000 * MS);
	}
	return !pthread_timedjoin_np(thread, NULL, &until);
}

bool nps_trace_off(struct nps_trace_switch *s, void (*meanwhile)(void *arg), void *arg)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	sigset_t all, old;
	pthread_t thread;
	int err;

	if (!s)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		nps_trace_switch__off(s);
		return true;
	}
	while (!join(thread)) {
		if (nps_now(CLOCK_MONOTONIC) - begin > NPS_TRACE_OFF_MS * MS) {
			pthread_detach(thread);
			nps_warn("tracepoints of the NPU's driver may stay on: it does not answer within %d "
				 "s: the "
				 "next npuscope record switches them off, once it does: npu-smi info tells "
				 "its health",
				 NPS_TRACE_OFF_MS / 1000);
			return false;
		}
		if (meanwhile)
			meanwhile(arg);
	}
	return true;
}
