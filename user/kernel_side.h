/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF objects of a capture: loaded with shared maps, attached family by
 * family, and gone when closed (or when this process dies).
 */
#ifndef NPS_KERNEL_SIDE_H
#define NPS_KERNEL_SIDE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf_shared.h"
#include "capability.h"
#include "mstx.h"

struct nps_kernel_side;

struct nps_kernel_side_opts {
	size_t sz; /* of this struct, so that it can grow */
	size_t ring_bytes; /* of each CPU's ring; rounded up to a power of two */
	bool osrt; /* system calls and scheduling too */
	const struct nps_mstx_opts *mstx; /* which marks; NULL: all */
};

/* Loads everything; nothing is attached yet. On failure prints a line, returns -errno. */
int nps_kernel_side__open(const struct nps_capability *cap, const struct nps_kernel_side_opts *opts,
			  struct nps_kernel_side **out);
/* Detaches and frees. */
void nps_kernel_side__close(struct nps_kernel_side *k);

/* Attaches births and deaths, and system calls and scheduling when asked for. */
int nps_kernel_side__attach(struct nps_kernel_side *k);

/* Detaches the tracepoint programs; the uprobe links belong to probes.h. */
void nps_kernel_side__detach(struct nps_kernel_side *k);

int nps_kernel_side__add_target(struct nps_kernel_side *k, pid_t pid, uint32_t flags);
int nps_kernel_side__del_target(struct nps_kernel_side *k, pid_t pid);
/* All of them, those that the kernel side added itself too. */
void nps_kernel_side__clear_targets(struct nps_kernel_side *k);

int nps_kernel_side__cpus(const struct nps_kernel_side *k);
int nps_kernel_side__ring_fd(const struct nps_kernel_side *k, int cpu);

void nps_kernel_side__reset_counters(struct nps_kernel_side *k);
/* Sums over the CPUs; counters[NPS_COUNTER_MAX]. */
int nps_kernel_side__counters(const struct nps_kernel_side *k, uint64_t counters[NPS_COUNTER_MAX]);

/* The row of the capability table that loaded: a kernel can refuse what it claims to have. */
enum nps_uprobe_row nps_kernel_side__uprobe_row(const struct nps_kernel_side *k);

/* Programs for probes.h; the bpf_program is struct bpf_program *. */
struct bpf_program;
enum nps_program { NPS_PROG_SESSION, NPS_PROG_ENTRY, NPS_PROG_RETURN, NPS_PROG_MARK };
struct bpf_program *nps_kernel_side__program(const struct nps_kernel_side *k, enum nps_program which);

#endif
