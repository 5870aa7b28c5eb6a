/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver tells of itself in /proc, as it stands. */
#ifndef NPS_DRIVER_PROC_H
#define NPS_DRIVER_PROC_H

#include "session_writer.h"

struct nps_driver_proc {
	unsigned int files; /* that were copied */
	unsigned int
		left_out; /* files, and folders with what is in them: too many, too deep, not to be read */
	unsigned int cut; /* of the files */
};

/*
 * Copies the files below /proc/trs_core, /proc/trs_chan and /proc/svm/task into DIR of the session, under the same paths;
 * their number, and how long each may be, is limited.
 */
struct nps_driver_proc nps_driver_proc__copy(struct nps_session *s, const char *dir);

#endif
