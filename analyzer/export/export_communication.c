/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * communication.json and communication_matrix.json (outputs 5.1, 5.2) from the CommAnalyzer tables, which
 * were derived or imported. Rows are brought together by step and type; a collective's bandwidth rows
 * follow its time row.
 */
#include "base/csv_number.h"
#include "base/ext_sort.h"
#include "base/json_writer.h"
#include "derive/round4.h"
#include "export/csv_tables.h"
#include "export/export.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_SLOTS 4096

static const char *const transports[] = { "RDMA", "HCCS", "PCIE", "SDMA", "SIO" };
static const char *const types[] = { "p2p", "collective" };

struct json_bucket { /* packets of one size */
	double size, count, time;
};

struct json_traffic { /* of a transport, over all collectives of a step and type */
	double size, time;
	bool any;
	struct nps_vec buckets; /* struct json_bucket in order of appearance */
	struct nps_map bucket_of; /* bits of the size -> bucket */
};

struct json_sums {
	double elapse, transit, wait, synchronization, idle;
	struct json_traffic traffic[NPS_ARRAY_SIZE(transports)];
};

struct exporter {
	const struct nps_model *m;
	struct nps_vec steps; /* uint32_t: text, in order of appearance */
	struct nps_map step_of; /* text -> row of steps */
	struct nps_csv_groups time, bandwidth, matrix;
	size_t at_time, at_bandwidth, at_matrix; /* what is written next */
	struct json_sums sums;
	struct nps_writer w;
	struct nps_pace pace;
};

/* --- order of rows -------------------------------------------------------------------------------- */

static int note_step(struct exporter *e, uint32_t text)
{
	uint32_t *step;

	if (nps_map__get(&e->step_of, text) != NPS_NONE)
		return 0;
	step = nps_vec__push(&e->steps);
	if (!step)
		return -ENOMEM;
	*step = text;
	return nps_map__put(&e->step_of, text, e->steps.len - 1);
}

static uint64_t step_and_type(const struct exporter *e, uint32_t step, uint32_t type)
{
	return 2ULL * nps_map__get(&e->step_of, step) + (strcmp(nps_model__text(e->m, type), types[0]) != 0);
}

static uint64_t time_key(const void *ctx, size_t row)
{
	const struct exporter *e = ctx;

	return step_and_type(e, e->m->comm_time.step[row], e->m->comm_time.type[row]);
}

static uint64_t matrix_key(const void *ctx, size_t row)
{
	const struct exporter *e = ctx;

	return step_and_type(e, e->m->comm_matrix.step[row], e->m->comm_matrix.type[row]);
}

static bool owns(const struct exporter *e, size_t index, size_t bandwidth)
{
	const struct nps_comm_time_table *t = &e->m->comm_time;
	const struct nps_comm_bandwidth_table *b = &e->m->comm_bandwidth;
	uint32_t row = nps_csv__grouped(&e->time, index);

	return t->op[row] == b->op[bandwidth] && t->group[row] == b->group[bandwidth] &&
	       t->step[row] == b->step[bandwidth] && t->type[row] == b->type[bandwidth];
}

/* Everything that distinguishes a collective from others. */
static struct nps_sort_key identity(uint32_t op, uint32_t group, uint32_t step, uint32_t type)
{
	return (struct nps_sort_key){ (uint64_t)op << 32 | group, (uint64_t)step << 32 | type };
}

struct keyed {
	struct nps_sort_key key;
	uint32_t row; /* of comm_bandwidth, or index in `time` */
	bool bandwidth;
};

static int add_keyed(struct nps_ext_sort *sort, struct nps_sort_key key, uint32_t row, bool bandwidth)
{
	struct keyed *to = nps_ext_sort__add(sort);

	if (!to)
		return sort->err;
	*to = (struct keyed){ key, row, bandwidth };
	return 0;
}

/* Collectives by identity: the time rows of each before its bandwidth rows, as the sort is stable. */
static int sort_collectives(struct exporter *e, struct nps_ext_sort *sort)
{
	const struct nps_comm_time_table *t = &e->m->comm_time;
	const struct nps_comm_bandwidth_table *b = &e->m->comm_bandwidth;
	int err = 0;

	for (size_t index = 0; !err && index < t->t.len; index++, nps_pace__step(&e->pace)) {
		uint32_t row = nps_csv__grouped(&e->time, index);

		err = add_keyed(sort, identity(t->op[row], t->group[row], t->step[row], t->type[row]), index,
				false);
	}
	for (size_t row = 0; !err && row < b->t.len; row++, nps_pace__step(&e->pace))
		err = add_keyed(sort, identity(b->op[row], b->group[row], b->step[row], b->type[row]), row,
				true);
	return err ? err : nps_ext_sort__finish(sort);
}

static bool same_key(struct nps_sort_key a, struct nps_sort_key b)
{
	return a.high == b.high && a.low == b.low;
}

/*
 * Bandwidth rows go where their collective's first time row is; those of none are left out. Adds keys of
 * index in `time` and row.
 */
static int index_bandwidths(struct nps_ext_sort *collectives, struct nps_ext_sort *indexed)
{
	struct keyed owner = { .row = NPS_NONE };
	const struct keyed *next;
	struct nps_sort_key *to;

	while ((next = nps_ext_sort__next(collectives))) {
		bool known = owner.row != NPS_NONE && same_key(owner.key, next->key);

		if (!next->bandwidth && !known)
			owner = *next;
		if (!next->bandwidth || !known)
			continue;
		to = nps_ext_sort__add(indexed);
		if (!to)
			return indexed->err;
		*to = (struct nps_sort_key){ owner.row, next->row };
	}
	return collectives->err ? collectives->err : nps_ext_sort__finish(indexed);
}

/* Whether each bandwidth row belongs to the time row of the one before or to a later one. */
static bool bandwidths_in_order(struct exporter *e)
{
	size_t index = 0;

	for (size_t row = 0; row < e->m->comm_bandwidth.t.len; row++, nps_pace__step(&e->pace)) {
		while (index < e->time.len && !owns(e, index, row)) {
			index++;
			nps_pace__step(&e->pace);
		}
		if (index == e->time.len)
			return false;
	}
	return true;
}

static int order_bandwidths(struct exporter *e)
{
	struct nps_ext_sort collectives, indexed;
	const struct nps_sort_key *next;
	int err;

	nps_vec__init(&e->bandwidth.order, e->m->tmpfd, sizeof(uint32_t));
	e->bandwidth.len = e->m->comm_bandwidth.t.len;
	if (bandwidths_in_order(e))
		return 0;
	nps_ext_sort__init(&collectives, e->m->tmpfd, sizeof(struct keyed));
	nps_ext_sort__init(&indexed, e->m->tmpfd, sizeof(*next));
	err = sort_collectives(e, &collectives);
	err = err ? err : index_bandwidths(&collectives, &indexed);
	nps_ext_sort__free(&collectives);
	while (!err && (next = nps_ext_sort__next(&indexed)))
		err = nps_csv__push_row(&e->bandwidth, next->low);
	err = err ? err : indexed.err;
	nps_ext_sort__free(&indexed);
	e->bandwidth.len = e->bandwidth.order.len;
	return err;
}

static int order(struct exporter *e)
{
	const struct nps_model *m = e->m;
	int err = 0;

	for (size_t i = 0; !err && i < m->comm_time.t.len; i++)
		err = note_step(e, m->comm_time.step[i]);
	for (size_t i = 0; !err && i < m->comm_matrix.t.len; i++)
		err = note_step(e, m->comm_matrix.step[i]);
	if (err)
		return err;
	err = nps_csv__group(&e->time, m, m->comm_time.t.len, time_key, e);
	if (err)
		return err;
	err = order_bandwidths(e);
	return err ? err : nps_csv__group(&e->matrix, m, m->comm_matrix.t.len, matrix_key, e);
}

/* --- JSON, separated as json.dumps() does --------------------------------------------------------- */

static void put_float(struct nps_writer *w, double value)
{
	char text[NPS_NUMBER_MAX];

	if (isfinite(value))
		nps_writer__bytes(w, text, nps_put_repr(text, value));
	else
		nps_writer__lit(w, "0"); /* the database had no number */
}

/* A sum that nothing was added to is an integer in Python. */
static void put_sum(struct nps_writer *w, bool any, double value)
{
	if (any)
		put_float(w, value);
	else
		nps_writer__lit(w, "0");
}

static void put_field(struct nps_writer *w, const char *name, double value)
{
	nps_writer__lit(w, name);
	put_float(w, value);
}

static void put_ratio(struct nps_writer *w, const char *name, double part, double transit)
{
	nps_writer__lit(w, name);
	put_sum(w, part + transit != 0, nps_round4(part / (part + transit)));
}

static void put_json_text(struct nps_writer *w, const char *text)
{
	nps_writer__json_part(w, text, strlen(text));
}

static void put_key(struct exporter *e, uint32_t op, uint32_t group)
{
	nps_writer__lit(&e->w, "\"");
	put_json_text(&e->w, nps_model__text(e->m, op));
	nps_writer__lit(&e->w, "@");
	put_json_text(&e->w, nps_model__text(e->m, group));
	nps_writer__lit(&e->w, "\": ");
}

static void put_times(struct nps_writer *w, double transit, double wait, double synchronization, double idle)
{
	put_field(w, ", \"Transit Time(ms)\": ", transit);
	put_field(w, ", \"Wait Time(ms)\": ", wait);
	put_field(w, ", \"Synchronization Time(ms)\": ", synchronization);
	put_field(w, ", \"Idle Time(ms)\": ", idle);
	put_ratio(w, ", \"Wait Time Ratio\": ", wait, transit);
	put_ratio(w, ", \"Synchronization Time Ratio\": ", synchronization, transit);
}

static void put_bucket(struct nps_writer *w, bool first, double size, double count, double time)
{
	nps_writer__lit(w, first ? "\"" : ", \"");
	put_float(w, size);
	nps_writer__lit(w, "\": [");
	nps_writer__u64(w, count >= 0 && count < 1e18 ? (uint64_t)count : 0);
	nps_writer__lit(w, ", ");
	put_float(w, time);
	nps_writer__lit(w, "]");
}

/* Steps with what BODY writes between the braces of each type. */
static void put_steps(struct exporter *e, void (*body)(struct exporter *e, uint64_t key))
{
	struct nps_writer *w = &e->w;

	nps_writer__lit(w, "{");
	for (size_t i = 0; i < e->steps.len; i++) {
		nps_writer__lit(w, i ? ", " : "");
		nps_writer__json(w, nps_model__text(e->m, NPS_AT(&e->steps, uint32_t, i)));
		nps_writer__lit(w, ": {");
		for (size_t type = 0; type < NPS_ARRAY_SIZE(types); type++) {
			nps_writer__lit(w, type ? ", \"" : "\"");
			nps_writer__lit(w, types[type]);
			nps_writer__lit(w, "\": {");
			body(e, 2 * i + type);
			nps_writer__lit(w, "}");
		}
		nps_writer__lit(w, "}");
	}
	nps_writer__lit(w, "}");
}

/* --- communication.json --------------------------------------------------------------------------- */

static int add_bucket(struct json_traffic *t, double size, double count, double time)
{
	struct json_bucket *bucket;
	uint64_t bits;
	uint32_t at;

	memcpy(&bits, &size, sizeof(bits));
	at = nps_map__get(&t->bucket_of, bits);
	if (at == NPS_NONE) {
		bucket = nps_vec__push(&t->buckets);
		if (!bucket || nps_map__put(&t->bucket_of, bits, t->buckets.len - 1))
			return -ENOMEM;
		bucket->size = size;
	} else {
		bucket = &NPS_AT(&t->buckets, struct json_bucket, at);
	}
	bucket->count += count;
	bucket->time += time;
	return 0;
}

static void reset_sums(struct exporter *e)
{
	struct json_sums *s = &e->sums;

	s->elapse = s->transit = s->wait = s->synchronization = s->idle = 0;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(transports); i++) {
		struct json_traffic *t = &s->traffic[i];

		t->size = t->time = 0;
		t->any = false;
		t->buckets.len = 0;
		if (t->bucket_of.size > KEPT_SLOTS)
			nps_map__free(&t->bucket_of);
		else
			nps_map__clear(&t->bucket_of);
	}
}

/* One transport of a collective, whose bandwidth rows are [FROM, TO) in their order. */
static void put_transport(struct exporter *e, size_t transport, size_t from, size_t to)
{
	const struct nps_comm_bandwidth_table *b = &e->m->comm_bandwidth;
	struct json_traffic *sum = &e->sums.traffic[transport];
	struct nps_writer *w = &e->w;
	uint32_t first = NPS_NONE;
	bool packets = false;

	for (size_t i = from; i < to && first == NPS_NONE; i++) {
		uint32_t row = nps_csv__grouped(&e->bandwidth, i);

		if (!strcmp(nps_model__text(e->m, b->transport[row]), transports[transport]))
			first = row;
	}
	if (first == NPS_NONE) {
		nps_writer__lit(w,
				"{\"Transit Size(MB)\": 0, \"Transit Time(ms)\": 0, \"Bandwidth(GB/s)\": 0, "
				"\"Large Packet Ratio\": 0, \"Size Distribution\": {}}");
		return;
	}
	sum->any = true;
	sum->size += b->size[first];
	sum->time += b->time[first];
	put_field(w, "{\"Transit Size(MB)\": ", b->size[first]);
	put_field(w, ", \"Transit Time(ms)\": ", b->time[first]);
	nps_writer__lit(w, ", \"Bandwidth(GB/s)\": ");
	put_sum(w, b->time[first] != 0, b->bandwidth[first]);
	nps_writer__lit(w, ", \"Large Packet Ratio\": ");
	put_sum(w, strcmp(transports[transport], "SDMA") != 0, b->large_ratio[first]);
	nps_writer__lit(w, ", \"Size Distribution\": {");
	for (size_t i = from; i < to; i++) {
		uint32_t row = nps_csv__grouped(&e->bandwidth, i);

		if (b->transport[row] != b->transport[first] || !(b->count[row] > 0))
			continue;
		put_bucket(w, !packets, b->package[row], b->count[row], b->total[row]);
		packets = true;
		if (!w->err)
			w->err = add_bucket(sum, b->package[row], b->count[row], b->total[row]);
	}
	nps_writer__lit(w, "}}");
}

static void put_op(struct exporter *e, uint32_t row, size_t from, size_t to)
{
	const struct nps_comm_time_table *t = &e->m->comm_time;
	struct nps_writer *w = &e->w;

	put_key(e, t->op[row], t->group[row]);
	put_field(w, "{\"Communication Time Info\": {\"Start Timestamp(us)\": ", t->start[row]);
	put_field(w, ", \"Elapse Time(ms)\": ", t->elapse[row]);
	put_times(w, t->transit[row], t->wait[row], t->synchronization[row], t->idle[row]);
	nps_writer__lit(w, "}, \"Communication Bandwidth Info\": {");
	for (size_t i = 0; i < NPS_ARRAY_SIZE(transports); i++) {
		nps_writer__lit(w, i ? ", \"" : "\"");
		nps_writer__lit(w, transports[i]);
		nps_writer__lit(w, "\": ");
		put_transport(e, i, from, to);
	}
	nps_writer__lit(w, "}}");
	e->sums.elapse += t->elapse[row];
	e->sums.transit += t->transit[row];
	e->sums.wait += t->wait[row];
	e->sums.synchronization += t->synchronization[row];
	e->sums.idle += t->idle[row];
}

static void put_total(struct exporter *e)
{
	const struct json_sums *s = &e->sums;
	struct nps_writer *w = &e->w;

	put_field(w, "\"Total Op Info\": {\"Communication Time Info\": {\"Elapse Time(ms)\": ", s->elapse);
	put_times(w, s->transit, s->wait, s->synchronization, s->idle);
	nps_writer__lit(w, "}, \"Communication Bandwidth Info\": {");
	for (size_t i = 0; i < NPS_ARRAY_SIZE(transports); i++) {
		const struct json_traffic *t = &s->traffic[i];

		nps_writer__lit(w, i ? ", \"" : "\"");
		nps_writer__lit(w, transports[i]);
		nps_writer__lit(w, "\": {\"Transit Time(ms)\": ");
		put_sum(w, t->any, t->time);
		nps_writer__lit(w, ", \"Transit Size(MB)\": ");
		put_sum(w, t->any, t->size);
		nps_writer__lit(w, ", \"Size Distribution\": {");
		for (size_t k = 0; k < t->buckets.len; k++) {
			const struct json_bucket *bucket = &NPS_AT(&t->buckets, struct json_bucket, k);

			put_bucket(w, !k, bucket->size, bucket->count, bucket->time);
		}
		nps_writer__lit(w, "}}");
	}
	nps_writer__lit(w, "}}");
}

/* Collectives of one step and type; rows are grouped by that. */
static void put_ops(struct exporter *e, uint64_t key)
{
	bool any = false;

	reset_sums(e);
	for (; e->at_time < e->time.len; e->at_time++, nps_pace__step(&e->pace)) {
		uint32_t row = nps_csv__grouped(&e->time, e->at_time);
		size_t from = e->at_bandwidth;

		if (time_key(e, row) != key)
			break;
		while (e->at_bandwidth < e->bandwidth.len &&
		       owns(e, e->at_time, nps_csv__grouped(&e->bandwidth, e->at_bandwidth)))
			e->at_bandwidth++;
		put_op(e, row, from, e->at_bandwidth);
		nps_writer__lit(&e->w, ", ");
		any = true;
	}
	if (any)
		put_total(e);
}

/* --- communication_matrix.json -------------------------------------------------------------------- */

static void put_link(struct exporter *e, uint32_t row)
{
	const struct nps_comm_matrix_table *x = &e->m->comm_matrix;
	struct nps_writer *w = &e->w;
	const char *name = nps_model__text(e->m, x->name[row]);

	nps_writer__lit(w, "\"");
	put_json_text(w, nps_model__text(e->m, x->src[row]));
	nps_writer__lit(w, "-");
	put_json_text(w, nps_model__text(e->m, x->dst[row]));
	nps_writer__lit(w, "\": {\"Transport Type\": ");
	nps_writer__json(w, nps_model__text(e->m, x->transport[row]));
	put_field(w, ", \"Transit Size(MB)\": ", x->size[row]);
	put_field(w, ", \"Transit Time(ms)\": ", x->time[row]);
	nps_writer__lit(w, ", \"Bandwidth(GB/s)\": ");
	put_sum(w, x->time[row] != 0, x->bandwidth[row]);
	if (*name) {
		nps_writer__lit(w, ", \"Op Name\": ");
		nps_writer__json(w, name);
	}
	nps_writer__lit(w, "}");
}

/* Links of one step and type; those of one pseudo-collective and group stand together. */
static void put_links(struct exporter *e, uint64_t key)
{
	const struct nps_comm_matrix_table *x = &e->m->comm_matrix;
	uint32_t before = NPS_NONE;

	for (; e->at_matrix < e->matrix.len; e->at_matrix++, nps_pace__step(&e->pace)) {
		uint32_t row = nps_csv__grouped(&e->matrix, e->at_matrix);

		if (matrix_key(e, row) != key)
			break;
		if (before != NPS_NONE && x->op[row] == x->op[before] && x->group[row] == x->group[before]) {
			nps_writer__lit(&e->w, ", ");
		} else {
			nps_writer__lit(&e->w, before == NPS_NONE ? "" : "}, ");
			put_key(e, x->op[row], x->group[row]);
			nps_writer__lit(&e->w, "{");
		}
		put_link(e, row);
		before = row;
	}
	nps_writer__lit(&e->w, before == NPS_NONE ? "" : "}");
}

static int put_file(struct exporter *e, int dirfd, const char *name,
		    void (*body)(struct exporter *e, uint64_t key))
{
	int err = nps_writer__open(&e->w, dirfd, name);

	if (err)
		return err;
	put_steps(e, body);
	return nps_writer__close(&e->w);
}

int nps_export__communication(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *m = ex->model;
	struct exporter *e;
	int err;

	if (!m->comm_time.t.len && !m->comm_matrix.t.len)
		return 0;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->m = e->pace.model = m;
	nps_vec__init(&e->steps, m->tmpfd, sizeof(uint32_t));
	for (size_t i = 0; i < NPS_ARRAY_SIZE(transports); i++)
		nps_vec__init(&e->sums.traffic[i].buckets, m->tmpfd, sizeof(struct json_bucket));
	err = order(e);
	err = err ? err : put_file(e, dirfd, "communication.json", put_ops);
	if (err)
		goto out;
	/* Even if it is empty: Insight analyses anew where it is missing beside the other. */
	err = put_file(e, dirfd, "communication_matrix.json", put_links);
out:
	for (size_t i = 0; i < NPS_ARRAY_SIZE(transports); i++) {
		nps_vec__free(&e->sums.traffic[i].buckets);
		nps_map__free(&e->sums.traffic[i].bucket_of);
	}
	nps_vec__free(&e->steps);
	nps_vec__free(&e->time.order);
	nps_vec__free(&e->bandwidth.order);
	nps_vec__free(&e->matrix.order);
	nps_map__free(&e->step_of);
	free(e);
	return err;
}
