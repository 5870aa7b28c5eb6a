/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of sampled counters (outputs 3.4), by the rows of schema/counter_tables.h. Most have a few lines
 * with the least, the greatest and the mean sample of each device: one walk over the samples fills a few
 * groups.
 */
#include "derive/group_by.h"
#include "export/counter_csv.h"
#include "export/table.h"
#include "export/counters.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#define COUNTERS 16 /* of a table that have a title, at most */
#define NO_MINIMUM 999999.0 /* MB/s: 0xFFFFF B/us, PCIe had no transfer to measure */
#define WRITE (1U << 31) /* of a group's id: what was written, not read */

struct statistic {
	double sum, least, most;
	uint64_t count;
};

struct group {
	struct nps_group of; /* key: device, sub: id */
	struct statistic statistics[]; /* of each counter with a title */
};

/* A table that is being written. */
struct counter_file {
	const struct nps_counter_table *table;
	struct nps_counter_view x;
	uint8_t shown[COUNTERS]; /* counters with a title */
	size_t nshown;
	struct nps_csv *csv;
	struct nps_group_by groups; /* struct group */
	struct nps_pace pace;
};

static size_t rows_of(const struct counter_file *w)
{
	return nps_counter_table__of(w->x.m, w->table)->len;
}

static uint32_t device_of(const struct counter_file *w, size_t row)
{
	return nps_counter_table__device(w->x.m, w->table, row);
}

static double value_of(const struct counter_file *w, size_t counter, double per, size_t row)
{
	double value = nps_counter__value(&w->x, w->table, counter, row);

	return per == 1 ? value : value / per;
}

/* --- a row a sample ------------------------------------------------------------------------------------ */

static void put_cell(struct counter_file *w, size_t counter, size_t row)
{
	const struct nps_counter *c = &w->table->counters[counter];
	const struct nps_table *rows = nps_counter_table__of(w->x.m, w->table);
	struct nps_counter_number number;

	if (counter == w->table->time) {
		nps_csv__time(w->csv, nps_counter_table__times(w->x.m, w->table)[row]);
		return;
	}
	if (!c->value && rows->columns[counter].kind == NPS_COLUMN_text) {
		nps_csv__text(w->csv, ((const uint32_t *)nps_table__cells(rows, counter))[row]);
		return;
	}
	number = nps_counter__number(&w->x, w->table, counter, row);
	if (number.kind == NPS_NUMBER_UNSIGNED && c->csv_per == 1)
		nps_csv__u64(w->csv, number.u);
	else
		nps_counter__cell(w->csv, value_of(w, counter, c->csv_per, row));
}

static void put_samples(struct counter_file *w)
{
	for (size_t row = 0; !w->csv->err && row < rows_of(w); row++) {
		nps_csv__row(w->csv);
		nps_csv__device(w->csv, device_of(w, row));
		for (size_t k = 0; k < w->nshown; k++)
			put_cell(w, w->shown[k], row);
		nps_csv__end(w->csv);
	}
}

/* --- groups of samples --------------------------------------------------------------------------------- */

static void add_value(struct statistic *s, double least, double most, double mean)
{
	if (!isfinite(least) || !isfinite(most) || !isfinite(mean))
		return;
	s->least = s->count ? NPS_MIN(s->least, least) : least;
	s->most = s->count ? NPS_MAX(s->most, most) : most;
	s->sum += mean;
	s->count++;
}

static double mean(const struct statistic *s)
{
	return s->count ? s->sum / s->count : NAN;
}

static uint32_t id_of(const struct counter_file *w, size_t row)
{
	const struct nps_table *rows = nps_counter_table__of(w->x.m, w->table);
	uint32_t id = 0, mode;

	if (w->table->csv != NPS_COUNTER_MEANS)
		return 0;
	if (w->table->id != NPS_NO_COLUMN)
		id = ((const uint32_t *)nps_table__cells(rows, w->table->id))[row] & ~WRITE;
	if (w->table->mode == NPS_NO_COLUMN)
		return id;
	mode = ((const uint32_t *)nps_table__cells(rows, w->table->mode))[row];
	return tolower((unsigned char)*nps_model__text(w->x.m, mode)) == 'w' ? id | WRITE : id;
}

static int group_samples(struct counter_file *w)
{
	for (size_t row = 0; row < rows_of(w); row++) {
		struct group *group = nps_group_by__get(&w->groups, device_of(w, row), id_of(w, row));

		nps_pace__step(&w->pace);
		if (!group)
			return -errno;
		for (size_t k = 0; k < w->nshown; k++) {
			size_t i = w->shown[k];
			double per = w->table->counters[i].csv_per, value = value_of(w, i, per, row);

			if (w->table->counters[i].range)
				add_value(&group->statistics[k], value_of(w, i - 2, per, row),
					  value_of(w, i - 1, per, row), value);
			else
				add_value(&group->statistics[k], value, value, value);
		}
	}
	nps_group_by__sort(&w->groups, nps_group__by_key);
	return 0;
}

/* A row a counter of each device. */
static void put_statistics(struct counter_file *w)
{
	bool ranges = w->table->csv == NPS_COUNTER_RANGES;

	for (size_t i = 0; i < nps_group_by__len(&w->groups); i++) {
		const struct group *group = nps_group_by__at(&w->groups, i);

		for (size_t k = 0; k < w->nshown; k++) {
			const struct statistic *s = &group->statistics[k];

			nps_csv__row(w->csv);
			nps_csv__device(w->csv, (uint32_t)group->of.key);
			nps_csv__lit(w->csv, w->table->counters[w->shown[k]].title);
			if (ranges)
				nps_counter__cell(w->csv, s->least >= NO_MINIMUM ? 0 : s->least);
			nps_counter__cell(w->csv, s->most);
			if (!ranges)
				nps_counter__cell(w->csv, s->least);
			nps_counter__cell(w->csv, mean(s));
			nps_csv__end(w->csv);
		}
	}
}

/* ID NPS_NONE: of all ids. */
static void put_means(struct counter_file *w, const struct nps_group *of, const struct statistic *statistics,
		      uint32_t id)
{
	nps_csv__row(w->csv);
	nps_csv__device(w->csv, (uint32_t)of->key);
	if (w->table->mode != NPS_NO_COLUMN)
		nps_csv__lit(w->csv, of->sub & WRITE ? "write" : "read");
	if (id == NPS_NONE)
		nps_csv__lit(w->csv, "Average");
	else
		nps_csv__u64(w->csv, id);
	for (size_t k = 0; k < w->nshown; k++)
		nps_counter__cell(w->csv, mean(&statistics[k]));
	nps_csv__end(w->csv);
}

/* The sums of the groups from FIRST on that agree with it in device and mode. Returns the next one. */
static size_t sum_groups(const struct counter_file *w, size_t first, struct statistic sums[COUNTERS])
{
	const struct group *begin = nps_group_by__at(&w->groups, first);
	size_t end = first;

	for (; end < nps_group_by__len(&w->groups); end++) {
		const struct group *group = nps_group_by__at(&w->groups, end);

		if (group->of.key != begin->of.key || (group->of.sub & WRITE) != (begin->of.sub & WRITE))
			break;
		for (size_t k = 0; k < w->nshown; k++) {
			sums[k].sum += group->statistics[k].sum;
			sums[k].count += group->statistics[k].count;
		}
	}
	return end;
}

/* Means of all ids, and of each. */
static void put_all_means(struct counter_file *w)
{
	for (size_t i = 0; i < nps_group_by__len(&w->groups);) {
		struct statistic sums[COUNTERS] = { 0 };
		size_t end = sum_groups(w, i, sums);

		put_means(w, nps_group_by__at(&w->groups, i), sums, NPS_NONE);
		for (; i < end; i++) {
			const struct group *group = nps_group_by__at(&w->groups, i);

			if (w->table->id != NPS_NO_COLUMN)
				put_means(w, &group->of, group->statistics, group->of.sub & ~WRITE);
		}
	}
}

/* --- files --------------------------------------------------------------------------------------------- */

#define HEADER 512

static void header_append(char *header, const char *title)
{
	size_t len = strlen(header);

	snprintf(header + len, HEADER - len, "%s%s", len ? "," : "", title);
}

/* Finds the counters with a title; titles of columns go into HEADER. */
static void choose_counters(struct counter_file *w, char *header)
{
	bool columns = w->table->csv == NPS_COUNTER_SAMPLES || w->table->csv == NPS_COUNTER_MEANS;

	*header = 0;
	if (w->table->header)
		header_append(header, w->table->header);
	for (size_t i = 0; i < w->table->len && w->nshown < COUNTERS; i++) {
		if (!w->table->counters[i].title)
			continue;
		w->shown[w->nshown++] = i;
		if (columns)
			header_append(header, w->table->counters[i].title);
	}
}

static int write_table(const struct nps_export *ex, int dirfd, const struct nps_counter_table *table)
{
	struct counter_file w = { .table = table,
				  .x = { .m = ex->model }, /* no title has a pattern */
				  .pace = { .model = ex->model } };
	bool own = table->when == NPS_COUNTER_OWN;
	char header[HEADER];
	const struct nps_csv_file file = { .stem = table->when == NPS_COUNTER_OWN_UNLESS_MSPROF
							   ? nps_counter__stem(ex, table->stem)
							   : table->stem,
					   .header = header,
					   .stamped = !own && nps_counter__stamped(ex),
					   .device = true };

	choose_counters(&w, header);
	nps_group_by__init(&w.groups, ex->model, sizeof(struct group) + w.nshown * sizeof(struct statistic));
	w.csv = nps_csv__new(ex, dirfd, &file);
	if (!w.csv)
		return -ENOMEM;
	if (table->csv == NPS_COUNTER_SAMPLES)
		put_samples(&w);
	else
		w.csv->err = group_samples(&w);
	if (!w.csv->err && table->csv == NPS_COUNTER_MEANS)
		put_all_means(&w);
	else if (!w.csv->err && table->csv != NPS_COUNTER_SAMPLES)
		put_statistics(&w);
	nps_group_by__free(&w.groups);
	return nps_csv__close(w.csv);
}

/* As the vendor numbers and names them; another one is its number. */
static void put_engine(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	static const char *const names[] = { "VDEC", "JPEGD", "PNGD", "JPEGE", "VPC", "VENC", "SCD" };
	uint32_t type = csv->model->dvpp.engine_type[row->at[0]];

	(void)ctx;
	if (type < NPS_ARRAY_SIZE(names))
		nps_csv__lit(csv, names[type]);
	else
		nps_csv__u64(csv, type);
}

static const struct nps_csv_column dvpp_columns[] = {
	NPS_CSV_DEVICE_ID(dvpp),
	NPS_CSV_COL("Dvpp Id", NUMBER, dvpp, id),
	NPS_CSV_BY("Engine Type", put_engine),
	NPS_CSV_COL("Engine ID", NUMBER, dvpp, engine),
	NPS_CSV_COL("All Time(us)", REPR, dvpp, time),
	NPS_CSV_COL("All Frame", REPR, dvpp, frames),
	NPS_CSV_COL("All Utilization(%)", REPR, dvpp, utilization),
};
static const struct nps_csv_table dvpp = { "dvpp", NPS_CSV_OF(dvpp, dvpp_columns) };

int nps_export__counter_csv(const struct nps_export *ex, int dirfd)
{
	bool all = nps_counter__stamped(ex) || ex->model->sampled;
	int err = 0;

	for (size_t i = 0; !err && i < NPS_COUNTER_TABLES; i++) {
		const struct nps_counter_table *table = &nps_counter_tables[i];

		if (table->csv != NPS_COUNTER_NO_CSV && (all || table->when != NPS_COUNTER_OWN_UNLESS_MSPROF))
			err = write_table(ex, dirfd, table);
	}
	if (!err)
		err = nps_counter__ports(ex, dirfd, "nic", &ex->model->nic);
	if (!err)
		err = nps_counter__ports(ex, dirfd, "roce", &ex->model->roce);
	for (int vector = 0; !err && all && vector < 2; vector++)
		err = nps_counter__utilization(ex, dirfd, vector);
	if (!err && nps_counter__stamped(ex))
		err = nps_csv_table__write(ex, dirfd, &dvpp, NULL);
	if (!err && nps_counter__stamped(ex))
		err = nps_counter__system(ex, dirfd);
	return err ? err : nps_counter__host(ex, dirfd);
}
