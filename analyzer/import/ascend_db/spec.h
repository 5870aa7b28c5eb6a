/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of the vendor's databases (outputs 4) as data: name, columns in order and the cells of the
 * model they hold. The importer and the exporter walk the same rows.
 */
#ifndef NPS_DB_SPEC_H
#define NPS_DB_SPEC_H

#include "model/model.h"

#define NPS_DB_A 0x1U /* schema 1.0.0 */
#define NPS_DB_B 0x2U /* schema 1.2.0 */
#define NPS_DB_BOTH (NPS_DB_A | NPS_DB_B)

static inline unsigned int nps_db_generation(enum nps_generation generation)
{
	return generation == NPS_GENERATION_A ? NPS_DB_A : NPS_DB_B;
}

/* How a cell of the database stores what a cell of the model holds. */
enum nps_db_value {
	NPS_DB_NUMBER, /* as it is; NULL: not known */
	NPS_DB_NUMBER_OR_0, /* as it is; not known: 0, for Insight leaves out what is NULL */
	NPS_DB_TASK_END, /* of a task; one that nobody measured has the least length, 1 ns */
	NPS_DB_COMM_END, /* the same of a collective */
	NPS_DB_TIME_TEXT, /* a number as TEXT */
	NPS_DB_STRING, /* id of STRING_IDS; unknown: that of N/A */
	NPS_DB_STRING_NULL, /* unknown: NULL */
	NPS_DB_STRING_NO_ID, /* unknown: 4294967295 */
	NPS_DB_STRING_OP, /* the id the text has among msprof's, if any */
	NPS_DB_TEXT, /* TEXT; unknown: NULL */
	NPS_DB_TASK, /* globalTaskId of a row of the task table */
	NPS_DB_ROW, /* the row's number; no cell */
	NPS_DB_SOURCE, /* enum nps_time_source as TEXT */
	NPS_DB_BOUND /* cell of the task's row in `bounds` */
};

#define NPS_DB_NO_CELL UINT8_MAX

/*
 * The row of META_DATA that names, as a JSON list, the tables in which a 0 of a NPS_DB_NUMBER_OR_0 column can
 * stand for what is not known. It is in npuscope's databases alone.
 */
#define NPS_DB_UNKNOWN_IS_0 "npuscope_usage_0_is_unknown"

/* Tables with such a column. */
#define NPS_DB_USAGES 4
struct nps_db_usage {
	const char *name;
	size_t table, cells; /* of the model: offsets */
};
extern const struct nps_db_usage nps_db_usages[NPS_DB_USAGES];

static inline const struct nps_table *nps_db_usage__table(const struct nps_model *model, size_t i)
{
	return (const struct nps_table *)((const char *)model + nps_db_usages[i].table);
}

static inline double *nps_db_usage__cells(const struct nps_model *model, size_t i)
{
	return *(double *const *)((const char *)model + nps_db_usages[i].cells);
}

struct nps_db_column {
	const char *name, *type; /* NULL: the database does not have it */
	uint8_t value; /* enum nps_db_value */
	uint8_t generations; /* NPS_DB_* */
	uint8_t cell; /* ordinal in the model's table, NPS_DB_NO_CELL: none; see nps_db_column__cell() */
};

/* Who numbers a table's strings (outputs 4.5). */
enum nps_db_range { NPS_DB_MSPROF, NPS_DB_TORCH, NPS_DB_MEMORY, NPS_DB_RANGES };

enum nps_db_presence {
	NPS_DB_WITH_DATA,
	NPS_DB_ALWAYS,
	/* If anything ran on a device: Insight shows empty lanes for a table without rows. */
	NPS_DB_WITH_TASKS,
	NPS_DB_OWN, /* without data in databases that are no copy of an imported one */
	NPS_DB_OWN_WITH_TASKS /* the same, if anything ran on a device */
};

/* Order in which the model wants the rows. */
enum nps_db_order { NPS_DB_AS_STORED, NPS_DB_BY_TIME, NPS_DB_BY_TASK };

struct nps_db_table {
	const char *name;
	const struct nps_db_column *columns;
	uint8_t ncolumns;
	uint8_t generations;
	uint8_t presence; /* enum nps_db_presence */
	uint8_t range; /* enum nps_db_range */
	uint8_t order; /* enum nps_db_order */
	bool in_order; /* `columns` are all those of the model's table, in its order */
	bool torch; /* written by torch_npu: its spelling, and not in msprof_*.db */
	const char *key; /* column that is the INTEGER PRIMARY KEY */
	const char *index; /* NAME, columns */
	const char *index_columns;
	const char *sorted; /* column that orders the rows: time or task */
	size_t table; /* of the model: offset */
};

/* A column: SQL name, SQL type, conversion, and the cell. */
#define NPS_DB_C(table, name, type, value, column)                                                           \
	{                                                                                                    \
		name, #type, NPS_DB_##value, NPS_DB_BOTH, NPS_ORDINAL(table, column)                         \
	}
#define NPS_DB_CA(table, name, type, value, column)                                                          \
	{                                                                                                    \
		name, #type, NPS_DB_##value, NPS_DB_A, NPS_ORDINAL(table, column)                            \
	}
#define NPS_DB_CB(table, name, type, value, column)                                                          \
	{                                                                                                    \
		name, #type, NPS_DB_##value, NPS_DB_B, NPS_ORDINAL(table, column)                            \
	}
#define NPS_DB_COLUMNS(array) .columns = (array), .ncolumns = NPS_ARRAY_SIZE(array)
#define NPS_DB_OF(field) .table = offsetof(struct nps_model, field)

static inline struct nps_table *nps_db_table__of(const struct nps_model *model,
						 const struct nps_db_table *table)
{
	return (struct nps_table *)((char *)model + table->table);
}

/* The ordinal of COLUMN in the model's table, NPS_DB_NO_CELL: it has none. */
static inline uint8_t nps_db_column__cell(const struct nps_db_table *spec, const struct nps_db_column *column)
{
	return spec->in_order ? (uint8_t)(column - spec->columns) : column->cell;
}

static inline unsigned int nps_db_column__kind(const struct nps_model *model, const struct nps_db_table *spec,
					       const struct nps_db_column *column)
{
	return nps_db_table__of(model, spec)->columns[nps_db_column__cell(spec, column)].kind;
}

/* Families; each ends with a table without a name. */
extern const struct nps_db_table nps_db_device_tables[], nps_db_host_tables[], nps_db_torch_tables[],
	nps_db_memory_tables[], nps_db_counter_tables[], nps_db_analysis_tables[];
/* Tables that only this program writes. */
extern const struct nps_db_table nps_db_own_tables[];

/* All families of the profiler's database in the order of writing; ends with NULL. */
extern const struct nps_db_table *const nps_db_families[];

struct nps_db_enum_row {
	int32_t id;
	uint8_t generations;
	const char *name;
};

struct nps_db_enum {
	const char *name;
	uint8_t generations;
	const struct nps_db_enum_row *rows;
	size_t nrows;
	size_t table; /* of the model: offset; also there if this has rows; 0: none */
};

/* Name of ID in the enum TABLE, or in another generation's if GENERATION (NPS_DB_*) has none, or NULL. */
const char *nps_db_enum_name(const char *table, uint32_t id, unsigned int generation);

/* Ends with an enum without a name. */
extern const struct nps_db_enum nps_db_enums[];

/* Of ENUM_API_TYPE: from this id on torch_npu adds the rows. */
#define NPS_DB_FIRST_TORCH_TYPE 50001

/* CREATE TABLE of TABLE as GENERATION has it. Returns its length; it fits if that is below SIZE. */
int nps_db_table__ddl(const struct nps_db_table *table, unsigned int generation, char *sql, size_t size);

/* Columns that GENERATION has, as indexes into table->columns. Returns how many. */
int nps_db_table__columns(const struct nps_db_table *table, unsigned int generation, uint8_t *columns);

#define NPS_DB_MAX_COLUMNS 32

#endif
