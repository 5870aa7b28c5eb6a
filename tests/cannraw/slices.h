/* SPDX-License-Identifier: BSD-2-Clause */
/* One logical stream of raw data, cut into files `<name>.slice_0`, `.slice_1` and so on. */
#ifndef CANNRAW_SLICES_H
#define CANNRAW_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slices {
	char *base; /* path without `.slice_N`; NULL: not opened */
	uint8_t *buf;
	size_t len, chunk;
	int fd;
	unsigned int index;
	uint64_t in_slice, records, bytes;
	uint32_t rnd;
	bool straddle; /* chunks may end inside a record */
	bool done_files;
};

/* Slices opened from now on end after KIB KiB (2048, as the real ones). */
void slices_of(unsigned int kib);
/* Prepares the stream; nothing is created before the first record. */
void slices_open(struct slices *s, const char *dir, const char *name, bool straddle, bool done_files);
/* Appends whole records, at most 128 KiB at a time; COUNT of them, LEN bytes together. */
void slices_put(struct slices *s, const void *data, size_t len, size_t count);
void slices_close(struct slices *s);

_Noreturn void fail(const char *what);

/* Ends the program with a message when OK is false; errno has the reason. */
static inline void need(bool ok, const char *what)
{
	if (!ok)
		fail(what);
}

/* Writes PATH, and beside it `PATH.done` when DONE. */
void write_control(const char *path, const char *text, bool done);

#endif
