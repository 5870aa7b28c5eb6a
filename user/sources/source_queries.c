/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries to the NPU's driver: the process that starts the processes that load the driver's libraries, and
 * the thread that waits for answers, because a faulty driver may never return from a call.
 */
#include <string.h>

#include "capture/capture_parts.h"
#include "core/log.h"
#include "sources/source_rows.h"

static int queries_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	int err;

	(void)s;
	if (stage == NPS_START_ATTACH)
		return nps_driver_query__new(c->shared.launcher, &c->shared.query);
	if (stage != NPS_START_PREPARE)
		return 0;
	/* With all current rights, some of which are dropped later. */
	err = nps_device_launcher__start(&c->shared.launcher);
	if (err)
		nps_warn("npuscope-device-worker cannot be started: %s: what only the driver knows of "
			 "devices "
			 "and their clocks will be missing: is the installation complete?",
			 strerror(-err));
	c->degraded |= err != 0;
	return 0;
}

static const char *queries_turn(struct nps_capture *c, struct nps_source *s, enum nps_turn_kind kind)
{
	(void)s;
	if (kind == NPS_TURN_READY)
		nps_driver_query__turn(c->shared.query);
	return NULL;
}

static void wait_for_answers(struct nps_capture *c)
{
	bool answered = nps_driver_query__wait(c->shared.query, &c->patience, nps_capture__wait_turn, c);
	bool late = nps_driver_query__was_late(c->shared.query);

	if (!answered && !late)
		nps_warn("the driver is slow: it had not answered everything when the capture ended: what "
			 "only it knows of devices and their clocks is incomplete");
	c->degraded |= !answered || late;
}

static void queries_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	(void)s;
	switch (stage) {
	case NPS_END_DISARM:
		nps_driver_query__end(c->shared.query);
		break;
	case NPS_END_REPORT:
		wait_for_answers(c);
		break;
	case NPS_END_RELEASE:
	case NPS_END_CANCEL:
		nps_device_launcher__end(c->shared.launcher); /* calls that hang return with an error */
		break;
	default:
		break;
	}
}

static void queries_free(struct nps_capture *c, struct nps_source *s)
{
	(void)s;
	c->shared.hung |= !nps_driver_query__free(c->shared.query);
	if (!c->shared.hung)
		nps_device_launcher__free(c->shared.launcher);
}

const struct nps_source_ops nps_source_queries = {
	.name = "queries",
	.start = queries_start,
	.turn = queries_turn,
	.end = queries_end,
	.free = queries_free,
};
