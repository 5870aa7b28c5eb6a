/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of chips before Stars. Their records have no times, but come in the order in which tasks end, as
 * the task log does. Tasks of one stream end in the order of their starts, so the first record of a task
 * belongs to its first run (prof-raw 2.5).
 */
#include "import/cann/capture.h"
#include "import/cann/device_records.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RECORD 128
#define HWTS_AI_CORE 0
#define HWTS_VECTOR_CORE 2

struct aicore_counter_row {
	struct nps_sort_key key; /* high: device, stream, task; low: row, of counters or runs */
};

static uint64_t counters_task_key(uint32_t device, uint32_t stream, uint32_t task)
{
	return (uint64_t)device << 48 | (uint64_t)(stream & 0xffff) << 32 | task;
}

static void aicore_read_file(struct nps_cann_capture *capture, const struct nps_cann_dir *dir,
			     const char *name, uint8_t core, struct nps_vec *counters,
			     struct nps_ext_sort *records)
{
	struct nps_slice_reader reader;
	uint32_t stream, task;
	const uint8_t *p;
	char base[64];
	int err;

	snprintf(base, sizeof(base), "%s.%u", name, dir->device);
	err = nps_slice_reader__open(&reader, capture->model, &dir->files, base, RECORD, NPS_NO_MAGIC);
	capture->err = capture->err ? capture->err : err;
	while (!capture->err && (p = nps_slice_reader__next(&reader))) {
		struct nps_counters *to = nps_cann_capture__push(capture, counters);
		struct aicore_counter_row *row = to ? nps_cann_capture__sort(capture, records) : NULL;

		if (!row)
			break;
		nps_log__old_counters(p, to, &stream, &task);
		to->core = core;
		row->key = (struct nps_sort_key){ counters_task_key(dir->device, stream, task),
						  counters->len - 1 };
	}
	nps_slice_reader__close(&reader);
	nps_vec__cool(counters);
}

static void add_runs(struct nps_cann_capture *capture, struct nps_ext_sort *runs)
{
	uint32_t steps = 0;

	for (size_t i = 0; !capture->err && i < capture->runs.len; i++) {
		const struct nps_cann_run *run = &NPS_AT(&capture->runs, struct nps_cann_run, i);
		struct aicore_counter_row *row;

		nps_cann_capture__step(&capture->runs, &steps);
		if (run->source != NPS_RUN_HWTS || !run->end ||
		    (run->type != HWTS_AI_CORE && run->type != HWTS_VECTOR_CORE))
			continue;
		row = nps_cann_capture__sort(capture, runs);
		if (row)
			row->key =
				(struct nps_sort_key){ counters_task_key(run->device, run->stream, run->task),
						       i };
	}
}

static void run_add_counters(struct nps_cann_capture *capture, uint64_t run,
			     const struct nps_counters *counters)
{
	struct nps_run_pmu *pmu = nps_cann_capture__push(capture, &capture->run_pmus);
	struct nps_row_pair *pair = pmu ? nps_cann_capture__sort(capture, &capture->pmu_order) : NULL;

	if (!pair)
		return;
	pmu->main = counters->core;
	pmu->cycles[pmu->main] = counters->cycles;
	memcpy(pmu->values[pmu->main], counters->values, sizeof(counters->values));
	*pair = (struct nps_row_pair){ { run, capture->run_pmus.len - 1 } };
}

static void counters_join_runs(struct nps_cann_capture *capture, struct nps_ext_sort *records,
			       struct nps_ext_sort *runs, const struct nps_vec *counters)
{
	const struct aicore_counter_row *record = nps_ext_sort__next(records),
					*run = nps_ext_sort__next(runs);
	uint64_t alone = 0;

	while (!capture->err && record) {
		if (run && run->key.high < record->key.high) {
			run = nps_ext_sort__next(runs);
			continue;
		}
		if (run && run->key.high == record->key.high) {
			run_add_counters(capture, run->key.low,
					 &NPS_AT(counters, struct nps_counters, record->key.low));
			run = nps_ext_sort__next(runs);
		} else {
			alone++;
		}
		record = nps_ext_sort__next(records);
	}
	capture->log_counts.no_task += alone;
	nps_model__lost(capture->model, alone, "counters of no task");
}

int nps_cann_capture__aicore(struct nps_cann_capture *capture)
{
	struct nps_ext_sort records, runs;
	struct nps_vec counters;
	int tmpfd = capture->model->tmpfd;

	nps_ext_sort__init(&records, tmpfd, sizeof(struct aicore_counter_row));
	nps_ext_sort__init(&runs, tmpfd, sizeof(struct aicore_counter_row));
	nps_vec__init(&counters, tmpfd, sizeof(struct nps_counters));
	for (size_t i = 0; i < capture->ndevices; i++) {
		const struct nps_cann_dir *dir = &capture->devices[i];

		if (dir->sampled_pmu)
			continue;
		aicore_read_file(capture, dir, "aicore.data", 0, &counters, &records);
		aicore_read_file(capture, dir, "aiVectorCore.data", dir->chip >= NPS_CHIP_910B, &counters,
				 &records);
	}
	if (counters.len)
		add_runs(capture, &runs);
	if (!capture->err)
		capture->err = nps_ext_sort__finish(&records);
	if (!capture->err)
		capture->err = nps_ext_sort__finish(&runs);
	if (!capture->err)
		counters_join_runs(capture, &records, &runs, &counters);
	if (!capture->err)
		capture->err = records.err ? records.err : runs.err;
	nps_ext_sort__free(&records);
	nps_ext_sort__free(&runs);
	nps_vec__free(&counters);
	return capture->err;
}
