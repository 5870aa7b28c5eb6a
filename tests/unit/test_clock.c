/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's clock against counters whose every tick is known, and
 * against a second, slow way of finding lines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "clock/map.h"
#include "clock/piecewise.h"
#include "clock_sim.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define READS_MAX 40000

static const struct sim_read quick = { .least = 1500, .spread = 3000 };
static const struct sim_read late = {
	.least = 1500, .spread = 3000, .jitter = 30000, .outliers = 0.02, .outlier_ns = 2e6
};
static struct nps_device_clock reads[READS_MAX];
static struct sim_clock sim;

/* Bursts of EACH reads every EVERY seconds; the number of reads. */
static size_t sample(const struct sim_read *how, double seconds, double every, size_t each)
{
	size_t n = 0;

	for (double at = 0; at <= seconds; at += every, n += each) {
		assert_true(n + each <= READS_MAX);
		sim_burst(&sim, how, at * 1e9, reads + n, each);
	}
	return n;
}

struct verdict {
	double p99, worst; /* ns off the truth */
	size_t requested, covered;
};

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Queries the map for 20000 times in [FROM, TO) seconds; they never fall. */
static struct verdict judge(const struct nps_clock_map *map, double from, double to)
{
	static double errors[20000];
	struct verdict v = { .requested = sizeof(errors) / sizeof(*errors) };
	uint64_t last = 0;
	size_t cursor = 0;

	for (size_t i = 0; i < v.requested; i++) {
		double at = (from + (to - from) * (double)i / (double)v.requested) * 1e9;
		struct nps_instant reported;

		assert_true(nps_clock_map__at(map, sim_counter(&sim, at), &cursor, &reported));
		assert_true(reported.ns >= last);
		last = reported.ns;
		errors[i] = fabs((double)(int64_t)(reported.ns - sim.host0) - at);
		v.covered += errors[i] <= reported.error;
	}
	qsort(errors, v.requested, sizeof(*errors), by_double);
	v.p99 = errors[v.requested * 99 / 100];
	v.worst = errors[v.requested - 1];
	return v;
}

static struct verdict run(const struct sim_read *how, double seconds, double every, size_t each,
			  struct nps_clock_map *map)
{
	assert_int_equal(nps_clock_map__fit(map, reads, sample(how, seconds, every, each), (uint64_t)sim.hz),
			 0);
	return judge(map, 0, seconds);
}

/* --- what the map is like --- */

static void one_read_has_the_nominal_rate(void **state)
{
	struct nps_device_clock read = { .raw_before = 5000000000000,
					 .raw_after = 5000000004000,
					 .counter = 777 };
	struct nps_instant at;
	struct nps_clock_map map;
	size_t cursor = 0;

	(void)state;
	assert_int_equal(nps_clock_map__fit(&map, &read, 1, 50000000), 0);
	assert_true(nps_clock_map__at(&map, 777, &cursor, &at));
	assert_int_equal(at.ns, 5000000002000);
	assert_true(at.error >= 2000 && at.error < 2050);
	assert_true(nps_clock_map__at(&map, 777 + 50, &cursor, &at));
	assert_int_equal(at.ns, 5000000003000);
	assert_true(nps_clock_map__at(&map, 777 - 50, &cursor, &at));
	assert_int_equal(at.ns, 5000000001000);
	/* An oscillator that nobody measured: 100 ppm, so 100 us a second, either way. */
	assert_true(nps_clock_map__at(&map, 777 + 50000000, &cursor, &at));
	assert_true(at.error >= 102000 && at.error < 103000);
	assert_true(nps_clock_map__at(&map, (uint64_t)777 - 50000000, &cursor, &at));
	assert_true(at.error >= 102000 && at.error < 103000);
	nps_clock_map__free(&map);
	assert_false(nps_clock_map__at(&map, 777, &cursor, &at));
}

static void reads_at_one_time_do_not_bound_the_rate(void **state)
{
	struct nps_clock_map map;
	struct nps_instant at;
	size_t cursor = 0;

	(void)state;
	sim_start(&sim, 50e6, 40, 1);
	sim_burst(&sim, &quick, 0, reads, 8);
	assert_int_equal(nps_clock_map__fit(&map, reads, 8, 50000000), 0);
	assert_int_equal(map.n, 1);
	assert_true(nps_clock_map__at(&map, sim_counter(&sim, 1e9), &cursor, &at));
	assert_true(fabs((double)(int64_t)(at.ns - sim.host0) - 1e9) <= at.error);
	nps_clock_map__free(&map);
}

static void drift_is_found(void **state)
{
	static const double ppms[] = { 0, 40, -40, 100, -250, 450 };
	struct nps_clock_map map;

	(void)state;
	for (size_t i = 0; i < sizeof(ppms) / sizeof(*ppms); i++) {
		struct verdict v;

		sim_start(&sim, 50e6, ppms[i], i);
		v = run(&quick, 60, 0.5, 8, &map);
		assert_true(v.worst < 100);
		assert_int_equal(v.covered, v.requested);
		assert_int_equal(map.lines, 1);
		assert_true(fabs(map.drift_ppm - ppms[i]) < 0.01);
		nps_clock_map__free(&map);
	}
}

static void beyond_the_reads_the_error_grows_and_covers(void **state)
{
	struct nps_clock_map map;
	struct verdict v;

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		sim_start(&sim, 50e6, 60, seed);
		(void)run(&late, 3, 0.2, 8, &map);
		v = judge(&map, 3, 60);
		assert_int_equal(v.covered, v.requested);
		nps_clock_map__free(&map);
	}
}

static void a_step_of_the_rate_is_followed(void **state)
{
	struct nps_clock_map map;

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct verdict v;

		sim_start(&sim, 50e6, 50, seed);
		sim_step(&sim, 100 + (double)seed * 0.037, 70);
		v = run(&late, 200, 0.2, 8, &map);
		assert_int_equal(map.lines, 2);
		assert_true(v.p99 < 1000);
		assert_int_equal(v.covered, v.requested);
		nps_clock_map__free(&map);
	}
}

static void wrong_reads_are_left_out(void **state)
{
	const struct sim_read lies = { 1500, 3000, 30000, 0.02, 2e6, 0.03, 50000 };
	const struct sim_read wild = { 1500, 3000, 0, 0, 0, 0.05, 7e9 };
	struct nps_clock_map map;
	struct verdict v;

	(void)state;
	sim_start(&sim, 50e6, 50, 3);
	sim_step(&sim, 100, 70);
	v = run(&lies, 200, 0.2, 8, &map);
	assert_true(v.p99 < 1000 && v.covered == v.requested);
	assert_true(map.used < map.samples);
	nps_clock_map__free(&map);
	sim_start(&sim, 50e6, -30, 4);
	v = run(&wild, 100, 0.2, 1, &map);
	assert_true(v.p99 < 1000 && v.covered == v.requested);
	assert_true(map.used < map.samples);
	nps_clock_map__free(&map);
}

static void a_rate_that_wanders_is_followed(void **state)
{
	struct nps_clock_map map;

	(void)state;
	for (uint64_t seed = 0; seed < 10; seed++) {
		double ppm = 50;
		struct verdict v;

		sim_start(&sim, 50e6, ppm, seed);
		for (int second = 1; second < 300; second++) {
			ppm += (sim_random(&sim) - 0.5) * 0.1;
			sim_step(&sim, second, ppm);
		}
		v = run(&late, 300, 0.2, 8, &map);
		assert_true(v.p99 < 4000);
		assert_true(v.covered >= v.requested * 999 / 1000);
		nps_clock_map__free(&map);
	}
}

static void the_counter_wraps(void **state)
{
	struct nps_clock_map map;
	struct verdict v;

	(void)state;
	sim_start(&sim, 50e6, 50, 5);
	sim.counter0 = UINT64_MAX - 50000000 * 5;
	v = run(&late, 20, 0.2, 8, &map);
	assert_int_equal(map.nspans, 1);
	assert_true(v.p99 < 1500 && v.covered == v.requested);
	nps_clock_map__free(&map);
}

static void the_counter_is_reset(void **state)
{
	struct nps_clock_map map;
	struct nps_instant at;
	uint64_t before, after;
	size_t n, cursor = 0;

	(void)state;
	sim_start(&sim, 50e6, 50, 6);
	n = sample(&late, 20, 0.2, 8);
	before = sim_counter(&sim, 10e9);
	sim.counter0 = 1000; /* a device that woke up again, 20.1 s later */
	for (double second = 20.3; second < 40; second += 0.2, n += 8)
		sim_burst(&sim, &late, second * 1e9, reads + n, 8);
	after = sim_counter(&sim, 30e9);
	assert_int_equal(nps_clock_map__fit(&map, reads, n, 50000000), 0);
	assert_int_equal(map.nspans, 2);
	for (int turn = 0; turn < 3; turn++) {
		assert_true(nps_clock_map__at(&map, before, &cursor, &at));
		assert_true(fabs((double)(int64_t)(at.ns - sim.host0) - 10e9) <= at.error &&
			    at.error < 20000);
		assert_true(nps_clock_map__at(&map, after, &cursor, &at));
		assert_true(fabs((double)(int64_t)(at.ns - sim.host0) - 30e9) <= at.error &&
			    at.error < 20000);
	}
	nps_clock_map__free(&map);
}

static void garbage_is_no_clock(void **state)
{
	struct nps_device_clock bad[] = {
		{ .raw_before = 9, .raw_after = 3, .counter = 1 },
		{ .counter = 0 },
		{ .raw_before = 1, .raw_after = UINT64_MAX, .counter = 5 },
		{ .raw_before = UINT64_MAX - 1, .raw_after = UINT64_MAX, .counter = 5 }
	};
	struct nps_clock_map map;

	(void)state;
	assert_int_equal(nps_clock_map__fit(&map, bad, 4, 50000000), -ENODATA);
	assert_int_equal(nps_clock_map__fit(&map, bad, 0, 50000000), -ENODATA);
	assert_int_equal(nps_clock_map__fit(&map, NULL, 0, 50000000), -ENODATA);
	sim_start(&sim, 50e6, 0, 1);
	assert_int_equal(nps_clock_map__fit(&map, reads, sample(&quick, 1, 0.2, 8), 0), -ENODATA);
	/* of another frequency than is stated */
	sim_start(&sim, 48e6, 0, 1);
	assert_int_equal(nps_clock_map__fit(&map, reads, sample(&quick, 20, 0.2, 8), 50000000), -EILSEQ);
}

static uint64_t any(void)
{
	uint64_t bits = (uint64_t)(sim_random(&sim) * 1.8e19), kind = bits >> 3 & 7;

	return kind == 0 ? UINT64_MAX - (bits & 255) : kind == 1 ? bits & 255 : kind < 4 ? bits >> 20 : bits;
}

/* Whatever the reads are: no crash, no time that falls, no error that is none. */
static void hostile_reads(void **state)
{
	static const uint64_t frequencies[] = { 1, 50000000, 1000000000, 10000000000ULL };

	(void)state;
	sim_start(&sim, 50e6, 0, 99);
	for (int round = 0; round < 4000; round++) {
		struct nps_clock_map map;
		size_t n = (size_t)(sim_random(&sim) * 40), cursor = (size_t)any();

		for (size_t i = 0; i < n; i++) {
			uint64_t before = any(), counter = any();

			if (i && sim_random(&sim) < 0.7) { /* near the one before */
				before = reads[i - 1].raw_before + (uint64_t)(sim_random(&sim) * 1e9);
				counter = reads[i - 1].counter + (uint64_t)(sim_random(&sim) * 5e7);
			}
			reads[i] = (struct nps_device_clock){ .raw_before = before,
							      .raw_after = before + (any() & 0xffff),
							      .counter = counter };
		}
		if (nps_clock_map__fit(&map, reads, n, frequencies[round & 3]))
			continue;
		assert_true(map.n > 0 && map.error >= 0 && map.worst >= map.error);
		for (size_t s = 0; s < map.nspans; s++) {
			const struct nps_clock_knot *k = &map.knots[map.spans[s].first];

			for (size_t i = 0; i < map.spans[s].n; i++) {
				assert_true(k[i].error >= 0 && k[i].rate >= 0);
				assert_true(!i || k[i].host >= k[i - 1].host);
			}
		}
		for (int i = 0; i < 50; i++) {
			struct nps_instant at = { 0, 0 };

			if (nps_clock_map__at(&map, any(), &cursor, &at))
				assert_true(at.error >= 0);
		}
		nps_clock_map__free(&map);
	}
}

/* --- properties, over many clocks --- */

static double one_of(const double *values, size_t n)
{
	return values[(size_t)(sim_random(&sim) * (double)n)];
}

#define ONE_OF(...)                                                                                          \
	one_of((const double[]){ __VA_ARGS__ }, sizeof((double[]){ __VA_ARGS__ }) / sizeof(double))

static void the_stated_error_covers_the_truth(void **state)
{
	size_t requested = 0, covered = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 150; seed++) {
		struct nps_clock_map map;
		struct sim_read how;
		double seconds, at = 0, ppm;
		struct verdict v;

		sim_start(&sim, 50e6, 0, seed);
		sim.hz = ONE_OF(50e6, 1e9, 38.4e6, 48e6, 100e6);
		ppm = (sim_random(&sim) - 0.5) * 200;
		sim.segments[0].rate = ppm * 1e-6;
		seconds = ONE_OF(5, 20, 60);
		for (int steps = (int)(sim_random(&sim) * 3); steps > 0; steps--) {
			at += 3 + sim_random(&sim) * seconds / 2;
			ppm += (sim_random(&sim) - 0.5) * 60;
			sim_step(&sim, at, ppm);
		}
		how = (struct sim_read){ .least = ONE_OF(100, 1500, 20000),
					 .spread = ONE_OF(0, 3000, 20000),
					 .jitter = ONE_OF(0, 0, 30000),
					 .outliers = ONE_OF(0, 0.02, 0.1),
					 .outlier_ns = ONE_OF(1e5, 2e6) };
		v = run(&how, seconds, ONE_OF(0.2, 0.5, 1), (size_t)ONE_OF(1, 4, 8), &map);
		requested += v.requested;
		covered += v.covered;
		nps_clock_map__free(&map);
	}
	assert_true(covered >= requested / 1000 * 999);
}

/* --- a second implementation: everything tried --- */

#define FEW 7

static bool passes(const struct nps_bracket *b, size_t n, double rate, double *least, double *greatest)
{
	*least = -INFINITY;
	*greatest = INFINITY;
	for (size_t i = 0; i < n; i++) {
		*least = fmax(*least, b[i].lo - rate * b[i].x);
		*greatest = fmin(*greatest, b[i].hi - rate * b[i].x);
	}
	return *least <= *greatest;
}

/* Trying takes all of the time: sanitizers look at what is tried with, the other build at what is found. */
#ifdef __SANITIZE_ADDRESS__
#define TRIED 500
#else
#define TRIED 3000
#endif

static void lines_are_those_that_trying_finds(void **state)
{
	struct nps_lines lines = { 0 };
	size_t admitted = 0;

	(void)state;
	sim_start(&sim, 50e6, 0, 11);
	assert_int_equal(nps_lines__reserve(&lines, FEW), 0);
	for (int round = 0; round < TRIED; round++) {
		struct nps_bracket b[FEW];
		size_t n = 1 + (size_t)(sim_random(&sim) * FEW);
		double x = 0, low = INFINITY, high = -INFINITY, least, greatest, weight = 0, rate = 0,
		       offset = 0;
		struct nps_line line;
		bool ok;

		for (size_t i = 0; i < n; i++) {
			x += 1e6 * (0.1 + sim_random(&sim));
			b[i] = (struct nps_bracket){ .x = x, .lo = (sim_random(&sim) - 0.5) * 400 };
			b[i].hi = b[i].lo + sim_random(&sim) * 400;
		}
		/* Every rate, in small steps: the mean over all lines, and the extremes. */
		for (int i = -20000; i <= 20000; i++) {
			double r = NPS_RATE_MAX * i / 20000;

			if (!passes(b, n, r, &least, &greatest))
				continue;
			low = fmin(low, r);
			high = fmax(high, r);
			weight += greatest - least;
			rate += (greatest - least) * r;
			offset += (greatest - least) * (least + greatest) / 2;
		}
		ok = nps_lines__admit(&lines, b, n, false, &line);
		if (!weight) { /* none, or too few for the steps */
			assert_true(!ok || line.high - line.low <= NPS_RATE_MAX / 10000);
			continue;
		}
		assert_true(ok);
		admitted++;
		assert_true(fabs(line.low - low) <= NPS_RATE_MAX / 10000);
		assert_true(fabs(line.high - high) <= NPS_RATE_MAX / 10000);
		if (high - low > NPS_RATE_MAX / 50) { /* else the steps are coarse */
			double from = b[0].x, to = b[n - 1].x;

			assert_true(fabs(nps_line__at(&line, from) - (offset + rate * from) / weight) < 2);
			assert_true(fabs(nps_line__at(&line, to) - (offset + rate * to) / weight) < 2);
		}
	}
	assert_true(admitted > TRIED / 6);
	nps_lines__free(&lines);
}

/* In one straight segment, the error at each point is the best that all brackets give, at any distance. */
static void errors_are_those_of_all_pairs(void **state)
{
	struct nps_piecewise piecewise;
	struct nps_outlier_filter filter;

	(void)state;
	sim_start(&sim, 50e6, 50, 12);
	assert_int_equal(nps_outlier_filter__fill(&filter, reads, sample(&late, 30, 0.2, 8), 20), 0);
	assert_int_equal(filter.nepochs, 1);
	assert_int_equal(nps_piecewise__draw(&piecewise, &filter.epochs[0]), 0);
	assert_int_equal(piecewise.n, 1);
	for (size_t i = 0; i < piecewise.nnodes; i++) {
		const struct nps_clock_node *node = &piecewise.nodes[i];
		const struct nps_clock_node *last = &piecewise.nodes[piecewise.nnodes - 1];
		double lo = -INFINITY, hi = INFINITY, from = piecewise.nodes[0].x;
		double rate = (last->y - piecewise.nodes[0].y) / (last->x - from);

		for (size_t k = 0; k < filter.epochs[0].n; k++) {
			const struct nps_bracket *b = &filter.epochs[0].brackets[k];
			double line = piecewise.nodes[0].y + rate * (b->x - from);
			double slack = 0;

			for (const struct nps_clock_node *on = piecewise.nodes; on < last; on++)
				if (on->x >= fmin(b->x, node->x) && on->x < fmax(b->x, node->x))
					slack += on->slack * (on[1].x - on->x);

			lo = fmax(lo, b->lo - line - slack);
			hi = fmin(hi, b->hi - line + slack);
		}
		assert_true(fabs(node->lo - lo) < 0.01 && fabs(node->hi - hi) < 0.01);
	}
	nps_piecewise__free(&piecewise);
	nps_outlier_filter__free(&filter);
}

/* --- what host and device observed --- */

/* Reads whose answers are all late on one way: the middle is wrong, and only events can show it. */
static void marks_move_the_clock(void **state)
{
	const struct sim_read slow = { .least = 1000, .spread = 500, .jitter = 0 };
	struct nps_clock_mark marks[100], far = { .shift = 1e6 };
	struct nps_clock_map map;
	struct verdict before, after;
	size_t n, cursor = 0, nmarks = 0;

	(void)state;
	sim_start(&sim, 50e6, 50, 13);
	n = sample(&slow, 20, 0.2, 4);
	for (size_t i = 0; i < n; i++)
		reads[i].raw_after += 20000;
	assert_int_equal(nps_clock_map__fit(&map, reads, n, 50000000), 0);
	before = judge(&map, 0, 20);
	assert_true(before.p99 > 8000 && before.covered == before.requested);
	/* a wait returned a microsecond after the device was at this count */
	for (double at = 0.1; at < 20; at += 0.25) {
		struct nps_instant reported;
		double shift;

		assert_true(nps_clock_map__at(&map, sim_counter(&sim, at * 1e9), &cursor, &reported));
		shift = at * 1e9 + 1000 - (double)(int64_t)(reported.ns - sim.host0);
		if (shift < 0)
			marks[nmarks++] = (struct nps_clock_mark){ sim_counter(&sim, at * 1e9), shift };
	}
	assert_int_equal(nps_clock_map__refine(&map, marks, nmarks), 0);
	assert_int_equal(map.marks, nmarks);
	after = judge(&map, 0, 20);
	assert_true(after.p99 < 1500 && after.covered == after.requested);
	/* one that the reads do not admit changes nothing */
	far.counter = sim_counter(&sim, 5e9);
	assert_int_equal(nps_clock_map__refine(&map, &far, 1), 1);
	assert_true(judge(&map, 0, 20).p99 == after.p99);
	nps_clock_map__free(&map);
}

static void raw_to_mono_interpolates(void **state)
{
	/* mono - raw goes from -1000 to -900 over 1000 ns of raw */
	const struct nps_clock samples[] = { { .raw = 10000, .mono = 9000 },
					     { .raw = 11000, .mono = 10100 } };
	const struct nps_clock wide = { .raw = 10000, .raw_after = 10400, .mono = 9200 };
	size_t cursor = 0;

	(void)state;
	assert_int_equal(nps_host_mono(samples, 2, 10000, &cursor).ns, 9000);
	assert_int_equal(nps_host_mono(samples, 2, 10500, &cursor).ns, 9550);
	assert_int_equal(nps_host_mono(samples, 2, 11000, &cursor).ns, 10100);
	assert_int_equal(nps_host_mono(samples, 2, 20000, &cursor).ns,
			 19100); /* after the last: its offset */
	assert_int_equal(nps_host_mono(samples, 2, 5000, &cursor).ns,
			 4000); /* before the first: its offset */
	assert_int_equal(nps_host_mono(samples, 0, 5000, &cursor).ns, 5000);
	assert_int_equal(nps_host_mono(&wide, 1, 10200, &cursor).ns, 9200); /* read in the middle */
	assert_true(nps_host_mono(&wide, 1, 10200, &cursor).error == 200);
}

/*
 * Reads that alone contradict those around them are left out, and out of the count of those that were used.
 */
static void reads_that_lie_are_not_used(void **state)
{
	struct nps_device_clock reads[100];
	struct nps_clock_map map;

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t raw = 1000000000 + i * 100000000, lie = i == 30 || i == 60 ? 300000 : 0;

		reads[i] = (struct nps_device_clock){ .raw_before = raw + lie - 500,
						      .raw_after = raw + lie + 500,
						      .counter = raw / 20 };
	}
	assert_int_equal(nps_clock_map__fit(&map, reads, 100, 50000000), 0);
	assert_int_equal(map.samples, 100);
	assert_int_equal(map.used, 98);
	nps_clock_map__free(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_that_lie_are_not_used),
		cmocka_unit_test(one_read_has_the_nominal_rate),
		cmocka_unit_test(reads_at_one_time_do_not_bound_the_rate),
		cmocka_unit_test(drift_is_found),
		cmocka_unit_test(beyond_the_reads_the_error_grows_and_covers),
		cmocka_unit_test(a_step_of_the_rate_is_followed),
		cmocka_unit_test(wrong_reads_are_left_out),
		cmocka_unit_test(a_rate_that_wanders_is_followed),
		cmocka_unit_test(the_counter_wraps),
		cmocka_unit_test(the_counter_is_reset),
		cmocka_unit_test(garbage_is_no_clock),
		cmocka_unit_test(hostile_reads),
		cmocka_unit_test(the_stated_error_covers_the_truth),
		cmocka_unit_test(lines_are_those_that_trying_finds),
		cmocka_unit_test(errors_are_those_of_all_pairs),
		cmocka_unit_test(marks_move_the_clock),
		cmocka_unit_test(raw_to_mono_interpolates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
