/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/python_sampler.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/bpf_loader_impl.h"
#include "pysample.skel.h"
#include "python_stack.h"

#define SECOND 1000000000ULL

struct nps_python_sampler {
	struct pysample_bpf *bpf;
	struct bpf_link **clocks; /* by CPU; NULL: it is offline */
	int cpus;
};

static int sampler_load(struct nps_bpf_loader *k, struct pysample_bpf *b)
{
	int err;

	b->rodata->python_at = NPS_PY_AT_OP;
	b->rodata->python_checked = true;
	b->rodata->period_ns = SECOND / NPS_PY_SAMPLE_HZ;
	nps_bpf_loader__set_wake_mark((uint64_t *)&b->rodata->wake_bytes, nps_bpf_loader__ring_bytes(k));
	bpf_program__set_autoload(b->progs.python_thread_ended, !nps_bpf_loader__cap(k)->task_storage);
	err = nps_bpf_loader__share_maps(k, b->obj);
	if (err)
		return err;
	err = nps_bpf_loader__share_python(k, b->obj);
	return err ? err : pysample_bpf__load(b);
}

static int attach_clock(struct nps_python_sampler *s, int cpu)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = SECOND / NPS_PY_SAMPLE_HZ };
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC), err;

	if (fd < 0)
		return errno == ENODEV || errno == ENXIO ? 0 : -errno;
	s->clocks[cpu] = bpf_program__attach_perf_event(s->bpf->progs.python_runs, fd);
	if (s->clocks[cpu])
		return 0; /* the link owns the descriptor */
	err = -errno;
	close(fd);
	return err;
}

static int sampler_attach(struct nps_python_sampler *s)
{
	int err = 0;

	if (bpf_program__autoload(s->bpf->progs.python_thread_ended)) {
		s->bpf->links.python_thread_ended = bpf_program__attach(s->bpf->progs.python_thread_ended);
		if (!s->bpf->links.python_thread_ended)
			return -errno;
	}
	s->bpf->links.python_switched = bpf_program__attach(s->bpf->progs.python_switched);
	if (!s->bpf->links.python_switched)
		return -errno;
	for (int cpu = 0; !err && cpu < s->cpus; cpu++)
		err = attach_clock(s, cpu);
	return err;
}

int nps_python_sampler__open(struct nps_bpf_loader *k, struct nps_python_sampler **out)
{
	struct nps_python_sampler *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		return err;
	s->cpus = nps_bpf_loader__cpus(k);
	s->clocks = calloc((size_t)s->cpus, sizeof(struct bpf_link *));
	if (!s->clocks)
		goto fail;
	s->bpf = pysample_bpf__open();
	err = s->bpf ? sampler_load(k, s->bpf) : -errno;
	if (err)
		goto fail;
	err = sampler_attach(s);
	if (err)
		goto fail;
	*out = s;
	return 0;
fail:
	nps_python_sampler__close(s);
	return err;
}

void nps_python_sampler__close(struct nps_python_sampler *s)
{
	if (!s)
		return;
	for (int cpu = 0; s->clocks && cpu < s->cpus; cpu++)
		bpf_link__destroy(s->clocks[cpu]);
	pysample_bpf__destroy(s->bpf);
	free(s->clocks);
	free(s);
}
