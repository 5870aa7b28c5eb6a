/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reader of one file of FRAMEWORK/ (prof-raw 5): records of a type and a length that hold a fixed part and
 * fields, or records of one size. The file is read through a window; what is damaged is counted and left
 * out, and reading goes on at the next valid record.
 */
#ifndef NPS_FW_RECORDS_H
#define NPS_FW_RECORDS_H

#include "model/model.h"

#include <string.h>

#define NPS_FW_FIELDS 11 /* fields that are kept have ids below this */

struct nps_fw_text {
	const char *text; /* not terminated */
	uint32_t len;
	bool there;
};

struct nps_fw_record {
	const uint8_t *fixed;
	struct nps_fw_text fields[NPS_FW_FIELDS];
};

struct nps_fw_file {
	const char *name;
	int fd, err; /* first error of reading */
	uint64_t left; /* bytes behind the window */
	uint8_t *buf;
	size_t at, len, room; /* window: next byte, bytes, bytes allocated */
	uint64_t damaged, unknown; /* records, and records of other types */
	struct nps_model *model;
};

/* Opens NAME in DIRFD. 0, -ENOENT if it is not there, or negative errno. */
int nps_fw_file__open(struct nps_fw_file *file, struct nps_model *model, int dirfd, const char *name);

/* The next record of type KIND with a fixed part of FIXED bytes, valid until the next call; or false. */
bool nps_fw_file__typed(struct nps_fw_file *file, unsigned int kind, size_t fixed,
			struct nps_fw_record *record);

/* The next SIZE bytes, or NULL at the end. */
const uint8_t *nps_fw_file__plain(struct nps_fw_file *file, size_t size);

/* Reports the losses to the model, and closes. */
void nps_fw_file__close(struct nps_fw_file *file);

/* Integers of a record; all are little-endian. */
static inline uint64_t nps_fw_u64(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static inline int64_t nps_fw_i64(const uint8_t *p)
{
	return (int64_t)nps_fw_u64(p);
}

#endif
