/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a compiled graph costs on the host before its first operator runs ("head overhead"), call by call. A
 * call F of TorchAir's compiled function consists of a Python part (until the C++ executor R), a C++ part
 * (until GE's execution E) and GE; before F the framework prepares and Dynamo checks its guards. Events of
 * all threads are passed in order of start, of equal ones the longer first; memory is bounded by threads,
 * their depth and the number of graphs.
 */
#ifndef NPS_TORCHAIR_H
#define NPS_TORCHAIR_H

#include "base/map.h"
#include "base/vec.h"
#include "findings/findings.h"

#include <stdbool.h>
#include <stdint.h>

enum nps_tah_kind {
	NPS_TAH_OP, /* any operator */
	NPS_TAH_FRAME, /* any Python function */
	NPS_TAH_CALLER, /* a Python function of the job itself, not of a framework */
	NPS_TAH_MODULE, /* entry of a compiled module */
	NPS_TAH_CALL, /* F */
	NPS_TAH_RUN, /* R by its own label */
	NPS_TAH_RUN_PLAIN, /* R by a function's name */
	NPS_TAH_EXECUTE, /* E */
	NPS_TAH_COLD, /* compiling or loading a graph */
	NPS_TAH_MODE, /* another way to run a graph: no GE */
	NPS_TAH_CACHE, /* Dynamo looks a graph up */
	NPS_TAH_GUARDS,
	NPS_TAH_REGION, /* Dynamo's label of a compiled region */
	NPS_TAH_TENSOR, /* a tensor is made from a scalar, a list or another device's */
	NPS_TAH_COPY, /* an input is made contiguous */
	NPS_TAH_LOGGING,
	NPS_TAH_STEP,
	NPS_TAH_KINDS
};

/* What the label NAME stands for; FRAME: it is a Python function, else an operator or a mark. */
enum nps_tah_kind nps_tah__kind(const char *name, bool frame);

#define NPS_TAH_NO_THREAD UINT64_MAX /* of steps that are no label of a thread */

struct nps_tah_span {
	uint64_t start, end, thread;
	uint32_t name; /* text */
	uint32_t caller; /* text: CALL: innermost frame of the job, NPS_NONE unknown */
	uint32_t inputs; /* RUN, CALL: number of inputs, NPS_NONE unknown */
	uint8_t kind;
};

enum nps_tah_part { NPS_TAH_FRONTEND, NPS_TAH_PYTHON, NPS_TAH_CPP, NPS_TAH_GE, NPS_TAH_PARTS };

/* From where the frontend is measured. */
enum nps_tah_since {
	NPS_TAH_MODULE_ENTRY,
	NPS_TAH_PREVIOUS,
	NPS_TAH_STEP_START,
	NPS_TAH_NOWHERE,
	NPS_TAH_SINCES
};

struct nps_tah_call {
	uint64_t thread, frontend, start, end; /* F; frontend: start of what precedes it, 0 unknown */
	uint64_t run, execute, execute_end; /* starts of R and E, end of E; 0 none */
	uint64_t first_launch, first_kernel, device_ns; /* within E; 0 unknown */
	uint64_t cache, guards, region; /* ns of the frontend */
	uint64_t tensor_ns, copy_ns, logging_ns; /* of the Python part; logging: of the call */
	uint32_t tensors, copies, loggings, inputs;
	uint32_t graph; /* row of graphs */
	uint32_t mode; /* text, NPS_NONE: GE */
	uint64_t step, step_ns; /* its start and length, 0 none */
	uint64_t serial; /* of all calls, by start */
	uint8_t since;
	bool cold, run_labelled, crosses_step;
};

struct nps_tah_times {
	struct nps_histogram all;
	uint64_t in_steps; /* ns, of calls within a step */
};

struct nps_tah_graph {
	uint32_t caller, module; /* texts */
	uint32_t ordinal; /* of the call within its module or step, from 1; 0 does not matter */
	uint32_t mode; /* of the last call */
	bool rest; /* graphs that were one too many */
	uint64_t calls, cold, without_run, without_execute;
	struct nps_tah_times parts[NPS_TAH_PARTS];
	struct nps_histogram whole, launch, kernel; /* F; from E to the first launch, to the first kernel */
	uint64_t device_ns, device_calls;
	uint64_t cache, guards, region;
	uint64_t tensors, tensor_ns, copies, copy_ns, loggings, logging_ns;
	uint64_t step_ns, last_step; /* of the steps with calls */
	uint64_t residual; /* largest, ns: what of F is in no part although R and E are known */
	uint64_t slowest_ns; /* head overhead */
	struct nps_tah_call slowest;
};

#define NPS_TAH_LISTED 1000 /* calls that are kept one by one */

struct nps_tah {
	struct nps_map threads; /* thread -> row of states */
	struct nps_vec states; /* struct thread */
	struct nps_vec graphs; /* struct nps_tah_graph, without cold calls but for their number */
	struct nps_map graph_rows;
	struct nps_vec calls; /* struct nps_tah_call: the first ones */
	uint64_t begun, ended, sinces[NPS_TAH_SINCES]; /* calls */
	uint64_t dropped; /* events of too many threads or too deep */
	uint64_t step_start, step_end;
	struct nps_tah_recent *recent; /* launches within calls */
};

/* Files of its arrays go to DIRFD. 0 or -ENOMEM; free in either case. */
int nps_tah__init(struct nps_tah *tah, int dirfd);
void nps_tah__free(struct nps_tah *tah);

/* 0 or -ENOMEM. */
int nps_tah__span(struct nps_tah *tah, const struct nps_tah_span *span);

/* A CANN call of THREAD that has CONNECTION, and what ran on a device because of it. */
int nps_tah__launch(struct nps_tah *tah, uint64_t thread, uint64_t start, uint32_t connection);
void nps_tah__kernel(struct nps_tah *tah, uint32_t connection, uint64_t start, uint64_t end);

/* No more events. 0 or -ENOMEM. */
int nps_tah__finish(struct nps_tah *tah);

/* Length of part PART of CALL; false if it is not known. */
bool nps_tah__part(const struct nps_tah_call *call, enum nps_tah_part part, uint64_t *ns);

/* Everything before and in F. */
uint64_t nps_tah__head(const struct nps_tah_call *call);

#endif
