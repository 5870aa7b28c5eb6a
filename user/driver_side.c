/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver_side.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.skel.h"
#include "driver_fn.h"
#include "driver_nodes.h"
#include "driver_proc.h"
#include "log.h"

struct nps_driver_side {
	struct nps_driver_opts opts;
	struct driver_bpf *skel; /* NULL: no calls */
	struct nps_node_found *nodes;
	size_t n_nodes;
	struct nps_driver_ways ways;
	struct nps_driver_fn *functions; /* NULL: no tasks */
};

const char *nps_driver_opts__name(const struct nps_driver_opts *opts)
{
	return opts->calls && opts->tasks ? "calls,tasks"
	       : opts->tasks		  ? "tasks"
	       : opts->calls		  ? "calls"
					  : "none";
}

int nps_driver_opts__parse(struct nps_driver_opts *opts, const char *text)
{
	*opts = (struct nps_driver_opts){ 0 };
	if (!strcmp(text, "none"))
		return 0;
	while (*text) {
		size_t n = strcspn(text, ",");

		if (n != 5 || (memcmp(text, "calls", n) != 0 && memcmp(text, "tasks", n) != 0))
			return -EINVAL;
		opts->calls |= *text == 'c';
		opts->tasks |= *text == 't';
		text += n + (text[n] == ',' && text[n + 1]);
	}
	opts->given = opts->calls || opts->tasks;
	return opts->given ? 0 : -EINVAL;
}

static void add_node(void *arg, const struct nps_node_found *found)
{
	struct nps_driver_side *d = arg;
	struct nps_node_found *nodes;

	for (size_t i = 0; i < d->n_nodes; i++)
		if (d->nodes[i].rdev == found->rdev)
			return;
	if (d->n_nodes == NPS_MAX_NODES)
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

void nps_driver_side__look(struct nps_driver_side *d)
{
	if (d && d->skel)
		nps_driver_nodes__find("/dev", add_node, d);
}

void nps_driver_side__look_at(struct nps_driver_side *d, pid_t pid)
{
	char path[64];

	if (!d || !d->skel)
		return;
	snprintf(path, sizeof(path), "/proc/%d/root/dev", pid);
	nps_driver_nodes__find(path, add_node, d);
}

static int load(struct nps_driver_side *d, struct nps_kernel_side *k, bool all, size_t ring_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t wake = (ring_bytes > page ? ring_bytes : page) / 4;
	int err;

	d->skel = driver_bpf__open();
	if (!d->skel)
		return -errno;
	memcpy((void *)&d->skel->rodata->wake_bytes, &wake, sizeof(wake));
	d->skel->bss->own_pid = (uint32_t)getpid();
	d->skel->bss->watch_all = all;
	bpf_program__set_autoload(d->skel->progs.driver_thread_gone, !nps_kernel_side__cap(k)->task_storage);
	err = nps_kernel_side__share_maps(k, d->skel->obj);
	if (!err)
		err = driver_bpf__load(d->skel);
	return err ? err : driver_bpf__attach(d->skel);
}

static void ignore(void *arg, const struct nps_node_found *found)
{
	(void)arg;
	(void)found;
}

/* One line, and only to somebody who asked. */
static int refuse(const struct nps_driver_opts *opts, const char *what, const char *why)
{
	if (opts->given)
		nps_warn("no %s of the NPU's driver are recorded: %s", what, why);
	else
		nps_debug("no %s of the NPU's driver are recorded: %s", what, why);
	return opts->given ? -ENOTSUP : 0;
}

static int start_calls(struct nps_driver_side *d, struct nps_kernel_side *k, bool all, size_t ring_bytes)
{
	char why[128];
	int err;

	/* Others' calls pay for the question whether they concern a node: not where there is none. */
	if (!d->opts.given && !nps_driver_nodes__find("/dev", ignore, NULL))
		return 0;
	err = load(d, k, all, ring_bytes);
	if (err) {
		driver_bpf__destroy(d->skel);
		d->skel = NULL;
		snprintf(why, sizeof(why), "cannot trace their system calls: %s: is tracefs mounted?",
			 strerror(-err));
		return refuse(&d->opts, "calls", why);
	}
	nps_driver_side__look(d);
	return 0;
}

/* What goes past the driver cannot be seen there: "mode uio_d" in what it tells of its queues. */
static unsigned int for_each_bypassing(void (*each)(const char *device))
{
	static const char *const place = "/proc/trs_core/ts_inst";
	DIR *dir = opendir(place);
	const struct dirent *entry;
	unsigned int n = 0;

	while (dir && (entry = readdir(dir))) {
		char path[320], line[256];
		bool bypasses = false;
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s/hw_sq", place, entry->d_name);
		f = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			bypasses |= strstr(line, "mode uio_d") != NULL;
		if (f)
			fclose(f);
		if (bypasses && each)
			each(entry->d_name);
		n += bypasses;
	}
	if (dir)
		closedir(dir);
	return n;
}

static void say_bypass(const char *device)
{
	nps_warn("%s: its tasks go past the driver (mode uio_d): the kernel sees none of them", device);
}

static int start_tasks(struct nps_driver_side *d, struct nps_kernel_side *k, size_t ring_bytes)
{
	const struct nps_driver_way *tasks = &d->ways.way[NPS_DRIVER_TASKS];
	int err;

	nps_driver_ways__find(nps_kernel_side__cap(k), &d->ways);
	err = nps_driver_fn__start(k, &d->ways, ring_bytes, &d->functions);
	if (!tasks->row)
		return refuse(&d->opts, "tasks", tasks->detail);
	return err ? refuse(&d->opts, "tasks", strerror(-err)) : 0;
}

int nps_driver_side__start(struct nps_kernel_side *k, const struct nps_driver_opts *opts, bool all,
			   size_t ring_bytes, struct nps_driver_side **out)
{
	struct nps_driver_side *d;
	int err = 0, failed = 0;

	*out = NULL;
	if (!opts->calls && !opts->tasks)
		return 0;
	if (nps_kernel_side__is_legacy(k))
		return refuse(opts, "calls or tasks",
			      "this kernel is too old: it needs BTF and ring buffers");
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->opts = *opts;
	if (opts->calls)
		err = start_calls(d, k, all, ring_bytes);
	if (opts->tasks)
		failed = start_tasks(d, k, ring_bytes);
	if (d->skel || d->functions)
		*out = d;
	else
		nps_driver_side__free(d);
	return err ? err : failed;
}

void nps_driver_side__copy_proc(const struct nps_driver_side *d, struct nps_session *s, const char *dir)
{
	if (d)
		nps_driver_proc__copy(s, dir);
}

bool nps_driver_side__lacks(const struct nps_driver_side *d)
{
	return d && d->functions && for_each_bypassing(say_bypass) > 0;
}

void nps_driver_side__detach(struct nps_driver_side *d)
{
	if (d && d->skel)
		driver_bpf__detach(d->skel);
	if (d)
		nps_driver_fn__detach(d->functions);
}

void nps_driver_side__free(struct nps_driver_side *d)
{
	if (!d)
		return;
	driver_bpf__destroy(d->skel);
	nps_driver_fn__free(d->functions);
	free(d->nodes);
	free(d);
}

void nps_driver_side__describe(const struct nps_driver_side *d, cJSON *session)
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
}
