/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device sampler's directories are those of CANN's profiler, and are read by the same readers. Only
 * their clocks differ: the session knows them from many samples, CANN's control files from one instant and
 * the nominal rate.
 */
#include "import/session/import_npu.h"

#include "base/input_file.h"
#include "import/cann/control.h"
#include "import/cann/dictionary.h"
#include "import/cann/aux_files.h"
#include "import/session/session_reader.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_STARTS 64
#define MOST_SEGMENTS 4096 /* times that the channels of all devices were started */

/* Files whose times count from the start of their channel. */
static const struct {
	uint16_t channel;
	const char *file;
} relative[] = { { 1, "hbm.data" }, { 8, "llc.data" }, { 7, "ddr.data" }, { 131, "npu_mem.data" } };

/* What the session knows of a device's clocks. */
struct clocks {
	struct nps_clock_map count, raw;
	struct nps_clock_map host; /* CLOCK_MONOTONIC_RAW of the host as a clock that counts ns: itself */
};

static void free_clocks(struct clocks *clocks)
{
	nps_clock_map__free(&clocks->count);
	nps_clock_map__free(&clocks->raw);
	nps_clock_map__free(&clocks->host);
}

static void use(struct nps_cann_clock *clock, const struct nps_clock_map *map,
		const struct nps_clock_host *host)
{
	*clock = (struct nps_cann_clock){ .known = true, .map = map, .host = *host };
}

/* Replaces the clocks of the control files by those of the session, where the session has some. */
static int sampled_set_clocks(const struct nps_session *rec, struct nps_cann_dir *dir, struct clocks *clocks)
{
	const struct nps_clock_host host = { .samples = rec->clocks.data,
					     .n = rec->clocks.len,
					     .offset = (int64_t)(rec->begin_real - rec->begin) };
	const struct nps_device_clock itself = { .raw_before = dir->begin_raw,
						 .raw_after = dir->begin_raw,
						 .counter = dir->begin_raw };
	const struct nps_npu_samples *npu = &rec->npu;
	int counted, raws, hosts;

	*clocks = (struct clocks){ .count = { .n = 0 } };
	dir->has_begin = dir->has_end = false; /* the capture's bounds hold */
	hosts = nps_clock_map__fit(&clocks->host, &itself, 1, NPS_NS_PER_S);
	counted = nps_npu_samples__fit(&npu->clocks, dir->device, dir->device_hz, &clocks->count);
	raws = nps_npu_samples__fit(&npu->raws, dir->device, NPS_NS_PER_S, &clocks->raw);
	if (hosts == -ENOMEM || counted == -ENOMEM || raws == -ENOMEM)
		return -ENOMEM;
	if (!hosts)
		use(&dir->host_raw_clock, &clocks->host, &host);
	if (!counted)
		use(&dir->device_clock, &clocks->count, &host);
	if (!raws)
		use(&dir->device_raw_clock, &clocks->raw, &host);
	if (!dir->host_hz)
		dir->host_clock = dir->host_raw_clock;
	return 0;
}

static void add_starts(const cJSON *segment, uint32_t device, struct nps_aux_start *starts, size_t *n)
{
	const cJSON *start;

	cJSON_ArrayForEach(start, cJSON_GetObjectItemCaseSensitive(segment, "starts"))
	{
		uint64_t channel = nps_json_u64(start, "channel", 0), before, after;

		if (!nps_json_has_u64(start, "before_raw", &before) ||
		    !nps_json_has_u64(start, "after_raw", &after) || after < before)
			continue;
		for (size_t i = 0; i < NPS_ARRAY_SIZE(relative) && *n < MOST_STARTS - 1; i++)
			if (relative[i].channel == channel)
				starts[(*n)++] =
					(struct nps_aux_start){ .file = relative[i].file,
								.device = device,
								.raw = before + (after - before) / 2 };
	}
}

/* The frequency at the begin of the capture was recorded before: moves its row there. 0 or -errno. */
static int begin_frequency(struct nps_model *m, uint64_t from)
{
	struct nps_frequency_table *t = &m->frequency;
	size_t last[NPS_MAX_DEVICES];

	for (size_t d = 0; d < NPS_MAX_DEVICES; d++)
		last[d] = SIZE_MAX;
	for (size_t i = 0; i < t->t.len && t->timestamp[i] < from; i++)
		if (t->device[i] < NPS_MAX_DEVICES)
			last[t->device[i]] = i;
	for (size_t d = 0; d < NPS_MAX_DEVICES; d++)
		if (last[d] != SIZE_MAX)
			t->timestamp[last[d]] = from;
	return nps_table__order(&t->t, 1);
}

/* A row of the model's devices for what was sampled: frequencies and cores. */
static void sampled_describe(struct nps_model *m, const struct nps_cann_dir *dir)
{
	size_t row = 0;

	while (row < m->device.t.len && m->device.id[row] != dir->device)
		row++;
	if (row == m->device.t.len)
		return;
	m->device.aic_mhz[row] = dir->aic_mhz;
	m->device.aic_cores[row] = dir->aic_cores;
	m->device.aiv_cores[row] = dir->aiv_cores;
}

struct sampled {
	struct nps_model *m;
	const struct nps_session *rec;
	struct nps_aux_cores cores; /* of all segments */
	struct nps_map seen; /* (directory, device) */
	size_t segments, refused;
};

/* session.json lists each directory once: a repetition costs as much again, and would double its samples. */
static int is_new(struct sampled *s, const char *name, uint32_t device, bool *fresh)
{
	uint64_t key = nps_hash2(nps_hash_bytes(name, strlen(name)), device);

	*fresh = s->segments < MOST_SEGMENTS && nps_map__get(&s->seen, key) == NPS_NONE;
	if (!*fresh) {
		s->refused++;
		return 0;
	}
	s->segments++;
	return nps_map__put(&s->seen, key, 0);
}

/* A part of what was sampled that cannot be read is lost; the rest of the result is not. */
static int left_out(struct nps_model *m, int err, const char *name, uint32_t device)
{
	if (err == -ENOMEM)
		return err;
	nps_msg("cannot open %s: %s: what was sampled of device %u is left out", name, strerror(-err),
		device);
	nps_model__lost(m, 1, "directories with samples of devices that cannot be read");
	return 0;
}

static int sampled_import_dir(struct sampled *s, int fd, const cJSON *segment, uint32_t device)
{
	const struct nps_session *rec = s->rec;
	struct nps_model *m = s->m;
	struct nps_aux_start starts[MOST_STARTS] = { { .file = NULL } };
	struct nps_aux_session session = { .starts = starts,
					   .from = nps_session__real(rec, rec->begin),
					   .to = nps_session__real(rec, rec->end),
					   .cores = &s->cores };
	struct nps_cann_dir host, dir;
	struct nps_dictionary names = { 0 };
	struct clocks clocks;
	char name[32];
	size_t n = 0;
	int err;

	snprintf(name, sizeof(name), "device_%u", device);
	err = nps_cann_dir__open(&dir, m, fd, name, device);
	if (err)
		return left_out(m, err, nps_json_str(segment, "prof_dir", ""), device);
	err = nps_cann_dir__open(&host, m, fd, "host", NPS_CANN_HOST);
	if (err == -ENOMEM) {
		nps_cann_dir__close(&dir);
		return err;
	}
	if (err)
		host.fd = -1;
	else
		nps_cann_dir__clocks(&host, &dir);
	nps_cann_dir__clocks(&dir, host.fd >= 0 ? &host : NULL);
	err = sampled_set_clocks(rec, &dir, &clocks);
	if (err)
		goto out;
	if (host.fd >= 0)
		host.host_raw_clock = dir.host_raw_clock;
	add_starts(segment, device, starts, &n);
	err = nps_cann_aux__import(m, &names, host.fd >= 0 ? &host : NULL, &dir, 1, &session);
	if (err)
		goto out;
	sampled_describe(m, &dir);
out:
	free_clocks(&clocks);
	nps_dictionary__free(&names);
	if (host.fd >= 0)
		nps_cann_dir__close(&host);
	nps_cann_dir__close(&dir);
	return err;
}

static int import_segment(struct sampled *s, const cJSON *segment, uint32_t device)
{
	const char *name = nps_json_str(segment, "prof_dir", "");
	bool fresh;
	int fd, err;

	if (strncmp(name, "PROF_", 5) || strchr(name, '/')) {
		nps_msg("prof_dir '%s' of device %u is no directory of the session: session.json is damaged: "
			"left out",
			name, device);
		return 0;
	}
	err = is_new(s, name, device, &fresh);
	if (err || !fresh)
		return err;
	fd = nps_input_dir__open(s->rec->dirfd, name);
	if (fd < 0)
		return left_out(s->m, fd, name, device);
	err = sampled_import_dir(s, fd, segment, device);
	close(fd);
	return err;
}

/* The directories of DEVICES, bits of their numbers. */
static int import_segments(struct sampled *s, uint64_t devices)
{
	const cJSON *sampler = cJSON_GetObjectItemCaseSensitive(s->rec->json, "device_sampler"), *device,
		    *segment;

	cJSON_ArrayForEach(device, cJSON_GetObjectItemCaseSensitive(sampler, "devices"))
	{
		uint64_t id = nps_json_u64(device, "id", NPS_MAX_DEVICES);

		if (id >= NPS_MAX_DEVICES || !(devices >> id & 1))
			continue;
		cJSON_ArrayForEach(segment, cJSON_GetObjectItemCaseSensitive(device, "segments"))
		{
			int err = import_segment(s, segment, (uint32_t)id);

			if (err)
				return err;
		}
	}
	return nps_aux_cores__write(&s->cores, s->m);
}

/* --- samples of npu-smi --------------------------------------------------------------------------- */

static double value_or_nan(uint32_t value, double unit)
{
	return value == NPS_NPU_UNKNOWN ? NPS_NAN : value * unit;
}

static double degrees(int32_t value)
{
	return value == INT32_MAX ? NPS_NAN : value;
}

static int import_usage(struct nps_model *m, const struct nps_session *rec, uint64_t devices)
{
	struct nps_npu_usage_table *t = &m->npu_usage;
	size_t row;

	for (size_t i = 0; i < rec->npu.usage.len; i++) {
		const struct nps_npu_usage *u = &NPS_AT(&rec->npu.usage, struct nps_npu_usage, i);
		int err;

		if (!(devices >> u->device & 1) || u->time < rec->begin || u->time > rec->end)
			continue;
		err = nps_table__add(&t->t, &row);
		if (err)
			return err;
		t->timestamp[row] = nps_session__real(rec, u->time);
		t->device[row] = u->device;
		t->ai_core[row] = value_or_nan(u->ai_core, 1);
		t->vector[row] = value_or_nan(u->vector, 1);
		t->ai_cpu[row] = value_or_nan(u->ai_cpu, 1);
		t->ctrl_cpu[row] = value_or_nan(u->ctrl_cpu, 1);
		t->memory[row] = value_or_nan(u->memory, 1);
		t->bandwidth[row] = value_or_nan(u->bandwidth, 1);
		t->hbm_bandwidth[row] = value_or_nan(u->hbm_bandwidth, 1);
		t->temperature[row] = degrees(u->temperature);
		t->hbm_temperature[row] = degrees(u->hbm_temperature);
		t->power[row] = value_or_nan(u->power, 0.1);
		t->health[row] = u->health == NPS_NPU_UNKNOWN ? NPS_NULL : u->health;
		t->hbm_total[row] = u->hbm_total ? (int64_t)(u->hbm_total & INT64_MAX) : NPS_NULL;
		t->hbm_used[row] = u->hbm_total ? (int64_t)(u->hbm_used & INT64_MAX) : NPS_NULL;
	}
	return nps_table__order(&t->t, 0);
}

static int npu_import_processes(struct nps_model *m, const struct nps_session *rec, uint64_t devices,
				uint32_t pid)
{
	struct nps_npu_process_table *t = &m->npu_process;
	size_t row;

	for (size_t i = 0; i < rec->npu.processes.len; i++) {
		const struct nps_npu_process *p = &NPS_AT(&rec->npu.processes, struct nps_npu_process, i);
		int err;

		if (!(devices >> p->device & 1) || (pid && p->pid != pid) || p->time < rec->begin ||
		    p->time > rec->end)
			continue;
		err = nps_table__add(&t->t, &row);
		if (err)
			return err;
		t->timestamp[row] = nps_session__real(rec, p->time);
		t->device[row] = p->device;
		t->pid[row] = p->pid;
		t->bytes[row] = (int64_t)(p->bytes & INT64_MAX);
	}
	return nps_table__order(&t->t, 0);
}

int nps_import__npu(struct nps_model *model, const struct nps_session *rec, uint64_t devices, uint32_t pid)
{
	struct sampled sampled = { .m = model, .rec = rec };
	uint64_t start = model->start, end = model->end;
	int err;

	if (!rec->npu.requested)
		return 0;
	model->sampled = true;
	nps_model__lost(model, rec->losses.device_samples,
			"samples of devices that were overwritten before they were read");
	err = import_segments(&sampled, devices);
	nps_aux_cores__free(&sampled.cores);
	nps_map__free(&sampled.seen);
	if (sampled.refused)
		nps_msg("session.json names %zu directories of device samples twice, or after too many "
			"others: it "
			"is damaged: left out",
			sampled.refused);
	model->start = start; /* samples from before and after the capture do not extend it */
	model->end = end;
	if (err)
		return err;
	err = begin_frequency(model, nps_session__real(rec, rec->begin));
	if (err)
		return err;
	err = nps_cann_aux__clip(model, nps_session__real(rec, rec->begin), nps_session__real(rec, rec->end));
	if (err)
		return err;
	err = import_usage(model, rec, devices);
	if (err)
		return err;
	return npu_import_processes(model, rec, devices, pid);
}
