/* SPDX-License-Identifier: BSD-2-Clause */
/* The directories and the control files. */
#define _GNU_SOURCE
#include "gen.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define DRIVER_VERSION 0x072211 /* the first with batch ids */
#define HOST_CORES 4
#define TEXT 4096
#define AIC_MHZ 1850
#define AIC_EVENTS "0x416,0x417,0x9,0x302,0xc,0x303,0x54,0x55"
#define AIV_EVENTS "0x8,0xa,0x9,0xb,0xc,0xd,0x54,0x55"

static void make_dir(const char *path, bool may_exist)
{
	if (mkdir(path, 0750) == 0 || (may_exist && errno == EEXIST))
		return;
	need(false, path);
}

static void sub_dir(char *out, size_t size, const char *parent, const char *name)
{
	char data[3100];

	need(snprintf(out, size, "%s/%s", parent, name) < (int)size, parent);
	make_dir(out, false);
	snprintf(data, sizeof(data), "%s/data", out);
	make_dir(data, false);
}

static void date_text(char *out, size_t size, const char *pattern, uint64_t us)
{
	time_t seconds = (time_t)(us / 1000000);
	struct tm tm;

	need(gmtime_r(&seconds, &tm) != NULL && strftime(out, size, pattern, &tm) > 0, "date");
}

void control_make_dirs(struct gen *g)
{
	char stamp[20], letters[9], name[24];
	uint64_t hash = mix64(g->o.seed ^ g->o.pid);

	make_dir(g->o.out, true);
	date_text(stamp, sizeof(stamp), "%Y%m%d%H%M%S", g->clock.begin_us);
	for (int i = 0; i < 8; i++)
		letters[i] = (char)('A' + (hash >> (8 * i) & 0xFF) % 18);
	letters[8] = '\0';
	need(snprintf(g->prof, sizeof(g->prof), "%s/PROF_000001_%s%03u_%08u%s", g->o.out, stamp,
		      (unsigned int)(g->clock.begin_us / 1000 % 1000), g->o.pid,
		      letters) < (int)sizeof(g->prof),
	     g->o.out);
	make_dir(g->prof, false);
	sub_dir(g->host_dir, sizeof(g->host_dir), g->prof, "host");
	for (uint32_t i = 0; i < g->o.devices; i++) {
		snprintf(name, sizeof(name), "device_%u", i);
		sub_dir(g->devices[i].dir, sizeof(g->devices[i].dir), g->prof, name);
	}
}

__attribute__((format(printf, 5, 6))) static void
control(const struct gen *g, const char *dir, const char *name, int device, const char *pattern, ...)
{
	char path[3300], text[TEXT], suffix[16] = "";
	va_list args;
	int n;

	va_start(args, pattern);
	n = vsnprintf(text, sizeof(text), pattern, args);
	va_end(args);
	need(n > 0 && n < TEXT, name);
	if (device >= 0)
		snprintf(suffix, sizeof(suffix), ".%d", device);
	snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffix);
	write_control(path, text, !g->o.no_done);
}

static void mhz_text(char *out, size_t size, uint64_t khz)
{
	int n = snprintf(out, size, "%" PRIu64, khz / 1000);

	if (khz % 1000)
		snprintf(out + n, size - (size_t)n, ".%03u", (unsigned int)(khz % 1000));
}

static void info(const struct gen *g, const struct device *d)
{
	char cpus[HOST_CORES * 128] = "", device[800] = "", mhz[32] = "";
	size_t at = 0;

	if (g->o.host_khz)
		mhz_text(mhz, sizeof(mhz), g->o.host_khz);
	for (int i = 0; i < HOST_CORES; i++)
		at += (size_t)snprintf(cpus + at, sizeof(cpus) - at,
				       "%s{\"Id\":%d,\"Name\":\"HiSilicon\",\"Frequency\":\"%s\","
				       "\"Logical_CPU_Count\":1,\"Type\":\"TaishanV110\"}",
				       i ? "," : "", i, mhz);
	if (d) {
		mhz_text(mhz, sizeof(mhz), d->clock.khz);
		snprintf(device, sizeof(device),
			 "{\"id\":%u,\"env_type\":3,\"ctrl_cpu_id\":\"ARMv8_Cortex_A55\",\"ctrl_cpu_core_"
			 "num\":1,"
			 "\"ctrl_cpu_endian_little\":1,\"ts_cpu_core_num\":1,\"ai_cpu_core_num\":6,"
			 "\"ai_core_num\":24,\"ai_cpu_core_id\":2,\"ai_core_id\":0,\"aicpu_occupy_bitmap\":"
			 "252,"
			 "\"ctrl_cpu\":\"0,1\",\"ai_cpu\":\"2,3,4,5,6,7\",\"aiv_num\":48,"
			 "\"hwts_frequency\":\"%s\",\"aic_frequency\":\"%d\",\"aiv_frequency\":\"%d\"}",
			 d->id, mhz, AIC_MHZ, AIC_MHZ);
	}
	control(g, d ? d->dir : g->host_dir, "info.json", d ? (int)d->id : -1,
		"{\"version\":\"1.0\",\"jobInfo\":\"NA\",\"OS\":\"Linux\",\"hostname\":\"node\",\"hwtype\":"
		"\"\","
		"\"devices\":\"%u\",\"platform\":\"\",\"platform_version\":\"%u\",\"pid\":\"%u\","
		"\"pid_name\":\"python3\",\"upTime\":\"\",\"memoryTotal\":263873136,\"cpuNums\":%d,"
		"\"sysClockFreq\":100,\"cpuCores\":%d,\"netCardNums\":1,"
		"\"netCard\":[{\"netCardName\":\"eth0\",\"speed\":1000}],\"rank_id\":%d,\"drvVersion\":%d,"
		"\"cannVersion\":\"%s\",\"hostUid\":\"%016" PRIx64 "\",\"CPU\":[%s],\"DeviceInfo\":[%s]}\n",
		d ? d->id : 64, g->o.chip, g->o.pid, HOST_CORES, HOST_CORES, d ? (int)d->id : -1,
		DRIVER_VERSION, g->o.cann, mix64(g->o.seed), cpus, device);
}

static void sample(const struct gen *g, const struct device *d)
{
	const char *metrics = g->o.pmu ? "PipeUtilization" : "";
	const char *on = g->o.pmu ? "on" : "off";

	control(g, d ? d->dir : g->host_dir, "sample.json", -1,
		"{\"result_dir\":\"%s\",\"job_id\":\"%u\",\"devices\":\"%u\",\"prof_level\":\"l%u\","
		"\"profLevel\":\"l%u\",\"ai_core_profiling\":\"%s\",\"ai_core_profiling_mode\":\"task-"
		"based\","
		"\"ai_core_metrics\":\"%s\",\"ai_core_profiling_events\":\"%s\",\"aicore_sampling_interval\":"
		"10,"
		"\"aiv_profiling\":\"%s\",\"aiv_profiling_mode\":\"task-based\",\"aiv_metrics\":\"%s\","
		"\"aiv_profiling_events\":\"%s\",\"aiv_sampling_interval\":10,\"llc_profiling\":\"read\","
		"\"llc_profiling_events\":\"\",\"hbm_profiling_events\":\"\",\"ddr_master_id\":0,"
		"\"l2CacheTaskProfiling\":\"off\",\"l2CacheTaskProfilingEvents\":\"\",\"host_disk_freq\":50,"
		"\"instrProfilingFreq\":0,\"msprofBinPid\":-2,\"dynamic\":\"off\",\"msproftx\":\"%s\"}\n",
		"output", g->o.pid, d ? d->id : 64, g->o.level, g->o.level, on, metrics,
		g->o.pmu ? AIC_EVENTS : "", on, metrics, g->o.pmu ? AIV_EVENTS : "",
		g->o.mstx_every ? "on" : "off");
}

static void start_info(const struct gen *g, const struct device *d)
{
	const struct clock *c = d ? &d->clock : &g->clock;
	char date[40];

	date_text(date, sizeof(date), "%Y-%m-%d %H:%M:%S", c->begin_us);
	control(g, d ? d->dir : g->host_dir, "start_info", d ? (int)d->id : -1,
		"{\"collectionDateBegin\":\"%s.%06u\",\"collectionDateEnd\":\"\",\"collectionTimeBegin\":"
		"\"%" PRIu64 "\",\"collectionTimeEnd\":\"\",\"clockMonotonicRaw\":\"%" PRIu64 "\"}\n",
		date, (unsigned int)(c->begin_us % 1000000), c->begin_us, c->begin_raw);
}

static void end_info(const struct gen *g, const struct device *d)
{
	const struct clock *c = d ? &d->clock : &g->clock;
	uint64_t last = (uint64_t)host_wall(g, g->host_last) / 1000, us;
	char date[40];

	for (uint32_t i = 0; i < g->o.devices; i++) {
		us = (uint64_t)device_wall(&g->devices[i], g->devices[i].last) / 1000;
		if (us > last)
			last = us;
	}
	us = last + 10000;
	date_text(date, sizeof(date), "%Y-%m-%d %H:%M:%S", us);
	control(g, d ? d->dir : g->host_dir, "end_info", d ? (int)d->id : -1,
		"{\"collectionDateBegin\":\"\",\"collectionDateEnd\":\"%s.%06u\",\"collectionTimeBegin\":"
		"\"\","
		"\"collectionTimeEnd\":\"%" PRIu64 "\",\"clockMonotonicRaw\":\"%" PRIu64 "\"}\n",
		date, (unsigned int)(us % 1000000), us, c->begin_raw + (us - c->begin_us) * 1000);
}

/* The device's sync point in terms of the host's counter. */
static void host_start(const struct gen *g, const struct device *d)
{
	uint64_t raw = d ? d->clock.raw0 : g->clock.raw0;
	uint64_t cnt = g->clock.cnt0;
	char section[24] = "Host";

	if (d) {
		snprintf(section, sizeof(section), "Device%u", d->id);
		cnt = host_value(g, host_ticks(g, raw - g->clock.raw0));
	}
	control(g, d ? d->dir : g->host_dir, "host_start.log", d ? (int)d->id : -1,
		"[%s]\nclock_monotonic_raw: %" PRIu64 "\ncntvct: %" PRIu64 "\ncntvct_diff: 0\n", section, raw,
		cnt);
}

void control_write(struct gen *g)
{
	for (uint32_t i = 0; i <= g->o.devices; i++) {
		const struct device *d = i ? &g->devices[i - 1] : NULL;

		info(g, d);
		sample(g, d);
		start_info(g, d);
		if (!g->o.no_done)
			end_info(g, d);
		host_start(g, d);
		if (d)
			control(g, d->dir, "dev_start.log", (int)d->id,
				"clock_monotonic_raw: %" PRIu64 "\ncntvct: %" PRIu64 "\n", d->dev_start_raw,
				d->clock.cnt0);
	}
}
