/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that probes.c has read, and what is probed in each. */
#ifndef NPS_PROBED_FILES_H
#define NPS_PROBED_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "attach/exit_points.h"
#include "attach/probe_address.h"

struct nps_attached {
	uint16_t id;
	uint16_t number; /* of the operator, 0: none */
	uint8_t arguments; /* number of arguments of its first phase that are recorded */
	bool returns;
	bool at_end; /* in front of a return of the function, not at its entry */
	uint8_t ends; /* of an entry: number of probes at ends that it needs */
	uint8_t class; /* enum nps_probe_class */
	unsigned group; /* group of this probe and its links only, 0: it shares one */
	uint64_t entered; /* entries counted until the last turn */
	uint64_t detached; /* when it was detached, CLOCK_MONOTONIC ns, 0: it was not */
	bool closing; /* being detached, but its links still exist */
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

/* The one of FILES that descriptor FD refers to; NULL: it is new. st: of FD. */
struct nps_probed_file *nps_probed_files__find(struct nps_probed_file *files, int fd, const struct stat *st);

/* Adds it in front of *FILES; NULL: no memory. path: its name in messages, copied. */
struct nps_probed_file *nps_probed_files__add(struct nps_probed_file **files, int fd, const struct stat *st,
					      const char *build_id, const char *path);

/* Removes and frees the one that was added last. */
void nps_probed_files__forget_last(struct nps_probed_file **files);

/* Adds a probe of row ID, also at its return if RETURNS. 0 or -ENOMEM. */
int nps_probed_file__add(struct nps_probed_file *f, uint16_t id, bool returns,
			 const struct nps_probe_address *address);

/* Adds a probe of row ID in front of a return of the function that begins at START. 0 or -ENOMEM. */
int nps_probed_file__add_end(struct nps_probed_file *f, uint16_t id, uint64_t start,
			     const struct nps_exit *end);

/* Are the ends of the function that begins at START probed for row ID? */
bool nps_probed_file__has_ends(const struct nps_probed_file *f, uint16_t id, uint64_t start);

/* Is row ID probed in the file? */
bool nps_probed_file__has(const struct nps_probed_file *f, uint16_t id);

/*
 * Is there a probe at that offset, or another one in its function? Aliases share code, and one probe there
 * is enough; its offset depends on what the row of the first one reads. Probes at its ends do not count.
 */
bool nps_probed_file__has_at(const struct nps_probed_file *f, const struct nps_probe_address *address);

#endif
