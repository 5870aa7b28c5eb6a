/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffered writer of text files. The first error sticks and is returned by close, so that
 * callers write without checking each piece.
 */
#ifndef NPS_JSON_WRITER_H
#define NPS_JSON_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct nps_writer {
	int fd;
	int err; /* first error, negative errno */
	size_t len, size; /* bytes in use and allocated */
	char *buf;
	int items; /* elements of the outer list so far, see nps_writer__item() */
};

/* Creates NAME (0640, must not exist, no symlink) in DIRFD. 0 or negative errno. */
int nps_writer__open(struct nps_writer *w, int dirfd, const char *name);

/* Writes what is left and closes. 0 or the first error; the file is then incomplete. */
int nps_writer__close(struct nps_writer *w);

void nps_writer__spill(struct nps_writer *w, const char *bytes,
		       size_t len); /* what the buffer has no room for */

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
static inline void nps_writer__lit(struct nps_writer *w, const char *text)
{
	nps_writer__bytes(w, text, strlen(text));
}

void nps_writer__u64(struct nps_writer *w, uint64_t value);

/* The separator before an element of the file's outer list: nothing before the first. */
void nps_writer__item(struct nps_writer *w);

/* NS as microseconds with three decimals. */
void nps_writer__us(struct nps_writer *w, uint64_t ns);

/* TEXT as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. */
void nps_writer__json(struct nps_writer *w, const char *text);

/* TEXT as a CSV cell: quoted if it must be, control characters become spaces. */
void nps_writer__csv(struct nps_writer *w, const char *text);

#endif
