/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a function can be probed as it leaves, for functions that exceptions may cross: a return probe under
 * an exception ends the job. All code of the function is followed from its start and its landing pads; unless
 * all of it is certain, it has no exits.
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
};

struct nps_exit_finder; /* of one file: its unwind tables and functions, read once */

/*
 * elf stays open, and is not owned. 0; -ENOTSUP: another processor; -EINVAL: no usable unwind tables;
 * -ENOMEM; -ETIME: the budget of the file is spent.
 */
int nps_exit_finder__new(struct nps_elf *elf, struct nps_exit_finder **out);
void nps_exit_finder__free(struct nps_exit_finder *finder);

/*
 * The exits of FN, in order. Each normal end of a call passes exactly one of them, after all calls of other
 * functions. The stack pointer is not above that of the entry, so that the return address is not overwritten
 * yet: on x86-64 it is below it or, as at a return itself, equal to it; arm64 functions are probed at their
 * returns, which the kernel simulates. An exception that leaves the function passes none of them.
 *
 * What cannot be known from FN's own code is that other code jumps into it. No compiler writes such jumps,
 * except from parts of the same function, which are followed.
 *
 * stepped: also exits that the kernel single-steps. 0; -ENOENT: it has none that can be probed, *why is set
 * to the reason, a static phrase; -ENOMEM; -ETIME: the budget of the file is spent.
 */
int nps_exit_finder__find(struct nps_exit_finder *finder, const struct nps_elf_function *fn, bool stepped,
			  struct nps_exits *exits, const char **why);

#endif
