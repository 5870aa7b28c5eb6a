/* SPDX-License-Identifier: BSD-2-Clause */
/* Operators: the tensors of libnnopbase and the two-phase API of libopapi. */
#ifndef NPUSIM_ABI_ACLNN_H
#define NPUSIM_ABI_ACLNN_H

#include "acl.h"

typedef int32_t aclnnStatus;
typedef int aclDataType, aclFormat;
typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclOpExecutor aclOpExecutor;

enum { ACL_FLOAT = 0, ACL_FLOAT16 = 1, ACL_BF16 = 27 };
enum { ACL_FORMAT_ND = 2, ACL_FORMAT_FRACTAL_NZ = 29 };
enum { ACLNN_SUCCESS = 0, ACLNN_ERR_PARAM_NULLPTR = 161001, ACLNN_ERR_INNER = 561000 };

#pragma GCC visibility push(default)

aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType,
			   const int64_t *stride, int64_t offset, aclFormat format,
			   const int64_t *storageDims, uint64_t storageDimsNum, void *tensorData);
aclScalar *aclCreateScalar(void *value, aclDataType dataType);
aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size);
aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size);
aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size);
aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size);
aclnnStatus aclDestroyTensor(const aclTensor *tensor);
aclnnStatus aclDestroyScalar(const aclScalar *scalar);
aclnnStatus aclDestroyIntArray(const aclIntArray *array);
aclnnStatus aclDestroyFloatArray(const aclFloatArray *array);
aclnnStatus aclDestroyBoolArray(const aclBoolArray *array);
aclnnStatus aclDestroyTensorList(const aclTensorList *list);
aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor);
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor);
aclnnStatus aclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr);
aclnnStatus aclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
				   void *addr);
aclnnStatus aclnnInit(const char *configPath);
aclnnStatus aclnnFinalize(void);

/* Phase 1 of each operator, as F(operator, parameters before workspaceSize and executor). */
#define ACLNN_PARAMS(...) __VA_ARGS__
#define ACLNN_OPERATORS(F)                                                                                   \
	F(Add, ACLNN_PARAMS(const aclTensor *self, const aclTensor *other, const aclScalar *alpha,           \
			    aclTensor *out))                                                                 \
	F(Mul, ACLNN_PARAMS(const aclTensor *self, const aclTensor *other, aclTensor *out))                  \
	F(Matmul,                                                                                            \
	  ACLNN_PARAMS(const aclTensor *self, const aclTensor *mat2, aclTensor *out, int8_t cubeMathType))   \
	F(Mm,                                                                                                \
	  ACLNN_PARAMS(const aclTensor *self, const aclTensor *mat2, aclTensor *out, int8_t cubeMathType))   \
	F(Softmax, ACLNN_PARAMS(const aclTensor *self, int64_t dim, aclTensor *out))                         \
	F(SoftmaxBackward, ACLNN_PARAMS(const aclTensor *gradOutput, const aclTensor *output, int64_t dim,   \
					aclTensor *gradInput))                                               \
	F(Cast, ACLNN_PARAMS(const aclTensor *self, const aclDataType dtype, aclTensor *out))                \
	F(InplaceCopy, ACLNN_PARAMS(aclTensor *selfRef, const aclTensor *src))                               \
	F(InplaceZero, ACLNN_PARAMS(aclTensor *selfRef))                                                     \
	F(ReduceSum, ACLNN_PARAMS(const aclTensor *self, const aclIntArray *dims, bool keepDims,             \
				  aclDataType dtype, aclTensor *out))                                        \
	F(Embedding, ACLNN_PARAMS(const aclTensor *weight, const aclTensor *indices, const aclTensor *out))  \
	F(FlashAttentionScore,                                                                               \
	  ACLNN_PARAMS(const aclTensor *query, const aclTensor *key, const aclTensor *value,                 \
		       const aclTensor *realShiftOptional, const aclTensor *dropMaskOptional,                \
		       const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional,             \
		       const aclIntArray *prefixOptional, double scaleValue, double keepProb,                \
		       int64_t preTokens, int64_t nextTokens, int64_t headNum, char *inputLayout,            \
		       int64_t innerPrecise, int64_t sparseMode, const aclTensor *softmaxMaxOut,             \
		       const aclTensor *softmaxSumOut, const aclTensor *softmaxOutOut,                       \
		       const aclTensor *attentionOutOut))                                                    \
	F(LayerNorm,                                                                                         \
	  ACLNN_PARAMS(const aclTensor *input, const aclIntArray *normalizedShape,                           \
		       const aclTensor *weightOptional, const aclTensor *biasOptional, double eps,           \
		       aclTensor *out, aclTensor *meanOutOptional, aclTensor *rstdOutOptional))              \
	F(LayerNormBackward,                                                                                 \
	  ACLNN_PARAMS(const aclTensor *gradOut, const aclTensor *input, const aclIntArray *normalizedShape, \
		       const aclTensor *mean, const aclTensor *rstd, const aclTensor *weightOptional,        \
		       const aclTensor *biasOptional, const aclBoolArray *outputMask,                        \
		       aclTensor *gradInputOut, aclTensor *gradWeightOut, aclTensor *gradBiasOut))           \
	F(Gelu, ACLNN_PARAMS(const aclTensor *x, aclTensor *y))                                              \
	F(GeluBackward,                                                                                      \
	  ACLNN_PARAMS(const aclTensor *gradOutput, const aclTensor *self, aclTensor *gradInput))            \
	F(ApplyAdamW,                                                                                        \
	  ACLNN_PARAMS(aclTensor *varRef, aclTensor *mRef, aclTensor *vRef, const aclTensor *beta1Power,     \
		       const aclTensor *beta2Power, const aclTensor *lr, const aclTensor *weightDecay,       \
		       const aclTensor *beta1, const aclTensor *beta2, const aclTensor *eps,                 \
		       const aclTensor *grad, const aclTensor *maxGradNormOptional, bool amsgrad,            \
		       bool maximize))

#define ACLNN_PROTOTYPE(op, params)                                                                          \
	aclnnStatus aclnn##op##GetWorkspaceSize(params, uint64_t *workspaceSize, aclOpExecutor **executor);  \
	aclnnStatus aclnn##op(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,              \
			      aclrtStream stream);

ACLNN_OPERATORS(ACLNN_PROTOTYPE)

#pragma GCC visibility pop

#endif
