/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/device/device_stream.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "core/clocks.h"

#define HOLD (64U << 10) /* bytes buffered before a write */
#define MOST_READS 64 /* of one drain: a driver that always has more data must not block the other channels */
#define GAP_PERIODS 4 /* by which times may jump without a loss */
#define GAP_NS 50000000ULL /* added to that: CPUs of devices are busy too */
#define BACK_NS 1000000000ULL /* times of one channel never go back further */
#define MOST_RELATIVE 10000000000000ULL /* us since a start: no capture takes months */
#define RING (4ULL << 20) /* bytes of the driver's ring, for all sampled channels */
#define MOST_BYTES (2 * RING) /* of one drain, during which more may arrive */
#define ENOUGH 64 /* records from which a channel's rate is computed */
#define ENOUGH_NS 1000000000ULL /* time for that, for records without times */
#define MOST_GAP_NS 3600000000000ULL /* longest time without a sample */

int nps_device_stream__start(struct nps_device_stream *s, const struct nps_device_lib *lib,
			     const struct nps_device_opts *o, const struct nps_device_info *d,
			     const char *dir)
{
	int err = nps_prof_file__init(&s->file, dir, d->id, s->ch->file, HOLD);

	if (err)
		return INT_MIN;
	err = nps_channel__start(s->ch, lib, o, d, &s->period_ms);
	if (err) {
		nps_prof_file__finish(&s->file, NULL);
		return err;
	}
	s->state = NPS_STREAM_OPEN;
	s->opened = nps_now(CLOCK_MONOTONIC);
	s->version = -1;
	s->number = -1;
	s->time = 0;
	s->tick_ns = d->counter_khz ? 1000000 / d->counter_khz : 1;
	s->tick_ns = s->tick_ns ? s->tick_ns : 1;
	s->n_rest = 0;
	s->failures = 0;
	s->read_at = s->opened;
	s->bytes_before = s->bytes;
	s->away[0] = s->away[1] = 0;
	s->span = s->spanned = 0;
	s->starts++;
	return 0;
}

static int running_number(const uint8_t *record)
{
	return (record[0] | record[1] << 8) >> 6 & 0xf;
}

/* Did the device, or its output, skip samples before TIME? */
static bool time_jumps(const struct nps_device_stream *s, const struct nps_channel_format *f, uint64_t time)
{
	uint64_t ns_per_unit = f->unit ? f->unit : s->tick_ns;

	return s->time && time > s->time &&
	       (time - s->time) > (GAP_PERIODS * s->period_ms * 1000000ULL + GAP_NS) / ns_per_unit;
}

static uint64_t longest_away(const struct nps_device_stream *s)
{
	return s->away[0] > s->away[1] ? s->away[0] : s->away[1];
}

static void lose_rounds(struct nps_device_stream *s, const struct nps_channel_format *f, uint64_t n,
			uint64_t away)
{
	if (!n)
		return;
	s->rounds += n;
	s->lost += n * RING / f->size;
	s->unread = away;
}

/* Whole rounds of the ring in JUMP, the time between two records, at the rate of previous records. */
static uint64_t rounds(const struct nps_device_stream *s, const struct nps_channel_format *f, uint64_t jump)
{
	uint64_t ns_per_unit = f->unit ? f->unit : s->tick_ns;
	double bytes;

	if (s->spanned < ENOUGH || !s->span)
		return 0;
	/* An idle device leaves a gap, too, but then the reads were in time. */
	if (longest_away(s) / ns_per_unit < jump / 2)
		return 0;
	bytes = (double)jump / (double)s->span * (double)s->spanned * f->size;
	return (uint64_t)(bytes / (double)RING + 0.5);
}

/* For records without times: the ring was overwritten if it was not read for longer than it holds. */
static void check_pause(struct nps_device_stream *s, uint64_t pause, uint64_t now)
{
	const struct nps_channel_format *f = s->version < 0 ? NULL : &s->ch->formats[s->version];
	uint64_t read = now - s->opened - pause, bytes = s->bytes - s->bytes_before, n;

	if (!f || !f->size || f->time != NPS_CHANNEL_NO_TIME || bytes < (uint64_t)ENOUGH * f->size ||
	    read < ENOUGH_NS)
		return;
	n = (uint64_t)((double)pause / (double)read * (double)bytes / (double)RING);
	s->gaps += n > 0;
	lose_rounds(s, f, n, pause);
}

/* Called after each read. */
static void note_read(struct nps_device_stream *s)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC), pause = now - s->read_at;

	check_pause(s, pause, now);
	if (pause > s->away[0])
		s->away[0] = pause;
	s->read_at = now;
}

static void note_time(struct nps_device_stream *s, const struct nps_channel_format *f, uint64_t time)
{
	if (time_jumps(s, f, time)) {
		uint64_t n = rounds(s, f, time - s->time);

		s->gaps++;
		lose_rounds(s, f, n, longest_away(s));
		if (n)
			s->away[0] = s->away[1] = 0;
	} else if (s->time) {
		s->span += time > s->time ? time - s->time : 0;
		s->spanned++;
	}
	if (time > s->time)
		s->time = time;
}

/* Detects what is missing before this record, by its sequence number and time. */
static void record_check_gap(struct nps_device_stream *s, const struct nps_channel_format *f,
			     const uint8_t *record)
{
	s->records++;
	note_time(s, f, nps_channel__time(f, record));
	if (f->stars) {
		int number = running_number(record);

		if (s->number >= 0)
			s->lost += (unsigned int)(number - s->number - 1) & 0xf;
		s->number = number;
	}
}

/* Can TIME follow BEFORE? Samples of one channel are in order, except those of one instant. */
static bool follows(const struct nps_device_stream *s, const struct nps_channel_format *f, uint64_t before,
		    uint64_t time)
{
	uint64_t ns_per_unit = f->unit ? f->unit : s->tick_ns, slack = BACK_NS / ns_per_unit;

	if (f->time == NPS_CHANNEL_NO_TIME)
		return true;
	if (f->unit == 1000 && time > MOST_RELATIVE)
		return false;
	return !before || (time + slack >= before && time <= before + MOST_GAP_NS / ns_per_unit);
}

/* Number of plausible records that follow, up to NPS_STREAM_UNSEEN. */
static unsigned int good(const struct nps_device_stream *s, const struct nps_channel_format *f,
			 const uint8_t *data, size_t len)
{
	uint64_t before = s->time;
	unsigned int n = 0;

	for (; n < NPS_STREAM_UNSEEN && len >= f->size; n++, data += f->size, len -= f->size) {
		uint64_t time = nps_channel__time(f, data);

		if (!nps_channel__sane(f, data) || !follows(s, f, before, time))
			break;
		before = time;
	}
	return n;
}

/*
 * Bytes to skip until records begin. After the ring was overwritten, a read
 * can begin anywhere in a record, and the record before it may consist of two.
 * 0 if all is well, or if no offset is better: then a record is only unusual.
 */
static size_t misplaced(const struct nps_device_stream *s, const struct nps_channel_format *f,
			const uint8_t *data, size_t len)
{
	size_t peek = len < 2UL * f->size ? f->size : 2UL * f->size;

	if (good(s, f, data, peek) == peek / f->size)
		return 0;
	for (size_t skip = 1; skip < 2UL * f->size && skip < len; skip++)
		if (good(s, f, data + skip, len - skip) == NPS_STREAM_UNSEEN)
			return skip;
	return 0;
}

/*
 * Processes whole records of DATA. Returns the number of bytes used; implausible ones are kept until more
 * arrive, unless these are the LAST. *err: -errno of a write.
 */
static size_t read_records(struct nps_device_stream *s, struct nps_session_writer *session,
			   const uint8_t *data, size_t len, bool last, int *err)
{
	const struct nps_channel_format *f = &s->ch->formats[s->version];
	size_t at = 0, from = 0;

	while (!*err && len - at >= f->size) {
		size_t skip;

		if (!last && len - at < (size_t)NPS_STREAM_HELD * f->size &&
		    good(s, f, data + at, len - at) < 2)
			break;
		skip = misplaced(s, f, data + at, len - at);
		if (skip) {
			if (at > from)
				*err = nps_prof_file__write(&s->file, session, data + from, at - from);
			s->torn += skip;
			s->gaps++;
			s->number = -1;
			at += skip;
			from = at;
			continue;
		}
		record_check_gap(s, f, data + at);
		at += f->size;
	}
	if (!*err && at > from)
		*err = nps_prof_file__write(&s->file, session, data + from, at - from);
	return at;
}

/* Processes LEN bytes of BUF, which begins with kept ones, and keeps the rest. 0 or -errno of a write. */
static int stream_decode(struct nps_device_stream *s, struct nps_device_info *d,
			 struct nps_session_writer *session, const uint8_t *buf, size_t len, bool last)
{
	size_t used = 0;
	int err = 0;

	s->n_rest = 0;
	if (!s->ch->formats[0].size) /* text: a line may be split between slices */
		return len ? nps_prof_file__write(&s->file, session, buf, len) : 0;
	if (s->version < 0)
		s->version = nps_channel__version(s->ch, d, buf, len);
	if (s->version < 0 && (last || len > sizeof(s->rest)))
		s->version = 0; /* unknown: the more common one */
	if (s->version >= 0)
		used = read_records(s, session, buf, len, last, &err);
	if (err)
		return err;
	if (len - used > sizeof(s->rest)) { /* impossible: no more is kept than fits */
		s->torn += len - used - sizeof(s->rest);
		used = len - sizeof(s->rest);
	}
	s->n_rest = (uint32_t)(len - used);
	memcpy(s->rest, buf + used, s->n_rest);
	if (s->ch->relative && s->version == 1)
		d->second_version = true;
	return 0;
}

/* Charges what was read, and CPU time since *BEGIN, to the account. May more be read? */
static bool account(struct nps_device_stream *s, uint32_t bytes, uint64_t *begin)
{
	uint64_t now = nps_now(CLOCK_THREAD_CPUTIME_ID);

	if (!s->account)
		return true;
	nps_log_account__add_cpu(s->account, now - *begin);
	*begin = now;
	return (!bytes || !nps_log_account__add_bytes(s->account, bytes)) &&
	       nps_log_account__may_read(s->account);
}

int nps_device_stream__drain(struct nps_device_stream *s, const struct nps_device_lib *lib,
			     struct nps_device_info *d, struct nps_session_writer *session, char *buf,
			     uint32_t size, int *disk)
{
	uint64_t all = 0, begin = nps_now(CLOCK_THREAD_CPUTIME_ID);
	int n = 0, err;

	if (!account(s, 0, &begin))
		return 0;
	s->away[1] = s->away[0];
	s->away[0] = 0;
	for (int i = 0; i < MOST_READS; i++) {
		uint32_t kept = s->n_rest;

		n = nps_device_lib__read(lib, d->id, s->ch->id, buf + kept, size - kept);
		if (n >= 0)
			note_read(s);
		if (n <= 0)
			break;
		s->bytes += (uint32_t)n;
		all += (uint32_t)n;
		if (all > MOST_BYTES) /* more than its ring holds: the answers are invalid */
			return -EPROTO;
		memcpy(buf, s->rest, kept);
		err = stream_decode(s, d, session, (const uint8_t *)buf, kept + (size_t)n, false);
		if (err && !*disk)
			*disk = err;
		if (!account(s, (uint32_t)n, &begin))
			break;
	}
	return n < 0 ? n : 0;
}

static void finish(struct nps_device_stream *s, struct nps_device_info *d, struct nps_session_writer *session,
		   int *disk)
{
	uint8_t rest[sizeof(s->rest)];
	int err;

	memcpy(rest, s->rest, s->n_rest);
	err = stream_decode(s, d, session, rest, s->n_rest, true);
	if (err && !*disk)
		*disk = err;
	s->torn += s->n_rest; /* an incomplete record */
	s->n_rest = 0;
	err = nps_prof_file__finish(&s->file, session);
	if (err && !*disk)
		*disk = err;
	s->state = NPS_STREAM_WAITS;
}

int nps_device_stream__stop(struct nps_device_stream *s, const struct nps_device_lib *lib,
			    struct nps_device_info *d, struct nps_session_writer *session, char *buf,
			    uint32_t size, int *disk)
{
	int err;

	if (s->state != NPS_STREAM_OPEN)
		return 0;
	/* Few channels support it; for the others it has no effect. */
	nps_device_lib__flush(lib, d->id, s->ch->id);
	nps_device_stream__drain(s, lib, d, session, buf, size, disk);
	err = nps_device_lib__stop(lib, d->id, s->ch->id);
	nps_device_stream__drain(s, lib, d, session, buf, size, disk);
	finish(s, d, session, disk);
	return err;
}

void nps_device_stream__abandon(struct nps_device_stream *s, struct nps_device_info *d,
				struct nps_session_writer *session, int *disk)
{
	if (s->state == NPS_STREAM_OPEN)
		finish(s, d, session, disk);
}
