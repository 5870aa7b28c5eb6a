/* SPDX-License-Identifier: BSD-2-Clause */
/* STRING_IDS. */
#include "export/export_db.h"

#include <errno.h>
#include <string.h>

static const uint32_t bases[NPS_DB_RANGES + 1] = { 0, 1U << 28, 2U << 28, 3U << 28 };

/* The id of an imported text, NPS_NONE if it is not one. */
static uint32_t imported(const struct nps_model *model, uint32_t text)
{
	return text < model->db_ids.len ? NPS_AT(&model->db_ids, uint32_t, text) : NPS_NONE;
}

void nps_db_ids__init(struct nps_db_ids *ids, const struct nps_model *model)
{
	*ids = (struct nps_db_ids){ .model = model };
	memcpy(ids->next, bases, sizeof(bases));
	for (int r = 0; r < NPS_DB_RANGES; r++) {
		nps_vec__init(&ids->assigned[r], model->tmpfd, sizeof(uint32_t));
		nps_vec__init(&ids->order[r], model->tmpfd, sizeof(uint32_t));
	}
	/* New ones follow those of the import. */
	for (size_t text = 0; !ids->err && text < model->db_ids.len; text++) {
		uint32_t id = imported(model, text), r = id >> 28;

		if (r < NPS_DB_RANGES)
			ids->next[r] = NPS_MAX(ids->next[r], id + 1);
		else if (id != NPS_NONE)
			ids->err = nps_map__put(&ids->above, id, text);
	}
}

void nps_db_ids__free(struct nps_db_ids *ids)
{
	for (int r = 0; r < NPS_DB_RANGES; r++) {
		nps_vec__free(&ids->assigned[r]);
		nps_vec__free(&ids->order[r]);
	}
	nps_map__free(&ids->above);
}

/* There are more ids above the ranges than texts. */
static uint32_t new_id(struct nps_db_ids *ids, enum nps_db_range range)
{
	uint32_t id;

	if (ids->next[range] < bases[range + 1])
		return ids->next[range]++;
	do
		id = ids->next[NPS_DB_RANGES]++;
	while (nps_map__get(&ids->above, id) != NPS_NONE);
	return id;
}

uint32_t nps_db_ids__find(const struct nps_db_ids *ids, enum nps_db_range range, uint32_t text)
{
	const struct nps_vec *assigned = &ids->assigned[range];
	uint32_t id = imported(ids->model, text);

	if (id != NPS_NONE)
		return id;
	return text < assigned->len ? NPS_AT(assigned, uint32_t, text) - 1 : NPS_NONE;
}

uint32_t nps_db_ids__get(struct nps_db_ids *ids, enum nps_db_range range, uint32_t text)
{
	struct nps_vec *assigned = &ids->assigned[range], *order = &ids->order[range];
	uint32_t id = nps_db_ids__find(ids, range, text), *next;

	if (id != NPS_NONE || ids->err)
		return id;
	if (text >= assigned->len)
		ids->err = nps_vec__resize(assigned, NPS_MAX((size_t)text + 1, ids->model->strings->at.len));
	next = ids->err ? NULL : nps_vec__push(order);
	if (!next) {
		ids->err = ids->err ? ids->err : -ENOMEM;
		return NPS_NONE;
	}
	*next = text;
	id = new_id(ids, range);
	NPS_AT(assigned, uint32_t, text) = id + 1;
	if (!(order->len & (NPS_TABLE_HOT - 1)))
		nps_vec__cool(assigned);
	return id;
}

struct string_rows {
	struct nps_db_ids *ids;
	struct nps_db_writer *db;
	sqlite3_stmt *insert;
};

static void write_text(struct string_rows *rows, uint32_t id, const char *text)
{
	sqlite3_bind_int64(rows->insert, 1, id);
	sqlite3_bind_text(rows->insert, 2, text, -1, SQLITE_STATIC);
	nps_db_writer__step(rows->db, rows->insert);
}

static void write_imported(struct string_rows *rows)
{
	const struct nps_model *model = rows->ids->model;

	for (size_t text = 0; !rows->db->err && text < model->db_ids.len; text++)
		if (imported(model, text) != NPS_NONE)
			write_text(rows, imported(model, text), nps_model__text(model, text));
}

static void write_range(struct string_rows *rows, int range)
{
	const struct nps_vec *order = &rows->ids->order[range], *assigned = &rows->ids->assigned[range];

	for (size_t i = 0; !rows->db->err && i < order->len; i++) {
		uint32_t id = NPS_AT(order, uint32_t, i);
		const char *text = nps_model__text(rows->ids->model, id);

		write_text(rows, NPS_AT(assigned, uint32_t, id) - 1,
			   *text ? text : " "); /* readers drop empty ones */
	}
}

void nps_db_ids__write(struct nps_db_ids *ids, struct nps_db_writer *db)
{
	struct string_rows rows = { ids, db, NULL };

	nps_db_writer__exec(db, "CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY,value TEXT)");
	rows.insert = nps_db_writer__prepare(db, "INSERT INTO STRING_IDS VALUES(?,?)");
	write_imported(&rows);
	for (int r = 0; r < NPS_DB_RANGES; r++)
		write_range(&rows, r);
	sqlite3_finalize(rows.insert);
}
