/* SPDX-License-Identifier: BSD-2-Clause */
#include "internal.h"

#define HUGE_FROM (2u << 20)

rtError_t rtMalloc(void **devPtr, uint64_t size, uint32_t type, const uint16_t moduleId)
{
	struct context *ctx = context_current();
	unsigned long long flag;

	(void)type;
	if (!ctx)
		return ACL_ERROR_RT_CONTEXT_NULL;
	flag = MEM_FLAG(ctx->device, MEM_KIND_DEV) | MEM_PHY_HBM | (unsigned long long)moduleId << 56;
	if (size >= HUGE_FROM)
		flag |= MEM_PAGE_HUGE;
	return from_driver(halMemAlloc(devPtr, size, flag));
}

rtError_t rtFree(void *devPtr)
{
	return from_driver(halMemFree(devPtr));
}

rtError_t rtMallocHost(void **hostPtr, uint64_t size, const uint16_t moduleId)
{
	struct context *ctx = context_current();
	unsigned long long flag;

	if (!ctx)
		return ACL_ERROR_RT_CONTEXT_NULL;
	flag = MEM_FLAG(ctx->device, MEM_KIND_HOST) | (unsigned long long)moduleId << 56;
	return from_driver(halMemAlloc(hostPtr, size, flag));
}

rtError_t rtFreeHost(void *hostPtr)
{
	return from_driver(halMemFree(hostPtr));
}

rtError_t rtMemGetInfoEx(uint32_t type, size_t *free, size_t *total)
{
	struct context *ctx = context_current();
	struct MemInfo info;
	rtError_t err;

	if (!ctx)
		return ACL_ERROR_RT_CONTEXT_NULL;
	err = from_driver(halMemGetInfo(ctx->device, type, &info));
	if (err)
		return err;
	*free = info.phy_free;
	*total = info.phy_total;
	return ACL_SUCCESS;
}

rtError_t rtReserveMemAddress(void **virPtr, size_t size, size_t align, void *addr, uint64_t flags)
{
	return from_driver(halMemAddressReserve(virPtr, size, align, addr, flags));
}

rtError_t rtReleaseMemAddress(void *virPtr)
{
	return from_driver(halMemAddressFree(virPtr));
}

rtError_t rtMemcpy(void *dst, uint64_t destMax, const void *src, uint64_t cnt, rtMemcpyKind_t kind)
{
	struct context *ctx = context_current();
	struct memcpy_info info = { .dir = kind, .devid = ctx ? ctx->device : 0 };

	return from_driver(halMemcpy(dst, destMax, (void *)(uintptr_t)src, cnt, ctx ? &info : NULL));
}

static rtError_t send_dma(enum stars_route route, void *dst, const void *src, uint64_t cnt,
			  enum stars_dma action, rtStream_t stream)
{
	struct stream *s = stream_of(stream);
	struct stars_sqe sqe = { .type = route == STARS_ON_DEVICE ? STARS_SDMA : STARS_PCIE_DMA };

	if (!s)
		return ACL_ERROR_RT_CONTEXT_NULL;
	sqe.dma.dst = (uintptr_t)dst;
	sqe.dma.src = (uintptr_t)src;
	sqe.dma.len = cnt;
	sqe.dma.action = action;
	sqe.dma.route = route;
	return stream_send(s, &sqe, NULL);
}

static enum stars_route route(rtMemcpyKind_t kind)
{
	if (kind == RT_MEMCPY_DEVICE_TO_DEVICE)
		return STARS_ON_DEVICE;
	return kind == RT_MEMCPY_DEVICE_TO_HOST ? STARS_TO_HOST : STARS_TO_DEVICE;
}

rtError_t rtMemcpyAsync(void *dst, uint64_t destMax, const void *src, uint64_t cnt, rtMemcpyKind_t kind,
			rtStream_t stream)
{
	TRUTH_CALL("rtMemcpyAsync");

	if (!dst || !src || cnt == 0 || cnt > destMax)
		return ACL_ERROR_RT_PARAM_INVALID;
	return send_dma(route(kind), dst, src, cnt, STARS_DMA_COPY, stream);
}

rtError_t rtMemcpyAsyncWithoutCheckKind(void *dst, uint64_t destMax, const void *src, uint64_t cnt,
					rtMemcpyKind_t kind, rtStream_t stream)
{
	TRUTH_CALL("rtMemcpyAsyncWithoutCheckKind");

	if (cnt > destMax)
		return ACL_ERROR_RT_PARAM_INVALID;
	return send_dma(route(kind), dst, src, cnt, STARS_DMA_NONE, stream);
}

rtError_t rtReduceAsync(void *dst, uint64_t destMax, const void *src, uint64_t cnt, rtRecudeKind_t kind,
			rtDataType_t type, rtStream_t stream)
{
	TRUTH_CALL("rtReduceAsync");

	(void)kind;
	(void)type;
	if (cnt > destMax)
		return ACL_ERROR_RT_PARAM_INVALID;
	return send_dma(STARS_ON_DEVICE, dst, src, cnt, STARS_DMA_NONE, stream);
}

rtError_t rtMemset(void *devPtr, uint64_t destMax, uint32_t value, uint64_t cnt)
{
	if (!devPtr || cnt > destMax)
		return ACL_ERROR_RT_PARAM_INVALID;
	for (uint64_t i = 0; i < cnt; i++)
		((volatile uint8_t *)devPtr)[i] = (uint8_t)value;
	return ACL_SUCCESS;
}

rtError_t rtMemsetAsync(void *devPtr, uint64_t destMax, uint32_t value, uint64_t cnt, rtStream_t stream)
{
	TRUTH_CALL("rtMemsetAsync");

	if (!devPtr || cnt == 0 || cnt > destMax)
		return ACL_ERROR_RT_PARAM_INVALID;
	return send_dma(STARS_ON_DEVICE, devPtr, (const void *)(uintptr_t)value, cnt, STARS_DMA_FILL, stream);
}

rtError_t rtMemWriteValue(const void *devAddr, uint64_t value, uint32_t flag, rtStream_t stream)
{
	TRUTH_CALL("rtMemWriteValue");
	struct stream *s = stream_of(stream);
	struct stars_sqe sqe = { .type = STARS_WRITE_VALUE };

	(void)flag;
	if (!s || !devAddr)
		return s ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_RT_CONTEXT_NULL;
	sqe.write.address = (uintptr_t)devAddr;
	sqe.write.value = value;
	return stream_send(s, &sqe, NULL);
}
