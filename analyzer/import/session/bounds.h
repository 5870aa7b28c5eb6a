/* SPDX-License-Identifier: BSD-2-Clause */
/* Host bounds: between which moments a task without measured times must have run. */
#ifndef NPS_SESSION_BOUNDS_H
#define NPS_SESSION_BOUNDS_H

#include "import/session/clock_align.h"

/*
 * Of a moment between the start and the end of a task, CLOCK_MONOTONIC ns: the task had not ended before
 * `low`, and it had begun by `high`. 0 and UINT64_MAX: nothing is known.
 */
struct nps_pin {
	uint64_t low, high;
};

/*
 * Host bounds (behaviours 16.2, D3) of the submissions SUBS[0..n) of one stream, in order of time, into
 * BOUNDS. TASKS[i] is the measured task of SUBS[i], whose times are off by ERROR ns at most, or NULL;
 * PINS[i] as above, PINS NULL: there are none. SYNCS are those that cover the stream, by cover.
 */
void nps_bounds__stream(const struct nps_sub *const *subs, const struct nps_task *const *tasks,
			uint64_t error, const struct nps_pin *pins, size_t n, const struct nps_sync *syncs,
			size_t nsyncs, struct nps_bounds *bounds);

/*
 * The same of all submissions of MODEL, with the bounds across streams that its timings (model->timings)
 * prove. TASKS[i] and BOUNDS[i] are of the submission STREAMS->keys[i].row. model->syncs are sorted by
 * cover. 0 or a negative errno.
 */
int nps_bounds__all(struct nps_session *model, const struct nps_streams *streams,
		    const struct nps_task *const *tasks, struct nps_bounds *bounds);

#endif
