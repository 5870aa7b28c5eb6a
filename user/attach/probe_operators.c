/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of aclnn operators, one by one. */
#include <errno.h>

#include "attach/op_arguments.h"
#include "attach/operators.h"
#include "attach/probe_address.h"
#include "attach/probes_impl.h"
#include "core/work_budget.h"

/* Attaches to a phase of operator NUMBER. */
static int add_phase(struct nps_match *m, const struct nps_elf_function *fn, uint16_t id, int number)
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

static int match_operator(const struct nps_elf_function *first, const struct nps_elf_function *second,
			  void *arg)
{
	struct nps_match *m = arg;
	uint8_t arguments = m->p->shapes ? nps_op_arguments(second->name) : 0;
	unsigned before, known;
	int number, err = 0;

	if (!m->second && !arguments)
		return 0;
	if (nps_budget__spent(m->budget))
		return -ETIME;
	known = m->p->operators->n;
	if (m->budget && m->budget->operators >= NPS_BUDGET_OPERATORS)
		return -E2BIG;
	number = nps_operators__add(m->p->operators, second->name);
	if (number < 0)
		return number == -ENOSPC ? -E2BIG : number;
	if (m->budget)
		m->budget->operators += m->p->operators->n - known;
	if (m->second)
		err = add_phase(m, second, NPS_PROBE_NN_EXPORT, number);
	before = m->file->n;
	if (!err && arguments)
		err = add_phase(m, first, NPS_PROBE_NN_OPERANDS, number);
	if (!err && m->file->n > before)
		m->file->probes[before].arguments = arguments;
	return err;
}

static int collect_operators(struct nps_match *m)
{
	if (m->p->level < 0)
		return 0;
	if (nps_bpf_loader__uprobe_row(m->p->k) == NPS_UPROBE_PERF)
		return -ENOTSUP;
	return nps_operators__find(m->elf, match_operator, m);
}

int nps_probes__attach_operators(struct nps_probes *p, int fd, const char *path, bool second,
				 struct nps_budget *budget)
{
	struct nps_match m = { .p = p, .budget = budget, .second = second };

	return nps_probes__attach_new(p, fd, path, &m, collect_operators);
}
