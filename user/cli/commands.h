/* SPDX-License-Identifier: BSD-2-Clause */
/* The subcommands, in the order of use. */
#ifndef NPS_COMMANDS_H
#define NPS_COMMANDS_H

#include "cli/analyzer_options.h"
#include "cli/doctor_options.h"
#include "cli/record_options.h"

/* X(name, exit status if standard output is lost: was that the only result, or are there files?) */
#define NPS_COMMANDS(X)                                                                                      \
	X(record, NPS_PARTIAL)                                                                               \
	X(analyze, NPS_PARTIAL)                                                                              \
	X(show, NPS_FAILED)                                                                                  \
	X(doctor, NPS_FAILED)

#endif
