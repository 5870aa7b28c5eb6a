/* SPDX-License-Identifier: BSD-2-Clause */
/* ACL on top of rt: kernels. */
#include "internal.h"

aclError aclrtBinaryLoadFromFileImpl(const char *path, void *options, aclrtBinHandle *handle)
{
	return rtsBinaryLoadFromFile(path, options, handle);
}

aclError aclrtBinaryLoadFromDataImpl(const void *data, size_t length, const void *options,
				     aclrtBinHandle *handle)
{
	return rtsBinaryLoadFromData(data, length, options, handle);
}

aclError aclrtBinaryUnLoadImpl(aclrtBinHandle handle)
{
	return rtsBinaryUnload(handle);
}

aclError aclrtBinaryGetFunctionImpl(const aclrtBinHandle handle, const char *kernelName,
				    aclrtFuncHandle *function)
{
	return rtsFuncGetByName(handle, kernelName, function);
}

aclError aclrtBinaryGetFunctionByEntryImpl(aclrtBinHandle handle, uint64_t funcEntry,
					   aclrtFuncHandle *function)
{
	return rtsFuncGetByEntry(handle, funcEntry, function);
}

aclError aclrtGetFunctionNameImpl(aclrtFuncHandle function, uint32_t maxLen, char *name)
{
	return rtsFuncGetName(function, maxLen, name);
}

aclError aclrtLaunchKernelImpl(aclrtFuncHandle function, uint32_t numBlocks, const void *argsData,
			       size_t argsSize, aclrtStream stream)
{
	TRUTH_CALL("aclrtLaunchKernel");
	rtArgsEx_t args = { .args = (void *)(uintptr_t)argsData, .argsSize = (uint32_t)argsSize };

	return rtLaunchKernelByFuncHandleV3(function, numBlocks, &args, stream, NULL);
}

aclError aclrtLaunchKernelV2Impl(aclrtFuncHandle function, uint32_t numBlocks, const void *argsData,
				 size_t argsSize, aclrtLaunchKernelCfg *cfg, aclrtStream stream)
{
	TRUTH_CALL("aclrtLaunchKernelV2");
	return rtsLaunchKernelWithDevArgs(function, numBlocks, stream, (rtKernelLaunchCfg_t *)cfg, argsData,
					  (uint32_t)argsSize, NULL);
}

aclError aclrtLaunchKernelWithConfigImpl(aclrtFuncHandle function, uint32_t numBlocks, aclrtStream stream,
					 aclrtLaunchKernelCfg *cfg, aclrtArgsHandle args, void *reserve)
{
	TRUTH_CALL("aclrtLaunchKernelWithConfig");
	return rtsLaunchKernelWithConfig(function, numBlocks, stream, (rtKernelLaunchCfg_t *)cfg, args,
					 reserve);
}

aclError aclrtLaunchKernelWithHostArgsImpl(aclrtFuncHandle function, uint32_t numBlocks, aclrtStream stream,
					   aclrtLaunchKernelCfg *cfg, void *hostArgs, size_t argsSize,
					   aclrtPlaceHolderInfo *placeHolders, size_t numPlaceHolders)
{
	TRUTH_CALL("aclrtLaunchKernelWithHostArgs");
	return rtsLaunchKernelWithHostArgs(function, numBlocks, stream, (rtKernelLaunchCfg_t *)cfg, hostArgs,
					   (uint32_t)argsSize, placeHolders, (uint32_t)numPlaceHolders);
}
