/* SPDX-License-Identifier: BSD-2-Clause */
/* What `npuscope record` prints when a capture is over. */
#ifndef NPS_RECORD_PRINT_H
#define NPS_RECORD_PRINT_H

#include "capture/capture.h"

/* Prints how the command after -- ended, if it failed, because record's exit status does not show it. */
void nps_record_print__command(const struct nps_capture *c);

/* Prints a line if something was lost, with where to find details. */
void nps_record_print__losses(const struct nps_capture *c);

/* Prints the table of what was recorded, and what it cost. */
void nps_record_print__capture(const struct nps_capture *c);

#endif
