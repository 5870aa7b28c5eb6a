/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `npuscope record`. */
#ifndef NPS_RECORD_OPTIONS_H
#define NPS_RECORD_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "capture.h"

#define NPS_RECORD_MAX_PIDS 256

struct nps_record_args {
	struct nps_record_opts rec;
	pid_t pids[NPS_RECORD_MAX_PIDS];
	char marker[256];
	bool text, db, quiet, show_self;
	unsigned int host_sys; /* NPS_HOST_SYS_* */
	bool host_sys_given;
};

/* The command line as it stands, with defaults for what it does not say. Ends the program, with a line, where it makes no sense. */
void nps_record_args__parse(struct nps_record_args *args, int argc, char **argv);

#endif
