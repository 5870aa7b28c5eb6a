/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/os_io.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/log.h"
#include "osio.skel.h"

struct nps_os_io {
	struct osio_bpf *skel;
	struct bpf_link **majors; /* by CPU */
	int cpus;
};

/* Number of arguments of a raw tracepoint, from the kernel's types. -errno. */
static int tracepoint_args(const struct btf *btf, const char *name)
{
	const struct btf_type *t;
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);

	if (id < 0)
		return id;
	t = btf__type_by_id(btf, btf__type_by_id(btf, id)->type);
	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) ? btf_vlen(t) - 1 : -EPROTO; /* the first is the tracepoint's own */
}

static void io_choose(struct osio_bpf *skel, const struct btf *btf, bool fentry)
{
	int args = btf ? tracepoint_args(btf, "btf_trace_block_bio_queue") : 1;
	bool counts_faults = btf && tracepoint_args(btf, "btf_trace_page_fault_user") > 0 &&
			     tracepoint_args(btf, "btf_trace_page_fault_kernel") > 0;
	bool file = btf && btf__find_by_name_kind(btf, "filemap_fault", BTF_KIND_FUNC) > 0;
	bool swap = btf && btf__find_by_name_kind(btf, "do_swap_page", BTF_KIND_FUNC) > 0;

	bpf_program__set_autoload(skel->progs.request_made, args == 1);
	bpf_program__set_autoload(skel->progs.request_made_old, args == 2);
	bpf_program__set_autoload(skel->progs.file_fault, fentry && file);
	bpf_program__set_autoload(skel->progs.swap_fault, fentry && swap);
	bpf_program__set_autoload(skel->progs.user_fault, !fentry && counts_faults);
	bpf_program__set_autoload(skel->progs.kernel_fault, !fentry && counts_faults);
}

static int io_load(struct nps_bpf_loader *k, struct nps_os_io *io, const struct btf *btf, size_t ring_bytes,
		   bool fentry)
{
	int err;

	io->skel = osio_bpf__open();
	if (!io->skel)
		return -errno;
	io_choose(io->skel, btf, fentry);
	err = nps_bpf_loader__adopt(k, io->skel->obj, ring_bytes, (uint64_t *)&io->skel->rodata->wake_bytes);
	if (err)
		goto fail;
	err = osio_bpf__load(io->skel);
	if (err)
		goto fail;
	return 0;
fail:
	osio_bpf__destroy(io->skel);
	io->skel = NULL;
	return err;
}

int nps_os_io__open(struct nps_bpf_loader *k, size_t ring_bytes, struct nps_os_io **out)
{
	struct nps_os_io *io = calloc(1, sizeof(*io));
	struct btf *btf;
	int err;

	if (!io)
		return -ENOMEM;
	io->cpus = nps_bpf_loader__cpus(k);
	io->majors = calloc(io->cpus, sizeof(struct bpf_link *));
	if (!io->majors) {
		free(io);
		return -ENOMEM;
	}
	btf = btf__load_vmlinux_btf();
	err = io_load(k, io, btf, ring_bytes, nps_bpf_loader__cap(k)->fentry);
	btf__free(btf);
	if (err) {
		nps_os_io__free(io);
		return err;
	}
	*out = io;
	return 0;
}

static int attach_majors(struct nps_os_io *io)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
					.sample_period = 1 };

	for (int cpu = 0; cpu < io->cpus; cpu++) {
		int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC), err;

		if (fd < 0 && (errno == ENODEV || errno == EINVAL || errno == ENXIO))
			continue; /* a CPU that is not present */
		if (fd < 0)
			return -errno;
		io->majors[cpu] = bpf_program__attach_perf_event(io->skel->progs.major_fault, fd);
		err = io->majors[cpu] ? 0 : -errno;
		if (err) {
			close(fd);
			return err;
		}
	}
	return 0;
}

int nps_os_io__attach(struct nps_os_io *io)
{
	int err, faults;

	if (!io)
		return 0;
	/*
	 * Attaches all programs with a section of their own; an old kernel can
	 * lack fentry for a program it could load.
	 */
	err = osio_bpf__attach(io->skel);
	faults = attach_majors(io);
	if (err)
		nps_warn("no requests of block devices in this capture: %s", strerror(-err));
	if (faults)
		nps_warn("no times of major page faults in this capture: %s", strerror(-faults));
	return err ? err : faults;
}

void nps_os_io__detach(struct nps_os_io *io)
{
	if (!io)
		return;
	for (int cpu = 0; cpu < io->cpus; cpu++) {
		bpf_link__destroy(io->majors[cpu]);
		io->majors[cpu] = NULL;
	}
	osio_bpf__detach(io->skel);
}

void nps_os_io__free(struct nps_os_io *io)
{
	if (!io)
		return;
	if (io->skel)
		nps_os_io__detach(io);
	osio_bpf__destroy(io->skel);
	free(io->majors);
	free(io);
}
