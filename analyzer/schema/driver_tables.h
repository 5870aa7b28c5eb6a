/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of the tables of what the NPU's driver did for the job; see tables.h. */
#ifndef NPS_DRIVER_TABLES_H
#define NPS_DRIVER_TABLES_H

/* System calls on the driver's device nodes, and copies by PCIe that it made, by start. NPS_NULL: unknown. */
#define NPS_DRIVER_COLUMNS(C)                                                                                \
	C(text, name) /* what was called, of which part of the driver */                                     \
	C(u64, gtid)                                                                                         \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(text, node) /* the device node's name */                                                           \
	C(text, part) /* of the driver, to which the node handed the descriptor over; NPS_NONE none */       \
	C(u32, command) /* of an ioctl, all of it; 0 of others */                                            \
	C(i64, device)                                                                                       \
	C(i64, bytes)                                                                                        \
	C(i64, result) /* negative: an errno */

/* SQEs that the driver put into a queue of the device, by time. */
#define NPS_DRIVER_TASK_COLUMNS(C)                                                                           \
	C(u32, device)                                                                                       \
	C(u32, stream)                                                                                       \
	C(i64, task) /* NPS_NULL unknown */                                                                  \
	C(u32, queue) /* number of the queue */                                                              \
	C(u8, type) /* of the SQE */                                                                         \
	C(u64, gtid) /* the process, and the thread that did it: the kernel's, or the job's own */           \
	C(time, start) /* when the driver's function that sees it was entered */                             \
	C(i64, driver_ns) /* that function, ns; NPS_NULL unknown */                                          \
	C(time, submit) /* when the job submitted it, 0: no such submission is known */                      \
	C(i64, queued) /* ns between, NPS_NULL unknown */                                                    \
	C(text, name) /* of the task */                                                                      \
	C(u32, connection) /* NPS_NO_ID none */

/* CQEs that the driver took from the device, by time. */
#define NPS_DRIVER_CQE_COLUMNS(C)                                                                            \
	C(u32, device)                                                                                       \
	C(u32, stream)                                                                                       \
	C(u32, task)                                                                                         \
	C(u32, queue)                                                                                        \
	C(u32, pid)                                                                                          \
	C(time, timestamp)                                                                                   \
	C(u32, waiter) /* tid of the thread whose wait it ended, 0 none is known */                          \
	C(time, woken) /* when that wait returned, 0 unknown */                                              \
	C(i64, wakeup) /* ns between, NPS_NULL unknown */

#endif
