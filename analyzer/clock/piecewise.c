/* SPDX-License-Identifier: BSD-2-Clause */
/* From brackets to the lines that they admit, where those meet, and how far off they can be. */
#include "clock/piecewise.h"

#include "base/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN                                                                                               \
	0.4 /* of the usual room of a line: so much is kept free, so that brackets do not force the line */
#define HIDDEN 4 /* usual brackets: a change of the rate that adds up to more is seen */
#define UNSEEN 20e-6 /* the rate may have changed by so much just before the first and after the last read */
#define BENT 0.6 /* so little of a half's room is too little */
#define STEADY 1.3 /* a segment's length over its certain part, at most, if the rate changes at once */
#define BENT_LEAST 16 /* brackets */
#define BENT_CORNERS 9
#define LEAST 5 /* fastest answers that show how fast they can be */
#define LIAR_MAX 3 /* brackets in a row that may be wrong together */
#define LIAR_BEFORE 256 /* at most so many brackets before them that contradict them */
#define LIAR_AFTER 8 /* the same of brackets after them; at least half as many */
#define LIARS 4096 /* in all; more are no exception */

/* A segment of the piecewise fit; between two segments, the zone in which the rate changed. */
struct line_segment {
	struct nps_line line;
	double zone_begin, zone_end; /* x: the change to the next piece */
	double change; /* of the rate, to the next piece */
	bool bent; /* the rate changes all along: the line is none of a part of it */
};

struct fit {
	struct nps_lines lines;
	struct nps_bracket *b; /* not owned */
	size_t n;
	double usual; /* ns: width of a usual bracket */
	size_t *ends, *begins; /* of the pieces: drawn out from the left; from the right */
	size_t npieces;
	struct line_segment *segments;
	struct nps_piecewise *out;
};

static void free_fit(struct fit *f)
{
	nps_lines__free(&f->lines);
	free(f->ends);
	free(f->begins);
	free(f->segments);
}

/* --- how far one line reaches --- */

/* N brackets from I on, or up to I. */
static bool reaches(struct fit *f, size_t i, size_t n, bool left)
{
	return nps_lines__admit(&f->lines, f->b + (left ? i - n : i), n, true, NULL);
}

/* The most brackets from I on (LEFT: before I) that one line admits; at most MOST, at least one. */
static size_t reach(struct fit *f, size_t i, size_t most, bool left)
{
	size_t good = 1, bad = most + 1;

	for (size_t try = 2; good < most; try = NPS_MIN(2 * good, most)) {
		if (!reaches(f, i, try, left)) {
			bad = try;
			break;
		}
		good = try;
	}
	while (good + 1 < bad) {
		size_t mid = good + (bad - good) / 2;

		if (reaches(f, i, mid, left))
			good = mid;
		else
			bad = mid;
	}
	return good;
}

/* The fewest lines, each as long as possible: from the left, then from the right. */
static void draw_out(struct fit *f)
{
	size_t k = 0;

	for (size_t i = 0; i < f->n; i = f->ends[k++])
		f->ends[k] = i + reach(f, i, f->n - i, false);
	f->npieces = k;
	for (size_t i = f->n; i && k; i = f->begins[k])
		f->begins[--k] = i - reach(f, i, i, true);
	/* As many as from the left, except where rounding errors differ. */
	if (k || f->begins[0])
		for (size_t i = 0; i < f->npieces; i++)
			f->begins[i] = i ? f->ends[i - 1] : 0;
}

static double room_of(struct fit *f, size_t from, size_t to)
{
	struct nps_line line;

	return nps_lines__admit(&f->lines, f->b + from, to - from, false, &line) ? line.room : 0;
}

/*
 * Sets the width of the usual bracket, and the margin that a line has to keep: from the room that half a
 * segment usually leaves.
 */
static int set_margins(struct fit *f)
{
	double *widths = malloc(f->n * sizeof(*widths)), *rooms = malloc(f->n * sizeof(*rooms));
	int err = widths && rooms ? 0 : -ENOMEM;

	if (err)
		goto out;
	draw_out(f);
	for (size_t p = 0; p < f->npieces; p++) {
		size_t first = p ? f->ends[p - 1] : 0, last = f->ends[p],
		       middle = first + (last - first + 1) / 2;
		double room = NPS_MIN(room_of(f, first, middle), room_of(f, last - (middle - first), last));

		for (size_t i = first; i < last; i++) {
			widths[i] = f->b[i].hi - f->b[i].lo;
			rooms[i] = room;
		}
	}
	qsort(widths, f->n, sizeof(*widths), nps_by_double);
	qsort(rooms, f->n, sizeof(*rooms), nps_by_double);
	f->usual = widths[f->n / 2];
	for (size_t i = 0; i < f->n; i++)
		f->b[i].tolerance = -NPS_MIN(rooms[f->n / 2] * MARGIN, (f->b[i].hi - f->b[i].lo) / 4);
out:
	free(widths);
	free(rooms);
	return err;
}

/* How many brackets after the line [I, END) are wrong: without them the line continues. 0: it ends there. */
static size_t lying(struct fit *f, size_t i, size_t end)
{
	struct nps_bracket both[LIAR_BEFORE + LIAR_AFTER];
	size_t before = NPS_MIN(end - i, (size_t)LIAR_BEFORE);

	if (before < LIAR_AFTER / 2)
		return 0;
	memcpy(both, f->b + end - before, before * sizeof(*both));
	for (size_t k = 1; k <= LIAR_MAX && end + k < f->n; k++) {
		size_t after = NPS_MIN(f->n - end - k, (size_t)LIAR_AFTER);

		if (after < LIAR_AFTER / 2)
			break;
		memcpy(both + before, f->b + end + k, after * sizeof(*both));
		if (nps_lines__admit(&f->lines, both, before + after, true, NULL))
			return k;
	}
	return 0;
}

/* Removes brackets that alone contradict those before and after them. */
static void drop_liars(struct fit *f)
{
	size_t i = 0, dropped = 0;

	while (i < f->n && dropped < LIARS) {
		size_t end = i + reach(f, i, f->n - i, false), wrong = lying(f, i, end);

		if (wrong) {
			memmove(f->b + end, f->b + end + wrong, (f->n - end - wrong) * sizeof(*f->b));
			f->n -= wrong;
			dropped += wrong;
			i = end - NPS_MIN(end - i, (size_t)LIAR_BEFORE);
		} else {
			i = end;
		}
	}
}

/* --- pieces --- */

/* The least of N gaps, as more samples would show it: as far below the least as the next ones are apart. */
static double least_gap(const double *least, size_t n)
{
	return NPS_MAX(least[0] / 2, least[0] - (least[n - 1] - least[0]) / (double)(n - 1));
}

static void keep_least(double *least, double gap)
{
	for (size_t i = 0; i < LEAST; i++)
		if (gap < least[i]) {
			double more = least[i];

			least[i] = gap;
			gap = more;
		}
}

/*
 * The line is in the middle between the fastest answers of either direction. But the direction that is late
 * at times has fewer fast answers: its fastest one is farther from the fastest possible one. Moves the line
 * to the middle of the fastest possible answers.
 */
static void balance(const struct fit *f, size_t from, size_t to, struct nps_line *line)
{
	double above[LEAST], below[LEAST];

	if (to - from < 2 * LEAST)
		return;
	for (size_t i = 0; i < LEAST; i++)
		above[i] = below[i] = INFINITY;
	for (size_t i = from; i < to; i++) {
		double y = nps_line__at(line, f->b[i].x);

		keep_least(above, f->b[i].hi - y);
		keep_least(below, y - f->b[i].lo);
	}
	line->offset += (least_gap(above, LEAST) - least_gap(below, LEAST)) / 2;
}

static bool admit(struct fit *f, size_t from, size_t to, struct nps_line *line)
{
	if (to <= from || !nps_lines__admit(&f->lines, f->b + from, to - from, false, line))
		return false;
	balance(f, from, to, line);
	return true;
}

/* The line of a straight clock has about as much room as the lines of its halves. */
static bool is_bent(struct fit *f, size_t from, size_t to)
{
	size_t middle = from + (to - from) / 2;
	struct nps_line whole, left, right;

	return to - from >= BENT_LEAST && admit(f, from, to, &whole) && admit(f, from, middle, &left) &&
	       admit(f, middle, to, &right) && whole.room < BENT * (left.room + right.room) / 2;
}

/*
 * Drawn out from the left, a segment ends too late; from the right, it begins too early. What is in a
 * segment both ways is certain to belong to it and decides its line; where that is little, the middle of
 * the two does, or what the left one had.
 */
static void set_line(struct fit *f, size_t p)
{
	size_t first = p ? f->ends[p - 1] : 0, last = f->ends[p];
	size_t begin = p ? f->ends[p - 1] : 0, end = p + 1 < f->npieces ? f->begins[p + 1] : f->n;
	size_t middle = (f->begins[p] + first) / 2, next = p + 1 < f->npieces ? (end + last) / 2 : f->n;
	struct nps_line *line = &f->segments[p].line;

	if (end < begin + 3 || 2 * (end - begin) < next - middle || !admit(f, begin, end, line)) {
		if (next <= middle || !admit(f, middle, next, line))
			admit(f, first, last, line);
		begin = end;
	}
	/* If the rate changes at once, nearly all of a segment is certain to belong to it. */
	if (STEADY * (double)(end - begin) < (double)(last - first))
		f->segments[p].bent = is_bent(f, first, last);
	else
		f->segments[p].bent = is_bent(f, begin, end);
}

/* Between two segments: where their lines cross, if that is certain to belong to neither. */
static void set_zone(struct fit *f, size_t p)
{
	struct line_segment *left = &f->segments[p], *right = left + 1;
	size_t begin = f->begins[p + 1], end = f->ends[p];
	double cross;

	left->change = right->line.rate - left->line.rate;
	left->zone_begin = f->b[begin ? begin - 1 : 0].x;
	left->zone_end = f->b[end].x;
	if (left->bent || right->bent)
		return;
	cross = left->zone_begin +
		(nps_line__at(&left->line, left->zone_begin) - nps_line__at(&right->line, left->zone_begin)) /
			left->change;
	if (cross >= left->zone_begin && cross <= left->zone_end)
		left->zone_begin = left->zone_end = cross;
}

/* --- nodes --- */

/* A change of the rate that lasted over AWAY ns cannot have been greater without being noticed. */
static double unseen(const struct fit *f, double away, double change)
{
	double most = HIDDEN * f->usual;

	return away * change > most ? most / away : change;
}

/* How far the rate can be off the line's from one node to the next. */
static double stray(const struct fit *f, const struct nps_clock_node *from, const struct nps_clock_node *to)
{
	double slack =
		NPS_MAX(unseen(f, to->x - f->b[0].x, UNSEEN), unseen(f, f->b[f->n - 1].x - from->x, UNSEEN));
	double range = 0;

	for (size_t p = from->begun ? from->begun - 1 : 0; p + 1 < f->npieces && p <= to->begun; p++) {
		const struct line_segment *segment = &f->segments[p];
		double away = NPS_MAX(0.0, NPS_MAX(segment->zone_begin - to->x, from->x - segment->zone_end));

		slack = NPS_MAX(slack, unseen(f, away, fabs(segment->change)));
	}
	for (size_t p = from->begun; p <= to->begun; p++) {
		const struct nps_line *line = &f->segments[p].line;

		range = NPS_MAX(range, NPS_MAX(line->high - line->rate, line->rate - line->low));
	}
	return NPS_RATE_STRAY + NPS_MAX(slack, range);
}

struct corner {
	double x, y;
};

static size_t add_corner(struct corner *corners, size_t n, double x, double y)
{
	if (n && x <= corners[n - 1].x)
		return n;
	corners[n] = (struct corner){ x, y };
	return n + 1;
}

/*
 * The clock at bracket I of a bent segment, from half as many brackets around it, also those of other
 * segments if they fit.
 */
static double bend_estimate(struct fit *f, size_t p, size_t i)
{
	size_t first = p ? f->ends[p - 1] : 0, last = f->ends[p], half_width = (last - first) / 4;
	size_t from = i - NPS_MIN(i, half_width), to = NPS_MIN(i + half_width + 1, f->n);
	struct nps_line line;

	if (!nps_lines__admit(&f->lines, f->b + from, to - from, true, NULL)) {
		from = NPS_MAX(from, first);
		to = NPS_MIN(to, last);
	}
	return nps_line__at(admit(f, from, to, &line) ? &line : &f->segments[p].line, f->b[i].x);
}

static size_t bent_corners(struct fit *f, size_t p, struct corner *corners, size_t n)
{
	size_t first = p ? f->ends[p - 1] : 0, last = f->ends[p] - 1;

	for (size_t k = 0; k < BENT_CORNERS; k++) {
		size_t i = first + (last - first) * k / (BENT_CORNERS - 1);

		n = add_corner(corners, n, f->b[i].x, bend_estimate(f, p, i));
	}
	return n;
}

/* The pieces as one unbroken line; CORNERS has room for BENT_CORNERS a piece. */
static size_t make_corners(struct fit *f, struct corner *corners)
{
	size_t n = 0;

	for (size_t p = 0; p < f->npieces; p++) {
		const struct line_segment *segment = &f->segments[p];
		double begin = p ? segment[-1].zone_end : f->b[0].x;
		double end = p + 1 < f->npieces ? segment->zone_begin : f->b[f->n - 1].x;

		if (segment->bent) {
			n = bent_corners(f, p, corners, n);
			continue;
		}
		n = add_corner(corners, n, begin, nps_line__at(&segment->line, begin));
		n = add_corner(corners, n, end, nps_line__at(&segment->line, end));
	}
	return n;
}

static double between(const struct corner *c, size_t n, size_t at, double x)
{
	if (at + 1 >= n)
		return c[at].y;
	return c[at].y + (c[at + 1].y - c[at].y) * ((x - c[at].x) / (c[at + 1].x - c[at].x));
}

/* A node at every bracket and every corner. */
static void make_nodes(struct fit *f, const struct corner *corners, size_t ncorners)
{
	size_t i = 0, c = 0, at = 0, begun = 0;

	while (i < f->n || c < ncorners) {
		bool bracket = i < f->n && (c == ncorners || f->b[i].x <= corners[c].x);
		struct nps_clock_node node = { .x = bracket ? f->b[i].x : corners[c].x,
					       .lo = -INFINITY,
					       .hi = INFINITY };

		while (at + 1 < ncorners && corners[at + 1].x <= node.x)
			at++;
		while (begun + 1 < f->npieces && f->segments[begun].zone_begin <= node.x)
			begun++;
		node.begun = begun;
		node.y = between(corners, ncorners, at, node.x);
		if (bracket) {
			node.lo = f->b[i].lo - node.y;
			node.hi = f->b[i].hi - node.y;
			i++;
		}
		if (c < ncorners && corners[c].x <= node.x)
			c++;
		f->out->nodes[f->out->nnodes++] = node;
	}
}

/* Bounds of a node hold for its neighbours too, except for the slack in between. */
static void spread(struct fit *f)
{
	for (size_t i = 1; i < f->out->nnodes; i++) {
		struct nps_clock_node *a = &f->out->nodes[i - 1], *b = a + 1;
		double slack;

		a->slack = stray(f, a, b);
		slack = a->slack * (b->x - a->x);
		b->lo = NPS_MAX(b->lo, a->lo - slack);
		b->hi = NPS_MIN(b->hi, a->hi + slack);
	}
	for (size_t i = f->out->nnodes - 1; i > 0; i--) {
		struct nps_clock_node *a = &f->out->nodes[i - 1], *b = a + 1;
		double slack = a->slack * (b->x - a->x);

		a->lo = NPS_MAX(a->lo, b->lo - slack);
		a->hi = NPS_MIN(a->hi, b->hi + slack);
	}
}

/* Moves each node into its bounds; where brackets contradict each other, between them. */
static void nodes_settle(struct fit *f)
{
	for (size_t i = 0; i < f->out->nnodes; i++) {
		struct nps_clock_node *node = &f->out->nodes[i];
		double lo = NPS_MIN(node->lo, node->hi), hi = NPS_MAX(node->lo, node->hi), shift;

		shift = lo > 0 ? lo : hi < 0 ? hi : 0;
		node->y += shift;
		node->lo = lo - shift;
		node->hi = hi - shift;
	}
}

static int fit_prepare(struct fit *f, struct nps_epoch *epoch)
{
	int err = nps_lines__reserve(&f->lines, f->n + LIAR_BEFORE + LIAR_AFTER);

	f->ends = malloc(f->n * sizeof(*f->ends));
	f->begins = malloc(f->n * sizeof(*f->begins));
	if (err || !f->ends || !f->begins)
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++)
		f->b[i].tolerance = 0;
	drop_liars(f);
	epoch->n = f->n;
	err = set_margins(f);
	if (err)
		return err;
	draw_out(f);
	if (!f->npieces) /* no bracket was left */
		return -ENODATA;
	f->segments = calloc(f->npieces, sizeof(*f->segments));
	f->out->nodes = malloc((f->n + BENT_CORNERS * f->npieces) * sizeof(*f->out->nodes));
	return f->segments && f->out->nodes ? 0 : -ENOMEM;
}

static int fit(struct fit *f, struct nps_epoch *epoch)
{
	struct corner *corners;
	int err = fit_prepare(f, epoch);

	if (err)
		return err;
	corners = calloc(f->npieces, BENT_CORNERS * sizeof(*corners));
	if (!corners)
		return -ENOMEM;
	for (size_t p = 0; p < f->npieces; p++)
		set_line(f, p);
	for (size_t p = 0; p + 1 < f->npieces; p++)
		set_zone(f, p);
	make_nodes(f, corners, make_corners(f, corners));
	free(corners);
	spread(f);
	nodes_settle(f);
	f->out->n = f->npieces;
	f->out->first = f->segments[0].line;
	f->out->last = f->segments[f->npieces - 1].line;
	return 0;
}

int nps_piecewise__draw(struct nps_piecewise *piecewise, struct nps_epoch *epoch)
{
	struct fit f = { .b = epoch->brackets, .n = epoch->n, .out = piecewise };
	int err;

	*piecewise = (struct nps_piecewise){ 0 };
	err = fit(&f, epoch);
	free_fit(&f);
	return err;
}

void nps_piecewise__free(struct nps_piecewise *piecewise)
{
	free(piecewise->nodes);
	*piecewise = (struct nps_piecewise){ 0 };
}
