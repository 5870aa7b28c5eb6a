/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel_side.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "log.h"
#include "osrt.skel.h"
#include "runtime.skel.h"
#include "sched.skel.h"
#include "uprobe_link.h"

struct nps_kernel_side {
	struct nps_capability cap;
	struct sched_bpf *sched; /* loaded first: owns the shared maps */
	struct runtime_bpf *runtime;
	struct osrt_bpf *osrt; /* NULL unless asked for */
	int cpus;
	int *ring_fds;
};

static size_t ring_size(size_t bytes)
{
	size_t size = sysconf(_SC_PAGESIZE);

	while (size < bytes && size < (1UL << 30))
		size *= 2;
	return size;
}

static int create_rings(struct nps_kernel_side *k, size_t bytes)
{
	int outer = bpf_map__fd(k->sched->maps.rings);

	k->ring_fds = malloc(k->cpus * sizeof(int));
	if (!k->ring_fds)
		return -ENOMEM;
	for (int i = 0; i < k->cpus; i++)
		k->ring_fds[i] = -1;
	for (int i = 0; i < k->cpus; i++) {
		int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "nps_ring", 0, 0, ring_size(bytes), NULL);

		if (fd < 0)
			return fd;
		k->ring_fds[i] = fd;
		if (bpf_map_update_elem(outer, &i, &fd, BPF_ANY))
			return -errno;
	}
	return 0;
}

/* Every object declares targets, rings and counters; all use those of the first. */
static int share_maps(struct nps_kernel_side *k, struct bpf_object *obj)
{
	struct bpf_map *own[] = { k->sched->maps.targets, k->sched->maps.rings, k->sched->maps.counters };

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		struct bpf_map *m = bpf_object__find_map_by_name(obj, bpf_map__name(own[i]));
		int err = m ? bpf_map__reuse_fd(m, bpf_map__fd(own[i])) : -ENOENT;

		if (err)
			return err;
	}
	return 0;
}

static void set_wake_mark(uint64_t *mark, size_t ring_bytes)
{
	*mark = ring_size(ring_bytes) / 4;
}

static int load_sched(struct nps_kernel_side *k, const struct nps_kernel_side_opts *opts)
{
	k->sched = sched_bpf__open();
	if (!k->sched)
		return -errno;
	k->sched->rodata->with_sched = opts->osrt;
	set_wake_mark((uint64_t *)&k->sched->rodata->wake_bytes, opts->ring_bytes);
	if (!opts->osrt) {
		bpf_program__set_autoload(k->sched->progs.sched_switched, false);
		bpf_program__set_autoload(k->sched->progs.sched_woken, false);
	}
	return sched_bpf__load(k->sched);
}

static int set_domains(struct nps_kernel_side *k, const struct nps_mstx_opts *mstx)
{
	const struct nps_mstx_list *list = mstx ? nps_mstx__list(mstx) : NULL;
	int fd = bpf_map__fd(k->runtime->maps.domain_names);
	uint8_t one = 1;

	for (unsigned i = 0; list && i < list->n; i++)
		if (bpf_map_update_elem(fd, list->name[i], &one, BPF_ANY))
			return -errno;
	return 0;
}

static int load_runtime(struct nps_kernel_side *k, const struct nps_kernel_side_opts *opts)
{
	bool session = k->cap.uprobe == NPS_UPROBE_SESSION;
	uint32_t attach = k->cap.mark_attach_type;
	int err;

	k->runtime = runtime_bpf__open();
	if (!k->runtime)
		return -errno;
	set_wake_mark((uint64_t *)&k->runtime->rodata->wake_bytes, opts->ring_bytes);
	if (opts->mstx) {
		k->runtime->rodata->mstx_mode = nps_mstx__mode(opts->mstx);
		k->runtime->rodata->mstx_default_wanted = nps_mstx__wants_default(opts->mstx);
	}
	bpf_program__set_autoload(k->runtime->progs.call_session, session);
	bpf_program__set_autoload(k->runtime->progs.call_entry, !session);
	bpf_program__set_autoload(k->runtime->progs.call_return, !session);
	bpf_program__set_expected_attach_type(k->runtime->progs.call_session, NPS_BPF_TRACE_UPROBE_SESSION);
	bpf_program__set_expected_attach_type(k->runtime->progs.call_entry, attach);
	bpf_program__set_expected_attach_type(k->runtime->progs.call_return, attach);
	bpf_program__set_expected_attach_type(k->runtime->progs.call_mark, attach);
	err = share_maps(k, k->runtime->obj);
	if (!err)
		err = runtime_bpf__load(k->runtime);
	return err ? err : set_domains(k, opts->mstx);
}

static int load_osrt(struct nps_kernel_side *k, const struct nps_kernel_side_opts *opts)
{
	int err;

	k->osrt = osrt_bpf__open();
	if (!k->osrt)
		return -errno;
	set_wake_mark((uint64_t *)&k->osrt->rodata->wake_bytes, opts->ring_bytes);
	err = share_maps(k, k->osrt->obj);
	return err ? err : osrt_bpf__load(k->osrt);
}

/* Before 5.11 BPF memory counts against the limit of locked memory */
static void raise_limits(void)
{
	struct rlimit r = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &r);
	/* Where each probe is a perf event of its own they are many. */
	if (!getrlimit(RLIMIT_NOFILE, &r)) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return level == LIBBPF_DEBUG || !nps_log_is_verbose() ? 0 : vfprintf(stderr, fmt, ap);
}

int nps_kernel_side__open(const struct nps_capability *cap, const struct nps_kernel_side_opts *opts,
			  struct nps_kernel_side **out)
{
	struct nps_kernel_side *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->cap = *cap;
	k->cpus = libbpf_num_possible_cpus();
	raise_limits();
	libbpf_set_print(print_libbpf);
	if (k->cpus < 1 || k->cpus > NPS_MAX_CPUS) {
		nps_warn("cannot attach: %d CPUs: at most %d are supported", k->cpus, NPS_MAX_CPUS);
		err = -ENOTSUP;
		goto fail;
	}
	err = load_sched(k, opts);
	if (!err)
		err = create_rings(k, opts->ring_bytes);
	if (!err)
		err = load_runtime(k, opts);
	/* A kernel that has the session link may keep its kfuncs to itself. */
	if (err && err != -ENOMEM && k->cap.uprobe == NPS_UPROBE_SESSION) {
		runtime_bpf__destroy(k->runtime);
		k->cap.uprobe = NPS_UPROBE_MULTI;
		err = load_runtime(k, opts);
	}
	if (!err && opts->osrt)
		err = load_osrt(k, opts);
	if (err) {
		nps_warn("cannot load BPF programs: %s: run with --verbose for the verifier's words",
			 strerror(-err));
		goto fail;
	}
	*out = k;
	return 0;
fail:
	nps_kernel_side__close(k);
	return err;
}

void nps_kernel_side__close(struct nps_kernel_side *k)
{
	if (!k)
		return;
	osrt_bpf__destroy(k->osrt);
	runtime_bpf__destroy(k->runtime);
	sched_bpf__destroy(k->sched);
	for (int i = 0; k->ring_fds && i < k->cpus; i++)
		if (k->ring_fds[i] >= 0)
			close(k->ring_fds[i]);
	free(k->ring_fds);
	free(k);
}

int nps_kernel_side__attach(struct nps_kernel_side *k)
{
	int err = sched_bpf__attach(k->sched);

	if (!err && k->osrt)
		err = osrt_bpf__attach(k->osrt);
	if (err)
		nps_warn("cannot attach to tracepoints: %s", strerror(-err));
	return err;
}

void nps_kernel_side__detach(struct nps_kernel_side *k)
{
	if (k->osrt)
		osrt_bpf__detach(k->osrt);
	sched_bpf__detach(k->sched);
}

int nps_kernel_side__add_target(struct nps_kernel_side *k, pid_t pid, uint32_t flags)
{
	uint32_t key = pid;

	return bpf_map_update_elem(bpf_map__fd(k->sched->maps.targets), &key, &flags, BPF_ANY) ? -errno : 0;
}

int nps_kernel_side__del_target(struct nps_kernel_side *k, pid_t pid)
{
	uint32_t key = pid;

	return bpf_map_delete_elem(bpf_map__fd(k->sched->maps.targets), &key) ? -errno : 0;
}

void nps_kernel_side__clear_targets(struct nps_kernel_side *k)
{
	int fd = bpf_map__fd(k->sched->maps.targets);
	uint32_t pid;

	/* A process can fork while we delete: until none is left. */
	while (!bpf_map_get_next_key(fd, NULL, &pid))
		if (bpf_map_delete_elem(fd, &pid) && errno != ENOENT)
			break;
}

int nps_kernel_side__cpus(const struct nps_kernel_side *k)
{
	return k->cpus;
}

int nps_kernel_side__ring_fd(const struct nps_kernel_side *k, int cpu)
{
	return k->ring_fds[cpu];
}

int nps_kernel_side__counters(const struct nps_kernel_side *k, uint64_t counters[NPS_COUNTER_MAX])
{
	int fd = bpf_map__fd(k->sched->maps.counters);
	uint64_t *percpu = calloc(k->cpus, sizeof(*percpu));

	if (!percpu)
		return -ENOMEM;
	for (uint32_t i = 0; i < NPS_COUNTER_MAX; i++) {
		counters[i] = 0;
		if (bpf_map_lookup_elem(fd, &i, percpu)) {
			free(percpu);
			return -errno;
		}
		for (int cpu = 0; cpu < k->cpus; cpu++)
			counters[i] += percpu[cpu];
	}
	free(percpu);
	return 0;
}

void nps_kernel_side__reset_counters(struct nps_kernel_side *k)
{
	int fd = bpf_map__fd(k->sched->maps.counters);
	uint64_t *zero = calloc(k->cpus, sizeof(*zero));

	for (uint32_t i = 0; zero && i < NPS_COUNTER_MAX; i++)
		bpf_map_update_elem(fd, &i, zero, BPF_ANY);
	free(zero);
}

enum nps_uprobe_row nps_kernel_side__uprobe_row(const struct nps_kernel_side *k)
{
	return k->cap.uprobe;
}

struct bpf_program *nps_kernel_side__program(const struct nps_kernel_side *k, enum nps_program which)
{
	switch (which) {
	case NPS_PROG_SESSION:
		return k->runtime->progs.call_session;
	case NPS_PROG_ENTRY:
		return k->runtime->progs.call_entry;
	case NPS_PROG_RETURN:
		return k->runtime->progs.call_return;
	default:
		return k->runtime->progs.call_mark;
	}
}
