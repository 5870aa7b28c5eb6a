/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the generator share. Host times are ticks of the host clock since its sync
 * point ("host ticks", the unit the simulation runs in); device times are values of the device
 * counter as written.
 */
#ifndef CANNRAW_GEN_H
#define CANNRAW_GEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slices.h"
#include "truth.h"

#define NO_CONTEXT 0xFFFFFFFFu
#define NO_MODEL 0xFFFFFFFFu
#define MAX_DEVICES 16
#define MAX_STREAMS 1000
#define MAX_THREADS 256
#define PLANES 4
#define PMU_EVENTS 8

enum level {
	LEVEL_TX = 20500,
	LEVEL_ACL = 20000,
	LEVEL_MODEL = 15000,
	LEVEL_NODE = 10000,
	LEVEL_AICPU = 6000,
	LEVEL_HCCL = 5500,
	LEVEL_RUNTIME = 5000,
};

enum ge_type {
	GE_AI_CORE,
	GE_AI_CPU,
	GE_AI_VECTOR_CORE,
	GE_MIX_AIC = 4,
	GE_MIX_AIV,
	GE_FFTS_PLUS,
	GE_HCCL = 9
};

enum rt_type {
	RT_AICORE = 0,
	RT_AICPU = 1,
	RT_EVENT_RECORD = 2,
	RT_EVENT_WAIT = 3,
	RT_MEMCPY_ASYNC = 5,
	RT_MODEL_EXECUTE = 13,
	RT_NOTIFY_WAIT = 14,
	RT_NOTIFY_RECORD = 15,
	RT_FFTS_PLUS = 52,
	RT_AIVEC = 66,
	RT_FLIP = 98,
	RT_MIX_AIC = 108,
	RT_MIX_AIV = 109,
	RT_DAVID_EVENT_RECORD = 110,
	RT_DAVID_EVENT_WAIT = 111,
};

/* Kinds of Stars queue entries, in the generator's own numbers: V6 numbers them differently. */
enum sqe {
	SQE_AIC,
	SQE_AIV,
	SQE_AICPU,
	SQE_EVENT_RECORD,
	SQE_EVENT_WAIT,
	SQE_NOTIFY_RECORD,
	SQE_NOTIFY_WAIT,
	SQE_SDMA,
	SQE_PCIE_DMA
};

/* Sub-task types of FFTS+ logs and of PMU records. */
enum sub {
	SUB_AIC = 0,
	SUB_AIV = 1,
	SUB_NOTIFY_WAIT = 3,
	SUB_NOTIFY_RECORD = 4,
	SUB_MIX_AIC = 6,
	SUB_MIX_AIV = 7,
	SUB_SDMA = 8
};

struct opts {
	const char *out, *truth, *cann;
	uint64_t tasks, seed;
	uint32_t comm_every, comm_tasks, memcpy_every, event_every, ffts_every, mstx_every, aicpu_every,
		bare_every;
	uint32_t model_runs, streams, threads, devices, level, chip, pid, slice_kib;
	uint64_t host_khz, device_khz; /* host 0: raw ns */
	bool pmu, step_trace, flip, nasty, shapes, unique, no_done, straddle, mangle, comm_ffts, ffts_parent;
};

/* A counter against the wall clock. */
struct clock {
	uint64_t raw0, cnt0, khz;
	uint64_t begin_us, begin_raw; /* start_info */
};

struct name {
	uint64_t hash;
	const char *text;
	size_t len; /* as a reader of the line-based dictionary finds it */
};

struct op_kind {
	const char *type, *aclnn, *kernel;
	uint32_t ge_type;
	struct name type_name, kernel_name;
};

struct tensor {
	uint32_t kind, format, dtype, dims[8];
};

struct tensors {
	uint32_t count;
	struct tensor t[16];
};

struct stream {
	uint32_t id, device;
	uint64_t count; /* task ids handed out, those before the session too */
	uint32_t stride, racers;
	bool flip_due;
	uint64_t last_track; /* host ticks of the latest task_track */
	uint64_t device_end; /* of the latest task */
};

/* One host task, and what its device tasks are called. */
struct task {
	const struct stream *stream;
	uint32_t task, batch, context, model, request, tid;
	uint64_t track; /* host ticks */
	const char *cls;
	const struct name *name; /* NULL: the task has none */
	const struct name *kernel; /* of its task_track, NULL: none */
	const struct name *type;
	const char *core;
	uint32_t rt;
	enum sqe sqe;
	enum sub sub; /* with a context, or for the PMU */
	uint32_t blocks, mix_blocks;
	int op_state; /* -1: no node record */
	bool hf32, pmu;
	const struct tensors *tensors;
	int64_t conn; /* -1: none */
};

enum device_file { DF_STARS, DF_PMU, DF_TS, DF_AICPU, DEVICE_FILES };

struct device {
	uint32_t id, next_task; /* next_task: V6 */
	struct clock clock;
	uint64_t dev_start_raw;
	char dir[3000];
	struct slices files[DEVICE_FILES];
	uint32_t counters[2]; /* of DF_STARS and DF_PMU */
	struct heap *heap;
	struct stream *streams; /* opts.streams */
	struct stream comm[PLANES], model;
	uint64_t last; /* latest device time */
};

/* Host files: one burst buffer a thread and file. */
enum host_file {
	HF_API,
	HF_API_STATIC,
	HF_TRACK,
	HF_TRACK_STATIC,
	HF_NODE,
	HF_NODE_STATIC,
	HF_ATTR,
	HF_TENSOR,
	HF_TENSOR_STATIC,
	HF_CONTEXT,
	HF_HCCL,
	HF_HCCL_OP,
	HF_MEMCPY,
	HF_MSTX,
	HF_GRAPH,
	HF_BURSTS,
	HF_HASH_DIC = HF_BURSTS,
	HF_TYPE_DIC,
	HOST_FILES
};

struct burst {
	uint8_t *buf;
	uint32_t count, limit;
};

struct thread {
	uint32_t tid;
	uint64_t now; /* host ticks */
	struct burst bursts[HF_BURSTS];
};

struct group {
	struct name name;
	uint64_t ops;
	uint32_t size;
};

struct counts {
	uint64_t tasks, apis, comm_ops, comm_tasks, memcpys, pmus, mstx, steps, aicpus, host_only, flips,
		kernels;
};

struct gen {
	struct opts o;
	uint64_t rnd;
	struct truth truth;
	struct clock clock; /* host */
	char prof[2600], host_dir[2800];
	struct slices files[HOST_FILES];
	struct thread *threads;
	struct device *devices;
	struct op_kind *kinds;
	struct name *names; /* the ordinary operator names */
	struct name *nasty;
	struct name small_ops[4], comm_names[4], domain, alg;
	struct group groups[2];
	struct model *model;
	char unique_text[64];
	struct name unique;
	uint64_t api_ids, mark_ids, host_last;
	struct counts n;
};

/* --- gen.c: setup and the loop --- */
void gen_run(struct gen *g);

/* --- clocks.c --- */
uint64_t gen_rnd(struct gen *g);
/* LO..HI, both included. */
uint64_t gen_range(struct gen *g, uint64_t lo, uint64_t hi);
uint64_t mix64(uint64_t x);
void gen_clocks(struct gen *g);
/* Host ticks that last NS, at least one. */
uint64_t host_ticks(const struct gen *g, uint64_t ns);
/* The value written into records for NOW host ticks. */
uint64_t host_value(const struct gen *g, uint64_t now);
int64_t host_wall(const struct gen *g, uint64_t now);
int64_t device_wall(const struct device *d, uint64_t cnt);
/* The first device tick NS after NOW. */
uint64_t device_after(const struct gen *g, const struct device *d, uint64_t now, uint64_t ns);
uint64_t device_ticks(const struct device *d, uint64_t ns);
/* The first host tick not before device time CNT. */
uint64_t host_at(const struct gen *g, const struct device *d, uint64_t cnt);
/* Moves T on by LO..HI ns; returns its new time. */
uint64_t advance(struct gen *g, struct thread *t, uint64_t lo, uint64_t hi);

/* --- names.c --- */
void names_init(struct gen *g);
void names_free(struct gen *g);
void type_names(struct gen *g);
const char *api_name(const struct gen *g, uint32_t level, uint32_t type);
#define OP_KINDS 40
#define ORDINARY_NAMES 200
#define NASTY_NAMES 18
/* The name of kernel K of KIND. */
const struct name *kernel_name(struct gen *g, uint64_t k, uint32_t kind);
struct name add_name(struct gen *g, uint32_t class, uint64_t index, const char *text);

enum { NAME_OP = 1, NAME_TYPE, NAME_KERNEL, NAME_UNIQUE, NAME_NASTY, NAME_MISC };

/* Types of api records, beside the per-operator aclnn ones. */
enum {
	ACL_MODEL_EXECUTE = 0x20001,
	ACL_MODEL_LOAD = 0x20002,
	ACL_LAUNCH = 0x30001,
	ACL_MEMCPY_ASYNC = 0x30002,
	ACL_RECORD_EVENT = 0x30003,
	ACL_STREAM_WAIT_EVENT = 0x30004,
	ACL_NN = 0x50000,
	ACL_HCCL = 0x70001,
	MODEL_EXECUTE = 1,
	MODEL_LOAD = 2,
	NODE_LAUNCH = 5,
	NODE_TILING = 0x10001,
	HCCL_MASTER = 0x10001,
	HCCL_SLAVE = 0x10002,
	RT_API_LAUNCH = 1003,
	RT_API_EVENT_RECORD = 1012,
	RT_API_EVENT_WAIT = 1013,
	RT_API_MEMCPY_ASYNC = 1021,
	RT_API_MODEL_EXECUTE = 1030,
};

/* --- host.c: host records --- */
struct span {
	uint32_t level, type, reserve;
	uint64_t begin, id;
	uint64_t item;
	const struct name *item_name;
};
void host_open(struct gen *g);
void host_close(struct gen *g);
/* Begins a span now; its id is known at once because tasks inside refer to it. */
struct span span_begin(struct gen *g, const struct thread *t, uint32_t level, uint32_t type,
		       const struct name *item);
/* Ends it now and writes it: as one record, or as two events. */
void span_end(struct gen *g, struct thread *t, const struct span *s, bool unaging);
void span_end_events(struct gen *g, struct thread *t, const struct span *s);
struct launch {
	uint32_t rt, api; /* api: type of the runtime span */
	const struct name *kernel; /* NULL: none */
	uint32_t blocks, ratio, model_id;
	bool unaging;
};
/* Submits a task on ST: fills stream, ids, tid and track of TASK. Moves T past the call. */
void submit(struct gen *g, struct thread *t, struct stream *st, const struct launch *l, struct task *task);
/* Flips still due when the run ends. */
void settle_flips(struct gen *g);
struct node {
	const struct name *name, *type;
	uint32_t ge_type, blocks, ratio;
	bool hf32, unaging, attr;
	const struct tensors *tensors;
};
/* The records that describe an operator, stamped STAMP. */
void node_records(struct gen *g, struct thread *t, const struct node *n, uint64_t stamp);
void context_record(struct gen *g, struct thread *t, uint32_t level, const struct name *name,
		    const uint32_t *ids, uint32_t count, uint64_t stamp);
void burst_put(struct gen *g, struct thread *t, enum host_file f, const uint8_t *record);
void record_head(struct gen *g, const struct thread *t, uint8_t *record, size_t size, uint32_t level,
		 uint32_t type, uint64_t stamp, uint32_t payload);

/* --- device.c: device records --- */
void device_open(struct gen *g, struct device *d);
void device_close(struct gen *g, struct device *d);
/* Writes what lies before UNTIL. */
void device_flush(struct gen *g, struct device *d, uint64_t until);
/* Free time on ST after the submission of TASK; the stream is taken from there. */
uint64_t device_slot(struct gen *g, struct device *d, struct stream *st, uint64_t submitted);
/* Logs one run of TASK, with its PMU records and its truth line. */
void device_task(struct gen *g, struct device *d, const struct task *task, uint64_t start, uint64_t end);
void device_flip(struct gen *g, struct device *d, const struct stream *st, uint32_t number, uint32_t task,
		 uint64_t cnt);
void device_step(struct gen *g, struct device *d, uint32_t tag, uint64_t index, uint64_t model,
		 const struct stream *st, uint32_t task, uint64_t cnt);
void device_aicpu(struct gen *g, struct device *d, const struct task *task, uint64_t start, uint64_t end);
/* A device time, as two keys: PREFIX_ticks and PREFIX_ns. */
void truth_device_time(struct gen *g, const struct device *d, const char *prefix, uint64_t cnt);
void truth_task_key(struct gen *g, const struct task *task);

/* --- operations: each runs one on thread T, now --- */
void op_kernel(struct gen *g, struct thread *t, struct device *d, uint64_t k);
void op_ffts(struct gen *g, struct thread *t, struct device *d, uint64_t k);
void op_comm(struct gen *g, struct thread *t, struct device *d, uint64_t index);
void op_memcpy(struct gen *g, struct thread *t, struct device *d);
void op_event(struct gen *g, struct thread *t, struct device *d, uint64_t index);
/* An mstx range or mark that other operations may run inside. */
struct mark {
	uint64_t id, index, begin;
	struct stream *stream; /* NULL: nothing on the device */
	uint64_t device_begin;
};
struct mark op_mstx_begin(struct gen *g, struct thread *t, struct device *d, uint64_t index);
void op_mstx_end(struct gen *g, struct thread *t, struct device *d, const struct mark *m);
void op_step(struct gen *g, struct thread *t, struct device *d, uint64_t step, bool begin);
void model_load(struct gen *g, struct thread *t);
void model_run(struct gen *g, struct thread *t, uint64_t run);
void model_free(struct gen *g);

/* --- shared by operations, in op_kernel.c --- */
/* Fills what NODE records about TASK. */
void describe(const struct gen *g, struct task *task, const struct node *n, const struct name *item);
/* Runs TASK on its stream for NS. */
void run_task(struct gen *g, struct device *d, struct stream *st, const struct task *task, uint64_t ns);
struct stream *pick_stream(struct gen *g, struct thread *t, struct device *d);
uint64_t kernel_ns(struct gen *g);
struct task new_task(const char *cls, enum sqe sqe);
struct node kernel_node(struct gen *g, const struct name *name, uint64_t k, uint32_t kind,
			struct tensors *ten);
struct launch kernel_launch(const struct gen *g, const struct node *n, uint32_t kind);

/* --- control.c --- */
void control_make_dirs(struct gen *g);
void control_write(struct gen *g);

#endif
