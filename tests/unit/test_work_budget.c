/* SPDX-License-Identifier: BSD-2-Clause */
/* Accounts of CPU time, and what hostile files, mappings and processes make of those who read them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/elf_file.h"
#include "attach/operators.h"
#include "capture/process.h"
#include "core/clocks.h"
#include "core/proc_maps.h"
#include "core/work_budget.h"
#include "huge_elf.h"

#define SECOND 1000000000ULL
#define MB (1UL << 20)

/* --- the account --- */

static void fills_up_with_a_share_of_the_time(void **state)
{
	struct nps_budget b;

	(void)state;
	nps_budget__init(&b, 2 * SECOND, 10, 100 * SECOND);
	assert_true(nps_budget__ready(&b, 100 * SECOND));
	nps_budget__pay(&b, 2 * SECOND);
	assert_false(nps_budget__solvent(&b, 100 * SECOND));
	assert_false(nps_budget__ready(&b, 100 * SECOND));
	assert_true(nps_budget__solvent(&b, 100 * SECOND + SECOND / 2)); /* a query fills it, too */
	assert_true(nps_budget__ready(&b, 101 * SECOND));
	assert_int_equal(b.credit, SECOND / 10);
	assert_true(nps_budget__ready(&b, 1000000 * SECOND)); /* and not beyond what it holds */
	assert_int_equal(b.credit, 2 * SECOND);
	assert_true(nps_budget__ready(&b, 5 * SECOND)); /* no clock that goes back empties it */
	assert_int_equal(b.credit, 2 * SECOND);
	nps_budget__pay(&b, 1000 * SECOND); /* what took far too long is not paid for until the end of days */
	assert_int_equal(b.credit, -2 * (int64_t)SECOND);
}

/* Works until it gets the order to stop. */
static void burn(struct nps_budget *b)
{
	while (!nps_budget__spent(b))
		;
}

static void work_is_cut_and_gets_twice_as_much_the_next_time(void **state)
{
	uint64_t begin = nps_now(CLOCK_THREAD_CPUTIME_ID), spent = 0, slice = NPS_BUDGET_SLICE_NS;
	struct nps_budget b;

	(void)state;
	nps_budget__init(&b, 200 * NPS_BUDGET_MS, 10, SECOND);
	while (nps_budget__ready(&b, SECOND)) {
		assert_int_equal(b.slice, slice);
		nps_budget__begin(&b);
		burn(&b);
		assert_true(b.cut);
		spent += nps_budget__end(&b);
		slice = slice < 100 * NPS_BUDGET_MS ? 2 * slice : 200 * NPS_BUDGET_MS;
	}
	assert_int_equal(b.credit, 200 * (int64_t)NPS_BUDGET_MS - (int64_t)spent);
	assert_true(spent <= nps_now(CLOCK_THREAD_CPUTIME_ID) - begin);
	assert_true(b.credit < (int64_t)b.slice); /* the rest waits until there is enough for it */
	assert_false(nps_budget__spent(&b)); /* nothing goes on */
}

static void cheap_work_stays_cheap(void **state)
{
	struct nps_budget b;

	(void)state;
	nps_budget__init(&b, SECOND, 10, 0);
	b.slice = SECOND;
	nps_budget__begin(&b);
	nps_budget__end(&b);
	assert_false(b.cut);
	assert_true(b.slice < SECOND / 2);
	assert_false(nps_budget__spent(NULL));
}

static void a_child_has_no_more_than_its_parent(void **state)
{
	struct nps_budget parent, child;

	(void)state;
	nps_budget__init(&parent, SECOND, 10, 0);
	nps_budget__init(&child, SECOND, 10, 0);
	nps_budget__pay(&parent, 900 * NPS_BUDGET_MS);
	parent.files = 7;
	nps_budget__inherit(&child, &parent);
	assert_int_equal(child.credit, 100 * NPS_BUDGET_MS);
	assert_int_equal(child.files, 7);
}

static void an_advance_is_freed_when_it_ends(void **state)
{
	struct nps_budget b, child;

	(void)state;
	nps_budget__init(&b, 100 * NPS_BUDGET_MS, 10, 0);
	nps_budget__advance(&b, 300 * NPS_BUDGET_MS);
	nps_budget__pay(&b, 100 * NPS_BUDGET_MS);
	assert_true(nps_budget__ready(&b, 1000 * NPS_BUDGET_MS));
	assert_int_equal(b.credit, 200 * NPS_BUDGET_MS); /* time has added nothing */
	nps_budget__init(&child, 100 * NPS_BUDGET_MS, 10, 0);
	nps_budget__advance(&child, 300 * NPS_BUDGET_MS);
	nps_budget__inherit(&child, &b);
	assert_int_equal(child.credit, b.credit);
	nps_budget__end_advance(&b);
	assert_int_equal(b.credit, 100 * NPS_BUDGET_MS);
	nps_budget__pay(&b, 60 * NPS_BUDGET_MS);
	nps_budget__end_advance(&b);
	assert_int_equal(b.credit, 40 * NPS_BUDGET_MS);
}

/*
 * On a slow machine, or of many libraries, what there is to do at first takes
 * all of it: none of that is owed later.
 */
static void who_spent_the_advance_has_the_account(void **state)
{
	struct nps_budget b;

	(void)state;
	nps_budget__init(&b, SECOND, 10, 0);
	nps_budget__advance(&b, 5 * SECOND);
	b.slice = SECOND;
	nps_budget__pay(&b, 100 * SECOND);
	assert_false(nps_budget__ready(&b, 0));
	nps_budget__end_advance(&b);
	assert_true(nps_budget__ready(&b, 0));
	assert_int_equal(b.credit, SECOND);
	assert_int_equal(b.slice, NPS_BUDGET_SLICE_NS);
}

static void what_is_left_out_is_reported_once(void **state)
{
	struct nps_budget b;

	(void)state;
	nps_budget__init(&b, SECOND, 10, 0);
	assert_false(nps_budget__report(&b, 1));
	nps_budget__leave_out(&b, NPS_LEFT_DIRS);
	assert_true(nps_budget__report(&b, 1));
	nps_budget__leave_out(&b, NPS_LEFT_DIRS);
	assert_false(nps_budget__report(&b, 1));
	for (int what = 0; what < NPS_LEFT_KINDS; what++) {
		assert_non_null(nps_left_out__name(what));
		assert_non_null(nps_left_out__message(what));
	}
}

/* --- files --- */

static int count(const struct nps_elf_function *f, void *arg)
{
	(void)f;
	++*(size_t *)arg;
	return 0;
}

/* What was read of such a file; *N functions. */
static int read_library(const struct huge_elf *shape, struct nps_budget *budget, size_t *n)
{
	int fd = huge_elf__make(shape), err;
	struct nps_elf *elf = NULL;

	*n = 0;
	err = nps_elf__open(fd, budget, &elf);
	if (!err)
		err = nps_elf__for_each_function(elf, true, count, n);
	nps_elf__close(elf);
	close(fd);
	return err;
}

static size_t peak_kb(void)
{
	struct rusage use;

	assert_int_equal(getrusage(RUSAGE_SELF, &use), 0);
	return (size_t)use.ru_maxrss;
}

static void large_libraries_are_read(void **state)
{
	/* as many as libtorch_cpu.so has in .symtab */
	struct huge_elf torch = {
		.symbols = 600000, .names = 100 * MB, .name = "at::native::", .written = MB
	};
	size_t n;

	(void)state;
	assert_int_equal(read_library(&torch, NULL, &n), 0);
	assert_int_equal(n, 600000);
}

static void files_beyond_all_measure_are_not_read(void **state)
{
	struct huge_elf symbols = { .symbols = 15000000, .names = 64 },
			names = { .symbols = 8, .names = 40000 * MB },
			sections = {
				.symbols = 8, .names = 64, .name = "f", .written = 64, .sections = 1UL << 31
			};
	size_t before = peak_kb(), n;

	(void)state;
	assert_int_equal(read_library(&symbols, NULL, &n), -E2BIG);
	assert_int_equal(read_library(&names, NULL, &n), -E2BIG);
	assert_int_equal(read_library(&sections, NULL, &n), -ENOEXEC);
	assert_int_equal(n, 0);
	assert_true(peak_kb() - before < 64 * 1024);
}

static void names_are_held_once(void **state)
{
	struct huge_elf shape = { .symbols = 8, .names = 100 * MB, .name = "f", .written = 64 };
	size_t n = 0, before = peak_kb();
	int fd = huge_elf__make(&shape);
	struct nps_elf *elf;

	(void)state;
	assert_int_equal(nps_elf__open(fd, NULL, &elf), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(nps_elf__for_each_function(elf, true, count, &n), 0);
	assert_int_equal(n, 64);
	assert_true(peak_kb() - before < 160 * 1024);
	nps_elf__close(elf);
	close(fd);
}

static void reading_ends_with_the_budget(void **state)
{
	struct huge_elf shape = { .symbols = NPS_BUDGET_SYMBOLS, .names = 64, .name = "f", .written = 64 };
	struct nps_budget b;
	size_t n;

	(void)state;
	nps_budget__init(&b, SECOND, 10, 0);
	nps_budget__begin(&b);
	burn(&b);
	assert_int_equal(read_library(&shape, &b, &n), -ETIME);
	assert_int_equal(n, 0);
	nps_budget__end(&b);
}

static int cut_file(const struct nps_elf_function *f, void *arg)
{
	(void)f;
	assert_int_equal(ftruncate(*(int *)arg, 4096), 0);
	return 0;
}

/* A mapping would end us with SIGBUS. */
static void a_file_that_is_cut_while_it_is_read(void **state)
{
	struct huge_elf shape = { .symbols = 100000, .names = 100000, .name = "f", .written = 100000 };
	int fd = huge_elf__make(&shape);
	struct nps_elf_name function = { .offset = 64 };
	struct nps_elf *elf;
	uint8_t code[64];
	size_t n = 0;

	(void)state;
	assert_int_equal(nps_elf__open(fd, NULL, &elf), 0);
	assert_int_equal(nps_elf__for_each_function(elf, false, cut_file, &fd), 0);
	assert_int_equal(nps_elf__for_each_function(elf, true, count, &n), 0);
	assert_int_equal(n, 0);
	nps_elf__name(elf, &function, 1);
	assert_null(function.name);
	assert_true(nps_elf__code(elf, 1UL << 20, code, sizeof(code)) <= 0);
	nps_elf__close(elf);
	close(fd);
}

static int no_operator(const struct nps_elf_function *first, const struct nps_elf_function *second, void *arg)
{
	(void)first;
	(void)second;
	(void)arg;
	return 0;
}

/* The sanitizer's own checks measure a text whenever it is compared. */
#ifdef __SANITIZE_ADDRESS__
#define LONG_NAME (64UL << 10)
#else
#define LONG_NAME (100 * MB)
#endif

/* Each of 50,000 symbols has the same name of 100 MiB: whoever measures it each time is busy for a day. */
static void a_name_of_many_symbols_is_not_measured(void **state)
{
	struct huge_elf shape = {
		.symbols = 50000, .names = LONG_NAME, .name = "aclnn", .written = LONG_NAME
	};
	int fd = huge_elf__make(&shape);
	struct nps_elf_function f;
	struct nps_elf *elf;

	(void)state;
	assert_int_equal(nps_elf__open(fd, NULL, &elf), 0);
	assert_int_equal(nps_operators__find(elf, no_operator, NULL), 0);
	assert_int_equal(nps_elf__find(elf, "aclnnAdd", true, &f), -ENOENT);
	nps_elf__close(elf);
	close(fd);
}

/* --- mappings --- */

static FILE *make_maps(size_t lines, size_t path, char **text)
{
	size_t size;
	FILE *f = open_memstream(text, &size);

	assert_non_null(f);
	for (size_t i = 0; i < lines; i++)
		fprintf(f, "%zx-%zx r-xp 00000000 fd:01 77 /%0*d\n", (i + 1) << 12, (i + 2) << 12, (int)path,
			0);
	assert_int_equal(fclose(f), 0);
	return fmemopen(*text, size, "r");
}

static void a_million_mappings(void **state)
{
	struct nps_maps maps;
	struct nps_budget b;
	char *text;
	FILE *f = make_maps(1000000, 20, &text);

	(void)state;
	nps_budget__init(&b, SECOND, 10, 0);
	assert_int_equal(nps_maps__parse(f, false, &b, &maps), 0);
	assert_int_equal(maps.n, NPS_BUDGET_MAPPINGS);
	assert_true(maps.cut);
	assert_int_equal(b.left_out, 1 << NPS_LEFT_MAPPINGS);
	nps_maps__free(&maps);
	rewind(f);
	nps_budget__begin(&b);
	burn(&b);
	assert_int_equal(nps_maps__parse(f, false, &b, &maps), -ETIME);
	assert_int_equal(maps.n, 0);
	fclose(f);
	free(text);
}

static void paths_as_long_as_they_can_be(void **state)
{
	struct nps_maps maps;
	char *text;
	FILE *f = make_maps(20000, 4095, &text);

	(void)state;
	assert_int_equal(nps_maps__parse(f, false, NULL, &maps), 0);
	assert_true(maps.cut);
	assert_true(maps.path_bytes <= NPS_BUDGET_PATHS);
	assert_true(maps.n > 1000);
	nps_maps__free(&maps);
	fclose(f);
	free(text);
	f = make_maps(20000, 120, &text); /* ten jobs of PyTorch */
	assert_int_equal(nps_maps__parse(f, false, NULL, &maps), 0);
	assert_false(maps.cut);
	assert_int_equal(maps.n, 20000);
	nps_maps__free(&maps);
	fclose(f);
	free(text);
}

/* --- processes --- */

static pid_t start_chain(int depth)
{
	pid_t child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (depth > 1)
		start_chain(depth - 1);
	for (;;)
		pause();
}

static int count_process(pid_t pid, void *arg)
{
	(void)pid;
	++*(size_t *)arg;
	return 0;
}

/* Deeper than we may have files open at once. */
static void a_deep_tree_is_walked_to_its_end(void **state)
{
	struct rlimit before, few;
	size_t found = 0;
	pid_t top = start_chain(100);

	(void)state;
	assert_true(top > 0);
	for (int i = 0; i < 3000 && found < 100; i++) { /* until they are there: 60 s */
		usleep(20000);
		found = 0;
		assert_int_equal(nps_tree__for_each(top, true, count_process, &found), 0);
	}
	assert_int_equal(found, 100);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ 32, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	found = 0;
	assert_int_equal(nps_tree__for_each(top, true, count_process, &found), 0);
	assert_int_equal(found, 100);
	found = 0;
	assert_int_equal(nps_tree__for_each(top, false, count_process, &found), 0);
	assert_int_equal(found, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	kill(top, SIGKILL);
	waitpid(top, NULL, 0);
}

/* A process with N arguments and a variable of VALUE bytes, which waits for what never comes. */
static pid_t start_cat(size_t n, size_t value)
{
	char **argv = calloc(n + 2, sizeof(*argv)), *env[] = { malloc(value + 32), NULL };
	int executed[2], input[2];
	char byte;
	pid_t child;

	assert_true(argv && env[0]);
	memset(stpcpy(env[0], "LD_LIBRARY_PATH=/"), 'x', value);
	env[0][value + 17] = '\0';
	argv[0] = "cat";
	for (size_t i = 1; i <= n; i++)
		argv[i] = "-";
	assert_int_equal(pipe2(executed, O_CLOEXEC), 0);
	assert_int_equal(pipe(input), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(input[0], 0);
		execve("/bin/cat", argv, env);
		_exit(1);
	}
	close(executed[1]);
	assert_int_equal(read(executed[0], &byte, 1), 0);
	close(executed[0]);
	close(input[0]); /* the other end stays open here */
	free(env[0]);
	free(argv);
	return child;
}

static void texts_of_a_process_are_cut(void **state)
{
	pid_t small = start_cat(4, 100), large = start_cat(60000, 120000);
	struct nps_process *p;

	(void)state;
	assert_int_equal(nps_process__read(small, &p), 0);
	nps_process__refresh(p);
	assert_int_equal(p->budget.left_out, 0);
	assert_int_equal(strlen(cJSON_GetStringValue(cJSON_GetObjectItem(p->env, "LD_LIBRARY_PATH"))), 101);
	nps_process__free(p);
	assert_int_equal(nps_process__read(large, &p), 0);
	nps_process__refresh(p);
	assert_int_equal(p->budget.left_out, 1 << NPS_LEFT_TEXTS);
	assert_true(cJSON_GetArraySize(p->cmdline) <= NPS_BUDGET_ARGS);
	assert_true(strlen(cJSON_GetStringValue(cJSON_GetObjectItem(p->env, "LD_LIBRARY_PATH"))) <
		    NPS_BUDGET_VALUE);
	assert_true(p->text_bytes < 1 * MB);
	nps_process__free(p);
	kill(small, SIGKILL);
	kill(large, SIGKILL);
	waitpid(small, NULL, 0);
	waitpid(large, NULL, 0);
}

__attribute__((noinline, used)) int a_kernels_stub(int x)
{
	return x * 5 + 1;
}

static void stubs_are_named_together(void **state)
{
	uint64_t stub = (uint64_t)(uintptr_t)a_kernels_stub;
	struct nps_process *p;
	struct nps_maps maps;

	(void)state;
	assert_int_equal(nps_process__read(getpid(), &p), 0);
	nps_process__add_host_function(p, stub);
	nps_process__add_host_function(p, stub); /* twice */
	nps_process__add_host_function(p, 1); /* nowhere */
	assert_int_equal(p->n_host_functions, 2);
	assert_int_equal(nps_maps__read(getpid(), NULL, &maps), 0);
	nps_budget__begin(&p->budget);
	burn(&p->budget);
	assert_int_equal(nps_process__name_host_functions(p, &maps), -ETIME);
	nps_budget__end(&p->budget);
	assert_int_equal(p->n_symbols, 0); /* it is kept for later */
	assert_int_equal(nps_process__name_host_functions(p, &maps), 0);
	assert_int_equal(p->n_host_functions, 0);
	assert_int_equal(p->n_symbols, 1);
	assert_string_equal(
		cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(p->symbols, 0), "name")),
		"a_kernels_stub");
	for (uint64_t i = 0; i < 2 * NPS_BUDGET_HOST_FUNCTIONS; i++)
		nps_process__add_host_function(p, 4096 + i);
	assert_int_equal(p->n_host_functions, NPS_BUDGET_HOST_FUNCTIONS - 1);
	assert_int_equal(p->budget.left_out, 1 << NPS_LEFT_HOST_FUNCTIONS);
	nps_maps__free(&maps);
	nps_process__free(p);
}

/* session.json is read by others: it must be JSON whatever the paths are. */
static void mappings_are_valid_json(void **state)
{
	char name[] = "/a \"\\\n\x01\xff";
	struct nps_mapping v[] = { { .start = 1, .end = UINT64_MAX, .offset = 3, .exec = true, .path = name },
				   { .path = name } };
	struct nps_maps maps = { .v = v, .n = 2 };
	struct nps_process *p;
	cJSON *j;

	(void)state;
	assert_int_equal(nps_process__read(getpid(), &p), 0);
	nps_process__set_maps(p, &maps);
	j = cJSON_Parse(p->maps);
	assert_int_equal(cJSON_GetArraySize(j), 1);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(j, 0), "path")),
			    "/a \"\\\n\x01?");
	cJSON_Delete(j);
	nps_process__drop_texts(p);
	assert_null(p->maps);
	assert_int_equal(p->budget.left_out, 1 << NPS_LEFT_LISTED);
	nps_process__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fills_up_with_a_share_of_the_time),
		cmocka_unit_test(work_is_cut_and_gets_twice_as_much_the_next_time),
		cmocka_unit_test(cheap_work_stays_cheap),
		cmocka_unit_test(a_child_has_no_more_than_its_parent),
		cmocka_unit_test(an_advance_is_freed_when_it_ends),
		cmocka_unit_test(who_spent_the_advance_has_the_account),
		cmocka_unit_test(what_is_left_out_is_reported_once),
		cmocka_unit_test(files_beyond_all_measure_are_not_read),
		cmocka_unit_test(names_are_held_once),
		cmocka_unit_test(large_libraries_are_read),
		cmocka_unit_test(reading_ends_with_the_budget),
		cmocka_unit_test(a_file_that_is_cut_while_it_is_read),
		cmocka_unit_test(a_name_of_many_symbols_is_not_measured),
		cmocka_unit_test(a_million_mappings),
		cmocka_unit_test(paths_as_long_as_they_can_be),
		cmocka_unit_test(a_deep_tree_is_walked_to_its_end),
		cmocka_unit_test(texts_of_a_process_are_cut),
		cmocka_unit_test(stubs_are_named_together),
		cmocka_unit_test(mappings_are_valid_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
