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
#define ALL_IDS 1 /* variant of rows */

struct statistic {
	double sum, least, most;
	uint64_t count;
};

struct counter_group {
	struct nps_group of; /* key: device, sub: id */
	struct statistic statistics[]; /* of each counter with a title */
};

/* What a row shows that is no sample: of one counter, or the means of all counters for an id. */
struct counter_row {
	const char *name;
	uint32_t device, id;
	double least, most, mean, means[COUNTERS];
};

/* A table that is being written. */
struct counter_file {
	const struct nps_counter_table *table;
	struct nps_counter_view x;
	uint8_t shown[COUNTERS]; /* counters with a title */
	size_t nshown;
	struct nps_csv_column columns[COUNTERS]; /* of these, in a table that has a column for each */
	struct nps_group_by groups; /* struct counter_group */
	struct nps_pace pace;
	struct nps_csv_rows *rows;
	struct counter_row row; /* that is written next */
};

static size_t counter_rows(const struct counter_file *w)
{
	return nps_counter_table__of(w->x.m, w->table)->len;
}

static uint32_t counter_device(const struct counter_file *w, size_t row)
{
	return nps_counter_table__device(w->x.m, w->table, row);
}

static double counter_value(const struct counter_file *w, size_t counter, double per, size_t row)
{
	double value = nps_counter__value(&w->x, w->table, counter, row);

	return per == 1 ? value : value / per;
}

/* --- groups of samples --------------------------------------------------------------------------------- */

static void statistic_add_value(struct statistic *s, double least, double most, double mean)
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
	for (size_t row = 0; row < counter_rows(w); row++) {
		struct counter_group *group =
			nps_group_by__get(&w->groups, counter_device(w, row), id_of(w, row));

		nps_pace__step(&w->pace);
		if (!group)
			return -errno;
		for (size_t k = 0; k < w->nshown; k++) {
			size_t i = w->shown[k];
			double per = w->table->counters[i].csv_per, value = counter_value(w, i, per, row);

			if (w->table->counters[i].range)
				statistic_add_value(&group->statistics[k], counter_value(w, i - 2, per, row),
						    counter_value(w, i - 1, per, row), value);
			else
				statistic_add_value(&group->statistics[k], value, value, value);
		}
	}
	nps_group_by__sort(&w->groups, nps_group__by_key);
	return 0;
}

static void put_row(struct counter_file *w, unsigned int variant)
{
	nps_csv_rows__put(w->rows, &(struct nps_csv_row){ .variant = variant });
}

/* A row a counter of each device. */
static void put_statistics(struct counter_file *w)
{
	bool ranges = w->table->csv == NPS_COUNTER_RANGES;

	for (size_t i = 0; i < nps_group_by__len(&w->groups); i++) {
		const struct counter_group *group = nps_group_by__at(&w->groups, i);

		for (size_t k = 0; k < w->nshown; k++) {
			const struct statistic *s = &group->statistics[k];

			w->row = (struct counter_row){
				.name = w->table->counters[w->shown[k]].title,
				.device = (uint32_t)group->of.key,
				.least = ranges && s->least >= NO_MINIMUM ? 0 : s->least,
				.most = s->most,
				.mean = mean(s),
			};
			put_row(w, 0);
		}
	}
}

/* ID NPS_NONE: of all ids. */
static void put_means(struct counter_file *w, const struct nps_group *of, const struct statistic *statistics,
		      uint32_t id)
{
	w->row.device = (uint32_t)of->key;
	w->row.name = of->sub & WRITE ? "write" : "read";
	w->row.id = id;
	for (size_t k = 0; k < w->nshown; k++)
		w->row.means[k] = mean(&statistics[k]);
	put_row(w, id == NPS_NONE ? ALL_IDS : 0);
}

/* The sums of the groups from FIRST on that agree with it in device and mode. Returns the next one. */
static size_t sum_groups(const struct counter_file *w, size_t first, struct statistic sums[COUNTERS])
{
	const struct counter_group *begin = nps_group_by__at(&w->groups, first);
	size_t end = first;

	for (; end < nps_group_by__len(&w->groups); end++) {
		const struct counter_group *group = nps_group_by__at(&w->groups, end);

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
			const struct counter_group *group = nps_group_by__at(&w->groups, i);

			if (w->table->id != NPS_NO_COLUMN)
				put_means(w, &group->of, group->statistics, group->of.sub & ~WRITE);
		}
	}
}

/* --- files --------------------------------------------------------------------------------------------- */

#define ROW(title, format, member, ...)                                                                      \
	NPS_CSV_FIELD(title, format, struct counter_row, member, ##__VA_ARGS__)
#define STATISTIC NPS_CSV_IF(0)
#define RANGES NPS_CSV_IF(1)
#define NAMED NPS_CSV_IF(2) /* after a counter, or how it was accessed */
#define TASKS NPS_CSV_IF(3)
#define METRICS NPS_CSV_IF(4)

static const struct nps_csv_column row_columns[] = {
	ROW("Device_id", DEVICE, device, .when = NPS_CSV_B),
	ROW("Mode", WORD, name, .when = NAMED),
	ROW("Task", NUMBER, id, .when = TASKS),
	NPS_CSV_SAME(NULL, "Average", .variant = ALL_IDS),
	ROW("Metric", NUMBER, id, .when = METRICS),
	NPS_CSV_SAME(NULL, "Average", .variant = ALL_IDS),
	ROW("Max", DECIMAL, most, .when = STATISTIC),
	ROW("Min", DECIMAL, least, .when = STATISTIC),
	ROW("Average", DECIMAL, mean, .when = STATISTIC),
	ROW("Min", DECIMAL, least, .when = RANGES),
	ROW("Max", DECIMAL, most, .when = RANGES),
	ROW("Avg", DECIMAL, mean, .when = RANGES),
};

static unsigned int conditions(const struct nps_counter_table *table)
{
	if (table->csv == NPS_COUNTER_STATISTIC)
		return STATISTIC | NAMED;
	if (table->csv == NPS_COUNTER_RANGES)
		return RANGES | NAMED;
	return table->mode == NPS_NO_COLUMN ? METRICS : TASKS | NAMED;
}

/* The column of sampled counter I: of the model's table, whose cells a file of samples has as they are. */
static struct nps_csv_column sample_column(const struct counter_file *w, size_t i)
{
	const struct nps_counter *c = &w->table->counters[i];
	uint8_t kind = nps_counter_table__of(w->x.m, w->table)->columns[i].kind;
	bool integer = kind != NPS_COLUMN_i64 && kind != NPS_COLUMN_f64 && c->csv_per == 1;

	return (struct nps_csv_column){ .title = c->title,
					.format = i == w->table->time	    ? NPS_CSV_TIME
						  : kind == NPS_COLUMN_text ? NPS_CSV_TEXT
						  : integer		    ? NPS_CSV_NUMBER
									    : NPS_CSV_DECIMAL,
					.kind = kind,
					.offset = i,
					.per = c->csv_per };
}

static struct nps_csv_column mean_column(const struct counter_file *w, size_t k)
{
	struct nps_csv_column column = ROW(w->table->counters[w->shown[k]].title, DECIMAL, means[0]);

	column.offset += k * sizeof(double);
	return column;
}

/* Finds the counters with a title. */
static void choose_counters(struct counter_file *w)
{
	for (size_t i = 0; i < w->table->len && w->nshown < COUNTERS; i++) {
		if (!w->table->counters[i].title)
			continue;
		w->shown[w->nshown] = i;
		w->columns[w->nshown] = w->table->csv == NPS_COUNTER_SAMPLES ? sample_column(w, i)
									     : mean_column(w, w->nshown);
		w->nshown++;
	}
}

static int write_groups(const struct nps_export *ex, int dirfd, struct counter_file *w,
			const struct nps_csv_table *table)
{
	bool means = w->table->csv == NPS_COUNTER_MEANS;
	int err;

	nps_group_by__init(&w->groups, ex->model,
			   sizeof(struct counter_group) + w->nshown * sizeof(struct statistic));
	err = group_samples(w);
	if (err)
		goto out;
	err = nps_csv_rows__open(&w->rows, ex, dirfd, table,
				 &(struct nps_csv_input){ .when = conditions(w->table),
							  .more = { w->columns, means ? w->nshown : 0 },
							  .sources[0].structs = &w->row });
	if (err)
		goto out;
	if (means)
		put_all_means(w);
	else
		put_statistics(w);
	err = nps_csv_rows__close(w->rows, 0);
out:
	nps_group_by__free(&w->groups);
	return err;
}

static int write_table(const struct nps_export *ex, int dirfd, const struct nps_counter_table *table)
{
	const struct nps_csv_column device = { .title = "Device_id",
					       .format = NPS_CSV_DEVICE,
					       .kind = NPS_COLUMN_u32,
					       .offset = table->device,
					       .when = NPS_CSV_B };
	struct counter_file w = { .table = table,
				  .x = { .m = ex->model }, /* no title has a pattern */
				  .pace = { .model = ex->model } };
	struct nps_csv_table csv = {
		.stem = table->stem,
		.msprof = table->when == NPS_COUNTER_OWN_UNLESS_MSPROF ? table->stem + strlen("npuscope_")
								       : NULL,
		.unstamped = table->when == NPS_COUNTER_OWN,
		.columns = NPS_CSV_COLUMNS(row_columns),
	};

	choose_counters(&w);
	if (table->csv != NPS_COUNTER_SAMPLES)
		return write_groups(ex, dirfd, &w, &csv);
	csv.columns = (struct nps_csv_columns){ &device, 1 };
	csv.table = table->table;
	return nps_csv_table__write(ex, dirfd, &csv,
				    &(struct nps_csv_input){ .more = { w.columns, w.nshown } });
}

static int samples(const struct nps_export *ex, int dirfd)
{
	bool all = nps_counter__stamped(ex) || ex->model->sampled;
	int err = 0;

	for (size_t i = 0; !err && i < NPS_COUNTER_TABLES; i++) {
		const struct nps_counter_table *table = &nps_counter_tables[i];

		if (table->csv != NPS_COUNTER_NO_CSV && (all || table->when != NPS_COUNTER_OWN_UNLESS_MSPROF))
			err = write_table(ex, dirfd, table);
	}
	return err;
}

int nps_export__counter_csv(const struct nps_export *ex, int dirfd)
{
	bool msprof = nps_counter__stamped(ex);
	nps_csv_write_fn *const tables[] = {
		samples,
		nps_counter__ports,
		msprof || ex->model->sampled ? nps_counter__utilization : NULL,
		msprof ? nps_counter__system : NULL,
		nps_counter__host,
	};

	return nps_csv__write_each(ex, dirfd, tables, NPS_ARRAY_SIZE(tables));
}
