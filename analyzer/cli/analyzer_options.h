/* SPDX-License-Identifier: BSD-2-Clause */
/* The command lines of `npuscope analyze` and `npuscope show`. */
#ifndef NPS_ANALYZER_OPTIONS_H
#define NPS_ANALYZER_OPTIONS_H

#include "analyze.h"
#include "cli/options.h"

/* What `show` prints. */
struct nps_show_args {
	size_t top; /* rows of each table */
	unsigned int only; /* sections, NPS_SHOW_* */
	bool json, show_self;
	enum nps_step_source steps;
	enum nps_progress_mode progress;
};

extern const struct nps_option_word nps_step_source_words[]; /* values: enum nps_step_source */
extern const struct nps_command nps_analyze_command; /* of struct nps_analyze_opts */
extern const struct nps_command nps_show_command; /* of struct nps_show_args */

#endif
