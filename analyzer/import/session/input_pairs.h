/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tensors that PyTorch's operators were called with (--record-shapes). They are recorded when an operator
 * begins, in front of its own record, which states what each of its arguments is.
 */
#ifndef NPS_INPUT_PAIRS_H
#define NPS_INPUT_PAIRS_H

#include "base/ext_sort.h"
#include "import/session/session_model.h"
#include "model/model.h"

struct nps_input_pairs {
	struct nps_model *m;
	const struct nps_session *rec;
	struct nps_ext_sort sorter;
	const struct nps_input_record *next;
	struct nps_pending_inputs *threads; /* by tid; NULL: there are no records */
};

/* Sorts the records of PROC. 0 or negative errno; the caller frees it in either case. */
int nps_input_pairs__new(struct nps_input_pairs *pairs, struct nps_model *model,
			 const struct nps_session *rec, const struct nps_proc *proc);
void nps_input_pairs__free(struct nps_input_pairs *pairs);

/* An operator, whose record has these slots. */
struct nps_input_call {
	uint32_t tid;
	uint64_t start; /* of its record, Unix time */
	uint64_t inputs; /* slot 2 */
	uint64_t what; /* slot 3 */
};

/*
 * Shapes and data types of the arguments of CALL, as the vendor's data has them: ids of texts, NPS_NONE
 * unless all of them are known. Calls come in the order of `start`. 0 or negative errno.
 */
int nps_input_pairs__texts(struct nps_input_pairs *pairs, const struct nps_input_call *call, uint32_t *shapes,
			   uint32_t *types);

#endif
