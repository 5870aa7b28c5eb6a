/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps: what they consist of, how much they vary, and what grew in the slow ones. */
#include "findings/findings.h"

#include "base/map.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 1000 /* of the section: the slowest */
#define SLOW 1.25 /* times the median */

enum part { COMPUTING, ALONE, FREE, PREPARING, PARTS };

static const char *const part_names[] = { "computing", "communication that is not overlapped", "free time",
					  "preparation" };

struct step_row {
	double total, parts[PARTS];
	uint32_t trace; /* row of step_trace */
};

struct summary {
	struct nps_map steps; /* number -> row of `step` */
	struct step_row rows[ROWS]; /* the slowest first */
	size_t nrows, n; /* n: all steps */
	double middle, p90, parts[PARTS], sums[PARTS]; /* medians; sums of all */
	size_t slow; /* steps that are over SLOW times the median */
	double lost; /* by them */
};

static int step_compare_total(const void *a, const void *b)
{
	const struct step_row *x = a, *y = b;

	return x->total != y->total ? (x->total < y->total ? 1 : -1)
				    : (x->trace > y->trace) - (x->trace < y->trace);
}

static double quantile(const double *sorted, size_t n, double q)
{
	return n ? sorted[NPS_MIN((size_t)(q * n), n - 1)] : 0;
}

static int index_steps(const struct nps_model *m, struct summary *s)
{
	int err = 0;

	for (size_t i = 0; !err && i < m->step.t.len; i++)
		err = nps_map__put(&s->steps, (uint64_t)m->step.id[i], i);
	return err;
}

/* us that the step of row I of step_trace lasted on the host, 0 unknown. */
static double host_length(const struct nps_model *m, const struct summary *s, size_t i)
{
	const char *text = nps_model__text(m, m->step_trace.step[i]);
	char *end;
	long long id = strtoll(text, &end, 10);
	uint32_t at = *end || end == text ? NPS_NONE : nps_map__get(&s->steps, (uint64_t)id);

	if (at == NPS_NONE || m->step.end[at] <= m->step.start[at])
		return 0;
	return (m->step.end[at] - m->step.start[at]) / 1e3;
}

static void step_fill(const struct nps_model *m, const struct summary *s, struct step_row *row, size_t i)
{
	const struct nps_step_trace_table *t = &m->step_trace;

	row->parts[COMPUTING] = t->computing[i];
	row->parts[ALONE] = t->not_overlapped[i];
	row->parts[FREE] = t->free[i];
	row->parts[PREPARING] = t->preparing[i];
	row->total = t->computing[i] + t->not_overlapped[i] + t->free[i] + t->preparing[i];
	if (row->total == 0) /* the device had nothing to do in it: all of it is free time */
		row->total = row->parts[FREE] = host_length(m, s, i);
	row->trace = i;
}

#define STEP_COLUMNS(C)                                                                                      \
	C("device", COUNT, "NPU", m->step_trace.device[r->trace])                                            \
	C("step", TEXT, "step", nps_model__text(m, m->step_trace.step[r->trace]))                            \
	C("total_us", US, "total", r->total)                                                                 \
	C("computing_us", US, "computing", r->parts[COMPUTING])                                              \
	C("communication_not_overlapped_us", US, "not overlapped", r->parts[ALONE], .print = 6)              \
	C("communication_us", US, "communication", m->step_trace.communication[r->trace])                    \
	C("free_us", US, "free", r->parts[FREE])                                                             \
	C("preparing_us", US, "preparing", r->parts[PREPARING])

NPS_FIND_TABLE(table, "steps.rows", "steps, slowest first, us", struct nps_model, struct step_row,
	       STEP_COLUMNS)

/* Median and 90th percentile of the whole and of the parts, exact. */
static int medians(const struct nps_model *m, struct summary *s)
{
	double *values = calloc(s->n + 1, sizeof(*values));
	struct step_row row;

	if (!values)
		return -ENOMEM;
	for (int part = 0; part <= PARTS; part++) {
		for (size_t i = 0; i < s->n; i++) {
			step_fill(m, s, &row, i);
			values[i] = part == PARTS ? row.total : row.parts[part];
		}
		qsort(values, s->n, sizeof(*values), nps_by_double);
		if (part < PARTS) {
			s->parts[part] = quantile(values, s->n, 0.5);
			continue;
		}
		s->middle = quantile(values, s->n, 0.5);
		s->p90 = quantile(values, s->n, 0.9);
	}
	free(values);
	return 0;
}

/* Sums, and the slowest rows: a heap whose root is the fastest of them. */
static void steps_collect(const struct nps_model *m, struct summary *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct step_row row;
		size_t at;

		step_fill(m, s, &row, i);
		for (int part = 0; part < PARTS; part++)
			s->sums[part] += row.parts[part];
		if (s->nrows == ROWS && step_compare_total(&row, &s->rows[0]) >= 0)
			continue;
		if (s->nrows < ROWS) {
			at = s->nrows++;
			for (; at && step_compare_total(&row, &s->rows[(at - 1) / 2]) > 0; at = (at - 1) / 2)
				s->rows[at] = s->rows[(at - 1) / 2];
		} else {
			size_t child;

			for (at = 0; (child = 2 * at + 1) < ROWS; at = child) {
				if (child + 1 < ROWS &&
				    step_compare_total(&s->rows[child + 1], &s->rows[child]) > 0)
					child++;
				if (step_compare_total(&row, &s->rows[child]) >= 0)
					break;
				s->rows[at] = s->rows[child];
			}
		}
		s->rows[at] = row;
	}
	qsort(s->rows, s->nrows, sizeof(*s->rows), step_compare_total);
}

/* Where in the capture the slowest step is; a step without a row in `step` has no times. */
static cJSON *step_location(const struct nps_model *m, const struct step_row *row)
{
	const char *name = nps_model__text(m, m->step_trace.step[row->trace]);
	cJSON *where = cJSON_CreateObject();

	cJSON_AddNumberToObject(where, "device", m->step_trace.device[row->trace]);
	cJSON_AddStringToObject(where, "step", name);
	for (size_t i = 0; i < m->step.t.len; i++)
		if (*name && m->step.id[i] == strtoll(name, NULL, 10)) {
			nps_find__time(where, "start_us", m->step.start[i]);
			nps_find__time(where, "end_us", m->step.end[i]);
			break;
		}
	return where;
}

static void count_slow(const struct nps_model *m, struct summary *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct step_row row;

		step_fill(m, s, &row, i);
		if (row.total <= SLOW * s->middle)
			continue;
		s->slow++;
		s->lost += row.total - s->middle;
	}
}

static int jitter(struct nps_find *find, struct summary *s)
{
	const struct step_row *worst = &s->rows[0];
	cJSON *numbers;
	int grew = 0;

	count_slow(find->model, s);
	if (s->n < 3 || !s->slow || s->middle <= 0)
		return 0;
	for (int part = 1; part < PARTS; part++)
		if (worst->parts[part] - s->parts[part] > worst->parts[grew] - s->parts[grew])
			grew = part;
	numbers = cJSON_CreateObject();
	cJSON_AddNumberToObject(numbers, "steps", (double)s->n);
	cJSON_AddNumberToObject(numbers, "slow_steps", (double)s->slow);
	nps_find__number(numbers, "median_us", s->middle);
	nps_find__number(numbers, "slowest_us", worst->total);
	nps_find__number(numbers, "lost_us", s->lost);
	nps_find__number(numbers, "grown_part_us", worst->parts[grew] - s->parts[grew]);
	cJSON_AddStringToObject(numbers, "grown_part", part_names[grew]);
	return nps_find__add(
		find, "step_jitter", nps_find__mean_share(find, s->lost), numbers,
		step_location(find->model, worst),
		"compare the slowest step with one of median length in the trace, first in the part that "
		"grew",
		"%zu of %zu steps take over %.2f times the median of %.1f us; the slowest takes %.1f us, "
		"mostly more %s (+%.1f us)",
		s->slow, s->n, SLOW, s->middle, worst->total, part_names[grew],
		worst->parts[grew] - s->parts[grew]);
}

/* What the time of all steps consists of. */
static int breakdown(struct nps_find *find, cJSON *section, const double *sums)
{
	double all = 0;
	cJSON *numbers;

	for (int part = 0; part < PARTS; part++)
		all += sums[part];
	nps_find__number(section, "computing_us", sums[COMPUTING]);
	nps_find__number(section, "communication_not_overlapped_us", sums[ALONE]);
	nps_find__number(section, "free_us", sums[FREE]);
	nps_find__number(section, "preparing_us", sums[PREPARING]);
	if (all <= 0 || sums[ALONE] < 0.1 * all)
		return 0;
	numbers = cJSON_CreateObject();
	nps_find__number(numbers, "communication_not_overlapped_us", sums[ALONE]);
	nps_find__number(numbers, "computing_us", sums[COMPUTING]);
	return nps_find__add(
		find, "communication_not_overlapped", nps_find__mean_share(find, sums[ALONE]), numbers, NULL,
		"look at which collectives stand alone in the Overlap Analysis lanes; see the section "
		"`communication` for wait and transfer",
		"communication that no computing hides takes %.1f %% of the steps' time (%.1f us)",
		100 * sums[ALONE] / all, sums[ALONE]);
}

static int report(struct nps_find *find, struct summary *s)
{
	const struct nps_model *m = find->model;
	cJSON *section = cJSON_AddObjectToObject(find->document, "steps");
	int err;

	cJSON_AddNumberToObject(section, "count", (double)m->step.t.len);
	if (m->found_step.t.len && m->found_step.t.len == m->step.t.len) {
		cJSON_AddStringToObject(section, "source", nps_model__text(m, m->found_step.source[0]));
		cJSON_AddNumberToObject(section, "confidence", m->found_step.confidence[0]);
	}
	nps_find__number(section, "median_us", s->middle);
	nps_find__number(section, "p90_us", s->p90);
	nps_find__number(section, "slowest_us", s->rows[0].total);
	err = breakdown(find, section, s->sums);
	if (err)
		return err;
	nps_find__rows(find->document, &table, m, s->rows, s->nrows, sizeof(s->rows[0]));
	return m->step.t.len ? jitter(find, s) : 0;
}

static int steps_find(struct nps_find *find)
{
	const struct nps_model *m = find->model;
	struct summary *s;
	int err;

	if (!m->step_trace.t.len)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->n = m->step_trace.t.len;
	err = index_steps(m, s);
	if (err)
		goto out;
	steps_collect(m, s);
	err = medians(m, s);
	err = err ? err : report(find, s);
out:
	nps_map__free(&s->steps);
	free(s);
	return err;
}

const struct nps_find_question nps_question_steps = { .find = steps_find, .tables = { &table } };
