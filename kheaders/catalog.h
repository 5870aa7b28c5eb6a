/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The probe catalogue: one row per probed function. Attachment (user), what is
 * read at the call (bpf) and names, levels and meaning of the arguments (analyzer)
 * all follow from this table; adding a probe is adding a row.
 *
 *   NPS_PROBE(ID, symbol, library, layer, flags, slot0, slot1, slot2, slot3)
 *
 * library   the SONAMEs that may export it (enum nps_lib, ORed): CANN moved
 *           functions between libraries from release to release.
 * layer     where the trace shows it.
 * flags     NPS_P_RET: a C function that no C++ exception can cross: probed at
 *           entry and return. Without it the probe is entry-only (an event of kind
 *           NPS_EV_MARK): an exception that crosses a return-probed frame ends the job.
 *           NPS_P_FOLD: not recorded when the same thread is already inside a probed
 *           function: jobs call it from above and directly.
 *           NPS_P_TWIN: the lower half of a pair that its upper half tells as well;
 *           attached at --level 2, where the runtime layer is shown.
 *           NPS_P_KICK: wake the reader at once.
 * slot      NPS_SLOT(how, argument number from 1, meaning).
 */
#ifndef NPS_CATALOG_H
#define NPS_CATALOG_H

enum nps_lib {
	NPS_LIB_ASCENDCL = 1 << 0, /* libascendcl.so */
	NPS_LIB_ACL_RT = 1 << 1, /* libacl_rt.so */
	NPS_LIB_RUNTIME = 1 << 2, /* libruntime.so */
	NPS_LIB_HAL = 1 << 3, /* libascend_hal.so */
	NPS_LIB_NNOPBASE = 1 << 4, /* libnnopbase.so */
	NPS_LIB_HCCL = 1 << 5, /* libhccl.so */
	NPS_LIB_HCOMM = 1 << 6, /* libhcomm.so */
	NPS_LIB_TARGET = 1 << 7, /* the function named with --step-marker */
	NPS_LIB_ACL = NPS_LIB_ASCENDCL | NPS_LIB_ACL_RT,
	NPS_LIB_COMM = NPS_LIB_HCCL | NPS_LIB_HCOMM,
};

enum nps_layer {
	NPS_LAYER_NONE = 0, /* feeds other records, has no row of its own */
	NPS_LAYER_RUNTIME = 1,
	NPS_LAYER_COMM = 2,
	NPS_LAYER_NODE = 3,
	NPS_LAYER_ACL = 4,
};

#define NPS_P_RET 0x1
#define NPS_P_FOLD 0x2
#define NPS_P_KICK 0x4
#define NPS_P_LAUNCH 0x8 /* queues a kernel */
#define NPS_P_TWIN 0x10

enum nps_slot_how {
	NPS_SLOT_NONE = 0,
	NPS_SLOT_VAL = 1, /* the argument, 64 bits; 32-bit arguments: mask them */
	NPS_SLOT_STR = 2, /* char *: id of the interned text, read at entry */
	NPS_SLOT_OUT64 = 3, /* pointer: the 8 bytes it points at, read at return */
	NPS_SLOT_OUT32 = 4, /* pointer: the 4 bytes it points at, read at return */
	NPS_SLOT_OUTSTR = 5, /* char *: id of the interned text, read at return */
};

enum nps_meaning {
	NPS_M_NONE = 0,
	NPS_M_STREAM, /* opaque stream handle */
	NPS_M_STREAM_ID,
	NPS_M_EVENT,
	NPS_M_DEVICE,
	NPS_M_CONTEXT,
	NPS_M_PTR, /* address of memory */
	NPS_M_SIZE, /* bytes */
	NPS_M_KIND_ACL, /* aclrtMemcpyKind */
	NPS_M_KIND_RT, /* rtMemcpyKind_t */
	NPS_M_FUNC, /* function handle or stub address */
	NPS_M_BIN, /* binary handle */
	NPS_M_NAME, /* interned string */
	NPS_M_BLOCKS,
	NPS_M_COUNT, /* elements */
	NPS_M_DTYPE, /* HcclDataType */
	NPS_M_COMM, /* communicator handle */
	NPS_M_PEER, /* root or peer rank */
	NPS_M_RANK,
	NPS_M_RANKS, /* communicator size */
	NPS_M_EXECUTOR,
	NPS_M_KEY, /* tiling key */
	NPS_M_TIMEOUT,
	NPS_M_STATUS,
	NPS_M_ARG, /* an argument without a further meaning */
};

struct nps_slot {
	unsigned char how, arg, meaning;
};
#define NPS_SLOT(h, a, m) NPS_SLOT_##h, a, NPS_M_##m
#define NPS_S0 NPS_SLOT(NONE, 0, NONE)
#define NPS_V(a, m) NPS_SLOT(VAL, a, m)
#define NPS_T(a, m) NPS_SLOT(STR, a, m)
#define NPS_O64(a, m) NPS_SLOT(OUT64, a, m)
#define NPS_O32(a, m) NPS_SLOT(OUT32, a, m)
#define NPS_OT(a, m) NPS_SLOT(OUTSTR, a, m)

/* clang-format off */
#define NPS_CATALOG(P) \
	/* init, device, context */ \
	P(ACL_INIT, "aclInit", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_S0, NPS_S0, NPS_S0, NPS_S0) \
	P(ACL_FINALIZE, "aclFinalize", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_S0, NPS_S0, NPS_S0, NPS_S0) \
	P(SET_DEVICE, "aclrtSetDevice", NPS_LIB_ACL, ACL, NPS_P_RET | NPS_P_KICK, NPS_V(1, DEVICE), NPS_S0, NPS_S0, NPS_S0) \
	P(RESET_DEVICE, "aclrtResetDevice", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, DEVICE), NPS_S0, NPS_S0, NPS_S0) \
	P(RT_SET_DEVICE, "rtSetDevice", NPS_LIB_RUNTIME, RUNTIME, NPS_P_RET | NPS_P_FOLD | NPS_P_KICK, NPS_V(1, DEVICE), NPS_S0, NPS_S0, NPS_S0) \
	P(CREATE_CONTEXT, "aclrtCreateContext", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_O64(1, CONTEXT), NPS_V(2, DEVICE), NPS_S0, NPS_S0) \
	P(SET_CONTEXT, "aclrtSetCurrentContext", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, CONTEXT), NPS_S0, NPS_S0, NPS_S0) \
	/* streams and events */ \
	P(CREATE_STREAM, "aclrtCreateStream", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_O64(1, STREAM), NPS_S0, NPS_S0, NPS_S0) \
	P(CREATE_STREAM_CFG, "aclrtCreateStreamWithConfig", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_O64(1, STREAM), NPS_V(2, ARG), NPS_V(3, ARG), NPS_S0) \
	P(DESTROY_STREAM, "aclrtDestroyStream", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, STREAM), NPS_S0, NPS_S0, NPS_S0) \
	P(STREAM_GET_ID, "aclrtStreamGetId", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, STREAM), NPS_O32(2, STREAM_ID), NPS_S0, NPS_S0) \
	P(CREATE_EVENT, "aclrtCreateEvent", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_O64(1, EVENT), NPS_S0, NPS_S0, NPS_S0) \
	P(CREATE_EVENT_FLAG, "aclrtCreateEventWithFlag", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_O64(1, EVENT), NPS_V(2, ARG), NPS_S0, NPS_S0) \
	P(CREATE_EVENT_EX, "aclrtCreateEventExWithFlag", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_O64(1, EVENT), NPS_V(2, ARG), NPS_S0, NPS_S0) \
	P(DESTROY_EVENT, "aclrtDestroyEvent", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, EVENT), NPS_S0, NPS_S0, NPS_S0) \
	P(RECORD_EVENT, "aclrtRecordEvent", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, EVENT), NPS_V(2, STREAM), NPS_S0, NPS_S0) \
	P(WAIT_EVENT, "aclrtStreamWaitEvent", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(2, EVENT), NPS_V(1, STREAM), NPS_S0, NPS_S0) \
	P(QUERY_EVENT, "aclrtQueryEventStatus", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, EVENT), NPS_O32(2, STATUS), NPS_S0, NPS_S0) \
	P(EVENT_ELAPSED, "aclrtEventElapsedTime", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(2, EVENT), NPS_V(3, EVENT), NPS_O32(1, ARG), NPS_S0) \
	P(EVENT_TIMESTAMP, "aclrtEventGetTimestamp", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, EVENT), NPS_O64(2, ARG), NPS_S0, NPS_S0) \
	/* synchronisation: the host waits */ \
	P(SYNC_DEVICE, "aclrtSynchronizeDevice", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_S0, NPS_S0, NPS_S0, NPS_S0) \
	P(SYNC_DEVICE_TO, "aclrtSynchronizeDeviceWithTimeout", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, TIMEOUT), NPS_S0, NPS_S0, NPS_S0) \
	P(SYNC_STREAM, "aclrtSynchronizeStream", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, STREAM), NPS_S0, NPS_S0, NPS_S0) \
	P(SYNC_STREAM_TO, "aclrtSynchronizeStreamWithTimeout", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, STREAM), NPS_V(2, TIMEOUT), NPS_S0, NPS_S0) \
	P(SYNC_EVENT, "aclrtSynchronizeEvent", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, EVENT), NPS_S0, NPS_S0, NPS_S0) \
	P(RT_SYNC_DEVICE, "rtDeviceSynchronize", NPS_LIB_RUNTIME, RUNTIME, NPS_P_RET | NPS_P_FOLD, NPS_S0, NPS_S0, NPS_S0, NPS_S0) \
	P(RT_SYNC_STREAM, "rtStreamSynchronize", NPS_LIB_RUNTIME, RUNTIME, NPS_P_RET | NPS_P_FOLD, NPS_V(1, STREAM), NPS_S0, NPS_S0, NPS_S0) \
	/* memory */ \
	P(MALLOC, "aclrtMalloc", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_O64(1, PTR), NPS_V(2, SIZE), NPS_V(3, ARG), NPS_S0) \
	P(MALLOC_ALIGN32, "aclrtMallocAlign32", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_O64(1, PTR), NPS_V(2, SIZE), NPS_V(3, ARG), NPS_S0) \
	P(MALLOC_CACHED, "aclrtMallocCached", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_O64(1, PTR), NPS_V(2, SIZE), NPS_V(3, ARG), NPS_S0) \
	P(FREE, "aclrtFree", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, PTR), NPS_S0, NPS_S0, NPS_S0) \
	P(MALLOC_HOST, "aclrtMallocHost", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_O64(1, PTR), NPS_V(2, SIZE), NPS_S0, NPS_S0) \
	P(FREE_HOST, "aclrtFreeHost", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, PTR), NPS_S0, NPS_S0, NPS_S0) \
	P(MALLOC_PHYSICAL, "aclrtMallocPhysical", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_O64(1, PTR), NPS_V(2, SIZE), NPS_S0, NPS_S0) \
	P(FREE_PHYSICAL, "aclrtFreePhysical", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, PTR), NPS_S0, NPS_S0, NPS_S0) \
	P(MAP_MEM, "aclrtMapMem", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, PTR), NPS_V(2, SIZE), NPS_S0, NPS_S0) \
	P(UNMAP_MEM, "aclrtUnmapMem", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, PTR), NPS_S0, NPS_S0, NPS_S0) \
	P(HAL_MEM_ALLOC, "halMemAlloc", NPS_LIB_HAL, NONE, NPS_P_RET, NPS_O64(1, PTR), NPS_V(2, SIZE), NPS_V(3, ARG), NPS_S0) \
	P(HAL_MEM_FREE, "halMemFree", NPS_LIB_HAL, NONE, NPS_P_RET, NPS_V(1, PTR), NPS_S0, NPS_S0, NPS_S0) \
	P(MEMCPY, "aclrtMemcpy", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(4, SIZE), NPS_V(5, KIND_ACL), NPS_V(1, PTR), NPS_V(3, PTR)) \
	P(MEMCPY_ASYNC, "aclrtMemcpyAsync", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(4, SIZE), NPS_V(5, KIND_ACL), NPS_V(6, STREAM), NPS_V(1, PTR)) \
	P(MEMCPY_ASYNC_COND, "aclrtMemcpyAsyncWithCondition", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(4, SIZE), NPS_V(5, KIND_ACL), NPS_V(6, STREAM), NPS_V(1, PTR)) \
	P(RT_MEMCPY_ASYNC, "rtMemcpyAsync", NPS_LIB_RUNTIME, RUNTIME, NPS_P_RET | NPS_P_FOLD, NPS_V(4, SIZE), NPS_V(5, KIND_RT), NPS_V(6, STREAM), NPS_V(1, PTR)) \
	P(MEMSET, "aclrtMemset", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(4, SIZE), NPS_V(1, PTR), NPS_S0, NPS_S0) \
	P(MEMSET_ASYNC, "aclrtMemsetAsync", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(4, SIZE), NPS_V(1, PTR), NPS_V(5, STREAM), NPS_S0) \
	/* kernel launch */ \
	P(LAUNCH, "aclrtLaunchKernel", NPS_LIB_ACL, ACL, NPS_P_RET | NPS_P_LAUNCH, NPS_V(1, FUNC), NPS_V(2, BLOCKS), NPS_V(5, STREAM), NPS_S0) \
	P(LAUNCH_V2, "aclrtLaunchKernelV2", NPS_LIB_ACL, ACL, NPS_P_RET | NPS_P_LAUNCH, NPS_V(1, FUNC), NPS_V(2, BLOCKS), NPS_V(6, STREAM), NPS_S0) \
	P(LAUNCH_CFG, "aclrtLaunchKernelWithConfig", NPS_LIB_ACL, ACL, NPS_P_RET | NPS_P_LAUNCH, NPS_V(1, FUNC), NPS_V(2, BLOCKS), NPS_V(3, STREAM), NPS_S0) \
	P(LAUNCH_HOST_ARGS, "aclrtLaunchKernelWithHostArgs", NPS_LIB_ACL, ACL, NPS_P_RET | NPS_P_LAUNCH, NPS_V(1, FUNC), NPS_V(2, BLOCKS), NPS_V(3, STREAM), NPS_S0) \
	P(RT_LAUNCH, "rtKernelLaunch", NPS_LIB_RUNTIME, RUNTIME, NPS_P_RET | NPS_P_FOLD | NPS_P_LAUNCH, NPS_V(1, FUNC), NPS_V(2, BLOCKS), NPS_V(6, STREAM), NPS_S0) \
	P(RT_LAUNCH_FLAG, "rtKernelLaunchWithFlag", NPS_LIB_RUNTIME, RUNTIME, NPS_P_RET | NPS_P_FOLD | NPS_P_LAUNCH, NPS_V(1, FUNC), NPS_V(2, BLOCKS), NPS_V(5, STREAM), NPS_S0) \
	P(RT_LAUNCH_FLAG_V2, "rtKernelLaunchWithFlagV2", NPS_LIB_RUNTIME, RUNTIME, NPS_P_RET | NPS_P_FOLD | NPS_P_LAUNCH, NPS_V(1, FUNC), NPS_V(2, BLOCKS), NPS_V(5, STREAM), NPS_S0) \
	P(RT_LAUNCH_HANDLE, "rtKernelLaunchWithHandle", NPS_LIB_RUNTIME, RUNTIME, NPS_P_RET | NPS_P_FOLD | NPS_P_LAUNCH, NPS_V(1, FUNC), NPS_V(3, BLOCKS), NPS_V(6, STREAM), NPS_V(2, KEY)) \
	P(RT_LAUNCH_HANDLE_V2, "rtKernelLaunchWithHandleV2", NPS_LIB_RUNTIME, RUNTIME, NPS_P_RET | NPS_P_FOLD | NPS_P_LAUNCH, NPS_V(1, FUNC), NPS_V(3, BLOCKS), NPS_V(6, STREAM), NPS_V(2, KEY)) \
	P(RT_LAUNCH_FUNC_V3, "rtLaunchKernelByFuncHandleV3", NPS_LIB_RUNTIME, RUNTIME, NPS_P_RET | NPS_P_TWIN | NPS_P_LAUNCH, NPS_V(1, FUNC), NPS_V(2, BLOCKS), NPS_V(4, STREAM), NPS_S0) \
	P(RTS_LAUNCH_HOST_ARGS, "rtsLaunchKernelWithHostArgs", NPS_LIB_RUNTIME, RUNTIME, NPS_P_RET | NPS_P_TWIN | NPS_P_LAUNCH, NPS_V(1, FUNC), NPS_V(2, BLOCKS), NPS_V(3, STREAM), NPS_S0) \
	P(RT_LAUNCH_AICPU, "rtAicpuKernelLaunchExWithArgs", NPS_LIB_RUNTIME, RUNTIME, NPS_P_RET | NPS_P_FOLD | NPS_P_LAUNCH, NPS_T(2, NAME), NPS_V(3, BLOCKS), NPS_V(6, STREAM), NPS_S0) \
	/* kernel names */ \
	P(BIN_LOAD_FILE, "aclrtBinaryLoadFromFile", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_T(1, NAME), NPS_O64(3, BIN), NPS_S0, NPS_S0) \
	P(BIN_LOAD_DATA, "aclrtBinaryLoadFromData", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(2, SIZE), NPS_O64(4, BIN), NPS_S0, NPS_S0) \
	P(BIN_UNLOAD, "aclrtBinaryUnLoad", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, BIN), NPS_S0, NPS_S0, NPS_S0) \
	P(BIN_GET_FUNC, "aclrtBinaryGetFunction", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_T(2, NAME), NPS_O64(3, FUNC), NPS_V(1, BIN), NPS_S0) \
	P(BIN_GET_ENTRY, "aclrtBinaryGetFunctionByEntry", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(2, KEY), NPS_O64(3, FUNC), NPS_V(1, BIN), NPS_S0) \
	P(GET_FUNC_NAME, "aclrtGetFunctionName", NPS_LIB_ACL, ACL, NPS_P_RET, NPS_V(1, FUNC), NPS_OT(3, NAME), NPS_S0, NPS_S0) \
	P(RT_FUNC_REGISTER, "rtFunctionRegister", NPS_LIB_RUNTIME, NONE, NPS_P_RET, NPS_V(2, FUNC), NPS_T(3, NAME), NPS_V(1, BIN), NPS_S0) \
	P(RT_BIN_REGISTER, "rtDevBinaryRegister", NPS_LIB_RUNTIME, NONE, NPS_P_RET, NPS_O64(2, BIN), NPS_S0, NPS_S0, NPS_S0) \
	P(RT_REGISTER_ALL, "rtRegisterAllKernel", NPS_LIB_RUNTIME, NONE, NPS_P_RET, NPS_O64(2, BIN), NPS_S0, NPS_S0, NPS_S0) \
	/* aclnn: C++ functions, so entry-only */ \
	P(NN_PHASE1, "_Z19InitL2Phase1ContextPKcPP13aclOpExecutor", NPS_LIB_NNOPBASE, ACL, 0, NPS_T(1, NAME), NPS_V(2, ARG), NPS_S0, NPS_S0) \
	P(NN_PHASE2, "_Z19InitL2Phase2ContextPKcP13aclOpExecutor", NPS_LIB_NNOPBASE, ACL, 0, NPS_T(1, NAME), NPS_V(2, EXECUTOR), NPS_S0, NPS_S0) \
	P(NN_RUN, "_Z19CommonOpExecutorRunPvmP13aclOpExecutorS_", NPS_LIB_NNOPBASE, NONE, NPS_P_TWIN, NPS_V(3, EXECUTOR), NPS_V(4, STREAM), NPS_V(2, SIZE), NPS_S0) \
	P(NN_L0, "_Z13InitL0ContextPKcP13aclOpExecutor", NPS_LIB_NNOPBASE, NONE, 0, NPS_T(1, NAME), NPS_V(2, EXECUTOR), NPS_S0, NPS_S0) \
	/* collectives */ \
	P(HCCL_ALL_REDUCE, "HcclAllReduce", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(3, COUNT), NPS_V(4, DTYPE), NPS_V(6, COMM), NPS_V(7, STREAM)) \
	P(HCCL_REDUCE, "HcclReduce", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(3, COUNT), NPS_V(4, DTYPE), NPS_V(7, COMM), NPS_V(8, STREAM)) \
	P(HCCL_BROADCAST, "HcclBroadcast", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(2, COUNT), NPS_V(3, DTYPE), NPS_V(5, COMM), NPS_V(6, STREAM)) \
	P(HCCL_ALL_GATHER, "HcclAllGather", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(3, COUNT), NPS_V(4, DTYPE), NPS_V(5, COMM), NPS_V(6, STREAM)) \
	P(HCCL_REDUCE_SCATTER, "HcclReduceScatter", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(3, COUNT), NPS_V(4, DTYPE), NPS_V(6, COMM), NPS_V(7, STREAM)) \
	P(HCCL_SCATTER, "HcclScatter", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(3, COUNT), NPS_V(4, DTYPE), NPS_V(6, COMM), NPS_V(7, STREAM)) \
	P(HCCL_ALL_TO_ALL, "HcclAlltoAll", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(2, COUNT), NPS_V(3, DTYPE), NPS_V(7, COMM), NPS_V(8, STREAM)) \
	P(HCCL_SEND, "HcclSend", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(2, COUNT), NPS_V(3, DTYPE), NPS_V(5, COMM), NPS_V(6, STREAM)) \
	P(HCCL_RECV, "HcclRecv", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(2, COUNT), NPS_V(3, DTYPE), NPS_V(5, COMM), NPS_V(6, STREAM)) \
	P(HCCL_BARRIER, "HcclBarrier", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_S0, NPS_S0, NPS_V(1, COMM), NPS_V(2, STREAM)) \
	P(HCCL_COMM_INIT, "HcclCommInitRootInfo", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(1, RANKS), NPS_V(3, RANK), NPS_O64(4, COMM), NPS_S0) \
	P(HCCL_COMM_DESTROY, "HcclCommDestroy", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(1, COMM), NPS_S0, NPS_S0, NPS_S0) \
	P(HCCL_COMM_NAME, "HcclGetCommName", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(1, COMM), NPS_OT(2, NAME), NPS_S0, NPS_S0) \
	P(HCCL_RANK_SIZE, "HcclGetRankSize", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(1, COMM), NPS_O32(2, RANKS), NPS_S0, NPS_S0) \
	P(HCCL_RANK_ID, "HcclGetRankId", NPS_LIB_COMM, ACL, NPS_P_RET, NPS_V(1, COMM), NPS_O32(2, RANK), NPS_S0, NPS_S0) \
	/* submission to the device: becomes NPS_EV_SQE records, see event.h */ \
	P(SQ_TASK_SEND, "halSqTaskSend", NPS_LIB_HAL, NONE, NPS_P_RET, NPS_V(1, DEVICE), NPS_V(2, ARG), NPS_S0, NPS_S0) \
	/* --step-marker: an entry-only probe on a function of the user's choice */ \
	P(STEP_MARKER, "", NPS_LIB_TARGET, NONE, 0, NPS_V(1, ARG), NPS_V(2, ARG), NPS_V(3, ARG), NPS_V(4, ARG))
/* clang-format on */

enum nps_probe_id {
	NPS_PROBE_NONE = 0,
#define NPS_P_ENUM(id, ...) NPS_PROBE_##id,
	NPS_CATALOG(NPS_P_ENUM)
#undef NPS_P_ENUM
		NPS_PROBE_MAX
};

#endif
