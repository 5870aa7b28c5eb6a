/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges and marks of the mstx interface, with the times at which their streams came to them (prof-raw 2.3,
 * 4.5). A long message comes in several records; the device reports a mark by its number only.
 */
#include "import/cann/capture.h"

#include <errno.h>
#include <string.h>

#define MAGIC 0x5A5A
#define MESSAGE_AT 100
#define MESSAGE_PART 156
#define MESSAGE_MOST 1024
#define CONNECTION_BASE 4000000001U
#define TAG_RANGE 12
#define MARK_EX 1 /* kind of record */
#define EVENT_MARK 0
#define EVENT_MARK_EX 3

/* One record; those of one mark follow each other. */
struct segment {
	struct nps_sort_key key; /* high: start, host counter; low: id << 16 | segment */
	uint64_t end, id, domain, payload;
	uint32_t pid, tid, category, event;
	int32_t payload_type, message_type;
	bool numbered; /* of the mstx interface: the device reports it by its number */
	char message[MESSAGE_PART];
};

/* Rows by the number of their mark, and the device's records, by row. */
struct mark_row {
	struct nps_sort_key key; /* high: id, low: row << 1 | is a range */
};

struct device_time {
	struct nps_sort_key key; /* high: row */
	uint64_t start, end;
};

struct message {
	char text[MESSAGE_MOST];
	size_t len;
};

static void read_segments(struct nps_cann_capture *capture, struct nps_ext_sort *segments, const char *base)
{
	struct nps_slice_reader reader;
	const uint8_t *p;
	int err = nps_slice_reader__open(&reader, capture->model, &capture->host.files, base, 256,
					 (struct nps_magic){ MAGIC, 0 });

	capture->err = capture->err ? capture->err : err;
	while (!capture->err && (p = nps_slice_reader__next(&reader))) {
		struct segment *to = nps_cann_capture__sort(capture, segments);

		if (!to)
			break;
		*to = (struct segment){ .key = { nps_u64(p + 64), nps_u64(p + 80) << 16 | nps_u16(p + 26) },
					.end = nps_u64(p + 72),
					.id = nps_u64(p + 80),
					.domain = nps_u64(p + 88),
					.payload = nps_u64(p + 56),
					.pid = nps_u32(p + 36),
					.tid = nps_u32(p + 40),
					.category = nps_u32(p + 44),
					.event = nps_u32(p + 48),
					.payload_type = nps_u32(p + 52),
					.message_type = nps_u32(p + 96),
					.numbered = nps_u16(p + 24) == MARK_EX };
		memcpy(to->message, p + MESSAGE_AT, MESSAGE_PART);
	}
	nps_slice_reader__close(&reader);
}

static void message_append(struct message *message, const struct segment *segment)
{
	size_t len = strnlen(segment->message, MESSAGE_PART);

	len = NPS_MIN(len, sizeof(message->text) - message->len);
	memcpy(message->text + message->len, segment->message, len);
	message->len += len;
}

static bool is_mark(uint32_t event)
{
	return event == EVENT_MARK || event == EVENT_MARK_EX;
}

static void mark_add_row(struct nps_cann_capture *capture, const struct segment *first,
			 const struct message *message, struct nps_ext_sort *rows)
{
	struct nps_model *m = capture->model;
	uint64_t start, end, stop = is_mark(first->event) ? first->key.high : first->end;
	uint32_t row = m->mstx.t.len, text;
	struct mark_row *mark;

	if (stop < first->key.high ||
	    !nps_cann_clock__unix(&capture->host.host_clock, first->key.high, &start) ||
	    !nps_cann_clock__unix(&capture->host.host_clock, stop, &end)) {
		nps_model__lost(m, 1, "mstx ranges and marks at impossible times");
		return;
	}
	text = nps_strings__add(m->strings, message->text, message->len);
	capture->err = nps_mstx_table__add(
		&m->mstx,
		&(struct nps_mstx_row){
			.start = start,
			.end = end,
			.type = first->event,
			.range = nps_to_u32(first->id),
			.category = first->category,
			.message = text,
			.gtid = (uint64_t)first->pid << 32 | first->tid,
			.end_gtid = (uint64_t)first->pid << 32 | first->tid,
			.domain = first->domain ? nps_dictionary__name(&capture->names, first->domain)
						: NPS_NONE,
			.connection = first->numbered && first->id < NPS_NO_ID - CONNECTION_BASE
					      ? CONNECTION_BASE + (uint32_t)first->id
					      : NPS_NO_ID,
			.payload_type = first->payload_type,
			.payload = first->payload,
			.message_type = first->message_type });
	if (capture->err)
		return;
	nps_model__cover(m, start, end);
	mark = nps_cann_capture__sort(capture, rows);
	if (mark)
		mark->key = (struct nps_sort_key){ first->id, (uint64_t)row << 1 | !is_mark(first->event) };
}

/* Rows in order of start; ROWS gets their numbers. */
static void mark_add_rows(struct nps_cann_capture *capture, struct nps_ext_sort *segments,
			  struct nps_ext_sort *rows)
{
	struct nps_pace pace = { capture->model, 0 };
	struct segment first = { 0 };
	struct message message = { .len = 0 };
	const struct segment *next;
	uint64_t repeated = 0, last = 0;
	bool open = false;

	while (!capture->err && (next = nps_ext_sort__next(segments))) {
		if (open && next->id == first.id && next->key.high == first.key.high) {
			if (next->key.low == last)
				repeated++;
			else
				message_append(&message, next);
			last = next->key.low;
			continue;
		}
		if (open)
			mark_add_row(capture, &first, &message, rows);
		first = *next;
		last = next->key.low;
		message.len = 0;
		message_append(&message, next);
		open = true;
		nps_pace__step(&pace);
	}
	if (open && !capture->err)
		mark_add_row(capture, &first, &message, rows);
	capture->err = capture->err ? capture->err : segments->err;
	nps_model__lost(capture->model, repeated, "parts of mstx messages that repeat another one");
}

/* From CANN 9.1 on ranges have a tag of their own; before, both ends of a range are like marks. */
static bool is_for(const struct nps_cann_capture *capture, const struct nps_mark *mark, bool range)
{
	const struct nps_cann_dir *host = &capture->host;

	if (host->cann_major < 9 || (host->cann_major == 9 && host->cann_minor < 1))
		return true;
	return (mark->tag == TAG_RANGE) == range;
}

/* Joins the rows with the devices' marks; both by number. */
static void mark_join_device(struct nps_cann_capture *capture, struct nps_ext_sort *rows,
			     struct nps_ext_sort *times)
{
	const struct nps_mark *mark = nps_ext_sort__next(&capture->marks);
	const struct mark_row *row;
	uint64_t alone = 0;

	while (!capture->err && (row = nps_ext_sort__next(rows))) {
		uint64_t id = row->key.high, found[2] = { 0, 0 };
		bool range = row->key.low & 1;
		unsigned int n = 0;

		for (; mark && mark->key.high < id; mark = nps_ext_sort__next(&capture->marks))
			alone++;
		for (; mark && mark->key.high == id; mark = nps_ext_sort__next(&capture->marks)) {
			if (n < 1U + range && is_for(capture, mark, range))
				found[n++] = mark->key.low;
			else
				alone++;
		}
		if (n) {
			struct device_time *to = nps_cann_capture__sort(capture, times);

			if (to)
				*to = (struct device_time){ { row->key.low >> 1, 0 },
							    found[0],
							    n > 1   ? found[1]
							    : range ? 0
								    : found[0] };
		}
	}
	for (; mark; mark = nps_ext_sort__next(&capture->marks))
		alone++;
	nps_model__lost(capture->model, alone, "marks on devices that no host record belongs to");
}

static void mark_set_times(struct nps_cann_capture *capture, struct nps_ext_sort *times)
{
	struct nps_model *m = capture->model;
	struct nps_pace pace = { m, 0 };
	const struct device_time *time;

	while (!capture->err && (time = nps_ext_sort__next(times))) {
		m->mstx.device_start[time->key.high] = time->start;
		m->mstx.device_end[time->key.high] = time->end;
		nps_model__cover(m, time->start, time->end);
		nps_pace__step(&pace);
	}
}

int nps_cann_capture__mstx(struct nps_cann_capture *capture)
{
	struct nps_ext_sort segments, rows, times;
	int tmpfd = capture->model->tmpfd;

	nps_ext_sort__init(&segments, tmpfd, sizeof(struct segment));
	nps_ext_sort__init(&rows, tmpfd, sizeof(struct mark_row));
	nps_ext_sort__init(&times, tmpfd, sizeof(struct device_time));
	read_segments(capture, &segments, "unaging.additional.msproftx");
	read_segments(capture, &segments, "aging.additional.msproftx");
	if (!capture->err)
		capture->err = nps_ext_sort__finish(&segments);
	mark_add_rows(capture, &segments, &rows);
	nps_ext_sort__free(&segments);
	if (!capture->err)
		capture->err = nps_ext_sort__finish(&rows);
	if (!capture->err)
		capture->err = nps_ext_sort__finish(&capture->marks);
	if (!capture->err)
		mark_join_device(capture, &rows, &times);
	if (!capture->err)
		capture->err = nps_ext_sort__finish(&times);
	mark_set_times(capture, &times);
	nps_ext_sort__free(&rows);
	nps_ext_sort__free(&times);
	return capture->err;
}
