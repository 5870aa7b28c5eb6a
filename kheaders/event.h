/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Wire format of events: what the kernel side writes into the rings and what a
 * session's event file holds, byte for byte (little endian, no padding).
 *
 * One call is one record, written when the call returns. Times are
 * CLOCK_MONOTONIC nanoseconds. Identifiers are those of the initial pid namespace.
 * Included from BPF and from user space.
 */
#ifndef NPS_EVENT_H
#define NPS_EVENT_H

#include <linux/types.h>

enum nps_kind {
	NPS_EV_NONE = 0,
	NPS_EV_API = 1, /* a probed C function returned; probe = catalogue id */
	NPS_EV_SQE = 2, /* one 64-byte SQE was submitted with halSqTaskSend */
	NPS_EV_MARK = 3, /* an entry-only probe was hit; dur = 0 */
	NPS_EV_SYSCALL = 4, /* a system call returned; probe = system call number */
	NPS_EV_SCHED = 5, /* a thread left the CPU */
	NPS_EV_PROC = 6, /* fork, exec, exit: see nps_proc_what in probe */
	NPS_EV_SYSCALL_SUM = 7, /* system calls that are too many or too short for a record each */
	NPS_EV_LOCK = 8, /* a wait for a lock or another thread ended */
	NPS_EV_FAULT = 9, /* page faults of a thread */
	NPS_EV_IO = 10, /* a request of a block device that a thread made was completed */
	NPS_EV_IRQ = 11, /* an interrupt on a watched thread's CPU */
	NPS_EV_STACK = 12, /* a stack: no record of this form, it is in stacks.nps (stack.h) */
	NPS_EV_TENSOR = 13, /* a tensor's description: shape, data type, format */
	NPS_EV_DRIVER =
		14, /* a system call on a device node of the NPU's driver; probe = enum nps_driver_call */
	NPS_EV_DRIVER_TASK = 15, /* the driver put an SQE into a queue of the device */
	NPS_EV_DRIVER_DONE = 16, /* the driver took a CQE from the device */
	NPS_EV_DRIVER_DMA = 17, /* the driver copied by PCIe */
	NPS_EV_CQE = 18, /* the runtime collected a completion record with halCqReportRecv */
	NPS_EV_KIND_MAX = 19,
};

/* Every kind: its id, what it is called in session.json and on the terminal. */
#define NPS_EVENT_KINDS(K)                                                                                   \
	K(NPS_EV_API, "api", "CANN calls")                                                                   \
	K(NPS_EV_SQE, "sqe", "submissions")                                                                  \
	K(NPS_EV_MARK, "mark", "entry marks")                                                                \
	K(NPS_EV_SYSCALL, "syscall", "system calls")                                                         \
	K(NPS_EV_SCHED, "sched", "time slices")                                                              \
	K(NPS_EV_PROC, "proc", "processes")                                                                  \
	K(NPS_EV_SYSCALL_SUM, "syscall_sum", "call sums")                                                    \
	K(NPS_EV_LOCK, "lock", "lock waits")                                                                 \
	K(NPS_EV_FAULT, "fault", "page faults")                                                              \
	K(NPS_EV_IO, "io", "I/O requests")                                                                   \
	K(NPS_EV_IRQ, "irq", "interrupts")                                                                   \
	K(NPS_EV_STACK, "stack", "stack samples")                                                            \
	K(NPS_EV_TENSOR, "tensor", "tensors")                                                                \
	K(NPS_EV_DRIVER, "driver", "driver calls")                                                           \
	K(NPS_EV_DRIVER_TASK, "driver_task", "driver's SQEs")                                                \
	K(NPS_EV_DRIVER_DONE, "driver_done", "driver's CQEs")                                                \
	K(NPS_EV_DRIVER_DMA, "driver_dma", "driver's copies")                                                \
	K(NPS_EV_CQE, "cqe", "completions")

/*
 * Slots of nps_event.args by kind:
 *
 *  API, MARK  as the catalogue says (catalog.h); ret = return value, 32 bits.
 *  SQE        [0] u16 device | u16 index of the SQE in its call << 16
 *                 | u16 number of SQEs in the call << 32
 *             [1] the first 8 bytes of the SQE: u8 type (bits 0-5), u8 flags,
 *                 u16 block_dim, u16 rt_stream_id, u16 task_id
 *             [2] bytes 8..15 of the SQE   [3] u32 sqId
 *             start/dur = the halSqTaskSend call, ret = its result; dur 0: its return was not
 *             probed, ret is 0 whatever it was. Made again by the runtime where the queue had no
 *             room, each time with a record.
 *  CQE        [0] u16 device | u16 index of the record in its call << 16
 *                 | u16 number of records in the call << 32
 *             [1] u16 stream | u16 task << 16 | u32 error code << 32
 *             [2] u8 error type | u8 SQE type << 8 | u16 sqId << 16 | u16 sqHead << 32
 *                 | u16 NPS_CQE_* << 48
 *             [3] the device's counter when an event was recorded or a place holder passed
 *                 (SQE types 4, 3); of others u16 index of the SQE
 *             start/dur = the halCqReportRecv call, ret = its result: 0, others have no record.
 *             This is what STARS of the 910B writes; other chips' records are stored as they are.
 *  SYSCALL    [0..2] first three arguments, [3] the full 64-bit result; but
 *             open, creat: [0], openat, openat2: [1] id of the path's text, 0 unreadable
 *             poll, ppoll, select, pselect6, epoll_*wait*, nanosleep, clock_nanosleep:
 *                 [2] the time given in ns, all ones: without end; of a sleep until a moment what was left
 *                 when it began (of clocks of CPU time: the moment)
 *             flags: NPS_F_SOCKET, NPS_F_NPU_NODE, what the descriptor in [0] is
 *  SYSCALL_SUM  calls of one thread and number that were shorter than the threshold:
 *             start/dur = from the first one's start to the last one's end
 *             [0] u32 count | u32 of them failed << 32   [1] their time, ns
 *             [2] u32 shortest | u32 longest << 32, ns   [3] bytes they moved
 *             flags: as of SYSCALL
 *  LOCK       a futex wait that slept; probe = futex operation without its flags;
 *             start/dur = the system call (of the same start), ret = its result
 *             [0] address of the futex
 *             [1] u32 tid that woke it (0: nobody did, or unknown) | u32 value waited on << 32
 *             [2] u32 the futex word when the wait began | u32 the word 8 bytes on << 32:
 *                 of a mutex of glibc the tid of its owner
 *             [3] u32 the word 12 bytes on (its users) | u16 of its kind << 32 | u16 flags of
 *                 the operation, shifted by 7 << 48
 *             NPS_F_SLOT_FAULT(2): the words could not be read.
 *  FAULT      NPS_FAULT_SUM: [0] minor, [1] major faults from start to start + dur
 *             NPS_FAULT_MAJOR: one; [0] address; dur 0 = when it began is unknown
 *  IO         probe = operation of the block layer (0 read, 1 write, 2 flush, 3 discard, ...)
 *             start/dur = from the thread's request to its completion, ret = the layer's status
 *             [0] bytes   [1] u32 device as the kernel has it (major << 20 | minor)
 *                 | u16 number + 1 of the system call it was made in << 32, 0: none (a fault)
 *             [2] sector  [3] u32 flags of the operation (REQ_*)
 *  SCHED      start/dur = the time on the CPU that just ended;
 *             [0] when the thread had left the CPU before (0 unknown)
 *             [1] when it became runnable again (0 unknown: it was preempted or
 *                 the wake-up came before the capture)
 *             [2] u32 cpu | u32 tid of the next thread << 32
 *             [3] u32 state it left in (0 = still runnable, preempted)
 *                 | u16 prio << 32
 *             ret = tid that woke it (0: unknown, or an interrupt did)
 *             With NPS_F_OPEN the capture ended, not the stretch; dur = 0: the
 *             thread was not on a CPU then.
 *
 *  API, SYSCALL and LOCK with NPS_F_UNFINISHED had not returned when the capture ended, to which dur
 *  reaches: there are no results. API: ret = -1, slots that are read at the return are 0 and
 *  marked; SYSCALL: ret and [3] are 0; LOCK: ret 0, no waker.
 *  TENSOR     --record-shapes. probe = number of the record among the thread's of this kind, modulo
 *             65536: where one is missing it was lost. start = when it was written. ret = bits of
 *             NPS_TENSOR_*, dur = what the record is about, by what it is:
 *             TENSOR    ret: dimensions, data type, format; dur = the aclTensor that aclCreateTensor
 *                       returned; [0..3] eight 32-bit sizes of the view, the first in the low half.
 *                       NPS_F_TRUNCATED: more than eight, or one that is no 32-bit number
 *             LIST      ret: part, count; dur = aclTensorList; [0..3] its members 4 * part ... ;
 *                       count members in all, of which NPS_MAX_LIST are told
 *             OPERANDS  ret: part, count; dur = name of the operator whose first phase was entered
 *                       (in the rings its number); [0..3] its arguments 4 * part ..., without those
 *                       in floating-point registers; count arguments in all
 *             EXECUTOR  dur = executor that the first phase of the thread gave back
 *  PROC       FORK: [0] new pid (tgid), tid = forking thread
 *             EXEC: nothing; EXIT: [0] exit code as wait(2) reports it, [1] CPU time of all its
 *             threads, ns
 *             of all three, about the process itself, of FORK the new one: dur = when it started, CLOCK_BOOTTIME ns,
 *             which tells it from others of the same pid; ret = its parent; [2..3] its comm (of EXEC the new one). Zeros
 *             where the kernel side does not tell, and in older sessions.
 *  IRQ        pid, tid = the thread whose CPU it took, start/dur = for how long;
 *             probe = number of the interrupt, softirq or (x86) enum nps_irq_local;
 *             [0] u32 enum nps_irq_what | u32 cpu << 32
 *  DRIVER     [0] first 8 bytes of the name of the driver's part that the descriptor was handed to, 0 none
 *                 or unknown
 *             [1] u32 command of an ioctl | u32 descriptor << 32
 *             [2] u32 device node as the kernel has it (major << 20 | minor) | u8 enum nps_npu_node << 32
 *                 | u16 device << 48, 0xffff unknown
 *             [3] bytes that the call is about, all ones unknown; of TSDRV's SQCQ_RECV
 *                 u32 stream | u32 task << 32 that is waited for
 *  DRIVER_TASK  start/dur = the driver's function that sees each SQE, ret = its result; pid = whose
 *             SQE it is, tid = the thread of the kernel, or of the job, that did it
 *             [0] u16 device | u16 tsid << 16 | u32 sqid << 32   [1], [2] the first 16 bytes of the SQE,
 *             as they were before that function
 *             [3] u32 place in the queue | u32 bytes of the SQE << 32
 *  DRIVER_DONE  the same of a CQE: [0] u16 device | u16 tsid << 16 | u32 cqid << 32
 *             [1], [2] the 16 bytes of the CQE when that function returned; start = when it was entered;
 *             tid = the thread that the interrupt stopped
 *             of both: probe = NPS_DRIVER_TRACED: from a tracepoint of the driver, which tells a moment (dur is 0)
 *             and of all this [0], and of [1] type, stream and task, but no task of an SQE of type NPS_SQE_FFTS;
 *             of a CQE NPS_CQE_FAILED is set where the tracepoint does not tell of errors, too
 *  DRIVER_DMA  start/dur = the driver's function that copies, ret = its result
 *             [0] u32 device | u32 direction << 32 (0 to the device)  [1] source [2] destination [3] bytes
 */
struct nps_event {
	__u8 kind; /* enum nps_kind */
	__u8 flags; /* NPS_F_* */
	__u16 probe;
	__u32 pid; /* thread group */
	__u32 tid;
	__s32 ret;
	__u64 start;
	__u64 dur;
	__u64 args[4];
};

/* A slot could not be read from the job's memory; its bit is 1 << slot. In the rings, a text that
 * could not be read is its address; the reader tries again, and in a session file it is 0. */
#define NPS_F_SLOT_FAULT(slot) (1U << (slot))
#define NPS_F_TRUNCATED 0x10 /* more SQEs, or CQEs, in the call than records of it */
#define NPS_F_SOCKET 0x20 /* the descriptor is a socket */
#define NPS_F_NPU_NODE 0x40 /* the descriptor is a device node of the NPU's driver */
#define NPS_F_UNFINISHED 0x80 /* API, SYSCALL, LOCK: it had not returned when the capture ended */

/* Bits of a CQE. With one of the last three the task it names may not have been done. */
#define NPS_CQE_MATCH 0x1 /* somebody waits for this very task */
#define NPS_CQE_DROP 0x2
#define NPS_CQE_ERROR 0x4
#define NPS_CQE_ACC_ERROR 0x8

enum nps_driver_call {
	NPS_DRIVER_OPEN = 1,
	NPS_DRIVER_CLOSE = 2,
	NPS_DRIVER_IOCTL = 3,
	NPS_DRIVER_MMAP = 4,
};

#define NPS_CQE_FAILED 0x8000 /* of DRIVER_DONE [1]: the task failed, or the CQE tells of something else */
#define NPS_SQE_FFTS 0 /* type of SQEs into which the driver writes other ids */
#define NPS_DRIVER_TRACED 1 /* probe of DRIVER_TASK and DRIVER_DONE */

enum nps_npu_node {
	NPS_NODE_OTHER = 0,
	NPS_NODE_MANAGER = 1, /* davinci_manager, which hands its descriptors over to parts of the driver */
	NPS_NODE_DEVICE = 2, /* davinciN */
	NPS_NODE_SVM = 3, /* devmm_svm */
	NPS_NODE_HDC = 4, /* hisi_hdc */
	NPS_NODE_DVPP = 5,
	NPS_NODE_ESCHED = 6,
	NPS_NODE_XSMEM = 7,
	NPS_NODE_QUEUE = 8,
	NPS_NODE_MAX = 9,
};
#define NPS_DRIVER_NO_DEVICE 0xffff
#define NPS_DRIVER_NO_BYTES 0xffffffffffffffffULL

enum nps_fault_what { NPS_FAULT_SUM = 0, NPS_FAULT_MAJOR = 1 };

#define NPS_F_OPEN 0x20 /* SCHED: the thread was still there when the capture ended */

enum nps_irq_what {
	NPS_IRQ_HARD, /* a device's */
	NPS_IRQ_SOFT, /* softirq */
	NPS_IRQ_LOCAL /* of the CPU itself: the timer, other CPUs */
};
enum nps_irq_local { NPS_LOCAL_TIMER, NPS_LOCAL_RESCHEDULE, NPS_LOCAL_CALL, NPS_LOCAL_CALL_SINGLE };

enum nps_tensor_what {
	NPS_TENSOR_TENSOR = 0,
	NPS_TENSOR_LIST = 1,
	NPS_TENSOR_OPERANDS = 2,
	NPS_TENSOR_EXECUTOR = 3,
};
#define NPS_TENSOR_DIMS_MAX 8
#define NPS_MAX_LIST 64 /* members of a list that are told */
#define NPS_MAX_OPERANDS 32 /* arguments of a first phase that are told */
/* nps_event.ret of a TENSOR record: what it is, a small and a large number */
#define NPS_TENSOR_RET(what, dims, type, format)                                                             \
	((__s32)((__u32)(what) | ((__u32)(dims)&0xf) << 4 | ((__u32)(type)&0xff) << 8 |                      \
		 (__u32)(format) << 16))
#define NPS_TENSOR_WHAT(ret) ((__u32)(ret)&0xf)
#define NPS_TENSOR_DIMS(ret) ((__u32)(ret) >> 4 & 0xf)
#define NPS_TENSOR_PART(ret) ((__u32)(ret) >> 8 & 0xff)
#define NPS_TENSOR_TYPE(ret) ((__s16)((__u32)(ret)&0xff00) >> 8) /* aclDataType */
#define NPS_TENSOR_COUNT(ret) ((__u32)(ret) >> 16)
#define NPS_TENSOR_FORMAT(ret) ((__s16)((__u32)(ret) >> 16)) /* aclFormat */

#define NPS_EXIT_UNKNOWN (-1) /* EXIT: where the kernel side cannot tell, no status that wait(2) has */
#define NPS_COMM_SIZE 16 /* bytes of a comm with the closing NUL */
enum nps_proc_what { NPS_PROC_FORK = 1, NPS_PROC_EXEC = 2, NPS_PROC_EXIT = 3 };

/* Strings are interned: events carry the id, the text travels once. */
enum nps_string_what {
	NPS_STR_TEXT = 64, /* id = hash of the text */
	NPS_STR_COMM = 65, /* id = tid; text = comm of that thread from `time` on */
	NPS_STR_MORE = 66, /* the text of the record before it, which has the same id, goes on */
};
#define NPS_STR_MAX 128 /* bytes of a record with the closing NUL */
#define NPS_TEXT_PARTS 4 /* records of one text at most */
#define NPS_TEXT_MAX (NPS_TEXT_PARTS * (NPS_STR_MAX - 1)) /* bytes; longer text is cut */
#define NPS_STR_CUT 0x1 /* in the last record of a text that was longer */

struct nps_string {
	__u8 kind; /* enum nps_string_what */
	__u8 flags; /* NPS_STR_CUT */
	__u16 len; /* bytes of text without the NUL */
	__u32 pid;
	__u64 id;
	__u64 time;
	char text[NPS_STR_MAX];
};

#endif
