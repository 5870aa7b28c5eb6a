/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows from several rows of a database: names of tasks, operators of calls, numbers of the queue. */
#include "import/ascend_db/import_db.h"

#include <errno.h>
#include <string.h>

#define FIRST_TORCH_LINK (5U << 28) /* newer torch_npu adds it to its own numbers (outputs 4.5) */

/* --- tasks --- */

/* What the host calls a task, what the device calls it, and its class where no other table decides it. */
static const struct type {
	const char *host, *device;
	enum nps_task_class class;
} types[] = {
	{ "AI_CORE", "AI_CORE", NPS_CLASS_PARENT },
	{ "AI_VECTOR_CORE", "AI_CORE", NPS_CLASS_PARENT },
	{ "AIV_SQE", "AI_CORE", NPS_CLASS_PARENT },
	{ "KERNEL_AICORE", "AI_CORE", NPS_CLASS_PARENT },
	{ "KERNEL_AIVEC", "AI_CORE", NPS_CLASS_PARENT },
	{ "MIX_AIC", "MIX_AIC", NPS_CLASS_PARENT },
	{ "MIX_AIV", "MIX_AIV", NPS_CLASS_PARENT },
	{ "FFTS_PLUS", "FFTS_PLUS", NPS_CLASS_PARENT },
	{ "EVENT_RECORD", "EVENT_RECORD_SQE", NPS_CLASS_EVENT },
	{ "EVENT_WAIT", "EVENT_WAIT_SQE", NPS_CLASS_EVENT },
	{ "PROFILING_ENABLE", "PLACE_HOLDER_SQE", NPS_CLASS_OTHER },
	{ "PROFILING_DISABLE", "PLACE_HOLDER_SQE", NPS_CLASS_OTHER },
	{ "STARS_COMMON", "DSA_SQE", NPS_CLASS_OTHER },
};

/* Types that were met, by text: there are few, and rows are many. */
struct known_type {
	uint32_t text, device; /* texts */
	uint8_t class;
};

struct types {
	struct nps_db_import *in;
	struct known_type met[64];
	unsigned int n;
};

static struct known_type type_classify(struct nps_db_import *in, uint32_t text)
{
	const char *name = nps_model__text(in->model, text);

	for (size_t i = 0; i < NPS_ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].host, name))
			return (struct known_type){ text,
						    nps_strings__addz(in->model->strings, types[i].device),
						    types[i].class };
	return (struct known_type){ text, text, NPS_CLASS_OTHER };
}

static struct known_type type_lookup(struct types *t, uint32_t text)
{
	for (unsigned int i = 0; i < t->n; i++)
		if (t->met[i].text == text)
			return t->met[i];
	t->n += t->n < NPS_ARRAY_SIZE(t->met);
	return t->met[t->n - 1] = type_classify(t->in, text);
}

static bool is_meaningful(const struct nps_model *model, uint32_t text)
{
	return text != NPS_NONE && text != model->na;
}

static int complete_kernels(struct nps_db_import *in, struct types *t)
{
	struct nps_model *model = in->model;
	const struct nps_compute_table *compute = &model->compute;
	struct nps_task_table *task = &model->task;
	struct nps_pace pace = { .model = model };
	uint32_t mix = nps_strings__addz(model->strings, "MIX_AIV");
	uint32_t plain = nps_strings__addz(model->strings, "AI_CORE");

	for (size_t i = 0; i < compute->t.len; i++) {
		uint32_t row = compute->task[i], core = compute->core[i];
		bool is_known = is_meaningful(model, core);

		task->class[row] = NPS_CLASS_COMPUTE;
		task->name[row] = compute->name[i];
		/*
		 * At level 0 the core is not recorded; kernels with a context are mixed ones (all of them
		 * in real captures).
		 */
		if (!is_known && task->context[row] != NPS_NO_ID)
			task->hw_type[row] = mix;
		else if (!is_known && !is_meaningful(model, task->type[row]))
			task->hw_type[row] =
				plain; /* the texts are lost: the device calls any other kernel so */
		else
			task->hw_type[row] = type_lookup(t, is_known ? core : task->type[row]).device;
		nps_pace__step(&pace);
	}
	return mix == NPS_NONE || plain == NPS_NONE ? -ENOMEM : 0;
}

static bool within_device(uint32_t operation)
{
	return operation == 3 || operation == 5; /* ENUM_MEMCPY_OPERATION */
}

static int copies(struct nps_model *model)
{
	uint32_t pcie = nps_strings__addz(model->strings, "PCIE_DMA_SQE");
	uint32_t sdma = nps_strings__addz(model->strings, "SDMA_SQE");

	for (size_t i = 0; i < model->memcpy.t.len; i++) {
		uint32_t row = model->memcpy.task[i];

		model->task.class[row] = NPS_CLASS_MEMCPY;
		model->task.hw_type[row] = within_device(model->memcpy.operation[i]) ? sdma : pcie;
	}
	return pcie == NPS_NONE || sdma == NPS_NONE ? -ENOMEM : 0;
}

static int complete_tasks(struct nps_db_import *in)
{
	struct nps_model *model = in->model;
	struct nps_task_table *task = &model->task;
	struct types t = { .in = in };
	struct nps_pace pace = { .model = model };
	int err = complete_kernels(in, &t);

	if (err)
		return err;
	for (size_t i = 0; i < model->comm_task.t.len; i++)
		task->class[model->comm_task.task[i]] = NPS_CLASS_COMM;
	err = copies(model);
	for (size_t i = 0; !err && i < task->t.len; i++) {
		struct known_type met;

		task->step[i] = NPS_NONE;
		if (task->name[i] == NPS_NONE)
			task->name[i] = task->type[i];
		if (task->hw_type[i] == NPS_NONE || task->class[i] == NPS_CLASS_OTHER) {
			met = type_lookup(&t, task->type[i]);
			if (task->hw_type[i] == NPS_NONE)
				task->hw_type[i] = met.device;
			if (task->class[i] == NPS_CLASS_OTHER)
				task->class[i] = met.class;
		}
		nps_pace__step(&pace);
	}
	return err;
}

/* --- collectives --- */

/* A collective without a device in the database ran where its first task did. */
static int complete_collectives(struct nps_db_import *in)
{
	struct nps_model *model = in->model;
	const struct nps_comm_task_table *part = &model->comm_task;
	struct nps_comm_op_table *op = &model->comm_op;
	int64_t device = model->device.t.len ? model->device.id[0] : 0;
	bool has_device = nps_db_source__has_column(&in->source, "COMMUNICATION_OP", "deviceId");
	struct nps_index ops;
	uint64_t foreign = 0;
	int64_t twice = nps_db_index__build(&ops, model, op->id, op->t.len);

	for (size_t i = 0; i < op->t.len; i++) {
		op->step[i] = NPS_NONE;
		op->model[i] = NPS_NO_ID;
		op->tasks[i] = op->measured[i] = 0;
		if (!has_device)
			op->device[i] = device;
	}
	for (size_t i = 0; i < part->t.len; i++) {
		uint32_t row = nps_index__get(&ops, part->op[i]);

		if (row == NPS_NONE) {
			foreign++;
			continue;
		}
		if (!has_device && !op->tasks[row])
			op->device[row] = model->task.device[part->task[i]];
		op->tasks[row]++;
		op->measured[row] += nps_model__task_measured(model, part->task[i]);
	}
	nps_index__free(&ops);
	for (size_t i = 0; i < op->t.len; i++)
		if (!nps_model__comm_measured(model, i))
			op->end[i] = op->start[i]; /* as of tasks: nps_db_task_time__read() */
	nps_model__lost(model, foreign, "tasks of missing collectives");
	return NPS_MIN(twice, (int64_t)0);
}

/* --- calls --- */

struct launches {
	struct nps_model *model;
	struct nps_index rows; /* connection -> row of `api` */
};

static void name_launch(struct launches *c, uint32_t connection, uint32_t name)
{
	uint32_t row = connection == NPS_NO_ID ? NPS_NONE : nps_index__get(&c->rows, connection);

	if (row != NPS_NONE && c->model->api.type[row] == NPS_API_NODE && c->model->api.item[row] == NPS_NONE)
		c->model->api.item[row] = name;
}

static int complete_calls(struct nps_db_import *in)
{
	struct nps_model *model = in->model;
	struct launches c = { .model = model };
	struct nps_pace pace = { .model = model };
	int64_t twice = nps_db_index__build(&c.rows, model, model->api.connection, model->api.t.len);

	for (size_t i = 0; i < model->compute.t.len; i++) {
		name_launch(&c, model->task.connection[model->compute.task[i]], model->compute.name[i]);
		nps_pace__step(&pace);
		if (!(i & (NPS_TABLE_HOT - 1)))
			nps_index__cool(&c.rows);
	}
	for (size_t i = 0; i < model->comm_op.t.len; i++)
		name_launch(&c, model->comm_op.connection[i], model->comm_op.name[i]);
	nps_index__free(&c.rows);
	return NPS_MIN(twice, (int64_t)0);
}

/* --- the queue's numbers --- */

static int correlations(struct nps_db_import *in)
{
	struct nps_model *model = in->model;
	const struct nps_link_table *link = &model->link;
	struct nps_pace pace = { .model = model };
	struct nps_index first;
	int64_t twice = nps_db_index__build(&first, model, link->id, link->t.len);

	for (size_t i = 0; i < model->torch.t.len; i++) {
		int64_t id = model->torch.connection[i];
		uint32_t row;

		if (model->torch.type[i] != NPS_API_TORCH_QUEUE || id < 0)
			continue;
		row = nps_index__get(&first, id);
		if (row != NPS_NONE)
			model->torch.correlation[i] =
				link->connection[row] -
				(link->connection[row] >= FIRST_TORCH_LINK ? FIRST_TORCH_LINK : 0);
		nps_pace__step(&pace);
	}
	nps_index__free(&first);
	return NPS_MIN(twice, (int64_t)0);
}

/* --- operands of operators --- */

enum { ENOUGH_OPERANDS = 1024 };

/* Shapes are numbers; a type has a letter, and so have the words for what is no tensor. */
static bool has_letter(const char *text)
{
	for (; *text; text++)
		if ((*text | 32) >= 'a' && (*text | 32) <= 'z')
			return true;
	return false;
}

/* 1: the texts of row I are in the other's column, -1: each is in its own, 0: nothing follows from them. */
static int exchanged(const struct nps_model *model, size_t i)
{
	uint32_t shapes = model->torch.input_shapes[i], types = model->torch.input_types[i];

	if (shapes == NPS_NONE || types == NPS_NONE)
		return 0;
	return has_letter(nps_model__text(model, shapes)) - has_letter(nps_model__text(model, types));
}

/* torch_npu of early 2025 stored inputShapes and inputDtypes in each other's column. */
static void operands(struct nps_model *model)
{
	struct nps_pace pace = { .model = model };
	struct nps_torch_table *t = &model->torch;
	int votes = 0, n = 0;

	for (size_t i = 0; i < t->t.len && n < ENOUGH_OPERANDS; i++) {
		int vote = exchanged(model, i);

		votes += vote;
		n += vote != 0;
		nps_pace__step(&pace);
	}
	for (size_t i = 0; votes > 0 && i < t->t.len; i++) {
		uint32_t shapes = t->input_shapes[i];

		t->input_shapes[i] = t->input_types[i];
		t->input_types[i] = shapes;
		nps_pace__step(&pace);
	}
}

/* --- numbers that stand for unknown values --- */

static void unknown_usage(const struct nps_db_import *in)
{
	for (size_t t = 0; t < NPS_DB_USAGES; t++) {
		const struct nps_table *table = nps_db_usage__table(in->model, t);
		double *usage = nps_db_usage__cells(in->model, t);

		for (size_t i = 0; in->zero_is_unknown >> t & 1 && i < table->len; i++)
			if (usage[i] == 0)
				usage[i] = NPS_NAN;
	}
}

/* --- the whole --- */

static void cover(struct nps_model *model, const uint64_t *start, const uint64_t *end, size_t len)
{
	struct nps_pace pace = { .model = model };

	for (size_t i = 0; i < len; i++) {
		/* Where 0 is no time the row was left out. */
		model->start = NPS_MIN(model->start, start[i]);
		nps_model__cover(model, start[i], end[i]);
		nps_pace__step(&pace);
	}
}

/* Everything timed lies in the capture: a viewer does not show the rest. */
static void cover_all(struct nps_model *model)
{
	cover(model, model->task.start, model->task.end, model->task.t.len);
	cover(model, model->comm_op.start, model->comm_op.end, model->comm_op.t.len);
	cover(model, model->api.start, model->api.end, model->api.t.len);
	cover(model, model->torch.start, model->torch.end, model->torch.t.len);
	cover(model, model->osrt.start, model->osrt.end, model->osrt.t.len);
	if (model->start > model->end)
		model->start = model->end;
}

static void process_and_level(struct nps_model *model)
{
	if (model->task.t.len)
		model->pid = model->task.pid[0];
	else if (model->torch.t.len)
		model->pid = model->torch.gtid[0] >> 32;
	else if (model->api.t.len)
		model->pid = model->api.gtid[0] >> 32;
	if (!model->info && model->compute.t.len)
		model->level = model->compute.core[0] != NPS_NONE && model->compute.core[0] != model->na;
}

int nps_db_complete(struct nps_db_import *in)
{
	static int (*const parts[])(struct nps_db_import *) = { complete_tasks, complete_collectives,
								complete_calls, correlations };

	for (size_t i = 0; i < NPS_ARRAY_SIZE(parts); i++) {
		int err = parts[i](in);

		if (err)
			return err;
	}
	operands(in->model);
	unknown_usage(in);
	cover_all(in->model);
	process_and_level(in->model);
	return 0;
}
