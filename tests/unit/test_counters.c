/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of sampled counters: what their names are made of, and that all rows hold together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "schema/counters.h"

static int tmpfd;

static int setup(void **state)
{
	static struct nps_model m;

	tmpfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &m;
	return tmpfd < 0 || nps_model__init(&m, tmpfd, NULL);
}

static int teardown(void **state)
{
	nps_model__free(*state);
	return close(tmpfd);
}

static const struct nps_counter_table *table_named(const char *name)
{
	for (size_t i = 0; i < NPS_COUNTER_TABLES; i++)
		if (!strcmp(nps_counter_tables[i].name, name))
			return &nps_counter_tables[i];
	fail_msg("no table %s", name);
	return NULL;
}

static void check_name(struct nps_model *m, const char *table, const char *pattern, size_t row,
		       const char *expected)
{
	struct nps_counter_view x = nps_counter_view(m);
	char name[64];

	assert_int_equal(nps_counter__name(&x, table_named(table), pattern, row, name, sizeof(name)),
			 strlen(expected));
	assert_string_equal(name, expected);
}

static void test_cells(void **state)
{
	struct nps_model *m = *state;
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->hbm.t, &row), 0);
	m->hbm.id[row] = 7;
	m->hbm.type[row] = nps_strings__addz(m->strings, "write");
	check_name(m, "hbm", "plain", row, "plain");
	check_name(m, "hbm", "", row, "");
	check_name(m, "hbm", "{id}", row, "7");
	check_name(m, "hbm", "port {id%03}, {type}", row, "port 007, write");
	check_name(m, "hbm", "{type:w=Write|Read}(MB/s)", row, "Write(MB/s)");
	check_name(m, "hbm", "{id:0=none|some}", row, "some");
	check_name(m, "hbm", "{} {id}", row, "hbm 7");
	m->hbm.type[row] = nps_strings__addz(m->strings, "read");
	check_name(m, "hbm", "{type:w=Write|Read}", row, "Read");
	m->hbm.type[row] = NPS_NONE;
	check_name(m, "hbm", "{type}x", row, "x");
}

static void test_optional(void **state)
{
	struct nps_model *m = *state;
	size_t first = 0, second = 0;

	assert_int_equal(nps_table__add(&m->frequency.t, &first), 0);
	assert_int_equal(nps_table__add(&m->frequency.t, &second), 0);
	m->frequency.die[first] = 0;
	m->frequency.die[second] = 0;
	check_name(m, "frequency", "a[ die {shown_die}] b", first, "a b");
	m->frequency.die[second] = 1;
	check_name(m, "frequency", "a[ die {shown_die}] b", first, "a die 0 b");
	check_name(m, "frequency", "a[ die {shown_die}]", second, "a die 1");
	m->frequency.die[first] = NPS_NULL;
	check_name(m, "frequency", "a[ die {shown_die}] b", first, "a b");
}

/* A name that is too long ends with a whole character. */
static void test_cut(void **state)
{
	struct nps_model *m = *state;
	struct nps_counter_view x;
	char name[8];
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->qos.t, &row), 0);
	m->qos.event[row] = nps_strings__addz(m->strings, "\xe2\x82\xac\xe2\x82\xac");
	x = nps_counter_view(m);
	assert_int_equal(nps_counter__name(&x, table_named("qos"), "QoS {event}", row, name, sizeof(name)),
			 7);
	assert_string_equal(name, "QoS \xe2\x82\xac");
	assert_int_equal(nps_counter__name(&x, table_named("qos"), "QoS. {event}", row, name, sizeof(name)),
			 5);
	assert_string_equal(name, "QoS. ");
}

static void test_values(void **state)
{
	struct nps_model *m = *state;
	const struct nps_counter_table *usage = table_named("npu_usage"), *nic = table_named("NIC");
	struct nps_counter_view x = nps_counter_view(m);
	struct nps_counter_number n;
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->npu_usage.t, &row), 0);
	m->npu_usage.ai_core[row] = 12.5;
	m->npu_usage.power[row] = NPS_NAN;
	m->npu_usage.health[row] = NPS_NULL;
	m->npu_usage.hbm_used[row] = -3;
	n = nps_counter__number(&x, usage, NPS_ORDINAL(npu_usage, ai_core), row);
	assert_int_equal(n.kind, NPS_NUMBER_REAL);
	assert_true(n.real == 12.5);
	n = nps_counter__number(&x, usage, NPS_ORDINAL(npu_usage, power), row);
	assert_int_equal(n.kind, NPS_NUMBER_UNKNOWN);
	n = nps_counter__number(&x, usage, NPS_ORDINAL(npu_usage, health), row);
	assert_int_equal(n.kind, NPS_NUMBER_UNKNOWN);
	n = nps_counter__number(&x, usage, NPS_ORDINAL(npu_usage, hbm_used), row);
	assert_int_equal(n.kind, NPS_NUMBER_SIGNED);
	assert_int_equal(n.i, -3);
	assert_true(nps_counter__value(&x, usage, NPS_ORDINAL(npu_usage, hbm_used), row) == -3);
	assert_true(isnan(nps_counter__value(&x, usage, NPS_ORDINAL(npu_usage, health), row)));

	assert_int_equal(nps_table__add(&m->nic.t, &row), 0);
	m->nic.function[row] = 1;
	m->nic.rx_packets[row] = 200;
	m->nic.rx_errors[row] = 3;
	for (size_t i = 0; i < nic->len; i++)
		if (!strcmp(nic->counters[i].name, "rx_error_rate"))
			assert_true(nps_counter__value(&x, nic, i, row) == 1.5);
}

/* Each {column} of PATTERN is one of TABLE, and braces and brackets come in pairs. */
static void check_pattern(const struct nps_counter_table *table, const char *pattern)
{
	bool optional = false;

	for (const char *at = pattern; at && *at; at++) {
		size_t len, i = 0;

		assert_true(*at != '}' && (*at != '[' || !optional) && (*at != ']' || optional));
		optional = *at == '[' || (optional && *at != ']');
		if (*at != '{')
			continue;
		len = strcspn(at + 1, ":%}");
		while (len && i < table->len &&
		       (strncmp(table->counters[i].name, at + 1, len) || table->counters[i].name[len]))
			i++;
		if (i == table->len)
			fail_msg("%s: no column of %s", pattern, table->name);
		if (at[1 + len] == ':')
			assert_non_null(memchr(at, '|', strcspn(at, "}")));
		at = strchr(at, '}');
		assert_non_null(at);
	}
	assert_false(optional);
}

static void test_rows(void **state)
{
	struct nps_model *m = *state;

	for (size_t k = 0; k < NPS_COUNTER_TABLES; k++) {
		const struct nps_counter_table *t = &nps_counter_tables[k];
		const struct nps_table *rows = nps_counter_table__of(m, t);
		size_t titles = 0;

		assert_true(t->len >= rows->ncolumns);
		assert_string_equal(rows->columns[t->time].name, "timestamp");
		for (size_t i = 0; i < t->len; i++) {
			const struct nps_counter *c = &t->counters[i];

			if (i < rows->ncolumns)
				assert_string_equal(c->name, rows->columns[i].name);
			assert_true((i >= rows->ncolumns) == !!c->value);
			check_pattern(t, c->event);
			check_pattern(t, c->event_a);
			check_pattern(t, c->series);
			check_pattern(t, c->id);
			check_pattern(t, c->track);
			assert_true(!c->event || (c->series && c->per > 0));
			assert_true(!c->track == !c->unit);
			assert_true(!c->title || c->csv_per > 0);
			assert_true(!c->range || i >= 2);
			titles += c->title != NULL;
			for (size_t before = 0; c->event && before + 1 < i; before++)
				if (t->counters[before].event && !strcmp(t->counters[before].event, c->event))
					for (size_t between = before; between < i; between++)
						assert_true(!t->counters[between].event ||
							    !strcmp(t->counters[between].event, c->event));
		}
		assert_true(titles <= 16); /* COUNTERS of export_counter_csv.c */
		assert_int_equal(titles > 0, t->csv != NPS_COUNTER_NO_CSV);
		assert_int_equal(t->csv != NPS_COUNTER_NO_CSV, t->stem != NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cells, setup, teardown),
		cmocka_unit_test_setup_teardown(test_optional, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
