/* SPDX-License-Identifier: BSD-2-Clause */
/* STRING_IDS. */
#include "import/ascend_db/import_db.h"

#include <errno.h>
#include <string.h>

#define LONGEST (1 << 20) /* bytes of a text */

struct strings {
	struct nps_db_import *in;
	uint64_t wrong, twice; /* rows without a usable id, with another's */
	uint64_t cut, none; /* with too long a text, without one */
};

static int string_add_id(struct nps_db_import *in, uint32_t id, uint32_t text)
{
	struct nps_vec *db_ids = &in->model->db_ids;
	struct nps_db_run *run = in->runs.len ? &NPS_AT(&in->runs, struct nps_db_run, in->runs.len - 1)
					      : NULL;
	size_t had = db_ids->len;

	if (text >= had) {
		if (nps_vec__resize(db_ids, (size_t)text + 1))
			return -ENOMEM;
		for (size_t i = had; i < text; i++)
			NPS_AT(db_ids, uint32_t, i) = NPS_NONE;
	}
	NPS_AT(db_ids, uint32_t, text) = id;
	if (run && id - run->id == run->count && text - run->text == run->count) {
		run->count++;
		return 0;
	}
	run = nps_vec__push(&in->runs);
	if (!run)
		return -errno;
	*run = (struct nps_db_run){ id, text, 1 };
	return 0;
}

/* The first N/A is the one that the model has from its beginning. */
static uint32_t string_add_text(struct nps_db_import *in, const char *text, size_t len)
{
	struct nps_model *model = in->model;
	bool na = len == 3 && !memcmp(text, "N/A", 3);

	if (na && (model->na >= model->db_ids.len || NPS_AT(&model->db_ids, uint32_t, model->na) == NPS_NONE))
		return model->na;
	return nps_strings__append_new(model->strings, text, len);
}

static int row(struct strings *s, sqlite3_stmt *stmt)
{
	int64_t id = sqlite3_column_int64(stmt, 0);
	const char *text = (const char *)sqlite3_column_text(stmt, 1);
	size_t len = text ? sqlite3_column_bytes(stmt, 1) : 0;
	uint32_t new;

	/* The vendor's "none" is no id. */
	if (sqlite3_column_type(stmt, 0) != SQLITE_INTEGER || id < 0 || id >= NPS_NO_ID) {
		s->wrong += id != NPS_NO_ID;
		return 0;
	}
	if (nps_db_strings__text(s->in, id) != NPS_NONE) {
		s->twice++;
		return 0;
	}
	s->cut += len > LONGEST;
	s->none += !len;
	new = len ? string_add_text(s->in, text, NPS_MIN(len, (size_t)LONGEST)) : s->in->model->na;
	return new == NPS_NONE ? -ENOMEM : string_add_id(s->in, id, new);
}

int nps_db_strings__read(struct nps_db_import *in)
{
	sqlite3_stmt *stmt;
	struct strings s = { .in = in };
	int rc = SQLITE_DONE, err = 0;

	if (!nps_db_source__has_table(&in->source, "STRING_IDS")) {
		nps_model__lost(in->model, 1, "table STRING_IDS, without which nothing has a name");
		return 0;
	}
	stmt = nps_db_source__prepare(&in->source, "SELECT id,value FROM STRING_IDS ORDER BY id");
	while (stmt && !err && (rc = nps_db_source__step(&in->source, stmt)) == SQLITE_ROW)
		err = row(&s, stmt);
	sqlite3_finalize(stmt);
	nps_model__lost(in->model, !stmt || (!err && rc != SQLITE_DONE),
			"rest of table STRING_IDS, which is damaged");
	nps_model__lost(in->model, s.wrong, "rows of STRING_IDS without an id");
	nps_model__lost(in->model, s.twice, "rows of STRING_IDS with the id of another row");
	nps_model__lost(in->model, s.cut, "texts of STRING_IDS that are cut because they are too long");
	nps_model__lost(in->model, s.none, "texts of STRING_IDS that are missing or empty");
	/* Ids with a hole are not written again: all texts get new ids. */
	return err || !s.none ? err : nps_vec__resize(&in->model->db_ids, 0);
}

uint32_t nps_db_strings__text(const struct nps_db_import *in, int64_t id)
{
	size_t low = 0, high = in->runs.len;

	if (id < 0 || id >= NPS_NO_ID)
		return NPS_NONE;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct nps_db_run *run = &NPS_AT(&in->runs, struct nps_db_run, middle);

		if (id < run->id)
			high = middle;
		else if (id - run->id >= run->count)
			low = middle + 1;
		else
			return run->text + (id - run->id);
	}
	return NPS_NONE;
}
