/* SPDX-License-Identifier: BSD-2-Clause */
/* libopapi: each operator is the list of its L0 kernels and the tensor that decides the amount of work. */
#include "operators.h"

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

/* The parameters are the vendor's; the simulation reads one of them. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define PHASE_1(op, params)                                                                                  \
	aclnnStatus aclnn##op##GetWorkspaceSize(params, uint64_t *workspaceSize, aclOpExecutor **executor)   \
	{                                                                                                    \
		const struct op_kernel kernels[] = { KERNELS_##op, { .l0 = NULL } };                         \
		return plan("aclnn" #op, kernels, SIZED_BY_##op, workspaceSize, executor);                   \
	}
#define PHASE_2(op, params)                                                                                  \
	aclnnStatus aclnn##op(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,              \
			      aclrtStream stream)                                                            \
	{                                                                                                    \
		return op_run("aclnn" #op, workspace, workspaceSize, executor, stream);                      \
	}

#define KERNELS_Add                                                                                          \
	{                                                                                                    \
		&add, { self, other },                                                                       \
		{                                                                                            \
			out                                                                                  \
		}                                                                                            \
	}
#define SIZED_BY_Add out
#define KERNELS_Mul                                                                                          \
	{                                                                                                    \
		&mul, { self, other },                                                                       \
		{                                                                                            \
			out                                                                                  \
		}                                                                                            \
	}
#define SIZED_BY_Mul out
#define KERNELS_Matmul                                                                                       \
	{                                                                                                    \
		&mat_mul, { self, mat2 },                                                                    \
		{                                                                                            \
			out                                                                                  \
		}                                                                                            \
	}
#define SIZED_BY_Matmul out
#define KERNELS_Mm                                                                                           \
	{ &trans_data, { self }, { self } },                                                                 \
	{                                                                                                    \
		&mat_mul, { self, mat2 },                                                                    \
		{                                                                                            \
			out                                                                                  \
		}                                                                                            \
	}
#define SIZED_BY_Mm out
#define KERNELS_Softmax                                                                                      \
	{                                                                                                    \
		&softmax, { self },                                                                          \
		{                                                                                            \
			out                                                                                  \
		}                                                                                            \
	}
#define SIZED_BY_Softmax out
#define KERNELS_SoftmaxBackward                                                                              \
	{                                                                                                    \
		&softmax_grad, { gradOutput, output },                                                       \
		{                                                                                            \
			gradInput                                                                            \
		}                                                                                            \
	}
#define SIZED_BY_SoftmaxBackward gradInput
#define KERNELS_Cast                                                                                         \
	{                                                                                                    \
		&cast, { self },                                                                             \
		{                                                                                            \
			out                                                                                  \
		}                                                                                            \
	}
#define SIZED_BY_Cast out
#define KERNELS_InplaceCopy                                                                                  \
	{                                                                                                    \
		&view_copy, { src },                                                                         \
		{                                                                                            \
			selfRef                                                                              \
		}                                                                                            \
	}
#define SIZED_BY_InplaceCopy selfRef
#define KERNELS_InplaceZero                                                                                  \
	{                                                                                                    \
		&zeros_like, { NULL },                                                                       \
		{                                                                                            \
			selfRef                                                                              \
		}                                                                                            \
	}
#define SIZED_BY_InplaceZero selfRef
#define KERNELS_ReduceSum                                                                                    \
	{ &cast, { self }, { self } },                                                                       \
	{                                                                                                    \
		&reduce_sum, { self },                                                                       \
		{                                                                                            \
			out                                                                                  \
		}                                                                                            \
	}
#define SIZED_BY_ReduceSum self
#define KERNELS_Embedding                                                                                    \
	{                                                                                                    \
		&gather, { weight, indices },                                                                \
		{                                                                                            \
			out                                                                                  \
		}                                                                                            \
	}
#define SIZED_BY_Embedding out
#define KERNELS_FlashAttentionScore                                                                          \
	{                                                                                                    \
		&flash_attention, { query,                                                                   \
				    key,                                                                     \
				    value,                                                                   \
				    realShiftOptional,                                                       \
				    dropMaskOptional,                                                        \
				    paddingMaskOptional,                                                     \
				    attenMaskOptional },                                                     \
		{                                                                                            \
			softmaxMaxOut, softmaxSumOut, softmaxOutOut, attentionOutOut                         \
		}                                                                                            \
	}
#define SIZED_BY_FlashAttentionScore query
#define KERNELS_LayerNorm                                                                                    \
	{                                                                                                    \
		&layer_norm, { input, weightOptional, biasOptional },                                        \
		{                                                                                            \
			out, meanOutOptional, rstdOutOptional                                                \
		}                                                                                            \
	}
#define SIZED_BY_LayerNorm input
#define KERNELS_LayerNormBackward                                                                            \
	{ &layer_norm_grad,                                                                                  \
	  { gradOut, input, mean, rstd, weightOptional, biasOptional },                                      \
	  { gradInputOut } },                                                                                \
		{ &reduce_sum, { gradOut, mean }, { gradWeightOut } },                                       \
	{                                                                                                    \
		&cast, { gradWeightOut },                                                                    \
		{                                                                                            \
			gradBiasOut                                                                          \
		}                                                                                            \
	}
#define SIZED_BY_LayerNormBackward input
#define KERNELS_Gelu                                                                                         \
	{                                                                                                    \
		&gelu, { x },                                                                                \
		{                                                                                            \
			y                                                                                    \
		}                                                                                            \
	}
#define SIZED_BY_Gelu x
#define KERNELS_GeluBackward                                                                                 \
	{                                                                                                    \
		&gelu_grad, { gradOutput, self },                                                            \
		{                                                                                            \
			gradInput                                                                            \
		}                                                                                            \
	}
#define SIZED_BY_GeluBackward self
#define KERNELS_ApplyAdamW                                                                                   \
	{                                                                                                    \
		&apply_adam_w, { varRef,      mRef,  vRef,  beta1Power, beta2Power, lr,                      \
				 weightDecay, beta1, beta2, eps,	grad,	    maxGradNormOptional },   \
		{                                                                                            \
			varRef, mRef, vRef                                                                   \
		}                                                                                            \
	}
#define SIZED_BY_ApplyAdamW varRef

ACLNN_OPERATORS(PHASE_1)
ACLNN_OPERATORS(PHASE_2)
