/* SPDX-License-Identifier: BSD-2-Clause */
#include "truth.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slices.h"

#define BUF_BYTES (1u << 20)

static void flush(struct truth *t)
{
	size_t at = 0;

	while (at < t->len) {
		ssize_t n = write(t->fd, t->buf + at, t->len - at);

		need(n > 0, t->path);
		at += (size_t)n;
	}
	t->len = 0;
}

void truth_open(struct truth *t, const char *path)
{
	*t = (struct truth){ .path = path, .fd = -1 };
	if (!path)
		return;
	t->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	need(t->fd >= 0, path);
	t->buf = malloc(BUF_BYTES);
	need(t->buf != NULL, path);
}

void truth_close(struct truth *t)
{
	if (!t->path)
		return;
	flush(t);
	need(close(t->fd) == 0, t->path);
	free(t->buf);
}

static void add(struct truth *t, const char *text, size_t len)
{
	while (t->len + len > BUF_BYTES) {
		size_t part = BUF_BYTES - t->len;

		memcpy(t->buf + t->len, text, part);
		t->len = BUF_BYTES;
		flush(t);
		text += part;
		len -= part;
	}
	memcpy(t->buf + t->len, text, len);
	t->len += len;
}

void truth_raw(struct truth *t, const char *text)
{
	if (t->path)
		add(t, text, strlen(text));
}

void truth_raw_uint(struct truth *t, uint64_t value)
{
	char digits[24];
	size_t at = sizeof(digits);

	if (!t->path)
		return;
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	add(t, digits + at, sizeof(digits) - at);
}

static void key_of(struct truth *t, const char *key)
{
	add(t, ",\"", 2);
	add(t, key, strlen(key));
	add(t, "\":", 2);
}

void truth_begin(struct truth *t, const char *kind)
{
	if (!t->path)
		return;
	add(t, "{\"k\":\"", 6);
	add(t, kind, strlen(kind));
	add(t, "\"", 1);
}

void truth_end(struct truth *t)
{
	if (t->path)
		add(t, "}\n", 2);
}

void truth_uint(struct truth *t, const char *key, uint64_t value)
{
	if (!t->path)
		return;
	key_of(t, key);
	truth_raw_uint(t, value);
}

void truth_int(struct truth *t, const char *key, int64_t value)
{
	if (!t->path)
		return;
	key_of(t, key);
	if (value < 0)
		add(t, "-", 1);
	truth_raw_uint(t, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void truth_bool(struct truth *t, const char *key, bool value)
{
	if (!t->path)
		return;
	key_of(t, key);
	truth_raw(t, value ? "true" : "false");
}

/* Bytes of the valid UTF-8 sequence at P, or 0. */
static size_t utf8_len(const uint8_t *p, size_t left)
{
	uint32_t code;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xC2 || p[0] > 0xF4)
		return 0;
	n = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
	if (n > left)
		return 0;
	code = p[0] & (0x7Fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xC0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3F);
	}
	if ((n == 3 && code < 0x800) || (n == 4 && (code < 0x10000 || code > 0x10FFFF)))
		return 0;
	return code >= 0xD800 && code < 0xE000 ? 0 : n;
}

/* Returns whether every byte could be written as it is. */
static bool quoted(struct truth *t, const char *text, size_t len)
{
	bool clean = true;
	char esc[8];

	add(t, "\"", 1);
	for (size_t i = 0; i < len;) {
		const uint8_t *p = (const uint8_t *)text + i;
		size_t n = utf8_len(p, len - i);

		if (n == 0) {
			add(t, "\\ufffd", 6);
			clean = false;
			n = 1;
		} else if (*p < 0x20 || *p == '"' || *p == '\\' || *p == 0x7F) {
			snprintf(esc, sizeof(esc), "\\u%04x", *p);
			add(t, esc, 6);
		} else {
			add(t, text + i, n);
		}
		i += n;
	}
	add(t, "\"", 1);
	return clean;
}

void truth_str(struct truth *t, const char *key, const char *text)
{
	if (!t->path)
		return;
	key_of(t, key);
	if (text)
		quoted(t, text, strlen(text));
	else
		add(t, "null", 4);
}

void truth_bytes(struct truth *t, const char *key, const char *text, size_t len)
{
	char hex[4];

	if (!t->path)
		return;
	key_of(t, key);
	if (quoted(t, text, len))
		return;
	add(t, ",\"", 2);
	add(t, key, strlen(key));
	add(t, "_hex\":\"", 7);
	for (size_t i = 0; i < len; i++) {
		snprintf(hex, sizeof(hex), "%02x", (uint8_t)text[i]);
		add(t, hex, 2);
	}
	add(t, "\"", 1);
}
