/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the arguments of PyTorch's operators are passed: where each is when call() of an operator is entered.
 * The symbol has the types of the parameters and no result, which on x86-64 can need the first register.
 */
#ifndef NPS_TORCH_INPUTS_H
#define NPS_TORCH_INPUTS_H

#include "attach/torch_names.h"
#include "bpf_shared.h"

/*
 * The inputs of the operator that SYMBOL calls, which returns RESULT, in a library for MACHINE (EM_X86_64,
 * EM_AARCH64) whose tensors have LAYOUT. 0; -ENOTSUP: they are not all known, or too many; -EINVAL: it is no
 * such symbol.
 */
int nps_torch_inputs__of(const char *symbol, enum nps_torch_result result, int machine,
			 enum nps_tensor_layout layout, struct nps_op_inputs *inputs);

/* The layout of tensors in a version, NPS_LAYOUT_UNKNOWN unless its headers were measured. */
enum nps_tensor_layout nps_torch_inputs__layout(unsigned major, unsigned minor);

#endif
