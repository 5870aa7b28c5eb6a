/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/clock_align.h"

#include "clock/errors.h"
#include "import/session/import.h"
#include "import/session/session_reader.h"
#include "import/session/syncs.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define DEFAULT_FREQ_KHZ 50000 /* of the 910B's counter */
#define DAY 86400000000000ULL
#define ROUNDS 4 /* a better clock may show more contradictions */

/* --- clocks --- */

/* Appends the reads of DEVICE in FROM, those by process PID, 0: by the collector. 0 or a negative errno. */
static int add_reads(struct nps_vec *reads, const struct nps_vec *from, uint32_t device, uint32_t pid)
{
	const struct nps_device_clock *all = from->data;

	for (size_t i = 0; i < from->len; i++) {
		struct nps_device_clock *read;

		if (all[i].device != device || all[i].pid != pid)
			continue;
		read = nps_vec__push(reads);
		if (!read)
			return -errno;
		*read = all[i];
	}
	return 0;
}

/* Does the process use the collector's numbers of devices? In a container it may not. */
static bool same_devices(const struct nps_proc *proc)
{
	return nps_json_u64(proc->json, "ns_pid", 0) == proc->pid;
}

static int fit_one(struct nps_session *model, struct nps_device_log *log, struct nps_vec *reads)
{
	const struct nps_proc *proc = &model->procs[log->proc];
	uint64_t freq = model->devices[log->device].freq_khz;
	/* Only the process's own reads: what another process calls by that number may be another device. */
	int err = add_reads(reads, &model->device_clocks, log->device, proc->pid);

	if (!err && !reads->len && same_devices(proc))
		err = add_reads(reads, &model->npu.clocks, log->device, 0);
	if (err)
		return err;
	err = nps_clock_map__fit(&log->clock, reads->data, reads->len,
				 1000 * (freq ? freq : DEFAULT_FREQ_KHZ));
	log->fitted = !err;
	if (err == -EILSEQ)
		nps_msg("clock samples of device %u (process %u) contradict each other or its frequency of "
			"%" PRIu64 " kHz: they are not used",
			log->device, model->procs[log->proc].pid, freq ? freq : DEFAULT_FREQ_KHZ);
	return err == -ENODATA || err == -EILSEQ ? 0 : err;
}

int nps_clock_align__clock(struct nps_session *model, struct nps_device_log *log, uint64_t *khz)
{
	uint64_t freq = model->devices[log->device].freq_khz;
	struct nps_vec reads;
	int err;

	*khz = freq ? freq : DEFAULT_FREQ_KHZ;
	nps_vec__init(&reads, model->tmpfd, sizeof(struct nps_device_clock));
	err = fit_one(model, log, &reads);
	nps_vec__free(&reads);
	return err;
}

int nps_clock_align__clocks(struct nps_session *model)
{
	struct nps_vec reads;
	int err = 0;

	nps_vec__init(&reads, model->tmpfd, sizeof(struct nps_device_clock));
	for (size_t i = 0; !err && i < model->logs.len; i++) {
		struct nps_device_log *log = &NPS_AT(&model->logs, struct nps_device_log, i);

		reads.len = 0;
		err = fit_one(model, log, &reads);
		if (!err && !log->fitted) {
			nps_msg("no clock samples of device %u (process %u): the times of its log are not "
				"known: host bounds are used",
				log->device, model->procs[log->proc].pid);
			model->losses.cut = true;
		}
	}
	nps_vec__free(&reads);
	return err;
}

/* Where a walk through a log is: in the log's map, in the host's samples. */
struct align_walk {
	const struct nps_device_log *log;
	size_t knot, sample;
};

/* CLOCK_MONOTONIC when the counter stood at COUNT. */
static bool count_to_mono(const struct nps_session *model, struct align_walk *walk, uint64_t count,
			  uint64_t *mono, double *error)
{
	struct nps_instant raw, at;

	if (!nps_clock_map__at(&walk->log->clock, count, &walk->knot, &raw))
		return false;
	at = nps_host_mono(model->clocks.data, model->clocks.len, raw.ns, &walk->sample);
	*mono = at.ns;
	*error = raw.error + at.error;
	return true;
}

/* The walk of a row's log; rows of one log stand together. NULL: it has no clock. */
static struct align_walk *walk_of(struct nps_session *model, struct align_walk *walk,
				  const struct nps_log_task *task)
{
	if (!walk->log || walk->log->proc != task->proc || walk->log->device != task->device)
		*walk = (struct align_walk){ .log = nps_session__log(model, task->proc, task->device) };
	return walk->log && walk->log->fitted ? walk : NULL;
}

/* Both times of a row; the end, if there is one. */
static bool align_row(struct nps_session *model, struct align_walk *walk, const struct nps_counts *counts,
		      struct nps_log_task *task)
{
	double error;

	task->end = 0;
	return walk_of(model, walk, task) &&
	       count_to_mono(model, walk, counts->start, &task->start, &error) &&
	       (!counts->end || count_to_mono(model, walk, counts->end, &task->end, &error));
}

int nps_clock_align__logs(struct nps_session *model, struct nps_vec *logs, struct nps_vec *counts)
{
	struct nps_log_task *log = logs->data;
	uint64_t first = model->begin - NPS_MIN(model->begin, DAY), last = model->end + DAY;
	size_t kept = 0, strange = 0;
	struct align_walk walk = { 0 };
	int err = nps_vec__resize(counts, logs->len);
	struct nps_counts *count = counts->data;

	for (size_t i = 0; !err && i < logs->len; i++) {
		count[kept] = (struct nps_counts){ log[i].start, log[i].end };
		log[kept] = log[i];
		if (!walk_of(model, &walk, &log[i]))
			continue;
		/* a counter far off its reads: no time that could be shown */
		if (align_row(model, &walk, &count[kept], &log[kept]) && log[kept].start > first &&
		    log[kept].start < last && log[kept].end < last)
			kept++;
		else
			strange++;
	}
	logs->len = counts->len = kept;
	if (strange) {
		nps_msg("%zu tasks of the device log are more than a day from the capture: they are damaged: "
			"left out",
			strange);
		model->losses.cut = true;
	}
	return err;
}

void nps_clock_align__blocks(struct nps_session *model)
{
	struct nps_task_block *blocks = model->blocks.data;
	struct align_walk walk = { 0 };
	size_t kept = 0;
	double error;

	for (size_t i = 0; i < model->blocks.len; i++) {
		struct nps_task_block block = blocks[i];
		const struct nps_log_task of = { .proc = block.proc, .device = block.run.device };

		if (!block.run.end || !walk_of(model, &walk, &of) ||
		    !count_to_mono(model, &walk, blocks[i].run.start, &block.run.start, &error) ||
		    !count_to_mono(model, &walk, blocks[i].run.end, &block.run.end, &error))
			continue;
		if (block.run.end >= model->begin && block.run.start <= model->end)
			blocks[kept++] = block;
	}
	model->blocks.len = kept;
}

/* --- cause and effect --- */

/* The strongest marks in either direction, by the knot of the map that they are at. */
struct marks {
	struct nps_clock_mark *late, *early; /* NULL: none yet */
	long contradict;
	double most; /* ns by which the worst of them contradicts the clock */
};

struct causality {
	struct nps_session *model;
	struct nps_log_task *log;
	const struct nps_counts *counts;
	size_t n;
	const uint32_t *match;
	const struct nps_streams *streams;
	struct marks *marks; /* by row of model->logs */
	struct align_walk walk;
	bool any;
	bool last; /* what remains is settled task by task */
};

/* COUNT was SHIFT ns or more later than by the clock (negative: earlier). Returns false without memory. */
static bool note(struct causality *c, struct align_walk *walk, uint64_t count, double shift)
{
	struct nps_device_log *logs = c->model->logs.data;
	struct marks *m = &c->marks[walk->log - logs];
	struct nps_clock_mark **list = shift > 0 ? &m->late : &m->early;
	struct nps_instant at;

	if (!nps_clock_map__at(&walk->log->clock, count, &walk->knot, &at))
		return true;
	if (fabs(shift) > at.error) {
		m->contradict++;
		m->most = NPS_MAX(m->most, fabs(shift));
		return true;
	}
	if (!*list)
		*list = calloc(walk->log->clock.n, sizeof(**list));
	if (!*list)
		return false;
	if (fabs((*list)[walk->knot].shift) < fabs(shift))
		(*list)[walk->knot] = (struct nps_clock_mark){ count, shift };
	c->any = true;
	return true;
}

/* Tasks against their submissions. */
static bool causality_starts(struct causality *c)
{
	const struct nps_sub *subs = c->model->subs.data;

	for (size_t i = 0; i < c->n; i++) {
		struct nps_log_task *task = &c->log[i];
		struct align_walk *walk;

		if (c->match[i] == NPS_NONE || task->start >= subs[c->match[i]].begin)
			continue;
		walk = walk_of(c->model, &c->walk, task);
		if (walk &&
		    !note(c, walk, c->counts[i].start, (double)(subs[c->match[i]].begin - task->start)))
			return false;
	}
	return true;
}

/* The latest end among the tasks of one stream that a wait covers, against the wait. */
static bool ends_of_stream(struct causality *c, const struct nps_key *keys, size_t n)
{
	const struct nps_sub *subs = c->model->subs.data, *first = &subs[keys[0].row];
	struct nps_sync_walk waits = nps_syncs__of(c->model, first->proc, first->device, first->stream);
	const struct nps_sync *sync;
	uint32_t latest = NPS_NONE;
	size_t at = 0;

	while ((sync = nps_syncs__next(&waits))) {
		for (; at < n && subs[keys[at].row].begin <= sync->cover; at++) {
			uint32_t row = subs[keys[at].row].task_row;

			if (row != NPS_NONE && c->log[row].end &&
			    (latest == NPS_NONE || c->log[row].end > c->log[latest].end))
				latest = row;
		}
		if (latest != NPS_NONE && c->log[latest].end > sync->done) {
			struct align_walk *walk = walk_of(c->model, &c->walk, &c->log[latest]);

			if (walk &&
			    !note(c, walk, c->counts[latest].end, -(double)(c->log[latest].end - sync->done)))
				return false;
		}
	}
	return true;
}

static bool causality_ends(struct causality *c)
{
	const struct nps_key *keys = c->streams->keys;
	bool ok = true;

	for (size_t from = 0, to; ok && from < c->streams->n; from = to) {
		for (to = from + 1; to < c->streams->n && keys[to].group == keys[from].group;)
			to++;
		ok = ends_of_stream(c, keys + from, to - from);
	}
	return ok;
}

/* Moves the clock of every log that has marks. 0 or -ENOMEM. */
static int move_clocks(struct causality *c)
{
	int err = 0;

	for (size_t i = 0; !err && i < c->model->logs.len; i++) {
		struct nps_device_log *log = &NPS_AT(&c->model->logs, struct nps_device_log, i);
		const struct nps_clock_mark *extremes[] = { c->marks[i].late, c->marks[i].early };
		size_t knots = log->clock.n, n = 0;
		struct nps_clock_mark *all;

		if (!extremes[0] && !extremes[1])
			continue;
		all = malloc(2 * knots * sizeof(*all));
		if (!all)
			return -ENOMEM;
		for (size_t list = 0; list < NPS_ARRAY_SIZE(extremes); list++)
			for (size_t k = 0; extremes[list] && k < knots; k++)
				if (extremes[list][k].shift != 0)
					all[n++] = extremes[list][k];
		err = nps_clock_map__refine(&log->clock, all, n) < 0 ? -ENOMEM : 0;
		free(all);
	}
	return err;
}

static void causality_clear(struct causality *c)
{
	for (size_t i = 0; i < c->model->logs.len; i++) {
		free(c->marks[i].late);
		free(c->marks[i].early);
		c->marks[i] = (struct marks){ 0 };
	}
	c->walk = (struct align_walk){ 0 };
	c->any = false;
}

static int one_round(struct causality *c)
{
	int err;

	causality_clear(c);
	if (!causality_starts(c) || !causality_ends(c))
		return -ENOMEM;
	err = c->any ? move_clocks(c) : 0;
	c->walk = (struct align_walk){ 0 };
	for (size_t i = 0; !err && c->any && i < c->n; i++)
		if (!align_row(c->model, &c->walk, &c->counts[i], &c->log[i]))
			c->log[i].end =
				0; /* it had a time: it has one with any clock that agrees with the reads */
	return err;
}

/* Settles the rest, within the error of the clock: a task starts at its submission at the earliest. */
static void causality_settle(struct causality *c)
{
	const struct nps_sub *subs = c->model->subs.data;

	c->walk = (struct align_walk){ 0 };
	for (size_t i = 0; i < c->n; i++) {
		struct nps_log_task *task = &c->log[i];
		uint64_t begin = c->match[i] == NPS_NONE ? 0 : subs[c->match[i]].begin;
		struct nps_instant at;

		if (task->start >= begin || !walk_of(c->model, &c->walk, task) ||
		    !nps_clock_map__at(&c->walk.log->clock, c->counts[i].start, &c->walk.knot, &at) ||
		    (double)(begin - task->start) > at.error)
			continue;
		task->start = begin;
		task->end = task->end ? NPS_MAX(task->end, begin) : 0;
	}
}

static void complain(const struct causality *c)
{
	for (size_t i = 0; i < c->model->logs.len; i++) {
		const struct nps_device_log *log = &NPS_AT(&c->model->logs, struct nps_device_log, i);

		if (c->marks[i].contradict)
			nps_msg("device %u of process %u: %ld tasks seem to start before their submission or "
				"to end after a wait for them, by up to %.0f ns, which the clock samples do "
				"not "
				"admit: their times are kept",
				log->device, c->model->procs[log->proc].pid, c->marks[i].contradict,
				c->marks[i].most);
	}
}

/* Sets the error of each log: the greatest of its clock, its first task's start and its last task's end. */
static void note_errors(struct causality *c)
{
	const struct nps_clock *samples = c->model->clocks.data;
	struct nps_device_log *log;
	double host = 0, most, error;
	uint64_t last = 0, ns;
	size_t at = 0;

	for (size_t k = 0; k < c->model->clocks.len; k++)
		host = fmax(host, nps_host_mono(samples, c->model->clocks.len, samples[k].raw, &at).error);
	c->walk = (struct align_walk){ 0 };
	for (size_t i = 0; i < c->n; i++) {
		const struct nps_log_task *row = &c->log[i];
		bool first = !i || row[-1].proc != row->proc || row[-1].device != row->device;
		bool end = i + 1 == c->n || row[1].proc != row->proc || row[1].device != row->device;

		last = NPS_MAX(first ? 0 : last, NPS_MAX(c->counts[i].start, c->counts[i].end));
		if ((!first && !end) || !walk_of(c->model, &c->walk, row))
			continue;
		log = nps_session__find_log(c->model, row->proc, row->device);
		most = log->clock.worst + host;
		if (first && count_to_mono(c->model, &c->walk, c->counts[i].start, &ns, &error))
			most = fmax(most, error);
		if (end && count_to_mono(c->model, &c->walk, last, &ns, &error))
			most = fmax(most, error);
		log->error = NPS_MAX(log->error, (uint64_t)fmin(ceil(most), 1e18));
	}
}

uint64_t nps_clock_align__error(const struct nps_session *model, const struct nps_sub *sub)
{
	const struct nps_device_log *log = nps_session__find_log(model, sub->proc, sub->device);

	return log ? log->error : 0;
}

int nps_clock_align__causality(struct nps_session *model, struct nps_vec *logs, const struct nps_vec *counts,
			       const uint32_t *match, const struct nps_streams *streams)
{
	struct causality c = { .model = model,
			       .log = logs->data,
			       .counts = counts->data,
			       .n = logs->len,
			       .match = match,
			       .streams = streams,
			       .marks = calloc(model->logs.len + 1, sizeof(struct marks)) };
	int err = 0;

	if (!c.marks)
		return -ENOMEM;
	c.any = true;
	for (int i = 0; !err && c.any && i < ROUNDS; i++)
		err = one_round(&c);
	if (err)
		goto out;
	causality_settle(&c);
	note_errors(&c);
	complain(&c);
out:
	causality_clear(&c);
	free(c.marks);
	return err;
}

/* --- what can be wrong with it --- */

int nps_clock_align__errors(struct nps_model *model, const struct nps_session *rec,
			    const struct nps_device_log *log)
{
	const struct nps_clock_host host = { .samples = rec->clocks.data,
					     .n = rec->clocks.len,
					     .offset = (int64_t)(rec->begin_real - rec->begin) };

	return log->fitted ? nps_clock_errors(model, &log->clock, &host, log->device,
					      nps_session__real(rec, rec->begin),
					      nps_session__real(rec, rec->end))
			   : 0;
}
