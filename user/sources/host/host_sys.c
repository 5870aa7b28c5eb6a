/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/host/host_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bpf_shared.h"
#include "core/clocks.h"
#include "core/privilege.h"
#include "sources/host/host_devices.h"
#include "sources/host/host_out.h"
#include "sources/host/host_parse.h"
#include "sources/host/host_tasks.h"

#define SECOND 1000000000ULL
#define TEXT_SIZE (1U << 20) /* of the longest file of /proc */
#define MOST_CPUS (NPS_MAX_CPUS + 1)
#define MOST_PENDING 1024 /* targets that the thread has not added yet */
#define MOST_TARGETS 4096
#define SHARE 4 /* sampling uses at most one CPU divided by this */

struct nps_host_sys {
	struct nps_host_sys_opts opts;
	struct nps_host_out out;
	struct nps_host_tasks *tasks;
	struct nps_host_devices *devices;
	pthread_t thread;
	bool running;
	atomic_bool stop;
	pthread_mutex_t lock; /* protects the pending targets */
	pid_t pending[MOST_PENDING];
	size_t n_pending;
	pid_t targets[MOST_TARGETS]; /* their network namespaces are checked again */
	size_t n_targets;
	uint64_t refreshed; /* time of that check */
	atomic_uint_fast64_t samples, records, late, missed, cpu_ns, overflow;
	int stat, meminfo;
	uint64_t tick_ns;
	struct nps_host_cpu cpus[MOST_CPUS];
	char *text;
};

/* --- one sample -------------------------------------------------------------------------------------- */

static void sample_cpus(struct nps_host_sys *h)
{
	ssize_t len = nps_read_proc(h->stat, h->text, TEXT_SIZE);
	struct nps_host_system system;
	uint64_t now = nps_now(CLOCK_MONOTONIC);
	size_t n;

	if (len <= 0)
		return;
	n = nps_host_parse__stat(h->text, (size_t)len, h->tick_ns, h->cpus, MOST_CPUS, &system);
	for (size_t i = 0; i < n; i++) {
		h->cpus[i].time = now;
		nps_host_out__put(&h->out, NPS_CHUNK_HOST_CPUS, &h->cpus[i], sizeof(h->cpus[i]));
	}
	system.time = now;
	nps_host_out__put(&h->out, NPS_CHUNK_HOST_SYSTEM, &system, sizeof(system));
}

static void sample_memory(struct nps_host_sys *h)
{
	ssize_t len = nps_read_proc(h->meminfo, h->text, TEXT_SIZE);
	struct nps_host_memory memory;

	if (len <= 0 || !nps_host_parse__meminfo(h->text, (size_t)len, &memory))
		return;
	memory.time = nps_now(CLOCK_MONOTONIC);
	nps_host_out__put(&h->out, NPS_CHUNK_HOST_MEMORY, &memory, sizeof(memory));
}

static void adopt_targets(struct nps_host_sys *h)
{
	pid_t pids[MOST_PENDING];
	size_t n;

	pthread_mutex_lock(&h->lock);
	n = h->n_pending;
	memcpy(pids, h->pending, n * sizeof(*pids));
	h->n_pending = 0;
	pthread_mutex_unlock(&h->lock);
	for (size_t i = 0; i < n; i++) {
		nps_host_tasks__target(h->tasks, pids[i]);
		if (h->n_targets < MOST_TARGETS)
			h->targets[h->n_targets++] = pids[i];
		else
			atomic_fetch_add(&h->overflow, 1);
		h->refreshed = 0;
	}
}

/* A process can change its network namespace, as a container runtime does. */
static void scan_namespaces(struct nps_host_sys *h)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	if (!(h->opts.parts & NPS_HOST_SYS_NETWORK) || now - h->refreshed < SECOND)
		return;
	h->refreshed = now;
	for (size_t i = 0; i < h->n_targets;) {
		if (nps_host_devices__add_namespace(h->devices, h->targets[i]))
			i++;
		else /* it has exited, and its pid may be reused */
			h->targets[i] = h->targets[--h->n_targets];
	}
}

static void host_sample(struct nps_host_sys *h)
{
	adopt_targets(h);
	scan_namespaces(h);
	if (h->opts.parts & NPS_HOST_SYS_CPU)
		sample_cpus(h);
	nps_host_tasks__scan(h->tasks);
	if (h->opts.parts & NPS_HOST_SYS_MEM)
		sample_memory(h);
	if (h->opts.parts & NPS_HOST_SYS_DISK)
		nps_host_devices__disks(h->devices, h->text, TEXT_SIZE);
	if (h->opts.parts & NPS_HOST_SYS_NETWORK)
		nps_host_devices__cards(h->devices, h->text, TEXT_SIZE);
	atomic_fetch_add(&h->samples, 1);
	atomic_store(&h->records, h->out.records);
	atomic_store(&h->missed, nps_host_tasks__missed(h->tasks) + nps_host_devices__missed(h->devices) +
					 atomic_load(&h->overflow));
}

/* --- the thread -------------------------------------------------------------------------------------- */

static void host_sleep_until(uint64_t when)
{
	struct timespec ts = { .tv_sec = (time_t)(when / SECOND), .tv_nsec = (long)(when % SECOND) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static void *host_run(void *arg)
{
	struct nps_host_sys *h = arg;
	uint64_t period = SECOND / h->opts.hz, due = nps_now(CLOCK_MONOTONIC), written = due;

	nps_privilege__keep(NPS_PRIVILEGE_NAMESPACES, false);
	while (!atomic_load(&h->stop)) {
		uint64_t began = nps_now(CLOCK_THREAD_CPUTIME_ID), earliest, now, elapsed;

		host_sample(h);
		now = nps_now(CLOCK_MONOTONIC);
		if (now - written >= SECOND) {
			nps_host_out__flush(&h->out);
			written = now;
		}
		elapsed = nps_now(CLOCK_THREAD_CPUTIME_ID) - began;
		atomic_fetch_add(&h->cpu_ns, elapsed);
		/*
		 * At multiples of the period, but not before the last sample's share of CPU time has passed.
		 */
		earliest = now + (SHARE - 1) * elapsed;
		for (due += period; due < earliest; due += period)
			atomic_fetch_add(&h->late, 1);
		host_sleep_until(due);
	}
	host_sample(h);
	nps_host_tasks__last(h->tasks);
	nps_host_out__flush(&h->out);
	atomic_store(&h->records, h->out.records);
	return NULL;
}

static int start_thread(struct nps_host_sys *h)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&h->thread, NULL, host_run, h);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	h->running = !err;
	return -err;
}

static int open_files(struct nps_host_sys *h)
{
	h->stat = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	if (h->stat < 0)
		return -errno;
	h->meminfo = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	return h->meminfo < 0 ? -errno : 0;
}

int nps_host_sys__start(const struct nps_host_sys_opts *opts, struct nps_stream *stream,
			struct nps_host_sys **out)
{
	struct nps_host_sys *h = calloc(1, sizeof(*h));
	struct nps_host_tasks_opts tasks = { .sz = sizeof(tasks),
					     .cpu = opts->parts & NPS_HOST_SYS_CPU,
					     .mem = opts->parts & NPS_HOST_SYS_MEM,
					     .disk = opts->parts & NPS_HOST_SYS_DISK,
					     .net_map = opts->net_map,
					     .all = opts->all,
					     .begin = opts->begin };
	int err;

	if (!h)
		return -ENOMEM;
	h->opts = *opts;
	h->stat = h->meminfo = -1;
	h->tick_ns = SECOND / (uint64_t)sysconf(_SC_CLK_TCK);
	pthread_mutex_init(&h->lock, NULL);
	h->text = malloc(TEXT_SIZE);
	err = h->text ? open_files(h) : -ENOMEM;
	if (err)
		goto fail;
	err = nps_host_out__init(&h->out, stream);
	if (err)
		goto fail;
	err = nps_host_tasks__new(&tasks, &h->out, &h->tasks);
	if (err)
		goto fail;
	err = nps_host_devices__new(&h->out, &h->devices);
	if (err)
		goto fail;
	err = start_thread(h);
	if (err)
		goto fail;
	*out = h;
	return 0;
fail:
	nps_host_sys__free(h);
	return err;
}

void nps_host_sys__target(struct nps_host_sys *h, pid_t pid)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	if (h->n_pending < MOST_PENDING)
		h->pending[h->n_pending++] = pid;
	else
		atomic_fetch_add(&h->overflow, 1);
	pthread_mutex_unlock(&h->lock);
}

void nps_host_sys__end(struct nps_host_sys *h)
{
	if (h)
		atomic_store(&h->stop, true);
}

void nps_host_sys__stop(struct nps_host_sys *h)
{
	if (!h || !h->running)
		return;
	atomic_store(&h->stop, true);
	pthread_join(h->thread, NULL);
	h->running = false;
}

void nps_host_sys__free(struct nps_host_sys *h)
{
	if (!h)
		return;
	nps_host_sys__stop(h);
	nps_host_devices__free(h->devices);
	nps_host_tasks__free(h->tasks);
	nps_host_out__free(&h->out);
	if (h->stat >= 0)
		close(h->stat);
	if (h->meminfo >= 0)
		close(h->meminfo);
	pthread_mutex_destroy(&h->lock);
	free(h->text);
	free(h);
}

void nps_host_sys__counts(const struct nps_host_sys *h, struct nps_host_sys_counts *counts)
{
	*counts = (struct nps_host_sys_counts){ 0 };
	if (!h)
		return;
	counts->samples = atomic_load(&h->samples);
	counts->records = atomic_load(&h->records);
	counts->late = atomic_load(&h->late);
	counts->missed = atomic_load(&h->missed);
	counts->cpu_ns = atomic_load(&h->cpu_ns);
}
