/* SPDX-License-Identifier: BSD-2-Clause */
/* trace_view.json, the generation with Device_id columns (outputs 2), as a stream. */
#include "export.h"

#include "session_reader.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COOL (1U << 20) /* events after which rows that were read leave the resident set */
#define NO_ID 4294967295U

enum { SORT_CANN = 7, SORT_OSRT = 13, SORT_HW = 14, SORT_COMM = 16, SORT_OVERLAP = 31 };

/* The layers are written as one sequence in order of time: next row of each. */
struct trace {
	const struct nps_result *r;
	const struct nps_model *m;
	struct nps_writer w;
	uint64_t cann_pid, os_pid;
	const char *arch;
	uint8_t *flows; /* a bit for each connection id that leads to the device */
	size_t cann, task, comm, comm_task, overlap, os;
	struct nps_sched sched;
};

/* --- pieces --- */

void nps_trace__begin(struct nps_writer *w, const char *name, uint64_t pid)
{
	nps_writer__item(w);
	nps_writer__lit(w, "{\"name\":");
	nps_writer__json(w, name);
	nps_writer__lit(w, ",\"pid\":");
	nps_writer__u64(w, pid);
}

void nps_trace__tid(struct nps_writer *w, uint64_t tid)
{
	nps_writer__lit(w, ",\"tid\":");
	nps_writer__u64(w, tid);
}

void nps_trace__lane(struct nps_writer *w, const char *tid)
{
	nps_writer__lit(w, ",\"tid\":");
	nps_writer__json(w, tid);
}

void nps_trace__time(struct nps_writer *w, uint64_t real, uint64_t dur)
{
	nps_writer__lit(w, ",\"ts\":\"");
	nps_writer__us(w, real);
	nps_writer__lit(w, "\",\"dur\":");
	if (dur)
		nps_writer__us(w, dur);
	else
		nps_writer__lit(w, "0");
}

void nps_trace__end(struct nps_writer *w, const char *ph)
{
	nps_writer__lit(w, ",\"ph\":\"");
	nps_writer__lit(w, ph);
	nps_writer__lit(w, "\"}");
}

static void meta(struct nps_writer *w, uint64_t pid, uint64_t tid, const char *what, const char *key,
		 const char *text, uint64_t number)
{
	nps_trace__begin(w, what, pid);
	nps_trace__tid(w, tid);
	nps_writer__lit(w, ",\"args\":{\"");
	nps_writer__lit(w, key);
	nps_writer__lit(w, "\":");
	if (text)
		nps_writer__json(w, text);
	else
		nps_writer__u64(w, number);
	nps_writer__lit(w, "}");
	nps_trace__end(w, "M");
}

void nps_trace__layer(struct nps_writer *w, uint64_t pid, const char *name, const char *label,
		      unsigned int sort_index)
{
	meta(w, pid, 0, "process_name", "name", name, 0);
	meta(w, pid, 0, "process_labels", "labels", label, 0);
	meta(w, pid, 0, "process_sort_index", "sort_index", NULL, sort_index);
}

void nps_trace__thread(struct nps_writer *w, uint64_t pid, uint64_t tid, const char *name, bool sorted)
{
	meta(w, pid, tid, "thread_name", "name", name, 0);
	if (sorted)
		meta(w, pid, tid, "thread_sort_index", "sort_index", NULL, tid);
}

static void arg_u64(struct nps_writer *w, const char *key, uint64_t value)
{
	nps_writer__lit(w, key);
	nps_writer__u64(w, value);
}

static void arg_text(struct nps_writer *w, const char *key, const char *value)
{
	nps_writer__lit(w, key);
	nps_writer__json(w, value);
}

static const char *text(const struct trace *t, uint32_t id)
{
	return nps_strings__get(&t->m->strings, id);
}

static void slice(struct trace *t, const char *name, uint64_t pid, uint64_t tid, uint64_t start, uint64_t end)
{
	nps_trace__begin(&t->w, name, pid);
	nps_trace__tid(&t->w, tid);
	nps_trace__time(&t->w, nps_model__real(t->m, start), end - start);
}

static void flow(struct trace *t, uint32_t conn, uint64_t pid, uint64_t tid, uint64_t at, bool begin)
{
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_writer__lit(w, "{\"name\":\"HostToDevice");
	nps_writer__u64(w, (uint64_t)conn << 32);
	nps_writer__lit(w, "\",\"pid\":");
	nps_writer__u64(w, pid);
	nps_trace__tid(w, tid);
	nps_writer__lit(w, ",\"cat\":\"HostToDevice\",\"id\":\"");
	nps_writer__u64(w, (uint64_t)conn << 32);
	nps_writer__lit(w, "\",\"ts\":\"");
	nps_writer__us(w, nps_model__real(t->m, at));
	nps_writer__lit(w, begin ? "\"" : "\",\"bp\":\"e\"");
	nps_trace__end(w, begin ? "s" : "f");
}

/* --- layers --- */

/* A thread row for each new KEY; SEEN remembers. */
static int thread_row(struct trace *t, struct nps_map *seen, uint64_t pid, uint64_t tid, const char *prefix,
		      bool sorted)
{
	char name[64];
	int err;

	if (nps_map__get(seen, nps_hash2(pid, tid)) != NPS_NONE)
		return 0;
	err = nps_map__put(seen, nps_hash2(pid, tid), 1);
	snprintf(name, sizeof(name), "%s %llu", prefix, (unsigned long long)tid);
	nps_trace__thread(&t->w, pid, tid, name, sorted);
	return err;
}

static void cann_args(struct trace *t, const struct nps_cann *row)
{
	const char *name = text(t, row->name);
	struct nps_writer *w = &t->w;

	arg_u64(w, ",\"args\":{\"Thread Id\":", row->tid);
	switch (row->level) {
	case NPS_LAYER_ACL:
		arg_text(w, ",\"Mode\":",
			 !strncmp(name, "aclnn", 5)   ? "ACL_NN"
			 : !strncmp(name, "Hccl", 4)  ? "HOST_HCCL"
			 : !strncmp(name, "aclop", 5) ? "ACL_OP"
						      : "ACL_RTS");
		arg_text(w, ",\"level\":\"acl\",\"id\":", name);
		nps_writer__lit(w, ",\"item_id\":\"0\"");
		break;
	case NPS_LAYER_RUNTIME:
		arg_text(w, ",\"Mode\":", name);
		nps_writer__lit(w, ",\"level\":\"runtime\",\"id\":\"0\",\"item_id\":\"0\"");
		break;
	case NPS_LAYER_NODE:
		nps_writer__lit(w, ",\"Mode\":\"launch\",\"level\":\"node\",\"id\":\"0\"");
		arg_text(w, ",\"item_id\":", text(t, row->item));
		break;
	default:
		nps_writer__lit(w, ",\"Mode\":\"master\",\"level\":\"communication\",\"id\":\"0\",\"item_"
				   "id\":\"launch\"");
	}
	arg_u64(w, ",\"connection_id\":", row->conn);
	if (row->lower_bound)
		nps_writer__lit(w, ",\"end\":\"lower bound\"");
	nps_writer__lit(w, "}");
}

static int cann_lanes(struct trace *t)
{
	const struct nps_proc *proc = t->r->proc;
	struct nps_map seen = { 0 };
	int err = 0;

	/* Also if it stays empty: a card must not begin with a scheduling layer. */
	nps_trace__layer(&t->w, t->cann_pid, "CANN", "CPU", SORT_CANN);
	for (size_t i = 0; !err && i < proc->cann.len; i++)
		err = thread_row(t, &seen, t->cann_pid, NPS_AT(&proc->cann, struct nps_cann, i).tid, "Thread",
				 true);
	nps_map__free(&seen);
	return err;
}

static const struct nps_cann *cann_row(const struct trace *t)
{
	const struct nps_proc *proc = t->r->proc;

	if (t->cann >= proc->cann_order.len)
		return NULL;
	return &NPS_AT(&proc->cann, struct nps_cann, NPS_AT(&proc->cann_order, uint32_t, t->cann));
}

static uint64_t cann_time(const struct trace *t)
{
	return cann_row(t) ? cann_row(t)->start : UINT64_MAX;
}

static void cann_write(struct trace *t)
{
	static const char *const prefix[] = { [NPS_LAYER_RUNTIME] = "Runtime",
					      [NPS_LAYER_COMM] = "Communication",
					      [NPS_LAYER_NODE] = "Node",
					      [NPS_LAYER_ACL] = "AscendCL" };
	const struct nps_cann *row = cann_row(t);
	char name[1200];

	snprintf(name, sizeof(name), "%s@%s", prefix[row->level], text(t, row->name));
	slice(t, name, t->cann_pid, row->tid, row->start, row->end);
	cann_args(t, row);
	nps_trace__end(&t->w, "X");
	if (t->flows[row->conn / 8] >> row->conn % 8 & 1)
		flow(t, row->conn, t->cann_pid, row->tid, row->start, true);
	t->cann++;
}

static void bound(struct trace *t, const char *key, uint64_t value)
{
	if (value == UINT64_MAX)
		return;
	nps_writer__lit(&t->w, key);
	nps_writer__us(&t->w, nps_model__real(t->m, value));
	nps_writer__lit(&t->w, "\"");
}

static void time_source(struct trace *t, const struct nps_task *task)
{
	const struct nps_bounds *b;

	if (nps_task__measured(task)) {
		nps_writer__lit(&t->w, ",\"time_source\":\"device log\"");
		return;
	}
	b = &NPS_AT(&t->m->bounds, struct nps_bounds, task->bounds);
	nps_writer__lit(&t->w, ",\"time_source\":\"host bounds\"");
	bound(t, ",\"start_low_us\":\"", b->start_low);
	bound(t, ",\"start_high_us\":\"", b->start_high);
	bound(t, ",\"end_low_us\":\"", b->end_low);
	bound(t, ",\"end_high_us\":\"", b->end_high);
}

static void copy_args(struct trace *t, const struct nps_task *task)
{
	uint64_t ns = task->end - task->start;
	char text[64];

	if (task->kind != NPS_TASK_MEMCPY)
		return;
	if (task->size) {
		arg_u64(&t->w, ",\"size(B)\":", task->size);
		if (ns) { /* bytes per ns are GB per s */
			snprintf(text, sizeof(text), ",\"bandwidth(GB/s)\":%.6f", (double)task->size / ns);
			nps_writer__lit(&t->w, text);
		}
	}
	arg_text(&t->w, ",\"operation\":", nps_memcpy_operation(task->memcpy_op));
}

static bool has_flow(const struct nps_task *task)
{
	return task->comm == NPS_NONE && task->conn != NPS_NONE && task->kind != NPS_TASK_OTHER;
}

static uint64_t device_pid(const struct trace *t, unsigned int sort_index, unsigned int device)
{
	return nps_layer_pid(t->r->proc->pid, sort_index, device);
}

static void device_layer(struct trace *t, unsigned int sort_index, unsigned int device, const char *name)
{
	char label[32];

	snprintf(label, sizeof(label), "NPU %u", device);
	nps_trace__layer(&t->w, device_pid(t, sort_index, device), name, label, sort_index);
}

static void hardware_slice(struct trace *t, const struct nps_task *task, uint64_t pid)
{
	struct nps_writer *w = &t->w;

	slice(t, text(t, task->name), pid, task->stream, task->start, task->end);
	arg_u64(w, ",\"args\":{\"Model Id\":", NO_ID);
	arg_text(w, ",\"Task Type\":", nps_task_type(task));
	arg_u64(w, ",\"Physic Stream Id\":", task->stream);
	arg_u64(w, ",\"Task Id\":", task->task);
	arg_u64(w, ",\"Batch Id\":", task->batch);
	arg_u64(w, ",\"Subtask Id\":", task->context);
	arg_u64(w, ",\"connection_id\":", task->conn);
	copy_args(t, task);
	time_source(t, task);
	nps_writer__lit(w, "}");
	nps_trace__end(w, "X");
}

static void note_flow(struct trace *t, uint32_t conn)
{
	if (conn && conn <= t->r->proc->cann_order.len)
		t->flows[conn / 8] |= 1 << conn % 8;
}

static int hardware_lanes(struct trace *t)
{
	const struct nps_result *r = t->r;
	struct nps_map seen = { 0 };
	int err = 0;

	for (unsigned int d = 0; d < NPS_MAX_DEVICES; d++)
		if (r->proc->devices >> d & 1)
			device_layer(t, SORT_HW, d, "Ascend Hardware");
	for (size_t i = 0; !err && i < r->ntasks; i++) {
		err = thread_row(t, &seen, device_pid(t, SORT_HW, r->tasks[i].device), r->tasks[i].stream,
				 "Stream", true);
		if (has_flow(&r->tasks[i]))
			note_flow(t, r->tasks[i].conn);
	}
	nps_map__free(&seen);
	return err;
}

static uint64_t hardware_time(const struct trace *t)
{
	return t->task < t->r->ntasks ? t->r->tasks[t->task].start : UINT64_MAX;
}

static void hardware_write(struct trace *t)
{
	const struct nps_task *task = &t->r->tasks[t->task++];
	uint64_t pid = device_pid(t, SORT_HW, task->device);

	hardware_slice(t, task, pid);
	if (has_flow(task))
		flow(t, task->conn, pid, task->stream, task->start, false);
}

static const char *data_type(unsigned int dtype)
{
	static const char *const names[] = { "INT8",   "INT16", "INT32",  "FP16",    "FP32",	"INT64",
					     "UINT64", "UINT8", "UINT16", "UINT32",  "FP64",	"BFP16",
					     "INT128", NULL,	"HIF8",	  "FP8E4M3", "FP8E5M2", "FP8E8M0" };

	return dtype < NPS_ARRAY_SIZE(names) && names[dtype] ? names[dtype]
	       : dtype == 65534				     ? "N/A"
							     : "INVALID_TYPE";
}

static void comm_op(struct trace *t, const struct nps_comm_op *op)
{
	const struct nps_group *group = nps_result__group(t->r, op);
	uint64_t pid = device_pid(t, SORT_COMM, op->device);
	struct nps_writer *w = &t->w;

	slice(t, text(t, op->name), pid, group->lane, op->start, op->end);
	nps_writer__lit(w, ",\"args\":{");
	if (op->ranks != NPS_NONE)
		arg_u64(w, "\"rank_size\":", op->ranks);
	else
		nps_writer__lit(w, "\"rank_size\":\"N/A\"");
	arg_u64(w, ",\"connection_id\":", op->conn);
	arg_u64(w, ",\"model id\":", NO_ID);
	arg_text(w, ",\"data_type\":", data_type(op->dtype));
	nps_writer__lit(w, ",\"alg_type\":\"N/A\"");
	arg_u64(w, ",\"count\":", op->count);
	nps_writer__lit(w, ",\"relay\":\"no\",\"retry\":\"no\",\"time_source\":");
	nps_writer__json(w, op->measured == op->tasks ? "device log"
			    : op->measured	      ? "device log of a part of its tasks"
						      : "host bounds");
	nps_writer__lit(w, "}");
	nps_trace__end(w, "X");
	flow(t, op->conn, pid, group->lane, op->start, false);
}

static void comm_task(struct trace *t, const struct nps_task *task)
{
	const struct nps_group *group = nps_result__group(t->r, nps_result__comm(t->r, task->comm));
	const char *type = nps_comm_task_type(task);
	struct nps_writer *w = &t->w;

	slice(t, type, device_pid(t, SORT_COMM, task->device),
	      group->lane + 1 + nps_result__plane(t->r, task), task->start, task->end);
	arg_u64(w, ",\"args\":{\"notify_id\":\"N/A\",\"duration estimated(us)\":\"N/A\",\"stream id\":",
		task->stream);
	arg_u64(w, ",\"task id\":", task->task);
	arg_u64(w, ",\"context id\":", task->context);
	arg_text(w, ",\"task type\":", type);
	nps_writer__lit(w, ",\"src rank\":4294967295,\"dst rank\":4294967295,\"transport "
			   "type\":\"N/A\",\"size(Byte)\":\"N/A\", "
			   "\"data type\":\"N/A\",\"link type\":\"N/A\",\"bandwidth(GB/s)\":\"N/A\"");
	arg_u64(w, ",\"model id\":", NO_ID);
	time_source(t, task);
	nps_writer__lit(w, "}");
	nps_trace__end(w, "X");
}

static void comm_lanes(struct trace *t)
{
	const struct nps_result *r = t->r;
	uint64_t layers = 0;
	char name[1200];

	for (size_t i = 0; i < r->groups.len; i++) {
		const struct nps_group *group = &NPS_AT(&r->groups, struct nps_group, i);
		uint64_t pid = device_pid(t, SORT_COMM, group->device);

		if (!(layers >> group->device & 1))
			device_layer(t, SORT_COMM, group->device, "Communication");
		layers |= 1ULL << group->device;
		snprintf(name, sizeof(name), "Group %s Communication", text(t, group->text));
		nps_trace__thread(&t->w, pid, group->lane, name, true);
		for (uint32_t p = 0; p < group->planes; p++) {
			snprintf(name, sizeof(name), "Plane %u", p);
			nps_trace__thread(&t->w, pid, group->lane + 1 + p, name, true);
		}
	}
	for (size_t i = 0; i < r->comm_order.len; i++)
		note_flow(t, nps_result__comm(r, NPS_AT(&r->comm_order, uint32_t, i))->conn);
}

static uint64_t comm_time(const struct trace *t)
{
	const struct nps_vec *order = &t->r->comm_order;

	return t->comm < order->len ? nps_result__comm(t->r, NPS_AT(order, uint32_t, t->comm))->start
				    : UINT64_MAX;
}

static void comm_write(struct trace *t)
{
	comm_op(t, nps_result__comm(t->r, NPS_AT(&t->r->comm_order, uint32_t, t->comm++)));
}

static void skip_compute(struct trace *t)
{
	while (t->comm_task < t->r->ntasks && t->r->tasks[t->comm_task].comm == NPS_NONE)
		t->comm_task++;
}

static uint64_t comm_task_time(const struct trace *t)
{
	return t->comm_task < t->r->ntasks ? t->r->tasks[t->comm_task].start : UINT64_MAX;
}

static void comm_task_write(struct trace *t)
{
	comm_task(t, &t->r->tasks[t->comm_task++]);
	skip_compute(t);
}

static const char *const overlap_names[] = { "Computing", "Communication", "Communication(Not Overlapped)",
					     "Free" };

static void overlap_lanes(struct trace *t)
{
	for (unsigned int d = 0; d < NPS_MAX_DEVICES; d++) {
		if (!(t->r->proc->devices >> d & 1))
			continue;
		device_layer(t, SORT_OVERLAP, d, "Overlap Analysis");
		for (unsigned int lane = 0; lane < 4; lane++)
			nps_trace__thread(&t->w, device_pid(t, SORT_OVERLAP, d), lane, overlap_names[lane],
					  false);
	}
}

static uint64_t overlap_time(const struct trace *t)
{
	return t->overlap < t->r->overlap.len ? NPS_AT(&t->r->overlap, struct nps_span, t->overlap).start
					      : UINT64_MAX;
}

static void overlap_write(struct trace *t)
{
	const struct nps_span *span = &NPS_AT(&t->r->overlap, struct nps_span, t->overlap++);

	slice(t, overlap_names[span->type], device_pid(t, SORT_OVERLAP, span->device), span->type,
	      span->start, span->end);
	nps_writer__lit(&t->w, ",\"args\":{}");
	nps_trace__end(&t->w, "X");
}

static int os_lanes(struct trace *t)
{
	const struct nps_vec *calls = &t->r->proc->os_calls;
	struct nps_map seen = { 0 };
	int err = 0;

	if (calls->len)
		nps_trace__layer(&t->w, t->os_pid, "OS Runtime API", "CPU", SORT_OSRT);
	for (size_t i = 0; !err && i < calls->len; i++)
		err = thread_row(t, &seen, t->os_pid, NPS_AT(calls, struct nps_os_call, i).tid, "Thread",
				 false);
	nps_map__free(&seen);
	return err;
}

static uint64_t os_time(const struct trace *t)
{
	return t->os < t->r->proc->os_calls.len
		       ? NPS_AT(&t->r->proc->os_calls, struct nps_os_call, t->os).start
		       : UINT64_MAX;
}

static void os_write(struct trace *t)
{
	const struct nps_os_call *call = &NPS_AT(&t->r->proc->os_calls, struct nps_os_call, t->os++);
	const char *name = nps_syscall_name(t->arch, call->nr);
	char number[32];

	snprintf(number, sizeof(number), "syscall_%u", call->nr);
	slice(t, name ? name : number, t->os_pid, call->tid, call->start, call->end);
	nps_trace__end(&t->w, "X");
}

static uint64_t sched_time(const struct trace *t)
{
	return nps_sched__time(&t->sched);
}

static void sched_write(struct trace *t)
{
	nps_sched__write(&t->sched);
}

static const struct layer {
	uint64_t (*time)(const struct trace *t); /* of its next event, UINT64_MAX after the last */
	void (*write)(struct trace *t);
} layers[] = {
	{ cann_time, cann_write },	     { hardware_time, hardware_write }, { comm_time, comm_write },
	{ comm_task_time, comm_task_write }, { overlap_time, overlap_write },	{ os_time, os_write },
	{ sched_time, sched_write },
};

/* Always the layer whose next event is the earliest. */
static int merge(struct trace *t)
{
	for (size_t n = 0; !t->w.err; n++) {
		const struct layer *first = NULL;
		uint64_t when = UINT64_MAX;

		if (!(n & (COOL - 1))) {
			nps_vec__cool(&t->m->tasks);
			nps_vec__cool(&t->r->proc->cann);
			nps_vec__cool(&t->r->overlap);
		}

		for (size_t i = 0; i < NPS_ARRAY_SIZE(layers); i++) {
			uint64_t time = layers[i].time(t);

			if (time < when) {
				when = time;
				first = &layers[i];
			}
		}
		if (!first)
			break;
		first->write(t);
	}
	return t->w.err;
}

static int write_all(struct trace *t)
{
	int err = cann_lanes(t);

	if (!err)
		err = hardware_lanes(t);
	if (!err) {
		comm_lanes(t);
		overlap_lanes(t);
		err = os_lanes(t);
	}
	if (!err)
		err = nps_sched__init(&t->sched, t->r, &t->w);
	if (!err) {
		skip_compute(t);
		err = merge(t);
	}
	nps_sched__free(&t->sched);
	return err;
}

int nps_export__trace(const struct nps_result *result, int dirfd)
{
	const cJSON *host = cJSON_GetObjectItemCaseSensitive(result->model->json, "host");
	struct trace t = { .r = result,
			   .m = result->model,
			   .cann_pid = nps_layer_pid(result->proc->pid, SORT_CANN, NPS_HOST_DEVICE),
			   .os_pid = nps_layer_pid(result->proc->pid, SORT_OSRT, NPS_HOST_DEVICE),
			   .arch = nps_json_str(host, "arch", "") };
	int err, closed;

	t.flows = calloc(result->proc->cann_order.len / 8 + 1, 1);
	if (!t.flows)
		return -ENOMEM;
	err = nps_writer__open(&t.w, dirfd, "trace_view.json");
	if (!err) {
		nps_writer__lit(&t.w, "[");
		err = write_all(&t);
		nps_writer__lit(&t.w, "]");
		closed = nps_writer__close(&t.w);
		err = err ? err : closed;
	}
	free(t.flows);
	return err;
}
