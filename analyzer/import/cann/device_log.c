/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One walk over the logs of all devices: starts and ends become runs, in order of start, and a counter goes
 * to the run that is open at its time (prof-raw 4.2, 4.6).
 */
#include "base/progress.h"
#include "import/cann/batches.h"
#include "import/cann/device_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MOST (1U << 20) /* starts whose ends are waited for */

/* Which task a record is about. */
struct which {
	uint32_t stream, task, context;
	uint16_t device;
	bool track; /* from the scheduler's log, which is beside the log of the cores that ran it */
};

struct open_run {
	struct which which;
	uint32_t run, pmu; /* rows; pmu NPS_NONE: no counters yet */
	/*
	 * Another run of the same task began and ended while this one was open. If this one's end is still
	 * to come, the two ends were exchanged, as ends come in the order of starts; if not, this one's end
	 * was lost.
	 */
	uint32_t later;
	uint64_t threads; /* that are open, by bits; what has no threads is thread 0 */
	bool used;
	bool threaded; /* there were several */
};

struct device_log {
	struct nps_cann_capture *capture;
	struct nps_device_records records;
	struct nps_batches batches;
	struct open_run *open;
	size_t room, nopen;
	uint32_t steps, pmu_steps, block_steps;
};

static struct nps_cann_run *run_at(const struct device_log *log, uint32_t row)
{
	return &NPS_AT(&log->capture->runs, struct nps_cann_run, row);
}

/* --- open runs: a hash table with at most the latest two runs of a task --------------------------- */

static size_t home(const struct device_log *log, const struct which *which)
{
	return nps_hash2((uint64_t)which->stream << 32 | which->task,
			 (uint64_t)which->track << 48 | (uint64_t)which->device << 32 | which->context) &
	       (log->room - 1);
}

static bool is_same(const struct which *a, const struct which *b)
{
	return a->task == b->task && a->stream == b->stream && a->context == b->context &&
	       a->device == b->device && a->track == b->track;
}

static struct which which_of(const struct nps_device_event *event)
{
	return (struct which){ .stream = event->stream,
			       .task = event->task,
			       .context = event->context,
			       .device = event->device,
			       .track = event->source == NPS_RUN_TRACK };
}

/* The latest open run of the task, and in *OLDER the one before. */
static struct open_run *open_run_find(const struct device_log *log, const struct which *which,
				      struct open_run **older)
{
	struct open_run *latest = NULL;
	size_t i;

	*older = NULL;
	if (!log->room)
		return NULL;
	for (i = home(log, which); log->open[i].used; i = (i + 1) & (log->room - 1)) {
		struct open_run *open = &log->open[i];

		if (!is_same(&open->which, which))
			continue;
		if (!latest || open->run > latest->run) {
			*older = latest;
			latest = open;
		} else {
			*older = open;
		}
	}
	return latest;
}

static void close_run(struct device_log *log, struct open_run *open)
{
	size_t mask = log->room - 1, hole = open - log->open;

	log->nopen--;
	for (size_t i = (hole + 1) & mask; log->open[i].used; i = (i + 1) & mask) {
		const struct open_run *at = &log->open[i];
		size_t from = home(log, &at->which);

		/* Only what was pushed past the hole may fill it. */
		if (((i - from) & mask) < ((i - hole) & mask))
			continue;
		log->open[hole] = *at;
		hole = i;
	}
	log->open[hole].used = false;
}

static void insert(struct device_log *log, const struct open_run *open)
{
	size_t i = home(log, &open->which);

	while (log->open[i].used)
		i = (i + 1) & (log->room - 1);
	log->open[i] = *open;
}

static int open_runs_grow(struct device_log *log)
{
	struct device_log bigger = { .room = log->room ? log->room * 2 : 1024 };

	bigger.open = calloc(bigger.room, sizeof(*bigger.open));
	if (!bigger.open)
		return -ENOMEM;
	for (size_t i = 0; i < log->room; i++)
		if (log->open[i].used)
			insert(&bigger, &log->open[i]);
	free(log->open);
	log->open = bigger.open;
	log->room = bigger.room;
	return 0;
}

/* --- events --------------------------------------------------------------------------------------- */

static uint32_t run_add(struct device_log *log, const struct nps_device_event *event)
{
	struct nps_cann_capture *capture = log->capture;
	struct nps_cann_run *run = nps_cann_capture__push(capture, &capture->runs);

	if (!run)
		return NPS_NONE;
	nps_cann_capture__step(&capture->runs, &log->steps);
	*run = (struct nps_cann_run){ .start = event->key.high,
				      .stream = event->stream,
				      .task = event->task,
				      .context = event->context,
				      .device = event->device,
				      .source = event->source,
				      .type = event->type };
	if (capture->batches)
		capture->err = nps_batches__task(&log->batches, event->device, event->stream, event->task,
						 capture->runs.len - 1);
	return capture->runs.len - 1;
}

/* A context can have more threads than there are bits: threads that share a bit count as one. */
static uint64_t event_thread(const struct nps_device_event *event)
{
	return 1ULL << (event->thread & 63);
}

/*
 * A context lasts from the start of its first thread to the end of its last one. A context that is left
 * over from another run of the task, because one of its ends was lost, does not belong to this run.
 */
static bool is_another_thread(const struct device_log *log, struct open_run *open,
			      const struct nps_device_event *event)
{
	struct which which = which_of(event);
	const struct open_run *whole;
	struct open_run *older;

	if (!open || open->threads & event_thread(event))
		return false;
	which.context = NPS_NO_CONTEXT;
	whole = open_run_find(log, &which, &older);
	if (whole && run_at(log, whole->run)->start > run_at(log, open->run)->start)
		return false;
	open->threads |= event_thread(event);
	open->threaded = true;
	return true;
}

/* Room for one more. */
static bool open_run_reserve(struct device_log *log)
{
	if (log->nopen * 2 >= log->room)
		log->capture->err = open_runs_grow(log);
	return !log->capture->err;
}

/* Blocks are open beside their tasks, so their key is a number that no context has. */
static struct which which_block(const struct nps_device_event *event)
{
	struct which which = which_of(event);

	which.context = 1U << 31 | event->row << 30 | (event->context & UINT16_MAX);
	return which;
}

static void block_start(struct device_log *log, const struct nps_device_event *event)
{
	const struct which which = which_block(event);
	struct open_run *older, *latest = open_run_find(log, &which, &older);
	struct nps_block_run *run;
	struct open_run open;

	if (latest) { /* of another run of the task: its end was lost */
		log->capture->log_counts.half_blocks++;
		close_run(log, latest);
	}
	if (log->nopen == OPEN_MOST || !open_run_reserve(log)) {
		log->capture->log_counts.half_blocks++;
		return;
	}
	run = nps_cann_capture__push(log->capture, &log->capture->block_runs);
	if (!run)
		return;
	nps_cann_capture__step(&log->capture->block_runs, &log->block_steps);
	*run = (struct nps_block_run){ .start = event->key.high,
				       .stream = event->stream,
				       .task = event->task,
				       .device = event->device,
				       .block = event->context,
				       .core = event->type,
				       .vector = event->row };
	open = (struct open_run){ .which = which,
				  .run = log->capture->block_runs.len - 1,
				  .pmu = NPS_NONE,
				  .later = NPS_NONE,
				  .used = true };
	log->nopen++;
	insert(log, &open);
}

static void block_end(struct device_log *log, const struct nps_device_event *event)
{
	const struct which which = which_block(event);
	struct open_run *older, *open = open_run_find(log, &which, &older);

	if (!open) {
		log->capture->log_counts.half_blocks++;
		return;
	}
	NPS_AT(&log->capture->block_runs, struct nps_block_run, open->run).end = event->key.high;
	close_run(log, open);
}

static void run_start(struct device_log *log, const struct nps_device_event *event)
{
	const struct which which = which_of(event);
	struct open_run *older, *latest = open_run_find(log, &which, &older), open;

	if (is_another_thread(log, latest, event))
		return;
	if (latest && run_at(log, latest->run)->start == event->key.high) {
		log->capture->log_counts.repeated++;
		return;
	}
	if (latest && latest->later != NPS_NONE)
		older = latest; /* runs after it have ended: it has lost its end */
	if (older) {
		log->capture->log_counts.no_end++;
		close_run(log, older);
	}
	if (log->nopen == OPEN_MOST) {
		log->capture->log_counts.no_end++;
		return;
	}
	if (!open_run_reserve(log))
		return;
	open = (struct open_run){ .which = which,
				  .run = run_add(log, event),
				  .pmu = NPS_NONE,
				  .later = NPS_NONE,
				  .threads = event_thread(event),
				  .used = true };
	if (open.run == NPS_NONE)
		return;
	log->nopen++;
	insert(log, &open);
}

static void run_end(struct device_log *log, const struct nps_device_event *event)
{
	const struct which which = which_of(event);
	struct open_run *older, *latest = open_run_find(log, &which, &older);

	/* A thread of the run before, whose other threads it outlives. */
	if (latest && older && !(latest->threads & event_thread(event)) &&
	    older->threads & event_thread(event))
		latest = older;
	if (!latest || !(latest->threads & event_thread(event))) {
		log->capture->log_counts.no_start++;
		return;
	}
	latest->threads &= ~event_thread(event);
	if (latest->threads) {
		run_at(log, latest->run)->end = event->key.high;
		return;
	}
	if (latest->later != NPS_NONE) {
		struct nps_cann_run *later = run_at(log, latest->later);

		run_at(log, latest->run)->end = later->end;
		later->end = event->key.high;
	} else {
		run_at(log, latest->run)->end = event->key.high;
		if (older)
			older->later = latest->run;
	}
	close_run(log, latest);
}

/* The counters of an open run; NULL without memory. */
static struct nps_run_pmu *pmu_of(struct device_log *log, struct open_run *open)
{
	struct nps_cann_capture *capture = log->capture;
	struct nps_run_pmu *pmu;
	struct nps_row_pair *pair;

	if (open->pmu != NPS_NONE)
		return &NPS_AT(&capture->run_pmus, struct nps_run_pmu, open->pmu);
	pmu = nps_cann_capture__push(capture, &capture->run_pmus);
	pair = pmu ? nps_cann_capture__sort(capture, &capture->pmu_order) : NULL;
	if (!pair)
		return NULL;
	nps_cann_capture__step(&capture->run_pmus, &log->pmu_steps);
	open->pmu = capture->run_pmus.len - 1;
	*pair = (struct nps_row_pair){ { open->run, open->pmu } };
	pmu->main = 2;
	return pmu;
}

/* The open run to which a record other than a start or an end belongs: the cores' own, if they have a log. */
static struct open_run *find_any(const struct device_log *log, const struct nps_device_event *event,
				 uint32_t context)
{
	struct which which = which_of(event);
	struct open_run *older, *open;

	which.context = context;
	which.track = false;
	open = open_run_find(log, &which, &older);
	if (open)
		return open;
	which.track = true;
	return open_run_find(log, &which, &older);
}

static void run_count(struct device_log *log, const struct nps_device_event *event)
{
	const struct nps_counters *counters =
		&NPS_AT(&log->records.counters, struct nps_counters, event->row);
	struct open_run *open = find_any(log, event, event->context);
	unsigned int core = counters->core;
	struct nps_run_pmu *pmu;

	if (!open && event->context != NPS_NO_CONTEXT)
		open = find_any(log, event, NPS_NO_CONTEXT); /* logged as a whole */
	if (!open) {
		log->capture->log_counts.no_task++;
		return;
	}
	pmu = pmu_of(log, open);
	if (!pmu || (counters->block && core == pmu->main))
		return;
	if (!counters->block && !open->threaded) {
		pmu->main = core;
		pmu->cycles[core] = counters->cycles;
		memcpy(pmu->values[core], counters->values, sizeof(counters->values));
		return;
	}
	if (counters->block)
		pmu->blocks[core] += !log->capture->v6; /* there one record is of all the other blocks */
	else
		pmu->main = core;
	pmu->cycles[core] = nps_add_sat(pmu->cycles[core], counters->cycles);
	for (int i = 0; i < NPS_CANN_EVENTS; i++)
		pmu->values[core][i] = nps_add_sat(pmu->values[core][i], counters->values[i]);
}

static void run_add_blocks(struct device_log *log, const struct nps_device_event *event)
{
	struct open_run *open = find_any(log, event, NPS_NO_CONTEXT);

	if (open)
		run_at(log, open->run)->blocks = event->row;
}

static void log_add_event(struct device_log *log, const struct nps_device_event *event)
{
	switch ((enum nps_device_kind)(event->key.low >> 56)) {
	case NPS_DEVICE_FLIP:
		if (log->capture->batches)
			log->capture->err = nps_batches__flip(&log->batches, event->device, event->stream,
							      event->row, event->task);
		break;
	case NPS_DEVICE_PMU:
		run_count(log, event);
		break;
	case NPS_DEVICE_BLOCKS:
		run_add_blocks(log, event);
		break;
	case NPS_DEVICE_START:
		(event->source == NPS_RUN_BLOCK ? block_start : run_start)(log, event);
		break;
	case NPS_DEVICE_END:
		(event->source == NPS_RUN_BLOCK ? block_end : run_end)(log, event);
		break;
	}
}

static void report_losses(struct nps_model *m, const struct nps_log_counts *n)
{
	nps_model__lost(m, n->no_end + n->open, "starts of tasks without an end");
	nps_model__lost(m, n->no_start, "ends of tasks without a start");
	nps_model__lost(m, n->repeated, "starts of tasks that repeat another one");
	nps_model__lost(m, n->half_blocks, "starts or ends of blocks without the other");
	nps_model__lost(m, n->no_task, "counters of no task");
}

/* What runs on when the log ends. */
static uint64_t open_tasks(const struct device_log *log)
{
	uint64_t n = 0;

	for (size_t i = 0; i < log->room; i++)
		n += log->open[i].used &&
		     (log->open[i].which.context == NPS_NO_CONTEXT || log->open[i].which.context < 1U << 31);
	return n;
}

static void log_walk(struct device_log *log)
{
	struct nps_cann_capture *capture = log->capture;
	const struct nps_device_event *event;
	uint32_t steps = 0;

	nps_progress__stage(capture->model->progress, "matching tasks", log->records.events.total, "records");
	while (!capture->err && (event = nps_ext_sort__next(&log->records.events))) {
		nps_progress__add(capture->model->progress, 1);
		nps_cann_capture__step(&log->records.counters, &steps);
		log_add_event(log, event);
	}
	if (!capture->err)
		capture->err = log->records.events.err;
	capture->log_counts.open = open_tasks(log);
	report_losses(capture->model, &capture->log_counts);
}

static uint32_t *run_batch(void *arg, uint32_t row)
{
	struct nps_cann_capture *capture = arg;

	return &NPS_AT(&capture->runs, struct nps_cann_run, row).batch;
}

int nps_cann_capture__devices(struct nps_cann_capture *capture)
{
	struct device_log log = { .capture = capture };

	nps_batches__init(&log.batches, capture->model->tmpfd, run_batch, capture);
	if (!nps_device_records__read(&log.records, capture))
		log_walk(&log);
	nps_device_records__free(&log.records);
	nps_batches__free(&log.batches);
	free(log.open);
	return capture->err;
}
