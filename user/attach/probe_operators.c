/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of aclnn operators, one by one. */
#include <errno.h>
#include <stdlib.h>

#include "attach/exit_points.h"
#include "attach/op_arguments.h"
#include "attach/operators.h"
#include "attach/probe_address.h"
#include "attach/probes_impl.h"
#include "core/log.h"
#include "core/work_budget.h"

/* Attaches to a phase of operator NUMBER. */
static int add_phase(struct nps_probe_match *m, const struct nps_elf_function *fn, uint16_t id, int number)
{
	/* All arguments of operands are read. */
	const struct nps_probe_row *row = id == NPS_PROBE_NN_OPERANDS ? NULL : nps_probe_rows__get(id);
	struct nps_probe_address address = nps_probe_address__find(m->elf, fn, row, false);
	int err;

	if (nps_probed_file__has_at(m->file, &address))
		return 0; /* an alias */
	err = nps_probed_file__add(m->file, id, false, &address);
	if (err)
		return err;
	m->file->probes[m->file->n - 1].number = (uint16_t)number;
	return 0;
}

int nps_probes__add_ends(struct nps_probe_match *m, const struct nps_elf_function *fn, uint16_t id,
			 uint16_t number, unsigned *n)
{
	struct nps_exits exits;
	const char *why;
	int err = nps_exit_finder__find(m->exits, fn, false, &exits, &why);

	*n = 0;
	if (err == -ENOENT) {
		nps_debug("%s: its ends are not probed: %s", fn->name, why);
		return 0;
	}
	if (err)
		return err;
	for (unsigned i = 0; i < exits.n; i++) {
		err = nps_probed_file__add_end(m->file, id, fn->offset, &exits.v[i]);
		if (err)
			return err;
		m->file->probes[m->file->n - 1].number = number;
	}
	*n = exits.n;
	return 0;
}

/* Probes the ends of a phase, if its row is attached at this level. */
static int add_phase_ends(struct nps_probe_match *m, const struct nps_elf_function *fn, uint16_t id,
			  uint16_t number)
{
	unsigned n;

	if (nps_probe_rows__level(nps_probe_rows__get(id)) > m->p->level ||
	    nps_probed_file__has_ends(m->file, id, fn->offset))
		return 0;
	return nps_probes__add_ends(m, fn, id, number, &n);
}

int nps_probes__operator(struct nps_probe_match *m, const char *name)
{
	unsigned known = m->p->operators->n;
	int number;

	if (m->budget && m->budget->operators >= NPS_BUDGET_OPERATORS)
		return -E2BIG;
	number = nps_operators__add(m->p->operators, name);
	if (number < 0)
		return number == -ENOSPC ? -E2BIG : number;
	if (m->budget)
		m->budget->operators += m->p->operators->n - known;
	return number;
}

/* The two phases of an operator. */
struct phases {
	struct nps_elf_function first, second;
};

struct operator_list {
	struct phases *v;
	size_t n;
};

static int list_add(const struct nps_elf_function *first, const struct nps_elf_function *second, void *arg)
{
	struct operator_list *list = arg;
	/* The allocation doubles: it is full if the number is a power of two. */
	bool full = !(list->n & (list->n - 1));
	struct phases *v = full ? realloc(list->v, (list->n ? 2 * list->n : 1) * sizeof(*v)) : list->v;

	if (!v)
		return -ENOMEM;
	list->v = v;
	v[list->n++] = (struct phases){ *first, *second };
	return 0;
}

static int add_entries(struct nps_probe_match *m, const struct phases *op)
{
	uint8_t arguments = m->p->shapes ? nps_op_arguments(op->second.name) : 0;
	unsigned before;
	int number, err = 0;

	if (!m->second && !arguments)
		return 0;
	if (nps_budget__spent(m->budget))
		return -ETIME;
	number = nps_probes__operator(m, op->second.name);
	if (number < 0)
		return number;
	if (m->second)
		err = add_phase(m, &op->second, NPS_PROBE_NN_EXPORT, number);
	before = m->file->n;
	if (!err && arguments)
		err = add_phase(m, &op->first, NPS_PROBE_NN_OPERANDS, number);
	if (!err && m->file->n > before)
		m->file->probes[before].arguments = arguments;
	return err;
}

static int add_ends(struct nps_probe_match *m, const struct phases *op)
{
	int number, err;

	if (nps_budget__spent(m->budget))
		return -ETIME;
	number = nps_probes__operator(m, op->second.name);
	if (number < 0)
		return number;
	err = add_phase_ends(m, &op->first, NPS_PROBE_NN_PHASE1_LEFT, (uint16_t)number);
	return err ? err : add_phase_ends(m, &op->second, NPS_PROBE_NN_PHASE2_LEFT, (uint16_t)number);
}

/*
 * The search for ends takes much longer than that for entries. Where half of what the process may cause at
 * once is not enough for it, there are only those ends that were found.
 */
static int collect_ends(struct nps_probe_match *m, const struct operator_list *list)
{
	int err = nps_exit_finder__new(m->elf, &m->exits);

	if (err == -EINVAL || err == -ENOTSUP)
		return 0;
	for (size_t i = 0; !err && i < list->n; i++)
		err = add_ends(m, &list->v[i]);
	nps_exit_finder__free(m->exits);
	m->exits = NULL;
	if (err == -ETIME && m->budget && m->budget->slice >= m->budget->capacity / 2)
		return 0;
	return err;
}

static int collect_operators(struct nps_probe_match *m)
{
	struct operator_list list = { NULL, 0 };
	int cut, err;

	if (m->p->level < 0)
		return 0;
	if (nps_bpf_loader__uprobe_row(m->p->k) == NPS_UPROBE_PERF)
		return -ENOTSUP;
	cut = err = nps_operators__find(m->elf, list_add, &list);
	if (err == -E2BIG) /* those that were found are probed */
		err = 0;
	for (size_t i = 0; !err && i < list.n; i++)
		err = add_entries(m, &list.v[i]);
	if (!err && m->p->level > 0)
		err = collect_ends(m, &list);
	free(list.v);
	return err ? err : cut;
}

bool nps_probes__wants_operators(const struct nps_probes *p)
{
	return p->shapes || (p->level > 0 && nps_bpf_loader__uprobe_row(p->k) != NPS_UPROBE_PERF);
}

int nps_probes__attach_operators(struct nps_probes *p, int fd, const char *path, bool second,
				 struct nps_budget *budget)
{
	struct nps_probe_match m = { .p = p, .budget = budget, .second = second };

	return nps_probes__attach_new(p, fd, path, &m, collect_operators);
}
