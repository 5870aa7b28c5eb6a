/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/python_records.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define BUFFER_BYTES (256U << 10)
#define RECORD_MOST                                                                                          \
	(sizeof(struct nps_py_code_record) + 2 * NPS_PY_TEXT_MAX + NPS_PY_LINES_MAX + 8) /* of a code */
#define TEXT_BYTES (4 * NPS_PY_TEXT_MAX + 32) /* that are read of a text: 4 bytes a character at most */
#define PAGE 4096ULL /* the smallest page size */

_Static_assert(RECORD_MOST <= BUFFER_BYTES, "a record");

struct record_buffer {
	uint32_t used;
	char data[BUFFER_BYTES];
};

struct nps_python_records {
	struct nps_stream *stream;
	uint64_t most; /* bytes of the stream */
	atomic_ullong left_out;
	struct record_buffer stacks, codes;
};

struct nps_python_records *nps_python_records__new(struct nps_stream *stream, uint64_t most)
{
	struct nps_python_records *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->stream = stream;
	r->most = most;
	return r;
}

uint64_t nps_python_records__left_out(const struct nps_python_records *r)
{
	return r ? atomic_load(&r->left_out) : 0;
}

void nps_python_records__free(struct nps_python_records *r)
{
	free(r);
}

bool nps_python_records__is(const void *data, size_t size)
{
	const uint8_t *kind = data;

	if (size == sizeof(struct nps_py_code) && *kind == NPS_PY_CODE)
		return true;
	return size >= NPS_PY_STACK_HEAD && *kind == NPS_PY_STACK && size <= sizeof(struct nps_py_stack) &&
	       (size - NPS_PY_STACK_HEAD) % sizeof(struct nps_py_stack_frame) == 0;
}

static void records_flush(struct nps_python_records *r, struct record_buffer *b, uint16_t type)
{
	if (b->used)
		nps_stream__append(r->stream, type, 0, b->data, b->used);
	b->used = 0;
}

void nps_python_records__flush(struct nps_python_records *r)
{
	if (!r)
		return;
	/* Code objects first, so that a stack on disk never refers to one that is not. */
	records_flush(r, &r->codes, NPS_CHUNK_PY_CODES);
	records_flush(r, &r->stacks, NPS_CHUNK_PY_STACKS);
}

/* Room for SIZE bytes in B. */
static char *record_room(struct nps_python_records *r, struct record_buffer *b, uint32_t size)
{
	if (b->used + size > BUFFER_BYTES)
		nps_python_records__flush(r);
	b->used += size;
	return b->data + b->used - size;
}

/* --- texts --- */

/* PyASCIIObject.state: bits of interned, kind, compact, ascii. */
#define STATE_KIND(state) ((state) >> 2 & 7)
#define STATE_COMPACT(state) ((state) >> 5 & 1)
#define STATE_ASCII(state) ((state) >> 6 & 1)

/* Bytes between where an ASCII text and another compact one begin. */
static size_t compact_offset(uint16_t version)
{
	return version < 0x030c ? 24 : 16;
}

/* Bytes of a character; 0: it is no text that is understood. */
static unsigned text_width(uint32_t state)
{
	unsigned kind = STATE_KIND(state);

	if (!STATE_COMPACT(state))
		return 0;
	return kind == 1 || kind == 2 || kind == 4 ? kind : 0;
}

static uint32_t code_point(const uint8_t *at, unsigned width)
{
	uint32_t c = at[0];

	for (unsigned i = 1; i < width; i++)
		c |= (uint32_t)at[i] << 8 * i;
	return c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0xfffd : c;
}

static unsigned utf8_encode(uint32_t c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

size_t nps_python_text__decode(uint16_t version, uint32_t state, uint64_t length, const uint8_t *raw,
			       size_t n, char *out, size_t size, bool *cut)
{
	unsigned width = text_width(state), bytes;
	size_t at = STATE_ASCII(state) ? 0 : compact_offset(version), len = 0;
	uint64_t i;
	char c[4];

	for (i = 0; width && i < length && at + width <= n; i++, at += width) {
		bytes = utf8_encode(code_point(raw + at, width), c);
		if (len + bytes > size)
			break;
		memcpy(out + len, c, bytes);
		len += bytes;
	}
	if (i < length || !width)
		*cut = true;
	return len;
}

/* Reads N bytes of the process, or as many as there are; returns their number. */
static size_t read_process(uint32_t pid, uint64_t address, void *buf, size_t n)
{
	size_t done = 0;

	/* Page by page, because what is read can end just before unmapped memory. */
	while (done < n) {
		uint64_t at = address + done, left = PAGE - at % PAGE;
		struct iovec to = { (char *)buf + done, n - done < left ? n - done : left };
		struct iovec from = { (void *)(uintptr_t)at, to.iov_len };
		ssize_t got = process_vm_readv((pid_t)pid, &to, 1, &from, 1, 0);

		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

static size_t code_add_text(const struct nps_py_code *c, const struct nps_py_text *t, char *out, bool *cut)
{
	size_t header = c->version < 0x030c ? 48 : 40;
	size_t n = t->n < NPS_PY_TEXT ? t->n : NPS_PY_TEXT;
	unsigned width = text_width(t->state);
	uint64_t want = width ? compact_offset(c->version) + t->length * width : 0;
	uint8_t raw[TEXT_BYTES];
	size_t got;

	if (!width || t->length > UINT32_MAX || want <= n || !t->address)
		return nps_python_text__decode(c->version, t->state, t->length, t->raw, n, out,
					       NPS_PY_TEXT_MAX, cut);
	if (want > TEXT_BYTES)
		want = TEXT_BYTES;
	got = read_process(c->pid, t->address + header, raw, want);
	if (got >= n && !memcmp(raw, t->raw, n))
		n = got;
	else
		memcpy(raw, t->raw, n); /* it was freed since */
	return nps_python_text__decode(c->version, t->state, t->length, raw, n, out, NPS_PY_TEXT_MAX, cut);
}

static size_t code_add_lines(const struct nps_py_code *c, char *out, bool *cut)
{
	size_t n = c->n_lines < NPS_PY_LINES ? c->n_lines : NPS_PY_LINES, got;
	uint64_t want = c->lines_length < NPS_PY_LINES_MAX ? c->lines_length : NPS_PY_LINES_MAX;

	if (want > n) {
		got = read_process(c->pid, c->lines_at + 32, out, want);
		if (got > n && !memcmp(out, c->lines, n)) {
			*cut |= got < c->lines_length;
			return got;
		}
	}
	memcpy(out, c->lines, n);
	*cut |= n < c->lines_length;
	return n;
}

static void add_code(struct nps_python_records *r, const struct nps_py_code *c)
{
	char *data = record_room(r, &r->codes, RECORD_MOST);
	struct nps_py_code_record record = { .pid = c->pid,
					     .code = c->code,
					     .fingerprint = c->fingerprint,
					     .first_line = c->first_line,
					     .version = c->version };
	size_t used = sizeof(record);
	bool cut = false;

	record.file_len = (uint16_t)code_add_text(c, &c->file, data + used, &cut);
	used += record.file_len;
	record.name_len = (uint16_t)code_add_text(c, &c->name, data + used, &cut);
	used += record.name_len;
	record.lines_len = (uint32_t)code_add_lines(c, data + used, &cut);
	used += record.lines_len;
	while (used % 8)
		data[used++] = 0;
	record.size = (uint32_t)used;
	record.flags = cut ? NPS_PY_CODE_CUT : 0;
	memcpy(data, &record, sizeof(record));
	r->codes.used -= (uint32_t)(RECORD_MOST - used);
}

/* Is there room for a record of N bytes? Chunks have headers, too, which do not matter. */
static bool has_room(const struct nps_python_records *r, size_t n)
{
	return r->stream->size + r->codes.used + r->stacks.used + n <= r->most;
}

void nps_python_records__add(struct nps_python_records *r, const void *data, size_t size)
{
	const struct nps_py_stack *s = data;

	if (!has_room(r, s->kind == NPS_PY_CODE ? RECORD_MOST : size)) {
		atomic_fetch_add(&r->left_out, 1);
		return;
	}
	if (s->kind == NPS_PY_CODE) {
		add_code(r, data);
		return;
	}
	if (s->n != (size - NPS_PY_STACK_HEAD) / sizeof(struct nps_py_stack_frame))
		return;
	memcpy(record_room(r, &r->stacks, (uint32_t)size), data, size);
}
