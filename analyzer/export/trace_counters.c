/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the device and the host (outputs 2.5), by schema/counter_tables.h. No value, no event. */
#include "export/trace_event.h"

#include <errno.h>

#define LONGEST 4096 /* bytes of a text in a name: as many as importers read */
#define NAME (2 * LONGEST + 256) /* no name has more than two texts */

/* A row of samples whose events are being written. */
struct counter_sample {
	struct nps_trace *t;
	const struct nps_counter_table *table;
	size_t row;
	uint64_t pid, time;
	bool whole_us; /* the time is written without decimals, as a number of generation A's */
};

static void put_counter_name(struct counter_sample *s, size_t counter, enum nps_counter_pattern pattern)
{
	char name[NAME];

	nps_counter__name(&s->t->counters, s->table, counter, pattern, s->row, LONGEST, name, sizeof(name));
	nps_writer__json(&s->t->w, name);
}

static void begin_event(struct counter_sample *s, size_t counter)
{
	struct nps_writer *w = &s->t->w;

	nps_writer__item(w);
	nps_writer__lit(w, "{\"name\":");
	put_counter_name(s, counter, NPS_PATTERN_EVENT);
	if (s->whole_us) {
		nps_trace__u64(w, ",\"ts\":\"", s->time / 1000);
		nps_writer__lit(w, "\"");
	} else if (s->t->gen_a) {
		nps_trace__at(w, s->time);
	}
	nps_trace__lane(w, s->pid, 0);
	if (!s->t->gen_a)
		nps_trace__at(w, s->time);
	nps_writer__lit(w, ",\"args\":{");
}

static void put_series(struct counter_sample *s, size_t counter, struct nps_counter_number number, double per)
{
	struct nps_writer *w = &s->t->w;

	put_counter_name(s, counter, NPS_PATTERN_SERIES);
	nps_writer__lit(w, ":");
	if (number.kind == NPS_NUMBER_REAL)
		nps_writer__number(w, per == 1 ? number.real : number.real / per);
	else if (number.kind == NPS_NUMBER_SIGNED && per == 1)
		nps_writer__i64(w, number.i);
	else if (number.kind == NPS_NUMBER_SIGNED)
		nps_writer__number(w, (double)number.i / per);
	else if (per == 1)
		nps_writer__u64(w, number.u);
	else
		nps_writer__number(w, (double)number.u / per);
}

/* Series that the table's rows have in every event. */
static void put_ids(struct counter_sample *s)
{
	for (size_t i = 0; i < s->table->len; i++) {
		if (!s->table->counters[i].id)
			continue;
		nps_writer__lit(&s->t->w, ",");
		put_series(s, i, nps_counter__number(&s->t->counters, s->table, i, s->row), 1);
	}
}

/* The event of counter FIRST: all series that have a value. Returns the first counter of the next event. */
static size_t put_event(struct counter_sample *s, size_t first)
{
	const struct nps_counter *c = s->table->counters;
	bool any = false;
	size_t i = first;

	for (; i < s->table->len; i++) {
		struct nps_counter_number number;

		if (!c[i].event)
			continue;
		if (c[i].event != c[first].event && strcmp(c[i].event, c[first].event) != 0)
			break;
		number = nps_counter__number(&s->t->counters, s->table, i, s->row);
		if (number.kind == NPS_NUMBER_UNKNOWN)
			continue;
		if (any)
			nps_writer__lit(&s->t->w, ",");
		else
			begin_event(s, i);
		put_series(s, i, number, c[i].per);
		any = true;
	}
	if (any) {
		put_ids(s);
		nps_writer__lit(&s->t->w, "},\"ph\":\"C\"}");
	}
	return i;
}

static void put_counter_sample(struct nps_trace *t, const struct nps_counter_table *table, size_t row,
			       uint64_t time, bool whole_us)
{
	uint32_t device = nps_counter_table__device(t->m, table, row);
	struct counter_sample s = { t, table, row, nps_trace__pid(t, table->layer, device), time, whole_us };

	for (size_t i = 0; i < table->len;)
		i = table->counters[i].event ? put_event(&s, i) : i + 1;
}

/* --- values that hold until the next sample --- */

/* ROW is the latest sample of its device and track. */
static void hold_sample(struct nps_trace *t, const struct nps_counter_table *table, size_t row)
{
	uint32_t device = nps_counter_table__device(t->m, table, row);
	struct nps_trace_held *held = NULL;
	char track[256];
	uint64_t key;
	size_t i = 0;

	while (!table->counters[i].track)
		i++;
	if (nps_counter__number(&t->counters, table, i, row).kind == NPS_NUMBER_UNKNOWN)
		return;
	key = nps_hash_bytes(track, nps_counter__name(&t->counters, table, i, NPS_PATTERN_TRACK, row, 64,
						      track, sizeof(track)));
	key = nps_hash2(device, key);
	for (size_t k = 0; k < t->held.len && !held; k++) {
		held = &NPS_AT(&t->held, struct nps_trace_held, k);
		if (held->key != key || held->table != table)
			held = NULL;
	}
	if (!held && t->held.len < NPS_TRACE_DEVICES) {
		held = nps_vec__push(&t->held);
		if (!held && !t->w.err)
			t->w.err = -errno;
	}
	if (held)
		*held = (struct nps_trace_held){ table, key, row };
}

void nps_trace__close_counters(struct nps_trace *t)
{
	for (size_t k = 0; k < t->held.len; k++) {
		const struct nps_trace_held *held = &NPS_AT(&t->held, struct nps_trace_held, k);

		if (t->m->end > nps_counter_table__times(t->m, held->table)[held->row])
			put_counter_sample(t, held->table, held->row, t->m->end, t->gen_a && !k);
	}
}

/* --- all tables --- */

static bool is_counter_shown(const struct nps_counter_table *table)
{
	return table->layer != NPS_TRACE_LAYERS;
}

void nps_trace__sample(struct nps_trace *t, const struct nps_item *item)
{
	const struct nps_counter_table *table = item->table;

	if (!is_counter_shown(table))
		return;
	/* generation A writes the sample at the end of the capture without decimals */
	put_counter_sample(t, table, item->row, item->start,
			   table->held && t->gen_a && item->start >= t->m->end);
	if (table->held)
		hold_sample(t, table, item->row);
}

int nps_trace__scan_counters(struct nps_trace *t)
{
	int err = nps_counter_view__init(&t->counters, t->m, t->gen_a);

	for (size_t k = 0; k < NPS_COUNTER_TABLES; k++) {
		const struct nps_counter_table *table = &nps_counter_tables[k];
		size_t len = is_counter_shown(table) ? nps_counter_table__of(t->m, table)->len : 0;

		if (table->device == NPS_NO_COLUMN) {
			t->counted_on[k] = len > 0;
			continue;
		}
		for (size_t i = 0; i < len; i++) {
			t->counted_on[k] |=
				1ULL << nps_trace__device(t, nps_counter_table__device(t->m, table, i));
			nps_pace__step(&t->pace);
		}
	}
	return err;
}

void nps_trace__name_counters(struct nps_trace *t)
{
	uint64_t done = 0; /* devices of the present layer: tables of one stand together */

	for (size_t k = 0; k < NPS_COUNTER_TABLES; k++) {
		const struct nps_counter_table *table = &nps_counter_tables[k];

		done = k && table->layer == table[-1].layer ? done : 0;
		for (uint32_t d = 0; d < NPS_TRACE_DEVICES; d++)
			if (t->counted_on[k] & ~done & 1ULL << d)
				nps_trace__name_layer(t, table->layer, d);
		done |= t->counted_on[k];
	}
}
