/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the import of CANN's raw data share. The host's records become launches and host tasks,
 * the device's records become runs; both are then joined by their keys. Nothing is held in memory: rows are
 * in temporary files that are read in order, and all orders are made by external sorts.
 */
#ifndef NPS_CANN_CAPTURE_H
#define NPS_CANN_CAPTURE_H

#include "base/ext_sort.h"
#include "import/cann/control.h"
#include "import/cann/dictionary.h"
#include "import/cann/tensors.h"
#include "import/common/collectives.h"

#include <stddef.h>

/* Levels of host records (prof-raw 2.0). */
enum nps_cann_level {
	NPS_LEVEL_TX = 20500,
	NPS_LEVEL_ACL = 20000,
	NPS_LEVEL_MODEL = 15000,
	NPS_LEVEL_NODE = 10000,
	NPS_LEVEL_AICPU = 6000,
	NPS_LEVEL_COMM = 5500,
	NPS_LEVEL_RUNTIME = 5000
};

#define NPS_NO_CONTEXT UINT32_MAX
#define NPS_DEVICES_MAX 256 /* of one process */

/* What the runtime submitted: one task_track record. */
struct nps_launch {
	uint64_t submit; /* Unix ns, 0 unknown: no record names the call that ran a graph */
	int64_t bytes; /* of a copy, NPS_NULL unknown */
	uint32_t stream, task, batch;
	uint32_t type; /* text */
	uint32_t kernel; /* text: the name of the function, NPS_NONE unknown */
	uint32_t connection, model;
	uint16_t device;
	uint16_t operation; /* of a copy */
	uint8_t kind; /* enum nps_launch_kind */
};

enum nps_launch_kind {
	NPS_LAUNCH_OTHER,
	NPS_LAUNCH_KERNEL,
	NPS_LAUNCH_MIX, /* a kernel that may be logged as context 0 */
	NPS_LAUNCH_FFTS, /* a graph of contexts */
	NPS_LAUNCH_COPY,
	NPS_LAUNCH_EVENT
};

/* What is expected to run: a launch, or one context of it. */
struct nps_host_task {
	uint32_t launch; /* row */
	uint32_t context;
	uint32_t kernel; /* row of kernels, NPS_NONE: no kernel */
	uint32_t part; /* row of parts, NPS_NONE: not of a collective */
};

/* What is known of a kernel; texts are NPS_NONE if unknown. */
struct nps_kernel_info {
	uint32_t name, core, type, attributes;
	uint32_t tensors; /* list, NPS_NONE unknown */
	uint32_t blocks, mix_blocks;
	uint32_t grid, block_dim;
	uint8_t state; /* enum nps_op_state */
	uint8_t hf32; /* 0 no, 1 yes, 2 unknown */
};

enum nps_op_state { NPS_STATE_STATIC, NPS_STATE_DYNAMIC, NPS_STATE_UNKNOWN };

/* A task of a collective, from hccl_info. */
struct nps_part_info {
	uint64_t group; /* hash, 0 unknown */
	uint64_t notify;
	int64_t bytes; /* NPS_NULL unknown */
	double estimate; /* us */
	uint32_t op; /* row of collectives */
	uint32_t context;
	uint32_t name; /* text: Memcpy, Notify_Wait, ... */
	uint32_t plane, local, remote, ranks;
	uint32_t dtype, link, transport, rdma;
	uint32_t known; /* 0: there was no hccl_info */
	uint32_t master;
	uint32_t runs; /* number of the latest run of the call that it was seen in, from 1; 0: of none */
};

/* A collective as the host called it, or a further run of it. begin is in counts of the host. */
struct nps_host_collective {
	struct nps_collective run;
	uint32_t latest; /* row of the latest run of a call */
};

/* One run of a task on a device. Rows by start. */
struct nps_cann_run {
	uint64_t start, end; /* end 0: unknown */
	uint32_t stream, task, context, batch;
	uint32_t blocks; /* from the device, 0 unknown */
	uint16_t device; /* its number */
	uint8_t source; /* enum nps_run_source */
	uint8_t type; /* as logged */
};

enum nps_run_source { NPS_RUN_STARS, NPS_RUN_CONTEXT, NPS_RUN_HWTS, NPS_RUN_TRACK, NPS_RUN_BLOCK };

/* One block of a kernel on its core. */
struct nps_block_run {
	uint64_t start, end; /* end 0: unknown */
	uint32_t stream, task;
	uint16_t device, block;
	uint8_t core; /* number */
	uint8_t vector; /* 0 AI core, 1 vector core */
};

/* Counters of one run: [0] of AI cores, [1] of vector cores. */
struct nps_run_pmu {
	uint64_t cycles[2];
	uint64_t values[2][NPS_CANN_EVENTS];
	uint32_t blocks[2]; /* of which it has a record each, 0 unknown */
	uint8_t main; /* which of the two the task's own record is about, 2: there was none */
};

/* What the task logs lack. */
struct nps_log_counts {
	uint64_t no_end, open; /* starts without an end: lost; still to come where the log ends */
	uint64_t no_start, repeated, no_task;
	uint64_t half_blocks; /* starts or ends of blocks without the other */
};

struct nps_cann_capture {
	struct nps_model *model;
	int err; /* the first one: allocation or disk */
	struct nps_cann_dir host; /* host.fd < 0: there is none */
	struct nps_cann_dir *devices;
	size_t ndevices;
	bool v6, batches; /* ids of 32 bits; ids of 16 bits that wrap */
	bool expanded; /* streams of 15 bits, though no file of the host states it */
	struct nps_dictionary names;
	struct nps_tensors tensors;

	struct nps_vec launches; /* struct nps_launch by submission */
	struct nps_vec host_tasks; /* struct nps_host_task */
	struct nps_vec kernels; /* struct nps_kernel_info */
	struct nps_vec parts; /* struct nps_part_info */
	struct nps_vec collectives; /* struct nps_host_collective: calls, then further runs */
	struct nps_vec runs; /* struct nps_cann_run */
	struct nps_vec run_pmus; /* struct nps_run_pmu */
	struct nps_vec block_runs; /* struct nps_block_run by start */
	/* uint64_t: times of records of tasks, and of counters, before which others were not read */
	struct nps_vec task_breaks, pmu_breaks;
	struct nps_ext_sort pmu_order; /* struct nps_row_pair: run, row of run_pmus */
	struct nps_ext_sort marks; /* struct nps_mark: of mstx on devices */
	struct nps_ext_sort steps; /* struct nps_step_mark */
	struct nps_ext_sort matches; /* struct nps_match by run */
	struct nps_log_counts log_counts;
};

struct nps_row_pair {
	struct nps_sort_key key; /* high: first row, low: second */
};

/* A run and the host task it belongs to. */
struct nps_match {
	struct nps_sort_key key; /* high: run; low: host task */
};
#define NPS_MATCH_PARENT UINT32_MAX /* for a host task: the run is the graph of other runs */

struct nps_mark {
	struct nps_sort_key key; /* high: id, low: Unix ns */
	uint32_t tag, device;
};

/* A step trace row. */
struct nps_step_mark {
	struct nps_sort_key key; /* high: device << 32 | model, low: Unix ns */
	uint64_t index;
	uint32_t tag;
};

/* An empty capture that fills MODEL, and its end. */
void nps_cann_capture__init(struct nps_cann_capture *capture, struct nps_model *model);
void nps_cann_capture__free(struct nps_cann_capture *capture);

/* Room for a row of one of the files above; NULL, with capture->err, without memory or disk. */
void *nps_cann_capture__push(struct nps_cann_capture *capture, struct nps_vec *vec);

/* Room in a sorter; NULL, with capture->err, without memory or disk. */
void *nps_cann_capture__sort(struct nps_cann_capture *capture, struct nps_ext_sort *sort);

/* The collective in ROW. */
static inline struct nps_collective *nps_capture__collective(const struct nps_cann_capture *capture,
							     size_t row)
{
	return &NPS_AT(&capture->collectives, struct nps_host_collective, row).run;
}

/* Releases the memory of rows of VEC on every 65536th call with the same *STEPS. */
static inline void nps_cann_capture__step(const struct nps_vec *vec, uint32_t *steps)
{
	if (!(++*steps & 0xffff))
		nps_vec__cool(vec);
}

/* --- the parts, in this order; each returns 0 or a negative errno --------------------------------- */

/* host_records.c: everything the host recorded goes to EVENTS in order of time; see host_records.h. */
/* host_tree.c: calls become api rows, launches and host tasks. */
int nps_cann_capture__host(struct nps_cann_capture *capture);

/* device_log.c: logs of all devices become runs with their counters, and marks. */
int nps_cann_capture__devices(struct nps_cann_capture *capture);

/* aicore.c: the counters of chips before Stars. */
int nps_cann_capture__aicore(struct nps_cann_capture *capture);

/* join.c: finds the host task of each run. */
int nps_cann_capture__join(struct nps_cann_capture *capture);

/* fill.c: the model's tasks, kernels, copies, counters, parts of collectives. */
int nps_cann_capture__fill(struct nps_cann_capture *capture);

/* mstx.c: ranges and marks, with the devices' times of them. */
int nps_cann_capture__mstx(struct nps_cann_capture *capture);

/* steps.c: iterations and their parts, as the devices traced them. */
int nps_cann_capture__steps(struct nps_cann_capture *capture);

/* How far off the devices' clocks can be while the model lasts: rows of the model's table `clock`. */
void nps_cann_capture__trust(struct nps_cann_capture *capture);

#endif
