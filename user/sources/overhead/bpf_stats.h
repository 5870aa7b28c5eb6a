/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Switches on the kernel's run statistics of BPF programs. That needs CAP_SYS_ADMIN each time, which only a
 * thread of its own keeps, and it patches the kernel's code, so it is asynchronous.
 */
#ifndef NPS_BPF_STATS_H
#define NPS_BPF_STATS_H

#include <stdbool.h>

struct nps_bpf_stats;

/* Starts that thread. 0 or -errno. */
int nps_bpf_stats__start(struct nps_bpf_stats **out);

/* Requests a window of statistics. One at a time. */
void nps_bpf_stats__request(struct nps_bpf_stats *s);

/*
 * True once the request is answered. *FD, then the caller's: statistics are on until it is closed; -errno:
 * they are not available, as before Linux 5.8.
 */
bool nps_bpf_stats__answered(struct nps_bpf_stats *s, int *fd);

/* NULL: nothing. */
void nps_bpf_stats__free(struct nps_bpf_stats *s);

#endif
