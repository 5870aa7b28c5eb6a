/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/driver/trace_off.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "core/clocks.h"
#include "core/log.h"

#define MS 1000000ULL
#define TURN_MS 20

static void *thread_switch_off(void *s)
{
	nps_trace_switch__off(s);
	return NULL;
}

static void *thread_restore(void *paths)
{
	nps_trace_switch__restore(paths);
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

/* Calls RUN(WHAT) in a thread, and leaves the thread alone after the time limit: false. */
static bool limited(void *(*run)(void *what), void *what, void (*meanwhile)(void *arg), void *arg)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, run, what);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		run(what);
		return true;
	}
	while (!join(thread)) {
		if (nps_now(CLOCK_MONOTONIC) - begin > NPS_TRACE_OFF_MS * MS) {
			pthread_detach(thread);
			return false;
		}
		if (meanwhile)
			meanwhile(arg);
	}
	return true;
}

bool nps_trace_off(struct nps_trace_switch *s, void (*meanwhile)(void *arg), void *arg)
{
	if (!s || limited(thread_switch_off, s, meanwhile, arg))
		return true;
	nps_warn("tracepoints of the NPU's driver may stay on: it does not answer within %d s: the next "
		 "npuscope record switches them off, once it does: check its health with npu-smi info",
		 NPS_TRACE_OFF_MS / 1000);
	return false;
}

bool nps_trace_restore(const struct nps_trace_paths *paths)
{
	if (limited(thread_restore, (void *)paths, NULL, NULL))
		return true;
	nps_warn("tracepoints of the NPU's driver that another npuscope had left on may stay so: it does not "
		 "answer within %d s: check its health with npu-smi info",
		 NPS_TRACE_OFF_MS / 1000);
	return false;
}
