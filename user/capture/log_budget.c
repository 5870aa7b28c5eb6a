/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/log_budget.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "core/clocks.h"

#define MS 1000000ULL
#define NO_USER ((uid_t)-2) /* of a device; -1 is for a process that has exited */
/* CPU time a second, and burst. A helper that fills its ring with 10 MB/s takes about 20 ms a second. */
#define LOG_CPU_NS (200 * MS)
#define LOG_CPU_BURST (200 * MS)
#define ALL_CPU_NS (600 * MS)
#define ALL_CPU_BURST (200 * MS)

static void pool_init(struct nps_log_pool *p, uint64_t per_second, uint64_t burst, uint64_t now)
{
	*p = (struct nps_log_pool){ .per_second = per_second, .burst = burst };
	nps_rate_limit__init(&p->common, per_second / 2, burst / 2, now);
}

void nps_log_budget__init(struct nps_log_budget *b, const struct nps_session_writer *session,
			  uint64_t max_size, uint64_t per_second)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	*b = (struct nps_log_budget){ .session = session, .max_size = max_size, .per_second = per_second };
	atomic_init(&b->n_owners, 0);
	pool_init(&b->pool[NPS_LOG_CPU], ALL_CPU_NS, ALL_CPU_BURST, now);
	pool_init(&b->pool[NPS_LOG_BYTES], per_second,
		  per_second > NPS_LOG_BURST ? per_second : NPS_LOG_BURST, now);
}

void nps_log_budget__free(struct nps_log_budget *b)
{
	struct nps_log_owner *next;

	for (struct nps_log_owner *o = b->owners; o; o = next) {
		next = o->next;
		free(o);
	}
	b->owners = NULL;
}

static struct nps_log_owner *owner_find(const struct nps_log_budget *b, struct nps_process_owner who)
{
	for (struct nps_log_owner *o = b->owners; o; o = o->next)
		if (o->who.uid == who.uid && o->who.pid_ns == who.pid_ns)
			return o;
	return NULL;
}

static struct nps_log_owner *owner_add(struct nps_log_budget *b, struct nps_process_owner who)
{
	struct nps_log_owner *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->who = who;
	atomic_init(&o->used, 0);
	for (int i = 0; i < NPS_LOG_POOLS; i++)
		nps_rate_limit__init(&o->part[i], 0, 0, nps_now(CLOCK_MONOTONIC));
	o->next = b->owners;
	b->owners = o;
	if (who.uid != (uid_t)-1) /* except for processes that have exited, which write nothing any more */
		atomic_fetch_add(&b->n_owners, 1);
	return o;
}

int nps_log_account__init(struct nps_log_account *a, struct nps_log_budget *budget, pid_t pid)
{
	struct nps_process_owner who = { .uid = NO_USER };
	uint64_t now = nps_now(CLOCK_MONOTONIC), rate = budget->per_second / 2;

	*a = (struct nps_log_account){ .budget = budget, .has_thread = !pid };
	if (pid)
		who = nps_process_owner(pid);
	a->owner = pid ? owner_find(budget, who) : NULL;
	if (!a->owner) {
		a->owner = owner_add(budget, who);
		budget->n_users += pid && who.uid != (uid_t)-1 && a->owner;
	}
	nps_rate_limit__init(&a->bytes, rate, rate > NPS_LOG_BURST ? rate : NPS_LOG_BURST, now);
	nps_rate_limit__init(&a->cpu, LOG_CPU_NS, LOG_CPU_BURST, now);
	return a->owner ? 0 : -ENOMEM;
}

/* Is anything left for the owner? Those that use up the common part leave the other owners theirs. */
static bool pool_refill(struct nps_log_account *a, int which, uint64_t now)
{
	struct nps_log_pool *p = &a->budget->pool[which];
	struct nps_rate_limit *part = &a->owner->part[which];
	unsigned int n = a->budget->n_users ? a->budget->n_users : 1;
	bool own, common;

	part->per_second = p->per_second / 2 / n;
	part->burst = p->burst / 2 / n;
	/* Both, because each has to be refilled. */
	own = nps_rate_limit__refill(part, now);
	common = nps_rate_limit__refill(&p->common, now);
	return own || common;
}

static void pool_spend(struct nps_log_account *a, int which, uint64_t tokens)
{
	struct nps_rate_limit *part = &a->owner->part[which];

	if (!a->has_thread)
		nps_rate_limit__spend(part->left > 0 ? part : &a->budget->pool[which].common, tokens);
}

bool nps_log_account__may_read(struct nps_log_account *a)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);
	bool own = nps_rate_limit__refill(&a->bytes, now), all = true;

	own &= nps_rate_limit__refill(&a->cpu, now);
	for (int i = 0; !a->has_thread && i < NPS_LOG_POOLS; i++)
		all &= pool_refill(a, i, now);
	a->slowed |= !own || !all;
	return own && all && !a->end;
}

int nps_log_account__end(struct nps_log_account *a, const char *reason)
{
	if (!a->end)
		a->end = reason;
	return -ENOBUFS;
}

int nps_log_account__add_bytes(struct nps_log_account *a, uint64_t bytes)
{
	const struct nps_log_budget *b = a->budget;
	uint64_t whole = nps_session_writer__bytes(b->session),
		 left = b->max_size > whole ? b->max_size - whole : 0, used = atomic_load(&a->owner->used);
	unsigned int n = atomic_load(&b->n_owners);

	if (a->end)
		return -ENOBUFS;
	/* A single owner can use the whole session, which ends when it is full. */
	if (n > 1 && used + bytes > left && used + bytes > b->max_size / (n + 1))
		return nps_log_account__end(a, "max_size");
	atomic_fetch_add(&a->owner->used, bytes);
	a->used += bytes;
	nps_rate_limit__spend(&a->bytes, bytes);
	pool_spend(a, NPS_LOG_BYTES, bytes);
	return 0;
}

int nps_log_account__add_directory(struct nps_log_account *a)
{
	return ++a->owner->directories <= NPS_LOG_DIRECTORIES ? 0 : nps_log_account__end(a, "devices");
}

void nps_log_account__add_cpu(struct nps_log_account *a, uint64_t ns)
{
	nps_rate_limit__spend(&a->cpu, ns);
	pool_spend(a, NPS_LOG_CPU, ns);
}
