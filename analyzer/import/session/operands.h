/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --record-shapes: what each tensor looks like, and which of them an operator was called with. A tensor is
 * known by its address from when it was made; an operator has a list only if every argument that has to be
 * a tensor is a known one.
 */
#ifndef NPS_OPERANDS_H
#define NPS_OPERANDS_H

#include "import/session/session_model.h"

struct nps_operands {
	struct nps_session *model;
	struct nps_map tensor_of, list_of; /* (process, address) -> row */
	struct nps_vec tensors, lists;
	struct nps_vec ages; /* uint32_t, by process: what was made in an earlier age is forgotten */
};

void nps_operands__init(struct nps_operands *operands, struct nps_session *model);
void nps_operands__free(struct nps_operands *operands);

/* Takes in a TENSOR or LIST record of process PROC. 0 or -ENOMEM. */
int nps_operands__add(struct nps_operands *operands, uint32_t proc, const struct nps_event *ev);

/* Records of process PROC were lost: an address may mean another tensor now. 0 or -ENOMEM. */
int nps_operands__forget(struct nps_operands *operands, uint32_t proc);

/*
 * The tensors that the first phase of operator API got in its N arguments SLOTS, as a list of model->tensors;
 * NPS_NONE if they are not known, or there is no memory.
 */
uint32_t nps_operands__list(struct nps_operands *operands, uint32_t proc, const char *api,
			    const uint64_t *slots, uint32_t n);

#endif
