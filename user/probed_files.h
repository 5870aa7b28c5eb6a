/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that probes.c has looked at, and what is probed in each. */
#ifndef NPS_PROBED_FILES_H
#define NPS_PROBED_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "probe_place.h"

struct nps_attached {
	uint16_t id;
	uint16_t number; /* of the operator, 0: none */
	uint8_t arguments; /* of its first phase that are told */
	bool returns;
	uint8_t class; /* enum nps_probe_class */
	unsigned group; /* of this probe and its links alone, 0: it shares them */
	uint64_t entered; /* until the last turn */
	uint64_t taken_out; /* CLOCK_MONOTONIC, 0: it was not */
	bool closing; /* taken out, but its links are there */
	uint64_t start, offset; /* in the file: of the function, and of the probe */
};

struct nps_probed_file {
	char *path;
	dev_t dev;
	ino_t ino;
	off_t size;
	bool overlay;
	struct timespec changed, modified;
	char build_id[41];
	struct nps_attached *probes;
	unsigned n;
	struct nps_probed_file *next;
};

/* The one of FILES that the descriptor FD is open at; NULL: it is new. st: of FD. */
struct nps_probed_file *nps_probed_files__find(struct nps_probed_file *files, int fd, const struct stat *st);

/* Adds it, in front of *FILES; NULL: no room. path: what to call it, copied. */
struct nps_probed_file *nps_probed_files__add(struct nps_probed_file **files, int fd, const struct stat *st,
					      const char *build_id, const char *path);

/* Takes out and frees the one that was added last. */
void nps_probed_files__forget_last(struct nps_probed_file **files);

/* Adds a probe of row ID, which is attached at its return, too, if RETURNS. 0 or -ENOMEM. */
int nps_probed_file__add(struct nps_probed_file *f, uint16_t id, bool returns,
			 const struct nps_probe_place *place);

/* Is row ID probed in the file? */
bool nps_probed_file__has(const struct nps_probed_file *f, uint16_t id);

/*
 * Is a probe at PLACE, or another one in its function? Aliases share code, and one probe there is enough; where it is depends on what
 * the row of the first one reads.
 */
bool nps_probed_file__has_at(const struct nps_probed_file *f, const struct nps_probe_place *place);

#endif
