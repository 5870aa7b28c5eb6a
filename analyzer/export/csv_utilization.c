/* SPDX-License-Identifier: BSD-2-Clause */
/* ai_core_utilization and ai_vector_core_utilization (outputs 3.4): a row a core, a column a metric. */
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
	struct nps_group of; /* key: device, sub: id; NPS_NONE: the mean, as another profiler made it */
	uint32_t device;
	const char *name;
	double memory_bound, values[METRICS + 1]; /* NaN: not known, as the last one always is */
};

struct cores {
	const struct nps_model *m;
	bool vector;
	uint32_t metrics[METRICS]; /* texts */
	size_t nmetrics;
	size_t mte2, mac, vec; /* metrics of which memory_bound is made; METRICS: there is none */
	struct nps_group_by rows; /* struct core */
	struct nps_csv_rows *out;
	struct core row; /* that is written next */
	char name[32]; /* of it */
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

static int cores_add_value(struct cores *c, size_t i)
{
	const struct nps_sample_summary_table *t = &c->m->sample_summary;
	size_t column = metric_column(c, t->metric[i]);
	bool more = nps_group_by__len(&c->rows) < CORES;
	struct core *core = more ? nps_group_by__get(&c->rows, t->device[i], t->core[i])
				 : nps_group_by__find(&c->rows, t->device[i], t->core[i]);

	if (!core)
		return more ? -errno : 0;
	for (size_t k = 0; !core->of.count && k <= METRICS; k++)
		core->values[k] = NAN;
	core->of.count++;
	if (column < METRICS)
		core->values[column] = t->value[i];
	return 0;
}

/* The metric whose name ends with SUFFIX, METRICS if there is none. */
static size_t find_metric(const struct cores *c, const char *suffix)
{
	for (size_t i = 0; i < c->nmetrics; i++) {
		const char *name = nps_model__text(c->m, c->metrics[i]);
		size_t len = strlen(name);

		if (len >= strlen(suffix) && !strcmp(name + len - strlen(suffix), suffix))
			return i;
	}
	return METRICS;
}

static double share(double part, double a, double b)
{
	double whole = fmax(a, b); /* of the one that there is */

	return whole > 0 ? part / whole : NAN;
}

/* Writes the row of CORE, whose sub NPS_NONE is the mean of its device. */
static void put_core(struct cores *c, const struct core *core)
{
	c->row = *core;
	c->row.device = (uint32_t)core->of.key;
	c->row.memory_bound = share(core->values[c->mte2], core->values[c->mac], core->values[c->vec]);
	c->row.name = core->of.sub == NPS_NONE ? "Average" : c->name;
	snprintf(c->name, sizeof(c->name), "Core%u", (uint32_t)core->of.sub);
	nps_csv_rows__put(c->out, &(struct nps_csv_row){ 0 });
}

/* Cores of a device, and their mean behind them. */
static size_t put_cores(struct cores *c, size_t from)
{
	const struct core *rows = c->rows.rows.data;
	struct core average = { .of = { rows[from].of.key, NPS_NONE } };
	size_t len = nps_group_by__len(&c->rows), end = from;

	while (end < len && rows[end].of.key == average.of.key && rows[end].of.sub != NPS_NONE)
		put_core(c, &rows[end++]);
	if (end < len && rows[end].of.key == average.of.key) {
		put_core(c, &rows[end]);
		return end + 1;
	}
	for (size_t k = 0; k < c->nmetrics; k++) {
		double sum = 0;
		size_t known = 0;

		for (size_t i = from; i < end; i++) {
			if (!isfinite(rows[i].values[k]))
				continue;
			sum += rows[i].values[k];
			known++;
		}
		average.values[k] = known ? sum / known : NPS_NAN;
	}
	average.values[METRICS] = NAN;
	put_core(c, &average);
	return end;
}

#define CORE(title, format, member, ...) NPS_CSV_FIELD(title, format, struct core, member, ##__VA_ARGS__)

static const struct nps_csv_column core_columns[] = {
	CORE("Device_id", DEVICE, device, .when = NPS_CSV_B),
	CORE("Core ID", WORD, name),
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
	if (c->mte2 < METRICS)
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
	int err = nps_csv_rows__open(
		&c->out, ex, dirfd, &tables[c->vector],
		&(struct nps_csv_input){ .sources[0].structs = &c->row,
					 .more = { columns, metric_columns(c, columns, titles) } });

	if (err)
		return err;
	for (size_t i = 0; i < nps_group_by__len(&c->rows);)
		i = put_cores(c, i);
	return nps_csv_rows__close(c->out, 0);
}

static int write_utilization(const struct nps_export *ex, int dirfd, bool vector)
{
	struct cores c = { .m = ex->model, .vector = vector };
	int err = 0;

	nps_group_by__init(&c.rows, c.m, sizeof(struct core));
	for (size_t i = 0; !err && i < c.m->sample_summary.t.len; i++)
		if (ours(&c, i))
			err = cores_add_value(&c, i);
	if (err)
		goto out;
	nps_group_by__sort(&c.rows, nps_group__by_key);
	c.mte2 = find_metric(&c, "mte2_ratio");
	c.mac = find_metric(&c, "mac_ratio");
	c.vec = find_metric(&c, "vec_ratio");
	if (c.mac == METRICS && c.vec == METRICS)
		c.mte2 = METRICS;
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
