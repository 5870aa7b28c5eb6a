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

#include "capture/channel_files.h"
#include "core/proc_maps.h"
#include "core/session_writer.h"
#include "driver/aic_metrics.h"
#include "driver/device_facts.h"
#include "proftap.h"

struct nps_agent_client;

/*
 * Maps the shared memory of the process's helper. S and FILES, which receive
 * what the helper reads, are not owned and must outlive *OUT. 0; -ENOENT:
 * the process has no helper; another -errno, with the reason in `why`.
 */
int nps_agent_client__open(pid_t pid, const struct nps_maps *maps, struct nps_session_writer *s,
			   struct nps_channel_files *files, struct nps_agent_client **out, char *why,
			   size_t why_size);
/* Is the helper in a process with these mappings? */
bool nps_agent_client__present(const struct nps_maps *maps);
/*
 * Unmaps the memory and closes files, also those of chained former
 * helpers. Stop the helper first. NULL: does nothing.
 */
void nps_agent_client__free(struct nps_agent_client *a);

/*
 * After an exec: the drained helper at *CURRENT becomes the first of the chain *FORMER if it has delivered
 * anything, and is freed otherwise. *CURRENT is NULL then. With *FORMER only the functions below about
 * delivered data and device descriptions may be called; they cover the whole chain.
 */
void nps_agent_client__retire(struct nps_agent_client **current, struct nps_agent_client **former);

/*
 * Wakes the helper: it opens the task log, and the counters of METRIC,
 * of every device that its process has a context on.
 */
void nps_agent_client__start(struct nps_agent_client *a, enum nps_aic_metric metric);

/* Notifies the helper that devices may have changed. */
void nps_agent_client__poke(struct nps_agent_client *a);

/*
 * Moves new data into the session, as far as the account of FILES allows. Call at least every 100 ms.
 * -EPROTO: the memory is inconsistent; -ENOBUFS: the account ended the log; after either nothing more is
 * read. Another -errno: a write failed.
 */
int nps_agent_client__drain(struct nps_agent_client *a);

/* Call at least once a second: a heartbeat, and a request for clock samples. */
void nps_agent_client__tick(struct nps_agent_client *a);

/* A heartbeat only. */
void nps_agent_client__beat(struct nps_agent_client *a);

/* Requests that the helper flushes and releases its devices. */
void nps_agent_client__stop(struct nps_agent_client *a);
/* Has the helper done so? Keep draining until then, or until its process has exited. */
bool nps_agent_client__idle(const struct nps_agent_client *a);
/* Has it done so, and has all data been moved? */
bool nps_agent_client__drained(const struct nps_agent_client *a);
/*
 * Nothing is moved any more: remaining data counts as lost, and a helper that has not started will not start.
 */
void nps_agent_client__finish(struct nps_agent_client *a);
/* Has it the task log of a device open? */
bool nps_agent_client__reads_tasks(const struct nps_agent_client *a);

/* Is the task log of any device open? */
bool nps_agent_client__is_logging(const struct nps_agent_client *a);

/*
 * Was there a gap because this program was not scheduled for seconds? NULL, here and below: no helper, so no.
 */
bool nps_agent_client__interrupted(const struct nps_agent_client *a);

/* Was a task log ever open during this capture? */
bool nps_agent_client__delivered(const struct nps_agent_client *a);

/* Has its process a context on the device? */
bool nps_agent_client__uses(const struct nps_agent_client *a, uint32_t device);

/* Bit d: it has the task log of device d, and counts the device's cores by task, or will. */
uint64_t nps_agent_client__counted(const struct nps_agent_client *a);

/*
 * Warns the user of driver errors that the helper met, each once; the capture goes on. At the END also of
 * channels that it did not get; returns true if there are any.
 */
bool nps_agent_client__report_errors(struct nps_agent_client *a, bool end);

/* Why no device is recording, in words; "" if one is. */
void nps_agent_client__reason(const struct nps_agent_client *a, char *buf, size_t size);

uint64_t nps_agent_client__lost(const struct nps_agent_client *a);
uint64_t nps_agent_client__bytes(const struct nps_agent_client *a);

/*
 * Requests that the helper releases a device until it may open it again. HOLD
 * is the value of nps_agent_client__hold() from before the caller checked that
 * the reason has ended: if the helper has released the device once more since
 * then, come_back() does nothing. hold() returns 0 if the device is not held.
 */
uint32_t nps_agent_client__hold(const struct nps_agent_client *a, unsigned device);
void nps_agent_client__let_go(struct nps_agent_client *a, unsigned device);
void nps_agent_client__come_back(struct nps_agent_client *a, unsigned device, uint32_t hold);

/*
 * Announces that the collector has channels of the device open, or has released them: a thread of the job
 * that starts one waits for that. False, when opening after HOLD was read: the helper has released the
 * device once more since, so such a thread is about to start one.
 */
bool nps_agent_client__sampled(struct nps_agent_client *a, unsigned device, bool sampled, uint32_t hold);

/*
 * The signal with which a thread of the job is made to wait until the helper has released a device, and its
 * handler. False: there is none.
 */
bool nps_agent_client__signal(const struct nps_agent_client *a, struct nps_tap_helper *helper);

/*
 * Adds {"id","freq_khz","chip",...} of the helper's devices to the array, unless they are in it, if FACTS
 * accepts them from a helper of user UID (in a container if FOREIGN).
 */
void nps_agent_client__describe_devices(const struct nps_agent_client *a,
					const struct nps_device_facts *facts, uid_t uid, bool foreign,
					cJSON *devices);

/*
 * Adds the events of the cores' counters to the entries of its devices. npuscope has chosen them, so this
 * does not depend on whose word on the chip was accepted.
 */
void nps_agent_client__describe_events(const struct nps_agent_client *a, cJSON *devices);

#endif
