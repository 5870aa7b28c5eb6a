/* SPDX-License-Identifier: BSD-2-Clause */
/* The operating system's work for a process: system calls, locks, page faults, requests of block devices. */
#ifndef NPS_OS_CALLS_H
#define NPS_OS_CALLS_H

#include "event.h"
#include "import/session/session_model.h"
#include "model/model.h"

/* Keeps an event of one of these kinds. 0 or a negative errno. */
int nps_os_calls__keep(struct nps_proc *proc, const struct nps_event *event);

/* Fills osrt, osrt_sum, osrt_span, os_lock and os_thread of MODEL; PROC's rows are sorted. 0 or -errno. */
int nps_os_calls__fill(struct nps_model *model, const struct nps_session *rec, struct nps_proc *proc);

/* What the arguments of a call of that name (no text: "") mean. */
enum nps_os_shape nps_os_shape_of(const char *name);

/*
 * What WAIT, an event of the kind LOCK, was for, and in *HOLDER the thread that had it, 0 if not known.
 * KNOWN returns whether a number is that of a thread of the process.
 */
enum nps_os_lock_kind nps_os_lock_kind_of(const struct nps_event *wait,
					  bool (*known)(const void *ctx, uint32_t tid), const void *ctx,
					  uint32_t *holder);

#endif
