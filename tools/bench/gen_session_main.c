/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `gen_session_main DIR TASKS [more|host|ops]`: a synthetic session of two ranks with about TASKS device
 * tasks, to time the analyzer on. "more": also with memory, and tasks without records in the device's log.
 * "host": without a device's log. "ops": with operators of PyTorch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gen_session.h"

int main(int argc, char **argv)
{
	struct gen_job job = { .ranks = 2, .agent = true, .os = true };

	bool more = argc == 4 && !strcmp(argv[3], "more"), host = argc == 4 && !strcmp(argv[3], "host");

	job.ops = argc == 4 && !strcmp(argv[3], "ops");
	if ((argc != 3 && !more && !host && !job.ops) || mkdir(argv[1], 0750)) {
		fprintf(stderr, "usage: gen_session_main NEW-DIR TASKS [more|host|ops]\n");
		return 2;
	}
	job.agent = !host;
	job.memory = more;
	job.lose_every = more ? 7 : 0;
	/* per 100 launches: 2 copies, an event and the tasks of a collective */
	job.launches = (unsigned int)(atof(argv[2]) / job.ranks / 1.1);
	gen_job(argv[1], &job);
	free(job.truth);
	return 0;
}
