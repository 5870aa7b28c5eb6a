/* SPDX-License-Identifier: BSD-2-Clause */
/* Task logs of devices that helper libraries in the job's processes read. */
#include <inttypes.h>
#include <stdio.h>

#include "capture/agent_client.h"
#include "capture/capture.h"
#include "capture/capture_agents.h"
#include "capture/discover.h"
#include "core/log.h"
#include "core/session_json.h"
#include "sources/source_rows.h"
#include "sources/tasklog/capture_controls.h"

#define START_MS 500 /* limit for task logs to open */
#define LINGER_MS 100 /* limit for current tasks to end */

static int agents_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	(void)s;
	if (stage == NPS_START_TARGETS)
		nps_agents__wait(c, nps_agent_client__is_logging, START_MS);
	return 0;
}

static void tick(struct nps_capture *c, bool report_now)
{
	FOR_EACH_AGENT(c, p)
	{
		nps_agent_client__tick(p->agent);
		if (report_now)
			nps_agent_client__report_errors(p->agent, false);
	}
}

static const char *agents_turn(struct nps_capture *c, struct nps_source *s, enum nps_turn_kind kind)
{
	(void)s;
	switch (kind) {
	case NPS_TURN_READY:
		nps_agents__drain(c);
		break;
	case NPS_TURN_KEEPALIVE:
		nps_agents__keep(c);
		break;
	case NPS_TURN_TICK:
		tick(c, true);
		break;
	case NPS_TURN_SECOND:
		tick(c, false);
		nps_agents__report(c);
		break;
	default:
		break;
	}
	return NULL;
}

/*
 * A helper reports the chip of its device. Without a helper the driver is queried at once, because a
 * process that ends soon takes the driver's library with it.
 */
static void agents_handle_device(struct nps_capture *c, struct nps_process *p)
{
	if (c->ending)
		return;
	if (!p->agent) /* its helper may have been loaded since the last scan */
		nps_discover__scan(c, p);
	if (p->agent)
		nps_agent_client__poke(p->agent);
	else
		nps_device_facts__query(&c->shared.facts, c->shared.query, nps_agents__reported(c));
}

static int agents_process(struct nps_capture *c, struct nps_source *s, const struct nps_source_event *e)
{
	(void)s;
	if (e->kind == NPS_EVENT_DEVICE)
		agents_handle_device(c, e->p);
	else if (e->kind == NPS_EVENT_EXECUTED && e->p->agent)
		nps_agents__retire(c, e->p);
	return 0;
}

static void turn_while_stopping(struct nps_capture *c)
{
	nps_sources__turn(c, NPS_TURN_ENDING);
}

static void stop(struct nps_capture *c)
{
	FOR_EACH_AGENT(c, p)
	for (uint32_t d = 0; d < NPS_DEVICE_MAX; d++)
		nps_agent_client__sampled(p->agent, d, false, 0); /* no thread has to wait for it any more */
	nps_agents__wait(c, nps_agent_client__idle, LINGER_MS);
	nps_agents__stop(c, NPS_END_RESERVE_DRIVER_NS, turn_while_stopping);
}

static void report_missing_log(struct nps_capture *c, struct nps_process *p)
{
	char reason[160];

	if (!p->submits || c->opts->task_source == NPS_TASKS_HOST || p->tapped ||
	    nps_agent_client__delivered(p->agent) || nps_agent_client__delivered(p->former))
		return;
	snprintf(reason, sizeof(reason), "%s", p->agent_reason);
	if (p->agent)
		nps_agent_client__reason(p->agent, reason, sizeof(reason));
	nps_warn("pid %d: no device task log: %s: device times are bounds from submission and "
		 "synchronisation",
		 p->pid, reason);
	c->degraded |= c->opts->task_source != NPS_TASKS_AUTO || p->agent;
}

static void report(struct nps_capture *c)
{
	bool cann = nps_probes__count(c->shared.probes) > 0;

	for (struct nps_process *p = c->processes; p && cann; p = p->next)
		report_missing_log(c, p);
	FOR_EACH_AGENT(c, p)
	c->degraded |= nps_agent_client__report_errors(p->agent, true);
	for (struct nps_process *p = c->processes; p; p = p->next) {
		if (!nps_agent_client__interrupted(p->agent) && !nps_agent_client__interrupted(p->former))
			continue;
		nps_warn("pid %d: a gap in its task log: npuscope was not scheduled for seconds: tasks of "
			 "that time have bounds",
			 p->pid);
		c->degraded = true;
	}
}

static void agents_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	(void)s;
	switch (stage) {
	case NPS_END_STOP:
		stop(c);
		break;
	case NPS_END_DETACH:
		nps_agents__report(c);
		break;
	case NPS_END_FINISH:
		nps_controls__query(c);
		break;
	case NPS_END_REPORT:
		nps_controls__write(c);
		report(c);
		break;
	default:
		break;
	}
}

static void agents_count(const struct nps_capture *c, const struct nps_source *s, struct nps_lost_counts *n)
{
	(void)s;
	for (const struct nps_process *p = c->processes; p; p = p->next)
		n->dropped += (nps_agents__lost(p) + 63) / 64;
}

static void describe_devices(const struct nps_capture *c, cJSON *devices)
{
	for (const struct nps_process *p = c->processes; p; p = p->next) {
		bool foreign = nps_process__foreign(p);

		nps_agent_client__describe_devices(p->agent, &c->shared.facts, p->uid, foreign, devices);
		nps_agent_client__describe_devices(p->former, &c->shared.facts, p->uid, foreign, devices);
	}
	for (const struct nps_process *p = c->processes; p; p = p->next) {
		nps_agent_client__describe_events(p->agent, devices);
		nps_agent_client__describe_events(p->former, devices);
	}
}

static void describe_lost(const struct nps_capture *c, cJSON *drops)
{
	cJSON *agent = cJSON_AddObjectToObject(drops, "agent");

	for (const struct nps_process *p = c->processes; p; p = p->next) {
		uint64_t lost = nps_agents__lost(p);
		char key[48];

		/* Pids are reused, so the key includes the start. */
		snprintf(key, sizeof(key), "%d@%" PRIu64, p->pid, p->start_mono);
		if (lost)
			nps_json__add_u64(agent, key, lost);
	}
}

static void agents_describe(const struct nps_capture *c, const struct nps_source *s, enum nps_section section,
			    cJSON *session, cJSON *part)
{
	(void)s;
	(void)session;
	if (section == NPS_SECTION_DEVICES)
		describe_devices(c, part);
	else if (section == NPS_SECTION_DROPS)
		describe_lost(c, part);
}

/* Prints what the task log delivered, a line for each process that has a helper. */
static void agents_print(const struct nps_capture *c, const struct nps_source *s, FILE *out)
{
	(void)s;
	for (const struct nps_process *p = c->processes; p; p = p->next) {
		uint64_t bytes = nps_agent_client__bytes(p->agent) + nps_agent_client__bytes(p->former);

		if (p->agent || p->former)
			fprintf(out, "task log %-7d %12" PRIu64 " %12" PRIu64 " bytes\n", p->pid, bytes,
				nps_agents__lost(p));
	}
}

const struct nps_source_ops nps_source_agents = {
	.name = "helpers",
	.start = agents_start,
	.turn = agents_turn,
	.process = agents_process,
	.end = agents_end,
	.count = agents_count,
	.describe = agents_describe,
	.print = agents_print,
};
