/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent_client.h"

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
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "log.h"
#include "process.h"

#define MAPPED_NAME "/memfd:" NPS_AGENT_NAME
#define SLICE_BYTES (2U << 20)
#define MAP_BYTES (NPS_AGENT_CONTROL_SIZE + NPS_AGENT_RING_SIZE)

struct device_file {
	int fd;
	unsigned slice;
	uint32_t size; /* of the slice */
	uint32_t held; /* bytes of a record whose end is still to come */
	char rest[NPS_AGENT_RECORD];
};

struct nps_agent_client {
	pid_t pid;
	struct nps_session *s;
	struct nps_agent_control *ctl;
	const char *ring;
	uint64_t tail, lost_before, bytes;
	bool broken, started, stopped, interrupted, delivered;
	char prof_dir[96];
	struct device_file *files[NPS_AGENT_MAX_DEVICES];
};

static const struct nps_mapping *find_mapping(const struct nps_maps *maps)
{
	size_t n = strlen(MAPPED_NAME);

	for (size_t i = 0; i < maps->n; i++)
		if (strncmp(maps->v[i].path, MAPPED_NAME, n) == 0 &&
		    (maps->v[i].path[n] == '\0' || maps->v[i].path[n] == ' ') && maps->v[i].shared)
			return &maps->v[i];
	return NULL;
}

static void wake(struct nps_agent_client *a)
{
	__atomic_fetch_add(&a->ctl->wake, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &a->ctl->wake, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Claims the helper. One whose collector was killed is released first. */
static bool take_over(struct nps_agent_client *a)
{
	struct nps_agent_control *ctl = a->ctl;
	uint32_t owner = __atomic_load_n(&ctl->owner, __ATOMIC_ACQUIRE);
	bool alive = owner && owner != (uint32_t)getpid() && nps_pid_is_kin((pid_t)owner);

	if (alive || !__atomic_compare_exchange_n(&ctl->owner, &owner, (uint32_t)getpid(), false,
						  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return false;
	__atomic_store_n(&ctl->command, NPS_AGENT_IDLE, __ATOMIC_RELEASE);
	wake(a);
	for (int i = 0; i < 100 && !nps_agent_client__idle(a); i++)
		usleep(10000);
	return nps_agent_client__idle(a);
}

int nps_agent_client__open(pid_t pid, const struct nps_maps *maps, struct nps_session *s,
			   struct nps_agent_client **out, char *why, size_t why_size)
{
	const struct nps_mapping *m = find_mapping(maps);
	struct nps_agent_client *a;
	struct stat st;
	int fd, seals;
	void *mem;

	if (!m) {
		snprintf(why, why_size, "the job was started without the helper library");
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
	a->ring = (char *)mem + NPS_AGENT_CONTROL_SIZE;
	if (a->ctl->magic != NPS_AGENT_MAGIC || a->ctl->version != NPS_AGENT_VERSION) {
		snprintf(why, why_size, "it is of another version (%u, not %d)", a->ctl->version,
			 NPS_AGENT_VERSION);
		nps_agent_client__free(a);
		return -EPROTO;
	}
	if (!take_over(a)) {
		snprintf(why, why_size, "another npuscope (pid %u) is using it", a->ctl->owner);
		nps_agent_client__free(a);
		return -EBUSY;
	}
	*out = a;
	return 0;
}

static void finish_slice(struct nps_agent_client *a, unsigned device)
{
	struct device_file *f = a->files[device];
	char path[256], text[96];
	int fd;

	if (f->fd < 0)
		return;
	close(f->fd);
	f->fd = -1;
	/* CANN's mark of a slice that is complete. */
	snprintf(path, sizeof(path), "%s/device_%u/data/stars_soc.data.%u.slice_%u.done", a->prof_dir, device,
		 device, f->slice);
	snprintf(text, sizeof(text), "filesize:%u\nstarttime:0\nendtime  :0\n", f->size);
	fd = nps_session__open_file(a->s, path);
	if (fd >= 0) {
		if (nps_write_all(fd, text, strlen(text)))
			nps_debug("%s: not written", path);
		close(fd);
	}
	f->slice++;
	f->size = 0;
}

void nps_agent_client__free(struct nps_agent_client *a)
{
	if (!a)
		return;
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++) {
		if (!a->files[i])
			continue;
		finish_slice(a, i);
		free(a->files[i]);
	}
	if (a->ctl->owner == (uint32_t)getpid()) {
		/* The ring's pages are charged to the job. */
		madvise((void *)a->ring, NPS_AGENT_RING_SIZE, MADV_REMOVE);
		__atomic_store_n(&a->ctl->owner, 0, __ATOMIC_RELEASE);
	}
	munmap(a->ctl, MAP_BYTES);
	free(a);
}

void nps_agent_client__start(struct nps_agent_client *a)
{
	/* What an earlier collector left in the ring is not ours. */
	a->tail = __atomic_load_n(&a->ctl->head, __ATOMIC_ACQUIRE);
	__atomic_store_n(&a->ctl->tail, a->tail, __ATOMIC_RELEASE);
	a->lost_before = __atomic_load_n(&a->ctl->lost, __ATOMIC_RELAXED);
	a->started = true;
	__atomic_fetch_add(&a->ctl->heartbeat, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&a->ctl->clock_request, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&a->ctl->command, NPS_AGENT_RUN, __ATOMIC_RELEASE);
	wake(a);
}

void nps_agent_client__poke(struct nps_agent_client *a)
{
	wake(a);
}

void nps_agent_client__tick(struct nps_agent_client *a)
{
	/* We were silent for too long and it let go: take it up again, and say so. */
	if (a->started && !a->stopped &&
	    __atomic_load_n(&a->ctl->command, __ATOMIC_ACQUIRE) == NPS_AGENT_IDLE) {
		a->interrupted = true;
		__atomic_store_n(&a->ctl->command, NPS_AGENT_RUN, __ATOMIC_RELEASE);
		wake(a);
	}
	__atomic_fetch_add(&a->ctl->heartbeat, 1, __ATOMIC_RELEASE);
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
	return a->broken || __atomic_load_n(&a->ctl->state, __ATOMIC_ACQUIRE) == NPS_AGENT_IDLE;
}

/* PROF_000001_{time}_{pid}{letters}, as CANN names it; the letters only make it unique. */
static void name_prof_dir(struct nps_agent_client *a)
{
	struct timespec now;
	char stamp[32];
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d%H%M%S", &tm);
	snprintf(a->prof_dir, sizeof(a->prof_dir), "PROF_000001_%s%03ld_%08dNPSCOLLA", stamp,
		 now.tv_nsec / 1000000, a->pid);
}

static int write_slice(struct nps_agent_client *a, unsigned device, const char *data, uint32_t len)
{
	struct device_file *f = a->files[device];
	char path[256];
	int err;

	if (f->fd < 0) {
		snprintf(path, sizeof(path), "%s/device_%u/data/stars_soc.data.%u.slice_%u", a->prof_dir,
			 device, device, f->slice);
		f->fd = nps_session__open_file(a->s, path);
		if (f->fd < 0)
			return f->fd;
	}
	err = nps_write_all(f->fd, data, len);
	if (err)
		return err;
	f->size += len;
	if (f->size >= SLICE_BYTES)
		finish_slice(a, device);
	return 0;
}

/* The driver splits records as it likes; what goes to disk are whole ones. */
static int put_records(struct nps_agent_client *a, unsigned device, const char *data, uint32_t len)
{
	struct device_file *f = a->files[device];
	uint32_t take, whole;
	int err;

	a->bytes += len;
	if (f->held) {
		take = NPS_AGENT_RECORD - f->held < len ? NPS_AGENT_RECORD - f->held : len;
		memcpy(f->rest + f->held, data, take);
		f->held += take;
		data += take;
		len -= take;
		if (f->held < NPS_AGENT_RECORD)
			return 0;
		err = write_slice(a, device, f->rest, NPS_AGENT_RECORD);
		f->held = 0;
		if (err)
			return err;
	}
	whole = len - len % NPS_AGENT_RECORD;
	err = whole ? write_slice(a, device, data, whole) : 0;
	if (err)
		return err;
	f->held = len - whole;
	memcpy(f->rest, data + whole, f->held);
	return 0;
}

static int put_data(struct nps_agent_client *a, unsigned device, uint32_t phase, const char *data,
		    uint32_t len)
{
	uint32_t skip;

	if (!a->files[device]) {
		if (!a->prof_dir[0])
			name_prof_dir(a);
		a->files[device] = calloc(1, sizeof(struct device_file));
		if (!a->files[device])
			return -ENOMEM;
		a->files[device]->fd = -1;
	}
	a->delivered = true;
	if (phase != a->files[device]->held) {
		/* The helper lost bytes in between: go on at the next whole record. */
		a->files[device]->held = 0;
		skip = (NPS_AGENT_RECORD - phase % NPS_AGENT_RECORD) % NPS_AGENT_RECORD;
		if (skip >= len)
			return 0;
		data += skip;
		len -= skip;
	}
	return put_records(a, device, data, len);
}

static int put_clocks(struct nps_agent_client *a, unsigned device, const void *data, uint32_t len)
{
	struct nps_device_clock c[16];
	uint32_t n = len / sizeof(*c);

	if (n > 16)
		n = 16;
	memcpy(c, data, n * sizeof(*c));
	for (uint32_t i = 0; i < n; i++) {
		c[i].device = device;
		c[i].pid = a->pid;
	}
	return nps_stream__append(&a->s->clocks, NPS_CHUNK_DEVICE_CLOCKS, 0, c, n * sizeof(*c));
}

static int take_block(struct nps_agent_client *a, const struct nps_agent_block *b, const char *payload)
{
	if (b->type == NPS_AGENT_B_SKIP)
		return 0;
	if (b->device >= NPS_AGENT_MAX_DEVICES)
		return -EPROTO;
	if (b->type == NPS_AGENT_B_DATA)
		return put_data(a, b->device, b->phase, payload, b->len);
	if (b->type == NPS_AGENT_B_CLOCK)
		return put_clocks(a, b->device, payload, b->len);
	return -EPROTO;
}

int nps_agent_client__drain(struct nps_agent_client *a)
{
	uint64_t head = __atomic_load_n(&a->ctl->head, __ATOMIC_ACQUIRE);
	int err = 0;

	if (a->broken || !a->started)
		return 0;
	if (head - a->tail > NPS_AGENT_RING_SIZE || (head & 7))
		err = -EPROTO;
	while (!err && a->tail != head) {
		uint32_t at = a->tail & (NPS_AGENT_RING_SIZE - 1), to_end = NPS_AGENT_RING_SIZE - at;
		struct nps_agent_block b;
		uint64_t size;

		if (to_end < sizeof(b)) { /* too short even for a SKIP block */
			if (head - a->tail < to_end) {
				err = -EPROTO;
				break;
			}
			a->tail += to_end;
			continue;
		}
		memcpy(&b, a->ring + at, sizeof(b)); /* a copy: the job can change the original */
		size = sizeof(b) + (((uint64_t)b.len + 7) & ~7ULL);
		if (size > to_end || size > head - a->tail) {
			err = -EPROTO;
			break;
		}
		err = take_block(a, &b, a->ring + at + sizeof(b));
		a->tail += size;
	}
	__atomic_store_n(&a->ctl->tail, a->tail, __ATOMIC_RELEASE);
	if (err == -EPROTO)
		a->broken = true;
	return err;
}

bool nps_agent_client__recording(const struct nps_agent_client *a)
{
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++)
		if (a->ctl->device[i].status == NPS_AGENT_S_ON)
			return true;
	return false;
}

bool nps_agent_client__interrupted(const struct nps_agent_client *a)
{
	return a->interrupted;
}

bool nps_agent_client__delivered(const struct nps_agent_client *a)
{
	return a->delivered;
}

void nps_agent_client__reason(const struct nps_agent_client *a, char *buf, size_t size)
{
	buf[0] = '\0';
	if (nps_agent_client__recording(a))
		return;
	snprintf(buf, size, "the process has set no device");
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++) {
		const struct nps_agent_device *d = &a->ctl->device[i];

		if (d->status == NPS_AGENT_S_BUSY)
			snprintf(buf, size, "the task log of device %u is in use by another profiler", i);
		else if (d->status == NPS_AGENT_S_ERROR)
			snprintf(buf, size, "the driver refused the task log of device %u: code %d", i,
				 d->error);
		else if (d->status == NPS_AGENT_S_NO_CHANNEL)
			snprintf(buf, size, "device %u has no task log", i);
	}
}

uint64_t nps_agent_client__lost(const struct nps_agent_client *a)
{
	return a->started ? __atomic_load_n(&a->ctl->lost, __ATOMIC_RELAXED) - a->lost_before : 0;
}

uint64_t nps_agent_client__bytes(const struct nps_agent_client *a)
{
	return a->bytes;
}

const char *nps_agent_client__prof_dir(const struct nps_agent_client *a)
{
	return a->prof_dir[0] ? a->prof_dir : NULL;
}

static bool has_device(const cJSON *devices, unsigned id)
{
	const cJSON *d;

	cJSON_ArrayForEach(d, devices) if (cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(d, "id")) ==
					   id) return true;
	return false;
}

void nps_agent_client__describe_devices(const struct nps_agent_client *a, cJSON *devices)
{
	for (unsigned i = 0; i < NPS_AGENT_MAX_DEVICES; i++) {
		struct nps_agent_device d;
		cJSON *j;

		memcpy(&d, &a->ctl->device[i], sizeof(d));
		if (!d.started_raw || has_device(devices, i))
			continue;
		d.chip[sizeof(d.chip) - 1] = '\0';
		for (char *c = d.chip; *c; c++)
			if (!isalnum((unsigned char)*c))
				*c = '_';
		j = cJSON_CreateObject();
		cJSON_AddNumberToObject(j, "id", i);
		cJSON_AddNumberToObject(j, "freq_khz", d.freq_khz);
		cJSON_AddStringToObject(j, "chip", d.chip);
		cJSON_AddItemToArray(devices, j);
	}
}
