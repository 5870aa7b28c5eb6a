/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Costs of a probe, a system call, a switch on this machine: a child
 * measures them once per boot, beside a capture.
 */
#include "capture/capture.h"
#include "capture/cost_source.h"
#include "sources/source_rows.h"

static int costs_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	if (stage == NPS_START_PREPARE) {
		/* Before this process has threads, and before anything is watched. */
		nps_cost_source__open(&c->shared.costs, &c->shared.cap);
		s->state = &c->shared.costs;
	} else if (stage == NPS_START_RUN) {
		nps_cost_source__start(&c->shared.costs);
	}
	return 0;
}

static void costs_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	(void)s;
	if (stage == NPS_END_ACCOUNT)
		nps_cost_source__end(&c->shared.costs);
}

static void costs_free(struct nps_capture *c, struct nps_source *s)
{
	if (s->state)
		nps_cost_source__close(&c->shared.costs);
}

const struct nps_source_ops nps_source_costs = {
	.name = "costs",
	.start = costs_start,
	.end = costs_end,
	.free = costs_free,
};
