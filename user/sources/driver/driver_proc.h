/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of the driver's own files in /proc. */
#ifndef NPS_DRIVER_PROC_H
#define NPS_DRIVER_PROC_H

#include "core/session_writer.h"

struct nps_driver_proc {
	unsigned int files; /* number of files copied */
	/* files, and folders with their contents, that were skipped: too many, too deep, or unreadable */
	unsigned int left_out;
	unsigned int cut; /* number of files that were truncated */
};

/*
 * Copies the files below /proc/trs_core, /proc/trs_chan and /proc/svm/task into DIR of the session, under
 * the same paths. Their number and size are limited.
 */
struct nps_driver_proc nps_driver_proc__copy(struct nps_session_writer *s, const char *dir);

#endif
