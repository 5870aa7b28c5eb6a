/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of findings on a terminal. */
#ifndef NPS_SHOW_H
#define NPS_SHOW_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdio.h>

struct cJSON;

/* Sections of one result, in the order in which they are printed. */
#define NPS_SHOW_SECTIONS(X)                                                                                 \
	X(overview)                                                                                          \
	X(findings)                                                                                          \
	X(steps)                                                                                             \
	X(operators)                                                                                         \
	X(apis)                                                                                              \
	X(communication)                                                                                     \
	X(memory)                                                                                            \
	X(idle)                                                                                              \
	X(host)                                                                                              \
	X(host_time)                                                                                         \
	X(torchair)                                                                                          \
	X(python)                                                                                            \
	X(allocations)

enum nps_show_section {
#define NPS_SHOW_INDEX(name) NPS_SHOW_INDEX_##name,
	NPS_SHOW_SECTIONS(NPS_SHOW_INDEX)
#undef NPS_SHOW_INDEX
};

/* The bit of section NAME, and that of the comparison of ranks. */
#define NPS_SHOW_BIT(name) (1U << NPS_SHOW_INDEX_##name)
#define NPS_SHOW_RANKS (1U << 31)

/* The sections of one result whose bits ONLY has. */
void nps_show__result(FILE *out, const struct cJSON *document, unsigned int only, size_t top);

/* The comparison of ranks. */
void nps_show__ranks(FILE *out, const struct cJSON *document, size_t top);

/* Appends trace files to INPUTS (struct nps_input): PATH, or those below it. 0, -ENOENT or another errno. */
int nps_show__find_traces(struct nps_vec *inputs, const char *path);

/* The subcommand. Exit status 0 done, 1 failed, 2 wrong usage, 3 done but something was lost. */
int nps_cmd_show(int argc, char **argv);

#endif
