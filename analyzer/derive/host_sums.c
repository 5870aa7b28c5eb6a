/* SPDX-License-Identifier: BSD-2-Clause */
#include "derive/host_sums.h"

#include "base/util.h"

#include <errno.h>

struct nps_host_share {
	size_t window;
	uint64_t user, cann;
};

void nps_host_sums__init(struct nps_host_sums *s, int tmpfd)
{
	*s = (struct nps_host_sums){ .end = 0 };
	nps_vec__init(&s->shares, tmpfd, sizeof(struct nps_host_share));
}

void nps_host_sums__free(struct nps_host_sums *s)
{
	nps_vec__free(&s->shares);
}

void nps_host_sums__add(struct nps_host_sums *s, uint32_t class, uint64_t now, uint64_t end, uint64_t total,
			uint64_t longest)
{
	struct nps_sum_class *c = &s->of[class];

	if (end <= now)
		return;
	c->longest = c->end > now ? NPS_MAX(c->longest, longest) : longest;
	c->end = NPS_MAX(c->end, end);
	c->left = nps_add_sat(c->left, NPS_MIN(total, end - now));
	s->end = NPS_MAX(s->end, end);
}

uint32_t nps_host_sums__slept(const struct nps_host_sums *s, uint64_t now, uint64_t length, uint64_t *left)
{
	uint32_t best = 0;

	*left = 0;
	for (uint32_t class = NPS_OS_OTHER; class <= NPS_OS_LOCK; class ++) {
		const struct nps_sum_class *c = &s->of[class];

		if (c->end <= now || c->longest < length || c->left <= *left)
			continue;
		best = class;
		*left = c->left;
	}
	return best;
}

void nps_host_sums__spend(struct nps_host_sums *s, uint32_t class, uint64_t ns)
{
	s->of[class].left -= NPS_MIN(s->of[class].left, ns);
}

void nps_host_sums__spare(struct nps_host_sums *s, uint64_t ns)
{
	if (s->end)
		s->spare = nps_add_sat(s->spare, ns);
}

int nps_host_sums__note(struct nps_host_sums *s, size_t window, bool cann, uint64_t ns)
{
	struct nps_host_share *last =
		s->shares.len ? &NPS_AT(&s->shares, struct nps_host_share, s->shares.len - 1) : NULL;

	if (!last || last->window != window) { /* windows come in their order */
		last = nps_vec__push(&s->shares);
		if (!last)
			return -errno;
		last->window = window;
	}
	*(cann ? &last->cann : &last->user) += ns;
	return 0;
}

/* VALUE * PART / WHOLE, PART being no more than WHOLE. */
static uint64_t scale_part(uint64_t value, uint64_t part, uint64_t whole)
{
	return whole ? (uint64_t)((unsigned __int128)value * part / whole) : 0;
}

static void sums_clear(struct nps_host_sums *s)
{
	for (uint32_t class = NPS_OS_OTHER; class <= NPS_OS_LOCK; class ++)
		s->of[class] = (struct nps_sum_class){ .end = 0 };
	s->end = s->spare = 0;
	s->consumed = s->shares.len = 0;
}

bool nps_host_sums__next(struct nps_host_sums *s, struct nps_host_moved *moved)
{
	uint64_t io = s->of[NPS_OS_IO].left;
	uint64_t all = nps_add_sat(io, nps_add_sat(s->of[NPS_OS_OTHER].left, s->of[NPS_OS_LOCK].left));
	const struct nps_host_share *share;

	if (s->consumed == s->shares.len) {
		sums_clear(s);
		return false;
	}
	share = &NPS_AT(&s->shares, struct nps_host_share, s->consumed++);
	moved->window = share->window;
	moved->user = scale_part(share->user, NPS_MIN(all, s->spare), s->spare);
	moved->cann = scale_part(share->cann, NPS_MIN(all, s->spare), s->spare);
	moved->io = scale_part(moved->user + moved->cann, NPS_MIN(io, all), all);
	moved->other = moved->user + moved->cann - moved->io;
	return true;
}
