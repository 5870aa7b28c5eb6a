/* SPDX-License-Identifier: BSD-2-Clause */
/* The walk over a thread's calls (nest.c), shared with its parts. */
#ifndef NPS_NEST_WALK_H
#define NPS_NEST_WALK_H

#include "import/session/join.h"

#define NPS_WALK_SENT 32 /* SQEs of one submission that are compared with the next one's */
#define NPS_WALK_OPS 16 /* operators within operators */
#define NPS_WALK_DEPTH 64 /* deeper calls keep their row but are nobody's parent */

struct nps_frame {
	const struct nps_event *ev;
	const struct nps_probe_info *info;
	uint64_t end;
	uint32_t cann, comm, copy;
	uint32_t name, type, function; /* of the kernel, for launches */
	uint32_t run; /* of the operator it belongs to, NPS_NONE */
	uint32_t alloc; /* row of the process's allocs that it made, NPS_NONE */
	uint32_t first_sub; /* it submitted, NPS_NONE */
};

/* A launch whose operator is not known until all launches have been seen. */
struct nps_pending_name {
	uint64_t handle;
	uint32_t sub, proc, cann, api;
};

struct nps_pending_sync {
	const struct nps_event *ev;
	uint32_t proc;
	uint16_t device, user; /* of the thread, as in nps_walk */
	uint8_t call;
};

/* A source of the device's time, evaluated when all records of events have been read. */
struct nps_pending_timing {
	const struct nps_event *ev;
	uint32_t proc, wait; /* wait: row of subs that waits, NPS_NONE: the call queries times */
};

struct nps_walk {
	struct nps_session *model;
	struct nps_names *names;
	struct nps_history streams; /* handle -> device << 16 | stream */
	struct nps_history event_marks; /* event handle -> struct nps_marked, nps_walk__mark_value() */
	struct nps_map user_devices; /* process << 16 | number in the job -> the driver's number */
	struct nps_vec pending, syncs, timings;
	uint32_t node_name, copies;
	uint32_t symbols[NPS_PROBE_MAX]; /* texts */
	struct nps_vec range_ends; /* mstx, see nest_marks.c */
	struct nps_map range_starts, domains;
	/* the thread */
	struct nps_proc *proc;
	uint32_t proc_row, tid;
	struct nps_frame stack[NPS_WALK_DEPTH];
	int depth;
	struct nps_op_run *run;
	uint32_t l0; /* next L0 operator of the run */
	uint32_t l0_used;
	uint32_t op_row; /* open aclnn row, NPS_NONE */
	bool op_phase2;
	uint64_t op_limit; /* its end, or the latest that it can be; UINT64_MAX: unknown */
	/* the operators that it is in, of those whose end is known */
	struct nps_outer_op {
		uint32_t row;
		bool phase2;
		uint64_t limit;
		struct nps_op_run *run;
		uint32_t l0, l0_used;
	} outer[NPS_WALK_OPS];
	unsigned int outer_ops;
	uint32_t open_mark; /* innermost open mstx range without a number, NPS_NONE */
	/* its last submission, if the end of that was not recorded */
	struct {
		const struct nps_event *ev[NPS_WALK_SENT];
		uint32_t n, first; /* first: row of subs */
		uint64_t tried; /* when the driver was called for it, the last time */
	} sent;
	uint16_t device; /* it last submitted to, UINT16_MAX: none since `user` */
	uint16_t user; /* number it gave to aclrtSetDevice, UINT16_MAX unknown */
	/* the launch being looked at */
	uint64_t handle;
	uint32_t api; /* its operator */
	bool learn_later;
};

/* A new CANN row of the thread; NULL if there is no memory. */
struct nps_cann *nps_walk__row(struct nps_walk *w, uint64_t start, uint64_t end, uint8_t level,
			       uint32_t name);
uint32_t nps_walk__last_row(const struct nps_walk *w);

/* Key of stream HANDLE in nps_walk.streams. The default stream is one for each context: a thread's own. */
uint64_t nps_walk__stream_key(uint32_t proc, uint32_t tid, uint64_t handle);

/* The innermost open call of class CALL, NULL if none. */
struct nps_frame *nps_walk__frame(struct nps_walk *w, enum nps_call call);

/* nest_ops.c: an entry-only mark of the thread. */
int nps_walk__mark(struct nps_walk *w, const struct nps_event *ev);
/* Names the kernel of launch EV: the run's next L0 operator, else as it was registered. */
int nps_walk__name_launch(struct nps_walk *w, const struct nps_event *ev, struct nps_frame *frame);
/* What is launched from AT on is RUN's; NULL: of no run. */
void nps_walk__enter_run(struct nps_walk *w, struct nps_op_run *run, uint64_t at);
/* The open operator is over; the one that it is in continues. */
void nps_walk__close_op(struct nps_walk *w);
/* The open operator lasted until UNTIL at least. */
void nps_walk__extend_op(struct nps_walk *w, uint64_t until);
/* Operators whose L0 operators ran before the capture: named by later launches of their handles. */
void nps_walk__name_pending(struct nps_walk *w);

/* nest_operands.c: kernels that are all that their operator launched get its tensors. 0 or -ENOMEM. */
int nps_walk__assign_operands(struct nps_walk *w);

/* nest_marks.c: a call of mstx; after all threads: ranges and domains are put together. */
void nps_walk__init_marks(struct nps_walk *w);
int nps_walk__mstx(struct nps_walk *w, const struct nps_event *ev, enum nps_call call);
int nps_walk__finish_marks(struct nps_walk *w);
void nps_walk__free_marks(struct nps_walk *w);

/*
 * nest_memory.c: a call that allocates or frees memory, and after all threads the totals. nest.c knows the
 * device that a thread calls USER (UINT16_MAX unknown); UINT16_MAX if it is not known.
 */
bool nps_walk__is_memory(const struct nps_probe_info *info);
int nps_walk__memory(struct nps_walk *w, const struct nps_event *ev, struct nps_frame *frame);
int nps_walk__finish_memory(struct nps_walk *w);
uint16_t nps_walk__thread_device(const struct nps_walk *w, uint32_t proc, uint16_t user);

/* nest_times.c: the tasks that record an event, as a value of nps_walk.event_marks, and back. */
uint64_t nps_walk__mark_value(uint32_t first, uint32_t last);
struct nps_marked nps_walk__marked(uint64_t value);

/*
 * A call that queries times of events (WAIT: NPS_NONE), or whose submission WAIT waits for one; after all
 * threads: model->timings are made of them. 0 or a negative errno.
 */
int nps_walk__timing(struct nps_walk *w, const struct nps_event *ev, uint32_t wait);
int nps_walk__finish_timings(struct nps_walk *w);

/* nest_submit.c: one submitted SQE. */
int nps_walk__submission(struct nps_walk *w, const struct nps_event *ev);
/* NEXT is what the thread did next: what it submitted before was over by then. */
void nps_walk__submitted(struct nps_walk *w, const struct nps_event *next);

#endif
