/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `make_db a|b [analysis]`: SQL of a small database with some rows in every table that is known, for sqlite3.
 */
#include "import/ascend_db/spec.h"

#include <stdio.h>
#include <string.h>

#define ROWS 6
#define T0 1736408883704643212ULL
#define TEXTS 24

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && !strcmp(text + len - n, end);
}

static void number(const struct nps_db_table *table, const struct nps_db_column *column, unsigned int row)
{
	const char *name = column->name;
	bool time = ends_with(name, "Ns") || strstr(name, "imestamp") || ends_with(name, "Time");

	if (time)
		printf("%llu",
		       T0 + row * 50000 + (!strncmp(name, "end", 3) || strstr(name, "elease") ? 40000 : 0));
	else if (!strcmp(name, "connectionId"))
		printf("%u", row + (table->torch ? 10 : 1));
	else if (!strcmp(name, "opId"))
		printf("%u", row % 3);
	else if (!strcmp(column->type, "INTEGER"))
		printf("%u", row);
	else
		printf(strcmp(column->type, "REAL") ? "%u" : "%u.5", row * 3);
}

static void value(const struct nps_db_table *table, const struct nps_db_column *column, unsigned int row)
{
	switch (column->value) {
	case NPS_DB_TIME_TEXT:
		printf("'");
		number(table, column, row);
		printf("'");
		break;
	case NPS_DB_STRING:
	case NPS_DB_STRING_NULL:
	case NPS_DB_STRING_NO_ID:
	case NPS_DB_STRING_OP:
		printf("%u", (unsigned int)(row + strlen(column->name)) % TEXTS);
		break;
	case NPS_DB_TEXT:
	case NPS_DB_SOURCE:
		printf("'%s'", strstr(column->name, "tep") ? "1" : "text");
		break;
	default:
		number(table, column, row);
	}
}

static void one_table(const struct nps_db_table *table, unsigned int generation)
{
	uint8_t columns[NPS_DB_MAX_COLUMNS];
	int n = nps_db_table__columns(table, generation, columns);
	char sql[4096];

	if (!(table->generations & generation) || !n)
		return;
	nps_db_table__ddl(table, generation, sql, sizeof(sql));
	printf("%s;\n", sql);
	for (unsigned int row = 0; row < ROWS; row++) {
		printf("INSERT INTO \"%s\" VALUES (", table->name);
		for (int c = 0; c < n; c++) {
			const struct nps_db_column *column = &table->columns[columns[c]];

			printf("%s", c ? "," : "");
			if (table->key && !strcmp(table->key, column->name))
				printf("%u", row + (table->torch ? 10 : 0));
			else
				value(table, column, row);
		}
		printf(");\n");
	}
}

static void family(const struct nps_db_table *tables, unsigned int generation)
{
	for (; tables->name; tables++)
		one_table(tables, generation);
}

static void texts(void)
{
	static const char *const texts[TEXTS] = {
		"N/A",
		"KERNEL_AIVEC",
		"AI_CORE",
		"MatMul",
		"hcom_allReduce__123_0_1",
		"group_name_0",
		"1,2;3,4",
		"FLOAT16;INT8",
		"ND;ND",
		"hcom_allReduce_",
		"Notify_Wait",
		"aten::add",
		"launch",
		"MEMCPY_ASYNC",
		"EVENT_RECORD",
		"app",
		"read",
		"total_cycles",
		"PTA+GE",
		"iteration 1",
		"KERNEL_MIX_AIC",
		"a \"quoted\", name",
		"aclnnAdd_Add_Add",
		"static",
	};

	printf("CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);\n");
	for (int i = 0; i < TEXTS; i++)
		printf("INSERT INTO STRING_IDS VALUES (%d, '%s');\n", i, texts[i]);
}

static void identity(unsigned int generation)
{
	printf("CREATE TABLE SESSION_TIME_INFO (startTimeNs INTEGER, endTimeNs INTEGER);\n"
	       "INSERT INTO SESSION_TIME_INFO VALUES (%llu, %llu);\n"
	       "CREATE TABLE NPU_INFO (id INTEGER, name TEXT);\nINSERT INTO NPU_INFO VALUES (0, "
	       "'Ascend910B1');\n"
	       "CREATE TABLE HOST_INFO (hostUid TEXT, hostName TEXT);\nINSERT INTO HOST_INFO VALUES ('17', "
	       "'node');\n"
	       "CREATE TABLE META_DATA (name TEXT, value TEXT);\n"
	       "INSERT INTO META_DATA VALUES ('SCHEMA_VERSION', '%s'), ('distributed_args', '{\"rank\": "
	       "0}');\n"
	       "CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER);\n"
	       "INSERT INTO RANK_DEVICE_MAP VALUES (0, 0);\n",
	       T0 - 1000000, T0 + 10000000, generation == NPS_DB_A ? "1.0.0" : "1.2.0");
	for (const struct nps_db_enum *e = nps_db_enums; e->name; e++) {
		if (!(e->generations & generation))
			continue;
		printf("CREATE TABLE %s (id INTEGER PRIMARY KEY, name TEXT);\n", e->name);
		for (size_t i = 0; i < e->nrows && i < 3; i++)
			printf("INSERT OR IGNORE INTO %s VALUES (%d, '%s');\n", e->name, e->rows[i].id,
			       e->rows[i].name);
	}
}

int main(int argc, char **argv)
{
	unsigned int generation = argc > 1 && !strcmp(argv[1], "a") ? NPS_DB_A : NPS_DB_B;

	if (argc < 2)
		return 2;
	printf("PRAGMA page_size=512;\nBEGIN;\n");
	if (argc > 2) {
		family(nps_db_analysis_tables, generation);
	} else {
		texts();
		identity(generation);
		for (const struct nps_db_table *const *f = nps_db_families; *f; f++)
			family(*f, generation);
	}
	printf("COMMIT;\n");
	return 0;
}
