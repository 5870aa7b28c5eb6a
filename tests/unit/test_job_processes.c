/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of the job's processes, from births that the BPF programs report: births that a
 * parent with too much work cannot pay for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/discover.h"
#include "capture/job_processes.h"
#include "core/clocks.h"

static struct nps_record_opts opts = { .sz = sizeof(opts), .children = true };
static struct nps_capture *capture;
static struct nps_process *parent;

/* A capture of this process, as records flow. */
static int setup(void **state)
{
	(void)state;
	capture = calloc(1, sizeof(*capture));
	if (!capture || nps_process__read(getpid(), &parent))
		return -1;
	capture->opts = &opts;
	capture->armed = true;
	nps_budget__init(&capture->work, NPS_BUDGET_ALL_CPU_NS, NPS_BUDGET_ALL_PERCENT,
			 nps_now(CLOCK_MONOTONIC));
	nps_job_processes__add(capture, parent, NULL);
	return 0;
}

static int teardown(void **state)
{
	struct nps_process *next;

	(void)state;
	for (struct nps_process *p = capture->processes; p; p = next) {
		next = p->next;
		nps_process__free(p);
	}
	free(capture->refused);
	free(capture);
	return 0;
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* of a test that fails */
		for (;;)
			pause();
	}
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct nps_process *report_birth_of(pid_t mother, pid_t child)
{
	const struct nps_notice n = { .what = NPS_NOTICE_FORK,
				      .pid = (uint32_t)mother,
				      .arg = (uint64_t)child,
				      .time = nps_now(CLOCK_MONOTONIC),
				      .parent = mother };

	return nps_job_processes__of_notice(capture, &n);
}

static struct nps_process *report_birth(pid_t child)
{
	return report_birth_of(getpid(), child);
}

static struct nps_process *report_program(const struct nps_process *p)
{
	const struct nps_notice n = { .what = NPS_NOTICE_EXEC,
				      .pid = (uint32_t)p->pid,
				      .time = nps_now(CLOCK_MONOTONIC),
				      .started = p->start_boot,
				      .parent = getpid() };

	return nps_job_processes__of_notice(capture, &n);
}

static void retry(void)
{
	nps_job_processes__retry(capture, UINT64_MAX);
}

static bool is_left_out(const struct nps_process *p)
{
	return p->budget.left_out >> NPS_LEFT_BORN & 1;
}

/* For so long that nothing comes back of it while the test runs. */
static void spend(struct nps_budget *b)
{
	b->credit = -(int64_t)b->capacity;
	b->filled = nps_now(CLOCK_MONOTONIC);
}

/* As if 30 s had passed. */
static void wait_for_credit(struct nps_budget *b)
{
	b->filled -= 30000 * NPS_BUDGET_MS;
}

static void births_are_added(void **state)
{
	pid_t child = start_child();
	struct nps_process *p = report_birth(child);

	(void)state;
	assert_non_null(p);
	assert_true(p == nps_job_processes__find(capture, child));
	assert_true(p->alive && p->rescan);
	assert_int_equal(capture->n_refused, 0);
	end_child(child);
}

/* Its libraries, its helper and its line in session.json come later, not never. */
static void refused_births_are_added_later(void **state)
{
	pid_t child = start_child();
	struct nps_process *p;

	(void)state;
	spend(&parent->budget);
	assert_null(report_birth(child));
	retry();
	assert_null(nps_job_processes__find(capture, child)); /* it cannot pay yet */
	wait_for_credit(&parent->budget);
	retry();
	p = nps_job_processes__find(capture, child);
	assert_non_null(p);
	assert_true(p->alive && p->rescan);
	assert_true(p->root == parent);
	assert_int_equal(capture->n_refused, 0);
	nps_discover__finish(capture);
	assert_false(is_left_out(parent) || capture->degraded); /* nothing is missing */
	end_child(child);
}

/* Also while their parent still cannot pay. */
static void refused_births_of_the_dead_are_left_out(void **state)
{
	pid_t child = start_child(), exited = start_child();

	(void)state;
	spend(&parent->budget);
	assert_null(report_birth(child));
	assert_null(report_birth(exited));
	assert_int_equal(capture->n_refused, 2);
	end_child(exited);
	assert_false(is_left_out(parent));
	retry();
	assert_int_equal(capture->n_refused, 1);
	assert_true(is_left_out(parent) && capture->degraded);
	end_child(child);
}

static void who_waits_until_the_end_is_left_out(void **state)
{
	pid_t child = start_child();

	(void)state;
	spend(&parent->budget);
	assert_null(report_birth(child));
	nps_discover__turn(capture);
	capture->ending = true;
	nps_discover__turn(capture);
	assert_false(is_left_out(parent));
	nps_discover__finish(capture);
	assert_true(is_left_out(parent) && capture->degraded);
	end_child(child);
}

/* A family that has as many as are listed can never take in another. */
static void beyond_what_is_listed_nobody_waits(void **state)
{
	pid_t child = start_child(), other = start_child();

	(void)state;
	spend(&parent->budget);
	assert_null(report_birth(child));
	parent->n_born = NPS_BUDGET_BORN;
	assert_null(report_birth(other));
	assert_int_equal(capture->n_refused, 1);
	assert_true(is_left_out(parent));
	retry();
	assert_int_equal(capture->n_refused, 0);
	end_child(child);
	end_child(other);
}

/* The payer is the parent, not who has its pid by then. */
static void a_late_child_is_its_own_parents(void **state)
{
	struct nps_process *foreign = nps_process__new(getpid()), *p;
	pid_t child = start_child();

	(void)state;
	assert_non_null(foreign);
	spend(&parent->budget);
	assert_null(report_birth(child));
	nps_job_processes__add(capture, foreign, NULL);
	retry();
	assert_null(nps_job_processes__find(capture, child)); /* though the other could pay */
	wait_for_credit(&parent->budget);
	retry();
	p = nps_job_processes__find(capture, child);
	assert_true(p && p->root == parent);
	end_child(child);
}

static void a_refused_child_that_executes_is_one(void **state)
{
	struct nps_process *p, *known;
	pid_t child = start_child();

	(void)state;
	assert_int_equal(nps_process__read(child, &known), 0);
	known->start_boot = known->start_ticks * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
	spend(&parent->budget);
	assert_null(report_birth(child));
	assert_null(report_program(known));
	assert_int_equal(capture->n_refused, 1);
	wait_for_credit(&parent->budget);
	retry();
	p = nps_job_processes__find(capture, child);
	assert_true(p && p->executed);
	nps_process__free(known);
	end_child(child);
}

/* Nor is it taken for a dead one that had its pid. */
static void an_unreported_child_waits_too(void **state)
{
	pid_t child = start_child();
	struct nps_process *before = nps_process__new(child), *p;

	(void)state;
	assert_non_null(before);
	nps_job_processes__add(capture, before, parent);
	before->alive = false;
	capture->orphans = parent;
	spend(&parent->budget);
	nps_job_processes__missed(capture, child);
	assert_int_equal(capture->n_refused, 1);
	assert_false(is_left_out(parent));
	wait_for_credit(&parent->budget);
	retry();
	p = nps_job_processes__find(capture, child);
	assert_true(p && p != before && p->alive);
	end_child(child);
}

static void retries_have_an_end(void **state)
{
	pid_t child = start_child();

	(void)state;
	spend(&parent->budget);
	assert_null(report_birth(child));
	wait_for_credit(&parent->budget);
	spend(&capture->work); /* of all of them */
	retry();
	assert_null(nps_job_processes__find(capture, child));
	capture->work.credit = (int64_t)capture->work.capacity;
	nps_job_processes__retry(capture, 0); /* no time */
	assert_null(nps_job_processes__find(capture, child));
	assert_false(is_left_out(parent));
	retry();
	assert_non_null(nps_job_processes__find(capture, child));
	end_child(child);
}

/* An account is filled by the time that passes, whether its process is looked at or not. */
static void a_parent_that_rests_can_pay_again(void **state)
{
	pid_t child = start_child();

	(void)state;
	spend(&parent->budget);
	assert_false(nps_discover__may_add_born(capture, getpid()));
	wait_for_credit(&parent->budget);
	assert_non_null(report_birth(child));
	end_child(child);
}

static void one_birth_is_remembered_once(void **state)
{
	pid_t child = start_child();

	(void)state;
	spend(&parent->budget);
	for (int i = 0; i < 5000; i++)
		assert_null(report_birth(child));
	assert_int_equal(capture->n_refused, 1);
	wait_for_credit(&parent->budget);
	retry();
	assert_int_equal(capture->n_refused, 0);
	assert_int_equal(parent->n_born, 2); /* once, however often it was reported */
	end_child(child);
}

#define MANY 5000
#define NO_PID 100000000 /* the kernel has none so high */

/* One that starts processes without end leaves room for the children of others. */
static void no_family_fills_the_table(void **state)
{
	struct nps_process *other = nps_process__new(getppid());
	pid_t child = start_child();
	size_t used;

	(void)state;
	assert_non_null(other);
	nps_job_processes__add(capture, other, NULL);
	spend(&parent->budget);
	spend(&other->budget);
	for (int i = 0; i < MANY; i++)
		assert_null(report_birth(NO_PID + i));
	used = capture->n_refused;
	assert_in_range(used, 1, 1023);
	assert_true(is_left_out(parent));
	assert_null(report_birth_of(other->pid, child));
	assert_int_equal(capture->n_refused, used + 1);
	assert_false(is_left_out(other));
	retry();
	assert_int_equal(capture->n_refused, 1); /* none of the others lives */
	wait_for_credit(&other->budget);
	retry();
	assert_non_null(nps_job_processes__find(capture, child));
	end_child(child);
}

/* Processes that are no more, whose exit was not reported; their pids are so far apart. */
static void add_many(int apart)
{
	for (int i = 0; i < MANY; i++) {
		struct nps_process *p = nps_process__new(NO_PID + apart * i);

		assert_non_null(p);
		nps_job_processes__add(capture, p, parent);
	}
}

static unsigned int count_missed(void)
{
	unsigned int n = 0;

	for (const struct nps_process *p = capture->processes; p; p = p->next)
		n += p->alive && p->missed;
	return n;
}

static unsigned int count_alive(void)
{
	unsigned int n = 0;

	for (const struct nps_process *p = capture->processes; p; p = p->next)
		n += p->alive;
	return n;
}

/* A second of a capture of thousands is not for reading /proc: each has its turn. */
static void many_are_scanned_in_turns(void **state)
{
	(void)state;
	add_many(1);
	nps_job_processes__poll(capture, 100);
	assert_in_range(count_missed(), 900, 1100);
	assert_int_equal(count_alive(), MANY + 1);
	nps_job_processes__poll(capture, 200);
	assert_in_range(count_missed(), 900, 1100);
	assert_in_range(count_alive(), MANY + 1 - 1100, MANY + 1 - 900);
	for (int second = 3; second < 10; second++)
		nps_job_processes__poll(capture, 100 * (uint64_t)second);
	assert_int_equal(count_alive(), 1);
	for (const struct nps_process *p = capture->processes; p; p = p->next)
		if (!p->alive)
			assert_true(p->exit_code == NPS_EXIT_UNKNOWN && p->exit_mono >= 200);
}

/* Whatever their pids are, and however many of them there are. */
static void no_second_is_for_more_than_its_turn(void **state)
{
	(void)state;
	add_many(5);
	for (int second = 1; second <= 6; second++) {
		nps_job_processes__poll(capture, 100 * (uint64_t)second);
		assert_in_range(count_missed(), 0, 1024);
	}
	assert_int_equal(count_alive(), 1); /* nobody was passed over */
}

/* So much more of this process's CPU time, at least. */
static void burn(uint64_t ns)
{
	uint64_t until = nps_now(CLOCK_PROCESS_CPUTIME_ID) + ns;

	while (nps_now(CLOCK_PROCESS_CPUTIME_ID) < until)
		;
}

/* Who runs is accounted for every second all the same: the overhead is reported and limited by it. */
static void who_runs_is_polled_every_second(void **state)
{
	uint64_t before;

	(void)state;
	for (int i = 0; i < MANY; i++) { /* ones that live, and do nothing */
		struct nps_process *p = nps_process__new(getppid());

		assert_non_null(p);
		p->cpu_last = UINT64_MAX;
		nps_job_processes__add(capture, p, parent);
	}
	for (int second = 0; second < 5; second++) {
		burn(30000000);
		nps_job_processes__poll(capture, 100);
	}
	assert_true(parent->busy);
	for (int second = 0; second < 5; second++) {
		before = capture->job_cpu_ns;
		burn(30000000);
		nps_job_processes__poll(capture, 100);
		assert_in_range(capture->job_cpu_ns, before + 10000000, UINT64_MAX);
	}
	assert_int_equal(count_alive(), MANY + 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(births_are_added),
		TEST(refused_births_are_added_later),
		TEST(a_parent_that_rests_can_pay_again),
		TEST(refused_births_of_the_dead_are_left_out),
		TEST(who_waits_until_the_end_is_left_out),
		TEST(beyond_what_is_listed_nobody_waits),
		TEST(a_late_child_is_its_own_parents),
		TEST(a_refused_child_that_executes_is_one),
		TEST(an_unreported_child_waits_too),
		TEST(retries_have_an_end),
		TEST(one_birth_is_remembered_once),
		TEST(no_family_fills_the_table),
		TEST(many_are_scanned_in_turns),
		TEST(no_second_is_for_more_than_its_turn),
		TEST(who_runs_is_polled_every_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
