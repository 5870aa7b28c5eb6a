/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ACL runtime API.  ACL_API lists it once: F(return type, name, parameters, arguments).  From it come the
 * prototypes, the wrappers of libacl_rt and the prototypes of libruntime's *Impl.
 */
#ifndef NPUSIM_ABI_ACL_H
#define NPUSIM_ABI_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int aclError;
typedef void *aclrtStream, *aclrtEvent, *aclrtContext, *aclrtNotify;
typedef void *aclrtBinHandle, *aclrtFuncHandle, *aclrtArgsHandle, *aclrtDrvMemHandle;
typedef void (*aclrtCallback)(void *userData);
typedef void (*aclrtHostFunc)(void *args);
typedef int aclrtMemcpyKind, aclrtMemMallocPolicy, aclrtMemAttr;
typedef int aclrtEventRecordedStatus, aclrtEventWaitStatus, aclrtEventStatus, aclrtCallbackBlockType;

typedef struct {
	uint32_t id;
	uint32_t value[4];
} aclrtLaunchKernelAttr;

typedef struct {
	aclrtLaunchKernelAttr *attrs;
	size_t numAttrs;
} aclrtLaunchKernelCfg;

typedef struct {
	uint32_t addrOffset, dataOffset;
} aclrtPlaceHolderInfo;

typedef struct {
	uint32_t handleType, allocationType, memAttr;
	struct {
		uint32_t id, type;
	} location;
	uint64_t reserve;
} aclrtPhysicalMemProp;

enum {
	ACL_SUCCESS = 0,
	ACL_ERROR_UNINITIALIZE = 100001,
	ACL_ERROR_REPEAT_INITIALIZE = 100002,
	ACL_ERROR_RT_PARAM_INVALID = 107000,
	ACL_ERROR_RT_INVALID_DEVICEID = 107001,
	ACL_ERROR_RT_CONTEXT_NULL = 107002,
	ACL_ERROR_RT_INVALID_HANDLE = 107017,
	ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000,
	ACL_ERROR_RT_MEMORY_ALLOCATION = 207001,
	ACL_ERROR_RT_RESOURCE_ALLOC_FAIL = 207005,
	ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046,
	ACL_ERROR_RT_DRV_INTERNAL_ERROR = 507899,
};

enum {
	ACL_MEMCPY_HOST_TO_HOST,
	ACL_MEMCPY_HOST_TO_DEVICE,
	ACL_MEMCPY_DEVICE_TO_HOST,
	ACL_MEMCPY_DEVICE_TO_DEVICE
};
enum { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY };
enum { ACL_DDR_MEM, ACL_HBM_MEM };
enum { ACL_EVENT_SYNC = 1, ACL_EVENT_TIME_LINE = 8 };

#define ACL_API(F)                                                                                           \
	F(aclError, aclInit, (const char *configPath), (configPath))                                         \
	F(aclError, aclFinalize, (void), ())                                                                 \
	F(const char *, aclGetRecentErrMsg, (void), ())                                                      \
	F(aclError, aclrtSetDevice, (int32_t deviceId), (deviceId))                                          \
	F(aclError, aclrtResetDevice, (int32_t deviceId), (deviceId))                                        \
	F(aclError, aclrtResetDeviceForce, (int32_t deviceId), (deviceId))                                   \
	F(aclError, aclrtGetDevice, (int32_t * deviceId), (deviceId))                                        \
	F(aclError, aclrtGetDeviceCount, (uint32_t * count), (count))                                        \
	F(const char *, aclrtGetSocName, (void), ())                                                         \
	F(aclError, aclrtGetLogicDevIdByUserDevId, (int32_t user, int32_t * logic), (user, logic))           \
	F(aclError, aclrtDeviceGetBareTgid, (int32_t * pid), (pid))                                          \
	F(aclError, aclrtCreateContext, (aclrtContext * ctx, int32_t deviceId), (ctx, deviceId))             \
	F(aclError, aclrtDestroyContext, (aclrtContext ctx), (ctx))                                          \
	F(aclError, aclrtSetCurrentContext, (aclrtContext ctx), (ctx))                                       \
	F(aclError, aclrtGetCurrentContext, (aclrtContext * ctx), (ctx))                                     \
	F(aclError, aclrtCreateStream, (aclrtStream * stream), (stream))                                     \
	F(aclError, aclrtCreateStreamWithConfig, (aclrtStream * stream, uint32_t priority, uint32_t flag),   \
	  (stream, priority, flag))                                                                          \
	F(aclError, aclrtDestroyStream, (aclrtStream stream), (stream))                                      \
	F(aclError, aclrtDestroyStreamForce, (aclrtStream stream), (stream))                                 \
	F(aclError, aclrtStreamGetId, (aclrtStream stream, int32_t * streamId), (stream, streamId))          \
	F(aclError, aclrtSynchronizeStream, (aclrtStream stream), (stream))                                  \
	F(aclError, aclrtSynchronizeStreamWithTimeout, (aclrtStream stream, int32_t timeout),                \
	  (stream, timeout))                                                                                 \
	F(aclError, aclrtSynchronizeDevice, (void), ())                                                      \
	F(aclError, aclrtSynchronizeDeviceWithTimeout, (int32_t timeout), (timeout))                         \
	F(aclError, aclrtCreateEvent, (aclrtEvent * event), (event))                                         \
	F(aclError, aclrtCreateEventWithFlag, (aclrtEvent * event, uint32_t flag), (event, flag))            \
	F(aclError, aclrtCreateEventExWithFlag, (aclrtEvent * event, uint32_t flag), (event, flag))          \
	F(aclError, aclrtDestroyEvent, (aclrtEvent event), (event))                                          \
	F(aclError, aclrtRecordEvent, (aclrtEvent event, aclrtStream stream), (event, stream))               \
	F(aclError, aclrtRecordEventWithFlag, (aclrtEvent event, aclrtStream stream, uint32_t flag),         \
	  (event, stream, flag))                                                                             \
	F(aclError, aclrtStreamWaitEvent, (aclrtStream stream, aclrtEvent event), (stream, event))           \
	F(aclError, aclrtStreamWaitEventWithTimeout,                                                         \
	  (aclrtStream stream, aclrtEvent event, int32_t timeout), (stream, event, timeout))                 \
	F(aclError, aclrtQueryEventStatus, (aclrtEvent event, aclrtEventRecordedStatus * status),            \
	  (event, status))                                                                                   \
	F(aclError, aclrtQueryEventWaitStatus, (aclrtEvent event, aclrtEventWaitStatus * status),            \
	  (event, status))                                                                                   \
	F(aclError, aclrtQueryEvent, (aclrtEvent event, aclrtEventStatus * status), (event, status))         \
	F(aclError, aclrtSynchronizeEvent, (aclrtEvent event), (event))                                      \
	F(aclError, aclrtSynchronizeEventWithTimeout, (aclrtEvent event, int32_t timeout), (event, timeout)) \
	F(aclError, aclrtEventElapsedTime, (float *ms, aclrtEvent start, aclrtEvent end), (ms, start, end))  \
	F(aclError, aclrtEventGetTimestamp, (aclrtEvent event, uint64_t * timestamp), (event, timestamp))    \
	F(aclError, aclrtCreateNotify, (aclrtNotify * notify, uint64_t flag), (notify, flag))                \
	F(aclError, aclrtDestroyNotify, (aclrtNotify notify), (notify))                                      \
	F(aclError, aclrtRecordNotify, (aclrtNotify notify, aclrtStream stream), (notify, stream))           \
	F(aclError, aclrtWaitAndResetNotify, (aclrtNotify notify, aclrtStream stream, uint32_t timeout),     \
	  (notify, stream, timeout))                                                                         \
	F(aclError, aclrtValueWrite, (void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream),     \
	  (devAddr, value, flag, stream))                                                                    \
	F(aclError, aclrtMalloc, (void **devPtr, size_t size, aclrtMemMallocPolicy policy),                  \
	  (devPtr, size, policy))                                                                            \
	F(aclError, aclrtMallocAlign32, (void **devPtr, size_t size, aclrtMemMallocPolicy policy),           \
	  (devPtr, size, policy))                                                                            \
	F(aclError, aclrtMallocCached, (void **devPtr, size_t size, aclrtMemMallocPolicy policy),            \
	  (devPtr, size, policy))                                                                            \
	F(aclError, aclrtMallocWithCfg,                                                                      \
	  (void **devPtr, size_t size, aclrtMemMallocPolicy policy, void *cfg), (devPtr, size, policy, cfg)) \
	F(aclError, aclrtFree, (void *devPtr), (devPtr))                                                     \
	F(aclError, aclrtFreeWithDevSync, (void *devPtr), (devPtr))                                          \
	F(aclError, aclrtMallocHost, (void **hostPtr, size_t size), (hostPtr, size))                         \
	F(aclError, aclrtMallocHostWithCfg, (void **hostPtr, uint64_t size, void *cfg),                      \
	  (hostPtr, size, cfg))                                                                              \
	F(aclError, aclrtFreeHost, (void *hostPtr), (hostPtr))                                               \
	F(aclError, aclrtReserveMemAddress,                                                                  \
	  (void **virPtr, size_t size, size_t align, void *expect, uint64_t flags),                          \
	  (virPtr, size, align, expect, flags))                                                              \
	F(aclError, aclrtReleaseMemAddress, (void *virPtr), (virPtr))                                        \
	F(aclError, aclrtMallocPhysical,                                                                     \
	  (aclrtDrvMemHandle * handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags),       \
	  (handle, size, prop, flags))                                                                       \
	F(aclError, aclrtFreePhysical, (aclrtDrvMemHandle handle), (handle))                                 \
	F(aclError, aclrtMapMem,                                                                             \
	  (void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags),              \
	  (virPtr, size, offset, handle, flags))                                                             \
	F(aclError, aclrtUnmapMem, (void *virPtr), (virPtr))                                                 \
	F(aclError, aclrtGetMemInfo, (aclrtMemAttr attr, size_t * free, size_t * total),                     \
	  (attr, free, total))                                                                               \
	F(aclError, aclrtMemcpy,                                                                             \
	  (void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind),                  \
	  (dst, destMax, src, count, kind))                                                                  \
	F(aclError, aclrtMemcpyAsync,                                                                        \
	  (void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,                   \
	   aclrtStream stream),                                                                              \
	  (dst, destMax, src, count, kind, stream))                                                          \
	F(aclError, aclrtMemcpyAsyncWithCondition,                                                           \
	  (void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,                   \
	   aclrtStream stream),                                                                              \
	  (dst, destMax, src, count, kind, stream))                                                          \
	F(aclError, aclrtMemset, (void *devPtr, size_t maxCount, int32_t value, size_t count),               \
	  (devPtr, maxCount, value, count))                                                                  \
	F(aclError, aclrtMemsetAsync,                                                                        \
	  (void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream),                  \
	  (devPtr, maxCount, value, count, stream))                                                          \
	F(aclError, aclrtBinaryLoadFromFile, (const char *path, void *options, aclrtBinHandle *handle),      \
	  (path, options, handle))                                                                           \
	F(aclError, aclrtBinaryLoadFromData,                                                                 \
	  (const void *data, size_t length, const void *options, aclrtBinHandle *handle),                    \
	  (data, length, options, handle))                                                                   \
	F(aclError, aclrtBinaryUnLoad, (aclrtBinHandle handle), (handle))                                    \
	F(aclError, aclrtBinaryGetFunction,                                                                  \
	  (const aclrtBinHandle handle, const char *kernelName, aclrtFuncHandle *function),                  \
	  (handle, kernelName, function))                                                                    \
	F(aclError, aclrtBinaryGetFunctionByEntry,                                                           \
	  (aclrtBinHandle handle, uint64_t funcEntry, aclrtFuncHandle * function),                           \
	  (handle, funcEntry, function))                                                                     \
	F(aclError, aclrtGetFunctionName, (aclrtFuncHandle function, uint32_t maxLen, char *name),           \
	  (function, maxLen, name))                                                                          \
	F(aclError, aclrtLaunchKernel,                                                                       \
	  (aclrtFuncHandle function, uint32_t numBlocks, const void *argsData, size_t argsSize,              \
	   aclrtStream stream),                                                                              \
	  (function, numBlocks, argsData, argsSize, stream))                                                 \
	F(aclError, aclrtLaunchKernelV2,                                                                     \
	  (aclrtFuncHandle function, uint32_t numBlocks, const void *argsData, size_t argsSize,              \
	   aclrtLaunchKernelCfg *cfg, aclrtStream stream),                                                   \
	  (function, numBlocks, argsData, argsSize, cfg, stream))                                            \
	F(aclError, aclrtLaunchKernelWithConfig,                                                             \
	  (aclrtFuncHandle function, uint32_t numBlocks, aclrtStream stream, aclrtLaunchKernelCfg * cfg,     \
	   aclrtArgsHandle args, void *reserve),                                                             \
	  (function, numBlocks, stream, cfg, args, reserve))                                                 \
	F(aclError, aclrtLaunchKernelWithHostArgs,                                                           \
	  (aclrtFuncHandle function, uint32_t numBlocks, aclrtStream stream, aclrtLaunchKernelCfg * cfg,     \
	   void *hostArgs, size_t argsSize, aclrtPlaceHolderInfo *placeHolders, size_t numPlaceHolders),     \
	  (function, numBlocks, stream, cfg, hostArgs, argsSize, placeHolders, numPlaceHolders))             \
	F(aclError, aclrtGetThreadLastTaskId, (uint32_t * taskId), (taskId))

#define ACL_PROTOTYPE(type, name, params, args) type name params;
#define ACL_IMPL_PROTOTYPE(type, name, params, args) type name##Impl params;

#pragma GCC visibility push(default)
ACL_API(ACL_PROTOTYPE)
#pragma GCC visibility pop

#endif
