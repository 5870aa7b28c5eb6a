/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/capture_agents.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"

#define TURN_MS 40 /* between two checks for processes that have exited */

uint64_t nps_agents__lost(const struct nps_process *p)
{
	return nps_agent_client__lost(p->agent) + nps_agent_client__lost(p->former);
}

static void log_damaged(struct nps_capture *c, struct nps_process *p)
{
	p->log_end = "damaged";
	c->degraded = true;
	nps_warn("pid %d: the memory of its helper makes no sense: its task log ends here: is the helper of "
		 "this "
		 "version?",
		 p->pid);
}

/* The log of the helper, or of the job's own profiler. */
static void log_ended(struct nps_capture *c, struct nps_process *p)
{
	const struct nps_log_account *a = nps_channel_files__account(p->files);

	p->log_end = a->end;
	c->degraded = true;
	if (!strcmp(a->end, "max_size"))
		nps_warn("pid %d: its task log ends here: those of its owner have %" PRIu64
			 " MiB, as much as is left of --max-size for all others: a larger one allows more",
			 p->pid, (uint64_t)atomic_load(&a->owner->used) >> 20);
	else
		nps_warn("pid %d: its task log ends here: it has more %s than npuscope keeps: is its helper "
			 "npuscope's?",
			 p->pid, a->end);
}

static void drain_one(struct nps_capture *c, struct nps_process *p)
{
	int err = nps_agent_client__drain(p->agent);

	if (err == -EPROTO)
		log_damaged(c, p);
	else if (err && err != -ENOBUFS && !atomic_load(&c->session.events.error))
		atomic_store(&c->session.clocks.error, err);
}

void nps_agents__retire(struct nps_capture *c, struct nps_process *p)
{
	drain_one(c, p);
	c->degraded |= nps_agent_client__report_errors(p->agent, true);
	nps_agent_client__retire(&p->agent, &p->former);
}

void nps_agents__report(struct nps_capture *c)
{
	for (struct nps_process *p = c->processes; p; p = p->next)
		if (p->files && !p->log_end && nps_channel_files__account(p->files)->end)
			log_ended(c, p);
}

/* Final messages: a log that was slowed down but lost nothing is complete. */
static void log_finish(struct nps_process *p)
{
	uint64_t lost;

	nps_agent_client__finish(p->agent);
	lost = nps_agents__lost(p);
	if (lost && !p->log_end && nps_channel_files__account(p->files)->slowed)
		nps_warn("pid %d: %" PRIu64 " bytes of its task log are lost: it came faster than "
			 "--max-log-rate, or than a fifth of a CPU reads it",
			 p->pid, lost);
}

void nps_agents__drain(struct nps_capture *c)
{
	FOR_EACH_AGENT(c, p)
	drain_one(c, p);
}

void nps_agents__keep(struct nps_capture *c)
{
	FOR_EACH_AGENT(c, p)
	nps_agent_client__beat(p->agent);
	nps_agents__drain(c);
}

static bool all_agents(struct nps_capture *c, bool (*is)(const struct nps_agent_client *))
{
	FOR_EACH_AGENT(c, p)
	if (p->alive && !is(p->agent))
		return false;
	return true;
}

bool nps_agents__wait(struct nps_capture *c, bool (*is)(const struct nps_agent_client *), int ms)
{
	for (; ms > 0 && !all_agents(c, is); ms -= 5) {
		usleep(5000);
		nps_agents__drain(c);
		nps_sources__turn(c, NPS_TURN_DRAIN);
	}
	nps_agents__drain(c);
	return all_agents(c, is);
}

void nps_agents__stop(struct nps_capture *c, uint64_t reserve, void (*turn)(struct nps_capture *))
{
	bool stopped = false;

	FOR_EACH_AGENT(c, p)
	nps_agent_client__stop(p->agent);
	while (!stopped && nps_deadline__left(&c->patience) > reserve) {
		stopped = nps_agents__wait(c, nps_agent_client__drained, TURN_MS);
		turn(c);
	}
	nps_agents__report(c);
	FOR_EACH_AGENT(c, p)
	{
		log_finish(p);
		if (!p->alive || !nps_agent_client__reads_tasks(p->agent))
			continue;
		nps_warn("pid %d: its helper had not read the rest of the task log when the capture ended "
			 "(the "
			 "driver is slow, or the job is stopped): tasks that it did not read have bounds",
			 p->pid);
		c->degraded = true;
	}
}

uint64_t nps_agents__reported(struct nps_capture *c)
{
	uint64_t reported = 0;

	FOR_EACH_AGENT(c, p)
	for (uint32_t d = 0; d < NPS_DEVICE_MAX; d++)
		if (nps_agent_client__uses(p->agent, d) &&
		    nps_device_facts__believes(&c->shared.facts, p->uid, d, nps_process__foreign(p)))
			reported |= 1ULL << d;
	return reported;
}
