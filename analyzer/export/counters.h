/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of sampled counters, as the exporters walk them. Their rows are in counter_tables.h. */
#ifndef NPS_COUNTERS_H
#define NPS_COUNTERS_H

#include "model/model.h"
#include "export/layers.h"

struct nps_counter_name; /* a pattern that was read */

enum nps_counter_pattern { NPS_PATTERN_EVENT, NPS_PATTERN_SERIES, NPS_PATTERN_TRACK, NPS_PATTERNS };

#define NPS_COUNTER_TABLES 28

/* The counters of a model, as an exporter sees them. */
struct nps_counter_view {
	const struct nps_model *m;
	bool dies; /* a device has several, whose numbers are shown */
	struct nps_counter_name *
		*names[NPS_COUNTER_TABLES]; /* by counter and pattern; NULL: the table has no rows */
};

typedef double nps_counter_value_fn(const struct nps_counter_view *x, const void *table, size_t row);

/* A column of the model's table, or a value of its rows; see counter_tables.h. Texts may be NULL. */
struct nps_counter {
	const char *name;
	nps_counter_value_fn *value; /* NULL: the cell of the column of the same ordinal */
	const char *event, *event_a, *series, *id;
	double per;
	const char *track, *unit;
	const char *title;
	double csv_per;
	bool range; /* of least, most and mean this is the last */
};

enum nps_counter_csv {
	NPS_COUNTER_NO_CSV,
	NPS_COUNTER_SAMPLES, /* a row a sample, a column a counter */
	NPS_COUNTER_STATISTIC, /* a row a counter: most, least, mean */
	NPS_COUNTER_RANGES, /* a row a counter: least, most, mean of its range */
	NPS_COUNTER_MEANS /* a row of means for all and for each id, a column a counter */
};

/* When the file is written. Those of npuscope have that prefix where the vendor has no such file. */
enum nps_counter_when {
	NPS_COUNTER_ALWAYS,
	NPS_COUNTER_OWN, /* always; npuscope's */
	NPS_COUNTER_OWN_UNLESS_MSPROF /* msprof's; elsewhere npuscope's, of what npuscope sampled */
};

#define NPS_NO_COLUMN UINT8_MAX

struct nps_counter_table {
	const char *name;
	size_t table; /* offset in the model */
	const struct nps_counter *counters;
	uint8_t len;
	uint8_t time, device; /* ordinals; device NPS_NO_COLUMN: of the host */
	uint8_t layer; /* enum nps_trace_layer, NPS_TRACE_LAYERS: not in trace_view.json */
	bool held; /* a value holds until the next sample, the last one until the capture's end */
	uint8_t csv, when;
	const char *stem; /* of the CSV file, with npuscope_ where that may be its prefix */
	uint8_t id, mode; /* of NPS_COUNTER_MEANS: ordinals of the columns of the key, NPS_NO_COLUMN: none */
};

extern const struct nps_counter_table nps_counter_tables[NPS_COUNTER_TABLES];

/*
 * Determines what names depend on, and reads the patterns of tables with rows; EARLY: events have
 * generation A's names. 0 or -ENOMEM; free with nps_counter_view__free() either way.
 */
int nps_counter_view__init(struct nps_counter_view *x, const struct nps_model *model, bool early);
void nps_counter_view__free(struct nps_counter_view *x);

static inline const struct nps_table *nps_counter_table__of(const struct nps_model *model,
							    const struct nps_counter_table *table)
{
	return (const struct nps_table *)((const char *)model + table->table);
}

/* The times of its samples. */
static inline const uint64_t *nps_counter_table__times(const struct nps_model *model,
						       const struct nps_counter_table *table)
{
	return nps_table__cells(nps_counter_table__of(model, table), table->time);
}

/* The device of row ROW, NPS_NONE: the host. */
static inline uint32_t nps_counter_table__device(const struct nps_model *model,
						 const struct nps_counter_table *table, size_t row)
{
	const uint32_t *device;

	if (table->device == NPS_NO_COLUMN)
		return NPS_NONE;
	device = nps_table__cells(nps_counter_table__of(model, table), table->device);
	return device[row];
}

struct nps_counter_number {
	enum { NPS_NUMBER_UNKNOWN, NPS_NUMBER_REAL, NPS_NUMBER_SIGNED, NPS_NUMBER_UNSIGNED } kind;
	union {
		double real;
		int64_t i;
		uint64_t u;
	};
};

/* Value I of row ROW. Of texts and of what is not finite NPS_NUMBER_UNKNOWN. */
struct nps_counter_number nps_counter__number(const struct nps_counter_view *x,
					      const struct nps_counter_table *table, size_t i, size_t row);

/* The same as a double; NaN: not known. */
double nps_counter__value(const struct nps_counter_view *x, const struct nps_counter_table *table, size_t i,
			  size_t row);

/*
 * Reads PATTERN, which stays valid, for rows of TABLE. NULL: no memory. Free with free().
 */
struct nps_counter_name *nps_counter_name__new(const struct nps_counter_table *table, const char *pattern);

/*
 * Writes the name of row ROW into OUT, of SIZE bytes, ended with NUL. Texts of the model fill at most
 * LONGEST bytes of it, so that the text behind them fits into SIZE; all is cut between characters. Returns
 * the length.
 */
size_t nps_counter_name__write(const struct nps_counter_name *name, const struct nps_counter_view *x,
			       const struct nps_counter_table *table, size_t row, size_t longest, char *out,
			       size_t size);

/* The same of a pattern of counter I of TABLE, which has rows. */
static inline size_t nps_counter__name(const struct nps_counter_view *x,
				       const struct nps_counter_table *table, size_t i,
				       enum nps_counter_pattern pattern, size_t row, size_t longest,
				       char *out, size_t size)
{
	return nps_counter_name__write(x->names[table - nps_counter_tables][i * NPS_PATTERNS + pattern], x,
				       table, row, longest, out, size);
}

#endif
