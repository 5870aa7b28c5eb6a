/* SPDX-License-Identifier: BSD-2-Clause */
/* Setup, and the loop: the thread whose clock is behind does the next operation. */
#include "gen.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_NS 100000000 /* after every sync point */
#define FIRST_STREAM 2
#define COMM_STREAM 1200
#define MODEL_STREAM 1300
#define FLUSH_EVERY 32
#define STEPS 10
#define WRAPS_X2 7 /* --flip: at least 3.5 wraps */
#define STRIDE_MAX 8000

static void stream_init(struct gen *g, struct stream *st, const struct device *d, uint32_t id)
{
	*st = (struct stream){ .id = id, .device = d->id, .stride = 1, .device_end = d->clock.cnt0 };
	st->count = g->o.ffts_every ? 0x7FF0 : gen_range(g, 0, 3000);
}

static void device_init(struct gen *g, struct device *d)
{
	uint64_t busy = g->o.tasks * 3 / 4 / g->o.devices + 1, stride;

	d->streams = calloc(g->o.streams, sizeof(*d->streams));
	need(d->streams != NULL, "streams");
	for (uint32_t i = 0; i < g->o.streams; i++)
		stream_init(g, &d->streams[i], d, FIRST_STREAM + i);
	for (uint32_t p = 0; p < PLANES; p++)
		stream_init(g, &d->comm[p], d, COMM_STREAM + p);
	stream_init(g, &d->model, d, MODEL_STREAM);
	d->next_task = 0xFFF0; /* V6: soon past 16 bits */
	if (!g->o.flip)
		return;
	stride = (WRAPS_X2 * 65536 / 2 + busy - 1) / busy;
	d->streams[0].stride = stride < STRIDE_MAX ? (uint32_t)stride : STRIDE_MAX;
}

static struct thread *next_thread(struct gen *g)
{
	struct thread *first = &g->threads[0];

	for (uint32_t i = 1; i < g->o.threads; i++)
		if (g->threads[i].now < first->now)
			first = &g->threads[i];
	return first;
}

/* Threads are bound to devices when there are enough of them. */
static struct device *device_of(struct gen *g, const struct thread *t)
{
	uint64_t i = (uint64_t)(t - g->threads);

	if (g->o.threads < g->o.devices)
		i = gen_rnd(g) >> 8;
	return &g->devices[i % g->o.devices];
}

static bool due(uint64_t k, uint32_t every)
{
	return every && k % every == every - 1;
}

static void steps(struct gen *g, struct thread *t, uint64_t k, bool begin)
{
	uint64_t length = g->o.tasks < STEPS ? 1 : g->o.tasks / STEPS;

	if (!g->o.step_trace || (begin ? k % length != 0 : k % length != length - 1))
		return;
	for (uint32_t i = 0; i < g->o.devices; i++)
		op_step(g, t, &g->devices[i], k / length, begin);
}

static uint64_t runs_until(const struct gen *g, uint64_t k)
{
	return k * g->o.model_runs / g->o.tasks;
}

static void kernel_and_more(struct gen *g, struct thread *t, uint64_t k)
{
	struct device *d = device_of(g, t);
	const bool marked = due(k, g->o.mstx_every);
	struct mark mark;

	advance(g, t, 300, 2000);
	steps(g, t, k, true);
	if (marked)
		mark = op_mstx_begin(g, t, d, k / g->o.mstx_every);
	if (due(k, g->o.ffts_every))
		op_ffts(g, t, d, k);
	else
		op_kernel(g, t, d, k);
	if (marked)
		op_mstx_end(g, t, d, &mark);
	if (due(k, g->o.comm_every))
		op_comm(g, t, d, k / g->o.comm_every);
	if (due(k, g->o.memcpy_every))
		op_memcpy(g, t, d);
	if (due(k, g->o.event_every))
		op_event(g, t, d, k / g->o.event_every);
	for (uint64_t run = runs_until(g, k); run < runs_until(g, k + 1); run++)
		model_run(g, t, run);
	steps(g, t, k, false);
	g->n.kernels++;
}

static void flush_devices(struct gen *g)
{
	uint64_t now = next_thread(g)->now;

	for (uint32_t i = 0; i < g->o.devices; i++)
		device_flush(g, &g->devices[i], device_after(g, &g->devices[i], now, 0));
}

static void truth_counts(struct gen *g)
{
	const struct {
		const char *key;
		uint64_t value;
	} counts[] = {
		{ "kernels", g->n.kernels },
		{ "task", g->n.tasks },
		{ "api", g->n.apis },
		{ "comm_op", g->n.comm_ops },
		{ "comm_task", g->n.comm_tasks },
		{ "memcpy", g->n.memcpys },
		{ "pmu", g->n.pmus },
		{ "mstx", g->n.mstx },
		{ "step", g->n.steps },
		{ "aicpu", g->n.aicpus },
		{ "host_only", g->n.host_only },
		{ "flips", g->n.flips },
	};

	truth_begin(&g->truth, "end");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		truth_uint(&g->truth, counts[i].key, counts[i].value);
	truth_end(&g->truth);
}

static void open_all(struct gen *g)
{
	g->threads = calloc(g->o.threads, sizeof(*g->threads));
	g->devices = calloc(g->o.devices, sizeof(*g->devices));
	need(g->threads && g->devices, "threads");
	g->rnd = mix64(g->o.seed);
	gen_clocks(g);
	control_make_dirs(g);
	host_open(g);
	for (uint32_t i = 0; i < g->o.devices; i++) {
		device_open(g, &g->devices[i]);
		device_init(g, &g->devices[i]);
	}
	for (uint32_t i = 0; i < g->o.threads; i++) {
		g->threads[i].tid = g->o.pid + i;
		g->threads[i].now = host_ticks(g, FIRST_NS + gen_range(g, 0, 20000));
	}
	truth_open(&g->truth, g->o.truth);
	names_init(g);
	type_names(g);
}

static void close_all(struct gen *g)
{
	for (uint32_t i = 0; i < g->o.threads; i++)
		if (g->threads[i].now > g->host_last)
			g->host_last = g->threads[i].now;
	host_close(g);
	for (uint32_t i = 0; i < g->o.devices; i++) {
		device_close(g, &g->devices[i]);
		free(g->devices[i].streams);
	}
	control_write(g);
	truth_counts(g);
	truth_close(&g->truth);
	model_free(g);
	names_free(g);
	free(g->threads);
	free(g->devices);
}

void gen_run(struct gen *g)
{
	open_all(g);
	if (g->o.model_runs)
		model_load(g, &g->threads[0]);
	for (uint64_t k = 0; k < g->o.tasks; k++) {
		kernel_and_more(g, next_thread(g), k);
		if (k % FLUSH_EVERY == 0)
			flush_devices(g);
	}
	settle_flips(g);
	close_all(g);
}
