/* SPDX-License-Identifier: BSD-2-Clause */
/* What is made of the rows of options when npuscope is built: man pages, and completions of shells. */
#ifndef CLI_DOCS_H
#define CLI_DOCS_H

#include <stdio.h>

#include "cli/options.h"

extern const struct nps_command *const commands[]; /* in the order of use, NULL after the last */
extern const char *date; /* of the man pages: YYYY-MM-DD */

void print_man_of_program(FILE *out); /* npuscope.1 */
void print_man_of_command(FILE *out, const struct nps_command *command); /* npuscope-COMMAND.1 */
void print_bash(FILE *out);
void print_zsh(FILE *out);

#endif
