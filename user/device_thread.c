/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The channels that could be started together fill one PROF_* directory, whose control files tell the instant of that start:
 * times of some records count from it. What was busy then, or was let go for the job's own profiler, or lost with a reset
 * of the device, is started again later, and fills another one.
 *
 * prof_channel_poll() is not used: its queue is one of the process, so that a thread would take what another waits for, and
 * it wakes for each packet of each channel. Reading is non-blocking; the samples of one turn, of all channels,
 * are a twentieth of one ring.
 */
#include "device_thread.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "clocks.h"
#include "device_dcmi.h"
#include "device_report.h"
#include "device_stream.h"
#include "log.h"
#include "privilege.h"
#include "prof_control.h"

#define SECOND 1000000000ULL
#define TURN_NS (SECOND / 5)
#define MOST_STREAMS 32
#define MOST_SEGMENTS 512 /* after that nothing is started again */
#define READ_BYTES (256U << 10)
#define FIRST_PAUSE SECOND /* before a refused channel is asked for again; doubled each time */
#define LONGEST_PAUSE (30 * SECOND)
#define MOST_FAILURES 3 /* reads in a row before a channel is started afresh */
#define CLOCK_TRIES 4
#define CLOCK_EDGE 4 /* samples at both ends */

enum { MODULE_SYSTEM = 0, INFO_SYS_COUNT = 13, INFO_MONOTONIC_RAW = 14 };

struct segment {
	struct nps_prof_control control;
	struct nps_prof_sync sync;
	cJSON *sample;
	unsigned int open; /* streams that fill it */
	uint64_t started, ended; /* CLOCK_MONOTONIC_RAW ns */
	struct start {
		uint16_t channel;
		uint64_t before, after; /* CLOCK_MONOTONIC_RAW ns around the start */
	} starts[MOST_STREAMS];
	size_t n_starts;
	struct nps_prof_file netdev;
	bool has_netdev;
};

struct nps_device_thread {
	struct nps_device_common *common;
	struct nps_device_lib lib; /* a connection of its own: a call may take seconds */
	uint32_t device;
	struct nps_device_info info;
	pthread_t thread;
	atomic_bool stop, settled, failed;
	atomic_uint_fast64_t sign; /* CLOCK_MONOTONIC ns: the last call into the driver was about to begin */
	atomic_int error; /* of the disk */
	struct nps_log_account account;
	atomic_bool slowed_told; /* the account: others look at it */
	bool ended_told;
	size_t first; /* stream that is drained first the next time: the last ones may get nothing */
	struct nps_device_stream streams[MOST_STREAMS];
	size_t n_streams;
	struct segment *segments[MOST_SEGMENTS];
	size_t n_segments;
	struct nps_dcmi_place place;
	bool placed;
	uint64_t clock_due, usage_due, netdev_due, listed; /* CLOCK_MONOTONIC ns */
	bool netdev_told, gave_up;
	char *buf;

	pthread_mutex_t lock; /* of what is below: others look at it */
	pthread_cond_t wake; /* the thread, which sleeps between two turns */
	bool release, released; /* channels are to be let go of; they have been */
	struct nps_device_counts counts;
	cJSON *described;
};

void nps_device_common__append(struct nps_device_common *c, uint16_t type, const void *data, uint32_t len)
{
	pthread_mutex_lock(&c->lock);
	nps_stream__append(&c->session->device, type, 0, data, len); /* its error ends the capture */
	pthread_mutex_unlock(&c->lock);
}

static void disk_error(struct nps_device_thread *t, int err)
{
	int none = 0;

	if (err)
		atomic_compare_exchange_strong(&t->error, &none, err);
}

/* --- clocks ------------------------------------------------------------------------------------------ */

/* The narrowest of a few reads. False: the driver does not say. */
static bool read_clock(struct nps_device_thread *t, int info, struct nps_device_clock *best)
{
	bool any = false;

	for (int i = 0; i < CLOCK_TRIES; i++) {
		struct nps_device_clock c = { .device = t->device };
		struct nps_call_span span;
		int64_t value = 0;

		if (nps_device_lib__info(&t->lib, t->device, MODULE_SYSTEM, info, &value, &span) ||
		    value <= 0)
			continue;
		c.raw_before = span.before;
		c.raw_after = span.after;
		c.counter = (uint64_t)value;
		if (!any || c.raw_after - c.raw_before < best->raw_after - best->raw_before)
			*best = c;
		any = true;
	}
	return any;
}

static void sample_clocks(struct nps_device_thread *t)
{
	struct nps_device_clock c;

	if (read_clock(t, INFO_SYS_COUNT, &c))
		nps_device_common__append(t->common, NPS_CHUNK_DEVICE_CLOCKS, &c, sizeof(c));
	if (read_clock(t, INFO_MONOTONIC_RAW, &c))
		nps_device_common__append(t->common, NPS_CHUNK_DEVICE_RAWS, &c, sizeof(c));
}

/* Both clocks at one instant, for the control files. */
static struct nps_prof_sync synchronise(struct nps_device_thread *t)
{
	struct nps_prof_sync sync = { .host_raw = nps_now(CLOCK_MONOTONIC_RAW) };
	struct nps_device_clock count, raw;

	if (!read_clock(t, INFO_SYS_COUNT, &count))
		return sync;
	sync.host_raw = count.raw_before + (count.raw_after - count.raw_before) / 2;
	sync.device_count = count.counter;
	if (read_clock(t, INFO_MONOTONIC_RAW, &raw)) {
		uint64_t at = raw.raw_before + (raw.raw_after - raw.raw_before) / 2;

		sync.device_raw = raw.counter - (at - sync.host_raw); /* at the instant of the other */
	}
	return sync;
}

/* --- segments ---------------------------------------------------------------------------------------- */

static void write_control(struct nps_device_thread *t, struct segment *g)
{
	int err;

	pthread_mutex_lock(&t->common->lock); /* the directories are made on the way, each once */
	err = nps_prof_control__host(&g->control, t->common->session);
	if (!err)
		err = nps_prof_control__device(&g->control, t->common->session, &t->info, &g->sync);
	pthread_mutex_unlock(&t->common->lock);
	disk_error(t, err);
}

static struct segment *new_segment(struct nps_device_thread *t)
{
	struct segment *g = t->n_segments < MOST_SEGMENTS ? calloc(1, sizeof(*g)) : NULL;

	if (!g)
		return NULL;
	g->sample = cJSON_CreateObject();
	g->control = (struct nps_prof_control){
		.rank = -1,
		.platform = t->info.platform,
		.driver_version = t->info.driver_version,
		.host_khz = t->info.host_khz,
		.sample = g->sample,
	};
	pthread_mutex_lock(&t->common->lock);
	nps_prof__name(g->control.name, ++t->common->directories, getpid());
	pthread_mutex_unlock(&t->common->lock);
	nps_clock__sample(&g->control.begin);
	g->sync = synchronise(t);
	g->started = g->sync.host_raw;
	return g;
}

static void free_segment(struct segment *g)
{
	if (!g)
		return;
	cJSON_Delete(g->sample);
	free(g);
}

static void end_segment(struct nps_device_thread *t, struct segment *g)
{
	if (g->has_netdev)
		disk_error(t, nps_prof_file__finish(&g->netdev, t->common->session));
	g->has_netdev = false;
	nps_clock__sample(&g->control.end);
	g->ended = g->control.end.raw;
	write_control(t, g);
}

/* --- channels ---------------------------------------------------------------------------------------- */

static void wait_before_retry(struct nps_device_stream *s)
{
	s->pause = s->pause ? s->pause * 2 : FIRST_PAUSE;
	s->pause = s->pause < LONGEST_PAUSE ? s->pause : LONGEST_PAUSE;
	s->retry = nps_now(CLOCK_MONOTONIC) + s->pause;
	s->state = NPS_STREAM_WAITS;
}

/* One channel into segment G. */
static bool start_stream(struct nps_device_thread *t, struct nps_device_stream *s, struct segment *g)
{
	struct start *start = &g->starts[g->n_starts];
	uint64_t before = nps_now(CLOCK_MONOTONIC_RAW);
	int code;

	code = nps_device_stream__start(s, &t->lib, t->common->opts, &t->info, g->control.name);
	if (!code) {
		*start = (struct start){ s->ch->id, before, nps_now(CLOCK_MONOTONIC_RAW) };
		g->n_starts++;
		g->open++;
		s->segment = (int)t->n_segments;
		nps_channel__describe(s->ch, t->common->opts, &t->info, g->sample);
		return true;
	}
	nps_device_report__code(s, t->device, "start", code);
	if (nps_device_report__final(code))
		s->state = NPS_STREAM_REFUSED;
	else
		wait_before_retry(s);
	return false;
}

static bool any_due(const struct nps_device_thread *t)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	for (size_t i = 0; i < t->n_streams; i++)
		if (t->streams[i].state == NPS_STREAM_WAITS && t->streams[i].retry <= now)
			return true;
	return false;
}

static bool is_to_let_go(struct nps_device_thread *t)
{
	bool release;

	pthread_mutex_lock(&t->lock);
	release = t->release;
	pthread_mutex_unlock(&t->lock);
	return release;
}

/* No segment is left: what is not open now is not sampled any more. */
static void give_up(struct nps_device_thread *t)
{
	if (!t->gave_up)
		nps_warn("device %u: its channels were closed and started %d times: those that are closed "
			 "are not sampled any more: npu-smi info tells its health",
			 t->device, MOST_SEGMENTS);
	t->gave_up = true;
	for (size_t i = 0; i < t->n_streams; i++)
		if (t->streams[i].state == NPS_STREAM_WAITS)
			t->streams[i].state = NPS_STREAM_REFUSED;
}

/* Starts all that is due, together. */
static void start_due(struct nps_device_thread *t)
{
	struct segment *g = any_due(t) ? new_segment(t) : NULL;
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	for (size_t i = 0; g && i < t->n_streams && !is_to_let_go(t) && !atomic_load(&t->stop); i++)
		if (t->streams[i].state == NPS_STREAM_WAITS && t->streams[i].retry <= now)
			start_stream(t, &t->streams[i], g);
	if (g && g->n_starts) {
		t->segments[t->n_segments++] = g;
		write_control(t, g);
	} else {
		free_segment(g);
	}
	if (t->n_segments == MOST_SEGMENTS && any_due(t))
		give_up(t);
	atomic_store(&t->settled, true);
}

static void closed(struct nps_device_thread *t, struct nps_device_stream *s)
{
	struct segment *g = t->segments[s->segment];

	if (!--g->open)
		end_segment(t, g);
}

static void stop_stream(struct nps_device_thread *t, struct nps_device_stream *s)
{
	int disk = 0, code;

	if (s->state != NPS_STREAM_OPEN)
		return;
	code = nps_device_stream__stop(s, &t->lib, &t->info, t->common->session, t->buf, READ_BYTES, &disk);
	if (code && code != NPS_PROF_STOPPED)
		nps_device_report__code(s, t->device, "stop", code);
	disk_error(t, disk);
	s->retry = 0;
	s->pause = 0;
	closed(t, s);
}

/* A read failed: now and then that happens; a channel that goes on failing, or was stopped, is started afresh. */
static void failed(struct nps_device_thread *t, struct nps_device_stream *s, int code)
{
	int disk = 0;

	nps_device_report__code(s, t->device, "read", code);
	if (code != NPS_PROF_STOPPED && ++s->failures < MOST_FAILURES)
		return;
	nps_device_lib__stop(&t->lib, t->device,
			     s->ch->id); /* whatever became of it: it is to be started again */
	nps_device_stream__abandon(s, &t->info, t->common->session, &disk);
	disk_error(t, disk);
	closed(t, s);
	wait_before_retry(s);
}

/* Cores that a helper counts by task cannot be sampled beside it: it was asked for a task log, which comes first. */
static void leave_shared(struct nps_device_thread *t)
{
	bool any = false;

	if (t->device >= NPS_DEVICE_MAX || !(atomic_load(&t->common->counted) >> t->device & 1))
		return;
	for (size_t i = 0; i < t->n_streams; i++) {
		struct nps_device_stream *s = &t->streams[i];

		if (!nps_channel__is_shared(s->ch) ||
		    (s->state != NPS_STREAM_WAITS && s->state != NPS_STREAM_OPEN))
			continue;
		stop_stream(t, s);
		s->state = NPS_STREAM_LEFT;
		any = true;
	}
	if (any)
		nps_info("device %u: counters of its cores are not sampled: the job's helper counts them by "
			 "task, "
			 "and this chip cannot do both",
			 t->device);
}

static void say_rounds(const struct nps_device_thread *t, struct nps_device_stream *s)
{
	if (s->rounds && !s->rounds_told)
		nps_warn("device %u: %s: it was not read for %.1f s, and the driver's ring was overwritten: "
			 "about "
			 "%" PRIu64 " records are lost: is the host overloaded?",
			 t->device, s->ch->name, (double)s->unread / (double)SECOND, s->lost);
	s->rounds_told = s->rounds;
}

/* A driver's library of the job's can make up as much as it likes. */
static void tell_limits(struct nps_device_thread *t)
{
	if (t->account.slowed && !atomic_exchange(&t->slowed_told, true))
		nps_warn("device %u: its channels bring more than npuscope reads of one device, half of "
			 "--max-log-rate and a fifth of a CPU: what the driver cannot hold is lost",
			 t->device);
	if (t->account.end && !t->ended_told)
		nps_warn("device %u: its channels are not sampled any more: they have %" PRIu64
			 " MiB, as much "
			 "as is left of --max-size for all others: a larger one allows more",
			 t->device, t->account.used >> 20);
	t->ended_told |= t->account.end != NULL;
}

static void end_streams(struct nps_device_thread *t)
{
	for (size_t i = 0; i < t->n_streams; i++) {
		stop_stream(t, &t->streams[i]);
		if (t->streams[i].state == NPS_STREAM_WAITS)
			t->streams[i].state = NPS_STREAM_REFUSED;
	}
}

static void drain_all(struct nps_device_thread *t)
{
	size_t from = t->first;

	for (size_t k = 0; k < t->n_streams && nps_log_account__may_read(&t->account); k++) {
		struct nps_device_stream *s = &t->streams[(from + k) % t->n_streams];
		int disk = 0, code;

		t->first = (from + k + 1) % t->n_streams;
		if (s->state != NPS_STREAM_OPEN)
			continue;
		code = nps_device_stream__drain(s, &t->lib, &t->info, t->common->session, t->buf, READ_BYTES,
						&disk);
		disk_error(t, disk);
		if (code) {
			failed(t, s, code);
		} else {
			s->failures = 0;
			/* Not at its start: one that is lost again and again has many. */
			if (nps_now(CLOCK_MONOTONIC) - s->opened > LONGEST_PAUSE)
				s->pause = 0;
		}
		say_rounds(t, s);
	}
	tell_limits(t);
	if (t->account.end)
		end_streams(t);
}

static void flush_all(struct nps_device_thread *t)
{
	for (size_t i = 0; i < t->n_streams; i++)
		if (t->streams[i].state == NPS_STREAM_OPEN)
			disk_error(t, nps_prof_file__flush(&t->streams[i].file, t->common->session));
}

static void stop_all(struct nps_device_thread *t)
{
	for (size_t i = 0; i < t->n_streams; i++)
		stop_stream(t, &t->streams[i]);
}

/* Channels that are asked for and that the device has. */
static int list_streams(struct nps_device_thread *t)
{
	struct nps_prof_channels *list = calloc(1, sizeof(*list));
	int code;

	if (!list)
		return -ENOMEM;
	code = nps_device_lib__channels(&t->lib, t->device, list);
	if (code) {
		free(list);
		return code;
	}
	for (size_t i = 0; i < nps_channels__count() && t->n_streams < MOST_STREAMS; i++) {
		const struct nps_channel *ch = nps_channel__at(i);
		bool there = false;

		if (!ch->hz(t->common->opts, &t->info))
			continue;
		for (uint32_t k = 0; k < list->n && k < NPS_PROF_CHANNELS && !there; k++)
			there = list->v[k].id == ch->id;
		t->streams[t->n_streams++] =
			(struct nps_device_stream){ .ch = ch,
						    .account = &t->account,
						    .state = there ? NPS_STREAM_WAITS : NPS_STREAM_ABSENT };
	}
	free(list);
	return 0;
}

/* --- what npu-smi tells ------------------------------------------------------------------------------ */

static bool profiles(struct nps_device_thread *t)
{
	for (size_t i = 0; i < t->n_streams; i++)
		if (t->streams[i].state == NPS_STREAM_OPEN && t->common->opts->metric != NPS_AIC_NONE)
			return true;
	return is_to_let_go(t); /* the job's own profiler runs */
}

static void sample_usage(struct nps_device_thread *t, uint64_t now)
{
	struct nps_npu_process list[NPS_DCMI_PROCESSES];
	struct nps_npu_usage usage = { .time = now, .device = t->device };
	size_t n;

	nps_dcmi__usage(&t->lib, &t->place, profiles(t), &usage);
	nps_device_common__append(t->common, NPS_CHUNK_NPU_USAGE, &usage, sizeof(usage));
	n = nps_dcmi__processes(&t->lib, &t->place, list);
	for (size_t i = 0; i < n; i++) {
		list[i].time = now;
		list[i].device = t->device;
	}
	if (n)
		nps_device_common__append(t->common, NPS_CHUNK_NPU_PROCESSES, list,
					  (uint32_t)(n * sizeof(*list)));
}

/* The segment that is being filled, for what is no channel. */
static struct segment *current(struct nps_device_thread *t)
{
	for (size_t i = t->n_segments; i--;)
		if (t->segments[i]->open)
			return t->segments[i];
	return NULL;
}

static void sample_netdev(struct nps_device_thread *t)
{
	struct segment *g = current(t);
	char line[NPS_DCMI_LINE];
	int code;

	if (!g)
		return;
	code = nps_dcmi__netdev(&t->lib, &t->place, nps_now(CLOCK_MONOTONIC_RAW), line);
	if (code) {
		if (!t->netdev_told)
			nps_warn("device %u: counters of its network port are not sampled: DCMI returned %d: "
				 "this device may have none",
				 t->device, code);
		t->netdev_told = true;
		return;
	}
	if (!g->has_netdev) {
		int err = nps_prof_file__init(&g->netdev, g->control.name, t->device, "netdev_stats.data",
					      8192);

		disk_error(t, err);
		if (err)
			return;
		g->has_netdev = true;
	}
	disk_error(t, nps_prof_file__write(&g->netdev, t->common->session, line, strlen(line)));
}

/* --- the thread -------------------------------------------------------------------------------------- */

static cJSON *describe_stream(const struct nps_device_stream *s)
{
	static const char *const states[] = { "waits", "open", "absent", "refused", "left" };
	cJSON *j = cJSON_CreateObject(), *codes;

	cJSON_AddNumberToObject(j, "id", s->ch->id);
	cJSON_AddStringToObject(j, "name", s->ch->name);
	cJSON_AddStringToObject(j, "state",
				s->starts && s->state == NPS_STREAM_WAITS ? "closed" : states[s->state]);
	cJSON_AddNumberToObject(j, "period_ms", s->period_ms);
	cJSON_AddNumberToObject(j, "starts", s->starts);
	cJSON_AddNumberToObject(j, "bytes", (double)s->bytes);
	cJSON_AddNumberToObject(j, "records", (double)s->records);
	cJSON_AddNumberToObject(j, "lost", (double)s->lost);
	cJSON_AddNumberToObject(j, "rounds", (double)s->rounds);
	cJSON_AddNumberToObject(j, "gaps", (double)s->gaps);
	cJSON_AddNumberToObject(j, "torn_bytes", (double)s->torn);
	codes = cJSON_AddArrayToObject(j, "errors");
	for (int i = 0; i < NPS_STREAM_CODES && s->codes[i]; i++)
		cJSON_AddItemToArray(codes, cJSON_CreateNumber(s->codes[i]));
	return j;
}

static cJSON *describe_segment(const struct segment *g)
{
	cJSON *j = cJSON_CreateObject(), *starts;

	cJSON_AddStringToObject(j, "prof_dir", g->control.name);
	cJSON_AddNumberToObject(j, "started_raw", (double)g->started);
	cJSON_AddNumberToObject(j, "ended_raw", (double)g->ended);
	starts = cJSON_AddArrayToObject(j, "starts");
	for (size_t i = 0; i < g->n_starts; i++) {
		cJSON *o = cJSON_CreateObject();

		cJSON_AddNumberToObject(o, "channel", g->starts[i].channel);
		cJSON_AddNumberToObject(o, "before_raw", (double)g->starts[i].before);
		cJSON_AddNumberToObject(o, "after_raw", (double)g->starts[i].after);
		cJSON_AddItemToArray(starts, o);
	}
	return j;
}

/* What others may look at: made here, since a call into the driver can take longer than they can wait. */
static void publish(struct nps_device_thread *t)
{
	struct nps_device_counts counts = { .cpu_ns = nps_now(CLOCK_THREAD_CPUTIME_ID) };
	cJSON *j = cJSON_CreateObject(), *old, *list;

	nps_device_info__describe(&t->info, j);
	list = cJSON_AddArrayToObject(j, "channels");
	for (size_t i = 0; i < t->n_streams; i++) {
		const struct nps_device_stream *s = &t->streams[i];

		counts.bytes += s->bytes;
		counts.records += s->records;
		counts.lost += s->lost;
		counts.torn += s->torn;
		counts.open += s->state == NPS_STREAM_OPEN;
		counts.refused +=
			s->state == NPS_STREAM_REFUSED ||
			(!s->starts && s->state != NPS_STREAM_ABSENT && s->state != NPS_STREAM_LEFT);
		cJSON_AddItemToArray(list, describe_stream(s));
	}
	list = cJSON_AddArrayToObject(j, "segments");
	for (size_t i = 0; i < t->n_segments; i++)
		cJSON_AddItemToArray(list, describe_segment(t->segments[i]));
	cJSON_AddNumberToObject(j, "cpu_ns", (double)counts.cpu_ns);
	pthread_mutex_lock(&t->lock);
	old = t->described;
	t->described = j;
	t->counts = counts;
	pthread_mutex_unlock(&t->lock);
	cJSON_Delete(old);
}

/* Has the time of something come that is due every PERIOD? */
static bool is_due(uint64_t *due, uint64_t now, uint64_t period)
{
	if (now < *due)
		return false;
	*due = now - *due < period ? *due + period : now + period;
	return true;
}

/* All channels are closed: that is said, unless they are wanted again already. */
static void let_go(struct nps_device_thread *t)
{
	bool first;

	stop_all(t);
	pthread_mutex_lock(&t->lock);
	first = t->release && !t->released;
	t->released = t->release;
	pthread_mutex_unlock(&t->lock);
	if (first)
		publish(t);
}

static void turn(struct nps_device_thread *t)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);
	bool second;

	if (is_to_let_go(t)) {
		let_go(t);
	} else {
		leave_shared(t);
		start_due(t);
		drain_all(t);
	}
	second = is_due(&t->clock_due, now, SECOND);
	if (second)
		sample_clocks(t);
	if (t->placed && t->common->opts->usage &&
	    is_due(&t->usage_due, now, SECOND / t->common->opts->usage_hz))
		sample_usage(t, now);
	if (t->placed && t->common->opts->io && is_due(&t->netdev_due, now, TURN_NS))
		sample_netdev(t);
	if (second) {
		flush_all(t);
		publish(t);
	}
}

/* Until then, or until somebody wants something. */
static void sleep_until(struct nps_device_thread *t, uint64_t when)
{
	struct timespec ts = { .tv_sec = (time_t)(when / SECOND), .tv_nsec = (long)(when % SECOND) };
	int err = 0;

	pthread_mutex_lock(&t->lock);
	while (!err && !atomic_load(&t->stop) && t->release == t->released)
		err = pthread_cond_timedwait(&t->wake, &t->lock, &ts);
	pthread_mutex_unlock(&t->lock);
}

/* What is to be known before anything is sampled. -errno: the reason has been printed. */
static int meet(struct nps_device_thread *t)
{
	int err, code = 0;

	err = nps_device_info__read(&t->lib, t->device, &t->info);
	if (!err && nps_device_options__channels(t->common->opts)) {
		code = list_streams(t);
		err = code ? -EIO : 0;
	}
	if (code)
		nps_warn("device %u: the driver does not list its channels (code %d): it is not sampled: "
			 "npu-smi info tells whether it works",
			 t->device, code);
	if (err) {
		nps_warn("device %u is not sampled: %s: is it healthy?", t->device, strerror(-err));
		return err;
	}
	nps_device_info__complain(&t->info);
	t->placed = nps_device_lib__same_numbers(&t->lib) && !nps_dcmi__find(&t->lib, t->device, &t->place);
	return 0;
}

static void *run(void *arg)
{
	struct nps_device_thread *t = arg;
	uint64_t due;

	nps_privilege__keep(NPS_PRIVILEGE_NONE);
	if (meet(t)) {
		atomic_store(&t->failed, true);
		atomic_store(&t->settled, true);
		return NULL;
	}
	for (int i = 0; i < CLOCK_EDGE; i++)
		sample_clocks(t);
	due = nps_now(CLOCK_MONOTONIC);
	while (!atomic_load(&t->stop) && !nps_device_lib__failed(&t->lib)) {
		uint64_t now;

		turn(t);
		now = nps_now(CLOCK_MONOTONIC);
		due = due + TURN_NS > now ? due + TURN_NS : now;
		sleep_until(t, due);
	}
	stop_all(t);
	for (int i = 0; i < CLOCK_EDGE; i++)
		sample_clocks(t);
	publish(t);
	return NULL;
}

static void init_wake(struct nps_device_thread *t)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->wake, &attr);
	pthread_condattr_destroy(&attr);
}

int nps_device_thread__start(struct nps_device_common *common, uint32_t device,
			     struct nps_device_thread **out)
{
	struct nps_device_thread *t = calloc(1, sizeof(*t));
	sigset_t all, old;
	int err;

	if (!t)
		return -ENOMEM;
	t->common = common;
	t->device = device;
	pthread_mutex_init(&t->lock, NULL);
	init_wake(t);
	err = nps_device_lib__connect(common->lib, &t->lib);
	if (!err)
		err = nps_log_account__init(&t->account, common->logs, 0);
	t->lib.sign = &t->sign;
	nps_device_lib__alive(&t->lib);
	t->buf = malloc(READ_BYTES);
	if (!err && !t->buf)
		err = -ENOMEM;
	if (!err) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		err = -pthread_create(&t->thread, NULL, run, t);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	if (err) {
		nps_device_thread__free(t);
		return err;
	}
	*out = t;
	return 0;
}

void nps_device_thread__release(struct nps_device_thread *t, bool release)
{
	pthread_mutex_lock(&t->lock);
	t->release = release;
	t->released &= release;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
}

bool nps_device_thread__released(struct nps_device_thread *t)
{
	bool released;

	pthread_mutex_lock(&t->lock);
	released = t->released || atomic_load(&t->failed);
	pthread_mutex_unlock(&t->lock);
	return released;
}

bool nps_device_thread__limited(const struct nps_device_thread *t)
{
	return atomic_load(&t->slowed_told);
}

bool nps_device_thread__failed(const struct nps_device_thread *t)
{
	return atomic_load(&t->failed);
}

uint64_t nps_device_thread__sign(const struct nps_device_thread *t)
{
	return atomic_load(&t->sign);
}

bool nps_device_thread__settled(const struct nps_device_thread *t)
{
	return atomic_load(&t->settled);
}

void nps_device_thread__stop(struct nps_device_thread *t)
{
	pthread_mutex_lock(&t->lock);
	atomic_store(&t->stop, true);
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
}

bool nps_device_thread__join(struct nps_device_thread *t, unsigned int ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000L;
	if (until.tv_nsec >= (long)SECOND) {
		until.tv_sec++;
		until.tv_nsec -= (long)SECOND;
	}
	return !pthread_timedjoin_np(t->thread, NULL, &until);
}

void nps_device_thread__free(struct nps_device_thread *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_segments; i++)
		free_segment(t->segments[i]);
	cJSON_Delete(t->described);
	nps_device_lib__close(&t->lib);
	pthread_cond_destroy(&t->wake);
	pthread_mutex_destroy(&t->lock);
	free(t->buf);
	free(t);
}

uint32_t nps_device_thread__device(const struct nps_device_thread *t)
{
	return t->device;
}

void nps_device_thread__count(struct nps_device_thread *t, struct nps_device_counts *counts)
{
	pthread_mutex_lock(&t->lock);
	*counts = t->counts;
	pthread_mutex_unlock(&t->lock);
}

void nps_device_thread__describe(struct nps_device_thread *t, cJSON *devices)
{
	pthread_mutex_lock(&t->lock);
	if (t->described)
		cJSON_AddItemToArray(devices, cJSON_Duplicate(t->described, 1));
	pthread_mutex_unlock(&t->lock);
}

int nps_device_thread__error(const struct nps_device_thread *t)
{
	return atomic_load(&t->error);
}
