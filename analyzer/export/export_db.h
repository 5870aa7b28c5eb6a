/* SPDX-License-Identifier: BSD-2-Clause */
/* What the writers of a database share. */
#ifndef NPS_EXPORT_DB_H
#define NPS_EXPORT_DB_H

#include "base/map.h"
#include "export/db_writer.h"
#include "export/export.h"
#include "import/ascend_db/spec.h"

/*
 * STRING_IDS while it comes into being. A text keeps its number of the database that it was imported from.
 * Another one gets the next number of its range when it is first used, or a number above all ranges if an
 * import filled the range.
 */
struct nps_db_ids {
	const struct nps_model *model;
	struct nps_vec assigned[NPS_DB_RANGES]; /* uint32_t a text: its id + 1, 0: none yet */
	struct nps_vec order[NPS_DB_RANGES]; /* uint32_t: texts by id */
	uint32_t next[NPS_DB_RANGES + 1]; /* id of the next new text; last: of one whose range is full */
	struct nps_map above; /* imported ids above the ranges */
	int err;
};

void nps_db_ids__init(struct nps_db_ids *ids, const struct nps_model *model);
void nps_db_ids__free(struct nps_db_ids *ids);

/* The id of TEXT, which is not NPS_NONE. After an error, which is kept in ids->err, NPS_NONE. */
uint32_t nps_db_ids__get(struct nps_db_ids *ids, enum nps_db_range range, uint32_t text);

/* The id TEXT has in RANGE or from an import, NPS_NONE if none. */
uint32_t nps_db_ids__find(const struct nps_db_ids *ids, enum nps_db_range range, uint32_t text);

/* Creates and fills STRING_IDS. */
void nps_db_ids__write(struct nps_db_ids *ids, struct nps_db_writer *db);

struct nps_db_fill {
	const struct nps_export *ex;
	const struct nps_model *model;
	unsigned int generation; /* NPS_DB_* */
	struct nps_db_writer db;
	struct nps_db_ids ids;
};

/* Creates TABLE and fills it with the model's rows. */
void nps_db_fill__table(struct nps_db_fill *fill, const struct nps_db_table *table);

/* SESSION_TIME_INFO, NPU_INFO, HOST_INFO, RANK_DEVICE_MAP, META_DATA. */
void nps_db_fill__identity(struct nps_db_fill *fill);

/* What only npuscope's own tables have, where Insight reads it; after all other tables. */
void nps_db_fill__viewer(struct nps_db_fill *fill);

/* ENUM_* tables. */
void nps_db_fill__enums(struct nps_db_fill *fill);

/* Makes the rows of TABLE readable in SQL as the table v_NAME. VIEW lives as long as the database. */
struct nps_db_view {
	struct nps_db_fill *fill;
	const struct nps_db_table *table;
};

/* Registers VIEW; an error is kept in fill->db.err. */
void nps_db_view__register(struct nps_db_view *view);

/* Calls xColumn's conversion aside: whether COLUMN's values ascend from row to row, or strictly so. */
bool nps_db_view__ascends(const struct nps_db_view *view, const struct nps_db_column *column, bool strictly);

#endif
