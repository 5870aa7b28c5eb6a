/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver_side.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.skel.h"
#include "driver_nodes.h"
#include "log.h"

struct nps_driver_side {
	struct driver_bpf *skel;
	struct nps_node_found *nodes;
	size_t n_nodes;
};

int nps_driver_opts__parse(struct nps_driver_opts *opts, const char *text)
{
	if (strcmp(text, "calls") != 0 && strcmp(text, "none") != 0)
		return -EINVAL;
	opts->calls = !strcmp(text, "calls");
	opts->given = opts->calls;
	return 0;
}

const char *nps_driver_opts__name(const struct nps_driver_opts *opts)
{
	return opts->calls ? "calls" : "none";
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
	if (d)
		nps_driver_nodes__find("/dev", add_node, d);
}

void nps_driver_side__look_at(struct nps_driver_side *d, pid_t pid)
{
	char path[64];

	if (!d)
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
static int refuse(const struct nps_driver_opts *opts, const char *why)
{
	if (opts->given)
		nps_warn("no calls of the NPU's driver are recorded: %s", why);
	else
		nps_debug("no calls of the NPU's driver are recorded: %s", why);
	return opts->given ? -ENOTSUP : 0;
}

int nps_driver_side__start(struct nps_kernel_side *k, const struct nps_driver_opts *opts, bool all,
			   size_t ring_bytes, struct nps_driver_side **out)
{
	struct nps_driver_side *d;
	char why[128];
	int err;

	*out = NULL;
	if (!opts->calls)
		return 0;
	if (nps_kernel_side__is_legacy(k))
		return refuse(opts, "this kernel is too old: it needs BTF and ring buffers");
	/* Others' calls pay for the question whether they concern a node: not where there is none. */
	if (!opts->given && !nps_driver_nodes__find("/dev", ignore, NULL))
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	err = load(d, k, all, ring_bytes);
	if (err) {
		nps_driver_side__free(d);
		snprintf(why, sizeof(why), "cannot trace their system calls: %s: is tracefs mounted?",
			 strerror(-err));
		return refuse(opts, why);
	}
	nps_driver_side__look(d);
	*out = d;
	return 0;
}

void nps_driver_side__detach(struct nps_driver_side *d)
{
	if (d && d->skel)
		driver_bpf__detach(d->skel);
}

void nps_driver_side__free(struct nps_driver_side *d)
{
	if (!d)
		return;
	driver_bpf__destroy(d->skel);
	free(d->nodes);
	free(d);
}

void nps_driver_side__describe(const struct nps_driver_side *d, cJSON *session)
{
	cJSON *j, *list;

	if (!d)
		return;
	j = cJSON_AddObjectToObject(session, "driver");
	list = cJSON_AddArrayToObject(j, "nodes");
	for (size_t i = 0; i < d->n_nodes; i++) {
		cJSON *node = cJSON_CreateObject();

		cJSON_AddStringToObject(node, "name", d->nodes[i].name);
		cJSON_AddNumberToObject(node, "dev", d->nodes[i].rdev);
		cJSON_AddItemToArray(list, node);
	}
}
