/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/import_process.h"

#include "import/cann/kernel_rows.h"
#include "import/session/device_counters.h"
#include "import/session/import_driver.h"
#include "import/session/irq_names.h"
#include "import/session/import_aicpu.h"
#include "import/session/import_stacks.h"
#include "import/session/import_host.h"
#include "import/session/import_npu.h"
#include "import/session/os_calls.h"
#include "import/session/planned_calls.h"
#include "import/session/python_stacks.h"
#include "import/session/clock_align.h"
#include "import/session/session_reader.h"
#include "import/session/task_types.h"
#include "import/session/time_order.h"
#include "import/session/torch_memory.h"
#include "import/session/torch_ops.h"
#include "import/session/wakers.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct process_fill {
	struct nps_model *m;
	struct nps_session *rec;
	struct nps_proc *proc;
	const struct nps_task *tasks; /* of the process, by start */
	struct nps_map irq_names; /* (what, number) -> text */
	struct nps_map planes; /* (group, device, stream) -> plane */
	struct nps_map nplanes; /* (group, device) -> planes */
	uint32_t texts[256][2]; /* by core: hw_type, host type */
	struct nps_pmu_plan *plans[NPS_MAX_DEVICES]; /* NULL: not made */
	int err;
};

/* The lane of a collective's task: each stream that a group uses on a device is a plane. */
static uint32_t plane_of(struct process_fill *f, const struct nps_collective *run,
			 const struct nps_task *task)
{
	uint64_t group = (uint64_t)run->group << 32 | run->device, key = nps_hash2(group, task->stream);
	uint32_t plane = nps_map__get(&f->planes, key), n;

	if (plane != NPS_NONE)
		return plane;
	n = nps_map__get(&f->nplanes, group);
	plane = n == NPS_NONE ? 0 : n;
	if (nps_map__put(&f->planes, key, plane) || nps_map__put(&f->nplanes, group, plane + 1))
		f->err = -ENOMEM;
	return plane;
}

static void fill_collective_task(struct process_fill *f, const struct nps_task *task, uint32_t task_row)
{
	const struct nps_collective *run = &NPS_AT(&f->proc->comms, struct nps_comm_op, task->comm).run;
	struct nps_comm_task_row row = nps_comm_task__unknown(f->m, task_row);

	row.type = nps_model__intern(f->m, nps_comm_task_type(task), &f->err);
	row.plane = plane_of(f, run, task);
	row.notify = NPS_NO_NOTIFY;
	row.op = task->comm;
	if (!f->err)
		f->err = nps_comm_task_table__add(&f->m->comm_task, &row);
}

static void fill_kernel(struct process_fill *f, const struct nps_task *task, uint32_t task_row)
{
	struct nps_compute_row row = { .task = task_row,
				       .name = task->name,
				       .core = f->texts[task->core][0],
				       .type = task->type,
				       .blocks = task->blocks,
				       .attributes = NPS_NONE,
				       .state = NPS_NONE,
				       .hf32 = NPS_NONE,
				       .grid = NPS_NONE,
				       .block_dim = NPS_NONE };

	if (!f->err)
		f->err = nps_kernel__add(f->m, &f->rec->tensors, task->operands, &row);
}

static void fill_memcpy(struct process_fill *f, const struct nps_task *task, uint32_t task_row)
{
	struct nps_memcpy_row row = { .task = task_row,
				      .size = task->size ? nps_to_i64(task->size) : NPS_NULL,
				      .operation = task->memcpy_op == 255 ? 65535 : task->memcpy_op };

	if (!f->err)
		f->err = nps_memcpy_table__add(&f->m->memcpy, &row);
}

static uint64_t fill_bound(const struct process_fill *f, uint64_t mono)
{
	return mono == UINT64_MAX ? UINT64_MAX : nps_session__real(f->rec, mono);
}

static void bounds(struct process_fill *f, const struct nps_task *task, uint32_t task_row)
{
	const struct nps_bounds *b = &NPS_AT(&f->rec->bounds, struct nps_bounds, task->bounds);
	struct nps_bounds_row row = { .task = task_row,
				      .start_low = fill_bound(f, b->start_low),
				      .start_high = fill_bound(f, b->start_high),
				      .end_low = fill_bound(f, b->end_low),
				      .end_high = fill_bound(f, b->end_high) };

	if (!f->err)
		f->err = nps_bounds_table__add(&f->m->bounds, &row);
}

/* Rows of one device are in order of start, those of several devices are not. */
static void fill_block_rows(struct process_fill *f)
{
	for (size_t i = 0; !f->err && i < f->rec->blocks.len; i++) {
		const struct nps_task_block *block = &NPS_AT(&f->rec->blocks, struct nps_task_block, i);

		if (&f->rec->procs[block->proc] == f->proc)
			f->err = nps_block__add(f->m, &block->run, nps_session__real(f->rec, 0));
	}
	if (!f->err)
		f->err = nps_table__order(&f->m->block.t, NPS_ORDINAL(block, start));
}

static uint8_t fill_class(const struct nps_task *task)
{
	static const uint8_t classes[] = { [NPS_TASK_OTHER] = NPS_CLASS_OTHER,
					   [NPS_TASK_COMPUTE] = NPS_CLASS_COMPUTE,
					   [NPS_TASK_MEMCPY] = NPS_CLASS_MEMCPY,
					   [NPS_TASK_EVENT] = NPS_CLASS_EVENT };

	return task->comm != NPS_NONE ? NPS_CLASS_COMM : classes[task->kind];
}

/* The texts of a core's tasks, made once. */
static const uint32_t *type_texts(struct process_fill *f, const struct nps_task *task)
{
	uint32_t *texts = f->texts[task->core];

	if (texts[0] == NPS_NONE) {
		texts[0] = nps_model__intern(f->m, nps_task_type(task), &f->err);
		texts[1] = nps_model__intern(f->m, nps_task_host_type(task), &f->err);
	}
	return texts;
}

/* The plan of a device's counters, made once; NULL: it has none. */
static const struct nps_pmu_plan *pmu_plan(struct process_fill *f, unsigned int device)
{
	struct nps_pmu_plan **plan = &f->plans[device];
	struct nps_cann_dir dir;

	if (*plan || f->err)
		return *plan;
	*plan = calloc(1, sizeof(**plan));
	if (!*plan) {
		f->err = -ENOMEM;
		return NULL;
	}
	nps_device_counters(&f->rec->devices[device], &dir);
	f->err = nps_pmu__plan(*plan, &dir, f->m->strings);
	return *plan;
}

static void one_task(struct process_fill *f, const struct nps_task *task)
{
	const uint32_t *texts = type_texts(f, task);
	uint32_t hw = texts[0], host = texts[1], row = f->m->task.t.len;
	uint8_t class = fill_class(task);

	if (task->kind == NPS_TASK_MEMCPY) { /* a copy engine is named by what it does */
		hw = nps_model__intern(f->m, nps_task_type(task), &f->err);
		host = nps_model__intern(f->m, "MEMCPY_ASYNC", &f->err);
	}
	if (f->err)
		return;
	f->err = nps_task_table__add(
		&f->m->task,
		&(struct nps_task_row){ .start = nps_session__real(f->rec, task->start),
					.end = nps_session__real(f->rec, task->end),
					.device = task->device,
					.connection = task->conn,
					.id = row,
					.pid = f->proc->pid,
					.type = host,
					.context = task->context,
					.stream = task->stream,
					.task = task->task,
					.model = NPS_NO_ID,
					.batch = task->batch,
					.name = task->name,
					.kernel = task->function,
					.hw_type = hw,
					.submit = task->submit ? nps_session__real(f->rec, task->submit) : 0,
					.step = task->step,
					.class = class,
					.source = nps_task__measured(task) ? NPS_TIME_DEVICE_LOG
									   : NPS_TIME_HOST_BOUNDS });
	if (f->err)
		return;
	if (class == NPS_CLASS_COMM)
		fill_collective_task(f, task, row);
	else if (class == NPS_CLASS_COMPUTE)
		fill_kernel(f, task, row);
	else if (class == NPS_CLASS_MEMCPY)
		fill_memcpy(f, task, row);
	if (!nps_task__measured(task))
		bounds(f, task, row);
}

static void fill_tasks(struct process_fill *f)
{
	size_t n = f->tasks ? f->proc->tasks : 0;

	for (size_t i = 0; !f->err && i < n; i++) {
		one_task(f, &f->tasks[i]);
		if (!(i & (NPS_TABLE_HOT - 1)))
			nps_vec__cool(&f->rec->tasks);
	}
}

/*
 * After the devices' samples, as the frequency of the cores is one of them. Rows of `task` are the
 * process's tasks, in their order.
 */
static void all_counters(struct process_fill *f)
{
	bool known = !nps_proc__in_container(f->proc); /* there a task's device may not be the sampled one */
	struct nps_core_clock clock = { 0 };

	for (size_t i = 0; !f->err && i < f->proc->tasks; i++) {
		const struct nps_task *task = &f->tasks[i];
		const struct nps_pmu_plan *plan;
		double mhz = known ? nps_core_clock__at(&clock, f->m, task->device, f->m->task.start[i]) : 0;

		if (!(i & (NPS_TABLE_HOT - 1)))
			nps_vec__cool(&f->rec->tasks);
		if (task->pmu == NPS_NONE || f->m->task.class[i] != NPS_CLASS_COMPUTE)
			continue;
		plan = pmu_plan(f, task->device % NPS_MAX_DEVICES);
		/* The number of blocks on the other kind of cores is only known from their records. */
		if (plan)
			f->err = nps_pmu__add(f->m, i, plan,
					      &NPS_AT(&f->rec->run_pmus, struct nps_run_pmu, task->pmu),
					      task->blocks, 0, mhz);
	}
	for (size_t i = 0; i < f->rec->logs.len; i++) {
		const struct nps_device_log *log = &NPS_AT(&f->rec->logs, struct nps_device_log, i);

		if (&f->rec->procs[log->proc] == f->proc)
			nps_model__lost(f->m, log->uncounted,
					"counters of kernels, between others that have theirs");
	}
}

/* --- host -------------------------------------------------------------------------------------------- */

static void fill_calls(struct process_fill *f)
{
	static const uint32_t types[] = { [NPS_LAYER_RUNTIME] = NPS_API_RUNTIME,
					  [NPS_LAYER_COMM] = NPS_API_COMM,
					  [NPS_LAYER_NODE] = NPS_API_NODE,
					  [NPS_LAYER_ACL] = NPS_API_ACL };

	for (size_t i = 0; !f->err && i < f->proc->cann_order.len; i++) {
		const struct nps_cann *call =
			&NPS_AT(&f->proc->cann, struct nps_cann, NPS_AT(&f->proc->cann_order, uint32_t, i));

		f->err = nps_api_table__add(
			&f->m->api, &(struct nps_api_row){ .start = nps_session__real(f->rec, call->start),
							   .end = nps_session__real(f->rec, call->end),
							   .type = types[call->level],
							   .gtid = nps_proc__gtid(f->proc, call->tid),
							   .connection = call->conn,
							   .name = call->name,
							   .item = call->item,
							   .mode = NPS_NONE,
							   .ending = call->ending });
	}
}

static void runs(struct process_fill *f)
{
	for (size_t i = 0; !f->err && i < f->proc->runs.len; i++) {
		const struct nps_event *ev = &NPS_AT(&f->proc->runs, struct nps_event, i);
		const struct nps_event_sched *run = &ev->sched;
		/* as it was called when it left: threads name themselves while they run */
		uint64_t end = ev->start + ev->dur;
		uint32_t comm = nps_session__comm_at(f->rec, ev->tid, end);
		uint32_t waker = ev->waker <= INT32_MAX ? ev->waker : 0;

		f->err = nps_run_table__add(
			&f->m->run,
			&(struct nps_run_row){
				.start = nps_session__real(f->rec, ev->start),
				.end = nps_session__real(f->rec, end),
				.left = run->off ? nps_session__real(f->rec, run->off) : 0,
				.woken = run->runnable ? nps_session__real(f->rec, run->runnable) : 0,
				.pid = f->proc->pid,
				.tid = ev->tid,
				.cpu = run->cpu,
				.next = run->next,
				.prio = run->prio,
				.state = ev->flags & NPS_F_OPEN ? NPS_RUN_OPEN : run->state,
				.comm = comm == NPS_NONE ? f->proc->comm : comm,
				.next_comm = run->next ? nps_session__comm_at(f->rec, run->next, end)
						       : NPS_NONE,
				.waker = waker,
				.waker_comm = waker ? nps_session__comm_at(f->rec, waker, run->runnable)
						    : NPS_NONE });
	}
}

/* The session's list of names is long, and interrupts are many. */
static uint32_t irq_name(struct process_fill *f, const struct nps_event *ev)
{
	uint8_t what = ev->irq.what; /* as wide as the column */
	uint64_t key = (uint64_t)what << 32 | ev->number;
	uint32_t name = nps_map__get(&f->irq_names, key);

	if (name != NPS_NONE)
		return name;
	name = nps_irq_name(f->rec, what, ev->number);
	if ((name == NPS_NONE || nps_map__put(&f->irq_names, key, name)) && !f->err)
		f->err = -ENOMEM;
	return name;
}

static void fill_interrupts(struct process_fill *f)
{
	for (size_t i = 0; !f->err && i < f->proc->irqs.len; i++) {
		const struct nps_event *ev = &NPS_AT(&f->proc->irqs, struct nps_event, i);
		uint32_t comm = nps_session__comm_at(f->rec, ev->tid, ev->start);
		struct nps_irq_row row = { .start = nps_session__real(f->rec, ev->start),
					   .end = nps_session__real(f->rec, ev->start + ev->dur),
					   .tid = ev->tid,
					   .cpu = ev->irq.cpu,
					   .number = ev->number,
					   .what = ev->irq.what,
					   .name = irq_name(f, ev),
					   .comm = comm == NPS_NONE ? f->proc->comm : comm };

		if (!f->err)
			f->err = nps_irq_table__add(&f->m->irq, &row);
	}
}

static void fill_steps(struct process_fill *f)
{
	for (size_t i = 0; !f->err && i < f->proc->steps.len; i++) {
		const struct nps_step *step = &NPS_AT(&f->proc->steps, struct nps_step, i);

		f->err = nps_step_table__add(
			&f->m->step, &(struct nps_step_row){ .id = (int64_t)step->number,
							     .start = nps_session__real(f->rec, step->start),
							     .end = nps_session__real(f->rec, step->end) });
	}
}

static void marks(struct process_fill *f)
{
	for (size_t i = 0; !f->err && i < f->proc->marks.len; i++) {
		const struct nps_mstx_mark *mark = &NPS_AT(&f->proc->marks, struct nps_mstx_mark, i);

		if (!mark->end)
			continue; /* it outlives the capture, as calls can */
		f->err = nps_mstx_table__add(
			&f->m->mstx,
			&(struct nps_mstx_row){ .start = nps_session__real(f->rec, mark->start),
						.end = nps_session__real(f->rec, mark->end),
						.type = mark->type,
						.range = nps_to_u32(mark->range),
						.message = mark->message,
						.gtid = nps_proc__gtid(f->proc, mark->tid),
						.end_gtid = nps_proc__gtid(f->proc, mark->end_tid),
						.domain = mark->domain_name,
						.connection = NPS_NO_ID });
	}
}

static void fill_memory(struct process_fill *f)
{
	uint32_t kinds[] = { nps_model__intern(f->m, "device", &f->err),
			     nps_model__intern(f->m, "host", &f->err) };

	for (size_t i = 0; !f->err && i < f->proc->memory.len; i++) {
		const struct nps_memory_total *total = &NPS_AT(&f->proc->memory, struct nps_memory_total, i);

		f->err = nps_job_memory_table__add(
			&f->m->job_memory,
			&(struct nps_job_memory_row){ .timestamp = nps_session__real(f->rec, total->time),
						      .device = total->device == UINT16_MAX ? NPS_NO_ID
											    : total->device,
						      .kind = kinds[total->kind],
						      .delta = total->delta,
						      .allocated = total->bytes,
						      .blocks = total->blocks,
						      .unknown_frees = nps_to_i64(total->unknown_frees) });
	}
}

/* By device, as readers look for them. */
static void clocks(struct process_fill *f)
{
	for (unsigned int d = 0; !f->err && d < NPS_MAX_DEVICES; d++)
		for (size_t i = 0; !f->err && i < f->rec->logs.len; i++) {
			const struct nps_device_log *log = &NPS_AT(&f->rec->logs, struct nps_device_log, i);

			if (log->device == d && &f->rec->procs[log->proc] == f->proc)
				f->err = nps_clock_align__errors(f->m, f->rec, log);
		}
}

/* --- identity ---------------------------------------------------------------------------------------- */

static void fill_devices(struct process_fill *f)
{
	for (unsigned int d = 0; !f->err && d < NPS_MAX_DEVICES; d++) {
		bool used = f->proc->devices >> d & 1;
		const char *chip = used && f->rec->devices[d].chip ? f->rec->devices[d].chip : "UNKNOWN";
		struct nps_device_row row = { .id = used ? (int64_t)d : -1, .rank = f->m->rank };

		if (!used && (d || f->proc->devices))
			continue;
		row.chip = nps_model__intern(f->m, chip, &f->err);
		if (!f->err)
			f->err = nps_device_table__add(&f->m->device, &row);
	}
}

/* The vendor's uid is a decimal number; a machine id of another form is hashed into one. */
static void fill_host(struct process_fill *f)
{
	const cJSON *json = cJSON_GetObjectItemCaseSensitive(f->rec->json, "host");
	const char *uid = nps_json_str(json, "uid", "");
	size_t digits = strspn(uid, "0123456789");
	char number[32];

	snprintf(number, sizeof(number), "%" PRIu64, nps_hash_bytes(uid, strlen(uid)));
	f->m->host_uid =
		nps_model__intern(f->m, digits && !uid[digits] && digits < 20 ? uid : number, &f->err);
	f->m->host_name = nps_model__intern(f->m, nps_proc__host_name(f->rec, f->proc), &f->err);
}

/* What the capture was requested to record besides what it always records. */
static void fill_requested(struct process_fill *f)
{
	const cJSON *request = cJSON_GetObjectItemCaseSensitive(f->rec->json, "request"), *item;
	const cJSON *stacks = cJSON_GetObjectItemCaseSensitive(request, "stacks");

	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(request, "host_sys"))
	{
		const char *part = cJSON_GetStringValue(item);

		if (part && !strcmp(part, "osrt"))
			f->m->requested |= NPS_REQUESTED_OS;
	}
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(stacks, "on_cpu")))
		f->m->requested |= NPS_REQUESTED_ONCPU;
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(stacks, "off_cpu")))
		f->m->requested |= NPS_REQUESTED_OFFCPU;
}

static void window(struct process_fill *f)
{
	const struct nps_model *m = f->m;

	nps_model__cover(f->m, nps_session__real(f->rec, f->rec->begin),
			 nps_session__real(f->rec, f->rec->end));
	for (size_t i = 0; i < m->task.t.len; i++)
		nps_model__cover(f->m, m->task.start[i], m->task.end[i]);
	for (size_t i = 0; i < m->api.t.len; i++)
		nps_model__cover(f->m, m->api.start[i], m->api.end[i]);
	for (size_t i = 0; i < m->osrt.t.len; i++)
		nps_model__cover(f->m, m->osrt.start[i], m->osrt.end[i]);
	for (size_t i = 0; i < m->osrt_sum.t.len; i++)
		nps_model__cover(f->m, m->osrt_sum.start[i], m->osrt_sum.end[i]);
	for (size_t i = 0; i < m->mstx.t.len; i++)
		nps_model__cover(f->m, m->mstx.start[i], m->mstx.end[i]);
	for (size_t i = 0; i < m->step.t.len; i++)
		nps_model__cover(f->m, m->step.start[i], m->step.end[i]);
	nps_driver__cover(f->m);
}

/*
 * Devices whose samples belong to the process. In a container devices have other numbers than where they
 * were sampled: there, the devices on which the process held memory. A process without a known device gets
 * all samples: they were requested for it.
 */
static uint64_t sampled_devices(const struct nps_session *rec, const struct nps_proc *proc)
{
	const cJSON *device;
	uint64_t mask = 0;

	if (!nps_proc__in_container(proc))
		return proc->devices ? proc->devices : ~0ULL;
	cJSON_ArrayForEach(device, cJSON_GetObjectItemCaseSensitive(proc->json, "sampled_devices"))
	{
		double d = cJSON_GetNumberValue(device);

		if (d >= 0 && d < NPS_MAX_DEVICES)
			mask |= 1ULL << (unsigned int)d;
	}
	if (!mask && rec->npu.requested)
		nps_msg("process %u is in a container, whose devices have other numbers, and the driver did "
			"not report which it used: its result has no samples of devices",
			proc->pid);
	return mask;
}

int nps_import__process(struct nps_model *model, struct nps_session *rec, uint32_t proc_row)
{
	struct nps_proc *proc = &rec->procs[proc_row];
	struct process_fill f = { .m = model, .rec = rec, .proc = proc };
	uint32_t device = proc->devices ? __builtin_ctzll(proc->devices) : 0;
	uint64_t unseen;

	memset(f.texts, 0xff, sizeof(f.texts));
	f.tasks = proc->tasks ? (struct nps_task *)rec->tasks.data + proc->first_task : NULL;
	model->generation = NPS_GENERATION_B;
	model->layout = NPS_LAYOUT_TORCH;
	model->level = NPS_MAX(nps_session__level(rec), 0);
	model->pid = proc->pid;
	model->has_rank = proc->has_rank;
	model->rank = proc->has_rank ? proc->rank : device;
	model->process = proc->comm;
	fill_requested(&f);
	model->runs_lost = rec->losses.ring[NPS_EV_SCHED] || rec->losses.cut;
	f.err = nps_proc__sort(proc);
	fill_tasks(&f);
	if (!f.err)
		f.err = nps_collectives__fill(model, &proc->comms, rec->begin_real - rec->begin, &unseen);
	fill_block_rows(&f);
	fill_calls(&f);
	if (!f.err)
		f.err = nps_os_calls__fill(model, rec, proc);
	runs(&f);
	if (!f.err)
		f.err = nps_wakers__check(model);
	fill_interrupts(&f);
	fill_steps(&f);
	marks(&f);
	if (!f.err)
		f.err = nps_torch_ops__fill(model, rec, proc);
	if (!f.err)
		f.err = nps_session_memory__fill(model, rec, proc);
	if (!f.err)
		f.err = nps_planned_calls__fill(model, rec, proc);
	if (!f.err)
		f.err = nps_driver__fill(model, rec, proc);
	if (!f.err)
		f.err = nps_import__stacks(model, rec, proc_row);
	if (!f.err)
		f.err = nps_python_stacks__fill(model, rec, proc);
	fill_memory(&f);
	clocks(&f);
	fill_devices(&f);
	fill_host(&f);
	if (!f.err)
		f.err = nps_import__host(model, rec, proc->pid);
	if (!f.err)
		f.err = nps_import__aicpu(model, rec, proc_row);
	if (!f.err)
		f.err = nps_import__npu(model, rec, sampled_devices(rec, proc), proc->pid);
	all_counters(&f);
	if (!f.err)
		nps_late_kernels__count(model, rec, proc);
	if (!f.err)
		window(&f);
	if (!f.err)
		f.err = nps_import__process_info(model, rec, proc_row);
	nps_map__free(&f.irq_names);
	nps_map__free(&f.planes);
	nps_map__free(&f.nplanes);
	for (size_t i = 0; i < NPS_MAX_DEVICES; i++)
		free(f.plans[i]);
	return f.err;
}

int nps_import__whole_host(struct nps_model *model, struct nps_session *rec)
{
	struct nps_proc nobody = { .pid = 0 };
	struct process_fill f = { .m = model, .rec = rec, .proc = &nobody };

	model->generation = NPS_GENERATION_B;
	model->layout = NPS_LAYOUT_MSPROF;
	model->level = NPS_MAX(nps_session__level(rec), 0);
	model->process = nps_model__intern(f.m, "host", &f.err);
	model->runs_lost = rec->losses.ring[NPS_EV_SCHED] || rec->losses.cut;
	for (uint32_t p = 0; p < rec->nprocs && !f.err; p++) {
		f.proc = &rec->procs[p];
		f.err = nps_proc__sort(f.proc);
		if (!f.err)
			f.err = nps_os_calls__fill(model, rec, f.proc);
		runs(&f);
		fill_interrupts(&f);
		if (!f.err)
			f.err = nps_driver__fill(model, rec, f.proc);
	}
	f.proc = &nobody;
	if (!f.err)
		f.err = nps_table__order(&model->osrt.t, NPS_ORDINAL(osrt, start));
	if (!f.err)
		f.err = nps_table__order(&model->osrt_span.t, NPS_ORDINAL(osrt_span, start));
	if (!f.err)
		f.err = nps_table__order(&model->irq.t, NPS_ORDINAL(irq, start));
	if (!f.err)
		f.err = nps_table__order(&model->driver.t, NPS_ORDINAL(driver, start));
	if (!f.err)
		f.err = nps_table__order(&model->driver_task.t, NPS_ORDINAL(driver_task, start));
	if (!f.err)
		f.err = nps_table__order(&model->driver_cqe.t, NPS_ORDINAL(driver_cqe, timestamp));
	if (!f.err)
		f.err = nps_table__order(&model->run.t, NPS_ORDINAL(run, start));
	if (!f.err)
		f.err = nps_wakers__check(model);
	fill_devices(&f);
	fill_host(&f);
	if (!f.err)
		f.err = nps_import__host(model, rec, 0);
	if (!f.err)
		f.err = nps_import__npu(model, rec, ~0ULL, 0);
	if (!f.err)
		window(&f);
	nps_map__free(&f.irq_names);
	return f.err;
}
