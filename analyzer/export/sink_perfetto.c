/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * npuscope.pftrace: the sink of the timeline for Perfetto. Host threads hold Python frames, operators and
 * CANN calls in one nesting; a device is a group of streams; collectives, overlap and counters have their
 * own groups. Flows lead from the call to the task.
 */
#include "clock/errors.h"
#include "export/export.h"

#include "base/map.h"
#include "export/pftrace_writer.h"
#include "export/run_names.h"
#include "export/timeline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Order of the groups on the page. */
enum { RANK_PROCESS, RANK_STEPS, RANK_DEVICE, RANK_COMM, RANK_OVERLAP, RANK_COUNTERS, RANK_CPU };

struct perfetto {
	const struct nps_model *m;
	struct nps_pftrace *w;
	struct nps_pace pace;
	uint64_t process, steps, collections, cpus; /* tracks */
	struct nps_counter_view counters;
	size_t compute, memcpy; /* next rows of details of tasks, which lie in the same order */
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
static uint64_t track_find(const struct perfetto *p, enum kind kind, uint64_t number)
{
	uint32_t row = nps_map__get(&p->rows, nps_hash2(kind, number));

	return row == NPS_NONE ? 0 : NPS_AT(&p->tracks, uint64_t, row);
}

static uint64_t track_remember(struct perfetto *p, enum kind kind, uint64_t number, uint64_t track)
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
	uint64_t track = track_find(p, kind, number);
	char text[96];

	if (track)
		return track;
	snprintf(text, sizeof(text), "%s %llu", name, (unsigned long long)shown);
	return track_remember(p, kind, number, nps_pftrace__track(p->w, parent, text, rank));
}

static const char *perfetto_text(const struct perfetto *p, uint32_t id)
{
	return nps_model__text(p->m, id);
}

static void slice(struct perfetto *p, uint64_t track, const struct nps_item *item, const char *category,
		  const char *name)
{
	nps_pftrace__slice(p->w, track, item->start, nps_item__length(item), category, name);
}

/* --- host ---------------------------------------------------------------------------------------------- */

/* The scheduler names threads: the last name of each counts, because most get theirs after their start. */
static void perfetto_name_threads(struct perfetto *p)
{
	const struct nps_run_table *t = &p->m->run;

	for (size_t i = 0; !p->err && i < t->t.len; i++) {
		if (t->comm[i] != NPS_NONE && nps_map__get(&p->threads, t->tid[i]) != t->comm[i])
			p->err = nps_map__put(&p->threads, t->tid[i], t->comm[i]);
		nps_pace__step(&p->pace);
	}
}

static const char *perfetto_thread_name(const struct perfetto *p, uint32_t tid)
{
	uint32_t name = nps_map__get(&p->threads, tid);

	return perfetto_text(p, name == NPS_NONE && tid == p->m->pid ? p->m->process : name);
}

static uint64_t thread_track(struct perfetto *p, uint64_t gtid)
{
	uint64_t track = track_find(p, THREAD, gtid);
	uint32_t tid = gtid & UINT32_MAX;

	if (track)
		return track;
	if (tid > INT32_MAX) /* no thread of a Linux system: an imported number */
		return numbered(p, THREAD, gtid, p->process, "Thread", tid, 0);
	return track_remember(p, THREAD, gtid,
			      nps_pftrace__thread(p->w, p->process, (int32_t)tid,
						  perfetto_thread_name(p, tid), 0));
}

static void perfetto_call(struct perfetto *p, const struct nps_item *item)
{
	const struct nps_api_table *t = &p->m->api;
	const char *ending = nps_call__ending(t->ending[item->row]);

	slice(p, thread_track(p, item->lane), item, "cann", perfetto_text(p, item->name));
	if (t->item[item->row] != NPS_NONE)
		nps_pftrace__arg_text(p->w, "item", perfetto_text(p, t->item[item->row]));
	if (item->connection != NPS_NO_ID) {
		nps_pftrace__arg_u64(p->w, "connection_id", item->connection);
		nps_pftrace__flow(p->w, item->connection);
	}
	if (ending)
		nps_pftrace__arg_text(p->w, "end", ending);
}

static void perfetto_torch(struct perfetto *p, const struct nps_item *item)
{
	const struct nps_torch_table *t = &p->m->torch;
	uint32_t row = item->row;

	if (nps_model__is_step_mark(p->m, row))
		return; /* perfetto_step() writes it */
	slice(p, thread_track(p, item->lane), item, item->kind == NPS_ITEM_PYTHON ? "python" : "cpu_op",
	      perfetto_text(p, item->name));
	if (t->input_shapes[row] != NPS_NONE)
		nps_pftrace__arg_text(p->w, "Input Dims", perfetto_text(p, t->input_shapes[row]));
	if (t->input_types[row] != NPS_NONE)
		nps_pftrace__arg_text(p->w, "Input type", perfetto_text(p, t->input_types[row]));
	if (t->sequence[row] != NPS_NULL && t->sequence[row] >= 0)
		nps_pftrace__arg_i64(p->w, "Sequence number", t->sequence[row]);
	if (nps_call__ending(t->ending[row]))
		nps_pftrace__arg_text(p->w, "end", nps_call__ending(t->ending[row]));
}

/* Enqueue and dequeue overlap operators without nesting in them: they get lanes of their own. */
static void perfetto_queue(struct perfetto *p, const struct nps_item *item)
{
	int64_t correlation = p->m->torch.correlation[item->row];

	slice(p,
	      numbered(p, LANE, nps_hash2(1, item->lane), p->process, "Task queue of thread",
		       nps_item__tid(item), 1),
	      item, "queue", perfetto_text(p, item->name));
	if (correlation < 0 || correlation > UINT32_MAX)
		return;
	nps_pftrace__arg_i64(p->w, "correlation_id", correlation);
	nps_pftrace__flow(p->w, QUEUE_FLOW + (uint64_t)correlation);
}

static void system_call(struct perfetto *p, const struct nps_item *item)
{
	slice(p,
	      numbered(p, SYSCALLS, item->lane, p->process, "System calls of thread", nps_item__tid(item), 2),
	      item, "osrt", perfetto_text(p, item->name));
	if (p->m->osrt.unfinished[item->row])
		nps_pftrace__arg_text(p->w, "end", nps_call__ending(NPS_ENDING_UNFINISHED));
}

static void perfetto_running(struct perfetto *p, const struct nps_item *item)
{
	uint32_t cpu = nps_item__device(item);
	char name[96];

	snprintf(name, sizeof(name), "%.60s:%u",
		 item->name == NPS_NONE ? "unknown" : perfetto_text(p, item->name), nps_item__tid(item));
	slice(p, numbered(p, CPU, cpu, p->cpus, "CPU", cpu, (int32_t)NPS_MIN(cpu, 4096U)), item, "sched",
	      name);
}

static void mark(struct perfetto *p, const struct nps_item *item)
{
	uint32_t domain = p->m->mstx.domain[item->row];
	uint64_t track = track_find(p, MSTX, domain);

	if (!track)
		track = track_remember(
			p, MSTX, domain,
			nps_pftrace__track(p->w, p->process,
					   domain == NPS_NONE ? "MsTx" : perfetto_text(p, domain), 4));
	if (nps_item__length(item))
		slice(p, track, item, "mstx", perfetto_text(p, item->name));
	else
		nps_pftrace__instant(p->w, track, item->start, "mstx", perfetto_text(p, item->name));
}

static void perfetto_step(struct perfetto *p, const struct nps_item *item)
{
	char name[48];

	snprintf(name, sizeof(name), "ProfilerStep#%lld", (long long)p->m->step.id[item->row]);
	slice(p, p->steps, item, "step", name);
}

/* --- device -------------------------------------------------------------------------------------------- */

static const char *source_name(uint8_t source)
{
	return source == NPS_TIME_DEVICE_LOG ? "device log" : "host bounds";
}

static void compute_args(struct perfetto *p, uint32_t task)
{
	const struct nps_compute_table *t = &p->m->compute;
	size_t i;

	while (p->compute < t->t.len && t->task[p->compute] < task)
		p->compute++;
	i = p->compute;
	if (i == t->t.len || t->task[i] != task)
		return;
	nps_pftrace__arg_text(p->w, "Type", nps_model__text_or_na(p->m, t->type[i]));
	if (t->input_shapes[i] != NPS_NONE)
		nps_pftrace__arg_text(p->w, "Input Shapes", perfetto_text(p, t->input_shapes[i]));
}

static void memcpy_args(struct perfetto *p, uint32_t task)
{
	const struct nps_memcpy_table *t = &p->m->memcpy;

	while (p->memcpy < t->t.len && t->task[p->memcpy] < task)
		p->memcpy++;
	if (p->memcpy < t->t.len && t->task[p->memcpy] == task && t->size[p->memcpy] != NPS_NULL)
		nps_pftrace__arg_i64(p->w, "size(B)", t->size[p->memcpy]);
}

static void task_args(struct perfetto *p, const struct nps_item *item)
{
	const struct nps_task_table *t = &p->m->task;
	uint32_t row = item->row;
	int64_t error = -1;

	nps_pftrace__arg_text(p->w, "Task Type", perfetto_text(p, t->hw_type[row]));
	nps_pftrace__arg_u64(p->w, "Task Id", t->task[row]);
	if (t->source[row] != NPS_TIME_IMPORTED)
		nps_pftrace__arg_text(p->w, "time_source", source_name(t->source[row]));
	if (t->source[row] == NPS_TIME_DEVICE_LOG)
		error = nps_clock_error_at(p->m, nps_item__device(item), item->start);
	if (error >= 0)
		nps_pftrace__arg_i64(p->w, "clock_error_ns", error);
	compute_args(p, row);
	memcpy_args(p, row);
}

static void task(struct perfetto *p, const struct nps_item *item)
{
	uint32_t device = nps_item__device(item), stream = nps_item__tid(item);
	uint64_t npu = numbered(p, NPU, device, 0, "Ascend Hardware NPU", device, RANK_DEVICE);

	slice(p, numbered(p, STREAM, item->lane, npu, "Stream", stream, (int32_t)NPS_MIN(stream, 65535U)),
	      item, "npu", perfetto_text(p, item->name));
	task_args(p, item);
	/* The call of a collective leads to the collective. */
	if (item->connection != NPS_NO_ID && p->m->task.class[item->row] != NPS_CLASS_COMM)
		nps_pftrace__flow(p->w, item->connection);
}

/* The track of the group whose lane ITEM has. */
static uint64_t group_track(struct perfetto *p, const struct nps_item *item)
{
	uint32_t device = nps_item__device(item);
	uint64_t npu, track = track_find(p, GROUP, item->lane);
	char name[160];

	if (track)
		return track;
	npu = numbered(p, COMM_NPU, device, 0, "Communication NPU", device, RANK_COMM);
	snprintf(name, sizeof(name), "Group %.120s", nps_model__text_or_na(p->m, nps_item__tid(item)));
	return track_remember(p, GROUP, item->lane, nps_pftrace__track(p->w, npu, name, 0));
}

static void perfetto_collective(struct perfetto *p, const struct nps_item *item)
{
	int64_t count = p->m->comm_op.count[item->row];

	slice(p, group_track(p, item), item, "communication", perfetto_text(p, item->name));
	if (count != NPS_NULL)
		nps_pftrace__arg_i64(p->w, "count", count);
	if (item->connection != NPS_NO_ID)
		nps_pftrace__flow(p->w, item->connection);
}

/* The track of a collective's tasks on PLANE; level 0 does not report it. */
static uint64_t plane_track(struct perfetto *p, const struct nps_item *item, int64_t plane)
{
	bool reported = plane >= 0 && plane < NPS_NONE;
	uint64_t number = nps_hash2(item->lane, reported ? (uint64_t)plane : NPS_NONE),
		 track = track_find(p, PLANE, number), parent;

	if (track)
		return track;
	parent = group_track(p, item);
	if (reported)
		return numbered(p, PLANE, number, parent, "Plane", (uint64_t)plane,
				(int32_t)NPS_MIN(plane, 65535));
	return track_remember(p, PLANE, number, nps_pftrace__track(p->w, parent, "Tasks", 65536));
}

static void perfetto_collective_task(struct perfetto *p, const struct nps_item *item)
{
	const struct nps_comm_task_table *t = &p->m->comm_task;

	slice(p, plane_track(p, item, t->plane[item->row]), item, "communication",
	      perfetto_text(p, item->name));
	if (t->size[item->row] >= 0)
		nps_pftrace__arg_i64(p->w, "size(Byte)", t->size[item->row]);
}

static void overlap(struct perfetto *p, const struct nps_item *item)
{
	uint32_t device = nps_item__device(item), type = nps_item__tid(item);
	uint64_t npu = numbered(p, OVERLAP, device, 0, "Overlap Analysis NPU", device, RANK_OVERLAP);
	uint64_t track = track_find(p, LANE, item->lane);

	if (type >= NPS_OVERLAP_TYPES)
		return;
	if (!track)
		track = track_remember(p, LANE, item->lane,
				       nps_pftrace__track(p->w, npu, nps_overlap_names[type], (int32_t)type));
	slice(p, track, item, "overlap", nps_overlap_names[type]);
}

/* --- counters ------------------------------------------------------------------------------------------ */

/* A sample of counter NAME, of DEVICE (NPS_NONE: of the host). */
static void sample(struct perfetto *p, uint32_t device, const char *name, const char *unit, uint64_t ts,
		   double value)
{
	uint64_t group = track_find(p, COUNTERS, device),
		 number = nps_hash2(device, nps_hash_bytes(name, strlen(name))), counter;
	char title[64];

	if (!isfinite(value))
		return;
	if (!group) {
		snprintf(title, sizeof(title), device == NPS_NONE ? "Host counters" : "Counters NPU %u",
			 device);
		group = track_remember(p, COUNTERS, device,
				       nps_pftrace__track(p->w, 0, title, RANK_COUNTERS));
	}
	counter = track_find(p, COUNTER, number);
	if (!counter)
		counter =
			track_remember(p, COUNTER, number, nps_pftrace__counter(p->w, group, name, unit, 0));
	nps_pftrace__value(p->w, counter, ts, value);
}

#define LONGEST 64 /* bytes of a text in the name of a track */

/* The counters of a row of samples. */
static void samples_of(struct perfetto *p, const struct nps_item *item)
{
	const struct nps_counter_table *table = item->table;
	uint32_t device = nps_counter_table__device(p->m, table, item->row);
	char name[256];

	for (size_t i = 0; i < table->len; i++) {
		double value;

		if (!table->counters[i].track)
			continue;
		value = nps_counter__value(&p->counters, table, i, item->row);
		if (isnan(value))
			continue;
		nps_counter__name(&p->counters, table, i, NPS_PATTERN_TRACK, item->row, LONGEST, name,
				  sizeof(name));
		sample(p, device, name, table->counters[i].unit, item->start, value);
	}
}

/* --- all ----------------------------------------------------------------------------------------------- */

#define WANTED                                                                                               \
	(NPS_ITEM(PYTHON) | NPS_ITEM(OPERATOR) | NPS_ITEM(TORCH_MARK) | NPS_ITEM(CALL) | NPS_ITEM(TASK) |    \
	 NPS_ITEM(COLLECTIVE) | NPS_ITEM(COLLECTIVE_TASK) | NPS_ITEM(OVERLAP) | NPS_ITEM(SYSTEM_CALL) |      \
	 NPS_ITEM(MARK) | NPS_ITEM(SAMPLE) | NPS_ITEM(RUNNING) | NPS_ITEM(STEP) | NPS_ITEM(COLLECTION) |     \
	 NPS_ITEM(QUEUE))

static void perfetto_write_item(struct perfetto *p, const struct nps_item *item)
{
	switch (item->kind) {
	case NPS_ITEM_PYTHON:
	case NPS_ITEM_OPERATOR:
	case NPS_ITEM_TORCH_MARK:
		perfetto_torch(p, item);
		break;
	case NPS_ITEM_CALL:
		perfetto_call(p, item);
		break;
	case NPS_ITEM_TASK:
		task(p, item);
		break;
	case NPS_ITEM_COLLECTIVE:
		perfetto_collective(p, item);
		break;
	case NPS_ITEM_COLLECTIVE_TASK:
		perfetto_collective_task(p, item);
		break;
	case NPS_ITEM_OVERLAP:
		overlap(p, item);
		break;
	case NPS_ITEM_SYSTEM_CALL:
		system_call(p, item);
		break;
	case NPS_ITEM_MARK:
		mark(p, item);
		break;
	case NPS_ITEM_SAMPLE:
		samples_of(p, item);
		break;
	case NPS_ITEM_RUNNING:
		perfetto_running(p, item);
		break;
	case NPS_ITEM_STEP:
		perfetto_step(p, item);
		break;
	case NPS_ITEM_COLLECTION:
		slice(p, p->collections, item, "gc", "GC");
		break;
	case NPS_ITEM_QUEUE:
		perfetto_queue(p, item);
		break;
	default: /* not wanted */
		break;
	}
}

static void perfetto_write_items(struct perfetto *p)
{
	struct nps_timeline timeline;
	struct nps_item item;
	int err;

	nps_timeline__open(&timeline, p->m, WANTED);
	while (!p->err && nps_timeline__next(&timeline, &item))
		perfetto_write_item(p, &item);
	err = nps_timeline__close(&timeline);
	p->err = p->err ? p->err : err;
}

static void perfetto_write_all(struct perfetto *p)
{
	const struct nps_pftrace_clock now = { NPS_PFTRACE_REALTIME, p->m->start };
	const char *name = p->m->process == NPS_NONE ? "process" : perfetto_text(p, p->m->process);

	nps_pftrace__clocks(p->w, &now, 1);
	if (p->m->pid > INT32_MAX)
		p->process = nps_pftrace__track(p->w, 0, name, RANK_PROCESS);
	else
		p->process = nps_pftrace__process(p->w, (int32_t)p->m->pid, name, RANK_PROCESS);
	perfetto_name_threads(p);
	if (p->m->step.t.len)
		p->steps = nps_pftrace__track(p->w, 0, "Steps", RANK_STEPS);
	if (p->m->gc.t.len)
		p->collections = nps_pftrace__track(p->w, p->process, "Python GC", 3);
	if (p->m->run.t.len)
		p->cpus = nps_pftrace__track(p->w, 0, "CPUs", RANK_CPU);
	perfetto_write_items(p);
}

int nps_export__perfetto(const struct nps_export *ex, int dirfd)
{
	struct perfetto p = { .m = ex->model, .pace = { .model = ex->model } };
	int err = nps_counter_view__init(&p.counters, ex->model, false);

	nps_vec__init(&p.tracks, ex->model->tmpfd, sizeof(uint64_t));
	err = err ? err : nps_pftrace__open(&p.w, dirfd, "npuscope.pftrace");
	if (err)
		goto out;
	perfetto_write_all(&p);
	if (nps_pftrace__crowded(p.w))
		nps_msg("npuscope.pftrace: %llu slices overlap too many others: they are instants",
			(unsigned long long)nps_pftrace__crowded(p.w));
	err = nps_pftrace__close(p.w);
out:
	nps_counter_view__free(&p.counters);
	nps_vec__free(&p.tracks);
	nps_map__free(&p.rows);
	nps_map__free(&p.threads);
	return p.err ? p.err : err;
}
