/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver/prof_control.h"

#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "core/clocks.h"
#include "core/session_json.h"

#define RAW_KHZ 1000000 /* CLOCK_MONOTONIC_RAW as host counter, which has no frequency of its own */
#define COUNTER_TRIES 5

/* "host" for a NULL device; else device_N. */
struct control_dir {
	const struct nps_prof_control *c;
	struct nps_session_writer *s;
	const struct nps_device_info *device;
	int err; /* the first error */
};

/* Writes file NAME, in a device's directory NAME.N. */
static void control_put(struct control_dir *p, const char *name, bool numbered, const char *text)
{
	char path[256], dir[24] = "host", end[16] = "";
	int err;

	if (p->device)
		snprintf(dir, sizeof(dir), "device_%u", p->device->id);
	if (p->device && numbered)
		snprintf(end, sizeof(end), ".%u", p->device->id);
	snprintf(path, sizeof(path), "%s/%s/%s%s", p->c->name, dir, name, end);
	err = nps_prof__put(p->s, path, text);
	p->err = p->err ? p->err : err;
}

/* As one line: the vendor's parsers read only the first. */
static void put_json(struct control_dir *p, const char *name, bool numbered, cJSON *json)
{
	char *text = cJSON_PrintUnformatted(json);

	if (text)
		control_put(p, name, numbered, text);
	else
		p->err = p->err ? p->err : -ENOMEM;
	cJSON_free(text);
	cJSON_Delete(json);
}

static void add_text(cJSON *json, const char *key, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	cJSON_AddItemToObject(json, key, nps_json_text(text));
}

/* Empty if unknown. */
static void add_mhz(cJSON *json, const char *key, uint32_t khz)
{
	if (!khz)
		add_text(json, key, "%s", "");
	else if (khz % 1000)
		add_text(json, key, "%u.%03u", khz / 1000, khz % 1000);
	else
		add_text(json, key, "%u", khz / 1000);
}

/* Adds "0,1,2": N numbers from FIRST. */
static void add_numbers(cJSON *json, const char *key, unsigned int first, unsigned int n)
{
	char text[256] = "";
	size_t len = 0;

	for (unsigned int i = 0; i < n && len < sizeof(text) - 8; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", i ? "," : "", first + i);
	cJSON_AddStringToObject(json, key, text);
}

static void add_device(cJSON *json, const struct nps_device_info *d)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "id", d->id);
	cJSON_AddNumberToObject(o, "env_type", 3);
	cJSON_AddNumberToObject(o, "ctrl_cpu_core_num", d->ctrl_cpus);
	cJSON_AddNumberToObject(o, "ctrl_cpu_endian_little", 1);
	cJSON_AddNumberToObject(o, "ts_cpu_core_num", d->ts_cpus);
	cJSON_AddNumberToObject(o, "ai_cpu_core_num", d->ai_cpus);
	cJSON_AddNumberToObject(o, "ai_core_num", d->aic_cores);
	cJSON_AddNumberToObject(o, "ai_cpu_core_id", d->ctrl_cpus);
	cJSON_AddNumberToObject(o, "ai_core_id", 0);
	cJSON_AddNumberToObject(o, "aicpu_occupy_bitmap", (double)d->ai_cpu_mask);
	cJSON_AddNumberToObject(o, "aiv_num", d->aiv_cores);
	add_numbers(o, "ctrl_cpu", 0, d->ctrl_cpus);
	add_text(o, "ctrl_cpu_id", "%s", "");
	add_numbers(o, "ai_cpu", d->ctrl_cpus, d->ai_cpus);
	add_mhz(o, "hwts_frequency", d->counter_khz);
	add_mhz(o, "aic_frequency", d->aic_mhz * 1000);
	add_mhz(o, "aiv_frequency", (d->aiv_mhz ? d->aiv_mhz : d->aic_mhz) * 1000);
	cJSON_AddItemToArray(json, o);
}

static unsigned int card_speed(const char *name)
{
	char path[64 + IF_NAMESIZE];
	int speed = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%9d", &speed) != 1 || speed < 0) /* -1: it has none, or it is unknown */
		speed = 0;
	fclose(f);
	return (unsigned int)speed;
}

static int add_cards(cJSON *json)
{
	struct if_nameindex *cards = if_nameindex();
	cJSON *list = cJSON_AddArrayToObject(json, "netCard");
	int n = 0;

	for (; cards && cards[n].if_index; n++) {
		cJSON *o = cJSON_CreateObject();

		cJSON_AddItemToObject(o, "netCardName", nps_json_text(cards[n].if_name));
		cJSON_AddNumberToObject(o, "speed", card_speed(cards[n].if_name));
		cJSON_AddItemToArray(list, o);
	}
	if_freenameindex(cards);
	return n;
}

/* The counter with which the driver stamps module memory, unless that is CLOCK_MONOTONIC_RAW. */
static uint64_t host_counter(void)
{
#if defined(__aarch64__)
	uint64_t count;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(count));
	return count;
#elif defined(__x86_64__)
	return __rdtsc();
#else
	return nps_now(CLOCK_MONOTONIC_RAW);
#endif
}

/*
 * Reads the counter and the raw clock at one time; uses the shortest of
 * a few tries, because this thread may be preempted.
 */
static void read_counter(uint64_t *raw, uint64_t *count)
{
	uint64_t narrowest = UINT64_MAX;

	for (int i = 0; i < COUNTER_TRIES; i++) {
		uint64_t before = nps_now(CLOCK_MONOTONIC_RAW), c = host_counter();
		uint64_t width = nps_now(CLOCK_MONOTONIC_RAW) - before;

		if (width >= narrowest)
			continue;
		narrowest = width;
		*raw = before + width / 2;
		*count = c;
	}
}

static bool counts_raw(const struct nps_prof_control *c)
{
	return !c->host_khz || c->host_khz == RAW_KHZ;
}

static void add_cpu(cJSON *json, const struct nps_prof_control *c, const struct utsname *u, long cpus)
{
	cJSON *list = cJSON_AddArrayToObject(json, "CPU"), *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "Id", 0);
	add_text(o, "Name", "%s", u->machine);
	add_mhz(o, "Frequency", counts_raw(c) ? 0 : c->host_khz);
	cJSON_AddNumberToObject(o, "Logical_CPU_Count", (double)cpus);
	add_text(o, "Type", "%s", u->machine);
	cJSON_AddItemToArray(list, o);
}

static void put_info(struct control_dir *p)
{
	const struct nps_prof_control *c = p->c;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cJSON *json = cJSON_CreateObject(), *list;
	struct utsname u = {};

	uname(&u);
	add_text(json, "version", "%s", p->device && p->device->second_version ? "2.0" : "1.0");
	add_text(json, "jobInfo", "%s", "NA");
	add_text(json, "OS", "%s-%s", u.sysname, u.release);
	add_text(json, "hostname", "%s", u.nodename);
	add_text(json, "hwtype", "%s", u.machine);
	add_text(json, "devices", "%u", p->device ? p->device->id : 64);
	add_text(json, "platform", "%s", "");
	if (c->platform != NPS_PLATFORM_UNKNOWN)
		add_text(json, "platform_version", "%u", c->platform);
	if (c->pid)
		add_text(json, "pid", "%d", c->pid);
	else
		add_text(json, "pid", "%s", "NA");
	add_text(json, "pid_name", "%s", c->pid_name ? c->pid_name : "NA");
	add_text(json, "upTime", "%llu.%02llu", (unsigned long long)(c->begin.boot / 1000000000),
		 (unsigned long long)(c->begin.boot / 10000000 % 100));
	cJSON_AddNumberToObject(json, "memoryTotal",
				(double)sysconf(_SC_PHYS_PAGES) * ((double)sysconf(_SC_PAGESIZE) / 1024));
	cJSON_AddNumberToObject(json, "cpuNums", (double)cpus);
	cJSON_AddNumberToObject(json, "sysClockFreq", (double)sysconf(_SC_CLK_TCK));
	cJSON_AddNumberToObject(json, "cpuCores", (double)cpus);
	cJSON_AddNumberToObject(json, "netCardNums", add_cards(json));
	cJSON_AddNumberToObject(json, "rank_id", c->rank);
	cJSON_AddNumberToObject(json, "drvVersion", c->driver_version);
	add_text(json, "cannVersion", "%s", "");
	add_text(json, "hostUid", "%016lx", (unsigned long)gethostid());
	add_cpu(json, c, &u, cpus);
	list = cJSON_AddArrayToObject(json, "DeviceInfo");
	if (p->device)
		add_device(list, p->device);
	put_json(p, "info.json", true, json);
}

/* Keys that the vendor's parsers require, then what was measured. */
static void put_sample(struct control_dir *p)
{
	cJSON *json = cJSON_CreateObject();
	const cJSON *item;

	add_text(json, "job_id", "%s", p->c->name);
	add_text(json, "result_dir", "%s", p->c->name);
	add_text(json, "devices", "%u", p->device ? p->device->id : 64);
	add_text(json, "prof_level", "l%d", p->c->level > 0 ? p->c->level : 0);
	cJSON_ArrayForEach(item, p->c->sample)
	{
		cJSON_AddItemToObject(json, item->string, cJSON_Duplicate(item, 1));
	}
	if (!cJSON_HasObjectItem(json, "llc_profiling"))
		add_text(json, "llc_profiling", "%s", "");
	if (!cJSON_HasObjectItem(json, "ai_core_profiling_mode"))
		add_text(json, "ai_core_profiling_mode", "%s", "task-based");
	if (!cJSON_HasObjectItem(json, "aiv_profiling_mode"))
		add_text(json, "aiv_profiling_mode", "%s", "task-based");
	put_json(p, "sample.json", false, json);
}

static void add_date(cJSON *json, const char *key, uint64_t real)
{
	time_t seconds = (time_t)(real / 1000000000);
	char text[32] = "";
	struct tm tm;

	if (real && localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	if (real)
		add_text(json, key, "%s.%06u", text, (unsigned int)(real / 1000 % 1000000));
	else
		add_text(json, key, "%s", "");
}

static void add_time(cJSON *json, const char *key, bool known, uint64_t value)
{
	if (known)
		add_text(json, key, "%llu", (unsigned long long)value);
	else
		add_text(json, key, "%s", "");
}

/* Times are whole us: the raw clock is adjusted to that us, so that both are of one time. */
static void put_session(struct control_dir *p, const char *name, const struct nps_clock *clock, bool begin)
{
	uint64_t real = clock->real / 1000 * 1000, raw = clock->raw - clock->real % 1000;
	cJSON *json = cJSON_CreateObject();

	add_date(json, "collectionDateBegin", begin ? real : 0);
	add_date(json, "collectionDateEnd", begin ? 0 : real);
	add_time(json, "collectionTimeBegin", begin, real / 1000);
	add_time(json, "collectionTimeEnd", !begin, real / 1000);
	add_time(json, "clockMonotonicRaw", true, raw);
	put_json(p, name, true, json);
}

static void put_starts(struct control_dir *p, const struct nps_prof_sync *sync)
{
	char text[256], title[24] = "Host";
	uint64_t raw = sync->host_raw, count = raw;

	if (p->device)
		snprintf(title, sizeof(title), "Device%u", p->device->id);
	if (!p->device && !counts_raw(p->c))
		read_counter(&raw, &count);
	snprintf(text, sizeof(text), "[%s]\nclock_monotonic_raw: %llu\ncntvct: %llu\ncntvct_diff: 0\n", title,
		 (unsigned long long)raw, (unsigned long long)count);
	control_put(p, "host_start.log", true, text);
	if (!p->device)
		return;
	snprintf(text, sizeof(text), "clock_monotonic_raw: %llu\ncntvct: %llu\n",
		 (unsigned long long)sync->device_raw, (unsigned long long)sync->device_count);
	control_put(p, "dev_start.log", true, text);
}

static int put_all(struct control_dir *p, const struct nps_prof_sync *sync)
{
	put_info(p);
	put_sample(p);
	put_session(p, "start_info", &p->c->begin, true);
	if (p->c->end.real)
		put_session(p, "end_info", &p->c->end, false);
	put_starts(p, sync);
	return p->err;
}

int nps_prof_control__host(const struct nps_prof_control *c, struct nps_session_writer *s)
{
	struct nps_prof_sync sync = { .host_raw = c->begin.raw };
	struct control_dir p = { .c = c, .s = s };
	char data[NPS_PROF_NAME + 16];
	int err = put_all(&p, &sync);

	snprintf(data, sizeof(data), "%s/host/data", c->name); /* empty, but the vendor's parsers open it */
	if (!err && mkdirat(s->dir_fd, data, 0750) && errno != EEXIST) {
		err = -errno;
		nps_session_writer__failed(s, data, err);
	}
	return err;
}

int nps_prof_control__device(const struct nps_prof_control *c, struct nps_session_writer *s,
			     const struct nps_device_info *device, const struct nps_prof_sync *sync)
{
	struct control_dir p = { .c = c, .s = s, .device = device };

	return put_all(&p, sync);
}
