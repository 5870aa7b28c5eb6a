/* SPDX-License-Identifier: BSD-2-Clause */
/* libopapi: each operator is the list of its L0 kernels and the tensor that says how much work they are. */
#include "opbase.h"
#include "../truth/truth.h"

#define BLOCK_ELEMENTS 8192
#define BLOCKS_MAX 65535

struct l0 {
	const char *op, *kernel;
};

static const struct l0 add = { "Add", "Add_1c7e" };
static const struct l0 mul = { "Mul", "Mul_9b04" };
static const struct l0 mat_mul = { "MatMulV2", "MatMulV2_3f2a_mix_aic" };
static const struct l0 softmax = { "SoftmaxV2", "SoftmaxV2_77d1" };
static const struct l0 softmax_grad = { "SoftmaxGrad", "SoftmaxGrad_22fe" };
static const struct l0 cast = { "Cast", "Cast_0e5b" };
static const struct l0 view_copy = { "ViewCopy", "ViewCopy_a3c2" };
static const struct l0 zeros_like = { "ZerosLike", "ZerosLike_40d8" };
static const struct l0 trans_data = { "TransData", "TransData_c4f1" };
static const struct l0 reduce_sum = { "ReduceSum", "ReduceSum_5d90" };
static const struct l0 gather = { "GatherV2", "GatherV2_f3a8" };
static const struct l0 flash_attention = { "FlashAttentionScore", "FlashAttentionScore_e21b_mix_aic" };
static const struct l0 layer_norm = { "LayerNormV3", "LayerNormV3_48aa" };
static const struct l0 layer_norm_grad = { "LayerNormGradV3", "LayerNormGradV3_b915" };
static const struct l0 gelu = { "Gelu", "Gelu_6b3f" };
static const struct l0 gelu_grad = { "GeluGrad", "GeluGrad_d07c" };
static const struct l0 apply_adam_w = { "ApplyAdamWV2", "ApplyAdamWV2_8e64" };

static uint32_t blocks_for(const aclTensor *tensor)
{
	uint64_t blocks = (TensorElements(tensor) + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;

	if (blocks < 1)
		return 1;
	return blocks > BLOCKS_MAX ? BLOCKS_MAX : (uint32_t)blocks;
}

static aclnnStatus plan(const char *api, const struct l0 *const *kernels, const aclTensor *sized_by,
			uint64_t *workspace_size, aclOpExecutor **executor)
{
	uint64_t begin = truth_now();
	aclnnStatus err = ACLNN_SUCCESS;

	if (!sized_by || !workspace_size || !executor)
		return ACLNN_ERR_PARAM_NULLPTR;
	InitL2Phase1Context(api, executor);
	if (!*executor)
		return ACLNN_ERR_INNER;
	for (; *kernels && !err; kernels++) {
		InitL0Context((*kernels)->op, *executor);
		err = AddToKernelLauncher(*executor, (*kernels)->kernel, blocks_for(sized_by));
	}
	*workspace_size = 0;
	truth_op(api, *executor, 1, begin);
	return err;
}

static aclnnStatus run(const char *api, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
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

/* The parameters are the vendor's; the simulation looks at one of them. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define PHASE_1(op, params)                                                                                  \
	aclnnStatus aclnn##op##GetWorkspaceSize(params, uint64_t *workspaceSize, aclOpExecutor **executor)   \
	{                                                                                                    \
		static const struct l0 *const kernels[] = { KERNELS_##op, NULL };                            \
		return plan("aclnn" #op, kernels, SIZED_BY_##op, workspaceSize, executor);                   \
	}
#define PHASE_2(op, params)                                                                                  \
	aclnnStatus aclnn##op(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,              \
			      aclrtStream stream)                                                            \
	{                                                                                                    \
		return run("aclnn" #op, workspace, workspaceSize, executor, stream);                         \
	}

#define KERNELS_Add &add
#define SIZED_BY_Add out
#define KERNELS_Mul &mul
#define SIZED_BY_Mul out
#define KERNELS_Matmul &mat_mul
#define SIZED_BY_Matmul out
#define KERNELS_Mm &trans_data, &mat_mul
#define SIZED_BY_Mm out
#define KERNELS_Softmax &softmax
#define SIZED_BY_Softmax out
#define KERNELS_SoftmaxBackward &softmax_grad
#define SIZED_BY_SoftmaxBackward gradInput
#define KERNELS_Cast &cast
#define SIZED_BY_Cast out
#define KERNELS_InplaceCopy &view_copy
#define SIZED_BY_InplaceCopy selfRef
#define KERNELS_InplaceZero &zeros_like
#define SIZED_BY_InplaceZero selfRef
#define KERNELS_ReduceSum &cast, &reduce_sum
#define SIZED_BY_ReduceSum self
#define KERNELS_Embedding &gather
#define SIZED_BY_Embedding out
#define KERNELS_FlashAttentionScore &flash_attention
#define SIZED_BY_FlashAttentionScore query
#define KERNELS_LayerNorm &layer_norm
#define SIZED_BY_LayerNorm input
#define KERNELS_LayerNormBackward &layer_norm_grad, &reduce_sum, &cast
#define SIZED_BY_LayerNormBackward input
#define KERNELS_Gelu &gelu
#define SIZED_BY_Gelu x
#define KERNELS_GeluBackward &gelu_grad
#define SIZED_BY_GeluBackward self
#define KERNELS_ApplyAdamW &apply_adam_w
#define SIZED_BY_ApplyAdamW varRef

ACLNN_OPERATORS(PHASE_1)
ACLNN_OPERATORS(PHASE_2)
