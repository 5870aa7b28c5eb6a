/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * npuscope.pftrace: the model as Perfetto shows it best. Host threads hold Python frames, operators and CANN calls in one
 * nesting; a device is a group of streams; collectives, overlap and counters have their own groups. Flows lead
 * from the call to the task.
 */
#include "clock/errors.h"
#include "export/export.h"

#include "base/map.h"
#include "export/host_rows.h"
#include "export/pftrace_writer.h"
#include "export/run_names.h"
#include "export/counters.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Order of the groups on the page. */
enum { RANK_PROCESS, RANK_STEPS, RANK_DEVICE, RANK_COMM, RANK_OVERLAP, RANK_COUNTERS, RANK_CPU };

struct perfetto {
	const struct nps_model *m;
	struct nps_pftrace *w;
	struct nps_pace pace;
	uint64_t process;
	struct nps_map rows; /* what a track stands for, see track_of() -> row of tracks */
	struct nps_vec tracks; /* uint64_t */
	struct nps_map threads; /* tid -> text: its name */
	int err;
};

/* What a track stands for: a kind and a number within it. */
enum kind {
	THREAD = 1,
	SYSCALLS,
	NPU,
	STREAM,
	GROUP,
	PLANE,
	COMM_NPU,
	OVERLAP,
	LANE,
	COUNTERS,
	COUNTER,
	CPU,
	MSTX
};

/* Ids of flows: those of calls are their connections, 32 bits. */
#define QUEUE_FLOW (1ULL << 32) /* + the queue's own number */

/* The track of (KIND, NUMBER), 0 if it has not been made. */
static uint64_t known(const struct perfetto *p, enum kind kind, uint64_t number)
{
	uint32_t row = nps_map__get(&p->rows, nps_hash2(kind, number));

	return row == NPS_NONE ? 0 : NPS_AT(&p->tracks, uint64_t, row);
}

static uint64_t remember(struct perfetto *p, enum kind kind, uint64_t number, uint64_t track)
{
	uint64_t *slot = nps_vec__push(&p->tracks);

	if (!slot || nps_map__put(&p->rows, nps_hash2(kind, number), p->tracks.len - 1)) {
		p->err = -ENOMEM;
		return 0;
	}
	return *slot = track;
}

/* The track of (KIND, NUMBER) below PARENT, named NAME and the number SHOWN. */
static uint64_t numbered(struct perfetto *p, enum kind kind, uint64_t number, uint64_t parent,
			 const char *name, uint64_t shown, int32_t rank)
{
	uint64_t track = known(p, kind, number);
	char text[96];

	if (track)
		return track;
	snprintf(text, sizeof(text), "%s %llu", name, (unsigned long long)shown);
	return remember(p, kind, number, nps_pftrace__track(p->w, parent, text, rank));
}

static const char *text(const struct perfetto *p, uint32_t id)
{
	return nps_model__text(p->m, id);
}

static uint64_t length(uint64_t start, uint64_t end)
{
	return end > start ? end - start : 0;
}

/* --- host ---------------------------------------------------------------------------------------------- */

/* The scheduler names threads: the last name of each counts, because most get theirs after their start. */
static void name_threads(struct perfetto *p)
{
	const struct nps_run_table *t = &p->m->run;

	for (size_t i = 0; !p->err && i < t->t.len; i++) {
		if (t->comm[i] != NPS_NONE && nps_map__get(&p->threads, t->tid[i]) != t->comm[i])
			p->err = nps_map__put(&p->threads, t->tid[i], t->comm[i]);
		nps_pace__step(&p->pace);
	}
}

static const char *thread_name(const struct perfetto *p, uint32_t tid)
{
	uint32_t name = nps_map__get(&p->threads, tid);

	return text(p, name == NPS_NONE && tid == p->m->pid ? p->m->process : name);
}

static uint64_t thread_track(struct perfetto *p, uint64_t gtid)
{
	uint64_t track = known(p, THREAD, gtid);
	uint32_t tid = gtid & UINT32_MAX;

	if (track)
		return track;
	if (tid > INT32_MAX) /* no thread of a Linux system: an imported number */
		return numbered(p, THREAD, gtid, p->process, "Thread", tid, 0);
	return remember(p, THREAD, gtid,
			nps_pftrace__thread(p->w, p->process, (int32_t)tid, thread_name(p, tid), 0));
}

static void api_row(struct perfetto *p, size_t i)
{
	const struct nps_api_table *t = &p->m->api;

	nps_pftrace__slice(p->w, thread_track(p, t->gtid[i]), t->start[i], length(t->start[i], t->end[i]),
			   "cann", text(p, t->name[i]));
	if (t->item[i] != NPS_NONE)
		nps_pftrace__arg_text(p->w, "item", text(p, t->item[i]));
	if (t->connection[i] != NPS_NO_ID) {
		nps_pftrace__arg_u64(p->w, "connection_id", t->connection[i]);
		nps_pftrace__flow(p->w, t->connection[i]);
	}
	if (nps_call__ending(t->ending[i]))
		nps_pftrace__arg_text(p->w, "end", nps_call__ending(t->ending[i]));
}

static const char *torch_category(uint32_t type)
{
	return type == NPS_API_TORCH_QUEUE ? "queue" : type == NPS_API_PYTHON ? "python" : "cpu_op";
}

static void torch_row(struct perfetto *p, size_t i)
{
	const struct nps_torch_table *t = &p->m->torch;

	if (!t->start[i])
		return;
	nps_pftrace__slice(p->w, thread_track(p, t->gtid[i]), t->start[i], length(t->start[i], t->end[i]),
			   torch_category(t->type[i]), text(p, t->name[i]));
	if (t->input_shapes[i] != NPS_NONE)
		nps_pftrace__arg_text(p->w, "Input Dims", text(p, t->input_shapes[i]));
	if (t->input_types[i] != NPS_NONE)
		nps_pftrace__arg_text(p->w, "Input type", text(p, t->input_types[i]));
	if (t->sequence[i] != NPS_NULL && t->sequence[i] >= 0)
		nps_pftrace__arg_i64(p->w, "Sequence number", t->sequence[i]);
}

static void host_threads(struct perfetto *p)
{
	struct nps_host_rows rows;
	bool api;
	size_t i;
	int err;

	nps_host_rows__begin(&rows, p->m, true);
	while (!p->err && nps_host_rows__next(&rows, &api, &i)) {
		if (api)
			api_row(p, i);
		else
			torch_row(p, i);
	}
	err = nps_host_rows__end(&rows);
	p->err = p->err ? p->err : err;
}

/* Enqueue and dequeue overlap operators without nesting in them: they get lanes of their own. */
static void queues(struct perfetto *p)
{
	struct nps_rows rows = nps_model__torch_rows(p->m, NPS_API_TORCH_QUEUE);

	for (size_t i = rows.begin; !p->err && i < rows.end; i++) {
		const struct nps_torch_table *t = &p->m->torch;
		uint64_t lane;

		nps_pace__step(&p->pace);
		if (!t->start[i]) /* one side was not recorded */
			continue;
		lane = numbered(p, LANE, nps_hash2(1, t->gtid[i]), p->process, "Task queue of thread",
				t->gtid[i] & UINT32_MAX, 1);
		nps_pftrace__slice(p->w, lane, t->start[i], length(t->start[i], t->end[i]), "queue",
				   text(p, t->name[i]));
		if (t->correlation[i] < 0 || t->correlation[i] > UINT32_MAX)
			continue;
		nps_pftrace__arg_i64(p->w, "correlation_id", t->correlation[i]);
		nps_pftrace__flow(p->w, QUEUE_FLOW + (uint64_t)t->correlation[i]);
	}
}

static void system_calls(struct perfetto *p)
{
	const struct nps_osrt_table *t = &p->m->osrt;

	for (size_t i = 0; !p->err && i < t->t.len; i++) {
		uint64_t lane = numbered(p, SYSCALLS, t->gtid[i], p->process, "System calls of thread",
					 t->gtid[i] & UINT32_MAX, 2);

		nps_pftrace__slice(p->w, lane, t->start[i], length(t->start[i], t->end[i]), "osrt",
				   text(p, t->name[i]));
		if (t->unfinished[i])
			nps_pftrace__arg_text(p->w, "end", nps_call__ending(NPS_ENDING_UNFINISHED));
		nps_pace__step(&p->pace);
	}
}

static void cpus(struct perfetto *p)
{
	const struct nps_run_table *t = &p->m->run;
	uint64_t group = t->t.len ? nps_pftrace__track(p->w, 0, "CPUs", RANK_CPU) : 0;

	for (size_t i = 0; !p->err && i < t->t.len; i++) {
		char name[96];

		if (!nps_run__ran(p->m, i))
			continue;
		snprintf(name, sizeof(name), "%.60s:%u",
			 t->comm[i] == NPS_NONE ? "unknown" : text(p, t->comm[i]), t->tid[i]);
		nps_pftrace__slice(p->w,
				   numbered(p, CPU, t->cpu[i], group, "CPU", t->cpu[i],
					    (int32_t)NPS_MIN(t->cpu[i], 4096U)),
				   t->start[i], length(t->start[i], t->end[i]), "sched", name);
		nps_pace__step(&p->pace);
	}
}

static void collections(struct perfetto *p)
{
	const struct nps_gc_table *t = &p->m->gc;
	uint64_t track = t->t.len ? nps_pftrace__track(p->w, p->process, "Python GC", 3) : 0;

	for (size_t i = 0; i < t->t.len; i++)
		nps_pftrace__slice(p->w, track, t->start[i], length(t->start[i], t->end[i]), "gc", "GC");
}

static void marks(struct perfetto *p)
{
	const struct nps_mstx_table *t = &p->m->mstx;

	for (size_t i = 0; !p->err && i < t->t.len; i++) {
		uint64_t track = known(p, MSTX, t->domain[i]);

		if (!track) {
			const char *domain = t->domain[i] == NPS_NONE ? "MsTx" : text(p, t->domain[i]);

			track = remember(p, MSTX, t->domain[i],
					 nps_pftrace__track(p->w, p->process, domain, 4));
		}
		if (t->end[i] > t->start[i])
			nps_pftrace__slice(p->w, track, t->start[i], t->end[i] - t->start[i], "mstx",
					   text(p, t->message[i]));
		else
			nps_pftrace__instant(p->w, track, t->start[i], "mstx", text(p, t->message[i]));
		nps_pace__step(&p->pace);
	}
}

static void steps(struct perfetto *p)
{
	const struct nps_step_table *t = &p->m->step;
	uint64_t track = t->t.len ? nps_pftrace__track(p->w, 0, "Steps", RANK_STEPS) : 0;

	for (size_t i = 0; i < t->t.len; i++) {
		char name[48];

		snprintf(name, sizeof(name), "ProfilerStep#%lld", (long long)t->id[i]);
		nps_pftrace__slice(p->w, track, t->start[i], length(t->start[i], t->end[i]), "step", name);
	}
}

/* --- device -------------------------------------------------------------------------------------------- */

static const char *source(uint8_t source)
{
	return source == NPS_TIME_DEVICE_LOG ? "device log" : "host bounds";
}

/* Details lie beside the tasks, in the same order. */
struct details {
	size_t compute, memcpy;
};

static void task_args(struct perfetto *p, size_t i, struct details *d)
{
	const struct nps_model *m = p->m;
	int64_t error = -1;

	nps_pftrace__arg_text(p->w, "Task Type", text(p, m->task.hw_type[i]));
	nps_pftrace__arg_u64(p->w, "Task Id", m->task.task[i]);
	if (m->task.source[i] != NPS_TIME_IMPORTED)
		nps_pftrace__arg_text(p->w, "time_source", source(m->task.source[i]));
	if (m->task.source[i] == NPS_TIME_DEVICE_LOG)
		error = nps_clock_error_at(m, m->task.device[i], m->task.start[i]);
	if (error >= 0)
		nps_pftrace__arg_i64(p->w, "clock_error_ns", error);
	while (d->compute < m->compute.t.len && m->compute.task[d->compute] < i)
		d->compute++;
	if (d->compute < m->compute.t.len && m->compute.task[d->compute] == i) {
		nps_pftrace__arg_text(p->w, "Type", nps_model__text_or_na(m, m->compute.type[d->compute]));
		if (m->compute.input_shapes[d->compute] != NPS_NONE)
			nps_pftrace__arg_text(p->w, "Input Shapes",
					      text(p, m->compute.input_shapes[d->compute]));
	}
	while (d->memcpy < m->memcpy.t.len && m->memcpy.task[d->memcpy] < i)
		d->memcpy++;
	if (d->memcpy < m->memcpy.t.len && m->memcpy.task[d->memcpy] == i &&
	    m->memcpy.size[d->memcpy] != NPS_NULL)
		nps_pftrace__arg_i64(p->w, "size(B)", m->memcpy.size[d->memcpy]);
}

static void tasks(struct perfetto *p)
{
	const struct nps_task_table *t = &p->m->task;
	struct details details = { 0 };

	for (size_t i = 0; !p->err && i < t->t.len; i++) {
		uint64_t npu, stream;

		nps_pace__step(&p->pace);
		if (t->class[i] == NPS_CLASS_PARENT)
			continue;
		npu = numbered(p, NPU, t->device[i], 0, "Ascend Hardware NPU", t->device[i], RANK_DEVICE);
		stream = numbered(p, STREAM, (uint64_t)t->device[i] << 32 | t->stream[i], npu, "Stream",
				  t->stream[i], (int32_t)NPS_MIN(t->stream[i], 65535U));
		nps_pftrace__slice(p->w, stream, t->start[i], length(t->start[i], t->end[i]), "npu",
				   text(p, t->name[i]));
		task_args(p, i, &details);
		/* The call of a collective leads to the collective. */
		if (t->connection[i] != NPS_NO_ID && t->class[i] != NPS_CLASS_COMM)
			nps_pftrace__flow(p->w, t->connection[i]);
	}
}

static uint64_t comm_lane(struct perfetto *p, uint32_t device, uint32_t group)
{
	uint64_t number = (uint64_t)device << 32 | group, npu, track = known(p, GROUP, number);
	char name[160];

	if (track)
		return track;
	npu = numbered(p, COMM_NPU, device, 0, "Communication NPU", device, RANK_COMM);
	snprintf(name, sizeof(name), "Group %.120s", nps_model__text_or_na(p->m, group));
	return remember(p, GROUP, number, nps_pftrace__track(p->w, npu, name, 0));
}

static void collectives(struct perfetto *p)
{
	const struct nps_comm_op_table *t = &p->m->comm_op;

	for (size_t i = 0; !p->err && i < t->t.len; i++) {
		nps_pftrace__slice(p->w, comm_lane(p, t->device[i], t->group[i]), t->start[i],
				   length(t->start[i], t->end[i]), "communication", text(p, t->name[i]));
		if (t->count[i] != NPS_NULL)
			nps_pftrace__arg_i64(p->w, "count", t->count[i]);
		if (t->connection[i] != NPS_NO_ID)
			nps_pftrace__flow(p->w, t->connection[i]);
		nps_pace__step(&p->pace);
	}
}

/* The row of a collective's tasks on PLANE; level 0 does not tell theirs. */
static uint64_t plane_lane(struct perfetto *p, uint32_t device, uint32_t group, int64_t plane)
{
	bool told = plane >= 0 && plane < NPS_NONE;
	uint64_t number = nps_hash2((uint64_t)device << 32 | group, told ? (uint64_t)plane : NPS_NONE),
		 lane = known(p, PLANE, number), parent;

	if (lane)
		return lane;
	parent = comm_lane(p, device, group);
	if (told)
		return numbered(p, PLANE, number, parent, "Plane", (uint64_t)plane,
				(int32_t)NPS_MIN(plane, 65535));
	return remember(p, PLANE, number, nps_pftrace__track(p->w, parent, "Tasks", 65536));
}

static void collective_tasks(struct perfetto *p)
{
	const struct nps_comm_task_table *t = &p->m->comm_task;

	for (size_t i = 0; !p->err && i < t->t.len; i++) {
		uint32_t task = t->task[i];

		nps_pftrace__slice(p->w, plane_lane(p, p->m->task.device[task], t->group[i], t->plane[i]),
				   p->m->task.start[task],
				   length(p->m->task.start[task], p->m->task.end[task]), "communication",
				   text(p, t->type[i]));
		if (t->size[i] >= 0)
			nps_pftrace__arg_i64(p->w, "size(Byte)", t->size[i]);
		nps_pace__step(&p->pace);
	}
}

static void overlap(struct perfetto *p)
{
	static const char *const names[] = { "Computing", "Communication", "Communication(Not Overlapped)",
					     "Free" };
	const struct nps_overlap_table *t = &p->m->overlap;

	for (size_t i = 0; !p->err && i < t->t.len; i++) {
		uint64_t npu = numbered(p, OVERLAP, t->device[i], 0, "Overlap Analysis NPU", t->device[i],
					RANK_OVERLAP);
		uint64_t number = (uint64_t)t->device[i] << 32 | t->type[i], lane = known(p, LANE, number);

		nps_pace__step(&p->pace);
		if (t->type[i] >= NPS_ARRAY_SIZE(names))
			continue;
		if (!lane)
			lane = remember(p, LANE, number,
					nps_pftrace__track(p->w, npu, names[t->type[i]],
							   (int32_t)t->type[i]));
		nps_pftrace__slice(p->w, lane, t->start[i], length(t->start[i], t->end[i]), "overlap",
				   names[t->type[i]]);
	}
}

/* --- counters ------------------------------------------------------------------------------------------ */

/* A sample of counter NAME, of DEVICE (NPS_NONE: of the host). */
static void sample(struct perfetto *p, uint32_t device, const char *name, const char *unit, uint64_t ts,
		   double value)
{
	uint64_t group = known(p, COUNTERS, device),
		 number = nps_hash2(device, nps_hash_bytes(name, strlen(name))), counter;
	char title[64];

	nps_pace__step(&p->pace);
	if (!isfinite(value))
		return;
	if (!group) {
		snprintf(title, sizeof(title), device == NPS_NONE ? "Host counters" : "Counters NPU %u",
			 device);
		group = remember(p, COUNTERS, device, nps_pftrace__track(p->w, 0, title, RANK_COUNTERS));
	}
	counter = known(p, COUNTER, number);
	if (!counter)
		counter = remember(p, COUNTER, number, nps_pftrace__counter(p->w, group, name, unit, 0));
	nps_pftrace__value(p->w, counter, ts, value);
}

#define LONGEST 64 /* bytes of a text in the name of a track */

/* The counters of a row of samples. */
static void samples_of(struct perfetto *p, const struct nps_counter_view *x,
		       const struct nps_counter_table *table, size_t row)
{
	uint32_t device = nps_counter_table__device(p->m, table, row);
	uint64_t time = nps_counter_table__times(p->m, table)[row];
	char name[256];

	for (size_t i = 0; time && i < table->len; i++) {
		double value;

		if (!table->counters[i].track)
			continue;
		value = nps_counter__value(x, table, i, row);
		if (isnan(value))
			continue;
		nps_counter__name(x, table, i, NPS_PATTERN_TRACK, row, LONGEST, name, sizeof(name));
		sample(p, device, name, table->counters[i].unit, time, value);
	}
}

static void counters(struct perfetto *p)
{
	struct nps_counter_view x;

	p->err = nps_counter_view__init(&x, p->m, false);
	for (size_t k = 0; !p->err && k < NPS_COUNTER_TABLES; k++) {
		const struct nps_table *rows = nps_counter_table__of(p->m, &nps_counter_tables[k]);

		for (size_t i = 0; !p->err && i < rows->len; i++) {
			nps_pace__step(&p->pace);
			samples_of(p, &x, &nps_counter_tables[k], i);
		}
	}
	nps_counter_view__free(&x);
}

static void write_all(struct perfetto *p)
{
	const struct nps_pftrace_clock now = { NPS_PFTRACE_REALTIME, p->m->start };
	const char *name = p->m->process == NPS_NONE ? "process" : text(p, p->m->process);

	nps_pftrace__clocks(p->w, &now, 1);
	if (p->m->pid > INT32_MAX)
		p->process = nps_pftrace__track(p->w, 0, name, RANK_PROCESS);
	else
		p->process = nps_pftrace__process(p->w, (int32_t)p->m->pid, name, RANK_PROCESS);
	name_threads(p);
	steps(p);
	host_threads(p);
	queues(p);
	system_calls(p);
	collections(p);
	marks(p);
	tasks(p);
	collectives(p);
	collective_tasks(p);
	overlap(p);
	counters(p);
	cpus(p);
}

int nps_export__perfetto(const struct nps_export *ex, int dirfd)
{
	struct perfetto p = { .m = ex->model, .pace = { .model = ex->model } };
	int err;

	nps_vec__init(&p.tracks, ex->model->tmpfd, sizeof(uint64_t));
	err = nps_pftrace__open(&p.w, dirfd, "npuscope.pftrace");
	if (!err) {
		write_all(&p);
		if (nps_pftrace__crowded(p.w))
			nps_msg("npuscope.pftrace: %llu slices overlap too many others: they are instants",
				(unsigned long long)nps_pftrace__crowded(p.w));
		err = nps_pftrace__close(p.w);
	}
	nps_vec__free(&p.tracks);
	nps_map__free(&p.rows);
	nps_map__free(&p.threads);
	return p.err ? p.err : err;
}
