/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A PROF_* directory of the session, in the layout of CANN's profiler (prof-raw 1): its name, and its data
 * files, which are split into slices. Nothing here is shared between threads: each file has one writer.
 */
#ifndef NPS_PROF_FILES_H
#define NPS_PROF_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/session_writer.h"

#define NPS_PROF_NAME 96 /* bytes of a directory's name with the closing NUL */
#define NPS_PROF_SLICE (2U << 20) /* a slice is closed once it has this many bytes */

/*
 * PROF_{index}_{time}_{pid}{letters}, as CANN names it (prof-raw 1.1);
 * the letters A to R only make it unique.
 */
void nps_prof__name(char name[NPS_PROF_NAME], unsigned int index, pid_t pid);

struct nps_prof_file {
	char path[192]; /* below the session, without .slice_K */
	int fd; /* -1: no slice is open, or it is paused */
	bool paused; /* the slice continues later, and has no open descriptor */
	unsigned int slice;
	uint32_t size; /* of the slice */
	uint64_t total; /* bytes of all slices */
	char *held; /* bytes not written yet; NULL: writes are not buffered */
	uint32_t n_held, room;
};

/*
 * Initialises `file`.{device} in DIR/device_{device}/data. HOLD: size of the buffer, bytes, 0: none. The
 * file is created with the first write. 0, -ENOMEM or -ENAMETOOLONG.
 */
int nps_prof_file__init(struct nps_prof_file *f, const char *dir, unsigned int device, const char *file,
			uint32_t hold);

/* Appends; slices end only between two calls, so a record must be written by one. 0 or -errno. */
int nps_prof_file__write(struct nps_prof_file *f, struct nps_session_writer *s, const void *data, size_t len);

/* Writes buffered bytes. 0 or -errno. */
int nps_prof_file__flush(struct nps_prof_file *f, struct nps_session_writer *s);

/* Is a slice open? */
bool nps_prof_file__is_open(const struct nps_prof_file *f);

/*
 * Closes the slice's descriptor until the next write. 0, or -errno of close(2), which is recorded in the
 * session: written bytes may be missing.
 */
int nps_prof_file__pause(struct nps_prof_file *f, struct nps_session_writer *s);

/* Completes and marks the last slice; frees the buffer. 0, or -errno of a write. */
int nps_prof_file__finish(struct nps_prof_file *f, struct nps_session_writer *s);

/*
 * Creates or replaces a small file of that path below the session, and
 * the file that marks it as complete. 0 or -errno.
 */
int nps_prof__put(struct nps_session_writer *s, const char *path, const char *text);

#endif
