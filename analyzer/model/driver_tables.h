/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of the tables of what the NPU's driver did for the job; see tables.h. */
#ifndef NPS_DRIVER_TABLES_H
#define NPS_DRIVER_TABLES_H

/* System calls on the driver's device nodes, by start. NPS_NULL: not known. */
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

#endif
