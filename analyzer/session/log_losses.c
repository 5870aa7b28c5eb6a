/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Running numbers have 4 bits: a gap tells how many records were lost modulo 16. How many times 16 more it were is told by
 * the tasks that have no records, or one of two, though a later task of their stream has: a stream is in order.
 *
 * A reader who is a whole round of the driver's ring late finds nothing of it in the numbers, for a ring holds a multiple of
 * 16. What tells it is that many tasks of a stream in a row have no record.
 */
#include "session/log_losses.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define RING (4U << 20) /* bytes of the driver's, for a channel */
#define LONG_RUN 512 /* records of a stream in a row that nothing but a ring that was overwritten takes */

/* Records that tasks should have and have not. */
struct missing {
	uint64_t all, in_long_runs;
};

/* Has the collector itself not read LOG between two counts of the device? */
static bool interrupted(const struct nps_device_log *log, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < log->breaks.len; i++) {
		uint64_t at = NPS_AT(&log->breaks, uint64_t, i);

		if (at > from && at <= to)
			return true;
	}
	return false;
}

static void add(const struct nps_recording *model, struct missing *missing, const struct nps_sub *sub,
		uint64_t records, uint64_t from, uint64_t to)
{
	const struct nps_device_log *log = model->logs.data;
	size_t i = 0;

	while (i < model->logs.len && (log[i].proc != sub->proc || log[i].device != sub->device))
		i++;
	if (i == model->logs.len || interrupted(&log[i], from, to))
		return;
	missing += i;
	missing->all += records;
	if (records >= LONG_RUN)
		missing->in_long_runs += records;
}

static void find_missing(const struct nps_recording *model, const struct nps_streams *streams,
			 const struct nps_log_task *rows, const struct nps_counts *counts,
			 struct missing *missing)
{
	const struct nps_sub *subs = model->subs.data;
	const struct nps_counts *before = NULL; /* of the latest task of the stream that has records */
	uint64_t pending = 0;

	for (size_t i = 0; i < streams->n; i++) {
		const struct nps_sub *sub = &subs[streams->keys[i].row];

		if (i && streams->keys[i].group != streams->keys[i - 1].group) {
			pending = 0;
			before = NULL;
		}
		if (sub->task_row == NPS_NONE || !rows[sub->task_row].end) {
			if (before)
				pending += sub->task_row == NPS_NONE ? 2 : 1;
			continue;
		}
		if (pending)
			add(model, missing, sub, pending, before->start, counts[sub->task_row].end);
		before = &counts[sub->task_row];
		pending = 0;
	}
}

static uint64_t rounds(const struct nps_device_log *log, const struct missing *missing)
{
	uint64_t ring = log->record_bytes ? RING / log->record_bytes : 0;
	uint64_t n = ring ? (missing->in_long_runs + ring / 2) / ring : 0;

	return !n && ring && missing->in_long_runs && !log->gaps ? 1 : n;
}

static void count(struct nps_recording *model, struct nps_device_log *log, struct missing missing)
{
	/* An end without its start is a record of a task that seems to have none. */
	missing.all -= NPS_MIN(missing.all, log->orphans);
	log->rounds = rounds(log, &missing);
	log->lost = log->gaps;
	if (log->rounds) {
		log->lost += log->rounds * (RING / log->record_bytes);
		nps_msg("process %u: device %u: the driver's ring of the task log was overwritten before it "
			"was read: "
			"%" PRIu64 " records are missing; their tasks have bounds",
			model->procs[log->proc].pid, log->device, log->lost);
	} else if (log->gaps && missing.all > log->gaps + 8) {
		log->lost += (missing.all - log->gaps + 8) / 16 * 16;
	}
	model->losses.device_records = nps_add_sat(model->losses.device_records, log->lost);
}

int nps_log_losses__count(struct nps_recording *model, const struct nps_streams *streams,
			  const struct nps_log_task *rows, const struct nps_counts *counts)
{
	size_t n = model->logs.len;
	struct missing *missing = calloc(n + 1, sizeof(*missing));

	if (!missing)
		return -ENOMEM;
	find_missing(model, streams, rows, counts, missing);
	for (size_t i = 0; i < n; i++)
		count(model, &NPS_AT(&model->logs, struct nps_device_log, i), missing[i]);
	free(missing);
	return 0;
}
