/* SPDX-License-Identifier: BSD-2-Clause */
/* From a filled model to one result directory. */
#ifndef NPS_JOB_H
#define NPS_JOB_H

#include "analyze.h"
#include "model/model.h"

/* Where a result goes. */
struct nps_destination {
	const char *parent; /* directory, for messages and SQLite */
	int fd; /* of it */
	char name[256]; /* of the result in it */
	char input[PATH_MAX]; /* what it is made of, "" if its name states that */
	bool entries; /* the result's entries go into the parent itself, beside what is there */
};

#define NPS_RESULTS_RANKS "ranks" /* directory of the results of processes, if the whole host has one, too */
#define NPS_RESULTS_HOST "whole_host" /* and of its own */
#define NPS_RESULT_INPUT ".npuscope_input" /* file of a result: the path of what it was made of */

/* Derives what follows from the imported tables of MODEL. 0 or negative errno. */
int nps_job__derive(struct nps_model *model);

/* Writes the result of MODEL, and its path into PATH. 0 or negative errno; the reason has been printed. */
int nps_job__export(struct nps_model *model, const struct nps_analyze_opts *opts,
		    const struct nps_destination *destination, char path[PATH_MAX]);

#endif
