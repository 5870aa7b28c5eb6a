/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequences of launches of imagined jobs, of which it is known where each iteration begins. */
#ifndef NPS_PERIOD_JOBS_H
#define NPS_PERIOD_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERIOD_SYMBOLS 4096

enum period_job_kind {
	PERIOD_TRAINING,
	PERIOD_ACCUMULATION,
	PERIOD_INFERENCE, /* a prefill and decodes, 5 to 60 for each request */
	PERIOD_FIXED_INFERENCE, /* 24 decodes for each request */
	PERIOD_PIPELINE, /* micro-batches forward and backward in turns, sends and receives */
	PERIOD_VARIANTS, /* one of three shapes in each iteration */
	PERIOD_PLAIN, /* layers forward, then as many backward; nothing else */
};

struct period_job {
	enum period_job_kind kind;
	unsigned int iterations, layers, micro; /* micro: batches of an iteration */
	unsigned int irregular; /* per mille of the iterations */
	unsigned int logged; /* each so many iterations some more launches; 0 never */
	unsigned int warmup; /* iterations at the beginning that differ */
	bool tail; /* ends within an iteration */
	bool late; /* begins within an iteration */
	bool steady; /* no pause between iterations */
	bool unmarked; /* it is not known which launches update parameters */
	uint32_t seed;
};

struct period_sequence {
	uint32_t *symbols;
	uint64_t *times;
	uint8_t updates[PERIOD_SYMBOLS];
	size_t len, room;
	/* By launch: an iteration begins here; whether it does here is no question (warm-up, evaluation). */
	uint8_t *begins, *open;
	uint8_t *kinds; /* of the iteration that begins here: 1 or 2 */
	uint64_t time;
	uint32_t random;
};

void period_job_make(const struct period_job *job, struct period_sequence *sequence);
void period_launch(struct period_sequence *sequence, uint32_t symbol);
uint32_t period_random(struct period_sequence *sequence, uint32_t below);
void period_sequence_free(struct period_sequence *sequence);

#endif
