/* SPDX-License-Identifier: BSD-2-Clause */
#include "period_jobs.h"

#include <stdlib.h>
#include <string.h>

/* Symbols: operators of a layer, of what is around layers, of optimizers. */
enum {
	ATTENTION = 100,
	BACKWARD = 200,
	EMBEDDING = 300,
	HEAD = 310,
	LOSS = 320,
	UPDATE = 400,
	REDUCE = 500,
	SEND = 510,
	RECEIVE = 511,
	LOG = 600,
	EVALUATION = 700,
	INIT = 800,
	DECODE = 900,
	SAMPLE = 950,
	ADD = 960,
};

#define LAYER 11 /* launches of a layer */

uint32_t period_random(struct period_sequence *s, uint32_t below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 17;
	s->random ^= s->random << 5;
	return s->random % below;
}

void period_launch(struct period_sequence *s, uint32_t symbol)
{
	if (s->len == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->symbols = realloc(s->symbols, s->room * sizeof(*s->symbols));
		s->times = realloc(s->times, s->room * sizeof(*s->times));
		s->begins = realloc(s->begins, s->room);
		s->open = realloc(s->open, s->room);
		s->kinds = realloc(s->kinds, s->room);
	}
	s->time += 5000 + period_random(s, 4000);
	s->symbols[s->len] = symbol;
	s->times[s->len] = s->time;
	s->begins[s->len] = s->open[s->len] = s->kinds[s->len] = 0;
	s->len++;
}

static void launches(struct period_sequence *s, uint32_t first, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		period_launch(s, first + i);
}

/* A forward pass. Some operators are the same at several points of a layer, as those of a real one are. */
static void forward(struct period_sequence *s, unsigned int layers, uint32_t variant)
{
	period_launch(s, EMBEDDING);
	for (unsigned int l = 0; l < layers; l++) {
		launches(s, ATTENTION + variant, 4);
		period_launch(s, ATTENTION + variant + 1);
		launches(s, ATTENTION + variant + 4, LAYER - 5);
	}
	launches(s, HEAD, 3);
	launches(s, LOSS, 2);
}

static void backward(struct period_sequence *s, unsigned int layers, uint32_t variant, bool adds)
{
	launches(s, LOSS + 4, 3);
	for (unsigned int l = 0; l < layers; l++) {
		launches(s, BACKWARD + variant, LAYER);
		period_launch(s, ATTENTION + variant + 2);
		if (adds)
			launches(s, ADD, 2);
	}
}

static void reduce(struct period_sequence *s, unsigned int layers)
{
	for (unsigned int l = 0; l < layers / 2 + 1; l++)
		period_launch(s, REDUCE + l % 2);
}

static void update(struct period_sequence *s, unsigned int layers)
{
	launches(s, UPDATE, 2);
	for (unsigned int l = 0; l < layers; l++)
		launches(s, UPDATE + 2, 2);
}

static void decode(struct period_sequence *s, unsigned int layers)
{
	period_launch(s, EMBEDDING);
	for (unsigned int l = 0; l < layers; l++) {
		launches(s, ATTENTION, 3);
		launches(s, DECODE, 2);
		launches(s, ATTENTION + 5, LAYER - 5);
	}
	launches(s, HEAD, 2);
	launches(s, SAMPLE, 2);
}

static void prefill(struct period_sequence *s, unsigned int layers)
{
	period_launch(s, EMBEDDING);
	for (unsigned int l = 0; l < layers; l++)
		launches(s, ATTENTION, LAYER);
	launches(s, HEAD, 2);
	launches(s, SAMPLE, 2);
}

static void pipeline(struct period_sequence *s, const struct period_job *job, unsigned int micro)
{
	unsigned int ahead = micro < 3 ? micro : 3;

	for (unsigned int m = 0; m < micro + ahead; m++) {
		if (m < micro) {
			period_launch(s, RECEIVE);
			forward(s, job->layers, 0);
			period_launch(s, SEND);
		}
		if (m >= ahead) {
			period_launch(s, RECEIVE);
			backward(s, job->layers, 0, false);
			period_launch(s, SEND);
		}
	}
	reduce(s, job->layers);
	update(s, job->layers);
}

static void begin(struct period_sequence *s, const struct period_job *job, size_t *at)
{
	if (!job->steady)
		s->time += 80000 + period_random(s, 200000);
	*at = s->len;
}

static void begun(struct period_sequence *s, size_t at, uint8_t kind)
{
	s->begins[at] = 1;
	s->kinds[at] = kind;
}

/* One training iteration; SKIP: without that micro-batch or, if there is one, without the update. */
static void train(struct period_sequence *s, const struct period_job *job, bool skip)
{
	unsigned int micro = job->micro ? job->micro : 1;
	uint32_t variant = job->kind == PERIOD_VARIANTS ? 12 * period_random(s, 3) : 0;
	size_t at;

	begin(s, job, &at);
	if (skip && micro > 1)
		micro--;
	if (job->kind == PERIOD_PLAIN) {
		for (unsigned int l = 0; l < job->layers; l++)
			launches(s, ATTENTION, LAYER);
		for (unsigned int l = 0; l < job->layers; l++)
			launches(s, BACKWARD, LAYER);
	} else if (job->kind == PERIOD_PIPELINE) {
		pipeline(s, job, micro);
	} else {
		for (unsigned int m = 0; m < micro; m++) {
			if (m && !job->steady)
				s->time += 40000;
			forward(s, job->layers, variant);
			backward(s, job->layers, variant, m > 0);
		}
		reduce(s, job->layers);
		if (!skip || job->micro > 1)
			update(s, job->layers);
	}
	begun(s, at, 1);
}

static void evaluate(struct period_sequence *s, const struct period_job *job)
{
	size_t from = s->len;
	unsigned int batches = 2 + period_random(s, 4);

	for (unsigned int i = 0; i < batches; i++) {
		forward(s, job->layers, 0);
		launches(s, EVALUATION, 3);
	}
	memset(s->open + from, 1, s->len - from);
}

static void iterate(struct period_sequence *s, const struct period_job *job, unsigned int i)
{
	bool inference = job->kind == PERIOD_INFERENCE || job->kind == PERIOD_FIXED_INFERENCE;
	unsigned int what = period_random(s, 1000) < job->irregular ? 1 + period_random(s, 4) : 0;
	unsigned int decodes = job->kind == PERIOD_INFERENCE ? 5 + period_random(s, 56) : 24;
	size_t at;

	if (what == 1 && !inference)
		evaluate(s, job);
	if (what == 4)
		s->time += 5000000; /* a slow one */
	if (!inference) {
		train(s, job, what == 3);
	} else {
		begin(s, job, &at);
		prefill(s, job->layers);
		begun(s, at, 1);
		for (unsigned int d = 0; d < decodes; d++) {
			begin(s, job, &at);
			decode(s, job->layers);
			if (what == 3 && d == decodes / 2)
				launches(s, LOG + 4, 2); /* another sampler */
			begun(s, at, 2);
		}
	}
	if (what == 2 || (job->logged && i % job->logged == job->logged - 1))
		launches(s, LOG, 1 + period_random(s, 2));
}

static void cut_front(struct period_sequence *s, size_t n)
{
	s->len -= n;
	memmove(s->symbols, s->symbols + n, s->len * sizeof(*s->symbols));
	memmove(s->times, s->times + n, s->len * sizeof(*s->times));
	memmove(s->begins, s->begins + n, s->len);
	memmove(s->open, s->open + n, s->len);
	memmove(s->kinds, s->kinds + n, s->len);
}

void period_job_make(const struct period_job *job, struct period_sequence *s)
{
	struct period_job iteration = *job;
	size_t from, last;

	*s = (struct period_sequence){ .random = job->seed ? job->seed : 1 };
	for (unsigned int i = UPDATE; i < UPDATE + 10 && !job->unmarked; i++)
		s->updates[i] = 1;
	if (job->warmup) {
		launches(s, INIT, 30);
		for (unsigned int i = 0; i < job->warmup; i++) {
			launches(s, INIT + 40, 5 + i);
			train(s, job, false);
			launches(s, INIT + 50, 3);
		}
		memset(s->begins, 0, s->len);
		memset(s->open, 1, s->len);
	}
	for (unsigned int i = 0; i < job->iterations; i++)
		iterate(s, job, i);
	from = s->len;
	if (job->tail) {
		iteration.irregular = 0;
		iterate(s, &iteration, 0);
		for (last = s->len - 1; !s->begins[last]; last--)
			;
		s->begins[last] = 0;
		s->open[last] = 1;
		s->len = last + (s->len - last) * 2 / 3;
		(void)from;
	}
	if (job->late)
		cut_front(s, 17);
}

void period_sequence_free(struct period_sequence *s)
{
	free(s->symbols);
	free(s->times);
	free(s->begins);
	free(s->open);
	free(s->kinds);
}
