/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `npuscope doctor`. */
#ifndef NPS_DOCTOR_OPTIONS_H
#define NPS_DOCTOR_OPTIONS_H

#include <stdbool.h>

#include "cli/estimate.h"
#include "cli/options.h"

struct nps_doctor_args {
	bool probes, estimate;
	const char *target; /* of --probes: a process or a library; NULL: none */
	unsigned int python; /* process of --python; 0: none */
	struct nps_rates rates; /* of --estimate */
};

extern const struct nps_command nps_doctor_command; /* options of struct nps_doctor_args */

/*
 * Reads the command line into ARGS. False: the program has to exit with
 * *STATUS; help or the reason has been printed.
 */
bool nps_doctor_args__parse(struct nps_doctor_args *args, int argc, char **argv, int *status);

#endif
