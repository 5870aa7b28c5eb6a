/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/json_writer.h"

#include "base/digits.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define SIZE (256U << 10)
#define PACKED (128U << 10)
#define GZIP 16 /* added to the window bits: gzip's header, whose time is 0 */

int nps_writer__open(struct nps_writer *w, int dirfd, const char *name)
{
	*w = (struct nps_writer){ .fd = openat(dirfd, name,
					       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640),
				  .second = UINT64_MAX };
	if (w->fd < 0)
		return -errno;
	fchmod(w->fd, 0640); /* whatever the umask */
	w->size = SIZE;
	w->buf = malloc(SIZE);
	if (!w->buf) {
		close(w->fd);
		return -ENOMEM;
	}
	return 0;
}

int nps_writer__open_gzip(struct nps_writer *w, int dirfd, const char *name)
{
	int err = nps_writer__open(w, dirfd, name);

	if (err)
		return err;
	w->zip = calloc(1, sizeof(*w->zip));
	if (w->zip &&
	    deflateInit2(w->zip, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + GZIP, 8, Z_DEFAULT_STRATEGY) == Z_OK)
		return 0;
	free(w->zip);
	w->zip = NULL;
	nps_writer__close(w);
	return -ENOMEM;
}

static void writer_write_bytes(struct nps_writer *w, const char *bytes, size_t len)
{
	size_t done = 0;

	while (!w->err && done < len) {
		ssize_t n = write(w->fd, bytes + done, len - done);

		if (n >= 0)
			done += n;
		else if (errno != EINTR)
			w->err = -errno;
	}
}

static void pack(struct nps_writer *w, int how)
{
	char packed[PACKED];

	w->zip->next_in = (unsigned char *)w->buf;
	w->zip->avail_in = w->len;
	do {
		w->zip->next_out = (unsigned char *)packed;
		w->zip->avail_out = sizeof(packed);
		if (deflate(w->zip, how) == Z_STREAM_ERROR && !w->err)
			w->err = -EIO;
		writer_write_bytes(w, packed, sizeof(packed) - w->zip->avail_out);
	} while (!w->err && !w->zip->avail_out);
}

static void writer_flush(struct nps_writer *w)
{
	if (w->zip)
		pack(w, Z_NO_FLUSH);
	else
		writer_write_bytes(w, w->buf, w->len);
	w->flushed += w->len;
	w->len = 0;
}

int nps_writer__close(struct nps_writer *w)
{
	if (w->zip) {
		pack(w, Z_FINISH);
		deflateEnd(w->zip);
		free(w->zip);
		w->zip = NULL;
	} else {
		writer_write_bytes(w, w->buf, w->len);
	}
	if (close(w->fd) && !w->err)
		w->err = -errno;
	free(w->buf);
	w->buf = NULL;
	return w->err;
}

void nps_writer__spill(struct nps_writer *w, const char *bytes, size_t len)
{
	while (len) {
		size_t part = NPS_MIN(len, w->size - w->len);

		memcpy(w->buf + w->len, bytes, part);
		w->len += part;
		bytes += part;
		len -= part;
		if (w->len == w->size)
			writer_flush(w);
	}
}

/* Where at most LEN bytes can be put; they count once w->len includes them. LEN is small. */
static inline char *room(struct nps_writer *w, size_t len)
{
	if (len > w->size - w->len)
		writer_flush(w);
	return w->buf + w->len;
}

void nps_writer__u64(struct nps_writer *w, uint64_t value)
{
	unsigned int n = nps_digits(value);
	char *at = room(w, 20);

	nps_put_digits(at + n, value, n);
	w->len += n;
}

void nps_writer__i64(struct nps_writer *w, int64_t value)
{
	if (value < 0)
		nps_writer__bytes(w, "-", 1);
	nps_writer__u64(w, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* Whether it has six decimals after it was written. */
static bool writer_put_fixed(struct nps_writer *w, double value)
{
	char text[32];
	uint64_t micro;
	char *at;

	if (!isfinite(value)) {
		nps_writer__lit(w, "null");
		return false;
	}
	if (fabs(value) > 9e12) {
		nps_writer__bytes(w, text, snprintf(text, sizeof(text), "%.17g", value));
		return false;
	}
	micro = llround(fabs(value) * 1e6);
	if (value < 0 && micro)
		nps_writer__bytes(w, "-", 1);
	room(w, 28); /* so that all of it is in the buffer */
	nps_writer__u64(w, micro / 1000000);
	at = room(w, 7);
	*at = '.';
	nps_put_digits(at + 7, micro % 1000000, 6);
	w->len += 7;
	return true;
}

void nps_writer__fixed(struct nps_writer *w, double value)
{
	writer_put_fixed(w, value);
}

void nps_writer__number(struct nps_writer *w, double value)
{
	if (!writer_put_fixed(w, value))
		return;
	for (int zeros = 0; zeros < 5 && w->buf[w->len - 1] == '0'; zeros++)
		w->len--;
}

void nps_writer__us(struct nps_writer *w, uint64_t ns)
{
	unsigned int n = nps_digits(ns / 1000);
	char *at = room(w, 24);

	nps_put_digits(at + n, ns / 1000, n);
	at[n] = '.';
	nps_put_digits(at + n + 4, ns % 1000, 3);
	w->len += n + 4;
}

void nps_writer__time(struct nps_writer *w, uint64_t ns)
{
	uint64_t second = ns / 1000000000;
	uint32_t rest = ns % 1000000000;
	char *at;

	if (!second) {
		nps_writer__us(w, ns); /* no leading zeros */
		return;
	}
	if (second != w->second) {
		w->second = second;
		w->second_len = nps_digits(second);
		nps_put_digits(w->second_digits + w->second_len, second, w->second_len);
	}
	at = room(w, 32);
	memcpy(at, w->second_digits, sizeof(w->second_digits));
	at += w->second_len;
	nps_put_digits(at + 6, rest / 1000, 6);
	at[6] = '.';
	nps_put_digits(at + 10, rest % 1000, 3);
	w->len += w->second_len + 10;
}

static void escape(struct nps_writer *w, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	char text[6] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };

	if (c == '"' || c == '\\') {
		text[1] = c;
		nps_writer__bytes(w, text, 2);
	} else {
		nps_writer__bytes(w, text, 6);
	}
}

#define EACH(byte) (0x0101010101010101ULL * (byte))
/* The top bit of each byte of X that is zero; only bytes after one may be marked wrongly. */
#define ZERO(x) (((x)-EACH(1)) & ~(x)&EACH(0x80))

/* True if eight bytes need no care: printable ASCII without quote and backslash. */
static inline bool plain8(const char *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof(x));
	return !((x & EACH(0x80)) | ((x - EACH(0x20)) & ~x & EACH(0x80)) | ZERO(x ^ EACH('"')) |
		 ZERO(x ^ EACH('\\')) | ZERO(x ^ EACH(0x7f)));
}

void nps_writer__json_part(struct nps_writer *w, const char *text, size_t left)
{
	size_t plain = 0;

	while (left > plain) {
		unsigned char c = text[plain];
		size_t n;

		if (left - plain >= 8 && plain8(text + plain)) {
			plain += 8;
			continue;
		}
		if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') { /* nearly always */
			plain++;
			continue;
		}
		n = c < 0x80 ? 0 : nps_utf8_len(text + plain, left - plain);
		if (n) {
			plain += n;
			continue;
		}
		nps_writer__bytes(w, text, plain);
		if (c < 0x80)
			escape(w, c);
		else
			nps_writer__lit(w, "\xef\xbf\xbd");
		text += plain + 1;
		left -= plain + 1;
		plain = 0;
	}
	nps_writer__bytes(w, text, plain);
}

void nps_writer__json(struct nps_writer *w, const char *text)
{
	nps_writer__bytes(w, "\"", 1);
	nps_writer__json_part(w, text, strlen(text));
	nps_writer__bytes(w, "\"", 1);
}
