/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/channel_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clocks.h"
#include "core/log.h"
#include "driver/prof_files.h"

#define MAX_RECORD 256
/* slices kept open: a process that uses every channel must not exhaust our descriptors */
#define MOST_OPEN 24
/* of one process: a helper whose ring is always full causes some thousands a minute */
#define MOST_BREAKS 65536
#define STREAM_BYTES (16U << 10) /* used by a stream in addition to its records: slice, mark, control files */

/* CANN's name of a channel's file, and the length of its records: a common multiple if chips differ. */
static const struct channel_kind {
	uint32_t channel;
	uint32_t record;
	const char *file;
} kinds[] = {
	{ 43, 128, "aicore.data" },	  { 44, 40, "ts_track.data" },	    { 45, 64, "hwts.data" },
	{ 48, 64, "hwts.aiv_data" },	  { 50, 64, "stars_soc.data" },	    { 51, 32, "stars_block.data" },
	{ 53, 128, "ffts_profile.data" }, { 85, 128, "aiVectorCore.data" }, { 143, 256, "aicpu.data" },
};
#define N_KINDS (sizeof(kinds) / sizeof(*kinds))

struct channel_stream {
	struct nps_prof_file file;
	bool begun;
	uint64_t written; /* sequence number of the last write, among all of the process */
	enum nps_channel_reader reader;
	uint32_t epoch;
	uint64_t position; /* of the next byte in the channel */
	int error; /* of the first failed write, -errno: later data would not begin with a whole record */
	uint32_t held; /* bytes of an incomplete record */
	char rest[MAX_RECORD];
};

struct channel_device {
	struct channel_stream *streams[N_KINDS];
	bool has_breaks; /* their file exists */
	struct nps_prof_sync sync; /* of the shortest read of its clock */
	uint64_t width;
	struct nps_device_info info;
	bool known; /* info is */
	bool counted; /* to the budget */
	bool described; /* has control files */
};

struct nps_channel_files {
	struct nps_session_writer *s;
	struct nps_prof_control control; /* name "": no data yet */
	enum nps_aic_metric metric; /* of counters by task */
	struct nps_log_account account;
	uint64_t bytes, writes, breaks;
	struct channel_device *devices[NPS_DEVICE_MAX]; /* NULL: no data */
};

struct nps_channel_files *nps_channel_files__new(pid_t pid, struct nps_session_writer *s,
						 struct nps_log_budget *budget)
{
	struct nps_channel_files *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->s = s;
	f->control.pid = pid;
	f->control.rank = -1;
	if (nps_log_account__init(&f->account, budget, pid)) {
		free(f);
		return NULL;
	}
	nps_clock__sample(&f->control.begin);
	return f;
}

static struct channel_device *device_of(struct nps_channel_files *f, uint32_t device)
{
	if (!f->devices[device])
		f->devices[device] = calloc(1, sizeof(struct channel_device));
	return f->devices[device];
}

void nps_channel_files__count(struct nps_channel_files *f, enum nps_aic_metric metric)
{
	f->metric = metric;
}

void nps_channel_files__know(struct nps_channel_files *f, const struct nps_device_info *info)
{
	struct channel_device *d = info->id < NPS_DEVICE_MAX ? device_of(f, info->id) : NULL;

	if (!d)
		return;
	d->info = *info;
	d->known = true;
}

/* Control files of a device, or of the host. The counters by task are in sample.json. */
static int write_control_of(struct nps_channel_files *f, const struct nps_device_info *info,
			    const struct nps_prof_sync *sync)
{
	cJSON *sample = cJSON_CreateObject();
	int err;

	if (!sample)
		return -ENOMEM;
	nps_aic_metrics__describe(f->metric, f->control.platform, 0, sample);
	f->control.sample = sample;
	err = info ? nps_prof_control__device(&f->control, f->s, info, sync)
		   : nps_prof_control__host(&f->control, f->s);
	f->control.sample = NULL;
	cJSON_Delete(sample);
	return err;
}

static int write_device_control(struct nps_channel_files *f, uint32_t device)
{
	const struct channel_device *d = f->devices[device];
	struct nps_device_info info = { .id = device, .platform = NPS_PLATFORM_UNKNOWN };

	if (d->known)
		info = d->info;
	f->control.platform = info.platform;
	f->control.driver_version = info.driver_version;
	f->control.host_khz = info.host_khz;
	return write_control_of(f, &info, &d->sync);
}

void nps_channel_files__clock(struct nps_channel_files *f, const struct nps_device_clock *c)
{
	uint64_t width = c->raw_after - c->raw_before;
	struct channel_device *d = c->device < NPS_DEVICE_MAX ? device_of(f, c->device) : NULL;
	bool first;

	if (!d || c->raw_after < c->raw_before || (d->sync.host_raw && width >= d->width))
		return;
	first = !d->sync.host_raw && d->described;
	d->width = width;
	d->sync = (struct nps_prof_sync){ .host_raw = c->raw_before + width / 2, .device_count = c->counter };
	/* So that a capture that is killed has it. */
	if (first)
		write_device_control(f, c->device);
}

struct nps_log_account *nps_channel_files__account(struct nps_channel_files *f)
{
	return &f->account;
}

uint64_t nps_channel_files__devices(const struct nps_channel_files *f)
{
	uint64_t devices = 0;

	for (uint32_t i = 0; f && i < NPS_DEVICE_MAX; i++)
		if (f->devices[i] && f->devices[i]->counted)
			devices |= 1ULL << i;
	return devices;
}

/* Control files of a device, with its first stream: all that a capture that is killed has. */
static int write_first_control(struct nps_channel_files *f, uint32_t device)
{
	int err;

	if (f->devices[device]->described)
		return 0;
	f->devices[device]->described = true;
	f->control.pid_name = NULL;
	f->control.rank = -1;
	f->control.level = 0;
	err = write_device_control(f, device);
	return err ? err : write_control_of(f, NULL, NULL);
}

/* The host's last: it has facts of the devices then. */
static int write_all_controls(struct nps_channel_files *f)
{
	for (uint32_t i = 0; i < NPS_DEVICE_MAX; i++) {
		int err;

		if (!f->devices[i] || !f->devices[i]->counted)
			continue;
		err = write_device_control(f, i);
		if (err)
			return err;
	}
	return write_control_of(f, NULL, NULL);
}

int nps_channel_files__write_control(struct nps_channel_files *f, const char *name, int rank, int level,
				     const struct nps_clock *end)
{
	int err;

	if (!f->control.name[0])
		return 0;
	f->control.pid_name = name;
	f->control.rank = rank;
	f->control.level = level;
	if (end)
		f->control.end = *end;
	f->control.platform = NPS_PLATFORM_UNKNOWN;
	err = write_all_controls(f);
	f->control.pid_name = NULL;
	return err;
}

/* Makes room for another open slice. */
static void close_oldest(struct nps_channel_files *f)
{
	struct channel_stream *oldest = NULL;
	size_t n_open = 0;
	int err;

	for (uint32_t i = 0; i < NPS_DEVICE_MAX; i++)
		for (size_t k = 0; f->devices[i] && k < N_KINDS; k++) {
			struct channel_stream *st = f->devices[i]->streams[k];

			if (!st || !nps_prof_file__is_open(&st->file))
				continue;
			n_open++;
			if (!oldest || st->written < oldest->written)
				oldest = st;
		}
	if (n_open < MOST_OPEN)
		return;
	err = nps_prof_file__pause(&oldest->file, f->s);
	/* Later data would not begin with a whole record, as after a failed write. */
	oldest->error = oldest->error ? oldest->error : err;
}

static int write_records(struct nps_channel_files *f, struct channel_stream *st, const void *data,
			 uint32_t len)
{
	if (!nps_prof_file__is_open(&st->file))
		close_oldest(f);
	st->written = ++f->writes;
	f->bytes += len;
	return nps_prof_file__write(&st->file, f->s, data, len);
}

static void finish_device(struct nps_channel_files *f, struct channel_device *d)
{
	for (size_t k = 0; k < N_KINDS; k++) {
		struct channel_stream *st = d->streams[k];

		if (!st)
			continue;
		/*
		 * An incomplete record of one chip can be a whole one of another. Errors
		 * are recorded in the session.
		 */
		if (st->held && !st->error)
			write_records(f, st, st->rest, st->held);
		nps_prof_file__finish(&st->file, f->s);
		free(st);
		d->streams[k] = NULL;
	}
}

void nps_channel_files__finish(struct nps_channel_files *f)
{
	for (uint32_t i = 0; f && i < NPS_DEVICE_MAX; i++)
		if (f->devices[i])
			finish_device(f, f->devices[i]);
}

void nps_channel_files__free(struct nps_channel_files *f)
{
	if (!f)
		return;
	nps_channel_files__finish(f);
	for (uint32_t i = 0; i < NPS_DEVICE_MAX; i++)
		free(f->devices[i]);
	free(f);
}

static int note_break(struct nps_channel_files *f, uint32_t device, size_t kind, uint64_t lost)
{
	static const char *const readers[] = { "agent", "profiler" };
	struct channel_device *d = f->devices[device];
	const struct channel_stream *st = d->streams[kind];
	char text[160];
	int fd, err;

	if (++f->breaks > MOST_BREAKS)
		return nps_log_account__end(&f->account, "breaks");
	/* Few streams have any, so the descriptor is not kept open. */
	snprintf(text, sizeof(text), "%s/device_%u/data/npuscope.breaks", f->control.name, device);
	fd = d->has_breaks ? nps_session_writer__append_file(f->s, text)
			   : nps_session_writer__open_file(f->s, text);
	if (fd < 0)
		return fd;
	d->has_breaks = true;
	snprintf(text, sizeof(text), "%s.%u %llu %llu %s\n", kinds[kind].file, device,
		 (unsigned long long)st->file.total, (unsigned long long)lost, readers[st->reader]);
	err = nps_write_all(fd, text, strlen(text));
	if (close(fd) && !err)
		err = -errno;
	if (err)
		nps_session_writer__failed(f->s, "npuscope.breaks", err);
	nps_session_writer__add_bytes(f->s, strlen(text));
	return err ? err : nps_log_account__add_bytes(&f->account, strlen(text));
}

/* The driver splits records anywhere; only whole ones are written to disk. */
static int put_records(struct nps_channel_files *f, struct channel_stream *st, uint32_t record,
		       const char *data, uint32_t len)
{
	uint32_t count, whole;
	int err;

	if (st->held) {
		count = record - st->held < len ? record - st->held : len;
		memcpy(st->rest + st->held, data, count);
		st->held += count;
		data += count;
		len -= count;
		if (st->held < record)
			return 0;
		st->held = 0;
		err = write_records(f, st, st->rest, record);
		if (err)
			return err;
	}
	whole = len - len % record;
	err = whole ? write_records(f, st, data, whole) : 0;
	if (err)
		return err;
	st->held = len - whole;
	memcpy(st->rest, data + whole, st->held);
	return 0;
}

static int stream_of(struct nps_channel_files *f, uint32_t device, size_t kind, struct channel_stream **out)
{
	struct channel_device *d = device_of(f, device);
	struct channel_stream *st;
	int err;

	*out = d ? d->streams[kind] : NULL;
	if (*out || !d)
		return d ? 0 : -ENOMEM;
	if (!f->control.name[0])
		nps_prof__name(f->control.name, 1, f->control.pid);
	err = nps_log_account__add_bytes(&f->account, STREAM_BYTES);
	if (!err && !d->counted)
		err = nps_log_account__add_directory(&f->account);
	if (err)
		return err;
	d->counted = true;
	*out = st = d->streams[kind] = calloc(1, sizeof(*st));
	if (!st)
		return -ENOMEM;
	err = nps_prof_file__init(&st->file, f->control.name, device, kinds[kind].file, 0);
	return err ? err : write_first_control(f, device);
}

/*
 * Advances ST to the position of new bytes. *MISSING: bytes that are
 * missing before them, including those of torn records.
 */
static int go_to(struct channel_stream *st, const struct nps_channel_at *at, uint64_t *missing)
{
	bool same = st->begun && st->reader == at->reader && st->epoch == at->epoch;

	*missing = 0;
	if (same && at->position < st->position)
		return -EPROTO;
	if (same && at->position == st->position)
		return 0;
	*missing = at->position - (same ? st->position : 0) + st->held;
	st->held = 0;
	st->begun = true;
	st->reader = at->reader;
	st->epoch = at->epoch;
	st->position = at->position;
	return 1;
}

int nps_channel_files__put(struct nps_channel_files *f, const struct nps_channel_at *at, const void *data,
			   uint32_t len)
{
	uint32_t skip = 0, record;
	uint64_t missing = 0;
	struct channel_stream *st = NULL;
	size_t kind = 0;
	int err;

	err = nps_log_account__add_bytes(&f->account, len);
	while (kind < N_KINDS && kinds[kind].channel != at->channel)
		kind++;
	if (err || kind == N_KINDS)
		return err;
	if (at->device >= NPS_DEVICE_MAX)
		return -EPROTO;
	record = kinds[kind].record;
	err = stream_of(f, at->device, kind, &st);
	if (err || !st)
		return err;
	err = st->error ? st->error : go_to(st, at, &missing);
	if (err < 0)
		return err;
	if (err) {
		/* It continues at the next whole record. */
		skip = (record - at->position % record) % record;
		skip = skip < len ? skip : len;
		err = note_break(f, at->device, kind, missing + skip);
		st->position += skip;
	}
	st->position += len - skip;
	if (err) {
		st->error = err;
		return err;
	}
	st->error = put_records(f, st, record, (const char *)data + skip, len - skip);
	return st->error;
}

uint64_t nps_channel_files__bytes(const struct nps_channel_files *f)
{
	return f->bytes;
}

const char *nps_channel_files__dir(const struct nps_channel_files *f)
{
	return f->control.name[0] ? f->control.name : NULL;
}
