/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture_agents.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

#include "log.h"

#define TURN_MS 40 /* between two looks at who has ended meanwhile */

static void log_ended(struct nps_capture *c, struct nps_process *p, int err)
{
	c->degraded = true;
	if (err == -EPROTO) {
		p->log_end = "damaged";
		nps_warn("pid %d: the memory of its helper makes no sense: its task log ends here: is the "
			 "helper of this version?",
			 p->pid);
	} else if (err == -E2BIG) {
		p->log_end = "breaks";
		nps_warn("pid %d: its task log ends here: it has more breaks, or more devices, than npuscope "
			 "keeps: is its helper npuscope's?",
			 p->pid);
	} else {
		p->log_end = "max_size";
		nps_warn("pid %d: its task log ends here: it has %" PRIu64 " MiB, as much as is left of "
			 "--max-size for all others: a larger one allows more",
			 p->pid, nps_channel_files__account(p->files)->used >> 20);
	}
}

static void tell_slowed(struct nps_capture *c, struct nps_process *p)
{
	if (p->slowed_told || nps_channel_files__account(p->files)->state != NPS_LOG_SLOWED)
		return;
	p->slowed_told = true;
	c->degraded = true;
	nps_warn("pid %d: its task log comes faster than npuscope reads that of one process: what its helper "
		 "cannot hold is lost: --max-log-rate allows more",
		 p->pid);
}

static void drain_one(struct nps_capture *c, struct nps_process *p)
{
	int err = nps_agent_client__drain(p->agent);

	tell_slowed(c, p);
	if (nps_agent_client__has_ended(err))
		log_ended(c, p, err);
	else if (err && !atomic_load(&c->session.events.error))
		atomic_store(&c->session.clocks.error, err);
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
		nps_task_source__drain(c->tasks);
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
		stopped = nps_agents__wait(c, nps_agent_client__idle, TURN_MS);
		turn(c);
	}
	FOR_EACH_AGENT(c, p)
	{
		if (!p->alive || !nps_agent_client__reads_tasks(p->agent))
			continue;
		nps_warn("pid %d: its helper had not read the rest of the task log when the capture ended (the "
			 "driver is slow, or the job is stopped): tasks that it did not read have bounds",
			 p->pid);
		c->degraded = true;
	}
}

uint64_t nps_agents__told(struct nps_capture *c)
{
	uint64_t told = 0;

	FOR_EACH_AGENT(c, p)
	for (uint32_t d = 0; d < NPS_DEVICE_MAX; d++)
		if (nps_agent_client__uses(p->agent, d))
			told |= 1ULL << d;
	return told;
}

uint64_t nps_agents__counted(struct nps_capture *c)
{
	uint64_t counted = 0;

	FOR_EACH_AGENT(c, p)
	{
		uint64_t own = nps_agent_client__counted(p->agent);

		counted |= own && nps_process__foreign(p) ? nps_device_sampler__used_by(c->devices, p->pid)
							  : own;
	}
	return counted;
}
