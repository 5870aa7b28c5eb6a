/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's task log, stars_soc.data: 64-byte records, one at the start and one at the end
 * of each task, with a 4-bit running counter whose gaps tell of lost records.
 */
#include "session/import.h"

#include "session/session_reader.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD 64
#define MAGIC 0x6bd3
#define MAX_SLICES 100000

enum { FUNC_START = 0, FUNC_END = 1, FUNC_SUB_START = 0x22, FUNC_SUB_END = 0x23 };

struct record {
	uint64_t counter;
	uint16_t stream, task; /* as logged */
	uint8_t func, sqe_type, sub_type, ffts_type;
};

struct log {
	struct nps_recording *model;
	struct nps_vec records; /* struct record */
	struct nps_vec *tasks;
	uint32_t proc;
	unsigned int device;
	int counter; /* last 4-bit counter, -1 at the beginning */
	uint64_t gaps, garbage;
};

static uint16_t u16(const unsigned char *p)
{
	return p[0] | p[1] << 8;
}

static int parse(struct log *log, const unsigned char *p)
{
	unsigned int head = u16(p), func = head & 0x3f, counter = head >> 6 & 0xf;
	struct record *r;

	if (u16(p + 2) != MAGIC) {
		log->garbage++;
		log->counter = -1;
		return 0;
	}
	if (log->counter >= 0)
		log->gaps += (counter - log->counter - 1) & 0xf;
	log->counter = counter;
	if (func != FUNC_START && func != FUNC_END && func != FUNC_SUB_START && func != FUNC_SUB_END)
		return 0;
	r = nps_vec__push(&log->records);
	if (!r)
		return -errno;
	r->func = func;
	r->sqe_type = head >> 10;
	r->stream = u16(p + 4);
	r->task = u16(p + 6);
	for (unsigned int i = 0; i < 8; i++)
		r->counter |= (uint64_t)p[8 + i] << 8 * i;
	if (func >= FUNC_SUB_START) {
		r->sub_type = p[16];
		r->ffts_type = u16(p + 20) >> 13;
	}
	return 0;
}

/* A part of the log that cannot be read is lost; the rest is not. */
static int unreadable(struct log *log, const char *name)
{
	nps_msg("cannot read %s of process %u: %s: left out", name, log->model->procs[log->proc].pid,
		strerror(errno));
	log->model->losses.cut = true;
	return 0;
}

/* Reads one slice; a tail that is no whole record is dropped, as its writer was cut off there. */
static int read_slice(struct log *log, int dirfd, const char *name)
{
	static unsigned char buf[RECORD * 4096];
	struct stat st;
	size_t have = 0;
	ssize_t n;
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW), err = 0;

	if (fd < 0)
		return unreadable(log, name);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		errno = EINVAL;
		return unreadable(log, name);
	}
	while (!err) {
		size_t used = 0;

		if (!have)
			log->garbage += nps_skip_hole(fd, RECORD) / RECORD;
		n = read(fd, buf + have, sizeof(buf) - have);
		if (!n)
			break;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			unreadable(log, name);
			break;
		}
		have += n;
		for (; !err && used + RECORD <= have; used += RECORD)
			err = parse(log, buf + used);
		memmove(buf, buf + used, have - used);
		have -= used;
	}
	if (have)
		log->garbage++;
	close(fd);
	return err;
}

/* How the logged ids of the two modes of the 910B become stream and task (stars ids, prof-raw). */
static void unmangle(const struct record *r, bool expanded, uint16_t *stream, uint16_t *task)
{
	unsigned int s = r->stream, t = r->task;

	if (expanded) {
		if (r->sqe_type != NPS_SQE_PLACE_HOLDER && r->sqe_type != NPS_SQE_EVENT_RECORD &&
		    s & 0x8000) {
			*stream = t & 0x7fff;
			*task = (t & 0x8000) | (s & 0x7fff);
			return;
		}
		*stream = s & 0x7fff;
		*task = t;
		return;
	}
	if (s & 0x1000) {
		t = (t & 0x1fff) | (s & 0xe000);
	} else if (s & 0x2000) {
		unsigned int real = t & 0x0fff;

		t = (s & 0x0fff) | (t & 0xf000);
		s = real;
	}
	*stream = s % 2048;
	*task = t;
}

/* The mode is not in the log: it is the one whose streams the host submitted to. */
static bool is_expanded(const struct log *log, const struct nps_map *streams)
{
	size_t plain = 0, expanded = 0;
	uint16_t stream, task;

	for (size_t i = 0; i < log->records.len; i++) {
		const struct record *r = &NPS_AT(&log->records, struct record, i);

		unmangle(r, false, &stream, &task);
		plain += nps_map__get(streams, (uint64_t)log->proc << 32 | log->device << 16 | stream) !=
			 NPS_NONE;
		unmangle(r, true, &stream, &task);
		expanded += nps_map__get(streams, (uint64_t)log->proc << 32 | log->device << 16 | stream) !=
			    NPS_NONE;
	}
	return expanded > plain;
}

/* What a sub-task record says about the core that its task runs on. */
static uint8_t core_of(const struct record *r)
{
	if (r->ffts_type == 1)
		return NPS_SQE_AIV;
	if (r->ffts_type >= 4 && r->sub_type == 6)
		return NPS_CORE_MIX_AIC;
	if (r->ffts_type >= 4 && r->sub_type == 7)
		return NPS_CORE_MIX_AIV;
	if (r->ffts_type >= 4 && r->sub_type == 1)
		return NPS_SQE_AIV;
	return NPS_SQE_AI_CORE;
}

static int pair(struct log *log, bool expanded)
{
	struct nps_device_log *device = nps_recording__log(log->model, log->proc, log->device);
	struct nps_map open = { 0 };
	int err = device ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < log->records.len; i++) {
		const struct record *r = &NPS_AT(&log->records, struct record, i);
		struct nps_log_task *row;
		uint16_t stream, task;
		uint32_t key, at;

		unmangle(r, expanded, &stream, &task);
		key = (uint32_t)stream << 16 | task;
		at = nps_map__get(&open, key);
		row = at == NPS_NONE ? NULL : &NPS_AT(log->tasks, struct nps_log_task, at);
		if (r->func == FUNC_START) {
			if (row && !row->end)
				device->incomplete++; /* its end was lost */
			if (log->tasks->len >= NPS_NONE - 1)
				err = -EOVERFLOW;
			row = err ? NULL : nps_vec__push(log->tasks);
			if (!row) {
				err = err ? err : -errno;
				break;
			}
			*row = (struct nps_log_task){ .start = r->counter,
						      .proc = log->proc,
						      .context = NPS_NONE,
						      .device = log->device,
						      .stream = stream,
						      .task = task,
						      .sqe_type = r->sqe_type,
						      .core = r->sqe_type };
			err = nps_map__put(&open, key, log->tasks->len - 1);
		} else if (r->func == FUNC_END) {
			if (row && !row->end && r->counter >= row->start)
				row->end = r->counter;
			else
				device->incomplete++; /* began before the log, or its start was lost */
		} else if (row && !row->end && r->func == FUNC_SUB_START) {
			row->core = core_of(r);
		}
	}
	nps_map__free(&open);
	return err;
}

static int by_number(const void *a, const void *b)
{
	unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

	return x < y ? -1 : x > y;
}

/* Numbers of the slices of this device's log in the directory, ascending; -1 if none. */
static ssize_t list_slices(DIR *dir, const char *stem, unsigned long **numbers)
{
	unsigned long *list = NULL;
	struct dirent *entry;
	size_t n = 0;

	while ((entry = readdir(dir)) && n < MAX_SLICES) {
		const char *number = entry->d_name + strlen(stem);
		char *end;

		if (strncmp(entry->d_name, stem, strlen(stem)) || !isdigit((unsigned char)*number))
			continue;
		if (!(n & (n - 1))) {
			unsigned long *more = realloc(list, (n ? n * 2 : 1) * sizeof(*list));

			if (!more)
				break;
			list = more;
		}
		list[n] = strtoul(number, &end, 10);
		n += !*end;
	}
	if (n)
		qsort(list, n, sizeof(*list), by_number);
	*numbers = list;
	return n;
}

static int read_device(struct log *log, int proffd, const struct nps_map *streams)
{
	char path[64], stem[64];
	unsigned long *numbers = NULL;
	ssize_t n;
	DIR *dir;
	int fd, err = 0;

	snprintf(path, sizeof(path), "device_%u/data", log->device);
	fd = openat(proffd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : unreadable(log, path);
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	snprintf(stem, sizeof(stem), "stars_soc.data.%u.slice_", log->device);
	n = list_slices(dir, stem, &numbers);
	log->counter = -1;
	log->records.len = 0;
	log->gaps = 0;
	for (ssize_t i = 0; !err && i < n; i++) {
		char name[128];

		snprintf(name, sizeof(name), "%s%lu", stem, numbers[i]);
		err = read_slice(log, fd, name);
	}
	free(numbers);
	if (!err && log->records.len) {
		struct nps_device_log *device = nps_recording__log(log->model, log->proc, log->device);

		if (device) {
			device->has_log = true;
			device->records = log->records.len;
			device->lost = log->gaps;
		}
		log->model->losses.device_records += log->gaps;
		err = device ? pair(log, is_expanded(log, streams)) : -ENOMEM;
	}
	closedir(dir);
	return err;
}

static int read_process(struct log *log, struct nps_proc *proc, const struct nps_map *streams)
{
	const char *name = nps_json_str(proc->json, "prof_dir", NULL);
	int fd, err = 0;

	if (!name)
		return 0;
	if (!*name || strchr(name, '/') || name[0] == '.') {
		nps_msg("prof_dir '%s' of process %u is no directory of the session: session.json is "
			"damaged: left out",
			name, proc->pid);
		return 0;
	}
	fd = openat(log->model->dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		nps_msg("cannot open %s: %s: device times of process %u are host bounds", name,
			strerror(errno), proc->pid);
		log->model->losses.cut = true;
		return 0;
	}
	for (log->device = 0; !err && log->device < NPS_MAX_DEVICES; log->device++)
		err = read_device(log, fd, streams);
	close(fd);
	return err;
}

int nps_import__stars(struct nps_recording *model, const struct nps_map *streams_seen, struct nps_vec *tasks)
{
	struct log log = { .model = model, .tasks = tasks };
	int err = 0;

	nps_vec__init(&log.records, model->tmpfd, sizeof(struct record));
	for (log.proc = 0; !err && log.proc < model->nprocs; log.proc++)
		err = read_process(&log, &model->procs[log.proc], streams_seen);
	if (log.garbage) {
		nps_msg("%" PRIu64 " blocks of the device log are no records: they are damaged: left out",
			log.garbage);
		model->losses.cut = true;
	}
	nps_vec__free(&log.records);
	return err;
}
