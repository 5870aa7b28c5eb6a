/* SPDX-License-Identifier: BSD-2-Clause */
/* The device's counter against CLOCK_MONOTONIC_RAW: piecewise linear, in integers, alike in all processes. */
#include "board.h"
#include "../truth/truth.h"

#include <inttypes.h>
#include <stdlib.h>

#define DEFAULT_DRIFT_PPM 40.0
#define RESTART_TICKS 1000000

static void add_segment(struct board_shared *s, uint64_t raw, uint64_t ticks, int64_t ppb)
{
	uint32_t n = atomic_load(&s->clock_segments);

	if (n == CLOCK_SEGMENTS)
		return;
	s->clock[n] = (struct clock_segment){ .raw = raw, .ticks = ticks, .ppb = ppb };
	atomic_store(&s->clock_segments, n + 1);
}

static uint64_t segment_counter(const struct board_shared *s, const struct clock_segment *p, uint64_t raw)
{
	unsigned __int128 ticks = (unsigned __int128)(raw - p->raw) * chip_at(s->chip)->counter_hz;

	ticks *= (unsigned __int128)(1000000000 + p->ppb);
	return p->ticks + (uint64_t)(ticks / 1000000000000000000u);
}

static uint64_t counter(const struct board_shared *s, uint64_t raw)
{
	uint32_t i = atomic_load(&s->clock_segments) - 1;

	while (i && s->clock[i].raw > raw)
		i--;
	return segment_counter(s, &s->clock[i], raw);
}

static int64_t to_ppb(const char *ppm, char **end)
{
	double value = strtod(ppm, end) * 1000.0;

	return value > 1e8 || value < -1e8 ? 0 : (int64_t)(value < 0 ? value - 0.5 : value + 0.5);
}

/* "SECONDS:PPM[,SECONDS:PPM]...", seconds since power up; PPM is added to what the drift was. */
static void plan_steps(struct board_shared *s, const char *steps, uint64_t raw, int64_t ppb)
{
	while (steps && *steps) {
		char *end;
		double seconds = strtod(steps, &end);
		uint64_t at;

		if (end == steps || *end != ':' || seconds < 0 || seconds > 1e6)
			break;
		at = raw + (uint64_t)(seconds * 1e9);
		ppb += to_ppb(end + 1, &end);
		add_segment(s, at, counter(s, at), ppb);
		steps = *end == ',' ? end + 1 : NULL;
	}
}

void clock_start(struct board_shared *s, uint32_t device, uint64_t raw)
{
	const char *ppm = getenv("NPUSIM_DRIFT_PPM");
	int64_t ppb = ppm ? to_ppb(ppm, NULL) : (int64_t)(DEFAULT_DRIFT_PPM * 1000);

	add_segment(s, 0, 10000000000000ull + device * 3718281828459ull, ppb);
	plan_steps(s, getenv("NPUSIM_DRIFT_STEP"), raw, ppb);
}

/* The counter begins anew; what was planned for later is off. */
void clock_restart(struct board_shared *s, uint64_t raw)
{
	uint32_t n = atomic_load(&s->clock_segments);

	while (n > 1 && s->clock[n - 1].raw > raw)
		n--;
	if (n == CLOCK_SEGMENTS)
		n--;
	atomic_store(&s->clock_segments, n);
	add_segment(s, raw, RESTART_TICKS, s->clock[n - 1].ppb);
}

static void clock_truth_step(const struct board_shared *s, uint32_t device, uint32_t i)
{
	const struct clock_segment *p = &s->clock[i];

	truth_line("clock_step", "%u\t%" PRIu64 "\t%" PRIu64 "\t%.3f", device, p->raw, p->ticks,
		   (double)p->ppb / 1000.0);
}

uint64_t board_counter(const struct board *b, uint64_t raw_ns)
{
	return counter(b->shared, raw_ns);
}

void clock_truth(const struct board *b, uint32_t device)
{
	const struct board_shared *s = b->shared;

	truth_device(device, chip_at(s->chip)->counter_hz, s->clock[0].ticks,
		     (double)s->clock[0].ppb / 1000.0);
	for (uint32_t i = 1; i < atomic_load(&s->clock_segments); i++)
		clock_truth_step(s, device, i);
}

void clock_truth_after_reset(const struct board *b, uint32_t device)
{
	clock_truth_step(b->shared, device, atomic_load(&b->shared->clock_segments) - 1);
}

uint64_t clock_query_delay(uint32_t random)
{
	const char *jitter = getenv("NPUSIM_CLOCK_JITTER_NS"), *outliers = getenv("NPUSIM_CLOCK_OUTLIERS");
	uint64_t most = jitter ? strtoull(jitter, NULL, 10) : 0;
	uint64_t delay = most ? random % (most + 1) : 0;

	if (outliers) {
		char *end;
		unsigned long permille = strtoul(outliers, &end, 10);

		if (*end == ':' && (random >> 8) % 1000 < permille)
			delay += strtoull(end + 1, NULL, 10);
	}
	return delay;
}
