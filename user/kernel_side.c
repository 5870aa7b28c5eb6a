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

#include "irq.h"
#include "hostsys.skel.h"
#include "log.h"
#include "os_io.h"
#include "osrt.skel.h"
#include "runtime.skel.h"
#include "sched.skel.h"
#include "uprobe_link.h"

struct nps_kernel_side {
	struct nps_capability cap;
	struct sched_bpf *sched; /* loaded first: owns the shared maps */
	struct runtime_bpf *runtime;
	struct osrt_bpf *osrt; /* NULL unless asked for */
	struct nps_irq_side *irq; /* the same */
	struct hostsys_bpf *hostsys; /* NULL unless asked for, or not to be had */
	struct nps_os_io *io; /* the same; NULL too where the kernel has nothing of it */
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

static int share_map(struct bpf_object *obj, const struct bpf_map *own)
{
	struct bpf_map *m = bpf_object__find_map_by_name(obj, bpf_map__name(own));

	return m ? bpf_map__reuse_fd(m, bpf_map__fd(own)) : -ENOENT;
}

/* Every object declares targets, rings and counters; all use those of the first. */
int nps_kernel_side__share_maps(struct nps_kernel_side *k, struct bpf_object *obj)
{
	struct bpf_map *own[] = { k->sched->maps.targets, k->sched->maps.rings, k->sched->maps.counters };

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		int err = share_map(obj, own[i]);

		if (err)
			return err;
	}
	return 0;
}

static void set_wake_mark(uint64_t *mark, size_t ring_bytes)
{
	*mark = ring_size(ring_bytes) / 4;
}

/* What is known of each thread */
static int share_threads(struct nps_kernel_side *k, struct bpf_object *obj)
{
	int err = share_map(obj, k->sched->maps.scheds);

	return err ? err : share_map(obj, k->sched->maps.syscalls);
}

int nps_kernel_side__adopt(struct nps_kernel_side *k, struct bpf_object *obj, size_t ring_bytes,
			   uint64_t *wake_mark)
{
	int err = nps_kernel_side__share_maps(k, obj);

	set_wake_mark(wake_mark, ring_bytes);
	return err ? err : share_threads(k, obj);
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
	k->runtime->rodata->with_shapes = opts->shapes;
	bpf_program__set_autoload(k->runtime->progs.operands, opts->shapes);
	bpf_program__set_expected_attach_type(k->runtime->progs.operands, attach);
	err = nps_kernel_side__share_maps(k, k->runtime->obj);
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
	k->osrt->bss->threshold_ns = opts->osrt_threshold_ns;
	err = nps_kernel_side__adopt(k, k->osrt->obj, opts->ring_bytes,
				     (uint64_t *)&k->osrt->rodata->wake_bytes);
	if (!err)
		err = osrt_bpf__load(k->osrt);
	if (err)
		return err;
	err = nps_os_io__open(k, opts->ring_bytes, &k->io);
	if (err)
		nps_warn("no requests of block devices and no major page faults in this capture: %s",
			 strerror(-err));
	return 0;
}

/* One way to count what sockets carry: by the tracepoints (Linux 6.3), else by probes of the kernel's functions. */
static int try_hostsys(struct nps_kernel_side *k, bool tracepoints)
{
	struct bpf_program *prog = NULL;
	int err;

	k->hostsys = hostsys_bpf__open();
	if (!k->hostsys)
		return -errno;
	while ((prog = bpf_object__next_program(k->hostsys->obj, prog)))
		bpf_program__set_autoload(prog, (bpf_program__type(prog) == BPF_PROG_TYPE_RAW_TRACEPOINT) ==
							tracepoints);
	err = nps_kernel_side__share_maps(k, k->hostsys->obj);
	if (!err)
		err = hostsys_bpf__load(k->hostsys);
	if (!err)
		err = hostsys_bpf__attach(k->hostsys);
	if (err) {
		hostsys_bpf__destroy(k->hostsys);
		k->hostsys = NULL;
	}
	return err;
}

/* Where neither is possible the capture goes on without. */
static void load_hostsys(struct nps_kernel_side *k)
{
	int err = try_hostsys(k, true);

	if (err)
		err = try_hostsys(k, false);
	if (err)
		nps_warn("cannot count network bytes by process: %s: neither the tracepoint sock_send_length "
			 "nor kprobes can be had: interfaces are sampled all the same",
			 strerror(-err));
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
	if (!err && opts->osrt && opts->irq) /* not worth a capture: without, it goes on */
		nps_irq_side__open(k, ring_size(opts->ring_bytes) / 4, &k->irq);
	if (!err && opts->network)
		load_hostsys(k);
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
	nps_irq_side__close(k->irq);
	hostsys_bpf__destroy(k->hostsys);
	nps_os_io__free(k->io);
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
	if (!err && k->irq && nps_irq_side__attach(k->irq)) {
		nps_irq_side__close(k->irq);
		k->irq = NULL;
	}
	if (!err)
		nps_os_io__attach(k->io); /* says what is missing: the capture goes on without */
	if (err)
		nps_warn("cannot attach to tracepoints: %s", strerror(-err));
	return err;
}

void nps_kernel_side__detach(struct nps_kernel_side *k)
{
	nps_irq_side__detach(k->irq);
	nps_os_io__detach(k->io);
	if (k->osrt)
		osrt_bpf__detach(k->osrt);
	if (k->hostsys)
		hostsys_bpf__detach(k->hostsys);
	sched_bpf__detach(k->sched);
}

void nps_kernel_side__sum_syscalls(struct nps_kernel_side *k)
{
	if (k->osrt)
		k->osrt->bss->threshold_ns = NPS_LONGEST_SUMMED;
}

void nps_kernel_side__drop_syscalls(struct nps_kernel_side *k)
{
	if (k->osrt)
		osrt_bpf__detach(k->osrt);
}

static void drop(struct bpf_link **link)
{
	bpf_link__destroy(*link);
	*link = NULL;
}

void nps_kernel_side__drop_sched(struct nps_kernel_side *k)
{
	drop(&k->sched->links.sched_switched);
	drop(&k->sched->links.sched_woken);
}

static void each_of(const struct bpf_object *obj, void (*each)(const char *name, int fd, void *arg),
		    void *arg)
{
	struct bpf_program *prog = NULL;

	while ((prog = bpf_object__next_program(obj, prog)))
		if (bpf_program__fd(prog) >= 0)
			each(bpf_program__name(prog), bpf_program__fd(prog), arg);
}

void nps_kernel_side__for_each_program(const struct nps_kernel_side *k,
				       void (*each)(const char *name, int fd, void *arg), void *arg)
{
	each_of(k->sched->obj, each, arg);
	each_of(k->runtime->obj, each, arg);
	if (k->osrt)
		each_of(k->osrt->obj, each, arg);
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

void nps_kernel_side__watch_all(struct nps_kernel_side *k, bool on)
{
	k->sched->bss->own_pid = (uint32_t)getpid();
	k->sched->bss->watch_all = on && k->osrt; /* else births and deaths would come from everybody */
	if (k->osrt) {
		k->osrt->bss->own_pid = (uint32_t)getpid();
		k->osrt->bss->watch_all = on;
	}
	if (k->hostsys) {
		k->hostsys->bss->own_pid = (uint32_t)getpid();
		k->hostsys->bss->watch_all = on;
	}
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

int nps_kernel_side__net_map(const struct nps_kernel_side *k)
{
	return k->hostsys ? bpf_map__fd(k->hostsys->maps.net_bytes) : -1;
}

uint64_t nps_kernel_side__net_lost(const struct nps_kernel_side *k)
{
	return k->hostsys ? k->hostsys->bss->net_lost : 0;
}

int nps_kernel_side__cpus(const struct nps_kernel_side *k)
{
	return k->cpus;
}

int nps_kernel_side__ring_fd(const struct nps_kernel_side *k, int cpu)
{
	return k->ring_fds[cpu];
}

int nps_kernel_side__sums_fd(const struct nps_kernel_side *k, bool next)
{
	bool odd = k->osrt && (k->osrt->bss->sums_turn & 1) != next;

	return !k->osrt ? -1 : bpf_map__fd(odd ? k->osrt->maps.sums_odd : k->osrt->maps.sums_even);
}

void nps_kernel_side__turn_sums(struct nps_kernel_side *k)
{
	if (k->osrt)
		__atomic_fetch_add(&k->osrt->bss->sums_turn, 1, __ATOMIC_SEQ_CST);
}

int nps_kernel_side__threads_fd(const struct nps_kernel_side *k)
{
	return bpf_map__fd(k->sched->maps.scheds);
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

bool nps_kernel_side__has_irq(const struct nps_kernel_side *k)
{
	return k->irq;
}

struct bpf_map *nps_kernel_side__sched_map(const struct nps_kernel_side *k, const char *name)
{
	return bpf_object__find_map_by_name(k->sched->obj, name);
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
	case NPS_PROG_OPERANDS:
		return k->runtime->progs.operands;
	default:
		return k->runtime->progs.call_mark;
	}
}

uint64_t nps_kernel_side__program_ns(const struct nps_kernel_side *k)
{
	uint64_t ns = 0;

	for (enum nps_program p = 0; p < NPS_PROGRAMS; p++) {
		int fd = bpf_program__fd(nps_kernel_side__program(k, p));
		struct bpf_prog_info info = {};
		uint32_t size = sizeof(info);

		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size))
			ns += info.run_time_ns;
	}
	return ns;
}
