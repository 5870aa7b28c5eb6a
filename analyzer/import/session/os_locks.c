/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which lock a futex wait was for. The kernel only knows a word of memory; the bytes around it at the begin
 * of the wait show more. Nothing is trusted: a number is a thread if the process has that thread.
 */
#include "import/session/os_calls.h"

#include <linux/futex.h>

#define CONTENDED 2 /* glibc's lock word when somebody waits */
#define OP_PRIVATE (FUTEX_PRIVATE_FLAG >> 7)

static bool op_is_wait(unsigned int op)
{
	return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET;
}

static bool is_pi(unsigned int op)
{
	return op == FUTEX_LOCK_PI || op == 13; /* FUTEX_LOCK_PI2 */
}

enum nps_os_lock_kind nps_os_lock_kind_of(const struct nps_event *wait,
					  bool (*known)(const void *ctx, uint32_t tid), const void *ctx,
					  uint32_t *holder)
{
	const struct nps_event_lock *w = &wait->lock;
	uint32_t owner = w->word & FUTEX_TID_MASK;

	*holder = 0;
	if (wait->flags & NPS_F_SLOT_FAULT(2))
		return NPS_LOCK_UNKNOWN;
	/* The kernel's own rule for these: the word is the owner. */
	if (is_pi(wait->operation)) {
		*holder = owner && known(ctx, owner) ? owner : 0;
		return NPS_LOCK_MUTEX_PI;
	}
	if (!op_is_wait(wait->operation))
		return NPS_LOCK_UNKNOWN;
	if (w->value & FUTEX_WAITERS && w->word == w->value && owner != wait->tid && known(ctx, owner)) {
		*holder = owner;
		return NPS_LOCK_MUTEX_ROBUST;
	}
	/* The kernel clears the word of a thread that ends and wakes who waits for it, of any process. */
	if (!(w->op_flags & OP_PRIVATE) && w->value == w->word && w->value != wait->tid &&
	    known(ctx, w->value)) {
		*holder = w->value;
		return NPS_LOCK_JOIN;
	}
	/* pthread_mutex_t: lock, count, owner, users, kind */
	if (wait->operation == FUTEX_WAIT && w->value == CONTENDED && w->word == CONTENDED && w->users &&
	    w->owner != wait->tid && known(ctx, w->owner)) {
		*holder = w->owner;
		return NPS_LOCK_MUTEX;
	}
	if (wait->operation == FUTEX_WAIT_BITSET && w->op_flags & OP_PRIVATE && w->value != CONTENDED)
		return NPS_LOCK_SIGNAL;
	return NPS_LOCK_UNKNOWN;
}
