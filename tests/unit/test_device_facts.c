/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose word on a device is taken where the driver's library is a job's own. */
#include "driver/device_facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEVICE 4
#define BIT (1ULL << DEVICE)

static struct {
	struct nps_device_facts facts;
	struct nps_driver_query *query;
	struct nps_device_numbers numbers; /* of the library */
	pid_t pid; /* of user A, whose library it is */
	uid_t a, b;
} t;

static int exchange(const struct nps_device_lib *of, enum nps_worker_library library,
		    const struct nps_worker_request *r, const void *payload, struct nps_worker_reply *reply,
		    void *data)
{
	(void)of;
	(void)library;
	(void)payload;
	*reply = (struct nps_worker_reply){ .op = r->op };
	switch (r->op) {
	case NPS_WORKER_DEVICE_INFO:
		reply->value = 100;
		break;
	case NPS_WORKER_CHIP_NAME:
		reply->size = NPS_CHIP_TEXT;
		strncpy(data, "910A", NPS_CHIP_TEXT);
		break;
	default:
		reply->code = NPS_WORKER_NO_FUNCTION;
	}
	return 0;
}

static void set_library(struct nps_question *q, struct nps_driver *d)
{
	(void)q;
	d->lib.has[NPS_WORKER_HAL] = true;
	d->lib.exchange = exchange;
	d->lib.numbers[NPS_WORKER_HAL] = t.numbers;
}

static void nothing(struct nps_question *q, void *ctx)
{
	(void)q;
	(void)ctx;
}

static void meanwhile(void *arg)
{
	(void)arg;
}

static void begin(struct nps_device_numbers numbers)
{
	struct nps_question *q = calloc(1, sizeof(*q));

	assert_non_null(q);
	memset(&t.facts, 0, sizeof(t.facts));
	t.numbers = numbers;
	assert_int_equal(nps_driver_query__new(NULL, &t.query), 0);
	*q = (struct nps_question){ .query = set_library, .answer = nothing };
	nps_driver_query__post(t.query, q);
}

static void end(void)
{
	assert_true(nps_driver_query__free(t.query));
}

static bool known(void)
{
	return t.facts.known & BIT;
}

static void drain_answers(void)
{
	while (!nps_driver_query__wait(t.query, NULL, meanwhile, NULL))
		;
}

static void query(void)
{
	nps_device_facts__query(&t.facts, t.query, 0);
	drain_answers();
}

static void library_of_a_job_answers_for_its_user_alone(void **state)
{
	(void)state;
	begin((struct nps_device_numbers){ .of_job = true, .uid = t.a });
	nps_device_facts__used(&t.facts, t.pid, t.a, DEVICE, false);
	query();
	assert_true(known());
	assert_string_equal(t.facts.info[DEVICE].chip, "910A");
	nps_device_facts__used(&t.facts, t.pid, t.a, DEVICE, false);
	assert_true(known());
	nps_device_facts__used(&t.facts, getpid(), t.b, DEVICE, false);
	assert_false(known());
	nps_device_facts__used(&t.facts, t.pid, t.a, DEVICE, false); /* the last one is A's */
	query();
	assert_false(known());
	assert_non_null(strstr(t.facts.why, "another job's is not believed"));
	end();
}

static void another_user_comes_during_a_query(void **state)
{
	(void)state;
	begin((struct nps_device_numbers){ .of_job = true, .uid = t.a });
	nps_device_facts__used(&t.facts, t.pid, t.a, DEVICE, false);
	nps_device_facts__query(&t.facts, t.query, 0);
	nps_device_facts__used(&t.facts, getpid(), t.b, DEVICE, false);
	drain_answers();
	assert_false(known());
	assert_non_null(strstr(t.facts.why, "another job's is not believed"));
	end();
}

/* A's process is of the host here, and lib.numbers with it: what matters is how it was reported. */
static void host_process_comes_after_a_container(void **state)
{
	(void)state;
	begin((struct nps_device_numbers){ .of_job = true, .uid = t.a });
	nps_device_facts__used(&t.facts, t.pid, t.a, DEVICE, true);
	query();
	assert_true(known());
	nps_device_facts__used(&t.facts, getpid(), t.a, DEVICE, false);
	assert_false(known());
	nps_device_facts__used(&t.facts, t.pid, t.a, DEVICE, true);
	assert_int_equal(t.facts.pid[DEVICE], getpid()); /* for whom the host's number is queried */
	end();
}

static void library_of_the_host_answers_for_all(void **state)
{
	(void)state;
	begin((struct nps_device_numbers){ .of_job = false });
	nps_device_facts__used(&t.facts, t.pid, t.a, DEVICE, false);
	query();
	assert_true(known());
	nps_device_facts__used(&t.facts, getpid(), t.b, DEVICE, false);
	assert_true(known());
	t.facts.known = 0;
	query();
	assert_true(known());
	end();
}

/* A process of a user who is not root, whose library would be everybody's. */
static int setup(void **state)
{
	int ready[2];
	char c;

	(void)state;
	t.a = getuid() ? getuid() : 12345;
	t.b = t.a + 1;
	if (pipe(ready))
		return -1;
	t.pid = fork();
	if (!t.pid) {
		if ((!getuid() && setresuid(t.a, t.a, t.a)) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (t.pid < 0 || read(ready[0], &c, 1) != 1)
		return -1;
	close(ready[0]);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kill(t.pid, SIGKILL);
	return waitpid(t.pid, NULL, 0) == t.pid ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(library_of_a_job_answers_for_its_user_alone),
		cmocka_unit_test(another_user_comes_during_a_query),
		cmocka_unit_test(host_process_comes_after_a_container),
		cmocka_unit_test(library_of_the_host_answers_for_all),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
