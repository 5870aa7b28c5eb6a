/* SPDX-License-Identifier: BSD-2-Clause */
/* What an executor will launch, and the caches that keep it. */
#ifndef NPUSIM_NNOP_PLAN_H
#define NPUSIM_NNOP_PLAN_H

#include "opbase.h"

#include <stdbool.h>

#define KERNELS_MAX 4
#define FIELDS_MAX 1024 /* bytes of a kernel's tensors in the truth file */

struct planned {
	const char *l0_operator;
	const char *kernel;
	uint32_t blocks;
	char *tensors; /* fields of the truth file, owned; NULL if it is not written */
};

struct plan {
	int nkernels;
	struct planned kernels[KERNELS_MAX];
};

struct cached;

struct aclOpExecutor {
	const char *api;
	const char *l0_operator;
	bool repeatable;
	struct plan plan;
	struct cached *fills[2]; /* entries of caches that get what is planned */
};

void plan_copy(struct plan *to, const struct plan *from);
void plan_free(struct plan *plan);

/* cache.c: the entry of KEY, made if need be; FRESH: it has no plan yet. */
struct cached *cache_entry(uint64_t key, bool *fresh);
/* What EXECUTOR has planned so far is what the entry has. */
void cache_fill(struct cached *entry, const char *api, const struct plan *plan);
/* A new executor with the plan of the entry; NULL without memory. */
aclOpExecutor *cache_executor(struct cached *entry);
void cache_fetch(struct cached *entry, struct plan *plan);

/* pta_cache.c: the entry that the thread's next first phase fills, NULL none; it is returned once. */
struct cached *pta_cache_pending(void);

#endif
