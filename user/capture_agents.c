/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture_agents.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "log.h"

#define STOP_MS 3000 /* how long the helpers may take to flush */
#define TURN_MS 100 /* between two looks at who has ended meanwhile */

void nps_agents__drain(struct nps_capture *c)
{
	FOR_EACH_AGENT(c, p)
	{
		int err = nps_agent_client__drain(p->agent);

		if (err == -EPROTO)
			nps_warn("pid %d: its helper's memory makes no sense: its task log ends here",
				 p->pid);
		if (err && !atomic_load(&c->session.events.error))
			atomic_store(&c->session.clocks.error, err);
	}
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

void nps_agents__stop(struct nps_capture *c, void (*turn)(struct nps_capture *))
{
	bool stopped = false;

	FOR_EACH_AGENT(c, p)
	nps_agent_client__stop(p->agent);
	for (int ms = 0; !stopped && ms < STOP_MS; ms += TURN_MS) {
		stopped = nps_agents__wait(c, nps_agent_client__idle, TURN_MS);
		turn(c);
	}
	FOR_EACH_AGENT(c, p)
	{
		if (!p->alive || !nps_agent_client__reads_tasks(p->agent))
			continue;
		nps_warn("pid %d: its helper had not read the rest of the task log %d s after the "
			 "capture (the driver is slow, or the job is stopped): tasks that it did not read "
			 "have bounds",
			 p->pid, STOP_MS / 1000);
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
