/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of what the host's scheduler means: interrupts, and what is derived of them and of `run`. */
#ifndef NPS_TABLES_HOST_H
#define NPS_TABLES_HOST_H

#include "schema/table.h"

/* Time that an interrupt used of a thread's time on its CPU, by start. what: enum nps_irq_what (event.h). */
#define NPS_IRQ_COLUMNS(C)                                                                                   \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u32, tid)                                                                                          \
	C(u32, cpu)                                                                                          \
	C(u32, number)                                                                                       \
	C(u8, what)                                                                                          \
	C(text, name)                                                                                        \
	C(text, comm)

/*
 * Where a host thread's time went in a step, ns: the parts exclude each other and add up to end - start
 * (derive/host.h). step: its text, "" for the whole capture. interrupts: NPS_NULL if none were recorded.
 */
#define NPS_HOST_BREAKDOWN_COLUMNS(C)                                                                        \
	C(text, step)                                                                                        \
	C(time, start)                                                                                       \
	C(time, end)                                                                                         \
	C(u64, gtid)                                                                                         \
	C(text, comm)                                                                                        \
	C(u64, user)                                                                                         \
	C(u64, cann)                                                                                         \
	C(u64, io_calls)                                                                                     \
	C(u64, other_calls)                                                                                  \
	C(u64, device_wait)                                                                                  \
	C(u64, lock_wait)                                                                                    \
	C(u64, cpu_wait)                                                                                     \
	C(u64, io_wait)                                                                                      \
	C(u64, faults)                                                                                       \
	C(i64, interrupts)                                                                                   \
	C(u64, sleep)                                                                                        \
	C(u64, unknown)

#endif
