/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums by kind: op_statistic, api_statistic, communication_statistic. */
#include "base/map.h"
#include "export/csv_tables.h"
#include "export/table.h"

#include <errno.h>
#include <stdlib.h>

struct group {
	uint32_t device, type, core; /* texts; core NPS_NONE for collectives, API type for calls */
	uint64_t count, measured, total, least, most;
	double mean, squares; /* of the distance from the mean, ns */
	/* cells, in thousandths: */
	uint64_t average, share, variance; /* us, percent, us^2 */
	const char *level;
};

struct groups {
	const struct nps_model *m;
	struct nps_map rows;
	struct group *all;
	size_t len, room;
	size_t last; /* rows of one kind come in runs */
	size_t next; /* row to write */
};

static struct group *group_of(struct groups *g, uint32_t device, uint32_t type, uint32_t core)
{
	uint64_t key = nps_hash2((uint64_t)type << 32 | device, core);
	uint32_t row;

	if (g->last < g->len && g->all[g->last].type == type && g->all[g->last].device == device &&
	    g->all[g->last].core == core)
		return &g->all[g->last];
	/* A different kind with the same hash takes the next free hash value. */
	while (g->all && (row = nps_map__get(&g->rows, key)) != NPS_NONE) {
		g->last = row;
		if (g->all[row].type == type && g->all[row].device == device && g->all[row].core == core)
			return &g->all[row];
		key++;
	}
	if (g->len == g->room) {
		size_t room = g->room ? 2 * g->room : 256;
		struct group *more = realloc(g->all, room * sizeof(*more));

		if (!more)
			return NULL;
		g->all = more;
		g->room = room;
	}
	if (nps_map__put(&g->rows, key, g->len))
		return NULL;
	g->last = g->len++;
	g->all[g->last] = (struct group){ .device = device, .type = type, .core = core, .least = UINT64_MAX };
	return &g->all[g->last];
}

/* Everything is counted; what nobody measured adds no time. */
static int add(struct groups *g, uint32_t device, uint32_t type, uint32_t core, uint64_t ns, bool measured)
{
	struct group *group = group_of(g, device, type, core);
	double off;

	if (!group)
		return -ENOMEM;
	group->count++;
	if (!measured)
		return 0;
	/* Welford's update, so that large sums do not swallow small variances. */
	off = (double)ns - group->mean;
	group->mean += off / (double)++group->measured;
	group->squares += off * ((double)ns - group->mean);
	group->total = nps_add_sat(group->total, ns);
	group->least = NPS_MIN(group->least, ns);
	group->most = NPS_MAX(group->most, ns);
	return 0;
}

static void release(struct groups *g)
{
	nps_map__free(&g->rows);
	free(g->all);
}

static int by_text(const struct nps_model *m, uint32_t a, uint32_t b)
{
	return a == b ? 0 : strcmp(nps_model__text_or_na(m, a), nps_model__text_or_na(m, b));
}

static int by_total(const void *a, const void *b, void *ctx)
{
	const struct group *x = a, *y = b;
	int order;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	order = by_text(ctx, x->type, y->type);
	return order ? order : by_text(ctx, x->core, y->core);
}

/* Total of the rows of one device, which are together. */
static uint64_t device_total(const struct groups *g, size_t first)
{
	uint64_t sum = 0;

	for (size_t i = first; i < g->len && g->all[i].device == g->all[first].device; i++)
		sum = nps_add_sat(sum, g->all[i].total);
	return sum;
}

#define MEASURED 1 /* source: the groups again, without a row for one of which nothing was measured */
#define CORES NPS_CSV_IF(0)
#define GROUP(title, format, member, ...) NPS_CSV_FIELD(title, format, struct group, member, ##__VA_ARGS__)

static const struct nps_csv_column total_columns[] = {
	GROUP("Device_id", DEVICE, device, .when = NPS_CSV_B),
	GROUP("OP Type", TEXT, type),
	GROUP("Core Type", TEXT, core, .when = CORES),
	GROUP("Count", NUMBER, count),
	GROUP("Total Time(us)", SPAN, total, .source = MEASURED),
	GROUP("Min Time(us)", SPAN, least, .source = MEASURED),
	GROUP("Avg Time(us)", SPAN, average, .source = MEASURED),
	GROUP("Max Time(us)", SPAN, most, .source = MEASURED),
	GROUP("Ratio(%)", SPAN, share, .source = MEASURED),
};

static bool next_total(void *ctx, struct nps_csv_row *row)
{
	struct groups *g = ctx;

	if (g->next == g->len)
		return false;
	row->at[0] = g->next++;
	row->at[MEASURED] = g->all[row->at[0]].measured ? row->at[0] : NPS_CSV_NO_ROW;
	return true;
}

static int write_totals(struct groups *g, const struct nps_export *ex, int dirfd, const char *stem,
			unsigned int when)
{
	const struct nps_csv_table table = { stem, .columns = NPS_CSV_COLUMNS(total_columns) };
	const struct nps_csv_source all = { NULL, g->all, sizeof(*g->all) };
	uint64_t total = 0;

	if (g->len)
		qsort_r(g->all, g->len, sizeof(*g->all), by_total, (void *)g->m);
	for (size_t i = 0; i < g->len; i++) {
		struct group *s = &g->all[i];

		if (!i || s->device != s[-1].device)
			total = device_total(g, i);
		s->average = nps_thousandths((double)s->total / 1000 / (double)s->measured);
		s->share = total ? nps_thousandths(100.0 * (double)s->total / (double)total) : 0;
	}
	return nps_csv_table__write(
		ex, dirfd, &table,
		&(struct nps_csv_input){
			.when = when, .sources = { all, [MEASURED] = all }, .next = next_total, .ctx = g });
}

static uint64_t span(uint64_t start, uint64_t end)
{
	return end > start ? end - start : 0;
}

int nps_csv__op_statistic(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *m = ex->model;
	struct nps_pace pace = { .model = m };
	struct groups g = { .m = m };
	int err = 0;

	for (size_t i = 0; !err && i < m->compute.t.len; i++) {
		uint32_t task = m->compute.task[i];

		err = add(&g, m->task.device[task], m->compute.type[i], m->compute.core[i],
			  span(m->task.start[task], m->task.end[task]), nps_model__task_measured(m, task));
		nps_pace__step(&pace);
	}
	if (!err)
		err = write_totals(&g, ex, dirfd, "op_statistic", CORES);
	release(&g);
	return err;
}

int nps_csv__communication_statistic(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *m = ex->model;
	struct nps_pace pace = { .model = m };
	struct groups g = { .m = m };
	int err = 0;

	for (size_t i = 0; !err && i < m->comm_op.t.len; i++) {
		if (m->comm_op.end[i])
			err = add(&g, m->comm_op.device[i], m->comm_op.type[i], NPS_NONE,
				  span(m->comm_op.start[i], m->comm_op.end[i]),
				  nps_model__comm_measured(m, i));
		nps_pace__step(&pace);
	}
	if (!err)
		err = write_totals(&g, ex, dirfd, "communication_statistic", 0);
	release(&g);
	return err;
}

static const char *level_name(const struct nps_export *ex, uint32_t type)
{
	switch (type) {
	case NPS_API_RUNTIME:
		return "runtime";
	case NPS_API_COMM:
		return ex->generation == NPS_GENERATION_A ? "hccl" : "communication";
	case NPS_API_NODE:
		return "node";
	case NPS_API_MODEL:
		return "model";
	case NPS_API_ACL:
		return "acl";
	}
	return NULL;
}

static int by_name(const void *a, const void *b, void *ctx)
{
	const struct group *x = a, *y = b;
	int order = by_text(ctx, x->type, y->type);

	return order ? order : strcmp(x->level, y->level);
}

static const struct nps_csv_column api_columns[] = {
	NPS_CSV_HOST_ID,
	GROUP("Level", WORD, level),
	GROUP("API Name", TEXT, type),
	GROUP("Time(us)", SPAN, total),
	GROUP("Count", NUMBER, count),
	GROUP("Avg(us)", SPAN, average),
	GROUP("Min(us)", SPAN, least),
	GROUP("Max(us)", SPAN, most),
	GROUP("Variance", SPAN, variance),
};

static int write_apis(struct groups *g, const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "api_statistic",
						    .columns = NPS_CSV_COLUMNS(api_columns) };

	for (size_t i = 0; i < g->len; i++) {
		struct group *s = &g->all[i];

		s->level = level_name(ex, s->core);
		s->average = nps_thousandths((double)s->total / 1000 / (double)s->count);
		s->variance = nps_thousandths(s->squares / 1e6 / (double)s->count);
	}
	if (g->len)
		qsort_r(g->all, g->len, sizeof(*g->all), by_name, (void *)ex->model);
	return nps_csv_table__write(ex, dirfd, &table,
				    &(struct nps_csv_input){ .sources[0] = { NULL, g->all, sizeof(*g->all) },
							     .len = g->len });
}

int nps_csv__api_statistic(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *m = ex->model;
	struct nps_pace pace = { .model = m };
	struct groups g = { .m = m };
	int err = 0;

	for (size_t i = 0; !err && i < m->api.t.len; i++) {
		if (level_name(ex, m->api.type[i]))
			err = add(&g, NPS_NONE, m->api.name[i], m->api.type[i],
				  span(m->api.start[i], m->api.end[i]), true);
		nps_pace__step(&pace);
	}
	if (!err)
		err = write_apis(&g, ex, dirfd);
	release(&g);
	return err;
}
