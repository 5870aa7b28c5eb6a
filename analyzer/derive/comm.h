/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of collectives: what comm.c hands from one stage to the next. */
#ifndef NPS_COMM_H
#define NPS_COMM_H

#include "base/ext_sort.h"
#include "model/model.h"

#include <stdbool.h>

/* Keys of `Communication Bandwidth Info`, in their order. SDMA: sum of HCCS, PCIE, SIO and the rest. */
enum nps_transport {
	NPS_TRANSPORT_RDMA,
	NPS_TRANSPORT_HCCS,
	NPS_TRANSPORT_PCIE,
	NPS_TRANSPORT_SDMA,
	NPS_TRANSPORT_SIO,
	NPS_TRANSPORTS
};

/* What a part of a collective does to its statistics. */
enum nps_part_kind {
	NPS_PART_OTHER,
	NPS_PART_COPY, /* Memcpy or Reduce_Inline through SDMA */
	NPS_PART_WAIT,
	NPS_PART_PAYLOAD /* of RDMA */
};

/* A task of a collective. Parts are chained by start, within the collective and within its plane. */
struct nps_part {
	uint64_t start, end;
	int64_t size, plane;
	uint32_t src, dst, link;
	uint32_t next, next_of_plane;
	uint8_t kind, master;
};

/* A transfer: a copy, or a group of RDMA payloads. */
struct nps_transfer {
	uint32_t src, dst; /* src NPS_NO_ID: unknown; dst NPS_NO_ID: the same */
	uint32_t link; /* ENUM_HCCL_LINK_TYPE; NPS_NONE: RDMA */
	int64_t bytes;
	double size, time; /* MB, ms */
};

/* A collective whose parts are complete. */
struct nps_whole_op {
	uint32_t row; /* of comm_op */
	uint32_t first; /* part */
	uint32_t step, type; /* texts: step50; collective or p2p */
	uint32_t group; /* text: the hash */
	bool peer; /* send or receive: an RDMA group is shorter */
};

/* Texts that rows share. */
struct nps_comm_texts {
	uint32_t transport[NPS_TRANSPORTS];
	uint32_t local, roce, standard_roce, reserved, ub, uboe, invalid;
	uint32_t none; /* "" */
};

/* --- comm_matrix.c --- */

struct nps_matrix {
	struct nps_model *m;
	const struct nps_comm_texts *texts;
	struct nps_ext_sort records; /* struct record */
	struct nps_vec bins, families;
	struct nps_map bin_of, family_of;
	uint32_t steps; /* over bins */
	struct nps_vec links; /* struct link of the current collective */
	struct nps_map link_of;
};

void nps_matrix__init(struct nps_matrix *matrix, struct nps_model *m, const struct nps_comm_texts *texts);
void nps_matrix__free(struct nps_matrix *matrix);

/* Adds a transfer to the current collective. 0 or -ENOMEM. */
int nps_matrix__transfer(struct nps_matrix *matrix, const struct nps_transfer *transfer);

/* The current collective was OP. 0 or negative errno. */
int nps_matrix__op(struct nps_matrix *matrix, const struct nps_whole_op *op);

/* Ranks the links of all collectives and fills comm_matrix. 0 or negative errno. */
int nps_matrix__finish(struct nps_matrix *matrix);

/* --- comm_op.c --- */

struct nps_comm_stats {
	struct nps_model *m;
	const struct nps_comm_texts *texts;
	struct nps_matrix *matrix;
	struct nps_vec planes; /* struct plane, in order of appearance */
	struct nps_map plane_of;
	struct nps_vec sizes; /* struct bucket, in order of appearance */
	struct nps_map size_of;
};

void nps_comm_stats__init(struct nps_comm_stats *stats, struct nps_model *m,
			  const struct nps_comm_texts *texts, struct nps_matrix *matrix);
void nps_comm_stats__free(struct nps_comm_stats *stats);

/* Appends the rows of OP, whose parts are chained in PARTS. 0 or negative errno. */
int nps_comm_stats__op(struct nps_comm_stats *stats, const struct nps_whole_op *op, struct nps_part *parts);

#endif
