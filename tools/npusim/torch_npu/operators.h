/* SPDX-License-Identifier: BSD-2-Clause */
/* ATen operators: their arithmetic, and the aclnn operators that they launch. */
#ifndef NPUSIM_TORCH_NPU_OPERATORS_H
#define NPUSIM_TORCH_NPU_OPERATORS_H

#include "npu.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <vector>

namespace npusim
{

struct aclnn_row {
	const char *aten; /* without "aten::" */
	const char *aclnn;
	/*
	 * Arguments of the first phase, a space between them; N is the ordinal of an argument of the ATen
	 * operator, or of a result: tN tensor, lN list of tensors, rN result, sN scalar, iN integer or bool,
	 * aN array of integers, mN array of bools, d type of the first result, 0 nothing. What is passed in
	 * registers of floating point is left out: the simulation does not read it.
	 */
	const char *params;
	bool scalar_other; /* for when argument 1 is a number on the host */
};

extern const aclnn_row aclnn_rows[];
extern const size_t aclnn_rows_count;

/* The row of an operator with these arguments; NULL: there is none. */
const aclnn_row *find_row(const std::string &aten, const std::vector<c10::IValue> &args);
/* Phase 1 in this thread, phase 2 by the queue. */
void launch(const std::string &aten, const aclnn_row &row, const std::vector<c10::IValue> &args,
	    const std::vector<at::Tensor> &results, uint64_t begin);

/* The same memory as a tensor of the CPU; T is one of the NPU. */
at::Tensor cpu_alias(const at::Tensor &t);
at::Tensor empty_on_npu(at::IntArrayRef size, at::IntArrayRef stride, at::ScalarType type, int device);
void run_boxed(const c10::OperatorHandle &op, torch::jit::Stack *stack);

} // namespace npusim

#endif
