/* SPDX-License-Identifier: BSD-2-Clause */
/* ascend_pytorch_profiler_{rank}.db, msprof_{stamp}.db and analysis.db (outputs 4). */
#include "export/export_db.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct nps_db_column *find_column(const struct nps_db_table *table, unsigned int generation,
					       const char *name, size_t len)
{
	for (int i = 0; name && i < table->ncolumns; i++)
		if (table->columns[i].generations & generation && strlen(table->columns[i].name) == len &&
		    !memcmp(table->columns[i].name, name, len))
			return &table->columns[i];
	return NULL;
}

/* Ordinal of COLUMN among those of the generation, from 1. */
static int column_ordinal(const struct nps_db_table *table, unsigned int generation,
			  const struct nps_db_column *column)
{
	uint8_t columns[NPS_DB_MAX_COLUMNS];
	int n = nps_db_table__columns(table, generation, columns), i = 0;

	while (i < n && &table->columns[columns[i]] != column)
		i++;
	return i + 1;
}

static void insert_all(struct nps_db_fill *fill, const struct nps_db_table *table)
{
	char sql[256];

	snprintf(sql, sizeof(sql), "INSERT INTO %s SELECT * FROM v_%s", table->name, table->name);
	nps_db_writer__exec(&fill->db, sql);
}

/*
 * Rows whose key does not ascend: SQLite sorts them. Of rows with the same key, a task's are dropped but
 * for one; others get a new key.
 */
static void insert_sorted(struct nps_db_fill *fill, const struct nps_db_table *table,
			  const struct nps_db_column *key)
{
	size_t len = nps_db_table__of(fill->model, table)->len, written;
	uint8_t columns[NPS_DB_MAX_COLUMNS];
	int n = nps_db_table__columns(table, fill->generation, columns);
	int at = column_ordinal(table, fill->generation, key), used;
	char sql[1024];

	snprintf(sql, sizeof(sql), "INSERT OR IGNORE INTO %s SELECT * FROM v_%s ORDER BY c%d", table->name,
		 table->name, at);
	nps_db_writer__exec(&fill->db, sql);
	written = fill->db.err ? len : (size_t)sqlite3_changes64(fill->db.handle);
	if (written == len)
		return;
	if (key->value == NPS_DB_TASK) {
		nps_msg("%zu rows of %s are left out: their task has one already", len - written,
			table->name);
		return;
	}
	snprintf(sql, sizeof(sql), "DELETE FROM %s", table->name);
	nps_db_writer__exec(&fill->db, sql);
	used = snprintf(sql, sizeof(sql), "INSERT INTO %s SELECT ", table->name);
	for (int i = 1; i <= n; i++)
		used += snprintf(sql + used, sizeof(sql) - used, i == at ? "%sk" : "%sc%d", i > 1 ? "," : "",
				 i);
	snprintf(sql + used, sizeof(sql) - used,
		 " FROM (SELECT *,iif(row_number() OVER (PARTITION BY c%d)=1,nullif(c%d,%u),NULL) k FROM "
		 "v_%s) "
		 "ORDER BY k NULLS LAST",
		 at, at, NPS_NO_ID, table->name);
	nps_db_writer__exec(&fill->db, sql);
}

static void create_index(struct nps_db_fill *fill, const struct nps_db_table *table)
{
	char sql[256];

	snprintf(sql, sizeof(sql), "CREATE INDEX %s ON %s (%s)", table->index, table->name,
		 table->index_columns);
	nps_db_writer__exec(&fill->db, sql);
}

void nps_db_fill__table(struct nps_db_fill *fill, const struct nps_db_table *table)
{
	size_t first = table->index ? strcspn(table->index_columns, ",") : 0;
	const struct nps_db_column *key =
		find_column(table, fill->generation, table->key, table->key ? strlen(table->key) : 0);
	const struct nps_db_column *index = find_column(table, fill->generation, table->index_columns, first);
	struct nps_db_view view = { fill, table };
	bool index_first;
	char sql[2048];

	nps_db_table__ddl(table, fill->generation, sql, sizeof(sql));
	nps_db_writer__exec(&fill->db, sql);
	nps_db_view__register(&view);
	/* An index that is filled in its own order needs no sorting afterwards. */
	index_first = index && nps_db_view__ascends(&view, index, false);
	if (index_first)
		create_index(fill, table);
	if (!key || nps_db_view__ascends(&view, key, true))
		insert_all(fill, table);
	else
		insert_sorted(fill, table, key);
	if (index && !index_first)
		create_index(fill, table);
	if (fill->db.handle) {
		snprintf(sql, sizeof(sql), "v_%s", table->name);
		sqlite3_create_module(fill->db.handle, sql, NULL, NULL); /* VIEW ends here */
	}
	if (fill->ids.err && fill->db.err)
		fill->db.err = fill->ids.err;
}

static bool is_present(const struct nps_db_fill *fill, const struct nps_db_table *table)
{
	const struct nps_model *model = fill->model;
	bool copy = model->meta.t.len, foreign = table->torch && model->layout == NPS_LAYOUT_MSPROF;
	bool tasks = model->task.t.len || model->comm_op.t.len;

	if (!(table->generations & fill->generation))
		return false;
	if (nps_db_table__of(model, table)->len || table->presence == NPS_DB_ALWAYS)
		return true;
	if (table->presence == NPS_DB_WITH_TASKS)
		return tasks;
	if (table->presence == NPS_DB_OWN_WITH_TASKS ? !tasks : table->presence != NPS_DB_OWN)
		return false;
	if (copy || foreign)
		return false;
	return table->torch || fill->generation == NPS_DB_B; /* the older profiler wrote no empty ones */
}

/* Whether some task's time is other than measured by the profiler. */
static bool has_time_sources(const struct nps_model *model)
{
	struct nps_pace pace = { .model = model };

	if (model->bounds.t.len)
		return true;
	for (size_t i = 0; i < model->task.t.len; i++) {
		if (model->task.source[i] != NPS_TIME_IMPORTED)
			return true;
		nps_pace__step(&pace);
	}
	return false;
}

/* Tables that the vendor does not have exist if they have content. */
static bool own_is_present(const struct nps_db_fill *fill, const struct nps_db_table *table)
{
	const struct nps_table *rows = nps_db_table__of(fill->model, table);

	return rows == &fill->model->task.t ? has_time_sources(fill->model) : rows->len > 0;
}

static void fill_tables(struct nps_db_fill *fill)
{

	for (const struct nps_db_table *const *family = nps_db_families; *family; family++)
		for (const struct nps_db_table *table = *family; table->name && !fill->db.err; table++)
			if (*family == nps_db_own_tables ? own_is_present(fill, table)
							 : is_present(fill, table))
				nps_db_fill__table(fill, table);
}

static int file_path(char *name, size_t size, const struct nps_export *ex, const char *path)
{
	int len;

	if (ex->model->layout == NPS_LAYOUT_MSPROF)
		len = snprintf(name, size, "%s/msprof_%s.db", path, ex->stamp);
	else if (!ex->model->mindspore)
		len = snprintf(name, size, "%s/ascend_pytorch_profiler_%u.db", path, ex->model->rank);
	else if (ex->model->has_rank && ex->model->rank)
		len = snprintf(name, size, "%s/ascend_mindspore_profiler_%u.db", path, ex->model->rank);
	else /* MindSpore leaves out a rank of 0, too */
		len = snprintf(name, size, "%s/ascend_mindspore_profiler.db", path);
	return (size_t)len < size ? 0 : -ENAMETOOLONG;
}

/* Makes the database NAME, with what FILL_DB writes into it. */
static int make_database(const struct nps_export *ex, const char *name,
			 void (*fill_db)(struct nps_db_fill *fill))
{
	struct nps_db_fill fill = { .ex = ex,
				    .model = ex->model,
				    .generation = nps_db_generation(ex->generation) };
	int err;

	nps_db_ids__init(&fill.ids, ex->model);
	if (!nps_db_writer__open(&fill.db, name))
		fill_db(&fill);
	err = nps_db_writer__close(&fill.db);
	nps_db_ids__free(&fill.ids);
	return err;
}

static void fill_all(struct nps_db_fill *fill)
{
	nps_db_fill__identity(fill);
	fill_tables(fill);
	nps_db_fill__viewer(fill);
	nps_db_fill__enums(fill);
	nps_db_ids__write(&fill->ids, &fill->db);
}

int nps_export__db(const struct nps_export *ex, int dirfd, const char *path)
{
	char name[4300];
	int err = file_path(name, sizeof(name), ex, path);

	(void)dirfd;
	return err ? err : make_database(ex, name, fill_all);
}

static void fill_analysis(struct nps_db_fill *fill)
{
	for (const struct nps_db_table *table = nps_db_analysis_tables; table->name; table++)
		if (is_present(fill, table))
			nps_db_fill__table(fill, table);
}

int nps_export__analysis_db(const struct nps_export *ex, int dirfd, const char *path)
{
	size_t rows = 0;
	char name[4300];

	(void)dirfd;
	if (snprintf(name, sizeof(name), "%s/analysis.db", path) >= (int)sizeof(name))
		return -ENAMETOOLONG;
	for (const struct nps_db_table *table = nps_db_analysis_tables; table->name; table++)
		rows += nps_db_table__of(ex->model, table)->len;
	return rows ? make_database(ex, name, fill_analysis) : 0;
}
