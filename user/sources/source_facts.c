/* SPDX-License-Identifier: BSD-2-Clause */
/* Which chips the job's devices are. */
#include "capture/capture.h"
#include "capture/capture_agents.h"
#include "driver/device_facts.h"
#include "sources/source_rows.h"

static void query(struct nps_capture *c)
{
	nps_device_facts__query(&c->shared.facts, c->shared.query, nps_agents__reported(c));
}

static const char *facts_turn(struct nps_capture *c, struct nps_source *s, enum nps_turn_kind kind)
{
	(void)s;
	if (kind == NPS_TURN_SECOND)
		query(c);
	return NULL;
}

/*
 * Devices that are not queried at once, because the process has a helper
 * that reports them, are checked in the next second.
 */
static int facts_process(struct nps_capture *c, struct nps_source *s, const struct nps_source_event *e)
{
	(void)s;
	if (e->kind == NPS_EVENT_DEVICE && e->submits)
		nps_device_facts__used(&c->shared.facts, e->p->pid, e->p->uid, e->device,
				       nps_process__foreign(e->p));
	return 0;
}

static void facts_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	(void)s;
	if (stage == NPS_END_FINISH)
		query(c);
	else if (stage == NPS_END_REPORT)
		nps_device_facts__report(&c->shared.facts, nps_agents__reported(c));
}

static void facts_describe(const struct nps_capture *c, const struct nps_source *s, enum nps_section section,
			   cJSON *session, cJSON *part)
{
	(void)s;
	(void)session;
	if (section == NPS_SECTION_DEVICES)
		nps_device_facts__describe(&c->shared.facts, part);
}

const struct nps_source_ops nps_source_facts = {
	.name = "device facts",
	.turn = facts_turn,
	.process = facts_process,
	.end = facts_end,
	.describe = facts_describe,
};
