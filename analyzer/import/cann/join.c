/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the launch of each run: launches and runs are both sorted by (device, stream, batch, task, context)
 * and walked side by side (prof-raw 4.2).
 */
#include "base/progress.h"
#include "import/cann/capture.h"

#include <errno.h>
#include <stdlib.h>

#define GROUP_MOST (1U << 16) /* launches or runs of one key; honest captures have one launch */

struct key {
	struct nps_sort_key key; /* high: device, stream, batch and task; low: context << 32 | row */
};

struct key_group {
	struct key *rows;
	size_t n, room;
	uint64_t dropped;
};

struct cann_join {
	struct nps_cann_capture *capture;
	struct nps_ext_sort hosts, runs;
	const struct key *host, *run; /* the next ones */
	struct key_group group; /* launches of the current task */
	uint8_t *matched; /* one for each row of it */
	size_t matched_room;
	struct key_group same; /* runs of the current context */
	uint64_t host_only, ambiguous;
};

static uint32_t context_of(const struct key *key)
{
	return key->key.low >> 32;
}

static uint32_t key_row(const struct key *key)
{
	return key->key.low & UINT32_MAX;
}

static uint64_t run_task_key(const struct nps_cann_capture *capture, uint32_t device, uint32_t stream,
			     uint32_t batch, uint32_t task)
{
	uint32_t id = capture->v6 ? task : batch << 16 | (task & 0xffff);

	/* V6 logs no streams; task ids are the device's then. */
	return (uint64_t)(device & 0xff) << 56 | (uint64_t)(capture->v6 ? 0 : stream & 0xffffff) << 32 | id;
}

static void add_key(struct nps_cann_capture *capture, struct nps_ext_sort *sort, uint64_t high,
		    uint32_t context, uint32_t row)
{
	struct key *key = nps_cann_capture__sort(capture, sort);

	if (key)
		key->key = (struct nps_sort_key){ high, (uint64_t)context << 32 | row };
}

static void add_keys(struct cann_join *join)
{
	struct nps_cann_capture *capture = join->capture;
	uint32_t steps = 0, launch_steps = 0;

	for (size_t i = 0; !capture->err && i < capture->host_tasks.len; i++) {
		const struct nps_host_task *task = &NPS_AT(&capture->host_tasks, struct nps_host_task, i);
		const struct nps_launch *launch =
			&NPS_AT(&capture->launches, struct nps_launch, task->launch);

		add_key(capture, &join->hosts,
			run_task_key(capture, launch->device, launch->stream, launch->batch, launch->task),
			task->context, i);
		nps_cann_capture__step(&capture->host_tasks, &steps);
		nps_cann_capture__step(&capture->launches, &launch_steps);
	}
	for (size_t i = 0; !capture->err && i < capture->runs.len; i++) {
		const struct nps_cann_run *run = &NPS_AT(&capture->runs, struct nps_cann_run, i);

		if (run->end)
			add_key(capture, &join->runs,
				run_task_key(capture, run->device, run->stream, run->batch, run->task),
				run->context, i);
		nps_cann_capture__step(&capture->runs, &steps);
	}
}

static void group_push(struct nps_cann_capture *capture, struct key_group *group, const struct key *key)
{
	if (group->n == GROUP_MOST) {
		group->dropped++;
		return;
	}
	if (group->n == group->room) {
		size_t room = group->room ? group->room * 2 : 64;
		struct key *rows = realloc(group->rows, room * sizeof(*rows));

		if (!rows) {
			capture->err = -ENOMEM;
			return;
		}
		group->rows = rows;
		group->room = room;
	}
	group->rows[group->n++] = *key;
}

/* Reads the launches of task HIGH; those before it never ran. */
static void read_group(struct cann_join *join, uint64_t high)
{
	struct nps_cann_capture *capture = join->capture;

	join->group.n = 0;
	while (join->host && join->host->key.high < high && !capture->err) {
		join->host_only++;
		join->host = nps_ext_sort__next(&join->hosts);
	}
	while (join->host && join->host->key.high == high && !capture->err) {
		group_push(capture, &join->group, join->host);
		join->host = nps_ext_sort__next(&join->hosts);
	}
	if (join->matched_room < join->group.n) {
		uint8_t *matched = realloc(join->matched, join->group.n);

		if (!matched) {
			capture->err = -ENOMEM;
			return;
		}
		join->matched = matched;
		join->matched_room = join->group.n;
	}
	for (size_t i = 0; i < join->group.n; i++)
		join->matched[i] = 0;
}

static void run_match(struct cann_join *join, uint32_t run, uint32_t host)
{
	struct nps_match *to = nps_cann_capture__sort(join->capture, &join->capture->matches);

	if (to)
		to->key = (struct nps_sort_key){ run, host };
}

/*
 * A MIX kernel is logged as context 0, as a whole, or both; its launch may be recorded with another
 * context. Only where no launch of that context matches.
 */
static size_t only_mix(const struct cann_join *join, uint32_t context)
{
	const struct nps_cann_capture *capture = join->capture;
	const struct nps_host_task *task;

	if (join->group.n != 1 || (context && context != NPS_NO_CONTEXT) || join->matched[0])
		return SIZE_MAX;
	task = &NPS_AT(&capture->host_tasks, struct nps_host_task, key_row(&join->group.rows[0]));
	if (NPS_AT(&capture->launches, struct nps_launch, task->launch).kind != NPS_LAUNCH_MIX)
		return SIZE_MAX;
	return 0;
}

/* Runs of one context: one launch ran again and again, or as many launches as runs. Reads them all. */
static void join_context(struct cann_join *join, uint64_t high, uint32_t context, bool contexts_before)
{
	struct nps_cann_capture *capture = join->capture;
	size_t first = 0, n = 0;

	while (first < join->group.n && context_of(&join->group.rows[first]) < context)
		first++;
	while (first + n < join->group.n && context_of(&join->group.rows[first + n]) == context)
		n++;
	if (!n && !contexts_before) {
		first = only_mix(join, context);
		n = first != SIZE_MAX;
	}
	join->same.n = 0;
	while (!capture->err && join->run && join->run->key.high == high &&
	       context_of(join->run) == context) {
		if (n == 1) {
			run_match(join, key_row(join->run), key_row(&join->group.rows[first]));
			join->matched[first] = 1;
		} else if (n > 1) {
			group_push(capture, &join->same, join->run);
		} else if (context == NPS_NO_CONTEXT && contexts_before) {
			run_match(join, key_row(join->run), NPS_MATCH_PARENT);
		}
		join->run = nps_ext_sort__next(&join->runs);
	}
	if (n < 2)
		return;
	if (join->same.n != n) {
		join->ambiguous += join->same.n;
		return;
	}
	for (size_t i = 0; i < n && !capture->err; i++) {
		run_match(join, key_row(&join->same.rows[i]), key_row(&join->group.rows[first + i]));
		join->matched[first + i] = 1;
	}
}

static void join_walk(struct cann_join *join)
{
	struct nps_cann_capture *capture = join->capture;
	uint32_t steps = 0;

	join->host = nps_ext_sort__next(&join->hosts);
	join->run = nps_ext_sort__next(&join->runs);
	while (!capture->err && join->run) {
		uint64_t high = join->run->key.high;
		bool contexts = false;

		read_group(join, high);
		while (!capture->err && join->run && join->run->key.high == high) {
			uint32_t context = context_of(join->run);

			join_context(join, high, context, contexts);
			contexts = contexts || context != NPS_NO_CONTEXT;
		}
		for (size_t i = 0; i < join->group.n; i++)
			join->host_only += !join->matched[i];
		nps_cann_capture__step(&capture->host_tasks, &steps);
		if (!(steps & 0xffff))
			nps_vec__cool(&capture->launches);
	}
	for (; !capture->err && join->host; join->host = nps_ext_sort__next(&join->hosts))
		join->host_only++;
	if (!capture->err)
		capture->err = join->hosts.err ? join->hosts.err : join->runs.err;
}

int nps_cann_capture__join(struct nps_cann_capture *capture)
{
	struct cann_join join = { .capture = capture };
	struct nps_model *m = capture->model;

	nps_progress__stage(m->progress, "joining tasks", 0, NULL);
	nps_ext_sort__init(&join.hosts, m->tmpfd, sizeof(struct key));
	nps_ext_sort__init(&join.runs, m->tmpfd, sizeof(struct key));
	add_keys(&join);
	if (!capture->err)
		capture->err = nps_ext_sort__finish(&join.hosts);
	if (!capture->err)
		capture->err = nps_ext_sort__finish(&join.runs);
	if (!capture->err)
		join_walk(&join);
	if (!capture->err)
		capture->err = nps_ext_sort__finish(&capture->matches);
	nps_model__lost(m, join.host_only, "launches that never ran");
	nps_model__lost(m, join.ambiguous, "tasks of which several launches may be the one");
	nps_model__lost(m, join.group.dropped + join.same.dropped,
			"launches or tasks of one id that are too many");
	nps_ext_sort__free(&join.hosts);
	nps_ext_sort__free(&join.runs);
	free(join.group.rows);
	free(join.same.rows);
	free(join.matched);
	return capture->err;
}
