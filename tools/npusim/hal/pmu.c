/* SPDX-License-Identifier: BSD-2-Clause */
#include "pmu.h"
#include "prof.h"

#include <inttypes.h>
#include <stdio.h>

enum { FUNC_TASK = 0x28, FUNC_BLOCK = 0x29, FUNC_TASK2 = 0x2a };
enum { MASTER = 1, MIX = 2 };
enum {
	FFTS_AIC = 0,
	FFTS_AIV = 1,
	FFTS_PLUS = 4,
	SUB_AIC = 0,
	SUB_AIV = 1,
	SUB_MIX_AIC = 6,
	SUB_MIX_AIV = 7
};
enum { CONFIG_TASK = 1, CONFIG_SAMPLE = 2 }; /* bits of `type` in the configuration of 53 and 54 */
#define EVENTS_OF_TASK 8 /* in a record of a task; the 950 has EVENTS_OF_PMU */

/* Requested events of one kind of cores. */
struct wanted {
	uint32_t type, n;
	uint16_t event[EVENTS_OF_PMU];
};

struct ffts_record {
	uint16_t func, magic, stream, task;
	uint64_t ticks;
	uint16_t sub_type, context;
	uint8_t core; /* of a block: type:1 id:7 */
	uint8_t ffts; /* in the top three bits */
	uint8_t pad[6];
	uint16_t sub_block, block;
	uint64_t cycles, reserved;
	uint64_t pmu[EVENTS_OF_TASK];
	uint64_t start, end;
};

/* Of a 950: of a mixed kernel one for each kind of cores. */
struct task_record2 {
	uint16_t func, magic, task_low, task_high;
	uint64_t cycles;
	uint8_t context_type, role; /* MASTER, MIX */
	uint16_t reserved;
	uint8_t core_type, core;
	uint16_t reserved2;
	uint16_t sub_block, block;
	uint32_t reserved3;
	uint64_t pmu[EVENTS_OF_PMU];
	uint64_t start, end;
};

struct aicore_record {
	uint8_t count;
	uint8_t pad[5];
	uint16_t task;
	uint64_t reserved;
	uint64_t cycles, reserved2;
	uint64_t pmu[EVENTS_OF_TASK];
	uint32_t stream;
	uint8_t rest[28];
};

_Static_assert(sizeof(struct ffts_record) == 128 && sizeof(struct aicore_record) == 128 &&
		       sizeof(struct task_record2) == 128,
	       "formats");

static uint32_t mix(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

/* Counts in 1000 cycles.  Events of 0x200 to 0x2ff are parts of what others count, so they are small. */
static uint32_t permille(uint32_t event, uint32_t work)
{
	uint32_t h = mix(event * 2654435761u ^ work);

	if (event >= 0x200 && event < 0x300)
		return 20 + h % 180;
	return event < 0x200 ? 300 + h % 600 : 50 + h % 900;
}

uint64_t pmu_event(uint32_t event, uint32_t work, uint64_t cycles)
{
	/* Misses of the instruction cache are some of its requests. */
	if (event == 0x55 || event == 0x35)
		return pmu_event(event - 1, work, cycles) * (1 + mix(work) % 90) / 1000;
	return (uint64_t)((unsigned __int128)cycles * permille(event, work) / 1000);
}

static uint64_t block_cycles(const struct chip *chip, const struct task *t)
{
	return (t->facts.end - t->facts.start) * chip->core_mhz / 1000 / model_waves(chip, &t->sqe);
}

uint64_t pmu_cycles(const struct device *d, const struct task *t, enum pmu_core core)
{
	const struct chip *chip = board_chip(&d->board);
	uint32_t made_for = t->sqe.kernel.core;
	bool split = chip->log != CHIP_HWTS; /* else the AI Cores do the vectors too */
	bool runs = core == PMU_AIC ? !split || made_for != STARS_VECTOR : split && made_for != STARS_CUBE;
	const struct ffts *f = task_ffts(d, t);
	bool leads = !f || core == (f->vector_leads ? PMU_AIV : PMU_AIC);

	if (!runs || t->facts.kind != STARS_AICORE)
		return 0;
	return block_cycles(chip, t) * t->sqe.block_dim * (leads ? 1 : f->others);
}

static uint32_t events_max(const struct channel *c)
{
	return board_chip(&c->device->board)->pmu_events;
}

/* From the start parameters of 53 and 54: mode; for both kinds of cores type, period, mask, count, events. */
static struct wanted ffts_wanted(const struct channel *c, enum pmu_core core)
{
	uint32_t max = events_max(c), base = 1 + (uint32_t)core * (4 + max / 2);
	struct wanted w = { .type = channel_config(c, base), .n = channel_config(c, base + 3) };

	if (!(channel_config(c, 0) & 1u << core))
		w.type = w.n = 0;
	w.n = w.n < max ? w.n : max;
	for (uint32_t i = 0; i < w.n; i++)
		w.event[i] = (uint16_t)(channel_config(c, base + 4 + i / 2) >> 16 * (i % 2));
	return w;
}

/* Of 43 and 85: type 0 task or 1 sample, threshold, period, mask, number, events. */
static struct wanted aicore_wanted(const struct channel *c)
{
	struct wanted w = { .type = channel_config(c, 0) == 1 ? CONFIG_SAMPLE : CONFIG_TASK,
			    .n = channel_config(c, 4) };

	w.n = w.n < 8 ? w.n : 8;
	for (uint32_t i = 0; i < w.n; i++)
		w.event[i] = (uint16_t)channel_config(c, 5 + i);
	return w;
}

bool pmu_is_per_task(const struct channel *c)
{
	return aicore_wanted(c).type == CONFIG_TASK;
}

/* What a kernel's blocks on one kind of cores came to. */
struct counted {
	uint32_t blocks;
	uint64_t cycles, pmu[EVENTS_OF_PMU];
};

/* Counts the events of a record's BLOCKS in PMU, and adds them to the whole. */
static void count(const struct task *t, const struct wanted *w, uint32_t blocks, uint64_t cycles,
		  uint64_t *pmu, struct counted *whole)
{
	whole->blocks += blocks;
	whole->cycles += cycles;
	for (uint32_t i = 0; i < w->n; i++) {
		pmu[i] = pmu_event(w->event[i], t->sqe.kernel.wave_ns, cycles);
		whole->pmu[i] += pmu[i];
	}
}

static void report_task(const struct task *t, const struct wanted *w, enum pmu_core core,
			const struct counted *whole)
{
	const struct truth_task *f = &t->facts;
	char text[EVENTS_OF_PMU * 32] = "";
	int len = 0;

	for (uint32_t i = 0; i < w->n; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s0x%x:%" PRIu64, i ? "," : "",
				w->event[i], whole->pmu[i]);
	truth_line("pmu", "%u\t%u\t%u\t%u\t%s\t%u\t%" PRIu64 "\t%s", f->device, f->stream, f->task, f->flip,
		   core == PMU_AIV ? "aiv" : "aic", whole->blocks, whole->cycles, len ? text : "-");
}

static struct ffts_record ffts_record(struct channel *c, const struct task *t, uint32_t func, uint64_t start,
				      uint64_t end)
{
	struct ffts_record r = { .start = channel_ticks(c, start), .end = channel_ticks(c, end) };

	tasklog_head(c, &t->facts, func, end, &r);
	return r;
}

/* Core i's share, so that the shares of all cores are the whole. */
static uint64_t share(uint64_t total, uint32_t cores, uint32_t i)
{
	return (total + cores - 1 - i) / cores;
}

/* A context of an FFTS+ task: every so many blocks of it are the context's, from its number on. */
struct pmu_context {
	const struct ffts *ffts;
	uint32_t number, blocks;
	uint64_t start, end;
};

static struct pmu_context context(const struct ffts *f, const struct task *t, uint32_t number)
{
	struct pmu_context x = { .ffts = f,
				 .number = number,
				 .blocks = (uint32_t)share(t->sqe.block_dim, f->contexts, number),
				 .start = ffts_start(f, t, number * f->threads) };

	for (uint32_t k = number * f->threads; k < (number + 1) * f->threads; k++)
		x.end = ffts_end(f, t, k) > x.end ? ffts_end(f, t, k) : x.end;
	return x;
}

/* The cores that do not lead report each block, when it has run. */
static void pmu_put_blocks(struct channel *c, const struct task *t, const struct pmu_context *x,
			   const struct wanted *w, struct counted *whole)
{
	const struct chip *chip = board_chip(&c->device->board);
	uint64_t cycles = block_cycles(chip, t), waves = model_waves(chip, &t->sqe);
	uint32_t vector = !x->ffts->vector_leads, cores = vector ? chip->vector_cores : chip->aicores;
	uint32_t n = tasklog_blocks_logged(x->blocks * x->ffts->others);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t block = x->number + i / x->ffts->others * x->ffts->contexts,
			 wave = block / chip->aicores;
		struct ffts_record r = ffts_record(c, t, FUNC_BLOCK,
						   x->start + (x->end - x->start) * wave / waves,
						   x->start + (x->end - x->start) * (wave + 1) / waves);

		r.sub_type = vector ? SUB_MIX_AIC : SUB_MIX_AIV;
		r.context = (uint16_t)x->number;
		r.ffts = FFTS_PLUS << 5;
		r.core = (uint8_t)(vector | i % cores << 1);
		r.block = (uint16_t)block;
		r.sub_block = (uint16_t)(i % x->ffts->others);
		r.cycles = cycles;
		count(t, w, 1, cycles, r.pmu, whole);
		channel_put(c, &r, sizeof(r));
	}
}

static void put_context(struct channel *c, const struct task *t, const struct pmu_context *x,
			const struct wanted *w, struct counted *whole)
{
	struct ffts_record r = ffts_record(c, t, FUNC_TASK, x->start, x->end);

	r.sub_type = x->ffts->vector_leads ? SUB_MIX_AIV : SUB_MIX_AIC;
	r.context = (uint16_t)x->number;
	r.ffts = FFTS_PLUS << 5;
	r.cycles = block_cycles(board_chip(&c->device->board), t) * x->blocks;
	count(t, w, x->blocks, r.cycles, r.pmu, whole);
	channel_put(c, &r, sizeof(r));
}

static void put_ffts_plus(struct channel *c, const struct task *t, const struct ffts *f)
{
	enum pmu_core leads = f->vector_leads ? PMU_AIV : PMU_AIC,
		      follows = leads == PMU_AIC ? PMU_AIV : PMU_AIC;
	struct wanted w = ffts_wanted(c, leads), w_others = ffts_wanted(c, follows);
	struct counted whole = { 0 }, others = { 0 };

	for (uint32_t i = 0; i < f->contexts; i++) {
		struct pmu_context x = context(f, t, i);

		if (w_others.type & CONFIG_TASK)
			pmu_put_blocks(c, t, &x, &w_others, &others);
		if (w.type & CONFIG_TASK)
			put_context(c, t, &x, &w, &whole);
	}
	if (w.type & CONFIG_TASK)
		report_task(t, &w, leads, &whole);
	if (w_others.type & CONFIG_TASK && f->others)
		report_task(t, &w_others, follows, &others);
}

static void put_task2(struct channel *c, const struct task *t, enum pmu_core core, uint8_t role)
{
	struct wanted w = ffts_wanted(c, core);
	struct counted whole = { 0 };
	struct task_record2 r = { .context_type = (uint8_t)core };
	struct {
		uint16_t func, magic, low, high;
		uint64_t ticks;
	} head;

	if (!(w.type & CONFIG_TASK))
		return;
	tasklog_head(c, &t->facts, FUNC_TASK2, t->facts.end, &head);
	r.func = head.func;
	r.magic = head.magic;
	r.task_low = head.low;
	r.task_high = head.high;
	r.role = role;
	r.core_type = core == PMU_AIV;
	r.cycles = pmu_cycles(c->device, t, core);
	r.start = channel_ticks(c, t->facts.start);
	r.end = channel_ticks(c, t->facts.end);
	count(t, &w, t->sqe.block_dim, r.cycles, r.pmu, &whole);
	report_task(t, &w, core, &whole);
	channel_put(c, &r, sizeof(r));
}

static void put_tasks2(struct channel *c, const struct task *t)
{
	bool cube = pmu_cycles(c->device, t, PMU_AIC), vector = pmu_cycles(c->device, t, PMU_AIV);

	if (cube)
		put_task2(c, t, PMU_AIC, MASTER | (vector ? MIX : 0));
	if (vector)
		put_task2(c, t, PMU_AIV, cube ? MIX : MASTER);
}

void pmu_ffts_task(struct channel *c, const struct prof_event *e)
{
	const struct task *t = &e->task;
	const struct ffts *f = task_ffts(c->device, t);
	bool vector = t->sqe.kernel.core == STARS_VECTOR;
	enum pmu_core core = vector ? PMU_AIV : PMU_AIC;
	struct wanted w = ffts_wanted(c, core);
	struct counted whole = { 0 };
	struct ffts_record r;

	if (e->what != EVENT_END || t->facts.kind != STARS_AICORE)
		return;
	if (board_chip(&c->device->board)->log == CHIP_STARS2) {
		put_tasks2(c, t);
	} else if (f) {
		put_ffts_plus(c, t, f);
	} else if (w.type & CONFIG_TASK) {
		r = ffts_record(c, t, FUNC_TASK, t->facts.start, t->facts.end);
		r.sub_type = vector ? SUB_AIV : SUB_AIC;
		r.ffts = (uint8_t)((vector ? FFTS_AIV : FFTS_AIC) << 5);
		r.cycles = pmu_cycles(c->device, t, core);
		count(t, &w, t->sqe.block_dim, r.cycles, r.pmu, &whole);
		report_task(t, &w, core, &whole);
		channel_put(c, &r, sizeof(r));
	}
}

void pmu_aicore_task(struct channel *c, const struct prof_event *e)
{
	const struct task *t = &e->task;
	struct wanted w = aicore_wanted(c);
	struct aicore_record r = { .task = (uint16_t)t->facts.task, .stream = t->facts.stream };
	struct counted whole = { 0 };

	if (e->what != EVENT_END || t->facts.kind != STARS_AICORE || w.type != CONFIG_TASK ||
	    c->id != CHANNEL_AICORE)
		return;
	r.count = (uint8_t)((c->count++ & 0xf) << 4);
	r.cycles = pmu_cycles(c->device, t, PMU_AIC);
	count(t, &w, t->sqe.block_dim, r.cycles, r.pmu, &whole);
	report_task(t, &w, PMU_AIC, &whole);
	channel_put(c, &r, sizeof(r));
}

/* --- samples: what all cores did since the last one, a record for each core --- */

struct sample_record {
	uint8_t mode, type;
	uint16_t size, pad[2];
	uint64_t pmu[8];
	uint64_t cycles, time;
	uint8_t count, core;
	uint8_t rest[6];
};

struct sample_record2 {
	uint8_t mode, type;
	uint16_t size, pad[2];
	uint64_t pmu[10];
	uint64_t cycles, time;
	uint8_t count, core;
	uint8_t rest[6];
};

_Static_assert(sizeof(struct sample_record) == 96 && sizeof(struct sample_record2) == 112, "formats");

/* Vector cores are numbered after the AI cores, from 25 on where there are not more of those. */
static uint32_t first_vector(const struct chip *chip)
{
	return chip->aicores > 25 ? chip->aicores : 25;
}

static void put_core(struct channel *c, const struct wanted *w, enum pmu_core core, uint32_t i,
		     uint64_t before, uint64_t after, uint64_t now)
{
	const struct chip *chip = board_chip(&c->device->board);
	uint32_t cores = core == PMU_AIC ? chip->aicores : chip->vector_cores;
	struct sample_record2 r = { .mode = 1,
				    .size = chip->log == CHIP_STARS2 ? 112 : 96,
				    .cycles = share(after, cores, i) - share(before, cores, i),
				    .time = chip->log == CHIP_STARS2 ? channel_ticks(c, now)
								     : channel_device_ns(c, now),
				    .count = c->count,
				    .core = (uint8_t)(core == PMU_AIC ? i : first_vector(chip) + i) };
	struct sample_record old;

	for (uint32_t e = 0; e < w->n; e++)
		r.pmu[e] = share(pmu_event(w->event[e], 0, after), cores, i) -
			   share(pmu_event(w->event[e], 0, before), cores, i);
	if (chip->log == CHIP_STARS2) {
		channel_put(c, &r, sizeof(r));
		return;
	}
	old = (struct sample_record){ .mode = r.mode,
				      .size = r.size,
				      .cycles = r.cycles,
				      .time = r.time,
				      .count = r.count,
				      .core = r.core };
	for (int e = 0; e < 8; e++)
		old.pmu[e] = r.pmu[e];
	channel_put(c, &old, sizeof(old));
}

static void sample_cores(struct channel *c, enum pmu_core core, const struct wanted *w, uint64_t now)
{
	const struct chip *chip = board_chip(&c->device->board);
	uint32_t cores = core == PMU_AIC ? chip->aicores : chip->vector_cores;
	struct span s = channel_span(c, core == PMU_AIC ? AIC_CYCLES : AIV_CYCLES);

	if (!(w->type & CONFIG_SAMPLE) || !c->last)
		return;
	for (uint32_t i = 0; i < cores; i++)
		put_core(c, w, core, i, s.before, s.after, now);
}

void pmu_sample_ffts(struct channel *c, uint64_t now)
{
	struct wanted aic = ffts_wanted(c, PMU_AIC), aiv = ffts_wanted(c, PMU_AIV);

	sample_cores(c, PMU_AIC, &aic, now);
	sample_cores(c, PMU_AIV, &aiv, now);
	c->count++;
}

void pmu_sample_aicore(struct channel *c, uint64_t now)
{
	struct wanted w = aicore_wanted(c);

	sample_cores(c, c->id == CHANNEL_AIV ? PMU_AIV : PMU_AIC, &w, now);
	c->count++;
}
