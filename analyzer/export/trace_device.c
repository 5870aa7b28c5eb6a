/* SPDX-License-Identifier: BSD-2-Clause */
/* Layers of the device: Ascend Hardware and Overlap Analysis (outputs 2.4). */
#include "export/trace_event.h"

static void note_device(struct nps_trace *t, uint64_t device)
{
	if (device < NPS_TRACE_DEVICES)
		t->devices |= 1ULL << device;
}

static void trace_find_devices(struct nps_trace *t)
{
	const struct nps_model *m = t->m;

	for (size_t i = 0; i < m->device.t.len; i++)
		note_device(t, m->device.id[i]);
	for (size_t i = 0; i < m->comm_op.t.len; i++)
		note_device(t, m->comm_op.device[i]);
	for (size_t i = 0; i < m->task.t.len; i++) {
		note_device(t, m->task.device[i]);
		t->own |= m->task.source[i] != NPS_TIME_IMPORTED;
		nps_pace__step(&t->pace);
	}
	t->device = t->devices ? __builtin_ctzll(t->devices) : 0;
}

static bool is_marked(const struct nps_trace *t, size_t mark)
{
	uint32_t connection = t->m->mstx.connection[mark];

	return connection != NPS_NO_ID && nps_trace_bits__has(&t->marked, connection);
}

int nps_trace__scan_device(struct nps_trace *t)
{
	const struct nps_task_table *task = &t->m->task;
	const struct nps_mstx_table *mstx = &t->m->mstx;
	int err = 0;

	trace_find_devices(t);
	for (size_t i = 0; !err && i < task->t.len; i++) {
		if (task->class[i] != NPS_CLASS_PARENT)
			err = nps_trace_lanes__add(&t->hardware, nps_trace__device(t, task->device[i]),
						   task->stream[i]);
		nps_pace__step(&t->pace);
	}
	for (size_t i = 0; !err && i < mstx->t.len; i++)
		if (mstx->device_start[i] && !is_marked(t, i))
			err = nps_trace_lanes__add(&t->hardware, nps_trace__device(t, mstx->device[i]),
						   mstx->stream[i]);
	return err ? err : nps_trace__scan_steps(t);
}

void nps_trace__name_device(struct nps_trace *t)
{
	for (uint32_t d = 0; d < NPS_TRACE_DEVICES; d++)
		if (t->devices >> d & 1)
			nps_trace__name_layer(t, NPS_TRACE_HARDWARE, d);
	nps_trace__name_lanes(t, &t->hardware, NPS_TRACE_HARDWARE, "Stream", true);
	nps_trace__name_steps(t);
}

/* Moves *CURSOR to the detail of TASK, if it has one. TASKS ascend, and so does TASK. */
static bool find_detail(size_t *cursor, const uint32_t *tasks, size_t len, size_t task)
{
	while (*cursor < len && tasks[*cursor] < task)
		++*cursor;
	return *cursor < len && tasks[*cursor] == task;
}

static void copy_args(struct nps_trace *t, size_t row)
{
	static const char *const names[] = { "host to host",	  "host to device",   "device to host",
					     "device to device",  "managed memory",   "addr device to device",
					     "host to device ex", "device to host ex" };
	const struct nps_memcpy_table *copy = &t->m->memcpy;
	uint64_t ns = t->m->task.end[row] - t->m->task.start[row];
	struct nps_writer *w = &t->w;
	uint32_t operation;
	int64_t size;

	if (!find_detail(&t->memcpy, copy->task, copy->t.len, row))
		return;
	size = copy->size[t->memcpy];
	operation = copy->operation[t->memcpy];
	if (size > 0) {
		nps_trace__u64(w, t->gen_a ? ",\"data size(Byte)\":" : ",\"size(B)\":", size);
		if (!t->gen_a &&
		    t->m->task.end[row] > t->m->task.start[row]) { /* bytes per ns are GB per s */
			nps_writer__lit(w, ",\"bandwidth(GB/s)\":");
			nps_writer__fixed(w, (double)size / ns);
		}
	}
	nps_trace__string(w, t->gen_a ? ",\"memcpy direction\":" : ",\"operation\":",
			  operation < NPS_ARRAY_SIZE(names) ? names[operation] : "other");
}

/* What only some chips have. */
static void kernel_args(struct nps_trace *t, size_t row)
{
	const struct nps_compute_table *compute = &t->m->compute;

	if (t->gen_a || !find_detail(&t->compute, compute->task, compute->t.len, row))
		return;
	if (compute->grid[t->compute] != NPS_NONE && compute->grid[t->compute] != t->m->na)
		nps_trace__string(&t->w, ",\"Grid Dim\":", nps_trace__text(t, compute->grid[t->compute]));
	if (compute->block_dim[t->compute] != NPS_NONE && compute->block_dim[t->compute] != t->m->na)
		nps_trace__string(&t->w,
				  ",\"Block Dim\":", nps_trace__text(t, compute->block_dim[t->compute]));
}

void nps_trace__task(struct nps_trace *t, const struct nps_item *item)
{
	const struct nps_task_table *task = &t->m->task;
	uint64_t pid = nps_trace__pid(t, NPS_TRACE_HARDWARE, nps_item__device(item));
	uint32_t row = item->row, stream = nps_item__tid(item);
	struct nps_writer *w = &t->w;

	nps_trace__slice(w, nps_trace__text(t, item->name), pid, stream, item->start,
			 nps_model__task_end(t->m, row));
	nps_trace__u64(w, ",\"args\":{\"Model Id\":", task->model[row]);
	nps_trace__string(w, ",\"Task Type\":", nps_trace__text(t, task->hw_type[row]));
	nps_trace__u64(w, ",\"Physic Stream Id\":", stream);
	nps_trace__u64(w, ",\"Task Id\":", task->task[row]);
	nps_trace__u64(w, ",\"Batch Id\":", task->batch[row]);
	nps_trace__u64(w, ",\"Subtask Id\":", task->context[row]);
	nps_trace__u64(w, ",\"connection_id\":", item->connection);
	if (task->class[row] == NPS_CLASS_MEMCPY)
		copy_args(t, row);
	else if (task->class[row] == NPS_CLASS_COMPUTE)
		kernel_args(t, row);
	nps_trace__time_source(t, task->source[row], row);
	nps_writer__lit(w, "}");
	nps_trace__end(w);
	nps_trace__end_link(t, row, pid, stream);
	if (t->marks.pages && item->connection != NPS_NO_ID &&
	    nps_trace_bits__has(&t->marks, item->connection))
		nps_trace__mark_link(t, item->connection, pid, stream, item->start, false);
}

/* A mark on the device that is no task of its own. */
void nps_trace__device_mark(struct nps_trace *t, const struct nps_item *item)
{
	uint64_t pid = nps_trace__pid(t, NPS_TRACE_HARDWARE, nps_item__device(item));
	uint32_t stream = nps_item__tid(item);
	struct nps_writer *w = &t->w;

	if (is_marked(t, item->row))
		return;
	nps_trace__item(t, item, pid);
	nps_trace__u64(w, ",\"args\":{\"Physic Stream Id\":", stream);
	nps_trace__u64(w, ",\"Task Id\":", t->m->mstx.task[item->row]);
	nps_writer__lit(w, "}");
	nps_trace__end(w);
	nps_trace__mark_link(t, item->connection, pid, stream, item->start, false);
}

void nps_trace__name_overlap(struct nps_trace *t)
{
	for (uint32_t d = 0; d < NPS_TRACE_DEVICES; d++) {
		if (!(t->devices >> d & 1))
			continue;
		nps_trace__name_layer(t, NPS_TRACE_OVERLAP, d);
		for (uint32_t lane = 0; lane < NPS_OVERLAP_TYPES; lane++)
			nps_trace__name_thread(&t->w, nps_trace__pid(t, NPS_TRACE_OVERLAP, d), lane,
					       nps_overlap_names[lane]);
	}
}

void nps_trace__overlap(struct nps_trace *t, const struct nps_item *item)
{
	uint32_t type = nps_item__tid(item);

	if (type >= NPS_OVERLAP_TYPES)
		return;
	nps_trace__slice(&t->w, nps_overlap_names[type],
			 nps_trace__pid(t, NPS_TRACE_OVERLAP, nps_item__device(item)), type, item->start,
			 item->end);
	if (!t->gen_a)
		nps_writer__lit(&t->w, ",\"args\":{}");
	nps_trace__end(&t->w);
}
