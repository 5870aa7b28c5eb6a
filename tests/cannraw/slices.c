/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "slices.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLICE_KIB 2048u
#define CHUNK_MIN(bytes) ((bytes) / 1024 * 48) /* of a slice */
#define CHUNK_SPREAD(bytes) ((bytes) / 1024 * 200)
#define PUT_MAX (128u * 1024)
#define BUF_BYTES(bytes) (CHUNK_MIN(bytes) + CHUNK_SPREAD(bytes) + PUT_MAX)

static size_t slice_bytes = SLICE_KIB * 1024;

void slices_of(unsigned int kib)
{
	slice_bytes = kib * 1024ul;
}

_Noreturn void fail(const char *what)
{
	fprintf(stderr, "gen-cann: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

	need(fd >= 0, path);
	return fd;
}

static void write_all(int fd, const uint8_t *data, size_t len, const char *path)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		need(n > 0, path);
		data += n;
		len -= (size_t)n;
	}
}

static void write_file(const char *path, const char *text)
{
	int fd = create(path);

	write_all(fd, (const uint8_t *)text, strlen(text), path);
	need(close(fd) == 0, path);
}

void write_control(const char *path, const char *text, bool done)
{
	char name[4200], line[64];

	write_file(path, text);
	if (!done)
		return;
	snprintf(name, sizeof(name), "%s.done", path);
	snprintf(line, sizeof(line), "filesize:%zu\n", strlen(text));
	write_file(name, line);
}

/* Chunks of the real writer differ in size, so that slices end at no round number. */
static size_t next_chunk(struct slices *s)
{
	s->rnd = s->rnd * 1664525 + 1013904223;
	return CHUNK_MIN(slice_bytes) + (s->rnd >> 8) % CHUNK_SPREAD(slice_bytes);
}

void slices_open(struct slices *s, const char *dir, const char *name, bool straddle, bool done_files)
{
	*s = (struct slices){ .fd = -1, .straddle = straddle, .done_files = done_files, .rnd = 1 };
	need(asprintf(&s->base, "%s/%s", dir, name) > 0, name);
	for (const char *c = name; *c; c++)
		s->rnd = s->rnd * 31 + (uint8_t)*c;
	s->chunk = next_chunk(s);
}

static void end_slice(struct slices *s)
{
	char path[4200], line[96];

	need(close(s->fd) == 0, s->base);
	s->fd = -1;
	if (s->done_files) {
		snprintf(path, sizeof(path), "%s.slice_%u.done", s->base, s->index);
		snprintf(line, sizeof(line), "filesize:%" PRIu64 "\nstarttime:0\nendtime  :0\n", s->in_slice);
		write_file(path, line);
	}
	s->index++;
	s->in_slice = 0;
}

static void write_chunk(struct slices *s, size_t len)
{
	char path[4200];

	if (s->fd < 0) {
		snprintf(path, sizeof(path), "%s.slice_%u", s->base, s->index);
		s->fd = create(path);
	}
	write_all(s->fd, s->buf, len, s->base);
	s->in_slice += len;
	s->len -= len;
	memmove(s->buf, s->buf + len, s->len);
	if (s->in_slice >= slice_bytes)
		end_slice(s);
}

void slices_put(struct slices *s, const void *data, size_t len, size_t count)
{
	if (!s->buf) {
		s->buf = malloc(BUF_BYTES(slice_bytes));
		need(s->buf != NULL, s->base);
	}
	memcpy(s->buf + s->len, data, len);
	s->len += len;
	s->records += count;
	s->bytes += len;
	if (s->len < s->chunk)
		return;
	write_chunk(s, s->straddle ? s->chunk : s->len);
	s->chunk = next_chunk(s);
}

void slices_close(struct slices *s)
{
	if (s->len)
		write_chunk(s, s->len);
	if (s->fd >= 0)
		end_slice(s);
	free(s->buf);
	free(s->base);
	s->buf = NULL;
	s->base = NULL;
}
