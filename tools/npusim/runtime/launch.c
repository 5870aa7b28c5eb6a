/* SPDX-License-Identifier: BSD-2-Clause */
/* The many ways to launch a kernel end in one SQE. */
#include "internal.h"

#define AICPU_NS 20000

rtError_t launch(const struct kernel *k, uint32_t blocks, const void *args, uint32_t args_size,
		 rtStream_t stream)
{
	struct stream *s = stream_of(stream);
	struct stars_sqe sqe = { .type = STARS_AICORE };

	if (!s)
		return ACL_ERROR_RT_CONTEXT_NULL;
	if (!k || blocks == 0 || blocks > UINT16_MAX)
		return ACL_ERROR_RT_PARAM_INVALID;
	truth_kernel_name(k->name);
	sqe.block_dim = (uint16_t)blocks;
	sqe.kernel.pc = k->pc;
	sqe.kernel.args = (uintptr_t)args;
	sqe.kernel.args_size = args_size;
	sqe.kernel.wave_ns = k->wave_ns;
	sqe.kernel.core = (uint8_t)k->core;
	return stream_send(s, &sqe, NULL);
}

rtError_t rtKernelLaunch(const void *stubFunc, uint32_t numBlocks, void *args, uint32_t argsSize,
			 rtSmDesc_t *smDesc, rtStream_t stream)
{
	TRUTH_CALL("rtKernelLaunch");

	(void)smDesc;
	return launch(kernel_by_stub(stubFunc), numBlocks, args, argsSize, stream);
}

rtError_t rtKernelLaunchWithFlag(const void *stubFunc, uint32_t numBlocks, rtArgsEx_t *argsInfo,
				 rtSmDesc_t *smDesc, rtStream_t stream, uint32_t flags)
{
	TRUTH_CALL("rtKernelLaunchWithFlag");

	(void)smDesc;
	(void)flags;
	if (!argsInfo)
		return ACL_ERROR_RT_PARAM_INVALID;
	return launch(kernel_by_stub(stubFunc), numBlocks, argsInfo->args, argsInfo->argsSize, stream);
}

rtError_t rtKernelLaunchWithFlagV2(const void *stubFunc, uint32_t numBlocks, rtArgsEx_t *argsInfo,
				   rtSmDesc_t *smDesc, rtStream_t stream, uint32_t flags,
				   const rtTaskCfgInfo_t *cfgInfo)
{
	TRUTH_CALL("rtKernelLaunchWithFlagV2");

	(void)smDesc;
	(void)flags;
	(void)cfgInfo;
	if (!argsInfo)
		return ACL_ERROR_RT_PARAM_INVALID;
	return launch(kernel_by_stub(stubFunc), numBlocks, argsInfo->args, argsInfo->argsSize, stream);
}

rtError_t rtKernelLaunchWithHandleV2(void *hdl, const uint64_t tilingKey, uint32_t numBlocks,
				     rtArgsEx_t *argsInfo, rtSmDesc_t *smDesc, rtStream_t stream,
				     const rtTaskCfgInfo_t *cfgInfo)
{
	TRUTH_CALL("rtKernelLaunchWithHandleV2");

	(void)smDesc;
	(void)cfgInfo;
	if (!argsInfo)
		return ACL_ERROR_RT_PARAM_INVALID;
	return launch(kernel_by_key(hdl, tilingKey), numBlocks, argsInfo->args, argsInfo->argsSize, stream);
}

rtError_t rtLaunchKernelByFuncHandleV3(rtFuncHandle function, uint32_t numBlocks, const rtArgsEx_t *argsInfo,
				       rtStream_t stream, const rtTaskCfgInfo_t *cfgInfo)
{
	TRUTH_CALL("rtLaunchKernelByFuncHandleV3");

	(void)cfgInfo;
	if (!argsInfo)
		return ACL_ERROR_RT_PARAM_INVALID;
	return launch(function, numBlocks, argsInfo->args, argsInfo->argsSize, stream);
}

rtError_t rtsLaunchKernelWithDevArgs(rtFuncHandle function, uint32_t numBlocks, rtStream_t stream,
				     rtKernelLaunchCfg_t *cfg, const void *args, uint32_t argsSize,
				     void *reserve)
{
	TRUTH_CALL("rtsLaunchKernelWithDevArgs");

	(void)cfg;
	(void)reserve;
	return launch(function, numBlocks, args, argsSize, stream);
}

rtError_t rtsLaunchKernelWithConfig(rtFuncHandle function, uint32_t numBlocks, rtStream_t stream,
				    rtKernelLaunchCfg_t *cfg, void *argsHandle, void *reserve)
{
	TRUTH_CALL("rtsLaunchKernelWithConfig");

	(void)cfg;
	(void)reserve;
	return launch(function, numBlocks, argsHandle, 0, stream);
}

rtError_t rtsLaunchKernelWithHostArgs(rtFuncHandle function, uint32_t numBlocks, rtStream_t stream,
				      rtKernelLaunchCfg_t *cfg, void *hostArgs, uint32_t argsSize,
				      void *placeHolders, uint32_t numPlaceHolders)
{
	TRUTH_CALL("rtsLaunchKernelWithHostArgs");

	(void)cfg;
	(void)placeHolders;
	(void)numPlaceHolders;
	return launch(function, numBlocks, hostArgs, argsSize, stream);
}

rtError_t rtAicpuKernelLaunchExWithArgs(const uint32_t kernelType, const char *const opName,
					const uint32_t numBlocks, const void *argsInfo,
					rtSmDesc_t *const smDesc, const rtStream_t stream,
					const uint32_t flags)
{
	TRUTH_CALL("rtAicpuKernelLaunchExWithArgs");
	struct stream *s = stream_of(stream);
	struct stars_sqe sqe = { .type = STARS_AICPU, .block_dim = 1 };

	(void)kernelType;
	(void)numBlocks;
	(void)argsInfo;
	(void)smDesc;
	(void)flags;
	if (!s || !opName)
		return s ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_RT_CONTEXT_NULL;
	truth_kernel_name(opName);
	sqe.kernel.wave_ns = AICPU_NS;
	return stream_send(s, &sqe, NULL);
}

/* A mark in the TS track, at the stream's turn. */
rtError_t rtProfilerTraceEx(uint64_t id, uint64_t modelId, uint16_t tagId, rtStream_t stream)
{
	TRUTH_CALL("rtProfilerTraceEx");
	struct stream *s = stream_of(stream);
	struct stars_sqe sqe = {
		.type = STARS_PLACE_HOLDER,
		.holder = { .kind = STARS_PROFILER_TRACE, .function = modelId, .argument = id, .tag = tagId }
	};

	return s ? stream_send(s, &sqe, NULL) : ACL_ERROR_RT_CONTEXT_NULL;
}
