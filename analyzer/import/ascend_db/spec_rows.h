/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptions of database tables, made of the rows of schema/counter_tables.h. For the spec_*.c alone. */
#ifndef NPS_DB_SPEC_ROWS_H
#define NPS_DB_SPEC_ROWS_H

#include "import/ascend_db/spec.h"

#define SQL_AS(sql, type_, value_, generations_)                                                             \
	.name = (sql), .type = #type_, .value = (value_), .generations = (generations_),
#define SQL(sql, type) SQL_AS(sql, type, NPS_DB_NUMBER, NPS_DB_BOTH)
#define SQL_B(sql, type) SQL_AS(sql, type, NPS_DB_NUMBER, NPS_DB_B)
#define SQL_TEXT(sql, type) SQL_AS(sql, type, NPS_DB_STRING, NPS_DB_BOTH)
#define SQL_PLAIN(sql, type) SQL_AS(sql, type, NPS_DB_TEXT, NPS_DB_BOTH)
#define SQL_OR_0(sql, type) SQL_AS(sql, type, NPS_DB_NUMBER_OR_0, NPS_DB_BOTH)
#define TRACE(...)
#define TRACE_A(...)
#define TRACE_ID(...)
#define TRACK(...)
#define CSV(...)
#define CSV_RANGE(...)

#define SQL_CELL(kind, column, ...) { __VA_ARGS__ },
/* The columns of a table of the model that have an attribute SQL. */
#define COLUMNS(table, LIST) static const struct nps_db_column table[] = { LIST(SQL_CELL) };

#define ROWS_OF(sql, array, field)                                                                           \
	.name = sql, NPS_DB_COLUMNS(array), NPS_DB_OF(field), .in_order = true, .generations = NPS_DB_BOTH
#define SAMPLES(sql, array, field)                                                                           \
	{                                                                                                    \
		ROWS_OF(sql, array, field), .order = NPS_DB_BY_TIME, .sorted = "timestampNs"                 \
	}

#endif
