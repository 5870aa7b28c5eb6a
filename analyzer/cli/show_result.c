/* SPDX-License-Identifier: BSD-2-Clause */
/* Which sections there are. */
#include "cli/show.h"
#include "findings/findings.h"
#include "findings/ranks.h"

static const struct nps_find_question *const sections[] = {
#define SECTION(name) [NPS_SHOW_INDEX_##name] = &nps_question_##name,
	NPS_SHOW_SECTIONS(SECTION)
#undef SECTION
};

void nps_show__result(FILE *out, const struct cJSON *document, unsigned int only, size_t top)
{
	struct nps_view view = { .out = out, .document = document, .top = top };

	view.start_us = nps_view__number(nps_view__at(&view, "capture"), "start_us");
	for (size_t i = 0; i < NPS_ARRAY_SIZE(sections); i++)
		if (only & 1U << i)
			nps_question__show(sections[i], &view);
}

void nps_show__ranks(FILE *out, const struct cJSON *document, size_t top)
{
	nps_ranks__show(&(struct nps_view){ .out = out, .document = document, .top = top });
}
