/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffered writer of text files, plain or gzip. The first error sticks and is returned by close, so that
 * callers write without checking each piece. Pieces are put straight into a large buffer: this is the hot
 * loop of every text exporter.
 */
#ifndef NPS_JSON_WRITER_H
#define NPS_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct z_stream_s;

struct nps_writer {
	int fd;
	int err; /* first error, negative errno */
	size_t len, size; /* bytes in use and allocated */
	char *buf;
	int items; /* elements of the outer list so far, see nps_writer__item() */
	uint64_t flushed; /* bytes that left the buffer, before compression */
	struct z_stream_s *zip; /* NULL: plain */
	uint64_t second; /* whose digits are kept, as times come in order */
	uint32_t second_len;
	char second_digits[20];
};

/* Creates NAME (0640, must not exist, no symlink) in DIRFD. 0 or negative errno. */
int nps_writer__open(struct nps_writer *w, int dirfd, const char *name);

/* The same, compressed: equal content results in equal bytes. */
int nps_writer__open_gzip(struct nps_writer *w, int dirfd, const char *name);

/* Writes what is left and closes. 0 or the first error; the file is then incomplete. */
int nps_writer__close(struct nps_writer *w);

void nps_writer__spill(struct nps_writer *w, const char *bytes,
		       size_t len); /* what the buffer has no room for */

/* Bytes written so far, before compression. */
static inline uint64_t nps_writer__written(const struct nps_writer *w)
{
	return w->flushed + w->len;
}

static inline void nps_writer__bytes(struct nps_writer *w, const char *bytes, size_t len)
{
	if (len > w->size - w->len) {
		nps_writer__spill(w, bytes, len);
		return;
	}
	memcpy(w->buf + w->len, bytes, len);
	w->len += len;
}

/* A constant: its length is known to the compiler. */
static inline __attribute__((always_inline)) void nps_writer__lit(struct nps_writer *w, const char *text)
{
	nps_writer__bytes(w, text, strlen(text));
}

void nps_writer__u64(struct nps_writer *w, uint64_t value);
void nps_writer__i64(struct nps_writer *w, int64_t value);

/* VALUE with six decimals; null if it is no number. Too large ones are written with an exponent. */
void nps_writer__fixed(struct nps_writer *w, double value);

/*
 * VALUE with up to six decimals, at least one: 0.0, 1800.0, 21.182502.
 */
void nps_writer__number(struct nps_writer *w, double value);

/* The separator before an element of the file's outer list: nothing before the first. */
static inline void nps_writer__item(struct nps_writer *w)
{
	if (w->items)
		nps_writer__bytes(w, ",\n", 2);
	w->items = 1;
}

/* NS as microseconds with three decimals. */
void nps_writer__us(struct nps_writer *w, uint64_t ns);

/* The same for points in time, of which most lie in the same second as the one before. */
void nps_writer__time(struct nps_writer *w, uint64_t ns);

/* TEXT as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. */
void nps_writer__json(struct nps_writer *w, const char *text);

/* LEN bytes as a part of a JSON string, without quotes. */
void nps_writer__json_part(struct nps_writer *w, const char *text, size_t len);

#endif
