/* SPDX-License-Identifier: BSD-2-Clause */
/* Device records: task log, PMU, track and AI CPU. */
#include "gen.h"

#include <stdio.h>
#include <string.h>

#include "bytes.h"
#include "heap.h"

#define STARS_MAGIC 0x6BD3
#define HOST_MAGIC 0x5A5A
#define LATENCY_MIN_NS 5500
#define LATENCY_MAX_NS 9000
#define GAP_MAX_NS 400
#define AICPU_TID 3000

enum func {
	ACSQ_START = 0x00,
	ACSQ_END = 0x01,
	FFTS_START = 0x22,
	FFTS_END = 0x23,
	PMU_TASK = 0x28,
	PMU_BLOCK = 0x29
};

static const char *const file_names[DEVICE_FILES] = {
	[DF_STARS] = "stars_soc.data",
	[DF_PMU] = "ffts_profile.data",
	[DF_TS] = "ts_track.data",
	[DF_AICPU] = "aicpu.data",
};

/* Queue entry numbers of chips with Stars, and of V6. */
static const struct {
	uint8_t stars, v6;
	const char *name;
} sqes[] = {
	[SQE_AIC] = { 0, 0, "AI_CORE" },
	[SQE_AIV] = { 2, 1, "AIV" },
	[SQE_AICPU] = { 1, 5, "AI_CPU" },
	[SQE_EVENT_RECORD] = { 4, 6, "EVENT_RECORD" },
	[SQE_EVENT_WAIT] = { 5, 7, "EVENT_WAIT" },
	[SQE_NOTIFY_RECORD] = { 6, 6, "NOTIFY_RECORD" },
	[SQE_NOTIFY_WAIT] = { 7, 7, "NOTIFY_WAIT" },
	[SQE_SDMA] = { 11, 11, "SDMA" },
	[SQE_PCIE_DMA] = { 17, 10, "PCIE_DMA" },
};

static size_t record_size(const struct gen *g, enum device_file f)
{
	switch (f) {
	case DF_STARS:
		return g->o.chip == 15 ? 32 : 64;
	case DF_PMU:
		return 128;
	case DF_TS:
		return 40;
	default:
		return 256;
	}
}

void device_open(struct gen *g, struct device *d)
{
	char dir[3100], name[64];

	snprintf(dir, sizeof(dir), "%s/data", d->dir);
	for (int f = 0; f < DEVICE_FILES; f++) {
		snprintf(name, sizeof(name), "%s.%u", file_names[f], d->id);
		slices_open(&d->files[f], dir, name, f != DF_STARS, !g->o.no_done);
	}
	d->heap = heap_new();
}

void device_close(struct gen *g, struct device *d)
{
	device_flush(g, d, UINT64_MAX);
	for (int f = 0; f < DEVICE_FILES; f++)
		slices_close(&d->files[f]);
	heap_free(d->heap);
}

void device_flush(struct gen *g, struct device *d, uint64_t until)
{
	uint32_t file;
	uint8_t *r;

	while ((r = heap_pop(d->heap, until, &file))) {
		if (file == DF_STARS || file == DF_PMU) {
			uint32_t n = d->counters[file]++;

			r[0] |= (uint8_t)((n & 3) << 6);
			r[1] |= (uint8_t)(n >> 2 & 3);
		}
		slices_put(&d->files[file], r, record_size(g, (enum device_file)file), 1);
	}
}

static uint8_t *new_record(struct device *d, enum device_file f, uint64_t cnt)
{
	uint8_t *r = heap_add(d->heap, cnt, f);

	memset(r, 0, HEAP_RECORD);
	if (cnt > d->last)
		d->last = cnt;
	return r;
}

uint64_t device_slot(struct gen *g, struct device *d, struct stream *st, uint64_t submitted)
{
	uint64_t start = device_after(g, d, submitted, gen_range(g, LATENCY_MIN_NS, LATENCY_MAX_NS));

	if (start <= st->device_end)
		start = st->device_end + 1 + device_ticks(d, gen_range(g, 0, GAP_MAX_NS));
	return start;
}

/*
 * Ids as the hardware logs them. Some entries carry the upper bits of one id in the other's
 * field; a stream below 2048 has two free bits that mark that.
 */
static void put_ids(const struct gen *g, uint8_t *p, const struct task *task)
{
	uint32_t s = task->stream->id, t = task->task, how = 0;

	if (g->o.chip == 15) {
		put32(p, t);
		return;
	}
	if (g->o.mangle)
		how = (uint32_t)mix64(((uint64_t)task->batch << 32 | t) ^ s) % 3;
	if (how == 1) {
		put16(p, s | 0x1000 | (t & 0xE000));
		put16(p + 2, t & 0x1FFF);
	} else if (how == 2) {
		put16(p, 0x2000 | (t & 0x0FFF));
		put16(p + 2, s | (t & 0xF000));
	} else {
		put16(p, s);
		put16(p + 2, t);
	}
}

static void stars_record(struct gen *g, struct device *d, const struct task *task, enum func func,
			 uint64_t cnt)
{
	uint8_t *r = new_record(d, DF_STARS, cnt);
	uint32_t sqe = g->o.chip == 15 ? sqes[task->sqe].v6 : sqes[task->sqe].stars;

	put16(r, func | sqe << 10);
	put16(r + 2, STARS_MAGIC);
	put_ids(g, r + 4, task);
	put64(r + 8, cnt);
	if (func == FFTS_START || func == FFTS_END) {
		put16(r + 16, task->sub);
		put16(r + 18, task->context);
		put16(r + 20, 4u << 13);
	} else {
		put16(r + 18, (task->stream->id & 0x3FF) << 6);
	}
}

void truth_device_time(struct gen *g, const struct device *d, const char *prefix, uint64_t cnt)
{
	char key[40];

	if (!g->truth.path)
		return;
	snprintf(key, sizeof(key), "%s_ticks", prefix);
	truth_uint(&g->truth, key, cnt);
	snprintf(key, sizeof(key), "%s_ns", prefix);
	truth_int(&g->truth, key, device_wall(d, cnt));
}

void truth_task_key(struct gen *g, const struct task *task)
{
	truth_uint(&g->truth, "device", task->stream->device);
	truth_uint(&g->truth, "stream", task->stream->id);
	truth_uint(&g->truth, "task", task->task);
	truth_uint(&g->truth, "batch", task->batch);
	truth_uint(&g->truth, "context", task->context);
}

static void truth_tensors(struct truth *tr, const struct tensors *ten)
{
	truth_raw(tr, ",\"tensors\":[");
	for (uint32_t i = 0; i < ten->count; i++) {
		const struct tensor *t = &ten->t[i];
		const uint32_t head[3] = { t->kind, t->format, t->dtype };

		truth_raw(tr, i ? ",[" : "[");
		for (int k = 0; k < 3; k++) {
			truth_raw_uint(tr, head[k]);
			truth_raw(tr, ",");
		}
		for (int dim = 0; dim < 8 && t->dims[dim]; dim++) {
			truth_raw(tr, dim ? "," : "[");
			truth_raw_uint(tr, t->dims[dim]);
		}
		truth_raw(tr, t->dims[0] ? "]]" : "[]]");
	}
	truth_raw(tr, "]");
}

static void truth_task(struct gen *g, const struct device *d, const struct task *task, uint64_t start,
		       uint64_t end)
{
	struct truth *tr = &g->truth;

	g->n.tasks++;
	if (!tr->path)
		return;
	truth_begin(tr, "task");
	truth_str(tr, "class", task->cls);
	truth_task_key(g, task);
	truth_uint(tr, "model", task->model);
	if (task->model != NO_MODEL)
		truth_uint(tr, "request", task->request);
	if (task->name)
		truth_bytes(tr, "name", task->name->text, task->name->len);
	else
		truth_str(tr, "name", NULL);
	if (task->kernel)
		truth_bytes(tr, "kernel", task->kernel->text, task->kernel->len);
	else
		truth_str(tr, "kernel", NULL);
	truth_str(tr, "type", task->type ? task->type->text : NULL);
	truth_str(tr, "core", task->core);
	if (task->conn >= 0)
		truth_str(tr, "host_type", api_name(g, LEVEL_RUNTIME, task->rt));
	else
		truth_str(tr, "host_type", NULL);
	if (task->context == NO_CONTEXT) {
		truth_uint(tr, "sqe", g->o.chip == 15 ? sqes[task->sqe].v6 : sqes[task->sqe].stars);
		truth_str(tr, "sqe_name", sqes[task->sqe].name);
	} else {
		truth_uint(tr, "sub", task->sub);
	}
	truth_uint(tr, "blocks", task->blocks);
	truth_uint(tr, "mix_blocks", task->mix_blocks);
	truth_device_time(g, d, "start", start);
	truth_device_time(g, d, "end", end);
	truth_int(tr, "conn", task->conn);
	if (task->conn >= 0) {
		truth_uint(tr, "tid", task->tid);
		truth_int(tr, "track_ns", host_wall(g, task->track));
	}
	if (task->op_state >= 0) {
		truth_int(tr, "op_state", task->op_state);
		truth_bool(tr, "hf32", task->hf32);
		if (task->tensors)
			truth_tensors(tr, task->tensors);
	}
	truth_end(tr);
}

static uint32_t ffts_type(const struct task *task)
{
	if (task->context != NO_CONTEXT)
		return 4;
	return task->sub == SUB_AIV;
}

static void pmu_head(struct gen *g, uint8_t *r, const struct task *task, enum func func, uint64_t start,
		     uint64_t end)
{
	put16(r, func);
	put16(r + 2, STARS_MAGIC);
	put_ids(g, r + 4, task);
	put16(r + 18, task->context & 0xFFFF);
	put64(r + 112, start);
	put64(r + 120, end);
}

/* The slave cores of a MIX kernel report each block; the reader adds them up. */
static void pmu_blocks(struct gen *g, struct device *d, const struct task *task, uint64_t start, uint64_t end,
		       uint64_t sums[PMU_EVENTS + 1])
{
	for (uint32_t b = 0; b < task->mix_blocks; b++) {
		uint64_t from = start + b % (end - start), cycles = gen_range(g, 500, 90000);
		uint8_t *r = new_record(d, DF_PMU, end);

		pmu_head(g, r, task, PMU_BLOCK, from, end);
		r[16] = (uint8_t)task->sub;
		r[20] = (uint8_t)((task->sub == SUB_MIX_AIC) | (b % 24) << 1);
		r[21] = 4 << 5;
		put16(r + 28, b & 1);
		put16(r + 30, b);
		put64(r + 32, cycles);
		sums[PMU_EVENTS] += cycles;
		for (int i = 0; i < PMU_EVENTS; i++) {
			uint64_t v = gen_range(g, 0, cycles);

			put64(r + 48 + 8 * i, v);
			sums[i] += v;
		}
	}
}

static void truth_counters(struct truth *tr, const char *open, const uint64_t *values)
{
	truth_raw(tr, open);
	for (int i = 0; i < PMU_EVENTS; i++) {
		truth_raw(tr, i ? "," : "");
		truth_raw_uint(tr, values[i]);
	}
	truth_raw(tr, "]");
}

static const char *pmu_core(const struct task *task)
{
	switch (task->sub) {
	case SUB_MIX_AIC:
		return "MIX_AIC";
	case SUB_MIX_AIV:
		return "MIX_AIV";
	case SUB_AIC:
		return "AIC";
	default:
		return "AIV";
	}
}

static void pmu_records(struct gen *g, struct device *d, const struct task *task, uint64_t start,
			uint64_t end)
{
	uint64_t values[PMU_EVENTS], sums[PMU_EVENTS + 1] = { 0 };
	uint64_t cycles = (end - start) * 37 * (task->blocks ? task->blocks : 1);
	struct truth *tr = &g->truth;
	uint8_t *r;

	if (task->mix_blocks)
		pmu_blocks(g, d, task, start, end, sums);
	r = new_record(d, DF_PMU, end);
	pmu_head(g, r, task, PMU_TASK, start, end);
	put16(r + 16, task->sub);
	put16(r + 20, ffts_type(task) << 13);
	put64(r + 32, cycles);
	for (int i = 0; i < PMU_EVENTS; i++) {
		values[i] = gen_range(g, 0, cycles);
		put64(r + 48 + 8 * i, values[i]);
	}
	g->n.pmus++;
	if (!tr->path)
		return;
	truth_begin(tr, "pmu");
	truth_task_key(g, task);
	truth_str(tr, "core", pmu_core(task));
	truth_uint(tr, "cycles", cycles);
	truth_counters(tr, ",\"values\":[", values);
	truth_uint(tr, "block_records", task->mix_blocks);
	truth_uint(tr, "block_cycles", sums[PMU_EVENTS]);
	truth_counters(tr, ",\"block_values\":[", sums);
	truth_device_time(g, d, "start", start);
	truth_device_time(g, d, "end", end);
	truth_end(tr);
}

void device_task(struct gen *g, struct device *d, const struct task *task, uint64_t start, uint64_t end)
{
	bool sub = task->context != NO_CONTEXT;

	stars_record(g, d, task, sub ? FFTS_START : ACSQ_START, start);
	stars_record(g, d, task, sub ? FFTS_END : ACSQ_END, end);
	truth_task(g, d, task, start, end);
	if (task->pmu && g->o.pmu)
		pmu_records(g, d, task, start, end);
}

static uint8_t *track(struct device *d, uint32_t tag, uint64_t cnt)
{
	uint8_t *r = new_record(d, DF_TS, cnt);

	r[1] = (uint8_t)tag;
	put16(r + 2, 40);
	put64(r + 8, cnt);
	return r;
}

void device_flip(struct gen *g, struct device *d, const struct stream *st, uint32_t number, uint32_t task,
		 uint64_t cnt)
{
	uint8_t *r = track(d, 0x0E, cnt);

	(void)g;
	put16(r + 16, st->id);
	put16(r + 18, number);
	put16(r + 22, task);
}

void device_step(struct gen *g, struct device *d, uint32_t tag, uint64_t index, uint64_t model,
		 const struct stream *st, uint32_t task, uint64_t cnt)
{
	uint8_t *r = track(d, 0x0A, cnt);
	struct truth *tr = &g->truth;

	put64(r + 16, index);
	put64(r + 24, model);
	put16(r + 32, st->id);
	put16(r + 34, task);
	put16(r + 36, tag);
	g->n.steps++;
	if (!tr->path)
		return;
	truth_begin(tr, "step");
	truth_uint(tr, "device", d->id);
	truth_uint(tr, "tag", tag);
	truth_uint(tr, "index", index);
	truth_uint(tr, "model", model);
	truth_uint(tr, "stream", st->id);
	truth_uint(tr, "task", task & 0xFFFF);
	truth_device_time(g, d, "time", cnt);
	truth_end(tr);
}

/* The AI CPU's own account of a task: ticks of the device counter, and microseconds of its clock. */
void device_aicpu(struct gen *g, struct device *d, const struct task *task, uint64_t start, uint64_t end)
{
	uint8_t *r = new_record(d, DF_AICPU, end);
	uint64_t eighth = (end - start) / 8;
	const uint64_t ticks[4] = { start - 20, start - 10, start, end };
	const uint64_t first_us = start * 1000 / d->clock.khz;
	struct truth *tr = &g->truth;
	uint64_t us[5];

	for (uint64_t i = 0; i < 5; i++)
		us[i] = first_us + i * eighth * 1000 / d->clock.khz;
	put16(r, HOST_MAGIC);
	put16(r + 2, LEVEL_AICPU);
	put32(r + 8, AICPU_TID);
	put32(r + 12, 232);
	put64(r + 16, end);
	put16(r + 24, task->stream->id);
	put16(r + 26, task->task);
	put64(r + 32, us[0]);
	put64(r + 40, start);
	put64(r + 48, us[1]);
	put64(r + 56, us[2]);
	put64(r + 64, us[3]);
	put64(r + 72, us[4]);
	put64(r + 80, end);
	put32(r + 88, AICPU_TID);
	put32(r + 92, d->id);
	for (int i = 0; i < 4; i++)
		put64(r + 96 + 8 * i, ticks[i]);
	put32(r + 128, 1);
	put32(r + 132, 7);
	put32(r + 136, (uint32_t)(us[4] - us[0]));
	r[142] = 1;
	g->n.aicpus++;
	if (!tr->path)
		return;
	truth_begin(tr, "aicpu");
	truth_task_key(g, task);
	truth_uint(tr, "run_start_us", us[0]);
	truth_uint(tr, "compute_start_us", us[1]);
	truth_uint(tr, "memcpy_start_us", us[2]);
	truth_uint(tr, "memcpy_end_us", us[3]);
	truth_uint(tr, "run_end_us", us[4]);
	truth_device_time(g, d, "start", start);
	truth_device_time(g, d, "end", end);
	truth_uint(tr, "submit_ticks", ticks[0]);
	truth_uint(tr, "schedule_ticks", ticks[1]);
	truth_uint(tr, "before_ticks", ticks[2]);
	truth_uint(tr, "after_ticks", ticks[3]);
	truth_end(tr);
}
