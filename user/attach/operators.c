/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/operators.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

/* Index of NAME in the sorted numbers, or where it has to be inserted. */
static unsigned int number_position(const struct nps_operators *operators, const char *name)
{
	unsigned int low = 0, high = operators->n;

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (strcmp(nps_operators__name(operators, operators->sorted[middle]), name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int nps_operators__add(struct nps_operators *operators, const char *name)
{
	unsigned int at = number_position(operators, name);
	unsigned short *sorted = &operators->sorted[at];
	char *copy;

	if (at < operators->n && !strcmp(nps_operators__name(operators, *sorted), name))
		return *sorted; /* from another copy of the library */
	if (operators->n + 1 >= NPS_OPERATORS_MAX)
		return -ENOSPC;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	memmove(sorted + 1, sorted, (operators->n - at) * sizeof(*sorted));
	*sorted = (unsigned short)(operators->n + 1);
	atomic_store(&operators->names[++operators->n], copy);
	return (int)operators->n;
}

const char *nps_operators__name(const struct nps_operators *operators, unsigned long number)
{
	return number < NPS_OPERATORS_MAX ? atomic_load(&operators->names[number]) : NULL;
}

bool nps_operators__library(const char *basename)
{
	static const char *const prefixes[] = { "libopapi", "libaclnn_", "libcust_opapi" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (!strncmp(basename, prefixes[i], strlen(prefixes[i])))
			return strstr(basename, ".so") != NULL;
	return false;
}

const char *nps_operators__soname(size_t i)
{
	static const char *const names[] = { "libopapi.so",	      "libaclnn_math.so",
					     "libaclnn_ops_infer.so", "libaclnn_ops_train.so",
					     "libaclnn_rand.so",      "libaclnn_fft.so" };

	return i < sizeof(names) / sizeof(*names) ? names[i] : NULL;
}

#define LONGEST 256 /* bytes of a name */
#define MEASURED (128UL << 10) /* longest part of a longer name that is searched for its end */
#define MOST (8 * NPS_OPERATORS_MAX) /* functions of a library, including first phases and aliases */

struct functions {
	struct nps_elf_function *v;
	size_t n, room;
	size_t too_long;
};

static const char first_phase_suffix[] = "GetWorkspaceSize";

static bool is_first_phase(const char *name)
{
	/*
	 * The file controls the length of names, and many symbols can share one:
	 * the search for its end is limited.
	 */
	size_t len = strnlen(name, MEASURED), end = sizeof(first_phase_suffix) - 1;

	return len > end && strcmp(name + len - end, first_phase_suffix) == 0;
}

static int collect(const struct nps_elf_function *f, void *arg)
{
	struct functions *all = arg;

	if (strncmp(f->name, "aclnn", strlen("aclnn")) != 0)
		return 0;
	if (strnlen(f->name, LONGEST) == LONGEST) {
		all->too_long += !is_first_phase(f->name);
		return 0;
	}
	if (all->n >= MOST)
		return -E2BIG;
	if (all->n == all->room) {
		size_t room = all->room ? all->room * 2 : 256;
		struct nps_elf_function *v = realloc(all->v, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		all->v = v;
		all->room = room;
	}
	all->v[all->n++] = *f;
	return 0;
}

static int name_compare(const void *a, const void *b)
{
	return strcmp(((const struct nps_elf_function *)a)->name, ((const struct nps_elf_function *)b)->name);
}

/* Finds the first phase, which can be anywhere after the second in sorted order. NULL: there is none. */
static const struct nps_elf_function *first_phase(const struct functions *all, const char *name)
{
	struct nps_elf_function key = { .name = NULL };
	char first[2 * LONGEST];

	if (snprintf(first, sizeof(first), "%s%s", name, first_phase_suffix) >= (int)sizeof(first))
		return NULL;
	key.name = first;
	return bsearch(&key, all->v, all->n, sizeof(*all->v), name_compare);
}

int nps_operators__find(struct nps_elf *elf, nps_operator_fn each, void *arg)
{
	struct functions all = { 0 };
	int err = nps_elf__for_each_function(elf, false, collect, &all);

	if (!err && all.n)
		qsort(all.v, all.n, sizeof(*all.v), name_compare);
	for (size_t i = 0; !err && i < all.n; i++) {
		const struct nps_elf_function *first = first_phase(&all, all.v[i].name);

		if (first)
			err = each(first, &all.v[i], arg);
	}
	if (all.too_long)
		nps_warn("%zu operators have names longer than %d bytes: their calls will be missing",
			 all.too_long, LONGEST - 1);
	free(all.v);
	return err;
}

void nps_operators__free(struct nps_operators *operators)
{
	for (unsigned int i = 1; i <= operators->n; i++)
		free((char *)atomic_load(&operators->names[i]));
	operators->n = 0;
}
