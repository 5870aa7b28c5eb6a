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
	NPS_EV_IO = 10, /* a request of a block device was completed, or bytes went over a socket */
	NPS_EV_IRQ = 11, /* an interrupt on a watched thread's CPU */
	NPS_EV_STACK = 12, /* a stack sample; its frames are in stacks.nps */
	NPS_EV_TENSOR = 13, /* a tensor's description: shape, data type, format */
	NPS_EV_KIND_MAX = 14,
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
	K(NPS_EV_TENSOR, "tensor", "tensors")

/*
 * Slots of nps_event.args by kind:
 *
 *  API, MARK  as the catalogue says (catalog.h); ret = return value, 32 bits.
 *  SQE        [0] u16 device | u16 index of the SQE in its call << 16
 *                 | u16 number of SQEs in the call << 32
 *             [1] the first 8 bytes of the SQE: u8 type (bits 0-5), u8 flags,
 *                 u16 block_dim, u16 rt_stream_id, u16 task_id
 *             [2] bytes 8..15 of the SQE   [3] u32 sqId
 *             start/dur = the halSqTaskSend call, ret = its result.
 *  SYSCALL    [0..2] first three arguments, [3] the full 64-bit result.
 *  SCHED      start/dur = the time on the CPU that just ended;
 *             [0] when the thread had left the CPU before (0 unknown)
 *             [1] when it became runnable again (0 unknown: it was preempted or
 *                 the wake-up came before the capture)
 *             [2] u32 cpu | u32 tid of the next thread << 32
 *             [3] u32 state it left in (0 = still runnable, preempted)
 *                 | u16 prio << 32
 *             ret = tid that woke it (0 unknown)
 *  PROC       FORK: [0] new pid (tgid), tid = forking thread
 *             EXEC: nothing; EXIT: [0] exit code as wait(2) reports it
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
#define NPS_F_TRUNCATED 0x10 /* more SQEs in the call than records of it */

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
