/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose database it is: the tables of one row or a few, and the enums. */
#include "export/export_db.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CREATE                                                                                               \
	"CREATE TABLE SESSION_TIME_INFO (startTimeNs INTEGER,endTimeNs INTEGER);"                            \
	"CREATE TABLE NPU_INFO (id INTEGER,name TEXT);"                                                      \
	"CREATE TABLE HOST_INFO (hostUid TEXT,hostName TEXT);"                                               \
	"CREATE TABLE META_DATA (name TEXT,value TEXT);"                                                     \
	"CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER)"

static void number_text(struct nps_db_writer *db, sqlite3_stmt *insert, int64_t number, const char *text)
{
	if (db->err)
		return;
	sqlite3_bind_int64(insert, 1, number);
	sqlite3_bind_text(insert, 2, text, -1, SQLITE_STATIC);
	nps_db_writer__step(db, insert);
}

static void numbers(struct nps_db_writer *db, sqlite3_stmt *insert, int64_t first, int64_t second)
{
	if (db->err)
		return;
	sqlite3_bind_int64(insert, 1, first);
	sqlite3_bind_int64(insert, 2, second);
	nps_db_writer__step(db, insert);
}

static void insert_texts(struct nps_db_writer *db, sqlite3_stmt *insert, const char *first,
			 const char *second)
{
	if (db->err)
		return;
	sqlite3_bind_text(insert, 1, first, -1, SQLITE_STATIC);
	sqlite3_bind_text(insert, 2, second, -1, SQLITE_STATIC);
	nps_db_writer__step(db, insert);
}

static void insert_devices(struct nps_db_fill *fill)
{
	const struct nps_model *model = fill->model;
	sqlite3_stmt *npu = nps_db_writer__prepare(&fill->db, "INSERT INTO NPU_INFO VALUES(?,?)");
	sqlite3_stmt *rank = nps_db_writer__prepare(&fill->db, "INSERT INTO RANK_DEVICE_MAP VALUES(?,?)");
	int64_t own = model->has_rank || model->layout == NPS_LAYOUT_TORCH ? (int64_t)model->rank : -1;
	bool mapped = false;

	for (size_t i = 0; i < model->device.t.len; i++) {
		uint32_t chip = model->device.chip[i];
		int64_t id = model->device.id[i];

		number_text(&fill->db, npu, id, chip == NPS_NONE ? "UNKNOWN" : nps_model__text(model, chip));
		if (model->device.rank[i] == NPS_NULL)
			continue;
		numbers(&fill->db, rank, model->device.rank[i], id);
		mapped = true;
	}
	if (!model->device.t.len)
		number_text(&fill->db, npu, -1, "UNKNOWN");
	for (size_t i = 0; !mapped && i < model->device.t.len; i++)
		numbers(&fill->db, rank, own, model->device.id[i]);
	if (!model->device.t.len)
		numbers(&fill->db, rank, own, 0);
	sqlite3_finalize(npu);
	sqlite3_finalize(rank);
}

static void host_and_time(struct nps_db_fill *fill)
{
	const struct nps_model *model = fill->model;
	sqlite3_stmt *host = nps_db_writer__prepare(&fill->db, "INSERT INTO HOST_INFO VALUES(?,?)");
	sqlite3_stmt *time = nps_db_writer__prepare(&fill->db, "INSERT INTO SESSION_TIME_INFO VALUES(?,?)");

	if (model->host_uid != NPS_NONE || model->host_name != NPS_NONE)
		insert_texts(&fill->db, host, nps_model__text(model, model->host_uid),
			     nps_model__text(model, model->host_name));
	numbers(&fill->db, time, NPS_MIN(model->start, model->end), model->end);
	sqlite3_finalize(host);
	sqlite3_finalize(time);
}

static bool is_schema_row(const char *name)
{
	return !strncmp(name, "SCHEMA_VERSION", strlen("SCHEMA_VERSION"));
}

static void schema_rows(struct nps_db_fill *fill, sqlite3_stmt *insert)
{
	bool old = fill->generation == NPS_DB_A;

	insert_texts(&fill->db, insert, "SCHEMA_VERSION_MICRO", "0");
	insert_texts(&fill->db, insert, "SCHEMA_VERSION_MINOR", old ? "0" : "2");
	insert_texts(&fill->db, insert, "SCHEMA_VERSION_MAJOR", "1");
	insert_texts(&fill->db, insert, "SCHEMA_VERSION", old ? "1.0.0" : "1.2.0");
}

static void metadata_rows(struct nps_db_fill *fill, sqlite3_stmt *insert)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, fill->model->metadata)
	{
		char *value = item->string ? cJSON_PrintUnformatted(item) : NULL;

		if (value)
			insert_texts(&fill->db, insert, item->string, value);
		else if (item->string && !fill->db.err)
			fill->db.err = -ENOMEM;
		cJSON_free(value);
	}
}

/* Lists columns with numbers that are not known, but which Insight needs, so that readers can skip them. */
static void unknown_rows(struct nps_db_fill *fill, sqlite3_stmt *insert)
{
	char value[128] = "[";
	size_t at = 1;

	for (size_t t = 0; t < NPS_DB_USAGES; t++) {
		const struct nps_table *table = nps_db_usage__table(fill->model, t);
		const double *usage = nps_db_usage__cells(fill->model, t);
		size_t i = 0;

		while (i < table->len && !isnan(usage[i]))
			i++;
		if (i < table->len)
			at += snprintf(value + at, sizeof(value) - at, "%s\"%s\"", at > 1 ? "," : "",
				       nps_db_usages[t].name);
	}
	if (at == 1)
		return;
	snprintf(value + at, sizeof(value) - at, "]");
	insert_texts(&fill->db, insert, NPS_DB_UNKNOWN_IS_0, value);
}

/* An imported database's rows as they were, but for the version of another generation. */
static void insert_meta_data(struct nps_db_fill *fill)
{
	const struct nps_model *model = fill->model;
	sqlite3_stmt *insert = nps_db_writer__prepare(&fill->db, "INSERT INTO META_DATA VALUES(?,?)");
	bool same = model->meta.t.len && nps_db_generation(model->generation) == fill->generation;

	if (!same)
		schema_rows(fill, insert);
	for (size_t i = 0; i < model->meta.t.len; i++) {
		const char *name = nps_model__text(model, model->meta.name[i]);

		if (same || !is_schema_row(name))
			insert_texts(&fill->db, insert, name, nps_model__text(model, model->meta.value[i]));
	}
	if (!model->meta.t.len)
		metadata_rows(fill, insert);
	unknown_rows(fill, insert);
	sqlite3_finalize(insert);
}

void nps_db_fill__identity(struct nps_db_fill *fill)
{
	nps_db_writer__exec(&fill->db, CREATE);
	host_and_time(fill);
	insert_devices(fill);
	insert_meta_data(fill);
}

static void enum_rows(struct nps_db_fill *fill, const struct nps_db_enum *e)
{
	const struct nps_model *model = fill->model;
	bool torch = model->layout == NPS_LAYOUT_TORCH;
	sqlite3_stmt *insert;
	char sql[128];

	snprintf(sql, sizeof(sql), "CREATE TABLE %s (id INTEGER PRIMARY KEY,name TEXT)", e->name);
	nps_db_writer__exec(&fill->db, sql);
	snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO %s VALUES(?,?)", e->name);
	insert = nps_db_writer__prepare(&fill->db, sql);
	for (size_t i = 0; i < e->nrows; i++) {
		const struct nps_db_enum_row *row = &e->rows[i];

		if (row->generations & fill->generation &&
		    (torch || row->id < NPS_DB_FIRST_TORCH_TYPE || row->id >= 65534))
			number_text(&fill->db, insert, row->id, row->name);
	}
	for (size_t i = 0; i < model->enums.t.len; i++)
		if (!strcmp(nps_model__text(model, model->enums.table[i]), e->name))
			number_text(&fill->db, insert, model->enums.id[i],
				    nps_model__text(model, model->enums.name[i]));
	sqlite3_finalize(insert);
}

static bool has_rows(const struct nps_model *model, size_t table)
{
	return table && ((const struct nps_table *)((const char *)model + table))->len;
}

void nps_db_fill__enums(struct nps_db_fill *fill)
{
	for (const struct nps_db_enum *e = nps_db_enums; e->name; e++)
		if (e->generations & fill->generation || has_rows(fill->model, e->table))
			enum_rows(fill, e);
}
