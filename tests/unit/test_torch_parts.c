/* SPDX-License-Identifier: BSD-2-Clause */
/* What the importer of PyTorch profiler data is made of: texts, clocks, JSON, records. */
#include "base/json.h"
#include "import/common/memo.h"
#include "import/torch/clock.h"
#include "import/common/torch_owner.h"
#include "import/torch/records.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int tmpfd;

static int open_tmp(void **state)
{
	static char dir[] = "/tmp/test_torch.XXXXXX";

	*state = dir;
	if (!mkdtemp(dir))
		return -1;
	tmpfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return tmpfd < 0;
}

static int close_tmp(void **state)
{
	return close(tmpfd) | rmdir(*state);
}

static void put_file(const char *name, const void *bytes, size_t len)
{
	int fd = openat(tmpfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

/* --- texts --- */

static void test_memo(void **state)
{
	struct nps_strings strings;
	struct nps_fw_memo memo;
	char text[3000];
	uint32_t id, *value;

	(void)state;
	nps_strings__init(&strings, tmpfd);
	nps_fw_memo__init(&memo, tmpfd);
	id = nps_fw_memo__text(&memo, &strings, "a\0b", 3);
	assert_string_equal(nps_strings__get(&strings, id), "a\xef\xbf\xbd"
							    "b");
	assert_int_equal(nps_fw_memo__text(&memo, &strings, "a\0b", 3), id);
	assert_int_not_equal(nps_fw_memo__text(&memo, &strings, "a\0c", 3), id);
	memset(text, 'x', sizeof(text));
	id = nps_fw_memo__text(&memo, &strings, text, sizeof(text));
	assert_int_equal(strlen(nps_strings__get(&strings, id)), sizeof(text));
	assert_int_equal(nps_fw_memo__text(&memo, &strings, text, sizeof(text)), id);
	assert_int_not_equal(nps_fw_memo__text(&memo, &strings, text, sizeof(text) - 1), id);
	assert_string_equal(nps_strings__get(&strings, nps_fw_memo__text(&memo, &strings, "", 0)), "");

	/* More texts than it keeps: it forgets, and finds those that it has. */
	for (uint32_t i = 0; i < 600000; i++) {
		value = nps_fw_memo__at(&memo, &i, sizeof(i));
		assert_non_null(value);
		assert_int_equal(*value, NPS_NONE);
		*value = i;
	}
	for (uint32_t i = 599000; i < 600000; i++)
		assert_int_equal(*nps_fw_memo__at(&memo, &i, sizeof(i)), i);
	nps_fw_memo__free(&memo);
	nps_strings__free(&strings);
}

/* --- clocks --- */

static struct nps_fw_clock clock_of(const char *json)
{
	struct nps_fw_clock clock;
	cJSON *info;

	put_file("info", json, strlen(json));
	info = nps_fw_json__read(tmpfd, "info");
	assert_non_null(info);
	nps_fw_clock__init(&clock, info, -1);
	cJSON_Delete(info);
	unlinkat(tmpfd, "info", 0);
	return clock;
}

#define END "\"end_info\":{\"collectionTimeEnd\":1736408884023552847,\"MonotonicTimeEnd\":172164265133640}"

static void test_clock(void **state)
{
	struct nps_fw_clock clock =
		clock_of("{\"start_info\":{\"syscnt_enable\":true,\"freq\":38.4,\"start_cnt\":"
			 "17238197612056,\"start_monotonic\":172163581670080}," END "}");
	uint64_t ns;

	(void)state;
	/* 384 counts are 10 000 ns; the offset has all its digits. */
	assert_true(nps_fw_clock__ns(&clock, 17238197612056 + 384, &ns));
	assert_int_equal(ns, 1736408884023552847 - 172164265133640 + 172163581670080 + 10000);
	assert_true(nps_fw_clock__ns(&clock, 17238197612056 - 1, &ns)); /* rounded down: 26.04 ns before */
	assert_int_equal(ns, 1736408884023552847 - 172164265133640 + 172163581670080 - 27);
	assert_false(nps_fw_clock__ns(&clock, -1, &ns));
	assert_false(nps_fw_clock__ns(&clock, INT64_MAX, &ns));

	clock = clock_of("{\"start_info\":{\"syscnt_enable\":false,\"start_monotonic\":172163581670080}," END
			 "}");
	assert_true(nps_fw_clock__ns(&clock, 172164265133641, &ns));
	assert_int_equal(ns, 1736408884023552848);

	/* What is no frequency is not used; nothing overflows. */
	clock = clock_of(
		"{\"start_info\":{\"syscnt_enable\":true,\"freq\":0,\"start_cnt\":-9223372036854775808,"
		"\"start_monotonic\":9223372036854775807},\"end_info\":{\"collectionTimeEnd\":"
		"9223372036854775807,\"MonotonicTimeEnd\":-9223372036854775808}}");
	assert_int_equal(clock.ns, 1);
	assert_int_equal(clock.counts, 1);
	assert_false(clock.has_offset);
	assert_false(nps_fw_clock__ns(&clock, INT64_MAX, &ns));
	clock = clock_of("{}");
	assert_false(clock.known);
}

/* --- JSON --- */

static void test_json(void **state)
{
	static const char text[] =
		"{\"a \\\" 12345678901234567890\":[1,{\"b\":-1234567890123456789}],"
		"\"c\":1736408884023552840,\"d\":\"1736408884023552841\",\"e\":0.1234567890123456789}";
	cJSON *json;
	char *again;
	int64_t value;

	(void)state;
	put_file("x", text, strlen(text));
	json = nps_fw_json__read(tmpfd, "x");
	assert_non_null(json);
	assert_true(nps_fw_json__i64(json, "c", &value));
	assert_int_equal(value, 1736408884023552840);
	assert_true(nps_fw_json__i64(json, "d", &value));
	assert_int_equal(value, 1736408884023552841);
	assert_false(nps_fw_json__i64(json, "e", &value) && value);
	again = cJSON_PrintUnformatted(json);
	assert_non_null(strstr(again, "{\"b\":-1234567890123456789}"));
	assert_non_null(strstr(again, "\"c\":1736408884023552840,"));
	cJSON_free(again);
	cJSON_Delete(json);
	assert_null(nps_fw_json__read(tmpfd, "missing"));
	assert_int_equal(errno, ENOENT);
	put_file("x", "{\"a\":", 5);
	assert_null(nps_fw_json__read(tmpfd, "x"));
	assert_int_equal(errno, EILSEQ);
	unlinkat(tmpfd, "x", 0);
}

/* --- records --- */

static size_t put_record(uint8_t *to, unsigned int type, uint32_t number, uint32_t text)
{
	uint32_t len = 4 + 6 + text;

	memset(to, 'n', 6 + len);
	to[0] = type;
	to[1] = 0;
	memcpy(to + 2, &len, 4);
	memcpy(to + 6, &number, 4);
	to[10] = 2;
	to[11] = 0;
	memcpy(to + 12, &text, 4);
	return 6 + len;
}

/* Reads the file "x"; how many records had the numbers 0, 1, 2, ... */
static uint32_t read_records(struct nps_fw_file *f, struct nps_model *m)
{
	struct nps_fw_record record;
	uint32_t n = 0, number;

	assert_int_equal(nps_fw_file__open(f, m, tmpfd, "x"), 0);
	while (nps_fw_file__typed(f, 1, 4, &record)) {
		memcpy(&number, record.fixed, 4);
		assert_true(number >= n);
		n = number + 1;
		assert_true(record.fields[2].there);
		for (uint32_t i = 0; i < record.fields[2].len; i++)
			assert_int_equal(record.fields[2].text[i], 'n');
	}
	nps_fw_file__close(f);
	return n;
}

static void test_records(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 100, 70000, 1 << 20, 3 << 20, 5 };
	uint8_t *bytes = malloc(64 << 20);
	struct nps_fw_file f;
	struct nps_model m;
	size_t len = 0, middle;

	(void)state;
	assert_non_null(bytes);
	assert_int_equal(nps_model__init(&m, tmpfd, NULL), 0);
	for (uint32_t i = 0; i < 7; i++)
		len += put_record(bytes + len, 1, i, sizes[i]);
	put_file("x", bytes, len);
	assert_int_equal(read_records(&f, &m), 7);
	assert_int_equal(f.damaged + f.unknown, 0);

	/* Another type is passed over, a cut record at the end is left out. */
	len += put_record(bytes + len, 9, 7, 50);
	len += put_record(bytes + len, 1, 8, 20);
	middle = len;
	len += put_record(bytes + len, 1, 9, 90) - 10;
	put_file("x", bytes, len);
	assert_int_equal(read_records(&f, &m), 9);
	assert_int_equal(f.damaged, 1);
	assert_int_equal(f.unknown, 1);

	/* A length beyond everything: the next record is found. */
	len = middle;
	for (int i = 0; i < 6; i++)
		bytes[len++] = i == 0 ? 1 : i == 1 ? 0 : 0xff;
	len += put_record(bytes + len, 1, 10, 20);
	put_file("x", bytes, len);
	assert_int_equal(read_records(&f, &m), 11);
	assert_int_equal(f.damaged, 1);
	unlinkat(tmpfd, "x", 0);
	nps_model__free(&m);
	free(bytes);
}

/* A file full of what could be records ends in reasonable time. */
static void test_record_bombs(void **state)
{
	size_t len = 8 << 20;
	uint8_t *bytes = calloc(1, len);
	struct nps_fw_file f;
	struct nps_model m;

	(void)state;
	assert_non_null(bytes);
	assert_int_equal(nps_model__init(&m, tmpfd, NULL), 0);
	for (size_t i = 0; i < len; i++)
		bytes[i] = i % 6 == 4; /* heads of type 0 and 65 536 bytes */
	put_file("x", bytes, len);
	assert_int_equal(read_records(&f, &m), 0);
	for (size_t i = 0; i < len; i++)
		bytes[i] = i % 6 == 0 ? 1 : i % 6 == 3 ? 64 : 0; /* of type 1 and 16 384 bytes */
	put_file("x", bytes, len - 1);
	assert_int_equal(nps_fw_file__open(&f, &m, tmpfd, "x"), 0);
	for (struct nps_fw_record record; nps_fw_file__typed(&f, 1, 4, &record);)
		;
	assert_true(f.damaged);
	nps_fw_file__close(&f);
	unlinkat(tmpfd, "x", 0);
	nps_model__free(&m);
	free(bytes);
}

/* --- owners --- */

static void add_op(struct nps_model *m, uint64_t start, uint64_t end, uint64_t gtid)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->torch.t, &row), 0);
	m->torch.start[row] = start;
	m->torch.end[row] = end;
	m->torch.gtid[row] = gtid;
}

static void test_owner(void **state)
{
	static const struct {
		uint64_t gtid, time;
		uint32_t row;
	} queries[] = { { 1, 5, NPS_NONE },  { 1, 10, 0 },  { 1, 20, 1 },	 { 2, 22, 2 },
			{ 1, 30, 1 },	     { 1, 31, 0 },  { 1, 45, 3 },	 { 3, 45, NPS_NONE },
			{ 2, 60, NPS_NONE }, { 1, 100, 0 }, { 1, 101, NPS_NONE } };
	struct nps_torch_owner owner;
	struct nps_model m;

	(void)state;
	assert_int_equal(nps_model__init(&m, tmpfd, NULL), 0);
	add_op(&m, 10, 100, 1);
	add_op(&m, 20, 30, 1);
	add_op(&m, 21, 50, 2);
	add_op(&m, 40, 50, 1);
	nps_torch_owner__init(&owner, &m, 0, 4);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(queries); i++) {
		uint32_t row;

		assert_int_equal(nps_torch_owner__at(&owner, queries[i].gtid, queries[i].time, &row), 0);
		assert_int_equal(row, queries[i].row);
	}
	assert_int_equal(nps_torch_owner__parent(&owner, 3), 0);
	assert_int_equal(nps_torch_owner__parent(&owner, 2), NPS_NONE);
	nps_torch_owner__free(&owner);
	nps_model__free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memo),	     cmocka_unit_test(test_clock),
		cmocka_unit_test(test_json),	     cmocka_unit_test(test_records),
		cmocka_unit_test(test_record_bombs), cmocka_unit_test(test_owner),
	};

	return cmocka_run_group_tests(tests, open_tmp, close_tmp);
}
