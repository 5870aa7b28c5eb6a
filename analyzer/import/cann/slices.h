/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams of a data/ directory: `<name>.slice_0`, `.slice_1` and so on are one file, read in order of
 * their numbers (prof-raw 1.3). Slices may be missing, cut, doubled, or something else under that name.
 */
#ifndef NPS_CANN_SLICES_H
#define NPS_CANN_SLICES_H

#include "model/model.h"

struct nps_slices {
	int dirfd; /* not owned; -1: no directory */
	struct nps_slice {
		char *name;
		uint32_t base; /* length of the stream's name */
		uint32_t number;
	} * all; /* by stream and number */
	size_t n;
};

/* Lists DIRFD. 0 or negative errno. */
int nps_slices__open(struct nps_slices *slices, int dirfd);
void nps_slices__close(struct nps_slices *slices);

/* Bytes of stream BASE, 0 if there is none. */
uint64_t nps_slices__size(const struct nps_slices *slices, const char *base);

/* Bytes of slice I. */
uint64_t nps_slices__bytes(const struct nps_slices *slices, size_t i);

/* How records of a file are recognised: the 16-bit word at `offset` is `value`. */
struct nps_magic {
	uint32_t value;
	uint32_t offset;
};
#define NPS_NO_MAGIC ((struct nps_magic){ .value = UINT32_MAX })

struct nps_slice_reader {
	const struct nps_slices *slices;
	struct nps_model *model;
	const char *base;
	size_t at, end; /* slices: the next one, and the end of the stream */
	int fd;
	size_t record;
	struct nps_magic magic;
	uint8_t *buffer;
	size_t used, len;
	uint64_t offset; /* in the stream, of the record that was returned last */
	uint64_t consumed; /* bytes of the stream so far */
	uint64_t bad; /* bytes' worth of records that are no records */
	bool finished;
	bool unended; /* the last line was not ended by a newline */
};

/*
 * Opens stream BASE, whose records have RECORD bytes. Missing and doubled slices are counted as losses. A
 * stream that is not there has no records. 0 or negative errno.
 */
int nps_slice_reader__open(struct nps_slice_reader *reader, struct nps_model *model,
			   const struct nps_slices *slices, const char *base, size_t record,
			   struct nps_magic magic);

/* The next record, valid until the next call, not aligned; NULL at the end. */
const uint8_t *nps_slice_reader__next(struct nps_slice_reader *reader);

/* The next line without its end, cut if it is very long; NULL at the end. For streams with RECORD 1. */
const char *nps_slice_reader__line(struct nps_slice_reader *reader, size_t *len);

/* Counts what was unreadable. */
void nps_slice_reader__close(struct nps_slice_reader *reader);

/* Little-endian fields of records. */
static inline uint16_t nps_u16(const uint8_t *p)
{
	return p[0] | p[1] << 8;
}

static inline uint32_t nps_u32(const uint8_t *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t nps_u64(const uint8_t *p)
{
	return nps_u32(p) | (uint64_t)nps_u32(p + 4) << 32;
}

#endif
