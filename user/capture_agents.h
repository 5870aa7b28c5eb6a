/* SPDX-License-Identifier: BSD-2-Clause */
/* The helpers of all processes of a capture. */
#ifndef NPS_CAPTURE_AGENTS_H
#define NPS_CAPTURE_AGENTS_H

#include "agent_client.h"
#include "capture.h"

#define FOR_EACH_AGENT(c, p)                                                                                 \
	for (struct nps_process *p = (c)->processes; p; p = p->next)                                         \
		if (p->agent)

/* Moves what has arrived into the session. */
void nps_agents__drain(struct nps_capture *c);

/* Says which logs have ended since the last call, and why. At least once a second. */
void nps_agents__report(struct nps_capture *c);

/* The same as nps_agents__drain(), with a sign of life: in whatever takes long. */
void nps_agents__keep(struct nps_capture *c);

/* A process is another program now: its helper's memory goes. */
void nps_agents__retire(struct nps_capture *c, struct nps_process *p);

/* Drains them until that IS so of all whose process lives, up to MS. Is it? */
bool nps_agents__wait(struct nps_capture *c, bool (*is)(const struct nps_agent_client *), int ms);

/*
 * The helpers flush and let go, until c->patience has RESERVE ns left; meanwhile TURN takes note of who ends. Of one that did not,
 * one line says that its log is not all there; a job that has ended has none.
 */
void nps_agents__stop(struct nps_capture *c, uint64_t reserve, void (*turn)(struct nps_capture *));

/* Bytes of task logs of its helpers that are lost, of this one and of those before exec. */
uint64_t nps_agents__lost(const struct nps_process *p);

/* Devices of whose log a helper tells, as bits; numbers of a container's are its own. */
uint64_t nps_agents__told(struct nps_capture *c);

#endif
