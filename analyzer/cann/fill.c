/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs, in order of start, become the model's tasks, with what is known from their launches. */
#include "base/progress.h"
#include "cann/collectives.h"
#include "cann/hardware.h"
#include "cann/pmu.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPERATION_OTHER 65535

struct fill {
	struct nps_capture *capture;
	struct nps_model *m;
	const struct nps_match *match; /* the next ones of the two sorters */
	const struct nps_row_pair *pmu;
	struct nps_pmu_plan *plans; /* of the devices */
	double mhz[NPS_DEVICES_MAX]; /* now, 0 unknown */
	size_t frequency; /* the next row of `frequency` */
	uint32_t hardware[4][256]; /* texts of types as logged; NPS_NONE: not looked up */
	uint32_t states[2], hf32[2];
	struct nps_collectives collectives;
	uint64_t before, unfinished;
	uint32_t steps, host_steps, kernel_steps, launch_steps, pmu_steps;
};

/* What is known of a run from the host. */
struct told {
	const struct nps_host_task *task; /* NULL: nothing */
	const struct nps_launch *launch;
	bool parent;
};

static uint32_t hardware_type(struct fill *fill, const struct nps_cann_run *run)
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

static struct told look_up(struct fill *fill, size_t row)
{
	struct nps_capture *capture = fill->capture;
	struct told told = { 0 };
	uint32_t host;

	if (!fill->match || fill->match->key.high != row)
		return told;
	host = fill->match->key.low;
	told.parent = host == NPS_MATCH_PARENT;
	if (!told.parent) {
		told.task = &NPS_AT(&capture->host_tasks, struct nps_host_task, host);
		told.launch = &NPS_AT(&capture->launches, struct nps_launch, told.task->launch);
	}
	fill->match = nps_ext_sort__next(&capture->matches);
	return told;
}

static uint8_t class_of(const struct told *told)
{
	if (told->parent)
		return NPS_CLASS_PARENT;
	if (!told->task)
		return NPS_CLASS_OTHER;
	if (told->task->part != NPS_NONE)
		return NPS_CLASS_COMM;
	if (told->task->kernel != NPS_NONE)
		return NPS_CLASS_COMPUTE;
	assert(told->launch); /* every task of the host has one */
	if (told->launch->kind == NPS_LAUNCH_COPY)
		return NPS_CLASS_MEMCPY;
	return told->launch->kind == NPS_LAUNCH_EVENT ? NPS_CLASS_EVENT : NPS_CLASS_OTHER;
}

static void fill_compute(struct fill *fill, uint32_t task, const struct nps_kernel_info *kernel,
			 uint32_t blocks)
{
	struct nps_model *m = fill->m;
	struct nps_tensor_texts texts = { NPS_NONE, NPS_NONE, NPS_NONE, NPS_NONE, NPS_NONE, NPS_NONE };
	size_t row = 0;

	assert(kernel); /* or the class would be another one */
	fill->capture->err = nps_table__add(&m->compute.t, &row);
	if (!fill->capture->err && kernel->tensors != NPS_NONE)
		fill->capture->err = nps_tensors__texts(&fill->capture->tensors, kernel->tensors, &texts);
	if (fill->capture->err)
		return;
	m->compute.task[row] = task;
	m->compute.name[row] = kernel->name;
	m->compute.core[row] = kernel->core;
	m->compute.type[row] = kernel->type;
	m->compute.blocks[row] = blocks;
	m->compute.mix_blocks[row] = kernel->mix_blocks;
	m->compute.input_formats[row] = texts.input_formats;
	m->compute.input_types[row] = texts.input_types;
	m->compute.input_shapes[row] = texts.input_shapes;
	m->compute.output_formats[row] = texts.output_formats;
	m->compute.output_types[row] = texts.output_types;
	m->compute.output_shapes[row] = texts.output_shapes;
	m->compute.attributes[row] = kernel->attributes;
	m->compute.state[row] = kernel->state < 2 ? fill->states[kernel->state] : NPS_NONE;
	m->compute.hf32[row] = kernel->hf32 < 2 ? fill->hf32[kernel->hf32] : NPS_NONE;
	m->compute.grid[row] = kernel->grid;
	m->compute.block_dim[row] = kernel->block_dim;
}

static void fill_copy(struct fill *fill, uint32_t task, const struct nps_launch *launch)
{
	struct nps_model *m = fill->m;
	size_t row = 0;

	assert(launch);
	fill->capture->err = nps_table__add(&m->memcpy.t, &row);
	if (fill->capture->err)
		return;
	m->memcpy.task[row] = task;
	m->memcpy.size[row] = launch->bytes;
	m->memcpy.operation[row] = launch->bytes == NPS_NULL ? OPERATION_OTHER : launch->operation;
}

static const struct nps_pmu_plan *plan_of(const struct fill *fill, uint32_t device)
{
	for (size_t i = 0; i < fill->capture->ndevices; i++)
		if (fill->capture->devices[i].device == device)
			return &fill->plans[i];
	return NULL;
}

static void fill_pmu(struct fill *fill, uint32_t task, const struct nps_cann_run *run, uint32_t pmu_row,
		     uint32_t blocks, uint32_t mix_blocks)
{
	const struct nps_pmu_plan *plan = plan_of(fill, run->device);
	const struct nps_run_pmu *pmu = &NPS_AT(&fill->capture->run_pmus, struct nps_run_pmu, pmu_row);
	struct nps_model *m = fill->m;
	double values[NPS_PMU_MOST];

	if (!plan)
		return;
	nps_pmu__compute(plan, pmu, blocks, mix_blocks, fill->mhz[run->device % NPS_DEVICES_MAX], values);
	for (unsigned int i = 0; i < plan->n; i++) {
		size_t row = 0;

		fill->capture->err = nps_table__add(&m->pmu.t, &row);
		if (fill->capture->err)
			return;
		m->pmu.task[row] = task;
		m->pmu.name[row] = plan->columns[i].name;
		m->pmu.value[row] = values[i];
	}
	nps_capture__step(&fill->capture->run_pmus, &fill->pmu_steps);
}

/* The row of `task`; NPS_NONE on an error. */
static uint32_t fill_task(struct fill *fill, const struct nps_cann_run *run, const struct told *told,
			  uint32_t name)
{
	const struct nps_launch *launch = told->launch;
	struct nps_model *m = fill->m;
	uint32_t hardware = hardware_type(fill, run);
	size_t row = 0;

	fill->capture->err = nps_table__add(&m->task.t, &row);
	if (fill->capture->err)
		return NPS_NONE;
	m->task.start[row] = run->start;
	m->task.end[row] = run->end;
	m->task.device[row] = run->device;
	m->task.connection[row] = launch ? launch->connection : NPS_NO_ID;
	m->task.id[row] = row;
	m->task.pid[row] = m->pid;
	m->task.type[row] = launch ? launch->type : hardware;
	m->task.context[row] = run->context;
	m->task.stream[row] = fill->capture->v6 && launch ? launch->stream : run->stream;
	m->task.task[row] = run->task;
	m->task.model[row] = launch ? launch->model : NPS_NO_ID;
	m->task.batch[row] = run->batch;
	m->task.name[row] = name != NPS_NONE ? name : launch ? launch->type : hardware;
	m->task.kernel[row] = launch ? launch->kernel : NPS_NONE;
	m->task.hw_type[row] = hardware;
	m->task.submit[row] = launch ? launch->submit : 0;
	m->task.step[row] = NPS_NONE;
	m->task.class[row] = class_of(told);
	m->task.source[row] = NPS_TIME_DEVICE_LOG;
	nps_model__cover(m, run->start, run->end);
	return row;
}

/* Frequencies of the cores as they were at TIME. */
static void follow_frequency(struct fill *fill, uint64_t time)
{
	const struct nps_frequency_table *t = &fill->m->frequency;

	for (; fill->frequency < t->t.len && t->timestamp[fill->frequency] <= time; fill->frequency++)
		if (t->device[fill->frequency] < NPS_DEVICES_MAX)
			fill->mhz[t->device[fill->frequency]] = t->mhz[fill->frequency];
}

static void fill_run(struct fill *fill, size_t row, const struct nps_cann_run *run)
{
	struct nps_capture *capture = fill->capture;
	struct told told = look_up(fill, row);
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
	if (told.task && told.task->kernel != NPS_NONE) {
		kernel = &NPS_AT(&capture->kernels, struct nps_kernel_info, told.task->kernel);
		blocks = kernel->blocks ? kernel->blocks : run->blocks;
	}
	task = fill_task(fill, run, &told, kernel ? kernel->name : NPS_NONE);
	if (task == NPS_NONE)
		return;
	switch (fill->m->task.class[task]) {
	case NPS_CLASS_COMPUTE:
		fill_compute(fill, task, kernel, blocks);
		break;
	case NPS_CLASS_MEMCPY:
		fill_copy(fill, task, told.launch);
		break;
	case NPS_CLASS_COMM:
		assert(told.task);
		if (!capture->err)
			capture->err = nps_collectives__part(&fill->collectives, task, told.task);
		break;
	default:
		break;
	}
	follow_frequency(fill, run->start);
	if (pmu != NPS_NONE && !capture->err)
		fill_pmu(fill, task, run, pmu, kernel ? blocks : run->blocks,
			 kernel ? kernel->mix_blocks : 0);
}

static void walk(struct fill *fill)
{
	struct nps_capture *capture = fill->capture;

	nps_progress__stage(fill->m->progress, "writing tasks", capture->runs.len, "tasks");
	fill->match = nps_ext_sort__next(&capture->matches);
	fill->pmu = nps_ext_sort__next(&capture->pmu_order);
	for (size_t i = 0; !capture->err && i < capture->runs.len; i++) {
		fill_run(fill, i, &NPS_AT(&capture->runs, struct nps_cann_run, i));
		nps_progress__add(fill->m->progress, 1);
		nps_capture__step(&capture->runs, &fill->steps);
		nps_capture__step(&capture->host_tasks, &fill->host_steps);
		nps_capture__step(&capture->launches, &fill->launch_steps);
		nps_capture__step(&capture->kernels, &fill->kernel_steps);
	}
	if (!capture->err)
		capture->err = capture->matches.err ? capture->matches.err : capture->pmu_order.err;
	nps_model__lost(fill->m, fill->before, "tasks before the capture");
}

static void fill_blocks(struct fill *fill)
{
	struct nps_capture *capture = fill->capture;
	struct nps_block_table *t = &fill->m->block;
	uint32_t steps = 0;
	size_t row;

	for (size_t i = 0; !capture->err && i < capture->block_runs.len; i++) {
		const struct nps_block_run *run = &NPS_AT(&capture->block_runs, struct nps_block_run, i);

		nps_capture__step(&capture->block_runs, &steps);
		if (!run->end || (capture->host.has_begin && run->end < capture->host.begin_us * 1000))
			continue;
		capture->err = nps_table__add(&t->t, &row);
		if (capture->err)
			return;
		t->start[row] = run->start;
		t->end[row] = run->end;
		t->device[row] = run->device;
		t->stream[row] = run->stream;
		t->task[row] = run->task;
		t->block[row] = run->block;
		t->vector[row] = run->vector;
		t->core[row] = run->core;
	}
}

static int prepare(struct fill *fill)
{
	struct nps_capture *capture = fill->capture;
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

int nps_capture__fill(struct nps_capture *capture)
{
	struct fill *fill = calloc(1, sizeof(*fill));

	if (!fill)
		return -ENOMEM;
	fill->capture = capture;
	fill->m = capture->model;
	capture->err = prepare(fill);
	if (!capture->err)
		capture->err = nps_ext_sort__finish(&capture->pmu_order);
	if (!capture->err)
		walk(fill);
	if (!capture->err)
		fill_blocks(fill);
	if (!capture->err)
		capture->err = nps_collectives__finish(&fill->collectives);
	nps_collectives__free(&fill->collectives);
	free(fill->plans);
	free(fill);
	return capture->err;
}
