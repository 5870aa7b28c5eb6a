/* SPDX-License-Identifier: BSD-2-Clause */
/* What `npuscope record` tells people of a capture when it is over. */
#ifndef NPS_RECORD_PRINT_H
#define NPS_RECORD_PRINT_H

#include "capture.h"

/* How the command after -- ended, if it did not end well: its status is not record's. */
void nps_record_print__command(const struct nps_capture *c);

/* A line if something was lost, that says where to look. */
void nps_record_print__losses(const struct nps_capture *c);

/* The table of what was seen, and what it cost. */
void nps_record_print__capture(const struct nps_capture *c);

#endif
