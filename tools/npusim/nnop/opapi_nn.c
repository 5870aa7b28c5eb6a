/* SPDX-License-Identifier: BSD-2-Clause */
/* libopapi_nn: the operators that only the simulated torch_npu calls; each is one kernel. */
#include "operators.h"

/* The parameters are the vendor's; the simulation reads its tensors. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define P(...) __VA_ARGS__
#define IN const aclTensor
#define OUT aclTensor

/* F(operator, kernel, parameters, tensors read, tensors written) */
#define UNARY(F, op) F(op, op, P(IN *self, OUT *out), P(self), P(out))
#define BINARY(F, op, kernel) F(op, kernel, P(IN *self, IN *other, OUT *out), P(self, other), P(out))
#define BACKWARD(F, op, kernel)                                                                              \
	F(op, kernel, P(IN *gradOutput, IN *output, OUT *gradInput), P(gradOutput, output), P(gradInput))
#define INPLACE(F, op, kernel) F(op, kernel, P(OUT *selfRef), P(selfRef), P(selfRef))

#define ELEMENTWISE(F)                                                                                       \
	UNARY(F, Relu)                                                                                       \
	UNARY(F, Sqrt)                                                                                       \
	UNARY(F, Neg)                                                                                        \
	UNARY(F, Exp)                                                                                        \
	UNARY(F, Log)                                                                                        \
	UNARY(F, Tanh)                                                                                       \
	UNARY(F, Sigmoid)                                                                                    \
	BINARY(F, Div, RealDiv)                                                                              \
	BACKWARD(F, TanhBackward, TanhGrad)                                                                  \
	BACKWARD(F, SigmoidBackward, SigmoidGrad)                                                            \
	INPLACE(F, InplaceRelu, Relu)                                                                        \
	INPLACE(F, InplaceSqrt, Sqrt)                                                                        \
	F(EqTensor, Equal, P(IN *self, IN *other, OUT *out), P(self, other), P(out))                         \
	F(Sub, Sub, P(IN *self, IN *other, const aclScalar *alpha, OUT *out), P(self, other), P(out))        \
	F(Adds, Adds, P(IN *self, const aclScalar *other, const aclScalar *alpha, OUT *out), P(self),        \
	  P(out))                                                                                            \
	F(Subs, Subs, P(IN *self, const aclScalar *other, const aclScalar *alpha, OUT *out), P(self),        \
	  P(out))                                                                                            \
	F(Muls, Muls, P(IN *self, const aclScalar *other, OUT *out), P(self), P(out))                        \
	F(Divs, RealDiv, P(IN *self, const aclScalar *other, OUT *out), P(self), P(out))                     \
	F(InplaceAdd, AxpyV2, P(OUT *selfRef, IN *other, const aclScalar *alpha), P(selfRef, other),         \
	  P(selfRef))                                                                                        \
	F(InplaceSub, Sub, P(OUT *selfRef, IN *other, const aclScalar *alpha), P(selfRef, other),            \
	  P(selfRef))                                                                                        \
	F(InplaceMul, Mul, P(OUT *selfRef, IN *other), P(selfRef, other), P(selfRef))                        \
	F(InplaceDiv, RealDiv, P(OUT *selfRef, IN *other), P(selfRef, other), P(selfRef))                    \
	F(InplaceAdds, Adds, P(OUT *selfRef, const aclScalar *other, const aclScalar *alpha), P(selfRef),    \
	  P(selfRef))                                                                                        \
	F(InplaceSubs, Subs, P(OUT *selfRef, const aclScalar *other, const aclScalar *alpha), P(selfRef),    \
	  P(selfRef))                                                                                        \
	F(InplaceMuls, Muls, P(OUT *selfRef, const aclScalar *other), P(selfRef), P(selfRef))                \
	F(InplaceDivs, RealDiv, P(OUT *selfRef, const aclScalar *other), P(selfRef), P(selfRef))             \
	F(InplaceAddcmul, Addcmul, P(OUT *selfRef, IN *tensor1, IN *tensor2, const aclScalar *value),        \
	  P(selfRef, tensor1, tensor2), P(selfRef))                                                          \
	F(InplaceAddcdiv, Addcdiv, P(OUT *selfRef, IN *tensor1, IN *tensor2, const aclScalar *value),        \
	  P(selfRef, tensor1, tensor2), P(selfRef))                                                          \
	F(InplaceFillScalar, Fill, P(OUT *selfRef, const aclScalar *value), P(NULL), P(selfRef))             \
	F(InplaceNormal, StatelessRandomNormalV2,                                                            \
	  P(OUT *selfRef, float mean, float std, int64_t seed, int64_t offset), P(NULL), P(selfRef))         \
	F(InplaceUniform, DSARandomUniform,                                                                  \
	  P(OUT *selfRef, double from, double to, uint64_t seed, uint64_t offset), P(NULL), P(selfRef))      \
	F(ThresholdBackward, ReluGrad, P(IN *gradOutput, IN *self, const aclScalar *threshold, OUT *out),    \
	  P(gradOutput, self), P(out))

#define MATRICES(F)                                                                                          \
	F(Addmm, MatMulV3,                                                                                   \
	  P(IN *self, IN *mat1, IN *mat2, const aclScalar *beta, const aclScalar *alpha, OUT *out,           \
	    int8_t cubeMathType),                                                                            \
	  P(mat1, mat2, self), P(out))                                                                       \
	F(BatchMatMul, BatchMatMulV3, P(IN *self, IN *mat2, OUT *out, int8_t cubeMathType), P(self, mat2),   \
	  P(out))                                                                                            \
	F(Convolution, Conv2D,                                                                               \
	  P(IN *input, IN *weight, IN *bias, const aclIntArray *stride, const aclIntArray *padding,          \
	    const aclIntArray *dilation, bool transposed, const aclIntArray *outputPadding, int64_t groups,  \
	    OUT *output, int8_t cubeMathType),                                                               \
	  P(input, weight, bias), P(output))                                                                 \
	F(ConvolutionBackward, Conv2DBackpropInput,                                                          \
	  P(IN *gradOutput, IN *input, IN *weight, const aclIntArray *biasSizes, const aclIntArray *stride,  \
	    const aclIntArray *padding, const aclIntArray *dilation, bool transposed,                        \
	    const aclIntArray *outputPadding, int64_t groups, const aclBoolArray *outputMask,                \
	    int8_t cubeMathType, OUT *gradInput, OUT *gradWeight, OUT *gradBias),                            \
	  P(gradOutput, input, weight), P(gradInput, gradWeight, gradBias))

#define REDUCTIONS(F)                                                                                        \
	F(Mean, ReduceMean, P(IN *self, const aclIntArray *dim, bool keepDim, aclDataType dtype, OUT *out),  \
	  P(self), P(out))                                                                                   \
	F(ArgMax, ArgMaxV2, P(IN *self, int64_t dim, bool keepdim, OUT *out), P(self), P(out))               \
	F(AdaptiveAvgPool2d, AdaptiveAvgPool2d, P(IN *self, const aclIntArray *outputSize, OUT *out),        \
	  P(self), P(out))                                                                                   \
	F(LogSoftmax, LogSoftmaxV2, P(IN *self, int64_t dim, OUT *out), P(self), P(out))                     \
	F(LogSoftmaxBackward, LogSoftmaxGrad, P(IN *gradOutput, IN *output, int64_t dim, OUT *out),          \
	  P(gradOutput, output), P(out))                                                                     \
	F(MseLoss, MSELoss, P(IN *self, IN *target, int64_t reduction, OUT *out), P(self, target), P(out))   \
	F(MseLossBackward, MSELossGrad,                                                                      \
	  P(IN *gradOutput, IN *self, IN *target, int64_t reduction, OUT *out), P(gradOutput, self, target), \
	  P(out))                                                                                            \
	F(NLLLoss, NLLLoss,                                                                                  \
	  P(IN *self, IN *target, IN *weight, int64_t reduction, int64_t ignoreIndex, OUT *out,              \
	    OUT *totalWeightOut),                                                                            \
	  P(self, target, weight), P(out, totalWeightOut))                                                   \
	F(NLLLossBackward, NLLLossGrad,                                                                      \
	  P(IN *gradOutput, IN *self, IN *target, IN *weight, int64_t reduction, int64_t ignoreIndex,        \
	    IN *totalWeight, OUT *out),                                                                      \
	  P(gradOutput, self, target, weight, totalWeight), P(out))

#define NORMS(F)                                                                                             \
	F(BatchNorm, BatchNormV3,                                                                            \
	  P(IN *input, IN *weight, IN *bias, OUT *runningMean, OUT *runningVar, bool training,               \
	    double momentum, double eps, OUT *output, OUT *saveMean, OUT *saveInvstd),                       \
	  P(input, weight, bias, runningMean, runningVar), P(output, saveMean, saveInvstd))                  \
	F(BatchNormBackward, BatchNormGradV3,                                                                \
	  P(IN *gradOut, IN *input, IN *weight, IN *runningMean, IN *runningVar, IN *saveMean,               \
	    IN *saveInvstd, bool training, double eps, const aclBoolArray *outputMask, OUT *gradInput,       \
	    OUT *gradWeight, OUT *gradBias),                                                                 \
	  P(gradOut, input, weight, saveMean, saveInvstd), P(gradInput, gradWeight, gradBias))               \
	F(MaxPool2dWithIndices, MaxPoolWithArgmaxV1,                                                         \
	  P(IN *self, const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding,  \
	    const aclIntArray *dilation, bool ceilMode, OUT *out, OUT *indices),                             \
	  P(self), P(out, indices))                                                                          \
	F(MaxPool2dWithIndicesBackward, MaxPoolGradWithArgmaxV1,                                             \
	  P(IN *gradOutput, IN *self, IN *indices, const aclIntArray *kernelSize, const aclIntArray *stride, \
	    const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode, OUT *gradInput),         \
	  P(gradOutput, self, indices), P(gradInput))                                                        \
	F(InplaceBernoulli, StatelessBernoulli,                                                              \
	  P(OUT *selfRef, const aclScalar *prob, int64_t seed, int64_t offset), P(NULL), P(selfRef))

#define INDEXES(F)                                                                                           \
	F(Cat, ConcatD, P(const aclTensorList *tensors, int64_t dim, OUT *out), P(NULL), P(out))             \
	F(Max, ReduceMax, P(IN *self, OUT *out), P(self), P(out))                                            \
	F(GtScalar, Greater, P(IN *self, const aclScalar *other, OUT *out), P(self), P(out))                 \
	F(IndexSelect, GatherV2, P(IN *self, int64_t dim, IN *index, OUT *out), P(self, index), P(out))      \
	F(Topk, TopKV2,                                                                                      \
	  P(IN *self, int64_t k, int64_t dim, bool largest, bool sorted, OUT *valuesOut, OUT *indicesOut),   \
	  P(self), P(valuesOut, indicesOut))                                                                 \
	F(EmbeddingDenseBackward, EmbeddingDenseGradV2,                                                      \
	  P(IN *grad, IN *indices, uint64_t numWeights, uint64_t paddingIdx, bool scaleGradByFreq,           \
	    OUT *out),                                                                                       \
	  P(grad, indices), P(out))

#define OPERATOR(op, l0_operator, params, tensors_in, tensors_out)                                           \
	__attribute__((visibility("default")))                                                               \
	aclnnStatus aclnn##op##GetWorkspaceSize(params, uint64_t *workspaceSize, aclOpExecutor **executor)   \
	{                                                                                                    \
		static const struct l0 l0 = { #l0_operator, #l0_operator "_5a1c" };                          \
		const struct op_kernel kernels[] = { { &l0, { tensors_in }, { tensors_out } }, { 0 } };      \
                                                                                                             \
		return plan("aclnn" #op, kernels, kernels[0].out[0] ? kernels[0].out[0] : kernels[0].in[0],  \
			    workspaceSize, executor);                                                        \
	}                                                                                                    \
	__attribute__((visibility("default"))) aclnnStatus aclnn##op(                                        \
		void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream)        \
	{                                                                                                    \
		return op_run("aclnn" #op, workspace, workspaceSize, executor, stream);                      \
	}

ELEMENTWISE(OPERATOR)
MATRICES(OPERATOR)
REDUCTIONS(OPERATOR)
NORMS(OPERATOR)
INDEXES(OPERATOR)
