/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often the kernel skipped a program, because another one ran on
 * that CPU or because the probe was hit inside a probe.
 */
#ifndef NPS_BPF_MISSES_H
#define NPS_BPF_MISSES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Skipped runs of the program behind PROG_FD, counted by the kernel: for fentry and fexit since 5.12, for
 * kprobes and tracepoints since 6.7. False: this kernel has no such count; *MISSED is 0 then.
 */
bool nps_bpf_misses__program(int prog_fd, uint64_t *missed);

/*
 * Hits of the kprobe or kretprobe behind LINK_FD at which no program
 * ran. False: not counted (before 6.7); *MISSED is 0.
 */
bool nps_bpf_misses__kprobe(int link_fd, uint64_t *missed);

#endif
