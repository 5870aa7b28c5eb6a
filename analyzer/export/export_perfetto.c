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

static void memory_counters(struct perfetto *p)
{
	const struct nps_model *m = p->m;
	char name[128];

	for (size_t i = 0; i < m->hbm.t.len; i++) {
		snprintf(name, sizeof(name), "HBM %u %.32s", m->hbm.id[i], text(p, m->hbm.type[i]));
		sample(p, m->hbm.device[i], name, "B/s", m->hbm.timestamp[i], m->hbm.bandwidth[i]);
	}
	for (size_t i = 0; i < m->ddr.t.len; i++) {
		sample(p, m->ddr.device[i], "DDR read", "B/s", m->ddr.timestamp[i], m->ddr.read[i]);
		sample(p, m->ddr.device[i], "DDR write", "B/s", m->ddr.timestamp[i], m->ddr.write[i]);
	}
	for (size_t i = 0; i < m->llc.t.len; i++) {
		snprintf(name, sizeof(name), "LLC %u %.32s throughput", m->llc.id[i],
			 text(p, m->llc.mode[i]));
		sample(p, m->llc.device[i], name, "B/s", m->llc.timestamp[i], m->llc.throughput[i]);
		snprintf(name, sizeof(name), "LLC %u %.32s hit rate", m->llc.id[i], text(p, m->llc.mode[i]));
		sample(p, m->llc.device[i], name, "%", m->llc.timestamp[i], m->llc.hit_rate[i]);
	}
	for (size_t i = 0; i < m->npu_mem.t.len; i++) {
		snprintf(name, sizeof(name), "Memory of %.32s, HBM", text(p, m->npu_mem.type[i]));
		sample(p, m->npu_mem.device[i], name, "B", m->npu_mem.timestamp[i], m->npu_mem.hbm[i]);
		snprintf(name, sizeof(name), "Memory of %.32s, DDR", text(p, m->npu_mem.type[i]));
		sample(p, m->npu_mem.device[i], name, "B", m->npu_mem.timestamp[i], m->npu_mem.ddr[i]);
	}
}

static void whole_sample(struct perfetto *p, uint32_t device, const char *name, const char *unit, uint64_t ts,
			 int64_t value)
{
	sample(p, device, name, unit, ts, value == NPS_NULL ? NAN : (double)value);
}

/* What the framework's allocators hold. */
static void allocator_counters(struct perfetto *p)
{
	const struct nps_memory_record_table *t = &p->m->memory_record;

	for (size_t i = 0; !p->err && i < t->t.len; i++) {
		const int64_t values[] = { t->allocated[i], t->reserved[i], t->active[i] };
		static const char *const kinds[] = { "allocated", "reserved", "active" };

		for (size_t k = 0; t->timestamp[i] && k < NPS_ARRAY_SIZE(kinds); k++) {
			char name[96];

			snprintf(name, sizeof(name), "%.64s %s", nps_model__text_or_na(p->m, t->component[i]),
				 kinds[k]);
			whole_sample(p, t->device[i], name, "B", t->timestamp[i], values[k]);
		}
	}
}

static void frequencies(struct perfetto *p)
{
	const struct nps_frequency_table *t = &p->m->frequency;
	const struct nps_voltage_table *v = &p->m->voltage;
	bool dies = false;

	for (size_t i = 0; i < t->t.len; i++)
		dies |= t->die[i] > 0;
	for (size_t i = 0; i < t->t.len; i++) {
		char name[64] = "AI Core frequency";

		if (dies && t->die[i] >= 0)
			snprintf(name, sizeof(name), "AI Core frequency, die %lld", (long long)t->die[i]);
		whole_sample(p, t->device[i], name, "MHz", t->timestamp[i], t->mhz[i]);
	}
	for (size_t i = 0; i < v->t.len; i++)
		whole_sample(p, v->device[i], v->bus[i] ? "Bus voltage" : "AI Core voltage", "mV",
			     v->timestamp[i], v->mv[i]);
}

static void chip_counters(struct perfetto *p)
{
	const struct nps_model *m = p->m;
	char name[96];

	for (size_t i = 0; i < m->qos.t.len; i++) {
		snprintf(name, sizeof(name), "QoS %.64s", text(p, m->qos.event[i]));
		sample(p, m->qos.device[i], name, "B/s", m->qos.timestamp[i], m->qos.bandwidth[i]);
	}
	for (size_t i = 0; i < m->soc_level.t.len; i++) {
		sample(p, m->soc_level.device[i], "L2 buffer bandwidth level", "", m->soc_level.timestamp[i],
		       m->soc_level.l2_buffer[i]);
		sample(p, m->soc_level.device[i], "Mata bandwidth level", "", m->soc_level.timestamp[i],
		       m->soc_level.mata[i]);
	}
	for (size_t i = 0; i < m->acc_pmu.t.len; i++) {
		const struct nps_acc_pmu_table *t = &m->acc_pmu;
		const int64_t values[] = { t->read_bandwidth[i], t->write_bandwidth[i], t->read_ost[i],
					   t->write_ost[i] };
		static const char *const kinds[] = { "read bandwidth", "write bandwidth", "read OST",
						     "write OST" };

		for (size_t k = 0; k < NPS_ARRAY_SIZE(kinds); k++) {
			snprintf(name, sizeof(name), "Accelerator %u %s", t->acc[i], kinds[k]);
			whole_sample(p, t->device[i], name, "", t->timestamp[i], values[k]);
		}
	}
}

static void link_counters(struct perfetto *p)
{
	const struct nps_model *m = p->m;
	char name[96];

	for (size_t i = 0; i < m->hccs.t.len; i++) {
		sample(p, m->hccs.device[i], "HCCS transmitted", "B/s", m->hccs.timestamp[i], m->hccs.tx[i]);
		sample(p, m->hccs.device[i], "HCCS received", "B/s", m->hccs.timestamp[i], m->hccs.rx[i]);
	}
	for (size_t i = 0; i < m->ub.t.len; i++) {
		snprintf(name, sizeof(name), "UB %u transmitted", m->ub.port[i]);
		sample(p, m->ub.device[i], name, "B/s", m->ub.timestamp[i], m->ub.tx[i]);
		snprintf(name, sizeof(name), "UB %u received", m->ub.port[i]);
		sample(p, m->ub.device[i], name, "B/s", m->ub.timestamp[i], m->ub.rx[i]);
	}
	for (size_t i = 0; i < m->sio.t.len; i++) {
		const struct nps_sio_table *t = &m->sio;
		const double values[] = { t->tx_req[i], t->tx_rsp[i], t->tx_snp[i], t->tx_dat[i],
					  t->rx_req[i], t->rx_rsp[i], t->rx_snp[i], t->rx_dat[i] };
		static const char *const kinds[] = { "requests transmitted", "responses transmitted",
						     "snoops transmitted",   "data transmitted",
						     "requests received",    "responses received",
						     "snoops received",	     "data received" };

		for (size_t k = 0; k < NPS_ARRAY_SIZE(kinds); k++) {
			snprintf(name, sizeof(name), "SIO %.32s %s", text(p, t->name[i]), kinds[k]);
			sample(p, t->device[i], name, "B/s", t->timestamp[i], values[k]);
		}
	}
	for (size_t i = 0; i < m->chip_trans.t.len; i++) {
		const struct nps_chip_trans_table *t = &m->chip_trans;
		const bool pcie = t->kind[i];

		snprintf(name, sizeof(name), pcie ? "PCIe %u write" : "PA link %u received", t->id[i]);
		sample(p, t->device[i], name, "", t->timestamp[i], (double)t->first[i]);
		snprintf(name, sizeof(name), pcie ? "PCIe %u read" : "PA link %u transmitted", t->id[i]);
		sample(p, t->device[i], name, "", t->timestamp[i], (double)t->second[i]);
	}
}

static void pcie_counters(struct perfetto *p)
{
	const struct nps_pcie_table *t = &p->m->pcie;

	for (size_t i = 0; i < t->t.len; i++) {
		const struct {
			const char *name, *unit;
			double value;
		} samples[] = {
			{ "PCIe posted out", "B/s", t->tx_post_avg[i] },
			{ "PCIe posted in", "B/s", t->rx_post_avg[i] },
			{ "PCIe not posted out", "B/s", t->tx_nonpost_avg[i] },
			{ "PCIe not posted in", "B/s", t->rx_nonpost_avg[i] },
			{ "PCIe completions out", "B/s", t->tx_cpl_avg[i] },
			{ "PCIe completions in", "B/s", t->rx_cpl_avg[i] },
			{ "PCIe latency of not posted", "ns", t->latency_avg[i] },
		};

		for (size_t k = 0; k < NPS_ARRAY_SIZE(samples); k++)
			sample(p, t->device[i], samples[k].name, samples[k].unit, t->timestamp[i],
			       samples[k].value);
	}
}

static void port_counters(struct perfetto *p, const struct nps_port_table *t, const char *kind)
{
	char name[96];

	for (size_t i = 0; i < t->t.len; i++) {
		snprintf(name, sizeof(name), "%s %lld received", kind, (long long)t->function[i]);
		sample(p, t->device[i], name, "B/s", t->timestamp[i], t->rx_byte_rate[i]);
		snprintf(name, sizeof(name), "%s %lld transmitted", kind, (long long)t->function[i]);
		sample(p, t->device[i], name, "B/s", t->timestamp[i], t->tx_byte_rate[i]);
	}
}

static void host_counters(struct perfetto *p)
{
	const struct nps_model *m = p->m;
	char name[96];

	for (size_t i = 0; i < m->cpu_usage.t.len; i++) {
		snprintf(name, sizeof(name), "CPU %.32s", text(p, m->cpu_usage.cpu[i]));
		sample(p, NPS_NONE, name, "%", m->cpu_usage.timestamp[i], m->cpu_usage.usage[i]);
	}
	for (size_t i = 0; i < m->host_mem.t.len; i++)
		sample(p, NPS_NONE, "Memory usage", "%", m->host_mem.timestamp[i], m->host_mem.usage[i]);
	for (size_t i = 0; i < m->host_disk.t.len; i++) {
		sample(p, NPS_NONE, "Disk usage", "%", m->host_disk.timestamp[i], m->host_disk.usage[i]);
		sample(p, NPS_NONE, "Disk read", "B/s", m->host_disk.timestamp[i], m->host_disk.read[i]);
		sample(p, NPS_NONE, "Disk written", "B/s", m->host_disk.timestamp[i], m->host_disk.write[i]);
	}
	for (size_t i = 0; i < m->host_network.t.len; i++) {
		sample(p, NPS_NONE, "Network usage", "%", m->host_network.timestamp[i],
		       m->host_network.usage[i]);
		sample(p, NPS_NONE, "Network", "B/s", m->host_network.timestamp[i], m->host_network.speed[i]);
	}
}

/* The counters WORD, NAME and NUMBER (0: none), of which OF tells what is counted. */
static void named_sample(struct perfetto *p, const char *word, uint32_t name, uint32_t number, const char *of,
			 const char *unit, uint64_t time, double value)
{
	char title[128], tell[16] = "";

	if (number)
		snprintf(tell, sizeof(tell), " %u", number);
	snprintf(title, sizeof(title), "%s %.40s%s %s", word, text(p, name), tell, of);
	sample(p, NPS_NONE, title, unit, time, value);
}

static void own_host_counters(struct perfetto *p)
{
	const struct nps_host_process_table *a = &p->m->host_process;
	const struct nps_host_thread_table *h = &p->m->host_thread;
	const struct nps_host_device_table *d = &p->m->host_device;
	const struct nps_host_load_table *l = &p->m->host_load;

	for (size_t i = 0; i < l->t.len; i++) {
		sample(p, NPS_NONE, "Host CPU", "%", l->timestamp[i], l->cpu[i]);
		sample(p, NPS_NONE, "Host switches", "/s", l->timestamp[i], l->switches[i]);
		sample(p, NPS_NONE, "Host threads running", "threads", l->timestamp[i], l->running[i]);
		sample(p, NPS_NONE, "Host threads blocked", "threads", l->timestamp[i], l->blocked[i]);
	}
	for (size_t i = 0; i < a->t.len; i++) {
		const struct {
			const char *of, *unit;
			double value;
		} samples[] = { { "CPU", "%", a->cpu[i] },
				{ "resident", "B", a->resident[i] },
				{ "read", "B/s", a->read[i] },
				{ "written", "B/s", a->write[i] },
				{ "received", "B/s", a->received[i] },
				{ "sent", "B/s", a->sent[i] } };

		for (size_t k = 0; k < NPS_ARRAY_SIZE(samples); k++)
			named_sample(p, "Process", a->name[i], a->pid[i], samples[k].of, samples[k].unit,
				     a->timestamp[i], samples[k].value);
	}
	for (size_t i = 0; i < h->t.len; i++) {
		named_sample(p, "Thread", h->name[i], h->tid[i], "CPU", "%", h->timestamp[i], h->cpu[i]);
		named_sample(p, "Thread", h->name[i], h->tid[i], "waiting for a CPU", "%", h->timestamp[i],
			     h->wait[i]);
		named_sample(p, "Thread", h->name[i], h->tid[i], "switches", "/s", h->timestamp[i],
			     h->switches[i]);
	}
	for (size_t i = 0; i < d->t.len; i++) {
		const char *word = d->card[i] ? "Network" : "Disk";

		named_sample(p, word, d->name[i], 0, d->card[i] ? "received" : "read", "B/s", d->timestamp[i],
			     d->in[i]);
		named_sample(p, word, d->name[i], 0, d->card[i] ? "sent" : "written", "B/s", d->timestamp[i],
			     d->out[i]);
		named_sample(p, word, d->name[i], 0, "busy", "%", d->timestamp[i], d->busy[i]);
	}
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
	allocator_counters(p);
	memory_counters(p);
	frequencies(p);
	chip_counters(p);
	link_counters(p);
	pcie_counters(p);
	port_counters(p, &p->m->nic, "NIC");
	port_counters(p, &p->m->roce, "RoCE");
	host_counters(p);
	own_host_counters(p);
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
