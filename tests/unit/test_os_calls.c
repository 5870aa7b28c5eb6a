/* SPDX-License-Identifier: BSD-2-Clause */
/* What is made of futex waits, sums and threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>

#include "import/session/os_calls.h"

#define ME 100
#define OTHER 101
#define FOREIGN 999
#define PRIVATE 1 /* flags of an operation, shifted by 7 */
#define REALTIME 2

static bool known(const void *ctx, uint32_t tid)
{
	(void)ctx;
	return tid == ME || tid == OTHER;
}

static void expect(struct nps_event wait, enum nps_os_lock_kind kind, uint32_t holder)
{
	uint32_t found = 12345;

	wait.tid = ME;
	assert_int_equal(nps_os_lock_kind_of(&wait, known, NULL, &found), kind);
	assert_int_equal(found, holder);
}

static void locks_are_named(void **state)
{
	struct nps_event mutex = {
		.operation = FUTEX_WAIT,
		.lock = { .op_flags = PRIVATE, .value = 2, .word = 2, .owner = OTHER, .users = 1 },
	};
	struct nps_event robust = { .operation = FUTEX_WAIT,
				    .lock = { .value = OTHER | FUTEX_WAITERS,
					      .word = OTHER | FUTEX_WAITERS } };

	(void)state;
	expect(mutex, NPS_LOCK_MUTEX, OTHER);
	expect(robust, NPS_LOCK_MUTEX_ROBUST, OTHER);
	expect((struct nps_event){ .operation = FUTEX_LOCK_PI, .lock.word = OTHER | FUTEX_WAITERS },
	       NPS_LOCK_MUTEX_PI, OTHER);
	expect((struct nps_event){ .operation = FUTEX_WAIT_BITSET,
				   .lock = { .op_flags = REALTIME, .value = OTHER, .word = OTHER } },
	       NPS_LOCK_JOIN, OTHER);
	expect((struct nps_event){ .operation = FUTEX_WAIT_BITSET, .lock.op_flags = PRIVATE | REALTIME },
	       NPS_LOCK_SIGNAL, 0);
}

static void nothing_is_made_up(void **state)
{
	struct nps_event mutex = {
		.operation = FUTEX_WAIT,
		.lock = { .op_flags = PRIVATE, .value = 2, .word = 2, .owner = FOREIGN, .users = 1 },
	};

	(void)state;
	expect(mutex, NPS_LOCK_UNKNOWN, 0); /* no thread of the process */
	mutex.lock.owner = ME;
	expect(mutex, NPS_LOCK_UNKNOWN, 0); /* nobody waits for himself */
	mutex.lock.owner = OTHER;
	mutex.lock.users = 0;
	expect(mutex, NPS_LOCK_UNKNOWN, 0); /* a mutex that nobody uses is none */
	mutex.lock.users = 1;
	mutex.flags = NPS_F_SLOT_FAULT(2);
	expect(mutex, NPS_LOCK_UNKNOWN, 0);
	expect((struct nps_event){ .operation = FUTEX_LOCK_PI, .lock.word = FOREIGN }, NPS_LOCK_MUTEX_PI, 0);
	/* A word that happens to be a thread's number, but private: no join is. */
	expect((struct nps_event){ .operation = FUTEX_WAIT,
				   .lock = { .op_flags = PRIVATE, .value = OTHER, .word = OTHER } },
	       NPS_LOCK_UNKNOWN, 0);
}

static struct nps_session rec;
static struct nps_model model;

static int setup(void **state)
{
	(void)state;
	nps_session__init(&rec, AT_FDCWD, AT_FDCWD);
	rec.begin = 1000;
	rec.begin_real = 5000;
	return nps_model__init(&model, AT_FDCWD, &rec.strings);
}

static int teardown(void **state)
{
	(void)state;
	nps_model__free(&model);
	nps_session__free(&rec);
	return 0;
}

static void keep(struct nps_proc *proc, struct nps_event ev)
{
	ev.pid = proc->pid;
	assert_int_equal(nps_os_calls__keep(proc, &ev), 0);
}

static void sums_of_all_seconds_are_one(void **state)
{
	struct nps_proc *proc = nps_session__proc(&rec, 7);

	(void)state;
	for (uint64_t second = 0; second < 3; second++)
		keep(proc, (struct nps_event){ .kind = NPS_EV_SYSCALL_SUM,
					       .nr = 1,
					       .tid = 8,
					       .flags = NPS_F_SOCKET,
					       .start = 2000 + second * 1000,
					       .dur = 500,
					       .syscall_sum = { .count = 10,
								.failed = 1,
								.total = 100,
								.shortest = 5 + second,
								.longest = 20 + second,
								.bytes = 64 } });
	keep(proc,
	     (struct nps_event){
		     .kind = NPS_EV_SYSCALL_SUM, .nr = 1, .tid = 9, .start = 2000, .syscall_sum.count = 1 });
	assert_int_equal(nps_os_calls__fill(&model, &rec, proc), 0);
	assert_int_equal(model.osrt_sum.t.len, 2);
	assert_int_equal(model.osrt_sum.count[0], 30);
	assert_int_equal(model.osrt_sum.errors[0], 3);
	assert_int_equal(model.osrt_sum.total[0], 300);
	assert_int_equal(model.osrt_sum.shortest[0], 5);
	assert_int_equal(model.osrt_sum.longest[0], 22);
	assert_int_equal(model.osrt_sum.start[0], 6000);
	assert_int_equal(model.osrt_sum.end[0], 8500);
	assert_int_equal(model.os_thread.t.len, 2);
	assert_int_equal(model.os_thread.sent[0] + model.os_thread.received[0], 3 * 64);
}

static void a_wait_finds_its_call(void **state)
{
	struct nps_proc *proc = nps_session__proc(&rec, 7);
	const char *const arch = "{\"host\":{\"arch\":\"x86_64\"}}";

	(void)state;
	rec.json = cJSON_Parse(arch);
	for (uint32_t tid = ME; tid <= OTHER; tid++)
		keep(proc, (struct nps_event){ .kind = NPS_EV_SYSCALL,
					       .nr = 202,
					       .tid = tid,
					       .start = 2000,
					       .dur = 100,
					       .syscall.arg = { 0x1000, FUTEX_WAIT } });
	/* Of the second thread, which began in the same nanosecond as the first. */
	keep(proc, (struct nps_event){ .kind = NPS_EV_LOCK,
				       .operation = FUTEX_WAIT,
				       .tid = OTHER,
				       .start = 2000,
				       .dur = 100,
				       .lock = { .address = 0x1000,
						 .waker = ME,
						 .value = 2,
						 .word = 2,
						 .owner = ME,
						 .users = 1,
						 .op_flags = PRIVATE } });
	assert_int_equal(nps_os_calls__fill(&model, &rec, proc), 0);
	assert_int_equal(model.osrt.t.len, 2);
	assert_int_equal(model.osrt.lock[0], NPS_LOCK_NONE);
	assert_int_equal(model.osrt.lock[1], NPS_LOCK_MUTEX);
	assert_int_equal(model.osrt.holder[1], ME);
	assert_int_equal(model.osrt.waker[1], ME);
	assert_int_equal(model.os_lock.t.len, 1);
	assert_int_equal(model.os_lock.total[0], 100);
}

static void faults_and_requests_belong_to_threads(void **state)
{
	struct nps_proc *proc = nps_session__proc(&rec, 7);

	(void)state;
	keep(proc,
	     (struct nps_event){ .kind = NPS_EV_FAULT, .tid = 8, .start = 2000, .fault_sum = { 5, 2 } });
	keep(proc,
	     (struct nps_event){
		     .kind = NPS_EV_FAULT, .what = NPS_FAULT_MAJOR, .tid = 8, .start = 2000, .dur = 40 });
	keep(proc, (struct nps_event){ .kind = NPS_EV_IO,
				       .operation = 1,
				       .tid = 8,
				       .start = 2000,
				       .dur = 30,
				       .io.bytes = 4096 });
	keep(proc,
	     (struct nps_event){ .kind = NPS_EV_IO, .operation = 1, .tid = 8, .start = 2000 }); /* a flush */
	keep(proc, (struct nps_event){
			   .kind = NPS_EV_IO, .operation = 700, .tid = 8, .start = 2000 }); /* nonsense */
	assert_int_equal(nps_os_calls__fill(&model, &rec, proc), 0);
	assert_int_equal(model.os_thread.t.len, 1);
	assert_int_equal(model.os_thread.minor[0], 5);
	assert_int_equal(model.os_thread.major[0], 2);
	assert_int_equal(model.os_thread.major_ns[0], 40);
	assert_int_equal(model.os_thread.writes[0], 1);
	assert_int_equal(model.os_thread.write_bytes[0], 4096);
	assert_int_equal(model.os_thread.reads[0], 0);
	assert_int_equal(model.osrt.t.len, 1);
	assert_int_equal(model.osrt.shape[0], NPS_OS_FAULT);
}

/* A call that the capture's end cut has no result, whatever its bytes are. */
static void what_did_not_return(void **state)
{
	struct nps_proc *proc = nps_session__proc(&rec, 7);
	const char *const arch = "{\"host\":{\"arch\":\"x86_64\"}}";

	(void)state;
	rec.json = cJSON_Parse(arch);
	keep(proc, (struct nps_event){ .kind = NPS_EV_SYSCALL,
				       .flags = NPS_F_UNFINISHED | NPS_F_SOCKET,
				       .nr = 0,
				       .tid = 8,
				       .start = 2000,
				       .dur = 500,
				       .syscall = { { 5 }, 999 } });
	keep(proc, (struct nps_event){ .kind = NPS_EV_SYSCALL,
				       .flags = NPS_F_UNFINISHED | NPS_F_SLOT_FAULT(0) | NPS_F_SLOT_FAULT(1) |
						NPS_F_SLOT_FAULT(2),
				       .nr = 0,
				       .tid = 9,
				       .start = 2000,
				       .dur = 500 });
	assert_int_equal(nps_os_calls__fill(&model, &rec, proc), 0);
	assert_int_equal(model.osrt.t.len, 2);
	assert_int_equal(model.osrt.unfinished[0], 1);
	assert_int_equal(model.osrt.shape[0], NPS_OS_BYTES);
	assert_int_equal(model.osrt.shape[1], NPS_OS_PLAIN); /* of no descriptor that anybody knows */
	assert_int_equal(model.os_thread.received[0], 0);
	assert_true(model.os_thread.running[0] == NPS_NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locks_are_named),
		cmocka_unit_test(nothing_is_made_up),
		cmocka_unit_test_setup_teardown(sums_of_all_seconds_are_one, setup, teardown),
		cmocka_unit_test_setup_teardown(a_wait_finds_its_call, setup, teardown),
		cmocka_unit_test_setup_teardown(faults_and_requests_belong_to_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(what_did_not_return, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
