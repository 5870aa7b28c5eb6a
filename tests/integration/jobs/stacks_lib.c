/* SPDX-License-Identifier: BSD-2-Clause */
/* A library that a job maps while it is watched. */
#include <stdint.h>
#include <time.h>

static volatile uint64_t sink;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t lib_burn(uint64_t ns);
uint64_t lib_burn(uint64_t ns)
{
	uint64_t begin = now(), at = begin;

	while (at - begin < ns) {
		for (int i = 0; i < 100000; i++)
			sink += (uint64_t)i;
		at = now();
	}
	return at - begin;
}
