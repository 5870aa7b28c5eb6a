/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A PROF_* directory of the session, in the layout of CANN's profiler (prof-raw 1): its name, and its data files, which are
 * cut into slices. Nothing here is shared between threads: each file has one writer.
 */
#ifndef NPS_PROF_FILES_H
#define NPS_PROF_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "session_writer.h"

#define NPS_PROF_NAME 96 /* bytes of a directory's name with the closing NUL */
#define NPS_PROF_SLICE (2U << 20) /* a slice is closed once it has this many bytes */

/* PROF_{index}_{time}_{pid}{letters}, as CANN names it (prof-raw 1.1); the letters A to R only make it unique. */
void nps_prof__name(char name[NPS_PROF_NAME], unsigned int index, pid_t pid);

struct nps_prof_file {
	char path[192]; /* below the session, without .slice_K */
	int fd; /* -1: no slice is open, or it is paused */
	bool paused; /* the slice goes on, without a descriptor */
	unsigned int slice;
	uint32_t size; /* of the slice */
	uint64_t total; /* bytes of all slices */
	char *held; /* bytes that are not written yet; NULL: what comes is written at once */
	uint32_t n_held, room;
};

/*
 * `file`.{device} in DIR/device_{device}/data. HOLD: bytes that are gathered before they are written, 0: none are. No file
 * is made before there is something to write. 0, -ENOMEM or -ENAMETOOLONG.
 */
int nps_prof_file__init(struct nps_prof_file *f, const char *dir, unsigned int device, const char *file,
			uint32_t hold);

/* Appends; slices end behind a write, so that what must not be torn is given at once. -errno. */
int nps_prof_file__write(struct nps_prof_file *f, struct nps_session *s, const void *data, size_t len);

/* Writes what is held. -errno. */
int nps_prof_file__flush(struct nps_prof_file *f, struct nps_session *s);

/* Is a slice open? */
bool nps_prof_file__is_open(const struct nps_prof_file *f);

/*
 * Closes the descriptor of the slice until the next write. -errno of close(2), which is noted in the session: bytes that were
 * written may be missing.
 */
int nps_prof_file__pause(struct nps_prof_file *f, struct nps_session *s);

/* The last slice is complete, and is marked so; frees what is held. -errno of what could not be written. */
int nps_prof_file__finish(struct nps_prof_file *f, struct nps_session *s);

/* Creates or replaces a small file of that path below the session, and the mark that it is complete. -errno. */
int nps_prof__put(struct nps_session *s, const char *path, const char *text);

#endif
