/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the logs of devices may cost a capture. A log comes through memory or a library that belongs to the job, so how much there is of
 * it is for the job to say: the account of a process (or of a sampled device) bounds its bytes, and the CPU time that reading
 * them takes. Of the bytes of a session a log may have as many as are left for everything else: one that floods ends
 * at half of them, two at a third each, and what others log still finds room.
 */
#ifndef NPS_LOG_BUDGET_H
#define NPS_LOG_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rate_limit.h"
#include "session_writer.h"

#define NPS_LOG_RATE (128ULL << 20) /* bytes a second of one log, unless --max-log-rate says otherwise */
#define NPS_LOG_BURST (32ULL << 20) /* at least, at once: the ring of a helper that was not read for a while */
#define NPS_LOG_DIRECTORIES 512 /* device_N of all processes together: each has files that are written at the end */

struct nps_log_budget {
	const struct nps_session *session;
	uint64_t max_size; /* bytes of the session */
	uint64_t per_second; /* bytes of one log */
	struct nps_rate_limit cpu; /* ns of the main thread, for whoever comes first of all helpers */
	unsigned int sharers; /* accounts that share the main thread's time */
	atomic_uint directories;
};

enum nps_log_state {
	NPS_LOG_OPEN,
	NPS_LOG_SLOWED, /* came faster than it may once; what does not fit is lost */
	NPS_LOG_ENDED, /* has all the bytes that it may */
};

/* One thread's. */
struct nps_log_account {
	struct nps_log_budget *budget; /* not owned */
	enum nps_log_state state;
	bool shares; /* the main thread's time */
	bool counted; /* as one that does */
	uint64_t used; /* bytes */
	struct nps_rate_limit bytes, cpu;
	struct nps_rate_limit fair; /* ns of the main thread that nobody else can use up */
};

/* BUDGET of a SESSION of MAX_SIZE bytes; outlives its accounts. PER_SECOND: bytes of one log. */
void nps_log_budget__init(struct nps_log_budget *b, const struct nps_session *session, uint64_t max_size,
			  uint64_t per_second);

/* A device_N directory more: 0, or -E2BIG when there are as many as there may be. */
int nps_log_budget__add_directory(struct nps_log_budget *b);

/* SHARES: the main thread reads the log, which has a limit for all that it reads. */
void nps_log_account__init(struct nps_log_account *a, struct nps_log_budget *budget, bool shares);

/* May more of the log be read now? If not, it waits where it is, and is lost there if that goes on. */
bool nps_log_account__may_read(struct nps_log_account *a);

/* BYTES are to be written: 0, or -EDQUOT: the log ends here. */
int nps_log_account__add_bytes(struct nps_log_account *a, uint64_t bytes);

/* Reading took NS of CPU time. */
void nps_log_account__add_cpu(struct nps_log_account *a, uint64_t ns);

#endif
