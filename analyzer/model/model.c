/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/model.h"

#include "base/progress.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define COLUMN(kind, name, ...) { #name, NPS_COLUMN_##kind, sizeof(nps_cell_##kind) },
#define COLUMNS_OF(type, COLUMNS) static const struct nps_column type##_columns[] = { COLUMNS(COLUMN) };

COLUMNS_OF(port, NPS_PORT_COLUMNS)
COLUMNS_OF(task_counter, NPS_TASK_COUNTER_COLUMNS)
NPS_OWN_TABLES(COLUMNS_OF)

#define OWN_ENTRY(field, COLUMNS)                                                                            \
	{ offsetof(struct nps_model, field), field##_columns, NPS_ARRAY_SIZE(field##_columns) },
#define SHARED_ENTRY(field, type, COLUMNS)                                                                   \
	{ offsetof(struct nps_model, field), type##_columns, NPS_ARRAY_SIZE(type##_columns) },

static const struct model_entry {
	size_t offset;
	const struct nps_column *columns;
	size_t ncolumns;
} tables[] = { NPS_OWN_TABLES(OWN_ENTRY) NPS_SHARED_TABLES(SHARED_ENTRY) };

static struct nps_table *table_at(const struct nps_model *model, size_t i)
{
	return (struct nps_table *)((char *)model + tables[i].offset);
}

static const char *const memory_types[NPS_MEM_TYPES] = { "job", "app", "device" };

int nps_model__init(struct nps_model *model, int tmpfd, struct nps_strings *strings)
{
	int err;

	*model = (struct nps_model){ .tmpfd = tmpfd,
				     .start = UINT64_MAX,
				     .process = NPS_NONE,
				     .host_name = NPS_NONE,
				     .host_uid = NPS_NONE };
	nps_strings__init(&model->own, tmpfd);
	nps_vec__init(&model->db_ids, tmpfd, sizeof(uint32_t));
	nps_vec__init(&model->losses, tmpfd, sizeof(struct nps_lost));
	nps_vec__init(&model->unmeasured_steps, tmpfd, sizeof(struct nps_unmeasured_step));
	model->strings = strings ? strings : &model->own;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(tables); i++) {
		err = nps_table__init(table_at(model, i), tables[i].columns, tables[i].ncolumns, tmpfd);
		if (err)
			goto fail;
	}
	err = -ENOMEM;
	model->na = nps_strings__addz(model->strings, "N/A");
	if (model->na == NPS_NONE)
		goto fail;
	for (size_t i = 0; i < NPS_MEM_TYPES; i++) {
		model->memory_types[i] = nps_strings__addz(model->strings, memory_types[i]);
		if (model->memory_types[i] == NPS_NONE)
			goto fail;
	}
	return 0;
fail:
	nps_model__free(model);
	return err;
}

void nps_model__free(struct nps_model *model)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(tables); i++)
		nps_table__free(table_at(model, i));
	nps_strings__free(&model->own);
	nps_vec__free(&model->db_ids);
	nps_vec__free(&model->losses);
	nps_vec__free(&model->unmeasured_steps);
	cJSON_Delete(model->info);
	cJSON_Delete(model->metadata);
	model->info = model->metadata = NULL;
}

void nps_model__cool(const struct nps_model *model)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(tables); i++)
		nps_table__cool(table_at(model, i));
	nps_strings__cool(model->strings);
}

bool nps_model__is_step_mark(const struct nps_model *model, size_t row)
{
	return model->step_marks && !strncmp(nps_model__text(model, model->torch.name[row]), NPS_STEP_MARK,
					     sizeof(NPS_STEP_MARK) - 1);
}

struct nps_rows nps_model__torch_rows(const struct nps_model *model, uint32_t type)
{
	const struct nps_torch_table *t = &model->torch;
	struct nps_rows rows = { 0 };

	while (rows.begin < t->t.len && t->type[rows.begin] != type)
		rows.begin++;
	for (rows.end = rows.begin; rows.end < t->t.len && t->type[rows.end] == type;)
		rows.end++;
	return rows;
}

void nps_pace__rest(const struct nps_pace *pace)
{
	nps_model__cool(pace->model);
	nps_progress__steps(pace->model->progress, NPS_TABLE_HOT);
}

#define KINDS_MOST 256 /* of losses: each is looked for among those before it */

uint32_t nps_model__intern(struct nps_model *model, const char *s, int *err)
{
	uint32_t id = nps_strings__addz(model->strings, s);

	if (id == NPS_NONE && !*err)
		*err = -ENOMEM;
	return id;
}

void nps_model__lost(struct nps_model *model, uint64_t count, const char *fmt, ...)
{
	struct nps_lost *loss, new = { .count = count };
	va_list ap;

	if (!count)
		return;
	va_start(ap, fmt);
	vsnprintf(new.what, sizeof(new.what), fmt, ap);
	va_end(ap);
	new.what[nps_utf8_fit(new.what, sizeof(new.what))] = 0;
	for (size_t i = 0; i < model->losses.len; i++) {
		loss = &NPS_AT(&model->losses, struct nps_lost, i);
		/* The last one counts what there is no room for. */
		if (i == KINDS_MOST || !strcmp(loss->what, new.what)) {
			loss->count = nps_add_sat(loss->count, count);
			return;
		}
	}
	if (model->losses.len == KINDS_MOST)
		strcpy(new.what, "further kinds of losses");
	loss = nps_vec__push(&model->losses);
	if (loss) /* without memory for a line about it the analysis ends anyway */
		*loss = new;
}

void nps_model__cover(struct nps_model *model, uint64_t start, uint64_t end)
{
	if (start)
		model->start = NPS_MIN(model->start, start);
	model->end = NPS_MAX(model->end, end);
}
