/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which step a task belongs to. Where the time is known at which a task was submitted, that decides; for
 * what came through the task queue, the time at which it was put in. Elsewhere a step has a window on the
 * device, from its earliest kernel (found through the connection to the call that launched it) to its last
 * one or the step's own end, whichever is later, and a task belongs to the window in which it starts. So do
 * tasks of graphs, which run when the graph is executed.
 */
#include "base/index.h"
#include "derive/derive.h"
#include "derive/queue.h"

#include <errno.h>
#include <stdbool.h>

#define FAR 256 /* collectives lie that far apart that each touches a page of its own */
#define OUTSIDE (NPS_NONE - 1) /* of a call made in no step */

struct step_window {
	uint64_t start, end; /* on the host */
	uint64_t first, last; /* of its kernels; first UINT64_MAX: none */
	uint32_t step;
};

struct step_walk {
	struct nps_model *m;
	struct nps_vec windows; /* struct step_window by start */
	struct nps_vec device; /* struct step_window by first */
	struct nps_queue queue;
	struct nps_index put; /* correlation -> enqueue */
	struct nps_index launched; /* connection -> window, or OUTSIDE */
	bool submits; /* times of submission are known */
};

/* COUNT windows by start, or by first; there are few. */
static int sort_windows(struct nps_vec *windows, bool by_first)
{
	size_t n = windows->len;
	struct nps_vec keys, sorted, swap;
	struct nps_key *key;
	int err;

	nps_vec__init(&keys, windows->dirfd, sizeof(struct nps_key));
	nps_vec__init(&sorted, windows->dirfd, sizeof(struct step_window));
	err = nps_vec__resize(&keys, 2 * n);
	err = err ? err : nps_vec__resize(&sorted, n);
	if (err || !n)
		goto out;
	key = keys.data;
	for (size_t i = 0; i < n; i++) {
		const struct step_window *w = &NPS_AT(windows, struct step_window, i);

		key[i] = (struct nps_key){ .key = by_first ? w->first : w->start, .row = i };
	}
	nps_sort_keys(key, key + n, n);
	for (size_t i = 0; i < n; i++)
		NPS_AT(&sorted, struct step_window, i) = NPS_AT(windows, struct step_window, key[i].row);
	swap = *windows;
	*windows = sorted;
	sorted = swap;
out:
	nps_vec__free(&sorted);
	nps_vec__free(&keys);
	return err;
}

static int step_windows_make(struct step_walk *s)
{
	const struct nps_step_table *step = &s->m->step;
	int err = nps_vec__resize(&s->windows, step->t.len);

	for (size_t i = 0; !err && i < step->t.len; i++)
		NPS_AT(&s->windows, struct step_window, i) = (struct step_window){
			.start = step->start[i], .end = step->end[i], .first = UINT64_MAX, .step = i
		};
	return err ? err : sort_windows(&s->windows, false);
}

/* The last window that begins at TIME or before, if it contains TIME. HINT: where the last call found one. */
static uint32_t window_find(const struct nps_vec *windows, bool device, uint64_t time, uint32_t *hint)
{
	const struct step_window *w = windows->data;
	size_t low = 0, high = windows->len;

#define BEGIN(i) (device ? w[i].first : w[i].start)
	if (*hint < high && BEGIN(*hint) <= time && (*hint + 1 == high || BEGIN(*hint + 1) > time)) {
		low = *hint + 1;
	} else {
		while (low < high) {
			size_t mid = low + (high - low) / 2;

			if (BEGIN(mid) <= time)
				low = mid + 1;
			else
				high = mid;
		}
	}
#undef BEGIN
	if (!low)
		return NPS_NONE;
	*hint = low - 1;
	return time < (device ? w[low - 1].last : w[low - 1].end) ? low - 1 : NPS_NONE;
}

static uint32_t step_at(const struct nps_vec *windows, bool device, uint64_t time, uint32_t *hint)
{
	uint32_t at = window_find(windows, device, time, hint);

	return at == NPS_NONE ? NPS_NONE : NPS_AT(windows, struct step_window, at).step;
}

/* Releases memory of the index from time to time, as a pace does of the tables. */
static void index_step(const struct step_walk *s, struct nps_pace *pace)
{
	nps_pace__step(pace);
	if (pace->steps & (NPS_TABLE_HOT - 1))
		return;
	nps_index__cool(&s->launched);
	nps_index__cool(&s->put);
}

static int steps_index_enqueues(struct step_walk *s)
{
	const struct nps_torch_table *torch = &s->m->torch;
	struct nps_pace pace = { s->m, 0 };
	uint64_t low = UINT64_MAX, high = 0;
	int err = 0;

	for (size_t i = 0; i < s->queue.dequeues; i++, index_step(s, &pace)) {
		if (torch->correlation[i] < 0)
			continue;
		low = NPS_MIN(low, (uint64_t)torch->correlation[i]);
		high = NPS_MAX(high, (uint64_t)torch->correlation[i]);
	}
	nps_index__init(&s->put, s->m->tmpfd, low, high, s->queue.dequeues);
	for (size_t i = 0; !err && i < s->queue.dequeues; i++, index_step(s, &pace))
		if (torch->correlation[i] >= 0)
			err = nps_index__put(&s->put, torch->correlation[i], i);
	return err;
}

/* When call ROW was requested: at its start, or when the task that its thread had dequeued was enqueued. */
static int call_requested_at(struct step_walk *s, size_t row, uint64_t *time)
{
	const struct nps_api_table *api = &s->m->api;
	uint32_t dequeue, enqueue;
	int err = nps_queue__at(&s->queue, api->gtid[row], api->start[row], &dequeue);

	*time = api->start[row];
	if (dequeue == NPS_NONE || s->m->steps_found) /* these begin with calls */
		return err;
	enqueue = nps_index__get(&s->put, s->m->torch.correlation[dequeue]);
	if (enqueue != NPS_NONE)
		*time = s->m->torch.start[enqueue];
	return err;
}

/* Which step each call was made in. */
static int index_calls(struct step_walk *s)
{
	const struct nps_api_table *api = &s->m->api;
	struct nps_pace pace = { s->m, 0 };
	uint64_t low = NPS_NO_ID, high = 0;
	uint32_t hint = 0;
	int err = 0;

	for (size_t i = 0; i < api->t.len; i++, index_step(s, &pace)) {
		if (api->connection[i] == NPS_NO_ID)
			continue;
		low = NPS_MIN(low, (uint64_t)api->connection[i]);
		high = NPS_MAX(high, (uint64_t)api->connection[i]);
	}
	nps_index__init(&s->launched, s->m->tmpfd, low, high, api->t.len);
	for (size_t i = 0; !err && i < api->t.len; i++, index_step(s, &pace)) {
		uint64_t time;
		uint32_t at;

		if (api->connection[i] == NPS_NO_ID)
			continue;
		err = call_requested_at(s, i, &time);
		if (err)
			break;
		at = window_find(&s->windows, false, time, &hint);
		err = nps_index__put(&s->launched, api->connection[i], at == NPS_NONE ? OUTSIDE : at);
	}
	return err;
}

static void window_widen(struct step_walk *s, uint32_t at, uint64_t start, uint64_t end)
{
	struct step_window *w;

	if (at == NPS_NONE || at == OUTSIDE)
		return;
	w = &NPS_AT(&s->windows, struct step_window, at);
	w->first = NPS_MIN(w->first, start);
	w->last = NPS_MAX(w->last, end);
}

/* The windows of the kernels; tasks of which it is known when they were submitted get their step. */
static void windows_add_tasks(struct step_walk *s)
{
	const struct nps_task_table *task = &s->m->task;
	struct nps_pace pace = { s->m, 0 };
	uint32_t hint = 0;

	for (size_t i = 0; i < task->t.len; i++, index_step(s, &pace)) {
		uint32_t at = NPS_NONE;

		if (task->submit[i] ? s->queue.end : task->model[i] == NPS_NO_ID)
			at = nps_index__get(&s->launched, task->connection[i]);
		if (task->submit[i] && at == NPS_NONE)
			at = window_find(&s->windows, false, task->submit[i], &hint);
		task->step[i] = at == NPS_NONE || at == OUTSIDE || !task->submit[i]
					? NPS_NONE
					: NPS_AT(&s->windows, struct step_window, at).step;
		if (task->class[i] != NPS_CLASS_COMPUTE)
			continue;
		s->submits |= task->submit[i] != 0;
		if (task->source[i] != NPS_TIME_HOST_BOUNDS)
			window_widen(s, at, task->start[i], task->end[i]);
	}
}

static void windows_add_comms(struct step_walk *s)
{
	const struct nps_comm_op_table *op = &s->m->comm_op;

	for (size_t i = 0; i < op->t.len; i++) {
		if (!(i % FAR))
			nps_index__cool(&s->launched);
		if (op->model[i] == NPS_NO_ID && (!op->tasks[i] || op->measured[i]))
			window_widen(s, nps_index__get(&s->launched, op->connection[i]), op->start[i],
				     op->end[i]);
	}
}

/*
 * Windows of steps on the device. A step without known kernels, since it has none or the calls that
 * launched them were not recorded, has its own time, as far as no kernel of an earlier step ran in it.
 */
static int device_windows(struct step_walk *s)
{
	uint64_t busy = 0; /* end of the kernels of the steps before */

	for (size_t i = 0; i < s->windows.len; i++) {
		const struct step_window *w = &NPS_AT(&s->windows, struct step_window, i);
		uint64_t first = w->first == UINT64_MAX ? NPS_MAX(w->start, busy) : w->first;
		struct step_window *to;

		busy = NPS_MAX(busy, w->last);
		if (w->first == UINT64_MAX && first >= w->end)
			continue;
		to = nps_vec__push(&s->device);
		if (!to)
			return -ENOMEM;
		*to = *w;
		to->first = first;
		to->last = NPS_MAX(w->last, w->end);
	}
	return sort_windows(&s->device, true);
}

static void tasks_set_steps(struct step_walk *s)
{
	const struct nps_task_table *task = &s->m->task;
	const struct nps_comm_op_table *op = &s->m->comm_op;
	struct nps_pace pace = { s->m, 0 };
	uint32_t hint = 0;

	for (size_t i = 0; i < task->t.len; i++, index_step(s, &pace))
		if (!task->submit[i])
			task->step[i] = step_at(&s->device, true, task->start[i], &hint);
	for (size_t i = 0; i < op->t.len; i++, index_step(s, &pace)) {
		uint32_t at;

		if (!(i % FAR))
			nps_index__cool(&s->launched);
		at = s->submits && op->model[i] == NPS_NO_ID ? nps_index__get(&s->launched, op->connection[i])
							     : NPS_NONE;
		if (at == OUTSIDE)
			op->step[i] = NPS_NONE;
		else if (at == NPS_NONE)
			op->step[i] = step_at(&s->device, true, op->start[i], &hint);
		else
			op->step[i] = NPS_AT(&s->windows, struct step_window, at).step;
	}
}

static void no_steps(struct nps_model *m)
{
	struct nps_pace pace = { m, 0 };

	for (size_t i = 0; i < m->task.t.len; i++, nps_pace__step(&pace))
		m->task.step[i] = NPS_NONE;
	for (size_t i = 0; i < m->comm_op.t.len; i++, nps_pace__step(&pace))
		m->comm_op.step[i] = NPS_NONE;
}

int nps_derive__steps(struct nps_model *m)
{
	struct step_walk s = { .m = m };
	int err;

	if (!m->step.t.len) {
		no_steps(m);
		return 0;
	}
	nps_vec__init(&s.windows, m->tmpfd, sizeof(struct step_window));
	nps_vec__init(&s.device, m->tmpfd, sizeof(struct step_window));
	nps_index__init(&s.put, m->tmpfd, 0, 0, 0);
	nps_index__init(&s.launched, m->tmpfd, 0, 0, 0);
	nps_queue__init(&s.queue, m);
	err = step_windows_make(&s);
	err = err ? err : steps_index_enqueues(&s);
	err = err ? err : index_calls(&s);
	if (err)
		goto out;
	windows_add_tasks(&s);
	windows_add_comms(&s);
	err = device_windows(&s);
	if (err)
		goto out;
	tasks_set_steps(&s);
out:
	nps_vec__free(&s.windows);
	nps_vec__free(&s.device);
	nps_queue__free(&s.queue);
	nps_index__free(&s.put);
	nps_index__free(&s.launched);
	return err;
}
