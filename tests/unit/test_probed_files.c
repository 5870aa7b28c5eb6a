/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of the files that are probed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach/probed_files.h"

/*
 * Two names of one function whose last argument in a register is overwritten before
 * the first instruction that is emulated.
 */
#if defined(__x86_64__)
#define BODY "mov $1, %r9d\npush %rbp\npop %rbp\nret\n"
#define TYPE "@function"
#else
#define BODY "mov w7, #1\ncbz x7, 1f\n1: ret\n"
#define TYPE "%function"
#endif
#define FUNCTION(name, size) ".globl " name "\n.type " name ", " TYPE "\n.size " name ", " size "\n"

__asm__(".text\n" FUNCTION("nps_test_alias", "nps_test_end - nps_test_alias") FUNCTION(
	"nps_test_name",
	"nps_test_end - nps_test_name") "nps_test_alias:\nnps_test_name:\n" BODY
					"nps_test_end:\n" FUNCTION(
						"nps_test_next",
						"nps_test_next_end - nps_test_next") "nps_test_next:\n" BODY
										     "nps_test_next_end:\n");

static struct nps_elf *elf;

/* As ROW wants it, NULL: with every argument. */
static struct nps_probe_address address_of(const char *name, const struct nps_probe_row *row)
{
	struct nps_elf_function fn;

	assert_int_equal(nps_elf__find(elf, name, true, &fn), 0);
	return nps_probe_address__find(elf, &fn, row, false);
}

static void aliases_are_one_function(void **state)
{
	const struct nps_probe_row *row = nps_probe_rows__get(NPS_PROBE_STEP_MARKER);
	struct nps_probe_address behind, start, next;
	struct nps_probed_file *files = NULL, *f;
	struct stat st;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0 && !fstat(fd, &st));
	assert_int_equal(nps_elf__open(fd, NULL, &elf), 0);
	behind = address_of("nps_test_alias", row);
	start = address_of("nps_test_name", NULL);
	next = address_of("nps_test_next", row);
	assert_true(behind.offset > start.offset); /* or the test tests nothing */
	f = nps_probed_files__add(&files, fd, &st, "", "exe");
	assert_non_null(f);
	assert_int_equal(nps_probed_file__add(f, NPS_PROBE_STEP_MARKER, false, &behind), 0);
	assert_true(nps_probed_file__has_at(f, &behind));
	assert_true(nps_probed_file__has_at(f, &start));
	assert_false(nps_probed_file__has_at(f, &next));
	nps_probed_files__forget_last(&files);
	assert_null(files);
	nps_elf__close(elf);
	close(fd);
}

/* A function can begin within another one: what enters there is probed once. */
static void one_address_has_one_probe(void **state)
{
	const struct nps_probe_address outer = { .start = 100, .offset = 104 },
				       inner = { .start = 104, .offset = 104 },
				       other = { .start = 104, .offset = 108 };
	struct nps_probed_file f = { 0 };

	(void)state;
	assert_int_equal(nps_probed_file__add(&f, NPS_PROBE_LAUNCH, true, &outer), 0);
	assert_true(nps_probed_file__has_at(&f, &inner));
	assert_false(nps_probed_file__has_at(&f, &other));
	assert_true(nps_probed_file__has(&f, NPS_PROBE_LAUNCH));
	assert_false(nps_probed_file__has(&f, NPS_PROBE_MEMCPY));
	free(f.probes);
}

/* A step marker is attached to a function of which only the ends are probed. */
static void ends_leave_the_entry_free(void **state)
{
	const struct nps_probe_address entry = { .start = 100, .offset = 104 };
	const struct nps_exit end = { 140, NPS_PROBE_EMULATED };
	struct nps_probed_file f = { 0 };

	(void)state;
	assert_int_equal(nps_probed_file__add_end(&f, NPS_PROBE_NN_PHASE2_LEFT, 100, &end), 0);
	assert_true(nps_probed_file__has_ends(&f, NPS_PROBE_NN_PHASE2_LEFT, 100));
	assert_false(nps_probed_file__has_at(&f, &entry));
	free(f.probes);
}

static void files_are_distinguished_by_number(void **state)
{
	struct nps_probed_file *files = NULL;
	struct stat st, other;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0 && !fstat(fd, &st));
	assert_null(nps_probed_files__find(files, fd, &st));
	assert_non_null(nps_probed_files__add(&files, fd, &st, "0102", "exe"));
	assert_ptr_equal(nps_probed_files__find(files, fd, &st), files);
	other = st;
	other.st_ino++;
	assert_null(nps_probed_files__find(files, fd, &other));
	nps_probed_files__forget_last(&files);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aliases_are_one_function),
		cmocka_unit_test(one_address_has_one_probe),
		cmocka_unit_test(ends_leave_the_entry_free),
		cmocka_unit_test(files_are_distinguished_by_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
