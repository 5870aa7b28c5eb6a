/* SPDX-License-Identifier: BSD-2-Clause */
/* Writers of result files. Each writes into DIRFD, a directory that becomes visible when all are done. */
#ifndef NPS_EXPORT_H
#define NPS_EXPORT_H

#include "json_writer.h"
#include "result.h"

/* trace_view.json. 0 or negative errno. */
int nps_export__trace(const struct nps_result *result, int dirfd);

/* The scheduling layers of the trace (insight 2.6), as events in order of time. */
struct nps_sched {
	const struct nps_result *result;
	struct nps_writer *w;
	uint64_t process, cpu; /* pids of the layers */
	struct nps_vec events; /* struct nps_key: time, run, what */
	size_t next;
};

/* Prepares the events and writes the rows that name the lanes. 0 or -ENOMEM. */
int nps_sched__init(struct nps_sched *sched, const struct nps_result *result, struct nps_writer *w);
/* Time of the next event, UINT64_MAX after the last. */
uint64_t nps_sched__time(const struct nps_sched *sched);
void nps_sched__write(struct nps_sched *sched);
void nps_sched__free(struct nps_sched *sched);

/* kernel_details.csv, op_statistic.csv, api_statistic.csv, step_trace_time.csv. */
int nps_export__csv(const struct nps_result *result, int dirfd);

/* ascend_pytorch_profiler_{rank}.db and analysis.db. PATH is DIRFD's path: SQLite wants one. */
int nps_export__db(const struct nps_result *result, int dirfd, const char *path);

/* profiler_info_{rank}.json and profiler_metadata.json. */
int nps_export__info(const struct nps_result *result, int dirfd, bool text, bool db);

/* The content of profiler_metadata.json; the caller frees it with cJSON_Delete(). NULL: no memory. */
struct cJSON *nps_export__metadata(const struct nps_result *result);

/* Name of system call NR of the session's architecture, NULL if it has none. */
const char *nps_syscall_name(const char *arch, uint32_t nr);

/* pid of a layer in the trace: (pid << 10) | (sort_index << 5) | device (outputs 2.2). */
static inline uint64_t nps_layer_pid(uint32_t pid, unsigned int sort_index, unsigned int device)
{
	return (uint64_t)pid << 10 | sort_index << 5 | device;
}

#define NPS_HOST_DEVICE 31 /* device field of layers that belong to the host */

/* Pieces of a trace event; NAME is escaped, "ph" comes last (insight 6.6). */
void nps_trace__begin(struct nps_writer *w, const char *name, uint64_t pid);
void nps_trace__tid(struct nps_writer *w, uint64_t tid);
void nps_trace__lane(struct nps_writer *w, const char *tid);
void nps_trace__time(struct nps_writer *w, uint64_t real, uint64_t dur);
void nps_trace__end(struct nps_writer *w, const char *ph);
/* The three rows that name a layer. */
void nps_trace__layer(struct nps_writer *w, uint64_t pid, const char *name, const char *label,
		      unsigned int sort_index);
void nps_trace__thread(struct nps_writer *w, uint64_t pid, uint64_t tid, const char *name, bool sorted);

#endif
