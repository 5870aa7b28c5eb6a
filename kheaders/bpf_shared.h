/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Sizes and indices that the BPF objects and the collector share. */
#ifndef NPS_BPF_SHARED_H
#define NPS_BPF_SHARED_H

#include <linux/types.h>

#define NPS_MAX_TARGETS 8192
#define NPS_MAX_CPUS 1024
#define NPS_MAX_THREADS 65536
#define NPS_MAX_SQE 32 /* records of one halSqTaskSend call */
#define NPS_MAX_CQE 32 /* records of one halCqReportRecv call: the runtime never requests more */
#define NPS_LONGEST_SUMMED 4000000000ULL /* ns: sums count in 32 bits */
/* (thread, system call) pairs summed per second; calls of further ones are a record each */
#define NPS_MAX_SUMS 16384
#define NPS_MAX_IO 16384 /* requests of block devices in flight */
#define NPS_MAX_COMMS 64 /* communicators of one HcclCommInitAll */
#define NPS_MAX_DEPTH 16 /* probed calls nested in one thread */

/* Which operators of PyTorch are recorded: those in which the thread calls the NPU, or all. */
enum nps_ops { NPS_OPS_NONE, NPS_OPS_NPU, NPS_OPS_ALL };

/*
 * Inputs of an operator of PyTorch, by its number and the layout of its tensors. How each is passed: enum
 * nps_input_how; in which slot: a register, or behind those the stack in words of 8 bytes; at which byte the
 * flag of an optional one is; and what it is if it is there (enum nps_op_input).
 */
#define NPS_OP_INPUTS 16
#define NPS_OP_INPUT(how, slot, flag, what)                                                                  \
	((__u32)(how) | (__u32)(slot) << 8 | (__u32)(flag) << 16 | (__u32)(what) << 24)
#define NPS_OP_INPUT_HOW(input) ((input)&0xff)
#define NPS_OP_INPUT_SLOT(input) ((input) >> 8 & 0xff)
#define NPS_OP_INPUT_FLAG(input) ((input) >> 16 & 0xff)
#define NPS_OP_INPUT_WHAT(input) ((input) >> 24)
enum nps_input_how {
	NPS_HOW_FIXED, /* it is always there */
	NPS_HOW_TENSOR, /* the slot points to a tensor */
	NPS_HOW_OPTIONAL_TENSOR, /* to one and a flag: 0 it is in front of the tensor, 8 behind it */
	NPS_HOW_FLAG, /* the flag is in the slot */
	NPS_HOW_FLAG_AT, /* the slot points to what the flag is in */
	NPS_HOW_ARRAY, /* two slots, address and number; none: 0 and another number than 0 */
};
struct nps_op_inputs {
	__u32 n;
	__u32 input[NPS_OP_INPUTS];
};
#define NPS_OP_INPUTS_KEY(number, layout) ((__u32)(number) | (__u32)(layout) << 16)
#define NPS_MAX_OP_INPUTS 16384

/* How a tensor looks, c10::TensorImpl; the same on both processors. */
enum nps_tensor_layout {
	NPS_LAYOUT_UNKNOWN,
	NPS_LAYOUT_1_13,
	NPS_LAYOUT_2_6,
	NPS_LAYOUT_2_14,
	NPS_LAYOUTS,
};

/* bytes; farther apart, the thread is on another stack, such as that of a signal or of a coroutine */
#define NPS_SAME_STACK (8UL << 20)

/* Value in the targets map. */
#define NPS_TARGET_WATCH 0x1
#define NPS_TARGET_FOLLOW 0x2 /* children become targets too */
#define NPS_TARGET_OSRT 0x4 /* system calls and scheduling as well */

/* Value in the net_bytes map: what the internet sockets of a thread group carried. */
struct nps_net_bytes {
	__u64 received, sent;
};

/* Per-CPU counters: losses are a base plus the event kind; strings count as kind 31. */
#define NPS_KIND_STRING 31
#define NPS_KIND_END 32 /* room for more kinds */
enum nps_counter {
	NPS_COUNTER_LOST = 0, /* no room in the ring */
	/* calls left by longjmp or an exception; not a loss, since they never return */
	NPS_COUNTER_UNRETURNED = NPS_KIND_END,
	NPS_COUNTER_SQE_CUT = 33, /* SQEs beyond NPS_MAX_SQE in one call */
	NPS_COUNTER_FAULT = 34, /* job memory could not be read */
	NPS_COUNTER_TEXT_CUT = 36, /* texts longer than NPS_TEXT_MAX */
	NPS_COUNTER_DOMAIN_UNKNOWN = 37, /* domains of mstx that were created before the capture */
	NPS_COUNTER_MSTX_FILTERED = 38, /* marks and ranges of domains that are not selected */
	NPS_COUNTER_FOREIGN = 39, /* system calls with another numbering: of 32-bit programs */
	NPS_COUNTER_CALLS = 40, /* probed calls with a return probe: a base plus the probe's class */
	NPS_COUNTER_MARKS = 44, /* probed calls with an entry probe only: a base plus the probe's class */
	NPS_COUNTER_PY_NS = 48, /* ns of walks of Python stacks: a base plus enum nps_py_walk */
	NPS_COUNTER_PY_WALKS = 51,
	NPS_COUNTER_MAX = 52,
};

/* Which program walks a Python stack: of a call, of an entry alone (operators are two), or a sample. */
enum nps_py_walk { NPS_PY_WALK_CALL, NPS_PY_WALK_MARK, NPS_PY_WALK_SAMPLE, NPS_PY_WALK_KINDS };

/*
 * The cookie of a probe: its row in the catalogue; the number of the operator, 0: none; how many of its
 * arguments are recorded (TORCH_NODE: where in a node its sequence number is; TORCH_OP: enum
 * nps_tensor_layout, 0 if its arguments are not recorded); its class: how the kernel runs the instruction
 * that it replaced (enum nps_probe_class); and its group.
 */
#define NPS_COOKIE(probe, number, arguments, class, group)                                                   \
	((__u64)(probe) | (__u64)(number) << 16 | (__u64)(arguments) << 32 | (__u64)(class) << 40 |          \
	 (__u64)(group) << 48)
#define NPS_COOKIE_PROBE(cookie) ((cookie)&0xffff)
#define NPS_COOKIE_NUMBER(cookie) ((cookie) >> 16 & 0xffff)
#define NPS_COOKIE_ARGUMENTS(cookie) ((cookie) >> 32 & 0xff)
#define NPS_COOKIE_CLASS(cookie) ((cookie) >> 40 & 3)
#define NPS_COOKIE_GROUP(cookie) ((cookie) >> 48 & 0xffff)

/*
 * Groups of probes that are detached together. Group 0 stays attached to the end; 1 + N is tier N of the
 * catalogue; from NPS_GROUPS_COUNTED on each group is one function of one file, whose entries are counted.
 */
#define NPS_GROUPS 1024
#define NPS_GROUPS_COUNTED 8
#define NPS_GROUP_ATTACHED 0
#define NPS_GROUP_CLOSING 1 /* entries are not recorded any more; calls that are open may still return */
#define NPS_GROUP_DETACHED 2 /* open calls are unknown: their returns may not be recorded */

/* A watched thread; times are CLOCK_MONOTONIC ns. */
struct nps_thread {
	/* ns on a CPU and ns waiting for one, by the scheduler's count, when it left the CPU */
	__u64 ran, waited;
	__u64 on; /* when it got a CPU, 0: unknown */
	__u64 off; /* when it left the CPU */
	__u64 runnable; /* when it was woken, 0: it was not asleep */
	__u64 woken; /* when it was woken last */
	__u32 waker; /* tid that woke it at `runnable`, 0: unknown */
	__u32 last_waker; /* tid that woke it at `woken`, 0: unknown */
	__u64 minor, major; /* page faults already reported, and when */
	__u64 faults_reported;
	__u32 pid;
	__u32 state; /* state in which it left the CPU last, 0: still runnable */
};

#define NPS_MAX_NODES 512 /* device nodes of the NPU's driver */
#define NPS_MAX_NPU_FILES 8192 /* descriptors that were handed over to a part of the driver */

/* Value in the map of device nodes. The key is the node's number in the kernel's encoding. */
struct nps_node {
	__u8 kind; /* enum nps_npu_node */
	__u8 pad;
	__u16 device; /* number N of davinciN, or NPS_DRIVER_NO_DEVICE */
};

/* Offsets, in bytes, of the members that are read of the driver's struct trs_sqe_update_info. */
struct nps_sqe_layout {
	__u32 pid, sqid, sqeid, sqe, size;
};

/*
 * Offsets, in bytes, of the fields that are read of a driver tracepoint's record. 0: it has no such field,
 * since each record begins with common fields.
 */
struct nps_trace_layout {
	__u32 device, tsid, queue, type, task, stream;
	__u32 error, error_type, dropped;
};

/* What to learn from submissions, because the driver's tracepoints of SQEs and CQEs report no process. */
#define NPS_LEARN_QUEUES 0x1
#define NPS_LEARN_STREAMS 0x2

/*
 * Key and value of the sums of short system calls. A thread is in one
 * call at a time, so each sum has one writer.
 */
struct nps_sum_key {
	__u32 pid, tid;
	__u16 nr, flags; /* NPS_F_SOCKET, NPS_F_NPU_NODE */
	__u32 pad;
};

struct nps_sum {
	__u64 first, last; /* start of the first call, end of the last, CLOCK_MONOTONIC ns */
	__u64 total; /* ns */
	__u64 bytes;
	__u32 count, errors;
	__u32 shortest, longest; /* ns */
};

/* What the names in the map of mstx domains are for. */
enum nps_mstx_mode { NPS_MSTX_ALL = 0, NPS_MSTX_INCLUDE = 1, NPS_MSTX_EXCLUDE = 2 };
#define NPS_MSTX_DOMAINS 256 /* most names */

/* A domain handle of our injection library points at this number, which the domain's name follows. */
#define NPS_MSTX_MAGIC 0x316d6f6478746d6eULL /* "nmtxdom1" */

/* System calls by which a library, or our helper, may have been loaded. */
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
#define NPS_NR_MMAP 9
#define NPS_NR_MEMFD_CREATE 319
#else
#define NPS_NR_MMAP 222
#define NPS_NR_MEMFD_CREATE 279
#endif
#define NPS_PROT_EXEC 4

/* Instead of a call's stack pointer: it returned after the end of the capture, so it was open at the end. */
#define NPS_OUTLASTED (~0ULL)

#endif
