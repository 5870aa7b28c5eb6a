/* SPDX-License-Identifier: BSD-2-Clause */
#include "log_budget.h"

#include <errno.h>
#include <time.h>

#include "clocks.h"

#define MS 1000000ULL
/* CPU time a second, and at once. A helper that fills its ring with 10 MB/s takes about 20 ms a second. */
#define LOG_CPU_NS (200 * MS)
#define LOG_CPU_BURST (50 * MS)
#define ALL_CPU_NS (500 * MS)
#define ALL_CPU_BURST (100 * MS)

void nps_log_budget__init(struct nps_log_budget *b, const struct nps_session *session, uint64_t max_size,
			  uint64_t per_second)
{
	b->session = session;
	b->max_size = max_size;
	b->per_second = per_second;
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

bool nps_log_account__may_read(struct nps_log_account *a)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);
	/* All three: each has to be refilled. */
	bool bytes = nps_rate_limit__refill(&a->bytes, now), cpu = nps_rate_limit__refill(&a->cpu, now),
	     all = !a->shares || nps_rate_limit__refill(&a->budget->cpu, now);

	/* That others used up the common time is not this log's fault. */
	if ((!bytes || !cpu) && a->state == NPS_LOG_OPEN)
		a->state = NPS_LOG_SLOWED;
	return bytes && cpu && all && a->state != NPS_LOG_ENDED;
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
	if (a->shares)
		nps_rate_limit__spend(&a->budget->cpu, ns);
}
