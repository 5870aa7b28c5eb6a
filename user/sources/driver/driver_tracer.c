/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/driver/driver_tracer.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/reader.h"
#include "core/log.h"
#include "driver.skel.h"
#include "driver/driver_nodes.h"
#include "event.h"
#include "sources/driver/bpf_misses.h"
#include "sources/driver/driver_fn.h"
#include "sources/driver/driver_proc.h"
#include "sources/driver/trace_off.h"
#include "sources/driver/tracefs.h"

#define MOST_REFUSED 64

struct nps_driver_tracer {
	struct nps_driver_opts opts;
	struct driver_bpf *skel; /* NULL: no calls */
	struct nps_node_found *nodes;
	size_t n_nodes;
	/* numbers of nodes that have such names, but not the driver's major */
	uint32_t refused[MOST_REFUSED];
	unsigned int n_refused;
	struct nps_driver_ways ways;
	struct nps_driver_fn *functions; /* NULL: no tasks */
	struct nps_driver_proc begin, end; /* files copied from /proc */
	uint64_t missed; /* calls for which the kernel skipped our programs */
};

static bool node_is_known(const struct nps_driver_tracer *d, uint32_t rdev)
{
	for (size_t i = 0; i < d->n_nodes; i++)
		if (d->nodes[i].rdev == rdev)
			return true;
	return false;
}

/* On the host the names can be trusted. */
static void add_node(void *arg, const struct nps_node_found *found)
{
	struct nps_driver_tracer *d = arg;
	struct nps_node_found *nodes;

	if (node_is_known(d, found->rdev) || d->n_nodes == NPS_MAX_NODES)
		return;
	nodes = realloc(d->nodes, (d->n_nodes + 1) * sizeof(*nodes));
	if (!nodes)
		return;
	d->nodes = nodes;
	nodes[d->n_nodes++] = *found;
	if (d->skel &&
	    bpf_map_update_elem(bpf_map__fd(d->skel->maps.npu_nodes), &found->rdev, &found->node, BPF_ANY))
		nps_debug("device node %s: %s", found->name, strerror(errno));
}

static bool is_refused(const struct nps_driver_tracer *d, uint32_t rdev)
{
	for (unsigned int i = 0; i < d->n_refused; i++)
		if (d->refused[i] == rdev)
			return true;
	return d->n_refused == MOST_REFUSED;
}

/* A job can create nodes of any name in its own /dev, so the number must be one of the driver's. */
static void add_foreign(void *arg, const struct nps_node_found *found)
{
	struct nps_driver_tracer *d = arg;
	FILE *devices;
	bool ours;

	if (node_is_known(d, found->rdev) || is_refused(d, found->rdev))
		return;
	devices = fopen("/proc/devices", "re");
	ours = devices && nps_driver_nodes__has_major(devices, found->rdev);
	if (devices)
		fclose(devices);
	if (ours) {
		add_node(d, found);
		return;
	}
	if (!d->n_refused)
		nps_warn("calls on %s (%u:%u) of a process' own /dev are not recorded: /proc/devices has no "
			 "driver of an NPU with that number",
			 found->name, found->rdev >> 20, found->rdev & 0xfffff);
	d->refused[d->n_refused++] = found->rdev;
}

void nps_driver_tracer__scan(struct nps_driver_tracer *d)
{
	if (d && d->skel)
		nps_driver_nodes__find("/dev", add_node, d);
}

void nps_driver_tracer__scan_process(struct nps_driver_tracer *d, pid_t pid)
{
	char path[64];

	if (!d || !d->skel)
		return;
	snprintf(path, sizeof(path), "/proc/%d/root/dev", pid);
	nps_driver_nodes__find(path, add_foreign, d);
}

static int tracer_attach(void *skel)
{
	return driver_bpf__attach(skel);
}

static int tracer_load(struct nps_driver_tracer *d, struct nps_bpf_loader *k, size_t ring_bytes)
{
	int err;

	d->skel = driver_bpf__open();
	if (!d->skel)
		return -errno;
	nps_bpf_loader__set_wake_mark((uint64_t *)&d->skel->rodata->wake_bytes, ring_bytes);
	d->skel->bss->own_pid = (uint32_t)getpid();
	bpf_program__set_autoload(d->skel->progs.driver_thread_ended, !nps_bpf_loader__cap(k)->task_storage);
	err = nps_bpf_loader__share_maps(k, d->skel->obj);
	if (err)
		return err;
	err = driver_bpf__load(d->skel);
	if (err)
		return err;
	return nps_tracefs__with(tracer_attach, d->skel);
}

static void ignore(void *arg, const struct nps_node_found *found)
{
	(void)arg;
	(void)found;
}

/* Prints one line, as a warning only if it was requested. */
static int refuse(const struct nps_driver_opts *opts, const char *what, const char *why)
{
	if (opts->requested)
		nps_warn("no %s of the NPU's driver are recorded: %s", what, why);
	else
		nps_debug("no %s of the NPU's driver are recorded: %s", what, why);
	return opts->requested ? -ENOTSUP : 0;
}

static int start_calls(struct nps_driver_tracer *d, struct nps_bpf_loader *k, size_t ring_bytes)
{
	char why[128];
	int err;

	/*
	 * Other processes' calls pay for the check whether they concern a node,
	 * so nothing is attached if there is none.
	 */
	if (!d->opts.requested && !nps_driver_nodes__find("/dev", ignore, NULL))
		return 0;
	err = tracer_load(d, k, ring_bytes);
	if (err) {
		driver_bpf__destroy(d->skel);
		d->skel = NULL;
		snprintf(why, sizeof(why), "cannot trace their system calls: %s: can tracefs be mounted?",
			 strerror(-err));
		return refuse(&d->opts, "calls", why);
	}
	nps_driver_tracer__scan(d);
	return 0;
}

/*
 * A device whose queues are written without the driver: "mode uio_d" in
 * its file in /proc, as long as it has any.
 */
static bool find_bypassing(char *device, size_t size)
{
	static const char *const ts_path = "/proc/trs_core/ts_inst";
	DIR *dir = opendir(ts_path);
	const struct dirent *entry;
	bool bypasses = false;

	while (dir && !bypasses && (entry = readdir(dir))) {
		char path[320], line[256];
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s/hw_sq", ts_path, entry->d_name);
		f = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			bypasses |= strstr(line, "mode uio_d") != NULL;
		if (f)
			fclose(f);
		snprintf(device, size, "%.40s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return bypasses;
}

static int start_tasks(struct nps_driver_tracer *d, struct nps_bpf_loader *k, size_t ring_bytes)
{
	char missing[3 * sizeof(d->ways.way[0].detail)];

	nps_driver_ways__find(nps_bpf_loader__cap(k), &d->ways);
	nps_driver_fn__start(k, &d->ways, ring_bytes, &d->functions);
	if (!nps_driver_ways__missing(&d->ways, missing, sizeof(missing)))
		return d->opts.requested && nps_driver_fn__partly(d->functions) ? -ENOTSUP : 0;
	if (d->opts.requested)
		nps_warn("not recorded of the NPU's driver: %s", missing);
	else
		nps_debug("not recorded of the NPU's driver: %s", missing);
	return d->opts.requested ? -ENOTSUP : 0;
}

int nps_driver_tracer__start(struct nps_bpf_loader *k, const struct nps_driver_opts *opts, size_t ring_bytes,
			     struct nps_driver_tracer **out)
{
	struct nps_driver_tracer *d;
	int err = 0, failed = 0, late;

	*out = NULL;
	late = nps_trace_restore(&nps_trace_paths) ? 0 : -ETIMEDOUT;
	if (!opts->calls && !opts->tasks)
		return late;
	if (nps_bpf_loader__is_legacy(k))
		return refuse(opts, "calls or tasks",
			      "this kernel is too old: it needs BTF and ring buffers");
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->opts = *opts;
	if (opts->calls)
		err = start_calls(d, k, ring_bytes);
	if (opts->tasks)
		failed = start_tasks(d, k, ring_bytes);
	if (d->skel || d->functions)
		*out = d;
	else
		nps_driver_tracer__free(d);
	return err ? err : failed ? failed : late;
}

void nps_driver_tracer__copy_proc(struct nps_driver_tracer *d, struct nps_session_writer *s, bool end)
{
	if (d && end)
		d->end = nps_driver_proc__copy(s, "driver/end");
	else if (d)
		d->begin = nps_driver_proc__copy(s, "driver/begin");
}

void nps_driver_tracer__watch_all(struct nps_driver_tracer *d, bool on)
{
	if (d && d->skel)
		d->skel->bss->watch_all = on;
}

void nps_driver_tracer__end(struct nps_driver_tracer *d, uint64_t now)
{
	if (!d)
		return;
	if (d->skel)
		d->skel->bss->ended_at = now;
	nps_driver_fn__end(d->functions, now);
	nps_driver_tracer__watch_all(d, false);
}

/* About processes in containers. */
static bool report_unlearnt(const struct nps_driver_tracer *d, const struct nps_bpf_loader *k)
{
	bool sqes = d->ways.way[NPS_DRIVER_TASKS].method == NPS_DRIVER_BY_TRACEPOINT,
	     cqes = d->ways.way[NPS_DRIVER_COMPLETIONS].method == NPS_DRIVER_BY_TRACEPOINT;

	if ((!sqes && !cqes) || !nps_bpf_loader__unlearnt(k))
		return false;
	nps_warn("%s of processes in containers are not recorded: the driver's tracepoints do not report "
		 "processes, and devices have other numbers there",
		 !cqes	 ? "SQEs"
		 : !sqes ? "CQEs"
			 : "SQEs and CQEs");
	return true;
}

/* Tasks were submitted during the capture, but no event of the driver arrived. */
static bool report_bypass(const struct nps_driver_tracer *d, uint64_t submissions, uint64_t sqes)
{
	char device[64], reason[128];

	if (!d->ways.way[NPS_DRIVER_TASKS].method || !submissions || sqes)
		return false;
	if (find_bypassing(device, sizeof(device)))
		snprintf(reason, sizeof(reason), "they go past the driver (%s: mode uio_d)", device);
	else
		snprintf(reason, sizeof(reason), "%s was never called for them",
			 d->ways.way[NPS_DRIVER_TASKS].function);
	nps_warn("the kernel saw none of %" PRIu64 " tasks that were submitted: %s", submissions, reason);
	return true;
}

bool nps_driver_tracer__lacks(const struct nps_driver_tracer *d, const struct nps_bpf_loader *k,
			      const struct nps_reader *r)
{
	uint64_t counters[NPS_COUNTER_MAX] = {};
	struct nps_reader_counts n = {};
	bool lacks;

	if (!d)
		return false;
	nps_bpf_loader__counters(k, counters);
	nps_reader__counts(r, &n);
	lacks = report_unlearnt(d, k);
	/* It is unknown which of the tasks those processes submitted. */
	if (!lacks || d->ways.way[NPS_DRIVER_TASKS].method != NPS_DRIVER_BY_TRACEPOINT)
		lacks |= report_bypass(d, n.kinds[NPS_EV_SQE],
				       n.kinds[NPS_EV_DRIVER_TASK] +
					       counters[NPS_COUNTER_LOST + NPS_EV_DRIVER_TASK]);
	for (int kind = 0; kind < NPS_DRIVER_KINDS; kind++)
		if (nps_driver_fn__uncounted(d->functions, kind)) {
			nps_info("this kernel does not count what its kprobes and tracepoints miss of the "
				 "NPU's driver: \"drops\" that are null are unknown");
			break;
		}
	return lacks || d->n_refused;
}

/* A missed return is counted at the thread's next call, so only entries are counted here. */
static uint64_t object_count_misses(const struct bpf_object *obj)
{
	struct bpf_program *prog = NULL;
	uint64_t n = 0, missed;

	while ((prog = bpf_object__next_program(obj, prog)))
		if (strstr(bpf_program__name(prog), "_entered") &&
		    nps_bpf_misses__program(bpf_program__fd(prog), &missed))
			n += missed;
	return n;
}

bool nps_driver_tracer__silence(struct nps_driver_tracer *d, void (*meanwhile)(void *arg), void *arg)
{
	return !d || nps_trace_off(nps_driver_fn__release_switch(d->functions), meanwhile, arg);
}

void nps_driver_tracer__detach(struct nps_driver_tracer *d)
{
	if (d && d->skel) {
		driver_bpf__detach(d->skel);
		d->missed = object_count_misses(d->skel->obj);
	}
	if (d)
		nps_driver_fn__detach(d->functions);
}

static const uint8_t event_of[NPS_DRIVER_KINDS] = { [NPS_DRIVER_TASKS] = NPS_EV_DRIVER_TASK,
						    [NPS_DRIVER_COMPLETIONS] = NPS_EV_DRIVER_DONE,
						    [NPS_DRIVER_COPIES] = NPS_EV_DRIVER_DMA };

void nps_driver_tracer__settle(const struct nps_driver_tracer *d, struct nps_bpf_loader *k)
{
	if (!d)
		return;
	nps_bpf_loader__add_lost(k, NPS_EV_DRIVER, d->missed);
	for (int kind = 0; kind < NPS_DRIVER_KINDS; kind++)
		nps_bpf_loader__add_lost(k, event_of[kind], nps_driver_fn__lost(d->functions, kind));
}

bool nps_driver_tracer__uncounted(const struct nps_driver_tracer *d, int event)
{
	for (int kind = 0; d && kind < NPS_DRIVER_KINDS; kind++)
		if (event_of[kind] == event)
			return nps_driver_fn__uncounted(d->functions, kind);
	return false;
}

void nps_driver_tracer__for_each_program(const struct nps_driver_tracer *d,
					 void (*each)(const char *name, int fd, void *arg), void *arg)
{
	const struct bpf_object *objects[] = { d && d->skel ? d->skel->obj : NULL,
					       d ? nps_driver_fn__object(d->functions) : NULL };

	for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++) {
		struct bpf_program *prog = NULL;

		while (objects[i] && (prog = bpf_object__next_program(objects[i], prog)))
			if (bpf_program__fd(prog) >= 0)
				each(bpf_program__name(prog), bpf_program__fd(prog), arg);
	}
}

void nps_driver_tracer__free(struct nps_driver_tracer *d)
{
	if (!d)
		return;
	driver_bpf__destroy(d->skel);
	nps_driver_fn__free(d->functions);
	free(d->nodes);
	free(d);
}

static void describe_proc(const struct nps_driver_proc *p, const char *name, cJSON *proc)
{
	cJSON *j = cJSON_AddObjectToObject(proc, name);

	cJSON_AddNumberToObject(j, "files", p->files);
	cJSON_AddNumberToObject(j, "left_out", p->left_out);
	cJSON_AddNumberToObject(j, "cut", p->cut);
}

void nps_driver_tracer__describe(const struct nps_driver_tracer *d, cJSON *session)
{
	cJSON *j, *list;

	if (!d)
		return;
	j = cJSON_AddObjectToObject(session, "driver");
	if (d->opts.tasks)
		nps_driver_ways__describe(&d->ways, j);
	list = cJSON_AddArrayToObject(j, "nodes");
	for (size_t i = 0; i < d->n_nodes; i++) {
		cJSON *node = cJSON_CreateObject();

		cJSON_AddStringToObject(node, "name", d->nodes[i].name);
		cJSON_AddNumberToObject(node, "dev", d->nodes[i].rdev);
		cJSON_AddItemToArray(list, node);
	}
	cJSON_AddNumberToObject(j, "refused_nodes", d->n_refused);
	list = cJSON_AddObjectToObject(j, "proc");
	describe_proc(&d->begin, "begin", list);
	describe_proc(&d->end, "end", list);
}
