/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of options: from text into the member that a row names, and back into words for people. */
#ifndef NPS_OPTION_VALUE_H
#define NPS_OPTION_VALUE_H

#include "cli/options.h"

#define NPS_OPTION_TEXT_MAX 512 /* bytes that the texts below need at most */

/*
 * Stores TEXT as OPTION's value in OPTS. True, or false with WHY: the text that follows the value in a
 * message (" is not one of a, b"). OPTS is unchanged then, unless a row's own parser changes it.
 */
bool nps_option__set(const struct nps_option *option, void *opts, const char *text,
		     char why[NPS_OPTION_TEXT_MAX]);

/* Does it have a value? */
bool nps_option__has_value(const struct nps_option *option);

/* What is valid: "one of a, b", "a number from 1 to 10". */
void nps_option__valid(const struct nps_option *option, char text[NPS_OPTION_TEXT_MAX]);

/* The value's name in the help: "a|b", "HZ". True: it names all WORDS. */
bool nps_option__placeholder(const struct nps_option *option, char text[NPS_OPTION_TEXT_MAX]);

/* Words that a placeholder does not name, the range, and the default: "1 to 10, default: 5"; may be empty. */
void nps_option__note(const struct nps_option *option, char text[NPS_OPTION_TEXT_MAX]);

/* Does the help describe each of its words in a line? */
bool nps_option__describes_words(const struct nps_option *option);

#endif
