/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a function can be probed as it leaves, for functions that exceptions may cross: a return probe under an
 * exception ends the job. All code of the function is followed from its start and its landing pads; with any
 * doubt it has no exits.
 */
#ifndef NPS_EXIT_POINTS_H
#define NPS_EXIT_POINTS_H

#include <stdint.h>

#include "attach/elf_file.h"
#include "attach/probe_point.h"

#define NPS_EXITS_MAX 16 /* exits of one function; with more it has none */

struct nps_exit {
	uint64_t offset; /* of the probe, in the file */
	enum nps_probe_class class;
};

struct nps_exits {
	struct nps_exit v[NPS_EXITS_MAX];
	unsigned n;
	/*
	 * A function that it ends by jumping to has no exit here: the call counts as over where that function
	 * begins. Only set where the caller asked for tail calls to be accepted.
	 */
	unsigned tail_calls;
};

struct nps_exit_finder; /* of one file: its unwind tables and functions, read once */

/* elf stays open, and is not owned. 0, -ENOTSUP: another processor, -ENOMEM, -EINVAL: no usable unwind tables. */
int nps_exit_finder__new(struct nps_elf *elf, struct nps_exit_finder **out);
void nps_exit_finder__free(struct nps_exit_finder *finder);

/*
 * The exits of FN. Each normal end of a call passes exactly one of them, while the stack frame of the function
 * still exists (x86-64: the stack pointer is below that of the entry; arm64: not above it). stepped: also exits
 * that the kernel single-steps. 0; -ENOENT: it has none that can be probed, *why is set to the reason, a static
 * phrase; -ENOMEM; -ETIME: the budget of the file is spent.
 */
int nps_exit_finder__find(struct nps_exit_finder *finder, const struct nps_elf_function *fn, bool stepped,
			  struct nps_exits *exits, const char **why);

#endif
