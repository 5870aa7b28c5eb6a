/* SPDX-License-Identifier: BSD-2-Clause */
/* What libopapi uses of libnnopbase: C++ internals there, which the vendor's library exports too. */
#ifndef NPUSIM_NNOP_OPBASE_H
#define NPUSIM_NNOP_OPBASE_H

#include "../abi/aclnn.h"

/*
 * First statement of a small function that a job calls all the time. The vendor's functions are large and
 * begin by saving registers; so do these, because a callee-saved register is declared as clobbered here.
 */
#if defined(__x86_64__)
#define SAVES_REGISTERS() __asm__ volatile("" ::: "rbx")
#elif defined(__aarch64__)
#define SAVES_REGISTERS() __asm__ volatile("" ::: "x19")
#else
#define SAVES_REGISTERS()
#endif

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
/* The tensors of the kernel that was planned last; absent ones are NULL. For the truth file only. */
void SetKernelTensors(aclOpExecutor *executor, const aclTensor *const *in, int nin,
		      const aclTensor *const *out,
		      int nout) __asm__("_ZN2op16SetKernelTensorsEP13aclOpExecutorPKPK9aclTensoriS5_i");
uint64_t TensorElements(const aclTensor *tensor) __asm__("_ZN2op14TensorElementsEPK9aclTensor");
/* Shape, type or format (WHAT 0, 1, 2) as in the truth file, into `to`, at most `room` bytes; the length. */
int DescribeTensor(const aclTensor *tensor, int what, char *to,
		   int room) __asm__("_ZN2op14DescribeTensorEPK9aclTensoriPci");

/*
 * The operator's own cache: takes over the plan of an earlier first phase of the same operator with the same
 * tensors. False: there is none, or the cache is off (NPUSIM_EXECUTOR_CACHE).
 */
bool PlanFromCache(aclOpExecutor *executor, const aclTensor *const *in, int nin, const aclTensor *const *out,
		   int nout) __asm__("_ZN2op13PlanFromCacheEP13aclOpExecutorPKPK9aclTensoriS5_i");

#pragma GCC visibility pop

#endif
