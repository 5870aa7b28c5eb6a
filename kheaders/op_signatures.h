/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Which arguments of an operator's first phase are tensors, and which of them it reads or writes, from
 * the interface's public documentation: a library without its headers does not contain that. One letter
 * per argument, in order, without those in floating-point registers (float, double) and without the last
 * two, the workspace size and the executor:
 *
 *   i input  o output  r both (read and written in place)  I O R lists of them  x no tensor
 *
 * The arguments of each call are checked against its row. If an argument that should be a tensor is not
 * one that the job created, or if one that should not be a tensor is, the operator is of another version,
 * and nothing is reported of its arguments. Sorted by name (strcmp).
 */
#ifndef NPS_OP_SIGNATURES_H
#define NPS_OP_SIGNATURES_H

/* clang-format off */
#define NPS_OP_SIGNATURES(S) \
	S("aclnnAbs", "io") \
	S("aclnnAdaptiveAvgPool2d", "ixo") \
	S("aclnnAdd", "iixo") \
	S("aclnnAddRmsNorm", "iiiooo") \
	S("aclnnAddcdiv", "iiixo") \
	S("aclnnAddcmul", "iiixo") \
	S("aclnnAddmm", "iiixxox") \
	S("aclnnAdds", "ixxo") \
	S("aclnnAmax", "ixxo") \
	S("aclnnAmin", "ixxo") \
	S("aclnnApplyAdamW", "rrriiiiiiiiixx") \
	S("aclnnApplyAdamWV2", "rrrriixx") \
	S("aclnnApplyRotaryPosEmb", "rriix") \
	S("aclnnArange", "xxxo") \
	S("aclnnArgMax", "ixxo") \
	S("aclnnArgsort", "ixxo") \
	S("aclnnBaddbmm", "iiixxox") \
	S("aclnnBatchMatMul", "iiox") \
	S("aclnnBatchNorm", "iiirrxooo") \
	S("aclnnBitwiseAndTensor", "iio") \
	S("aclnnCast", "ixo") \
	S("aclnnCat", "Ixo") \
	S("aclnnCeil", "io") \
	S("aclnnClamp", "ixxo") \
	S("aclnnClampMin", "ixo") \
	S("aclnnConstantPadNd", "ixxo") \
	S("aclnnConvolution", "iiixxxxxxox") \
	S("aclnnConvolutionBackward", "iiixxxxxxxxxooo") \
	S("aclnnCos", "io") \
	S("aclnnCumsum", "ixxo") \
	S("aclnnDiv", "iio") \
	S("aclnnDivMod", "iixo") \
	S("aclnnDivMods", "ixxo") \
	S("aclnnDivs", "ixo") \
	S("aclnnDot", "iio") \
	S("aclnnDropoutDoMask", "iio") \
	S("aclnnDropoutGenMask", "xxxo") \
	S("aclnnEmbedding", "iio") \
	S("aclnnEmbeddingDenseBackward", "iixxxo") \
	S("aclnnEqScalar", "ixo") \
	S("aclnnEqTensor", "iio") \
	S("aclnnErf", "io") \
	S("aclnnExp", "io") \
	S("aclnnExpand", "ixo") \
	S("aclnnFastGelu", "io") \
	S("aclnnFastGeluBackward", "iio") \
	S("aclnnFlashAttentionScore", "iiiiiiixxxxxxxoooo") \
	S("aclnnFlip", "ixo") \
	S("aclnnFloor", "io") \
	S("aclnnGather", "ixio") \
	S("aclnnGeScalar", "ixo") \
	S("aclnnGeTensor", "iio") \
	S("aclnnGelu", "io") \
	S("aclnnGeluBackward", "iio") \
	S("aclnnGeluBackwardV2", "iixo") \
	S("aclnnGeluV2", "ixo") \
	S("aclnnGtScalar", "ixo") \
	S("aclnnGtTensor", "iio") \
	S("aclnnIndex", "iIo") \
	S("aclnnIndexPutImpl", "rIixx") \
	S("aclnnIndexSelect", "ixio") \
	S("aclnnInplaceAdd", "rix") \
	S("aclnnInplaceAddcdiv", "riix") \
	S("aclnnInplaceAddcmul", "riix") \
	S("aclnnInplaceAdds", "rxx") \
	S("aclnnInplaceCopy", "oi") \
	S("aclnnInplaceDiv", "ri") \
	S("aclnnInplaceDivs", "rx") \
	S("aclnnInplaceExp", "r") \
	S("aclnnInplaceFillScalar", "ox") \
	S("aclnnInplaceMaskedFillScalar", "rix") \
	S("aclnnInplaceMaskedFillTensor", "rii") \
	S("aclnnInplaceMul", "ri") \
	S("aclnnInplaceMuls", "rx") \
	S("aclnnInplaceNeg", "r") \
	S("aclnnInplaceNormal", "oxx") \
	S("aclnnInplaceOne", "o") \
	S("aclnnInplaceReciprocal", "r") \
	S("aclnnInplaceRelu", "r") \
	S("aclnnInplaceRsqrt", "r") \
	S("aclnnInplaceSigmoid", "r") \
	S("aclnnInplaceSqrt", "r") \
	S("aclnnInplaceSub", "rix") \
	S("aclnnInplaceSubs", "rxx") \
	S("aclnnInplaceUniform", "oxx") \
	S("aclnnInplaceZero", "o") \
	S("aclnnIsFinite", "io") \
	S("aclnnLayerNorm", "ixiiooo") \
	S("aclnnLayerNormBackward", "iixiiiixooo") \
	S("aclnnLeScalar", "ixo") \
	S("aclnnLeTensor", "iio") \
	S("aclnnLeakyRelu", "ixo") \
	S("aclnnLerp", "iiio") \
	S("aclnnLerps", "iixo") \
	S("aclnnLog", "io") \
	S("aclnnLogSoftmax", "ixo") \
	S("aclnnLogSoftmaxBackward", "iixo") \
	S("aclnnLogicalAnd", "iio") \
	S("aclnnLogicalNot", "io") \
	S("aclnnLogicalOr", "iio") \
	S("aclnnLtScalar", "ixo") \
	S("aclnnLtTensor", "iio") \
	S("aclnnMatmul", "iiox") \
	S("aclnnMax", "io") \
	S("aclnnMaxDim", "ixxoo") \
	S("aclnnMaximum", "iio") \
	S("aclnnMean", "ixxxo") \
	S("aclnnMin", "io") \
	S("aclnnMinDim", "ixxoo") \
	S("aclnnMinimum", "iio") \
	S("aclnnMm", "iiox") \
	S("aclnnMseLoss", "iixo") \
	S("aclnnMseLossBackward", "iiixo") \
	S("aclnnMul", "iio") \
	S("aclnnMuls", "ixo") \
	S("aclnnMv", "iiox") \
	S("aclnnNLLLoss", "iiixxoo") \
	S("aclnnNLLLossBackward", "iiiixxio") \
	S("aclnnNeScalar", "ixo") \
	S("aclnnNeTensor", "iio") \
	S("aclnnNeg", "io") \
	S("aclnnNorm", "ixxxo") \
	S("aclnnPermute", "ixo") \
	S("aclnnPowScalarTensor", "xio") \
	S("aclnnPowTensorScalar", "ixo") \
	S("aclnnPowTensorTensor", "iio") \
	S("aclnnReciprocal", "io") \
	S("aclnnReduceSum", "ixxxo") \
	S("aclnnRelu", "io") \
	S("aclnnRepeat", "ixo") \
	S("aclnnRmsNorm", "iioo") \
	S("aclnnRmsNormGrad", "iiiioo") \
	S("aclnnRoll", "ixxo") \
	S("aclnnRotaryPositionEmbedding", "iiixo") \
	S("aclnnRound", "io") \
	S("aclnnRsqrt", "io") \
	S("aclnnSWhere", "iiio") \
	S("aclnnScatter", "ixiixo") \
	S("aclnnSigmoid", "io") \
	S("aclnnSigmoidBackward", "iio") \
	S("aclnnSign", "io") \
	S("aclnnSilu", "io") \
	S("aclnnSiluBackward", "iio") \
	S("aclnnSin", "io") \
	S("aclnnSoftmax", "ixo") \
	S("aclnnSoftmaxBackward", "iixo") \
	S("aclnnSoftplus", "ixxo") \
	S("aclnnSort", "ixxxoo") \
	S("aclnnSplitTensor", "ixxO") \
	S("aclnnSplitWithSize", "ixxO") \
	S("aclnnSqrt", "io") \
	S("aclnnStack", "Ixo") \
	S("aclnnSub", "iixo") \
	S("aclnnSubs", "ixxo") \
	S("aclnnSwiGlu", "ixo") \
	S("aclnnSwiGluGrad", "iixo") \
	S("aclnnTanh", "io") \
	S("aclnnTanhBackward", "iio") \
	S("aclnnThresholdBackward", "iixo") \
	S("aclnnTopk", "ixxxxoo") \
	S("aclnnTril", "ixo") \
	S("aclnnTriu", "ixo")
/* clang-format on */

#endif
