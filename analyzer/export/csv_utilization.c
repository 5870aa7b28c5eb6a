/* SPDX-License-Identifier: BSD-2-Clause */
/* ai_core_utilization and ai_vector_core_utilization (outputs 3.4): a row for each core that was sampled, a column for each metric. */
#include "derive/group_by.h"
#include "export/counter_csv.h"
#include "export/csv_pmu.h"
#include "export/table.h"

#include <errno.h>
#include <stdio.h>

#define METRICS 100
#define CORES 65536
#define TITLES 8192
#define NUMBERS 600 /* bytes of these that are left for METRICS numbers */

struct core {
	struct nps_group of; /* key: device, sub: id, NPS_NONE: the mean; count 0: that no profiler made */
	uint32_t device;
	double memory_bound, values[METRICS]; /* NaN: not known */
};

struct cores {
	const struct nps_model *m;
	bool vector;
	uint32_t metrics[METRICS]; /* texts */
	size_t nmetrics;
	int mte2, mac, vec; /* metrics of which memory_bound is made; -1: there is none */
	struct nps_group_by rows; /* struct core */
};

static bool ours(const struct cores *c, size_t row)
{
	return !strpbrk(nps_model__text(c->m, c->m->sample_summary.core_type[row]), "vV") == !c->vector;
}

/* The column of a metric; METRICS: there are too many. */
static size_t metric_column(struct cores *c, uint32_t metric)
{
	for (size_t i = 0; i < c->nmetrics; i++)
		if (c->metrics[i] == metric)
			return i;
	if (c->nmetrics < METRICS)
		c->metrics[c->nmetrics++] = metric;
	else
		return METRICS;
	return c->nmetrics - 1;
}

static int add_value(struct cores *c, size_t i)
{
	const struct nps_sample_summary_table *t = &c->m->sample_summary;
	size_t column = metric_column(c, t->metric[i]);
	bool more = nps_group_by__len(&c->rows) < CORES;
	struct core *core = more ? nps_group_by__get(&c->rows, t->device[i], t->core[i])
				 : nps_group_by__find(&c->rows, t->device[i], t->core[i]);

	if (!core)
		return more ? -errno : 0;
	for (size_t k = 0; !core->of.count && k < METRICS; k++)
		core->values[k] = NAN;
	core->of.count++;
	if (column < METRICS)
		core->values[column] = t->value[i];
	return 0;
}

/* The metric whose name ends with SUFFIX, -1 if there is none. */
static int find_metric(const struct cores *c, const char *suffix)
{
	for (size_t i = 0; i < c->nmetrics; i++) {
		const char *name = nps_model__text(c->m, c->metrics[i]);
		size_t len = strlen(name);

		if (len >= strlen(suffix) && !strcmp(name + len - strlen(suffix), suffix))
			return i;
	}
	return -1;
}

/* --- cells --------------------------------------------------------------------------------------------- */

/* The means of the cores of a device, which stand behind them, unless the profiler made them. */
static void set_mean(const struct cores *c, struct core *mean, const struct core *first)
{
	for (size_t k = 0; k < c->nmetrics; k++) {
		double sum = 0;
		size_t known = 0;

		for (const struct core *core = first; core < mean; core++) {
			if (!isfinite(core->values[k]))
				continue;
			sum += core->values[k];
			known++;
		}
		mean->values[k] = known ? sum / known : NPS_NAN;
	}
}

static double share(double part, double a, double b)
{
	double whole = fmax(a, b); /* of the one that there is */

	return whole > 0 ? part / whole : NAN;
}

static double value_at(const struct core *core, int metric)
{
	return metric < 0 ? NAN : core->values[metric];
}

static void set_cells(struct cores *c)
{
	struct core *rows = c->rows.rows.data;
	size_t first = 0;

	for (size_t i = 0; i < nps_group_by__len(&c->rows); i++) {
		struct core *core = &rows[i];

		if (rows[first].of.key != core->of.key)
			first = i;
		if (!core->of.count)
			set_mean(c, core, &rows[first]);
		core->device = (uint32_t)core->of.key;
		core->memory_bound =
			share(value_at(core, c->mte2), value_at(core, c->mac), value_at(core, c->vec));
	}
}

static int add_means(struct cores *c)
{
	size_t len = nps_group_by__len(&c->rows);

	for (size_t i = 0; i < len; i++) {
		const struct core *core = nps_group_by__at(&c->rows, i);

		if (!nps_group_by__get(&c->rows, core->of.key, NPS_NONE))
			return -errno;
	}
	return 0;
}

/* --- columns ------------------------------------------------------------------------------------------- */

static void put_core(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	const struct cores *c = ctx;
	const struct core *core = nps_group_by__at(&c->rows, row->at[0]);
	char name[32];

	snprintf(name, sizeof(name), "Core%u", (uint32_t)core->of.sub);
	nps_csv__lit(csv, core->of.sub == NPS_NONE ? "Average" : name);
}

#define CORE(title, format, member, ...) NPS_CSV_FIELD(title, format, struct core, member, ##__VA_ARGS__)

static const struct nps_csv_column core_columns[] = {
	CORE("Device_id", DEVICE, device, .when = NPS_CSV_B),
	NPS_CSV_BY("Core ID", put_core),
};

/* Of each metric, in TITLES; names that would break the header are numbers there. */
static size_t metric_columns(const struct cores *c, struct nps_csv_column *columns, char *titles)
{
	size_t at = 0, n = c->nmetrics;

	for (size_t i = 0; i < n; i++) {
		const char *name = nps_model__text(c->m, c->metrics[i]);

		columns[i] = (struct nps_csv_column)CORE(titles + at, DECIMAL, values[0]);
		columns[i].offset += i * sizeof(double);
		columns[i].per = nps_pmu__is_time(name) ? 1000 : 1;
		if (at + strlen(name) + NUMBERS < TITLES && !strpbrk(name, ",\"\r\n"))
			at += snprintf(titles + at, TITLES - at, "%s%s", name, nps_pmu__unit(name)) + 1;
		else
			at += snprintf(titles + at, TITLES - at, "%zu", i) + 1;
	}
	if (c->mte2 >= 0)
		columns[n++] = (struct nps_csv_column)CORE("memory_bound", DECIMAL, memory_bound);
	return n;
}

static int write_cores(const struct nps_export *ex, int dirfd, struct cores *c)
{
	static const struct nps_csv_table tables[] = {
		{ "npuscope_ai_core_utilization", "ai_core_utilization",
		  .columns = NPS_CSV_COLUMNS(core_columns) },
		{ "npuscope_ai_vector_core_utilization", "ai_vector_core_utilization",
		  .columns = NPS_CSV_COLUMNS(core_columns) },
	};
	struct nps_csv_column columns[METRICS + 1];
	char titles[TITLES];
	size_t ncolumns = metric_columns(c, columns, titles);

	return nps_csv_table__write(
		ex, dirfd, &tables[c->vector],
		&(struct nps_csv_input){ .sources[0] = { NULL, c->rows.rows.data, sizeof(struct core) },
					 .len = nps_group_by__len(&c->rows),
					 .more = { columns, ncolumns },
					 .ctx = c });
}

static int write_utilization(const struct nps_export *ex, int dirfd, bool vector)
{
	struct cores c = { .m = ex->model, .vector = vector };
	int err = 0;

	nps_group_by__init(&c.rows, c.m, sizeof(struct core));
	for (size_t i = 0; !err && i < c.m->sample_summary.t.len; i++)
		if (ours(&c, i))
			err = add_value(&c, i);
	err = err ? err : add_means(&c);
	if (err)
		goto out;
	nps_group_by__sort(&c.rows, nps_group__by_key);
	c.mte2 = find_metric(&c, "mte2_ratio");
	c.mac = find_metric(&c, "mac_ratio");
	c.vec = find_metric(&c, "vec_ratio");
	if (c.mac < 0 && c.vec < 0)
		c.mte2 = -1;
	set_cells(&c);
	err = write_cores(ex, dirfd, &c);
out:
	nps_group_by__free(&c.rows);
	return err;
}

int nps_counter__utilization(const struct nps_export *ex, int dirfd)
{
	int err = write_utilization(ex, dirfd, false);

	return err ? err : write_utilization(ex, dirfd, true);
}
