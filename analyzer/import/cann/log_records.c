/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/log_records.h"

#include <string.h>

#define STARS_MAGIC 0x6BD3
#define TRACK_BYTES 40
#define CUT 2048 /* streams are below; bits above it mark how ids are stored */

enum stars_function {
	STARS_START = 0x00,
	STARS_END = 0x01,
	STARS_CONTEXT_START = 0x22,
	STARS_CONTEXT_END = 0x23,
	STARS_BLOCK_START = 0x24,
	STARS_BLOCK_END = 0x25,
	STARS_PMU_TASK = 0x28,
	STARS_PMU_BLOCK = 0x29,
	STARS_PMU_WHOLE = 0x2a /* of a task, last generation */
};

enum track_tag {
	TRACK_STEP = 0x0A,
	TRACK_COPY = 0x0B,
	TRACK_TASK = 0x0C,
	TRACK_FLIP = 0x0E,
	TRACK_BLOCKS = 0x0F
};

#define TRACK_STARTED 1
#define TRACK_ENDED 2
#define TYPE_MEMCPY 5 /* of the runtime's task types */

/* Types of SQEs whose ids are never swapped. */
#define TYPE_PLACE_HOLDER 3
#define TYPE_EVENT_RECORD 4

/* Sub-task types of FFTS+ and their PMU records. */
#define FFTS_PLUS 4
#define FFTS_MIX 5
#define SUB_MIX_AIC 6

#define STARS_VALUES 8 /* of a PMU record; the last generation has all of NPS_CANN_EVENTS */

static void stars_soc(const uint8_t *p, struct nps_log_record *r)
{
	unsigned int head = nps_u16(p), function = head & 0x3f;
	bool context = function == STARS_CONTEXT_START || function == STARS_CONTEXT_END;

	r->sequence = head >> 6 & 0xf;
	if (function != STARS_START && function != STARS_END && !context) {
		r->kind = NPS_LOG_UNKNOWN;
		return;
	}
	r->kind = function & 1 ? NPS_LOG_END : NPS_LOG_START;
	r->count = nps_u64(p + 8);
	r->stream = nps_u16(p + 4);
	r->task = nps_u16(p + 6);
	r->mangled = true;
	r->source = context ? NPS_RUN_CONTEXT : NPS_RUN_STARS;
	r->type = context ? p[16] : head >> 10;
	if (!context)
		return;
	r->context = nps_u16(p + 18);
	r->thread = nps_u16(p + 22);
}

/* The cores' own log: when each block of a kernel ran, and where. */
static void stars_block(const uint8_t *p, struct nps_log_record *r)
{
	unsigned int head = nps_u16(p), function = head & 0x3f;

	r->sequence = head >> 6 & 0xf;
	if (function != STARS_BLOCK_START && function != STARS_BLOCK_END) {
		r->kind = NPS_LOG_UNKNOWN;
		return;
	}
	r->kind = function & 1 ? NPS_LOG_END : NPS_LOG_START;
	r->count = nps_u64(p + 8);
	r->stream = nps_u16(p + 4);
	r->task = nps_u16(p + 6);
	r->mangled = true;
	r->source = NPS_RUN_BLOCK;
	r->context = nps_u16(p + 26);
	r->type = p[21];
	r->value = p[20] & 1;
}

static void hwts(const uint8_t *p, struct nps_log_record *r)
{
	unsigned int type = p[0] & 7;

	r->sequence = p[0] >> 4;
	if (type > 1)
		return;
	r->kind = type ? NPS_LOG_END : NPS_LOG_START;
	r->count = nps_u64(p + 8);
	r->source = NPS_RUN_HWTS;
	r->type = p[1];
	r->stream = nps_u32(p + 16);
	r->task = nps_u16(p + 6);
}

/* What AI core a record of the PMU is about. */
static uint8_t pmu_core(unsigned int ffts, unsigned int sub)
{
	if (ffts == FFTS_PLUS || ffts == FFTS_MIX)
		return sub != SUB_MIX_AIC && sub != 0;
	return ffts != 0;
}

/* Of a kernel on both kinds of cores the master's counters are one record, those of the others another. */
static void whole_counters(const uint8_t *p, struct nps_counters *counters)
{
	counters->block = !(p[17] & 1);
	counters->core = p[20] & 1;
	counters->cycles = nps_u64(p + 8);
	for (int i = 0; i < NPS_CANN_EVENTS; i++)
		counters->values[i] = nps_u64(p + 32 + 8 * i);
}

bool nps_log__is_block(const uint8_t *p)
{
	return (nps_u16(p) & 0x3f) == STARS_PMU_BLOCK;
}

uint32_t nps_log__counters(const uint8_t *p, struct nps_counters *counters)
{
	unsigned int ffts;

	*counters = (struct nps_counters){ 0 };
	if ((nps_u16(p) & 0x3f) == STARS_PMU_WHOLE) {
		whole_counters(p, counters);
		return NPS_NO_CONTEXT;
	}
	counters->block = nps_log__is_block(p);
	ffts = counters->block ? p[21] >> 5 : nps_u16(p + 20) >> 13;
	counters->core = counters->block ? p[20] & 1 : pmu_core(ffts, p[16]);
	counters->cycles = nps_u64(p + 32);
	for (int i = 0; i < STARS_VALUES; i++)
		counters->values[i] = nps_u64(p + 48 + 8 * i);
	return ffts == FFTS_PLUS || ffts == FFTS_MIX ? nps_u16(p + 18) : NPS_NO_CONTEXT;
}

void nps_log__old_counters(const uint8_t *p, struct nps_counters *counters, uint32_t *stream, uint32_t *task)
{
	*counters = (struct nps_counters){ .cycles = nps_u64(p + 16) };
	for (int i = 0; i < STARS_VALUES; i++)
		counters->values[i] = nps_u64(p + 32 + 8 * i);
	*stream = nps_u32(p + 96);
	*task = nps_u16(p + 6);
}

static void ffts_profile(const uint8_t *p, struct nps_log_record *r)
{
	unsigned int function = nps_u16(p) & 0x3f;

	r->sequence = nps_u16(p) >> 6 & 0xf;
	if (function != STARS_PMU_TASK && function != STARS_PMU_BLOCK && function != STARS_PMU_WHOLE) {
		r->kind = NPS_LOG_UNKNOWN;
		return;
	}
	r->kind = NPS_LOG_PMU;
	r->count = nps_u64(p + 120);
	r->stream = nps_u16(p + 4);
	r->task = nps_u16(p + 6);
	r->mangled = true;
}

/* On chips without Stars the task scheduler reports tasks that do not run on cores. */
static void track_task(const uint8_t *p, uint8_t type, unsigned int status, struct nps_log_record *r)
{
	if (status != TRACK_STARTED && status != TRACK_ENDED)
		return;
	r->kind = status == TRACK_ENDED ? NPS_LOG_END : NPS_LOG_START;
	r->source = NPS_RUN_TRACK;
	r->type = type;
	r->task = nps_u16(p + 18);
}

static void ts_track(const uint8_t *p, struct nps_log_record *r)
{
	r->count = nps_u64(p + 8);
	r->stream = nps_u16(p + 16);
	switch (p[1]) {
	case TRACK_STEP:
		r->kind = NPS_LOG_STEP;
		break;
	case TRACK_COPY:
		track_task(p, TYPE_MEMCPY, p[20], r);
		break;
	case TRACK_TASK:
		track_task(p, p[20], p[22], r);
		break;
	case TRACK_FLIP:
		r->kind = NPS_LOG_FLIP;
		r->value = nps_u16(p + 18);
		r->task = nps_u16(p + 22);
		break;
	case TRACK_BLOCKS:
		r->kind = NPS_LOG_BLOCKS;
		r->task = nps_u16(p + 18);
		r->value = nps_u32(p + 20);
		break;
	default: /* other messages of the scheduler are not needed */
		break;
	}
}

const struct nps_log_format nps_log_formats[] = {
	{ "stars_soc.data", 64, 32, { STARS_MAGIC, 2 }, true, stars_soc },
	{ "stars_block.data", 32, 32, NPS_NO_MAGIC, false, stars_block },
	{ "hwts.data", 64, 64, NPS_NO_MAGIC, true, hwts },
	{ "hwts.aiv_data", 64, 64, NPS_NO_MAGIC, true, hwts },
	{ "ts_track.data", TRACK_BYTES, TRACK_BYTES, { TRACK_BYTES, 2 }, false, ts_track },
	{ "ffts_profile.data", 128, 128, NPS_NO_MAGIC, false, ffts_profile },
	{ .file = NULL },
};

const struct nps_log_format *nps_log_format(const char *file)
{
	for (const struct nps_log_format *f = nps_log_formats; f->file; f++)
		if (!strcmp(f->file, file))
			return f;
	return NULL;
}

enum nps_ids nps_log__ids(uint32_t chip, bool expanded)
{
	switch (chip) {
	case NPS_CHIP_950:
	case NPS_CHIP_950_1:
		return NPS_IDS_WHOLE;
	case NPS_CHIP_910B:
	case NPS_CHIP_310B:
	case NPS_CHIP_V1_1_2:
	case NPS_CHIP_V1_1_3:
		return expanded ? NPS_IDS_EXPANDED : NPS_IDS_BITS;
	default:
		return NPS_IDS_PLAIN;
	}
}

void nps_log__unmangle(enum nps_ids ids, const struct nps_log_record *r, uint32_t *stream, uint32_t *task)
{
	uint32_t s = r->stream, t = r->task;

	*stream = s;
	*task = t;
	if (!r->mangled)
		return;
	switch (ids) {
	case NPS_IDS_PLAIN:
		break;
	case NPS_IDS_WHOLE:
		*stream = 0;
		*task = t << 16 | s;
		break;
	case NPS_IDS_EXPANDED:
		*stream = s & 0x7fff;
		if (r->type != TYPE_PLACE_HOLDER && r->type != TYPE_EVENT_RECORD && s & 0x8000) {
			*stream = t & 0x7fff;
			*task = (t & 0x8000) | (s & 0x7fff);
		}
		break;
	case NPS_IDS_BITS:
		*stream = s % CUT;
		if (s & 0x1000) {
			*task = (t & 0x1fff) | (s & 0xe000);
		} else if (s & 0x2000) {
			*stream = (t & 0x0fff) % CUT;
			*task = (s & 0x0fff) | (t & 0xf000);
		}
		break;
	}
}
