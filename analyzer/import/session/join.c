/* SPDX-License-Identifier: BSD-2-Clause */
/* Submissions meet the device's log. */
#include "import/session/join.h"

#include "import/session/bounds.h"
#include "import/session/completions.h"
#include "import/session/import.h"
#include "import/session/log_losses.h"
#include "import/session/clock_align.h"
#include "import/session/steps.h"
#include "import/session/syncs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SLACK 1000000 /* ns by which a start may seem to precede its submission, however good the clock */
/*
 * Ids of a stream are used again after 65536 submissions. WAITING_MOST of them may wait for their tasks (in
 * queues that are filled before they run; others hold some thousands), and tasks may be out of order with
 * them by REACH, as threads submit at the same time.
 */
#define WAITING_MOST 49152
#define REACH 8192

struct session_join {
	struct nps_session *model;
	struct nps_vec logs; /* struct nps_log_task */
	struct nps_vec counts; /* struct nps_counts of each */
	struct nps_vec match; /* uint32_t: submission of log task i */
	struct nps_vec sub_keys, log_keys; /* struct nps_key by (stream, time) */
	struct nps_map groups; /* process, device, stream -> dense number */
	uint32_t ngroups;
	size_t knot; /* of the clock of the log that is being matched */
	/* By task id: its latest submission, an index of sub_keys; valid if the stamp is the group's. */
	uint32_t last[65536], stamp[65536];
};

static uint64_t join_stream_key(uint32_t proc, unsigned int device, unsigned int stream)
{
	return (uint64_t)proc << 32 | device << 16 | stream;
}

/* --- matching --- */

static int join_group(struct session_join *j, uint32_t proc, unsigned int device, unsigned int stream,
		      uint32_t *group)
{
	uint64_t key = join_stream_key(proc, device, stream);

	*group = nps_map__get(&j->groups, key);
	if (*group != NPS_NONE)
		return 0;
	*group = j->ngroups++;
	return nps_map__put(&j->groups, key, *group);
}

static int join_sort_subs(struct session_join *j)
{
	const struct nps_sub *subs = j->model->subs.data;
	size_t n = j->model->subs.len;
	int err = nps_vec__resize(&j->sub_keys, 2 * n);
	struct nps_key *keys = j->sub_keys.data;

	for (size_t i = 0; !err && i < n; i++) {
		keys[i] = (struct nps_key){ .key = subs[i].begin, .row = i };
		err = join_group(j, subs[i].proc, subs[i].device, subs[i].stream, &keys[i].group);
	}
	if (err)
		return err;
	nps_sort_keys(keys, keys + n, n);
	nps_sort_groups(keys, keys + n, n);
	j->sub_keys.len = n;
	return 0;
}

static int sort_logs(struct session_join *j)
{
	const struct nps_log_task *log = j->logs.data;
	size_t n = j->logs.len;
	int err = nps_vec__resize(&j->log_keys, 2 * n);
	struct nps_key *keys = j->log_keys.data;

	if (err)
		return err;
	err = nps_vec__resize(&j->match, n);
	for (size_t i = 0; !err && i < n; i++) {
		keys[i] = (struct nps_key){ .key = log[i].start, .row = i };
		err = join_group(j, log[i].proc, log[i].device, log[i].stream, &keys[i].group);
	}
	if (err)
		return err;
	nps_sort_keys(keys, keys + n, n);
	nps_sort_groups(keys, keys + n, n);
	j->log_keys.len = n;
	return 0;
}

/* ns by which row ROW of LOG may seem to start before its submission: the clock is known from reads alone. */
static uint64_t slack_of(struct session_join *j, const struct nps_device_log *log, uint32_t row)
{
	uint64_t count = NPS_AT(&j->counts, struct nps_counts, row).start;
	struct nps_instant at;

	if (!log || !nps_clock_map__at(&log->clock, count, &j->knot, &at))
		return SLACK;
	return (uint64_t)NPS_MAX((double)SLACK, NPS_MIN(at.error, 1e18));
}

/*
 * One stream: both lists in order of time. A task belongs to the latest submission of its id that had
 * begun. If the task of that one was lost, the next task of the same id does not get it: too many were
 * submitted, or have run, since.
 */
static void match_stream(struct session_join *j, uint32_t group, size_t *s, size_t *l)
{
	const struct nps_key *sk = j->sub_keys.data, *lk = j->log_keys.data;
	struct nps_sub *subs = j->model->subs.data;
	const struct nps_log_task *log = j->logs.data;
	const struct nps_device_log *clock = NULL;
	size_t newest = 0; /* submission that has a task */
	int64_t id = -1; /* task id without wraps */
	uint64_t slack = 0;

	if (*l < j->log_keys.len && lk[*l].group == group) {
		const struct nps_log_task *first = &log[lk[*l].row];

		clock = nps_session__log(j->model, first->proc, first->device);
		slack = slack_of(j, clock, lk[*l].row);
	}
	for (;;) {
		bool sub = *s < j->sub_keys.len && sk[*s].group == group;
		bool task = *l < j->log_keys.len && lk[*l].group == group;

		if (!sub && !task)
			return;
		if (sub && (!task || sk[*s].key <= nps_add_sat(lk[*l].key, slack))) {
			struct nps_sub *new = &subs[sk[*s].row];

			id = id < 0 ? new->task : id + (int16_t)((uint16_t) new->task - (uint16_t)id);
			id = NPS_MAX(id, 0);
			new->batch = new->task > UINT16_MAX ? 0 : id >> 16;
			j->last[new->task &UINT16_MAX] = *s;
			j->stamp[new->task &UINT16_MAX] = group + 1;
			++*s;
			continue;
		}
		uint32_t row = lk[*l].row, *match = &NPS_AT(&j->match, uint32_t, row);
		size_t last = j->last[log[row].task & UINT16_MAX];

		*match = NPS_NONE;
		/* after the capture submissions are not recorded */
		size_t most = lk[*l].key > j->model->end ? REACH : WAITING_MOST;

		if (j->stamp[log[row].task & UINT16_MAX] == group + 1 && *s - last <= most &&
		    newest <= last + REACH && subs[sk[last].row].task == log[row].task &&
		    subs[sk[last].row].task_row == NPS_NONE) {
			subs[sk[last].row].task_row = row;
			*match = sk[last].row;
			newest = NPS_MAX(newest, last);
		}
		++*l;
		if (*l < j->log_keys.len && lk[*l].group == group)
			slack = slack_of(j, clock, lk[*l].row);
	}
}

/* Where a task has a number of 32 bits and no stream, the stream is that of its submission. */
static int join_find_streams(struct session_join *j)
{
	const struct nps_sub *subs = j->model->subs.data;
	struct nps_log_task *log = j->logs.data;
	struct nps_map of = { 0 };
	bool any = false;
	int err = 0;

	for (size_t i = 0; !any && i < j->logs.len; i++)
		any = log[i].whole_id;
	for (size_t i = 0; any && !err && i < j->model->subs.len; i++)
		err = nps_map__put(&of,
				   nps_hash2((uint64_t)subs[i].proc << 16 | subs[i].device, subs[i].task),
				   subs[i].stream);
	for (size_t i = 0; any && !err && i < j->logs.len; i++) {
		uint32_t stream =
			log[i].whole_id
				? nps_map__get(&of, nps_hash2((uint64_t)log[i].proc << 16 | log[i].device,
							      log[i].task))
				: NPS_NONE;

		if (stream != NPS_NONE)
			log[i].stream = stream;
	}
	for (size_t i = 0; any && !err && i < j->model->blocks.len; i++) {
		struct nps_task_block *block = &NPS_AT(&j->model->blocks, struct nps_task_block, i);
		uint32_t stream = nps_map__get(&of, nps_hash2((uint64_t)block->proc << 16 | block->run.device,
							      block->run.task));

		if (block->whole_id && stream != NPS_NONE)
			block->run.stream = stream;
	}
	nps_map__free(&of);
	return err;
}

static int join_match(struct session_join *j)
{
	size_t s = 0, l = 0;
	int err = join_find_streams(j);

	if (err)
		return err;
	err = join_sort_subs(j);
	if (err)
		return err;
	err = sort_logs(j);
	if (err)
		return err;
	for (uint32_t group = 0; group < j->ngroups; group++)
		match_stream(j, group, &s, &l);
	return 0;
}

/* --- tasks --- */

static void from_sub(struct nps_session *model, struct nps_task *task, const struct nps_sub *sub)
{
	struct nps_proc *proc = &model->procs[sub->proc];

	task->submit = sub->begin;
	task->size = sub->size;
	task->proc = sub->proc;
	task->conn = sub->cann == NPS_NONE ? NPS_NONE : NPS_AT(&proc->cann, struct nps_cann, sub->cann).conn;
	task->stream = sub->stream;
	task->batch = sub->batch;
	task->name = sub->name;
	task->type = sub->type;
	task->function = sub->function;
	task->comm = sub->comm;
	task->step = nps_steps__at(proc, sub->begin);
	task->device = sub->device;
	task->task = sub->task;
	task->blocks = sub->blocks;
	task->sqe_type = sub->sqe_type;
	task->kind = sub->kind;
	task->memcpy_op = sub->memcpy_op;
	task->core = sub->sqe_type;
	task->context = NPS_NONE;
	task->bounds = NPS_NONE;
	task->operands = sub->run;
	task->pmu = NPS_NONE;
}

/* A 950 logs events as the notifies that they consist of; the submitting call knows that they are events. */
static bool is_event(const struct nps_sub *sub, const struct nps_log_task *log)
{
	return (sub->sqe_type == NPS_SQE_EVENT_RECORD && log->core == NPS_SQE_NOTIFY_RECORD) ||
	       (sub->sqe_type == NPS_SQE_EVENT_WAIT && log->core == NPS_SQE_NOTIFY_WAIT);
}

static void from_log(struct nps_session *model, struct nps_task *task, const struct nps_log_task *log,
		     const struct nps_sub *sub)
{
	if (sub) {
		from_sub(model, task, sub);
		model->procs[sub->proc].matched++;
	} else {
		*task = (struct nps_task){ .proc = log->proc,
					   .conn = NPS_NONE,
					   .function = NPS_NONE,
					   .stream = log->stream,
					   .context = NPS_NONE,
					   .comm = NPS_NONE,
					   .step = NPS_NONE,
					   .bounds = NPS_NONE,
					   .operands = NPS_NONE,
					   .device = log->device,
					   .task = log->task,
					   .sqe_type = log->sqe_type,
					   .memcpy_op = 255 };
		task->name = task->type = nps_task_type_name(model, log->sqe_type);
		task->kind = nps_is_kernel(log->sqe_type) ? NPS_TASK_COMPUTE : NPS_TASK_OTHER;
		model->procs[log->proc].unsubmitted++;
		model->procs[log->proc].devices |= 1ULL << log->device;
	}
	if (!sub || log->core > 63 ||
	    (log->core != NPS_SQE_UNLISTED && nps_is_kernel(sub->sqe_type) == nps_is_kernel(log->core) &&
	     !is_event(sub, log)))
		task->core = log->core;
	task->pmu = log->pmu;
	if (!task->blocks)
		task->blocks = NPS_MIN(log->blocks, (uint32_t)UINT16_MAX);
	task->start = log->start;
	task->end = NPS_MAX(log->end, log->start);
}

/* Tasks of the log. MADE[i] becomes the task of log row i, or NPS_NONE. */
static int make_logged(struct session_join *j, uint32_t *made)
{
	const struct nps_log_task *log = j->logs.data;

	for (size_t i = 0; i < j->logs.len; i++) {
		uint32_t sub = NPS_AT(&j->match, uint32_t, i);
		struct nps_task *task;

		made[i] = NPS_NONE;
		if (!log[i].end || (sub == NPS_NONE && nps_log_task__outside(j->model, &log[i])))
			continue;
		task = nps_vec__push(&j->model->tasks);
		if (!task || j->model->tasks.len >= NPS_NONE)
			return -ENOMEM;
		from_log(j->model, task, &log[i],
			 sub == NPS_NONE ? NULL : &NPS_AT(&j->model->subs, struct nps_sub, sub));
		made[i] = j->model->tasks.len - 1;
	}
	return 0;
}

/* Makes a task with bounds of a submission without a measured task. */
static int make_one_bounded(struct session_join *j, const struct nps_sub *sub, const struct nps_bounds *known)
{
	const struct nps_log_task *log = j->logs.data;
	struct nps_task *task = nps_vec__push(&j->model->tasks);
	struct nps_bounds *bounds = nps_vec__push(&j->model->bounds);

	if (!task || !bounds || j->model->tasks.len >= NPS_NONE)
		return -ENOMEM;
	from_sub(j->model, task, sub);
	task->start = task->end = sub->begin;
	task->bounds = j->model->bounds.len - 1;
	*bounds = *known;
	if (sub->task_row != NPS_NONE) { /* it was seen to start, not to end */
		uint64_t start = log[sub->task_row].start, error = nps_clock_align__error(j->model, sub);

		bounds->start_low = bounds->end_low = NPS_MAX(start - NPS_MIN(error, start), sub->begin);
		bounds->end_high = NPS_MAX(bounds->end_high, bounds->end_low);
		bounds->start_high = NPS_MIN(nps_add_sat(start, error), bounds->end_high);
		bounds->start_high = NPS_MAX(bounds->start_high, bounds->start_low);
	}
	j->model->procs[task->proc].bounded++;
	return 0;
}

/* Makes a task with bounds of each submission without a measured one. */
static int make_bounded(struct session_join *j, const uint32_t *made)
{
	const struct nps_streams streams = { j->sub_keys.data, j->sub_keys.len };
	struct nps_vec tasks, bounds;
	const struct nps_task **task;
	int err;

	nps_vec__init(&tasks, j->model->tmpfd, sizeof(*task));
	nps_vec__init(&bounds, j->model->tmpfd, sizeof(struct nps_bounds));
	err = nps_vec__resize(&tasks, streams.n);
	if (err)
		goto out;
	err = nps_vec__resize(&bounds, streams.n);
	if (err)
		goto out;
	task = tasks.data;
	for (size_t i = 0; i < streams.n; i++) {
		uint32_t row = NPS_AT(&j->model->subs, struct nps_sub, streams.keys[i].row).task_row;

		row = row == NPS_NONE ? NPS_NONE : made[row];
		task[i] = row == NPS_NONE ? NULL : &NPS_AT(&j->model->tasks, struct nps_task, row);
	}
	err = nps_bounds__all(j->model, &streams, task, bounds.data);
	/* Pushing moves the tasks: from here on task[i] is only compared with NULL. */
	for (size_t i = 0; !err && i < streams.n; i++)
		if (!task[i])
			err = make_one_bounded(j,
					       &NPS_AT(&j->model->subs, struct nps_sub, streams.keys[i].row),
					       &NPS_AT(&bounds, struct nps_bounds, i));
out:
	nps_vec__free(&tasks);
	nps_vec__free(&bounds);
	return err;
}

/* Makes a task of each task of the log and of each submission that has none there. */
static int make_tasks(struct session_join *j)
{
	uint32_t *made = malloc((j->logs.len + 1) * sizeof(*made));
	int err;

	if (!made)
		return -ENOMEM;
	err = make_logged(j, made);
	if (err)
		goto out;
	err = make_bounded(j, made);
out:
	free(made);
	return err;
}

/* Fills SORTED with the N TASKS by process and start. */
static int order_tasks(const struct nps_task *tasks, size_t n, struct nps_vec *sorted)
{
	struct nps_task *to;
	struct nps_vec keys;
	struct nps_key *key;
	int err;

	nps_vec__init(&keys, sorted->dirfd, sizeof(struct nps_key));
	err = nps_vec__resize(&keys, 2 * n);
	if (err)
		goto out;
	err = nps_vec__resize(sorted, n);
	if (err)
		goto out;
	key = keys.data;
	for (size_t i = 0; i < n; i++)
		key[i] = (struct nps_key){ .key = tasks[i].start, .row = i, .group = tasks[i].proc };
	nps_sort_keys(key, key + n, n);
	nps_sort_groups(key, key + n, n);
	to = sorted->data;
	for (size_t i = 0; i < n; i++)
		to[i] = tasks[key[i].row];
out:
	nps_vec__free(&keys);
	return err;
}

/* Tasks by process and start, each process's range noted. */
static int sort_tasks(struct nps_session *model)
{
	struct nps_vec sorted;
	int err;

	nps_vec__init(&sorted, model->tmpfd, sizeof(struct nps_task));
	err = order_tasks(model->tasks.data, model->tasks.len, &sorted);
	if (err) {
		nps_vec__free(&sorted);
		return err;
	}
	nps_vec__free(&model->tasks);
	model->tasks = sorted;
	for (size_t i = 0; i < sorted.len; i++) {
		struct nps_proc *proc = &model->procs[NPS_AT(&sorted, struct nps_task, i).proc];

		if (!proc->tasks++)
			proc->first_task = i;
	}
	return 0;
}

static int streams_seen(const struct nps_session *model, struct nps_map *seen)
{
	const struct nps_sub *subs = model->subs.data;
	int err = 0;

	for (size_t i = 0; !err && i < model->subs.len; i++)
		err = nps_map__put(seen, join_stream_key(subs[i].proc, subs[i].device, subs[i].stream), 1);
	return err;
}

/* Fits the log to the host's time: by reads of the clock, then by cause and effect. */
static int refine(struct session_join *j)
{
	const struct nps_streams streams = { j->sub_keys.data, j->sub_keys.len };
	int err = nps_completions__add(j->model, &streams);

	if (err)
		return err;
	nps_syncs__sort(j->model);
	return nps_clock_align__causality(j->model, &j->logs, &j->counts, j->match.data, &streams);
}

/* Reads the logs of all processes, on the host's time as the reads of the clocks show it. */
static int read_logs(struct session_join *j)
{
	struct nps_map seen = { 0 };
	int err = streams_seen(j->model, &seen);

	if (err)
		goto out;
	err = nps_import__logs(j->model, &seen, &j->logs);
	if (err)
		goto out;
	err = nps_clock_align__clocks(j->model);
	if (err)
		goto out;
	err = nps_clock_align__logs(j->model, &j->logs, &j->counts);
out:
	nps_map__free(&seen);
	return err;
}

static int join_run(struct session_join *j)
{
	int err = read_logs(j);

	if (err)
		return err;
	err = join_match(j);
	if (err)
		return err;
	err = refine(j);
	if (err)
		return err;
	nps_clock_align__blocks(j->model);
	err = nps_log_losses__count(j->model, &(struct nps_streams){ j->sub_keys.data, j->sub_keys.len },
				    &j->logs, &j->counts, j->match.data);
	if (err)
		return err;
	err = make_tasks(j);
	if (err)
		return err;
	return sort_tasks(j->model);
}

int nps_join__tasks(struct nps_session *model)
{
	struct session_join *j = calloc(1, sizeof(*j));
	int err;

	if (!j)
		return -ENOMEM;
	j->model = model;
	nps_vec__init(&j->logs, model->tmpfd, sizeof(struct nps_log_task));
	nps_vec__init(&j->counts, model->tmpfd, sizeof(struct nps_counts));
	nps_vec__init(&j->match, model->tmpfd, sizeof(uint32_t));
	nps_vec__init(&j->sub_keys, model->tmpfd, sizeof(struct nps_key));
	nps_vec__init(&j->log_keys, model->tmpfd, sizeof(struct nps_key));
	err = join_run(j);
	nps_map__free(&j->groups);
	nps_vec__free(&j->logs);
	nps_vec__free(&j->counts);
	nps_vec__free(&j->match);
	nps_vec__free(&j->sub_keys);
	nps_vec__free(&j->log_keys);
	free(j);
	return err;
}
