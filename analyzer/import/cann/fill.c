/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs, in order of start, become the model's tasks, with what is known from their launches. */
#include "base/progress.h"
#include "import/cann/collectives.h"
#include "import/cann/hardware.h"
#include "import/cann/kernel_rows.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPERATION_OTHER 65535

struct cann_fill {
	struct nps_cann_capture *capture;
	struct nps_model *m;
	const struct nps_match *match; /* the next ones of the two sorters */
	const struct nps_row_pair *pmu;
	struct nps_pmu_plan *plans; /* of the devices */
	struct nps_core_clock clock;
	uint32_t hardware[4][256]; /* texts of types as logged; NPS_NONE: not looked up */
	uint32_t states[2], hf32[2];
	struct nps_collectives collectives;
	uint64_t before, unfinished;
	uint32_t steps, host_steps, kernel_steps, launch_steps, pmu_steps;
};

/* What is known of a run from the host. */
struct host_info {
	const struct nps_host_task *task; /* NULL: nothing */
	const struct nps_launch *launch;
	bool parent;
};

static uint32_t hardware_type(struct cann_fill *fill, const struct nps_cann_run *run)
{
	uint32_t *text = &fill->hardware[run->source][run->type];
	const char *name;

	if (*text != NPS_NONE)
		return *text;
	if (run->source == NPS_RUN_TRACK) {
		*text = nps_dictionary__type(&fill->capture->names, NPS_LEVEL_RUNTIME, run->type);
		return *text;
	}
	name = nps_hardware_type(run, fill->capture->v6);
	*text = name ? nps_strings__addz(fill->m->strings, name)
		     : nps_strings__addf(fill->m->strings, "UNKNOWN_%u", run->type);
	return *text;
}

static struct host_info run_lookup_host(struct cann_fill *fill, size_t row)
{
	struct nps_cann_capture *capture = fill->capture;
	struct host_info launched = { 0 };
	uint32_t host;

	if (!fill->match || fill->match->key.high != row)
		return launched;
	host = fill->match->key.low;
	launched.parent = host == NPS_MATCH_PARENT;
	if (!launched.parent) {
		launched.task = &NPS_AT(&capture->host_tasks, struct nps_host_task, host);
		launched.launch = &NPS_AT(&capture->launches, struct nps_launch, launched.task->launch);
	}
	fill->match = nps_ext_sort__next(&capture->matches);
	return launched;
}

static uint8_t task_class(const struct host_info *launched)
{
	if (launched->parent)
		return NPS_CLASS_PARENT;
	if (!launched->task)
		return NPS_CLASS_OTHER;
	if (launched->task->part != NPS_NONE)
		return NPS_CLASS_COMM;
	if (launched->task->kernel != NPS_NONE)
		return NPS_CLASS_COMPUTE;
	assert(launched->launch); /* every task of the host has one */
	if (launched->launch->kind == NPS_LAUNCH_COPY)
		return NPS_CLASS_MEMCPY;
	return launched->launch->kind == NPS_LAUNCH_EVENT ? NPS_CLASS_EVENT : NPS_CLASS_OTHER;
}

static void fill_compute(struct cann_fill *fill, uint32_t task, const struct nps_kernel_info *kernel,
			 uint32_t blocks)
{
	struct nps_compute_row row;

	assert(kernel); /* or the class would be another one */
	row = (struct nps_compute_row){ .task = task,
					.name = kernel->name,
					.core = kernel->core,
					.type = kernel->type,
					.blocks = blocks,
					.mix_blocks = kernel->mix_blocks,
					.attributes = kernel->attributes,
					.state = kernel->state < 2 ? fill->states[kernel->state] : NPS_NONE,
					.hf32 = kernel->hf32 < 2 ? fill->hf32[kernel->hf32] : NPS_NONE,
					.grid = kernel->grid,
					.block_dim = kernel->block_dim };
	fill->capture->err = nps_kernel__add(fill->m, &fill->capture->tensors, kernel->tensors, &row);
}

static void fill_copy(struct cann_fill *fill, uint32_t task, const struct nps_launch *launch)
{
	assert(launch);
	fill->capture->err = nps_memcpy_table__add(
		&fill->m->memcpy,
		&(struct nps_memcpy_row){ .task = task,
					  .size = launch->bytes,
					  .operation = launch->bytes == NPS_NULL ? OPERATION_OTHER
										 : launch->operation });
}

static const struct nps_pmu_plan *plan_of(const struct cann_fill *fill, uint32_t device)
{
	for (size_t i = 0; i < fill->capture->ndevices; i++)
		if (fill->capture->devices[i].device == device)
			return &fill->plans[i];
	return NULL;
}

static void fill_pmu(struct cann_fill *fill, uint32_t task, const struct nps_cann_run *run, uint32_t pmu_row,
		     uint32_t blocks, uint32_t mix_blocks)
{
	double mhz = nps_core_clock__at(&fill->clock, fill->m, run->device, run->start);
	const struct nps_pmu_plan *plan = plan_of(fill, run->device);

	if (plan)
		fill->capture->err = nps_pmu__add(
			fill->m, task, plan, &NPS_AT(&fill->capture->run_pmus, struct nps_run_pmu, pmu_row),
			blocks, mix_blocks, mhz);
	nps_cann_capture__step(&fill->capture->run_pmus, &fill->pmu_steps);
}

/* The row of `task`; NPS_NONE on an error. */
static uint32_t fill_task(struct cann_fill *fill, const struct nps_cann_run *run,
			  const struct host_info *launched, uint32_t name)
{
	const struct nps_launch *launch = launched->launch;
	struct nps_model *m = fill->m;
	uint32_t hardware = hardware_type(fill, run);

	fill->capture->err = nps_task_table__add(
		&m->task,
		&(struct nps_task_row){ .start = run->start,
					.end = run->end,
					.device = run->device,
					.connection = launch ? launch->connection : NPS_NO_ID,
					.id = m->task.t.len,
					.pid = m->pid,
					.type = launch ? launch->type : hardware,
					.context = run->context,
					.stream = fill->capture->v6 && launch ? launch->stream : run->stream,
					.task = run->task,
					.model = launch ? launch->model : NPS_NO_ID,
					.batch = run->batch,
					.name = name != NPS_NONE ? name
						: launch	 ? launch->type
								 : hardware,
					.kernel = launch ? launch->kernel : NPS_NONE,
					.hw_type = hardware,
					.submit = launch ? launch->submit : 0,
					.step = NPS_NONE,
					.class = task_class(launched),
					.source = NPS_TIME_DEVICE_LOG });
	nps_model__cover(m, run->start, run->end);
	return fill->capture->err ? NPS_NONE : m->task.t.len - 1;
}

static void fill_run(struct cann_fill *fill, size_t row, const struct nps_cann_run *run)
{
	struct nps_cann_capture *capture = fill->capture;
	struct host_info launched = run_lookup_host(fill, row);
	const struct nps_kernel_info *kernel = NULL;
	uint32_t pmu = NPS_NONE, blocks = 0, task;

	/* Skips all counters up to this row: one that stays would block those that follow. */
	while (fill->pmu && fill->pmu->key.high <= row) {
		if (pmu == NPS_NONE)
			pmu = fill->pmu->key.low;
		fill->pmu = nps_ext_sort__next(&capture->pmu_order);
	}
	if (!run->end)
		return; /* counted where the logs were read */
	if (capture->host.has_begin && run->end < capture->host.begin_us * 1000) {
		fill->before++;
		return;
	}
	if (launched.task && launched.task->kernel != NPS_NONE) {
		kernel = &NPS_AT(&capture->kernels, struct nps_kernel_info, launched.task->kernel);
		blocks = kernel->blocks ? kernel->blocks : run->blocks;
	}
	task = fill_task(fill, run, &launched, kernel ? kernel->name : NPS_NONE);
	if (task == NPS_NONE)
		return;
	switch (fill->m->task.class[task]) {
	case NPS_CLASS_COMPUTE:
		fill_compute(fill, task, kernel, blocks);
		break;
	case NPS_CLASS_MEMCPY:
		fill_copy(fill, task, launched.launch);
		break;
	case NPS_CLASS_COMM:
		assert(launched.task);
		if (!capture->err)
			capture->err = nps_collectives__part(&fill->collectives, task, launched.task);
		break;
	default:
		break;
	}
	if (pmu != NPS_NONE && !capture->err)
		fill_pmu(fill, task, run, pmu, kernel ? blocks : run->blocks,
			 kernel ? kernel->mix_blocks : 0);
}

static void fill_runs(struct cann_fill *fill)
{
	struct nps_cann_capture *capture = fill->capture;

	nps_progress__stage(fill->m->progress, "writing tasks", capture->runs.len, "tasks");
	fill->match = nps_ext_sort__next(&capture->matches);
	fill->pmu = nps_ext_sort__next(&capture->pmu_order);
	for (size_t i = 0; !capture->err && i < capture->runs.len; i++) {
		fill_run(fill, i, &NPS_AT(&capture->runs, struct nps_cann_run, i));
		nps_progress__add(fill->m->progress, 1);
		nps_cann_capture__step(&capture->runs, &fill->steps);
		nps_cann_capture__step(&capture->host_tasks, &fill->host_steps);
		nps_cann_capture__step(&capture->launches, &fill->launch_steps);
		nps_cann_capture__step(&capture->kernels, &fill->kernel_steps);
	}
	if (!capture->err)
		capture->err = capture->matches.err ? capture->matches.err : capture->pmu_order.err;
	nps_model__lost(fill->m, fill->before, "tasks before the capture");
}

static void fill_blocks(struct cann_fill *fill)
{
	struct nps_cann_capture *capture = fill->capture;
	uint32_t steps = 0;

	for (size_t i = 0; !capture->err && i < capture->block_runs.len; i++) {
		const struct nps_block_run *run = &NPS_AT(&capture->block_runs, struct nps_block_run, i);

		nps_cann_capture__step(&capture->block_runs, &steps);
		if (run->end && (!capture->host.has_begin || run->end >= capture->host.begin_us * 1000))
			capture->err = nps_block__add(fill->m, run, 0);
	}
}

static int fill_prepare(struct cann_fill *fill)
{
	struct nps_cann_capture *capture = fill->capture;
	struct nps_strings *strings = fill->m->strings;

	memset(fill->hardware, 0xff, sizeof(fill->hardware));
	fill->states[NPS_STATE_STATIC] = nps_strings__addz(strings, "static");
	fill->states[NPS_STATE_DYNAMIC] = nps_strings__addz(strings, "dynamic");
	fill->hf32[0] = nps_strings__addz(strings, "NO");
	fill->hf32[1] = nps_strings__addz(strings, "YES");
	fill->plans = calloc(capture->ndevices + 1, sizeof(*fill->plans));
	if (!fill->plans)
		return -ENOMEM;
	for (size_t i = 0; i < capture->ndevices; i++)
		if (nps_pmu__plan(&fill->plans[i], &capture->devices[i], strings))
			return -ENOMEM;
	return nps_collectives__begin(&fill->collectives, capture);
}

int nps_cann_capture__fill(struct nps_cann_capture *capture)
{
	struct cann_fill *fill = calloc(1, sizeof(*fill));

	if (!fill)
		return -ENOMEM;
	fill->capture = capture;
	fill->m = capture->model;
	capture->err = fill_prepare(fill);
	if (!capture->err)
		capture->err = nps_ext_sort__finish(&capture->pmu_order);
	if (!capture->err)
		fill_runs(fill);
	if (!capture->err)
		fill_blocks(fill);
	if (!capture->err)
		capture->err = nps_collectives__finish(&fill->collectives);
	nps_collectives__free(&fill->collectives);
	free(fill->plans);
	free(fill);
	return capture->err;
}
