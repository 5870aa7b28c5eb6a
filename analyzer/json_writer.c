/* SPDX-License-Identifier: BSD-2-Clause */
#include "json_writer.h"

#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE (256U << 10)

int nps_writer__open(struct nps_writer *w, int dirfd, const char *name)
{
	*w = (struct nps_writer){ .fd = openat(dirfd, name,
					       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640) };
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

static void flush(struct nps_writer *w)
{
	size_t done = 0;

	while (!w->err && done < w->len) {
		ssize_t n = write(w->fd, w->buf + done, w->len - done);

		if (n >= 0)
			done += n;
		else if (errno != EINTR)
			w->err = -errno;
	}
	w->len = 0;
}

int nps_writer__close(struct nps_writer *w)
{
	flush(w);
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
			flush(w);
	}
}

void nps_writer__u64(struct nps_writer *w, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = '0' + value % 10;
		value /= 10;
	} while (value);
	nps_writer__bytes(w, digits + at, sizeof(digits) - at);
}

void nps_writer__item(struct nps_writer *w)
{
	if (w->items)
		nps_writer__bytes(w, ",\n", 2);
	w->items = 1;
}

void nps_writer__us(struct nps_writer *w, uint64_t ns)
{
	char part[4] = { '.', '0' + ns / 100 % 10, '0' + ns / 10 % 10, '0' + ns % 10 };

	nps_writer__u64(w, ns / 1000);
	nps_writer__bytes(w, part, sizeof(part));
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

void nps_writer__json(struct nps_writer *w, const char *text)
{
	size_t left = strlen(text), plain = 0;

	nps_writer__bytes(w, "\"", 1);
	while (left > plain) {
		unsigned char c = text[plain];
		size_t n;

		if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') { /* nearly always */
			plain++;
			continue;
		}
		n = c < 0x20 || c == '"' || c == '\\' || c == 0x7f ? 0
								   : nps_utf8_len(text + plain, left - plain);

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
	nps_writer__bytes(w, "\"", 1);
}

void nps_writer__csv(struct nps_writer *w, const char *text)
{
	bool quote = strpbrk(text, ",\"") != NULL;

	if (quote)
		nps_writer__bytes(w, "\"", 1);
	for (; *text; text++) {
		char c = (unsigned char)*text < 0x20 ? ' ' : *text;

		if (c == '"')
			nps_writer__bytes(w, "\"", 1);
		nps_writer__bytes(w, &c, 1);
	}
	if (quote)
		nps_writer__bytes(w, "\"", 1);
}
