/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collector's end of the helper library's shared memory (kheaders/agent.h).
 * The memory belongs to the job: every number in it is checked before it is used.
 */
#ifndef NPS_AGENT_CLIENT_H
#define NPS_AGENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "aic_metrics.h"
#include "channel_files.h"
#include "device_facts.h"
#include "proc_maps.h"
#include "proftap.h"
#include "session_writer.h"

struct nps_agent_client;

/*
 * Maps the helper of a process, if there is one. Returns 0, -ENOENT when the job was
 * started without it, or another -errno; `why` then says so in words. What the helper reads goes to FILES.
 */
int nps_agent_client__open(pid_t pid, const struct nps_maps *maps, struct nps_session *s,
			   struct nps_channel_files *files, struct nps_agent_client **out, char *why,
			   size_t why_size);
/* Is the helper in a process with these mappings? */
bool nps_agent_client__present(const struct nps_maps *maps);
/* Releases the memory and closes files, of those chained to it too; the helper should have been stopped. NULL: nothing. */
void nps_agent_client__free(struct nps_agent_client *a);

/*
 * The process is another program now: the helper at *CURRENT, which has been drained, becomes the first of the chain *FORMER
 * if it has delivered, and is freed otherwise. *CURRENT is NULL then. Of *FORMER only what was delivered may be asked, here
 * below, and its devices described: of all that are chained to it.
 */
void nps_agent_client__retire(struct nps_agent_client **current, struct nps_agent_client **former);

/*
 * Wakes the helper: it opens the task log, and the counters of METRIC, of every device that its process has a context on.
 */
void nps_agent_client__start(struct nps_agent_client *a, enum nps_aic_metric metric);

/* Tells the helper that devices may have changed. */
void nps_agent_client__poke(struct nps_agent_client *a);

/*
 * Moves what has arrived into the session, as far as the account of FILES allows. Call at least every 100 ms. -EPROTO: the memory
 * makes no sense; -ENOBUFS: the account ended the log: with either nothing more is read of it. Another -errno: a write failed.
 */
int nps_agent_client__drain(struct nps_agent_client *a);

/* At least once a second: sign of life, and a request for clock samples. */
void nps_agent_client__tick(struct nps_agent_client *a);

/* A sign of life alone. */
void nps_agent_client__beat(struct nps_agent_client *a);

/* Asks the helper to flush and let go. */
void nps_agent_client__stop(struct nps_agent_client *a);
/* Has it? Keep draining until it has, or has died. */
bool nps_agent_client__idle(const struct nps_agent_client *a);
/* Has it, and has all been moved? */
bool nps_agent_client__drained(const struct nps_agent_client *a);
/* Nothing is moved any more: what is left counts as lost, and a helper that has not started does not. */
void nps_agent_client__finish(struct nps_agent_client *a);
/* Has it the task log of a device open? */
bool nps_agent_client__reads_tasks(const struct nps_agent_client *a);

/* Is the task log of any device open? */
bool nps_agent_client__recording(const struct nps_agent_client *a);

/* Was there a gap because this program did not get to run for seconds? NULL, here and below: of none there was. */
bool nps_agent_client__interrupted(const struct nps_agent_client *a);

/* Was it ever open during this capture? */
bool nps_agent_client__delivered(const struct nps_agent_client *a);

/* Has its process a context on the device? */
bool nps_agent_client__uses(const struct nps_agent_client *a, uint32_t device);

/* Bit d: it has the task log of device d, and counts, or is to count, its cores by task. */
uint64_t nps_agent_client__counted(const struct nps_agent_client *a);

/*
 * Tells the user of errors of the driver that the helper met, each once; the capture goes on. At the END also of channels that
 * it did not get; true if there are such.
 */
bool nps_agent_client__say(struct nps_agent_client *a, bool end);

/* Why no device is recording, in words; "" if one is. */
void nps_agent_client__reason(const struct nps_agent_client *a, char *buf, size_t size);

uint64_t nps_agent_client__lost(const struct nps_agent_client *a);
uint64_t nps_agent_client__bytes(const struct nps_agent_client *a);

/*
 * The helper lets go of a device, until told that it may come back. HOLD: what nps_agent_client__hold() said before the
 * reason was looked at: where the helper has let go once more since then, it does not come back. 0: it holds nothing back.
 */
uint32_t nps_agent_client__hold(const struct nps_agent_client *a, unsigned device);
void nps_agent_client__let_go(struct nps_agent_client *a, unsigned device);
void nps_agent_client__come_back(struct nps_agent_client *a, unsigned device, uint32_t hold);

/*
 * The collector has channels of the device open, or has let go of them: a thread of the job that starts one waits for that.
 * When it says so after HOLD was read, and the helper has let go once more since then, such a thread is on its way: false.
 */
bool nps_agent_client__sampled(struct nps_agent_client *a, unsigned device, bool sampled, uint32_t hold);

/* The signal at which a thread of the job waits until the helper has let go, and its handler. False: there is none. */
bool nps_agent_client__signal(const struct nps_agent_client *a, struct nps_tap_helper *helper);

/*
 * Adds {"id","freq_khz","chip",...} of its devices to the array unless they are there; but of those alone of which FACTS believe it: the
 * helper of a process of UID, in a container if FOREIGN.
 */
void nps_agent_client__describe_devices(const struct nps_agent_client *a,
					const struct nps_device_facts *facts, uid_t uid, bool foreign,
					cJSON *devices);

/* Adds to the entries of its devices what counters count, which npuscope has chosen: whoever said which chip they are. */
void nps_agent_client__describe_events(const struct nps_agent_client *a, cJSON *devices);

#endif
