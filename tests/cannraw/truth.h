/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the truth file: one JSON object a line. Does nothing when no file was requested. */
#ifndef CANNRAW_TRUTH_H
#define CANNRAW_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct truth {
	const char *path; /* NULL: off */
	int fd;
	char *buf;
	size_t len;
};

void truth_open(struct truth *t, const char *path);
void truth_close(struct truth *t);

void truth_begin(struct truth *t, const char *kind);
void truth_end(struct truth *t);
void truth_int(struct truth *t, const char *key, int64_t value);
void truth_uint(struct truth *t, const char *key, uint64_t value);
void truth_bool(struct truth *t, const char *key, bool value);
/* TEXT may be NULL: null. */
void truth_str(struct truth *t, const char *key, const char *text);
/* Bytes that need not be UTF-8: those that are not become U+FFFD, and KEY_hex follows with all of them. */
void truth_bytes(struct truth *t, const char *key, const char *text, size_t len);
/* Text put in as it is, for arrays. */
void truth_raw(struct truth *t, const char *text);
void truth_raw_uint(struct truth *t, uint64_t value);

#endif
