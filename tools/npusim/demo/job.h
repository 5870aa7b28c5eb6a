/* SPDX-License-Identifier: BSD-2-Clause */
/* A training-like job for the simulated NPU: what its parts share. */
#ifndef NPUSIM_DEMO_JOB_H
#define NPUSIM_DEMO_JOB_H

#include "../abi/aclnn.h"
#include "../abi/hccl.h"
#include "../abi/runtime.h"

#include <stdatomic.h>
#include <stdio.h>

struct options {
	int ranks;
	long rate; /* launches a second per rank */
	double seconds;
	long steps;
	long slow_every; /* 0: never */
	long time_every; /* step whose parts are timed with events; 0: none */
	bool never_query; /* the events of a timed step are recorded, and that is all */
	bool quiet;
	bool ai_cpu; /* a kernel of the AI CPU in each step */
	const char *pidfile;
	const char *self_profile;
};

/* What the ranks share, in a file that the launcher made. */
struct control {
	_Atomic int ready;
	_Atomic long stop_at; /* first step that is not run; 0: not decided */
	_Atomic int root_ready;
	HcclRootInfo root;
};

#define STEP_PERIOD_NS 50000000ull

struct rank {
	const struct options *options;
	struct control *control;
	int id, world, device;
	aclrtStream compute, communication;
	HcclComm comm;
	struct loader *loader;
	uint64_t loss; /* fixed point; depends on the number of steps only */
};

/* Ends the job with a message. */
_Noreturn void fail(int err, const char *what);

/* Fails the job with a message if an API call did not return 0. */
static inline void check(int err, const char *what)
{
	if (err)
		fail(err, what);
}

uint64_t now_ns(void);

int rank_main(const struct options *options, struct control *control);

struct model;
struct model *model_create(struct rank *r);
void model_destroy(struct model *m);
/*
 * Forward, backward, all-reduce, optimizer; `batch` is pinned host memory. TIMED: queries the device's
 * times of its parts.
 */
void model_step(struct model *m, const void *batch, size_t bytes, bool timed);
void model_evaluate(struct model *m);

struct loader *loader_create(int rank, size_t batch_bytes, long slow_every);
/* The batch is valid until the next call. */
const void *loader_next(struct loader *l, long step);
void loader_destroy(struct loader *l);

/* truth.PID.steps.tsv; a no-op without NPUSIM_TRUTH. */
void step_log_open(void);
void step_log(long step, uint64_t begin, uint64_t end);
void step_log_close(void);

/* Reads the STARS log of this process' device into PATH until stopped. */
void self_profile_start(const char *path, int rank, int device);
void self_profile_stop(void);

#endif
