/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives, of our own sessions and of CANN's raw data: each call of the host is one or, in a graph,
 * several runs; each run has a row of `comm_op` and a name with the number of the call in its group
 * (prof-raw 4.4, outputs 0.3).
 */
#ifndef NPS_IMPORT_COLLECTIVES_H
#define NPS_IMPORT_COLLECTIVES_H

#include "model/model.h"

#define NPS_HCCL_NOT_KNOWN 65534 /* `N/A` of the HCCL enums */

/* A run of a call. An importer's rows begin with one. */
struct nps_collective {
	uint64_t begin; /* of the call, by the host's clock in any unit: calls are numbered in this order */
	uint64_t start, end; /* of its tasks, ns; start 0: no task was seen */
	uint64_t count; /* elements, UINT64_MAX unknown */
	uint64_t numbered_with; /* calls with the same value are numbered together: the group on its device */
	uint64_t hash; /* of the group's name (group_hash.h); 0 unknown */
	uint32_t type; /* text: hcom_allReduce_ */
	uint32_t group, algorithm; /* texts, NPS_NONE unknown */
	uint32_t name; /* text, NPS_NONE: not named yet */
	uint32_t connection, model; /* NPS_NO_ID none */
	uint32_t device;
	uint32_t dtype; /* HcclDataType, NPS_HCCL_NOT_KNOWN */
	uint32_t ranks; /* 0 unknown */
	uint32_t step; /* row of `step`, NPS_NONE */
	uint32_t index; /* of the call in its group, from 0 */
	uint32_t run; /* of the call, from 0 */
	uint32_t tasks; /* that were submitted */
	uint32_t measured; /* of them, by the device */
	uint8_t relay, retry; /* 2 unknown */
	bool master; /* start and end are of the tasks of the master plane, not of all */
};

/*
 * Adds the task of C that ran from START to END. Measured tasks decide; without any, the collective is at its
 * first submission, without a length. MASTER: the task is of the master plane; as in the vendor's files, only
 * those decide if there are any.
 */
void nps_collective__add_time(struct nps_collective *c, uint64_t start, uint64_t end, bool measured,
			      bool master);

/*
 * Numbers CALLS, rows that begin with a struct nps_collective, and names them if STRINGS is not NULL: texts
 * are made in the order of the numbers. 0 or negative errno.
 */
int nps_collectives__number(struct nps_vec *calls, struct nps_strings *strings);

/*
 * Fills comm_op with RUNS, rows as above, by start, and names those without a name. In comm_task, `op` is the
 * row of RUNS before and the id of the collective after the call; name and group are set. SHIFT is added to
 * start and end and makes them Unix ns. *UNSEEN: the number of RUNS without a task, which get no row. 0 or
 * negative errno.
 */
int nps_collectives__fill(struct nps_model *model, struct nps_vec *runs, uint64_t shift, uint64_t *unseen);

/* A row of comm_task for row TASK of `task`, of which nothing else is known; notify is 0, as the vendor's. */
static inline struct nps_comm_task_row nps_comm_task__unknown(const struct nps_model *model, uint32_t task)
{
	return (struct nps_comm_task_row){ .task = task,
					   .type = model->na,
					   .plane = NPS_NO_ID,
					   .rdma_type = NPS_HCCL_NOT_KNOWN,
					   .src = NPS_NO_ID,
					   .dst = NPS_NO_ID,
					   .transport = NPS_HCCL_NOT_KNOWN,
					   .size = -1,
					   .dtype = NPS_HCCL_NOT_KNOWN,
					   .link = NPS_HCCL_NOT_KNOWN,
					   .bandwidth = NPS_NAN,
					   .estimate = NPS_NAN };
}

#endif
