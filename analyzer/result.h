/* SPDX-License-Identifier: BSD-2-Clause */
/* One process's result: what several exporters need and none should compute alone. */
#ifndef NPS_RESULT_H
#define NPS_RESULT_H

#include "model.h"
#include "overlap.h"

/* A row of kernel_details.csv: a compute task or a collective. */
struct nps_kernel {
	uint64_t start;
	uint32_t row; /* of the process's tasks, or of its collectives */
	bool comm;
};

struct nps_step_row { /* of step_trace_time.csv; ns */
	uint32_t step; /* row of the process's steps, NPS_NONE: there are no steps */
	uint32_t device;
	struct nps_overlap_sums sums;
	uint64_t bubble, preparing;
};

struct nps_group { /* lanes of a communication group */
	uint32_t text;
	uint32_t device;
	uint32_t lane; /* tid of the group's lane; plane p has lane + 1 + p */
	uint32_t planes;
};

struct nps_result {
	struct nps_model *model;
	const struct nps_proc *proc;
	uint32_t proc_row;
	uint32_t rank; /* the device's number if the process has none */
	uint32_t device; /* first one used; 0 if none */
	const struct nps_task *tasks; /* ntasks by start */
	size_t ntasks;
	struct nps_vec comm_order; /* uint32_t: collectives with tasks, by start */
	struct nps_vec kernels; /* struct nps_kernel by start */
	struct nps_vec overlap; /* struct nps_span */
	struct nps_vec steps; /* struct nps_step_row */
	struct nps_vec groups; /* struct nps_group */
	struct nps_map group_of, plane_of;
	uint64_t first, last; /* everything exported lies in between */
};

/* Derives RESULT of process PROC_ROW from the model. 0 or -ENOMEM. */
int nps_result__init(struct nps_result *result, struct nps_model *model, uint32_t proc_row);
void nps_result__free(struct nps_result *result);

const struct nps_comm_op *nps_result__comm(const struct nps_result *result, uint32_t row);
const struct nps_group *nps_result__group(const struct nps_result *result, const struct nps_comm_op *op);
/* Plane of TASK, which belongs to a collective, within its group. */
uint32_t nps_result__plane(const struct nps_result *result, const struct nps_task *task);

/* `Task Type` of the trace, taskType of TASK, and the accelerator core (outputs 2.4, 4.5). */
const char *nps_task_type(const struct nps_task *task);
const char *nps_task_host_type(const struct nps_task *task);
const char *nps_task_core(const struct nps_task *task);
/* Task type of a collective's task, as the plane lanes name it. */
const char *nps_comm_task_type(const struct nps_task *task);
/* `host to device`, ... of ENUM_MEMCPY_OPERATION. */
const char *nps_memcpy_operation(uint8_t operation);

#endif
