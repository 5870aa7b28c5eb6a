/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/bpf_loader_impl.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clocks.h"
#include "attach/irq.h"
#include "attach/legacy_loader.h"
#include "hostsys.skel.h"
#include "core/log.h"
#include "attach/os_io.h"
#include "osrt.skel.h"
#include "attach/portable.h"
#include "attach/preempt_count.h"
#include "python_stack.h"
#include "runtime.skel.h"
#include "sched.skel.h"
#include "attach/trampolines.h"
#include "attach/uprobe_link.h"

#define PYTHON_PROCESSES 4096
#define PYTHON_SENT 65536 /* stacks and code objects that are remembered */

static size_t ring_round_size(size_t bytes)
{
	size_t size = sysconf(_SC_PAGESIZE);

	while (size < bytes && size < (1UL << 30))
		size *= 2;
	return size;
}

static int create_rings(struct nps_bpf_loader *k, size_t bytes)
{
	int outer = bpf_map__fd(k->sched->maps.rings);

	k->ring_fds = malloc(k->cpus * sizeof(int));
	if (!k->ring_fds)
		return -ENOMEM;
	for (int i = 0; i < k->cpus; i++)
		k->ring_fds[i] = -1;
	for (int i = 0; i < k->cpus; i++) {
		int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "nps_ring", 0, 0, ring_round_size(bytes), NULL);

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
int nps_bpf_loader__share_maps(struct nps_bpf_loader *k, struct bpf_object *obj)
{
	struct bpf_map *own[3];

	if (k->legacy)
		return -ENOTSUP; /* such objects do not work on legacy kernels */
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

int nps_bpf_loader__share_streams(struct nps_bpf_loader *k, struct bpf_object *obj)
{
	int err = share_map(obj, k->runtime->maps.stream_owners);

	return err ? err : share_map(obj, k->runtime->maps.queue_owners);
}

void nps_bpf_loader__learn(struct nps_bpf_loader *k, uint32_t which)
{
	k->runtime->bss->learns = which;
}

bool nps_bpf_loader__unlearnt(const struct nps_bpf_loader *k)
{
	return k->runtime && k->runtime->bss->container_submits;
}

void nps_bpf_loader__set_wake_mark(uint64_t *mark, size_t ring_bytes)
{
	*mark = ring_round_size(ring_bytes) / 4;
}

/* Shares the state of threads. */
static int share_threads(struct nps_bpf_loader *k, struct bpf_object *obj)
{
	int err = share_map(obj, k->sched->maps.scheds);

	return err ? err : share_map(obj, k->sched->maps.syscalls);
}

int nps_bpf_loader__adopt(struct nps_bpf_loader *k, struct bpf_object *obj, size_t ring_bytes,
			  uint64_t *wake_mark)
{
	int err = nps_bpf_loader__share_maps(k, obj);

	nps_bpf_loader__set_wake_mark(wake_mark, ring_bytes);
	return err ? err : share_threads(k, obj);
}

static int64_t preempt_count_at(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int64_t at = nps_preempt_count__offset(btf);

	btf__free(btf);
	return at;
}

static int load_sched(struct nps_bpf_loader *k, const struct nps_bpf_loader_opts *opts)
{
	int err;

	k->sched = sched_bpf__open();
	if (!k->sched)
		return -errno;
	k->sched->rodata->with_sched = opts->osrt;
	nps_bpf_loader__set_wake_mark((uint64_t *)&k->sched->rodata->wake_bytes, opts->ring_bytes);
	if (opts->osrt)
		k->sched->rodata->preempt_count_at = preempt_count_at();
	if (!opts->osrt) {
		bpf_program__set_autoload(k->sched->progs.sched_switched, false);
		bpf_program__set_autoload(k->sched->progs.sched_woken, false);
	}
	err = nps_portable__prepare(k->sched->obj, &k->cap);
	return err ? err : sched_bpf__load(k->sched);
}

static int set_domains(struct nps_bpf_loader *k, const struct nps_mstx_opts *mstx)
{
	const struct nps_mstx_list *list = mstx ? nps_mstx__list(mstx) : NULL;
	int fd = bpf_map__fd(k->runtime->maps.domain_names);
	uint8_t one = 1;

	for (unsigned i = 0; list && i < list->n; i++)
		if (bpf_map_update_elem(fd, list->name[i], &one, BPF_ANY))
			return -errno;
	return 0;
}

/* For kernels whose probes have no cookies. */
static int loader_make_trampolines(struct nps_bpf_loader *k)
{
	int fds[NPS_PROGRAMS];

	if (k->cap.cookie)
		return 0;
	for (enum nps_program p = 0; p < NPS_PROGRAMS; p++)
		fds[p] = bpf_program__fd(nps_bpf_loader__program(k, p));
	return nps_trampolines__new(k->legacy ? nps_bpf_loader__map_fd(k, "cookie")
					      : bpf_map__fd(k->runtime->maps.cookie),
				    fds, NPS_PROGRAMS, &k->trampolines);
}

/* They are small unless Python stacks are walked. Operators need kernels that have task storage. */
static int size_optional_maps(struct nps_bpf_loader *k, uint32_t python_at)
{
	int err = k->cap.task_storage ? 0 : bpf_map__set_max_entries(k->runtime->maps.op_threads, 1);

	if (err)
		return err;
	if (k->runtime->rodata->with_inputs) {
		err = bpf_map__set_max_entries(k->runtime->maps.op_inputs, NPS_MAX_OP_INPUTS);
		if (err)
			return err;
	}
	k->python_at = python_at;
	k->runtime->rodata->python_at = python_at & NPS_PY_AT_CALLS;
	if (!python_at)
		return k->cap.task_storage ? 0 : bpf_map__set_max_entries(k->runtime->maps.python_threads, 1);
	err = bpf_map__set_max_entries(k->runtime->maps.python_processes, PYTHON_PROCESSES);
	return err ? err : bpf_map__set_max_entries(k->runtime->maps.python_sent, PYTHON_SENT);
}

int nps_bpf_loader__op_inputs_fd(const struct nps_bpf_loader *k)
{
	return k->runtime && k->runtime->rodata->with_inputs ? bpf_map__fd(k->runtime->maps.op_inputs) : -1;
}

int nps_bpf_loader__python_fd(const struct nps_bpf_loader *k)
{
	return k->runtime && k->python_at ? bpf_map__fd(k->runtime->maps.python_processes) : -1;
}

int nps_bpf_loader__share_python(struct nps_bpf_loader *k, struct bpf_object *obj)
{
	int err = k->runtime ? share_map(obj, k->runtime->maps.python_processes) : -ENOTSUP;

	return err ? err : share_map(obj, k->runtime->maps.python_sent);
}

static int load_runtime(struct nps_bpf_loader *k, const struct nps_bpf_loader_opts *opts)
{
	bool session = k->cap.uprobe == NPS_UPROBE_SESSION;
	uint32_t attach = k->cap.mark_attach_type;
	int err;

	k->runtime = runtime_bpf__open();
	if (!k->runtime)
		return -errno;
	nps_bpf_loader__set_wake_mark((uint64_t *)&k->runtime->rodata->wake_bytes, opts->ring_bytes);
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
	bpf_program__set_autoload(k->runtime->progs.thread_ended, !k->cap.task_storage);
	bpf_program__set_expected_attach_type(k->runtime->progs.operands, attach);
	k->runtime->rodata->ops = opts->ops;
	k->runtime->rodata->with_inputs = opts->shapes && opts->ops;
	bpf_program__set_autoload(k->runtime->progs.op_entry, opts->ops);
	bpf_program__set_autoload(k->runtime->progs.op_end, opts->ops);
	bpf_program__set_autoload(k->runtime->progs.op_label, opts->ops);
	bpf_program__set_autoload(k->runtime->progs.op_thread_ended, opts->ops);
	bpf_program__set_autoload(k->runtime->progs.open_operators, opts->ops);
	bpf_program__set_expected_attach_type(k->runtime->progs.op_entry, attach);
	bpf_program__set_expected_attach_type(k->runtime->progs.op_end, attach);
	bpf_program__set_autoload(k->runtime->progs.torch_memory, opts->torch_memory);
	bpf_program__set_expected_attach_type(k->runtime->progs.torch_memory, attach);
	bpf_program__set_expected_attach_type(k->runtime->progs.op_label, attach);
	err = nps_bpf_loader__share_maps(k, k->runtime->obj);
	if (err)
		return err;
	err = size_optional_maps(k, opts->python_at);
	if (err)
		return err;
	err = runtime_bpf__load(k->runtime);
	if (err)
		return err;
	err = loader_make_trampolines(k);
	if (err)
		return err;
	return set_domains(k, opts->mstx);
}

static int load_osrt(struct nps_bpf_loader *k, const struct nps_bpf_loader_opts *opts)
{
	int err;

	k->osrt = osrt_bpf__open();
	if (!k->osrt)
		return -errno;
	k->osrt->bss->threshold_ns = opts->osrt_threshold_ns;
	k->osrt->bss->realtime_offset = (int64_t)(nps_now(CLOCK_REALTIME) - nps_now(CLOCK_MONOTONIC));
	bpf_program__set_autoattach(k->osrt->progs.open_syscalls, false); /* runs at the end only */
	err = nps_bpf_loader__adopt(k, k->osrt->obj, opts->ring_bytes,
				    (uint64_t *)&k->osrt->rodata->wake_bytes);
	if (err)
		return err;
	err = osrt_bpf__load(k->osrt);
	if (err)
		return err;
	err = nps_os_io__open(k, opts->ring_bytes, &k->io);
	if (err)
		nps_warn("no requests of block devices and no major page faults in this capture: %s",
			 strerror(-err));
	return 0;
}

static int start_hostsys(struct nps_bpf_loader *k)
{
	int err = nps_bpf_loader__share_maps(k, k->hostsys->obj);

	if (err)
		return err;
	err = hostsys_bpf__load(k->hostsys);
	if (err)
		return err;
	return hostsys_bpf__attach(k->hostsys);
}

/* One way to count bytes of sockets: by the tracepoints (Linux 6.3), else by probes of kernel functions. */
static int try_hostsys(struct nps_bpf_loader *k, bool tracepoints)
{
	struct bpf_program *prog = NULL;
	int err;

	k->hostsys = hostsys_bpf__open();
	if (!k->hostsys)
		return -errno;
	while ((prog = bpf_object__next_program(k->hostsys->obj, prog)))
		bpf_program__set_autoload(prog, (bpf_program__type(prog) == BPF_PROG_TYPE_RAW_TRACEPOINT) ==
							tracepoints);
	err = start_hostsys(k);
	if (err) {
		hostsys_bpf__destroy(k->hostsys);
		k->hostsys = NULL;
	}
	return err;
}

/* If neither is possible the capture continues without. */
static void load_hostsys(struct nps_bpf_loader *k)
{
	int err = try_hostsys(k, true);

	if (err)
		err = try_hostsys(k, false);
	if (err)
		nps_warn("cannot count network bytes by process: %s: neither the tracepoint sock_send_length "
			 "nor kprobes can be had: interfaces are sampled all the same",
			 strerror(-err));
}

/* Before 5.11 BPF memory counts against the limit of locked memory. */
static void raise_limits(void)
{
	struct rlimit r = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &r);
	/* If each probe is a perf event of its own there are many descriptors. */
	if (!getrlimit(RLIMIT_NOFILE, &r)) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

const char *nps_bpf_loader__advice(int err)
{
	switch (err) {
	case -EMFILE:
		return "raise the limit of open files (ulimit -n)";
	case -ENFILE:
		return "the whole machine has too many open files (sysctl fs.file-max)";
	case -ENOMEM:
		return "free memory, or raise the memory limit of the cgroup";
	default:
		return "run with --verbose for the verifier's words";
	}
}

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return level == LIBBPF_DEBUG || !nps_log_is_verbose() ? 0 : vfprintf(stderr, fmt, ap);
}

static int load_legacy(struct nps_bpf_loader *k, const struct nps_bpf_loader_opts *opts)
{
	int err = nps_legacy__open(opts->osrt, &k->legacy);

	k->cap.cookie = false;
	k->cap.uprobe = NPS_UPROBE_PERF;
	return err ? err : loader_make_trampolines(k);
}

static int load_runtime_as_can_be(struct nps_bpf_loader *k, const struct nps_bpf_loader_opts *opts)
{
	int err = load_runtime(k, opts);

	/* A kernel with the session link does not always offer its kfuncs. */
	if (err && err != -ENOMEM && k->cap.uprobe == NPS_UPROBE_SESSION) {
		runtime_bpf__destroy(k->runtime);
		k->cap.uprobe = NPS_UPROBE_MULTI;
		err = load_runtime(k, opts);
	}
	return err;
}

/* Objects for events of the operating system, which are loaded only if they are requested. */
static int load_system(struct nps_bpf_loader *k, const struct nps_bpf_loader_opts *opts)
{
	int err = opts->osrt ? load_osrt(k, opts) : 0;

	if (!err && opts->osrt && opts->irq) /* optional: without it the capture continues */
		nps_irq_tracer__open(k, ring_round_size(opts->ring_bytes) / 4, &k->irq);
	if (!err && opts->network)
		load_hostsys(k);
	return err;
}

struct loading {
	struct nps_bpf_loader *k;
	const struct nps_bpf_loader_opts *opts;
	int err;
};

static void *load_system_beside(void *arg)
{
	struct loading *l = arg;

	l->err = load_system(l->k, l->opts);
	return NULL;
}

/*
 * Loads the objects of kernels with types and ring buffers. Most of the time
 * is spent in the kernel's verifier, half of it for the programs of probes:
 * two threads need half of the time, even if they share CPUs with others.
 */
static int load_all(struct nps_bpf_loader *k, const struct nps_bpf_loader_opts *opts)
{
	struct loading system = { .k = k, .opts = opts };
	bool beside = opts->osrt || opts->network;
	pthread_t thread;
	int err = load_sched(k, opts);

	if (err)
		return err;
	err = create_rings(k, opts->ring_bytes);
	if (err)
		return err;
	beside = beside && !pthread_create(&thread, NULL, load_system_beside, &system);
	err = load_runtime_as_can_be(k, opts);
	if (beside)
		pthread_join(thread, NULL);
	if (err)
		return err;
	if (!beside)
		load_system_beside(&system);
	return system.err;
}

int nps_bpf_loader__open(const struct nps_capability *cap, const struct nps_bpf_loader_opts *opts,
			 struct nps_bpf_loader **out)
{
	struct nps_bpf_loader *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->cap = *cap;
	k->ring_bytes = ring_round_size(opts->ring_bytes);
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
		nps_warn("cannot load BPF programs: %s: %s", strerror(-err), nps_bpf_loader__advice(err));
		goto fail;
	}
	*out = k;
	return 0;
fail:
	nps_bpf_loader__close(k);
	return err;
}

void nps_bpf_loader__close(struct nps_bpf_loader *k)
{
	if (!k)
		return;
	nps_irq_tracer__close(k->irq);
	hostsys_bpf__destroy(k->hostsys);
	nps_os_io__free(k->io);
	osrt_bpf__destroy(k->osrt);
	nps_trampolines__free(k->trampolines);
	nps_legacy__close(k->legacy);
	runtime_bpf__destroy(k->runtime);
	sched_bpf__destroy(k->sched);
	for (int i = 0; k->ring_fds && i < k->cpus; i++)
		if (k->ring_fds[i] >= 0)
			close(k->ring_fds[i]);
	free(k->ring_fds);
	free(k);
}
