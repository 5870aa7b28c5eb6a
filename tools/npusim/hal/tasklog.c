/* SPDX-License-Identifier: BSD-2-Clause */
/* Logs of tasks: the STARS log of both generations, block log, HWTS log, TS track. */
#include "prof.h"

#include <stdlib.h>

#define MAGIC 0x6BD3
enum { FUNC_START = 0, FUNC_SUB_START = 0x22, FUNC_BLOCK_START = 0x24 }; /* + 1: the end */
enum { FFTS_PLUS = 4, FFTS_MIX_AIC = 6, FFTS_MIX_AIV = 7 };
enum { TRACK_STEP = 0x0a, TRACK_MEMCPY = 0x0b, TRACK_TYPE = 0x0c, TRACK_FLIP = 0x0e, TRACK_BLOCKS = 0x0f };

/* Parameters of channel 50 and 44, by their index. */
enum { STARS_ACSQ_TASK = 0, STARS_FFTS_CONTEXT = 6, STARS_FFTS_BLOCK = 7 };
enum { TSFW_TASK_TRACK = 1, TSFW_KEYPOINT = 6, TSFW_MEMCPY = 7, TSFW_BLOCKS = 8 };

struct head {
	uint16_t func; /* func:6 count:4 type:6 */
	uint16_t magic;
	uint16_t stream, task;
	uint64_t ticks;
};

struct stars_record {
	struct head head;
	uint16_t sub_type;
	uint16_t engine; /* acc:6 acsq:7; the context id of a sub-task */
	uint16_t ffts;
	uint16_t thread;
	uint8_t rest[40];
};

struct stars2_record {
	struct head head;
	uint16_t reserved;
	uint16_t engine;
	uint8_t rest[12];
};

struct block_record {
	struct head head;
	uint8_t context_type;
	uint8_t mix; /* master:1 mix:1 */
	uint16_t reserved;
	uint8_t core_type, core;
	uint8_t pad[4];
	uint16_t block;
	uint8_t rest[4];
};

struct hwts_record {
	uint8_t tag; /* 0 start, 1 end; count in the high half */
	uint8_t type;
	uint8_t pad[4];
	uint16_t task;
	uint64_t ticks;
	uint32_t stream;
	uint8_t rest[44];
};

struct track_record {
	uint8_t mode, tag;
	uint16_t size;
	uint32_t reserved;
	uint64_t ticks;
	union {
		struct {
			uint64_t index, model;
			uint16_t stream, task, tag, pad;
		} step;
		struct {
			uint16_t stream, task;
			uint8_t status;
		} copy;
		struct {
			uint16_t stream, task, type;
			uint8_t status;
		} type;
		struct {
			uint16_t stream, flips, pad, task;
		} flip;
		struct {
			uint16_t stream, task;
			uint32_t blocks;
		} blocks;
		uint8_t bytes[24];
	};
};

_Static_assert(sizeof(struct stars_record) == 64 && sizeof(struct stars2_record) == 32 &&
		       sizeof(struct block_record) == 32 && sizeof(struct hwts_record) == 64 &&
		       sizeof(struct track_record) == 40,
	       "formats");

static const struct chip *chip_of(const struct channel *c)
{
	return board_chip(&c->device->board);
}

/* How the chip writes stream and task in the mode that it is in. */
static void mangle(const struct channel *c, const struct truth_task *t, uint16_t *stream, uint16_t *task)
{
	enum chip_ids ids = c->device->board.shared->ids;
	uint16_t s = t->stream, id = (uint16_t)t->task;
	bool special = t->kind == STARS_PLACE_HOLDER || t->kind == STARS_EVENT_RECORD;

	*stream = s;
	*task = id;
	if (chip_of(c)->log == CHIP_STARS2) {
		*stream = id;
		*task = (uint16_t)(t->task >> 16);
	} else if (ids == IDS_MANGLED && id % 3 == 1) {
		*stream = (uint16_t)(s | 0x1000 | (id & 0xe000));
		*task = id & 0x1fff;
	} else if (ids == IDS_MANGLED && id % 3 == 2) {
		*stream = 0x2000 | (id & 0xfff);
		*task = (uint16_t)((s & 0xfff) | (id & 0xf000));
	} else if (ids == IDS_EXPANDED && !special && id % 2) {
		*stream = 0x8000 | (id & 0x7fff);
		*task = (uint16_t)(s | (id & 0x8000));
	}
}

void tasklog_head(struct channel *c, const struct truth_task *t, uint32_t func, uint64_t when, void *head)
{
	struct head h = { .func = (uint16_t)(func | (c->count++ & 0xf) << 6 | (uint32_t)t->type << 10),
			  .magic = MAGIC,
			  .ticks = channel_ticks(c, when) };

	mangle(c, t, &h.stream, &h.task);
	*(struct head *)head = h;
}

static void put_task(struct channel *c, const struct prof_event *e)
{
	uint16_t engine = (uint16_t)((e->sq & 0x3ff) << 6);

	if (chip_of(c)->log == CHIP_STARS2) {
		struct stars2_record r = { .engine = engine };

		tasklog_head(c, &e->task.facts, FUNC_START + e->what, e->when, &r.head);
		channel_put(c, &r, sizeof(r));
	} else {
		struct stars_record r = { .engine = engine };

		tasklog_head(c, &e->task.facts, FUNC_START + e->what, e->when, &r.head);
		channel_put(c, &r, sizeof(r));
	}
}

/* An FFTS+ task has contexts, which run inside it, each in threads. */
static void put_sub_task(struct channel *c, const struct prof_event *e)
{
	const struct ffts *f = task_ffts(c->device, &e->task);
	struct stars_record r = { .sub_type = f && f->vector_leads ? FFTS_MIX_AIV : FFTS_MIX_AIC,
				  .engine = e->context,
				  .ffts = FFTS_PLUS << 13,
				  .thread = e->thread };

	tasklog_head(c, &e->task.facts, FUNC_SUB_START + (e->what == EVENT_SUB_END), e->when, &r.head);
	channel_put(c, &r, sizeof(r));
}

void tasklog_stars(struct channel *c, const struct prof_event *e)
{
	if (e->what == EVENT_SUB_START || e->what == EVENT_SUB_END) {
		if (channel_on(c, STARS_FFTS_CONTEXT))
			put_sub_task(c, e);
	} else if (e->what != EVENT_RECEIVED && channel_on(c, STARS_ACSQ_TASK)) {
		put_task(c, e);
	}
	if (channel_on(c, STARS_FFTS_BLOCK))
		tasklog_blocks(c, e);
}

static void put_block(struct channel *c, const struct prof_event *e, uint32_t block, uint32_t end)
{
	const struct stars_sqe *sqe = &e->task.sqe;
	uint32_t cores = chip_of(c)->aicores, waves = model_waves(chip_of(c), sqe);
	uint64_t wave = (e->task.facts.end - e->task.facts.start) / waves;
	const struct ffts *f = task_ffts(c->device, &e->task);
	uint8_t mixed = f && f->vector_leads ? FFTS_MIX_AIV : FFTS_MIX_AIC;
	struct block_record r = { .context_type = sqe->kernel.core == STARS_MIX ? mixed : 0,
				  .mix = sqe->kernel.core == STARS_MIX ? 3 : 0,
				  .core_type = sqe->kernel.core == STARS_VECTOR,
				  .core = (uint8_t)(block % cores),
				  .block = (uint16_t)block };

	tasklog_head(c, &e->task.facts, FUNC_BLOCK_START + end,
		     e->task.facts.start + (block / cores + end) * wave, &r.head);
	channel_put(c, &r, sizeof(r));
	if (end) {
		unsigned long long begin = e->task.facts.start + block / cores * wave;

		truth_line("block", "%u\t%u\t%u\t%u\t%u\t%u\t%u\t%llu\t%llu", e->task.facts.device,
			   e->task.facts.stream, e->task.facts.task, e->task.facts.flip, block, r.core_type,
			   r.core, begin, begin + wave);
	}
}

uint32_t tasklog_blocks_logged(uint32_t blocks)
{
	const char *text = getenv("NPUSIM_BLOCKS");
	uint32_t most = text ? (uint32_t)strtoul(text, NULL, 10) : 0;

	return most && most < blocks ? most : blocks;
}

/* Written when the kernel has ended, a wave of blocks after the other. */
void tasklog_blocks(struct channel *c, const struct prof_event *e)
{
	uint32_t cores = chip_of(c)->aicores, blocks = tasklog_blocks_logged(e->task.sqe.block_dim);

	if (e->what != EVENT_END || e->task.facts.kind != STARS_AICORE)
		return;
	for (uint32_t first = 0; first < blocks; first += cores) {
		for (uint32_t end = 0; end < 2; end++) {
			for (uint32_t b = first; b < first + cores && b < blocks; b++)
				put_block(c, e, b, end);
		}
	}
}

void tasklog_hwts(struct channel *c, const struct prof_event *e)
{
	struct hwts_record r = { .type = e->task.facts.type,
				 .task = (uint16_t)e->task.facts.task,
				 .ticks = channel_ticks(c, e->when),
				 .stream = e->task.facts.stream };

	/* Copies to and from the host are done by the task scheduler: see the TS track. */
	if (e->what > EVENT_END || e->task.facts.kind == STARS_PCIE_DMA)
		return;
	r.tag = (uint8_t)(e->what | (c->count++ & 0xf) << 4);
	channel_put(c, &r, sizeof(r));
}

static struct track_record track(const struct channel *c, const struct prof_event *e, uint8_t tag)
{
	return (struct track_record){ .tag = tag,
				      .size = sizeof(struct track_record),
				      .ticks = channel_ticks(c, e->when) };
}

static void put_copy(struct channel *c, const struct prof_event *e, uint8_t status)
{
	struct track_record r = track(c, e, TRACK_MEMCPY);

	r.copy.stream = e->task.facts.stream;
	r.copy.task = (uint16_t)e->task.facts.task;
	r.copy.status = status;
	channel_put(c, &r, sizeof(r));
}

static void put_type(struct channel *c, const struct prof_event *e, uint8_t status)
{
	struct track_record r = track(c, e, TRACK_TYPE);

	r.type.stream = e->task.facts.stream;
	r.type.task = (uint16_t)e->task.facts.task;
	r.type.type = chip_ts_type((enum stars_kind)e->task.facts.kind);
	r.type.status = status;
	channel_put(c, &r, sizeof(r));
}

static void put_flip(struct channel *c, const struct prof_event *e)
{
	struct track_record r = track(c, e, TRACK_FLIP);

	r.flip.stream = e->task.facts.stream;
	r.flip.flips = (uint16_t)e->task.facts.flip;
	r.flip.task = (uint16_t)e->task.facts.task;
	channel_put(c, &r, sizeof(r));
}

static void tasklog_put_blocks(struct channel *c, const struct prof_event *e)
{
	struct track_record r = track(c, e, TRACK_BLOCKS);

	r.blocks.stream = e->task.facts.stream;
	r.blocks.task = (uint16_t)e->task.facts.task;
	r.blocks.blocks = e->task.sqe.block_dim;
	channel_put(c, &r, sizeof(r));
}

static void put_step(struct channel *c, const struct prof_event *e)
{
	struct track_record r = track(c, e, TRACK_STEP);

	r.step.index = e->task.sqe.holder.argument;
	r.step.model = e->task.sqe.holder.function;
	r.step.stream = e->task.facts.stream;
	r.step.task = (uint16_t)e->task.facts.task;
	r.step.tag = e->task.sqe.holder.tag;
	channel_put(c, &r, sizeof(r));
}

void tasklog_track(struct channel *c, const struct prof_event *e)
{
	static const uint8_t status[] = { [EVENT_RECEIVED] = 0, [EVENT_START] = 1, [EVENT_END] = 2 };
	const struct truth_task *t = &e->task.facts;
	bool holder = t->kind == STARS_PLACE_HOLDER && e->what == EVENT_END;

	if (chip_of(c)->log == CHIP_HWTS && t->kind == STARS_PCIE_DMA && channel_on(c, TSFW_MEMCPY))
		put_copy(c, e, status[e->what]);
	if (chip_of(c)->log == CHIP_HWTS && channel_on(c, TSFW_TASK_TRACK))
		put_type(c, e, status[e->what]);
	if (holder && e->task.sqe.holder.kind == STARS_FLIP)
		put_flip(c, e);
	if (holder && e->task.sqe.holder.kind == STARS_PROFILER_TRACE && channel_on(c, TSFW_KEYPOINT))
		put_step(c, e);
	if (t->kind == STARS_AICORE && e->what == EVENT_START && channel_on(c, TSFW_BLOCKS))
		tasklog_put_blocks(c, e);
}

/* A share of the lines that the task touched hit. Parameters: number of events, events. */
void tasklog_l2(struct channel *c, const struct prof_event *e)
{
	struct {
		uint16_t type, stream, task, reserved;
		uint64_t events[8];
	} r = { .type = e->task.facts.type,
		.stream = e->task.facts.stream,
		.task = (uint16_t)e->task.facts.task };
	uint64_t cycles = pmu_cycles(c->device, &e->task, PMU_AIC) + pmu_cycles(c->device, &e->task, PMU_AIV);

	if (e->what != EVENT_END || e->task.facts.kind != STARS_AICORE)
		return;
	for (uint32_t i = 0; i < channel_config(c, 0) && i < 8; i++)
		r.events[i] = pmu_event(channel_config(c, 1 + i), e->task.sqe.kernel.wave_ns, cycles);
	channel_put(c, &r, sizeof(r));
}

/* One record of the first kind, caches. */
void tasklog_soc_pmu(struct channel *c, const struct prof_event *e)
{
	struct {
		uint8_t head[8];
		uint16_t type, stream, task, kind;
		uint64_t events[8];
	} r = { .type = e->task.facts.type,
		.stream = e->task.facts.stream,
		.task = (uint16_t)e->task.facts.task,
		.kind = 1 };
	uint64_t cycles = pmu_cycles(c->device, &e->task, PMU_AIC) + pmu_cycles(c->device, &e->task, PMU_AIV);

	if (e->what != EVENT_END || e->task.facts.kind != STARS_AICORE)
		return;
	for (uint32_t i = 0; i < 8; i++)
		r.events[i] = pmu_event(i, e->task.sqe.kernel.wave_ns, cycles);
	channel_put(c, &r, sizeof(r));
}

/* The AI CPU's record of one of its kernels; times in us of the device's clock. */
void tasklog_aicpu(struct channel *c, const struct prof_event *e)
{
	const struct truth_task *t = &e->task.facts;
	uint64_t start = channel_ticks(c, t->start), end = channel_ticks(c, t->end);
	uint64_t start_us = channel_device_ns(c, t->start) / 1000,
		 end_us = channel_device_ns(c, t->end) / 1000;
	struct {
		uint16_t magic, level;
		uint32_t type, tid, bytes;
		uint64_t time;
		uint16_t stream, task;
		uint32_t pad;
		uint64_t run_start_time, run_start, compute_start, memcpy_start, memcpy_end, run_end_time,
			run_end;
		uint32_t thread, device;
		uint64_t submit, schedule, before_run, after_run;
		uint32_t kernel_type, dispatch_us, total_us;
		uint16_t ffts_thread;
		uint8_t version;
		uint8_t rest[113];
	} r = { .magic = 0x5a5a,
		.level = 6000,
		.bytes = 128,
		.time = end,
		.stream = t->stream,
		.task = (uint16_t)t->task,
		.run_start_time = start_us,
		.run_start = start,
		.compute_start = start_us,
		.memcpy_start = end_us,
		.memcpy_end = end_us,
		.run_end_time = end_us,
		.run_end = end,
		.device = t->device,
		.submit = channel_ticks(c, t->submit),
		.schedule = start,
		.before_run = start,
		.after_run = end,
		.total_us = (uint32_t)(end_us - start_us) };

	_Static_assert(sizeof(r) == 256, "format");
	if (e->what == EVENT_END && t->kind == STARS_AICPU)
		channel_put(c, &r, sizeof(r));
}
