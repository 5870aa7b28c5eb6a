/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/agent_client.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent.h"
#include "capture/agent_errors.h"
#include "capture/process.h"
#include "capture/task_channels.h"
#include "core/clocks.h"
#include "core/log.h"
#include "core/time_namespace.h"

#define MAPPED_NAME "/memfd:" NPS_AGENT_NAME
#define MAP_BYTES (NPS_AGENT_CONTROL_SIZE + NPS_AGENT_RING_SIZE)
/* What is read between two checks of its limits, and in a call in all */
#define BLOCKS_PER_POLL 16
#define BYTES_PER_POLL (1U << 20)
#define LONGEST_NS 20000000ULL

struct nps_agent_client {
	pid_t pid;
	struct nps_session_writer *s;
	struct nps_agent_control *ctl;
	const char *ring;
	struct nps_channel_files *files; /* not owned */
	enum nps_aic_metric metric;
	uint32_t number; /* of this helper in the capture: each counts its epochs from 1 */
	uint64_t tail, lost_before, bytes;
	uint64_t unread; /* bytes that were left in the ring when reading stopped */
	bool broken, started, stopped, interrupted, delivered;
	bool waits; /* to start: the helper has not released the devices of the previous capture */
	bool timed; /* the offset of its clock is known */
	int64_t clock_offset; /* ns that CLOCK_MONOTONIC_RAW is ahead of ours in the job's time namespace */
	struct nps_agent_errors errors;
	size_t mapped; /* bytes from ctl on */
	struct nps_agent_client *next; /* in the chain of former programs of the process */
	struct nps_agent_client *other; /* in the list of all */
	dev_t dev;
	ino_t ino;
};

static struct nps_agent_client *clients;
static uint32_t helpers;

static const struct nps_mapping *find_mapping(const struct nps_maps *maps)
{
	size_t n = strlen(MAPPED_NAME);

	for (size_t i = 0; i < maps->n; i++)
		if (strncmp(maps->v[i].path, MAPPED_NAME, n) == 0 &&
		    (maps->v[i].path[n] == '\0' || maps->v[i].path[n] == ' ') && maps->v[i].shared)
			return &maps->v[i];
	return NULL;
}

/*
 * The library is loaded, but without its memory: the process has not loaded CANN, or created no thread since.
 */
static bool sleeps(const struct nps_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		if (strcmp(nps_basename(maps->v[i].path), NPS_AGENT_LIBRARY) == 0)
			return true;
	return false;
}

bool nps_agent_client__present(const struct nps_maps *maps)
{
	return find_mapping(maps) != NULL;
}

static void wake(struct nps_agent_client *a)
{
	__atomic_fetch_add(&a->ctl->wake, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &a->ctl->wake, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* A child by vfork(2) shares its parent's memory, with the helper, until it calls exec. */
static bool is_anothers(const struct stat *memory)
{
	for (const struct nps_agent_client *a = clients; a; a = a->other)
		if (a->dev == memory->st_dev && a->ino == memory->st_ino &&
		    a->ctl->owner == (uint32_t)getpid())
			return true;
	return false;
}

/* Claims the helper. If its collector was killed, requests a release first; it starts after that. */
static bool claim_helper(struct nps_agent_client *a)
{
	struct nps_agent_control *ctl = a->ctl;
	uint32_t owner = __atomic_load_n(&ctl->owner, __ATOMIC_ACQUIRE);
	bool alive = owner && owner != (uint32_t)getpid() && nps_pid_is_kin((pid_t)owner);

	if (alive || !__atomic_compare_exchange_n(&ctl->owner, &owner, (uint32_t)getpid(), false,
						  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return false;
	__atomic_store_n(&ctl->command, NPS_AGENT_IDLE, __ATOMIC_RELEASE);
	wake(a);
	return true;
}

/* Finds the offset of the job's clocks, which the helper reads: a time namespace shifts them. */
static void relate_clock(struct nps_agent_client *a)
{
	int err = nps_time_namespace__offset(a->pid, &a->clock_offset);

	a->timed = !err;
	if (err)
		nps_warn("pid %d: it is in a time namespace whose offset cannot be read: %s: its device "
			 "times are bounds",
			 (int)a->pid, strerror(-err));
}

int nps_agent_client__open(pid_t pid, const struct nps_maps *maps, struct nps_session_writer *s,
			   struct nps_channel_files *files, struct nps_agent_client **out, char *why,
			   size_t why_size)
{
	const struct nps_mapping *m = find_mapping(maps);
	struct nps_agent_client *a;
	struct stat st;
	int fd, seals;
	void *mem;

	if (!m) {
		snprintf(why, why_size, "%s",
			 sleeps(maps) ? "the helper library waits for the first thread that the job makes "
					"with CANN loaded"
				      : "the job was started without the helper library (--inject loads it)");
		return -ENOENT;
	}
	fd = nps_mapping__open(pid, m, O_RDWR);
	if (fd < 0) {
		snprintf(why, why_size, "its memory cannot be opened: %s", strerror(-fd));
		return fd;
	}
	/* Without the seal the job could shrink the file under us. */
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) || st.st_size != MAP_BYTES) {
		close(fd);
		snprintf(why, why_size, "its memory is not as this version makes it");
		return -EPROTO;
	}
	if (is_anothers(&st)) {
		snprintf(why, why_size, "it is that of the process that made this one");
		close(fd);
		return -EBUSY;
	}
	mem = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (mem == MAP_FAILED) {
		snprintf(why, why_size, "its memory cannot be mapped: %s", strerror(errno));
		return -errno;
	}
	a = calloc(1, sizeof(*a));
	if (!a) {
		munmap(mem, MAP_BYTES);
		return -ENOMEM;
	}
	a->pid = pid;
	a->s = s;
	a->ctl = mem;
	a->mapped = MAP_BYTES;
	a->files = files;
	a->number = ++helpers;
	relate_clock(a);
	a->dev = st.st_dev;
	a->ino = st.st_ino;
	a->other = clients;
	clients = a;
	a->ring = (char *)mem + NPS_AGENT_CONTROL_SIZE;
	if (a->ctl->magic != NPS_AGENT_MAGIC || a->ctl->version != NPS_AGENT_VERSION) {
		snprintf(why, why_size, "it is of another version (%u, not %d)", a->ctl->version,
			 NPS_AGENT_VERSION);
		nps_agent_client__free(a);
		return -EPROTO;
	}
	if (!claim_helper(a)) {
		snprintf(why, why_size, "another npuscope (pid %u) is using it", a->ctl->owner);
		nps_agent_client__free(a);
		return -EBUSY;
	}
	*out = a;
	return 0;
}

void nps_agent_client__free(struct nps_agent_client *a)
{
	struct nps_agent_client **at = &clients;

	if (!a)
		return;
	if (a->started && !a->stopped) /* a capture that never began */
		nps_agent_client__stop(a);
	if (a->ctl->owner == (uint32_t)getpid()) {
		/* Frees the ring's pages, which are charged to the job. */
		if (a->mapped == MAP_BYTES)
			madvise((void *)a->ring, NPS_AGENT_RING_SIZE, MADV_REMOVE);
		__atomic_store_n(&a->ctl->owner, 0, __ATOMIC_RELEASE);
	}
	munmap(a->ctl, a->mapped);
	while (*at != a)
		at = &(*at)->other;
	*at = a->other;
	nps_agent_client__free(a->next);
	free(a);
}

void nps_agent_client__retire(struct nps_agent_client **current, struct nps_agent_client **former)
{
	struct nps_agent_client *a = *current;

	*current = NULL;
	if (!a->delivered) {
		nps_agent_client__free(a);
		return;
	}
	nps_agent_client__finish(a);
	munmap((void *)(uintptr_t)a->ring, NPS_AGENT_RING_SIZE);
	a->mapped = NPS_AGENT_CONTROL_SIZE;
	a->broken = true; /* nothing can be drained */
	a->next = *former;
	*former = a;
}

static void client_begin(struct nps_agent_client *a)
{
	/* Skips what an earlier collector left in the ring. */
	a->tail = __atomic_load_n(&a->ctl->head, __ATOMIC_ACQUIRE);
	__atomic_store_n(&a->ctl->tail, a->tail, __ATOMIC_RELEASE);
	a->lost_before = __atomic_load_n(&a->ctl->lost, __ATOMIC_RELAXED);
	a->started = true;
	nps_channel_files__count(a->files, a->metric);
	a->ctl->n_wants = nps_task_channels(a->metric, a->ctl->want);
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++) {
		struct nps_agent_device *d = &a->ctl->device[i];

		/* Resets what was set for an earlier capture. */
		d->status = NPS_AGENT_S_OFF;
		d->started_raw = 0;
		d->n_errors = d->refused = 0;
		__atomic_store_n(&d->hold, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&d->sampled, 0, __ATOMIC_RELEASE);
	}
	__atomic_fetch_add(&a->ctl->heartbeat, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&a->ctl->clock_request, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&a->ctl->command, NPS_AGENT_RUN, __ATOMIC_RELEASE);
	wake(a);
}

/* Does not wait for the helper, which may take as long as its driver does. */
static void begin_if_idle(struct nps_agent_client *a)
{
	if (a->stopped || __atomic_load_n(&a->ctl->state, __ATOMIC_ACQUIRE) != NPS_AGENT_IDLE)
		return;
	a->waits = false;
	client_begin(a);
}

void nps_agent_client__start(struct nps_agent_client *a, enum nps_aic_metric metric)
{
	a->metric = metric;
	a->waits = true;
	begin_if_idle(a);
}

void nps_agent_client__poke(struct nps_agent_client *a)
{
	wake(a);
}

void nps_agent_client__beat(struct nps_agent_client *a)
{
	__atomic_fetch_add(&a->ctl->heartbeat, 1, __ATOMIC_RELEASE);
}

void nps_agent_client__tick(struct nps_agent_client *a)
{
	/*
	 * The heartbeat stopped for too long and the helper released its
	 * devices: restart it, and report the gap.
	 */
	if (a->started && !a->stopped &&
	    __atomic_load_n(&a->ctl->command, __ATOMIC_ACQUIRE) == NPS_AGENT_IDLE) {
		a->interrupted = true;
		__atomic_store_n(&a->ctl->command, NPS_AGENT_RUN, __ATOMIC_RELEASE);
		wake(a);
	}
	nps_agent_client__beat(a);
	__atomic_fetch_add(&a->ctl->clock_request, 1, __ATOMIC_RELEASE);
}

void nps_agent_client__stop(struct nps_agent_client *a)
{
	a->stopped = true;
	__atomic_store_n(&a->ctl->command, NPS_AGENT_IDLE, __ATOMIC_RELEASE);
	wake(a);
}

bool nps_agent_client__idle(const struct nps_agent_client *a)
{
	return a->broken || !a->started ||
	       __atomic_load_n(&a->ctl->state, __ATOMIC_ACQUIRE) == NPS_AGENT_IDLE;
}

/* Nothing more is read from it; its helper releases its devices. */
static void end_log(struct nps_agent_client *a)
{
	nps_agent_client__stop(a);
	a->broken = true;
}

/*
 * What the helper reported of the device. The text comes from the job,
 * so only letters and digits are accepted.
 */
static void info_of(const struct nps_agent_client *a, unsigned device, struct nps_device_info *info)
{
	struct nps_agent_device d;

	memcpy(&d, &a->ctl->device[device], sizeof(d));
	*info = (struct nps_device_info){ .id = device,
					  .counter_khz = d.freq_khz,
					  .aic_mhz = d.aic_mhz,
					  .aiv_mhz = d.aiv_mhz,
					  .aic_cores = d.aic_cores,
					  .aiv_cores = d.aiv_cores };
	for (size_t i = 0; i + 1 < sizeof(info->chip) && i < sizeof(d.chip) && d.chip[i]; i++)
		info->chip[i] = isalnum((unsigned char)d.chip[i]) ? d.chip[i] : '_';
	info->platform = d.chip_type;
	if (nps_generation_of(info->platform) == NPS_GENERATION_UNKNOWN)
		info->platform = nps_platform_of(info->chip);
	if (info->platform == NPS_PLATFORM_UNKNOWN && d.chip_type < NPS_PLATFORM_UNKNOWN)
		info->platform = d.chip_type;
}

static int put_data(struct nps_agent_client *a, const struct nps_agent_block *b, const void *data)
{
	const struct nps_channel_at at = { .device = b->device,
					   .channel = b->channel,
					   .reader = NPS_READ_BY_AGENT,
					   .epoch = a->number << 16 | (b->epoch & 0xffff),
					   .position = b->position };
	struct nps_device_info info;

	if (!b->position) {
		info_of(a, b->device, &info);
		nps_device_info__complain(&info);
		nps_channel_files__know(a->files, &info);
	}
	a->delivered = true;
	a->bytes += b->len;
	return nps_channel_files__put(a->files, &at, data, b->len);
}

static int put_clocks(struct nps_agent_client *a, unsigned device, const void *data, uint32_t len)
{
	struct nps_device_clock c[16];
	uint32_t n = len / sizeof(*c);
	int err;

	if (n > 16)
		n = 16;
	err = nps_log_account__add_bytes(nps_channel_files__account(a->files),
					 sizeof(struct nps_chunk) + n * sizeof(*c));
	if (err || !a->timed)
		return err;
	memcpy(c, data, n * sizeof(*c));
	for (uint32_t i = 0; i < n; i++) {
		c[i].device = device;
		c[i].pid = a->pid;
		c[i].raw_before -= (uint64_t)a->clock_offset;
		c[i].raw_after -= (uint64_t)a->clock_offset;
		nps_channel_files__clock(a->files, &c[i]);
	}
	return nps_stream__append(&a->s->clocks, NPS_CHUNK_DEVICE_CLOCKS, 0, c, n * sizeof(*c));
}

static int read_block(struct nps_agent_client *a, const struct nps_agent_block *b, const char *payload)
{
	/* Blocks without data cost time, too. */
	if (b->type == NPS_AGENT_B_SKIP)
		return nps_log_account__add_bytes(nps_channel_files__account(a->files), sizeof(*b));
	if (b->device >= NPS_AGENT_MAX_DEVICES)
		return -EPROTO;
	if (b->type == NPS_AGENT_B_DATA)
		return put_data(a, b, payload);
	if (b->type == NPS_AGENT_B_CLOCK)
		return put_clocks(a, b->device, payload, b->len);
	return -EPROTO;
}

/* Handles the block at the tail, and advances the tail past it. */
static int read_next(struct nps_agent_client *a, uint64_t head)
{
	uint32_t at = a->tail & (NPS_AGENT_RING_SIZE - 1), to_end = NPS_AGENT_RING_SIZE - at;
	struct nps_agent_block b;
	uint64_t size;

	if (to_end < sizeof(b)) { /* too short even for a SKIP block */
		a->tail += to_end;
		return head - a->tail > NPS_AGENT_RING_SIZE ? -EPROTO : 0;
	}
	memcpy(&b, a->ring + at, sizeof(b)); /* a copy: the job can change the original */
	size = sizeof(b) + (((uint64_t)b.len + 7) & ~7ULL);
	if (size > to_end || size > head - a->tail ||
	    (b.type != NPS_AGENT_B_SKIP && b.len > NPS_AGENT_BLOCK_MAX))
		return -EPROTO;
	a->tail += size;
	return read_block(a, &b, a->ring + at + sizeof(b));
}

/*
 * Reads as much as the account of the process allows, and as a slow disk can write in LONGEST_NS: the rest
 * stays in the ring, and the helper drops what does not fit.
 */
static int read_blocks(struct nps_agent_client *a, uint64_t head)
{
	struct nps_log_account *account = nps_channel_files__account(a->files);
	uint64_t cpu = nps_now(CLOCK_THREAD_CPUTIME_ID), until = nps_now(CLOCK_MONOTONIC) + LONGEST_NS;
	int err = 0;

	while (!err && a->tail != head && nps_log_account__may_read(account) &&
	       nps_now(CLOCK_MONOTONIC) < until) {
		uint64_t begin = cpu, from = a->tail;

		for (int n = 0;
		     !err && a->tail != head && n < BLOCKS_PER_POLL && a->tail - from < BYTES_PER_POLL; n++)
			err = read_next(a, head);
		cpu = nps_now(CLOCK_THREAD_CPUTIME_ID);
		nps_log_account__add_cpu(account, cpu - begin);
	}
	return err;
}

int nps_agent_client__drain(struct nps_agent_client *a)
{
	uint64_t head;
	int err;

	if (a->waits)
		begin_if_idle(a);
	if (a->broken || !a->started)
		return 0;
	head = __atomic_load_n(&a->ctl->head, __ATOMIC_ACQUIRE);
	if (head == a->tail)
		return 0;
	err = head - a->tail > NPS_AGENT_RING_SIZE || (head & 7) ? -EPROTO : read_blocks(a, head);
	__atomic_store_n(&a->ctl->tail, a->tail, __ATOMIC_RELEASE);
	if (err == -EPROTO || err == -ENOBUFS)
		end_log(a);
	return err;
}

bool nps_agent_client__drained(const struct nps_agent_client *a)
{
	return nps_agent_client__idle(a) &&
	       (a->broken || !a->started || __atomic_load_n(&a->ctl->head, __ATOMIC_ACQUIRE) == a->tail);
}

void nps_agent_client__finish(struct nps_agent_client *a)
{
	uint64_t left = a->started && !a->broken ? __atomic_load_n(&a->ctl->head, __ATOMIC_ACQUIRE) - a->tail
						 : 0;

	a->unread = left < NPS_AGENT_RING_SIZE ? left : NPS_AGENT_RING_SIZE;
	if (!a->started)
		a->stopped = true;
}

bool nps_agent_client__is_logging(const struct nps_agent_client *a)
{
	if (!a->started)
		return false;
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++)
		if (a->ctl->device[i].status == NPS_AGENT_S_ON)
			return true;
	return false;
}

bool nps_agent_client__reads_tasks(const struct nps_agent_client *a)
{
	if (a->broken || !a->started)
		return false;
	for (unsigned d = 0; d < NPS_AGENT_MAX_DEVICES; d++)
		for (unsigned i = 0; i < NPS_AGENT_MAX_WANTS; i++)
			if (a->ctl->want[i].log &&
			    __atomic_load_n(&a->ctl->device[d].open, __ATOMIC_ACQUIRE) >> i & 1)
				return true;
	return false;
}

bool nps_agent_client__interrupted(const struct nps_agent_client *a)
{
	return a && (a->interrupted || nps_agent_client__interrupted(a->next));
}

bool nps_agent_client__delivered(const struct nps_agent_client *a)
{
	return a && (a->delivered || nps_agent_client__delivered(a->next));
}

bool nps_agent_client__uses(const struct nps_agent_client *a, uint32_t device)
{
	return device < NPS_AGENT_MAX_DEVICES && a->started && a->ctl->device[device].started_raw;
}

void nps_agent_client__reason(const struct nps_agent_client *a, char *buf, size_t size)
{
	buf[0] = '\0';
	if (nps_agent_client__is_logging(a))
		return;
	snprintf(buf, size, "%s",
		 a->waits ? "its helper has not let go of the capture before this one"
			  : "the process has set no device");
	if (a->waits)
		return;
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++) {
		const struct nps_agent_device *d = &a->ctl->device[i];

		if (d->status == NPS_AGENT_S_HELD)
			snprintf(buf, size, "device %u was let go for the job's own profiler", i);
		else if (d->status == NPS_AGENT_S_BUSY)
			snprintf(buf, size, "the task log of device %u is in use by another profiler", i);
		else if (d->status == NPS_AGENT_S_OPENING)
			snprintf(buf, size,
				 "the driver has not answered yet to the opening of the task log of "
				 "device %u",
				 i);
		else if (d->status == NPS_AGENT_S_ERROR)
			snprintf(buf, size, "the driver refused the task log of device %u: code %d", i,
				 d->error);
		else if (d->status == NPS_AGENT_S_NO_CHANNEL)
			snprintf(buf, size, "device %u has no task log", i);
	}
}

uint64_t nps_agent_client__counted(const struct nps_agent_client *a)
{
	uint64_t counted = 0;

	for (unsigned i = 0; a->started && a->metric != NPS_AIC_NONE && i < NPS_AGENT_MAX_DEVICES; i++) {
		struct nps_device_info info;

		if (__atomic_load_n(&a->ctl->device[i].status, __ATOMIC_ACQUIRE) != NPS_AGENT_S_ON)
			continue;
		info_of(a, i, &info);
		if (nps_generation_of(info.platform) == NPS_GENERATION_HWTS)
			counted |= 1ULL << i;
	}
	return counted;
}

static unsigned int *lines(const struct nps_agent_client *a)
{
	return &nps_channel_files__account(a->files)->owner->lines;
}

bool nps_agent_client__report_errors(struct nps_agent_client *a, bool end)
{
	if (a->started && !a->broken)
		nps_agent_errors__report(&a->errors, a->pid, a->ctl, lines(a));
	return end && a->started && !a->broken && nps_agent_errors__sum_up(a->pid, a->ctl, lines(a));
}

uint64_t nps_agent_client__lost(const struct nps_agent_client *a)
{
	uint64_t lost = 0;

	for (; a; a = a->next)
		lost += a->started ? __atomic_load_n(&a->ctl->lost, __ATOMIC_RELAXED) - a->lost_before +
					     a->unread
				   : 0;
	return lost;
}

uint64_t nps_agent_client__bytes(const struct nps_agent_client *a)
{
	uint64_t bytes = 0;

	for (; a; a = a->next)
		bytes += a->bytes;
	return bytes;
}

static void describe_events(cJSON *j, const char *name, enum nps_aic_metric metric, uint32_t platform,
			    int vector)
{
	uint16_t events[NPS_AIC_EVENTS];
	size_t n = nps_aic_metrics__events(metric, platform, vector, events);
	cJSON *list = cJSON_AddArrayToObject(j, name);

	for (size_t i = 0; i < n; i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber(events[i]));
}

/* Platform of the entry, which may be the driver's description. */
static uint32_t platform_of(const cJSON *device)
{
	const cJSON *platform = cJSON_GetObjectItemCaseSensitive(device, "platform");

	return platform ? (uint32_t)platform->valueint : NPS_PLATFORM_UNKNOWN;
}

void nps_agent_client__describe_devices(const struct nps_agent_client *a,
					const struct nps_device_facts *facts, uid_t uid, bool foreign,
					cJSON *devices)
{
	for (unsigned i = 0; a && a->started && i < NPS_AGENT_MAX_DEVICES; i++) {
		struct nps_device_info info;

		if (!a->ctl->device[i].started_raw || !nps_device_facts__believes(facts, uid, i, foreign))
			continue;
		info_of(a, i, &info);
		nps_device_info__entry(&info, devices);
	}
	if (a)
		nps_agent_client__describe_devices(a->next, facts, uid, foreign, devices);
}

void nps_agent_client__describe_events(const struct nps_agent_client *a, cJSON *devices)
{
	cJSON *j;

	cJSON_ArrayForEach(j, devices)
	{
		double id = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(j, "id"));

		if (!a || !a->started || a->metric == NPS_AIC_NONE ||
		    !(id >= 0 && id < NPS_AGENT_MAX_DEVICES) || !a->ctl->device[(unsigned)id].started_raw ||
		    cJSON_HasObjectItem(j, "aic_metrics"))
			continue;
		cJSON_AddStringToObject(j, "aic_metrics", nps_aic_metrics__name(a->metric));
		describe_events(j, "aic_events", a->metric, platform_of(j), 0);
		describe_events(j, "aiv_events", a->metric, platform_of(j), 1);
	}
	if (a)
		nps_agent_client__describe_events(a->next, devices);
}

uint32_t nps_agent_client__hold(const struct nps_agent_client *a, unsigned device)
{
	return device < NPS_AGENT_MAX_DEVICES
		       ? __atomic_load_n(&a->ctl->device[device].hold, __ATOMIC_ACQUIRE)
		       : 0;
}

void nps_agent_client__let_go(struct nps_agent_client *a, unsigned device)
{
	if (device >= NPS_AGENT_MAX_DEVICES || nps_agent_client__hold(a, device))
		return;
	__atomic_store_n(&a->ctl->device[device].hold, 1, __ATOMIC_RELEASE);
	wake(a);
}

void nps_agent_client__come_back(struct nps_agent_client *a, unsigned device, uint32_t hold)
{
	if (device < NPS_AGENT_MAX_DEVICES &&
	    __atomic_compare_exchange_n(&a->ctl->device[device].hold, &hold, 0, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		wake(a);
}

bool nps_agent_client__sampled(struct nps_agent_client *a, unsigned device, bool sampled, uint32_t hold)
{
	uint32_t *word;

	if (device >= NPS_AGENT_MAX_DEVICES)
		return true;
	word = &a->ctl->device[device].sampled;
	if (__atomic_exchange_n(word, sampled, __ATOMIC_SEQ_CST) != sampled && !sampled) {
		__atomic_fetch_add(&a->ctl->released, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &a->ctl->released, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	}
	return !sampled || __atomic_load_n(&a->ctl->device[device].hold, __ATOMIC_SEQ_CST) == hold;
}

bool nps_agent_client__signal(const struct nps_agent_client *a, struct nps_tap_helper *helper)
{
	helper->signal = __atomic_load_n(&a->ctl->signal, __ATOMIC_ACQUIRE);
	helper->handler = a->ctl->handler;
	return helper->signal >= 32 && helper->signal <= 64 && helper->handler;
}
