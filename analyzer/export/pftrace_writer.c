/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of fields come from perfetto.proto, bytes from nanopb's encoding functions. These are called
 * field by field because an event is written once and never kept: nanopb (like protobuf-c) would fill a
 * struct and walk all fields of all messages by their description, and nested messages twice for their
 * lengths.
 */
#include "export/pftrace_writer.h"

#include "base/json_writer.h"
#include "base/map.h"
#include "export/perfetto.pb.h"

#include <errno.h>
#include <pb_encode.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEQUENCE 1 /* all packets are of one sequence: they share texts */
#define LANES 1024 /* of a track */
#define DEPTH 200 /* of a lane: viewers drop what is nested deeper than 255 */
#define TEXTS (1U << 16) /* kept at a time */
#define TEXT_BYTES (8U << 20)
#define LONG (64U << 10) /* bytes of a text that is not worth keeping */

/* A message whose length must be known before it can be written. */
struct packet_body {
	uint8_t *data;
	size_t len, size;
	pb_ostream_t stream;
};

struct packet_track {
	char *name;
	uint64_t parent;
	uint64_t *ends; /* of open slices, outermost first */
	uint64_t last; /* begin of the newest slice */
	uint32_t depth; /* of ends */
	size_t room;
	uint32_t lane; /* the next lane, 0: none */
	int32_t pid, rank;
	bool real; /* a process or a thread, not a mere row */
};

/* A text that the reader knows. Its number is the index + 1. */
struct interned_text {
	size_t at;
	uint32_t len;
	uint32_t written; /* a bit for each field of InternedData that has it */
};

struct nps_pftrace {
	struct nps_writer file;
	int err;
	struct packet_track *tracks; /* id is index + 1 */
	uint32_t tracks_len;
	size_t tracks_room;
	uint64_t crowded;

	/* The packet in work: its payload, new texts for it, a message inside one of them. */
	struct packet_body payload, news, part;
	struct packet_body constant; /* bytes of every event */
	uint32_t kind; /* TracePacket's field for the payload, 0: no packet in work */
	uint64_t ts;

	/* Texts known to the reader. */
	struct interned_text *texts;
	uint32_t texts_len;
	size_t texts_room;
	char *bytes;
	size_t bytes_len, bytes_room;
	struct nps_map by_hash;
	uint32_t clock; /* of all times, 0: the format's default */
	bool state; /* the reader was instructed to start with no texts */
};

/* --- messages --- */

static void fail(struct nps_pftrace *w, int err)
{
	if (!w->err)
		w->err = err;
}

/* DATA with room for one more than LEN: itself or moved. NULL: no memory, DATA is as it was. */
static void *with_room(void *data, size_t len, size_t *room, size_t size)
{
	size_t more = *room ? *room * 2 : 16;
	void *bigger;

	if (len < *room)
		return data;
	bigger = reallocarray(data, more, size);
	if (bigger)
		*room = more;
	return bigger;
}

static int reserve_bytes(struct packet_body *body, size_t more)
{
	size_t size = body->size ? body->size : 4096;
	uint8_t *bigger;

	if (more <= body->size - body->len)
		return 0;
	while (size - body->len < more)
		if (__builtin_mul_overflow(size, (size_t)2, &size))
			return -ENOMEM;
	bigger = realloc(body->data, size);
	if (!bigger)
		return -ENOMEM;
	body->data = bigger;
	body->size = size;
	return 0;
}

static bool stream_append(pb_ostream_t *stream, const pb_byte_t *bytes, size_t n)
{
	struct packet_body *body = stream->state;

	if (reserve_bytes(body, n))
		return false;
	if (n)
		memcpy(body->data + body->len, bytes, n);
	body->len += n;
	return true;
}

static void clear(struct packet_body *body)
{
	body->len = 0;
	body->stream = (pb_ostream_t){ .callback = stream_append, .state = body, .max_size = SIZE_MAX };
}

static void put_field_number(struct nps_pftrace *w, struct packet_body *body, uint32_t field, uint64_t value)
{
	if (!pb_encode_tag(&body->stream, PB_WT_VARINT, field) || !pb_encode_varint(&body->stream, value))
		fail(w, -ENOMEM);
}

static void put_field_fixed(struct nps_pftrace *w, struct packet_body *body, uint32_t field,
			    const void *value)
{
	if (!pb_encode_tag(&body->stream, PB_WT_64BIT, field) || !pb_encode_fixed64(&body->stream, value))
		fail(w, -ENOMEM);
}

static void put_bytes(struct nps_pftrace *w, struct packet_body *body, uint32_t field, const void *bytes,
		      size_t len)
{
	if (!pb_encode_tag(&body->stream, PB_WT_STRING, field) ||
	    !pb_encode_string(&body->stream, bytes, len))
		fail(w, -ENOMEM);
}

static void put_body(struct nps_pftrace *w, struct packet_body *body, uint32_t field,
		     const struct packet_body *inner)
{
	put_bytes(w, body, field, inner->data, inner->len);
}

static bool is_utf8(const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t n = (unsigned char)text[at] < 0x80 ? 1 : nps_utf8_len(text + at, len - at);

		if (!n)
			return false;
		at += n;
	}
	return true;
}

static void put_field_text(struct nps_pftrace *w, struct packet_body *body, uint32_t field, const char *text,
			   size_t len)
{
	char *clean;

	if (is_utf8(text, len)) {
		put_bytes(w, body, field, text, len);
		return;
	}
	clean = len < SIZE_MAX / 3 ? malloc(3 * len + 1) : NULL;
	if (!clean) {
		fail(w, -ENOMEM);
		return;
	}
	put_bytes(w, body, field, clean, nps_utf8_clean(clean, text, len));
	free(clean);
}

/* --- packets --- */

/* The part of all events that is the same, before their time. */
static void fill_constant(struct nps_pftrace *w)
{
	clear(&w->constant);
	put_field_number(w, &w->constant, pf_TracePacket_trusted_packet_sequence_id_tag, SEQUENCE);
	put_field_number(w, &w->constant, pf_TracePacket_sequence_flags_tag,
			 pf_TracePacket_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
	if (!pb_encode_tag(&w->constant.stream, PB_WT_VARINT, pf_TracePacket_timestamp_tag))
		fail(w, -ENOMEM);
}

static bool put_length(pb_ostream_t *stream, uint32_t field, size_t len)
{
	return pb_encode_tag(stream, PB_WT_STRING, field) && pb_encode_varint(stream, len);
}

/* Writes the current packet: constant, time, payload, texts that the reader does not know yet. */
static void packet_finish(struct nps_pftrace *w)
{
	uint8_t a[12], b[24], c[12];
	pb_ostream_t start = pb_ostream_from_buffer(a, sizeof(a)),
		     head = pb_ostream_from_buffer(b, sizeof(b)),
		     middle = pb_ostream_from_buffer(c, sizeof(c));
	size_t constant = w->kind == pf_TracePacket_track_event_tag ? w->constant.len : 0, len;
	bool ok = true;

	if (!w->kind)
		return;
	if (constant)
		ok = pb_encode_varint(&head, w->ts);
	ok = ok && put_length(&head, w->kind, w->payload.len);
	if (w->news.len)
		ok = ok && put_length(&middle, pf_TracePacket_interned_data_tag, w->news.len);
	len = constant + head.bytes_written + w->payload.len + middle.bytes_written + w->news.len;
	if (!ok || !put_length(&start, pf_Trace_packet_tag, len))
		fail(w, -EOVERFLOW); /* cannot be: the arrays hold the longest numbers */
	w->kind = 0;
	if (w->err)
		return;
	nps_writer__bytes(&w->file, (char *)a, start.bytes_written);
	nps_writer__bytes(&w->file, (char *)w->constant.data, constant);
	nps_writer__bytes(&w->file, (char *)b, head.bytes_written);
	nps_writer__bytes(&w->file, (char *)w->payload.data, w->payload.len);
	if (w->news.len) {
		nps_writer__bytes(&w->file, (char *)c, middle.bytes_written);
		nps_writer__bytes(&w->file, (char *)w->news.data, w->news.len);
	}
}

static void packet_start(struct nps_pftrace *w, uint32_t kind, uint64_t ts)
{
	packet_finish(w);
	clear(&w->payload);
	clear(&w->news);
	w->kind = kind;
	w->ts = NPS_MIN(ts, (uint64_t)INT64_MAX); /* readers take them for signed */
}

/* Makes the reader drop all texts, so that neither it nor this writer keeps more than a few. */
static void start_state(struct nps_pftrace *w)
{
	uint8_t size[12];
	pb_ostream_t stream = pb_ostream_from_buffer(size, sizeof(size));

	packet_finish(w);
	nps_map__clear(&w->by_hash);
	w->texts_len = 0;
	w->bytes_len = 0;
	w->state = true;
	clear(&w->payload);
	put_field_number(w, &w->payload, pf_TracePacket_trusted_packet_sequence_id_tag, SEQUENCE);
	put_field_number(w, &w->payload, pf_TracePacket_sequence_flags_tag,
			 pf_TracePacket_SequenceFlags_SEQ_INCREMENTAL_STATE_CLEARED);
	if (w->clock) {
		clear(&w->part);
		put_field_number(w, &w->part, pf_TracePacketDefaults_timestamp_clock_id_tag, w->clock);
		put_body(w, &w->payload, pf_TracePacket_trace_packet_defaults_tag, &w->part);
	}
	if (!put_length(&stream, pf_Trace_packet_tag, w->payload.len))
		fail(w, -EOVERFLOW);
	if (w->err)
		return;
	nps_writer__bytes(&w->file, (char *)size, stream.bytes_written);
	nps_writer__bytes(&w->file, (char *)w->payload.data, w->payload.len);
}

static void start_event(struct nps_pftrace *w, uint64_t track, enum _pf_TrackEvent_Type type, uint64_t ts)
{
	if (!w->state || w->texts_len > TEXTS || w->bytes_len > TEXT_BYTES)
		start_state(w);
	packet_start(w, pf_TracePacket_track_event_tag, ts);
	put_field_number(w, &w->payload, pf_TrackEvent_type_tag, type);
	put_field_number(w, &w->payload, pf_TrackEvent_track_uuid_tag, track);
}

/* --- texts --- */

static uint32_t find_text(struct nps_pftrace *w, const char *text, size_t len, uint64_t *hash)
{
	uint32_t i;

	*hash = nps_hash_bytes(text, len);
	/* A different text with the same hash takes the next free hash value. */
	while ((i = nps_map__get(&w->by_hash, *hash)) != NPS_NONE) {
		if (w->texts[i].len == len && !memcmp(w->bytes + w->texts[i].at, text, len))
			return i;
		++*hash;
	}
	return NPS_NONE;
}

static uint32_t keep_text(struct nps_pftrace *w, const char *text, size_t len, uint64_t hash)
{
	struct interned_text *texts = with_room(w->texts, w->texts_len, &w->texts_room, sizeof(*texts));
	uint32_t i = w->texts_len;

	if (!texts)
		return NPS_NONE;
	w->texts = texts;
	while (w->bytes_len + len >= w->bytes_room) {
		char *bytes = with_room(w->bytes, w->bytes_room, &w->bytes_room, 1);

		if (!bytes)
			return NPS_NONE;
		w->bytes = bytes;
	}
	if (nps_map__put(&w->by_hash, hash, i))
		return NPS_NONE;
	memcpy(w->bytes + w->bytes_len, text, len);
	w->texts[i] = (struct interned_text){ .at = w->bytes_len, .len = len };
	w->bytes_len += len;
	w->texts_len++;
	return i;
}

/* The number of a text in that field of InternedData, 0: it must be written out. */
static uint64_t text_number(struct nps_pftrace *w, uint32_t field, const char *text, size_t len)
{
	uint64_t hash;
	uint32_t i;

	if (len > LONG)
		return 0;
	i = find_text(w, text, len, &hash);
	if (i == NPS_NONE)
		i = keep_text(w, text, len, hash);
	if (i == NPS_NONE) {
		fail(w, -ENOMEM);
		return 0;
	}
	if (!(w->texts[i].written & 1U << field)) {
		struct packet_body *part = &w->part;

		w->texts[i].written |= 1U << field;
		clear(part);
		put_field_number(w, part, pf_InternedText_iid_tag, i + 1);
		put_field_text(w, part, pf_InternedText_name_tag, text, len);
		put_body(w, &w->news, field, part);
	}
	return i + 1;
}

/* A text by number, or written out if it is too long for that. */
static void put_packet_name(struct nps_pftrace *w, uint32_t interned, uint32_t by_number, uint32_t in_full,
			    const char *text)
{
	size_t len = strlen(text);
	uint64_t number = text_number(w, interned, text, len);

	if (number)
		put_field_number(w, &w->payload, by_number, number);
	else
		put_field_text(w, &w->payload, in_full, text, len);
}

static void name_event(struct nps_pftrace *w, const char *category, const char *name)
{
	if (*category)
		put_packet_name(w, pf_InternedData_event_categories_tag, pf_TrackEvent_category_iids_tag,
				pf_TrackEvent_categories_tag, category);
	put_packet_name(w, pf_InternedData_event_names_tag, pf_TrackEvent_name_iid_tag,
			pf_TrackEvent_name_tag, name);
}

/* --- file --- */

static void free_tracks(struct nps_pftrace *w)
{
	for (uint32_t i = 0; i < w->tracks_len; i++) {
		free(w->tracks[i].name);
		free(w->tracks[i].ends);
	}
	free(w->tracks);
}

static void end_slices(struct nps_pftrace *w, uint32_t i, uint64_t now);

int nps_pftrace__close(struct nps_pftrace *w)
{
	int err;

	for (uint32_t i = 0; i < w->tracks_len; i++)
		end_slices(w, i, NPS_PFTRACE_ENDLESS - 1);
	packet_finish(w);
	err = nps_writer__close(&w->file);
	if (w->err)
		err = w->err;
	free_tracks(w);
	free(w->payload.data);
	free(w->news.data);
	free(w->part.data);
	free(w->constant.data);
	free(w->texts);
	free(w->bytes);
	nps_map__free(&w->by_hash);
	free(w);
	return err;
}

/* The root of all tracks states that ranks count. */
static void describe_root(struct nps_pftrace *w)
{
	packet_start(w, pf_TracePacket_track_descriptor_tag, 0);
	put_field_number(w, &w->payload, pf_TrackDescriptor_uuid_tag, 0);
	put_field_number(w, &w->payload, pf_TrackDescriptor_child_ordering_tag,
			 pf_TrackDescriptor_ChildTracksOrdering_EXPLICIT);
	put_field_number(w, &w->payload, pf_TrackDescriptor_process_ordering_tag,
			 pf_TrackDescriptor_ProcessOrdering_PROCESS_ORDERING_EXPLICIT);
	packet_finish(w);
}

int nps_pftrace__open(struct nps_pftrace **out, int dirfd, const char *name)
{
	struct nps_pftrace *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	err = nps_writer__open(&w->file, dirfd, name);
	if (err) {
		free(w);
		return err;
	}
	fill_constant(w);
	describe_root(w);
	*out = w;
	return 0;
}

void nps_pftrace__clocks(struct nps_pftrace *w, const struct nps_pftrace_clock *clocks, size_t n)
{
	if (!n)
		return;
	packet_start(w, pf_TracePacket_clock_snapshot_tag, 0);
	for (size_t i = 0; i < n; i++) {
		clear(&w->part);
		put_field_number(w, &w->part, pf_ClockSnapshot_Clock_clock_id_tag, clocks[i].id);
		put_field_number(w, &w->part, pf_ClockSnapshot_Clock_timestamp_tag, clocks[i].ns);
		put_body(w, &w->payload, pf_ClockSnapshot_clocks_tag, &w->part);
	}
	put_field_number(w, &w->payload, pf_ClockSnapshot_primary_trace_clock_tag, clocks[0].id);
	packet_finish(w);
	w->clock = clocks[0].id;
	w->state = false;
}

/* --- tracks --- */

/* A new track's index, NPS_NONE after an error. Its description is the packet in work. */
static uint32_t add_track(struct nps_pftrace *w, uint64_t parent, const char *name, int32_t rank)
{
	uint32_t i = w->tracks_len;
	struct packet_track *tracks;
	char *copy;

	if (w->err)
		return NPS_NONE;
	if (parent > w->tracks_len || i == NPS_NONE - 1) {
		fail(w, -EINVAL);
		return NPS_NONE;
	}
	tracks = with_room(w->tracks, i, &w->tracks_room, sizeof(*tracks));
	if (tracks)
		w->tracks = tracks;
	copy = strdup(name);
	if (!tracks || !copy) {
		free(copy);
		fail(w, -ENOMEM);
		return NPS_NONE;
	}
	w->tracks[i] = (struct packet_track){
		.name = copy, .parent = parent, .rank = rank, .pid = parent ? w->tracks[parent - 1].pid : 0
	};
	w->tracks_len++;
	packet_start(w, pf_TracePacket_track_descriptor_tag, 0);
	put_field_number(w, &w->payload, pf_TrackDescriptor_uuid_tag, i + 1);
	if (parent)
		put_field_number(w, &w->payload, pf_TrackDescriptor_parent_uuid_tag, parent);
	put_field_text(w, &w->payload, pf_TrackDescriptor_name_tag, name, strlen(name));
	put_field_number(w, &w->payload, pf_TrackDescriptor_sibling_order_rank_tag, (int64_t)rank);
	put_field_number(w, &w->payload, pf_TrackDescriptor_child_ordering_tag,
			 pf_TrackDescriptor_ChildTracksOrdering_EXPLICIT);
	clear(&w->part);
	return i;
}

/* The part becomes the description's FIELD. */
static uint64_t track_with(struct nps_pftrace *w, uint32_t i, uint32_t field)
{
	put_body(w, &w->payload, field, &w->part);
	packet_finish(w);
	return i + 1;
}

uint64_t nps_pftrace__process(struct nps_pftrace *w, int32_t pid, const char *name, int32_t rank)
{
	uint32_t i = add_track(w, 0, name, rank);

	if (i == NPS_NONE)
		return 0;
	w->tracks[i].pid = pid;
	w->tracks[i].real = true;
	put_field_number(w, &w->part, pf_ProcessDescriptor_pid_tag, (int64_t)pid);
	put_field_number(w, &w->part, pf_ProcessDescriptor_legacy_sort_index_tag, (int64_t)rank);
	put_field_text(w, &w->part, pf_ProcessDescriptor_process_name_tag, name, strlen(name));
	return track_with(w, i, pf_TrackDescriptor_process_tag);
}

uint64_t nps_pftrace__thread(struct nps_pftrace *w, uint64_t process, int32_t tid, const char *name,
			     int32_t rank)
{
	char unnamed[32];
	uint32_t i;

	snprintf(unnamed, sizeof(unnamed), "Thread %d", tid);
	i = add_track(w, process, *name ? name : unnamed, rank);
	if (i == NPS_NONE)
		return 0;
	w->tracks[i].real = true;
	put_field_number(w, &w->part, pf_ThreadDescriptor_pid_tag, (int64_t)w->tracks[i].pid);
	put_field_number(w, &w->part, pf_ThreadDescriptor_tid_tag, (int64_t)tid);
	if (*name) /* viewers print the number behind a name, and a word of their own without one */
		put_field_text(w, &w->part, pf_ThreadDescriptor_thread_name_tag, name, strlen(name));
	return track_with(w, i, pf_TrackDescriptor_thread_tag);
}

uint64_t nps_pftrace__track(struct nps_pftrace *w, uint64_t parent, const char *name, int32_t rank)
{
	uint32_t i = add_track(w, parent, name, rank);

	if (i == NPS_NONE)
		return 0;
	packet_finish(w);
	return i + 1;
}

uint64_t nps_pftrace__counter(struct nps_pftrace *w, uint64_t parent, const char *name, const char *unit,
			      int32_t rank)
{
	uint32_t i = add_track(w, parent, name, rank);

	if (i == NPS_NONE)
		return 0;
	if (*unit)
		put_field_text(w, &w->part, pf_CounterDescriptor_unit_name_tag, unit, strlen(unit));
	return track_with(w, i, pf_TrackDescriptor_counter_tag);
}

/* --- events --- */

static bool is_track(struct nps_pftrace *w, uint64_t track)
{
	packet_finish(w); /* arguments that follow are not those of the event before */
	if (track > w->tracks_len)
		fail(w, -EINVAL);
	return track && !w->err;
}

/* Writes the ends of slices that do not go beyond NOW. */
static void end_slices(struct nps_pftrace *w, uint32_t i, uint64_t now)
{
	while (w->tracks[i].depth && w->tracks[i].ends[w->tracks[i].depth - 1] <= now) {
		w->tracks[i].depth--;
		start_event(w, i + 1, pf_TrackEvent_Type_TYPE_SLICE_END,
			    w->tracks[i].ends[w->tracks[i].depth]);
	}
}

static bool fits(const struct packet_track *t, uint64_t begin, uint64_t end)
{
	return begin >= t->last && t->depth < DEPTH && (!t->depth || end <= t->ends[t->depth - 1]);
}

static uint32_t add_lane(struct nps_pftrace *w, uint32_t first, uint32_t last)
{
	const struct packet_track *t = &w->tracks[first];
	/* There is one track that is the process or the thread: its lanes are below it. */
	uint64_t id = nps_pftrace__track(w, t->real ? first + 1 : t->parent, t->name, t->rank);

	if (!id)
		return NPS_NONE;
	w->tracks[last].lane = id - 1;
	return id - 1;
}

/* The lane that takes a slice, NPS_NONE: there is none. */
static uint32_t find_lane(struct nps_pftrace *w, uint32_t first, uint64_t begin, uint64_t end)
{
	uint32_t i = first;

	for (unsigned int n = 1;; n++) {
		end_slices(w, i, begin);
		if (fits(&w->tracks[i], begin, end))
			return i;
		if (n == LANES)
			return NPS_NONE;
		if (!w->tracks[i].lane)
			return add_lane(w, first, i);
		i = w->tracks[i].lane;
	}
}

static void track_open_slice(struct nps_pftrace *w, uint32_t i, uint64_t begin, uint64_t end)
{
	struct packet_track *t = &w->tracks[i];
	uint64_t *ends = with_room(t->ends, t->depth, &t->room, sizeof(*ends));

	if (!ends) {
		fail(w, -ENOMEM);
		return;
	}
	t->ends = ends;
	t->ends[t->depth++] = end;
	t->last = begin;
}

void nps_pftrace__slice(struct nps_pftrace *w, uint64_t track, uint64_t ts, uint64_t dur,
			const char *category, const char *name)
{
	uint64_t end = nps_add_sat(ts, dur);
	uint32_t i;

	if (!is_track(w, track))
		return;
	if (dur != NPS_PFTRACE_ENDLESS)
		end = NPS_MIN(end, NPS_PFTRACE_ENDLESS - 1);
	i = find_lane(w, track - 1, ts, end);
	if (w->err)
		return;
	if (i == NPS_NONE) {
		nps_pftrace__instant(w, track, ts, category, name);
		nps_pftrace__arg_u64(w, "dur_ns", dur);
		w->crowded++;
		return;
	}
	track_open_slice(w, i, ts, end);
	start_event(w, i + 1, pf_TrackEvent_Type_TYPE_SLICE_BEGIN, ts);
	name_event(w, category, name);
}

uint64_t nps_pftrace__crowded(const struct nps_pftrace *w)
{
	return w->crowded;
}

void nps_pftrace__instant(struct nps_pftrace *w, uint64_t track, uint64_t ts, const char *category,
			  const char *name)
{
	if (!is_track(w, track))
		return;
	start_event(w, track, pf_TrackEvent_Type_TYPE_INSTANT, ts);
	name_event(w, category, name);
}

void nps_pftrace__value(struct nps_pftrace *w, uint64_t counter, uint64_t ts, double value)
{
	if (!is_track(w, counter))
		return;
	start_event(w, counter, pf_TrackEvent_Type_TYPE_COUNTER, ts);
	put_field_fixed(w, &w->payload, pf_TrackEvent_double_counter_value_tag, &value);
	packet_finish(w);
}

/* --- arguments --- */

/* Starts an argument in the part; false: there is no event that it could belong to. */
static bool start_arg(struct nps_pftrace *w, const char *key)
{
	size_t len = strlen(key);
	uint64_t number;

	if (w->kind != pf_TracePacket_track_event_tag)
		return false;
	number = text_number(w, pf_InternedData_debug_annotation_names_tag, key, len);
	clear(&w->part);
	if (number)
		put_field_number(w, &w->part, pf_DebugAnnotation_name_iid_tag, number);
	else
		put_field_text(w, &w->part, pf_DebugAnnotation_name_tag, key, len);
	return true;
}

static void arg_number(struct nps_pftrace *w, const char *key, uint32_t field, uint64_t value)
{
	if (!start_arg(w, key))
		return;
	put_field_number(w, &w->part, field, value);
	put_body(w, &w->payload, pf_TrackEvent_debug_annotations_tag, &w->part);
}

void nps_pftrace__arg_u64(struct nps_pftrace *w, const char *key, uint64_t value)
{
	arg_number(w, key, pf_DebugAnnotation_uint_value_tag, value);
}

void nps_pftrace__arg_i64(struct nps_pftrace *w, const char *key, int64_t value)
{
	arg_number(w, key, pf_DebugAnnotation_int_value_tag, value);
}

void nps_pftrace__arg_bool(struct nps_pftrace *w, const char *key, bool value)
{
	arg_number(w, key, pf_DebugAnnotation_bool_value_tag, value);
}

void nps_pftrace__arg_pointer(struct nps_pftrace *w, const char *key, uint64_t value)
{
	arg_number(w, key, pf_DebugAnnotation_pointer_value_tag, value);
}

void nps_pftrace__arg_double(struct nps_pftrace *w, const char *key, double value)
{
	if (!start_arg(w, key))
		return;
	put_field_fixed(w, &w->part, pf_DebugAnnotation_double_value_tag, &value);
	put_body(w, &w->payload, pf_TrackEvent_debug_annotations_tag, &w->part);
}

void nps_pftrace__arg_text(struct nps_pftrace *w, const char *key, const char *value)
{
	if (!start_arg(w, key))
		return;
	put_field_text(w, &w->part, pf_DebugAnnotation_string_value_tag, value, strlen(value));
	put_body(w, &w->payload, pf_TrackEvent_debug_annotations_tag, &w->part);
}

static void put_flow(struct nps_pftrace *w, uint32_t field, uint64_t id)
{
	if (w->kind == pf_TracePacket_track_event_tag)
		put_field_fixed(w, &w->payload, field, &id);
}

void nps_pftrace__flow(struct nps_pftrace *w, uint64_t id)
{
	put_flow(w, pf_TrackEvent_flow_ids_tag, id);
}

void nps_pftrace__flow_end(struct nps_pftrace *w, uint64_t id)
{
	put_flow(w, pf_TrackEvent_terminating_flow_ids_tag, id);
}
