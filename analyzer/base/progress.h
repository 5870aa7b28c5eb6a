/* SPDX-License-Identifier: BSD-2-Clause */
/* One line on stderr for work that takes over a second: stage, amount, rate, time left. */
#ifndef NPS_PROGRESS_H
#define NPS_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum nps_progress_mode {
	NPS_PROGRESS_AUTO, /* if stderr is a terminal */
	NPS_PROGRESS_ALWAYS, /* a line each, for logs */
	NPS_PROGRESS_NEVER
};

struct nps_progress {
	bool on, line; /* a terminal's line is overwritten, another gets lines */
	const char *stage, *unit;
	bool bytes; /* the amount is bytes, else rows of UNIT */
	bool by_steps; /* its progress is what its readers step over, see nps_progress__steps() */
	_Atomic uint64_t done;
	uint64_t total; /* 0: unknown */
	struct timespec begin, shown;
	_Atomic uint64_t next; /* amount at which the clock is read again */
	atomic_flag busy; /* a thread is reading it */
	bool visible; /* something stands on the terminal's line */
};

void nps_progress__init(struct nps_progress *progress, enum nps_progress_mode mode);

/* Begins STAGE of TOTAL bytes (UNIT NULL) or rows called UNIT; 0: unknown. PROGRESS may be NULL. */
void nps_progress__stage(struct nps_progress *progress, const char *stage, uint64_t total, const char *unit);

/* The same for a stage in which several threads read the model: TOTAL counts the rows of all of them. */
void nps_progress__stage_of_readers(struct nps_progress *progress, const char *stage, uint64_t total,
				    const char *unit);

/* Shows the progress if the last line is old enough; any thread. */
void nps_progress__show(struct nps_progress *progress);

/* AMOUNT more is done. Cheap enough for every row. */
static inline void nps_progress__add(struct nps_progress *progress, uint64_t amount)
{
	if (!progress || !progress->on)
		return;
	/* No read-modify-write: one thread alone adds to a stage that is not of readers. */
	atomic_store_explicit(&progress->done,
			      atomic_load_explicit(&progress->done, memory_order_relaxed) + amount,
			      memory_order_relaxed);
	if (atomic_load_explicit(&progress->done, memory_order_relaxed) >=
	    atomic_load_explicit(&progress->next, memory_order_relaxed))
		nps_progress__show(progress);
}

/* A reader of the model stepped over AMOUNT rows; any thread. */
void nps_progress__steps(struct nps_progress *progress, uint64_t amount);

/* Erases the line. */
void nps_progress__end(struct nps_progress *progress);

#endif
