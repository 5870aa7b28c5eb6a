/* SPDX-License-Identifier: BSD-2-Clause */
/* Traffic and use of the device's memories. Rates are computed from the counts as the vendor does it. */
#include "cann/side_read.h"

#define HBM_BYTES 32 /* of a count: 256 bits */
/* The vendor's reader multiplies a cache line's 64 bytes by 64 once more; so does this, to agree. */
#define LLC_BYTES (64 * 64)
#define NO_MASTER UINT32_MAX /* traffic of all, not of one master */
#define UNITS 1023 /* number of the last memory unit that is believed */

/* --- hbm: time, count, event, unit --- */

static void add_hbm(struct nps_side *side, enum nps_side_clock clock, const uint64_t *v)
{
	struct nps_hbm_table *t = &side->model->hbm;
	struct nps_side_last *last;
	bool first;
	uint64_t ns;
	size_t row;

	if (!nps_side__time(side, clock, v[0], &ns))
		return;
	last = nps_side__last(side, v[3] << 1 | (v[2] != 0), &first);
	if (!last || !nps_side__add(side, &t->t, &row))
		return;
	t->device[row] = side->dir->device;
	t->timestamp[row] = ns;
	t->bandwidth[row] = first || ns <= last->time ? 0 : nps_side__rate(v[1] * HBM_BYTES, ns - last->time);
	t->id[row] = v[3];
	t->type[row] = nps_side__text(side, v[2] ? "write" : "read");
	last->time = ns;
}

static void hbm1(struct nps_side *side, const uint64_t *v, const uint8_t *record)
{
	(void)record;
	add_hbm(side, NPS_SIDE_SAMPLED, v);
}

static void hbm2(struct nps_side *side, const uint64_t *v, const uint8_t *record)
{
	(void)record;
	add_hbm(side, NPS_SIDE_UNIX, v);
}

/* --- llc: time, count, event, unit. A sample of a unit is up to eight records. --- */

enum { LLC_EVENTS = 8 };

/* The requested events of reads and of writes. */
static const uint8_t llc_events[2][LLC_EVENTS] = { { 0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36 },
						   { 0x00, 0x01, 0x03, 0x14, 0x21, 0x23, 0x35, 0x37 } };

/* Of struct nps_side_last: values[0..7] are the events of the sample at `time`. */
enum { LLC_BEFORE = 8, LLC_PENDING = 9 };

static void put_llc(struct nps_side *side, struct nps_side_last *last)
{
	struct nps_llc_table *t = &side->model->llc;
	const uint64_t *v = last->values;
	uint64_t before = v[LLC_BEFORE], asked = v[4] + v[6], hit = v[2] + v[3] + v[5] + v[7];
	size_t row;

	if (!v[LLC_PENDING] || !nps_side__add(side, &t->t, &row))
		return;
	t->device[row] = side->dir->device;
	t->id[row] = last->key;
	t->timestamp[row] = last->time;
	t->hit_rate[row] = asked ? 100.0 * hit / asked : 0;
	t->throughput[row] = before && last->time > before
				     ? nps_side__rate(NPS_MIN(v[0] + v[1], NPS_SIDE_MOST_COUNT) * LLC_BYTES,
						      last->time - before)
				     : 0;
	t->mode[row] = nps_side__text(side, side->config.llc == 'w' ? "write" : "read");
	last->values[LLC_BEFORE] = last->time;
	last->values[LLC_PENDING] = 0;
	for (size_t i = 0; i < LLC_EVENTS; i++)
		last->values[i] = 0;
}

static void add_llc(struct nps_side *side, enum nps_side_clock clock, const uint64_t *v)
{
	const uint8_t *events = llc_events[side->config.llc == 'w'];
	struct nps_side_last *last;
	bool first;
	uint64_t ns;

	if (!side->config.llc) {
		side->bad++;
		return;
	}
	if (!nps_side__time(side, clock, v[0], &ns))
		return;
	last = nps_side__last(side, v[3], &first);
	if (!last)
		return;
	if (last->time != ns)
		put_llc(side, last);
	last->time = ns;
	last->values[LLC_PENDING] = 1;
	for (size_t i = 0; i < LLC_EVENTS; i++)
		if (events[i] == v[2])
			last->values[i] = v[1];
}

static void llc1(struct nps_side *side, const uint64_t *v, const uint8_t *record)
{
	(void)record;
	add_llc(side, NPS_SIDE_SAMPLED, v);
}

static void llc2(struct nps_side *side, const uint64_t *v, const uint8_t *record)
{
	(void)record;
	add_llc(side, NPS_SIDE_UNIX, v);
}

static void end_llc(struct nps_side *side)
{
	for (size_t i = 0; i < side->lasts.len && !side->err; i++)
		put_llc(side, &NPS_AT(&side->lasts, struct nps_side_last, i));
}

/* --- ddr: time, count, event, controller, master. All controllers of one time are one sample. --- */

enum { DDR_READ, DDR_WRITE, DDR_BEFORE, DDR_PENDING };

static void put_ddr(struct nps_side *side, struct nps_side_last *last)
{
	struct nps_ddr_table *t = &side->model->ddr;
	unsigned int chip = side->dir->chip;
	uint64_t bytes = chip >= NPS_CHIP_910A && chip <= NPS_CHIP_310P ? 256 / 8 : 128 / 8;
	uint64_t *v = last->values, ns = last->time > v[DDR_BEFORE] ? last->time - v[DDR_BEFORE] : 0;
	size_t row;

	if (!v[DDR_PENDING] || !nps_side__add(side, &t->t, &row))
		return;
	t->device[row] = side->dir->device;
	t->timestamp[row] = last->time;
	t->read[row] = nps_side__rate(v[DDR_READ] * bytes, ns);
	t->write[row] = nps_side__rate(v[DDR_WRITE] * bytes, ns);
	v[DDR_READ] = v[DDR_WRITE] = v[DDR_PENDING] = 0;
	v[DDR_BEFORE] = last->time;
}

static void ddr(struct nps_side *side, const uint64_t *v, const uint8_t *record)
{
	struct nps_side_last *last;
	uint64_t ns, *sum;
	bool first;

	(void)record;
	if (!nps_side__time(side, NPS_SIDE_SAMPLED32, v[0], &ns))
		return;
	last = nps_side__last(side, 0, &first);
	if (!last)
		return;
	if (first) /* sampling began when the device was synchronised */
		last->values[DDR_BEFORE] = ns - (side->epoch + v[0]) * 1000;
	if (last->time != ns)
		put_ddr(side, last);
	last->time = ns;
	last->values[DDR_PENDING] = 1;
	sum = &last->values[v[2] ? DDR_WRITE : DDR_READ];
	if (v[4] == NO_MASTER)
		*sum = NPS_MIN(*sum + v[1], NPS_SIDE_MOST_COUNT);
}

static void end_ddr(struct nps_side *side)
{
	if (side->lasts.len)
		put_ddr(side, &NPS_AT(&side->lasts, struct nps_side_last, 0));
}

/* --- npu_mem: time, event, ddr, hbm --- */

static void npu_mem(struct nps_side *side, const uint64_t *v, const uint8_t *record)
{
	bool second = side->dir->second_version;
	struct nps_npu_mem_table *t = &side->model->npu_mem;
	uint64_t ns;
	size_t row;

	(void)record;
	if (!nps_side__time(side, second ? NPS_SIDE_SAMPLED : NPS_SIDE_SAMPLED32, v[0], &ns) ||
	    !nps_side__add(side, &t->t, &row))
		return;
	t->type[row] = nps_side__text(side, v[1] ? "device" : "app");
	t->ddr[row] = v[2];
	t->hbm[row] = v[3];
	t->timestamp[row] = ns;
	t->device[row] = side->dir->device;
}

/* --- npu_module_mem: module, host counter, bytes --- */

static void module_mem(struct nps_side *side, const uint64_t *v, const uint8_t *record)
{
	struct nps_npu_module_mem_table *t = &side->model->npu_module_mem;
	uint64_t ns;
	size_t row;

	(void)record;
	if (!nps_side__time(side, NPS_SIDE_HOST, v[1], &ns) || !nps_side__add(side, &t->t, &row))
		return;
	t->module[row] = v[0];
	t->timestamp[row] = ns;
	t->reserved[row] = v[2] > INT64_MAX ? -1 : (int64_t)v[2];
	t->device[row] = side->dir->device;
}

#define TIME NPS_SIDE_MOST_TIME
#define TIME32 NPS_SIDE_MOST_TIME32
#define COUNT NPS_SIDE_MOST_COUNT

static const struct nps_side_format first_version[] = {
	{ "hbm.data",
	  24,
	  NPS_NO_MAGIC,
	  { { 0, 8, 1, TIME }, { 8, 8, 1, COUNT }, { 16, 4, 1, 1 }, { 20, 4, 1, UNITS } },
	  hbm1,
	  NULL },
	{ "llc.data",
	  24,
	  NPS_NO_MAGIC,
	  { { 0, 8, 1, TIME }, { 8, 8, 1, COUNT }, { 16, 4, 1, 255 }, { 20, 4, 1, UNITS } },
	  llc1,
	  end_llc },
	{ "npu_mem.data",
	  32,
	  NPS_NO_MAGIC,
	  { { 0, 4, 1, TIME32 }, { 4, 4, 1, 1 }, { 16, 8, 1, COUNT }, { 24, 8, 1, COUNT } },
	  npu_mem,
	  NULL },
	{ "npu_mem.app",
	  32,
	  NPS_NO_MAGIC,
	  { { 0, 4, 1, TIME32 }, { 4, 4, 1, 1 }, { 16, 8, 1, COUNT }, { 24, 8, 1, COUNT } },
	  npu_mem,
	  NULL },
};

static const struct nps_side_format second_version[] = {
	{ "hbm.data",
	  32,
	  NPS_NO_MAGIC,
	  { { 24, 8, 1, TIME }, { 16, 8, 1, COUNT }, { 8, 4, 1, 1 }, { 12, 4, 1, UNITS } },
	  hbm2,
	  NULL },
	{ "llc.data",
	  24,
	  NPS_NO_MAGIC,
	  { { 16, 8, 1, TIME }, { 4, 4, 1, 0 }, { 8, 4, 1, 255 }, { 12, 4, 1, UNITS } },
	  llc2,
	  end_llc },
	{ "npu_mem.data",
	  32,
	  NPS_NO_MAGIC,
	  { { 8, 8, 1, TIME }, { 4, 4, 1, 1 }, { 16, 8, 1, COUNT }, { 24, 8, 1, COUNT } },
	  npu_mem,
	  NULL },
	{ "npu_mem.app",
	  32,
	  NPS_NO_MAGIC,
	  { { 8, 8, 1, TIME }, { 4, 4, 1, 1 }, { 16, 8, 1, COUNT }, { 24, 8, 1, COUNT } },
	  npu_mem,
	  NULL },
};

static const struct nps_side_format both_versions[] = {
	{ "ddr.data",
	  20,
	  NPS_NO_MAGIC,
	  { { 0, 4, 1, TIME32 }, { 4, 4, 1, 0 }, { 8, 4, 1, 1 }, { 12, 4, 1, UNITS }, { 16, 4, 1, 0 } },
	  ddr,
	  end_ddr },
	{ "npu_module_mem.data",
	  24,
	  NPS_NO_MAGIC,
	  { { 0, 4, 1, 65535 }, { 8, 8, 1, TIME }, { 16, 8, 1, 0 } },
	  module_mem,
	  NULL },
};

void nps_side__memory(struct nps_side *side)
{
	const struct nps_side_format *formats = side->dir->second_version ? second_version : first_version;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(first_version); i++)
		nps_side__records(side, &formats[i]);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(both_versions); i++)
		nps_side__records(side, &both_versions[i]);
}
