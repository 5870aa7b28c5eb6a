/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of PyTorch: operators, nodes of the backward pass, sequence numbers, labels, memory of the NPU. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "attach/exit_points.h"
#include "attach/label_twin.h"
#include "attach/operators.h"
#include "attach/probe_address.h"
#include "attach/probes_impl.h"
#include "attach/torch_inputs.h"
#include "attach/torch_names.h"
#include "core/log.h"
#include "core/work_budget.h"

#define NAME_MAX_BYTES 256 /* of an operator */
#define FUNCTIONS_MAX 16384
/* Of torch_npu: not exported, so it is known only where the symbol table was not stripped. */
#define REPORT_MEMORY "_ZN9torch_npu8profiler29reportMemoryDataToNpuProfilerERKNS0_11MemoryUsageE"

static bool is_torch_library(const char *basename, const char *soname)
{
	size_t n = strlen(soname);

	return !strncmp(basename, soname, n) && (!basename[n] || basename[n] == '.' || basename[n] == ' ');
}

bool nps_probes__is_torch(const char *basename)
{
	return is_torch_library(basename, "libtorch_cpu.so");
}

bool nps_probes__is_torch_npu(const char *basename)
{
	return is_torch_library(basename, "libtorch_npu.so");
}

/*
 * Functions of the libraries by the beginning of their mangled names: their parameters differ between
 * versions.
 */
static const struct {
	const char *prefix;
	uint16_t id;
} functions[] = {
	{ "_ZN5torch8autograd6Engine17evaluate_functionE", NPS_PROBE_TORCH_NODE },
	{ "_ZN5torch8autograd6Engine7executeE", NPS_PROBE_TORCH_BACKWARD },
	{ "_ZN2at15sequence_number17get_and_incrementEv", NPS_PROBE_TORCH_SEQUENCE },
	{ "_ZN2at4_ops", NPS_PROBE_TORCH_OP },
	{ "_ZN5torch8autograd8profiler25record_function_enter_newE", NPS_PROBE_TORCH_LABEL },
	{ "_ZN2at14RecordFunctionC1ENS_11RecordScopeE", NPS_PROBE_TORCH_RECORD },
	{ "_ZN2at14RecordFunctionC2ENS_11RecordScopeE", NPS_PROBE_TORCH_RECORD },
	{ "_ZN2at14RecordFunction3endEv", NPS_PROBE_TORCH_RECORD_END },
	/* RunOpApi, RunOpApiV2, RunOpApiV3: which of them exist depends on the version. */
	{ "_ZN6at_npu6native9OpCommand8RunOpApiE", NPS_PROBE_TORCH_ENQUEUE },
	{ "_ZN6at_npu6native9OpCommand10RunOpApiV", NPS_PROBE_TORCH_ENQUEUE },
};

/* Row of the catalogue for a function, NPS_PROBE_NONE: it is not probed. */
static uint16_t function_row(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (!strncmp(name, functions[i].prefix, strlen(functions[i].prefix)))
			return functions[i].id;
	return NPS_PROBE_NONE;
}

struct torch_match {
	struct nps_probe_match *m;
	struct nps_torch_names *names;
	struct nps_elf_function label; /* record_function_enter_new(), name NULL: it was not found */
	unsigned left_out; /* functions whose ends are not certain: they are not probed */
	unsigned n;
};

static int torch_number(struct torch_match *t, const struct nps_elf_function *fn,
			enum nps_torch_result *result)
{
	char name[NAME_MAX_BYTES];
	int err = nps_torch_names__of(t->names, fn->name, name, sizeof(name), result);

	return err ? err : nps_probes__operator(t->m, name);
}

/* Are the arguments of operator FN read? The BPF programs get to know how they are passed. */
static bool inputs_wanted(struct torch_match *t, const struct nps_elf_function *fn, uint16_t number,
			  enum nps_torch_result result)
{
	int map = nps_bpf_loader__op_inputs_fd(t->m->p->k);
	uint32_t key = NPS_OP_INPUTS_KEY(number, t->m->torch->tensors);
	struct nps_op_inputs inputs, there;

	if (map < 0 || nps_torch_inputs__of(fn->name, result, nps_elf__machine(t->m->elf),
					    t->m->torch->tensors, &inputs))
		return false;
	if (!bpf_map_update_elem(map, &key, &inputs, BPF_NOEXIST))
		return true;
	/* Another library of that version has it. */
	return !bpf_map_lookup_elem(map, &key, &there) && !memcmp(&there, &inputs, sizeof(inputs));
}

/*
 * Probes a function at its entry and its ends; at neither if its ends are not certain. INPUTS: all its
 * arguments are read.
 */
static int add_function(struct torch_match *t, const struct nps_elf_function *fn, uint16_t id,
			uint16_t number, bool inputs)
{
	const struct nps_probe_row *row = inputs ? NULL : nps_probe_rows__get(id);
	struct nps_probe_match *m = t->m;
	struct nps_probe_address address;
	unsigned ends = 0;
	int err;

	if (nps_probed_file__has_ends(m->file, id, fn->offset))
		return 0; /* an alias */
	if (!m->exits) {
		t->left_out++;
		return 0;
	}
	err = nps_probes__add_ends(m, fn, id, number, &ends);
	if (err)
		return err;
	if (!ends) {
		t->left_out++;
		return 0;
	}
	address = nps_probe_address__find(m->elf, fn, row, true);
	err = nps_probed_file__add(m->file, id, false, &address);
	if (err)
		return err;
	m->file->probes[m->file->n - 1].number = number;
	m->file->probes[m->file->n - 1].ends = (uint8_t)ends;
	if (id == NPS_PROBE_TORCH_NODE)
		m->file->probes[m->file->n - 1].arguments = m->torch->sequence_at;
	if (inputs)
		m->file->probes[m->file->n - 1].arguments = (uint8_t)m->torch->tensors;
	t->n++;
	return 0;
}

/* Probes the entry of a function, unless it is an alias of one. */
static int add_entry(struct torch_match *t, const struct nps_elf_function *fn, uint16_t id)
{
	struct nps_probe_address address =
		nps_probe_address__find(t->m->elf, fn, nps_probe_rows__get(id), false);

	if (nps_probed_file__has_at(t->m->file, &address))
		return 0;
	if (id == NPS_PROBE_TORCH_LABEL)
		t->label = *fn;
	t->n++;
	return nps_probed_file__add(t->m->file, id, false, &address);
}

static int match_torch(const struct nps_elf_function *fn, void *arg)
{
	struct torch_match *t = arg;
	enum nps_torch_result result = NPS_TORCH_RESULT_UNKNOWN;
	uint16_t id = function_row(fn->name);
	struct nps_probe_address address;
	int number = 0;

	if (id == NPS_PROBE_NONE || (id == NPS_PROBE_TORCH_SEQUENCE && !t->m->torch->numbers))
		return 0;
	if (nps_budget__spent(t->m->budget))
		return -ETIME;
	if (t->n >= FUNCTIONS_MAX)
		return -E2BIG;
	if (id == NPS_PROBE_TORCH_ENQUEUE || nps_probe_rows__is_label(nps_probe_rows__get(id)))
		return add_entry(t, fn, id);
	if (id == NPS_PROBE_TORCH_SEQUENCE) { /* it throws nothing, and its result is wanted */
		if (nps_probed_file__has(t->m->file, id))
			return 0;
		address = nps_probe_address__find(t->m->elf, fn, nps_probe_rows__get(id), true);
		return nps_probed_file__add(t->m->file, id, true, &address);
	}
	if (id == NPS_PROBE_TORCH_OP) {
		number = torch_number(t, fn, &result);
		if (number == -ENOENT || number == -ENAMETOOLONG)
			return 0; /* not the call of an operator */
		if (number < 0)
			return number;
	}
	return add_function(t, fn, id, (uint16_t)number,
			    id == NPS_PROBE_TORCH_OP && inputs_wanted(t, fn, (uint16_t)number, result));
}

/* record_function() of PyTorch before 2.0 calls a function that has no symbol. */
static int add_label_twin(struct torch_match *t)
{
	struct nps_elf_function label = t->label, twin;
	int err = -ENOENT;

	if (t->m->torch->major < 2 && label.name)
		err = nps_label_twin__find(t->m->elf, &label, &twin);
	if (err == -ENOMEM || err == -ETIME)
		return err;
	if (err)
		return 0;
	nps_debug("labels of PyTorch before 2.0 begin at %#llx", (unsigned long long)twin.offset);
	return add_entry(t, &twin, NPS_PROBE_TORCH_LABEL);
}

static int torch_operators_collect(struct nps_probe_match *m)
{
	struct torch_match t = { .m = m };
	int no_exits, err;

	if (nps_bpf_loader__uprobe_row(m->p->k) == NPS_UPROBE_PERF)
		return -ENOTSUP;
	no_exits = nps_exit_finder__new(m->elf, &m->exits);
	if (no_exits == -ENOMEM || no_exits == -ETIME)
		return no_exits;
	err = nps_torch_names__new(m->elf, &t.names);
	if (err)
		goto out;
	err = nps_elf__for_each_function(m->elf, false, match_torch, &t);
	err = err ? err : add_label_twin(&t);
out:
	nps_torch_names__free(t.names);
	nps_exit_finder__free(m->exits);
	m->exits = NULL;
	if (t.left_out)
		nps_debug("%u of PyTorch's functions are not probed: their ends are not certain", t.left_out);
	return err || !t.left_out ? err : no_exits;
}

/* 0 also where it is not found, which is reported in what the caller passed. */
static int torch_memory_collect(struct nps_probe_match *m)
{
	const struct nps_probe_row *row = nps_probe_rows__get(NPS_PROBE_TORCH_MEMORY);
	struct nps_probe_address address;
	struct nps_elf_function fn;
	int err;

	if (nps_bpf_loader__is_legacy(m->p->k)) {
		m->torch->memory_missing = -ENOTSUP;
		return 0;
	}
	err = nps_elf__find(m->elf, REPORT_MEMORY, true, &fn);
	if (err == -ETIME || err == -ENOMEM)
		return err;
	if (err) {
		m->torch->memory_missing = err;
		return 0;
	}
	address = nps_probe_address__find(m->elf, &fn, row, false);
	return nps_probed_file__add(m->file, NPS_PROBE_TORCH_MEMORY, false, &address);
}

static int collect_torch(struct nps_probe_match *m)
{
	int err = m->torch->memory ? torch_memory_collect(m) : 0;
	unsigned before = m->file->n;

	if (err || !m->torch->operators)
		return err;
	err = torch_operators_collect(m);
	if (!err || err == -ENOMEM || err == -ETIME || !before)
		return err;
	m->file->n = before; /* memory can be recorded without operators */
	m->torch->operators_missing = err;
	return 0;
}

int nps_probes__attach_torch(struct nps_probes *p, int fd, const char *path, struct nps_torch_probes *what,
			     struct nps_budget *budget)
{
	struct nps_probe_match m = { .p = p, .budget = budget, .torch = what };

	return nps_probes__attach_new(p, fd, path, &m, collect_torch);
}
