/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/device_records.h"

#include "import/cann/breaks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum step_tag { STEP_MARK = 11, STEP_RANGE = 12 };

struct log_reading {
	struct nps_device_records *records;
	struct nps_cann_capture *capture;
	struct nps_cann_dir *dir;
	enum nps_ids ids;
	uint64_t order;
	uint64_t untimed, unknown;
	bool interrupted; /* a break has passed, its time is not noted yet */
	struct nps_sequence sequence;
};

static struct nps_device_event *event_add(struct log_reading *r, enum nps_device_kind kind, uint64_t count)
{
	struct nps_device_event *event;
	uint64_t time;

	if (!nps_cann_clock__unix(&r->dir->device_clock, count, &time)) {
		r->untimed++;
		return NULL;
	}
	event = nps_cann_capture__sort(r->capture, &r->records->events);
	if (!event)
		return NULL;
	*event = (struct nps_device_event){ .key = { time, (uint64_t)kind << 56 | r->order++ },
					    .context = NPS_NO_CONTEXT,
					    .device = r->dir->device };
	return event;
}

static void step_mark(struct log_reading *r, const uint8_t *p)
{
	uint64_t index = nps_u64(p + 16), model = nps_u64(p + 24), time;
	uint32_t tag = nps_u16(p + 36);

	if (!nps_cann_clock__unix(&r->dir->device_clock, nps_u64(p + 8), &time)) {
		r->untimed++;
		return;
	}
	if (tag == STEP_MARK || tag == STEP_RANGE) {
		struct nps_mark *mark = nps_cann_capture__sort(r->capture, &r->capture->marks);

		if (mark)
			*mark = (struct nps_mark){ { index, time }, tag, r->dir->device };
	} else {
		struct nps_step_mark *step = nps_cann_capture__sort(r->capture, &r->capture->steps);
		uint64_t of = NPS_MIN(model, (uint64_t)NPS_NO_ID);

		if (step)
			*step = (struct nps_step_mark){ { (uint64_t)r->dir->device << 32 | of, time },
							index,
							tag };
	}
}

/* Counters of a task; false without memory. */
static bool event_add_counters(struct log_reading *r, struct nps_device_event *event, const uint8_t *p)
{
	struct nps_counters *counters = nps_cann_capture__push(r->capture, &r->records->counters);

	if (!counters)
		return false;
	event->row = r->records->counters.len - 1;
	event->context = nps_log__counters(p, counters);
	return true;
}

static void record_add_event(struct log_reading *r, const struct nps_log_record *record, const uint8_t *p)
{
	static const uint8_t kinds[] = { [NPS_LOG_START] = NPS_DEVICE_START,
					 [NPS_LOG_END] = NPS_DEVICE_END,
					 [NPS_LOG_PMU] = NPS_DEVICE_PMU,
					 [NPS_LOG_BLOCKS] = NPS_DEVICE_BLOCKS,
					 [NPS_LOG_FLIP] = NPS_DEVICE_FLIP };
	struct nps_device_event *event;

	/* The scheduler's record of a task is a second one where Stars logs the task, too. */
	if (record->source == NPS_RUN_TRACK && r->dir->chip > NPS_CHIP_310P &&
	    (record->kind == NPS_LOG_START || record->kind == NPS_LOG_END))
		return;
	event = event_add(r, kinds[record->kind], record->count);
	if (!event)
		return;
	event->source = record->source;
	event->type = record->type;
	event->context = record->context;
	event->thread = record->thread;
	event->row = record->value;
	nps_log__unmangle(r->ids, record, &event->stream, &event->task);
	if (record->kind == NPS_LOG_PMU)
		event_add_counters(r, event, p);
}

/* Notes where a log continues after a break. */
static void note_break(struct log_reading *r, bool tasks, const struct nps_log_record *record)
{
	uint64_t *at;

	if (record->kind != NPS_LOG_START && record->kind != NPS_LOG_END && record->kind != NPS_LOG_PMU)
		return;
	r->interrupted = false;
	if (!tasks && record->kind != NPS_LOG_PMU)
		return;
	at = nps_cann_capture__push(r->capture, tasks ? &r->capture->task_breaks : &r->capture->pmu_breaks);
	if (at)
		*at = record->count;
}

static void record_decode(struct log_reading *r, const struct nps_log_format *format, const uint8_t *p)
{
	struct nps_log_record record;

	nps_log__decode(format, p, &record);
	nps_sequence__next(&r->sequence, record.sequence);
	if (r->interrupted)
		note_break(r, format->tasks, &record);
	switch ((enum nps_log_kind)record.kind) {
	case NPS_LOG_NOTHING:
		break;
	case NPS_LOG_UNKNOWN:
		r->unknown++;
		break;
	case NPS_LOG_STEP:
		step_mark(r, p);
		break;
	default:
		if (record.kind != NPS_LOG_PMU || !r->capture->v6 || !nps_log__is_block(p))
			record_add_event(r, &record, p);
	}
}

static int log_file_open(struct log_reading *r, const struct nps_log_format *format, const char *base,
			 struct nps_slice_reader *reader, struct nps_breaks *breaks)
{
	int err = nps_slice_reader__open(reader, r->capture->model, &r->dir->files, base,
					 r->capture->v6 ? format->bytes_v6 : format->bytes, format->magic);

	if (err)
		return err;
	return nps_breaks__read(breaks, r->dir->datafd, base);
}

static void log_file_read(struct log_reading *r, const struct nps_log_format *format)
{
	struct nps_model *m = r->capture->model;
	struct nps_breaks breaks = { 0 };
	struct nps_slice_reader reader;
	const uint8_t *p;
	char base[64];
	int err;

	snprintf(base, sizeof(base), "%s.%u", format->file, r->dir->device);
	err = log_file_open(r, format, base, &reader, &breaks);
	r->capture->err = r->capture->err ? r->capture->err : err;
	r->untimed = r->unknown = 0;
	r->interrupted = false;
	r->sequence = (struct nps_sequence){ .last = NPS_NO_SEQUENCE };
	while (!r->capture->err && (p = nps_slice_reader__next(&reader))) {
		if (nps_breaks__passed(&breaks, reader.offset)) {
			r->sequence.last = NPS_NO_SEQUENCE;
			r->interrupted = true;
		}
		record_decode(r, format, p);
		r->dir->log.records++;
		r->dir->log.task_records += format->tasks;
	}
	nps_slice_reader__close(&reader);
	r->dir->log.gaps += r->sequence.gaps;
	r->dir->log.task_gaps += format->tasks ? r->sequence.gaps : 0;
	r->dir->log.lost_bytes += breaks.lost;
	nps_breaks__free(&breaks);
	nps_model__lost(m, r->untimed, "records of %s at impossible times", base);
	nps_model__lost(m, r->unknown, "records of %s of unknown kinds", base);
	nps_model__lost(m, r->sequence.gaps, "records of %s that the device lost", base);
}

static bool expanded_streams(struct nps_cann_capture *capture)
{
	static const char *const names[] = { "unaging.compact.expand_stream_spec",
					     "aging.compact.expand_stream_spec" };
	bool expanded = false;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(names); i++) {
		struct nps_slice_reader reader;
		const uint8_t *p;
		int err = nps_slice_reader__open(&reader, capture->model, &capture->host.files, names[i], 64,
						 (struct nps_magic){ 0x5A5A, 0 });

		capture->err = capture->err ? capture->err : err;
		while (!capture->err && (p = nps_slice_reader__next(&reader)))
			expanded = expanded || p[24] == 1;
		nps_slice_reader__close(&reader);
	}
	return expanded;
}

int nps_device_records__read(struct nps_device_records *records, struct nps_cann_capture *capture)
{
	bool expanded = capture->expanded || expanded_streams(capture);

	nps_ext_sort__init(&records->events, capture->model->tmpfd, sizeof(struct nps_device_event));
	nps_vec__init(&records->counters, capture->model->tmpfd, sizeof(struct nps_counters));
	for (size_t i = 0; i < capture->ndevices; i++) {
		struct log_reading r = { .records = records,
					 .capture = capture,
					 .dir = &capture->devices[i] };

		r.ids = capture->v6 ? NPS_IDS_WHOLE : nps_log__ids(r.dir->chip, expanded);
		for (const struct nps_log_format *f = nps_log_formats; f->file; f++)
			if (!r.dir->sampled_pmu || strcmp(f->file, "ffts_profile.data") != 0)
				log_file_read(&r, f);
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
