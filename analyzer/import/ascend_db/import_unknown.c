/* SPDX-License-Identifier: BSD-2-Clause */
/* What a database holds beyond the schemas: rows of enums are kept, the rest is reported. */
#include "import/ascend_db/import_db.h"

#include <stdio.h>
#include <string.h>

/* MindStudio Insight adds them when it opens a database (outputs 4.9). */
static const char *const insight_tables[] = {
	"status_info", "connectionCats", "OVERLAP_ANALYSIS", "sqlite_sequence", "sqlite_stat1",
};
static const char *const insight_columns[] = { "depth", "waitNs", "opConnectionId", "gridDim", "blockDim" };

/* Tables that other parts of the importer read. */
static const char *const read_elsewhere[] = {
	"SESSION_TIME_INFO", "NPU_INFO",   "HOST_INFO",	       "META_DATA",
	"RANK_DEVICE_MAP",   "STRING_IDS", "NPUSCOPE_PROCESS", /* made anew of the threads' names */
};

static bool is_known_name(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!sqlite3_stricmp(name, names[i]))
			return true;
	return false;
}

static const struct nps_db_table *find_table(const char *name)
{
	for (const struct nps_db_table *const *family = nps_db_families; *family; family++)
		for (const struct nps_db_table *table = *family; table->name; table++)
			if (!sqlite3_stricmp(name, table->name))
				return table;
	return NULL;
}

static const struct nps_db_enum *find_enum(const char *name)
{
	for (const struct nps_db_enum *e = nps_db_enums; e->name; e++)
		if (!sqlite3_stricmp(name, e->name))
			return e;
	return NULL;
}

static bool has_column(const struct nps_db_table *table, const char *name)
{
	for (int i = 0; i < table->ncolumns; i++)
		if (table->columns[i].name && !sqlite3_stricmp(table->columns[i].name, name))
			return true;
	return false;
}

/* Whether COLUMN of TABLE, or TABLE itself, holds anything. Names are the file's: they are quoted. */
static bool holds_data(struct nps_db_import *in, const char *table, const char *column)
{
	char *sql = column ? sqlite3_mprintf("SELECT 1 FROM \"%w\" WHERE \"%w\" IS NOT NULL", table, column)
			   : sqlite3_mprintf("SELECT 1 FROM \"%w\"", table);
	bool any = sql && nps_db_source__any(&in->source, sql);

	sqlite3_free(sql);
	return any;
}

#define COLUMNS_MOST 32 /* that are checked, of one table: an empty one costs a walk over all rows */

static void strange_columns(struct nps_db_import *in, const struct nps_db_table *table)
{
	sqlite3_stmt *stmt = nps_db_source__prepare(&in->source, "SELECT name FROM pragma_table_info(?)");
	uint64_t n = 0;
	char shown[40];

	if (!stmt)
		return;
	sqlite3_bind_text(stmt, 1, table->name, -1, SQLITE_STATIC);
	while (nps_db_source__step(&in->source, stmt) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(stmt, 0);

		if (!name || has_column(table, name) ||
		    is_known_name(name, insight_columns, NPS_ARRAY_SIZE(insight_columns)))
			continue;
		if (n++ < COLUMNS_MOST && holds_data(in, table->name, name))
			nps_model__lost(in->model, 1, "column %s of table %s, which is unknown",
					nps_db_printable(name, shown, sizeof(shown)), table->name);
	}
	nps_model__lost(in->model, n > COLUMNS_MOST ? n - COLUMNS_MOST : 0,
			"further columns of table %s, which are unknown", table->name);
	sqlite3_finalize(stmt);
}

static void strange_table(struct nps_db_import *in, const char *name, bool ordinary)
{
	const struct nps_db_table *table = find_table(name);
	bool known = table || find_enum(name) ||
		     is_known_name(name, read_elsewhere, NPS_ARRAY_SIZE(read_elsewhere));
	char shown[40];

	nps_db_printable(name, shown, sizeof(shown));
	if (known && !ordinary)
		nps_model__lost(in->model, 1, "%s, which is no ordinary table", shown);
	else if (table)
		strange_columns(in, table);
	else if (!known && ordinary && !is_known_name(name, insight_tables, NPS_ARRAY_SIZE(insight_tables)) &&
		 holds_data(in, name, NULL))
		nps_model__lost(in->model, 1, "table %s, which is unknown", shown);
}

void nps_db_unknown__count(struct nps_db_import *in)
{
	sqlite3_stmt *stmt = nps_db_source__prepare(
		&in->source, "SELECT name,type='table' AND rootpage>0 FROM sqlite_master "
			     "WHERE type IN ('table','view') LIMIT 1000");

	while (stmt && nps_db_source__step(&in->source, stmt) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(stmt, 0);

		if (name)
			strange_table(in, name, sqlite3_column_int(stmt, 1));
	}
	sqlite3_finalize(stmt);
}

/* --- enums --- */

#define MOST_ROWS 65536 /* of an enum */

static bool is_enum_value_known(const struct nps_db_enum *e, unsigned int generation, int64_t id,
				const char *name)
{
	for (size_t i = 0; i < e->nrows; i++)
		if (e->rows[i].id == id && e->rows[i].generations & generation &&
		    !strcmp(e->rows[i].name, name))
			return true;
	return false;
}

static int read_enum(struct nps_db_import *in, const struct nps_db_enum *e, sqlite3_stmt *stmt)
{
	struct nps_enums_table *enums = &in->model->enums;
	uint32_t table = nps_strings__addz(in->model->strings, e->name);
	int err = 0;

	for (int n = 0; !err && n < MOST_ROWS && nps_db_source__step(&in->source, stmt) == SQLITE_ROW; n++) {
		int64_t id = sqlite3_column_int64(stmt, 0);
		const char *name = (const char *)sqlite3_column_text(stmt, 1);
		size_t row;

		if (!name || is_enum_value_known(e, in->generation, id, name))
			continue;
		err = nps_table__add(&enums->t, &row);
		if (err)
			break;
		enums->table[row] = table;
		enums->id[row] = id;
		enums->name[row] = nps_strings__addz(in->model->strings, name);
	}
	return err;
}

int nps_db_enums__read(struct nps_db_import *in)
{
	char sql[128];
	int err = 0;

	for (const struct nps_db_enum *e = nps_db_enums; !err && e->name; e++) {
		sqlite3_stmt *stmt;

		if (!nps_db_source__has_table(&in->source, e->name))
			continue;
		snprintf(sql, sizeof(sql), "SELECT id,name FROM %s ORDER BY id", e->name);
		stmt = nps_db_source__prepare(&in->source, sql);
		if (stmt)
			err = read_enum(in, e, stmt);
		sqlite3_finalize(stmt);
	}
	return err;
}
