/* SPDX-License-Identifier: BSD-2-Clause */
/* ai_core_utilization and ai_vector_core_utilization (outputs 3.4): a row a core, a column a metric. */
#include "derive/group_by.h"
#include "export/counter_csv.h"
#include "export/csv_pmu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define METRICS 100
#define CORES 65536
#define HEADER 8192
#define NUMBERS 600 /* bytes that the header has left for METRICS numbers and memory_bound */

struct core {
	struct nps_group of; /* key: device, sub: id; NPS_NONE: the mean, as another profiler made it */
	double values[METRICS];
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

/* Names that would break the header are numbers there. */
static void utilization_header(const struct cores *c, char *header)
{
	size_t at = snprintf(header, HEADER, "Core ID");

	for (size_t i = 0; i < c->nmetrics; i++) {
		const char *name = nps_model__text(c->m, c->metrics[i]);

		if (at + strlen(name) + NUMBERS < HEADER && !strpbrk(name, ",\"\r\n"))
			at += snprintf(header + at, HEADER - at, ",%s%s", name, nps_pmu__unit(name));
		else
			at += snprintf(header + at, HEADER - at, ",%zu", i);
	}
	if (c->mte2 >= 0)
		snprintf(header + at, HEADER - at, ",memory_bound");
}

static double share(double part, double a, double b)
{
	double whole = fmax(a, b); /* of the one that there is */

	return whole > 0 ? part / whole : NAN;
}

static void put_core(struct nps_csv *csv, const struct cores *c, const struct core *core, bool average)
{
	char name[32];

	snprintf(name, sizeof(name), "Core%u", (uint32_t)core->of.sub);
	nps_csv__row(csv);
	nps_csv__device(csv, (uint32_t)core->of.key);
	nps_csv__lit(csv, average ? "Average" : name);
	for (size_t i = 0; i < c->nmetrics; i++)
		nps_counter__cell(csv, nps_pmu__is_time(nps_model__text(c->m, c->metrics[i]))
					       ? core->values[i] / 1000
					       : core->values[i]);
	if (c->mte2 >= 0)
		nps_counter__cell(csv, share(core->values[c->mte2], c->mac < 0 ? NAN : core->values[c->mac],
					     c->vec < 0 ? NAN : core->values[c->vec]));
	nps_csv__end(csv);
}

/* Cores of a device, and their mean behind them. */
static size_t put_cores(struct nps_csv *csv, const struct cores *c, size_t from)
{
	const struct core *rows = c->rows.rows.data;
	struct core average = { .of = { rows[from].of.key, NPS_NONE } };
	size_t len = nps_group_by__len(&c->rows), end = from;

	while (end < len && rows[end].of.key == average.of.key && rows[end].of.sub != NPS_NONE)
		put_core(csv, c, &rows[end++], false);
	if (end < len && rows[end].of.key == average.of.key) {
		put_core(csv, c, &rows[end], true);
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
	put_core(csv, c, &average, true);
	return end;
}

int nps_counter__utilization(const struct nps_export *ex, int dirfd, bool vector)
{
	struct cores c = { .m = ex->model, .vector = vector };
	char *header = calloc(1, HEADER);
	const struct nps_csv_file file = { .stem = nps_counter__stem(
						   ex, vector ? "npuscope_ai_vector_core_utilization"
							      : "npuscope_ai_core_utilization"),
					   .header = header,
					   .stamped = nps_counter__stamped(ex),
					   .device = true };
	struct nps_csv *csv = NULL;
	int err = header ? 0 : -ENOMEM;

	nps_group_by__init(&c.rows, c.m, sizeof(struct core));
	for (size_t i = 0; !err && i < c.m->sample_summary.t.len; i++)
		if (ours(&c, i))
			err = add_value(&c, i);
	if (err)
		goto out;
	nps_group_by__sort(&c.rows, nps_group__by_key);
	c.mte2 = find_metric(&c, "mte2_ratio");
	c.mac = find_metric(&c, "mac_ratio");
	c.vec = find_metric(&c, "vec_ratio");
	if (c.mac < 0 && c.vec < 0)
		c.mte2 = -1;
	utilization_header(&c, header);
	csv = nps_csv__new(ex, dirfd, &file);
	for (size_t i = 0; csv && i < nps_group_by__len(&c.rows);)
		i = put_cores(csv, &c, i);
	err = nps_csv__close(csv);
out:
	nps_group_by__free(&c.rows);
	free(header);
	return err;
}
