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
	bool irq; /* and interrupts; needs osrt */
	bool network; /* bytes that sockets carry, by process */
	uint64_t
		osrt_threshold_ns; /* shorter system calls are summed up; up to NPS_LONGEST_SUMMED; 0: none */
	bool shapes; /* tensors and operands too */
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

/* Take out what costs too much; what was recorded stays. */
void nps_kernel_side__sum_syscalls(struct nps_kernel_side *k); /* no records of single calls any more */
void nps_kernel_side__drop_syscalls(struct nps_kernel_side *k);
void nps_kernel_side__drop_sched(struct nps_kernel_side *k);

/* Each program that is loaded. */
void nps_kernel_side__for_each_program(const struct nps_kernel_side *k,
				       void (*each)(const char *name, int fd, void *arg), void *arg);

int nps_kernel_side__add_target(struct nps_kernel_side *k, pid_t pid, uint32_t flags);
int nps_kernel_side__del_target(struct nps_kernel_side *k, pid_t pid);
/* Every process of the host is a target, or no longer, for system calls, scheduling and network bytes. */
void nps_kernel_side__watch_all(struct nps_kernel_side *k, bool on);
/* All of them, those that the kernel side added itself too. */
void nps_kernel_side__clear_targets(struct nps_kernel_side *k);

/* Makes an object that is open use the targets, rings and counters of the others. -errno. */
struct bpf_object;
int nps_kernel_side__share_maps(struct nps_kernel_side *k, struct bpf_object *obj);
/* Map of struct nps_net_bytes by thread group; -1: not asked for, or this kernel has no place to count. */
int nps_kernel_side__net_map(const struct nps_kernel_side *k);
/* Processes whose sockets were not counted for want of room. */
uint64_t nps_kernel_side__net_lost(const struct nps_kernel_side *k);
/* The same, and the threads of system calls. *WAKE_MARK is its constant of that name. */
int nps_kernel_side__adopt(struct nps_kernel_side *k, struct bpf_object *obj, size_t ring_bytes,
			   uint64_t *wake_mark);

int nps_kernel_side__cpus(const struct nps_kernel_side *k);
int nps_kernel_side__ring_fd(const struct nps_kernel_side *k, int cpu);

/*
 * The table into which short system calls are summed now, or, `next`, the one that lies still until
 * nps_kernel_side__turn_sums makes it that. -1 without osrt.
 */
int nps_kernel_side__sums_fd(const struct nps_kernel_side *k, bool next);
void nps_kernel_side__turn_sums(struct nps_kernel_side *k);

/* The table of watched threads: tid -> struct nps_thread. */
int nps_kernel_side__threads_fd(const struct nps_kernel_side *k);

void nps_kernel_side__reset_counters(struct nps_kernel_side *k);
/* Sums over the CPUs; counters[NPS_COUNTER_MAX]. */
int nps_kernel_side__counters(const struct nps_kernel_side *k, uint64_t counters[NPS_COUNTER_MAX]);

/* Whether interrupts are recorded: where they cannot be, the capture goes on. */
bool nps_kernel_side__has_irq(const struct nps_kernel_side *k);

/* The kernel side's map NAME of what it knows of threads, NULL if there is none. */
struct bpf_map;
struct bpf_map *nps_kernel_side__sched_map(const struct nps_kernel_side *k, const char *name);

/* The row of the capability table that loaded: a kernel can refuse what it claims to have. */
enum nps_uprobe_row nps_kernel_side__uprobe_row(const struct nps_kernel_side *k);

/* Programs for probes.h; the bpf_program is struct bpf_program *. */
struct bpf_program;
enum nps_program {
	NPS_PROG_SESSION,
	NPS_PROG_ENTRY,
	NPS_PROG_RETURN,
	NPS_PROG_MARK,
	NPS_PROG_OPERANDS,
	NPS_PROGRAMS
};
struct bpf_program *nps_kernel_side__program(const struct nps_kernel_side *k, enum nps_program which);

/* What all programs of probes.h took so far while the kernel kept run statistics, ns. */
uint64_t nps_kernel_side__program_ns(const struct nps_kernel_side *k);

#endif
