/* SPDX-License-Identifier: BSD-2-Clause */
/* What the libraries of operators share: an operator is a list of kernels, planned and then launched. */
#ifndef NPUSIM_NNOP_OPERATORS_H
#define NPUSIM_NNOP_OPERATORS_H

#include "opbase.h"
#include "../truth/truth.h"

#define BLOCK_ELEMENTS 8192
#define BLOCKS_MAX 65535

struct l0 {
	const char *op, *kernel;
};

static uint32_t blocks_for(const aclTensor *tensor)
{
	uint64_t blocks = (TensorElements(tensor) + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;

	if (blocks < 1)
		return 1;
	return blocks > BLOCKS_MAX ? BLOCKS_MAX : (uint32_t)blocks;
}

#define TENSORS_MAX 12

/* A kernel of an operator and its arguments; absent tensors are NULL. */
struct op_kernel {
	const struct l0 *l0;
	const aclTensor *in[TENSORS_MAX], *out[TENSORS_MAX];
};

static aclnnStatus plan_kernels(aclOpExecutor *executor, const struct op_kernel *kernels,
				const aclTensor *sized_by)
{
	for (; kernels->l0; kernels++) {
		aclnnStatus err;

		InitL0Context(kernels->l0->op, executor);
		err = AddToKernelLauncher(executor, kernels->l0->kernel, blocks_for(sized_by));
		if (err)
			return err;
		SetKernelTensors(executor, kernels->in, TENSORS_MAX, kernels->out, TENSORS_MAX);
	}
	return ACLNN_SUCCESS;
}

static aclnnStatus plan(const char *api, const struct op_kernel *kernels, const aclTensor *sized_by,
			uint64_t *workspace_size, aclOpExecutor **executor)
{
	uint64_t begin = truth_now();
	aclnnStatus err = ACLNN_SUCCESS;

	if (!sized_by || !workspace_size || !executor)
		return ACLNN_ERR_PARAM_NULLPTR;
	InitL2Phase1Context(api, executor);
	if (!*executor)
		return ACLNN_ERR_INNER;
	/* the first kernel's tensors distinguish calls of an operator */
	if (!PlanFromCache(*executor, kernels->in, TENSORS_MAX, kernels->out, TENSORS_MAX))
		err = plan_kernels(*executor, kernels, sized_by);
	*workspace_size = 0;
	truth_op(api, *executor, 1, begin);
	return err;
}

static aclnnStatus op_run(const char *api, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
			  aclrtStream stream)
{
	uint64_t begin = truth_now();
	aclnnStatus err;

	if (!executor)
		return ACLNN_ERR_PARAM_NULLPTR;
	InitL2Phase2Context(api, executor);
	err = CommonOpExecutorRun(workspace, workspace_size, executor, stream);
	truth_op(api, executor, 2, begin);
	return err;
}

#endif
