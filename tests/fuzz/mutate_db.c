/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuzz.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define NAME 128

static unsigned int next(unsigned int *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* The Nth answer of SQL, or an empty text. */
static void pick(sqlite3 *db, const char *sql, const char *arg, unsigned int n, char out[NAME])
{
	sqlite3_stmt *stmt = NULL;

	*out = 0;
	if (!sqlite3_prepare_v2(db, sql, -1, &stmt, NULL)) {
		if (arg)
			sqlite3_bind_text(stmt, 1, arg, -1, SQLITE_STATIC);
		sqlite3_bind_int(stmt, arg ? 2 : 1, n);
		if (sqlite3_step(stmt) == SQLITE_ROW)
			snprintf(out, NAME, "%s", (const char *)sqlite3_column_text(stmt, 0));
	}
	sqlite3_finalize(stmt);
}

static void run(sqlite3 *db, char *sql)
{
	if (sql)
		sqlite3_exec(db, sql, NULL, NULL, NULL); /* what does not work changes nothing */
	sqlite3_free(sql);
}

static const char *const values[] = {
	"NULL",
	"0",
	"1",
	"-1",
	"4294967295",
	"4294967296",
	"9223372036854775807",
	"-9223372036854775808",
	"1e300",
	"-1e300",
	"9e999",
	"0.5",
	"''",
	"'x'",
	"'a\"b,c''d' || char(10)",
	"x'00'",
	"x'fffe'",
	"CAST(x'ff61' AS TEXT)",
	"zeroblob(5000)",
	"hex(zeroblob(3000))",
	"'N/A'",
	"'18446744073709551615'",
	"random()",
	"'12abc'",
	"'[1,2' || char(0) || '\"'",
};

static void change_cell(sqlite3 *db, const char *table, unsigned int *seed)
{
	const char *value = values[next(seed) % (sizeof(values) / sizeof(values[0]))];
	unsigned int row = next(seed);
	char column[NAME];

	pick(db,
	     "SELECT name FROM pragma_table_info(?1) LIMIT 1 OFFSET ?2 % (SELECT count(*) FROM "
	     "pragma_table_info(?1))",
	     table, next(seed) & 0x7fffffff, column);
	if (next(seed) % 8 == 0) {
		run(db, sqlite3_mprintf("UPDATE \"%w\" SET \"%w\" = %s", table, column, value));
		return;
	}
	if (next(seed) % 3 == 0)
		run(db, sqlite3_mprintf("UPDATE \"%w\" SET \"%w\" = (SELECT \"%w\" FROM \"%w\" LIMIT 1 "
					"OFFSET %u %% (SELECT "
					"count(*) FROM \"%w\")) WHERE rowid %% 7 = %u",
					table, column, column, table, row & 0xffff, table, next(seed) % 7));
	else
		run(db, sqlite3_mprintf("UPDATE \"%w\" SET \"%w\" = %s WHERE rowid = (SELECT rowid FROM "
					"\"%w\" LIMIT 1 OFFSET "
					"%u %% (SELECT count(*) FROM \"%w\"))",
					table, column, value, table, row & 0xffff, table));
}

static void change(sqlite3 *db, const char *table, unsigned int *seed)
{
	char column[NAME];

	pick(db,
	     "SELECT name FROM pragma_table_info(?1) LIMIT 1 OFFSET ?2 % (SELECT count(*) FROM "
	     "pragma_table_info(?1))",
	     table, next(seed) & 0x7fffffff, column);
	switch (next(seed) % 16) {
	case 0:
		run(db, sqlite3_mprintf("DELETE FROM \"%w\" WHERE rowid %% 3 = %u", table, next(seed) % 3));
		break;
	case 1:
		run(db, sqlite3_mprintf("INSERT OR IGNORE INTO \"%w\" SELECT * FROM \"%w\" LIMIT 5", table,
					table));
		break;
	case 2:
		run(db, sqlite3_mprintf("ALTER TABLE \"%w\" DROP COLUMN \"%w\"", table, column));
		break;
	case 3:
		run(db, sqlite3_mprintf("ALTER TABLE \"%w\" RENAME TO \"%w_\"", table, table));
		run(db, sqlite3_mprintf("CREATE VIEW \"%w\" AS SELECT * FROM \"%w_\"", table, table));
		break;
	case 4:
		run(db, sqlite3_mprintf("DROP TABLE \"%w\"", table));
		break;
	default:
		change_cell(db, table, seed);
	}
}

size_t fuzz_mutate_db(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	unsigned char *copy = sqlite3_malloc64(size), *all;
	sqlite3_int64 len = 0;
	sqlite3 *db = NULL;
	char table[NAME];

	if (!copy || sqlite3_open(":memory:", &db))
		goto out;
	memcpy(copy, data, size);
	/* Now SQLite owns the copy, even if it does not like it. */
	if (sqlite3_deserialize(db, "main", copy, size, size,
				SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE)) {
		copy = NULL;
		goto out;
	}
	copy = NULL;
	pick(db,
	     "SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 1 OFFSET ?1 % (SELECT count(*) FROM "
	     "sqlite_master WHERE type = 'table')",
	     NULL, next(&seed) & 0x7fffffff, table);
	if (*table)
		change(db, table, &seed);
	all = sqlite3_serialize(db, "main", &len, 0);
	if (all && len > 0 && (size_t)len <= max) {
		memcpy(data, all, len);
		size = len;
	}
	sqlite3_free(all);
out:
	sqlite3_free(copy);
	sqlite3_close(db);
	return size;
}
