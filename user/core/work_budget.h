/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits the work that one process of the job can cause. npuscope has root's rights and one thread that
 * reads processes, and a process controls the size of what is read of it (mappings, environment, ELF
 * files). All limits are here.
 *
 * CPU time is an account for each process: work is paid for in CPU time of the thread that does it, and the
 * account fills up with a share of the elapsed time. Work is done in units: one that takes longer than it
 * may is aborted, and begins again when the account allows for one twice as long; what is done by then
 * (files that were probed) is not repeated. So cheap reads are frequent, expensive ones rare, and none
 * takes longer than the whole account.
 */
#ifndef NPS_WORK_BUDGET_H
#define NPS_WORK_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NPS_BUDGET_MS 1000000ULL

/*
 * One process: a tenth of a CPU in the long run, 2 s at once. A read of a process that maps code of 1,500
 * files, as a PyTorch job does, takes a few ms; there are up to ten a second while it loads them.
 */
#define NPS_BUDGET_CPU_NS (2000 * NPS_BUDGET_MS)
#define NPS_BUDGET_PERCENT 10
/*
 * All processes together: a third of a CPU, 8 s at once, which is enough for several hundred processes that
 * map the same files as the first ones.
 */
#define NPS_BUDGET_ALL_CPU_NS (8000 * NPS_BUDGET_MS)
#define NPS_BUDGET_ALL_PERCENT 33
/*
 * A process that the user named has this instead until recording begins, and then a full account: the user
 * waits for it, nothing is recorded meanwhile, and Ctrl-C ends it. Kernels before 6.6 attach probes one by
 * one: 0.1 s for a job's 130 on a server, several seconds in an emulated machine.
 */
#define NPS_BUDGET_NAMED_CPU_NS (20000 * NPS_BUDGET_MS)
#define NPS_BUDGET_NAMED_ALL_CPU_NS (60000 * NPS_BUDGET_MS) /* all of these together */
#define NPS_BUDGET_SLICE_NS (10 * NPS_BUDGET_MS) /* the first unit of work: the shortest wait for others */

/* One ELF file. libtorch_cpu.so has 150,000 dynamic symbols and 600,000 in .symtab, with 100 MiB of names. */
#define NPS_BUDGET_SYMBOLS (2UL << 20) /* of a table */
#define NPS_BUDGET_NAMES (160UL << 20) /* bytes of the names of a table, the only data that is held whole */
#define NPS_BUDGET_SECTIONS 65536
#define NPS_BUDGET_TABLES 4 /* of symbols of one type; real files have one */
#define NPS_BUDGET_SEGMENTS 1024
#define NPS_BUDGET_NOTE (64UL << 10) /* bytes of a segment of notes */

/*
 * One process. A job of PyTorch has 1,500 files in 7,500 mappings, some 30 directories to search and 20 files
 * to probe.
 */
#define NPS_BUDGET_MAPPINGS 65536 /* kept of one read */
#define NPS_BUDGET_PATHS (8UL << 20) /* bytes of their paths */
#define NPS_BUDGET_DIRS 256 /* of a search path, each once */
#define NPS_BUDGET_FILES 256 /* that get probes and were not probed before */
#define NPS_BUDGET_OPERATORS 8192 /* names that no other process has; NPS_OPERATORS_MAX for all processes */
#define NPS_BUDGET_SEARCHED 4096 /* files that are searched for the step marker */
#define NPS_BUDGET_ENVIRON (2UL << 20) /* bytes that are read; the kernel's usual limit */
#define NPS_BUDGET_VALUE (32UL << 10) /* bytes of one variable that are kept */
#define NPS_BUDGET_CMDLINE (256UL << 10) /* bytes of the command line that are kept */
#define NPS_BUDGET_ARGS 4096 /* of it */
#define NPS_BUDGET_HOST_FUNCTIONS 4096 /* unnamed host addresses that stand for kernel functions */

/* A process that the user named, and all its descendants. */
#define NPS_BUDGET_BORN 16384 /* processes listed in session.json */
#define NPS_BUDGET_LISTED (256UL << 20) /* bytes of their texts in session.json */

#define NPS_BUDGET_LINES 100 /* on stderr, about what was left out; session.json lists all */

/* What was left out of a process. */
enum nps_left_out {
	NPS_LEFT_SCANS, /* it was read less often than it mapped code */
	NPS_LEFT_DIRS,
	NPS_LEFT_FILES,
	NPS_LEFT_MAPPINGS,
	NPS_LEFT_SYMBOLS,
	NPS_LEFT_SEARCHED,
	NPS_LEFT_TEXTS,
	NPS_LEFT_HOST_FUNCTIONS,
	NPS_LEFT_OPEN,
	NPS_LEFT_TREE,
	NPS_LEFT_BORN,
	NPS_LEFT_LISTED,
	NPS_LEFT_KINDS
};

struct nps_budget {
	int64_t credit; /* ns of CPU time; below 0: the last unit took longer than it should have */
	uint64_t capacity; /* maximum of it */
	unsigned int percent; /* of the elapsed time */
	uint64_t filled; /* CLOCK_MONOTONIC ns, when it was last filled up */
	uint64_t slice; /* ns of the next unit of work */
	uint64_t begun, until; /* CPU time of the thread; `until` 0: no work in progress */
	bool cut; /* the current or last work was aborted */
	bool advanced; /* it has an advance that has not ended */
	unsigned int files, operators, searched;
	uint32_t left_out, reported; /* 1 << enum nps_left_out */
};

/* Initialises a full account. */
void nps_budget__init(struct nps_budget *b, uint64_t capacity, unsigned int percent, uint64_t now);

/* The account of a child of PARENT: no fuller than the parent's. */
void nps_budget__inherit(struct nps_budget *b, const struct nps_budget *parent);

/*
 * Replaces the account by NS of CPU time until nps_budget__end_advance(); time does not fill it up while it
 * has more than its capacity.
 */
void nps_budget__advance(struct nps_budget *b, uint64_t ns);

/* Restores a full account, whatever was spent of the advance. Without an advance: does nothing. */
void nps_budget__end_advance(struct nps_budget *b);

/* May the next unit of work begin? NOW: CLOCK_MONOTONIC ns. */
bool nps_budget__ready(struct nps_budget *b, uint64_t now);

/* Is the account not empty NOW (CLOCK_MONOTONIC ns)? For work too small to be done in units. */
bool nps_budget__solvent(struct nps_budget *b, uint64_t now);

/* Begins a unit of work in the calling thread. */
void nps_budget__begin(struct nps_budget *b);

/* ... one that cannot be repeated, and may use the whole account. */
void nps_budget__begin_once(struct nps_budget *b);

/* Ends it. Returns its CPU time, ns. */
uint64_t nps_budget__end(struct nps_budget *b);

/* Charges CPU time that was spent elsewhere. */
void nps_budget__pay(struct nps_budget *b, uint64_t ns);

/*
 * Has the current work used all that it may? A system call: call it once for some microseconds of work.
 * NULL, or no current work: false. Stays true until the end of the unit.
 */
bool nps_budget__spent(struct nps_budget *b);

/* Records that something was left out. NULL is allowed. */
void nps_budget__leave_out(struct nps_budget *b, enum nps_left_out what);

/* Its name in session.json, and the message: what was left out, and the consequence. */
const char *nps_left_out__name(enum nps_left_out what);
const char *nps_left_out__message(enum nps_left_out what);

/* Prints a line for each that was not reported yet of process PID. True: there was one. */
bool nps_budget__report(struct nps_budget *b, pid_t pid);

#endif
