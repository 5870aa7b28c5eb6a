/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Iterations found in sequences whose truth is known. `test_periods` prints the table of docs/steps.md with
 * PERIODS_TABLE=1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/util.h"
#include "derive/periods.h"
#include "period_jobs.h"

#define SEEDS 5

struct score {
	size_t found, right, begun, hit, wrong_kind;
	double confidence;
	size_t empty; /* runs without steps */
};

static void detect(const struct period_sequence *s, bool times, struct nps_periods *found)
{
	struct nps_period_input input = {
		.symbols = s->symbols,
		.times = times ? s->times : NULL,
		.len = s->len,
		.updates = s->updates,
		.nsymbols = PERIOD_SYMBOLS,
		.dirfd = AT_FDCWD,
	};

	assert_int_equal(nps_periods__find(&input, found), 0);
	assert_true(found->steps.len ? !found->reason : found->reason != NULL);
	assert_true(found->confidence >= 0 && found->confidence <= 1);
	for (size_t i = 0; i < found->steps.len; i++) {
		const struct nps_period_step *step = &NPS_AT(&found->steps, struct nps_period_step, i);

		assert_true(step->first < step->end && step->end <= s->len);
		assert_true(step->kind <= found->kinds);
		assert_true(!i || step[-1].end <= step->first);
	}
}

static void score_add(struct score *score, const struct period_sequence *s, const struct nps_periods *found)
{
	uint32_t kinds[3] = { 0 };

	score->empty += !found->steps.len;
	score->confidence += found->confidence;
	for (size_t i = 0; i < s->len; i++)
		score->begun += s->begins[i];
	for (size_t i = 0; i < found->steps.len; i++) {
		const struct nps_period_step *step = &NPS_AT(&found->steps, struct nps_period_step, i);
		uint8_t kind = s->kinds[step->first];

		score->right += s->begins[step->first];
		score->hit += s->begins[step->first];
		score->found += !s->open[step->first];
		if (!kind || step->irregular || !step->kind)
			continue;
		if (!kinds[kind])
			kinds[kind] = step->kind;
		score->wrong_kind += kinds[kind] != step->kind;
	}
	score->wrong_kind += kinds[1] && kinds[1] == kinds[2];
}

struct job_row {
	const char *name;
	struct period_job job;
};

#define JOB(name_, how, count, depth, ...)                                                                   \
	{                                                                                                    \
		.name = name_, .job = {.kind = how, .iterations = count, .layers = depth, __VA_ARGS__ }      \
	}

static const struct job_row rows[] = {
	JOB("training", PERIOD_TRAINING, 100, 12),
	JOB("training, warm-up and tail", PERIOD_TRAINING, 100, 12, .warmup = 5, .tail = true),
	JOB("training, capture begins within a step", PERIOD_TRAINING, 60, 24, .late = true, .tail = true),
	JOB("training without pauses", PERIOD_TRAINING, 100, 12, .steady = true),
	JOB("training, few steps", PERIOD_TRAINING, 5, 12),
	JOB("training, a log every 10 steps", PERIOD_TRAINING, 100, 12, .logged = 10),
	JOB("training, a log every 10 steps, no optimizer known", PERIOD_TRAINING, 100, 12, .logged = 10,
	    .unmarked = true),
	JOB("forward and backward alone", PERIOD_PLAIN, 100, 12, .unmarked = true),
	JOB("4 accumulated micro-batches", PERIOD_ACCUMULATION, 50, 12, .micro = 4, .tail = true),
	JOB("8 accumulated micro-batches", PERIOD_ACCUMULATION, 50, 12, .micro = 8, .warmup = 2),
	JOB("8 accumulated, no optimizer known", PERIOD_ACCUMULATION, 50, 12, .micro = 8, .unmarked = true),
	JOB("pipeline of 8 micro-batches", PERIOD_PIPELINE, 50, 6, .micro = 8, .tail = true),
	JOB("three shapes at random", PERIOD_VARIANTS, 100, 12, .tail = true),
	JOB("three shapes at random, without pauses", PERIOD_VARIANTS, 100, 12, .tail = true, .steady = true),
	JOB("inference, 5 to 60 decodes", PERIOD_INFERENCE, 20, 16, .unmarked = true),
	JOB("inference, 24 decodes", PERIOD_FIXED_INFERENCE, 20, 16, .unmarked = true),
};

static void row_score(const struct job_row *row, unsigned int irregular, bool times, struct score *score)
{
	*score = (struct score){ 0 };
	for (uint32_t seed = 1; seed <= SEEDS; seed++) {
		struct period_job job = row->job;
		struct period_sequence s;
		struct nps_periods found;

		job.seed = 7919 * seed;
		job.irregular = irregular;
		period_job_make(&job, &s);
		detect(&s, times, &found);
		score_add(score, &s, &found);
		nps_periods__free(&found);
		period_sequence_free(&s);
	}
	score->confidence /= SEEDS;
}

static void rows_check(unsigned int irregular, double least)
{
	int bad = 0;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(rows); i++) {
		struct score score;
		double precision, recall;

		row_score(&rows[i], irregular, true, &score);
		precision = score.found ? (double)score.right / score.found : 0;
		recall = (double)score.hit / score.begun;
		if (getenv("PERIODS_TABLE"))
			printf("| %s%s | %.3f | %.3f | %.2f |\n", rows[i].name,
			       irregular ? ", 5 % irregular" : "", precision, recall, score.confidence);
		if (rows[i].job.kind != PERIOD_INFERENCE && rows[i].job.kind != PERIOD_FIXED_INFERENCE)
			score.wrong_kind = 0; /* their iterations may be of several kinds */
		if (precision >= least && recall >= least && !score.wrong_kind)
			continue;
		print_error("%s: precision %.3f, recall %.3f, kinds wrong %zu, none in %zu of %d\n",
			    rows[i].name, precision, recall, score.wrong_kind, score.empty, SEEDS);
		bad++;
	}
	assert_int_equal(bad, 0);
}

static void regular_jobs(void **state)
{
	(void)state;
	rows_check(0, 0.98);
}

static void irregular_jobs(void **state)
{
	(void)state;
	rows_check(50, 0.95);
}

/* With few iterations what repeats are parts of them: there are no steps, or there are the right ones. */
static void short_captures(void **state)
{
	size_t wrong = 0, none = 0, all = 0;

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(rows); i++) {
		for (unsigned int n = 1; n < 8; n++) {
			struct job_row row = rows[i];
			struct score score;

			if (row.job.kind == PERIOD_INFERENCE || row.job.kind == PERIOD_FIXED_INFERENCE)
				continue; /* decodes are many */
			if (row.job.kind == PERIOD_ACCUMULATION && row.job.unmarked && n < 4)
				continue; /* micro-batches after pauses look like iterations */
			row.job.iterations = n;
			for (unsigned int late = 0; late < 2; late++) {
				row.job.late = late;
				row.job.tail = !late;
				row_score(&row, 50, true, &score);
				all += SEEDS;
				none += score.empty;
				if (score.right >= 0.9 * score.found)
					continue;
				wrong++;
				print_error("%s, %u iterations: %zu of %zu are right\n", row.name, n,
					    score.right, score.found);
			}
		}
	}
	if (getenv("PERIODS_TABLE"))
		printf("short captures: %zu, of them %zu without steps\n", all, none);
	assert_int_equal(wrong, 0);
}

/* --- sequences without iterations ---------------------------------------------------------------------- */

static void none_in(struct period_sequence *s, const char *what)
{
	struct nps_periods found;

	detect(s, true, &found);
	if (found.steps.len)
		fail_msg("%s: %zu steps, confidence %.2f", what, found.steps.len, found.confidence);
	nps_periods__free(&found);
	period_sequence_free(s);
}

static void random_sequences_have_none(void **state)
{
	static const uint32_t alphabets[] = { 2, 3, 8, 50, 1000 };

	(void)state;
	for (size_t a = 0; a < NPS_ARRAY_SIZE(alphabets); a++) {
		for (uint32_t seed = 1; seed < 4; seed++) {
			struct period_sequence s = { .random = seed * 104729 };
			char what[64];

			snprintf(what, sizeof(what), "random of %u", alphabets[a]);
			for (int i = 0; i < 20000; i++)
				period_launch(&s, period_random(&s, alphabets[a]));
			none_in(&s, what);
		}
	}
}

static uint32_t thue_morse(uint32_t i)
{
	return __builtin_popcount(i) & 1;
}

/* The Fibonacci word: 0 -> 01, 1 -> 0. */
static void fibonacci_fill(struct period_sequence *s, size_t len)
{
	period_launch(s, 0);
	for (size_t read = 0; s->len < len; read++) {
		if (read)
			period_launch(s, 0);
		if (!s->symbols[read])
			period_launch(s, 1);
	}
}

static void sequences_without_period_have_none(void **state)
{
	struct period_sequence fibonacci = { .random = 1 }, morse = { .random = 1 }, all = { .random = 1 };
	struct period_sequence one = { .random = 1 }, empty = { .random = 1 }, few = { .random = 1 };

	(void)state;
	fibonacci_fill(&fibonacci, 50000);
	none_in(&fibonacci, "Fibonacci word");
	for (uint32_t i = 0; i < 1 << 16; i++)
		period_launch(&morse, thue_morse(i));
	none_in(&morse, "Thue-Morse");
	for (uint32_t i = 0; i < PERIOD_SYMBOLS; i++)
		period_launch(&all, i);
	none_in(&all, "all different");
	for (uint32_t i = 0; i < 50000; i++)
		period_launch(&one, 7);
	none_in(&one, "one kernel");
	none_in(&empty, "nothing");
	for (uint32_t i = 0; i < 60; i++)
		period_launch(&few, i % 20);
	none_in(&few, "three repetitions");
}

/* --- cost ---------------------------------------------------------------------------------------------- */

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void timed(struct period_sequence *s, const char *what, bool steps)
{
	struct nps_periods found;
	double begin = cpu_seconds(), spent;

	detect(s, true, &found);
	spent = cpu_seconds() - begin;
	if (getenv("PERIODS_TABLE"))
		printf("%s: %zu launches, %.2f s, %zu steps\n", what, s->len, spent, found.steps.len);
	assert_int_equal(found.steps.len > 0, steps);
	assert_true(spent < 10); /* near linear; sanitizers and loaded machines are slow */
	nps_periods__free(&found);
	period_sequence_free(s);
}

static void a_million_launches(void **state)
{
	struct period_sequence job, s = { .random = 1 };

	(void)state;
	period_job_make(&(struct period_job){ .kind = PERIOD_TRAINING,
					      .iterations = 1600,
					      .layers = 24,
					      .irregular = 50,
					      .seed = 5 },
			&job);
	timed(&job, "training", true);
	for (int i = 0; i < 1000000; i++)
		period_launch(&s, period_random(&s, 2));
	timed(&s, "random of 2", false);
	s = (struct period_sequence){ .random = 1 };
	for (int i = 0; i < 1000000; i++)
		period_launch(&s, period_random(&s, 4000));
	timed(&s, "random of 4000", false);
	s = (struct period_sequence){ .random = 1 };
	for (int i = 0; i < 1000000; i++)
		period_launch(&s, i % 4);
	timed(&s, "four in turns", true);
	s = (struct period_sequence){ .random = 1 };
	fibonacci_fill(&s, 1000000);
	timed(&s, "Fibonacci word", false);
	s = (struct period_sequence){ .random = 1 };
	for (int i = 0; i < 1000000; i++) /* iterations of 100,000 launches */
		period_launch(&s, i % 100000 % 4093);
	timed(&s, "long iterations", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regular_jobs),
		cmocka_unit_test(irregular_jobs),
		cmocka_unit_test(short_captures),
		cmocka_unit_test(random_sequences_have_none),
		cmocka_unit_test(sequences_without_period_have_none),
		cmocka_unit_test(a_million_launches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
