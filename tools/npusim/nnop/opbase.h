/* SPDX-License-Identifier: BSD-2-Clause */
/* What libopapi uses of libnnopbase: C++ internals there, which the vendor's library exports too. */
#ifndef NPUSIM_NNOP_OPBASE_H
#define NPUSIM_NNOP_OPBASE_H

#include "../abi/aclnn.h"

#pragma GCC visibility push(default)

/* Makes the executor that identifies the operator from here to the end of phase 2. */
void InitL2Phase1Context(const char *api,
			 aclOpExecutor **executor) __asm__("_Z19InitL2Phase1ContextPKcPP13aclOpExecutor");
void InitL2Phase2Context(const char *api,
			 aclOpExecutor *executor) __asm__("_Z19InitL2Phase2ContextPKcP13aclOpExecutor");
void InitL0Context(const char *l0_operator,
		   aclOpExecutor *executor) __asm__("_Z13InitL0ContextPKcP13aclOpExecutor");
/* Queues the kernels; frees the executor unless it is repeatable. */
aclnnStatus CommonOpExecutorRun(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
				aclrtStream stream) __asm__("_Z19CommonOpExecutorRunPvmP13aclOpExecutorS_");

/* Plans a launch of `kernel` for the L0 operator whose context was initialised last. */
aclnnStatus AddToKernelLauncher(aclOpExecutor *executor, const char *kernel,
				uint32_t blocks) __asm__("_ZN2op21AddToKernelLauncherEP13aclOpExecutorPKcj");
uint64_t TensorElements(const aclTensor *tensor) __asm__("_ZN2op14TensorElementsEPK9aclTensor");

#pragma GCC visibility pop

#endif
