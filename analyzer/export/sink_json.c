/* SPDX-License-Identifier: BSD-2-Clause */
/* trace_view.json and msprof_{stamp}.json (outputs 2), the sink of the timeline for the vendor's viewer. */
#include "export/trace_event.h"

#include <stdio.h>

#define SLICE (4ULL << 30) /* bytes of a file of msprof's layout */
#define SLICES 99 /* what viewers know by name; the last one takes what is left */
#define EVENT 340 /* bytes of an event, roughly */

/* The kinds of items that have a layer. nps_trace__torch() writes the framework's, in blocks of their own. */
static uint32_t wanted_items(const struct nps_trace *t)
{
	uint32_t wanted = NPS_ITEM(CALL) | NPS_ITEM(TASK) | NPS_ITEM(COLLECTIVE) | NPS_ITEM(OVERLAP) |
			  NPS_ITEM(SYSTEM_CALL) | NPS_ITEM(DRIVER_CALL) | NPS_ITEM(MARK) |
			  NPS_ITEM(DEVICE_MARK) | NPS_ITEM(ITERATION) | NPS_ITEM(ITERATION_PART) |
			  NPS_ITEM(SAMPLE) | NPS_ITEM(INTERRUPT) | NPS_ITEMS_SCHED;

	return t->pruned ? wanted : wanted | NPS_ITEM(COLLECTIVE_TASK);
}

static void json_write_item(struct nps_trace *t, const struct nps_item *item)
{
	switch (item->kind) {
	case NPS_ITEM_CALL:
		nps_trace__cann(t, item);
		break;
	case NPS_ITEM_TASK:
		nps_trace__task(t, item);
		break;
	case NPS_ITEM_COLLECTIVE:
		nps_trace__comm_op(t, item);
		break;
	case NPS_ITEM_COLLECTIVE_TASK:
		nps_trace__comm_task(t, item);
		break;
	case NPS_ITEM_OVERLAP:
		nps_trace__overlap(t, item);
		break;
	case NPS_ITEM_SYSTEM_CALL:
		nps_trace__osrt(t, item);
		break;
	case NPS_ITEM_DRIVER_CALL:
		nps_trace__driver(t, item);
		break;
	case NPS_ITEM_MARK:
		nps_trace__mstx(t, item);
		break;
	case NPS_ITEM_DEVICE_MARK:
		nps_trace__device_mark(t, item);
		break;
	case NPS_ITEM_ITERATION:
		nps_trace__iteration(t, item);
		break;
	case NPS_ITEM_ITERATION_PART:
		nps_trace__iteration_part(t, item);
		break;
	case NPS_ITEM_SAMPLE:
		nps_trace__sample(t, item);
		break;
	default:
		nps_trace__sched(t, item);
	}
}

static int scan(struct nps_trace *t)
{
	static int (*const scans[])(struct nps_trace *) = {
		nps_trace__scan_host, nps_trace__scan_links, nps_trace__scan_device,
		nps_trace__scan_comm, nps_trace__scan_sched, nps_trace__scan_counters,
	};
	int err = 0;

	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(scans); i++)
		err = scans[i](t);
	return err;
}

static int name_layers(struct nps_trace *t)
{
	nps_trace__name_host(t);
	nps_trace__name_device(t);
	nps_trace__name_comm(t);
	nps_trace__name_overlap(t);
	nps_trace__name_osrt(t);
	nps_trace__name_counters(t);
	return nps_trace__name_sched(t);
}

/* --- files --- */

static uint64_t estimate(const struct nps_model *m)
{
	return EVENT * (uint64_t)(m->api.t.len + 2 * m->task.t.len + m->comm_task.t.len + m->comm_op.t.len +
				  m->overlap.t.len + m->osrt.t.len + m->driver.t.len + 5 * m->run.t.len);
}

static int json_open_file(struct nps_trace *t, int dirfd, const char *name)
{
	int err = t->ex->gzip && t->m->layout == NPS_LAYOUT_TORCH ? nps_writer__open_gzip(&t->w, dirfd, name)
								  : nps_writer__open(&t->w, dirfd, name);

	if (err)
		return err;
	nps_writer__lit(&t->w, "[");
	return 0;
}

static int close_file(struct nps_trace *t, int err)
{
	int closed;

	nps_writer__lit(&t->w, "]");
	closed = nps_writer__close(&t->w);
	return err ? err : closed;
}

/* Items by time, until the file is as large as it may be. */
static int json_write_items(struct nps_trace *t, uint64_t largest)
{
	struct nps_item item;

	while (!t->w.err && nps_timeline__next(&t->timeline, &item)) {
		json_write_item(t, &item);
		if (nps_writer__written(&t->w) >= largest)
			break;
	}
	return t->w.err ? t->w.err : t->timeline.err;
}

static int write_torch(struct nps_trace *t, int dirfd)
{
	int err = json_open_file(t, dirfd, t->ex->gzip ? "trace_view.json.gz" : "trace_view.json");

	if (err)
		return err;
	err = nps_trace__torch(t);
	err = err ? err : name_layers(t);
	err = err ? err : json_write_items(t, UINT64_MAX);
	nps_trace__close_counters(t);
	err = err ? err : nps_trace__torch_to_npu(t);
	return close_file(t, err);
}

/* Each file names the layers, so that it can be opened on its own. */
static int write_msprof(struct nps_trace *t, int dirfd)
{
	bool sliced = estimate(t->m) > SLICE;
	unsigned int number = 0;
	char name[80];
	int err;

	do {
		if (sliced)
			snprintf(name, sizeof(name), "msprof_slice_%u_%s.json", number, t->ex->stamp);
		else
			snprintf(name, sizeof(name), "msprof_%s.json", t->ex->stamp);
		err = json_open_file(t, dirfd, name);
		if (err)
			return err;
		err = name_layers(t);
		err = err ? err : json_write_items(t, sliced && number < SLICES ? SLICE : UINT64_MAX);
		if (nps_timeline__ended(&t->timeline))
			nps_trace__close_counters(t);
		err = close_file(t, err);
		number++;
	} while (!err && !nps_timeline__ended(&t->timeline));
	return err;
}

static void json_init(struct nps_trace *t, const struct nps_export *ex)
{
	const struct nps_model *m = ex->model;

	*t = (struct nps_trace){ .ex = ex,
				 .m = m,
				 .pace = { .model = m },
				 .gen_a = ex->generation == NPS_GENERATION_A,
				 .pruned = m->layout == NPS_LAYOUT_TORCH && !m->level };
	t->links = !t->pruned || t->gen_a;
	nps_trace_lanes__init(&t->cann, m->tmpfd);
	nps_trace_lanes__init(&t->hardware, m->tmpfd);
	nps_trace_lanes__init(&t->osrt, m->tmpfd);
	nps_trace_lanes__init(&t->driver, m->tmpfd);
	nps_trace_lanes__init(&t->mstx, m->tmpfd);
	nps_trace_lanes__init(&t->steps, m->tmpfd);
	nps_vec__init(&t->kernel_of.rows, m->tmpfd, sizeof(uint32_t));
	nps_vec__init(&t->groups, m->tmpfd, sizeof(struct nps_trace_group));
	nps_vec__init(&t->held, m->tmpfd, sizeof(struct nps_trace_held));
	nps_vec__init(&t->iterations, m->tmpfd, 2 * sizeof(uint32_t));
	nps_vec__init(&t->sched_lanes, m->tmpfd, sizeof(uint32_t));
}

static void json_done(struct nps_trace *t)
{
	nps_counter_view__free(&t->counters);
	nps_trace_lanes__free(&t->cann);
	nps_trace_lanes__free(&t->hardware);
	nps_trace_lanes__free(&t->osrt);
	nps_trace_lanes__free(&t->driver);
	nps_trace_lanes__free(&t->mstx);
	nps_trace_lanes__free(&t->steps);
	nps_trace_bits__free(&t->offered);
	nps_trace_bits__free(&t->wanted);
	nps_trace_bits__free(&t->started);
	nps_trace_bits__free(&t->copies);
	nps_trace_bits__free(&t->collectives);
	nps_trace_bits__free(&t->marks);
	nps_trace_bits__free(&t->marked);
	nps_trace_rows__free(&t->kernel_of);
	nps_vec__free(&t->groups);
	nps_map__free(&t->group_of);
	nps_vec__free(&t->held);
	nps_vec__free(&t->iterations);
	nps_vec__free(&t->sched_lanes);
}

int nps_export__trace(const struct nps_export *ex, int dirfd)
{
	struct nps_trace t;
	int err, closed;

	json_init(&t, ex);
	nps_timeline__open(&t.timeline, ex->model, wanted_items(&t));
	err = scan(&t);
	if (err)
		goto out;
	err = ex->model->layout == NPS_LAYOUT_TORCH ? write_torch(&t, dirfd) : write_msprof(&t, dirfd);
out:
	closed = nps_timeline__close(&t.timeline);
	json_done(&t);
	return err ? err : closed;
}
