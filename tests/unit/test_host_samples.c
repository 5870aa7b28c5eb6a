/* SPDX-License-Identifier: BSD-2-Clause */
/* What others took from the job, worked out by hand; and samples that no kernel writes. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/session/host_grid.h"
#include "import/session/host_samples.h"

#define MS 1000000ULL
#define JOB 100
#define HOG 200
#define OTHER 300

struct fixture {
	struct nps_host_samples host;
	struct nps_strings strings;
};

static int begin(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	nps_strings__init(&f->strings, AT_FDCWD);
	nps_host_samples__init(&f->host, AT_FDCWD);
	*state = f;
	return 0;
}

static int end(void **state)
{
	struct fixture *f = *state;

	nps_host_samples__free(&f->host);
	nps_strings__free(&f->strings);
	free(f);
	return 0;
}

static int add(struct fixture *f, unsigned int type, const void *record, uint32_t len)
{
	struct nps_chunk chunk = { .type = (uint16_t)type, .len = len };

	return nps_host_samples__add(&f->host, &f->strings, &chunk, record, 1, 1000000 * MS);
}

static void name(struct fixture *f, uint32_t pid, const char *text, unsigned int flags)
{
	struct nps_host_name n = { .what = NPS_HOST_PROCESS, .id = pid, .flags = (uint8_t)flags, .time = 1 };

	memcpy(n.text, text, strlen(text));
	assert_int_equal(add(f, NPS_CHUNK_HOST_NAMES, &n, sizeof(n)), 0);
}

static void thread(struct fixture *f, uint32_t pid, uint32_t cpu, uint64_t ms, uint64_t run, uint64_t wait)
{
	struct nps_host_thread t = {
		.pid = pid, .tid = pid, .cpu = cpu, .time = ms * MS, .run = run * MS, .wait = wait * MS
	};

	assert_int_equal(add(f, NPS_CHUNK_HOST_THREADS, &t, sizeof(t)), 0);
}

static const struct nps_neighbour *contended_by(const struct fixture *f, uint32_t pid)
{
	for (size_t i = 0; i < f->host.neighbours.len; i++)
		if (NPS_AT(&f->host.neighbours, struct nps_neighbour, i).pid == pid)
			return &NPS_AT(&f->host.neighbours, struct nps_neighbour, i);
	return NULL;
}

/* To a thousandth: cells are floats. */
static void assert_ms(uint64_t ns, uint64_t ms)
{
	assert_in_range(ns, ms * MS - ms * MS / 1000, ms * MS + ms * MS / 1000);
}

static void who_contended(void **state)
{
	struct fixture *f = *state;

	name(f, JOB, "train", 0);
	name(f, JOB, "train", NPS_HOST_TARGET); /* found to use an NPU later */
	name(f, JOB, "train", 0);
	name(f, HOG, "hog", 0);
	/* 0.1 to 0.2 s, CPU 1: the job waits 60 ms; others run 40 + 40. CPU 2 and later: nobody waits. */
	thread(f, JOB, 1, 100, 1000, 500);
	thread(f, HOG, 1, 100, 7000, 0);
	thread(f, OTHER, 1, 100, 0, 0);
	thread(f, JOB, 1, 200, 1020, 560);
	thread(f, HOG, 1, 200, 7040, 60);
	thread(f, OTHER, 1, 200, 40, 20);
	thread(f, OTHER, 2, 300, 140, 20);
	thread(f, HOG, 1, 400, 7200, 60);
	assert_int_equal(nps_host_samples__contend(&f->host, 100 * MS, 400 * MS), 0);
	assert_int_equal(f->host.neighbours.len, 2);
	assert_null(contended_by(f, JOB));
	assert_ms(contended_by(f, HOG)->contended, 30);
	assert_ms(contended_by(f, OTHER)->contended, 30);
	assert_ms(contended_by(f, HOG)->run, 200);
	assert_int_equal(NPS_AT(&f->host.neighbours, struct nps_neighbour, 0).pid, HOG); /* it ran longer */
	assert_string_equal(nps_strings__get(&f->strings, contended_by(f, HOG)->name), "hog");
	assert_int_equal(contended_by(f, OTHER)->name, NPS_NONE);
	assert_ms(f->host.waited, 60);
}

/* Others ran less than the job waited: the rest of its wait is nobody's of them. */
static void no_more_than_they_ran(void **state)
{
	struct fixture *f = *state;

	name(f, JOB, "train", NPS_HOST_TARGET);
	thread(f, JOB, 0, 100, 0, 0);
	thread(f, HOG, 0, 100, 0, 0);
	thread(f, JOB, 0, 300, 10, 190);
	thread(f, HOG, 0, 300, 50, 0);
	assert_int_equal(nps_host_samples__contend(&f->host, 100 * MS, 300 * MS), 0);
	assert_ms(contended_by(f, HOG)->contended, 50);
}

static void strange_samples(void **state)
{
	struct fixture *f = *state;
	char part[sizeof(struct nps_host_thread)] = { 0 };

	name(f, JOB, "train", NPS_HOST_TARGET);
	thread(f, JOB, 5000, 100, 0, 0); /* no such CPU */
	thread(f, JOB, 5000, 200, 50, 50);
	thread(f, HOG, UINT32_MAX, 100, 50, 0);
	thread(f, HOG, 0, 100, 60, 0); /* no time passed */
	thread(f, HOG, 0, 200, 10, 0); /* the number was used again */
	thread(f, HOG, 0, 150, 20, 0); /* back in time */
	thread(f, HOG, 0, 0, 20, 0); /* impossible time */
	thread(f, HOG, 0, 2000000, 20, 0);
	assert_int_equal(f->host.strange, 2);
	assert_int_equal(f->host.threads.len, 6);
	assert_int_equal(add(f, NPS_CHUNK_HOST_THREADS, part, 3), 0); /* no whole row */
	assert_int_equal(add(f, NPS_CHUNK_HOST_CARDS + 1, part, sizeof(part)), 1);
	assert_int_equal(add(f, NPS_CHUNK_EVENTS, part, sizeof(part)), 1);
	assert_int_equal(f->host.threads.len, 6);
	assert_int_equal(nps_host_samples__contend(&f->host, 100 * MS, 50 * MS), 0);
	assert_int_equal(nps_host_samples__contend(&f->host, 1, UINT64_MAX), 0);
}

static void spread_over_slices(void **state)
{
	struct nps_host_grid grid;
	double sum = 0;

	(void)state;
	assert_int_equal(nps_host_grid__init(&grid, AT_FDCWD, 1000, 1100, 10, 2), 0);
	nps_host_grid__add(&grid, 1005, 1025, 1, 40);
	assert_true(*nps_host_grid__cell(&grid, 0, 1) == 10);
	assert_true(*nps_host_grid__cell(&grid, 1, 1) == 20);
	assert_true(*nps_host_grid__cell(&grid, 2, 1) == 10);
	assert_true(*nps_host_grid__cell(&grid, 1, 0) == 0);
	nps_host_grid__add(&grid, 1005, 1025, 2, 40); /* no such CPU */
	nps_host_grid__add(&grid, 1025, 1005, 0, 40);
	nps_host_grid__add(&grid, 0, 2000, 0, 2000); /* of what lies outside nothing falls to the ends */
	nps_host_grid__add(&grid, 0, 1000, 0, 1000);
	nps_host_grid__add(&grid, 1100, 1200, 0, 100);
	nps_host_grid__add(&grid, 1095, 1115, 0, 20);
	for (size_t i = 0; i < grid.slices; i++)
		sum += *nps_host_grid__cell(&grid, i, 0);
	assert_true(sum == 105);
	assert_true(*nps_host_grid__cell(&grid, 9, 0) == 15);
	nps_host_grid__free(&grid);
	/* a capture of a month in slices of 20 ms, on 1000 CPUs: longer slices instead of all memory */
	assert_int_equal(nps_host_grid__init(&grid, AT_FDCWD, 0, 30ULL * 86400 * 1000 * MS, 20 * MS, 1000),
			 0);
	assert_true(grid.slices * grid.cpus <= 16UL << 20);
	nps_host_grid__free(&grid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_contended, begin, end),
		cmocka_unit_test_setup_teardown(no_more_than_they_ran, begin, end),
		cmocka_unit_test_setup_teardown(strange_samples, begin, end),
		cmocka_unit_test(spread_over_slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
