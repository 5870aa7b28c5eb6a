/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of the findings as columns: each unit in the document, and the same columns printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "findings/table.h"
#include "model/model.h"

struct fact {
	const char *name, *slowest;
	uint64_t ns, time;
	double value;
	uint32_t id;
	bool cold;
};

#define FACT_COLUMNS(C)                                                                                      \
	C("total_us", NS, "total", r->ns)                                                                    \
	C("name", TEXT, "name", r->name, .print = 1)                                                         \
	C("id", COUNT, NULL, r->id + *m)                                                                     \
	C("value_us", US, "value", r->value)                                                                 \
	C("exact_us", EXACT_US, NULL, r->value)                                                              \
	C("mib", NUMBER, "MiB", r->value)                                                                    \
	C("share", SHARE, "share", r->value)                                                                 \
	C("cold", BOOL, "cold", r->cold)                                                                     \
	C("address", HEX, NULL, r->ns)                                                                       \
	C("slowest.name", TEXT, "slowest", r->slowest, .optional = true)                                     \
	C("slowest.start_us", TIME, "slowest at, ms", r->time, .optional = true)                             \
	C("slowest.thread", COUNT, NULL, r->slowest ? r->id : NPS_NAN, .optional = true)                     \
	C("count", COUNT, "count", r->id, .print = 3)

NPS_FIND_TABLE(facts, "section.rows", "facts, us", uint32_t, struct fact, FACT_COLUMNS)

static const struct fact rows[] = {
	{ "Add", "here", 1234567, 1700000000123456789, 0.1234567, 7, true },
	{ "Matrix\nproduct", NULL, 1000, NPS_FIND_NEVER, NPS_NAN, 2, false },
};

static cJSON *make(size_t n)
{
	static const uint32_t ten = 10;
	cJSON *document = cJSON_CreateObject();

	assert_non_null(document);
	cJSON_AddNumberToObject(cJSON_AddObjectToObject(document, "section"), "n", (double)n);
	assert_non_null(nps_find__rows(document, &facts, &ten, rows, n, sizeof(rows[0])));
	return document;
}

static void each_unit_in_the_document(void **state)
{
	cJSON *document = make(2);
	char *text = cJSON_PrintUnformatted(document);

	(void)state;
	assert_string_equal(
		text,
		"{\"section\":{\"n\":2,\"rows\":["
		"{\"total_us\":1234.567,\"name\":\"Add\",\"id\":17,\"value_us\":0.123,\"exact_us\":0.1234567,"
		"\"mib\":0.123,\"share\":0.123,\"cold\":true,\"address\":\"0x12d687\","
		"\"slowest\":{\"name\":\"here\",\"start_us\":1700000000123456.789,\"thread\":7},\"count\":7},"
		"{\"total_us\":1,\"name\":\"Matrix\\nproduct\",\"id\":12,\"value_us\":null,\"exact_us\":null,"
		"\"mib\":null,\"share\":null,\"cold\":false,\"address\":\"0x3e8\",\"count\":2}]}}");
	cJSON_free(text);
	cJSON_Delete(document);
}

/* Prints the table of N rows, TOP at most; the text must be EXPECTED. */
static void assert_printed(size_t n, size_t top, const char *expected)
{
	cJSON *document = make(n);
	struct nps_view view = { .document = document, .top = top, .start_us = 1700000000123000 };
	size_t size;
	char *text;

	view.out = open_memstream(&text, &size);
	assert_non_null(view.out);
	nps_view__table(&view, &facts);
	fclose(view.out);
	assert_string_equal(text, expected);
	free(text);
	cJSON_Delete(document);
}

static void the_same_columns_printed(void **state)
{
	(void)state;
	assert_printed(
		2, 9,
		"\nfacts, us\n"
		"name               total  count  value   MiB  share  cold  slowest  slowest at, ms\n"
		"--------------  --------  -----  -----  ----  -----  ----  -------  --------------\n"
		"Add             1234.567      7  0.123  0.12  12.3%  yes   here             +0.457\n"
		"Matrix?product     1.000      2                      no                           \n");
	assert_printed(2, 1,
		       "\nfacts, us\n"
		       "name     total  count  value   MiB  share  cold  slowest  slowest at, ms\n"
		       "----  --------  -----  -----  ----  -----  ----  -------  --------------\n"
		       "Add   1234.567      7  0.123  0.12  12.3%  yes   here             +0.457\n"
		       "... and 1 more\n");
	assert_printed(0, 9, "");
}

static void what_is_not_there(void **state)
{
	cJSON *document = make(0);
	struct nps_view view = { .document = document, .top = 1 };

	(void)state;
	assert_null(nps_view__at(&view, "other.rows"));
	assert_null(nps_view__at(&view, "section.rows.name"));
	assert_true(nps_view__number(nps_view__at(&view, "section"), "m") == 0);
	assert_true(nps_view__number(NULL, "n") == 0);
	assert_string_equal(nps_view__text(nps_view__at(&view, "section"), "n"), "");
	cJSON_Delete(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_unit_in_the_document),
		cmocka_unit_test(the_same_columns_printed),
		cmocka_unit_test(what_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
