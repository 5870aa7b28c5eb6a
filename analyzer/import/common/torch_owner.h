/* SPDX-License-Identifier: BSD-2-Clause */
/* Which operator runs on a thread at a time that only grows. */
#ifndef NPS_TORCH_OWNER_H
#define NPS_TORCH_OWNER_H

#include "base/map.h"
#include "model/model.h"

struct nps_torch_owner {
	const struct nps_torch_table *torch;
	size_t first, next, end; /* operators, and the one that begins next */
	struct nps_map tops; /* gtid -> innermost operator */
	struct nps_vec parents; /* uint32_t: around operator `first` + i */
};

/* Rows [FIRST, END) of the model's `torch` are operators by start, outer ones first. */
void nps_torch_owner__init(struct nps_torch_owner *owner, const struct nps_model *model, size_t first,
			   size_t end);

/* The innermost operator of thread GTID at TIME in *ROW, NPS_NONE if there is none. 0 or negative errno. */
int nps_torch_owner__at(struct nps_torch_owner *owner, uint64_t gtid, uint64_t time, uint32_t *row);

/* The operator around one that nps_torch_owner__at() found, NPS_NONE if there is none. */
uint32_t nps_torch_owner__parent(const struct nps_torch_owner *owner, uint32_t row);

void nps_torch_owner__free(struct nps_torch_owner *owner);

#endif
