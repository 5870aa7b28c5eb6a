/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/bpf_loader_impl.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/irq.h"
#include "attach/legacy_loader.h"
#include "attach/os_io.h"
#include "attach/trampolines.h"
#include "core/log.h"
#include "hostsys.skel.h"
#include "osrt.skel.h"
#include "runtime.skel.h"
#include "sched.skel.h"

int nps_bpf_loader__map_fd(const struct nps_bpf_loader *k, const char *name)
{
	struct bpf_map *m = k->legacy ? nps_legacy__map(k->legacy, name)
				      : bpf_object__find_map_by_name(k->sched->obj, name);

	return m ? bpf_map__fd(m) : -ENOENT;
}

static int attach_objects(struct nps_bpf_loader *k)
{
	int err = k->legacy ? nps_legacy__attach(k->legacy) : sched_bpf__attach(k->sched);

	if (err)
		return err;
	if (k->runtime && !k->cap.task_storage) {
		k->runtime->links.thread_ended = bpf_program__attach(k->runtime->progs.thread_ended);
		if (!k->runtime->links.thread_ended)
			return -errno;
	}
	if (k->runtime && bpf_program__autoload(k->runtime->progs.op_thread_ended)) {
		k->runtime->links.op_thread_ended = bpf_program__attach(k->runtime->progs.op_thread_ended);
		if (!k->runtime->links.op_thread_ended)
			return -errno;
	}
	if (k->osrt) {
		err = osrt_bpf__attach(k->osrt);
		if (err)
			return err;
	}
	if (k->irq && nps_irq_tracer__attach(k->irq)) {
		nps_irq_tracer__close(k->irq);
		k->irq = NULL;
	}
	nps_os_io__attach(k->io); /* prints what is missing: the capture continues without it */
	return 0;
}

int nps_bpf_loader__attach(struct nps_bpf_loader *k)
{
	int err = attach_objects(k);

	if (err)
		nps_warn("cannot attach to tracepoints: %s", strerror(-err));
	return err;
}

void nps_bpf_loader__detach(struct nps_bpf_loader *k)
{
	if (k->legacy) {
		nps_legacy__detach(k->legacy);
		return;
	}
	nps_irq_tracer__detach(k->irq);
	nps_os_io__detach(k->io);
	if (k->osrt)
		osrt_bpf__detach(k->osrt);
	if (k->hostsys)
		hostsys_bpf__detach(k->hostsys);
	sched_bpf__detach(k->sched);
}

void nps_bpf_loader__set_threshold(struct nps_bpf_loader *k, uint64_t ns)
{
	if (k->osrt)
		k->osrt->bss->threshold_ns = ns;
}

void nps_bpf_loader__set_group(struct nps_bpf_loader *k, unsigned group, uint8_t state)
{
	if (group >= NPS_GROUPS)
		return;
	if (k->legacy)
		nps_legacy__set_group(k->legacy, group, state);
	else
		k->runtime->bss->group_state[group] = state;
}

uint64_t nps_bpf_loader__entered(const struct nps_bpf_loader *k, unsigned group)
{
	if (group >= NPS_GROUPS)
		return 0;
	return k->legacy ? nps_legacy__entered(k->legacy, group) : k->runtime->bss->group_entered[group];
}

void nps_bpf_loader__drop_syscalls(struct nps_bpf_loader *k)
{
	if (k->osrt)
		osrt_bpf__detach(k->osrt);
	if (k->legacy)
		nps_legacy__drop_syscalls(k->legacy);
}

static void link_drop(struct bpf_link **link)
{
	bpf_link__destroy(*link);
	*link = NULL;
}

void nps_bpf_loader__drop_sched(struct nps_bpf_loader *k)
{
	if (k->legacy)
		return;
	k->sched->bss->is_shed = true;
	link_drop(&k->sched->links.sched_switched);
	link_drop(&k->sched->links.sched_woken);
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
	const struct nps_bpf_loader *k;
	void (*each)(const char *name, int fd, void *arg);
	void *arg;
};

static void each_trampoline(unsigned int which, int fd, void *arg)
{
	struct each *e = arg;

	e->each(bpf_program__name(nps_bpf_loader__program(e->k, which)), fd, e->arg);
}

void nps_bpf_loader__for_each_program(const struct nps_bpf_loader *k,
				      void (*each)(const char *name, int fd, void *arg), void *arg)
{
	if (!k->legacy) {
		each_of(k->sched->obj, each, arg);
		each_of(k->runtime->obj, each, arg);
	}
	nps_trampolines__each(k->trampolines, each_trampoline, &(struct each){ k, each, arg });
	if (k->osrt)
		each_of(k->osrt->obj, each, arg);
}

int nps_bpf_loader__add_target(struct nps_bpf_loader *k, pid_t pid, uint32_t flags)
{
	uint32_t key = pid;

	return bpf_map_update_elem(nps_bpf_loader__map_fd(k, "targets"), &key, &flags, BPF_ANY) ? -errno : 0;
}

int nps_bpf_loader__del_target(struct nps_bpf_loader *k, pid_t pid)
{
	uint32_t key = pid;
	int err = bpf_map_delete_elem(nps_bpf_loader__map_fd(k, "targets"), &key) ? -errno : 0;

	if (k->osrt)
		__atomic_fetch_add(&k->osrt->bss->targets_removed, 1, __ATOMIC_SEQ_CST);
	return err;
}

void nps_bpf_loader__for_each_target(const struct nps_bpf_loader *k, void (*each)(void *arg, pid_t pid),
				     void *arg)
{
	int fd = nps_bpf_loader__map_fd(k, "targets");
	uint32_t pid, *last = NULL;

	while (!bpf_map_get_next_key(fd, last, &pid)) {
		each(arg, (pid_t)pid);
		last = &pid;
	}
}

void nps_bpf_loader__watch_all(struct nps_bpf_loader *k, bool on, pid_t child)
{
	if (k->legacy)
		return;
	k->sched->bss->own_pid = (uint32_t)getpid();
	k->sched->bss->own_child = (uint32_t)child;
	/* else events of all processes' births and exits would arrive */
	k->sched->bss->watch_all = on && k->osrt;
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

static void clear_targets(struct nps_bpf_loader *k)
{
	int fd = nps_bpf_loader__map_fd(k, "targets");
	uint32_t pid;

	/* A process can fork during the loop: repeat until none is left. */
	while (!bpf_map_get_next_key(fd, NULL, &pid))
		if (bpf_map_delete_elem(fd, &pid) && errno != ENOENT)
			break;
}

/* Returns when each program that runs now has ended: all of them run under the kernel's RCU locks. */
static void wait_for_programs(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		usleep(10000); /* kernels with nohz_full CPUs do not support this command */
}

void nps_bpf_loader__end(struct nps_bpf_loader *k, uint64_t now)
{
	if (k->osrt)
		k->osrt->bss->ended_at = now;
	if (!k->legacy) {
		k->runtime->bss->ended_at = now;
		k->sched->bss->ended_at = now;
	}
	nps_bpf_loader__watch_all(k, false, 0);
	clear_targets(k);
	wait_for_programs();
}

int nps_bpf_loader__net_map(const struct nps_bpf_loader *k)
{
	return k->hostsys ? bpf_map__fd(k->hostsys->maps.net_bytes) : -1;
}

uint64_t nps_bpf_loader__net_lost(const struct nps_bpf_loader *k)
{
	return k->hostsys ? k->hostsys->bss->net_lost : 0;
}

int nps_bpf_loader__cpus(const struct nps_bpf_loader *k)
{
	return k->cpus;
}

int nps_bpf_loader__ring_fd(const struct nps_bpf_loader *k, int cpu)
{
	return k->ring_fds ? k->ring_fds[cpu] : -1;
}

/* Threads whose names are in the discarded records. */
static void forget_names(const struct nps_bpf_loader *k)
{
	int fd = nps_bpf_loader__map_fd(k, "named");
	uint32_t tid;

	while (fd >= 0 && !bpf_map_get_next_key(fd, NULL, &tid) && !bpf_map_delete_elem(fd, &tid))
		;
}

/*
 * The ring's first page has the reader's position, its second the writers' (the kernel's documentation of
 * BPF ring buffers).
 */
void nps_bpf_loader__discard(struct nps_bpf_loader *k)
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

size_t nps_bpf_loader__ring_bytes(const struct nps_bpf_loader *k)
{
	return k->ring_bytes;
}

int nps_bpf_loader__records_fd(const struct nps_bpf_loader *k)
{
	return k->legacy ? nps_bpf_loader__map_fd(k, "records") : -1;
}

bool nps_bpf_loader__is_legacy(const struct nps_bpf_loader *k)
{
	return k->legacy;
}

int nps_bpf_loader__sums_fd(const struct nps_bpf_loader *k, bool next)
{
	bool odd = k->osrt && (k->osrt->bss->sums_turn & 1) != next;

	return !k->osrt ? -1 : bpf_map__fd(odd ? k->osrt->maps.sums_odd : k->osrt->maps.sums_even);
}

void nps_bpf_loader__turn_sums(struct nps_bpf_loader *k)
{
	if (k->osrt)
		__atomic_fetch_add(&k->osrt->bss->sums_turn, 1, __ATOMIC_SEQ_CST);
}

int nps_bpf_loader__threads_fd(const struct nps_bpf_loader *k)
{
	return k->legacy ? -1 : bpf_map__fd(k->sched->maps.scheds);
}

int nps_bpf_loader__counters(const struct nps_bpf_loader *k, uint64_t counters[NPS_COUNTER_MAX])
{
	int fd = nps_bpf_loader__map_fd(k, "counters");
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

void nps_bpf_loader__reset_counters(struct nps_bpf_loader *k)
{
	int fd = nps_bpf_loader__map_fd(k, "counters");
	uint64_t *zero = calloc(k->cpus, sizeof(*zero));

	for (uint32_t i = 0; zero && i < NPS_COUNTER_MAX; i++)
		bpf_map_update_elem(fd, &i, zero, BPF_ANY);
	free(zero);
}

void nps_bpf_loader__add_lost(struct nps_bpf_loader *k, uint8_t kind, uint64_t n)
{
	uint64_t *percpu = n ? calloc(k->cpus, sizeof(*percpu)) : NULL;
	uint32_t which = NPS_COUNTER_LOST + kind;
	int fd = nps_bpf_loader__map_fd(k, "counters");

	if (percpu && !bpf_map_lookup_elem(fd, &which, percpu)) {
		percpu[0] += n;
		bpf_map_update_elem(fd, &which, percpu, BPF_ANY);
	}
	free(percpu);
}

bool nps_bpf_loader__has_irq(const struct nps_bpf_loader *k)
{
	return k->irq;
}

bool nps_bpf_loader__has_syscalls(const struct nps_bpf_loader *k)
{
	return k->legacy ? nps_legacy__has_syscalls(k->legacy) : k->osrt && k->osrt->links.syscall_returned;
}

bool nps_bpf_loader__has_sched(const struct nps_bpf_loader *k)
{
	return !k->legacy && k->sched->links.sched_switched;
}

uint64_t nps_bpf_loader__threshold(const struct nps_bpf_loader *k)
{
	return k->osrt ? k->osrt->bss->threshold_ns : 0;
}

struct bpf_program *nps_bpf_loader__open_calls(const struct nps_bpf_loader *k)
{
	return k->runtime->progs.open_calls;
}

struct bpf_program *nps_bpf_loader__open_operators(const struct nps_bpf_loader *k)
{
	return bpf_program__autoload(k->runtime->progs.open_operators) ? k->runtime->progs.open_operators
								       : NULL;
}

struct bpf_program *nps_bpf_loader__open_syscalls(const struct nps_bpf_loader *k)
{
	return k->osrt ? k->osrt->progs.open_syscalls : NULL;
}

const struct nps_capability *nps_bpf_loader__cap(const struct nps_bpf_loader *k)
{
	return &k->cap;
}

enum nps_uprobe_row nps_bpf_loader__uprobe_row(const struct nps_bpf_loader *k)
{
	return k->cap.uprobe;
}

struct nps_trampolines *nps_bpf_loader__trampolines(const struct nps_bpf_loader *k)
{
	return k->trampolines;
}

struct bpf_program *nps_bpf_loader__program(const struct nps_bpf_loader *k, enum nps_program which)
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
	case NPS_PROG_OP_ENTRY:
		return k->runtime->progs.op_entry;
	case NPS_PROG_OP_END:
		return k->runtime->progs.op_end;
	case NPS_PROG_TORCH_MEMORY:
		return k->runtime->progs.torch_memory;
	case NPS_PROG_OP_LABEL:
		return k->runtime->progs.op_label;
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

uint64_t nps_bpf_loader__program_ns(const struct nps_bpf_loader *k)
{
	uint64_t ns = 0;

	for (enum nps_program p = 0; p < NPS_PROGRAMS; p++)
		add_run_ns(p, bpf_program__fd(nps_bpf_loader__program(k, p)), &ns);
	nps_trampolines__each(k->trampolines, add_run_ns, &ns);
	return ns;
}
