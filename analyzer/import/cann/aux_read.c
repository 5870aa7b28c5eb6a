/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/aux_read.h"

#include "import/cann/aux_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PROBED_RECORDS 64 /* records that are looked at to find out where records begin */
#define WRAP (1ULL << 32)
#define LATE (3600 * NPS_NS_PER_S) /* what is later than the end of the capture by more is no time */

static void name_file(const struct nps_aux *aux, char *name, size_t size, const char *file)
{
	snprintf(name, size, aux->dir->device == NPS_CANN_HOST ? "%s" : "%s.%u", file, aux->dir->device);
}

bool nps_aux__has(const struct nps_aux *aux, const char *file)
{
	char name[64];

	name_file(aux, name, sizeof(name), file);
	return nps_slices__size(&aux->dir->files, name) > 0;
}

/* CLOCK_MONOTONIC_RAW ns of the host at which times of FILE count from. */
static uint64_t file_start(const struct nps_aux *aux, const char *file)
{
	for (const struct nps_aux_start *s = aux->session ? aux->session->starts : NULL; s && s->file; s++)
		if (s->device == aux->dir->device && !strcmp(s->file, file))
			return s->raw;
	return aux->dir->start_raw;
}

static void file_begin(struct nps_aux *aux, const char *file)
{
	aux->start_raw = file_start(aux, file);
	name_file(aux, aux->file, sizeof(aux->file), file);
	aux->bad = aux->untimed = aux->early = 0;
	aux->epoch = aux->wrapped = 0;
	aux->lasts.len = 0;
	nps_map__clear(&aux->of);
}

static void file_finish(struct nps_aux *aux, struct nps_slice_reader *reader,
			void (*end)(struct nps_aux *aux))
{
	if (!aux->err && end)
		end(aux);
	nps_slice_reader__close(reader);
	nps_model__lost(aux->model, aux->bad, "records of %s that are no records", aux->file);
	nps_model__lost(aux->model, aux->untimed, "records of %s without a time", aux->file);
	nps_model__lost(aux->model, aux->early, "records of %s from before the capture", aux->file);
}

/* --- records --- */

static uint64_t field_load(const uint8_t *p, unsigned int width)
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
static bool decode(const struct nps_aux_format *format, const uint8_t *record, uint64_t *values)
{
	for (const struct nps_aux_field *f = format->fields;
	     f < format->fields + NPS_ARRAY_SIZE(format->fields) && f->width; f++)
		for (unsigned int i = 0; i < f->count; i++) {
			*values = field_load(record + f->offset + i * f->width, f->width);
			if (f->most && *values > f->most)
				return false;
			values++;
		}
	return true;
}

static bool has_time(const struct nps_aux_field *f)
{
	return f->width && (f->most == NPS_AUX_MOST_TIME || f->most == NPS_AUX_MOST_TIME32);
}

/* How wrong the first records at P are: the lower the better. */
static uint64_t implausibility(const struct nps_aux_format *format, const uint8_t *p, size_t len)
{
	uint64_t values[NPS_AUX_VALUES], least = UINT64_MAX, most = 0, insane = 0, n = 0;
	const struct nps_aux_field *f = format->fields, *end = f + NPS_ARRAY_SIZE(format->fields);

	while (f < end && f->width && !has_time(f))
		f++;
	for (; n < PROBED_RECORDS && len >= format->size; n++, p += format->size, len -= format->size) {
		if (!decode(format, p, values)) {
			insane++;
		} else if (f < end && f->width) {
			uint64_t time = field_load(p + f->offset, f->width);

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
static const uint8_t *align(struct nps_aux *aux, const struct nps_aux_format *format,
			    struct nps_slice_reader *reader, const uint8_t *record)
{
	size_t rest = nps_slices__size(&aux->dir->files, aux->file) % format->size;
	size_t at = record - reader->buffer, len = reader->len - at;

	if (!rest || at || format->magic.value != UINT32_MAX || len < rest + format->size ||
	    implausibility(format, record, len) < implausibility(format, record + rest, len - rest))
		return record;
	reader->used = rest;
	aux->bad++;
	return nps_slice_reader__next(reader);
}

void nps_aux__records(struct nps_aux *aux, const struct nps_aux_format *format)
{
	uint64_t values[NPS_AUX_VALUES];
	struct nps_slice_reader reader;
	const uint8_t *record;

	if (aux->err || !nps_aux__has(aux, format->file))
		return;
	file_begin(aux, format->file);
	aux->err = nps_slice_reader__open(&reader, aux->model, &aux->dir->files, aux->file, format->size,
					  format->magic);
	record = aux->err ? NULL : nps_slice_reader__next(&reader);
	if (record)
		record = align(aux, format, &reader, record);
	for (; record && !aux->err; record = nps_slice_reader__next(&reader)) {
		if (decode(format, record, values))
			format->row(aux, values, record);
		else
			aux->bad++;
	}
	file_finish(aux, &reader, format->end);
}

/* --- lines --- */

void nps_aux__lines(struct nps_aux *aux, const char *file,
		    bool (*line)(struct nps_aux *aux, const char *text), void (*end)(struct nps_aux *aux))
{
	struct nps_slice_reader reader;
	char text[NPS_AUX_TEXT];
	const char *from;
	size_t len;

	if (aux->err || !nps_aux__has(aux, file))
		return;
	file_begin(aux, file);
	aux->err = nps_slice_reader__open(&reader, aux->model, &aux->dir->files, aux->file, 1, NPS_NO_MAGIC);
	while (!aux->err && (from = nps_slice_reader__line(&reader, &len))) {
		for (; len && !*from; len--) /* some writers end their lines with a NUL after the newline */
			from++;
		len = NPS_MIN(len, sizeof(text) - 1);
		memcpy(text, from, len);
		while (len && (text[len - 1] == '\r' || text[len - 1] == ' '))
			len--;
		text[len] = 0;
		if (!line(aux, text))
			aux->bad++;
	}
	file_finish(aux, &reader, end);
}

/* --- times --- */

static bool convert(struct nps_aux *aux, enum nps_aux_clock clock, uint64_t value, uint64_t *ns)
{
	const struct nps_cann_dir *dir = aux->dir;

	switch (clock) {
	case NPS_AUX_TICKS:
		return nps_cann_clock__unix(&dir->device_clock, value, ns);
	case NPS_AUX_RAW:
		return nps_cann_clock__unix(&dir->device_raw_clock, value, ns);
	case NPS_AUX_SAMPLED32:
		if (value < aux->wrapped && aux->wrapped - value > WRAP / 2)
			aux->epoch += WRAP;
		aux->wrapped = value;
		value += aux->epoch;
		/* fall through */
	case NPS_AUX_SAMPLED:
		return dir->has_host_start && !__builtin_mul_overflow(value, 1000, &value) &&
		       !__builtin_add_overflow(value, aux->start_raw, &value) &&
		       nps_cann_clock__unix(&dir->host_raw_clock, value, ns);
	case NPS_AUX_UNIX:
		*ns = value;
		return value > 0 && value <= INT64_MAX;
	case NPS_AUX_HOST:
		return nps_cann_clock__unix(&aux->host_clock, value, ns);
	case NPS_AUX_HOST_RAW:
		return nps_cann_clock__unix(&dir->host_raw_clock, value, ns);
	}
	return false;
}

bool nps_aux__time(struct nps_aux *aux, enum nps_aux_clock clock, uint64_t value, uint64_t *ns)
{
	const struct nps_cann_dir *dir = aux->dir;

	if (!convert(aux, clock, value, ns) ||
	    (dir->has_end && *ns > nps_add_sat(dir->end_us * 1000, LATE))) {
		aux->untimed++;
		return false;
	}
	if (dir->has_begin && *ns < dir->begin_us * 1000) {
		aux->early++;
		return false;
	}
	nps_model__cover(aux->model, *ns, *ns);
	return true;
}

/* --- rows --- */

bool nps_aux__add(struct nps_aux *aux, struct nps_table *table, size_t *row)
{
	int err = aux->err ? aux->err : nps_table__add(table, row);

	if (err && !aux->err)
		aux->err = err;
	return !err;
}

struct nps_aux_last *nps_aux__last(struct nps_aux *aux, uint64_t key, bool *first)
{
	uint32_t row = nps_map__get(&aux->of, key);
	struct nps_aux_last *last;

	*first = row == NPS_NONE;
	if (!*first)
		return &NPS_AT(&aux->lasts, struct nps_aux_last, row);
	last = nps_vec__push(&aux->lasts);
	if (!last || nps_map__put(&aux->of, key, aux->lasts.len - 1)) {
		aux->err = -ENOMEM;
		return NULL;
	}
	*last = (struct nps_aux_last){ .key = key };
	return last;
}

uint32_t nps_aux__text(struct nps_aux *aux, const char *text)
{
	uint32_t id = nps_strings__addz(aux->model->strings, text);

	if (id == NPS_NONE)
		aux->err = -ENOMEM;
	return id;
}

uint32_t nps_aux__name(struct nps_aux *aux, uint64_t hash)
{
	uint32_t id = nps_dictionary__name(aux->names, hash);

	if (id == NPS_NONE && !aux->err)
		aux->err = -ENOMEM;
	return id;
}

/* --- text --- */

bool nps_aux__number(const char **p, uint64_t *value)
{
	const char *at = *p + strspn(*p, " \t"), *first = at;

	for (*value = 0; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, *at - '0', value))
			return false;
	*p = at;
	return at > first;
}

bool nps_aux__fixed(const char **p, unsigned int scale, uint64_t *value)
{
	const char *at;

	if (!nps_aux__number(p, value))
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

bool nps_aux__stamp(const char **p, uint64_t *ns)
{
	uint64_t seconds;

	if (!nps_aux__number(p, &seconds) || **p != ':')
		return false;
	++*p;
	return nps_aux__number(p, ns) && *ns < NPS_NS_PER_S &&
	       !__builtin_mul_overflow(seconds, NPS_NS_PER_S, &seconds) &&
	       !__builtin_add_overflow(*ns, seconds, ns);
}

const char *nps_aux__word(const char *p)
{
	p += strcspn(p, " \t");
	p += strspn(p, " \t");
	return *p ? p : NULL;
}
