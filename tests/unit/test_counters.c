/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of sampled counters: what their names are made of, and that all rows hold together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/counters.h"

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

/* Texts have LONGEST bytes at most. */
static void check_cut_name(struct nps_model *m, const char *table, const char *pattern, size_t row,
			   size_t longest, const char *expected)
{
	struct nps_counter_name *parsed = nps_counter_name__new(table_named(table), pattern);
	struct nps_counter_view x;
	char name[64];

	assert_non_null(parsed);
	assert_int_equal(nps_counter_view__init(&x, m, false), 0);
	assert_int_equal(nps_counter_name__write(parsed, &x, table_named(table), row, longest, name,
						 sizeof(name)),
			 strlen(expected));
	assert_string_equal(name, expected);
	nps_counter_view__free(&x);
	free(parsed);
}

static void check_name(struct nps_model *m, const char *table, const char *pattern, size_t row,
		       const char *expected)
{
	check_cut_name(m, table, pattern, row, 40, expected);
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
	check_name(m, "hbm", "port {id%3}, {type}", row, "port 007, write");
	check_name(m, "hbm", "{type:wW=Write|Read}(MB/s)", row, "Write(MB/s)");
	check_name(m, "hbm", "{id:0=none|some}", row, "some");
	check_name(m, "hbm", "{} {id}", row, "hbm 7");
	m->hbm.type[row] = nps_strings__addz(m->strings, "read");
	check_name(m, "hbm", "{type:wW=Write|Read}", row, "Read");
	m->hbm.type[row] = NPS_NONE;
	check_name(m, "hbm", "{type}x", row, "x");
	check_name(m, "hbm", "{type|N/A}x", row, "N/Ax");
	check_name(m, "hbm", "{type:wW=Write|Read}", row, "Read");
	m->hbm.type[row] = nps_strings__addz(m->strings, "Write");
	check_name(m, "hbm", "{type:wW=Write|Read}", row, "Write");
	check_name(m, "hbm", "{type:w=Write|Read}", row, "Read");
}

static void test_optional(void **state)
{
	struct nps_model *m = *state;
	size_t first = 0, second = 0, process = 0;

	assert_int_equal(nps_table__add(&m->frequency.t, &first), 0);
	assert_int_equal(nps_table__add(&m->frequency.t, &second), 0);
	m->frequency.die[first] = 0;
	m->frequency.die[second] = 0;
	check_name(m, "frequency", "a[! die {die}] b", first, "a b");
	check_name(m, "frequency", "a[ die {die}] b", first, "a die 0 b");
	m->frequency.die[second] = 1;
	check_name(m, "frequency", "a[! die {die}] b", first, "a die 0 b");
	check_name(m, "frequency", "a[! die {die}]", second, "a die 1");
	m->frequency.die[first] = NPS_NULL;
	check_name(m, "frequency", "a[! die {die}] b", first, "a b");
	m->frequency.die[first] = -1;
	check_name(m, "frequency", "a[! die {die}] b", first, "a b");
	check_name(m, "frequency", "{die}", first, "-1");
	assert_int_equal(nps_table__add(&m->host_process.t, &process), 0);
	m->host_process.name[process] = nps_strings__addz(m->strings, "python");
	check_name(m, "host_process", "Process {name}[ {pid}] CPU", process, "Process python CPU");
	m->host_process.pid[process] = 7;
	check_name(m, "host_process", "Process {name}[ {pid}] CPU", process, "Process python 7 CPU");
}

/* Numbers are exact whatever they are. */
static void test_numbers(void **state)
{
	struct nps_model *m = *state;
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->nic.t, &row), 0);
	m->nic.function[row] = INT64_MAX;
	check_name(m, "NIC", "Port {function|0}/Rx", row, "Port 9223372036854775807/Rx");
	m->nic.function[row] = (1LL << 53) + 1;
	check_name(m, "NIC", "{} {function|0}", row, "NIC 9007199254740993");
	m->nic.function[row] = NPS_NULL;
	check_name(m, "NIC", "Port {function|0}/Rx", row, "Port 0/Rx");
}

/* A text that is too long ends with a whole character, and what stands behind it is there. */
static void test_cut(void **state)
{
	struct nps_model *m = *state;
	struct nps_counter_name *name = nps_counter_name__new(table_named("qos"), "QoS {event}");
	struct nps_counter_view x;
	char out[8];
	size_t row = 0;

	assert_non_null(name);
	assert_int_equal(nps_table__add(&m->qos.t, &row), 0);
	m->qos.event[row] = nps_strings__addz(m->strings, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
	check_cut_name(m, "qos", "QoS {event} read", row, 9, "QoS \xe2\x82\xac\xe2\x82\xac\xe2\x82\xac read");
	check_cut_name(m, "qos", "QoS {event} read", row, 8, "QoS \xe2\x82\xac\xe2\x82\xac read");
	check_cut_name(m, "qos", "QoS {event} read", row, 2, "QoS  read");
	assert_int_equal(nps_counter_view__init(&x, m, false), 0);
	assert_int_equal(nps_counter_name__write(name, &x, table_named("qos"), row, 40, out, sizeof(out)), 7);
	assert_string_equal(out, "QoS \xe2\x82\xac");
	nps_counter_view__free(&x);
	free(name);
}

static void test_values(void **state)
{
	struct nps_model *m = *state;
	const struct nps_counter_table *usage = table_named("npu_usage"), *nic = table_named("NIC");
	struct nps_counter_view x = { .m = m };
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
		len = strcspn(at + 1, ":%|}");
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
		cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
