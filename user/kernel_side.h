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
void nps_kernel_side__drop_syscalls(struct nps_kernel_side *k);
void nps_kernel_side__drop_sched(struct nps_kernel_side *k);

/*
 * Says what becomes of the probes of GROUP (bpf_shared.h); STATE: NPS_GROUP_*. DETACHED before their links are closed, which can take
 * seconds: else a call that is under way then would stay in its thread's stack, and hide what is called from there.
 */
void nps_kernel_side__set_group(struct nps_kernel_side *k, unsigned group, uint8_t state);
/* How often probes of GROUP were entered, recorded or not; 0 where that is not counted. */
uint64_t nps_kernel_side__entered(const struct nps_kernel_side *k, unsigned group);

/* Each program that is loaded. */
void nps_kernel_side__for_each_program(const struct nps_kernel_side *k,
				       void (*each)(const char *name, int fd, void *arg), void *arg);

int nps_kernel_side__add_target(struct nps_kernel_side *k, pid_t pid, uint32_t flags);
int nps_kernel_side__del_target(struct nps_kernel_side *k, pid_t pid);
/* Calls EACH with every target, those that the kernel side added itself too. */
void nps_kernel_side__for_each_target(const struct nps_kernel_side *k, void (*each)(void *arg, pid_t pid),
				      void *arg);
/* Every process of the host but us and CHILD (0: none) is a target, or no longer, for system calls, scheduling and network bytes. */
void nps_kernel_side__watch_all(struct nps_kernel_side *k, bool on, pid_t child);
/*
 * The capture ends NOW, CLOCK_MONOTONIC ns: nothing is a target any more, not what the kernel side added itself either, and when
 * this returns no program is under way that took it for one. What is known of threads stays as it is.
 */
void nps_kernel_side__end(struct nps_kernel_side *k, uint64_t now);

/* What to do where BPF programs or maps cannot be had, ERR a negative errno: the end of a message. It has no owner. */
const char *nps_kernel_side__advice(int err);

/* Makes an object that is open use the targets, rings and counters of the others. -errno. */
struct bpf_object;
int nps_kernel_side__share_maps(struct nps_kernel_side *k, struct bpf_object *obj);
/* The same of the maps that say whose streams and queues are whose; and WHICH are kept (NPS_LEARN_*), as watched processes submit. Not legacy. */
int nps_kernel_side__share_streams(struct nps_kernel_side *k, struct bpf_object *obj);
void nps_kernel_side__learn(struct nps_kernel_side *k, uint32_t which);
/* Whether a watched process has submitted of which they are not kept: one in a container, whose devices have other numbers. */
bool nps_kernel_side__unlearnt(const struct nps_kernel_side *k);
/* Map of struct nps_net_bytes by thread group; -1: not asked for, or this kernel has no place to count. */
int nps_kernel_side__net_map(const struct nps_kernel_side *k);
/* Processes whose sockets were not counted for want of room. */
uint64_t nps_kernel_side__net_lost(const struct nps_kernel_side *k);
/* How many bytes wait in a ring before the reader is woken: a constant of every object that writes into rings of RING_BYTES. */
void nps_kernel_side__set_wake_mark(uint64_t *mark, size_t ring_bytes);
/* Shares maps as above, and the threads of system calls. *WAKE_MARK is its constant of that name. */
int nps_kernel_side__adopt(struct nps_kernel_side *k, struct bpf_object *obj, size_t ring_bytes,
			   uint64_t *wake_mark);

int nps_kernel_side__cpus(const struct nps_kernel_side *k);
/* Old kernels: fewer sorts of records, and these in perf buffers, of which that is the map; else -1. */
bool nps_kernel_side__is_legacy(const struct nps_kernel_side *k);
int nps_kernel_side__records_fd(const struct nps_kernel_side *k);

/* Of each CPU's ring or perf buffer: a power of two, whole pages. */
size_t nps_kernel_side__ring_bytes(const struct nps_kernel_side *k);

int nps_kernel_side__ring_fd(const struct nps_kernel_side *k, int cpu);

/* Empties the rings, which nobody reads yet, while nobody makes records; names of threads are sent anew. */
void nps_kernel_side__discard(struct nps_kernel_side *k);

/*
 * The table into which short system calls are summed now, or, `next`, the one that lies still until
 * nps_kernel_side__turn_sums makes it that. -1 without osrt.
 */
int nps_kernel_side__sums_fd(const struct nps_kernel_side *k, bool next);
void nps_kernel_side__turn_sums(struct nps_kernel_side *k);

/* The table of watched threads: tid -> struct nps_thread. */
int nps_kernel_side__threads_fd(const struct nps_kernel_side *k);

/* What is followed: false once it was taken out, or never was asked for. */
bool nps_kernel_side__has_syscalls(const struct nps_kernel_side *k);
bool nps_kernel_side__has_sched(const struct nps_kernel_side *k);
/* System calls shorter than this are summed up, ns: NPS_LONGEST_SUMMED: no records of single calls. */
uint64_t nps_kernel_side__threshold(const struct nps_kernel_side *k);
void nps_kernel_side__set_threshold(struct nps_kernel_side *k, uint64_t ns);

void nps_kernel_side__reset_counters(struct nps_kernel_side *k);
/* Sums over the CPUs; counters[NPS_COUNTER_MAX]. */
int nps_kernel_side__counters(const struct nps_kernel_side *k, uint64_t counters[NPS_COUNTER_MAX]);

/* N records of the kind were lost besides. Programs that count must not be attached any more. */
void nps_kernel_side__add_lost(struct nps_kernel_side *k, uint8_t kind, uint64_t n);

/* Whether interrupts are recorded: where they cannot be, the capture goes on. */
bool nps_kernel_side__has_irq(const struct nps_kernel_side *k);

/* What was found out about this kernel. */
const struct nps_capability *nps_kernel_side__cap(const struct nps_kernel_side *k);

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

/* Iterators over threads that give events of the calls that have not returned; NULL: there is none. */
struct bpf_program *nps_kernel_side__open_calls(const struct nps_kernel_side *k);
struct bpf_program *nps_kernel_side__open_syscalls(const struct nps_kernel_side *k);

/* Where probes have no cookies: what gives them some (stubs.h). NULL: they have. */
struct nps_stubs;
struct nps_stubs *nps_kernel_side__stubs(const struct nps_kernel_side *k);

/* What all programs of probes.h took so far while the kernel kept run statistics, ns. */
uint64_t nps_kernel_side__program_ns(const struct nps_kernel_side *k);

#endif
