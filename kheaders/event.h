/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Wire format of events: what BPF programs write into the rings and what a
 * session's event file holds, byte for byte (little endian, no padding). A record is a header and
 * one struct for its kind.
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
	NPS_EV_API = 1, /* a probed C function returned */
	NPS_EV_SQE = 2, /* one 64-byte SQE was submitted with halSqTaskSend */
	NPS_EV_MARK = 3, /* an entry-only probe was hit; dur = 0 */
	NPS_EV_SYSCALL = 4, /* a system call returned */
	NPS_EV_SCHED = 5, /* a thread left the CPU */
	NPS_EV_PROC = 6, /* fork, exec, exit: enum nps_proc_what */
	NPS_EV_SYSCALL_SUM = 7, /* system calls that are too many or too short for a record each */
	NPS_EV_LOCK = 8, /* a wait for a lock or another thread ended */
	NPS_EV_FAULT = 9, /* page faults of a thread */
	NPS_EV_IO = 10, /* a request of a block device that a thread made was completed */
	NPS_EV_IRQ = 11, /* an interrupt on a watched thread's CPU */
	NPS_EV_STACK = 12, /* a stack: no record of this form, it is in stacks.nps (stack.h) */
	NPS_EV_TENSOR = 13, /* a tensor's description: shape, data type, format */
	NPS_EV_DRIVER = 14, /* a system call on a device node of the NPU's driver: enum nps_driver_call */
	NPS_EV_DRIVER_TASK = 15, /* the driver put an SQE into a queue of the device */
	NPS_EV_DRIVER_DONE = 16, /* the driver took a CQE from the device */
	NPS_EV_DRIVER_DMA = 17, /* the driver copied by PCIe */
	NPS_EV_CQE = 18, /* the runtime collected a completion record with halCqReportRecv */
	NPS_EV_PYSTACK = 19, /* the Python stack of the call that began at `start` */
	NPS_EV_INPUT = 20, /* a tensor that an operator of PyTorch was called with */
	NPS_EV_MEMORY = 21, /* PyTorch's allocator of device memory reported what it did */
	NPS_EV_KIND_MAX = 22,
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
	K(NPS_EV_CQE, "cqe", "completions")                                                                  \
	K(NPS_EV_PYSTACK, "pystack", "Python stacks")                                                        \
	K(NPS_EV_INPUT, "input", "operators' tensors")                                                       \
	K(NPS_EV_MEMORY, "memory", "allocator reports")

/*
 * What a record has beyond the header, one struct a kind. All of them are 32 bytes, their members naturally
 * aligned; reserved members are 0. Lengths are in bytes and times in nanoseconds of CLOCK_MONOTONIC unless
 * noted otherwise; device nodes and disks are as the kernel has them: major << 20 | minor.
 */

/*
 * API and MARK: values whose meaning the probe's row of the catalogue gives (catalog.h). Those of PyTorch are
 * records of calls, API, in the order in which they end:
 *  TORCH_OP        an operator; slot[0]: id of its name with the overload ("aten::add.Tensor"); slot[1]:
 *                  id of the Python stack when it began, 0 none; slot[2]: start of the INPUT records of
 *                  its tensors, 0: its arguments are not known; slot[3]: what its arguments are (enum
 *                  nps_op_input), 4 bits each from the lowest on, NPS_OP_INPUT_END behind the last
 *  TORCH_NODE      the autograd engine evaluates a node; slot[0]: id of its type's mangled name
 *                  ("N5torch8autograd9generated12MulBackward0E"); slot[1]: its sequence number, all
 *                  bits set (and marked as unreadable) if it is not known; slot[2]: its address
 *  TORCH_SEQUENCE  slot[0]: the sequence number that the thread got; the operator that is open innermost
 *                  makes the node with this number
 *  TORCH_BACKWARD  a backward pass, in the thread that called it
 *  TORCH_LABEL     a label of record_function(), in the thread that opened it; slot[0]: id of its text;
 *                  slot[1]: id of the Python stack when it began, 0 none; slot[2]: address of its object
 */
struct nps_event_call {
	__u64 slot[4];
};

/* The first 16 bytes of an SQE, as STARS of the 910B has them. */
struct nps_sqe_head {
	__u8 type; /* bits 0-5 */
	__u8 flags;
	__u16 blocks;
	__u16 stream;
	__u16 task;
	__u8 rest[8];
};

/*
 * SQE: start and dur are those of the halSqTaskSend call, ret its result. dur 0: its return was not
 * probed, ret is 0 whatever it was. The runtime calls again where the queue had no room, each time
 * with a record. NPS_F_SLOT_FAULT(1): the SQE could not be read, sqe is 0.
 */
struct nps_event_sqe {
	__u16 device;
	__u16 index; /* of the SQE in its call */
	__u16 count; /* SQEs of the call */
	__u16 reserved;
	struct nps_sqe_head sqe;
	__u32 queue; /* sqId */
	__u32 reserved2;
};

/*
 * CQE: start and dur are those of the halCqReportRecv call, ret its result: 0, others have no record.
 * This is what STARS of the 910B writes; other chips' records are stored as they are.
 * NPS_F_SLOT_FAULT(1): the CQE could not be read, head is 0.
 */
struct nps_event_cqe {
	__u16 device;
	__u16 index; /* of the CQE in its call */
	__u16 count; /* CQEs of the call */
	__u16 reserved;
	union {
		__u8 head[24]; /* the first bytes of the CQE */
		struct {
			__u16 stream;
			__u16 task;
			__u32 error_code;
			__u8 error_type;
			__u8 sqe_type;
			__u16 queue; /* sqId */
			__u16 queue_head;
			__u16 flags; /* NPS_CQE_* */
			/* device counter when an event was recorded or a placeholder passed (SQE types 4
			 * and 3); of others the index of the SQE in its low 16 bits */
			__u64 counter;
		};
	};
};

/*
 * SYSCALL, nr in the header; of flags NPS_F_SOCKET and NPS_F_NPU_NODE are about the descriptor in arg[0],
 * NPS_F_SLOT_FAULT(n) is about arg[n].
 * open, creat: arg[0], openat, openat2: arg[1] is the id of the path's text, 0 unreadable.
 * poll, ppoll, select, pselect6, epoll_*wait*, nanosleep, clock_nanosleep: arg[2] is the time limit
 * in ns, all ones: none; of a sleep until a moment what was left when it began (of clocks of CPU time:
 * the moment).
 */
struct nps_event_syscall {
	__u64 arg[3];
	__s64 result;
};

/*
 * SYSCALL_SUM: calls of one thread and number that were shorter than the threshold; start and dur
 * reach from the first one's start to the last one's end. Flags as of SYSCALL.
 */
struct nps_event_syscall_sum {
	__u32 count;
	__u32 failed;
	__u64 total; /* their time */
	__u32 shortest;
	__u32 longest;
	__u64 bytes; /* that they moved */
};

/*
 * LOCK: a futex wait that slept; operation in the header: that of the futex without its flags. start and
 * dur are those of the system call, ret its result. NPS_F_SLOT_FAULT(2): the words could not be read.
 */
struct nps_event_lock {
	__u64 address; /* of the futex */
	__u32 waker; /* tid; 0: none, or unknown */
	__u32 value; /* that was waited on */
	__u32 word; /* the futex when the wait began */
	__u32 owner; /* the word 8 bytes on: of a mutex of glibc the tid of its owner */
	__u32 users; /* the word 12 bytes on */
	__u16 mutex_kind; /* the half word 16 bytes on */
	__u16 op_flags; /* flags of the operation, shifted right by 7 */
};

/* FAULT, by enum nps_fault_what in the header: page faults from start to start + dur ... */
struct nps_event_fault_sum {
	__u64 minor;
	__u64 major;
	__u64 reserved[2];
};

/* ... or one major fault; dur 0: when it began is unknown. */
struct nps_event_major_fault {
	__u64 address;
	__u64 reserved[3];
};

/*
 * IO: operation in the header is that of the block layer (0 read, 1 write, 2 flush, 3 discard, ...).
 * start and dur reach from the thread's request to its completion, ret is the layer's status.
 */
struct nps_event_io {
	__u64 bytes;
	__u32 device;
	__u16 call; /* number + 1 of the system call it was made in, 0: none (a fault) */
	__u16 reserved;
	__u64 sector;
	__u32 op_flags; /* REQ_* */
	__u32 reserved2;
};

/*
 * SCHED: start and dur are the time on the CPU that just ended; waker in the header is the thread that
 * woke it (0: unknown, or an interrupt). With NPS_F_OPEN the capture ended, not the time on the
 * CPU; dur 0: the thread was not on a CPU then.
 */
struct nps_event_sched {
	__u64 off; /* when the thread had left the CPU before, 0 unknown */
	__u64 runnable; /* when it became runnable again; 0 unknown: preempted, or woken before the capture */
	__u32 cpu;
	__u32 next; /* tid of the next thread */
	__u32 state; /* it left in; 0: still runnable, preempted */
	__u16 prio;
	__u16 reserved;
};

/*
 * PROC, by enum nps_proc_what in the header, about the process itself, of FORK the new one: born in the
 * header is when it started, in ns of CLOCK_BOOTTIME, which distinguishes it from others of the
 * same pid; parent its parent. tid of FORK is the thread that forked. Zeros where BPF programs have no
 * value.
 */
struct nps_event_proc {
	union {
		__u64 child; /* FORK: pid of the new process */
		__s64 exit_code; /* EXIT: as wait(2) reports it, or NPS_EXIT_UNKNOWN */
	};
	__u64 cpu_ns; /* EXIT: CPU time of all its threads */
	char comm[16]; /* NPS_COMM_SIZE; of EXEC the new one */
};

/*
 * IRQ: tid is the thread whose CPU it used, start and dur for how long. number in the header is that of the
 * interrupt or of the softirq, or enum nps_irq_local.
 */
struct nps_event_irq {
	__u32 what; /* enum nps_irq_what */
	__u32 cpu;
	__u64 reserved[3];
};

/*
 * TENSOR (--record-shapes). sequence in the header is the number of the record among the thread's of this
 * kind, modulo 65536: where one is missing it was lost. start is when it was written; handle in
 * the header is the object, of the kind that tensor_head.what has:
 *  TENSOR     the aclTensor that aclCreateTensor returned. size: of the view, by dimension.
 *             NPS_F_TRUNCATED: more than eight, or one that is no 32-bit number
 *  LIST       the aclTensorList. member: those from 4 * part on; count members in all, of which
 *             NPS_MAX_LIST are recorded
 *  OPERANDS   name of the operator whose first phase was entered (in the rings its number). member: its
 *             arguments from 4 * part on, without those in floating-point registers; count in all
 *  EXECUTOR   the executor that the first phase of the thread returned
 * NPS_F_SLOT_FAULT(0): sizes or members could not be read.
 */
struct nps_event_tensor {
	union {
		__u32 size[8];
		__u64 member[4];
	};
};

/* TENSOR: tensor_head in the header. */
struct nps_tensor_head {
	__u8 what : 4; /* enum nps_tensor_what */
	__u8 dims : 4; /* TENSOR */
	union {
		__s8 type; /* TENSOR: aclDataType */
		__u8 part; /* LIST, OPERANDS */
	};
	union {
		__s16 format; /* TENSOR: aclFormat */
		__u16 count; /* LIST, OPERANDS */
	};
};

/*
 * DRIVER: a system call on a device node; call_type is enum nps_driver_call. ret is its result, 0
 * of an mmap that succeeded.
 */
struct nps_event_driver {
	/* first bytes of the name of the part of the driver that has the descriptor; 0: none, unknown */
	char part[8];
	__u32 command; /* of an ioctl */
	__u32 fd;
	__u32 rdev;
	__u8 node; /* enum nps_npu_node */
	__u8 reserved;
	__u16 device; /* NPS_DRIVER_NO_DEVICE unknown */
	union {
		__u64 bytes; /* that the call is about, NPS_DRIVER_NO_BYTES unknown */
		struct {
			__u32 stream, task;
		} waits_for; /* of TSDRV's SQCQ_RECV */
	};
};

/*
 * DRIVER_TASK: start and dur are those of the driver's function through which each SQE passes, ret its
 * result; pid is whose SQE it is, tid the thread of the kernel, or of the job, that called. With traced in
 * the header NPS_DRIVER_TRACED the record is from a tracepoint of the driver, which is a moment (dur is 0).
 * It has only device, tsid, queue and the SQE's type, stream and task, this not of the type NPS_SQE_FFTS.
 */
struct nps_event_driver_task {
	__u16 device;
	__u16 tsid;
	__u32 queue; /* sqid */
	struct nps_sqe_head sqe; /* as it was before that function */
	__u32 position; /* in the queue */
	__u32 sqe_size;
};

/*
 * DRIVER_DONE: start is when the driver's function that handles the CQE was entered (dur is 0), tid the
 * thread that the interrupt stopped. From a tracepoint (as of DRIVER_TASK) the CQE has only flags, stream and
 * task; NPS_CQE_FAILED is set also where the tracepoint does not report errors.
 */
struct nps_event_driver_done {
	__u16 device;
	__u16 tsid;
	__u32 queue; /* cqid */
	union {
		__u8 head[16]; /* the first bytes of the CQE when that function returned */
		struct {
			__u16 flags; /* NPS_CQE_FAILED */
			__u16 queue_head;
			__u16 stream;
			__u16 task;
			__u8 rest[8];
		};
	};
	__u64 reserved;
};

/* DRIVER_DMA: start and dur are those of the driver's function that copies, ret its result. */
struct nps_event_driver_dma {
	__u32 device;
	__u32 direction; /* 0: to the device */
	__u64 source;
	__u64 destination;
	__u64 bytes;
};

/*
 * INPUT (--record-shapes with --ops): a tensor that an operator of PyTorch was called with, of the thread's
 * TORCH_OP whose slot[2] is start; dur is 0. input_head in the header has the ordinal of the argument, from
 * 0.
 */
struct nps_event_input {
	__u32 size[8]; /* by dimension */
};

/* INPUT: input_head in the header. */
struct nps_input_head {
	__u8 argument;
	__u8 dims;
	__u8 type; /* c10::ScalarType */
	__u8 reserved;
};

/*
 * PYSTACK: of the call, or entry-only probe, of `probe` that the thread entered at `start`; dur is 0. Or a
 * sample: `probe` is NPS_PY_RAN or NPS_PY_SLEPT (python_stack.h).
 */
struct nps_event_python {
	__u64 stack; /* id of a stack of python.nps */
	__u64 reserved[3];
};

/*
 * MEMORY: torch_npu's allocator reported an allocation or release; memory_head and, as `address`, the block's
 * address are in the header. Number i (enum nps_memory_number) is low[i] | high[i] << 32, signed: the size,
 * which is negative of releases, then bytes allocated, reserved and active on the device after it.
 * NPS_F_SLOT_FAULT(i): number i has more than 48 bits, and is 0 here. A report that could not be read is a
 * lost record.
 */
struct nps_event_memory {
	__u64 stream; /* handle that the allocator has for the stream */
	__u32 low[4];
	__s16 high[4];
};

enum nps_memory_number { NPS_MEMORY_SIZE, NPS_MEMORY_ALLOCATED, NPS_MEMORY_RESERVED, NPS_MEMORY_ACTIVE };

/* MEMORY: memory_head in the header, as the allocator has it. */
struct nps_memory_head {
	__s8 device;
	__u8 component; /* 0: the caching allocator, 1: workspaces */
	__u8 what; /* enum nps_memory_what */
	__u8 allocator; /* 0: torch_npu's own, 1: another */
};

/*
 * API, SYSCALL and LOCK with NPS_F_UNFINISHED had not returned when the capture ended, to which dur
 * reaches: there are no results. API: ret = -1, slots that are read at the return are 0 and
 * marked; SYSCALL: ret and result are 0; LOCK: ret 0, no waker.
 */
struct nps_event {
	__u8 kind; /* enum nps_kind */
	__u8 flags; /* NPS_F_* */
	union {
		__u16 probe; /* API, MARK, SQE, CQE, PYSTACK, INPUT, MEMORY: row of the catalogue */
		__u16 nr; /* SYSCALL, SYSCALL_SUM: number of the call */
		__u16 operation; /* LOCK, IO */
		__u16 what; /* FAULT: enum nps_fault_what; PROC: enum nps_proc_what */
		__u16 number; /* IRQ */
		__u16 sequence; /* TENSOR */
		__u16 call_type; /* DRIVER: enum nps_driver_call */
		__u16 traced; /* DRIVER_TASK, DRIVER_DONE: NPS_DRIVER_TRACED */
	};
	__u32 pid; /* thread group */
	__u32 tid;
	union {
		__s32 ret;
		__u32 waker; /* SCHED: tid */
		__u32 parent; /* PROC: pid */
		struct nps_tensor_head tensor_head; /* TENSOR */
		struct nps_input_head input_head; /* INPUT */
		struct nps_memory_head memory_head; /* MEMORY */
	};
	__u64 start;
	union {
		__u64 dur;
		__u64 born; /* PROC */
		__u64 handle; /* TENSOR */
		__u64 address; /* MEMORY */
	};
	union {
		struct nps_event_call call;
		struct nps_event_sqe sqe;
		struct nps_event_cqe cqe;
		struct nps_event_syscall syscall;
		struct nps_event_syscall_sum syscall_sum;
		struct nps_event_lock lock;
		struct nps_event_fault_sum fault_sum;
		struct nps_event_major_fault major_fault;
		struct nps_event_io io;
		struct nps_event_sched sched;
		struct nps_event_proc proc;
		struct nps_event_irq irq;
		struct nps_event_tensor tensor;
		struct nps_event_driver driver;
		struct nps_event_driver_task driver_task;
		struct nps_event_driver_done driver_done;
		struct nps_event_driver_dma driver_dma;
		struct nps_event_python python;
		struct nps_event_input input;
		struct nps_event_memory memory;
	};
};

#define NPS_EVENT_BYTES 64
_Static_assert(sizeof(struct nps_event) == NPS_EVENT_BYTES, "a record");
_Static_assert(__builtin_offsetof(struct nps_event, start) == 16, "start");
_Static_assert(__builtin_offsetof(struct nps_event, dur) == 24, "dur");
#define NPS_EVENT_AT(member, offset)                                                                         \
	_Static_assert(__builtin_offsetof(struct nps_event, member) == (offset), #member)
#define NPS_EVENT_BODY(body)                                                                                 \
	_Static_assert(sizeof(((struct nps_event *)0)->body) == 32, #body " fills the record");              \
	NPS_EVENT_AT(body, 32)
NPS_EVENT_BODY(call);
NPS_EVENT_BODY(sqe);
NPS_EVENT_AT(sqe.sqe, 40);
NPS_EVENT_AT(sqe.sqe.task, 46);
NPS_EVENT_AT(sqe.queue, 56);
NPS_EVENT_BODY(cqe);
NPS_EVENT_AT(cqe.stream, 40);
NPS_EVENT_AT(cqe.sqe_type, 49);
NPS_EVENT_AT(cqe.flags, 54);
NPS_EVENT_AT(cqe.counter, 56);
NPS_EVENT_BODY(syscall);
NPS_EVENT_AT(syscall.result, 56);
NPS_EVENT_BODY(syscall_sum);
NPS_EVENT_AT(syscall_sum.longest, 52);
NPS_EVENT_BODY(lock);
NPS_EVENT_AT(lock.owner, 52);
NPS_EVENT_AT(lock.op_flags, 62);
NPS_EVENT_BODY(fault_sum);
NPS_EVENT_BODY(major_fault);
NPS_EVENT_BODY(io);
NPS_EVENT_AT(io.call, 44);
NPS_EVENT_AT(io.op_flags, 56);
NPS_EVENT_BODY(sched);
NPS_EVENT_AT(sched.next, 52);
NPS_EVENT_AT(sched.prio, 60);
NPS_EVENT_BODY(proc);
NPS_EVENT_AT(proc.comm, 48);
NPS_EVENT_BODY(irq);
NPS_EVENT_AT(irq.cpu, 36);
NPS_EVENT_BODY(tensor);
NPS_EVENT_AT(tensor_head.part, 13);
NPS_EVENT_AT(tensor_head.count, 14);
NPS_EVENT_BODY(driver);
NPS_EVENT_AT(driver.node, 52);
NPS_EVENT_AT(driver.device, 54);
NPS_EVENT_AT(driver.waits_for.task, 60);
NPS_EVENT_BODY(driver_task);
NPS_EVENT_AT(driver_task.sqe, 40);
NPS_EVENT_AT(driver_task.sqe_size, 60);
NPS_EVENT_BODY(driver_done);
NPS_EVENT_AT(driver_done.task, 46);
NPS_EVENT_BODY(driver_dma);
NPS_EVENT_AT(driver_dma.direction, 36);
NPS_EVENT_BODY(python);
NPS_EVENT_BODY(input);
NPS_EVENT_AT(input_head.type, 14);
NPS_EVENT_BODY(memory);
NPS_EVENT_AT(memory_head.what, 14);
NPS_EVENT_AT(memory.low, 40);
NPS_EVENT_AT(memory.high, 56);

/*
 * API, MARK: a slot could not be read from the job's memory; of other kinds see their structs. In the rings,
 * a text that could not be read is its address; the reader tries again, and in a session file it is 0.
 */
#define NPS_F_SLOT_FAULT(slot) (1U << (slot))
#define NPS_F_TRUNCATED 0x10 /* more SQEs, or CQEs, in the call than records of it */
#define NPS_F_NO_RESULT 0x20 /* API: ret has no meaning, as of every TORCH_OP, TORCH_NODE, TORCH_BACKWARD */
/* API: an exception, longjmp or the end of the thread left it; its end is when that was observed */
#define NPS_F_UNWOUND 0x40
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

#define NPS_CQE_FAILED 0x8000 /* flags of DRIVER_DONE: the task failed, or the CQE is about something else */
#define NPS_SQE_FFTS 0 /* type of SQEs in which the driver replaces the ids */
#define NPS_DRIVER_TRACED 1 /* traced of DRIVER_TASK and DRIVER_DONE */

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
enum nps_memory_what {
	NPS_MEMORY_MALLOC = 0,
	NPS_MEMORY_FREE = 1, /* by its owner; streams may still use the block */
	NPS_MEMORY_BLOCK_FREE = 2, /* it can be used again */
};
#define NPS_TENSOR_DIMS_MAX 8

/* What an argument of an operator of PyTorch is. */
enum nps_op_input {
	NPS_OP_INPUT_END = 0, /* there is none */
	NPS_OP_INPUT_TENSOR = 1, /* it has an INPUT record, unless that was lost */
	NPS_OP_INPUT_SCALAR = 2, /* a number, also one of a data type, of a layout or of a memory format */
	NPS_OP_INPUT_SCALARS = 3, /* a list of numbers */
	NPS_OP_INPUT_TENSORS = 4, /* a list of tensors */
	NPS_OP_INPUT_NONE = 5, /* none, an undefined tensor, or another type, such as a text or a device */
	NPS_OP_INPUT_UNKNOWN = 6, /* it could not be read, or not be recorded: more than eight dimensions */
};
#define NPS_MAX_LIST 64 /* members of a list that are recorded */
#define NPS_MAX_OPERANDS 32 /* arguments of a first phase that are recorded */

#define NPS_EXIT_UNKNOWN (-1) /* EXIT: the kernel does not report it; wait(2) has no such status */
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
