/* SPDX-License-Identifier: BSD-2-Clause */
/* Step Trace: iterations of a graph, on lanes of Ascend Hardware (outputs 2.4). */
#include "export/trace_event.h"

#include <stdio.h>

#define LANE 70000U /* tid of model 0 */

static uint32_t lane_of(uint32_t model)
{
	return LANE + model;
}

enum { BEFORE, AFTER };

/* The iterations of one model need not stand side by side: others run in between. */
static uint32_t *step_neighbours(const struct nps_trace *t, size_t row)
{
	return (uint32_t *)t->iterations.data + 2 * row;
}

static int link_iterations(struct nps_trace *t)
{
	const struct nps_iteration_table *a = &t->m->iteration;
	int err = nps_vec__resize(&t->iterations, a->t.len);
	struct nps_map last = { 0 };

	for (size_t i = 0; !err && i < a->t.len; i++) {
		uint64_t key = nps_hash2(a->device[i], a->model[i]);
		uint32_t before = nps_map__get(&last, key);

		if (before != NPS_NONE) {
			step_neighbours(t, i)[BEFORE] = before + 1;
			step_neighbours(t, before)[AFTER] = i + 1;
		}
		err = nps_map__put(&last, key, i);
	}
	nps_map__free(&last);
	return err;
}

int nps_trace__scan_steps(struct nps_trace *t)
{
	const struct nps_iteration_table *iteration = &t->m->iteration;
	const struct nps_iteration_part_table *part = &t->m->iteration_part;
	int err = link_iterations(t);

	for (size_t i = 0; !err && i < iteration->t.len; i++)
		err = nps_trace_lanes__add(&t->steps, nps_trace__device(t, iteration->device[i]),
					   lane_of(iteration->model[i]));
	for (size_t i = 0; !err && i < part->t.len; i++)
		err = nps_trace_lanes__add(&t->steps, nps_trace__device(t, part->device[i]),
					   lane_of(part->model[i]));
	for (size_t i = 0; i < t->steps.list.len; i++)
		t->devices |= 1ULL << NPS_AT(&t->steps.list, struct nps_trace_lane, i).device;
	return err;
}

void nps_trace__name_steps(struct nps_trace *t)
{
	char name[64];

	for (size_t i = 0; i < t->steps.list.len; i++) {
		const struct nps_trace_lane *lane = &NPS_AT(&t->steps.list, struct nps_trace_lane, i);
		uint64_t pid = nps_trace__pid(t, NPS_TRACE_HARDWARE, lane->device);

		snprintf(name, sizeof(name), "Step Trace(Model ID:%u)", lane->tid - LANE);
		nps_trace__name_thread(&t->w, pid, lane->tid, name);
		nps_trace__sort_thread(&t->w, pid, lane->tid, lane->tid);
	}
}

/* Begins "PREFIX number" from START to END; its arguments follow. */
static void part_begin(struct nps_trace *t, const char *prefix, uint64_t number, const char *cat, size_t row,
		       uint64_t start, uint64_t end)
{
	const struct nps_iteration_table *a = &t->m->iteration;
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_trace__u64(w, prefix, number);
	nps_writer__lit(w, "\"");
	nps_trace__lane(w, nps_trace__pid(t, NPS_TRACE_HARDWARE, a->device[row]), lane_of(a->model[row]));
	nps_trace__span(w, start, end);
	nps_trace__string(w, ",\"cat\":", cat);
	nps_trace__u64(w, ",\"args\":{\"Iteration ID\":", number);
}

static void point(struct nps_writer *w, const char *key, uint64_t time)
{
	nps_writer__lit(w, key);
	nps_writer__lit(w, "\"");
	if (time)
		nps_writer__time(w, time);
	else
		nps_writer__lit(w, "N/A");
	nps_writer__lit(w, "\"");
}

static void part_end(struct nps_writer *w, const char *key, uint64_t start, uint64_t end)
{
	nps_writer__lit(w, key);
	nps_writer__us(w, nps_span(start, end));
	nps_writer__lit(w, "}");
	nps_trace__end(w);
}

/* Where the data of the next iteration is waited for: from this one's end to the next one's forward pass. */
static void data_bound(struct nps_trace *t, size_t row, bool begin)
{
	const struct nps_iteration_table *a = &t->m->iteration;
	uint64_t pid = nps_trace__pid(t, NPS_TRACE_HARDWARE, a->device[row]);
	uint32_t tid = lane_of(a->model[row]);
	struct nps_writer *w = &t->w;
	char id[96];

	snprintf(id, sizeof(id), "Data_aug Bound %llu_%u", (unsigned long long)pid, tid);
	nps_writer__item(w);
	nps_trace__u64(w, "{\"name\":\"Data_aug Bound ", begin ? a->id[row] : a->id[row] - 1);
	nps_writer__lit(w, "\"");
	nps_trace__lane(w, pid, tid);
	nps_trace__string(w, ",\"cat\":\"Data_aug Bound\",\"id\":", id);
	nps_trace__at(w, begin ? a->end[row] : a->fp_start[row]);
	if (begin) {
		nps_writer__lit(w, ",\"args\":{\"Data_aug Bound(us)\":");
		nps_writer__us(w, a->fp_start[step_neighbours(t, row)[AFTER] - 1] - a->end[row]);
		nps_writer__lit(w, "},\"ph\":\"s\"}");
	} else {
		nps_trace__u64(w, ",\"args\":{\"Iteration ID\":", a->id[row]);
		nps_writer__lit(w, "},\"ph\":\"t\"}");
	}
}

/* Whether it is known how long the iteration after ROW waited for its data. */
static bool step_waits(const struct nps_trace *t, size_t row)
{
	const struct nps_iteration_table *a = &t->m->iteration;
	uint32_t after = step_neighbours(t, row)[AFTER];

	return after && a->end[row] && a->fp_start[after - 1] >= a->end[row];
}

void nps_trace__iteration(struct nps_trace *t, const struct nps_item *item)
{
	size_t row = item->row;
	const struct nps_iteration_table *a = &t->m->iteration;
	uint64_t fp = a->fp_start[row], bp = a->bp_end[row], id = a->id[row];
	struct nps_writer *w = &t->w;

	part_begin(t, "{\"name\":\"Iteration ", id, "Iteration Time", row, a->start[row], a->end[row]);
	point(w, ",\"FP Start\":", fp);
	point(w, ",\"BP End\":", bp);
	point(w, ",\"Iteration End\":", a->end[row]);
	part_end(w, ",\"Iteration Time(us)\":", a->start[row], a->end[row]);
	if (fp && bp >= fp) {
		part_begin(t, "{\"name\":\"FP_BP Time ", id, "FP_BP Time", row, fp, bp);
		point(w, ",\"FP Start\":", fp);
		point(w, ",\"BP End\":", bp);
		part_end(w, ",\"FP_BP Time(us)\":", fp, bp);
	}
	if (bp && a->end[row] >= bp) {
		part_begin(t, "{\"name\":\"Iteration Refresh ", id, "Iteration Refresh", row, bp,
			   a->end[row]);
		point(w, ",\"BP End\":", bp);
		point(w, ",\"Iteration End\":", a->end[row]);
		part_end(w, ",\"Iteration Refresh(us)\":", bp, a->end[row]);
	}
	if (step_neighbours(t, row)[BEFORE] && step_waits(t, step_neighbours(t, row)[BEFORE] - 1))
		data_bound(t, row, false);
	if (step_waits(t, row))
		data_bound(t, row, true);
}

static void reduce(struct nps_trace *t, size_t row, uint32_t number)
{
	const struct nps_iteration_part_table *a = &t->m->iteration_part;
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_trace__u64(w, "{\"name\":\"Reduce_", a->id[row]);
	nps_trace__u64(w, "_", number);
	nps_writer__lit(w, "\"");
	nps_trace__lane(w, nps_trace__pid(t, NPS_TRACE_HARDWARE, a->device[row]), lane_of(a->model[row]));
	nps_trace__span(w, a->start[row], a->end[row]);
	nps_trace__u64(w, ",\"cat\":\"Reduce\",\"args\":{\"Iteration ID\":", a->id[row]);
	nps_trace__u64(w, ",\"Reduce Start ", number);
	point(w, "\":", a->start[row]);
	nps_trace__u64(w, ",\"Reduce End ", number);
	point(w, "\":", a->end[row]);
	part_end(w, ",\"Reduce Time(us)\":", a->start[row], a->end[row]);
}

void nps_trace__iteration_part(struct nps_trace *t, const struct nps_item *item)
{
	size_t row = item->row;
	const struct nps_iteration_part_table *a = &t->m->iteration_part;
	struct nps_writer *w = &t->w;

	if (!a->kind[row]) {
		bool same = row && t->reduces && !a->kind[row - 1] && a->id[row - 1] == a->id[row] &&
			    a->model[row - 1] == a->model[row] && a->device[row - 1] == a->device[row];

		t->reduces = same ? t->reduces + 1 : 1;
		reduce(t, row, t->reduces - 1);
		return;
	}
	nps_trace__slice(w, "GetNext", nps_trace__pid(t, NPS_TRACE_HARDWARE, nps_item__device(item)),
			 lane_of(nps_item__tid(item)), item->start, item->end);
	point(w, ",\"cat\":\"GetNext Time\",\"args\":{\"GetNext Start\":", a->start[row]);
	point(w, ",\"GetNext End\":", a->end[row]);
	part_end(w, ",\"GetNext Time(us)\":", a->start[row], a->end[row]);
}
