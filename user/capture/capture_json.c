/* SPDX-License-Identifier: BSD-2-Clause */
/* session.json (docs/session-format.md) */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>

#include "attach/probe_rows.h"
#include "capture/capture_parts.h"
#include "catalog.h"
#include "core/session_json.h"
#include "event.h"
#include "session.h"

static void read_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");

	buf[0] = '\0';
	if (!f)
		return;
	if (fgets(buf, (int)size, f))
		buf[strcspn(buf, "\n")] = '\0';
	fclose(f);
}

/* A number that identifies the host: a hash of the machine id, which itself must not be passed on. */
static uint64_t host_uid(void)
{
	char id[64];
	uint64_t h = 0xcbf29ce484222325ULL;

	read_line("/etc/machine-id", id, sizeof(id));
	if (!id[0])
		gethostname(id, sizeof(id) - 1);
	for (const char *p = id; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3ULL;
	return h >> 1;
}

static void add_host(cJSON *j)
{
	cJSON *h = cJSON_AddObjectToObject(j, "host");
	char boot[64], uid[24];
	struct utsname u = {};

	uname(&u);
	read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	snprintf(uid, sizeof(uid), "%llu", (unsigned long long)host_uid());
	cJSON_AddStringToObject(h, "name", u.nodename);
	cJSON_AddStringToObject(h, "uid", uid);
	cJSON_AddStringToObject(h, "kernel", u.release);
	cJSON_AddStringToObject(h, "arch", u.machine);
	cJSON_AddNumberToObject(h, "cpus", (double)sysconf(_SC_NPROCESSORS_ONLN));
	cJSON_AddStringToObject(h, "boot_id", boot);
	cJSON_AddNumberToObject(h, "memory_kb",
				(double)sysconf(_SC_PHYS_PAGES) * ((double)sysconf(_SC_PAGESIZE) / 1024));
}

static void add_host_sys(const struct nps_record_opts *o, cJSON *r)
{
	cJSON *parts = cJSON_AddArrayToObject(r, "host_sys");

	for (unsigned int i = 0; i < NPS_HOST_SYS_PARTS; i++)
		if ((o->host_sys | (o->osrt ? NPS_HOST_SYS_OSRT : 0)) >> i & 1)
			cJSON_AddItemToArray(parts, cJSON_CreateString(nps_host_sys__part(i)));
	cJSON_AddNumberToObject(r, "host_sys_hz", o->host_sys_hz);
}

static void add_request(const struct nps_capture *c, cJSON *j)
{
	static const char *const ops_names[] = {
		[NPS_OPS_NONE] = "none", [NPS_OPS_NPU] = "npu", [NPS_OPS_ALL] = "all"
	};
	static const char *const sources[] = { "auto", "host", "agent", "profiler" };
	const struct nps_record_opts *o = c->opts;
	cJSON *r = cJSON_AddObjectToObject(j, "request");
	cJSON *argv = cJSON_AddArrayToObject(r, "argv"), *pids = cJSON_AddArrayToObject(r, "pids");
	char marker[300];

	for (int i = 0; i < o->argc; i++)
		cJSON_AddItemToArray(argv, nps_json_text(o->argv[i]));
	for (int i = 0; i < o->n_pids; i++)
		cJSON_AddItemToArray(pids, cJSON_CreateNumber(o->pids[i]));
	nps_json__add_u64(r, "duration_ns", o->duration_ns);
	cJSON_AddNumberToObject(r, "level", o->level);
	nps_json__add_u64(r, "osrt_threshold_ns", o->osrt_threshold_ns);
	nps_json__add_u64(r, "max_size", c->logs.max_size);
	nps_json__add_u64(r, "max_log_rate", o->max_log_rate);
	cJSON_AddStringToObject(r, "task_source", sources[o->task_source]);
	if (o->step_marker) {
		snprintf(marker, sizeof(marker), o->step_arg ? "%s@%d" : "%s", o->step_marker, o->step_arg);
		cJSON_AddStringToObject(r, "step_marker", marker);
	} else if (o->step_label) {
		cJSON_AddStringToObject(r, "step_marker", o->step_label);
	} else {
		cJSON_AddNullToObject(r, "step_marker");
	}
	cJSON_AddBoolToObject(r, "record_shapes", o->shapes);
	cJSON_AddStringToObject(r, "ops", ops_names[o->ops]);
	cJSON_AddBoolToObject(r, "profile_memory", o->torch_memory);
	cJSON_AddBoolToObject(r, "keep_polled", o->keep_polled);
	if (o->level == NPS_LEVEL_NONE)
		cJSON_AddStringToObject(r, "activities", o->osrt ? "cpu,osrt" : "cpu");
	else
		cJSON_AddStringToObject(r, "activities", o->osrt ? "cpu,npu,osrt" : "cpu,npu");
	cJSON_AddBoolToObject(r, "mstx", !o->mstx.off);
	cJSON_AddBoolToObject(r, "l2_cache", o->devices.l2_cache);
	cJSON_AddBoolToObject(r, "sys_io", o->devices.io);
	cJSON_AddBoolToObject(r, "sys_interconnection", o->devices.links);
	cJSON_AddBoolToObject(r, "sys_hardware_mem", o->devices.memory);
	cJSON_AddBoolToObject(r, "irq", o->irq);
	cJSON_AddStringToObject(r, "driver", nps_driver_opts__name(&o->driver));
	nps_sources__describe(c, NPS_SECTION_REQUEST, j, r);
	cJSON_AddBoolToObject(r, "all", o->all);
	add_host_sys(o, r);
}

static void add_clock(cJSON *j, const char *name, const struct nps_clock *clock)
{
	cJSON *o;

	if (!clock->mono) {
		cJSON_AddNullToObject(j, name);
		return;
	}
	o = cJSON_AddObjectToObject(j, name);
	nps_json__add_u64(o, "monotonic", clock->mono);
	nps_json__add_u64(o, "monotonic_raw", clock->raw);
	nps_json__add_u64(o, "realtime", clock->real);
	nps_json__add_u64(o, "boottime", clock->boot);
}

#define NAME(id, name, words) [id] = (name),
static const char *const kind_names[NPS_KIND_END] = { NPS_EVENT_KINDS(NAME)[NPS_KIND_STRING] = "strings" };
#undef NAME

static void add_counts(const struct nps_capture *c, cJSON *j)
{
	cJSON *events = cJSON_AddObjectToObject(j, "events"), *drops = cJSON_AddObjectToObject(j, "drops");
	cJSON *ring = cJSON_AddObjectToObject(drops, "ring");
	struct nps_lost_counts n;

	nps_sources__count(c, &n);
	for (int kind = 1; kind < NPS_KIND_END; kind++) {
		if (!kind_names[kind])
			continue;
		nps_json__add_u64(events, kind_names[kind], n.events[kind]);
		nps_json__add_u64_or_null(ring, kind_names[kind], n.lost[kind] || !n.uncounted[kind],
					  n.lost[kind]);
	}
	nps_json__add_u64(events, "summed_syscalls", n.summed);
	nps_sources__describe(c, NPS_SECTION_DROPS, j, drops);
	nps_json__add_u64(drops, "host", n.host);
	nps_json__add_u64(drops, "device", n.device);
	nps_json__add_u64(drops, "sums", n.sums);
	nps_json__add_u64(drops, "profiler", n.profiler);
	nps_json__add_u64(drops, "profiler_calls", n.profiler_calls);
	nps_json__add_u64(drops, "sqe", n.sqe);
	nps_json__add_u64(drops, "processes", n.processes);
}

cJSON *nps_capture__describe(const struct nps_capture *c)
{
	cJSON *j = cJSON_CreateObject(), *list, *window;

	cJSON_AddStringToObject(j, "format", "npuscope-session");
	cJSON_AddNumberToObject(j, "version", NPS_SESSION_VERSION);
	cJSON_AddStringToObject(j, "npuscope", NPS_VERSION);
	nps_json__add_u64(j, "catalogue",
			  crc32(0, (const Bytef *)NPS_CATALOG_TEXT, sizeof(NPS_CATALOG_TEXT) - 1));
	cJSON_AddBoolToObject(j, "complete", c->complete);
	cJSON_AddStringToObject(j, "end_reason",
				c->end_reason	? c->end_reason
				: c->begin_mono ? "running"
						: "starting");
	add_host(j);
	add_request(c, j);
	window = cJSON_AddObjectToObject(j, "capture");
	nps_json__add_u64(window, "begin_monotonic", c->begin_mono);
	nps_json__add_u64_or_null(window, "end_monotonic", c->end_mono, c->end_mono);
	add_clock(j, "start", &c->start);
	add_clock(j, "end", &c->end);
	list = cJSON_AddArrayToObject(j, "processes");
	for (const struct nps_process *p = c->processes; p; p = p->next)
		cJSON_AddItemToArray(list, nps_capture__describe_process(p));
	/* The driver's facts of the job's devices first, because jobs can forge those of helpers. */
	nps_sources__describe(c, NPS_SECTION_DEVICES, j, cJSON_AddArrayToObject(j, "devices"));
	nps_sources__describe(c, NPS_SECTION_SESSION, j, j);
	add_counts(c, j);
	nps_sources__describe(c, NPS_SECTION_TOTALS, j, j);
	nps_sources__describe(c, NPS_SECTION_COST, j, j);
	return j;
}

uint64_t nps_capture__dropped(const struct nps_capture *c)
{
	struct nps_lost_counts n;
	uint64_t sum;

	nps_sources__count(c, &n);
	sum = n.dropped;
	for (int kind = 1; kind < NPS_KIND_END; kind++)
		sum += n.lost[kind];
	return sum;
}
