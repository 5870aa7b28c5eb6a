/* SPDX-License-Identifier: BSD-2-Clause */
/* trace_view.json and msprof_{stamp}.json (outputs 2), as a stream: tables are merged by time, nothing is sorted. */
#include "export/trace_event.h"

#include <stdio.h>

#define SLICE (4ULL << 30) /* bytes of a file of msprof's layout */
#define SLICES 99 /* what viewers know by name; the last one takes what is left */
#define EVENT 340 /* bytes of an event, roughly */

void nps_trace__add(struct nps_trace *t, const struct nps_table *table, const uint64_t *time,
		    const uint32_t *rows, void (*write)(struct nps_trace *t, size_t row))
{
	if (!table->len)
		return;
	t->sources[t->nsources] =
		(struct nps_trace_source){ .time = time, .rows = rows, .len = table->len, .write = write };
	t->next[t->nsources] = time ? time[rows ? rows[0] : 0] : UINT64_MAX;
	t->nsources++;
}

static void add_sources(struct nps_trace *t)
{
	const struct nps_model *m = t->m;

	nps_trace__add(t, &m->api.t, m->api.start, NULL, nps_trace__cann);
	nps_trace__add(t, &m->task.t, m->task.start, NULL, nps_trace__task);
	nps_trace__add(t, &m->comm_op.t, m->comm_op.start, NULL, nps_trace__comm_op);
	if (!t->pruned)
		nps_trace__add(t, &m->comm_task.t, m->task.start, m->comm_task.task, nps_trace__comm_task);
	nps_trace__add(t, &m->overlap.t, m->overlap.start, NULL, nps_trace__overlap);
	nps_trace__add(t, &m->osrt.t, m->osrt.start, NULL, nps_trace__osrt);
	nps_trace__add(t, &m->driver.t, m->driver.start, NULL, nps_trace__driver);
	nps_trace__add(t, &m->mstx.t, m->mstx.start, NULL, nps_trace__mstx);
	nps_trace__add(t, &m->mstx.t, m->mstx.device_start, NULL, nps_trace__device_mark);
	nps_trace__add(t, &m->iteration.t, m->iteration.start, NULL, nps_trace__iteration);
	nps_trace__add(t, &m->iteration_part.t, m->iteration_part.start, NULL, nps_trace__iteration_part);
	nps_trace__add_counters(t);
	nps_trace__add_sched(t);
}

static int scan(struct nps_trace *t)
{
	int err = nps_trace__scan_host(t);

	if (!err)
		err = nps_trace__scan_links(t);
	if (!err)
		err = nps_trace__scan_device(t);
	if (!err)
		err = nps_trace__scan_comm(t);
	if (!err)
		err = nps_trace__scan_sched(t);
	return err ? err : nps_trace__scan_counters(t);
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

/* The source whose next event is the earliest, SOURCES if all are done. */
static size_t earliest(const struct nps_trace *t)
{
	size_t first = NPS_TRACE_SOURCES;
	uint64_t when = UINT64_MAX;

	for (size_t i = 0; i < t->nsources; i++) {
		if (t->next[i] < when) {
			when = t->next[i];
			first = i;
		}
	}
	return first;
}

static void step(struct nps_trace *t, size_t i)
{
	struct nps_trace_source *source = &t->sources[i];
	size_t at = source->at;

	/* Something at time 0 would stretch the viewer's axis over half a century. */
	if (source->counters && t->next[i])
		nps_trace__sample(t, source->counters, at);
	else if (t->next[i] || !source->time)
		source->write(t, at);
	if (!source->time)
		return;
	source->at = ++at;
	t->next[i] = at < source->len ? source->time[source->rows ? source->rows[at] : at] : UINT64_MAX;
}

/* --- files --- */

static uint64_t estimate(const struct nps_model *m)
{
	return EVENT * (uint64_t)(m->api.t.len + 2 * m->task.t.len + m->comm_task.t.len + m->comm_op.t.len +
				  m->overlap.t.len + m->osrt.t.len + m->driver.t.len + 5 * m->run.t.len);
}

static int open_file(struct nps_trace *t, int dirfd, const char *name)
{
	int err = t->ex->gzip && t->m->layout == NPS_LAYOUT_TORCH ? nps_writer__open_gzip(&t->w, dirfd, name)
								  : nps_writer__open(&t->w, dirfd, name);

	if (!err)
		nps_writer__lit(&t->w, "[");
	return err;
}

static int close_file(struct nps_trace *t, int err)
{
	int closed;

	nps_writer__lit(&t->w, "]");
	closed = nps_writer__close(&t->w);
	return err ? err : closed;
}

/* Events by time, until the file is as large as it may be. */
static int merge(struct nps_trace *t, uint64_t largest)
{
	size_t i;

	while (!t->w.err && (i = earliest(t)) < NPS_TRACE_SOURCES) {
		step(t, i);
		nps_pace__step(&t->pace);
		if (nps_writer__written(&t->w) >= largest)
			break;
	}
	return t->w.err;
}

static int write_torch(struct nps_trace *t, int dirfd)
{
	int err = open_file(t, dirfd, t->ex->gzip ? "trace_view.json.gz" : "trace_view.json");

	if (err)
		return err;
	err = nps_trace__torch(t);
	if (!err)
		err = name_layers(t);
	if (!err)
		err = merge(t, UINT64_MAX);
	nps_trace__close_counters(t);
	if (!err)
		err = nps_trace__torch_to_npu(t);
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
		err = open_file(t, dirfd, name);
		if (err)
			return err;
		err = name_layers(t);
		if (!err)
			err = merge(t, sliced && number < SLICES ? SLICE : UINT64_MAX);
		if (earliest(t) == NPS_TRACE_SOURCES)
			nps_trace__close_counters(t);
		err = close_file(t, err);
		number++;
	} while (!err && earliest(t) < NPS_TRACE_SOURCES);
	return err;
}

static void init(struct nps_trace *t, const struct nps_export *ex)
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
	nps_vec__init(&t->pending, m->tmpfd, sizeof(struct nps_trace_pending));
	nps_vec__init(&t->following, m->tmpfd, sizeof(uint32_t));
	nps_vec__init(&t->iterations, m->tmpfd, 2 * sizeof(uint32_t));
	nps_vec__init(&t->sched_lanes, m->tmpfd, sizeof(uint32_t));
}

static void done(struct nps_trace *t)
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
	nps_map__free(&t->counted);
	nps_vec__free(&t->pending);
	nps_vec__free(&t->following);
	nps_vec__free(&t->iterations);
	nps_vec__free(&t->sched_lanes);
}

int nps_export__trace(const struct nps_export *ex, int dirfd)
{
	struct nps_trace t;
	int err;

	init(&t, ex);
	err = scan(&t);
	if (!err)
		add_sources(&t);
	if (!err)
		err = ex->model->layout == NPS_LAYOUT_TORCH ? write_torch(&t, dirfd)
							    : write_msprof(&t, dirfd);
	done(&t);
	return err;
}
