/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attaches the catalogue to files: each file once, however many processes and paths lead to it; each probe
 * at the cheapest suitable instruction.
 */
#ifndef NPS_PROBES_H
#define NPS_PROBES_H

#include <stdint.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "attach/bpf_loader.h"
#include "attach/probe_rows.h"

struct nps_budget;
struct nps_operators;
struct nps_reader;
struct nps_probes;

/*
 * `level`: as in nps_probe_rows__level(); `shapes`: also what --record-shapes needs. `operators` receives
 * the names of operators that are probed one by one; it is not owned.
 */
int nps_probes__new(struct nps_bpf_loader *k, int level, bool shapes, struct nps_operators *operators,
		    struct nps_probes **out);
/* Excludes rows of libraries (enum nps_lib). */
void nps_probes__leave_out(struct nps_probes *p, uint32_t libs);

/*
 * Also attaches, at any --level but none, to queries of the job's cache of executors, which link launches
 * to the thread that planned them.
 */
void nps_probes__with_caches(struct nps_probes *probes);
/*
 * Once a second, detaches probes of polled functions that the kernel single-steps and that are entered
 * often, with a line for each. Each file's function is counted on its own. now: CLOCK_MONOTONIC ns.
 */
void nps_probes__turn(struct nps_probes *p, uint64_t now);

/* Probes submissions at their return, too: which process owns a queue is learnt from those that succeed. */
void nps_probes__watch_submissions(struct nps_probes *p);

/* Polled functions stay probed: nps_probes__turn() detaches none. */
void nps_probes__keep_polled(struct nps_probes *p);
void nps_probes__free(struct nps_probes *p);

/* Detaches every probe; what was attached can still be described. */
void nps_probes__detach(struct nps_probes *p);

/* Is a probe of TIER attached? */
bool nps_probes__has_tier(const struct nps_probes *p, enum nps_tier tier);

/* Detaches the probes of TIER and above, and attaches no more of them, because watching costs too much. */
void nps_probes__shed(struct nps_probes *p, enum nps_tier tier);

/* The lowest tier that was detached; NPS_TIERS: none. */
enum nps_tier nps_probes__shed_tier(const struct nps_probes *p);

/*
 * Attaches every catalogue row that the file exports. `fd` is the open file, `path` its name in messages.
 * `budget`: of the process that maps it, NULL: none. Returns the number of new probes (0: it was probed
 * already, or has none), or -errno; -ETIME: the budget was spent first, nothing is attached, try again later.
 */
int nps_probes__attach_file(struct nps_probes *p, int fd, const char *path, struct nps_budget *budget);

/* Was the open file read already, whatever was found in it? */
bool nps_probes__knows(const struct nps_probes *p, int fd);

/* Was probe `id` attached to the open file? */
bool nps_probes__has(const struct nps_probes *p, int fd, unsigned id);

/*
 * Attaches to each aclnn operator that a library exports: to its first phase for shapes, to its second
 * phase if SECOND, for CANN whose libnnopbase.so has no function that all operators call, and to the ends
 * of its phases. Returns as nps_probes__attach_file(); -ENOTSUP if separate probes would take minutes.
 */
int nps_probes__attach_operators(struct nps_probes *p, int fd, const char *path, bool second,
				 struct nps_budget *budget);

/* Are probes of single operators wanted, even if there is a function that all of them call? */
bool nps_probes__wants_operators(const struct nps_probes *p);

/* What is probed of a library of PyTorch. */
struct nps_torch_probes {
	bool operators; /* they, nodes of the backward pass, and what queues operators for the NPU */
	bool numbers; /* what numbers operators for the backward pass */
	uint8_t sequence_at; /* bytes from the start of a node to its sequence number, 0: unknown */
	enum nps_tensor_layout tensors; /* of which version's tensors are, 0: unknown */
	bool memory; /* what the allocator of libtorch_npu.so calls */
	unsigned major; /* of the version, 0: unknown */
	int operators_missing; /* result: why they are not probed where memory is, a negative errno */
	int memory_missing; /* result: why that is not probed, a negative errno; -ENOENT: it has no symbol */
};

/*
 * Attaches to functions of the open libtorch_cpu.so or libtorch_npu.so, as WHAT has it. Returns as
 * nps_probes__attach_file(); -ENOTSUP if separate probes would take minutes.
 */
int nps_probes__attach_torch(struct nps_probes *p, int fd, const char *path, struct nps_torch_probes *what,
			     struct nps_budget *budget);

/* Is it the base name of libtorch_cpu.so, or of libtorch_npu.so? */
bool nps_probes__is_torch(const char *basename);
bool nps_probes__is_torch_npu(const char *basename);

/*
 * Attaches the step marker to `function` of the file; -ENOENT: the file
 * has no such function, -E2BIG: it is too large.
 */
int nps_probes__attach_marker(struct nps_probes *p, int fd, const char *path, const char *function,
			      struct nps_budget *budget);

/* Adds "libraries" and "probes" to `session`; READER, which may be NULL, has the number of hits of each. */
void nps_probes__describe(const struct nps_probes *p, const struct nps_reader *reader, cJSON *session);

/* Path of one of the files that were read, NULL: none. */
const char *nps_probes__a_file(const struct nps_probes *p);

unsigned nps_probes__count(const struct nps_probes *p);
unsigned nps_probes__files(const struct nps_probes *p);

/*
 * Number of functions that the kernel refused to probe; each is reported in a line, up to NPS_BUDGET_LINES.
 */
unsigned nps_probes__refused(const struct nps_probes *p);

#endif
