/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/driver/tracefs.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "core/log.h"

#define TRACEFS "/sys/kernel/tracing"

struct tracefs_call {
	int (*fn)(void *arg);
	void *arg;
	int result;
};

/* A thread can have a mount namespace of its own, which ends with the thread. */
static void *run_apart(void *arg)
{
	struct tracefs_call *call = arg;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", TRACEFS, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		nps_debug("tracefs is not mounted, and cannot be: %s", strerror(errno));
	call->result = call->fn(call->arg);
	return NULL;
}

int nps_tracefs__with(int (*fn)(void *arg), void *arg)
{
	struct tracefs_call call = { fn, arg, 0 };
	pthread_t thread;

	if (!access(TRACEFS "/events", F_OK) || !access("/sys/kernel/debug/tracing/events", F_OK) ||
	    pthread_create(&thread, NULL, run_apart, &call))
		return fn(arg);
	pthread_join(thread, NULL);
	return call.result;
}
