/* SPDX-License-Identifier: BSD-2-Clause */
/* Who woke a thread: only those who can have done it. */
#ifndef NPS_WAKERS_H
#define NPS_WAKERS_H

#include "model/model.h"

/*
 * The kernel reports which thread had the CPU at a wake-up, also if it was an interrupt that woke. Forgets
 * run.waker where the thread slept for a set time, which a timer ends, and where it slept on a lock and the
 * other thread is of another process. Needs `osrt` and `run` by start. 0 or -ENOMEM.
 */
int nps_wakers__check(struct nps_model *model);

#endif
