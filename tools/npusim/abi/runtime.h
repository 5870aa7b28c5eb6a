/* SPDX-License-Identifier: BSD-2-Clause */
/* libruntime's own API: what HCCL, compilers' stubs and the ACL layer call. */
#ifndef NPUSIM_ABI_RUNTIME_H
#define NPUSIM_ABI_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

typedef int rtError_t;
typedef void *rtStream_t, *rtEvent_t, *rtNotify_t, *rtContext_t;
typedef void *rtFuncHandle, *rtBinHandle;
typedef int rtMemcpyKind_t, rtRecudeKind_t, rtDataType_t;
typedef struct rtKernelLaunchCfg rtKernelLaunchCfg_t;
typedef struct rtSmDesc rtSmDesc_t;

enum {
	RT_MEMCPY_HOST_TO_HOST,
	RT_MEMCPY_HOST_TO_DEVICE,
	RT_MEMCPY_DEVICE_TO_HOST,
	RT_MEMCPY_DEVICE_TO_DEVICE
};

typedef struct {
	uint32_t magic, version;
	const void *data;
	uint64_t length;
} rtDevBinary_t;

typedef struct {
	void *args;
	void *hostInputInfoPtr;
	uint32_t argsSize, tilingAddrOffset, tilingDataOffset;
	uint16_t hostInputInfoNum;
	uint8_t hasTiling, isNoNeedH2DCopy;
	uint8_t reserved[4];
} rtArgsEx_t;

typedef struct {
	uint8_t qos, partId, schemMode, d2dCrossFlag;
	uint32_t blockDimOffset;
	uint8_t dumpflag, neverTimeout, enableProfiling, rev;
	uint32_t localMemorySize;
} rtTaskCfgInfo_t;

_Static_assert(sizeof(rtDevBinary_t) == 24, "ABI");
_Static_assert(offsetof(rtArgsEx_t, argsSize) == 16, "ABI");

#pragma GCC visibility push(default)

rtError_t rtSetDevice(int32_t device);
rtError_t rtGetDevice(int32_t *device);
rtError_t rtGetDeviceCount(int32_t *count);
rtError_t rtGetDevicePhyIdByIndex(uint32_t devIndex, uint32_t *phyId);
rtError_t rtDeviceReset(int32_t device);
rtError_t rtDeviceResetForce(int32_t device);
rtError_t rtDeviceSynchronize(void);
rtError_t rtDeviceSynchronizeWithTimeout(int32_t timeout);
rtError_t rtCtxCreate(rtContext_t *ctx, uint32_t flags, int32_t device);
rtError_t rtCtxDestroy(rtContext_t ctx);
rtError_t rtCtxSetCurrent(rtContext_t ctx);
rtError_t rtCtxGetCurrent(rtContext_t *ctx);

rtError_t rtStreamCreate(rtStream_t *stream, int32_t priority);
rtError_t rtStreamDestroy(rtStream_t stream);
rtError_t rtStreamDestroyForce(rtStream_t stream);
rtError_t rtStreamSynchronize(rtStream_t stream);
rtError_t rtStreamSynchronizeWithTimeout(rtStream_t stream, int32_t timeout);
rtError_t rtStreamWaitEvent(rtStream_t stream, rtEvent_t event);
rtError_t rtsStreamGetId(rtStream_t stream, int32_t *id);
rtError_t rtGetStreamId(rtStream_t stream, int32_t *id);
rtError_t rtStreamGetSqid(const rtStream_t stream, uint32_t *sqId);
rtError_t rtStreamGetCqid(const rtStream_t stream, uint32_t *cqId, uint32_t *logicCqId);
rtError_t rtGetTaskIdAndStreamID(uint32_t *taskId, uint32_t *streamId);
rtError_t rtsGetThreadLastTaskId(uint32_t *taskId);

rtError_t rtEventCreate(rtEvent_t *event);
rtError_t rtEventCreateWithFlag(rtEvent_t *event, uint32_t flag);
rtError_t rtEventDestroy(rtEvent_t event);
rtError_t rtEventRecord(rtEvent_t event, rtStream_t stream);
rtError_t rtEventSynchronize(rtEvent_t event);
rtError_t rtEventSynchronizeWithTimeout(rtEvent_t event, int32_t timeout);
/* 1 if the last record has happened, or there was none. */
rtError_t rtEventQueryStatus(rtEvent_t event, int *status);
rtError_t rtEventElapsedTime(float *ms, rtEvent_t start, rtEvent_t end);
rtError_t rtEventGetTimeStamp(uint64_t *timestamp, rtEvent_t event);

rtError_t rtNotifyCreate(int32_t device, rtNotify_t *notify);
rtError_t rtNotifyDestroy(rtNotify_t notify);
rtError_t rtNotifyRecord(rtNotify_t notify, rtStream_t stream);
rtError_t rtNotifyWait(rtNotify_t notify, rtStream_t stream);
rtError_t rtNotifyWaitWithTimeOut(rtNotify_t notify, rtStream_t stream, uint32_t timeout);
rtError_t rtIpcSetNotifyName(rtNotify_t notify, char *name, uint32_t len);
rtError_t rtIpcOpenNotify(rtNotify_t *notify, const char *name);

rtError_t rtMalloc(void **devPtr, uint64_t size, uint32_t type, const uint16_t moduleId);
rtError_t rtFree(void *devPtr);
rtError_t rtMallocHost(void **hostPtr, uint64_t size, const uint16_t moduleId);
rtError_t rtFreeHost(void *hostPtr);
rtError_t rtMemGetInfoEx(uint32_t type, size_t *free, size_t *total);
rtError_t rtReserveMemAddress(void **virPtr, size_t size, size_t align, void *addr, uint64_t flags);
rtError_t rtReleaseMemAddress(void *virPtr);
rtError_t rtMemcpy(void *dst, uint64_t destMax, const void *src, uint64_t cnt, rtMemcpyKind_t kind);
rtError_t rtMemcpyAsync(void *dst, uint64_t destMax, const void *src, uint64_t cnt, rtMemcpyKind_t kind,
			rtStream_t stream);
/* As rtMemcpyAsync; HCCL's form, for addresses that need not be this process'. */
rtError_t rtMemcpyAsyncWithoutCheckKind(void *dst, uint64_t destMax, const void *src, uint64_t cnt,
					rtMemcpyKind_t kind, rtStream_t stream);
rtError_t rtReduceAsync(void *dst, uint64_t destMax, const void *src, uint64_t cnt, rtRecudeKind_t kind,
			rtDataType_t type, rtStream_t stream);
rtError_t rtMemset(void *devPtr, uint64_t destMax, uint32_t value, uint64_t cnt);
rtError_t rtMemsetAsync(void *devPtr, uint64_t destMax, uint32_t value, uint64_t cnt, rtStream_t stream);
/* The arguments of AI CPU kernels are not looked at. */
rtError_t rtAicpuKernelLaunchExWithArgs(const uint32_t kernelType, const char *const opName,
					const uint32_t numBlocks, const void *argsInfo,
					rtSmDesc_t *const smDesc, const rtStream_t stream,
					const uint32_t flags);
rtError_t rtProfilerTraceEx(uint64_t id, uint64_t modelId, uint16_t tagId, rtStream_t stream);
rtError_t rtMemWriteValue(const void *devAddr, uint64_t value, uint32_t flag, rtStream_t stream);

rtError_t rtDevBinaryRegister(const rtDevBinary_t *bin, void **hdl);
rtError_t rtRegisterAllKernel(const rtDevBinary_t *bin, void **hdl);
rtError_t rtDevBinaryUnRegister(void *hdl);
rtError_t rtFunctionRegister(void *binHandle, const void *stubFunc, const char *stubName,
			     const void *kernelInfoExt, uint32_t funcMode);
rtError_t rtGetFunctionByName(const char *stubName, void **stubFunc);
rtError_t rtQueryFunctionRegistered(const char *stubName);
rtError_t rtsBinaryLoadFromFile(const char *path, const void *options, rtBinHandle *handle);
rtError_t rtsBinaryLoadFromData(const void *data, uint64_t length, const void *options, rtBinHandle *handle);
rtError_t rtsBinaryUnload(rtBinHandle handle);
rtError_t rtsFuncGetByName(const rtBinHandle handle, const char *kernelName, rtFuncHandle *function);
rtError_t rtsFuncGetByEntry(const rtBinHandle handle, uint64_t entry, rtFuncHandle *function);
rtError_t rtsFuncGetName(const rtFuncHandle function, uint32_t maxLen, char *name);

rtError_t rtKernelLaunch(const void *stubFunc, uint32_t numBlocks, void *args, uint32_t argsSize,
			 rtSmDesc_t *smDesc, rtStream_t stream);
rtError_t rtKernelLaunchWithFlag(const void *stubFunc, uint32_t numBlocks, rtArgsEx_t *argsInfo,
				 rtSmDesc_t *smDesc, rtStream_t stream, uint32_t flags);
rtError_t rtKernelLaunchWithFlagV2(const void *stubFunc, uint32_t numBlocks, rtArgsEx_t *argsInfo,
				   rtSmDesc_t *smDesc, rtStream_t stream, uint32_t flags,
				   const rtTaskCfgInfo_t *cfgInfo);
rtError_t rtKernelLaunchWithHandleV2(void *hdl, const uint64_t tilingKey, uint32_t numBlocks,
				     rtArgsEx_t *argsInfo, rtSmDesc_t *smDesc, rtStream_t stream,
				     const rtTaskCfgInfo_t *cfgInfo);
rtError_t rtLaunchKernelByFuncHandleV3(rtFuncHandle function, uint32_t numBlocks, const rtArgsEx_t *argsInfo,
				       rtStream_t stream, const rtTaskCfgInfo_t *cfgInfo);
rtError_t rtsLaunchKernelWithDevArgs(rtFuncHandle function, uint32_t numBlocks, rtStream_t stream,
				     rtKernelLaunchCfg_t *cfg, const void *args, uint32_t argsSize,
				     void *reserve);
rtError_t rtsLaunchKernelWithConfig(rtFuncHandle function, uint32_t numBlocks, rtStream_t stream,
				    rtKernelLaunchCfg_t *cfg, void *argsHandle, void *reserve);
rtError_t rtsLaunchKernelWithHostArgs(rtFuncHandle function, uint32_t numBlocks, rtStream_t stream,
				      rtKernelLaunchCfg_t *cfg, void *hostArgs, uint32_t argsSize,
				      void *placeHolders, uint32_t numPlaceHolders);

#pragma GCC visibility pop

#endif
