/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line of rate r passes a bracket if its offset is in [lo - r x, hi - r x]. Over all brackets the least
 * offset is a convex function of r, which only the upper hull of the points (x, lo) decides, and the
 * greatest one is concave, by the lower hull of (x, hi): the admitted lines are a convex polygon between
 * two chains.
 */
#include "clock/lines.h"

#include "base/util.h"

#include <errno.h>
#include <stdlib.h>

int nps_lines__reserve(struct nps_lines *lines, size_t n)
{
	uint32_t *upper, *lower;

	if (n <= lines->room)
		return 0;
	upper = realloc(lines->upper, n * sizeof(*upper));
	if (upper)
		lines->upper = upper;
	lower = realloc(lines->lower, n * sizeof(*lower));
	if (lower)
		lines->lower = lower;
	if (!upper || !lower)
		return -ENOMEM;
	lines->room = n;
	return 0;
}

void nps_lines__free(struct nps_lines *lines)
{
	free(lines->upper);
	free(lines->lower);
	*lines = (struct nps_lines){ 0 };
}

/* The upper ends of the brackets (1) or the lower ones (-1) as points. */
struct points {
	const struct nps_bracket *b;
	bool tolerant;
	int end;
};

static double y_of(const struct points *p, uint32_t i)
{
	const struct nps_bracket *b = &p->b[i];
	double tolerance = p->tolerant ? b->tolerance : 0;

	return p->end > 0 ? b->hi + tolerance : b->lo - tolerance;
}

static double slope(const struct points *p, uint32_t from, uint32_t to)
{
	return (y_of(p, to) - y_of(p, from)) / (p->b[to].x - p->b[from].x);
}

/* The hull of the points towards the other ends, from left to right. Returns the number of its corners. */
static size_t hull_of(const struct points *p, size_t n, uint32_t *hull)
{
	size_t len = 0;

	for (uint32_t i = 0; i < n; i++) {
		while (len >= 2 &&
		       (slope(p, hull[len - 2], hull[len - 1]) - slope(p, hull[len - 1], i)) * p->end >= 0)
			len--;
		hull[len++] = i;
	}
	return len;
}

/* The two chains as the rate grows: the least offset is decided farther left, the greatest farther right. */
struct chains {
	struct points low, high;
	const uint32_t *lower_ends, *upper_ends; /* corners: hull of lo, hull of hi */
	size_t left; /* of lower_ends: its corner is left - 1 */
	size_t right, nhigh;
	double x0;
};

static double least(const struct chains *c, double rate)
{
	uint32_t i = c->lower_ends[c->left - 1];

	return y_of(&c->low, i) - rate * (c->low.b[i].x - c->x0);
}

static double chains_max(const struct chains *c, double rate)
{
	uint32_t i = c->upper_ends[c->right];

	return y_of(&c->high, i) - rate * (c->high.b[i].x - c->x0);
}

/* The rate at which the next corner of either chain takes over; beyond `end`, END. */
static double next_rate(const struct chains *c, double end)
{
	double rate = end;

	if (c->left > 1)
		rate = NPS_MIN(rate, slope(&c->low, c->lower_ends[c->left - 2], c->lower_ends[c->left - 1]));
	if (c->right + 1 < c->nhigh)
		rate = NPS_MIN(rate, slope(&c->high, c->upper_ends[c->right], c->upper_ends[c->right + 1]));
	return rate;
}

static void chains_advance(struct chains *c, double rate)
{
	while (c->left > 1 && slope(&c->low, c->lower_ends[c->left - 2], c->lower_ends[c->left - 1]) <= rate)
		c->left--;
	while (c->right + 1 < c->nhigh &&
	       slope(&c->high, c->upper_ends[c->right], c->upper_ends[c->right + 1]) <= rate)
		c->right++;
}

struct moments {
	double area, rate, offset;
	double low, high; /* extreme rates */
	double gap; /* greatest distance of the chains */
	bool any;
};

/* The part of the polygon between two rates, where both chains are straight. */
static void moments_add_range(struct moments *m, const struct chains *c, double from, double to)
{
	double d0 = chains_max(c, from) - least(c, from), d1 = chains_max(c, to) - least(c, to), mid, area;

	if (d0 < 0 && d1 < 0)
		return;
	if (d0 < 0) {
		from += (to - from) * (d0 / (d0 - d1));
		d0 = 0;
	} else if (d1 < 0) {
		to = from + (to - from) * (d0 / (d0 - d1));
		d1 = 0;
	}
	if (!m->any)
		m->low = from;
	m->any = true;
	m->gap = NPS_MAX(m->gap, NPS_MAX(d0, d1));
	m->high = to;
	/* Products of two linear functions: Simpson's rule is exact. */
	mid = (from + to) / 2;
	area = (to - from) * (d0 + d1) / 2;
	m->area += area;
	m->rate += (to - from) / 6 *
		   ((from - m->low) * d0 + 4 * (mid - m->low) * (d0 + d1) / 2 + (to - m->low) * d1);
	m->offset += (to - from) / 6 *
		     ((least(c, from) + d0 / 2) * d0 +
		      4 * ((least(c, mid) + chains_max(c, mid)) / 2) * (d0 + d1) / 2 +
		      (least(c, to) + d1 / 2) * d1);
}

bool nps_lines__admit(struct nps_lines *lines, const struct nps_bracket *b, size_t n, bool tolerant,
		      struct nps_line *line)
{
	struct chains c = { .low = { b, tolerant, -1 },
			    .high = { b, tolerant, 1 },
			    .lower_ends = lines->upper,
			    .upper_ends = lines->lower,
			    .x0 = n ? b[0].x + (b[n - 1].x - b[0].x) / 2 : 0 };
	struct moments m = { 0 };
	double rate = -NPS_RATE_MAX;

	if (!n)
		return false;
	c.left = hull_of(&c.low, n, lines->upper);
	c.nhigh = hull_of(&c.high, n, lines->lower);
	while (rate < NPS_RATE_MAX) {
		double next;

		chains_advance(&c, rate);
		next = next_rate(&c, NPS_RATE_MAX);
		moments_add_range(&m, &c, rate, next);
		rate = next;
	}
	if (!m.any || !line)
		return m.any;
	line->x0 = c.x0;
	line->low = m.low;
	line->high = m.high;
	line->room = m.gap / 2;
	if (m.area > 0) {
		line->rate = m.low + m.rate / m.area;
		line->offset = m.offset / m.area;
	} else { /* a single line */
		line->rate = (m.low + m.high) / 2;
		c.left = hull_of(&c.low, n, lines->upper);
		c.right = 0;
		chains_advance(&c, line->rate);
		line->offset = (least(&c, line->rate) + chains_max(&c, line->rate)) / 2;
	}
	return true;
}
