/* SPDX-License-Identifier: BSD-2-Clause */
#include "derive/step_labels.h"

#include "base/map.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#define OPTIMIZER "Optimizer." /* labels of its own: its step, and zero_grad */
#define OPTIMIZER_STEP "Optimizer.step#"
#define TIMES_LEAST 4 /* that a label has to recur */
#define COVERED_LEAST 0.6 /* share of all launches that are in it */
#define NEARLY 0.9 /* share of the largest: such labels are taken to be around each other */

/* Labels of one thread and text; numbers in a text do not count. */
struct label_kind {
	size_t n; /* those in one of the same kind are left out */
	uint64_t start, first_end, end; /* of the first, and of the last */
	size_t launches; /* in them */
	bool optimizer;
};

struct label_row {
	uint32_t kind, row;
};

struct label_walk {
	struct nps_model *m;
	const uint64_t *times;
	size_t n_times;
	struct nps_vec ops; /* uint64_t: times of operators, for a process without launches */
	struct nps_map numbers; /* hash -> kind */
	struct nps_vec kinds; /* struct label_kind */
	struct nps_vec rows; /* struct label_row, by start */
};

int nps_step_metadata__set(struct nps_model *m, const char *source)
{
	cJSON *own = cJSON_GetObjectItemCaseSensitive(m->metadata, "npuscope");

	if (!cJSON_IsObject(own))
		return 0;
	if (!cJSON_AddStringToObject(own, "step_source", source) ||
	    !cJSON_AddNumberToObject(own, "step_confidence", round(m->step_confidence * 1000) / 1000))
		return -ENOMEM;
	return 0;
}

/* How many launches came before TIME. */
static size_t launches_before(const struct label_walk *w, uint64_t time)
{
	size_t low = 0, high = w->n_times;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w->times[middle] < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t launches_in(const struct label_walk *w, uint64_t start, uint64_t end)
{
	size_t before = launches_before(w, start), until = launches_before(w, end);

	return until > before ? until - before : 0;
}

static bool text_begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* FNV of a text whose numbers are all the same. */
static uint64_t text_hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (; *text; text++) {
		bool digit = isdigit((unsigned char)*text);

		if (digit && isdigit((unsigned char)text[1]))
			continue;
		h = (h ^ (digit ? '0' : (unsigned char)*text)) * 0x100000001b3ULL;
	}
	return h;
}

static int kind_of(struct label_walk *w, size_t row, const char *text, uint32_t *kind)
{
	uint64_t hash = nps_hash2(text_hash(text), w->m->torch.gtid[row]);
	struct label_kind *added;

	*kind = nps_map__get(&w->numbers, hash);
	if (*kind != NPS_NONE)
		return 0;
	*kind = w->kinds.len;
	added = nps_vec__push(&w->kinds);
	if (!added)
		return -errno;
	*added = (struct label_kind){ .optimizer = text_begins(text, OPTIMIZER_STEP) };
	return nps_map__put(&w->numbers, hash, *kind);
}

static int label_count(struct label_walk *w, size_t row, const char *text)
{
	const struct nps_torch_table *t = &w->m->torch;
	struct label_row *added;
	struct label_kind *kind;
	uint32_t number;
	int err = kind_of(w, row, text, &number);

	if (err)
		return err;
	kind = &NPS_AT(&w->kinds, struct label_kind, number);
	if (kind->n && t->start[row] < kind->end)
		return 0; /* in one of its own kind */
	added = nps_vec__push(&w->rows);
	if (!added)
		return -errno;
	*added = (struct label_row){ number, (uint32_t)row };
	if (!kind->n++) {
		kind->start = t->start[row];
		kind->first_end = t->end[row];
	}
	kind->end = t->end[row];
	kind->launches += launches_in(w, t->start[row], t->end[row]);
	return 0;
}

static int labels_collect(struct label_walk *w)
{
	const struct nps_torch_table *t = &w->m->torch;
	struct nps_rows ops = nps_model__torch_rows(w->m, NPS_API_TORCH_OP);
	struct nps_pace pace = { w->m, 0 };
	int err = 0;

	for (size_t i = ops.begin; !err && i < ops.end; i++, nps_pace__step(&pace)) {
		const char *text;

		if (!t->label[i] || t->ending[i] != NPS_ENDING_SEEN)
			continue;
		text = nps_model__text(w->m, t->name[i]);
		if (text_begins(text, OPTIMIZER_STEP) || !text_begins(text, OPTIMIZER))
			err = label_count(w, i, text);
	}
	return err;
}

/* A process that launches nothing is measured by its operators. */
static int ops_collect(struct label_walk *w)
{
	const struct nps_torch_table *t = &w->m->torch;
	struct nps_rows ops = nps_model__torch_rows(w->m, NPS_API_TORCH_OP);
	struct nps_pace pace = { w->m, 0 };

	for (size_t i = ops.begin; i < ops.end; i++, nps_pace__step(&pace)) {
		uint64_t *time;

		if (t->label[i])
			continue;
		time = nps_vec__push(&w->ops);
		if (!time)
			return -errno;
		*time = t->start[i];
	}
	w->times = w->ops.data;
	w->n_times = w->ops.len;
	return 0;
}

/* Of several optimizers the one that appeared last, as in the vendor's profiler. NPS_NONE: there is none. */
static uint32_t optimizer_choose(const struct label_walk *w)
{
	const struct label_kind *kinds = w->kinds.data;
	uint32_t chosen = NPS_NONE;

	for (uint32_t i = 0; i < w->kinds.len; i++)
		if (kinds[i].optimizer && kinds[i].n > 1 &&
		    (chosen == NPS_NONE || kinds[i].start > kinds[chosen].start))
			chosen = i;
	return chosen;
}

/* The outermost of the labels that recur and have most of the launches in them. NPS_NONE: there is none. */
static uint32_t label_choose(const struct label_walk *w)
{
	const struct label_kind *kinds = w->kinds.data;
	uint32_t chosen = NPS_NONE;
	size_t most = 0;

	for (uint32_t i = 0; i < w->kinds.len; i++)
		if (!kinds[i].optimizer && kinds[i].n >= TIMES_LEAST)
			most = NPS_MAX(most, kinds[i].launches);
	if (!most || (double)most < COVERED_LEAST * (double)w->n_times)
		return NPS_NONE;
	for (uint32_t i = 0; i < w->kinds.len; i++)
		if (!kinds[i].optimizer && kinds[i].n >= TIMES_LEAST &&
		    (double)kinds[i].launches >= NEARLY * (double)most &&
		    (chosen == NPS_NONE || kinds[i].n < kinds[chosen].n ||
		     (kinds[i].n == kinds[chosen].n && kinds[i].start < kinds[chosen].start)))
			chosen = i;
	return chosen;
}

static int label_step_add(struct label_walk *w, uint64_t start, uint64_t end, const char *source,
			  const char *role)
{
	struct nps_step_row step = { .id = (int64_t)w->m->step.t.len, .start = start, .end = end };
	struct nps_found_step_row row = { .id = step.id,
					  .start = start,
					  .end = end,
					  .confidence = w->m->step_confidence,
					  .kind = 1,
					  .role = NPS_NONE };
	int err = nps_step_table__add(&w->m->step, &step);

	row.source = nps_model__intern(w->m, source, &err);
	if (role)
		row.role = nps_model__intern(w->m, role, &err);
	return err ? err : nps_found_step_table__add(&w->m->found_step, &row);
}

/* A step ends with its optimizer's; one of a label reaches to the next label, the last to its own end. */
static int label_steps_add(struct label_walk *w, uint32_t chosen)
{
	const struct nps_torch_table *t = &w->m->torch;
	const struct label_kind *kind = &NPS_AT(&w->kinds, struct label_kind, chosen);
	const char *source = kind->optimizer ? "optimizer" : "label";
	const char *role = kind->optimizer ? "training" : NULL;
	uint64_t last = 0, end = 0;
	int err = 0;

	for (size_t i = 0; !err && i < w->rows.len; i++) {
		const struct label_row *row = &NPS_AT(&w->rows, struct label_row, i);
		uint64_t at;

		if (row->kind != chosen)
			continue;
		end = t->end[row->row];
		at = kind->optimizer ? end : t->start[row->row];
		if (last)
			err = label_step_add(w, last, at, source, role);
		last = at;
	}
	if (!err && !kind->optimizer)
		err = label_step_add(w, last, end, source, role);
	return err ? err : nps_step_metadata__set(w->m, source);
}

static int steps_choose(struct label_walk *w)
{
	enum nps_step_source source = w->m->step_source;
	uint32_t chosen = source == NPS_STEPS_LABEL ? NPS_NONE : optimizer_choose(w);
	const struct label_kind *kind;
	size_t launches;

	if (chosen == NPS_NONE && source != NPS_STEPS_OPTIMIZER)
		chosen = label_choose(w);
	if (chosen == NPS_NONE)
		return 0;
	kind = &NPS_AT(&w->kinds, struct label_kind, chosen);
	launches = kind->optimizer ? launches_in(w, kind->first_end, kind->end) : kind->launches;
	w->m->step_confidence = w->n_times ? (double)launches / (double)w->n_times : 0;
	return label_steps_add(w, chosen);
}

int nps_step_labels__fill(struct nps_model *m, const uint64_t *times, size_t n)
{
	struct label_walk w = { .m = m, .times = times, .n_times = n };
	int err;

	nps_vec__init(&w.ops, m->tmpfd, sizeof(uint64_t));
	nps_vec__init(&w.kinds, m->tmpfd, sizeof(struct label_kind));
	nps_vec__init(&w.rows, m->tmpfd, sizeof(struct label_row));
	err = n ? 0 : ops_collect(&w);
	err = err ? err : labels_collect(&w);
	err = err ? err : steps_choose(&w);
	nps_vec__free(&w.ops);
	nps_vec__free(&w.kinds);
	nps_vec__free(&w.rows);
	nps_map__free(&w.numbers);
	return err;
}
