/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/input_pairs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS 16 /* that slot 3 of an operator has room for */
#define THREADS 4096 /* with tensors of an operator that is not known yet; of two in one slot one is lost */
#define SEPARATOR ";\r\n"
#define TEXT_BYTES 4096 /* more than ARGUMENTS tensors of eight dimensions, or names of types, need */

struct input_tensor {
	uint8_t dims, type;
	uint32_t size[NPS_TENSOR_DIMS_MAX];
};

struct nps_input_record {
	struct nps_sort_key order; /* start; tid */
	uint64_t start; /* as it was recorded */
	uint8_t argument;
	struct input_tensor tensor;
};

/* Tensors of the operator that the thread has entered last. */
struct nps_pending_inputs {
	uint32_t tid;
	uint32_t there; /* bit i: tensor[i] */
	uint64_t start;
	struct input_tensor tensor[ARGUMENTS];
};

/* --- records --- */

static bool is_tensor(const struct nps_event *ev)
{
	return ev->input_head.argument < ARGUMENTS && ev->input_head.dims <= NPS_TENSOR_DIMS_MAX;
}

static int records_sort(struct nps_input_pairs *p, const struct nps_proc *proc)
{
	for (size_t i = 0; i < proc->inputs.len; i++) {
		const struct nps_event *ev = &NPS_AT(&proc->inputs, struct nps_event, i);
		struct nps_input_record *record;

		if (!(i & (NPS_TABLE_HOT - 1)))
			nps_vec__cool(&proc->inputs);
		if (!is_tensor(ev))
			continue;
		record = nps_ext_sort__add(&p->sorter);
		if (!record)
			return p->sorter.err;
		*record = (struct nps_input_record){
			.order = { nps_session__real(p->rec, ev->start), ev->tid },
			.start = ev->start,
			.argument = ev->input_head.argument,
			.tensor = { .dims = ev->input_head.dims, .type = ev->input_head.type },
		};
		memcpy(record->tensor.size, ev->input.size, sizeof(record->tensor.size));
	}
	return nps_ext_sort__finish(&p->sorter);
}

int nps_input_pairs__new(struct nps_input_pairs *pairs, struct nps_model *model,
			 const struct nps_session *rec, const struct nps_proc *proc)
{
	int err;

	*pairs = (struct nps_input_pairs){ .m = model, .rec = rec };
	nps_ext_sort__init(&pairs->sorter, model->tmpfd, sizeof(struct nps_input_record));
	if (!proc->inputs.len)
		return 0;
	pairs->threads = calloc(THREADS, sizeof(*pairs->threads));
	if (!pairs->threads)
		return -ENOMEM;
	err = records_sort(pairs, proc);
	if (err)
		return err;
	pairs->next = nps_ext_sort__next(&pairs->sorter);
	return pairs->sorter.err;
}

void nps_input_pairs__free(struct nps_input_pairs *pairs)
{
	nps_ext_sort__free(&pairs->sorter);
	free(pairs->threads);
}

static struct nps_pending_inputs *pending_of(struct nps_input_pairs *p, uint32_t tid)
{
	return &p->threads[tid % THREADS];
}

/* Keeps the tensors that were recorded up to TIME. */
static void records_read(struct nps_input_pairs *p, uint64_t time)
{
	for (; p->next && p->next->order.high <= time; p->next = nps_ext_sort__next(&p->sorter)) {
		const struct nps_input_record *record = p->next;
		struct nps_pending_inputs *pending = pending_of(p, (uint32_t)record->order.low);

		if (pending->tid != record->order.low || pending->start != record->start)
			*pending = (struct nps_pending_inputs){ .tid = (uint32_t)record->order.low,
								.start = record->start };
		pending->tensor[record->argument] = record->tensor;
		pending->there |= 1U << record->argument;
	}
}

/* --- texts --- */

/* Names of c10::ScalarType, as caffe2::TypeMeta has them. */
static const char *type_name(uint8_t type)
{
	static const char *const names[] = {
		"unsigned char",
		"signed char",
		"short int",
		"int",
		"long int",
		"c10::Half",
		"float",
		"double",
		"c10::complex<c10::Half>",
		"c10::complex<float>",
		"c10::complex<double>",
		"bool",
		"c10::qint8",
		"c10::quint8",
		"c10::qint32",
		"c10::BFloat16",
		"c10::quint4x2",
		"c10::quint2x4",
		"c10::bits1x8",
		"c10::bits2x4",
		"c10::bits4x2",
		"c10::bits8",
		"c10::bits16",
		"c10::Float8_e5m2",
		"c10::Float8_e4m3fn",
		"c10::Float8_e5m2fnuz",
		"c10::Float8_e4m3fnuz",
		"short unsigned int",
		"unsigned int",
		"long unsigned int",
	};

	return type < NPS_ARRAY_SIZE(names) ? names[type] : NULL;
}

static const char *what_name(enum nps_op_input what)
{
	switch (what) {
	case NPS_OP_INPUT_SCALAR:
		return "Scalar";
	case NPS_OP_INPUT_SCALARS:
		return "ScalarList";
	case NPS_OP_INPUT_TENSORS:
		return "TensorList";
	case NPS_OP_INPUT_NONE:
		return "None";
	default:
		return NULL;
	}
}

struct argument_text {
	char bytes[TEXT_BYTES];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void argument_text_print(struct argument_text *t,
								      const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(t->bytes + t->len, sizeof(t->bytes) - t->len, format, ap);
	va_end(ap);
	if (n > 0)
		t->len = NPS_MIN(t->len + (size_t)n, sizeof(t->bytes) - 1);
}

/* Appends argument I. False: it is not known. */
static bool argument_append(struct argument_text *shapes, struct argument_text *types,
			    const struct nps_pending_inputs *pending, unsigned i, enum nps_op_input what)
{
	const char *name = what_name(what);

	if (what == NPS_OP_INPUT_TENSOR)
		name = pending && pending->there >> i & 1 ? type_name(pending->tensor[i].type) : NULL;
	if (!name)
		return false;
	argument_text_print(shapes, "%s", i ? SEPARATOR : "");
	argument_text_print(types, "%s%s", i ? SEPARATOR : "", name);
	if (what != NPS_OP_INPUT_TENSOR)
		return true;
	for (unsigned d = 0; d < pending->tensor[i].dims; d++)
		argument_text_print(shapes, "%s%u", d ? "," : "", pending->tensor[i].size[d]);
	return true;
}

int nps_input_pairs__texts(struct nps_input_pairs *pairs, const struct nps_input_call *call, uint32_t *shapes,
			   uint32_t *types)
{
	struct argument_text shape_text = { .len = 0 }, type_text = { .len = 0 };
	const struct nps_pending_inputs *pending = NULL;
	int err = 0;

	*shapes = *types = NPS_NONE;
	if (!call->inputs || !call->what)
		return 0;
	if (pairs->threads) {
		records_read(pairs, call->start);
		if (pairs->sorter.err)
			return pairs->sorter.err;
		pending = pending_of(pairs, call->tid);
		if (pending->tid != call->tid || pending->start != call->inputs)
			pending = NULL;
	}
	for (unsigned i = 0; i < ARGUMENTS && call->what >> 4 * i; i++)
		if (!argument_append(&shape_text, &type_text, pending, i, call->what >> 4 * i & 0xf))
			return 0;
	if (shape_text.len) /* the vendor's importer has none for an only argument without sizes */
		*shapes = nps_model__intern(pairs->m, shape_text.bytes, &err);
	*types = nps_model__intern(pairs->m, type_text.bytes, &err);
	return err;
}
