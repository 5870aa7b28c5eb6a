/* SPDX-License-Identifier: BSD-2-Clause */
#include "log_budget.h"

#include <errno.h>
#include <time.h>

#include "clocks.h"

#define MS 1000000ULL
/* CPU time a second, and at once. A helper that fills its ring with 10 MB/s takes about 20 ms a second. */
#define LOG_CPU_NS (200 * MS)
#define LOG_CPU_BURST (50 * MS)
/* Of the main thread, for all helpers: so much for who comes first, and as much in equal parts. */
#define ALL_CPU_NS (300 * MS)
#define ALL_CPU_BURST (60 * MS)
#define LEAST_BURST MS /* of one part */

void nps_log_budget__init(struct nps_log_budget *b, const struct nps_session *session, uint64_t max_size,
			  uint64_t per_second)
{
	b->session = session;
	b->max_size = max_size;
	b->per_second = per_second;
	b->sharers = 0;
	nps_rate_limit__init(&b->cpu, ALL_CPU_NS, ALL_CPU_BURST, nps_now(CLOCK_MONOTONIC));
	atomic_init(&b->directories, 0);
}

int nps_log_budget__add_directory(struct nps_log_budget *b)
{
	return atomic_fetch_add(&b->directories, 1) < NPS_LOG_DIRECTORIES ? 0 : -E2BIG;
}

void nps_log_account__init(struct nps_log_account *a, struct nps_log_budget *budget, bool shares)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC),
		 burst = budget->per_second > NPS_LOG_BURST ? budget->per_second : NPS_LOG_BURST;

	*a = (struct nps_log_account){ .budget = budget, .shares = shares };
	nps_rate_limit__init(&a->bytes, budget->per_second, burst, now);
	nps_rate_limit__init(&a->cpu, LOG_CPU_NS, LOG_CPU_BURST, now);
}

/* Is there time of the main thread for it? Dozens that use up the common time leave every other log its part. */
static bool has_time(struct nps_log_account *a, uint64_t now)
{
	struct nps_log_budget *b = a->budget;
	bool fair, common;

	if (!a->shares)
		return true;
	if (!a->counted) {
		a->counted = true;
		b->sharers++;
		nps_rate_limit__init(&a->fair, 0, 0, now);
	}
	a->fair.per_second = ALL_CPU_NS / b->sharers;
	a->fair.burst = ALL_CPU_BURST / b->sharers > LEAST_BURST ? ALL_CPU_BURST / b->sharers : LEAST_BURST;
	/* Both: each has to be refilled. */
	fair = nps_rate_limit__refill(&a->fair, now);
	common = nps_rate_limit__refill(&b->cpu, now);
	return fair || common;
}

bool nps_log_account__may_read(struct nps_log_account *a)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);
	bool bytes = nps_rate_limit__refill(&a->bytes, now), cpu = nps_rate_limit__refill(&a->cpu, now),
	     time = has_time(a, now);

	/* That others used up the common time is not this log's fault. */
	if ((!bytes || !cpu) && a->state == NPS_LOG_OPEN)
		a->state = NPS_LOG_SLOWED;
	return bytes && cpu && time && a->state != NPS_LOG_ENDED;
}

int nps_log_account__add_bytes(struct nps_log_account *a, uint64_t bytes)
{
	uint64_t whole = nps_session__bytes(a->budget->session), max = a->budget->max_size;

	if (a->state == NPS_LOG_ENDED || whole + bytes > max || a->used + bytes > max - whole) {
		a->state = NPS_LOG_ENDED;
		return -EDQUOT;
	}
	a->used += bytes;
	nps_rate_limit__spend(&a->bytes, bytes);
	return 0;
}

void nps_log_account__add_cpu(struct nps_log_account *a, uint64_t ns)
{
	nps_rate_limit__spend(&a->cpu, ns);
	if (!a->shares)
		return;
	nps_rate_limit__spend(a->fair.left > 0 ? &a->fair : &a->budget->cpu, ns);
}
