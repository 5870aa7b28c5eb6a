/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attaches the catalogue to files: each file once, whatever number of processes
 * and paths lead to it; each probe at the cheapest instruction that does.
 */
#ifndef NPS_PROBES_H
#define NPS_PROBES_H

#include <stdint.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "kernel_side.h"
#include "probe_rows.h"

struct nps_budget;
struct nps_operators;
struct nps_reader;
struct nps_probes;

/*
 * `level` as nps_probe_rows__level(); `shapes`: what --record-shapes needs too. `operators` gets the names of those that
 * are probed one by one.
 */
int nps_probes__new(struct nps_kernel_side *k, int level, bool shapes, struct nps_operators *operators,
		    struct nps_probes **out);
/* Libraries (enum nps_lib) whose rows are not to be attached. */
void nps_probes__leave_out(struct nps_probes *p, uint32_t libs);
/*
 * Takes out, once a second, probes of functions that the job polls, that the kernel single-steps, and that are
 * entered often: a line says which. Each file's is counted for itself. now: ns of CLOCK_MONOTONIC.
 */
void nps_probes__turn(struct nps_probes *p, uint64_t now);

/* Submissions are probed at their return, too: who submits is learnt from those that succeed. */
void nps_probes__watch_submissions(struct nps_probes *p);

/* Keeps those, too. */
void nps_probes__keep_polled(struct nps_probes *p);
void nps_probes__free(struct nps_probes *p);

/* Takes every probe out; what was attached can still be described. */
void nps_probes__detach(struct nps_probes *p);

/* Is a probe of TIER attached? */
bool nps_probes__has_tier(const struct nps_probes *p, enum nps_tier tier);

/* Takes out the probes of TIER and above, and attaches no more of them: watching costs too much. */
void nps_probes__shed(struct nps_probes *p, enum nps_tier tier);

/* The tier from which on probes were taken out; NPS_TIERS: none was. */
enum nps_tier nps_probes__shed_tier(const struct nps_probes *p);

/*
 * Attaches every catalogue row that the file exports. `fd` is the open file, `path`
 * what to call it. `budget`: of the process that has it, NULL: none. Returns the number of probes attached (0: it already was,
 * or has none), or -errno; -ETIME: the budget is spent before it could be done, nothing is attached, try again later.
 */
int nps_probes__attach_file(struct nps_probes *p, int fd, const char *path, struct nps_budget *budget);

/* Was probe `id` attached to the open file? */
bool nps_probes__has(const struct nps_probes *p, int fd, unsigned id);

/*
 * Attaches to each aclnn operator that a library exports. To its second phase if SECOND: for CANN whose libnnopbase.so has no
 * function through which all of them go. To its first phase for shapes. Returns as nps_probes__attach_file(); -ENOTSUP
 * where a probe each would take minutes.
 */
int nps_probes__attach_operators(struct nps_probes *p, int fd, const char *path, bool second,
				 struct nps_budget *budget);

/* Puts the step marker on `function` of the file; -ENOENT when the file has no such function, -E2BIG when it is too large. */
int nps_probes__attach_marker(struct nps_probes *p, int fd, const char *path, const char *function,
			      struct nps_budget *budget);

/* Adds "libraries" and "probes" to `session`; READER, which may be NULL, knows how often each was hit. */
void nps_probes__describe(const struct nps_probes *p, const struct nps_reader *reader, cJSON *session);

/* Path of one of the files that were looked at, NULL if there was none. */
const char *nps_probes__a_file(const struct nps_probes *p);

unsigned nps_probes__count(const struct nps_probes *p);
unsigned nps_probes__files(const struct nps_probes *p);

/* Functions that the kernel refused to probe; a line told of each, but for those after the first NPS_BUDGET_LINES. */
unsigned nps_probes__refused(const struct nps_probes *p);

#endif
