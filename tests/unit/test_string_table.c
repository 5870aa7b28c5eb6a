/* SPDX-License-Identifier: BSD-2-Clause */
/* Interned texts: one id each, however many there are, and texts that get an id of their own. */
#include "base/string_table.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY 100000 /* texts: enough for slots and texts to be in files and to be let go of in between */

static int begin(void **state)
{
	static struct nps_strings strings;
	static int dirfd;

	dirfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	nps_strings__init(&strings, dirfd);
	*state = &strings;
	return dirfd < 0;
}

static int end(void **state)
{
	struct nps_strings *strings = *state;
	int dirfd = strings->text.dirfd;

	nps_strings__free(strings);
	return close(dirfd);
}

static void every_text_has_one_id(void **state)
{
	struct nps_strings *strings = *state;
	char text[32];

	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < MANY; i++)
			assert_int_equal(nps_strings__addf(strings, "hcom_allReduce__%u_%u", i % 7, i), i);
	assert_int_equal(strings->at.len, MANY);
	for (uint32_t i = MANY; i-- > 0;) {
		snprintf(text, sizeof(text), "hcom_allReduce__%u_%u", i % 7, i);
		assert_string_equal(nps_strings__get(strings, i), text);
	}
	assert_string_equal(nps_strings__get(strings, MANY), "");
	assert_string_equal(nps_strings__get(strings, NPS_NONE), "");
}

static void appended_texts_have_an_id_of_their_own(void **state)
{
	struct nps_strings *strings = *state;
	char longest[1024], longer[1026];
	uint32_t first = nps_strings__append_new(strings, "twice", 5), long_id;

	assert_int_not_equal(nps_strings__append_new(strings, "twice", 5), first);
	assert_int_equal(nps_strings__addz(strings, "twice"), first);
	memset(longest, 'x', sizeof(longest));
	memset(longer, 'x', sizeof(longer));
	long_id = nps_strings__append_new(strings, longer, sizeof(longer));
	assert_int_equal(strlen(nps_strings__get(strings, long_id)), sizeof(longer));
	/* A text that is cut must not be found as the longer one. */
	assert_int_not_equal(nps_strings__add(strings, longer, sizeof(longer)), long_id);
	assert_int_equal(nps_strings__add(strings, longest, sizeof(longest)),
			 nps_strings__add(strings, longer, sizeof(longer)));
}

static void texts_are_clean(void **state)
{
	struct nps_strings *strings = *state;
	uint32_t id = nps_strings__add(strings, "a\0b\xff", 4);

	assert_string_equal(nps_strings__get(strings, id), "a\xef\xbf\xbd"
							   "b\xef\xbf\xbd");
	assert_int_equal(nps_strings__add(strings,
					  "a\xff"
					  "b\0",
					  4),
			 id);
	assert_int_not_equal(nps_strings__addz(strings, ""), id);
}

/* What a child adds after it made the texts its own is not seen by its parent. */
static void a_child_adds_for_itself_alone(void **state)
{
	struct nps_strings *strings = *state;
	size_t before;
	int status;
	pid_t pid;

	for (uint32_t i = 0; i < MANY; i++)
		nps_strings__addf(strings, "%u", i);
	before = strings->text.len;
	pid = fork();
	if (!pid) {
		bool well = !nps_strings__own(strings);

		for (uint32_t i = 0; i < MANY; i++)
			well = well && nps_strings__addf(strings, "child %u", i) == MANY + i;
		for (uint32_t i = 0; i < MANY; i++)
			well = well && nps_strings__addf(strings, "%u", i) == i;
		_exit(!well);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(strings->text.len, before);
	assert_int_equal(nps_strings__addz(strings, "parent"), MANY);
	assert_int_equal(nps_strings__addz(strings, "77"), 77);
	assert_string_equal(nps_strings__get(strings, 77), "77");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_text_has_one_id, begin, end),
		cmocka_unit_test_setup_teardown(appended_texts_have_an_id_of_their_own, begin, end),
		cmocka_unit_test_setup_teardown(texts_are_clean, begin, end),
		cmocka_unit_test_setup_teardown(a_child_adds_for_itself_alone, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
