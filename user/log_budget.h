/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the logs of devices may cost a capture. A log comes through memory or a library that belongs to the job, so how much there is of
 * it is for the job to say. Each process (and each sampled device) has an account, which bounds its bytes a second and the CPU
 * time that reading it takes. What all share (the bytes of the session, the main thread's time) is divided by owner, not by process: who
 * forks has no more of it.
 */
#ifndef NPS_LOG_BUDGET_H
#define NPS_LOG_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process_owner.h"
#include "rate_limit.h"
#include "session_writer.h"

#define NPS_LOG_RATE (256ULL << 20) /* bytes a second of all logs, unless --max-log-rate says otherwise */
#define NPS_LOG_BURST (64ULL << 20) /* at least, at once: helpers' rings that were not read for a while */
#define NPS_LOG_DIRECTORIES                                                                                  \
	256 /* device_N of one owner's processes: each has files that are written at the end */
#define NPS_LOG_LINES 64 /* of the terminal, about what one owner's helpers met */

/* So much a second of what all share: half of it for who comes first, half in equal parts. */
struct nps_log_pool {
	uint64_t per_second, burst;
	struct nps_rate_limit common;
};

enum { NPS_LOG_CPU, NPS_LOG_BYTES, NPS_LOG_POOLS };

/* Who is behind processes, or a sampled device. */
struct nps_log_owner {
	struct nps_log_owner *next;
	struct nps_process_owner who;
	atomic_ullong used; /* bytes of the session */
	unsigned int directories, lines;
	struct nps_rate_limit part[NPS_LOG_POOLS];
};

struct nps_log_budget {
	const struct nps_session *session;
	uint64_t max_size; /* bytes of the session */
	uint64_t per_second; /* bytes of all logs */
	struct nps_log_pool pool[NPS_LOG_POOLS]; /* of the main thread */
	struct nps_log_owner *owners;
	atomic_uint n_owners;
	unsigned int n_users; /* of them: those that are no devices, and use the pools */
};

/* One thread's. */
struct nps_log_account {
	struct nps_log_budget *budget; /* not owned */
	struct nps_log_owner *owner; /* the budget's */
	bool has_thread; /* of its own: the pools are not its */
	bool slowed; /* more came than could be read at once */
	const char
		*end; /* "max_size", "breaks" or "devices": nothing is written any more; NULL: it goes on */
	uint64_t used; /* bytes */
	struct nps_rate_limit bytes, cpu;
};

/* BUDGET of a SESSION of MAX_SIZE bytes. PER_SECOND: bytes of all logs; each can have half of it. */
void nps_log_budget__init(struct nps_log_budget *b, const struct nps_session *session, uint64_t max_size,
			  uint64_t per_second);
void nps_log_budget__free(struct nps_log_budget *b);

/* An account of process PID's; PID 0: of a sampled device, which has a thread of its own. 0 or -ENOMEM. */
int nps_log_account__init(struct nps_log_account *a, struct nps_log_budget *budget, pid_t pid);

/* May more of the log be read now? If not, it waits where it is, and is lost there if that goes on. */
bool nps_log_account__may_read(struct nps_log_account *a);

/*
 * BYTES are to be written. 0, or -ENOBUFS: the log ends here. Where there are several owners that is so once one has more than is
 * left for all others, and more than an equal part.
 */
int nps_log_account__add_bytes(struct nps_log_account *a, uint64_t bytes);

/* A device_N directory more. 0, or -ENOBUFS: the owner has as many as there may be, and the log ends here. */
int nps_log_account__add_directory(struct nps_log_account *a);

/* It ends for another REASON. Returns -ENOBUFS. */
int nps_log_account__end(struct nps_log_account *a, const char *reason);

/* Reading took NS of CPU time. */
void nps_log_account__add_cpu(struct nps_log_account *a, uint64_t ns);

#endif
