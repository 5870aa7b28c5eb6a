/* SPDX-License-Identifier: BSD-2-Clause */
/* All straight lines that a run of brackets admits. */
#ifndef NPS_CLOCK_LINES_H
#define NPS_CLOCK_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NPS_RATE_MAX 500e-6 /* no oscillator is farther from its nominal rate: then the reads are wrong */

/* At x (ns by the nominal rate) the host's clock was between lo and hi, in ns beyond x. */
struct nps_bracket {
	double x, lo, hi;
	double tolerance; /* ns by which a line may miss it, negative: must stay inside */
	uint32_t reads; /* that agree with it; 0: the host and the device both recorded it */
};

/* y = offset + rate * (x - x0): the mean of the admitted lines */
struct nps_line {
	double x0, offset, rate;
	double low, high; /* their extreme rates */
	double room; /* ns that the one in the middle keeps from the nearest end of a bracket */
};

/* Room for the hulls of brackets; zero is an empty one. */
struct nps_lines {
	uint32_t *upper, *lower;
	size_t room;
};

/* Makes room for N brackets. 0 or -ENOMEM. */
int nps_lines__reserve(struct nps_lines *lines, size_t n);
void nps_lines__free(struct nps_lines *lines);

/*
 * Is there a line of a rate within NPS_RATE_MAX that goes through all N brackets B, which are sorted by x,
 * no two at the same? TOLERANT: each bracket is wider by its `tolerance`. LINE (NULL: not wanted) becomes the
 * centre of gravity of all such lines, taken as points (rate, offset): the mean of what the brackets leave
 * open. There must be room for N.
 */
bool nps_lines__admit(struct nps_lines *lines, const struct nps_bracket *b, size_t n, bool tolerant,
		      struct nps_line *line);

static inline double nps_line__at(const struct nps_line *line, double x)
{
	return line->offset + line->rate * (x - line->x0);
}

#endif
