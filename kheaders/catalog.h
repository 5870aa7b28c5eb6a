/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The probe catalogue: one row per probed function (catalog_rows.h). Attachment (user), what is
 * read at the call (bpf), names, layers and what a call means (analyzer), and `npuscope doctor --probes`
 * all follow from this table; adding a probe is adding a row.
 *
 *   P(ID, symbol, library, layer, call, flags, slot0, slot1, slot2, slot3)
 *
 * library   the SONAMEs that may export it (enum nps_lib, ORed): CANN moved
 *           functions between libraries from release to release.
 * layer     where the trace shows it.
 * call      what the analyzer makes of it (enum nps_call).
 * flags     NPS_P_RET: a C function that no C++ exception can cross: probed at
 *           entry and return. Without it the probe is entry-only (an event of kind
 *           NPS_EV_MARK): an exception that crosses a return-probed frame ends the job.
 *           NPS_P_FOLD: not recorded when the same thread is already inside a probed
 *           function: jobs call it from above and directly.
 *           NPS_P_OPEN: folds nothing: calls inside it are recorded as if it did not exist.
 *           NPS_P_TWIN: the lower function of a pair whose upper one is recorded as well;
 *           attached at --level 2, where the runtime layer is shown.
 *           NPS_P_KICK: wake the reader at once, the first time that a thread names the device of slot 0.
 *           NPS_P_SHAPES: attached with --record-shapes; without NPS_P_TWIN only then.
 *           NPS_P_ENDS: a C++ function, probed at its entry and in front of each of its returns; an end that
 *           an exception skips is seen at the next event (NPS_F_UNWOUND).
 * slot      how it is read, argument number from 1, byte offset where it is behind a pointer, meaning.
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
	NPS_LIB_MDL = 1 << 8, /* libacl_mdl.so */
	NPS_LIB_OP = 1 << 9, /* libacl_op_executor.so, libacl_op_compiler.so */
	NPS_LIB_GE = 1 << 10, /* libge_runner.so, libge_runner_v2.so */
	NPS_LIB_MSTX = 1 << 11, /* libms_tools_ext.so */
	NPS_LIB_PROF = 1 << 12, /* libprofapi.so */
	NPS_LIB_ACL_PROF = 1 << 13, /* libmsprofiler.so, libacl_prof.so */
	NPS_LIB_OPAPI = 1 << 14, /* libopapi*.so and other libraries of aclnn operators */
	NPS_LIB_TORCH = 1 << 15, /* libtorch_cpu.so, libtorch_npu.so */
	NPS_LIB_ACL = NPS_LIB_ASCENDCL | NPS_LIB_ACL_RT,
	NPS_LIB_COMM = NPS_LIB_HCCL | NPS_LIB_HCOMM,
};

enum nps_layer {
	NPS_LAYER_NONE = 0, /* its records feed others, it has no row of its own */
	NPS_LAYER_RUNTIME = 1,
	NPS_LAYER_COMM = 2,
	NPS_LAYER_NODE = 3,
	NPS_LAYER_ACL = 4,
};

#define NPS_P_RET 0x1
#define NPS_P_FOLD 0x2
#define NPS_P_KICK 0x4
#define NPS_P_TWIN 0x10
#define NPS_P_OPEN 0x20
#define NPS_P_SHAPES 0x40
#define NPS_P_ENDS 0x80

enum nps_call {
	NPS_CALL_OTHER = 0,
	NPS_CALL_LAUNCH, /* queues a kernel */
	NPS_CALL_MEMCPY,
	NPS_CALL_SYNC_DEVICE,
	NPS_CALL_SYNC_STREAM,
	NPS_CALL_SYNC_EVENT,
	NPS_CALL_QUERY_EVENT,
	NPS_CALL_RECORD_EVENT,
	NPS_CALL_WAIT_EVENT, /* queues a wait for an event */
	NPS_CALL_TIME_EVENT, /* reads the device's time of one event, or between two */
	NPS_CALL_DESTROY_EVENT,
	NPS_CALL_SET_CONTEXT, /* or device */
	NPS_CALL_COLLECTIVE,
	NPS_CALL_FUNC_NAME, /* returns the name of a function handle */
	NPS_CALL_COMM_NEW, /* creates a communicator */
	NPS_CALL_COMM_END,
	NPS_CALL_COMM_FACT, /* returns a property of one */
	NPS_CALL_MSTX_MARK,
	NPS_CALL_MSTX_START,
	NPS_CALL_MSTX_END,
	NPS_CALL_MSTX_DOMAIN,
	NPS_CALL_ALLOC_DEVICE, /* memory: PTR, SIZE */
	NPS_CALL_ALLOC_HOST,
	NPS_CALL_ALLOC_HANDLE, /* memory without an address: PTR is its handle */
	NPS_CALL_FREE,
	NPS_CALL_FREE_HANDLE,
	NPS_CALL_RESERVE, /* reserves or frees addresses without memory */
};

enum nps_slot_how {
	NPS_SLOT_NONE = 0,
	NPS_SLOT_VAL = 1, /* the argument, 64 bits; 32-bit arguments: mask them */
	NPS_SLOT_STR = 2, /* char *: id of the interned text, read at entry */
	NPS_SLOT_OUT64 = 3, /* pointer: the 8 bytes it points at, read at return */
	NPS_SLOT_OUT32 = 4, /* pointer: the 4 bytes it points at, read at return */
	NPS_SLOT_OUTSTR = 5, /* char *: id of the interned text, read at return */
	NPS_SLOT_IN64 = 6, /* pointer: the 8 bytes at the offset, read at entry */
	NPS_SLOT_IN32 = 7, /* pointer: the 4 bytes at the offset, read at entry */
	NPS_SLOT_TEXT_IN = 8, /* pointer: text that begins at the offset, interned at entry */
	NPS_SLOT_TEXT_PTR = 9, /* pointer: char * at the offset, its text interned at entry */
	NPS_SLOT_RESULT = 10, /* the result of the call, 64 bits */
	/* as TEXT_IN, in a struct whose first 8 bytes are its size, if that reaches the text */
	NPS_SLOT_TEXT_SIZED = 12,
	NPS_SLOT_PROBE = 11, /* number of the operator; the reader makes it the id of its name */
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
	NPS_M_FUNC, /* function handle, or the host address stubFunc that stands for it */
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
	NPS_M_ROWS, /* of a copy: SIZE bytes each */
	NPS_M_NOTIFY,
	NPS_M_MODEL, /* number of a loaded model */
	NPS_M_GRAPH, /* handle or number of a graph */
	NPS_M_SQ, /* number of a submission queue */
	NPS_M_TASK, /* task id */
	NPS_M_TEXT, /* interned string that is no name of anything that runs */
	NPS_M_RANGE, /* of marks: number of the range */
	NPS_M_DOMAIN, /* of marks: handle */
	NPS_M_ARG, /* an argument without a further meaning */
};

struct nps_slot {
	unsigned char how, arg, meaning;
	unsigned short offset; /* bytes */
};
#define NPS_S0 NPS_SLOT_NONE, 0, NPS_M_NONE, 0
#define NPS_V(a, m) NPS_SLOT_VAL, a, NPS_M_##m, 0
#define NPS_T(a, m) NPS_SLOT_STR, a, NPS_M_##m, 0
#define NPS_O64(a, m) NPS_SLOT_OUT64, a, NPS_M_##m, 0
#define NPS_O32(a, m) NPS_SLOT_OUT32, a, NPS_M_##m, 0
#define NPS_O32_AT(a, o, m) NPS_SLOT_OUT32, a, NPS_M_##m, o
#define NPS_OT(a, m) NPS_SLOT_OUTSTR, a, NPS_M_##m, 0
#define NPS_IN64(a, o, m) NPS_SLOT_IN64, a, NPS_M_##m, o
#define NPS_IN32(a, o, m) NPS_SLOT_IN32, a, NPS_M_##m, o
#define NPS_TIN(a, o, m) NPS_SLOT_TEXT_IN, a, NPS_M_##m, o
#define NPS_TSIZED(a, o, m) NPS_SLOT_TEXT_SIZED, a, NPS_M_##m, o
#define NPS_PT(a, o, m) NPS_SLOT_TEXT_PTR, a, NPS_M_##m, o
#define NPS_RET(m) NPS_SLOT_RESULT, 0, NPS_M_##m, 0
#define NPS_OPERATOR(m) NPS_SLOT_PROBE, 0, NPS_M_##m, 0

#include "catalog_rows.h"

/* Defines the numbers in a session: they have the same meaning for two programs with the same text. */
#define NPS_CATALOG_LINE(id, symbol, lib, layer, call, flags, s0, s1, s2, s3)                                \
#id " " symbol " " #s0 " " #s1 " " #s2 " " #s3 "\n"
#define NPS_CATALOG_TEXT NPS_CATALOG(NPS_CATALOG_LINE)

enum nps_probe_id {
	NPS_PROBE_NONE = 0,
#define NPS_P_ENUM(id, ...) NPS_PROBE_##id,
	NPS_CATALOG(NPS_P_ENUM)
#undef NPS_P_ENUM
		NPS_PROBE_MAX
};

#endif
