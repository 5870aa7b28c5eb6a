/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/device/device_thread_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/clocks.h"
#include "core/log.h"
#include "core/privilege.h"

#define SECOND 1000000000ULL
#define TURN_NS (SECOND / 5)
#define CLOCK_EDGE 4 /* samples of the clocks at both ends */

void nps_device_common__append(struct nps_device_common *c, uint16_t type, const void *data, uint32_t len)
{
	pthread_mutex_lock(&c->lock);
	nps_stream__append(&c->session->device, type, 0, data, len); /* a write error ends the capture */
	pthread_mutex_unlock(&c->lock);
}

void nps_device_thread__disk_error(struct nps_device_thread *t, int err)
{
	int none = 0;

	if (err)
		atomic_compare_exchange_strong(&t->error, &none, err);
}

bool nps_device_thread__is_to_let_go(struct nps_device_thread *t)
{
	bool release;

	pthread_mutex_lock(&t->lock);
	release = t->release;
	pthread_mutex_unlock(&t->lock);
	return release;
}

/* --- values of npu-smi ------------------------------------------------------------------------------- */

static bool profiles(struct nps_device_thread *t)
{
	for (size_t i = 0; i < t->n_streams; i++)
		if (t->streams[i].state == NPS_STREAM_OPEN && t->common->opts->metric != NPS_AIC_NONE)
			return true;
	return nps_device_thread__is_to_let_go(t); /* then the job's own profiler runs */
}

static void sample_usage(struct nps_device_thread *t, uint64_t now)
{
	struct nps_npu_process list[NPS_DCMI_PROCESSES];
	struct nps_npu_usage usage = { .time = now, .device = t->device };
	size_t n;

	nps_dcmi__usage(&t->lib, &t->unit, profiles(t), &usage);
	nps_device_common__append(t->common, NPS_CHUNK_NPU_USAGE, &usage, sizeof(usage));
	n = nps_dcmi__processes(&t->lib, &t->unit, list);
	for (size_t i = 0; i < n; i++) {
		list[i].time = now;
		list[i].device = t->device;
	}
	if (n)
		nps_device_common__append(t->common, NPS_CHUNK_NPU_PROCESSES, list,
					  (uint32_t)(n * sizeof(*list)));
}

/* The segment that is being filled, for data that is not from a channel. */
static struct nps_device_segment *segment_current(struct nps_device_thread *t)
{
	for (size_t i = t->n_segments; i--;)
		if (t->segments[i]->open)
			return t->segments[i];
	return NULL;
}

static void sample_netdev(struct nps_device_thread *t)
{
	struct nps_device_segment *g = segment_current(t);
	char line[NPS_DCMI_LINE];
	int code;

	if (!g)
		return;
	code = nps_dcmi__netdev(&t->lib, &t->unit, nps_now(CLOCK_MONOTONIC_RAW), line);
	if (code) {
		if (!t->netdev_reported)
			nps_warn("device %u: counters of its network port are not sampled: DCMI returned %d: "
				 "this device may have none",
				 t->device, code);
		t->netdev_reported = true;
		return;
	}
	if (!g->has_netdev) {
		int err = nps_prof_file__init(&g->netdev, g->control.name, t->device, "netdev_stats.data",
					      8192);

		nps_device_thread__disk_error(t, err);
		if (err)
			return;
		g->has_netdev = true;
	}
	nps_device_thread__disk_error(t, nps_prof_file__write(&g->netdev, t->common->session, line,
							      strlen(line)));
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

static cJSON *describe_segment(const struct nps_device_segment *g)
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

/*
 * Publishes the state for other threads, because a call into the driver can take longer than they can wait.
 */
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

/* Is something due that repeats every PERIOD? */
static bool period_is_due(uint64_t *due, uint64_t now, uint64_t period)
{
	if (now < *due)
		return false;
	*due = now - *due < period ? *due + period : now + period;
	return true;
}

/* Closes all channels and announces that, unless they are wanted again already. */
static void device_let_go(struct nps_device_thread *t)
{
	bool first;

	nps_device_segments__stop(t);
	pthread_mutex_lock(&t->lock);
	first = t->release && !t->released;
	t->released = t->release;
	pthread_mutex_unlock(&t->lock);
	if (first)
		publish(t);
}

static void device_turn(struct nps_device_thread *t)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);
	bool second;

	if (nps_device_thread__is_to_let_go(t)) {
		device_let_go(t);
	} else {
		nps_device_segments__leave_shared(t);
		nps_device_segments__start_due(t);
		nps_device_segments__drain(t);
	}
	second = period_is_due(&t->clock_due, now, SECOND);
	if (second)
		nps_device_segments__sample_clocks(t);
	if (t->has_unit && t->common->opts->usage &&
	    period_is_due(&t->usage_due, now, SECOND / t->common->opts->usage_hz))
		sample_usage(t, now);
	if (t->has_unit && t->common->opts->io && period_is_due(&t->netdev_due, now, TURN_NS))
		sample_netdev(t);
	if (second) {
		nps_device_segments__flush(t);
		publish(t);
	}
}

/* Sleeps until WHEN, or until a request arrives. */
static void device_sleep_until(struct nps_device_thread *t, uint64_t when)
{
	struct timespec ts = { .tv_sec = (time_t)(when / SECOND), .tv_nsec = (long)(when % SECOND) };
	int err = 0;

	pthread_mutex_lock(&t->lock);
	while (!err && !atomic_load(&t->stop) && t->release == t->released)
		err = pthread_cond_timedwait(&t->wake, &t->lock, &ts);
	pthread_mutex_unlock(&t->lock);
}

/* Reads what has to be known before anything is sampled. -errno: the reason has been printed. */
static int meet(struct nps_device_thread *t)
{
	int err, code = 0;

	err = nps_device_info__read(&t->lib, t->device, &t->info);
	if (!err && nps_device_options__channels(t->common->opts)) {
		code = nps_device_segments__list(t);
		err = code ? -EIO : 0;
	}
	if (code)
		nps_warn("device %u: the driver does not list its channels (code %d): it is not sampled: "
			 "check it with npu-smi info",
			 t->device, code);
	if (err) {
		nps_warn("device %u is not sampled: %s: is it healthy?", t->device, strerror(-err));
		return err;
	}
	nps_device_info__complain(&t->info);
	t->has_unit = nps_device_lib__same_numbers(&t->lib) && !nps_dcmi__find(&t->lib, t->device, &t->unit);
	return 0;
}

static void *device_run(void *arg)
{
	struct nps_device_thread *t = arg;
	uint64_t due;

	nps_privilege__keep(NPS_PRIVILEGE_NONE, false);
	if (meet(t)) {
		atomic_store(&t->failed, true);
		atomic_store(&t->settled, true);
		return NULL;
	}
	for (int i = 0; i < CLOCK_EDGE; i++)
		nps_device_segments__sample_clocks(t);
	due = nps_now(CLOCK_MONOTONIC);
	while (!atomic_load(&t->stop) && !nps_device_lib__failed(&t->lib)) {
		uint64_t now;

		device_turn(t);
		now = nps_now(CLOCK_MONOTONIC);
		due = due + TURN_NS > now ? due + TURN_NS : now;
		device_sleep_until(t, due);
	}
	nps_device_segments__stop(t);
	for (int i = 0; i < CLOCK_EDGE; i++)
		nps_device_segments__sample_clocks(t);
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
	if (err)
		goto fail;
	err = nps_log_account__init(&t->account, common->logs, 0);
	if (err)
		goto fail;
	t->lib.sign = &t->sign;
	nps_device_lib__alive(&t->lib);
	t->buf = malloc(NPS_DEVICE_READ_BYTES);
	if (!t->buf) {
		err = -ENOMEM;
		goto fail;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&t->thread, NULL, device_run, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		goto fail;
	*out = t;
	return 0;
fail:
	nps_device_thread__free(t);
	return err;
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
	return atomic_load(&t->slowed_reported);
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
		nps_device_segments__free_one(t->segments[i]);
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
