/* SPDX-License-Identifier: BSD-2-Clause */
/* Traffic and use of the device's memories. Rates are computed from the counts as the vendor does it. */
#include "import/cann/aux_read.h"

#define HBM_BYTES 32 /* of a count: 256 bits */
/* The vendor's reader multiplies a cache line's 64 bytes by 64 once more; so does this, to agree. */
#define LLC_BYTES (64 * 64)
#define NO_MASTER UINT32_MAX /* traffic of all, not of one master */
#define UNITS 1023 /* number of the last memory unit that is believed */

/* --- hbm: time, count, event, unit --- */

static void add_hbm(struct nps_aux *aux, enum nps_aux_clock clock, const uint64_t *v)
{
	struct nps_hbm_table *t = &aux->model->hbm;
	struct nps_aux_last *last;
	bool first;
	uint64_t ns;
	size_t row;

	if (!nps_aux__time(aux, clock, v[0], &ns))
		return;
	last = nps_aux__last(aux, v[3] << 1 | (v[2] != 0), &first);
	if (!last || !nps_aux__add(aux, &t->t, &row))
		return;
	t->device[row] = aux->dir->device;
	t->timestamp[row] = ns;
	t->bandwidth[row] = first || ns <= last->time ? 0 : nps_aux__rate(v[1] * HBM_BYTES, ns - last->time);
	t->id[row] = v[3];
	t->type[row] = nps_aux__text(aux, v[2] ? "write" : "read");
	last->time = ns;
}

static void hbm1(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	(void)record;
	add_hbm(aux, NPS_AUX_SAMPLED, v);
}

static void hbm2(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	(void)record;
	add_hbm(aux, NPS_AUX_UNIX, v);
}

/* --- llc: time, count, event, unit. A sample of a unit is up to eight records. --- */

enum { LLC_EVENTS = 8 };

/* The requested events of reads and of writes. */
static const uint8_t llc_events[2][LLC_EVENTS] = { { 0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36 },
						   { 0x00, 0x01, 0x03, 0x14, 0x21, 0x23, 0x35, 0x37 } };

/* Of struct nps_aux_last: values[0..7] are the events of the sample at `time`. */
enum { LLC_BEFORE = 8, LLC_PENDING = 9 };

static void put_llc(struct nps_aux *aux, struct nps_aux_last *last)
{
	struct nps_llc_table *t = &aux->model->llc;
	const uint64_t *v = last->values;
	uint64_t before = v[LLC_BEFORE], requests = v[4] + v[6], hit = v[2] + v[3] + v[5] + v[7];
	size_t row;

	if (!v[LLC_PENDING] || !nps_aux__add(aux, &t->t, &row))
		return;
	t->device[row] = aux->dir->device;
	t->id[row] = last->key;
	t->timestamp[row] = last->time;
	t->hit_rate[row] = requests ? 100.0 * hit / requests : 0;
	t->throughput[row] = before && last->time > before
				     ? nps_aux__rate(NPS_MIN(v[0] + v[1], NPS_AUX_MOST_COUNT) * LLC_BYTES,
						     last->time - before)
				     : 0;
	t->mode[row] = nps_aux__text(aux, aux->config.llc == 'w' ? "write" : "read");
	last->values[LLC_BEFORE] = last->time;
	last->values[LLC_PENDING] = 0;
	for (size_t i = 0; i < LLC_EVENTS; i++)
		last->values[i] = 0;
}

static void add_llc(struct nps_aux *aux, enum nps_aux_clock clock, const uint64_t *v)
{
	const uint8_t *events = llc_events[aux->config.llc == 'w'];
	struct nps_aux_last *last;
	bool first;
	uint64_t ns;

	if (!aux->config.llc) {
		aux->bad++;
		return;
	}
	if (!nps_aux__time(aux, clock, v[0], &ns))
		return;
	last = nps_aux__last(aux, v[3], &first);
	if (!last)
		return;
	if (last->time != ns)
		put_llc(aux, last);
	last->time = ns;
	last->values[LLC_PENDING] = 1;
	for (size_t i = 0; i < LLC_EVENTS; i++)
		if (events[i] == v[2])
			last->values[i] = v[1];
}

static void llc1(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	(void)record;
	add_llc(aux, NPS_AUX_SAMPLED, v);
}

static void llc2(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	(void)record;
	add_llc(aux, NPS_AUX_UNIX, v);
}

static void end_llc(struct nps_aux *aux)
{
	for (size_t i = 0; i < aux->lasts.len && !aux->err; i++)
		put_llc(aux, &NPS_AT(&aux->lasts, struct nps_aux_last, i));
}

/* --- ddr: time, count, event, controller, master. All controllers of one time are one sample. --- */

enum { DDR_READ, DDR_WRITE, DDR_BEFORE, DDR_PENDING };

static void put_ddr(struct nps_aux *aux, struct nps_aux_last *last)
{
	struct nps_ddr_table *t = &aux->model->ddr;
	unsigned int chip = aux->dir->chip;
	uint64_t bytes = chip >= NPS_CHIP_910A && chip <= NPS_CHIP_310P ? 256 / 8 : 128 / 8;
	uint64_t *v = last->values, ns = last->time > v[DDR_BEFORE] ? last->time - v[DDR_BEFORE] : 0;
	size_t row;

	if (!v[DDR_PENDING] || !nps_aux__add(aux, &t->t, &row))
		return;
	t->device[row] = aux->dir->device;
	t->timestamp[row] = last->time;
	t->read[row] = nps_aux__rate(v[DDR_READ] * bytes, ns);
	t->write[row] = nps_aux__rate(v[DDR_WRITE] * bytes, ns);
	v[DDR_READ] = v[DDR_WRITE] = v[DDR_PENDING] = 0;
	v[DDR_BEFORE] = last->time;
}

static void ddr(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	struct nps_aux_last *last;
	uint64_t ns, *sum;
	bool first;

	(void)record;
	if (!nps_aux__time(aux, NPS_AUX_SAMPLED32, v[0], &ns))
		return;
	last = nps_aux__last(aux, 0, &first);
	if (!last)
		return;
	if (first) /* sampling began when the device was synchronised */
		last->values[DDR_BEFORE] = ns - (aux->epoch + v[0]) * 1000;
	if (last->time != ns)
		put_ddr(aux, last);
	last->time = ns;
	last->values[DDR_PENDING] = 1;
	sum = &last->values[v[2] ? DDR_WRITE : DDR_READ];
	if (v[4] == NO_MASTER)
		*sum = NPS_MIN(*sum + v[1], NPS_AUX_MOST_COUNT);
}

static void end_ddr(struct nps_aux *aux)
{
	if (aux->lasts.len)
		put_ddr(aux, &NPS_AT(&aux->lasts, struct nps_aux_last, 0));
}

/* --- npu_mem: time, event, ddr, hbm --- */

static void put_npu_mem(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	bool second = aux->dir->second_version;
	struct nps_npu_mem_table *t = &aux->model->npu_mem;
	uint64_t ns;
	size_t row;

	(void)record;
	if (!nps_aux__time(aux, second ? NPS_AUX_SAMPLED : NPS_AUX_SAMPLED32, v[0], &ns) ||
	    !nps_aux__add(aux, &t->t, &row))
		return;
	t->type[row] = nps_aux__text(aux, v[1] ? "device" : "app");
	t->ddr[row] = v[2];
	t->hbm[row] = v[3];
	t->timestamp[row] = ns;
	t->device[row] = aux->dir->device;
}

/* --- npu_module_mem: module, host counter, bytes --- */

static void module_mem(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	struct nps_npu_module_mem_table *t = &aux->model->npu_module_mem;
	uint64_t ns;
	size_t row;

	(void)record;
	if (!nps_aux__time(aux, NPS_AUX_HOST, v[1], &ns) || !nps_aux__add(aux, &t->t, &row))
		return;
	t->module[row] = v[0];
	t->timestamp[row] = ns;
	t->reserved[row] = v[2] > INT64_MAX ? -1 : (int64_t)v[2];
	t->device[row] = aux->dir->device;
}

#define TIME NPS_AUX_MOST_TIME
#define TIME32 NPS_AUX_MOST_TIME32
#define COUNT NPS_AUX_MOST_COUNT

static const struct nps_aux_format first_version[] = {
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
	  put_npu_mem,
	  NULL },
	{ "npu_mem.app",
	  32,
	  NPS_NO_MAGIC,
	  { { 0, 4, 1, TIME32 }, { 4, 4, 1, 1 }, { 16, 8, 1, COUNT }, { 24, 8, 1, COUNT } },
	  put_npu_mem,
	  NULL },
};

static const struct nps_aux_format second_version[] = {
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
	  put_npu_mem,
	  NULL },
	{ "npu_mem.app",
	  32,
	  NPS_NO_MAGIC,
	  { { 8, 8, 1, TIME }, { 4, 4, 1, 1 }, { 16, 8, 1, COUNT }, { 24, 8, 1, COUNT } },
	  put_npu_mem,
	  NULL },
};

static const struct nps_aux_format both_versions[] = {
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

void nps_aux__memory(struct nps_aux *aux)
{
	const struct nps_aux_format *formats = aux->dir->second_version ? second_version : first_version;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(first_version); i++)
		nps_aux__records(aux, &formats[i]);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(both_versions); i++)
		nps_aux__records(aux, &both_versions[i]);
}
