/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/util.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

size_t nps_control(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;

	if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
		return 2;
	return *c < 0x20 || *c == 0x7f;
}

/* What is printed of the character at *TEXT, which moves behind it. */
static char next_printable(const char **text)
{
	size_t control = nps_control(*text);
	char c = control ? '?' : **text;

	*text += control ? control : 1;
	return c;
}

void nps_print_text(FILE *file, const char *text)
{
	while (*text)
		putc(next_printable(&text), file);
}

static _Atomic unsigned int failures;

unsigned int nps_msg_failures(void)
{
	return failures;
}

#define LINE_BYTES (3 * PATH_MAX + 16)
#define MOST_KEPT (1 << 20) /* bytes of lines: what follows is printed at once */

static FILE *messages; /* NULL: stderr */
static size_t kept; /* bytes in it */

void nps_msg_into(FILE *file)
{
	messages = file;
	kept = 0;
}

/* In one write, so that lines of threads do not mix. A line for which FILE has no room goes to stderr. */
static void put_line(const char *line, size_t len)
{
	bool keep = messages && kept + len <= MOST_KEPT;

	if (keep)
		kept += len;
	if (!keep || fwrite(line, 1, len, messages) < len)
		fwrite(line, 1, len, stderr);
}

void nps_msg_pass_on(FILE *file)
{
	char line[LINE_BYTES + 1];

	rewind(file);
	while (fgets(line, sizeof(line), file)) {
		size_t len = strlen(line);

		if (line[len - 1] == '\n')
			put_line(line, len);
	}
}

static __attribute__((format(printf, 1, 0))) void print_line(const char *fmt, va_list ap)
{
	char text[3 * PATH_MAX], line[LINE_BYTES] = "npuscope: ";
	const char *rest = text;
	size_t len = strlen(line);

	vsnprintf(text, sizeof(text), fmt, ap);
	while (*rest)
		line[len++] = next_printable(&rest);
	line[len++] = '\n';
	put_line(line, len);
}

void nps_msg(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(fmt, ap);
	va_end(ap);
}

void nps_msg_failure(const char *fmt, ...)
{
	va_list ap;

	failures++;
	va_start(ap, fmt);
	print_line(fmt, ap);
	va_end(ap);
}

void nps_msg_cannot(const char *path, int err)
{
	const char *hint = "check the input";

	switch (-err) {
	case ENOSPC:
	case EDQUOT:
		hint = "make room, or name another directory with -o";
		break;
	case EFBIG:
		hint = "raise the limit of file sizes (ulimit -f), or name another file system with -o";
		break;
	case EMFILE:
	case ENFILE:
		hint = "raise the limit of open files (ulimit -n)";
		break;
	case ENOMEM:
		hint = "free memory, or raise the limit (ulimit -v)";
		break;
	case EACCES:
	case EPERM:
		hint = "run as a user who may read it";
		break;
	}
	nps_msg_failure("cannot analyse %s: %s: %s", path, strerror(-err), hint);
}

uint64_t nps_hash_bytes(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t h = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ULL;
	return nps_hash2(h, len);
}

size_t nps_utf8_len(const char *s, size_t left)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t need;
	uint32_t code, least;

	if (!left)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if ((p[0] & 0xe0) == 0xc0)
		need = 2, code = p[0] & 0x1f, least = 0x80;
	else if ((p[0] & 0xf0) == 0xe0)
		need = 3, code = p[0] & 0x0f, least = 0x800;
	else if ((p[0] & 0xf8) == 0xf0)
		need = 4, code = p[0] & 0x07, least = 0x10000;
	else
		return 0;
	if (need > left)
		return 0;
	for (size_t i = 1; i < need; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return need;
}

size_t nps_utf8_fit(const char *text, size_t max)
{
	size_t len = strnlen(text, max), last = len;

	while (last && (text[last - 1] & 0xc0) == 0x80)
		last--;
	if (last)
		last--; /* the first byte of the last character */
	return nps_utf8_len(text + last, len - last) == len - last ? len : last;
}

size_t nps_utf8_clean(char *dst, const char *src, size_t len)
{
	char *out = dst;

	for (size_t i = 0; i < len;) {
		size_t n = src[i] ? nps_utf8_len(src + i, len - i) : 0;

		if (n) {
			memcpy(out, src + i, n);
			out += n;
			i += n;
		} else {
			memcpy(out, "\xef\xbf\xbd", 3);
			out += 3;
			i++;
		}
	}
	*out = 0;
	return out - dst;
}

uint64_t nps_skip_hole(int fd, size_t unit)
{
	off_t at = lseek(fd, 0, SEEK_CUR), data = lseek(fd, at, SEEK_DATA);

	if (data < 0 && errno == ENXIO)
		data = lseek(fd, 0, SEEK_END); /* a hole up to the end */
	if (at >= 0 && data > at)
		data = at + (data - at) / (off_t)unit * (off_t)unit;
	else
		data = at;
	return at >= 0 && lseek(fd, data, SEEK_SET) == data ? (uint64_t)(data - at) : 0;
}

int nps_by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int nps_by_i64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}
