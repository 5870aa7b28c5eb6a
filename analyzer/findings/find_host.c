/* SPDX-License-Identifier: BSD-2-Clause */
/* The host: system calls that took long, and threads that could have run but had no CPU. */
#include "findings/findings.h"

#include "derive/group_by.h"
#include "derive/waits.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 20
#define LEAST_TAKEN 0.02 /* of the capture: what is worth a finding */

struct total { /* of a system call, or of a thread's waits for a CPU: its key */
	struct nps_group sum;
	uint64_t longest_start;
	uint32_t longest_tid;
};

static int add(struct nps_group_by *totals, uint32_t key, uint32_t tid, uint64_t start, uint64_t ns)
{
	struct total *t = nps_group_by__get(totals, key, 0);

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
		struct total *total;

		err = add(totals, t->name[i], t->gtid[i] & UINT32_MAX, t->start[i], t->longest[i]);
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
		err = add(totals, m->osrt.name[i], m->osrt.gtid[i] & UINT32_MAX, m->osrt.start[i],
			  nps_find__ns(m->osrt.start[i], m->osrt.end[i]));
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
			err = add(totals, tid, tid, wait.woken, wait.start - wait.woken);
		if (!err)
			err = nps_map__put(&last, tid, i);
	}
	nps_map__free(&last);
	return err;
}

static void rows(const struct nps_model *m, cJSON *list, const struct nps_group_by *totals, bool threads)
{
	for (size_t i = 0; i < NPS_MIN(nps_group_by__len(totals), (size_t)ROWS); i++) {
		const struct total *t = nps_group_by__at(totals, i);
		cJSON *row = cJSON_CreateObject();

		cJSON_AddItemToArray(list, row);
		if (threads)
			cJSON_AddNumberToObject(row, "thread", (double)t->sum.key);
		else
			cJSON_AddStringToObject(row, "call", nps_model__text(m, (uint32_t)t->sum.key));
		cJSON_AddNumberToObject(row, "count", (double)t->sum.count);
		nps_find__number(row, "total_us", t->sum.total / 1e3);
		nps_find__number(row, "max_us", t->sum.most / 1e3);
		nps_find__time(row, "longest_at_us", t->longest_start);
		if (!threads)
			cJSON_AddNumberToObject(row, "longest_in_thread", t->longest_tid);
	}
}

static int starved(struct nps_find *find, const struct total *t)
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

static int section(struct nps_find *find, cJSON **object, const char *name, bool threads,
		   int (*collect)(const struct nps_model *m, struct nps_group_by *totals))
{
	struct nps_group_by totals;
	int err;

	nps_group_by__init(&totals, find->model, sizeof(struct total));
	err = collect(find->model, &totals);
	if (!err && nps_group_by__len(&totals)) {
		nps_group_by__sort(&totals, nps_group__by_total);
		if (!*object)
			*object = cJSON_AddObjectToObject(find->document, "host");
		rows(find->model, cJSON_AddArrayToObject(*object, name), &totals, threads);
		if (threads)
			err = starved(find, nps_group_by__at(&totals, 0));
	}
	nps_group_by__free(&totals);
	return err;
}

/* CPU time of processes beside the job: a list, and a finding about each that used much. */
static int neighbours(struct nps_find *find, cJSON **object)
{
	const struct nps_neighbour_table *t = &find->model->neighbour;
	cJSON *list = NULL;
	int err = 0;

	for (size_t i = 0; i < NPS_MIN(t->t.len, (size_t)ROWS) && !err; i++) {
		double share = nps_find__share(find, t->taken[i] / 1e3);
		cJSON *row = cJSON_CreateObject();

		if (!*object)
			*object = cJSON_AddObjectToObject(find->document, "host");
		if (!list)
			list = cJSON_AddArrayToObject(*object, "neighbours");
		cJSON_AddItemToArray(list, row);
		cJSON_AddNumberToObject(row, "process", t->pid[i]);
		cJSON_AddStringToObject(row, "name", nps_model__text(find->model, t->name[i]));
		nps_find__number(row, "ran_us", t->run[i] / 1e3);
		nps_find__number(row, "taken_us", t->taken[i] / 1e3);
		if (share >= LEAST_TAKEN)
			err = nps_find__add(
				find, "cpu_taken", share, cJSON_Duplicate(row, true), NULL,
				"give the job CPUs of its own (taskset, cpusets), or move or stop "
				"that process",
				"process %u (%s) ran for %.1f us on CPUs for which threads of "
				"processes that use an NPU waited meanwhile",
				t->pid[i], nps_model__text(find->model, t->name[i]), t->taken[i] / 1e3);
	}
	return err;
}

static int by_wait(const void *a, const void *b, void *ctx)
{
	const struct nps_os_lock_table *t = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return t->total[x] != t->total[y] ? (t->total[x] < t->total[y] ? 1 : -1) : (x > y) - (x < y);
}

static void lock_row(const struct nps_model *m, cJSON *list, uint32_t i)
{
	const struct nps_os_lock_table *t = &m->os_lock;
	cJSON *row = cJSON_CreateObject();
	char address[24];

	cJSON_AddItemToArray(list, row);
	snprintf(address, sizeof(address), "0x%" PRIx64, t->address[i]);
	cJSON_AddStringToObject(row, "lock", nps_model__text(m, t->kind[i]));
	cJSON_AddStringToObject(row, "address", address);
	cJSON_AddNumberToObject(row, "thread", (double)(t->gtid[i] & UINT32_MAX));
	if (t->holder[i])
		cJSON_AddNumberToObject(row, "holder", t->holder[i]);
	else
		cJSON_AddStringToObject(row, "holder", "unknown");
	cJSON_AddNumberToObject(row, "count", (double)t->count[i]);
	nps_find__number(row, "total_us", t->total[i] / 1e3);
	nps_find__number(row, "max_us", t->longest[i] / 1e3);
	nps_find__time(row, "longest_at_us", t->longest_start[i]);
}

/* The waits that took most: by thread, lock and holder. */
static int lock_waits(struct nps_find *find, cJSON **object)
{
	const struct nps_model *m = find->model;
	struct nps_vec order;
	cJSON *list;
	int err;

	if (!m->os_lock.t.len)
		return 0;
	nps_vec__init(&order, m->tmpfd, sizeof(uint32_t));
	err = nps_vec__resize(&order, m->os_lock.t.len);
	for (uint32_t i = 0; !err && i < order.len; i++)
		NPS_AT(&order, uint32_t, i) = i;
	if (!err) {
		qsort_r(order.data, order.len, order.elem, by_wait, (void *)&m->os_lock);
		if (!*object)
			*object = cJSON_AddObjectToObject(find->document, "host");
		list = cJSON_AddArrayToObject(*object, "lock_waits");
		for (size_t i = 0; i < NPS_MIN(order.len, (size_t)ROWS); i++)
			lock_row(m, list, NPS_AT(&order, uint32_t, i));
	}
	nps_vec__free(&order);
	return err;
}

int nps_find__host(struct nps_find *find)
{
	cJSON *object = NULL;
	int err = section(find, &object, "system_calls", false, collect_calls);

	if (!err)
		err = section(find, &object, "waits_for_cpu", true, collect_waits);
	if (!err)
		err = neighbours(find, &object);
	return err ? err : lock_waits(find, &object);
}
