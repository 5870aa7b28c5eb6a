/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The task logs of a session's devices: the bytes are in CANN's own layout, and the readers of CANN's
 * directories read them (import/cann/device_records.c, import/cann/device_log.c). Times stay counts of the
 * device.
 */
#include "import/session/import.h"

#include "base/input_file.h"
#include "import/cann/breaks.h"
#include "import/cann/device_records.h"
#include "import/session/sqe_types.h"
#include "import/session/session_reader.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLED_RECORDS 65536 /* records that decide how ids are stored */
#define SNIFFED 8 /* records that decide the generation */

/* Sub-task types of FFTS+ as logged. */
enum { SUB_AIC = 0, SUB_AIV = 1, SUB_MIX_AIC = 6, SUB_MIX_AIV = 7 };

struct log {
	struct nps_session *model;
	struct nps_vec *tasks; /* struct nps_log_task */
	const struct nps_map *streams;
	uint32_t proc;
	int proffd;
};

/* --- what the files are --------------------------------------------------------------------------- */

/* The first bytes of a stream, at most SIZE. */
static size_t first_bytes(const struct nps_cann_dir *dir, struct nps_model *scratch, const char *stem,
			  uint8_t *buf, size_t size)
{
	struct nps_slice_reader reader;
	const uint8_t *p;
	char base[64];
	size_t n = 0;

	snprintf(base, sizeof(base), "%s.%u", stem, dir->device);
	if (!nps_slice_reader__open(&reader, scratch, &dir->files, base, 1, NPS_NO_MAGIC))
		while (n < size && (p = nps_slice_reader__next(&reader)))
			buf[n++] = *p;
	nps_slice_reader__close(&reader);
	return n;
}

/* The chip by its log, NPS_NONE without one. The 950 has shorter records, older chips have another log. */
static uint32_t detect_chip(const struct nps_cann_dir *dir, struct nps_model *scratch)
{
	const struct nps_log_format *stars = nps_log_format("stars_soc.data");
	uint8_t buf[64 * SNIFFED];
	size_t n = first_bytes(dir, scratch, stars->file, buf, sizeof(buf)), halves = 0;
	char base[64];

	snprintf(base, sizeof(base), "hwts.data.%u", dir->device);
	if (!n)
		return nps_slices__size(&dir->files, base) ? NPS_CHIP_910A : NPS_NONE;
	for (size_t at = stars->bytes_v6; at + stars->bytes_v6 <= n; at += stars->bytes)
		halves += nps_u16(buf + at + stars->magic.offset) == stars->magic.value;
	return halves > n / stars->bytes / 2 ? NPS_CHIP_950 : NPS_CHIP_910B;
}

/* The way of ids is not in the log: it is the one whose streams the host submitted to. */
static bool is_expanded(const struct log *log, const struct nps_cann_dir *dir, struct nps_model *scratch)
{
	const struct nps_log_format *stars = nps_log_format("stars_soc.data");
	uint64_t device = (uint64_t)log->proc << 32 | dir->device << 16;
	size_t bits = 0, expanded = 0, sampled = 0;
	struct nps_log_record record;
	uint32_t stream, task;
	struct nps_slice_reader reader;
	const uint8_t *p;
	char base[64];

	snprintf(base, sizeof(base), "%s.%u", stars->file, dir->device);
	if (!nps_slice_reader__open(&reader, scratch, &dir->files, base, stars->bytes, stars->magic))
		while (sampled++ < SAMPLED_RECORDS && (p = nps_slice_reader__next(&reader))) {
			nps_log__decode(stars, p, &record);
			if (!record.mangled)
				continue;
			nps_log__unmangle(NPS_IDS_BITS, &record, &stream, &task);
			bits += nps_map__get(log->streams, device | stream) != NPS_NONE;
			nps_log__unmangle(NPS_IDS_EXPANDED, &record, &stream, &task);
			expanded += nps_map__get(log->streams, device | stream) != NPS_NONE;
		}
	nps_slice_reader__close(&reader);
	return expanded > bits;
}

static int open_device(struct log *log, struct nps_cann_capture *capture, unsigned int device,
		       struct nps_model *scratch)
{
	const struct nps_device *known = &log->model->devices[device];
	struct nps_cann_dir *dir = &capture->devices[capture->ndevices];
	char path[64];
	int err;

	snprintf(path, sizeof(path), "device_%u/data", device);
	*dir = (struct nps_cann_dir){ .fd = -1, .device = device, .rank = -1, .level = -1 };
	dir->datafd = nps_input_dir__open(log->proffd, path);
	if (dir->datafd < 0)
		return 0; /* which has been reported, or there is none */
	err = nps_slices__open(&dir->files, dir->datafd);
	if (err) {
		close(dir->datafd);
		return err;
	}
	capture->ndevices++;
	dir->chip = known->has_platform ? known->platform : NPS_CHIP_910B;
	dir->device_clock = (struct nps_cann_clock){ .known = true, .hz = NPS_NS_PER_S };
	capture->v6 = nps_cann_dir__v6(dir);
	capture->expanded = !capture->v6 && is_expanded(log, dir, scratch);
	return 0;
}

/* --- from runs to rows ---------------------------------------------------------------------------- */

/* The core that a sub-task of FFTS+ runs on. */
static uint8_t core_of(uint8_t sub_type)
{
	switch (sub_type) {
	case SUB_AIV:
		return NPS_SQE_AIV;
	case SUB_MIX_AIC:
		return NPS_CORE_MIX_AIC;
	case SUB_MIX_AIV:
		return NPS_CORE_MIX_AIV;
	default:
		return NPS_SQE_AI_CORE;
	}
}

/* The runtime's types of tasks that the scheduler of older chips logs. Most of the others are upkeep. */
static uint8_t track_type(uint8_t type)
{
	static const struct {
		uint8_t runtime, sqe;
	} types[] = { { 0, NPS_SQE_AI_CORE },	     { 1, NPS_SQE_AI_CPU },	  { 2, NPS_SQE_EVENT_RECORD },
		      { 3, NPS_SQE_EVENT_WAIT },     { 5, NPS_SQE_PCIE_DMA },	  { 14, NPS_SQE_NOTIFY_WAIT },
		      { 15, NPS_SQE_NOTIFY_RECORD }, { 53, NPS_SQE_CMO },	  { 55, NPS_SQE_WRITE_VALUE },
		      { 66, NPS_SQE_AIV },	     { 98, NPS_SQE_PLACE_HOLDER } };

	for (size_t i = 0; i < NPS_ARRAY_SIZE(types); i++)
		if (types[i].runtime == type)
			return types[i].sqe;
	return NPS_SQE_UNLISTED;
}

struct log_rows {
	struct log *log;
	struct nps_cann_capture *capture;
	struct nps_map whole; /* device, stream, task -> the latest row that is no sub-task */
	const struct nps_row_pair *pmu; /* the next one */
};

/* The counters of one more part of a task. */
static void run_pmu_add(struct nps_run_pmu *to, const struct nps_run_pmu *from)
{
	for (unsigned int core = 0; core < 2; core++) {
		to->cycles[core] = nps_add_sat(to->cycles[core], from->cycles[core]);
		to->blocks[core] += NPS_MIN(from->blocks[core], UINT32_MAX - to->blocks[core]);
		for (unsigned int i = 0; i < NPS_CANN_EVENTS; i++)
			to->values[core][i] = nps_add_sat(to->values[core][i], from->values[core][i]);
	}
	if (from->main > 1) /* there is less than all */
		to->main = from->main;
}

/* Counters of a task: its own, or those of all its sub-tasks together. */
static int keep_pmu(struct log_rows *rows, struct nps_log_task *row, uint32_t from, bool sub)
{
	const struct nps_run_pmu *part = &NPS_AT(&rows->capture->run_pmus, struct nps_run_pmu, from);
	struct nps_run_pmu *to;

	if (row->pmu != NPS_NONE && !(sub && row->sub_pmu))
		return 0;
	if (row->pmu != NPS_NONE) {
		run_pmu_add(&NPS_AT(&rows->log->model->run_pmus, struct nps_run_pmu, row->pmu), part);
		return 0;
	}
	to = nps_vec__push(&rows->log->model->run_pmus);
	if (!to)
		return -errno;
	*to = *part;
	row->pmu = rows->log->model->run_pmus.len - 1;
	row->sub_pmu = sub;
	return 0;
}

/* The row of the task that RUN is, or is a part of; NULL: it is one of its own. */
static struct nps_log_task *whole_of(const struct log_rows *rows, const struct nps_cann_run *run,
				     uint64_t key)
{
	uint32_t at = nps_map__get(&rows->whole, key);
	struct nps_log_task *row = at == NPS_NONE ? NULL : &NPS_AT(rows->log->tasks, struct nps_log_task, at);

	if (!row || row->device != run->device || run->start > (row->end ? row->end : UINT64_MAX))
		return NULL;
	if (run->source == NPS_RUN_CONTEXT)
		return row;
	/* The log of the cores and the scheduler's word are about the same run. */
	return row->track != (run->source == NPS_RUN_TRACK) ? row : NULL;
}

/* ROW has a sub-task. Of those that run on AI or vector cores each is counted. */
static void note_context(struct nps_log_task *row, const struct nps_cann_run *run, uint32_t pmu)
{
	row->has_subs = true;
	if (run->type != SUB_AIC && run->type != SUB_AIV && run->type != SUB_MIX_AIC &&
	    run->type != SUB_MIX_AIV)
		return;
	row->core = core_of(run->type);
	row->core_subs += row->core_subs < UINT8_MAX;
	row->sub_uncounted |= pmu == NPS_NONE;
}

static int log_add_row(struct log_rows *rows, const struct nps_cann_run *run, uint32_t pmu)
{
	uint32_t stream = run->stream, task = run->task;
	uint64_t key = nps_hash2((uint64_t)run->device << 32 | stream, task);
	struct nps_log_task *row = whole_of(rows, run, key);
	uint8_t type = run->type;
	int err;

	if (row) {
		if (run->source == NPS_RUN_CONTEXT) {
			note_context(row, run, pmu);
		} else if (row->track) { /* the cores' times are more exact */
			row->start = run->start;
			row->end = run->end;
			row->track = false;
			row->blocks = run->blocks;
		}
		return pmu == NPS_NONE ? 0 : keep_pmu(rows, row, pmu, run->source == NPS_RUN_CONTEXT);
	}
	if (rows->log->tasks->len >= NPS_NONE - 1)
		return -EOVERFLOW;
	row = nps_vec__push(rows->log->tasks);
	if (!row)
		return -errno;
	if (run->source == NPS_RUN_TRACK)
		type = track_type(type);
	else if (run->source == NPS_RUN_CONTEXT)
		type = NPS_SQE_AI_CORE;
	else
		type = nps_sqe_type(rows->capture->devices[0].chip, type);
	*row = (struct nps_log_task){ .start = run->start,
				      .end = run->end,
				      .proc = rows->log->proc,
				      .context = NPS_NONE,
				      .pmu = NPS_NONE,
				      .blocks = run->blocks,
				      .device = run->device,
				      .stream = stream,
				      .task = task,
				      .whole_id = rows->capture->v6,
				      .track = run->source == NPS_RUN_TRACK,
				      .sqe_type = type,
				      .core = type };
	if (run->source == NPS_RUN_CONTEXT)
		note_context(row, run, pmu);
	err = nps_map__put(&rows->whole, key, rows->log->tasks->len - 1);
	if (!err && pmu != NPS_NONE)
		err = keep_pmu(rows, row, pmu, run->source == NPS_RUN_CONTEXT);
	return err;
}

static int log_add_rows(struct log *log, struct nps_cann_capture *capture)
{
	struct log_rows rows = { .log = log, .capture = capture };
	uint32_t steps = 0;
	int err = nps_ext_sort__finish(&capture->pmu_order);

	rows.pmu = err ? NULL : nps_ext_sort__next(&capture->pmu_order);
	for (size_t i = 0; !err && i < capture->runs.len; i++) {
		uint32_t pmu = NPS_NONE;

		/* Nothing may be left behind: it would hold up all that follow. */
		while (rows.pmu && rows.pmu->key.high <= i) {
			if (pmu == NPS_NONE)
				pmu = rows.pmu->key.low;
			rows.pmu = nps_ext_sort__next(&capture->pmu_order);
		}
		err = log_add_row(&rows, &NPS_AT(&capture->runs, struct nps_cann_run, i), pmu);
		nps_cann_capture__step(&capture->runs, &steps);
	}
	nps_map__free(&rows.whole);
	return err ? err : capture->pmu_order.err;
}

static int add_blocks(struct log *log, struct nps_cann_capture *capture)
{
	uint32_t steps = 0;

	for (size_t i = 0; i < capture->block_runs.len; i++) {
		struct nps_task_block *block;

		nps_cann_capture__step(&capture->block_runs, &steps);
		block = nps_vec__push(&log->model->blocks);
		if (!block)
			return -errno;
		*block = (struct nps_task_block){ log->proc, capture->v6,
						  NPS_AT(&capture->block_runs, struct nps_block_run, i) };
	}
	return 0;
}

static int by_count(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int add_breaks(struct nps_vec *to, const struct nps_vec *from)
{
	for (size_t i = 0; i < from->len; i++) {
		uint64_t *at = nps_vec__push(to);

		if (!at)
			return -errno;
		*at = NPS_AT(from, uint64_t, i);
	}
	if (to->len)
		qsort(to->data, to->len, sizeof(uint64_t), by_count);
	return 0;
}

static int note_log(struct log *log, const struct nps_cann_capture *capture)
{
	const struct nps_cann_dir *dir = &capture->devices[0];
	const struct nps_log_counts *n = &capture->log_counts;
	/* those of older chips are as long */
	const struct nps_log_format *tasks = nps_log_format("stars_soc.data");
	struct nps_device_log *device;
	struct nps_breaks old = { 0 };
	char base[64];
	int err;

	if (!dir->log.records && !dir->log.lost_bytes)
		return 0;
	snprintf(base, sizeof(base), "aicore.data.%u", dir->device);
	device = nps_session__log(log->model, log->proc, dir->device);
	if (!device)
		return -ENOMEM;
	device->has_log = dir->log.records > 0;
	device->records += dir->log.records;
	device->gaps += dir->log.gaps;
	device->task_records += dir->log.task_records;
	device->task_gaps += dir->log.task_gaps;
	device->orphans += n->no_start;
	device->stray_counters += n->no_task;
	device->incomplete += n->no_end + n->open + n->no_start + n->repeated;
	device->record_bytes = capture->v6 ? tasks->bytes_v6 : tasks->bytes;
	err = nps_breaks__read(&old, dir->datafd, base);
	device->pmu_unsure |= old.n > 1; /* one is where it begins */
	nps_breaks__free(&old);
	if (err)
		return err;
	err = add_breaks(&device->task_breaks, &capture->task_breaks);
	if (err)
		return err;
	return add_breaks(&device->pmu_breaks, &capture->pmu_breaks);
}

/* What the readers found that is no record, or could not be read. */
static void report_damage(struct log *log, const struct nps_model *scratch)
{
	for (size_t i = 0; i < scratch->losses.len; i++) {
		const struct nps_lost *lost = &NPS_AT(&scratch->losses, struct nps_lost, i);

		/* Gaps and tasks without an end are reported elsewhere. */
		if (!strstr(lost->what, "no records") && !strstr(lost->what, "slices") &&
		    !strstr(lost->what, "unknown kinds") && !strstr(lost->what, "impossible times"))
			continue;
		nps_msg("%" PRIu64 " %s of process %u: they are damaged: left out", lost->count, lost->what,
			log->model->procs[log->proc].pid);
		log->model->losses.cut = true;
	}
}

static int read_device(struct log *log, unsigned int device)
{
	struct nps_model *scratch = calloc(1, sizeof(*scratch));
	struct nps_cann_capture *capture = calloc(1, sizeof(*capture));
	int err = scratch && capture ? nps_model__init(scratch, log->model->tmpfd, &log->model->strings)
				     : -ENOMEM;

	if (err) {
		free(scratch);
		free(capture);
		return err;
	}
	scratch->progress = log->model->progress;
	nps_cann_capture__init(capture, scratch);
	capture->devices = calloc(1, sizeof(*capture->devices));
	err = capture->devices ? open_device(log, capture, device, scratch) : -ENOMEM;
	scratch->losses.len = 0; /* looks before the reading */
	if (!err && capture->ndevices)
		err = nps_cann_capture__devices(capture);
	if (!err && capture->ndevices)
		err = nps_cann_capture__aicore(capture);
	if (!err && capture->ndevices)
		err = note_log(log, capture);
	if (!err && capture->ndevices)
		err = log_add_rows(log, capture);
	if (!err && capture->ndevices)
		err = add_blocks(log, capture);
	report_damage(log, scratch);
	nps_cann_capture__free(capture);
	nps_model__free(scratch);
	free(capture);
	free(scratch);
	return err;
}

static int read_process(struct log *log, struct nps_proc *proc)
{
	const char *name = nps_json_str(proc->json, "prof_dir", NULL);
	int err = 0;

	if (!name)
		return 0;
	if (!*name || strchr(name, '/') || name[0] == '.') {
		nps_msg("prof_dir '%s' of process %u is no directory of the session: session.json is "
			"damaged: left out",
			name, proc->pid);
		return 0;
	}
	log->proffd = nps_input_dir__open(log->model->dirfd, name);
	if (log->proffd < 0) {
		nps_msg("cannot open %s: %s: device times of process %u are host bounds", name,
			strerror(-log->proffd), proc->pid);
		log->model->losses.cut = true;
		return 0;
	}
	for (unsigned int device = 0; !err && device < NPS_MAX_DEVICES; device++) {
		char path[32];

		snprintf(path, sizeof(path), "device_%u", device);
		if (nps_input__exists(log->proffd, path))
			err = read_device(log, device);
	}
	close(log->proffd);
	return err;
}

/* Sets the chip of the device, if the log of one process shows it. */
static int read_log(struct nps_session *model, struct nps_model *scratch, int proffd, unsigned int device)
{
	struct nps_cann_dir dir = { .fd = -1, .device = device, .rank = -1, .level = -1 };
	uint32_t chip;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "device_%u/data", device);
	dir.datafd = nps_input_dir__open(proffd, path);
	if (dir.datafd < 0)
		return 0; /* the reader of the log reports it */
	err = nps_slices__open(&dir.files, dir.datafd);
	if (err)
		goto out;
	chip = detect_chip(&dir, scratch);
	model->devices[device].has_platform = chip != NPS_NONE;
	model->devices[device].platform = chip != NPS_NONE ? chip : 0;
	nps_slices__close(&dir.files);
out:
	close(dir.datafd);
	return err;
}

int nps_import__chips(struct nps_session *model)
{
	struct nps_model *scratch = calloc(1, sizeof(*scratch));
	int err = scratch ? nps_model__init(scratch, model->tmpfd, &model->strings) : -ENOMEM;

	if (err) {
		free(scratch);
		return err;
	}
	for (uint32_t p = 0; !err && p < model->nprocs; p++) {
		const char *name = nps_json_str(model->procs[p].json, "prof_dir", NULL);
		int fd = -1;

		if (name && *name && !strchr(name, '/') && name[0] != '.')
			fd = nps_input_dir__open(model->dirfd, name);
		for (unsigned int device = 0; fd >= 0 && !err && device < NPS_MAX_DEVICES; device++)
			if (!model->devices[device].has_platform)
				err = read_log(model, scratch, fd, device);
		if (fd >= 0)
			close(fd);
	}
	nps_model__free(scratch);
	free(scratch);
	return err;
}

int nps_import__logs(struct nps_session *model, const struct nps_map *streams_seen, struct nps_vec *tasks)
{
	struct log log = { .model = model, .tasks = tasks, .streams = streams_seen };
	int err = 0;

	for (log.proc = 0; !err && log.proc < model->nprocs; log.proc++)
		err = read_process(&log, &model->procs[log.proc]);
	return err;
}
