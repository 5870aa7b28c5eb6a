/* SPDX-License-Identifier: BSD-2-Clause */
/* ACL on top of rt: memory, copies. */
#include "internal.h"

/* Room for the prefetch of the last vector, as ACL adds it. */
static uint64_t padded(size_t size)
{
	return ((uint64_t)size + 32 + 31) / 32 * 32;
}

aclError aclrtMallocImpl(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	return rtMalloc(devPtr, padded(size), (uint32_t)policy, 0);
}

aclError aclrtMallocAlign32Impl(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	return rtMalloc(devPtr, ((uint64_t)size + 31) / 32 * 32, (uint32_t)policy, 0);
}

aclError aclrtMallocCachedImpl(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	return rtMalloc(devPtr, padded(size), (uint32_t)policy, 0);
}

aclError aclrtMallocWithCfgImpl(void **devPtr, size_t size, aclrtMemMallocPolicy policy, void *cfg)
{
	(void)cfg;
	return rtMalloc(devPtr, padded(size), (uint32_t)policy, 0);
}

aclError aclrtFreeImpl(void *devPtr)
{
	return rtFree(devPtr);
}

aclError aclrtFreeWithDevSyncImpl(void *devPtr)
{
	rtError_t err = rtDeviceSynchronize();

	return err ? err : rtFree(devPtr);
}

aclError aclrtMallocHostImpl(void **hostPtr, size_t size)
{
	return rtMallocHost(hostPtr, size, 0);
}

aclError aclrtMallocHostWithCfgImpl(void **hostPtr, uint64_t size, void *cfg)
{
	(void)cfg;
	return rtMallocHost(hostPtr, size, 0);
}

aclError aclrtFreeHostImpl(void *hostPtr)
{
	return rtFreeHost(hostPtr);
}

aclError aclrtReserveMemAddressImpl(void **virPtr, size_t size, size_t align, void *expect, uint64_t flags)
{
	return rtReserveMemAddress(virPtr, size, align, expect, flags);
}

aclError aclrtReleaseMemAddressImpl(void *virPtr)
{
	return rtReleaseMemAddress(virPtr);
}

aclError aclrtMallocPhysicalImpl(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop,
				 uint64_t flags)
{
	struct context *ctx = context_current();
	struct drv_mem_prop drv = { .pg_type = 1, .mem_type = 1 };

	if (!ctx || !handle || !prop)
		return ctx ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_RT_CONTEXT_NULL;
	drv.devid = ctx->device;
	return from_driver(halMemCreate((drv_mem_handle_t **)handle, size, &drv, flags));
}

aclError aclrtFreePhysicalImpl(aclrtDrvMemHandle handle)
{
	return from_driver(halMemRelease(handle));
}

aclError aclrtMapMemImpl(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags)
{
	return from_driver(halMemMap(virPtr, size, offset, handle, flags));
}

aclError aclrtUnmapMemImpl(void *virPtr)
{
	return from_driver(halMemUnmap(virPtr));
}

aclError aclrtGetMemInfoImpl(aclrtMemAttr attr, size_t *free, size_t *total)
{
	return rtMemGetInfoEx((uint32_t)attr, free, total);
}

aclError aclrtMemcpyImpl(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind)
{
	return rtMemcpy(dst, destMax, src, count, kind);
}

aclError aclrtMemcpyAsyncImpl(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
			      aclrtStream stream)
{
	TRUTH_CALL("aclrtMemcpyAsync");
	return rtMemcpyAsync(dst, destMax, src, count, kind, stream);
}

aclError aclrtMemcpyAsyncWithConditionImpl(void *dst, size_t destMax, const void *src, size_t count,
					   aclrtMemcpyKind kind, aclrtStream stream)
{
	TRUTH_CALL("aclrtMemcpyAsyncWithCondition");
	return rtMemcpyAsync(dst, destMax, src, count, kind, stream);
}

aclError aclrtMemsetImpl(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
	return rtMemset(devPtr, maxCount, (uint32_t)value, count);
}

aclError aclrtMemsetAsyncImpl(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream)
{
	TRUTH_CALL("aclrtMemsetAsync");
	return rtMemsetAsync(devPtr, maxCount, (uint32_t)value, count, stream);
}

aclError aclrtValueWriteImpl(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
	TRUTH_CALL("aclrtValueWrite");
	return rtMemWriteValue(devAddr, value, flag, stream);
}
