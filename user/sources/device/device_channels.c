/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/device/device_channels.h"

#include <stdio.h>
#include <string.h>

#include "driver/aic_metrics.h"

#define MOST_DATA 128 /* bytes of user_data */
#define SHORTEST_MS 10 /* shortest period */
#define STARS_MAGIC 0x6bd3
#define ON 1U
#define OFF 2U

/* --- requested rates --------------------------------------------------------------------------------- */

static unsigned int io_hz(const struct nps_device_opts *o, const struct nps_device_info *d)
{
	(void)d;
	return o->io ? o->io_hz : 0;
}

static unsigned int links_hz(const struct nps_device_opts *o, const struct nps_device_info *d)
{
	(void)d;
	return o->links ? o->links_hz : 0;
}

static unsigned int memory_hz(const struct nps_device_opts *o, const struct nps_device_info *d)
{
	(void)d;
	return o->memory ? o->memory_hz : 0;
}

/* The scheduler's counters are for links and memories; each has its own period. */
static unsigned int soc_hz(const struct nps_device_opts *o, const struct nps_device_info *d)
{
	unsigned int links = links_hz(o, d), memory = memory_hz(o, d);

	return links > memory ? links : memory;
}

/* Frequency and power are needed to interpret every other counter. */
static unsigned int power_hz(const struct nps_device_opts *o, const struct nps_device_info *d)
{
	(void)d;
	return nps_device_options__channels(o) ? 50 : 0;
}

static bool splits(const struct nps_device_info *d)
{
	enum nps_chip_generation generation = nps_generation_of(d->platform);

	return generation == NPS_GENERATION_SPLIT || generation == NPS_GENERATION_V6;
}

static unsigned int core_hz(const struct nps_device_opts *o, const struct nps_device_info *d)
{
	return o->metric != NPS_AIC_NONE && splits(d) ? o->aic_hz : 0;
}

static unsigned int old_core_hz(const struct nps_device_opts *o, const struct nps_device_info *d)
{
	return o->metric != NPS_AIC_NONE && !splits(d) &&
			       nps_generation_of(d->platform) != NPS_GENERATION_UNKNOWN
		       ? o->aic_hz
		       : 0;
}

static unsigned int old_vector_hz(const struct nps_device_opts *o, const struct nps_device_info *d)
{
	return d->aiv_cores ? old_core_hz(o, d) : 0;
}

static unsigned int l2_hz(const struct nps_device_opts *o, const struct nps_device_info *d)
{
	(void)d;
	return o->l2_cache ? 100 : 0;
}

/* --- start parameters -------------------------------------------------------------------------------- */

static size_t config_put(void *data, const uint32_t *words, size_t n)
{
	memcpy(data, words, n * sizeof(*words));
	return n * sizeof(*words);
}

static size_t bandwidth(const struct nps_device_opts *o, const struct nps_device_info *d, uint32_t period,
			void *data)
{
	const uint32_t words[] = { period, 0, 2, 0, 1 }; /* master, events: reads and writes */

	(void)o;
	(void)d;
	return config_put(data, words, 5);
}

static size_t llc(const struct nps_device_opts *o, const struct nps_device_info *d, uint32_t period,
		  void *data)
{
	const uint32_t words[] = { period, o->llc == 'w' };

	(void)d;
	return config_put(data, words, 2);
}

static size_t memory_of_device(const struct nps_device_opts *o, const struct nps_device_info *d,
			       uint32_t period, void *data)
{
	const uint32_t words[] = { period, 0, 2, 0 }; /* of the device, not of the calling process */

	(void)o;
	(void)d;
	return config_put(data, words, 4);
}

static size_t power(const struct nps_device_opts *o, const struct nps_device_info *d, uint32_t period,
		    void *data)
{
	const uint32_t words[] = { period, 0 };

	(void)o;
	(void)d;
	return config_put(data, words, 2);
}

static size_t qos(const struct nps_device_opts *o, const struct nps_device_info *d, uint32_t period,
		  void *data)
{
	struct {
		uint32_t period;
		uint16_t streams, reserved;
		uint8_t mpam[20];
	} p = { .period = period, .streams = 1 };

	(void)o;
	(void)d;
	memcpy(data, &p, sizeof(p));
	return sizeof(p);
}

static uint32_t period_of(unsigned int hz)
{
	uint32_t ms = hz ? 1000 / hz : 0;

	return ms < SHORTEST_MS ? SHORTEST_MS : ms;
}

static size_t soc(const struct nps_device_opts *o, const struct nps_device_info *d, uint32_t period,
		  void *data)
{
	uint32_t links = period_of(links_hz(o, d)), memory = period_of(memory_hz(o, d));
	uint32_t by_links = o->links ? ON : OFF, by_memory = o->memory ? ON : OFF;
	/* ACC PMU, on chip, between dies, between chips, power, the scheduler itself, UB */
	const uint32_t words[] = { by_memory, memory, by_memory, memory, by_links, links, by_links,
				   links,     ON,     period,	 OFF,	 period,   OFF,	  period };

	return config_put(data, words, 14);
}

static size_t cores(const struct nps_device_opts *o, const struct nps_device_info *d, uint32_t period,
		    void *data)
{
	enum { AIC = 1, AIV = 2, SAMPLE = 2 };
	size_t most = nps_generation_of(d->platform) == NPS_GENERATION_V6 ? 10 : 8, at = sizeof(uint32_t);
	uint32_t mode = AIC | (d->aiv_cores ? AIV : 0);
	uint8_t p[MOST_DATA] = { 0 };

	memcpy(p, &mode, sizeof(mode));
	for (int vector = 0; vector < 2; vector++) {
		uint32_t n = vector ? d->aiv_cores : d->aic_cores, words[4] = { SAMPLE, period, 0, 0 };
		uint16_t events[NPS_AIC_EVENTS] = { 0 };

		words[2] = n >= 32 || !n ? UINT32_MAX : (1U << n) - 1;
		words[3] = (uint32_t)nps_aic_metrics__events(o->metric, d->platform, vector, events);
		memcpy(p + at, words, sizeof(words));
		memcpy(p + at + sizeof(words), events, most * sizeof(*events));
		at += sizeof(words) + most * sizeof(*events);
	}
	at += most == 10 ? 12 : 4; /* tag and scale: not used for samples */
	memcpy(data, p, at);
	return at;
}

static size_t old_cores(const struct nps_device_opts *o, const struct nps_device_info *d, uint32_t period,
			void *data)
{
	enum { SAMPLE = 1, ALMOST_FULL = 26214, FIRST_EVENT = 5 };
	uint32_t words[14] = { SAMPLE, ALMOST_FULL, period, 0 };
	uint16_t events[NPS_AIC_EVENTS] = { 0 };

	words[3] = d->aic_cores >= 32 || !d->aic_cores ? UINT32_MAX : (1U << d->aic_cores) - 1;
	words[4] = (uint32_t)nps_aic_metrics__events(o->metric, d->platform, 0, events);
	for (int i = 0; i < 8; i++)
		words[FIRST_EVENT + i] = events[i];
	return config_put(data, words, 14);
}

/* Events from which hit rates are computed, by chip (the vendor's own choice). */
static const uint16_t *l2_events(const struct nps_device_info *d)
{
	static const uint16_t first[] = { 0x5b, 0x59, 0x5c, 0x7d, 0x7e, 0x71, 0x79, 0x7c },
			      inference[] = { 0x78, 0x79, 0x77, 0x71, 0x6a, 0x6c, 0x74, 0x62 },
			      second[] = { 0xf6, 0xfb, 0xfc, 0xbf, 0x90, 0x91, 0x9c, 0x9d };

	return d->platform == NPS_PLATFORM_910A	  ? first
	       : d->platform == NPS_PLATFORM_310P ? inference
						  : second;
}

static size_t l2(const struct nps_device_opts *o, const struct nps_device_info *d, uint32_t period,
		 void *data)
{
	const uint16_t *events = l2_events(d);
	uint32_t words[9] = { 8 };

	(void)o;
	(void)period;
	for (int i = 0; i < 8; i++)
		words[1 + i] = events[i];
	return config_put(data, words, 9);
}

/* --- the table --------------------------------------------------------------------------------------- */

#define TEXT                                                                                                 \
	{                                                                                                    \
		{                                                                                            \
			.size = 0, .time = NPS_CHANNEL_NO_TIME                                               \
		}                                                                                            \
	}
#define NO_TIME NPS_CHANNEL_NO_TIME
#define CORES 127 /* number of the last core */
#define UNITS 1023 /* of the last memory unit */

/*
 * Channels whose times count from their start come first, because the
 * control files have one start for all of them.
 */
static const struct nps_channel channels[] = {
	{ 1,
	  "HBM",
	  "hbm.data",
	  true,
	  { { 24, 0, 1000, false, { { 16, 4, 1 }, { 20, 4, UNITS } } },
	    { 32, 24, 1, false, { { 8, 4, 1 }, { 12, 4, UNITS } } } },
	  memory_hz,
	  bandwidth,
	  NPS_PROF_PERIPHERAL },
	{ 8,
	  "last level cache",
	  "llc.data",
	  true,
	  { { 24, 0, 1000, false, { { 16, 4, 255 }, { 20, 4, UNITS } } },
	    { 24, 16, 1, false, { { 8, 4, 255 }, { 12, 4, UNITS } } } },
	  memory_hz,
	  llc,
	  NPS_PROF_PERIPHERAL },
	{ 7,
	  "DDR",
	  "ddr.data",
	  true,
	  { { 20, NO_TIME, 0, false, { { 8, 4, 1 }, { 12, 4, UNITS } } } },
	  memory_hz,
	  bandwidth,
	  NPS_PROF_PERIPHERAL },
	{ 131,
	  "device memory",
	  "npu_mem.data",
	  true,
	  { { 32, NO_TIME, 0, false, { { 4, 4, 1 } } }, { 32, 8, 1000, false, { { 4, 4, 1 } } } },
	  memory_hz,
	  memory_of_device,
	  NPS_PROF_PERIPHERAL },
	{ 142,
	  "module memory",
	  "npu_module_mem.data",
	  false,
	  { { 24, NO_TIME, 0, false, { { 0, 4, 65535 } } } },
	  memory_hz,
	  memory_of_device,
	  NPS_PROF_PERIPHERAL },
	{ 133,
	  "quality of service",
	  "qos.data",
	  false,
	  { { 64, 16, 0, false, { { 0 } } } },
	  memory_hz,
	  qos,
	  NPS_PROF_PERIPHERAL },
	{ 4, "NIC", "nic.data", false, TEXT, io_hz, NULL, NPS_PROF_PERIPHERAL },
	{ 129, "RoCE", "roce.data", false, TEXT, io_hz, NULL, NPS_PROF_PERIPHERAL },
	{ 9, "HCCS", "hccs.data", false, TEXT, links_hz, NULL, NPS_PROF_PERIPHERAL },
	{ 3,
	  "PCIe",
	  "pcie.data",
	  false,
	  { { 96, 0, 1, false, { { 8, 4, 65535 } } } },
	  links_hz,
	  NULL,
	  NPS_PROF_PERIPHERAL },
	{ 146,
	  "UB",
	  "ub.data",
	  false,
	  { { 128, 8, 1, false, { { 4, 2, 65535 } } } },
	  links_hz,
	  NULL,
	  NPS_PROF_PERIPHERAL },
	{ 132,
	  "AI Core frequency",
	  "lpmFreqConv.data",
	  false,
	  { { 888, NO_TIME, 0, false, { { 0, 4, 55 }, { 4, 4, 15 } } } },
	  power_hz,
	  power,
	  NPS_PROF_PERIPHERAL },
	{ 52,
	  "SoC counters",
	  "stars_soc_profile.data",
	  false,
	  { { 64, 8, 0, true, { { 0 } } } },
	  soc_hz,
	  soc,
	  NPS_PROF_TS },
	{ 54,
	  "AI Core counters",
	  "ffts_profile.data",
	  false,
	  { { 96, 80, 1, false, { { 89, 1, CORES }, { 2, 2, 4096 } } },
	    { 112, 96, 0, false, { { 105, 1, CORES }, { 2, 2, 4096 } } } },
	  core_hz,
	  cores,
	  NPS_PROF_TS },
	{ 43,
	  "AI Core counters",
	  "aicore.data",
	  false,
	  { { 96, 80, 1, false, { { 89, 1, CORES }, { 2, 2, 4096 } } } },
	  old_core_hz,
	  old_cores,
	  NPS_PROF_TS },
	{ 85,
	  "vector core counters",
	  "aiVectorCore.data",
	  false,
	  { { 96, 80, 1, false, { { 89, 1, CORES }, { 2, 2, 4096 } } } },
	  old_vector_hz,
	  old_cores,
	  NPS_PROF_TS },
	{ 47,
	  "L2 cache",
	  "l2_cache.data",
	  false,
	  { { 72, NO_TIME, 0, false, { { 0 } } } },
	  l2_hz,
	  l2,
	  NPS_PROF_TS },
};

size_t nps_channels__count(void)
{
	return sizeof(channels) / sizeof(*channels);
}

const struct nps_channel *nps_channel__at(size_t i)
{
	return i < nps_channels__count() ? &channels[i] : NULL;
}

bool nps_channel__is_shared(const struct nps_channel *ch)
{
	return ch->params == old_cores;
}

int nps_channel__start(const struct nps_channel *ch, const struct nps_device_lib *lib,
		       const struct nps_device_opts *o, const struct nps_device_info *d, uint32_t *period_ms)
{
	uint32_t period = period_of(ch->hz(o, d));
	uint32_t data[MOST_DATA / sizeof(uint32_t)] = { 0 };
	struct nps_prof_start start = { .type = ch->type, .period_ms = period, .real_time = 1 };

	*period_ms = period;
	if (ch->params) {
		start.data = data;
		start.data_size = (uint32_t)ch->params(o, d, period, data);
	}
	return nps_device_lib__start(lib, d->id, ch->id, &start);
}

/* --- sample.json ------------------------------------------------------------------------------------- */

static void json_add_text(cJSON *j, const char *key, const char *value)
{
	if (!cJSON_HasObjectItem(j, key))
		cJSON_AddStringToObject(j, key, value);
}

static void add_period(cJSON *j, const char *key, unsigned int hz)
{
	if (!cJSON_HasObjectItem(j, key))
		cJSON_AddNumberToObject(j, key, period_of(hz));
}

void nps_channel__describe(const struct nps_channel *ch, const struct nps_device_opts *o,
			   const struct nps_device_info *d, cJSON *j)
{
	char text[96];
	size_t n = 8;

	if (ch->hz == memory_hz) {
		json_add_text(j, "hardware_mem", "on");
		add_period(j, "hardware_mem_sampling_interval", o->memory_hz);
	}
	if (ch->params == llc)
		json_add_text(j, "llc_profiling", o->llc == 'w' ? "write" : "read");
	if (ch->id == 1)
		json_add_text(j, "hbm_profiling_events", "read,write");
	if (ch->id == 7)
		json_add_text(j, "ddr_profiling_events", "read,write");
	if (ch->params == qos || ch->params == soc)
		json_add_text(j, "qosEvents", "OTHERS");
	if (ch->hz == io_hz) {
		json_add_text(j, "io_profiling", "on");
		add_period(j, "io_sampling_interval", o->io_hz);
	}
	if (ch->hz == links_hz || (ch->params == soc && o->links)) {
		json_add_text(j, "interconnection_profiling", "on");
		add_period(j, "interconnection_sampling_interval", o->links_hz);
	}
	if (ch->params == cores || ch->params == old_cores)
		nps_aic_metrics__describe(o->metric, d->platform, period_of(o->aic_hz), j);
	if (ch->params == l2) {
		nps_aic_metrics__text(l2_events(d), n, text, sizeof(text));
		json_add_text(j, "l2CacheTaskProfiling", "on");
		json_add_text(j, "l2CacheTaskProfilingEvents", text);
	}
}

/* --- records ----------------------------------------------------------------------------------------- */

static uint64_t record_load(const uint8_t *p, unsigned int width)
{
	uint64_t v = 0;

	for (unsigned int i = width; i--;)
		v = v << 8 | p[i];
	return v;
}

bool nps_channel__sane(const struct nps_channel_format *f, const uint8_t *record)
{
	if (f->stars && record_load(record + 2, 2) != STARS_MAGIC)
		return false;
	for (size_t i = 0; i < sizeof(f->fields) / sizeof(*f->fields) && f->fields[i].width; i++)
		if (record_load(record + f->fields[i].offset, f->fields[i].width) > f->fields[i].most)
			return false;
	return true;
}

uint64_t nps_channel__time(const struct nps_channel_format *f, const uint8_t *record)
{
	return f->time == NO_TIME ? 0 : record_load(record + f->time, 8);
}

/* Are the records at the front of DATA plausible in this format, with times that never decrease? */
static bool fits(const struct nps_channel_format *f, const uint8_t *data, size_t len)
{
	uint64_t before = 0;
	size_t n = 0;

	for (; n < 4 && len >= f->size; n++, data += f->size, len -= f->size) {
		uint64_t time = nps_channel__time(f, data);

		if (!nps_channel__sane(f, data) || time < before || time >> 62)
			return false;
		before = time;
	}
	return n > 0;
}

int nps_channel__version(const struct nps_channel *ch, const struct nps_device_info *d, const uint8_t *data,
			 size_t len)
{
	const struct nps_channel_format *one = &ch->formats[0], *two = &ch->formats[1];

	if (!two->size)
		return 0;
	if (ch->params == cores)
		return nps_generation_of(d->platform) == NPS_GENERATION_V6;
	if (len < 2UL * two->size)
		return -1;
	/* Memory of the device: at the offset of the first version's time the second has zeros. */
	if (ch->id == 131)
		return !record_load(data, 4) && !record_load(data + two->size, 4) && record_load(data + 8, 8);
	return !fits(one, data, len) && fits(two, data, len);
}
