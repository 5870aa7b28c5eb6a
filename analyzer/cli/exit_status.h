/* SPDX-License-Identifier: BSD-2-Clause */
/* Exit statuses of the analyzer's subcommands, as README documents them. */
#ifndef NPS_EXIT_STATUS_H
#define NPS_EXIT_STATUS_H

#include "base/util.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_LOSSY = 3 };

/* Of two parts of a command. A failure outweighs a loss. */
static inline int nps_exit_worse(int a, int b)
{
	return a == EXIT_FAILED || b == EXIT_FAILED ? EXIT_FAILED : NPS_MAX(a, b);
}

/* The status of a command with a usable result: inputs that failed are losses. */
static inline int nps_exit_partial(int status)
{
	return status == EXIT_FAILED ? EXIT_LOSSY : status;
}

#endif
