/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the mock driver really did, one line each in debugfs: npusim/truth. See NOTES.md. */
#ifndef NPUSIM_KMOD_TRUTH_H
#define NPUSIM_KMOD_TRUTH_H

#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/types.h>

#define TRUTH_VALUES 10

void npusim_truth_add(const char *what, const u64 *values, unsigned int n);

/* A line of WHAT and up to TRUTH_VALUES numbers; from any context. */
#define TRUTH(what, ...)                                                                                     \
	npusim_truth_add(what, (const u64[]){ __VA_ARGS__ },                                                 \
			 sizeof((const u64[]){ __VA_ARGS__ }) / sizeof(u64))

/* CLOCK_MONOTONIC, ns: the clock of bpf_ktime_get_ns. */
static inline u64 truth_now(void)
{
	return ktime_get_ns();
}

#endif
