/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A job that does one thing with probes for 10 ms, and the same without any for the next 10. So the cost of
 * the probes is the difference of neighbours in one process, so near in time that both have the machine's
 * noise.
 */
#ifndef NPS_BENCH_ALTERNATE_H
#define NPS_BENCH_ALTERNATE_H

#include <stdint.h>

struct alternation {
	void (*probed)(void), (*plain)(void);
	uint64_t gap_ns; /* from one to the next, kept by sleeping; 0: as fast as computing lets it */
	long steps; /* of computing over 256 KB before each, some of them after it */
	const char *samples; /* file that is made: struct sample, one each 10 ms */
};

/* What the process did until then. */
struct sample {
	uint64_t monotonic_ns, cpu_ns, calls, probed_calls;
	/* Median, since the sample before, of a call and a little computing: without interruptions. */
	uint64_t near_ns;
};

/*
 * Runs until standard input ends, which ends the process with status 0. Returns, negative, only if it fails
 * or has no room for more samples.
 */
int alternate(const struct alternation *a);

#endif
