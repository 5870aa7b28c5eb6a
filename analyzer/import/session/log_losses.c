/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Running numbers have 4 bits: a gap shows how many records were lost modulo 16. The multiple of 16 follows
 * from the tasks that have no records, or one of two, though a later task of their stream has: a stream is
 * in order.
 *
 * A reader that is a whole round of the driver's ring late has no gap in the numbers, as a ring holds a
 * multiple of 16. It has a silence instead: many tasks of a stream have no records, and no task of any
 * other stream began meanwhile.
 */
#include "import/session/log_losses.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define RING (4U << 20) /* bytes of the driver's, for a channel */
#define LONG_RUN 512 /* records of a stream that can be a round */
#define SILENCES_MOST 256 /* beyond that they are no rounds */

struct silence {
	uint32_t log;
	uint64_t from, to; /* CLOCK_MONOTONIC ns: starts of two tasks in a row */
	uint64_t records; /* that are missing */
};

struct counting {
	struct nps_session *model;
	const struct nps_streams *streams;
	struct nps_log_task *rows;
	const struct nps_counts *counts;
	const uint32_t *match; /* the submission of each row, or NPS_NONE */
	size_t nrows;
	struct nps_vec silences; /* struct silence */
};

/* Is there one of BREAKS between two counts of the device, or did it count anew? */
static bool interrupted(const struct nps_vec *breaks, uint64_t from, uint64_t to)
{
	size_t low = 0, high = breaks->len;

	if (to < from)
		return true;
	while (low < high) { /* the first one after FROM */
		size_t mid = low + (high - low) / 2;

		if (NPS_AT(breaks, uint64_t, mid) > from)
			high = mid;
		else
			low = mid + 1;
	}
	return low < breaks->len && NPS_AT(breaks, uint64_t, low) <= to;
}

/* The log that ROW is of; *LATEST: of the row before, for rows of one stand together. NPS_NONE: none. */
static uint32_t log_of(const struct counting *c, const struct nps_log_task *row, uint32_t *latest)
{
	const struct nps_device_log *logs = c->model->logs.data, *log;

	if (*latest != NPS_NONE && logs[*latest].proc == row->proc && logs[*latest].device == row->device)
		return *latest;
	log = nps_session__find_log(c->model, row->proc, row->device);
	*latest = log ? log - logs : NPS_NONE;
	return *latest;
}

/* --- tasks without records ---------------------------------------------------- */

/* Such of a stream in a row, between two that have theirs. */
struct run {
	uint32_t log;
	uint64_t records; /* that are missing */
	uint64_t from, to; /* when the first and the last were submitted */
};

struct log_walk {
	size_t at;
	const struct nps_counts *before; /* of the latest task of the stream that has records */
};

static bool walk_next_run(const struct counting *c, struct log_walk *walk, struct run *run)
{
	const struct nps_key *keys = c->streams->keys;

	*run = (struct run){ 0 };
	for (; walk->at < c->streams->n; walk->at++) {
		const struct nps_sub *sub = &NPS_AT(&c->model->subs, struct nps_sub, keys[walk->at].row);
		const struct nps_counts *before;
		const struct nps_device_log *log;

		if (walk->at && keys[walk->at].group != keys[walk->at - 1].group) {
			walk->before = NULL;
			run->records = 0;
		}
		if (sub->task_row == NPS_NONE || !c->rows[sub->task_row].end) {
			if (!walk->before)
				continue;
			run->from = run->records ? run->from : sub->begin;
			run->to = sub->begin;
			run->records += sub->task_row == NPS_NONE ? 2 : 1;
			continue;
		}
		before = walk->before;
		walk->before = &c->counts[sub->task_row];
		if (!run->records)
			continue;
		log = nps_session__find_log(c->model, sub->proc, sub->device);
		if (log && !interrupted(&log->task_breaks, before->start, walk->before->end)) {
			run->log = log - (const struct nps_device_log *)c->model->logs.data;
			walk->at++;
			return true;
		}
		run->records = 0;
	}
	return false;
}

/* --- rounds --------------------------------------------------------------------- */

/* The starts of each log's tasks in order, log after log, in KEYS. */
static int sort_starts(const struct counting *c, struct nps_vec *keys)
{
	int err = nps_vec__resize(keys, 2 * c->nrows);
	struct nps_key *key = keys->data;
	uint32_t log = NPS_NONE;

	for (size_t i = 0; !err && i < c->nrows; i++)
		key[i] = (struct nps_key){ .key = c->rows[i].start,
					   .row = i,
					   .group = log_of(c, &c->rows[i], &log) };
	if (err)
		return err;
	nps_sort_keys(key, key + c->nrows, c->nrows);
	nps_sort_groups(key, key + c->nrows, c->nrows);
	return 0;
}

/*
 * Did no task of the log begin in most of the time in which those of RUN were submitted? Such a time
 * includes the middle. Where a task ran at the middle, those behind it waited. STARTS: of all logs.
 */
static bool silent(const struct counting *c, const struct run *run, const struct nps_key *starts,
		   struct silence *silence)
{
	uint64_t middle = run->from + (run->to - run->from) / 2;
	size_t low = 0, high = c->nrows;

	while (low < high) { /* the first start of the log after the middle */
		size_t mid = low + (high - low) / 2;

		if (starts[mid].group > run->log ||
		    (starts[mid].group == run->log && starts[mid].key > middle))
			high = mid;
		else
			low = mid + 1;
	}
	if (!low || low == c->nrows || starts[low].group != run->log || starts[low - 1].group != run->log ||
	    c->rows[starts[low - 1].row].end > middle)
		return false;
	*silence = (struct silence){ run->log, starts[low - 1].key, starts[low].key, 0 };
	return NPS_MIN(silence->to, run->to) - NPS_MAX(silence->from, run->from) >= (run->to - run->from) / 2;
}

/* The silence in which tasks of RUN were submitted, NULL: none. */
static struct silence *silence_of(const struct counting *c, const struct run *run)
{
	struct silence *silences = c->silences.data;

	for (size_t i = 0; i < c->silences.len; i++)
		if (silences[i].log == run->log && run->from <= silences[i].to && run->to >= silences[i].from)
			return &silences[i];
	return NULL;
}

static int find_silences(struct counting *c)
{
	struct nps_vec keys;
	struct log_walk walk = { 0 };
	struct run run;
	int err = 0;

	nps_vec__init(&keys, c->model->tmpfd, sizeof(struct nps_key));
	while (!err && c->silences.len < SILENCES_MOST && walk_next_run(c, &walk, &run)) {
		struct silence silence, *kept;

		if (run.records < LONG_RUN)
			continue;
		err = keys.len ? 0 : sort_starts(c, &keys);
		kept = err ? NULL : silence_of(c, &run);
		if (err || !silent(c, &run, keys.data, &silence) || (kept && kept->from == silence.from))
			continue;
		kept = nps_vec__push(&c->silences);
		if (kept)
			*kept = silence;
		else
			err = -ENOMEM;
	}
	nps_vec__free(&keys);
	return err;
}

/* Records missing from a log outside of silences, by its tasks; how many of its tasks have records. */
struct missing {
	uint64_t scattered, tasks;
};

/* The rounds of the ring in SILENCE; tasks with sub-tasks have more than two records. */
static uint64_t rounds(const struct nps_device_log *log, const struct silence *silence, uint64_t tasks)
{
	double ring = log->record_bytes ? (double)RING / log->record_bytes : INFINITY;
	double share = tasks ? NPS_MAX((double)log->task_records / (2.0 * (double)tasks), 1.0) : 1;
	double n = (double)silence->records * share / ring;

	/* Tasks that waited in a queue and were dropped are fewer. */
	return n < 0.25 ? 0 : NPS_MAX((uint64_t)(n + 0.5), (uint64_t)1);
}

static void log_count(const struct counting *c, struct nps_device_log *log, struct missing missing)
{
	/* An end without its start is a record of a task that seems to have none. */
	missing.scattered -= NPS_MIN(missing.scattered, log->orphans);
	log->lost = log->gaps;
	if (log->task_gaps && missing.scattered > log->task_gaps + 8)
		log->lost += (missing.scattered - log->task_gaps + 8) / 16 * 16;
	if (log->rounds) {
		log->lost += log->rounds * (RING / log->record_bytes);
		nps_msg("process %u: device %u: the driver's ring of the task log was overwritten before "
			"it was read: %" PRIu64 " records are missing; their tasks have bounds",
			c->model->procs[log->proc].pid, log->device, log->lost);
	}
	c->model->losses.device_records = nps_add_sat(c->model->losses.device_records, log->lost);
}

static int count_records(struct counting *c)
{
	size_t n = c->model->logs.len;
	struct missing *missing = calloc(n + 1, sizeof(*missing));
	struct nps_device_log *logs = c->model->logs.data;
	struct log_walk walk = { 0 };
	uint32_t log = NPS_NONE;
	struct run run;
	int err = missing ? find_silences(c) : -ENOMEM;

	while (!err && walk_next_run(c, &walk, &run)) {
		struct silence *silence = silence_of(c, &run);

		*(silence ? &silence->records : &missing[run.log].scattered) += run.records;
	}
	for (size_t i = 0; !err && i < c->nrows; i++)
		if (log_of(c, &c->rows[i], &log) != NPS_NONE)
			missing[log].tasks++;
	for (size_t i = 0; !err && i < c->silences.len; i++) {
		const struct silence *silence = &NPS_AT(&c->silences, struct silence, i);
		uint64_t of = rounds(&logs[silence->log], silence, missing[silence->log].tasks);

		logs[silence->log].rounds += of;
		missing[silence->log].scattered += of ? 0 : silence->records;
	}
	for (size_t i = 0; !err && i < n; i++)
		log_count(c, &logs[i], missing[i]);
	free(missing);
	return err;
}

/* --- kernels without counters ------------------------------------------------- */

/* Those of collectives are shown without counters. */
static bool is_counted_kernel(const struct counting *c, size_t i)
{
	const struct nps_log_task *row = &c->rows[i];

	if (c->match[i] == NPS_NONE ? nps_log_task__outside(c->model, row)
				    : NPS_AT(&c->model->subs, struct nps_sub, c->match[i]).comm != NPS_NONE)
		return false;
	if (row->has_subs && !row->core_subs)
		return false;
	return row->end && (row->core == NPS_SQE_AI_CORE || row->core == NPS_SQE_AIV || row->core > 63);
}

/* A part of a kernel's counters is not shown. Of several sub-tasks, counters of the whole are only one's. */
static bool has_counters(const struct counting *c, const struct nps_log_task *row)
{
	if (row->pmu == NPS_NONE || (row->sub_pmu ? row->sub_uncounted : row->core_subs > 1))
		return false;
	return NPS_AT(&c->model->run_pmus, struct nps_run_pmu, row->pmu).main < 2;
}

/* Kernels of each log and core type in KEYS, in order of their end, when their counters are recorded. */
static int kernels_by_end(const struct counting *c, struct nps_vec *keys, size_t *n)
{
	int err = nps_vec__resize(keys, 2 * c->nrows);
	struct nps_key *key = keys->data;
	uint32_t log = NPS_NONE;

	*n = 0;
	for (size_t i = 0; !err && i < c->nrows; i++) {
		const struct nps_log_task *row = &c->rows[i];

		if (is_counted_kernel(c, i) && log_of(c, row, &log) != NPS_NONE)
			key[(*n)++] = (struct nps_key){ .key = c->counts[i].end,
							.row = i,
							.group = log << 8 | row->core };
	}
	if (err)
		return err;
	nps_sort_keys(key, key + *n, *n);
	nps_sort_groups(key, key + *n, *n);
	return 0;
}

static int count_kernels(struct counting *c)
{
	struct nps_device_log *logs = c->model->logs.data;
	const struct nps_key *key;
	struct nps_vec keys;
	uint64_t pending = 0, since = UINT64_MAX; /* the first one of a stretch that has them ended */
	size_t n;
	int err;

	if (!c->model->run_pmus.len)
		return 0;
	nps_vec__init(&keys, c->model->tmpfd, sizeof(struct nps_key));
	err = kernels_by_end(c, &keys, &n);
	key = keys.data;
	for (size_t i = 0; !err && i < n; i++) {
		struct nps_log_task *row = &c->rows[key[i].row];
		struct nps_device_log *log = &logs[key[i].group >> 8];

		if (!i || key[i].group != key[i - 1].group ||
		    interrupted(&log->task_breaks, key[i - 1].key, key[i].key) ||
		    interrupted(&log->pmu_breaks, key[i - 1].key, key[i].key)) {
			pending = 0;
			since = UINT64_MAX;
		}
		if (!has_counters(c, row)) {
			row->pmu = NPS_NONE;
			pending += c->counts[key[i].row].start >= since && !log->pmu_unsure;
			continue;
		}
		log->uncounted += pending;
		pending = 0;
		since = NPS_MIN(since, key[i].key);
	}
	nps_vec__free(&keys);
	return err;
}

int nps_log_losses__count(struct nps_session *model, const struct nps_streams *streams, struct nps_vec *logs,
			  const struct nps_vec *counts, const uint32_t *match)
{
	struct counting c = { .model = model,
			      .streams = streams,
			      .rows = logs->data,
			      .counts = counts->data,
			      .match = match,
			      .nrows = logs->len };
	int err;

	nps_vec__init(&c.silences, model->tmpfd, sizeof(struct silence));
	err = count_records(&c);
	if (err)
		goto out;
	err = count_kernels(&c);
out:
	nps_vec__free(&c.silences);
	return err;
}
