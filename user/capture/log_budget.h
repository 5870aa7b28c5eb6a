/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits of what logs of devices may cost a capture. A log comes through memory or a library that belongs
 * to the job, so the job controls its size. Each process (and each sampled device) has an account, which
 * limits its bytes a second and the CPU time of reading it. Shared resources (the session's bytes, the main
 * thread's time) are divided by owner, not by process, so that forking gains nothing.
 */
#ifndef NPS_LOG_BUDGET_H
#define NPS_LOG_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/process_owner.h"
#include "core/rate_limit.h"
#include "core/session_writer.h"

#define NPS_LOG_RATE (256ULL << 20) /* bytes a second of all logs, without --max-log-rate */
/* bytes read at once, at least: helpers' rings that were not read for a while */
#define NPS_LOG_BURST (64ULL << 20)
#define NPS_LOG_DIRECTORIES 256 /* device_N of one owner's processes: files of each are written at the end */
#define NPS_LOG_LINES 64 /* lines on the terminal about errors of one owner's helpers */

/* Rate of a shared resource: half of it on a first come, first served basis, half in equal parts. */
struct nps_log_pool {
	uint64_t per_second, burst;
	struct nps_rate_limit common;
};

enum { NPS_LOG_CPU, NPS_LOG_BYTES, NPS_LOG_POOLS };

/* The owner of processes, or a sampled device. */
struct nps_log_owner {
	struct nps_log_owner *next;
	struct nps_process_owner who;
	atomic_ullong used; /* bytes in the session */
	unsigned int directories, lines;
	struct nps_rate_limit part[NPS_LOG_POOLS];
};

struct nps_log_budget {
	const struct nps_session_writer *session;
	uint64_t max_size; /* bytes of the session */
	uint64_t per_second; /* bytes of all logs */
	struct nps_log_pool pool[NPS_LOG_POOLS]; /* of the main thread */
	struct nps_log_owner *owners;
	atomic_uint n_owners;
	unsigned int n_users; /* those that are no devices, and use the pools */
};

/* An account is used by one thread. */
struct nps_log_account {
	struct nps_log_budget *budget; /* not owned */
	struct nps_log_owner *owner; /* owned by the budget */
	bool has_thread; /* so it does not use the pools */
	bool slowed; /* more arrived than could be read at once */
	/* why nothing is written any more, "max_size", "breaks" or "devices"; NULL: the log goes on */
	const char *end;
	uint64_t used; /* bytes */
	struct nps_rate_limit bytes, cpu;
};

/* Initialises B for a SESSION of MAX_SIZE bytes. PER_SECOND: bytes of all logs; each can have half of it. */
void nps_log_budget__init(struct nps_log_budget *b, const struct nps_session_writer *session,
			  uint64_t max_size, uint64_t per_second);
void nps_log_budget__free(struct nps_log_budget *b);

/*
 * Opens an account of process PID; PID 0: of a sampled device, which has a thread of its own. 0 or -ENOMEM.
 */
int nps_log_account__init(struct nps_log_account *a, struct nps_log_budget *budget, pid_t pid);

/* May more of the log be read now? If not, data stays in the ring, and is lost there if that persists. */
bool nps_log_account__may_read(struct nps_log_account *a);

/*
 * BYTES are to be written. 0, or -ENOBUFS: the log ends here. With several owners that happens once one has
 * used more than is left for all others, and more than an equal part.
 */
int nps_log_account__add_bytes(struct nps_log_account *a, uint64_t bytes);

/* Adds a device_N directory. 0, or -ENOBUFS: the owner has reached the limit, and the log ends here. */
int nps_log_account__add_directory(struct nps_log_account *a);

/* Ends the log for another REASON (static). Returns -ENOBUFS. */
int nps_log_account__end(struct nps_log_account *a, const char *reason);

/* Adds NS of CPU time of reading. */
void nps_log_account__add_cpu(struct nps_log_account *a, uint64_t ns);

#endif
