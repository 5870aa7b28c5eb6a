/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel_side.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clocks.h"
#include "irq.h"
#include "legacy_side.h"
#include "hostsys.skel.h"
#include "log.h"
#include "os_io.h"
#include "osrt.skel.h"
#include "portable.h"
#include "preempt_count.h"
#include "runtime.skel.h"
#include "sched.skel.h"
#include "stubs.h"
#include "uprobe_link.h"

struct nps_kernel_side {
	struct nps_capability cap;
	struct nps_legacy *legacy; /* on old kernels, and then none of the others */
	struct sched_bpf *sched; /* loaded first: owns the shared maps */
	struct runtime_bpf *runtime;
	struct nps_stubs *stubs; /* NULL: probes have cookies */
	struct osrt_bpf *osrt; /* NULL unless asked for */
	struct nps_irq_side *irq; /* the same */
	struct hostsys_bpf *hostsys; /* NULL unless asked for, or not to be had */
	struct nps_os_io *io; /* the same; NULL too where the kernel has nothing of it */
	int cpus;
	size_t ring_bytes; /* of each CPU's: a power of two, whole pages */
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

static int own_map_fd(const struct nps_kernel_side *k, const char *name)
{
	struct bpf_map *m = k->legacy ? nps_legacy__map(k->legacy, name)
				      : bpf_object__find_map_by_name(k->sched->obj, name);

	return m ? bpf_map__fd(m) : -ENOENT;
}

/* Every object declares targets, rings and counters; all use those of the first. */
int nps_kernel_side__share_maps(struct nps_kernel_side *k, struct bpf_object *obj)
{
	struct bpf_map *own[3];

	if (k->legacy)
		return -ENOTSUP; /* what this object does is not to be had beside that one */
	own[0] = k->sched->maps.targets;
	own[1] = k->sched->maps.rings;
	own[2] = k->sched->maps.counters;

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		int err = share_map(obj, own[i]);

		if (err)
			return err;
	}
	return nps_portable__prepare(obj, &k->cap);
}

int nps_kernel_side__share_streams(struct nps_kernel_side *k, struct bpf_object *obj)
{
	int err = share_map(obj, k->runtime->maps.stream_owners);

	return err ? err : share_map(obj, k->runtime->maps.queue_owners);
}

void nps_kernel_side__learn(struct nps_kernel_side *k, uint32_t which)
{
	k->runtime->bss->learns = which;
}

bool nps_kernel_side__unlearnt(const struct nps_kernel_side *k)
{
	return k->runtime && k->runtime->bss->container_submits;
}

void nps_kernel_side__set_wake_mark(uint64_t *mark, size_t ring_bytes)
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

	nps_kernel_side__set_wake_mark(wake_mark, ring_bytes);
	return err ? err : share_threads(k, obj);
}

static int64_t preempt_count_at(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int64_t at = nps_preempt_count__place(btf);

	btf__free(btf);
	return at;
}

static int load_sched(struct nps_kernel_side *k, const struct nps_kernel_side_opts *opts)
{
	int err;

	k->sched = sched_bpf__open();
	if (!k->sched)
		return -errno;
	k->sched->rodata->with_sched = opts->osrt;
	nps_kernel_side__set_wake_mark((uint64_t *)&k->sched->rodata->wake_bytes, opts->ring_bytes);
	if (opts->osrt)
		k->sched->rodata->preempt_count_at = preempt_count_at();
	if (!opts->osrt) {
		bpf_program__set_autoload(k->sched->progs.sched_switched, false);
		bpf_program__set_autoload(k->sched->progs.sched_woken, false);
	}
	err = nps_portable__prepare(k->sched->obj, &k->cap);
	return err ? err : sched_bpf__load(k->sched);
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

/* On kernels whose probes have no cookies */
static int make_stubs(struct nps_kernel_side *k)
{
	int fds[NPS_PROGRAMS];

	if (k->cap.cookie)
		return 0;
	for (enum nps_program p = 0; p < NPS_PROGRAMS; p++)
		fds[p] = bpf_program__fd(nps_kernel_side__program(k, p));
	return nps_stubs__new(k->legacy ? own_map_fd(k, "cookie") : bpf_map__fd(k->runtime->maps.cookie), fds,
			      NPS_PROGRAMS, &k->stubs);
}

static int load_runtime(struct nps_kernel_side *k, const struct nps_kernel_side_opts *opts)
{
	bool session = k->cap.uprobe == NPS_UPROBE_SESSION;
	uint32_t attach = k->cap.mark_attach_type;
	int err;

	k->runtime = runtime_bpf__open();
	if (!k->runtime)
		return -errno;
	nps_kernel_side__set_wake_mark((uint64_t *)&k->runtime->rodata->wake_bytes, opts->ring_bytes);
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
	bpf_program__set_autoload(k->runtime->progs.thread_gone, !k->cap.task_storage);
	bpf_program__set_expected_attach_type(k->runtime->progs.operands, attach);
	err = nps_kernel_side__share_maps(k, k->runtime->obj);
	if (!err)
		err = runtime_bpf__load(k->runtime);
	if (!err)
		err = make_stubs(k);
	return err ? err : set_domains(k, opts->mstx);
}

static int load_osrt(struct nps_kernel_side *k, const struct nps_kernel_side_opts *opts)
{
	int err;

	k->osrt = osrt_bpf__open();
	if (!k->osrt)
		return -errno;
	k->osrt->bss->threshold_ns = opts->osrt_threshold_ns;
	k->osrt->bss->realtime_offset = (int64_t)(nps_now(CLOCK_REALTIME) - nps_now(CLOCK_MONOTONIC));
	bpf_program__set_autoattach(k->osrt->progs.open_syscalls, false); /* at the end, not before */
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

static int load_legacy(struct nps_kernel_side *k, const struct nps_kernel_side_opts *opts)
{
	int err = nps_legacy__open(opts->osrt, &k->legacy);

	k->cap.cookie = false;
	k->cap.uprobe = NPS_UPROBE_PERF;
	return err ? err : make_stubs(k);
}

static int load_runtime_as_can_be(struct nps_kernel_side *k, const struct nps_kernel_side_opts *opts)
{
	int err = load_runtime(k, opts);

	/* A kernel that has the session link may keep its kfuncs to itself. */
	if (err && err != -ENOMEM && k->cap.uprobe == NPS_UPROBE_SESSION) {
		runtime_bpf__destroy(k->runtime);
		k->cap.uprobe = NPS_UPROBE_MULTI;
		err = load_runtime(k, opts);
	}
	return err;
}

/* What the operating system does: the objects that are loaded only if they are asked for */
static int load_system(struct nps_kernel_side *k, const struct nps_kernel_side_opts *opts)
{
	int err = opts->osrt ? load_osrt(k, opts) : 0;

	if (!err && opts->osrt && opts->irq) /* not worth a capture: without, it goes on */
		nps_irq_side__open(k, ring_size(opts->ring_bytes) / 4, &k->irq);
	if (!err && opts->network)
		load_hostsys(k);
	return err;
}

struct loading {
	struct nps_kernel_side *k;
	const struct nps_kernel_side_opts *opts;
	int err;
};

static void *load_system_beside(void *arg)
{
	struct loading *l = arg;

	l->err = load_system(l->k, l->opts);
	return NULL;
}

/*
 * The objects of kernels with types and ring buffers. Most of the time the kernel's verifier takes, half of it for the
 * programs of probes: two threads have it done in half of the time, also where they have to share CPUs with others.
 */
static int load_all(struct nps_kernel_side *k, const struct nps_kernel_side_opts *opts)
{
	struct loading system = { .k = k, .opts = opts };
	bool beside = opts->osrt || opts->network;
	pthread_t thread;
	int err = load_sched(k, opts);

	if (!err)
		err = create_rings(k, opts->ring_bytes);
	if (err)
		return err;
	beside = beside && !pthread_create(&thread, NULL, load_system_beside, &system);
	err = load_runtime_as_can_be(k, opts);
	if (beside)
		pthread_join(thread, NULL);
	else if (!err)
		load_system_beside(&system);
	return err ? err : system.err;
}

int nps_kernel_side__open(const struct nps_capability *cap, const struct nps_kernel_side_opts *opts,
			  struct nps_kernel_side **out)
{
	struct nps_kernel_side *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->cap = *cap;
	k->ring_bytes = ring_size(opts->ring_bytes);
	k->cpus = libbpf_num_possible_cpus();
	raise_limits();
	libbpf_set_print(print_libbpf);
	if (k->cpus < 1) { /* a negative errno of libbpf */
		err = k->cpus ? k->cpus : -ENODEV;
		nps_warn("cannot attach: /sys/devices/system/cpu/possible cannot be read: %s: is sysfs "
			 "mounted on /sys?",
			 strerror(-err));
		goto fail;
	}
	if (k->cpus > NPS_MAX_CPUS) {
		nps_warn("cannot attach: %d CPUs: at most %d are supported", k->cpus, NPS_MAX_CPUS);
		err = -ENOTSUP;
		goto fail;
	}
	err = nps_capability__is_legacy(cap) ? load_legacy(k, opts) : load_all(k, opts);
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
	nps_stubs__free(k->stubs);
	nps_legacy__close(k->legacy);
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
	int err = k->legacy ? nps_legacy__attach(k->legacy) : sched_bpf__attach(k->sched);

	if (!err && k->runtime && !k->cap.task_storage) {
		k->runtime->links.thread_gone = bpf_program__attach(k->runtime->progs.thread_gone);
		err = k->runtime->links.thread_gone ? 0 : -errno;
	}
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
	if (k->legacy) {
		nps_legacy__detach(k->legacy);
		return;
	}
	nps_irq_side__detach(k->irq);
	nps_os_io__detach(k->io);
	if (k->osrt)
		osrt_bpf__detach(k->osrt);
	if (k->hostsys)
		hostsys_bpf__detach(k->hostsys);
	sched_bpf__detach(k->sched);
}

void nps_kernel_side__set_threshold(struct nps_kernel_side *k, uint64_t ns)
{
	if (k->osrt)
		k->osrt->bss->threshold_ns = ns;
}

void nps_kernel_side__set_group(struct nps_kernel_side *k, unsigned group, uint8_t state)
{
	if (group >= NPS_GROUPS)
		return;
	if (k->legacy)
		nps_legacy__set_group(k->legacy, group, state);
	else
		k->runtime->bss->group_state[group] = state;
}

uint64_t nps_kernel_side__entered(const struct nps_kernel_side *k, unsigned group)
{
	if (group >= NPS_GROUPS)
		return 0;
	return k->legacy ? nps_legacy__entered(k->legacy, group) : k->runtime->bss->group_entered[group];
}

void nps_kernel_side__drop_syscalls(struct nps_kernel_side *k)
{
	if (k->osrt)
		osrt_bpf__detach(k->osrt);
	if (k->legacy)
		nps_legacy__drop_syscalls(k->legacy);
}

static void drop(struct bpf_link **link)
{
	bpf_link__destroy(*link);
	*link = NULL;
}

void nps_kernel_side__drop_sched(struct nps_kernel_side *k)
{
	if (k->legacy)
		return;
	k->sched->bss->given_up = true;
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

struct each {
	const struct nps_kernel_side *k;
	void (*each)(const char *name, int fd, void *arg);
	void *arg;
};

static void each_stub(unsigned int which, int fd, void *arg)
{
	struct each *e = arg;

	e->each(bpf_program__name(nps_kernel_side__program(e->k, which)), fd, e->arg);
}

void nps_kernel_side__for_each_program(const struct nps_kernel_side *k,
				       void (*each)(const char *name, int fd, void *arg), void *arg)
{
	if (!k->legacy) {
		each_of(k->sched->obj, each, arg);
		each_of(k->runtime->obj, each, arg);
	}
	nps_stubs__each(k->stubs, each_stub, &(struct each){ k, each, arg });
	if (k->osrt)
		each_of(k->osrt->obj, each, arg);
}

int nps_kernel_side__add_target(struct nps_kernel_side *k, pid_t pid, uint32_t flags)
{
	uint32_t key = pid;

	return bpf_map_update_elem(own_map_fd(k, "targets"), &key, &flags, BPF_ANY) ? -errno : 0;
}

int nps_kernel_side__del_target(struct nps_kernel_side *k, pid_t pid)
{
	uint32_t key = pid;
	int err = bpf_map_delete_elem(own_map_fd(k, "targets"), &key) ? -errno : 0;

	if (k->osrt)
		__atomic_fetch_add(&k->osrt->bss->targets_removed, 1, __ATOMIC_SEQ_CST);
	return err;
}

void nps_kernel_side__for_each_target(const struct nps_kernel_side *k, void (*each)(void *arg, pid_t pid),
				      void *arg)
{
	int fd = own_map_fd(k, "targets");
	uint32_t pid, *last = NULL;

	while (!bpf_map_get_next_key(fd, last, &pid)) {
		each(arg, (pid_t)pid);
		last = &pid;
	}
}

void nps_kernel_side__watch_all(struct nps_kernel_side *k, bool on, pid_t child)
{
	if (k->legacy)
		return;
	k->sched->bss->own_pid = (uint32_t)getpid();
	k->sched->bss->own_child = (uint32_t)child;
	k->sched->bss->watch_all = on && k->osrt; /* else births and deaths would come from everybody */
	if (k->osrt) {
		k->osrt->bss->own_pid = (uint32_t)getpid();
		k->osrt->bss->own_child = (uint32_t)child;
		k->osrt->bss->watch_all = on;
	}
	if (k->hostsys) {
		k->hostsys->bss->own_pid = (uint32_t)getpid();
		k->hostsys->bss->own_child = (uint32_t)child;
		k->hostsys->bss->watch_all = on;
	}
}

static void clear_targets(struct nps_kernel_side *k)
{
	int fd = own_map_fd(k, "targets");
	uint32_t pid;

	/* A process can fork while we delete: until none is left. */
	while (!bpf_map_get_next_key(fd, NULL, &pid))
		if (bpf_map_delete_elem(fd, &pid) && errno != ENOENT)
			break;
}

/* Returns when each program that runs now has ended: all of them run between the kernel's RCU locks. */
static void wait_for_programs(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		usleep(10000); /* kernels with CPUs of their own (nohz_full) have no such call */
}

void nps_kernel_side__end(struct nps_kernel_side *k, uint64_t now)
{
	if (k->osrt)
		k->osrt->bss->ended_at = now;
	if (!k->legacy) {
		k->runtime->bss->ended_at = now;
		k->sched->bss->ended_at = now;
	}
	nps_kernel_side__watch_all(k, false, 0);
	clear_targets(k);
	wait_for_programs();
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
	return k->ring_fds ? k->ring_fds[cpu] : -1;
}

/* Whose names were in what is discarded. */
static void forget_names(const struct nps_kernel_side *k)
{
	int fd = own_map_fd(k, "named");
	uint32_t tid;

	while (fd >= 0 && !bpf_map_get_next_key(fd, NULL, &tid) && !bpf_map_delete_elem(fd, &tid))
		;
}

/* Its first page has the reader's position, its second the writers' (the kernel's documentation of BPF ring buffers). */
void nps_kernel_side__discard(struct nps_kernel_side *k)
{
	size_t page = sysconf(_SC_PAGESIZE);

	forget_names(k);
	for (int i = 0; k->ring_fds && i < k->cpus; i++) {
		unsigned long *read = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, k->ring_fds[i], 0);
		unsigned long *written = mmap(NULL, page, PROT_READ, MAP_SHARED, k->ring_fds[i], (off_t)page);

		if (read != MAP_FAILED && written != MAP_FAILED)
			__atomic_store_n(read, __atomic_load_n(written, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
		if (read != MAP_FAILED)
			munmap(read, page);
		if (written != MAP_FAILED)
			munmap(written, page);
	}
}

size_t nps_kernel_side__ring_bytes(const struct nps_kernel_side *k)
{
	return k->ring_bytes;
}

int nps_kernel_side__records_fd(const struct nps_kernel_side *k)
{
	return k->legacy ? own_map_fd(k, "records") : -1;
}

bool nps_kernel_side__is_legacy(const struct nps_kernel_side *k)
{
	return k->legacy;
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
	return k->legacy ? -1 : bpf_map__fd(k->sched->maps.scheds);
}

int nps_kernel_side__counters(const struct nps_kernel_side *k, uint64_t counters[NPS_COUNTER_MAX])
{
	int fd = own_map_fd(k, "counters");
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
	int fd = own_map_fd(k, "counters");
	uint64_t *zero = calloc(k->cpus, sizeof(*zero));

	for (uint32_t i = 0; zero && i < NPS_COUNTER_MAX; i++)
		bpf_map_update_elem(fd, &i, zero, BPF_ANY);
	free(zero);
}

void nps_kernel_side__add_lost(struct nps_kernel_side *k, uint8_t kind, uint64_t n)
{
	uint64_t *percpu = n ? calloc(k->cpus, sizeof(*percpu)) : NULL;
	uint32_t which = NPS_COUNTER_LOST + kind;
	int fd = own_map_fd(k, "counters");

	if (percpu && !bpf_map_lookup_elem(fd, &which, percpu)) {
		percpu[0] += n;
		bpf_map_update_elem(fd, &which, percpu, BPF_ANY);
	}
	free(percpu);
}

bool nps_kernel_side__has_irq(const struct nps_kernel_side *k)
{
	return k->irq;
}

bool nps_kernel_side__has_syscalls(const struct nps_kernel_side *k)
{
	return k->legacy ? nps_legacy__has_syscalls(k->legacy) : k->osrt && k->osrt->links.syscall_returned;
}

bool nps_kernel_side__has_sched(const struct nps_kernel_side *k)
{
	return !k->legacy && k->sched->links.sched_switched;
}

uint64_t nps_kernel_side__threshold(const struct nps_kernel_side *k)
{
	return k->osrt ? k->osrt->bss->threshold_ns : 0;
}

struct bpf_program *nps_kernel_side__open_calls(const struct nps_kernel_side *k)
{
	return k->runtime->progs.open_calls;
}

struct bpf_program *nps_kernel_side__open_syscalls(const struct nps_kernel_side *k)
{
	return k->osrt ? k->osrt->progs.open_syscalls : NULL;
}

const struct nps_capability *nps_kernel_side__cap(const struct nps_kernel_side *k)
{
	return &k->cap;
}

enum nps_uprobe_row nps_kernel_side__uprobe_row(const struct nps_kernel_side *k)
{
	return k->cap.uprobe;
}

struct nps_stubs *nps_kernel_side__stubs(const struct nps_kernel_side *k)
{
	return k->stubs;
}

struct bpf_program *nps_kernel_side__program(const struct nps_kernel_side *k, enum nps_program which)
{
	if (k->legacy)
		return nps_legacy__program(k->legacy, which);
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

static void add_run_ns(unsigned int which, int fd, void *arg)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);
	uint64_t *ns = arg;

	(void)which;
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size))
		*ns += info.run_time_ns;
}

uint64_t nps_kernel_side__program_ns(const struct nps_kernel_side *k)
{
	uint64_t ns = 0;

	for (enum nps_program p = 0; p < NPS_PROGRAMS; p++)
		add_run_ns(p, bpf_program__fd(nps_kernel_side__program(k, p)), &ns);
	nps_stubs__each(k->stubs, add_run_ns, &ns);
	return ns;
}
