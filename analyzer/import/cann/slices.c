/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/slices.h"

#include "base/input_file.h"
#include "base/memory.h"
#include "base/progress.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER (1UL << 20)
#define SLICE ".slice_"
#define MOST_BYTES (1ULL << 40) /* of a slice: a larger note is none */
#define PROBE 64 /* bytes at both ends that distinguish slices: they hold times */

/* Splits `<base>.slice_<number>`. */
static bool parse_name(const char *name, uint32_t *base, uint32_t *number)
{
	const char *mark = NULL, *p = name;
	uint64_t value = 0;

	while ((p = strstr(p, SLICE)))
		mark = p++;
	if (!mark || mark == name || mark - name > 200)
		return false;
	p = mark + strlen(SLICE);
	if (!*p)
		return false;
	for (; *p; p++) {
		if (*p < '0' || *p > '9' || value > UINT32_MAX / 10)
			return false;
		value = value * 10 + (*p - '0');
	}
	*base = mark - name;
	*number = value;
	return value < UINT32_MAX;
}

static int slice_compare(const void *a, const void *b)
{
	const struct nps_slice *x = a, *y = b;
	int order = strncmp(x->name, y->name, NPS_MIN(x->base, y->base));

	if (order)
		return order;
	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return strcmp(x->name, y->name);
}

int nps_slices__open(struct nps_slices *slices, int dirfd)
{
	struct dirent *entry = NULL;
	size_t room = 0;
	DIR *dir;

	*slices = (struct nps_slices){ .dirfd = dirfd };
	if (dirfd < 0)
		return 0;
	dir = nps_input_dir__list(dirfd);
	while (dir && (entry = nps_input_dir__next(dir))) {
		uint32_t base, number;

		if (!parse_name(entry->d_name, &base, &number))
			continue;
		if (slices->n == room) {
			struct nps_slice *all = realloc(slices->all, (room + 256) * sizeof(*all));

			if (!all)
				break;
			slices->all = all;
			room += 256;
		}
		slices->all[slices->n] = (struct nps_slice){ strdup(entry->d_name), base, number };
		if (!slices->all[slices->n].name)
			break;
		slices->n++;
	}
	if (dir)
		closedir(dir);
	if (entry) {
		nps_slices__close(slices);
		return -ENOMEM;
	}
	if (slices->n)
		qsort(slices->all, slices->n, sizeof(*slices->all), slice_compare);
	return 0;
}

void nps_slices__close(struct nps_slices *slices)
{
	for (size_t i = 0; i < slices->n; i++)
		free(slices->all[i].name);
	free(slices->all);
	*slices = (struct nps_slices){ .dirfd = -1 };
}

/* The slices of BASE: from *AT up to, not including, the returned number. */
static size_t slices_find(const struct nps_slices *slices, const char *base, size_t *at)
{
	size_t len = strlen(base), i = 0;

	while (i < slices->n && (slices->all[i].base != len || strncmp(slices->all[i].name, base, len)))
		i++;
	*at = i;
	while (i < slices->n && slices->all[i].base == len && !strncmp(slices->all[i].name, base, len))
		i++;
	return i;
}

static int slice_file_open(const struct nps_slices *slices, size_t i, struct stat *st)
{
	return nps_input_file__open(slices->dirfd, slices->all[i].name, st);
}

uint64_t nps_slices__bytes(const struct nps_slices *slices, size_t i)
{
	struct stat st;
	int fd = slice_file_open(slices, i, &st);

	if (fd < 0)
		return 0;
	close(fd);
	return st.st_size;
}

uint64_t nps_slices__size(const struct nps_slices *slices, const char *base)
{
	uint64_t total = 0;
	size_t at, end = slices_find(slices, base, &at);

	for (; at < end; at++)
		total += nps_slices__bytes(slices, at);
	return total;
}

/* The bytes that slice I had when its writer was done with it, by the note beside it; 0 if there is none. */
static uint64_t noted_size(const struct nps_slices *slices, size_t i)
{
	static const char key[] = "filesize:";
	char name[288], text[64] = "";
	uint64_t bytes;
	ssize_t n;
	int fd;

	if (snprintf(name, sizeof(name), "%s.done", slices->all[i].name) >= (int)sizeof(name))
		return 0;
	fd = nps_input_file__open(slices->dirfd, name, NULL);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		nps_input__unreadable_fd(fd, -errno);
	close(fd);
	if (n <= 0 || strncmp(text, key, sizeof(key) - 1) != 0)
		return 0;
	bytes = strtoull(text + sizeof(key) - 1, NULL, 10);
	return bytes < MOST_BYTES ? bytes : 0;
}

/* What distinguishes a slice from another one. */
struct reader_probe {
	off_t size;
	uint8_t first[PROBE], last[PROBE];
};

static void probe(int fd, off_t size, struct reader_probe *probe)
{
	memset(probe, 0, sizeof(*probe));
	probe->size = size;
	/* A slice that cannot be read is noticed when its records are. */
	if (pread(fd, probe->first, PROBE, 0) < 0 ||
	    pread(fd, probe->last, PROBE, size > PROBE ? size - PROBE : 0) < 0)
		memset(probe, 0, sizeof(*probe));
}

static ssize_t read_at(int fd, uint8_t *to, size_t len, off_t at)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, to + done, len - done, at + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -1 : (ssize_t)done;
		done += n;
	}
	return done;
}

/* Ends may be padding: slices that look the same are compared byte by byte. */
static bool same(const struct nps_slices *slices, size_t a, size_t b)
{
	uint8_t x[4096], y[4096];
	struct stat st;
	int fda = slice_file_open(slices, a, &st), fdb = slice_file_open(slices, b, &st);
	bool equal = fda >= 0 && fdb >= 0;
	ssize_t n = 1;

	for (off_t at = 0; equal && n > 0; at += n) {
		n = read_at(fda, x, sizeof(x), at);
		equal = n >= 0 && read_at(fdb, y, sizeof(y), at) == n && !memcmp(x, y, n);
	}
	if (fda >= 0)
		close(fda);
	if (fdb >= 0)
		close(fdb);
	return equal;
}

/*
 * The slices that remain are [at, end) of a private list: those that cannot be opened and those that repeat
 * the one before are left out. Returns the bytes of all.
 */
static int reader_choose(struct nps_slice_reader *reader, uint64_t *total)
{
	struct nps_slices *own = calloc(1, sizeof(*own));
	uint64_t missing = 0, doubled = 0, closed = 0, noted = 0, found = 0;
	struct reader_probe last = { 0 }, this;
	size_t at = reader->at, before = at;

	if (!own)
		return nps_memory__fail(-ENOMEM);
	own->dirfd = reader->slices->dirfd;
	own->all = calloc(reader->end - at + 1, sizeof(*own->all));
	if (!own->all) {
		free(own);
		return nps_memory__fail(-ENOMEM);
	}
	*total = 0;
	for (; at < reader->end; at++) {
		struct nps_slice *slice = &reader->slices->all[at];
		struct stat st;
		uint64_t size;
		int fd;

		if (own->n && slice->number > own->all[own->n - 1].number + 1)
			missing += slice->number - own->all[own->n - 1].number - 1;
		else if (!own->n)
			missing += slice->number;
		fd = slice_file_open(reader->slices, at, &st);
		if (fd < 0) {
			closed++;
			continue;
		}
		probe(fd, st.st_size, &this);
		close(fd);
		if (own->n && this.size > 0 && !memcmp(&this, &last, sizeof(this)) &&
		    same(reader->slices, before, at)) {
			doubled++;
			own->all[own->n - 1].number = slice->number;
			continue;
		}
		last = this;
		before = at;
		size = noted_size(reader->slices, at);
		noted += size;
		found += size ? (uint64_t)st.st_size : 0;
		*total += st.st_size;
		own->all[own->n++] = *slice;
	}
	nps_model__lost(reader->model, missing, "slices of %s that are missing", reader->base);
	nps_model__lost(reader->model, doubled, "slices of %s that repeat another one", reader->base);
	nps_model__lost(reader->model, closed, "slices of %s that cannot be read", reader->base);
	nps_model__lost(reader->model, noted > found ? noted - found : 0,
			"bytes of %s that its slices had when they were written", reader->base);
	reader->slices = own;
	reader->at = 0;
	reader->end = own->n;
	return 0;
}

/* Makes LEN bytes available at the front of what is left, if the stream has them. */
static bool reader_fill(struct nps_slice_reader *reader, size_t len)
{
	struct stat st;
	uint64_t hole;

	if (reader->len - reader->used >= len)
		return true;
	memmove(reader->buffer, reader->buffer + reader->used, reader->len - reader->used);
	reader->len -= reader->used;
	reader->used = 0;
	while (reader->len < BUFFER) {
		ssize_t n;

		if (reader->fd < 0) {
			if (reader->at == reader->end)
				break;
			reader->fd = slice_file_open(reader->slices, reader->at++, &st);
			if (reader->fd < 0) {
				nps_model__lost(reader->model, 1, "slices of %s that cannot be read",
						reader->base);
				continue;
			}
		}
		hole = nps_skip_hole(reader->fd, reader->record);
		reader->bad += hole;
		reader->consumed += hole;
		n = read(reader->fd, reader->buffer + reader->len, BUFFER - reader->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			if (n < 0) {
				nps_input__unreadable_fd(reader->fd, -errno);
				nps_model__lost(reader->model, 1, "slices of %s that cannot be read",
						reader->base);
			}
			close(reader->fd);
			reader->fd = -1;
			continue;
		}
		reader->len += n;
		nps_progress__add(reader->model->progress, n);
	}
	return reader->len - reader->used >= len;
}

static bool is_record(const struct nps_slice_reader *reader, size_t at)
{
	if (reader->magic.value == UINT32_MAX)
		return true;
	at += reader->used + reader->magic.offset;
	return at + 2 <= reader->len && nps_u16(reader->buffer + at) == reader->magic.value;
}

/*
 * A stream whose first slices were deleted may begin within a record. Where records can be recognised, the
 * first one is searched; else the excess bytes are the first ones if slices are missing, and the last ones
 * if not.
 */
static void skip_partial(struct nps_slice_reader *reader, uint64_t total, bool aged)
{
	size_t rest = total % reader->record;

	if (!rest || !reader_fill(reader, 1))
		return;
	if (reader->magic.value != UINT32_MAX)
		aged = !is_record(reader, 0) && is_record(reader, rest);
	if (aged && reader_fill(reader, rest)) {
		reader->used += rest;
		reader->consumed += rest;
		nps_model__lost(reader->model, 1, "records of %s that are no records", reader->base);
	}
}

int nps_slice_reader__open(struct nps_slice_reader *reader, struct nps_model *model,
			   const struct nps_slices *slices, const char *base, size_t record,
			   struct nps_magic magic)
{
	uint64_t total = 0;
	bool aged;
	int err;

	*reader = (struct nps_slice_reader){
		.slices = slices, .model = model, .base = base, .fd = -1, .record = record, .magic = magic
	};
	reader->end = slices_find(slices, base, &reader->at);
	reader->finished = reader->at == reader->end;
	if (reader->finished) {
		reader->slices = NULL;
		return 0;
	}
	aged = slices->all[reader->at].number > 0;
	err = reader_choose(reader, &total);
	if (err) {
		reader->slices = NULL;
		return err;
	}
	reader->buffer = malloc(BUFFER);
	if (!reader->buffer)
		return nps_memory__fail(-ENOMEM);
	skip_partial(reader, total, aged);
	return 0;
}

/*
 * The next offset, up to a record's length, at which one record, or better two in a row, may begin; the
 * record's length if none.
 */
static size_t next_begin(struct nps_slice_reader *reader)
{
	size_t skip = 1;

	reader_fill(reader, 3 * reader->record);
	while (skip < reader->record &&
	       !(is_record(reader, skip) && (is_record(reader, skip + reader->record) ||
					     reader->len - reader->used < skip + 2 * reader->record)))
		skip++;
	return skip;
}

static void skip_bad(struct nps_slice_reader *reader, size_t bytes)
{
	bytes = NPS_MIN(bytes, reader->len - reader->used);
	reader->bad += bytes;
	reader->used += bytes;
	reader->consumed += bytes;
}

/* A record that was cut looks like one, but another one begins before its end. */
static bool is_cut(struct nps_slice_reader *reader, size_t *length)
{
	if (reader->magic.value == UINT32_MAX || is_record(reader, reader->record) ||
	    !reader_fill(reader, 2 * reader->record) || is_record(reader, reader->record))
		return false;
	*length = next_begin(reader);
	return *length < reader->record;
}

const uint8_t *nps_slice_reader__next(struct nps_slice_reader *reader)
{
	const uint8_t *record;
	size_t cut;

	if (reader->finished)
		return NULL;
	while (reader_fill(reader, reader->record)) {
		if (!is_record(reader, 0)) {
			skip_bad(reader, next_begin(reader));
		} else if (is_cut(reader, &cut)) {
			skip_bad(reader, cut);
		} else {
			record = reader->buffer + reader->used;
			reader->used += reader->record;
			reader->offset = reader->consumed;
			reader->consumed += reader->record;
			return record;
		}
	}
	reader->bad += reader->len - reader->used;
	reader->used = reader->len;
	reader->finished = true;
	return NULL;
}

const char *nps_slice_reader__line(struct nps_slice_reader *reader, size_t *len)
{
	const char *line, *end;

	if (reader->finished)
		return NULL;
	end = memchr(reader->buffer + reader->used, '\n', reader->len - reader->used);
	if (!end) {
		reader_fill(reader, BUFFER);
		end = memchr(reader->buffer + reader->used, '\n', reader->len - reader->used);
	}
	line = (const char *)reader->buffer + reader->used;
	if (end) {
		*len = end - line;
		reader->used += *len + 1;
		return line;
	}
	*len = reader->len - reader->used;
	reader->used = reader->len;
	reader->finished = !*len;
	reader->unended |= *len > 0;
	return *len ? line : NULL;
}

void nps_slice_reader__close(struct nps_slice_reader *reader)
{
	if (reader->bad)
		nps_model__lost(reader->model, (reader->bad + reader->record - 1) / reader->record,
				"records of %s that are no records", reader->base);
	if (reader->fd >= 0)
		close(reader->fd);
	free(reader->buffer);
	if (reader->slices) { /* the list is this reader's own, the names are not */
		free(reader->slices->all);
		free((void *)reader->slices);
	}
	*reader = (struct nps_slice_reader){ .fd = -1, .finished = true };
}
