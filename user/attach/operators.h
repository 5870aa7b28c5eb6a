/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of operators that are probed one by one, in CANN versions without a function that all of them call.
 * A probe carries the operator's number, the reader writes its name. One thread adds, another reads.
 */
#ifndef NPS_OPERATORS_H
#define NPS_OPERATORS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "attach/elf_file.h"

#define NPS_OPERATORS_MAX 16384

struct nps_operators {
	_Atomic(const char *) names[NPS_OPERATORS_MAX]; /* [0] is unused */
	unsigned int n;
	/* numbers ordered by name; used only by the adding thread */
	unsigned short sorted[NPS_OPERATORS_MAX];
};

/* Adds NAME, which is copied, and returns its number; -ENOMEM, -ENOSPC. An all-zero table is empty. */
int nps_operators__add(struct nps_operators *operators, const char *name);

/* The name of a number, NULL if it has none. */
const char *nps_operators__name(const struct nps_operators *operators, unsigned long number);

/* Is it the base name of a library of operators? */
bool nps_operators__library(const char *basename);

/* The i-th library of operators of CANN itself, NULL after the last. */
const char *nps_operators__soname(size_t i);

/* The two phases of an operator: aclnnXGetWorkspaceSize and aclnnX. */
typedef int (*nps_operator_fn)(const struct nps_elf_function *first, const struct nps_elf_function *second,
			       void *arg);

/*
 * Calls `each` for every operator of which a library exports both phases, until it returns non-zero;
 * returns that, 0 at the end, or -errno (-E2BIG, -ETIME: see nps_elf__for_each_function()).
 */
int nps_operators__find(struct nps_elf *elf, nps_operator_fn each, void *arg);

void nps_operators__free(struct nps_operators *operators);

#endif
