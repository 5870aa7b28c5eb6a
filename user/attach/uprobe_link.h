/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes of functions by system calls instead of libbpf, which on Debian 12, like the kernel headers, is
 * older than uprobe multi and session links. One link holds any number of probes of one file and is closed
 * in some 30 ms; uprobes by perf event take 0.1 s each.
 */
#ifndef NPS_UPROBE_LINK_H
#define NPS_UPROBE_LINK_H

#include <stdbool.h>
#include <stdint.h>

/* Attach types of linux/bpf.h, spelled out for old headers. */
#define NPS_BPF_TRACE_UPROBE_MULTI 48 /* Linux 6.6 */
#define NPS_BPF_TRACE_UPROBE_SESSION 57 /* Linux 6.13 */

/*
 * Links a program to `n` file offsets of the file at `path`. `returns`: at the function's return. `pid`:
 * only that process, 0: every process that maps the file. Returns the link's descriptor (closing it
 * detaches) or -errno.
 */
int nps_uprobe_multi__link(int prog_fd, uint32_t attach_type, const char *path, const uint64_t *offsets,
			   const uint64_t *cookies, uint32_t n, bool returns, int pid);

/*
 * Attaches a program to the code at OFFSET of the file PATH, or to its returns, in every process, with a
 * perf event of its own and no cookie. Returns its descriptor (closing it detaches) or -errno.
 */
int nps_uprobe_perf__link(int prog_fd, const char *path, uint64_t offset, bool returns);

/* 0 if the calling thread has the rights for such an event; else the kernel's -errno. Opens none. */
int nps_uprobe_perf__check(void);

/* Does this kernel have links of that attach type? */
bool nps_uprobe_multi__supported(uint32_t attach_type);

#endif
