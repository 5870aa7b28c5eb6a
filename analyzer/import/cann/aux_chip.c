/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the chip: quality of service, frequency, scheduler, caches by task, sampled cores. */
#include "import/cann/pmu.h"
#include "import/cann/aux_files.h"
#include "import/cann/aux_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MB (1ULL << 20)
#define LPM_POINTS 55
/* Sampled cores with a larger number are vector cores, where there are not more AI cores. */
#define LAST_AIC 24

/* --- qos --- */

static void put_qos(struct nps_aux *aux, uint64_t ticks, const uint8_t *words, size_t nwords, int64_t die)
{
	struct nps_qos_table *t = &aux->model->qos;
	uint64_t ns;
	size_t row;

	if (!nps_aux__time(aux, NPS_AUX_TICKS, ticks, &ns))
		return;
	for (size_t i = 0; i < NPS_MIN(nwords, aux->config.nqos) && nps_aux__add(aux, &t->t, &row); i++) {
		t->device[row] = aux->dir->device;
		t->event[row] = aux->config.qos[i];
		t->bandwidth[row] = nps_u32(words + 4 * i) * MB;
		t->timestamp[row] = ns;
		t->die[row] = die;
	}
}

static void qos(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	put_qos(aux, v[0], record + 24, NPS_AUX_QOS, -1);
}

/* --- lpmFreqConv and lpmInfoConv: up to 55 changes of one kind --- */

enum lpm_kind { LPM_FREQUENCY, LPM_CORE_VOLTAGE, LPM_BUS_VOLTAGE };

static void put_mhz(struct nps_aux *aux, uint64_t ns, uint32_t mhz)
{
	struct nps_frequency_table *t = &aux->model->frequency;
	size_t row;

	if (!nps_aux__add(aux, &t->t, &row))
		return;
	t->device[row] = aux->dir->device;
	t->timestamp[row] = ns;
	t->mhz[row] = mhz;
	t->die[row] = -1;
}

static void put_mv(struct nps_aux *aux, uint64_t ns, uint32_t mv, bool bus)
{
	struct nps_voltage_table *t = &aux->model->voltage;
	size_t row;

	if (!nps_aux__add(aux, &t->t, &row))
		return;
	t->device[row] = aux->dir->device;
	t->timestamp[row] = ns;
	t->mv[row] = mv;
	t->bus[row] = bus;
}

static void put_lpm(struct nps_aux *aux, uint64_t kind, uint64_t ns, uint32_t value)
{
	if (kind == LPM_FREQUENCY)
		put_mhz(aux, ns, value);
	else
		put_mv(aux, ns, value, kind == LPM_BUS_VOLTAGE);
}

/* What was valid before the device was synchronised was valid then. values[0]: MHz or mV. */
static void end_lpm(struct nps_aux *aux)
{
	uint64_t ns, begin = aux->dir->has_begin ? aux->dir->begin_us * 1000 : 0;

	if (!nps_cann_clock__unix(&aux->dir->device_clock, aux->dir->device_count, &ns))
		return;
	for (size_t i = 0; i < aux->lasts.len && !aux->err; i++) {
		const struct nps_aux_last *last = &NPS_AT(&aux->lasts, struct nps_aux_last, i);

		put_lpm(aux, last->key, NPS_MAX(ns, begin), last->values[0]);
	}
}

static void lpm(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	if (v[1] > LPM_BUS_VOLTAGE) {
		aux->bad++;
		return;
	}
	for (size_t i = 0; i < v[0] && !aux->err; i++) {
		const uint8_t *point = record + 8 + i * 16;
		uint64_t ticks = nps_u64(point), ns;
		uint32_t value = nps_u32(point + 8);
		struct nps_aux_last *last;
		bool first;

		if (ticks >= aux->dir->device_count) {
			if (nps_aux__time(aux, NPS_AUX_TICKS, ticks, &ns))
				put_lpm(aux, v[1], ns, value);
			continue;
		}
		last = nps_aux__last(aux, v[1], &first);
		if (last)
			last->values[0] = value;
	}
}

/* --- stars_soc_profile: one stream of several kinds --- */

enum soc_kind {
	SOC_QOS = 0x18,
	SOC_SIO = 0x19,
	SOC_ACC = 0x1a,
	SOC_CHIP = 0x1b,
	SOC_LEVEL = 0x1c,
	SOC_POWER = 0x1d
};

enum { CHIP_PA_LINK = 0x3f, CHIP_PCIE = 0x22 };

static void acc(struct nps_aux *aux, uint64_t ticks, const uint8_t *record)
{
	struct nps_acc_pmu_table *t = &aux->model->acc_pmu;
	uint64_t ns;
	size_t row;

	if (!nps_aux__time(aux, NPS_AUX_TICKS, ticks, &ns) || !nps_aux__add(aux, &t->t, &row))
		return;
	t->acc[row] = nps_u16(record + 18);
	t->write_bandwidth[row] = nps_u64(record + 32) & INT64_MAX;
	t->read_bandwidth[row] = nps_u64(record + 40) & INT64_MAX;
	t->write_ost[row] = nps_u64(record + 48) & INT64_MAX;
	t->read_ost[row] = nps_u64(record + 56) & INT64_MAX;
	t->timestamp[row] = ns;
	t->device[row] = aux->dir->device;
}

static uint32_t die_name(struct nps_aux *aux, unsigned int die)
{
	char name[32];

	if (nps_cann_dir__v6(aux->dir) && die != 1 && die < 4)
		snprintf(name, sizeof(name), die ? "U-DIE%u" : "D-DIE%u", die ? die - 2 : 0);
	else
		snprintf(name, sizeof(name), "die %u", die);
	return nps_aux__text(aux, name);
}

/* Bytes since the record of the same die before; rows have bytes a second. */
static void sio(struct nps_aux *aux, uint64_t ticks, const uint8_t *record)
{
	struct nps_sio_table *t = &aux->model->sio;
	unsigned int die = nps_u16(record + 18);
	struct nps_aux_last *last;
	uint64_t ns, before;
	size_t row;
	bool first;

	if (!nps_aux__time(aux, NPS_AUX_TICKS, ticks, &ns))
		return;
	last = nps_aux__last(aux, die, &first);
	if (!last)
		return;
	before = last->time;
	last->time = ns;
	/* How long the first one is of is not known. */
	if (first || ns <= before || !nps_aux__add(aux, &t->t, &row))
		return;
	double *const columns[] = { t->rx_req, t->rx_rsp, t->rx_snp, t->rx_dat,
				    t->tx_req, t->tx_rsp, t->tx_snp, t->tx_dat };

	t->device[row] = aux->dir->device;
	t->name[row] = die_name(aux, die);
	t->timestamp[row] = ns;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(columns); i++)
		columns[i][row] = nps_u32(record + 32 + 4 * i) * 1e9 / (ns - before);
}

static void chip_trans(struct nps_aux *aux, uint64_t ticks, const uint8_t *record)
{
	struct nps_chip_trans_table *t = &aux->model->chip_trans;
	unsigned int kind = nps_u16(record) >> 10;
	uint64_t ns;
	size_t row;

	if (nps_cann_dir__v6(aux->dir))
		kind = CHIP_PCIE;
	if (kind != CHIP_PA_LINK && kind != CHIP_PCIE) {
		aux->bad++;
		return;
	}
	if (!nps_aux__time(aux, NPS_AUX_TICKS, ticks, &ns) || !nps_aux__add(aux, &t->t, &row))
		return;
	t->device[row] = aux->dir->device;
	t->timestamp[row] = ns;
	t->kind[row] = kind == CHIP_PCIE;
	t->id[row] = nps_u16(record + 18) & 0x3f;
	t->first[row] = nps_u64(record + 32);
	t->second[row] = nps_u64(record + 40);
}

static void put_voltage(struct nps_aux *aux, uint64_t ticks, const uint8_t *record)
{
	struct nps_soc_level_table *t = &aux->model->soc_level;
	unsigned int bits = nps_u16(record + 32);
	uint64_t ns;
	size_t row;

	if (!nps_aux__time(aux, NPS_AUX_TICKS, ticks, &ns) || !nps_aux__add(aux, &t->t, &row))
		return;
	t->mata[row] = bits & 7;
	t->l2_buffer[row] = bits >> 3 & 0xff;
	t->timestamp[row] = ns;
	t->device[row] = aux->dir->device;
}

static void soc(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	/* The last generation has two words of its own before the bandwidths. */
	size_t skip = nps_cann_dir__v6(aux->dir) ? 2 : 0;

	switch (v[0] & 0x3f) {
	case SOC_QOS:
		put_qos(aux, v[1], record + 24 + 4 * skip, NPS_AUX_QOS - skip, -1);
		break;
	case SOC_SIO:
		sio(aux, v[1], record);
		break;
	case SOC_ACC:
		acc(aux, v[1], record);
		break;
	case SOC_CHIP:
		chip_trans(aux, v[1], record);
		break;
	case SOC_LEVEL:
		put_voltage(aux, v[1], record);
		break;
	case SOC_POWER: /* no result shows it */
		break;
	default:
		aux->bad++;
	}
}

/* --- l2_cache and socpmu: eight events of a task --- */

static uint64_t sum(const int8_t *signs, const uint64_t *events)
{
	int64_t total = 0;

	for (size_t i = 0; i < NPS_AUX_EVENTS; i++)
		total += signs[i] * (int64_t)events[i];
	return NPS_MAX(total, 0);
}

static void put_task(struct nps_aux *aux, struct nps_task_counter_table *t, uint64_t stream, uint64_t task,
		     double first, double second)
{
	size_t row;

	if (!nps_aux__add(aux, &t->t, &row))
		return;
	t->device[row] = aux->dir->device;
	t->stream[row] = nps_cann_dir__v6(aux->dir) ? stream : stream % 2048;
	t->task[row] = task;
	t->first[row] = first;
	t->second[row] = second;
	t->name[row] = NPS_NONE;
}

static void put_rates(struct nps_aux *aux, struct nps_task_counter_table *t,
		      const struct nps_aux_rates *rates, const uint64_t *v)
{
	uint64_t requested = sum(rates->request, v + 2);
	double first = NPS_NAN, second = NPS_NAN;

	if (rates->known) {
		first = requested ? nps_aux__round6((double)sum(rates->first, v + 2) / requested) : NPS_NAN;
		second = requested ? nps_aux__round6((double)sum(rates->second, v + 2) / requested) : 0;
	}
	put_task(aux, t, v[0], v[1], first, second);
}

static void l2_cache(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	(void)record;
	put_rates(aux, &aux->model->l2_cache, &aux->config.l2, v);
}

static void socpmu(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	enum { CACHE = 1, TRANSLATION = 2, FAULTS = 4 };

	switch (nps_u16(record + 14)) {
	case CACHE:
		put_rates(aux, &aux->model->l2_cache, &aux->config.l2, v);
		break;
	case TRANSLATION:
		put_rates(aux, &aux->model->soc_pmu, &aux->config.tlb, v);
		break;
	case FAULTS:
		put_task(aux, &aux->model->page_fault, v[0], v[1], v[2], NPS_NAN);
		break;
	default:
		aux->bad++;
	}
}

/* --- sampled counters of cores: eight or ten events, cycles, time, count, core --- */

#define CORES 128 /* numbers of cores that are distinguished */

/* What the cores of a file counted in all, or of files of that name that a session has of a device. */
struct nps_core_sums {
	struct nps_core_sums *next;
	const struct nps_aux_format *format;
	uint32_t device;
	double mhz[2]; /* of AI cores, of vector cores */
	struct nps_pmu_plan plan;
	bool vectors; /* the file is of vector cores alone */
	bool split; /* numbers from `first_vector` on are vector cores */
	uint64_t first_vector;
	size_t events; /* in a record */
	struct {
		uint64_t cycles, events[NPS_CANN_EVENTS], samples;
	} cores[CORES];
};

static bool is_vector(const struct nps_core_sums *sums, uint64_t number)
{
	return sums->vectors || (sums->split && number >= sums->first_vector);
}

static double aicore_mhz(const struct nps_aux *aux, bool vector)
{
	return vector && aux->dir->aiv_mhz > 0 ? aux->dir->aiv_mhz : aux->dir->aic_mhz;
}

static void add_sums(struct nps_core_sums *sums, const uint64_t *v)
{
	sums->cores[v[3]].samples++;
	sums->cores[v[3]].cycles = nps_add_sat(sums->cores[v[3]].cycles, v[0]);
	for (size_t i = 0; i < sums->events; i++)
		sums->cores[v[3]].events[i] = nps_add_sat(sums->cores[v[3]].events[i], v[5 + i]);
}

static void core(struct nps_aux *aux, const uint64_t *v, const uint8_t *record)
{
	struct nps_sample_pmu_table *t = &aux->model->sample_pmu;
	bool v6 = nps_cann_dir__v6(aux->dir), vector = is_vector(aux->state, v[3]);
	double mhz = aicore_mhz(aux, vector);
	struct nps_aux_last *last;
	uint64_t ns, before;
	size_t row;
	bool first;

	(void)record;
	if (!nps_aux__time(aux, v6 ? NPS_AUX_TICKS : NPS_AUX_RAW, v[1], &ns))
		return;
	if (!aux->session || (ns >= aux->session->from && ns <= aux->session->to))
		add_sums(aux->state, v);
	last = nps_aux__last(aux, v[3], &first);
	if (!last || !nps_aux__add(aux, &t->t, &row))
		return;
	before = last->time;
	last->time = ns;
	t->device[row] = aux->dir->device;
	t->timestamp[row] = ns;
	t->total_cycle[row] = v[0];
	t->usage[row] = first || ns <= before || !(mhz > 0) ? NPS_NAN
							    : v[0] * 1e5 / (mhz * (double)(ns - before));
	t->mhz[row] = mhz > 0 ? mhz : NPS_NAN;
	t->core[row] = v[3];
	t->core_type[row] = nps_aux__text(aux, vector ? "AIV" : "AIC");
}

/* The numbers of one core over all of its samples, by the formulas of kernels (outputs 3.3). */
static void put_summary(struct nps_aux *aux, const struct nps_core_sums *sums, uint32_t number)
{
	struct nps_sample_summary_table *t = &aux->model->sample_summary;
	bool vector = is_vector(sums, number);
	unsigned int which = vector && sums->split; /* one kind of columns on chips with one kind of core */
	struct nps_run_pmu pmu = { .main = 2 };
	double values[NPS_PMU_MOST];
	size_t row;

	pmu.cycles[which] = sums->cores[number].cycles;
	for (size_t i = 0; i < NPS_CANN_EVENTS; i++)
		pmu.values[which][i] = sums->cores[number].events[i];
	nps_pmu__compute(&sums->plan, &pmu, 1, 1, sums->mhz[vector], values);
	for (unsigned int i = 0; i < sums->plan.n; i++) {
		const struct nps_pmu_column *column = &sums->plan.columns[i];
		const char *name = nps_strings__get(aux->model->strings, column->name);

		if (column->core != which)
			continue;
		if (!strncmp(name, "aic_", 4) || !strncmp(name, "aiv_", 4))
			name += 4; /* the file and the core's type imply it */
		if (!nps_aux__add(aux, &t->t, &row))
			return;
		t->device[row] = sums->device;
		t->metric[row] = nps_aux__text(aux, name);
		t->value[row] = values[i];
		t->core[row] = number;
		t->core_type[row] = nps_aux__text(aux, vector ? "AIV" : "AIC");
	}
}

static void put_summaries(struct nps_aux *aux, const struct nps_core_sums *sums)
{
	for (uint32_t i = 0; i < CORES && !aux->err; i++)
		if (sums->cores[i].samples)
			put_summary(aux, sums, i);
}

static struct nps_core_sums *new_sums(struct nps_aux *aux, const struct nps_aux_format *format, bool vectors)
{
	struct nps_core_sums *sums = calloc(1, sizeof(*sums));
	int err = sums ? nps_pmu__plan(&sums->plan, aux->dir, aux->model->strings) : -ENOMEM;

	if (err) {
		aux->err = aux->err ? aux->err : err;
		free(sums);
		return NULL;
	}
	sums->format = format;
	sums->device = aux->dir->device;
	sums->vectors = vectors;
	sums->split = aux->dir->chip >= NPS_CHIP_910B;
	sums->first_vector = NPS_MAX(LAST_AIC + 1U, aux->dir->aic_cores);
	sums->events = format->fields[5].count;
	for (unsigned int vector = 0; vector < 2; vector++)
		sums->mhz[vector] = aicore_mhz(aux, vector);
	return sums;
}

/* The sums of the session so far, made if there are none; a channel that was started again adds to them. */
static struct nps_core_sums *session_sums(struct nps_aux *aux, const struct nps_aux_format *format,
					  bool vectors)
{
	struct nps_core_sums **at = &aux->session->cores->first;

	while (*at && ((*at)->format != format || (*at)->device != aux->dir->device))
		at = &(*at)->next;
	if (!*at)
		*at = new_sums(aux, format, vectors);
	return *at;
}

static void sampled_cores(struct nps_aux *aux, const struct nps_aux_format *format, bool vectors)
{
	bool kept = aux->session && aux->session->cores;
	struct nps_core_sums *sums = kept ? session_sums(aux, format, vectors)
					  : new_sums(aux, format, vectors);

	if (sums && !aux->err) {
		aux->state = sums;
		nps_aux__records(aux, format);
		aux->state = NULL;
		if (!kept)
			put_summaries(aux, sums);
	}
	if (!kept)
		free(sums);
}

int nps_aux_cores__write(const struct nps_aux_cores *cores, struct nps_model *model)
{
	struct nps_aux aux = { .model = model };

	for (const struct nps_core_sums *sums = cores->first; sums && !aux.err; sums = sums->next)
		put_summaries(&aux, sums);
	return aux.err;
}

void nps_aux_cores__free(struct nps_aux_cores *cores)
{
	while (cores->first) {
		struct nps_core_sums *next = cores->first->next;

		free(cores->first);
		cores->first = next;
	}
}

#define TIME NPS_AUX_MOST_TIME
#define COUNT NPS_AUX_MOST_COUNT
#define STARS ((struct nps_magic){ .value = 0x6bd3, .offset = 2 })

static const struct nps_aux_format formats[] = {
	{ "qos.data", 64, NPS_NO_MAGIC, { { 16, 8, 1, TIME }, { 24, 4, 10, 0 } }, qos, NULL },
	{ "lpmFreqConv.data",
	  888,
	  NPS_NO_MAGIC,
	  { { 0, 4, 1, LPM_POINTS }, { 4, 4, 1, 15 }, { 8, 8, 1, TIME } },
	  lpm,
	  end_lpm },
	{ "lpmInfoConv.data",
	  888,
	  NPS_NO_MAGIC,
	  { { 0, 4, 1, LPM_POINTS }, { 4, 4, 1, 15 }, { 8, 8, 1, TIME } },
	  lpm,
	  end_lpm },
	{ "stars_soc_profile.data", 64, STARS, { { 0, 2, 1, 0 }, { 8, 8, 1, 0 } }, soc, NULL },
	{ "l2_cache.data",
	  72,
	  NPS_NO_MAGIC,
	  { { 2, 2, 1, 0 }, { 4, 2, 1, 0 }, { 8, 8, 8, COUNT } },
	  l2_cache,
	  NULL },
	{ "socpmu.data",
	  80,
	  NPS_NO_MAGIC,
	  { { 10, 2, 1, 0 }, { 12, 2, 1, 0 }, { 16, 8, 8, COUNT } },
	  socpmu,
	  NULL },
};

/* Where the numbers are that core() wants: cycles, time, count, core, size, events. */
#define CORE_FIELDS(cycles, time, count)                                                                     \
	{                                                                                                    \
		{ cycles, 8, 1, COUNT }, { time, 8, 1, TIME }, { count, 1, 1, 0 },                           \
			{ (count) + 1, 1, 1, CORES - 1 }, { 2, 2, 1, 4096 },                                 \
		{                                                                                            \
			8, 8, ((cycles)-8) / 8, COUNT                                                        \
		}                                                                                            \
	}

static const struct {
	struct nps_aux_format format;
	bool v6, old, vectors; /* chips that have it; it is of vector cores alone */
} core_files[] = {
	{ { "ffts_profile.data", 96, NPS_NO_MAGIC, CORE_FIELDS(72, 80, 88), core, NULL },
	  false,
	  false,
	  false },
	{ { "ffts_profile.data", 112, NPS_NO_MAGIC, CORE_FIELDS(88, 96, 104), core, NULL },
	  true,
	  false,
	  false },
	{ { "aicore.data", 96, NPS_NO_MAGIC, CORE_FIELDS(72, 80, 88), core, NULL }, false, true, false },
	{ { "aiVectorCore.data", 96, NPS_NO_MAGIC, CORE_FIELDS(72, 80, 88), core, NULL }, false, true, true },
};

void nps_aux__chip(struct nps_aux *aux)
{
	bool v6 = nps_cann_dir__v6(aux->dir), old = aux->dir->chip < NPS_CHIP_910B;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(formats); i++)
		nps_aux__records(aux, &formats[i]);
	for (size_t i = 0; aux->dir->sampled_pmu && i < NPS_ARRAY_SIZE(core_files); i++)
		if (core_files[i].v6 == v6 && core_files[i].old == old)
			sampled_cores(aux, &core_files[i].format, core_files[i].vectors);
}
