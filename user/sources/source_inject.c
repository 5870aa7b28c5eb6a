/* SPDX-License-Identifier: BSD-2-Clause */
/* --inject: loads the helper library into processes that run without, before anything is watched. */
#include "capture/capture.h"
#include "inject/inject.h"
#include "sources/source_rows.h"

static bool inject_wanted(const struct nps_record_opts *opts)
{
	return opts->inject && opts->n_pids;
}

/*
 * A process that remains without the helper has only bounds for device
 * times, which nps_inject__tree() reports.
 */
static int inject_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	(void)s;
	for (int i = 0; stage == NPS_START_PREPARE && i < c->opts->n_pids; i++)
		c->degraded |= nps_inject__tree(c->opts->pids[i], c->opts->children) != 0;
	return 0;
}

const struct nps_source_ops nps_source_inject = {
	.name = "inject",
	.wanted = inject_wanted,
	.start = inject_start,
};
