/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums by kind: op_statistic, api_statistic, communication_statistic. */
#include "base/map.h"
#include "export/csv_tables.h"

#include <errno.h>
#include <stdlib.h>

struct group {
	uint32_t device, type, core; /* texts; core NPS_NONE for collectives, API type for calls */
	uint64_t count, measured, total, least, most;
	double mean, squares; /* of the distance from the mean, ns */
};

struct groups {
	const struct nps_model *m;
	struct nps_map rows;
	struct group *all;
	size_t len, room;
	size_t last; /* rows of one kind come in runs */
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

/* Total, least, mean, most, share; N/A where nothing was measured. */
static void write_times(struct nps_csv *csv, const struct group *s, uint64_t total)
{
	for (int i = 0; !s->measured && i < 5; i++)
		nps_csv__lit(csv, "N/A");
	if (!s->measured)
		return;
	nps_csv__span(csv, s->total);
	nps_csv__span(csv, s->least);
	nps_csv__span(csv, nps_thousandths((double)s->total / 1000 / (double)s->measured));
	nps_csv__span(csv, s->most);
	nps_csv__span(csv, total ? nps_thousandths(100.0 * (double)s->total / (double)total) : 0);
}

static int write_totals(struct groups *g, const struct nps_export *ex, int dirfd,
			const struct nps_csv_file *file, bool core)
{
	struct nps_csv *csv = nps_csv__new(ex, dirfd, file);
	uint64_t total = 0;

	if (!csv)
		return -ENOMEM;
	if (g->len)
		qsort_r(g->all, g->len, sizeof(*g->all), by_total, (void *)g->m);
	for (size_t i = 0; i < g->len; i++) {
		const struct group *s = &g->all[i];

		if (!i || s->device != s[-1].device)
			total = device_total(g, i);
		nps_csv__row(csv);
		nps_csv__device(csv, s->device);
		nps_csv__text(csv, s->type);
		if (core)
			nps_csv__text(csv, s->core);
		nps_csv__u64(csv, s->count);
		write_times(csv, s, total);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

static uint64_t span(uint64_t start, uint64_t end)
{
	return end > start ? end - start : 0;
}

int nps_csv__op_statistic(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = "op_statistic",
					   .header = "OP Type,Core Type,Count,Total Time(us),Min Time(us),"
						     "Avg Time(us),Max Time(us),Ratio(%)",
					   .stamped = ex->model->layout == NPS_LAYOUT_MSPROF,
					   .device = true };
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
		err = write_totals(&g, ex, dirfd, &file, true);
	release(&g);
	return err;
}

int nps_csv__communication_statistic(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = "communication_statistic",
					   .header = "OP Type,Count,Total Time(us),Min Time(us),Avg Time(us),"
						     "Max Time(us),Ratio(%)",
					   .stamped = true,
					   .device = true };
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
		err = write_totals(&g, ex, dirfd, &file, false);
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
	const struct nps_export *ex = ctx;
	int order = by_text(ex->model, x->type, y->type);

	return order ? order : strcmp(level_name(ex, x->core), level_name(ex, y->core));
}

static int write_apis(struct groups *g, const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "api_statistic",
		.header = "Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance",
		.stamped = ex->model->layout == NPS_LAYOUT_MSPROF,
		.device = true
	};
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	if (!csv)
		return -ENOMEM;
	if (g->len)
		qsort_r(g->all, g->len, sizeof(*g->all), by_name, (void *)ex);
	for (size_t i = 0; i < g->len; i++) {
		const struct group *s = &g->all[i];

		nps_csv__row(csv);
		nps_csv__device(csv, NPS_NONE);
		nps_csv__lit(csv, level_name(ex, s->core));
		nps_csv__text(csv, s->type);
		nps_csv__span(csv, s->total);
		nps_csv__u64(csv, s->count);
		nps_csv__span(csv, nps_thousandths((double)s->total / 1000 / (double)s->count));
		nps_csv__span(csv, s->least);
		nps_csv__span(csv, s->most);
		nps_csv__span(csv, nps_thousandths(s->squares / 1e6 / (double)s->count)); /* us^2 */
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
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
