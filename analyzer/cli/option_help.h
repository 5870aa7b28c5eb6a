/* SPDX-License-Identifier: BSD-2-Clause */
/* What --help and --usage print. */
#ifndef NPS_OPTION_HELP_H
#define NPS_OPTION_HELP_H

#include "cli/options.h"

#include <stdio.h>

/* The forms, the description, the options by group in the order of their rows, the exit statuses. */
void nps_options__print_help(FILE *out, const struct nps_command *command);

/* The forms, and every option without its text. */
void nps_options__print_usage(FILE *out, const struct nps_command *command);

#endif
