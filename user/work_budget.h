/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much work one process of the job can make for us. npuscope has the rights of root and one thread that
 * looks at processes, and what it reads of them (mappings, environment, ELF files) is as long as they like.
 * All limits are here.
 *
 * CPU time is an account for each process: work is paid for in CPU time of the thread that does it, and the
 * account fills up with a share of the time that passes. Work is done in pieces: one that takes longer than
 * it may is cut, and begins again when the account allows for one twice as long; what is done by then (files
 * that were probed) is not done again. So a cheap look comes often, an expensive one seldom, and none is
 * longer than the whole account.
 */
#ifndef NPS_WORK_BUDGET_H
#define NPS_WORK_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NPS_BUDGET_MS 1000000ULL

/*
 * One process: a tenth of a CPU for good, 2 s at once. A look at a process that maps code of 1,500 files, as a
 * job of PyTorch does, takes a few ms; there are up to ten a second while it loads them.
 */
#define NPS_BUDGET_CPU_NS (2000 * NPS_BUDGET_MS)
#define NPS_BUDGET_PERCENT 10
/*
 * All processes together: a third of a CPU, 8 s at once, which is several hundred processes that map what the
 * first ones do.
 */
#define NPS_BUDGET_ALL_CPU_NS (8000 * NPS_BUDGET_MS)
#define NPS_BUDGET_ALL_PERCENT 33
/*
 * One that was named to us has this instead until recording begins, and its account is full then: who names it waits for it, nothing is
 * recorded meanwhile, and Ctrl-C ends it. Kernels before 6.6 make each probe by itself: 0.1 s for a job's 130 on
 * a server, several seconds in an emulated machine.
 */
#define NPS_BUDGET_NAMED_CPU_NS (20000 * NPS_BUDGET_MS)
#define NPS_BUDGET_NAMED_ALL_CPU_NS (60000 * NPS_BUDGET_MS) /* all of these together */
#define NPS_BUDGET_PIECE_NS (10 * NPS_BUDGET_MS) /* the first piece of work: what others wait at least */

/* One ELF file. libtorch_cpu.so has 150,000 dynamic symbols and 600,000 in .symtab, with 100 MiB of names. */
#define NPS_BUDGET_SYMBOLS (2UL << 20) /* of a table */
#define NPS_BUDGET_NAMES (160UL << 20) /* bytes of the names of a table, the one thing that is held whole */
#define NPS_BUDGET_SECTIONS 65536
#define NPS_BUDGET_TABLES 4 /* of symbols of one type; real files have one */
#define NPS_BUDGET_SEGMENTS 1024
#define NPS_BUDGET_NOTE (64UL << 10) /* bytes of a segment of notes */

/*
 * One process. A job of PyTorch has 1,500 files in 7,500 mappings, some 30 directories to search and 20 files
 * to probe.
 */
#define NPS_BUDGET_MAPPINGS 65536 /* that are kept of one look */
#define NPS_BUDGET_PATHS (8UL << 20) /* bytes of their paths */
#define NPS_BUDGET_DIRS 256 /* of a search path, each once */
#define NPS_BUDGET_FILES 256 /* that get probes and were not known before */
#define NPS_BUDGET_OPERATORS 8192 /* names that no other process has; of all NPS_OPERATORS_MAX */
#define NPS_BUDGET_SEARCHED 4096 /* files in which the step marker is searched */
#define NPS_BUDGET_ENVIRON (2UL << 20) /* bytes that are read; the kernel's usual limit */
#define NPS_BUDGET_VALUE (32UL << 10) /* bytes of one variable that are kept */
#define NPS_BUDGET_CMDLINE (256UL << 10) /* bytes of the command line that are kept */
#define NPS_BUDGET_ARGS 4096 /* of it */
#define NPS_BUDGET_STUBS 4096 /* addresses of functions that stand for kernels and are to be named */

/* One process that was named to us, and all that it has born. */
#define NPS_BUDGET_BORN 16384 /* that session.json lists */
#define NPS_BUDGET_LISTED (256UL << 20) /* bytes of what it says of them */

#define NPS_BUDGET_LINES 100 /* on stderr, of what was left out; session.json has all */

/* What a process did not get. */
enum nps_left_out {
	NPS_LEFT_LOOKS, /* looked at less often than it maps code */
	NPS_LEFT_DIRS,
	NPS_LEFT_FILES,
	NPS_LEFT_MAPPINGS,
	NPS_LEFT_SYMBOLS,
	NPS_LEFT_SEARCHED,
	NPS_LEFT_TEXTS,
	NPS_LEFT_STUBS,
	NPS_LEFT_OPEN,
	NPS_LEFT_TREE,
	NPS_LEFT_BORN,
	NPS_LEFT_LISTED,
	NPS_LEFT_KINDS
};

struct nps_budget {
	int64_t credit; /* ns of CPU time; below 0: the last piece took longer than it should have */
	uint64_t capacity; /* the most of it */
	unsigned int percent; /* of the time that passes */
	uint64_t filled; /* CLOCK_MONOTONIC, when it was last filled up */
	uint64_t piece; /* ns of the next piece of work */
	uint64_t begun, until; /* CPU time of the thread; `until` 0: no work goes on */
	bool cut; /* the work that goes on, or the last */
	bool advanced; /* it has an advance that has not ended */
	unsigned int files, operators, searched;
	uint32_t left_out, told; /* 1 << enum nps_left_out */
};

/* A full account. */
void nps_budget__init(struct nps_budget *b, uint64_t capacity, unsigned int percent, uint64_t now);

/* The account of a process that PARENT has born: no fuller than that one. */
void nps_budget__inherit(struct nps_budget *b, const struct nps_budget *parent);

/* A full account is put by, and NS of CPU time are what there is until the advance ends: as long as it has more, no time fills it up. */
void nps_budget__advance(struct nps_budget *b, uint64_t ns);

/* The account that was put by is there, full, whatever was spent of the advance; what is left of that is gone. Without one: nothing. */
void nps_budget__end_advance(struct nps_budget *b);

/* May the next piece of work begin? NOW: CLOCK_MONOTONIC. */
bool nps_budget__ready(struct nps_budget *b, uint64_t now);

/* Is the account not empty NOW (CLOCK_MONOTONIC)? For work that is too little to be done in pieces. */
bool nps_budget__solvent(struct nps_budget *b, uint64_t now);

/* A piece of work of the calling thread begins. */
void nps_budget__begin(struct nps_budget *b);

/* ... one that cannot begin again, and gets all that the account has. */
void nps_budget__begin_once(struct nps_budget *b);

/* It ends. Returns the CPU time that it took. */
uint64_t nps_budget__end(struct nps_budget *b);

/* Takes CPU time that was spent elsewhere. */
void nps_budget__pay(struct nps_budget *b, uint64_t ns);

/*
 * Has the work that goes on taken all that it may? A system call: once for some microseconds of work. NULL,
 * or no work that goes on: false. Stays true until the end of the piece.
 */
bool nps_budget__spent(struct nps_budget *b);

/* Notes that something was left out. NULL is allowed. */
void nps_budget__leave_out(struct nps_budget *b, enum nps_left_out what);

/* What session.json calls it, and the message: what is left out, and what follows from it. */
const char *nps_left_out__name(enum nps_left_out what);
const char *nps_left_out__message(enum nps_left_out what);

/* Prints a line for each that was not told yet of process PID. True: there was one. */
bool nps_budget__tell(struct nps_budget *b, pid_t pid);

#endif
