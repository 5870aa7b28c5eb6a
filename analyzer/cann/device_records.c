/* SPDX-License-Identifier: BSD-2-Clause */
#include "cann/device_records.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define STARS_MAGIC 0x6BD3
#define TRACK_BYTES 40
#define CUT 2048 /* streams below which ids are told apart by higher bits */

enum stars_function {
	STARS_START = 0x00,
	STARS_END = 0x01,
	STARS_CONTEXT_START = 0x22,
	STARS_CONTEXT_END = 0x23,
	STARS_PMU_TASK = 0x28,
	STARS_PMU_BLOCK = 0x29
};

enum track_tag {
	TRACK_STEP = 0x0A,
	TRACK_COPY = 0x0B,
	TRACK_TASK = 0x0C,
	TRACK_FLIP = 0x0E,
	TRACK_BLOCKS = 0x0F
};

enum step_tag { STEP_MARK = 11, STEP_RANGE = 12 };

#define TRACK_STARTED 1
#define TRACK_ENDED 2
#define TYPE_MEMCPY 5 /* of the runtime's task types */

/* Sub-task types of FFTS+ and their PMU records. */
#define FFTS_PLUS 4
#define FFTS_MIX 5
#define SUB_MIX_AIC 6

struct reading {
	struct nps_device_records *records;
	struct nps_capture *capture;
	const struct nps_cann_dir *dir;
	bool expanded; /* streams with ids of 15 bits */
	uint64_t order;
	uint64_t untimed, unknown, gaps;
	unsigned int counter; /* running number of the last record, 16: none yet */
};

static struct nps_device_event *add(struct reading *r, enum nps_device_kind kind, uint64_t count)
{
	struct nps_device_event *event;
	uint64_t time;

	if (!nps_cann_clock__unix(&r->dir->device_clock, count, &time)) {
		r->untimed++;
		return NULL;
	}
	event = nps_capture__sort(r->capture, &r->records->events);
	if (!event)
		return NULL;
	*event = (struct nps_device_event){ .key = { time, (uint64_t)kind << 56 | r->order++ },
					    .context = NPS_NO_CONTEXT,
					    .device = r->dir->device };
	return event;
}

/*
 * Ids as the hardware logs them hold bits of one in the other's field (prof-raw 2.5).
 */
static void unmangle(const struct reading *r, const uint8_t *p, unsigned int type, uint32_t *stream,
		     uint32_t *task)
{
	uint32_t s = nps_u16(p), t = nps_u16(p + 2);

	if (r->capture->v6) {
		*stream = 0;
		*task = t << 16 | s;
		return;
	}
	switch (r->dir->chip) {
	case NPS_CHIP_910B:
	case NPS_CHIP_310B:
	case NPS_CHIP_V1_1_2:
	case NPS_CHIP_V1_1_3:
		break;
	default:
		*stream = s;
		*task = t;
		return;
	}
	if (r->expanded) {
		*stream = s & 0x7fff;
		*task = t;
		if (type != 3 && type != 4 && s & 0x8000) {
			*stream = t & 0x7fff;
			*task = (t & 0x8000) | (s & 0x7fff);
		}
		return;
	}
	*stream = s % CUT;
	*task = t;
	if (s & 0x1000) {
		*task = (t & 0x1fff) | (s & 0xe000);
	} else if (s & 0x2000) {
		*stream = (t & 0x0fff) % CUT;
		*task = (s & 0x0fff) | (t & 0xf000);
	}
}

/* A gap in the running number of a stream's records are records that the device lost. */
static void count_gap(struct reading *r, const uint8_t *p)
{
	unsigned int counter = nps_u16(p) >> 6 & 0xf;

	if (r->counter < 16)
		r->gaps += (counter - r->counter - 1) & 0xf;
	r->counter = counter;
}

static void stars_soc(struct reading *r, const uint8_t *p)
{
	unsigned int head = nps_u16(p), function = head & 0x3f;
	struct nps_device_event *event;
	bool context = function == STARS_CONTEXT_START || function == STARS_CONTEXT_END;

	count_gap(r, p);
	if (function != STARS_START && function != STARS_END && !context) {
		r->unknown++;
		return;
	}
	event = add(r, function & 1 ? NPS_DEVICE_END : NPS_DEVICE_START, nps_u64(p + 8));
	if (!event)
		return;
	event->source = context ? NPS_RUN_CONTEXT : NPS_RUN_STARS;
	event->type = context ? p[16] : head >> 10;
	if (context)
		event->context = nps_u16(p + 18);
	unmangle(r, p + 4, head >> 10, &event->stream, &event->task);
}

static void hwts(struct reading *r, const uint8_t *p)
{
	unsigned int type = p[0] & 7;
	struct nps_device_event *event;

	if (type > 1)
		return;
	event = add(r, type ? NPS_DEVICE_END : NPS_DEVICE_START, nps_u64(p + 8));
	if (!event)
		return;
	event->source = NPS_RUN_HWTS;
	event->type = p[1];
	event->stream = nps_u32(p + 16);
	event->task = nps_u16(p + 6);
}

/* What AI core a record of the PMU is about. */
static uint8_t pmu_core(unsigned int ffts, unsigned int sub)
{
	if (ffts == FFTS_PLUS || ffts == FFTS_MIX)
		return sub != SUB_MIX_AIC && sub != 0;
	return ffts != 0;
}

static void ffts_profile(struct reading *r, const uint8_t *p)
{
	unsigned int function = nps_u16(p) & 0x3f, ffts;
	struct nps_counters *counters;
	struct nps_device_event *event;

	count_gap(r, p);
	if (function != STARS_PMU_TASK && function != STARS_PMU_BLOCK) {
		r->unknown++;
		return;
	}
	event = add(r, NPS_DEVICE_PMU, nps_u64(p + 120));
	if (!event)
		return;
	counters = nps_capture__push(r->capture, &r->records->counters);
	if (!counters)
		return;
	event->row = r->records->counters.len - 1;
	counters->block = function == STARS_PMU_BLOCK;
	ffts = counters->block ? p[21] >> 5 : nps_u16(p + 20) >> 13;
	counters->core = counters->block ? p[20] & 1 : pmu_core(ffts, p[16]);
	counters->cycles = nps_u64(p + 32);
	for (int i = 0; i < NPS_CANN_EVENTS; i++)
		counters->values[i] = nps_u64(p + 48 + 8 * i);
	if (ffts == FFTS_PLUS || ffts == FFTS_MIX)
		event->context = nps_u16(p + 18);
	unmangle(r, p + 4, 0, &event->stream, &event->task);
}

static void step_mark(struct reading *r, const uint8_t *p)
{
	uint64_t index = nps_u64(p + 16), model = nps_u64(p + 24), time;
	uint32_t tag = nps_u16(p + 36);

	if (!nps_cann_clock__unix(&r->dir->device_clock, nps_u64(p + 8), &time)) {
		r->untimed++;
		return;
	}
	if (tag == STEP_MARK || tag == STEP_RANGE) {
		struct nps_mark *mark = nps_capture__sort(r->capture, &r->capture->marks);

		if (mark)
			*mark = (struct nps_mark){ { index, time }, tag, r->dir->device };
	} else {
		struct nps_step_mark *step = nps_capture__sort(r->capture, &r->capture->steps);
		uint64_t of = NPS_MIN(model, (uint64_t)NPS_NO_ID);

		if (step)
			*step = (struct nps_step_mark){ { (uint64_t)r->dir->device << 32 | of, time },
							index,
							tag };
	}
}

/* On chips without Stars the task scheduler tells about tasks that are none of the cores'. */
static void track_task(struct reading *r, const uint8_t *p, uint8_t type, unsigned int status)
{
	struct nps_device_event *event;

	if (r->dir->chip > NPS_CHIP_310P || (status != TRACK_STARTED && status != TRACK_ENDED))
		return;
	event = add(r, status == TRACK_ENDED ? NPS_DEVICE_END : NPS_DEVICE_START, nps_u64(p + 8));
	if (!event)
		return;
	event->source = NPS_RUN_TRACK;
	event->type = type;
	event->stream = nps_u16(p + 16);
	event->task = nps_u16(p + 18);
}

static void ts_track(struct reading *r, const uint8_t *p)
{
	struct nps_device_event *event;

	switch (p[1]) {
	case TRACK_STEP:
		step_mark(r, p);
		break;
	case TRACK_COPY:
		track_task(r, p, TYPE_MEMCPY, p[20]);
		break;
	case TRACK_TASK:
		track_task(r, p, p[20], p[22]);
		break;
	case TRACK_FLIP:
		event = add(r, NPS_DEVICE_FLIP, nps_u64(p + 8));
		if (!event)
			break;
		event->stream = nps_u16(p + 16);
		event->row = nps_u16(p + 18);
		event->task = nps_u16(p + 22);
		break;
	case TRACK_BLOCKS:
		event = add(r, NPS_DEVICE_BLOCKS, nps_u64(p + 8));
		if (!event)
			break;
		event->stream = nps_u16(p + 16);
		event->task = nps_u16(p + 18);
		event->row = nps_u32(p + 20);
		break;
	default: /* the scheduler tells more than anybody needs */
		break;
	}
}

static void read_file(struct reading *r, const char *name, size_t size, struct nps_magic magic,
		      void (*record)(struct reading *r, const uint8_t *p))
{
	struct nps_model *m = r->capture->model;
	struct nps_reader reader;
	const uint8_t *p;
	char base[64];
	int err;

	snprintf(base, sizeof(base), "%s.%u", name, r->dir->device);
	err = nps_reader__open(&reader, m, &r->dir->files, base, size, magic);
	r->capture->err = r->capture->err ? r->capture->err : err;
	r->untimed = r->unknown = r->gaps = 0;
	r->counter = 16;
	while (!r->capture->err && (p = nps_reader__next(&reader)))
		record(r, p);
	nps_reader__close(&reader);
	nps_model__lost(m, r->untimed, "records of %s at impossible times", base);
	nps_model__lost(m, r->unknown, "records of %s of unknown kinds", base);
	nps_model__lost(m, r->gaps, "records of %s that the device lost", base);
}

static bool expanded_streams(struct nps_capture *capture)
{
	static const char *const names[] = { "unaging.compact.expand_stream_spec",
					     "aging.compact.expand_stream_spec" };
	bool expanded = false;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(names); i++) {
		struct nps_reader reader;
		const uint8_t *p;
		int err = nps_reader__open(&reader, capture->model, &capture->host.files, names[i], 64,
					   (struct nps_magic){ 0x5A5A, 0 });

		capture->err = capture->err ? capture->err : err;
		while (!capture->err && (p = nps_reader__next(&reader)))
			expanded = expanded || p[24] == 1;
		nps_reader__close(&reader);
	}
	return expanded;
}

int nps_device_records__read(struct nps_device_records *records, struct nps_capture *capture)
{
	const struct nps_magic stars = { STARS_MAGIC, 2 }, track = { TRACK_BYTES, 2 };
	bool expanded = expanded_streams(capture);

	nps_ext_sort__init(&records->events, capture->model->tmpfd, sizeof(struct nps_device_event));
	nps_vec__init(&records->counters, capture->model->tmpfd, sizeof(struct nps_counters));
	for (size_t i = 0; i < capture->ndevices; i++) {
		struct reading r = { .records = records,
				     .capture = capture,
				     .dir = &capture->devices[i],
				     .expanded = expanded };

		read_file(&r, "stars_soc.data", capture->v6 ? 32 : 64, stars, stars_soc);
		read_file(&r, "hwts.data", 64, NPS_NO_MAGIC, hwts);
		read_file(&r, "hwts.aiv_data", 64, NPS_NO_MAGIC, hwts);
		read_file(&r, "ts_track.data", TRACK_BYTES, track, ts_track);
		if (!r.dir->sampled_pmu)
			read_file(&r, "ffts_profile.data", 128, NPS_NO_MAGIC, ffts_profile);
		nps_vec__cool(&records->counters);
	}
	if (!capture->err)
		capture->err = nps_ext_sort__finish(&records->events);
	return capture->err;
}

void nps_device_records__free(struct nps_device_records *records)
{
	nps_ext_sort__free(&records->events);
	nps_vec__free(&records->counters);
}
