/* SPDX-License-Identifier: BSD-2-Clause */
/* The host's clocks, which relate all times of a session. */
#include "capture/capture.h"
#include "core/clocks.h"
#include "sources/source_rows.h"

static void clock_sample(struct nps_capture *c, struct nps_clock *clock)
{
	nps_clock__sample(clock);
	nps_stream__append(&c->session.clocks, NPS_CHUNK_CLOCKS, 0, clock, sizeof(*clock));
}

static int clocks_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	(void)s;
	if (stage == NPS_START_ATTACH)
		clock_sample(c, &c->start);
	return 0;
}

static const char *clocks_turn(struct nps_capture *c, struct nps_source *s, enum nps_turn_kind kind)
{
	struct nps_clock clock;

	(void)s;
	if (kind == NPS_TURN_SECOND)
		clock_sample(c, &clock);
	return NULL;
}

static void clocks_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	(void)s;
	if (stage == NPS_END_FINISH)
		clock_sample(c, &c->end);
}

const struct nps_source_ops nps_source_clocks = {
	.name = "clocks",
	.start = clocks_start,
	.turn = clocks_turn,
	.end = clocks_end,
};
