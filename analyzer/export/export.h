/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writers of result files. Each reads a finished model, writes into DIRFD, a directory that becomes visible
 * when all are done, and returns 0 or a negative errno. They run in parallel threads: none adds texts to
 * the model or changes it, and each walks tables in their order with a struct nps_pace, so that memory
 * stays bounded. A file without rows is not written.
 */
#ifndef NPS_EXPORT_H
#define NPS_EXPORT_H

#include "export/formats.h"
#include "model/model.h"

struct nps_export {
	const struct nps_model *model;
	unsigned int formats; /* NPS_FORMAT_* */
	enum nps_generation generation; /* names of columns and layers to write */
	bool gzip; /* trace_view.json.gz in place of trace_view.json */
	char stamp[16]; /* of msprof's file names: yyyymmddHHMMSS of the capture's start, local time */
};

/* trace_view.json(.gz) in the torch layout, msprof_{stamp}.json in msprof's. */
int nps_export__trace(const struct nps_export *ex, int dirfd);

/* kernel_details.csv and the other tables of the torch layout (outputs 3.1, 3.2). */
int nps_export__torch_csv(const struct nps_export *ex, int dirfd);

/* op_summary_{stamp}.csv and the other tables of msprof's layout (outputs 3.4), 1,000,000 rows a slice. */
int nps_export__msprof_csv(const struct nps_export *ex, int dirfd);

/* Tables of sampled counters, either layout: pcie, hccs, nic, roce, ddr, hbm, llc, host_* (outputs 3.4). */
int nps_export__counter_csv(const struct nps_export *ex, int dirfd);

/* communication.json and communication_matrix.json (outputs 5.1, 5.2). */
int nps_export__communication(const struct nps_export *ex, int dirfd);

/* The rank's database (or msprof_{stamp}.db); PATH is DIRFD's path, because SQLite wants one. */
int nps_export__db(const struct nps_export *ex, int dirfd, const char *path);

/* analysis.db (outputs 4.7). */
int nps_export__analysis_db(const struct nps_export *ex, int dirfd, const char *path);

/* ftrace_data.db: how threads were scheduled, as MindStudio Insight reads it. */
int nps_export__ftrace_db(const struct nps_export *ex, int dirfd, const char *path);

/* driver_statistic.csv and npuscope_driver_tasks.csv, if the NPU's driver was traced. */
int nps_export__driver_csv(const struct nps_export *ex, int dirfd);

/* npuscope_host_breakdown.csv, npuscope_steps.csv. */
int nps_export__host_csv(const struct nps_export *ex, int dirfd);

/* npuscope.pftrace. */
int nps_export__perfetto(const struct nps_export *ex, int dirfd);

/* npuscope.folded: operator stacks and their time, for flame graphs. */
int nps_export__folded(const struct nps_export *ex, int dirfd);

/* npuscope_oncpu.folded, npuscope_offcpu.folded and the flame graphs of the same: stacks of the threads. */
int nps_export__stacks(const struct nps_export *ex, int dirfd);

/* npuscope_device_by_line.folded: device time by Python stack; there if there are any. */
int nps_export__python(const struct nps_export *ex, int dirfd);

/* npuscope_notes.txt: there if a value of the result is missing or stands in for one that is not known. */
int nps_export__notes(const struct nps_export *ex, int dirfd);

/* profiler_info_{rank}.json and profiler_metadata.json. */
int nps_export__info(const struct nps_export *ex, int dirfd);

#define NPS_HOST_DEVICE 31 /* device field of layers that belong to the host */

/*
 * pid of a layer in the trace: (pid << 10) | (sort_index << 5) | device (outputs 2.2). The vendor's fields
 * have 5 bits. The few sort indexes above 31 use the numbers from 2 on, which no layer has, because
 * Perfetto keeps 32 bits of a pid. Higher bits of a device follow those of the process: below 2^53, as
 * viewers in JavaScript need it. The host has the number of device 31, but the two have no layer in common.
 */
static inline uint64_t nps_layer_pid(uint32_t pid, unsigned int sort_index, unsigned int device)
{
	unsigned int position = sort_index < 32 ? sort_index : sort_index - 31;

	return (uint64_t)(device >> 5) << 43 | (uint64_t)pid << 10 | (position & 31) << 5 | (device & 31);
}

#endif
