/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels that could be started together fill one PROF_* directory, whose control
 * files contain the time of that start, from which times of some records count. A
 * channel that was busy then, or was released for the job's own profiler, or lost
 * with a reset of the device, is started again later, and fills another directory.
 *
 * prof_channel_poll() is not used: its queue belongs to the process, so that one thread would consume
 * another's events, and it wakes for each packet of each channel. Reads do not block; the samples of one
 * turn, of all channels, are a twentieth of one ring.
 */
#include "sources/device/device_thread_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clocks.h"
#include "core/log.h"
#include "driver/device_report.h"

#define SECOND 1000000000ULL
#define FIRST_PAUSE SECOND /* before the next try to start a refused channel; doubled each time */
#define LONGEST_PAUSE (30 * SECOND)
#define MOST_FAILURES 3 /* failed reads in a row before a channel is started again */
#define CLOCK_TRIES 4

enum { MODULE_SYSTEM = 0, INFO_SYS_COUNT = 13, INFO_MONOTONIC_RAW = 14 };

/* --- clocks ------------------------------------------------------------------------------------------ */

/* The shortest of a few reads. False: the driver has no such clock. */
static bool device_read_clock(struct nps_device_thread *t, int info, struct nps_device_clock *best)
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

void nps_device_segments__sample_clocks(struct nps_device_thread *t)
{
	struct nps_device_clock c;

	if (device_read_clock(t, INFO_SYS_COUNT, &c))
		nps_device_common__append(t->common, NPS_CHUNK_DEVICE_CLOCKS, &c, sizeof(c));
	if (device_read_clock(t, INFO_MONOTONIC_RAW, &c))
		nps_device_common__append(t->common, NPS_CHUNK_DEVICE_RAWS, &c, sizeof(c));
}

/* Both clocks at one time, for the control files. */
static struct nps_prof_sync synchronise(struct nps_device_thread *t)
{
	struct nps_prof_sync sync = { .host_raw = nps_now(CLOCK_MONOTONIC_RAW) };
	struct nps_device_clock count, raw;

	if (!device_read_clock(t, INFO_SYS_COUNT, &count))
		return sync;
	sync.host_raw = count.raw_before + (count.raw_after - count.raw_before) / 2;
	sync.device_count = count.counter;
	if (device_read_clock(t, INFO_MONOTONIC_RAW, &raw)) {
		uint64_t at = raw.raw_before + (raw.raw_after - raw.raw_before) / 2;

		sync.device_raw = raw.counter - (at - sync.host_raw); /* at the same time as the other */
	}
	return sync;
}

/* --- segments ---------------------------------------------------------------------------------------- */

static int write_control_files(struct nps_device_thread *t, struct nps_device_segment *g)
{
	int err = nps_prof_control__host(&g->control, t->common->session);

	if (err)
		return err;
	return nps_prof_control__device(&g->control, t->common->session, &t->info, &g->sync);
}

static void write_control(struct nps_device_thread *t, struct nps_device_segment *g)
{
	int err;

	pthread_mutex_lock(&t->common->lock); /* the directories are created in between, each once */
	err = write_control_files(t, g);
	pthread_mutex_unlock(&t->common->lock);
	nps_device_thread__disk_error(t, err);
}

static struct nps_device_segment *new_segment(struct nps_device_thread *t)
{
	struct nps_device_segment *g = t->n_segments < NPS_DEVICE_MOST_SEGMENTS ? calloc(1, sizeof(*g))
										: NULL;

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

void nps_device_segments__free_one(struct nps_device_segment *g)
{
	if (!g)
		return;
	cJSON_Delete(g->sample);
	free(g);
}

static void end_segment(struct nps_device_thread *t, struct nps_device_segment *g)
{
	if (g->has_netdev)
		nps_device_thread__disk_error(t, nps_prof_file__finish(&g->netdev, t->common->session));
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

/* Prints one line for each code that CALL ("start", "read", "stop") on the channel returned, once. */
static void report_code(struct nps_device_stream *s, unsigned int device, const char *call, int code)
{
	const char *what, *then;

	if (code == NPS_DEVICE_LIB_EXITED)
		return;
	for (int i = 0; i < NPS_STREAM_CODES; i++) {
		if (s->codes[i] == code)
			return;
		if (s->codes[i])
			continue;
		s->codes[i] = code;
		break;
	}
	nps_device_report__words(code, &what, &then);
	nps_warn("device %u: %s: %s (%s of channel %u: code %d): %s", device, s->ch->name, what, call,
		 s->ch->id, code, then);
}

/* Starts one channel into segment G. */
static bool start_stream(struct nps_device_thread *t, struct nps_device_stream *s,
			 struct nps_device_segment *g)
{
	struct nps_device_start *start = &g->starts[g->n_starts];
	uint64_t before = nps_now(CLOCK_MONOTONIC_RAW);
	int code;

	code = nps_device_stream__start(s, &t->lib, t->common->opts, &t->info, g->control.name);
	if (!code) {
		*start = (struct nps_device_start){ s->ch->id, before, nps_now(CLOCK_MONOTONIC_RAW) };
		g->n_starts++;
		g->open++;
		s->segment = (int)t->n_segments;
		nps_channel__describe(s->ch, t->common->opts, &t->info, g->sample);
		return true;
	}
	report_code(s, t->device, "start", code);
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

/* No segment is left: channels that are closed now are not sampled any more. */
static void thread_abandon(struct nps_device_thread *t)
{
	if (!t->abandoned)
		nps_warn("device %u: its channels were closed and started %d times: those that are closed "
			 "are not sampled any more: check its health with npu-smi info",
			 t->device, NPS_DEVICE_MOST_SEGMENTS);
	t->abandoned = true;
	for (size_t i = 0; i < t->n_streams; i++)
		if (t->streams[i].state == NPS_STREAM_WAITS)
			t->streams[i].state = NPS_STREAM_REFUSED;
}

void nps_device_segments__start_due(struct nps_device_thread *t)
{
	struct nps_device_segment *g = any_due(t) ? new_segment(t) : NULL;
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	for (size_t i = 0;
	     g && i < t->n_streams && !nps_device_thread__is_to_let_go(t) && !atomic_load(&t->stop); i++)
		if (t->streams[i].state == NPS_STREAM_WAITS && t->streams[i].retry <= now)
			start_stream(t, &t->streams[i], g);
	if (g && g->n_starts) {
		t->segments[t->n_segments++] = g;
		write_control(t, g);
	} else {
		nps_device_segments__free_one(g);
	}
	if (t->n_segments == NPS_DEVICE_MOST_SEGMENTS && any_due(t))
		thread_abandon(t);
	atomic_store(&t->settled, true);
}

static void closed(struct nps_device_thread *t, struct nps_device_stream *s)
{
	struct nps_device_segment *g = t->segments[s->segment];

	if (!--g->open)
		end_segment(t, g);
}

static void stop_stream(struct nps_device_thread *t, struct nps_device_stream *s)
{
	int disk = 0, code;

	if (s->state != NPS_STREAM_OPEN)
		return;
	code = nps_device_stream__stop(s, &t->lib, &t->info, t->common->session, t->buf,
				       NPS_DEVICE_READ_BYTES, &disk);
	if (code && code != NPS_PROF_STOPPED)
		report_code(s, t->device, "stop", code);
	nps_device_thread__disk_error(t, disk);
	s->retry = 0;
	s->pause = 0;
	closed(t, s);
}

/* A single read may fail; if reads keep failing, or the channel was stopped, it is started again. */
static void stream_failed(struct nps_device_thread *t, struct nps_device_stream *s, int code)
{
	int disk = 0;

	report_code(s, t->device, "read", code);
	if (code != NPS_PROF_STOPPED && ++s->failures < MOST_FAILURES)
		return;
	nps_device_lib__stop(&t->lib, t->device,
			     s->ch->id); /* the result does not matter: it is started again */
	nps_device_stream__abandon(s, &t->info, t->common->session, &disk);
	nps_device_thread__disk_error(t, disk);
	closed(t, s);
	wait_before_retry(s);
}

void nps_device_segments__leave_shared(struct nps_device_thread *t)
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

static void report_rounds(const struct nps_device_thread *t, struct nps_device_stream *s)
{
	if (s->rounds && !s->rounds_reported)
		nps_warn("device %u: %s: it was not read for %.1f s, and the driver's ring was overwritten: "
			 "about "
			 "%" PRIu64 " records are lost: is the host overloaded?",
			 t->device, s->ch->name, (double)s->unread / (double)SECOND, s->lost);
	s->rounds_reported = s->rounds;
}

/* Necessary because a job's driver library can make up any amount of data. */
static void report_limits(struct nps_device_thread *t)
{
	if (t->account.slowed && !atomic_exchange(&t->slowed_reported, true))
		nps_warn("device %u: its channels bring more than npuscope reads of one device, half of "
			 "--max-log-rate and a fifth of a CPU: what the driver cannot hold is lost",
			 t->device);
	if (t->account.end && !t->ended_reported)
		nps_warn("device %u: its channels are not sampled any more: they have %" PRIu64
			 " MiB, as much "
			 "as is left of --max-size for all others: a larger one allows more",
			 t->device, t->account.used >> 20);
	t->ended_reported |= t->account.end != NULL;
}

static void end_streams(struct nps_device_thread *t)
{
	for (size_t i = 0; i < t->n_streams; i++) {
		stop_stream(t, &t->streams[i]);
		if (t->streams[i].state == NPS_STREAM_WAITS)
			t->streams[i].state = NPS_STREAM_REFUSED;
	}
}

void nps_device_segments__drain(struct nps_device_thread *t)
{
	size_t from = t->first;

	for (size_t k = 0; k < t->n_streams && nps_log_account__may_read(&t->account); k++) {
		struct nps_device_stream *s = &t->streams[(from + k) % t->n_streams];
		int disk = 0, code;

		t->first = (from + k + 1) % t->n_streams;
		if (s->state != NPS_STREAM_OPEN)
			continue;
		code = nps_device_stream__drain(s, &t->lib, &t->info, t->common->session, t->buf,
						NPS_DEVICE_READ_BYTES, &disk);
		nps_device_thread__disk_error(t, disk);
		if (code) {
			stream_failed(t, s, code);
		} else {
			s->failures = 0;
			/* Not at its start, so that one that is lost again and again has long pauses. */
			if (nps_now(CLOCK_MONOTONIC) - s->opened > LONGEST_PAUSE)
				s->pause = 0;
		}
		report_rounds(t, s);
	}
	report_limits(t);
	if (t->account.end)
		end_streams(t);
}

void nps_device_segments__flush(struct nps_device_thread *t)
{
	for (size_t i = 0; i < t->n_streams; i++)
		if (t->streams[i].state == NPS_STREAM_OPEN)
			nps_device_thread__disk_error(t, nps_prof_file__flush(&t->streams[i].file,
									      t->common->session));
}

void nps_device_segments__stop(struct nps_device_thread *t)
{
	for (size_t i = 0; i < t->n_streams; i++)
		stop_stream(t, &t->streams[i]);
}

int nps_device_segments__list(struct nps_device_thread *t)
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
	for (size_t i = 0; i < nps_channels__count() && t->n_streams < NPS_DEVICE_MOST_STREAMS; i++) {
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
