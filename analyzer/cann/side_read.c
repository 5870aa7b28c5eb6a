/* SPDX-License-Identifier: BSD-2-Clause */
#include "cann/side_read.h"

#include "cann/side.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOOK 64 /* records that are looked at to find out where records begin */
#define WRAP (1ULL << 32)
#define LATE (3600 * NPS_NS_PER_S) /* what is later than the end of the capture by more is no time */

static void name_file(const struct nps_side *side, char *name, size_t size, const char *file)
{
	snprintf(name, size, side->dir->device == NPS_CANN_HOST ? "%s" : "%s.%u", file, side->dir->device);
}

bool nps_side__has(const struct nps_side *side, const char *file)
{
	char name[64];

	name_file(side, name, sizeof(name), file);
	return nps_slices__size(&side->dir->files, name) > 0;
}

/* CLOCK_MONOTONIC_RAW ns of the host at which times of FILE count from. */
static uint64_t start_of(const struct nps_side *side, const char *file)
{
	for (const struct nps_side_start *s = side->session ? side->session->starts : NULL; s && s->file; s++)
		if (s->device == side->dir->device && !strcmp(s->file, file))
			return s->raw;
	return side->dir->start_raw;
}

static void start(struct nps_side *side, const char *file)
{
	side->start_raw = start_of(side, file);
	name_file(side, side->file, sizeof(side->file), file);
	side->bad = side->untimed = side->early = 0;
	side->epoch = side->wrapped = 0;
	side->lasts.len = 0;
	nps_map__clear(&side->of);
}

static void finish(struct nps_side *side, struct nps_reader *reader, void (*end)(struct nps_side *side))
{
	if (!side->err && end)
		end(side);
	nps_reader__close(reader);
	nps_model__lost(side->model, side->bad, "records of %s that are no records", side->file);
	nps_model__lost(side->model, side->untimed, "records of %s without a time", side->file);
	nps_model__lost(side->model, side->early, "records of %s from before the capture", side->file);
}

/* --- records --- */

static uint64_t load(const uint8_t *p, unsigned int width)
{
	switch (width) {
	case 1:
		return *p;
	case 2:
		return nps_u16(p);
	case 4:
		return nps_u32(p);
	default:
		return nps_u64(p);
	}
}

/* False if a value cannot be. */
static bool decode(const struct nps_side_format *format, const uint8_t *record, uint64_t *values)
{
	for (const struct nps_side_field *f = format->fields;
	     f < format->fields + NPS_ARRAY_SIZE(format->fields) && f->width; f++)
		for (unsigned int i = 0; i < f->count; i++) {
			*values = load(record + f->offset + i * f->width, f->width);
			if (f->most && *values > f->most)
				return false;
			values++;
		}
	return true;
}

static bool has_time(const struct nps_side_field *f)
{
	return f->width && (f->most == NPS_SIDE_MOST_TIME || f->most == NPS_SIDE_MOST_TIME32);
}

/* How wrong the first records at P are: the lower the better. */
static uint64_t doubt(const struct nps_side_format *format, const uint8_t *p, size_t len)
{
	uint64_t values[NPS_SIDE_VALUES], least = UINT64_MAX, most = 0, insane = 0, n = 0;
	const struct nps_side_field *f = format->fields, *end = f + NPS_ARRAY_SIZE(format->fields);

	while (f < end && f->width && !has_time(f))
		f++;
	for (; n < LOOK && len >= format->size; n++, p += format->size, len -= format->size) {
		if (!decode(format, p, values)) {
			insane++;
		} else if (f < end && f->width) {
			uint64_t time = load(p + f->offset, f->width);

			least = NPS_MIN(least, time);
			most = NPS_MAX(most, time);
		}
	}
	if (!n)
		return UINT64_MAX;
	/* Times lie close together, but differ. */
	insane = insane * 4096 / n * 64;
	return insane + (most > least			? 64 - __builtin_clzll(most - least)
			 : n > 2 && f < end && f->width ? 64
							: 0);
}

/*
 * For records without a magic number whose stream is no multiple of their size. The excess is at the
 * beginning if the beginning was deleted, which may leave no gap in the slices' numbers, or at the end if
 * the writer was stopped. RECORD was just returned.
 */
static const uint8_t *align(struct nps_side *side, const struct nps_side_format *format,
			    struct nps_reader *reader, const uint8_t *record)
{
	size_t rest = nps_slices__size(&side->dir->files, side->file) % format->size;
	size_t at = record - reader->buffer, len = reader->len - at;

	if (!rest || at || format->magic.value != UINT32_MAX || len < rest + format->size ||
	    doubt(format, record, len) < doubt(format, record + rest, len - rest))
		return record;
	reader->used = rest;
	side->bad++;
	return nps_reader__next(reader);
}

void nps_side__records(struct nps_side *side, const struct nps_side_format *format)
{
	uint64_t values[NPS_SIDE_VALUES];
	struct nps_reader reader;
	const uint8_t *record;

	if (side->err || !nps_side__has(side, format->file))
		return;
	start(side, format->file);
	side->err = nps_reader__open(&reader, side->model, &side->dir->files, side->file, format->size,
				     format->magic);
	record = side->err ? NULL : nps_reader__next(&reader);
	if (record)
		record = align(side, format, &reader, record);
	for (; record && !side->err; record = nps_reader__next(&reader)) {
		if (decode(format, record, values))
			format->row(side, values, record);
		else
			side->bad++;
	}
	finish(side, &reader, format->end);
}

/* --- lines --- */

void nps_side__lines(struct nps_side *side, const char *file,
		     bool (*line)(struct nps_side *side, const char *text),
		     void (*end)(struct nps_side *side))
{
	struct nps_reader reader;
	char text[NPS_SIDE_TEXT];
	const char *from;
	size_t len;

	if (side->err || !nps_side__has(side, file))
		return;
	start(side, file);
	side->err = nps_reader__open(&reader, side->model, &side->dir->files, side->file, 1, NPS_NO_MAGIC);
	while (!side->err && (from = nps_reader__line(&reader, &len))) {
		for (; len && !*from; len--) /* some writers end their lines with a NUL after the newline */
			from++;
		len = NPS_MIN(len, sizeof(text) - 1);
		memcpy(text, from, len);
		while (len && (text[len - 1] == '\r' || text[len - 1] == ' '))
			len--;
		text[len] = 0;
		if (!line(side, text))
			side->bad++;
	}
	finish(side, &reader, end);
}

/* --- times --- */

static bool convert(struct nps_side *side, enum nps_side_clock clock, uint64_t value, uint64_t *ns)
{
	const struct nps_cann_dir *dir = side->dir;

	switch (clock) {
	case NPS_SIDE_TICKS:
		return nps_cann_clock__unix(&dir->device_clock, value, ns);
	case NPS_SIDE_RAW:
		return nps_cann_clock__unix(&dir->device_raw_clock, value, ns);
	case NPS_SIDE_SAMPLED32:
		if (value < side->wrapped && side->wrapped - value > WRAP / 2)
			side->epoch += WRAP;
		side->wrapped = value;
		value += side->epoch;
		/* fall through */
	case NPS_SIDE_SAMPLED:
		return dir->has_host_start && !__builtin_mul_overflow(value, 1000, &value) &&
		       !__builtin_add_overflow(value, side->start_raw, &value) &&
		       nps_cann_clock__unix(&dir->host_raw_clock, value, ns);
	case NPS_SIDE_UNIX:
		*ns = value;
		return value > 0 && value <= INT64_MAX;
	case NPS_SIDE_HOST:
		return nps_cann_clock__unix(&side->host_clock, value, ns);
	case NPS_SIDE_HOST_RAW:
		return nps_cann_clock__unix(&dir->host_raw_clock, value, ns);
	}
	return false;
}

bool nps_side__time(struct nps_side *side, enum nps_side_clock clock, uint64_t value, uint64_t *ns)
{
	const struct nps_cann_dir *dir = side->dir;

	if (!convert(side, clock, value, ns) ||
	    (dir->has_end && *ns > nps_add_sat(dir->end_us * 1000, LATE))) {
		side->untimed++;
		return false;
	}
	if (dir->has_begin && *ns < dir->begin_us * 1000) {
		side->early++;
		return false;
	}
	nps_model__cover(side->model, *ns, *ns);
	return true;
}

/* --- rows --- */

bool nps_side__add(struct nps_side *side, struct nps_table *table, size_t *row)
{
	int err = side->err ? side->err : nps_table__add(table, row);

	if (err && !side->err)
		side->err = err;
	return !err;
}

struct nps_side_last *nps_side__last(struct nps_side *side, uint64_t key, bool *first)
{
	uint32_t row = nps_map__get(&side->of, key);
	struct nps_side_last *last;

	*first = row == NPS_NONE;
	if (!*first)
		return &NPS_AT(&side->lasts, struct nps_side_last, row);
	last = nps_vec__push(&side->lasts);
	if (!last || nps_map__put(&side->of, key, side->lasts.len - 1)) {
		side->err = -ENOMEM;
		return NULL;
	}
	*last = (struct nps_side_last){ .key = key };
	return last;
}

uint32_t nps_side__text(struct nps_side *side, const char *text)
{
	uint32_t id = nps_strings__addz(side->model->strings, text);

	if (id == NPS_NONE)
		side->err = -ENOMEM;
	return id;
}

uint32_t nps_side__name(struct nps_side *side, uint64_t hash)
{
	uint32_t id = nps_dictionary__name(side->names, hash);

	if (id == NPS_NONE && !side->err)
		side->err = -ENOMEM;
	return id;
}

/* --- text --- */

bool nps_side__number(const char **p, uint64_t *value)
{
	const char *at = *p + strspn(*p, " \t"), *first = at;

	for (*value = 0; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, *at - '0', value))
			return false;
	*p = at;
	return at > first;
}

bool nps_side__fixed(const char **p, unsigned int scale, uint64_t *value)
{
	const char *at;

	if (!nps_side__number(p, value))
		return false;
	at = *p + (**p == '.');
	for (; scale; scale--) {
		bool digit = at > *p && *at >= '0' && *at <= '9';

		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, digit ? *at - '0' : 0, value))
			return false;
		at += digit;
	}
	*p = at > *p ? at + strspn(at, "0123456789") : at;
	return true;
}

bool nps_side__stamp(const char **p, uint64_t *ns)
{
	uint64_t seconds;

	if (!nps_side__number(p, &seconds) || **p != ':')
		return false;
	++*p;
	return nps_side__number(p, ns) && *ns < NPS_NS_PER_S &&
	       !__builtin_mul_overflow(seconds, NPS_NS_PER_S, &seconds) &&
	       !__builtin_add_overflow(*ns, seconds, ns);
}

const char *nps_side__word(const char *p)
{
	p += strcspn(p, " \t");
	p += strspn(p, " \t");
	return *p ? p : NULL;
}
