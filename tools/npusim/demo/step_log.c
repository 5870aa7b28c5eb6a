/* SPDX-License-Identifier: BSD-2-Clause */
#include "job.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *steps;

void step_log_open(void)
{
	const char *dir = getenv("NPUSIM_TRUTH");
	char path[PATH_MAX];

	if (!dir || !*dir)
		return;
	snprintf(path, sizeof(path), "%s/truth.%d.steps.tsv", dir, getpid());
	steps = fopen(path, "w");
	if (!steps)
		perror(path);
	else
		setvbuf(steps, NULL, _IOLBF, 0);
}

void step_log(long step, uint64_t begin, uint64_t end)
{
	if (steps)
		fprintf(steps, "step\t%ld\t%llu\t%llu\n", step, (unsigned long long)begin,
			(unsigned long long)end);
}

void step_log_close(void)
{
	if (!steps)
		return;
	fputs("end\texit\n", steps);
	if (fclose(steps))
		perror("npusim-train: step log");
}
