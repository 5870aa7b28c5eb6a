/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the kernel keeps the preemption count, which shows whether it serves an interrupt. */
#ifndef NPS_PREEMPT_COUNT_H
#define NPS_PREEMPT_COUNT_H

#include <stdint.h>

struct btf;

/*
 * x86-64: offset, in bytes, of a CPU's preemption count from its run queue (the per-CPU variable
 * `runqueues`), from the types of the running kernel: a per-CPU variable of its own, or from 6.2 to 6.14 a
 * member of pcpu_hot. 0: unknown. A BPF program cannot name these variables itself: kernels without
 * CONFIG_KALLSYMS_ALL refuse it.
 */
int64_t nps_preempt_count__offset(const struct btf *btf);

#endif
