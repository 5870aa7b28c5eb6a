/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices that are sampled from outside the job. */
#include <errno.h>

#include "capture/agent_client.h"
#include "capture/capture_agents.h"
#include "capture/capture_parts.h"
#include "core/log.h"
#include "sources/device/device_sampler.h"
#include "sources/source_rows.h"

#define START_MS 500 /* limit for the devices' channels to start */

static bool devices_wanted(const struct nps_record_opts *opts)
{
	return nps_device_options__any(&opts->devices);
}

/* Devices whose cores helpers count by task, as bits, by the driver's numbers. */
static uint64_t counted_by_helpers(struct nps_capture *c)
{
	uint64_t counted = 0;

	FOR_EACH_AGENT(c, p)
	{
		uint64_t own = nps_agent_client__counted(p->agent);

		counted |= own && nps_process__foreign(p)
				   ? nps_device_sampler__used_by(c->shared.devices, p->pid)
				   : own;
	}
	return counted;
}

/* Finds the job's devices: those whose task log a helper reads, and those on which it has memory. */
static void find_devices(struct nps_capture *c)
{
	struct nps_device_sampler *sampler = c->shared.devices;
	struct nps_device_counts counts;

	FOR_EACH_AGENT(c, p)
	for (uint32_t d = 0; d < NPS_DEVICE_MAX; d++)
		if (nps_agent_client__uses(p->agent, d))
			nps_device_sampler__uses(sampler, p->pid, nps_process__foreign(p), d);
	nps_device_sampler__poll(sampler);
	nps_device_sampler__counts(sampler, &counts); /* records a full disk in the session */
}

static int devices_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)
{
	struct nps_device_sampler *sampler = NULL;
	pid_t pids[64];
	size_t n = 0;
	bool answered;
	int err;

	if (stage != NPS_START_TARGETS)
		return 0;
	for (const struct nps_process *p = c->processes; p && n < sizeof(pids) / sizeof(*pids); p = p->next)
		pids[n++] = p->pid;
	err = nps_device_sampler__start(&c->opts->devices, &c->session, &c->logs, c->shared.query, pids, n,
					counted_by_helpers(c), &sampler);
	if (err)
		return err;
	s->state = c->shared.devices = sampler;
	answered = nps_driver_query__wait(c->shared.query, &c->patience, nps_capture__wait_turn, c);
	if (nps_device_sampler__failed(sampler)) {
		nps_device_sampler__free(sampler);
		s->state = c->shared.devices = NULL;
		return -ENODEV;
	}
	for (const struct nps_process *p = c->processes; p; p = p->next)
		nps_device_sampler__process(sampler, p->pid, nps_process__foreign(p));
	find_devices(c);
	if (answered) /* else the driver has used up its time already */
		nps_driver_query__wait(c->shared.query, &c->patience, nps_capture__wait_turn, c);
	nps_device_sampler__settle(sampler, START_MS);
	return 0;
}

static const char *devices_turn(struct nps_capture *c, struct nps_source *s, enum nps_turn_kind kind)
{
	(void)s;
	if (kind == NPS_TURN_READY)
		nps_device_sampler__counted(c->shared.devices, counted_by_helpers(c));
	else if (kind == NPS_TURN_SECOND)
		find_devices(c);
	return NULL;
}

static int devices_process(struct nps_capture *c, struct nps_source *s, const struct nps_source_event *e)
{
	(void)s;
	if (e->kind == NPS_EVENT_WATCHED)
		nps_device_sampler__process(c->shared.devices, e->p->pid, nps_process__foreign(e->p));
	else if (e->kind == NPS_EVENT_DEVICE)
		nps_device_sampler__uses(c->shared.devices, e->p->pid, nps_process__foreign(e->p), e->device);
	return 0;
}

/* True if something requested of devices was not available; each channel has reported why. */
static bool report_missing(struct nps_capture *c)
{
	struct nps_device_sampler *sampler = c->shared.devices;
	struct nps_device_counts counts;

	nps_device_sampler__counts(sampler, &counts);
	if (!nps_device_sampler__devices(sampler) && !nps_driver_query__was_late(c->shared.query))
		nps_warn("no device was sampled: %s: --sys-devices names them",
			 nps_device_sampler__waits(sampler)
				 ? "the driver had not reported in time which the job uses"
				 : "the job used none that the driver lists");
	return counts.refused || nps_device_sampler__limited(sampler) ||
	       !nps_device_sampler__devices(sampler) || nps_device_sampler__hangs(sampler) ||
	       nps_device_sampler__lost_driver(sampler);
}

static void devices_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)
{
	struct nps_device_sampler *sampler = s->state;

	switch (stage) {
	case NPS_END_STOP:
		nps_device_sampler__stop(sampler, &c->patience, NPS_END_RESERVE_JOB_NS,
					 nps_capture__wait_turn, c);
		break;
	case NPS_END_CANCEL:
		nps_device_sampler__stop(sampler, &c->patience, 0, NULL, NULL);
		break;
	case NPS_END_REPORT:
		c->degraded |= report_missing(c);
		break;
	case NPS_END_RELEASE:
		/* the driver's libraries have ended, so calls that hung have returned */
		nps_device_sampler__reap(sampler);
		break;
	default:
		break;
	}
}

static void devices_count(const struct nps_capture *c, const struct nps_source *s, struct nps_lost_counts *n)
{
	struct nps_device_counts counts;

	(void)c;
	nps_device_sampler__counts(s->state, &counts);
	n->device += counts.lost;
	n->dropped += counts.lost + !!counts.torn;
}

/* Where the samples of processes in containers are, which call devices by other numbers. */
static void describe_processes(const struct nps_capture *c, const struct nps_device_sampler *sampler,
			       const cJSON *processes)
{
	cJSON *j = cJSON_GetArrayItem(processes, 0);

	/* They are in this order, but for those that had no memory for an entry. */
	for (const struct nps_process *p = c->processes; p && j; p = p->next) {
		uint64_t used;
		cJSON *list;

		if (cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(j, "pid")) != (double)p->pid)
			continue;
		used = nps_device_sampler__used_by(sampler, p->pid);
		list = nps_process__foreign(p) ? cJSON_AddArrayToObject(j, "sampled_devices") : NULL;
		for (uint32_t d = 0; list && d < NPS_DEVICE_MAX; d++)
			if (used >> d & 1)
				cJSON_AddItemToArray(list, cJSON_CreateNumber(d));
		j = j->next;
	}
}

static void devices_describe(const struct nps_capture *c, const struct nps_source *s,
			     enum nps_section section, cJSON *session, cJSON *part)
{
	if (section != NPS_SECTION_DEVICES)
		return;
	/* By the host's numbers, which differ from those of a container. */
	nps_device_sampler__describe(s->state, session, part);
	if (s->state)
		describe_processes(c, s->state, cJSON_GetObjectItem(session, "processes"));
}

static void devices_print(const struct nps_capture *c, const struct nps_source *s, FILE *out)
{
	nps_device_sampler__print(s->state, c->end_mono - c->begin_mono, out);
}

static void devices_free(struct nps_capture *c, struct nps_source *s)
{
	c->shared.hung |= !nps_device_sampler__free(s->state);
	c->shared.devices = NULL;
}

const struct nps_source_ops nps_source_devices = {
	.name = "devices",
	.optional = true,
	.wanted = devices_wanted,
	.start = devices_start,
	.turn = devices_turn,
	.process = devices_process,
	.end = devices_end,
	.count = devices_count,
	.describe = devices_describe,
	.print = devices_print,
	.free = devices_free,
};
