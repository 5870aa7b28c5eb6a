/* SPDX-License-Identifier: BSD-2-Clause */
/* How often the kernel left a program out: because another one ran on that CPU, or the probe was hit inside a probe. */
#ifndef NPS_BPF_MISSES_H
#define NPS_BPF_MISSES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Of the program behind PROG_FD, by the kernel's own count: of programs of trampolines since 5.12, of kprobes and tracepoints
 * since 6.7. False: this kernel has no such count; *MISSED is 0 then.
 */
bool nps_bpf_misses__program(int prog_fd, uint64_t *missed);

/* Of the kprobe, or kretprobe, behind LINK_FD: hits at which no program ran. False: not told (before 6.7); *MISSED is 0 then. */
bool nps_bpf_misses__kprobe(int link_fd, uint64_t *missed);

#endif
