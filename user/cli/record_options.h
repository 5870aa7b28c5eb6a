/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `npuscope record`. */
#ifndef NPS_RECORD_OPTIONS_H
#define NPS_RECORD_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "analyze.h"
#include "capture/capture.h"
#include "cli/options.h"

#define NPS_RECORD_MAX_PIDS 256

struct nps_record_args {
	struct nps_record_opts rec;
	pid_t pids[NPS_RECORD_MAX_PIDS];
	char marker[256];
	unsigned int formats; /* NPS_FORMAT_* of the results; 0: none */
	bool quiet, verbose, show_self;
	enum nps_step_source steps;
	unsigned int host_sys; /* NPS_HOST_SYS_* */
	bool has_host_sys;
};

extern const struct nps_command nps_record_command; /* options of struct nps_record_args */

/*
 * Reads the command line into ARGS, with defaults for options that are not on it. False: the program has to
 * exit with *STATUS; help or the reason has been printed.
 */
bool nps_record_args__parse(struct nps_record_args *args, int argc, char **argv, int *status);

#endif
