/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names: which aclnn operator runs, which kernel a handle stands for, what a communicator is
 * called. Built in one pass over the marks and registrations in order of time, because
 * the two phases of an operator may be in two threads and addresses are used again.
 */
#ifndef NPS_NAMES_H
#define NPS_NAMES_H

#include "import/session/loss_intervals.h"
#include "import/session/history.h"
#include "import/session/session_model.h"

/* One run of an operator's executor. */
struct nps_op_run {
	uint32_t api; /* "aclnnMatmul", NPS_NONE unknown */
	uint32_t first; /* node of the L0 operators, NPS_NONE if they are unknown */
	uint32_t count;
	uint32_t operands; /* list of model->tensors, NPS_NONE if they are unknown */
	uint32_t launches; /* of kernels, counted by the walk */
	uint32_t strays; /* kernels that came meanwhile and are not known to be its own, by the walk */
	uint64_t executor;
	uint64_t opened, bound; /* when the first phase was entered, and when its executor was known */
	uint64_t since, begin; /* when this executor got the plan, which a cache may have had, and ran */
	struct nps_planner planner;
	uint64_t end; /* when the thread's next mark came, UINT64_MAX: there is none; by the walk */
	uint32_t proc;
};

struct nps_l0 {
	uint32_t text, next;
};

struct nps_names {
	struct nps_session *model;
	struct nps_history funcs; /* handle -> name */
	struct nps_history groups; /* communicator -> name */
	struct nps_history ranks; /* communicator -> size */
	struct nps_map symbols; /* address of a kernel's host function -> name */
	struct nps_map learned; /* handle -> L0 operator it was launched for */
	struct nps_vec runs; /* struct nps_op_run */
	struct nps_vec l0s; /* struct nps_l0 */
	struct nps_loss_intervals loss_intervals; /* of TENSOR records */
};

#define NPS_RUN_SLOT 3 /* of a mark that begins a run: its row in nps_names.runs, plus 1 */

/* Reads all events of MODEL, and sets NPS_RUN_SLOT of those that begin a run (plans.h). 0 or -ENOMEM. */
int nps_names__build(struct nps_names *names, struct nps_session *model);

/* A key for HANDLE in process PROC. */
uint64_t nps_names__key(uint32_t proc, uint64_t handle);

/* The handle that the launch EV names, 0 if none; false if the launch carries its NAME itself. */
bool nps_names__handle(const struct nps_event *ev, uint64_t *handle, uint32_t *name,
		       const struct nps_session *model);

/* Name of the kernel HANDLE at TIME as it was registered, else `kernel@0x...`. */
uint32_t nps_names__kernel(struct nps_names *names, uint32_t proc, uint64_t handle, uint64_t time);

void nps_names__free(struct nps_names *names);

#endif
