/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of the tables of what the operating system did for the job; see tables.h. */
#ifndef NPS_OS_TABLES_H
#define NPS_OS_TABLES_H

/* System calls and pthread calls by start. */
#define NPS_OSRT_COLUMNS(C)                                                                                  \
	C(text, name)                                                                                        \
	C(u64, gtid)                                                                                         \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u8, shape) /* enum nps_os_shape */                                                                 \
	C(u8, fd_kind) /* NPS_F_SOCKET, NPS_F_NPU_NODE of event.h */                                         \
	C(u8, lock) /* enum nps_os_lock_kind */                                                              \
	C(u64, arg0)                                                                                         \
	C(u64, arg1)                                                                                         \
	C(u64, arg2)                                                                                         \
	C(i64, result)                                                                                       \
	C(text, path)                                                                                        \
	C(u32, holder) /* tid that had the lock when the wait began, 0 not known */                          \
	C(u32, waker) /* tid that ended the wait, 0 nobody did, or not known */                              \
	C(u8, unfinished) /* the capture ended first: so does the row, and there is no result */

/* What of a call's arguments and result is known to mean something. */
enum nps_os_shape {
	NPS_OS_UNKNOWN, /* not even the result is known: another profiler's */
	NPS_OS_PLAIN, /* the result alone */
	NPS_OS_BYTES, /* arg0 descriptor, result bytes */
	NPS_OS_IOCTL, /* arg0 descriptor, arg1 command */
	NPS_OS_OPEN, /* path, result descriptor */
	NPS_OS_MAP, /* arg1 bytes */
	NPS_OS_FUTEX, /* arg0 address, arg1 operation */
	NPS_OS_WAIT, /* arg2 time given, ns, UINT64_MAX without end */
	NPS_OS_WAIT_FD, /* the same, arg0 descriptor of an epoll */
	NPS_OS_FAULT /* no call: a major page fault; arg0 its address */
};

/* What a futex wait was for, as far as it shows. */
enum nps_os_lock_kind {
	NPS_LOCK_NONE, /* no wait */
	NPS_LOCK_UNKNOWN,
	NPS_LOCK_MUTEX,
	NPS_LOCK_MUTEX_PI,
	NPS_LOCK_MUTEX_ROBUST,
	NPS_LOCK_JOIN, /* holder: the thread that was waited for */
	NPS_LOCK_SIGNAL /* condition variable, semaphore: they look alike */
};
#define NPS_LOCK_NAMES                                                                                       \
	{                                                                                                    \
		"", "unknown", "mutex", "mutex (PI)", "mutex (robust)", "join", "condition or semaphore"     \
	}

/* Calls that were too short for a row each; by thread and name. Times in ns. */
#define NPS_OSRT_SUM_COLUMNS(C)                                                                              \
	C(text, name)                                                                                        \
	C(u64, gtid)                                                                                         \
	C(time, start) /* of the first */                                                                    \
	C(time, end) /* of the last */                                                                       \
	C(u64, count)                                                                                        \
	C(u64, errors)                                                                                       \
	C(u64, total)                                                                                        \
	C(u64, shortest)                                                                                     \
	C(u64, longest)                                                                                      \
	C(u64, bytes)                                                                                        \
	C(u8, fd_kind)

/* The same sums, but of about a second each, by start: where in time they belong. longest: of one call. */
#define NPS_OSRT_SPAN_COLUMNS(C)                                                                             \
	C(text, name)                                                                                        \
	C(u64, gtid)                                                                                         \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u64, total)                                                                                        \
	C(u64, longest)

/* Waits for locks by thread, lock and holder; times in ns. */
#define NPS_OS_LOCK_COLUMNS(C)                                                                               \
	C(u64, gtid)                                                                                         \
	C(text, kind)                                                                                        \
	C(u64, address)                                                                                      \
	C(u32, holder) /* 0 not known */                                                                     \
	C(u32, waker) /* of the longest wait */                                                              \
	C(u64, count)                                                                                        \
	C(u64, total)                                                                                        \
	C(u64, longest)                                                                                      \
	C(time, longest_start)

/*
 * What each thread did and how it was scheduled, in sums; times in ns. Of scheduling NPS_NULL: no record of
 * it. waker, preemptor: the thread that woke it, or took its CPU, most often; 0 none. Block devices: the
 * thread's own requests, not what the kernel wrote later.
 */
#define NPS_OS_THREAD_COLUMNS(C)                                                                             \
	C(u64, gtid)                                                                                         \
	C(text, name)                                                                                        \
	C(i64, running)                                                                                      \
	C(i64, runnable)                                                                                     \
	C(i64, sleeping)                                                                                     \
	C(i64, blocked) /* uninterruptible */                                                                \
	C(i64, slices)                                                                                       \
	C(i64, waits) /* times it gave a CPU up by itself; ending is none */                                 \
	C(i64, preemptions)                                                                                  \
	C(i64, migrations)                                                                                   \
	C(i64, cpus)                                                                                         \
	C(u32, waker)                                                                                        \
	C(text, waker_comm)                                                                                  \
	C(u64, wakes)                                                                                        \
	C(u32, preemptor)                                                                                    \
	C(text, preemptor_comm)                                                                              \
	C(u64, preempted)                                                                                    \
	C(u64, minor)                                                                                        \
	C(u64, major)                                                                                        \
	C(u64, major_ns)                                                                                     \
	C(u64, reads)                                                                                        \
	C(u64, read_bytes)                                                                                   \
	C(u64, read_ns)                                                                                      \
	C(u64, writes)                                                                                       \
	C(u64, write_bytes)                                                                                  \
	C(u64, write_ns)                                                                                     \
	C(u64, received) /* bytes, by sockets */                                                             \
	C(u64, sent)

#endif
