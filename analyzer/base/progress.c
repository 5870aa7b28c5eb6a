/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/progress.h"

#include <stdio.h>
#include <unistd.h>

#define PATIENCE 1.0 /* s that a stage runs before it is shown */
#define PERIOD 0.2 /* s between two looks of a terminal */
#define LINES 2.0 /* s between two lines of a log */

static double since(const struct timespec *then)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - then->tv_sec + (now.tv_nsec - then->tv_nsec) / 1e9;
}

void nps_progress__init(struct nps_progress *progress, enum nps_progress_mode mode)
{
	bool terminal = isatty(STDERR_FILENO);

	*progress = (struct nps_progress){ .line = terminal };
	progress->on = mode == NPS_PROGRESS_ALWAYS || (mode == NPS_PROGRESS_AUTO && terminal);
}

void nps_progress__stage(struct nps_progress *progress, const char *stage, uint64_t total, const char *unit)
{
	if (!progress || !progress->on)
		return;
	nps_progress__end(progress);
	progress->stage = stage;
	progress->unit = unit;
	progress->bytes = !unit;
	progress->by_steps = false;
	progress->total = total;
	progress->done = progress->next = 0;
	clock_gettime(CLOCK_MONOTONIC, &progress->begin);
	progress->shown = progress->begin;
}

void nps_progress__stage_of_readers(struct nps_progress *progress, const char *stage, uint64_t total,
				    const char *unit)
{
	nps_progress__stage(progress, stage, total, unit);
	if (progress)
		progress->by_steps = true;
}

static void print(struct nps_progress *p, double seconds)
{
	double rate = p->done / seconds, left = p->total > p->done ? (p->total - p->done) / rate : 0;
	char amount[96], rest[96] = "";

	if (p->bytes)
		snprintf(amount, sizeof(amount), "%.1f MB, %.1f MB/s", p->done / 1e6, rate / 1e6);
	else
		snprintf(amount, sizeof(amount), "%llu %s, %.0f/s", (unsigned long long)p->done, p->unit,
			 rate);
	if (p->total)
		snprintf(rest, sizeof(rest), ", %.0f%%, %.0f s left",
			 100.0 * (p->done < p->total ? p->done : p->total) / p->total, left);
	fprintf(stderr, "%snpuscope: %s: %s%s%s", p->line ? "\r\033[K" : "", p->stage, amount, rest,
		p->line ? "" : "\n");
	fflush(stderr);
	p->visible = p->line;
}

void nps_progress__show(struct nps_progress *p)
{
	double seconds, quiet;

	if (atomic_flag_test_and_set(&p->busy))
		return; /* another reader is looking */
	seconds = since(&p->begin);
	quiet = since(&p->shown);
	/* The next look at the clock is due after what is done in about a twentieth of a second. */
	p->next = p->done + (seconds > 1e-6 ? (uint64_t)(p->done / seconds * 0.05) : 0) + 1;
	if (seconds >= PATIENCE && quiet >= (p->line ? PERIOD : LINES)) {
		clock_gettime(CLOCK_MONOTONIC, &p->shown);
		print(p, seconds);
	}
	atomic_flag_clear(&p->busy);
}

void nps_progress__steps(struct nps_progress *p, uint64_t amount)
{
	if (!p || !p->on || !p->by_steps)
		return;
	if (atomic_fetch_add(&p->done, amount) + amount >= p->next)
		nps_progress__show(p);
}

void nps_progress__end(struct nps_progress *progress)
{
	if (!progress || !progress->visible)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	progress->visible = false;
}
