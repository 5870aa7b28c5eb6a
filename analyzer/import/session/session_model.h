/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model of a session: tables that the importers and joins fill and the exporters read. Times are
 * CLOCK_MONOTONIC ns unless a name has another unit; texts are ids of model->strings.
 */
#ifndef NPS_SESSION_MODEL_H
#define NPS_SESSION_MODEL_H

#include "import/session/catalog_info.h"
#include "import/session/history.h"
#include "import/session/host_samples.h"
#include "import/session/npu_files.h"
#include "import/cann/capture.h"
#include "import/common/collectives.h"
#include "clock/map.h"
#include "base/string_table.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct cJSON;
struct nps_progress;

#define NPS_MAX_PROCS 4096
#define NPS_MAX_DEVICES 64

/* SQE types of the 910B (stars v1) that the analyzer distinguishes. */
enum nps_sqe_type {
	NPS_SQE_AI_CORE = 0,
	NPS_SQE_AI_CPU = 1,
	NPS_SQE_AIV = 2,
	NPS_SQE_PLACE_HOLDER = 3,
	NPS_SQE_EVENT_RECORD = 4,
	NPS_SQE_EVENT_WAIT = 5,
	NPS_SQE_NOTIFY_RECORD = 6,
	NPS_SQE_NOTIFY_WAIT = 7,
	NPS_SQE_WRITE_VALUE = 8,
	NPS_SQE_SDMA = 11,
	NPS_SQE_DSA = 15,
	NPS_SQE_PCIE_DMA = 17,
	/* Tasks of other chips that have no number here; and all that is not distinguished. */
	NPS_SQE_DVPP = 56,
	NPS_SQE_CMO = 57,
	NPS_SQE_CCU = 58,
	NPS_SQE_CONDITION = 59,
	NPS_SQE_UNLISTED = 60,
	NPS_SQE_INVALID = 63, /* slot of a longer SQE */
};
#define NPS_SQE_TYPE_BITS 0x3f /* of nps_sqe_head.type */

/* A task that computes, as opposed to one that copies or waits. */
static inline bool nps_is_kernel(unsigned int sqe_type)
{
	return sqe_type == NPS_SQE_AI_CORE || sqe_type == NPS_SQE_AI_CPU || sqe_type == NPS_SQE_AIV ||
	       sqe_type == NPS_SQE_DSA;
}

enum nps_task_kind { NPS_TASK_OTHER = 0, NPS_TASK_COMPUTE, NPS_TASK_MEMCPY, NPS_TASK_EVENT };

/* A row of the CANN layer. */
struct nps_cann {
	uint64_t start, end;
	uint32_t tid;
	uint32_t name; /* symbol */
	uint32_t item; /* node rows: the operator; else NPS_NONE */
	uint32_t conn; /* connection id: 1, 2, ... in order of start */
	uint8_t level; /* enum nps_layer */
	uint8_t ending; /* enum nps_ending of the model */
};

/* One submitted SQE. */
struct nps_sub {
	uint64_t begin, end; /* of the submitting call */
	uint64_t size; /* bytes, memory copies; 0 unknown */
	uint32_t proc, tid;
	uint32_t cann; /* row of the process's CANN table, NPS_NONE if none */
	uint32_t comm; /* collective of the process, NPS_NONE if none */
	uint32_t name, type;
	uint32_t function; /* that a kernel was registered as, NPS_NONE unknown */
	uint32_t batch; /* wraps of the task id seen before */
	uint32_t task_row; /* NPS_NONE: no device record */
	uint32_t run; /* of an operator (names.h), NPS_NONE if none; after the walk the list of its tensors */
	uint32_t memcpy_call; /* number of the copying call it belongs to, NPS_NONE if none */
	uint32_t task;
	uint16_t device, stream, blocks;
	uint8_t sqe_type, kind; /* enum nps_sqe_type, nps_task_kind */
	uint8_t memcpy_op; /* of ENUM_MEMCPY_OPERATION, 255 none */
	bool open_ended; /* no record of its return: `end` is that of the call around it */
};

/* Bounds of the times of a task that was not measured; UINT64_MAX: open. */
struct nps_bounds {
	uint64_t start_low, start_high, end_low, end_high;
};

struct nps_task {
	uint64_t start, end; /* host bounds: both the submission */
	uint64_t submit; /* 0: before the capture */
	uint64_t size;
	uint32_t proc;
	uint32_t conn; /* NPS_NONE none */
	uint32_t stream, batch, context;
	uint32_t name, type;
	uint32_t function; /* as in nps_sub */
	uint32_t comm; /* collective, NPS_NONE if none */
	uint32_t step; /* row of the process's steps, NPS_NONE outside */
	uint32_t bounds; /* row of model->bounds, NPS_NONE: the device's log */
	uint32_t operands; /* list of model->tensors, NPS_NONE unknown */
	uint32_t pmu; /* row of model->run_pmus, NPS_NONE: none */
	uint32_t task;
	uint16_t device, blocks;
	uint8_t sqe_type, kind, memcpy_op;
	uint8_t core; /* enum nps_sqe_type, or 6 + 64 / 7 + 64 for MIX_AIC / MIX_AIV */
};

#define NPS_CORE_MIX_AIC (64 + 6)
#define NPS_CORE_MIX_AIV (64 + 7)

/* A Hccl call that queued tasks. */
struct nps_comm_op {
	struct nps_collective run; /* times: CLOCK_MONOTONIC */
	uint32_t node, launch; /* its CANN rows */
};

/* Where the job got an executor for a run: it entered the first phase, or its cache answered. */
struct nps_planner {
	uint64_t time; /* CLOCK_MONOTONIC, of the call's start; 0: it was not seen */
	uint32_t tid;
};

/* A launch, row `cann`, of a run that another thread planned. */
struct nps_planned_call {
	struct nps_planner planner;
	uint32_t cann;
};

struct nps_step {
	uint64_t number, start, end;
};

/* Short calls of one thread and number, all of the capture together; times in ns. */
struct nps_os_sum {
	uint64_t first, last, count, errors, total, shortest, longest, bytes;
	uint32_t tid;
	uint16_t nr;
	uint8_t flags;
};

/* What a thread did, in sums; I/O by direction: 0 read, 1 written. */
struct nps_os_thread {
	uint64_t minor, major, major_ns; /* page faults */
	uint64_t requests[2], bytes[2], ns[2]; /* of block devices */
	uint32_t tid;
};

/* A completion record that the runtime collected, of a task that ended well. */
struct nps_cqe {
	uint64_t done; /* the call that collected it returned */
	uint64_t count; /* of the device's counter, when the event was recorded; 0 none */
	uint32_t proc;
	uint16_t device, stream, task;
	uint8_t sqe_type; /* enum nps_sqe_type */
};

/* A mark or a range of mstx. */
struct nps_mstx_mark {
	uint64_t start, end; /* end 0: not seen */
	uint64_t range, domain; /* its number, 0 none; handle, 0 the default one */
	uint32_t tid, end_tid;
	uint32_t message, domain_name; /* texts */
	uint32_t outer; /* row of the range around it, if they have no numbers */
	uint8_t type; /* ENUM_MSTX_EVENT_TYPE */
};

enum nps_memory_kind { NPS_MEMORY_DEVICE = 0, NPS_MEMORY_HOST = 1 };

/* An outermost call that got memory, or gave it back. */
struct nps_alloc {
	uint64_t time, address, size;
	uint16_t device, user; /* UINT16_MAX unknown; number that the thread gave to aclrtSetDevice */
	uint8_t kind; /* enum nps_memory_kind */
	bool free, handle; /* handle: `address` is none */
};

/* Memory of one device and kind after a change. */
struct nps_memory_total {
	uint64_t time;
	int64_t delta, bytes, blocks;
	/* Calls of the process until then that freed memory from before the capture. */
	uint64_t unknown_frees;
	uint16_t device;
	uint8_t kind;
};

struct nps_proc {
	uint32_t pid;
	bool known; /* session.json lists it */
	bool has_rank;
	uint32_t rank, world_size;
	uint32_t comm; /* name of the process */
	const struct cJSON *json; /* its entry in session.json, NULL if none */
	struct nps_vec cann; /* struct nps_cann */
	struct nps_vec cann_order; /* uint32_t: rows by start */
	struct nps_vec comms; /* struct nps_comm_op */
	struct nps_vec steps; /* struct nps_step */
	struct nps_vec os_calls; /* struct nps_event: SYSCALL, and FAULT of a major fault */
	struct nps_vec os_sums; /* struct nps_os_sum */
	struct nps_vec os_spans; /* struct nps_event: SYSCALL_SUM */
	struct nps_vec os_locks; /* struct nps_event: LOCK */
	struct nps_vec os_threads; /* struct nps_os_thread */
	struct nps_map os_sum_of, os_thread_of; /* their rows */
	struct nps_vec runs; /* struct nps_event: SCHED */
	struct nps_vec irqs; /* struct nps_event: IRQ */
	struct nps_vec drivers; /* struct nps_event: DRIVER to DRIVER_DMA */
	struct nps_vec torch; /* struct nps_event: API of PyTorch's functions */
	struct nps_vec inputs; /* struct nps_event: INPUT */
	struct nps_vec planned; /* struct nps_planned_call */
	struct nps_vec py_entries; /* struct nps_event: PYSTACK */
	struct nps_vec allocator; /* struct nps_event: MEMORY */
	struct nps_vec marks; /* struct nps_mstx_mark */
	struct nps_vec allocs; /* struct nps_alloc; until their totals are made */
	struct nps_vec memory; /* struct nps_memory_total by time */
	uint64_t unknown_frees;
	size_t first_task, tasks; /* of model->tasks, by start */
	uint64_t devices; /* bit d: used device d */
	uint64_t launches, matched, bounded, unsubmitted;
	/* Answers of the job's cache of executors from before the capture. */
	uint64_t unseen_executors;
	bool without_helper; /* its mappings are known, and the helper library is none of them */
	uint32_t helper_threads; /* threads of the helper library, which are left out */
	/* Executors that ran without a first phase in the capture, or an answer of that cache. */
	uint64_t unseen_phases;
};

struct nps_device {
	uint64_t freq_khz; /* of the counter; 0 unknown */
	const char *chip;
	bool has_platform;
	uint32_t platform; /* enum nps_cann_chip */
	const struct cJSON *json; /* its entry in session.json, NULL if none */
};

/*
 * The task log of one device as one process delivered it. Device numbers are the process's own
 * (containers renumber them), so nothing here is shared between processes.
 */
struct nps_device_log {
	uint32_t proc;
	uint16_t device;
	bool fitted, has_log;
	struct nps_clock_map clock;
	uint64_t records, lost, incomplete;
	uint64_t gaps; /* of the running numbers: `lost`, modulo 16 */
	uint64_t task_records, task_gaps; /* of those of tasks alone */
	uint64_t rounds; /* of the driver's ring that were overwritten before they were read */
	uint64_t uncounted; /* kernels without counters between others that have theirs */
	uint64_t error; /* ns that times can be wrong by, against CLOCK_MONOTONIC */
	uint32_t record_bytes; /* of one of a task */
	/* uint64_t, ascending: counts at which tasks, or counters, go on after a gap of the collector's */
	struct nps_vec task_breaks, pmu_breaks;
	bool pmu_unsure; /* there are such gaps of counters whose records have no time */
	uint64_t orphans; /* ends without a start */
	uint64_t stray_counters; /* records of counters of which no task is known */
};

/* A block of a kernel, of a task log. */
struct nps_task_block {
	uint32_t proc;
	bool whole_id; /* the task's number identifies the stream */
	struct nps_block_run run; /* times: counts of the device, until nps_clock_align__blocks() */
};

struct nps_losses {
	uint64_t ring[128]; /* by enum nps_kind, nps_string_what */
	uint64_t agent_bytes, sqe, pids;
	uint64_t uncertain; /* submissions of calls that failed: they may have reached the device, or not */
	uint64_t host; /* processes and devices that were not sampled */
	uint64_t device_records; /* gaps of the 4-bit counter */
	uint64_t device_samples; /* of devices that were overwritten before they were read */
	bool cut; /* capture or a file ends early */
};

/* python.nps, see python_stacks.h. */
struct nps_python_stacks {
	struct nps_vec codes, lines, stacks;
	struct nps_map code_of, stack_of; /* their rows */
	struct nps_map text_of; /* hash of a text of frames -> its id */
	uint64_t damaged; /* chunks that make no sense from some point on */
	uint64_t searched, unsearched; /* bytes of line tables; frames whose line that was too many for */
};

struct nps_session {
	int tmpfd; /* directory for temporary files */
	int dirfd; /* the session */
	struct nps_progress *progress; /* NULL: none is shown; not owned */
	struct cJSON *json;
	struct nps_strings strings;
	struct nps_map string_ids; /* the session's id -> strings */
	struct nps_history comms; /* tid -> text: names of threads */
	bool show_self; /* threads of npuscope's helper library in the job are shown as the job's own */
	struct nps_history
		agents; /* pid << 32 | tid -> 1: it has their name, 0: another; none if they are shown */
	struct nps_map helpers; /* keys of `agents` that ever had it */
	struct nps_vec events; /* struct nps_event: API, SQE, MARK, TENSOR */
	struct nps_tensors tensors; /* lists of operators' tensors */
	struct nps_vec clocks; /* struct nps_clock */
	struct nps_vec device_clocks; /* struct nps_device_clock */
	struct nps_vec subs; /* struct nps_sub */
	struct nps_vec syncs; /* struct nps_sync */
	struct nps_vec cqes; /* struct nps_cqe */
	struct nps_vec timings; /* struct nps_timing */
	struct nps_vec tasks; /* struct nps_task by (process, start) */
	struct nps_vec bounds; /* struct nps_bounds */
	struct nps_proc *procs;
	uint32_t nprocs;
	struct nps_map proc_of; /* pid -> row of procs */
	struct nps_device devices[NPS_MAX_DEVICES];
	struct nps_vec logs; /* struct nps_device_log */
	struct nps_vec run_pmus; /* struct nps_run_pmu */
	struct nps_vec blocks; /* struct nps_task_block */
	struct nps_host_samples host;
	struct nps_npu_samples npu;
	struct nps_python_stacks python;
	bool has_python; /* Python stacks were requested */
	struct nps_losses losses;
	uint64_t begin, end; /* of the capture */
	uint64_t begin_real; /* begin as Unix time; other times differ by the same offset */
	bool complete;
};

/* The tasks of the call that recorded an event, rows of model->subs: mostly one. It is in or between them. */
struct nps_marked {
	uint32_t first, last;
};

enum nps_timing_kind {
	NPS_TIMING_BETWEEN, /* aclrtEventElapsedTime: `to` happened `ns` after `from` */
	NPS_TIMING_AT, /* aclrtEventGetTimestamp, completion records: `to` was at `at`, device clock */
	NPS_TIMING_WAIT, /* `to` is a task that waited for `from` */
};

/* What the job's own events show about the device's time. */
struct nps_timing {
	struct nps_marked from, to;
	double ns, error; /* ns in either direction, without that of the clocks' rates */
	uint64_t at; /* ns, as its counter nominally counts; rounded down by less than `error` */
	uint32_t proc;
	uint16_t device;
	uint8_t kind; /* enum nps_timing_kind */
};

/* A call that returned when everything it covers had ended. */
struct nps_sync {
	uint64_t cover; /* submissions that were over by then are covered; BY_BEGIN: those that had begun */
	uint64_t done; /* the call returned */
	/* The wait is for a submission without a known end: others behind it may have ended before it. */
	bool by_begin;
	uint32_t proc;
	uint16_t device, stream; /* UINT16_MAX: all */
};

/* What was recorded, as the vendor's levels: -1 (none) to 2. Not in session.json: 1. */
int nps_session__level(const struct nps_session *model);

void nps_session__init(struct nps_session *model, int dirfd, int tmpfd);
void nps_session__free(struct nps_session *model);

/* Does the process use other numbers of devices than the host? Samples and the driver use the host's. */
bool nps_proc__in_container(const struct nps_proc *proc);

/* The name of the host as the process sees it. "unknown" if not known. */
const char *nps_proc__host_name(const struct nps_session *model, const struct nps_proc *proc);

/* The process PID, made if need be; NULL if there are too many or no memory. */
struct nps_proc *nps_session__proc(struct nps_session *model, uint32_t pid);

/* The log of DEVICE in process PROC; NULL: there is none. */
struct nps_device_log *nps_session__find_log(const struct nps_session *model, uint32_t proc,
					     unsigned int device);
/* The log of DEVICE in process PROC, made if need be; NULL if there is no memory. */
struct nps_device_log *nps_session__log(struct nps_session *model, uint32_t proc, unsigned int device);

/* Unix time, ns, of a CLOCK_MONOTONIC time. */
static inline uint64_t nps_session__real(const struct nps_session *model, uint64_t mono)
{
	return mono + (model->begin_real - model->begin);
}

/* Appends EVENT to EVENTS. 0 or negative errno. */
int nps_event__keep(struct nps_vec *events, const struct nps_event *event);

/* pid << 32 | tid, as tables of the model have it. */
static inline uint64_t nps_proc__gtid(const struct nps_proc *proc, uint32_t tid)
{
	return (uint64_t)proc->pid << 32 | tid;
}

/* Name of thread TID at TIME, NPS_NONE if unknown. */
uint32_t nps_session__comm_at(const struct nps_session *model, uint32_t tid, uint64_t time);

/*
 * Was TID of PID a thread of the helper library, which is left out, at TIME? A process's first thread never
 * is, nor a thread that had the number before or after.
 */
bool nps_session__is_helper(const struct nps_session *model, uint32_t pid, uint32_t tid, uint64_t time);

/* Text id of the session's string ID, NPS_NONE if it was lost. */
uint32_t nps_session__text(const struct nps_session *model, uint64_t id);

static inline bool nps_task__measured(const struct nps_task *task)
{
	return task->bounds == NPS_NONE;
}

#endif
