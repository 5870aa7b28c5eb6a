/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver/driver_query.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/clocks.h"
#include "core/log.h"
#include "core/privilege.h"

#define MS 1000000ULL
/* until a query that was just posted is started: a call that hangs counts as late, not as slow */
#define QUERY_MS 100
#define FIRST_PAUSE (1000 * MS) /* before the next try to find a library; doubled each time */
#define LONGEST_PAUSE (30000 * MS)
#define LAST_WAIT_MS 500 /* for a thread whose call was aborted */

struct nps_driver_query {
	pthread_t thread;
	pthread_mutex_t lock; /* protects all members below except the driver */
	pthread_cond_t posted, answered;
	struct nps_question *open, **last; /* not started yet */
	struct nps_question *done;
	bool querying, stop;
	atomic_uint_fast64_t since; /* CLOCK_MONOTONIC ns: start of the last call */
	bool late;
	struct nps_driver driver;
};

/* Is a try through that process due? */
static bool try_is_due(const struct nps_driver_try *t, pid_t first)
{
	return first != t->pid || nps_now(CLOCK_MONOTONIC) >= t->again;
}

/*
 * Retries at once after the first failure, because the first query may
 * have come too early; what cannot be loaded stays so.
 */
static void try_later(struct nps_driver_try *t, pid_t first, int err)
{
	if (first != t->pid)
		t->pause = 0;
	else
		t->pause = t->pause ? 2 * t->pause : FIRST_PAUSE;
	if (t->pause > LONGEST_PAUSE)
		t->pause = LONGEST_PAUSE;
	t->pid = first;
	t->again = err == -ELIBACC ? UINT64_MAX : nps_now(CLOCK_MONOTONIC) + t->pause;
}

/*
 * A process that calls the libraries may end with the job that it was
 * started for: then another job's is used.
 */
static void forget_lost(struct nps_driver *d)
{
	if (!nps_device_lib__failed(&d->lib))
		return;
	nps_device_lib__close(&d->lib);
	d->known_units = 0;
}

bool nps_driver__open(struct nps_driver *d, const pid_t *pids, size_t n)
{
	pid_t first = n ? pids[0] : -1;
	int err;

	forget_lost(d);
	if (d->lib.has[NPS_WORKER_HAL])
		return true;
	if (!try_is_due(&d->hal_try, first))
		return false;
	err = nps_device_lib__open(&d->lib, pids, n, d->why, sizeof(d->why));
	if (err)
		try_later(&d->hal_try, first, err);
	return !err;
}

const struct nps_dcmi_unit *nps_driver__unit(struct nps_driver *d, uint32_t device)
{
	if (device >= NPS_DEVICE_MAX || !nps_device_lib__same_numbers(&d->lib))
		return NULL;
	if (!(d->known_units >> device & 1)) {
		if (nps_dcmi__find(&d->lib, device, &d->units[device]))
			return NULL;
		d->known_units |= 1ULL << device;
	}
	return &d->units[device];
}

void nps_driver__open_dcmi(struct nps_driver *d, const pid_t *pids, size_t n)
{
	pid_t first = n ? pids[0] : -1;
	int err;

	if (d->lib.has[NPS_WORKER_DCMI] || d->dcmi_unusable || !try_is_due(&d->dcmi_try, first))
		return;
	err = nps_device_lib__open_dcmi(&d->lib, pids, n);
	d->dcmi_unusable = err == -ELIBACC;
	if (err)
		try_later(&d->dcmi_try, first, err);
}

uint32_t nps_driver__devices(const struct nps_driver *d, uint32_t ids[NPS_DEVICE_MAX])
{
	uint32_t n;

	return nps_device_lib__devices(&d->lib, ids, &n) ? 0 : n;
}

bool nps_driver__only_device(struct nps_driver *d, pid_t pid, uint32_t *device)
{
	uint32_t ids[NPS_DEVICE_MAX], n = nps_driver__devices(d, ids), found = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct nps_dcmi_unit *unit = nps_driver__unit(d, ids[i]);
		bool holds;

		if (!unit || !nps_dcmi__holds(&d->lib, unit, pid, &holds))
			return false;
		if (holds) {
			*device = ids[i];
			found++;
		}
	}
	return found == 1;
}

static void *query_run(void *arg)
{
	struct nps_driver_query *a = arg;

	nps_privilege__keep(NPS_PRIVILEGE_PROC, false);
	pthread_mutex_lock(&a->lock);
	for (;;) {
		struct nps_question *q;

		while (!a->open && !a->stop)
			pthread_cond_wait(&a->posted, &a->lock);
		if (a->stop)
			break;
		q = a->open;
		a->open = q->next;
		if (!a->open)
			a->last = &a->open;
		a->querying = true;
		nps_device_lib__alive(&a->driver.lib);
		pthread_mutex_unlock(&a->lock);
		q->query(q, &a->driver);
		pthread_mutex_lock(&a->lock);
		a->querying = false;
		q->next = a->done;
		a->done = q;
		pthread_cond_signal(&a->answered);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

int nps_driver_query__new(struct nps_device_launcher *launcher, struct nps_driver_query **out)
{
	struct nps_driver_query *a = calloc(1, sizeof(*a));
	pthread_condattr_t attr;
	sigset_t all, old;
	int err;

	*out = NULL;
	if (!a)
		return -ENOMEM;
	a->last = &a->open;
	atomic_init(&a->since, 0);
	atomic_init(&a->driver.ending, false);
	nps_device_lib__init(&a->driver.lib, launcher);
	a->driver.lib.sign = &a->since;
	pthread_mutex_init(&a->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&a->posted, &attr);
	pthread_cond_init(&a->answered, &attr);
	pthread_condattr_destroy(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&a->thread, NULL, query_run, a);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		free(a);
	else
		*out = a;
	return err;
}

void nps_driver_query__post(struct nps_driver_query *a, struct nps_question *q)
{
	if (!q)
		return;
	pthread_mutex_lock(&a->lock);
	q->next = NULL;
	*a->last = q;
	a->last = &q->next;
	pthread_cond_signal(&a->posted);
	pthread_mutex_unlock(&a->lock);
}

/* The caller holds the lock. */
static bool is_late(const struct nps_driver_query *a)
{
	uint64_t since = atomic_load(&a->since); /* read before the clock, so that the clock is later */

	return a->querying && nps_now(CLOCK_MONOTONIC) - since > NPS_DRIVER_LATE_MS * MS;
}

static void free_all(struct nps_question *q)
{
	while (q) {
		struct nps_question *next = q->next;

		free(q);
		q = next;
	}
}

void nps_driver_query__turn(struct nps_driver_query *a)
{
	struct nps_question *done;
	bool first;

	pthread_mutex_lock(&a->lock);
	done = a->done;
	a->done = NULL;
	first = !a->late && is_late(a);
	a->late |= first;
	pthread_mutex_unlock(&a->lock);
	if (first)
		nps_warn("the driver does not answer: a call has not come back for %d s: what only it knows "
			 "of "
			 "devices and their clocks is missing until it does: check their health with npu-smi "
			 "info",
			 NPS_DRIVER_LATE_MS / 1000);
	for (struct nps_question *q = done; q; q = q->next)
		q->answer(q, q->ctx);
	free_all(done);
}

bool nps_driver_query__wait(struct nps_driver_query *a, struct nps_deadline *deadline,
			    void (*meanwhile)(void *arg), void *arg)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	bool all, late;

	do {
		uint64_t until = nps_now(CLOCK_MONOTONIC) + 10 * MS;
		const struct timespec ts = { .tv_sec = (time_t)(until / (1000 * MS)),
					     .tv_nsec = (long)(until % (1000 * MS)) };

		pthread_mutex_lock(&a->lock);
		if (!a->done && (a->open || a->querying))
			pthread_cond_timedwait(&a->answered, &a->lock, &ts);
		pthread_mutex_unlock(&a->lock);
		meanwhile(arg);
		nps_driver_query__turn(a);
		pthread_mutex_lock(&a->lock);
		all = !a->open && !a->querying && !a->done;
		late = is_late(a);
		pthread_mutex_unlock(&a->lock);
	} while (!all && !late && nps_now(CLOCK_MONOTONIC) - begin < (NPS_DRIVER_LATE_MS + QUERY_MS) * MS &&
		 (!deadline || nps_deadline__left(deadline)));
	if (late)
		nps_driver_query__turn(a);
	return all;
}

void nps_driver_query__end(struct nps_driver_query *a)
{
	atomic_store(&a->driver.ending, true);
}

bool nps_driver_query__was_late(const struct nps_driver_query *a)
{
	return a && a->late;
}

/* Does the thread end soon? Its call failed when the libraries' process was ended. */
static bool ends_soon(pthread_t thread)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += LAST_WAIT_MS * MS;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return !pthread_timedjoin_np(thread, NULL, &ts);
}

bool nps_driver_query__free(struct nps_driver_query *a)
{
	struct nps_question *open;
	bool querying;

	if (!a)
		return true;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	querying = a->querying;
	open = a->open;
	a->open = NULL;
	a->last = &a->open;
	pthread_cond_signal(&a->posted);
	pthread_mutex_unlock(&a->lock);
	free_all(open);
	if (querying && !ends_soon(a->thread)) { /* it may return, and uses this memory */
		pthread_detach(a->thread);
		return false;
	}
	if (!querying)
		pthread_join(a->thread, NULL);
	free_all(a->done);
	nps_device_lib__close(&a->driver.lib);
	pthread_cond_destroy(&a->posted);
	pthread_cond_destroy(&a->answered);
	pthread_mutex_destroy(&a->lock);
	free(a);
	return true;
}
