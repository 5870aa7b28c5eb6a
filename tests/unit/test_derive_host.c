/* SPDX-License-Identifier: BSD-2-Clause */
/* Where host time goes: random threads, second by second against a judge that looks at one nanosecond at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "derive/host.h"
#include "derive/waits.h"
#include "model/call_class.h"
#include "model/os_thread.h"

#define PID 100
#define BASE 1000000ULL
#define LENGTH 600
#define THREADS 3

#define ADD(table)                                                                                           \
	size_t row = 0;                                                                                      \
	assert_int_equal(nps_table__add(&m->table.t, &row), 0)

static void add_run(struct nps_model *m, uint32_t tid, uint64_t start, uint64_t end, uint64_t left,
		    uint64_t woken, uint32_t state)
{
	ADD(run);
	m->run.start[row] = start;
	m->run.end[row] = end;
	m->run.left[row] = left;
	m->run.woken[row] = woken;
	m->run.tid[row] = tid;
	m->run.state[row] = state;
	m->run.comm[row] = m->run.next_comm[row] = m->run.waker_comm[row] = NPS_NONE;
}

static void add_call(struct nps_model *m, uint32_t tid, const char *name, uint64_t start, uint64_t end)
{
	ADD(osrt);
	m->osrt.name[row] = nps_strings__addz(m->strings, name);
	m->osrt.gtid[row] = (uint64_t)PID << 32 | tid;
	m->osrt.start[row] = start;
	m->osrt.end[row] = end;
}

static void add_fault(struct nps_model *m, uint32_t tid, uint64_t start, uint64_t end)
{
	add_call(m, tid, "major page fault", start, end);
	m->osrt.shape[m->osrt.t.len - 1] = NPS_OS_FAULT;
}

static void add_span(struct nps_model *m, const char *name, uint64_t start, uint64_t end, uint64_t total,
		     uint64_t longest)
{
	ADD(osrt_span);
	m->osrt_span.name[row] = nps_strings__addz(m->strings, name);
	m->osrt_span.gtid[row] = (uint64_t)PID << 32 | PID;
	m->osrt_span.start[row] = start;
	m->osrt_span.end[row] = end;
	m->osrt_span.total[row] = total;
	m->osrt_span.longest[row] = longest;
}

static void add_api(struct nps_model *m, uint32_t tid, const char *name, uint64_t start, uint64_t end,
		    uint32_t connection)
{
	ADD(api);
	m->api.name[row] = nps_strings__addz(m->strings, name);
	m->api.gtid[row] = (uint64_t)PID << 32 | tid;
	m->api.start[row] = start;
	m->api.end[row] = end;
	m->api.connection[row] = connection;
}

static void add_irq(struct nps_model *m, uint32_t tid, uint64_t start, uint64_t end)
{
	ADD(irq);
	m->irq.start[row] = start;
	m->irq.end[row] = end;
	m->irq.tid[row] = tid;
}

static void add_task(struct nps_model *m, uint32_t connection)
{
	ADD(task);
	m->task.connection[row] = connection;
}

static void add_step(struct nps_model *m, int64_t id, uint64_t start, uint64_t end)
{
	ADD(step);
	m->step.id[row] = id;
	m->step.start[row] = start;
	m->step.end[row] = end;
}

static void open_model(struct nps_model *m)
{
	assert_int_equal(nps_model__init(m, AT_FDCWD, NULL), 0);
	m->pid = PID;
	m->start = BASE;
	m->end = BASE + LENGTH;
}

static uint64_t part_of(const struct nps_model *m, size_t row, enum nps_host_part part)
{
	const struct nps_host_breakdown_table *b = &m->host_breakdown;

	switch (part) {
	case NPS_HOST_USER:
		return b->user[row];
	case NPS_HOST_CANN:
		return b->cann[row];
	case NPS_HOST_IO_CALLS:
		return b->io_calls[row];
	case NPS_HOST_OTHER_CALLS:
		return b->other_calls[row];
	case NPS_HOST_DEVICE_WAIT:
		return b->device_wait[row];
	case NPS_HOST_LOCK_WAIT:
		return b->lock_wait[row];
	case NPS_HOST_CPU_WAIT:
		return b->cpu_wait[row];
	case NPS_HOST_IO_WAIT:
		return b->io_wait[row];
	case NPS_HOST_FAULTS:
		return b->faults[row];
	case NPS_HOST_INTERRUPTS:
		return b->interrupts[row] == NPS_NULL ? 0 : (uint64_t)b->interrupts[row];
	case NPS_HOST_SLEEP:
		return b->sleep[row];
	case NPS_HOST_NOT_SEEN:
		return b->unknown[row];
	default:
		return 0;
	}
}

static uint64_t sum_of(const struct nps_model *m, size_t row)
{
	uint64_t sum = 0;

	for (int part = 0; part < NPS_HOST_PARTS; part++)
		sum += part_of(m, row, part);
	return sum;
}

/* --- one of everything ---------------------------------------------------------------------------------- */

static void parts_of_a_step(void **state)
{
	struct nps_model model, *m = &model;
	static const uint64_t expected[NPS_HOST_PARTS] = { [NPS_HOST_USER] = 100 - 10 - 30 - 20,
							   [NPS_HOST_CANN] = 20,
							   [NPS_HOST_IO_CALLS] = 10,
							   [NPS_HOST_OTHER_CALLS] = 20,
							   [NPS_HOST_LOCK_WAIT] = 50,
							   [NPS_HOST_CPU_WAIT] = 10 + 5,
							   [NPS_HOST_DEVICE_WAIT] = 45,
							   [NPS_HOST_INTERRUPTS] = 10,
							   [NPS_HOST_IO_WAIT] = 20,
							   [NPS_HOST_SLEEP] = 30,
							   [NPS_HOST_NOT_SEEN] = 20 };

	(void)state;
	open_model(m);
	add_step(m, 7, BASE, BASE + 300);
	/* [0,20) not seen; runs 100; sleeps 50 on a lock, waits 10; 5 of the device run, sleeps, waits 5 for a CPU ... */
	add_run(m, PID, BASE + 20, BASE + 120, 0, 0, 1);
	add_run(m, PID, BASE + 180, BASE + 185, BASE + 120, BASE + 170, 1);
	add_run(m, PID, BASE + 230, BASE + 230, BASE + 185, BASE + 225, 2);
	add_run(m, PID, BASE + 250, BASE + 250, BASE + 230, BASE + 250, 1);
	add_run(m, PID, BASE + 280, BASE + 300, BASE + 250, BASE + 280, 1);
	add_call(m, PID, "write", BASE + 20, BASE + 30);
	add_call(m, PID, "mmap", BASE + 30, BASE + 40);
	add_call(m, PID, "futex", BASE + 110, BASE + 170);
	add_call(m, PID, "epoll_wait", BASE + 250, BASE + 285);
	add_api(m, PID, "aclrtLaunchKernel", BASE + 40, BASE + 60, 1);
	add_api(m, PID, "aclrtSynchronizeStream", BASE + 180, BASE + 225, 2);
	add_irq(m, PID, BASE + 100, BASE + 110);
	add_task(m, 1);
	assert_int_equal(nps_derive__host(m), 0);
	assert_int_equal(m->host_breakdown.t.len, 1);
	assert_string_equal(nps_model__text(m, m->host_breakdown.step[0]), "7");
	assert_int_equal(sum_of(m, 0), 300);
	assert_int_equal(part_of(m, 0, NPS_HOST_DEVICE_WAIT), 5 + 40);
	assert_int_equal(part_of(m, 0, NPS_HOST_OTHER_CALLS), 10 + 10 + 5);
	assert_int_equal(part_of(m, 0, NPS_HOST_USER), 40 + 15);
	for (int part = 0; part < NPS_HOST_PARTS; part++)
		if (part != NPS_HOST_OTHER_CALLS && part != NPS_HOST_USER)
			assert_int_equal(part_of(m, 0, part), expected[part]);
	nps_model__free(m);
}

/* --- the judge --------------------------------------------------------------------------------------------- */

/* What a thread does in each ns of the capture; written down while the rows are made. */
struct truth {
	char cpu[LENGTH]; /* R on a CPU, W runnable, S, D, ? */
	char call[LENGTH]; /* 0, i, l, o */
	bool irq[LENGTH], device[LENGTH], cann[LENGTH], fault[LENGTH];
};

struct rows {
	struct {
		uint64_t start, end, a, b;
		uint32_t tid, what;
		const char *name;
	} row[5 * THREADS * LENGTH];
	size_t n;
};

static int by_start(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

enum { RUN, CALL, API, IRQ, FAULT };

static void make_cpu(struct truth *t, struct rows *r, uint32_t tid)
{
	static const uint32_t states[] = { 0, 1, 2 };
	uint64_t at = random() % 30, left = 0, woken = 0;
	bool on_at_start = random() % 2;

	memset(t->cpu, on_at_start ? 'R' : '?', LENGTH);
	if (on_at_start)
		left = at + 1;
	if (on_at_start) { /* first seen to leave: a wait follows */
		uint64_t wait = random() % 20, start;

		woken = left + wait;
		start = woken + random() % 5;
		memset(t->cpu + left, 'S', wait);
		memset(t->cpu + woken, 'W', start - woken);
		at = start;
	}
	while (at < LENGTH - 60) {
		uint64_t end = at + 1 + random() % 40, sleep, start;
		uint32_t state = states[random() % 3];
		bool lost = random() % 16 == 0;

		memset(t->cpu + at, 'R', end - at);
		r->row[r->n].start = BASE + at;
		r->row[r->n].end = BASE + end;
		r->row[r->n].a = left ? BASE + left : 0;
		r->row[r->n].b = woken ? BASE + woken : 0;
		r->row[r->n].tid = tid;
		r->row[r->n].what = RUN | state << 8;
		r->n++;
		left = end;
		if (lost) { /* a record is missing: nothing is known until the thread leaves again */
			left = end + 1 + random() % 10;
			memset(t->cpu + end, '?', left - end);
			state = 1;
		}
		sleep = state ? 1 + random() % 15 : 0;
		start = left + sleep + random() % 6;
		woken = sleep ? left + sleep : 0;
		memset(t->cpu + left, state == 2 ? 'D' : 'S', sleep);
		memset(t->cpu + left + sleep, 'W', start - left - sleep);
		at = start;
	}
	/* the last wait has no run behind it */
	memset(t->cpu + (r->row[r->n - 1].end - BASE), '?', LENGTH - (r->row[r->n - 1].end - BASE));
}

static void make_spans(struct truth *t, struct rows *r, uint32_t tid, uint32_t what)
{
	static const char *const calls[] = { "futex", "read", "ioctl", "poll" };
	static const char *const apis[] = { "aclrtLaunchKernel", "aclrtSynchronizeStream", "aclrtMemcpy" };

	for (uint64_t at = random() % 20; at < LENGTH - 40;) {
		uint64_t end = at + 1 + random() % 25;
		uint32_t kind = random() % (what == CALL ? 4 : 3);

		r->row[r->n].start = BASE + at;
		r->row[r->n].end = BASE + end;
		r->row[r->n].tid = tid;
		r->row[r->n].what = what;
		r->row[r->n].name = what == CALL ? calls[kind] : what == API ? apis[kind] : NULL;
		r->n++;
		for (uint64_t i = at; i < end; i++) {
			if (what == CALL)
				t->call[i] = "lioo"[kind];
			else if (what == IRQ)
				t->irq[i] = true;
			else if (what == FAULT)
				t->fault[i] = true;
			else
				t->cann[i] = true;
			if (what == API && kind)
				t->device[i] = true;
		}
		/* CANN calls nest, interrupts too */
		at = what != CALL && random() % 3 == 0 ? at + 1 + random() % 3 : end + random() % 30;
	}
}

static enum nps_host_part judge(const struct truth *t, size_t i)
{
	char cpu = t->cpu[i], call = t->call[i];

	if (cpu == 'W')
		return NPS_HOST_CPU_WAIT;
	if (cpu == 'R' && t->irq[i])
		return NPS_HOST_INTERRUPTS;
	if (t->fault[i])
		return NPS_HOST_FAULTS;
	if (t->device[i])
		return NPS_HOST_DEVICE_WAIT;
	if (cpu == '?')
		return NPS_HOST_NOT_SEEN;
	if (cpu == 'R') {
		if (call)
			return call == 'i' ? NPS_HOST_IO_CALLS : NPS_HOST_OTHER_CALLS;
		return t->cann[i] ? NPS_HOST_CANN : NPS_HOST_USER;
	}
	if (call == 'l')
		return NPS_HOST_LOCK_WAIT;
	if (call == 'i' || (cpu == 'D' && !call))
		return NPS_HOST_IO_WAIT;
	return NPS_HOST_SLEEP;
}

static void compare(const struct nps_model *m, const struct truth *truth)
{
	for (size_t row = 0; row < m->host_breakdown.t.len; row++) {
		uint64_t expected[NPS_HOST_PARTS] = { 0 };
		const struct truth *t = &truth[(uint32_t)m->host_breakdown.gtid[row] - PID];
		uint64_t start = m->host_breakdown.start[row], end = m->host_breakdown.end[row];

		for (uint64_t i = start; i < end; i++)
			expected[judge(t, i - BASE)]++;
		for (int part = 0; part < NPS_HOST_PARTS; part++)
			assert_int_equal(part_of(m, row, part), expected[part]);
		assert_int_equal(sum_of(m, row), end - start);
	}
}

static void as_the_judge(void **state)
{
	static struct truth truth[THREADS];
	static struct rows rows;

	(void)state;
	srandom(11);
	for (int round = 0; round < 200; round++) {
		struct nps_model model, *m = &model;

		memset(&rows, 0, sizeof(rows));
		memset(truth, 0, sizeof(truth));
		open_model(m);
		for (uint32_t i = 0; i < THREADS; i++) {
			make_cpu(&truth[i], &rows, PID + i);
			for (uint32_t what = CALL; what <= FAULT; what++)
				make_spans(&truth[i], &rows, PID + i, what);
		}
		qsort(rows.row, rows.n, sizeof(*rows.row), by_start);
		for (size_t i = 0; i < rows.n; i++) {
			uint64_t start = rows.row[i].start, end = rows.row[i].end;
			uint32_t tid = rows.row[i].tid;

			switch (rows.row[i].what & 0xff) {
			case RUN:
				add_run(m, tid, start, end, rows.row[i].a, rows.row[i].b,
					rows.row[i].what >> 8);
				break;
			case CALL:
				add_call(m, tid, rows.row[i].name, start, end);
				break;
			case API:
				add_api(m, tid, rows.row[i].name, start, end, i);
				break;
			case IRQ:
				add_irq(m, tid, start, end);
				break;
			case FAULT:
				add_fault(m, tid, start, end);
				break;
			}
		}
		for (uint64_t at = random() % 50, id = 0; round % 2 && at < LENGTH - 100; id++) {
			uint64_t end = at + 1 + random() % 99;

			add_step(m, id, BASE + at, BASE + end);
			at = end + random() % 5;
		}
		assert_int_equal(nps_derive__host(m), 0);
		assert_true(m->host_breakdown.t.len >= THREADS);
		compare(m, truth);
		nps_model__free(m);
	}
}

/* --- page faults, and calls that were summed up ------------------------------------------------------------ */

/* A fault inside of a call neither ends the call nor is part of it. */
static void a_fault_in_a_call(void **state)
{
	struct nps_model model, *m = &model;

	(void)state;
	open_model(m);
	add_run(m, PID, BASE, BASE + 110, 0, 0, 2);
	add_run(m, PID, BASE + 160, BASE + LENGTH, BASE + 110, BASE + 150, 1);
	add_call(m, PID, "read", BASE + 50, BASE + 300);
	add_fault(m, PID, BASE + 100, BASE + 200);
	assert_int_equal(nps_derive__host(m), 0);
	assert_int_equal(part_of(m, 0, NPS_HOST_FAULTS), 10 + 40 + 40);
	assert_int_equal(part_of(m, 0, NPS_HOST_CPU_WAIT), 10);
	assert_int_equal(part_of(m, 0, NPS_HOST_IO_CALLS), 50 + 100);
	assert_int_equal(part_of(m, 0, NPS_HOST_OTHER_CALLS), 0);
	assert_int_equal(sum_of(m, 0), LENGTH);
	nps_model__free(m);
}

/* The time of short calls comes out of what the thread did besides, step by step, and no more of it than there is. */
static void short_calls_have_their_part(void **state)
{
	struct nps_model model, *m = &model;

	(void)state;
	open_model(m);
	m->end = BASE + 4000;
	add_step(m, 1, BASE, BASE + 500);
	add_step(m, 2, BASE + 500, BASE + 2000);
	add_step(m, 3, BASE + 2000, BASE + 4000);
	add_run(m, PID, BASE, BASE + 4000, 0, 0, 1);
	add_api(m, PID, "aclrtLaunchKernel", BASE + 500, BASE + 750, 1);
	add_call(m, PID, "write", BASE + 750, BASE + 1000);
	/* 750 ns in which they can have been: 500 of the first step, 250 in the CANN call. */
	add_span(m, "read", BASE, BASE + 1000, 100, 10);
	add_span(m, "getppid", BASE + 10, BASE + 990, 50, 10);
	/* More than there is. */
	add_span(m, "futex", BASE + 2000, BASE + 2500, 500, 10);
	add_span(m, "mmap", BASE + 2000, BASE + 2500, 500, 10);
	assert_int_equal(nps_derive__host(m), 0);
	assert_int_equal(m->host_breakdown.t.len, 3);
	assert_int_equal(part_of(m, 0, NPS_HOST_IO_CALLS), 66); /* 500 * 150 / 750, of it two thirds */
	assert_int_equal(part_of(m, 0, NPS_HOST_OTHER_CALLS), 34);
	assert_int_equal(part_of(m, 0, NPS_HOST_USER), 400);
	assert_int_equal(part_of(m, 1, NPS_HOST_CANN), 200);
	assert_int_equal(part_of(m, 1, NPS_HOST_IO_CALLS), 250 + 33);
	assert_int_equal(part_of(m, 1, NPS_HOST_OTHER_CALLS), 17);
	assert_int_equal(part_of(m, 1, NPS_HOST_USER), 1000);
	assert_int_equal(part_of(m, 2, NPS_HOST_USER), 1500);
	assert_int_equal(part_of(m, 2, NPS_HOST_OTHER_CALLS), 500);
	for (size_t row = 0; row < 3; row++)
		assert_int_equal(sum_of(m, row), m->host_breakdown.end[row] - m->host_breakdown.start[row]);
	nps_model__free(m);
}

/* Where long calls are summed up, too, sleeps are in those that are long enough. */
static void sleeps_in_summed_calls(void **state)
{
	struct nps_model model, *m = &model;

	(void)state;
	open_model(m);
	m->end = BASE + 2000;
	add_run(m, PID, BASE, BASE + 100, 0, 0, 1);
	add_run(m, PID, BASE + 420, BASE + 500, BASE + 100, BASE + 400,
		1); /* in the futex, with 20 for a CPU */
	add_run(m, PID, BASE + 600, BASE + 1000, BASE + 500, BASE + 600, 1); /* in the read */
	add_run(m, PID, BASE + 1900, BASE + 2000, BASE + 1000, BASE + 1900, 1); /* in none of them */
	add_span(m, "futex", BASE + 90, BASE + 430, 340, 340);
	add_span(m, "read", BASE + 110, BASE + 1950, 110, 110);
	assert_int_equal(nps_derive__host(m), 0);
	assert_int_equal(part_of(m, 0, NPS_HOST_LOCK_WAIT), 300);
	assert_int_equal(part_of(m, 0, NPS_HOST_CPU_WAIT), 20);
	assert_int_equal(part_of(m, 0, NPS_HOST_IO_WAIT), 100);
	assert_int_equal(part_of(m, 0, NPS_HOST_SLEEP), 900);
	/* Of the futex 20 are left, of the read 10. */
	assert_int_equal(part_of(m, 0, NPS_HOST_IO_CALLS) + part_of(m, 0, NPS_HOST_OTHER_CALLS), 30);
	assert_int_equal(sum_of(m, 0), 2000);
	nps_model__free(m);
}

/* --- which threads, and what is not known --------------------------------------------------------------------- */

static void threads_that_launch(void **state)
{
	struct nps_model model, *m = &model;

	(void)state;
	open_model(m);
	for (uint32_t i = 0; i < 4; i++)
		add_run(m, PID + i, BASE + i, BASE + 10 + i, 0, 0, 1);
	add_api(m, PID + 1, "aclrtLaunchKernel", BASE, BASE + 5, 1);
	add_api(m, PID + 2, "aclrtGetDevice", BASE, BASE + 5, 2);
	add_task(m, 1);
	add_task(m, NPS_NO_ID);
	assert_int_equal(nps_derive__host(m), 0);
	assert_int_equal(m->host_breakdown.t.len, 2); /* the one that launches, and the main thread */
	assert_int_equal((uint32_t)m->host_breakdown.gtid[0], PID + 1);
	assert_int_equal((uint32_t)m->host_breakdown.gtid[1], PID);
	assert_string_equal(nps_model__text(m, m->host_breakdown.step[0]), "");
	assert_true(m->host_breakdown.interrupts[0] == NPS_NULL);
	nps_model__free(m);
}

static void lost_runs_are_not_guessed(void **state)
{
	(void)state;
	for (int lost = 0; lost < 2; lost++) {
		struct nps_model model, *m = &model;

		open_model(m);
		m->runs_lost = lost;
		add_run(m, PID, BASE + 60, BASE + LENGTH, BASE + 50, BASE + 55, 1);
		assert_int_equal(nps_derive__host(m), 0);
		assert_int_equal(part_of(m, 0, NPS_HOST_NOT_SEEN), lost ? 50 : 0);
		assert_int_equal(part_of(m, 0, NPS_HOST_USER), LENGTH - 60 + (lost ? 0 : 50));
		assert_int_equal(sum_of(m, 0), LENGTH);
		nps_model__free(m);
	}
}

static void scheduling_of_threads(void **state)
{
	struct nps_model model, *m = &model;

	(void)state;
	open_model(m);
	for (int i = 0; i < 5; i++) {
		uint64_t at = BASE + i * 100;

		add_run(m, PID, at, at + 40, i ? at - 60 : 0,
			i == 3 ? 0
			: i    ? at - 20
			       : 0,
			i == 2	 ? 0
			: i == 4 ? 2
				 : 1);
		m->run.cpu[i] = i == 1 ? 3 : 5;
		m->run.waker[i] = i == 3 ? 0 : 77 + (i == 4);
		m->run.next[i] = 88;
	}
	add_run(m, PID, BASE + 500, BASE + 500, BASE + 440, BASE + 490, NPS_RUN_OPEN);
	assert_int_equal(nps_derive__threads(m), 0);
	assert_int_equal(m->os_thread.t.len, 1);
	assert_int_equal(m->os_thread.running[0], 200);
	assert_int_equal(m->os_thread.slices[0], 5);
	assert_int_equal(m->os_thread.waits[0], 4); /* what the capture's end cut is none */
	assert_int_equal(m->os_thread.preemptions[0], 1);
	assert_int_equal(m->os_thread.migrations[0], 2);
	assert_int_equal(m->os_thread.cpus[0], 2);
	assert_int_equal(m->os_thread.sleeping[0], 40 * 3);
	assert_int_equal(m->os_thread.blocked[0], 50);
	assert_int_equal(m->os_thread.runnable[0], 20 * 3 + 60 + 10);
	assert_int_equal(m->os_thread.waker[0], 77);
	assert_int_equal(m->os_thread.wakes[0], 2);
	assert_int_equal(m->os_thread.preemptor[0], 88);
	assert_int_equal(m->os_thread.preempted[0], 1);
	nps_model__free(m);
}

/* The pid is the run's own; an end is no wait, and who has the number next did not move there. */
static void threads_of_several_processes(void **state)
{
	struct nps_model model, *m = &model;
	size_t row;

	(void)state;
	open_model(m);
	assert_int_equal(nps_os_thread__add(m, 5ULL << 32 | 6, m->process, &row), 0);
	m->os_thread.minor[row] = 77;
	assert_int_equal(nps_os_thread__add(m, 9ULL << 32 | 9, m->process, &row), 0);
	add_run(m, 6, BASE, BASE + 10, 0, 0, NPS_STATE_EXITED);
	add_run(m, 6, BASE + 20, BASE + 30, 0, 0, NPS_STATE_EXITED);
	m->run.pid[0] = m->run.pid[1] = 5;
	m->run.cpu[1] = 1;
	add_run(m, 8, BASE + 40, BASE + 50, 0, 0, 0);
	m->run.pid[2] = 8;
	assert_int_equal(nps_derive__threads(m), 0);
	assert_int_equal(m->os_thread.t.len, 3);
	assert_int_equal(m->os_thread.minor[0], 77);
	assert_int_equal(m->os_thread.running[0], 20);
	assert_int_equal(m->os_thread.slices[0], 2);
	assert_int_equal(m->os_thread.waits[0], 0);
	assert_int_equal(m->os_thread.migrations[0], 0);
	assert_int_equal(m->os_thread.cpus[0], 2);
	assert_true(m->os_thread.running[1] == NPS_NULL); /* nobody saw it */
	assert_true(m->os_thread.gtid[2] == (8ULL << 32 | 8));
	assert_int_equal(nps_derive__host(m), 0);
	assert_true(m->host_breakdown.gtid[0] == (5ULL << 32 | 6));
	nps_model__free(m);
}

static void names(void **state)
{
	(void)state;
	assert_int_equal(nps_os_call_class("futex"), NPS_OS_LOCK);
	assert_int_equal(nps_os_call_class("preadv2"), NPS_OS_IO);
	assert_int_equal(nps_os_call_class("ioctl"), NPS_OS_OTHER);
	assert_true(nps_is_device_wait("aclrtSynchronizeStreamWithTimeout"));
	assert_true(nps_is_device_wait("aclrtMemcpy"));
	assert_false(nps_is_device_wait("aclrtMemcpyAsync"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_a_step),
		cmocka_unit_test(as_the_judge),
		cmocka_unit_test(a_fault_in_a_call),
		cmocka_unit_test(short_calls_have_their_part),
		cmocka_unit_test(sleeps_in_summed_calls),
		cmocka_unit_test(threads_that_launch),
		cmocka_unit_test(lost_runs_are_not_guessed),
		cmocka_unit_test(scheduling_of_threads),
		cmocka_unit_test(threads_of_several_processes),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
