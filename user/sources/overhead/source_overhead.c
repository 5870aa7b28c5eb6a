/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Costs of the capture for the job; --max-overhead. It reads the counts
 * of the other sources, so it follows them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/capture.h"
#include "sources/overhead/overhead.h"
#include "core/log.h"
#include "sources/source_rows.h"

static int overhead_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	struct nps_overhead *o = s->state;

	if (stage == NPS_START_PREPARE) {
		s->state = o = malloc(sizeof(*o));
		if (!o) {
			nps_warn("not enough memory to begin: free some");
			return -ENOMEM;
		}
		nps_overhead__begin(o);
	} else if (stage == NPS_START_ATTACH) {
		nps_overhead__start(o);
		if (c->shared.costs.failed)
			nps_overhead__check(c, o);
	}
	return 0;
}

static const char *overhead_turn(struct nps_capture *c, struct nps_source *s, enum nps_turn_kind kind)
{
	if (kind == NPS_TURN_READY) {
		nps_overhead__turn(c, s->state, false);
		nps_overhead__poll(c, s->state);
	} else if (kind == NPS_TURN_SECOND) {
		nps_overhead__every_second(c, s->state);
	}
	return NULL;
}

static void overhead_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	if (stage == NPS_END_ACCOUNT)
		nps_overhead__poll(c, s->state);
	else if (stage == NPS_END_COLLECT)
		nps_overhead__turn(c, s->state, true);
	else if (stage == NPS_END_SETTLE)
		nps_overhead__settle(c, s->state);
}

static void overhead_describe(const struct nps_capture *c, const struct nps_source *s,
			      enum nps_section section, cJSON *session, cJSON *part)
{
	static const struct nps_overhead none;

	(void)part;
	if (section == NPS_SECTION_COST)
		nps_overhead__describe(c, s->state ? s->state : &none, session);
}

static void overhead_print(const struct nps_capture *c, const struct nps_source *s, FILE *out)
{
	fprintf(out, "\nprobes: %u in %u files, attached in %.0f ms, detached in %.0f ms\n",
		nps_probes__count(c->shared.probes), nps_probes__files(c->shared.probes),
		(double)c->attach_ns / 1e6, (double)c->detach_ns / 1e6);
	nps_overhead__print_costs(c, s->state, out);
	nps_overhead__print(c, s->state, out);
}

static void overhead_free(struct nps_capture *c, struct nps_source *s)
{
	(void)c;
	if (s->state)
		nps_overhead__free(s->state);
	free(s->state);
}

const struct nps_source_ops nps_source_overhead = {
	.name = "overhead",
	.start = overhead_start,
	.turn = overhead_turn,
	.end = overhead_end,
	.describe = overhead_describe,
	.print = overhead_print,
	.free = overhead_free,
};
