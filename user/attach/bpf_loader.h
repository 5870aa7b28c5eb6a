/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF objects of a capture: loaded with shared maps, attached family by family, and removed when closed
 * (or when this process dies).
 */
#ifndef NPS_BPF_LOADER_H
#define NPS_BPF_LOADER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/capability.h"
#include "attach/mstx.h"
#include "bpf_shared.h"

struct nps_bpf_loader;

struct nps_bpf_loader_opts {
	size_t sz; /* of this struct, so that it can be extended */
	size_t ring_bytes; /* of each CPU's ring; rounded up to a power of two */
	bool osrt; /* also system calls and scheduling */
	bool irq; /* and interrupts; needs osrt */
	bool network; /* bytes sent and received over sockets, by process */
	/* shorter system calls are summed up; up to NPS_LONGEST_SUMMED; 0: none */
	uint64_t osrt_threshold_ns;
	bool shapes; /* tensors and operands too */
	enum nps_ops ops; /* operators of PyTorch too */
	bool torch_memory; /* reports of torch_npu's allocator too; not on legacy kernels */
	uint32_t python_at; /* NPS_PY_AT_*: where Python stacks are walked; not on legacy kernels */
	const struct nps_mstx_opts *mstx; /* selects marks; NULL: all */
};

/* Loads everything; nothing is attached yet. Prints a failure and returns -errno. */
int nps_bpf_loader__open(const struct nps_capability *cap, const struct nps_bpf_loader_opts *opts,
			 struct nps_bpf_loader **out);
/* Detaches and frees. */
void nps_bpf_loader__close(struct nps_bpf_loader *k);

/* Attaches the events of processes and, if requested, system calls and scheduling. */
int nps_bpf_loader__attach(struct nps_bpf_loader *k);

/* Detaches the tracepoint programs; the uprobe links belong to probes.h. */
void nps_bpf_loader__detach(struct nps_bpf_loader *k);

/* Detach what costs too much; records made before are kept. */
void nps_bpf_loader__drop_syscalls(struct nps_bpf_loader *k);
void nps_bpf_loader__drop_sched(struct nps_bpf_loader *k);

/*
 * Sets the state of the probes of GROUP (bpf_shared.h) to STATE, NPS_GROUP_*. Set DETACHED before their
 * links are closed, which can take seconds: otherwise a call that is open then would stay in its thread's
 * stack, and hide the calls inside it.
 */
void nps_bpf_loader__set_group(struct nps_bpf_loader *k, unsigned group, uint8_t state);
/* How often probes of GROUP were entered, recorded or not; 0 if that is not counted. */
uint64_t nps_bpf_loader__entered(const struct nps_bpf_loader *k, unsigned group);

/* Calls EACH for every loaded program. */
void nps_bpf_loader__for_each_program(const struct nps_bpf_loader *k,
				      void (*each)(const char *name, int fd, void *arg), void *arg);

int nps_bpf_loader__add_target(struct nps_bpf_loader *k, pid_t pid, uint32_t flags);
int nps_bpf_loader__del_target(struct nps_bpf_loader *k, pid_t pid);
/* Calls EACH with every target, including those that BPF programs have added. */
void nps_bpf_loader__for_each_target(const struct nps_bpf_loader *k, void (*each)(void *arg, pid_t pid),
				     void *arg);
/*
 * ON: every process of the host except this one and CHILD (0: none) is a target for system calls,
 * scheduling and network bytes; else only the targets that were added are.
 */
void nps_bpf_loader__watch_all(struct nps_bpf_loader *k, bool on, pid_t child);
/*
 * The capture ends NOW, CLOCK_MONOTONIC ns: removes all targets, including
 * those that BPF programs have added. On return no program still runs that
 * saw a target. The recorded state of threads is not changed any more.
 */
void nps_bpf_loader__end(struct nps_bpf_loader *k, uint64_t now);

/* Advice for messages when BPF programs or maps are not available, ERR a negative errno. Static. */
const char *nps_bpf_loader__advice(int err);

/* Makes an object that is open use the targets, rings and counters of the others. 0 or -errno. */
struct bpf_object;
int nps_bpf_loader__share_maps(struct nps_bpf_loader *k, struct bpf_object *obj);
/*
 * The same for the maps with the owners of streams and queues. WHICH of them are filled (NPS_LEARN_*), as
 * watched processes submit. Not on legacy kernels.
 */
int nps_bpf_loader__share_streams(struct nps_bpf_loader *k, struct bpf_object *obj);
void nps_bpf_loader__learn(struct nps_bpf_loader *k, uint32_t which);
/*
 * Has a watched process submitted whose streams and queues are not in those maps? So it is in a container,
 * where devices have other numbers.
 */
bool nps_bpf_loader__unlearnt(const struct nps_bpf_loader *k);
/*
 * Map of struct nps_net_bytes by thread group; -1: not requested, or
 * this kernel has no function to attach to.
 */
int nps_bpf_loader__net_map(const struct nps_bpf_loader *k);
/* Processes whose sockets were not counted because the map was full. */
uint64_t nps_bpf_loader__net_lost(const struct nps_bpf_loader *k);
/*
 * Sets the number of bytes in a ring at which the reader is woken: a constant of every object that writes
 * into rings of RING_BYTES.
 */
void nps_bpf_loader__set_wake_mark(uint64_t *mark, size_t ring_bytes);
/*
 * Shares maps as above, and those of threads in system calls. *WAKE_MARK
 * is the object's constant of that name.
 */
int nps_bpf_loader__adopt(struct nps_bpf_loader *k, struct bpf_object *obj, size_t ring_bytes,
			  uint64_t *wake_mark);

int nps_bpf_loader__cpus(const struct nps_bpf_loader *k);
/* Old kernels: fewer kinds of records, in perf buffers. The descriptor is that of their map, or -1. */
bool nps_bpf_loader__is_legacy(const struct nps_bpf_loader *k);
int nps_bpf_loader__records_fd(const struct nps_bpf_loader *k);

/* Bytes of each CPU's ring or perf buffer: a power of two, whole pages. */
size_t nps_bpf_loader__ring_bytes(const struct nps_bpf_loader *k);

int nps_bpf_loader__ring_fd(const struct nps_bpf_loader *k, int cpu);

/*
 * Empties the rings. Only while there is no reader and nothing is recorded; names of threads are sent again.
 */
void nps_bpf_loader__discard(struct nps_bpf_loader *k);

/*
 * The table into which short system calls are summed now or, with NEXT, the idle one, which
 * nps_bpf_loader__turn_sums() makes the current one. -1 without osrt.
 */
int nps_bpf_loader__sums_fd(const struct nps_bpf_loader *k, bool next);
void nps_bpf_loader__turn_sums(struct nps_bpf_loader *k);

/*
 * Map of the inputs of PyTorch's operators: NPS_OP_INPUTS_KEY -> struct nps_op_inputs; -1: they are not
 * recorded.
 */
int nps_bpf_loader__op_inputs_fd(const struct nps_bpf_loader *k);

/* Map of the processes whose Python stacks are walked: pid -> struct nps_py_process; -1: none are. */
int nps_bpf_loader__python_fd(const struct nps_bpf_loader *k);

/*
 * Makes an object that is open, and that walks Python stacks, use the maps of those processes and of what was
 * sent. 0 or -errno.
 */
int nps_bpf_loader__share_python(struct nps_bpf_loader *k, struct bpf_object *obj);

/* Map of the watched threads: tid -> struct nps_thread. */
int nps_bpf_loader__threads_fd(const struct nps_bpf_loader *k);

/* Is it recorded? False once it was dropped, or if it was not requested. */
bool nps_bpf_loader__has_syscalls(const struct nps_bpf_loader *k);
bool nps_bpf_loader__has_sched(const struct nps_bpf_loader *k);
/* System calls shorter than this, ns, are summed up. NPS_LONGEST_SUMMED: no records of single calls. */
uint64_t nps_bpf_loader__threshold(const struct nps_bpf_loader *k);
void nps_bpf_loader__set_threshold(struct nps_bpf_loader *k, uint64_t ns);

void nps_bpf_loader__reset_counters(struct nps_bpf_loader *k);
/* Sums up each counter over the CPUs. */
int nps_bpf_loader__counters(const struct nps_bpf_loader *k, uint64_t counters[NPS_COUNTER_MAX]);

/* Adds N lost records of the kind. Programs that count must not be attached any more. */
void nps_bpf_loader__add_lost(struct nps_bpf_loader *k, uint8_t kind, uint64_t n);

/* Are interrupts recorded? If they cannot be, the capture continues. */
bool nps_bpf_loader__has_irq(const struct nps_bpf_loader *k);

/* What this kernel can do. */
const struct nps_capability *nps_bpf_loader__cap(const struct nps_bpf_loader *k);

/*
 * The row of the capability table that could be loaded: a kernel can refuse a row that it claims to support.
 */
enum nps_uprobe_row nps_bpf_loader__uprobe_row(const struct nps_bpf_loader *k);

/* Programs for probes.h; the bpf_program is struct bpf_program *. */
struct bpf_program;
enum nps_program {
	NPS_PROG_SESSION,
	NPS_PROG_ENTRY,
	NPS_PROG_RETURN,
	NPS_PROG_MARK,
	NPS_PROG_OPERANDS,
	NPS_PROG_OP_ENTRY,
	NPS_PROG_OP_END,
	NPS_PROG_TORCH_MEMORY,
	NPS_PROG_OP_LABEL,
	NPS_PROGRAMS
};
struct bpf_program *nps_bpf_loader__program(const struct nps_bpf_loader *k, enum nps_program which);

/* Iterators over threads that write events of calls that have not returned; NULL: none. */
struct bpf_program *nps_bpf_loader__open_calls(const struct nps_bpf_loader *k);
struct bpf_program *nps_bpf_loader__open_operators(const struct nps_bpf_loader *k);
struct bpf_program *nps_bpf_loader__open_syscalls(const struct nps_bpf_loader *k);

/* The trampolines that replace cookies on kernels without them. NULL: probes have cookies. */
struct nps_trampolines;
struct nps_trampolines *nps_bpf_loader__trampolines(const struct nps_bpf_loader *k);

/* Run time of all programs of probes.h, ns, in the periods in which the kernel kept run statistics. */
uint64_t nps_bpf_loader__program_ns(const struct nps_bpf_loader *k);

#endif
