/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which lock a futex wait was for. The kernel only knows a word of memory; the bytes around it at the begin
 * of the wait show more. Nothing is trusted: a number is a thread if the process has that thread.
 */
#include "session/os_calls.h"

#include <linux/futex.h>

#define CONTENDED 2 /* glibc's lock word when somebody waits */
#define OP_PRIVATE (FUTEX_PRIVATE_FLAG >> 7)

static bool is_wait(uint8_t op)
{
	return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET;
}

static bool is_pi(uint8_t op)
{
	return op == FUTEX_LOCK_PI || op == 13; /* FUTEX_LOCK_PI2 */
}

enum nps_os_lock_kind nps_os_lock_kind_of(const struct nps_os_lock *w,
					  bool (*known)(const void *ctx, uint32_t tid), const void *ctx,
					  uint32_t *holder)
{
	uint32_t owner = w->word & FUTEX_TID_MASK;

	*holder = 0;
	if (w->unreadable)
		return NPS_LOCK_UNKNOWN;
	/* The kernel's own rule for these: the word is the owner. */
	if (is_pi(w->op)) {
		*holder = owner && known(ctx, owner) ? owner : 0;
		return NPS_LOCK_MUTEX_PI;
	}
	if (!is_wait(w->op))
		return NPS_LOCK_UNKNOWN;
	if (w->value & FUTEX_WAITERS && w->word == w->value && owner != w->tid && known(ctx, owner)) {
		*holder = owner;
		return NPS_LOCK_MUTEX_ROBUST;
	}
	/* When a thread ends, the kernel clears this word and wakes its waiters, in any process. */
	if (!(w->op_flags & OP_PRIVATE) && w->value == w->word && w->value != w->tid &&
	    known(ctx, w->value)) {
		*holder = w->value;
		return NPS_LOCK_JOIN;
	}
	/* pthread_mutex_t: lock, count, owner, users, kind */
	if (w->op == FUTEX_WAIT && w->value == CONTENDED && w->word == CONTENDED && w->users &&
	    w->owner != w->tid && known(ctx, w->owner)) {
		*holder = w->owner;
		return NPS_LOCK_MUTEX;
	}
	if (w->op == FUTEX_WAIT_BITSET && w->op_flags & OP_PRIVATE && w->value != CONTENDED)
		return NPS_LOCK_SIGNAL;
	return NPS_LOCK_UNKNOWN;
}
