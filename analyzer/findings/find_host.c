/* SPDX-License-Identifier: BSD-2-Clause */
/* The host: system calls that took long, and threads that could have run but had no CPU. */
#include "findings/findings.h"

#include "derive/group_by.h"
#include "derive/waits.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 20
#define MIN_CONTENDED 0.02 /* of the capture: what is worth a finding */

struct host_total { /* of a system call, or of a thread's waits for a CPU: its key */
	struct nps_group sum;
	uint64_t longest_start;
	uint32_t longest_tid;
};

static int host_total_add(struct nps_group_by *totals, uint32_t key, uint32_t tid, uint64_t start,
			  uint64_t ns)
{
	struct host_total *t = nps_group_by__get(totals, key, 0);

	if (!t)
		return -errno;
	if (ns >= t->sum.most) {
		t->longest_start = start;
		t->longest_tid = tid;
	}
	nps_group__add(&t->sum, ns, 0);
	return 0;
}

/* Calls that were summed up: their longest has no time of its own, its sum begins then or before. */
static int collect_sums(const struct nps_model *m, struct nps_group_by *totals)
{
	const struct nps_osrt_sum_table *t = &m->osrt_sum;
	int err = 0;

	for (size_t i = 0; !err && i < t->t.len; i++) {
		struct host_total *total;

		err = host_total_add(totals, t->name[i], t->gtid[i] & UINT32_MAX, t->start[i], t->longest[i]);
		if (err || !t->count[i])
			continue;
		total = nps_group_by__get(totals, t->name[i], 0);
		total->sum.count = nps_add_sat(total->sum.count, t->count[i] - 1);
		total->sum.total =
			nps_add_sat(total->sum.total, t->total[i] - NPS_MIN(t->longest[i], t->total[i]));
	}
	return err;
}

static int collect_calls(const struct nps_model *m, struct nps_group_by *totals)
{
	struct nps_pace pace = { .model = m };
	int err = 0;

	for (size_t i = 0; !err && i < m->osrt.t.len; i++) {
		nps_pace__step(&pace);
		err = host_total_add(totals, m->osrt.name[i], m->osrt.gtid[i] & UINT32_MAX, m->osrt.start[i],
				     nps_span(m->osrt.start[i], m->osrt.end[i]));
	}
	return err ? err : collect_sums(m, totals);
}

/* After they were woken, or lost their CPU to another. */
static int collect_waits(const struct nps_model *m, struct nps_group_by *totals)
{
	struct nps_pace pace = { .model = m };
	struct nps_map last = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < m->run.t.len; i++) {
		uint32_t tid = m->run.tid[i];
		struct nps_wait wait = nps_run__wait(m, i, nps_map__get(&last, tid));

		nps_pace__step(&pace);
		if (wait.known && wait.woken < wait.start)
			err = host_total_add(totals, tid, tid, wait.woken, wait.start - wait.woken);
		err = err ? err : nps_map__put(&last, tid, i);
	}
	nps_map__free(&last);
	return err;
}

#define TOTAL_COLUMNS(C)                                                                                     \
	C("count", COUNT, "count", r->sum.count)                                                             \
	C("total_us", NS, "total", r->sum.total)                                                             \
	C("max_us", NS, "max", r->sum.most)                                                                  \
	C("longest_at_us", TIME, "longest at, ms", r->longest_start)

#define CALL_COLUMNS(C)                                                                                      \
	C("call", TEXT, "call", nps_model__text(m, (uint32_t)r->sum.key))                                    \
	TOTAL_COLUMNS(C)                                                                                     \
	C("longest_in_thread", COUNT, "longest in thread", r->longest_tid, .print = 5)

NPS_FIND_TABLE(calls, "host.system_calls", "system calls, by time, us", struct nps_model, struct host_total,
	       CALL_COLUMNS)

#define WAIT_COLUMNS(C) C("thread", COUNT, "thread", r->sum.key) TOTAL_COLUMNS(C)

NPS_FIND_TABLE(waits, "host.waits_for_cpu", "threads that waited for a CPU, us", struct nps_model,
	       struct host_total, WAIT_COLUMNS)

static int starved(struct nps_find *find, const struct host_total *t)
{
	cJSON *numbers, *where;

	if (find->span_us <= 0 || t->sum.total / 1e3 < 0.05 * find->span_us)
		return 0;
	numbers = cJSON_CreateObject();
	nps_find__number(numbers, "runnable_us", t->sum.total / 1e3);
	nps_find__number(numbers, "longest_us", t->sum.most / 1e3);
	cJSON_AddNumberToObject(numbers, "times", (double)t->sum.count);
	where = cJSON_CreateObject();
	cJSON_AddNumberToObject(where, "thread", (double)t->sum.key);
	nps_find__time(where, "start_us", t->longest_start);
	return nps_find__add(
		find, "cpu_starved", t->sum.total / 1e3 / find->span_us, numbers, where,
		"more threads want to run than the process has CPUs: look at affinity, limits and neighbours",
		"thread %u waited %.1f us for a CPU although it could run, %.1f us at the longest",
		(uint32_t)t->sum.key, t->sum.total / 1e3, t->sum.most / 1e3);
}

static int totals_find(struct nps_find *find, const struct nps_find_table *table,
		       int (*collect)(const struct nps_model *m, struct nps_group_by *totals))
{
	struct nps_group_by totals;
	int err;

	nps_group_by__init(&totals, find->model, sizeof(struct host_total));
	err = collect(find->model, &totals);
	if (err || !totals.rows.len)
		goto out;
	nps_group_by__sort(&totals, nps_group__by_total);
	nps_find__rows(find->document, table, find->model, totals.rows.data,
		       NPS_MIN(totals.rows.len, (size_t)ROWS), totals.rows.elem);
	if (table == &waits)
		err = starved(find, nps_group_by__at(&totals, 0));
out:
	nps_group_by__free(&totals);
	return err;
}

#define NEIGHBOUR(column) m->neighbour.column[*r]

#define NEIGHBOUR_COLUMNS(C)                                                                                 \
	C("process", COUNT, NULL, NEIGHBOUR(pid))                                                            \
	C("name", TEXT, NULL, nps_model__text(m, NEIGHBOUR(name)))                                           \
	C("ran_us", NS, NULL, NEIGHBOUR(run))                                                                \
	C("taken_us", NS, NULL, NEIGHBOUR(contended))

NPS_FIND_TABLE(neighbours, "host.neighbours", NULL, struct nps_model, uint32_t, NEIGHBOUR_COLUMNS)

/* CPU time of processes that are not the job's: a list, and a finding about each that used much. */
static int neighbours_find(struct nps_find *find)
{
	const struct nps_neighbour_table *t = &find->model->neighbour;
	uint32_t rows[ROWS];
	size_t n = NPS_MIN(t->t.len, (size_t)ROWS);
	int err = 0;

	if (!n)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		rows[i] = i;
	nps_find__rows(find->document, &neighbours, find->model, rows, n, sizeof(rows[0]));
	for (size_t i = 0; i < n && !err; i++) {
		double us = t->contended[i] / 1e3, share = nps_find__share(find, us);

		if (share < MIN_CONTENDED)
			continue;
		err = nps_find__add(find, "cpu_taken", share,
				    nps_find__object(&neighbours, find->model, &rows[i]), NULL,
				    "give the job CPUs of its own (taskset, cpusets), or move or stop "
				    "that process",
				    "process %u (%s) ran for %.1f us on CPUs for which threads of "
				    "processes that use an NPU waited meanwhile",
				    t->pid[i], nps_model__text(find->model, t->name[i]), us);
	}
	return err;
}

static int by_wait(const void *a, const void *b, void *ctx)
{
	const struct nps_os_lock_table *t = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return t->total[x] != t->total[y] ? (t->total[x] < t->total[y] ? 1 : -1) : (x > y) - (x < y);
}

#define LOCK(column) m->os_lock.column[*r]

#define LOCK_COLUMNS(C)                                                                                      \
	C("lock", TEXT, NULL, nps_model__text(m, LOCK(kind)))                                                \
	C("address", HEX, NULL, LOCK(address))                                                               \
	C("thread", COUNT, NULL, LOCK(gtid) & UINT32_MAX)                                                    \
	C("holder", COUNT, NULL, LOCK(holder) ? LOCK(holder) : NPS_NAN, .optional = true)                    \
	C("holder", TEXT, NULL, LOCK(holder) ? NULL : "unknown", .optional = true)                           \
	C("count", COUNT, NULL, LOCK(count))                                                                 \
	C("total_us", NS, NULL, LOCK(total))                                                                 \
	C("max_us", NS, NULL, LOCK(longest))                                                                 \
	C("longest_at_us", TIME, NULL, LOCK(longest_start))

NPS_FIND_TABLE(locks, "host.lock_waits", NULL, struct nps_model, uint32_t, LOCK_COLUMNS)

/* The waits that took most: by thread, lock and holder. */
static int locks_find(struct nps_find *find)
{
	const struct nps_model *m = find->model;
	struct nps_vec order;
	int err;

	if (!m->os_lock.t.len)
		return 0;
	nps_vec__init(&order, m->tmpfd, sizeof(uint32_t));
	err = nps_vec__resize(&order, m->os_lock.t.len);
	if (err)
		goto out;
	for (uint32_t i = 0; i < order.len; i++)
		NPS_AT(&order, uint32_t, i) = i;
	qsort_r(order.data, order.len, order.elem, by_wait, (void *)&m->os_lock);
	nps_find__rows(find->document, &locks, m, order.data, NPS_MIN(order.len, (size_t)ROWS), order.elem);
out:
	nps_vec__free(&order);
	return err;
}

static int host_find(struct nps_find *find)
{
	int err = totals_find(find, &calls, collect_calls);

	if (err)
		return err;
	err = totals_find(find, &waits, collect_waits);
	if (err)
		return err;
	err = neighbours_find(find);
	return err ? err : locks_find(find);
}

const struct nps_find_question nps_question_host = { .find = host_find, .tables = { &calls, &waits } };
