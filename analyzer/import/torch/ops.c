/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torch.op_range: operators, their call stacks, steps, and ranges of mstx. Threads write their records in
 * bursts, an operator's when it ends, so they are sorted: by start, outer ones first.
 */
#include "base/ext_sort.h"
#include "import/torch/framework.h"
#include "import/torch/records.h"

#include <errno.h>
#include <stdlib.h>

#define KIND 1
#define FIXED 58
#define STEP "ProfilerStep#"
#define MSTX (1ULL << 63) /* in keys: behind all operators */

enum field { NAME = 2, DTYPES = 3, SHAPES = 4, STACK = 8, MODULES = 9, EXTRA = 10 };

struct op {
	struct nps_sort_key order; /* start; ~end */
	uint64_t gtid;
	int64_t sequence, forward;
	uint32_t name, dtypes, shapes, chain, modules, extra;
};

struct ops {
	struct nps_framework *fw;
	struct nps_ext_sort sorter;
	struct nps_fw_memo lists; /* text with `;` -> id of the text with line ends */
	struct nps_fw_memo chains; /* stack -> id in `frame` */
	struct nps_vec text; /* one that is being made */
	uint32_t next_chain;
};

/* --- texts --- */

static int text_id(struct ops *o, const struct nps_fw_text *field, uint32_t *id)
{
	*id = NPS_NONE;
	if (!field->there)
		return 0;
	*id = nps_fw_memo__text(&o->fw->texts, o->fw->model->strings, field->text, field->len);
	return *id == NPS_NONE ? -ENOMEM : 0;
}

/* Lists have a line end behind each separator, as in the vendor's results. */
static int list_id(struct ops *o, const struct nps_fw_text *field, uint32_t *id)
{
	uint32_t *known;
	size_t used = 0;
	char *to;
	int err;

	*id = NPS_NONE;
	if (!field->len)
		return 0;
	known = nps_fw_memo__at(&o->lists, field->text, field->len);
	if (!known)
		return -ENOMEM;
	if (*known == NPS_NONE) {
		err = nps_vec__reserve(&o->text, 3 * (size_t)field->len);
		if (err)
			return err;
		to = o->text.data;
		for (uint32_t i = 0; i < field->len; i++) {
			to[used++] = field->text[i];
			if (field->text[i] == ';') {
				to[used++] = '\r';
				to[used++] = '\n';
			}
		}
		*known = nps_fw_intern(o->fw->model->strings, to, used);
	}
	*id = *known;
	return *id == NPS_NONE ? -ENOMEM : 0;
}

static int add_frames(struct ops *o, const char *text, size_t len, uint32_t chain)
{
	struct nps_model *m = o->fw->model;
	const char *end = text + len;
	uint32_t depth = 0;

	while (text < end) {
		const char *stop = memchr(text, ';', end - text);
		size_t part = (stop ? stop : end) - text, row;
		uint32_t id;
		int err;

		if (part) {
			id = nps_fw_memo__text(&o->fw->texts, m->strings, text, part);
			err = id == NPS_NONE ? -ENOMEM : nps_table__add(&m->frame.t, &row);
			if (err)
				return err;
			m->frame.id[row] = chain;
			m->frame.stack[row] = id;
			m->frame.depth[row] = depth++;
		}
		text += part + 1;
	}
	return 0;
}

static int chain_id(struct ops *o, const struct nps_fw_text *field, uint32_t *id)
{
	uint32_t *known;

	*id = NPS_NONE;
	if (!field->len)
		return 0;
	known = nps_fw_memo__at(&o->chains, field->text, field->len);
	if (!known)
		return -ENOMEM;
	if (*known != NPS_NONE) {
		*id = *known;
		return 0;
	}
	*id = *known = o->next_chain++;
	return add_frames(o, field->text, field->len, *id);
}

static bool begins_with(const struct nps_fw_text *field, const char *prefix)
{
	size_t len = strlen(prefix);

	return field->len >= len && !memcmp(field->text, prefix, len);
}

/* --- records --- */

static int read_op_texts(struct ops *o, const struct nps_fw_record *record, struct op *op)
{
	const struct nps_fw_text *fields = record->fields;
	int err = text_id(o, &fields[NAME], &op->name);

	if (err)
		return err;
	err = list_id(o, &fields[DTYPES], &op->dtypes);
	if (err)
		return err;
	err = list_id(o, &fields[SHAPES], &op->shapes);
	if (err)
		return err;
	err = chain_id(o, &fields[STACK], &op->chain);
	if (err)
		return err;
	err = fields[MODULES].len ? text_id(o, &fields[MODULES], &op->modules) : 0;
	if (err || !fields[EXTRA].len)
		return err;
	return text_id(o, &fields[EXTRA], &op->extra);
}

/* Decodes RECORD into *OP. 1, 0 if its times are impossible, or negative errno. */
static int read_op(struct ops *o, const struct nps_fw_record *record, struct op *op)
{
	const uint8_t *p = record->fixed;
	uint64_t start, end;
	int err;

	if (!nps_framework__ns(o->fw, nps_fw_i64(p), &start) ||
	    !nps_framework__ns(o->fw, nps_fw_i64(p + 8), &end) || end < start)
		return 0;
	op->order = (struct nps_sort_key){ start, ~end };
	if (begins_with(&record->fields[NAME], "mstx_"))
		op->order.high |= MSTX;
	op->sequence = nps_fw_i64(p + 16);
	op->gtid = nps_framework__gtid(o->fw, nps_fw_u64(p + 24), nps_fw_u64(p + 32));
	op->forward = nps_fw_i64(p + 48);
	err = read_op_texts(o, record, op);
	return err ? err : 1;
}

static int read_ops(struct ops *o)
{
	struct nps_fw_record record;
	struct nps_fw_file file;
	int err = nps_fw_file__open(&file, o->fw->model, o->fw->dirfd, "torch.op_range");

	if (err)
		return err == -ENOMEM ? err : 0;
	while (!err && nps_fw_file__typed(&file, KIND, FIXED, &record)) {
		struct op op = { .modules = NPS_NONE, .extra = NPS_NONE }, *to;
		int got = read_op(o, &record, &op);

		if (got > 0) {
			to = nps_ext_sort__add(&o->sorter);
			err = o->sorter.err;
			if (to)
				*to = op;
		} else {
			err = got;
			file.damaged += !got;
		}
	}
	nps_fw_file__close(&file);
	return err;
}

/* --- rows --- */

/* An operator ProfilerStep#12 is step 12. */
static int add_step(struct nps_model *m, uint32_t name, uint64_t start, uint64_t end)
{
	const char *text = nps_model__text(m, name);
	char *stop;
	size_t row;
	long long id;
	int err;

	if (strncmp(text, STEP, sizeof(STEP) - 1))
		return 0;
	text += sizeof(STEP) - 1;
	errno = 0;
	id = strtoll(text, &stop, 10);
	if (*text < '0' || *text > '9' || *stop || errno)
		return 0;
	err = nps_table__add(&m->step.t, &row);
	if (err)
		return err;
	m->step.id[row] = id;
	m->step.start[row] = start;
	m->step.end[row] = end;
	return 0;
}

static int framework_add_op(struct nps_framework *fw, const struct op *op)
{
	struct nps_torch_table *t = &fw->model->torch;
	bool mstx = op->order.high & MSTX;
	uint64_t start = op->order.high & ~MSTX, end = ~op->order.low;
	size_t row;
	int err = nps_torch_rows__add(fw->model, start, end, op->gtid, op->name,
				      mstx ? NPS_API_TORCH_MSTX : NPS_API_TORCH_OP, &row);

	if (err)
		return err;
	t->sequence[row] = op->sequence;
	t->forward_tid[row] = op->forward;
	t->input_types[row] = op->dtypes;
	t->input_shapes[row] = op->shapes;
	t->callchain[row] = op->chain == NPS_NONE ? NPS_NULL : (int64_t)op->chain;
	t->modules[row] = op->modules;
	t->extra[row] = op->extra;
	if (mstx)
		return 0;
	fw->end_ops = row + 1;
	return add_step(fw->model, op->name, start, end);
}

int nps_framework__ops(struct nps_framework *fw)
{
	struct ops o = { .fw = fw };
	const void *row;
	int err;

	nps_ext_sort__init(&o.sorter, fw->model->tmpfd, sizeof(struct op));
	nps_fw_memo__init(&o.lists, fw->model->tmpfd);
	nps_fw_memo__init(&o.chains, fw->model->tmpfd);
	nps_vec__init(&o.text, fw->model->tmpfd, 1);
	fw->first_op = fw->end_ops = fw->model->torch.t.len;
	err = read_ops(&o);
	nps_fw_memo__free(&o.lists);
	nps_fw_memo__free(&o.chains);
	nps_vec__free(&o.text);
	err = err ? err : nps_ext_sort__finish(&o.sorter);
	while (!err && (row = nps_ext_sort__next(&o.sorter)))
		err = framework_add_op(fw, row);
	err = err ? err : o.sorter.err;
	nps_ext_sort__free(&o.sorter);
	return err;
}
