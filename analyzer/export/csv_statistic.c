/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums by kind: op_statistic, api_statistic, communication_statistic. */
#include "derive/group_by.h"
#include "export/csv_tables.h"
#include "export/table.h"

#include <errno.h>
#include <string.h>

struct statistic_group {
	struct nps_group sum;
	uint32_t device, type, core; /* texts; core NPS_NONE for collectives, API type for calls */
	double mean, squares; /* of the distance from the mean, ns */
	/* cells, in thousandths: */
	uint64_t average, share, variance; /* us, percent, us^2 */
	const char *level;
};

/* Everything is counted; what nobody measured adds no time. */
static int statistic_add(struct nps_group_by *groups, uint32_t device, uint32_t type, uint32_t core,
			 uint64_t ns, bool measured)
{
	struct statistic_group *group = nps_group_by__get(groups, (uint64_t)type << 32 | device, core);
	double off;

	if (!group)
		return -errno;
	group->device = device;
	group->type = type;
	group->core = core;
	if (!measured) {
		nps_group__count(&group->sum, 0);
		return 0;
	}
	nps_group__add(&group->sum, ns, 0);
	/* Welford's update, so that large sums do not swallow small variances. */
	off = (double)ns - group->mean;
	group->mean += off / (double)group->sum.measured;
	group->squares += off * ((double)ns - group->mean);
	return 0;
}

static struct statistic_group *group_at(const struct nps_group_by *groups, size_t i)
{
	return nps_group_by__at(groups, i);
}

static int by_text(const struct nps_model *m, uint32_t a, uint32_t b)
{
	return a == b ? 0 : strcmp(nps_model__text_or_na(m, a), nps_model__text_or_na(m, b));
}

static int statistic_compare_total(const void *a, const void *b, void *ctx)
{
	const struct statistic_group *x = a, *y = b;
	int order;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->sum.total != y->sum.total)
		return x->sum.total > y->sum.total ? -1 : 1;
	order = by_text(ctx, x->type, y->type);
	return order ? order : by_text(ctx, x->core, y->core);
}

/* Total of the rows of one device, which are together. */
static uint64_t device_total(const struct nps_group_by *groups, size_t first)
{
	uint32_t device = group_at(groups, first)->device;
	uint64_t sum = 0;

	for (size_t i = first; i < nps_group_by__len(groups) && group_at(groups, i)->device == device; i++)
		sum = nps_add_sat(sum, group_at(groups, i)->sum.total);
	return sum;
}

#define MEASURED 1 /* source: the groups again, without a row for one of which nothing was measured */
#define CORES NPS_CSV_IF(0)
#define GROUP(title, format, member, ...)                                                                    \
	NPS_CSV_FIELD(title, format, struct statistic_group, member, ##__VA_ARGS__)

static const struct nps_csv_column total_columns[] = {
	GROUP("Device_id", DEVICE, device, .when = NPS_CSV_B),
	GROUP("OP Type", TEXT, type),
	GROUP("Core Type", TEXT, core, .when = CORES),
	GROUP("Count", NUMBER, sum.count),
	GROUP("Total Time(us)", SPAN, sum.total, .source = MEASURED),
	GROUP("Min Time(us)", SPAN, sum.least, .source = MEASURED),
	GROUP("Avg Time(us)", SPAN, average, .source = MEASURED),
	GROUP("Max Time(us)", SPAN, sum.most, .source = MEASURED),
	GROUP("Ratio(%)", SPAN, share, .source = MEASURED),
};

struct statistic_walk {
	const struct nps_group_by *groups;
	size_t next;
};

static bool next_total(void *ctx, struct nps_csv_row *row)
{
	struct statistic_walk *walk = ctx;

	if (walk->next == nps_group_by__len(walk->groups))
		return false;
	row->at[0] = walk->next++;
	row->at[MEASURED] = group_at(walk->groups, row->at[0])->sum.measured ? row->at[0] : NPS_CSV_NO_ROW;
	return true;
}

static int write_totals(struct nps_group_by *groups, const struct nps_export *ex, int dirfd, const char *stem,
			unsigned int when)
{
	const struct nps_csv_table table = { stem, .columns = NPS_CSV_COLUMNS(total_columns) };
	const struct nps_csv_source all = { NULL, groups->rows.data, sizeof(struct statistic_group) };
	struct statistic_walk walk = { .groups = groups };
	uint64_t total = 0;

	nps_group_by__sort_by(groups, statistic_compare_total, (void *)ex->model);
	for (size_t i = 0; i < nps_group_by__len(groups); i++) {
		struct statistic_group *s = group_at(groups, i);

		if (!i || s->device != s[-1].device)
			total = device_total(groups, i);
		s->average = nps_thousandths((double)s->sum.total / 1000 / (double)s->sum.measured);
		s->share = total ? nps_thousandths(100.0 * (double)s->sum.total / (double)total) : 0;
	}
	return nps_csv_table__write(ex, dirfd, &table,
				    &(struct nps_csv_input){ .when = when,
							     .sources = { all, [MEASURED] = all },
							     .next = next_total,
							     .ctx = &walk });
}

/* Adds the N rows of a table by ADD_ROW, and writes their groups. */
static int write_statistic(const struct nps_export *ex, int dirfd, size_t n,
			   int (*add_row)(struct nps_group_by *groups, const struct nps_export *ex, size_t i),
			   int (*write)(struct nps_group_by *groups, const struct nps_export *ex, int dirfd))
{
	struct nps_pace pace = { .model = ex->model };
	struct nps_group_by groups;
	int err = 0;

	nps_group_by__init(&groups, ex->model, sizeof(struct statistic_group));
	for (size_t i = 0; !err && i < n; i++, nps_pace__step(&pace))
		err = add_row(&groups, ex, i);
	err = err ? err : write(&groups, ex, dirfd);
	nps_group_by__free(&groups);
	return err;
}

static int add_kernel_group(struct nps_group_by *groups, const struct nps_export *ex, size_t i)
{
	const struct nps_model *m = ex->model;
	uint32_t task = m->compute.task[i];

	return statistic_add(groups, m->task.device[task], m->compute.type[i], m->compute.core[i],
			     nps_span(m->task.start[task], m->task.end[task]),
			     nps_model__task_measured(m, task));
}

static int write_kernels(struct nps_group_by *groups, const struct nps_export *ex, int dirfd)
{
	return write_totals(groups, ex, dirfd, "op_statistic", CORES);
}

int nps_csv__op_statistic(const struct nps_export *ex, int dirfd)
{
	return write_statistic(ex, dirfd, ex->model->compute.t.len, add_kernel_group, write_kernels);
}

static int add_collective_group(struct nps_group_by *groups, const struct nps_export *ex, size_t i)
{
	const struct nps_comm_op_table *t = &ex->model->comm_op;

	return t->end[i] ? statistic_add(groups, t->device[i], t->type[i], NPS_NONE,
					 nps_span(t->start[i], t->end[i]),
					 nps_model__comm_measured(ex->model, i))
			 : 0;
}

static int write_collectives(struct nps_group_by *groups, const struct nps_export *ex, int dirfd)
{
	return write_totals(groups, ex, dirfd, "communication_statistic", 0);
}

int nps_csv__communication_statistic(const struct nps_export *ex, int dirfd)
{
	return write_statistic(ex, dirfd, ex->model->comm_op.t.len, add_collective_group, write_collectives);
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

static int statistic_compare_name(const void *a, const void *b, void *ctx)
{
	const struct statistic_group *x = a, *y = b;
	int order = by_text(ctx, x->type, y->type);

	return order ? order : strcmp(x->level, y->level);
}

static const struct nps_csv_column api_columns[] = {
	NPS_CSV_HOST_ID,
	GROUP("Level", WORD, level),
	GROUP("API Name", TEXT, type),
	GROUP("Time(us)", SPAN, sum.total),
	GROUP("Count", NUMBER, sum.count),
	GROUP("Avg(us)", SPAN, average),
	GROUP("Min(us)", SPAN, sum.least),
	GROUP("Max(us)", SPAN, sum.most),
	GROUP("Variance", SPAN, variance),
};

static int write_apis(struct nps_group_by *groups, const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "api_statistic",
						    .columns = NPS_CSV_COLUMNS(api_columns) };

	for (size_t i = 0; i < nps_group_by__len(groups); i++) {
		struct statistic_group *s = group_at(groups, i);

		s->level = level_name(ex, s->core);
		s->average = nps_thousandths((double)s->sum.total / 1000 / (double)s->sum.count);
		s->variance = nps_thousandths(s->squares / 1e6 / (double)s->sum.count);
	}
	nps_group_by__sort_by(groups, statistic_compare_name, (void *)ex->model);
	return nps_csv_table__write_structs(ex, dirfd, &table, &groups->rows);
}

static int add_api_group(struct nps_group_by *groups, const struct nps_export *ex, size_t i)
{
	const struct nps_api_table *t = &ex->model->api;

	return level_name(ex, t->type[i]) ? statistic_add(groups, NPS_NONE, t->name[i], t->type[i],
							  nps_span(t->start[i], t->end[i]), true)
					  : 0;
}

int nps_csv__api_statistic(const struct nps_export *ex, int dirfd)
{
	return write_statistic(ex, dirfd, ex->model->api.t.len, add_api_group, write_apis);
}
