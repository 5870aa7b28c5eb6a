/* SPDX-License-Identifier: BSD-2-Clause */
/* session.json (docs/session-format.md) */
#include "capture.h"
#include "irq.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>

#include "agent.h"
#include "agent_client.h"
#include "catalog.h"
#include "channel_files.h"
#include "event.h"
#include "job_processes.h"
#include "probe_rows.h"
#include "session.h"

static void add_u64(cJSON *j, const char *name, uint64_t v)
{
	char text[24];

	/* A JSON number of cJSON is a double: times need all their digits. */
	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	cJSON_AddRawToObject(j, name, text);
}

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

/* A number that names the host: the machine id, hashed, since the id itself is not to be handed round. */
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

static void add_stacks(const struct nps_capture *c, cJSON *j)
{
	static const char *const ways[] = { "auto", "fp", "dwarf" };
	const struct nps_stacks_opts *o = &c->opts->stacks;
	cJSON *s;

	if (!o->on_cpu && !o->off_cpu)
		return;
	s = cJSON_AddObjectToObject(j, "stacks");
	cJSON_AddBoolToObject(s, "on_cpu", o->on_cpu);
	cJSON_AddBoolToObject(s, "off_cpu", o->off_cpu);
	cJSON_AddNumberToObject(s, "hz", o->hz);
	add_u64(s, "off_cpu_min_ns", o->sleep_min);
	cJSON_AddStringToObject(s, "unwind", ways[o->unwind]);
	add_u64(s, "uncopied", nps_stacks__uncopied(c->stacks));
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
	static const char *const sources[] = { "auto", "host", "agent", "profiler" };
	const struct nps_record_opts *o = c->opts;
	cJSON *r = cJSON_AddObjectToObject(j, "request");
	cJSON *argv = cJSON_AddArrayToObject(r, "argv"), *pids = cJSON_AddArrayToObject(r, "pids");
	char marker[300];

	for (int i = 0; i < o->argc; i++)
		cJSON_AddItemToArray(argv, nps_json_text(o->argv[i]));
	for (int i = 0; i < o->n_pids; i++)
		cJSON_AddItemToArray(pids, cJSON_CreateNumber(o->pids[i]));
	add_u64(r, "duration_ns", o->duration_ns);
	cJSON_AddNumberToObject(r, "level", o->level);
	add_u64(r, "osrt_threshold_ns", o->osrt_threshold_ns);
	add_u64(r, "max_size", c->logs.max_size);
	add_u64(r, "max_log_rate", o->max_log_rate);
	cJSON_AddStringToObject(r, "task_source", sources[o->task_source]);
	if (o->step_marker) {
		snprintf(marker, sizeof(marker), o->step_arg ? "%s@%d" : "%s", o->step_marker, o->step_arg);
		cJSON_AddStringToObject(r, "step_marker", marker);
	} else {
		cJSON_AddNullToObject(r, "step_marker");
	}
	cJSON_AddBoolToObject(r, "record_shapes", o->shapes);
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
	if (o->irq)
		nps_irq_side__names(cJSON_AddObjectToObject(j, "interrupts"));
	add_stacks(c, r);
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
	add_u64(o, "monotonic", clock->mono);
	add_u64(o, "monotonic_raw", clock->raw);
	add_u64(o, "realtime", clock->real);
	add_u64(o, "boottime", clock->boot);
}

static void add_number_or_null(cJSON *j, const char *name, bool known, uint64_t v)
{
	if (known)
		add_u64(j, name, v);
	else
		cJSON_AddNullToObject(j, name);
}

/* Bytes of its helpers, this one and those before exec. */
static uint64_t agent_lost(const struct nps_process *p)
{
	return nps_agent_client__lost(p->agent) + nps_agent_client__lost(p->former);
}

/* What the process means by the numbers of its devices, and where the samples of those in a container are. */
static void describe_numbers(const struct nps_capture *c, const struct nps_process *p, cJSON *j)
{
	uint64_t used = nps_device_sampler__used_by(c->devices, p->pid);
	cJSON *list;

	cJSON_AddStringToObject(j, "device_numbers", nps_process__foreign(p) ? "container" : "host");
	if (!c->devices || !nps_process__foreign(p))
		return;
	list = cJSON_AddArrayToObject(j, "sampled_devices");
	for (uint32_t d = 0; d < NPS_DEVICE_MAX; d++)
		if (used >> d & 1)
			cJSON_AddItemToArray(list, cJSON_CreateNumber(d));
}

static void add_left_out(const struct nps_process *p, cJSON *j)
{
	cJSON *list = cJSON_AddArrayToObject(j, "left_out");

	for (int what = 0; what < NPS_LEFT_KINDS; what++)
		if (p->budget.left_out >> what & 1)
			cJSON_AddItemToArray(list, cJSON_CreateString(nps_left_out__name(what)));
}

static cJSON *describe_process(const struct nps_capture *c, const struct nps_process *p)
{
	static const char *const sources[] = { [NPS_PROCESS_READ] = "proc",
					       [NPS_PROCESS_OF_PARENT] = "parent",
					       [NPS_PROCESS_UNREAD] = "kernel" };
	cJSON *j = cJSON_CreateObject();
	const char *prof = p->files ? nps_channel_files__dir(p->files) : NULL;
	bool delivered = nps_agent_client__delivered(p->agent) || nps_agent_client__delivered(p->former);
	char reason[160];

	cJSON_AddNumberToObject(j, "pid", p->pid);
	cJSON_AddNumberToObject(j, "ns_pid", p->ns_pid);
	cJSON_AddNumberToObject(j, "ppid", p->ppid);
	cJSON_AddItemToObject(j, "comm", nps_json_text(p->comm));
	cJSON_AddStringToObject(j, "known_from", sources[p->source]);
	cJSON_AddItemToObject(j, "cmdline", cJSON_Duplicate(p->cmdline, 1));
	if (p->host_name[0])
		cJSON_AddItemToObject(j, "host_name", nps_json_text(p->host_name));
	else
		cJSON_AddNullToObject(j, "host_name");
	add_number_or_null(j, "rank", p->rank >= 0, p->rank);
	add_number_or_null(j, "world_size", p->world_size >= 0, p->world_size);
	add_u64(j, "start_monotonic", p->start_mono);
	add_number_or_null(j, "exit_monotonic", p->exit_mono, p->exit_mono);
	add_number_or_null(j, "exit_code", p->exit_mono && p->exit_code != NPS_EXIT_UNKNOWN, p->exit_code);
	cJSON_AddItemToObject(j, "env", cJSON_Duplicate(p->env, 1));
	cJSON_AddStringToObject(j, "task_source", delivered ? "agent" : p->tapped ? "profiler" : "host");
	snprintf(reason, sizeof(reason), "%s", p->agent_reason);
	if (delivered || p->tapped)
		reason[0] = '\0';
	else if (p->agent && !reason[0])
		nps_agent_client__reason(p->agent, reason, sizeof(reason));
	cJSON_AddStringToObject(j, "task_source_reason", reason);
	if (prof)
		cJSON_AddStringToObject(j, "prof_dir", prof);
	else
		cJSON_AddNullToObject(j, "prof_dir");
	describe_numbers(c, p, j);
	add_u64(j, "agent_lost_bytes", agent_lost(p));
	if (p->log_end)
		cJSON_AddStringToObject(j, "task_log_end", p->log_end);
	add_left_out(p, j);
	cJSON_AddRawToObject(j, "maps", p->maps ? p->maps : "[]");
	cJSON_AddItemToObject(j, "symbols", cJSON_Duplicate(p->symbols, 1));
	return j;
}

#define NAME(id, name, words) [id] = (name),
static const char *const kind_names[NPS_KIND_END] = { NPS_EVENT_KINDS(NAME)[NPS_KIND_STRING] = "strings" };
#undef NAME

/* Processes whose sockets were not counted. */
static uint64_t net_lost(const struct nps_capture *c)
{
	return c->kernel ? nps_kernel_side__net_lost(c->kernel) : 0;
}

static const char *kernel_side_name(const struct nps_capture *c)
{
	return c->kernel && nps_kernel_side__is_legacy(c->kernel) ? "legacy" : "full";
}

static void add_counts(const struct nps_capture *c, cJSON *j)
{
	cJSON *events = cJSON_AddObjectToObject(j, "events"), *drops = cJSON_AddObjectToObject(j, "drops");
	cJSON *ring = cJSON_AddObjectToObject(drops, "ring"),
	      *agent = cJSON_AddObjectToObject(drops, "agent");
	uint64_t counters[NPS_COUNTER_MAX] = {};
	struct nps_reader_counts counts = {};
	struct nps_host_sys_counts host;
	struct nps_device_counts devices;

	if (c->reader)
		nps_reader__counts(c->reader, &counts);
	if (c->kernel)
		nps_kernel_side__counters(c->kernel, counters);
	counts.kinds[NPS_EV_STACK] = nps_stacks__written(c->stacks);
	counters[NPS_COUNTER_LOST + NPS_EV_STACK] += nps_stacks__lost(c->stacks);
	for (int kind = 1; kind < NPS_KIND_END; kind++) {
		if (!kind_names[kind])
			continue;
		add_u64(events, kind_names[kind], counts.kinds[kind]);
		add_number_or_null(ring, kind_names[kind],
				   counters[NPS_COUNTER_LOST + kind] ||
					   !nps_driver_side__uncounted(c->driver, kind),
				   counters[NPS_COUNTER_LOST + kind]);
	}
	for (const struct nps_process *p = c->processes; p; p = p->next) {
		uint64_t lost = agent_lost(p);
		char key[48];

		/* A pid can be another process's later: with its start it is one. */
		snprintf(key, sizeof(key), "%d@%" PRIu64, p->pid, p->start_mono);
		if (lost)
			add_u64(agent, key, lost);
	}
	nps_host_sys__counts(c->host_sys, &host);
	cJSON_AddStringToObject(j, "kernel_side", kernel_side_name(c));
	add_u64(drops, "host", host.missed + net_lost(c));
	nps_device_sampler__counts(c->devices, &devices);
	add_u64(drops, "device", devices.lost);
	add_u64(events, "summed_syscalls", counts.summed);
	add_u64(drops, "sums", counts.sums_failed);
	add_u64(drops, "profiler", nps_task_source__lost(c->tasks));
	add_u64(drops, "profiler_calls", nps_task_source__lost_events(c->tasks));
	add_u64(drops, "sqe", counters[NPS_COUNTER_SQE_CUT]);
	add_u64(drops, "processes", counts.processes_lost);
	add_u64(j, "unread_processes", nps_job_processes__unread(c));
	add_u64(j, "unreturned", counters[NPS_COUNTER_UNRETURNED]);
	add_u64(j, "unreadable", counters[NPS_COUNTER_FAULT]);
	add_u64(j, "texts_cut", nps_capture__texts_cut(c));
	add_u64(j, "mstx_filtered", counters[NPS_COUNTER_MSTX_FILTERED]);
	add_u64(j, "mstx_unnamed_domains", counters[NPS_COUNTER_DOMAIN_UNKNOWN]);
	add_u64(j, "foreign_syscalls", counters[NPS_COUNTER_FOREIGN]);
}

void nps_capture__print_agents(const struct nps_capture *c, FILE *out)
{
	for (const struct nps_process *p = c->processes; p; p = p->next) {
		uint64_t bytes = nps_agent_client__bytes(p->agent) + nps_agent_client__bytes(p->former);

		if (p->agent || p->former)
			fprintf(out, "task log %-7d %12" PRIu64 " %12" PRIu64 " bytes\n", p->pid, bytes,
				agent_lost(p));
	}
}

static void describe_devices(const struct nps_capture *c, const struct nps_process *p, cJSON *devices)
{
	bool foreign = nps_process__foreign(p);

	nps_agent_client__describe_devices(p->agent, &c->facts, p->uid, foreign, devices);
	nps_agent_client__describe_devices(p->former, &c->facts, p->uid, foreign, devices);
}

static void describe_events(const struct nps_process *p, cJSON *devices)
{
	nps_agent_client__describe_events(p->agent, devices);
	nps_agent_client__describe_events(p->former, devices);
}

cJSON *nps_capture__describe(const struct nps_capture *c)
{
	cJSON *j = cJSON_CreateObject(), *list, *window;

	cJSON_AddStringToObject(j, "format", "npuscope-session");
	cJSON_AddNumberToObject(j, "version", NPS_SESSION_VERSION);
	cJSON_AddStringToObject(j, "npuscope", NPS_VERSION);
	add_u64(j, "catalogue", crc32(0, (const Bytef *)NPS_CATALOG_TEXT, sizeof(NPS_CATALOG_TEXT) - 1));
	cJSON_AddBoolToObject(j, "complete", c->complete);
	cJSON_AddStringToObject(j, "end_reason",
				c->end_reason	? c->end_reason
				: c->begin_mono ? "running"
						: "starting");
	add_host(j);
	add_request(c, j);
	window = cJSON_AddObjectToObject(j, "capture");
	add_u64(window, "begin_monotonic", c->begin_mono);
	add_number_or_null(window, "end_monotonic", c->end_mono, c->end_mono);
	add_clock(j, "start", &c->start);
	add_clock(j, "end", &c->end);
	list = cJSON_AddArrayToObject(j, "processes");
	for (const struct nps_process *p = c->processes; p; p = p->next)
		cJSON_AddItemToArray(list, describe_process(c, p));
	list = cJSON_AddArrayToObject(j, "devices");
	/* What the driver said of the job's devices first: what helpers say is for their jobs to make up. */
	nps_device_facts__describe(&c->facts, list);
	for (const struct nps_process *p = c->processes; p; p = p->next)
		describe_devices(c, p, list);
	for (const struct nps_process *p = c->processes; p; p = p->next)
		describe_events(p, list);
	nps_task_source__describe(c->tasks, list);
	/* By the host's numbers, which are not those of a container that alone uses a device. */
	nps_device_sampler__describe(c->devices, j, list);
	if (c->probes)
		nps_probes__describe(c->probes, c->reader, j);
	nps_driver_side__describe(c->driver, j);
	add_counts(c, j);
	nps_overhead__describe(c, j);
	return j;
}

uint64_t nps_capture__texts_cut(const struct nps_capture *c)
{
	uint64_t counters[NPS_COUNTER_MAX] = {};
	struct nps_reader_counts n = {};

	if (c->reader)
		nps_reader__counts(c->reader, &n);
	if (c->kernel)
		nps_kernel_side__counters(c->kernel, counters);
	return n.texts_cut + counters[NPS_COUNTER_TEXT_CUT];
}

uint64_t nps_capture__dropped(const struct nps_capture *c)
{
	uint64_t counters[NPS_COUNTER_MAX] = {}, n;
	struct nps_reader_counts counts = {};
	struct nps_host_sys_counts host;
	struct nps_device_counts devices;

	if (!c->kernel || nps_kernel_side__counters(c->kernel, counters))
		return 0;
	if (c->reader)
		nps_reader__counts(c->reader, &counts);
	nps_host_sys__counts(c->host_sys, &host);
	nps_device_sampler__counts(c->devices, &devices);
	n = counts.processes_lost + devices.lost + !!devices.torn + counters[NPS_COUNTER_SQE_CUT] +
	    counts.sums_failed + nps_stacks__lost(c->stacks) + host.missed + net_lost(c);
	for (int kind = 1; kind < NPS_KIND_END; kind++)
		n += counters[NPS_COUNTER_LOST + kind];
	n += (nps_task_source__lost(c->tasks) + 63) / 64 + nps_task_source__lost_events(c->tasks);
	for (const struct nps_process *p = c->processes; p; p = p->next)
		n += (agent_lost(p) + 63) / 64;
	return n;
}
