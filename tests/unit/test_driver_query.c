/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries to the driver: who queries and who answers, in what order, and what becomes
 * of them when a call does not come back.
 */
#include "driver/driver_query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct question {
	struct nps_question q;
	int number;
	sem_t *hangs; /* until it is posted */
	pthread_t asker;
};

static struct {
	int queried[16], answered[16];
	unsigned int n_queried, n_answered, meanwhile;
	bool wrong_thread;
	pthread_t loop;
} seen;

static void query(struct nps_question *q, struct nps_driver *d)
{
	struct question *own = (struct question *)q;

	(void)d;
	own->asker = pthread_self();
	seen.queried[seen.n_queried++] = own->number;
	if (own->hangs)
		sem_wait(own->hangs);
}

static void answer(struct nps_question *q, void *ctx)
{
	const struct question *own = (const struct question *)q;

	assert_ptr_equal(ctx, &seen);
	seen.answered[seen.n_answered++] = own->number;
	seen.wrong_thread |= !pthread_equal(pthread_self(), seen.loop) ||
			     pthread_equal(own->asker, seen.loop);
}

static void meanwhile(void *arg)
{
	assert_ptr_equal(arg, &seen);
	seen.meanwhile++;
}

static void post(struct nps_driver_query *a, int number, sem_t *hangs)
{
	struct question *own = calloc(1, sizeof(*own));

	assert_non_null(own);
	*own = (struct question){ .q = { .ctx = &seen, .query = query, .answer = answer },
				  .number = number,
				  .hangs = hangs };
	nps_driver_query__post(a, &own->q);
}

static struct nps_driver_query *begin(void)
{
	struct nps_driver_query *a;

	memset(&seen, 0, sizeof(seen));
	seen.loop = pthread_self();
	assert_int_equal(nps_driver_query__new(NULL, &a), 0);
	return a;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void each_is_queried_in_turn(void **state)
{
	struct nps_driver_query *a = begin();

	(void)state;
	nps_driver_query__post(a, NULL);
	for (int i = 0; i < 10; i++)
		post(a, i, NULL);
	assert_true(nps_driver_query__wait(a, NULL, meanwhile, &seen));
	assert_int_equal(seen.n_queried, 10);
	assert_int_equal(seen.n_answered, 10);
	for (int i = 0; i < 10; i++)
		assert_int_equal(seen.queried[i], i);
	assert_false(seen.wrong_thread);
	assert_false(nps_driver_query__was_late(a));
	nps_driver_query__free(a);
}

static void one_that_hangs_is_not_waited_for(void **state)
{
	struct nps_driver_query *a = begin();
	double queried = now(), late;
	sem_t comes_back;

	(void)state;
	sem_init(&comes_back, 0, 0);
	post(a, 0, &comes_back);
	post(a, 1, NULL);
	assert_false(nps_driver_query__wait(a, NULL, meanwhile, &seen));
	late = now();
	assert_true(late - queried > 1.9 && late - queried < 60); /* it would hang for ever */
	assert_true(seen.meanwhile > 20);
	assert_int_equal(seen.n_answered, 0);
	nps_driver_query__turn(a);
	assert_true(nps_driver_query__was_late(a));
	assert_false(nps_driver_query__wait(a, NULL, meanwhile, &seen)); /* the second time at once */
	assert_true(now() - late < 1.9);
	sem_post(&comes_back);
	/* Late, but not lost. The thread may have to wait for a CPU. */
	for (double posted = now(); !nps_driver_query__wait(a, NULL, meanwhile, &seen);)
		assert_true(now() - posted < 60);
	assert_int_equal(seen.n_answered, 2);
	nps_driver_query__free(a);
	sem_destroy(&comes_back);
}

static void ending_waits_for_nobody(void **state)
{
	static sem_t comes_back; /* the thread outlives the test */
	struct nps_driver_query *a = begin();
	double begun = now();

	(void)state;
	sem_init(&comes_back, 0, 0);
	post(a, 0, &comes_back);
	post(a, 1, NULL);
	while (!*(volatile unsigned int *)&seen.n_queried && now() - begun < 5)
		;
	nps_driver_query__free(a);
	assert_true(now() - begun < 60); /* it hangs for ever */
	assert_int_equal(seen.n_queried, 1);
	assert_int_equal(seen.n_answered, 0);
}

/* --- the one device of a process ------------------------------------------------------------------------ */

#define CARDS 3

static struct {
	int pids[CARDS][2]; /* that hold memory; 0: none */
	int error, full; /* of that card, -1: of none */
	struct timespec pause; /* that listing processes takes */
} host;

static int processes(int card, struct nps_dcmi_process *list, struct nps_worker_reply *reply)
{
	size_t found = 0;

	if (card == host.error)
		return -8002;
	memset(list, 0, NPS_DCMI_PROCESSES * sizeof(*list));
	for (int i = 0; i < 2; i++)
		if (host.pids[card][i])
			list[found++].pid = host.pids[card][i];
	reply->size = (uint32_t)((card == host.full ? NPS_DCMI_PROCESSES : found) * sizeof(*list));
	return 0;
}

static int exchange(const struct nps_device_lib *of, enum nps_worker_library library,
		    const struct nps_worker_request *r, const void *payload, struct nps_worker_reply *reply,
		    void *data)
{
	uint32_t *ids = data;

	(void)of;
	(void)library;
	(void)payload;
	*reply = (struct nps_worker_reply){ .op = r->op };
	switch (r->op) {
	case NPS_WORKER_DEVICES:
	case NPS_WORKER_CARDS:
		for (uint32_t i = 0; i < CARDS; i++)
			ids[i] = i;
		reply->size = CARDS * sizeof(*ids);
		break;
	case NPS_WORKER_CARD_DEVICES:
		reply->value = 1;
		break;
	case NPS_WORKER_LOGIC_ID:
		reply->value = r->device;
		break;
	case NPS_WORKER_PROCESSES:
		nanosleep(&host.pause, NULL);
		reply->code = processes((int)r->device, data, reply);
		break;
	default:
		fail();
	}
	return 0;
}

static bool only(pid_t pid, uint32_t *device)
{
	struct nps_driver d = { .lib = { .has = { true, true }, .exchange = exchange } };

	return nps_driver__only_device(&d, pid, device);
}

static void a_process_of_one_device_is_resolved(void **state)
{
	uint32_t device = 99;

	(void)state;
	memset(&host, 0, sizeof(host));
	host.error = host.full = -1;
	host.pids[0][0] = 10;
	host.pids[2][0] = 20;
	host.pids[2][1] = 30;
	assert_true(only(30, &device));
	assert_int_equal(device, 2);
	assert_false(only(40, &device)); /* none */
	host.pids[1][0] = 30;
	assert_false(only(30, &device)); /* two */
	assert_true(only(10, &device));
	assert_int_equal(device, 0);
	host.error = 1; /* it might be that one's too */
	assert_false(only(10, &device));
	host.error = -1;
	host.full = 1;
	assert_false(only(10, &device));
}

/* --- slow calls ----------------------------------------------------------------------------------------- */

#define SLOW_US 900000 /* of each of three: longer together than one may take */

static void query_slowly(struct nps_question *q, struct nps_driver *d)
{
	uint32_t device;

	(void)q;
	d->lib.has[NPS_WORKER_DCMI] = true;
	d->lib.exchange = exchange;
	nps_driver__only_device(d, 10, &device);
	seen.n_queried++;
}

static void answer_slowly(struct nps_question *q, void *ctx)
{
	(void)q;
	(void)ctx;
	seen.n_answered++;
}

static void many_slow_calls_are_no_hanging_one(void **state)
{
	struct nps_driver_query *a = begin();
	struct nps_question *q = calloc(1, sizeof(*q));
	double queried = now();

	(void)state;
	assert_non_null(q);
	memset(&host, 0, sizeof(host));
	host.error = host.full = -1;
	host.pause.tv_nsec = SLOW_US * 1000;
	*q = (struct nps_question){ .ctx = &seen, .query = query_slowly, .answer = answer_slowly };
	nps_driver_query__post(a, q);
	assert_false(
		nps_driver_query__wait(a, NULL, meanwhile, &seen)); /* not for longer than for any other */
	assert_true(now() - queried < 2.5);
	assert_int_equal(seen.n_queried, 0);
	assert_true(nps_driver_query__wait(a, NULL, meanwhile, &seen));
	assert_true(now() - queried > 2.5);
	assert_int_equal(seen.n_answered, 1);
	assert_false(nps_driver_query__was_late(a));
	nps_driver_query__free(a);
}

/* --- the driver's library ------------------------------------------------------------------------------- */

/* True: it was looked for. */
static bool searches_it(struct nps_driver *d, pid_t pid)
{
	d->why[0] = '\0';
	if (nps_driver__open(d, &pid, 1))
		skip(); /* this host has one */
	return d->why[0];
}

static void a_missing_library_is_searched_again(void **state)
{
	struct nps_driver d = { .lib = { .launcher = NULL } };

	(void)state;
	assert_true(searches_it(&d, getpid()));
	assert_true(searches_it(&d, getpid())); /* its program may be there now */
	assert_false(searches_it(&d, getpid())); /* not all the time */
	d.hal_try.again -= 900000000;
	assert_false(searches_it(&d, getpid()));
	d.hal_try.again -= 100000000;
	assert_true(searches_it(&d, getpid()));
	d.hal_try.again -= 1000000000;
	assert_false(searches_it(&d, getpid())); /* the second time later */
	assert_true(searches_it(&d, getppid())); /* others have nothing to do with that */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_queried_in_turn),
		cmocka_unit_test(one_that_hangs_is_not_waited_for),
		cmocka_unit_test(ending_waits_for_nobody),
		cmocka_unit_test(a_process_of_one_device_is_resolved),
		cmocka_unit_test(many_slow_calls_are_no_hanging_one),
		cmocka_unit_test(a_missing_library_is_searched_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
