/* SPDX-License-Identifier: BSD-2-Clause */
/* The helpers of all processes of a capture. */
#ifndef NPS_CAPTURE_AGENTS_H
#define NPS_CAPTURE_AGENTS_H

#include "capture/agent_client.h"
#include "capture/capture.h"

#define FOR_EACH_AGENT(c, p)                                                                                 \
	for (struct nps_process *p = (c)->processes; p; p = p->next)                                         \
		if (p->agent)

/* Moves new data of all helpers into the session. */
void nps_agents__drain(struct nps_capture *c);

/* Reports logs that have ended since the last call, and why. Call at least once a second. */
void nps_agents__report(struct nps_capture *c);

/* As nps_agents__drain(), and sends a heartbeat: to be called during anything that takes long. */
void nps_agents__keep(struct nps_capture *c);

/* The process has called exec: retires its helper's memory. */
void nps_agents__retire(struct nps_capture *c, struct nps_process *p);

/* Drains helpers until IS is true of all in live processes, for up to MS. Returns whether it is. */
bool nps_agents__wait(struct nps_capture *c, bool (*is)(const struct nps_agent_client *), int ms);

/*
 * Stops all helpers, until c->patience has RESERVE ns left; meanwhile TURN is called to notice processes
 * that exit. Prints a line for a log that is incomplete because its helper did not stop; a process that has
 * exited has no helper.
 */
void nps_agents__stop(struct nps_capture *c, uint64_t reserve, void (*turn)(struct nps_capture *));

/* Bytes lost of the process's task logs, by its helper and by those before an exec. */
uint64_t nps_agents__lost(const struct nps_process *p);

/* Devices whose task log helpers read, as bits; in a container the numbers are its own. */
uint64_t nps_agents__reported(struct nps_capture *c);

#endif
