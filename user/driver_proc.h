/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver tells of itself in /proc, as it stands. */
#ifndef NPS_DRIVER_PROC_H
#define NPS_DRIVER_PROC_H

#include "session_writer.h"

/*
 * Copies the files below /proc/trs_core, /proc/trs_chan and /proc/svm/task into DIR of the session, under the same paths;
 * their number, and how long each may be, is limited. Returns how many there were; what cannot be read is left out.
 */
unsigned int nps_driver_proc__copy(struct nps_session *s, const char *dir);

#endif
