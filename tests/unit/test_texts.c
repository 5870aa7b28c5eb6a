/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts as records, put together again as in docs/session-format.md; texts
 * of a process at the edge of its memory.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/mstx.h"
#include "core/texts.h"

#define LONG (2 * NPS_TEXT_MAX)

static void splits(void **state)
{
	static const size_t lengths[] = {
		0, 1, 127, 128, 254, 255, 507, NPS_TEXT_MAX, NPS_TEXT_MAX + 1, LONG
	};
	char text[LONG + 1];

	(void)state;
	for (size_t k = 0; k < LONG; k++)
		text[k] = (char)('!' + k % 90);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		size_t kept = lengths[i] < NPS_TEXT_MAX ? lengths[i] : NPS_TEXT_MAX, at = 0;
		struct nps_string parts[NPS_TEXT_PARTS];
		unsigned n = nps_text__split(text, lengths[i], 5, 6, parts);

		assert_in_range(n, 1, NPS_TEXT_PARTS);
		for (unsigned p = 0; p < n; p++) {
			assert_int_equal(parts[p].kind, p ? NPS_STR_MORE : NPS_STR_TEXT);
			assert_int_equal(parts[p].id, parts[0].id);
			assert_true(parts[p].len < NPS_STR_MAX);
			assert_int_equal(parts[p].text[parts[p].len], 0);
			assert_memory_equal(parts[p].text, text + at, parts[p].len);
			assert_int_equal(parts[p].flags,
					 p == n - 1 && lengths[i] > NPS_TEXT_MAX ? NPS_STR_CUT : 0);
			at += parts[p].len;
		}
		assert_int_equal(at, kept);
	}
}

/* Two texts that differ behind the first record are two texts. */
static void ids_cover_everything(void **state)
{
	struct nps_string a[NPS_TEXT_PARTS], b[NPS_TEXT_PARTS];
	char text[301];

	(void)state;
	memset(text, 'x', 300);
	nps_text__split(text, 300, 1, 1, a);
	text[299] = 'y';
	nps_text__split(text, 300, 1, 1, b);
	assert_true(a[0].id != b[0].id);
}

static void reads_to_the_edge(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char text[NPS_TEXT_MAX + 2];

	(void)state;
	assert_true(mem != MAP_FAILED);
	assert_int_equal(munmap(mem + page, page), 0);
	memset(mem, 'a', page);
	/* Memory ends before the text does. */
	assert_int_equal(nps_text__read(getpid(), (uint64_t)(uintptr_t)mem + page - 100, text), 100);
	assert_int_equal(strlen(text), 100);
	assert_int_equal(nps_text__read(getpid(), (uint64_t)(uintptr_t)mem, text), NPS_TEXT_MAX + 1);
	mem[NPS_TEXT_MAX] = '\0';
	assert_int_equal(nps_text__read(getpid(), (uint64_t)(uintptr_t)mem, text), NPS_TEXT_MAX);
	mem[0] = '\0';
	assert_int_equal(nps_text__read(getpid(), (uint64_t)(uintptr_t)mem, text), 0);
	assert_int_equal(nps_text__read(getpid(), (uint64_t)(uintptr_t)mem + page, text), -EFAULT);
	munmap(mem, page);
}

static void domains(void **state)
{
	static struct nps_mstx_opts opts;

	(void)state;
	assert_int_equal(nps_mstx__mode(&opts), NPS_MSTX_ALL);
	assert_true(nps_mstx__wants_default(&opts));
	assert_int_equal(nps_mstx__parse(&opts.exclude, "a,b,a,default"), 0);
	assert_int_equal(opts.exclude.n, 3);
	assert_string_equal(opts.exclude.name[2], "default");
	assert_int_equal(nps_mstx__mode(&opts), NPS_MSTX_EXCLUDE);
	assert_false(nps_mstx__wants_default(&opts));
	assert_int_equal(nps_mstx__parse(&opts.exclude, "c,"), -EINVAL);
	assert_int_equal(nps_mstx__parse(&opts.include, "x"), 0);
	nps_mstx__settle(&opts);
	assert_int_equal(nps_mstx__mode(&opts), NPS_MSTX_INCLUDE);
	assert_ptr_equal(nps_mstx__list(&opts), &opts.include);
	assert_int_equal(opts.exclude.n, 0);
	opts.off = true;
	nps_mstx__settle(&opts);
	assert_null(nps_mstx__list(&opts));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits),
		cmocka_unit_test(ids_cover_everything),
		cmocka_unit_test(reads_to_the_edge),
		cmocka_unit_test(domains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
