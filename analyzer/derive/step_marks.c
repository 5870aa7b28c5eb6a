/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operators ProfilerStep#N, of which the vendor's viewers read the steps: a session has steps, but no
 * profiler of the framework that would have marked them.
 */
#include "derive/derive.h"

#include <errno.h>
#include <stdio.h>

#include "base/map.h"

#define STEP_LANE (1U << 22) /* PID_MAX_LIMIT: no thread of Linux has this number */

/* The last step that begins before TIME, NPS_NONE if none does. Steps are in order and do not overlap. */
static size_t step_before(const struct nps_step_table *steps, uint64_t time)
{
	size_t low = 0, high = steps->t.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (steps->start[mid] < time)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : NPS_NONE;
}

/* Whether only one end of the operator is within a step. */
static bool op_crosses_step(const struct nps_step_table *steps, uint64_t start, uint64_t end)
{
	size_t first = step_before(steps, start + 1), last = step_before(steps, end);

	if (first != NPS_NONE && start < steps->end[first] && end > steps->end[first] &&
	    start > steps->start[first])
		return true;
	return last != NPS_NONE && end < steps->end[last] && start < steps->start[last];
}

/* Whether an operator of the thread runs while a step begins or ends, so that slices would not be nested. */
static bool thread_crosses_steps(const struct nps_model *m, uint64_t gtid)
{
	const struct nps_torch_table *t = &m->torch;
	struct nps_pace pace = { .model = m };

	for (size_t i = 0; i < t->t.len; i++, nps_pace__step(&pace))
		if (t->gtid[i] == gtid && op_crosses_step(&m->step, t->start[i], t->end[i]))
			return true;
	return false;
}

static int step_mark_add(struct nps_model *m, size_t step, uint64_t gtid)
{
	struct nps_torch_row row = { .start = m->step.start[step],
				     .end = m->step.end[step],
				     .gtid = gtid,
				     .type = NPS_API_TORCH_OP,
				     .ending = NPS_ENDING_SEEN,
				     .connection = NPS_NULL,
				     .sequence = NPS_NULL,
				     .forward_tid = NPS_NULL,
				     .callchain = NPS_NULL,
				     .correlation = NPS_NULL,
				     .python_id = NPS_NULL,
				     .python_parent = NPS_NULL,
				     .python_module = NPS_NULL,
				     .input_types = NPS_NONE,
				     .input_shapes = NPS_NONE,
				     .modules = NPS_NONE,
				     .extra = NPS_NONE };
	char name[48];
	int err = 0;

	snprintf(name, sizeof(name), NPS_STEP_MARK "%lld", (long long)m->step.id[step]);
	row.name = nps_model__intern(m, name, &err);
	return err ? err : nps_torch_table__add(&m->torch, &row);
}

/* Has each step a number of its own? 1, 0, or -errno. */
static int step_numbers_are_unique(const struct nps_step_table *steps)
{
	struct nps_map seen = { 0 };
	int unique = 1;

	for (size_t i = 0; unique > 0 && i < steps->t.len; i++) {
		uint64_t number = (uint64_t)steps->id[i];

		if (nps_map__get(&seen, number) != NPS_NONE)
			unique = 0;
		else
			unique = nps_map__put(&seen, number, 1) ? -ENOMEM : 1;
	}
	nps_map__free(&seen);
	return unique;
}

int nps_derive__step_marks(struct nps_model *m)
{
	uint64_t gtid = (uint64_t)m->pid << 32;
	int err = 0, unique;

	if (!m->marks_steps)
		return 0;
	/* Viewers know a step by its name: two of one name are worse than none. */
	unique = step_numbers_are_unique(&m->step);
	if (unique <= 0)
		return unique;
	gtid |= thread_crosses_steps(m, gtid | m->pid) ? STEP_LANE : m->pid;
	for (; !err && m->step_marks < m->step.t.len; m->step_marks++)
		err = step_mark_add(m, m->step_marks, gtid);
	return err || !m->step_marks ? err : nps_table__order(&m->torch.t, NPS_ORDINAL(torch, start));
}
