/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/torch_ops.h"

#include "base/ext_sort.h"
#include "base/index.h"
#include "import/common/torch_owner.h"
#include "import/common/torch_rows.h"
#include "import/session/input_pairs.h"
#include "stack/demangle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NODE "autograd::engine::evaluate_function: " /* as torch.profiler names it, before the node's name */
#define GENERATED "torch::autograd::generated::" /* what the nodes of one operator each are in */
#define BACKWARD "autograd::engine::execute"
#define SEVERAL (NPS_NONE - 1) /* threads that got one sequence number */

struct torch_call {
	struct nps_sort_key order; /* start; ~end */
	uint64_t slots[4];
	uint32_t tid;
	uint16_t probe;
	uint8_t ending; /* enum nps_ending */
};

struct torch_fill {
	struct nps_model *m;
	const struct nps_session *rec;
	const struct nps_proc *proc;
	struct nps_ext_sort sorter;
	struct nps_torch_owner owner;
	struct nps_input_pairs inputs;
	struct nps_vec is_op; /* uint8_t: whether the row is an operator's, from owner.first on */
	struct nps_map names; /* probe << 32 | id of a text -> name of the row */
	struct nps_index threads; /* sequence number -> thread that got it, or SEVERAL */
};

bool nps_torch_ops__is_probe(uint32_t probe)
{
	return probe == NPS_PROBE_TORCH_OP || probe == NPS_PROBE_TORCH_NODE ||
	       probe == NPS_PROBE_TORCH_SEQUENCE || probe == NPS_PROBE_TORCH_BACKWARD ||
	       probe == NPS_PROBE_TORCH_LABEL;
}

/* --- names, as torch.profiler shows them --- */

static uint32_t node_name(struct nps_model *m, const char *type, int *err)
{
	char symbol[NPS_TEXT_MAX + 8], name[NPS_DEMANGLED_MAX], label[sizeof(NODE) + NPS_DEMANGLED_MAX];
	const char *shown = name;

	snprintf(symbol, sizeof(symbol), "_Z%s", type);
	nps_demangle(symbol, name, sizeof(name));
	if (!strncmp(name, GENERATED, sizeof(GENERATED) - 1))
		shown += sizeof(GENERATED) - 1;
	else if (!strcmp(name, symbol))
		shown += 2; /* it is no C++ name */
	snprintf(label, sizeof(label), NODE "%s", shown);
	return nps_model__intern(m, label, err);
}

/* "aten::add" of "aten::add.Tensor". */
static uint32_t op_name(struct nps_model *m, const char *full, int *err)
{
	char name[NPS_TEXT_MAX + 8];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(full, "."), full);
	return nps_model__intern(m, name, err);
}

static uint32_t call_name(struct torch_fill *f, const struct torch_call *call, int *err)
{
	bool node = call->probe == NPS_PROBE_TORCH_NODE;
	uint32_t text = nps_session__text(f->rec, call->slots[0]), name;
	uint64_t key = (uint64_t)call->probe << 32 | text;

	if (call->probe == NPS_PROBE_TORCH_BACKWARD)
		return nps_model__intern(f->m, BACKWARD, err);
	if (call->probe == NPS_PROBE_TORCH_LABEL && text != NPS_NONE)
		return text; /* the model's texts are those of the session */
	name = nps_map__get(&f->names, key);
	if (name != NPS_NONE)
		return name;
	if (text == NPS_NONE)
		name = nps_model__intern(f->m, node ? NODE "unknown" : "unknown", err);
	else if (node)
		name = node_name(f->m, nps_model__text(f->m, text), err);
	else
		name = op_name(f->m, nps_model__text(f->m, text), err);
	if (!*err)
		*err = nps_map__put(&f->names, key, name);
	return name;
}

/* --- calls, by start --- */

/* Nodes that no operator made have the largest ones. */
static bool call_has_number(uint16_t probe, uint64_t number)
{
	return probe == NPS_PROBE_TORCH_SEQUENCE && number <= INT64_MAX;
}

static int calls_sort(struct torch_fill *f)
{
	uint64_t low = UINT64_MAX, high = 0, numbers = 0;

	for (size_t i = 0; i < f->proc->torch.len; i++) {
		const struct nps_event *ev = &NPS_AT(&f->proc->torch, struct nps_event, i);
		struct torch_call *call = nps_ext_sort__add(&f->sorter);

		if (!call)
			return f->sorter.err;
		if (!(i & (NPS_TABLE_HOT - 1)))
			nps_vec__cool(&f->proc->torch);
		if (call_has_number(ev->probe, ev->call.slot[0])) {
			low = NPS_MIN(low, ev->call.slot[0]);
			high = NPS_MAX(high, ev->call.slot[0]);
			numbers++;
		}
		*call = (struct torch_call){
			.order = { nps_session__real(f->rec, ev->start),
				   ~nps_session__real(f->rec, ev->start + ev->dur) },
			.slots = { ev->call.slot[0], ev->call.slot[1], ev->call.slot[2], ev->call.slot[3] },
			.tid = ev->tid,
			.probe = ev->probe,
			.ending = ev->flags & NPS_F_UNFINISHED ? NPS_ENDING_UNFINISHED
				  : ev->flags & NPS_F_UNWOUND  ? NPS_ENDING_UNWOUND
							       : NPS_ENDING_SEEN,
		};
	}
	nps_index__init(&f->threads, f->m->tmpfd, numbers ? low : 0, high, numbers);
	return nps_ext_sort__finish(&f->sorter);
}

/* The innermost row of the call's thread when it began, NPS_NONE if there is none. */
static int row_around(struct torch_fill *f, const struct torch_call *call, uint32_t *row)
{
	f->owner.end = f->m->torch.t.len;
	return nps_torch_owner__at(&f->owner, nps_proc__gtid(f->proc, call->tid), call->order.high, row);
}

/*
 * The operator that is open innermost makes the node of this number. Where it makes several its own number is
 * the first, as torch.profiler has it.
 */
static int sequence_add(struct torch_fill *f, const struct torch_call *call)
{
	uint64_t number = call->slots[0];
	uint32_t row, thread;
	int err = row_around(f, call, &row);

	if (err || !call_has_number(call->probe, number))
		return err;
	if (row != NPS_NONE && NPS_AT(&f->is_op, uint8_t, row - f->owner.first) &&
	    f->m->torch.sequence[row] == NPS_NULL)
		f->m->torch.sequence[row] = (int64_t)number;
	thread = nps_index__get(&f->threads, number);
	return nps_index__put(&f->threads, number,
			      thread == NPS_NONE || thread == call->tid ? call->tid : SEVERAL);
}

/* What was left, and observed late, ends no later than what is around it. */
static int end_of_unwound(struct torch_fill *f, const struct torch_call *call, uint64_t *end)
{
	uint32_t around;
	int err = call->ending == NPS_ENDING_UNWOUND ? row_around(f, call, &around) : 0;

	if (!err && call->ending == NPS_ENDING_UNWOUND && around != NPS_NONE)
		*end = NPS_MIN(*end, f->m->torch.end[around]);
	return err;
}

/* The Python stack when an operator began, a row of the session's stacks, which is its call chain's id. */
static int64_t call_chain(const struct torch_fill *f, const struct torch_call *call)
{
	uint32_t stack = NPS_NONE;

	if ((call->probe == NPS_PROBE_TORCH_OP || call->probe == NPS_PROBE_TORCH_LABEL) && call->slots[1])
		stack = nps_map__get(&f->rec->python.stack_of, call->slots[1]);
	return stack == NPS_NONE ? NPS_NULL : (int64_t)stack;
}

/* Shapes and data types of an operator's arguments. */
static int inputs_add(struct torch_fill *f, const struct torch_call *call, size_t row)
{
	struct nps_input_call operator= {
		.tid = call->tid, .start = call->order.high, .inputs = call->slots[2], .what = call->slots[3]
	};
	struct nps_torch_table *t = &f->m->torch;

	return nps_input_pairs__texts(&f->inputs, &operator, & t->input_shapes[row], &t->input_types[row]);
}

static int call_add(struct torch_fill *f, const struct torch_call *call)
{
	struct nps_torch_table *t = &f->m->torch;
	uint64_t end = ~call->order.low;
	uint32_t thread, name;
	uint8_t *is_op;
	size_t row;
	int err = 0;

	if (call->probe == NPS_PROBE_TORCH_SEQUENCE)
		return sequence_add(f, call);
	name = call_name(f, call, &err);
	if (err)
		return err;
	err = end_of_unwound(f, call, &end);
	if (err)
		return err;
	err = nps_torch_rows__add(f->m, call->order.high, end, nps_proc__gtid(f->proc, call->tid), name,
				  NPS_API_TORCH_OP, &row);
	if (err)
		return err;
	is_op = nps_vec__push(&f->is_op);
	if (!is_op)
		return -errno;
	*is_op = call->probe == NPS_PROBE_TORCH_OP;
	t->ending[row] = call->ending;
	t->label[row] = call->probe == NPS_PROBE_TORCH_LABEL;
	t->callchain[row] = call_chain(f, call);
	if (call->probe == NPS_PROBE_TORCH_OP)
		return inputs_add(f, call, row);
	if (call->probe != NPS_PROBE_TORCH_NODE)
		return 0;
	thread = call->slots[1] > INT64_MAX ? NPS_NONE : nps_index__get(&f->threads, call->slots[1]);
	if (thread == NPS_NONE || thread == SEVERAL)
		return 0;
	t->sequence[row] = (int64_t)call->slots[1];
	t->forward_tid[row] = thread;
	return 0;
}

int nps_torch_ops__fill(struct nps_model *model, const struct nps_session *rec, const struct nps_proc *proc)
{
	struct torch_fill f = { .m = model, .rec = rec, .proc = proc };
	const struct torch_call *call;
	size_t done = 0;
	int err;

	if (!proc->torch.len)
		return 0;
	nps_ext_sort__init(&f.sorter, model->tmpfd, sizeof(struct torch_call));
	nps_vec__init(&f.is_op, model->tmpfd, sizeof(uint8_t));
	nps_index__init(&f.threads, model->tmpfd, 0, 0, 0);
	nps_torch_owner__init(&f.owner, model, model->torch.t.len, model->torch.t.len);
	err = nps_input_pairs__new(&f.inputs, model, rec, proc);
	err = err ? err : calls_sort(&f);
	while (!err && (call = nps_ext_sort__next(&f.sorter))) {
		err = call_add(&f, call);
		if (++done & (NPS_TABLE_HOT - 1))
			continue;
		nps_table__cool(&model->torch.t);
		nps_vec__cool(&f.is_op);
		nps_index__cool(&f.threads);
	}
	err = err ? err : f.sorter.err;
	nps_ext_sort__free(&f.sorter);
	nps_torch_owner__free(&f.owner);
	nps_input_pairs__free(&f.inputs);
	nps_vec__free(&f.is_op);
	nps_map__free(&f.names);
	nps_index__free(&f.threads);
	return err;
}
