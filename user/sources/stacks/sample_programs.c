/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/stacks/sample_programs.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "core/log.h"
#include "sample.skel.h"

#define MESSAGES_RING (8UL << 20)

/* Python stacks are walked by the programs of samples and sleeps, if they are requested. */
static int prepare_python(struct nps_bpf_loader *k, const struct nps_stacks_opts *opts, struct sample_bpf *b)
{
	b->rodata->python_at = opts->python_at;
	b->rodata->python_checked = true;
	nps_bpf_loader__set_wake_mark((uint64_t *)&b->rodata->wake_bytes, nps_bpf_loader__ring_bytes(k));
	if (opts->python_at)
		return nps_bpf_loader__share_python(k, b->obj);
	return nps_bpf_loader__cap(k)->task_storage ? 0 : bpf_map__set_max_entries(b->maps.python_threads, 1);
}

static int sample_programs_prepare(struct nps_bpf_loader *k, const struct nps_stacks_opts *opts,
				   struct sample_bpf *b)
{
	int err;

	b->rodata->sleep_min = opts->sleep_min;
	b->rodata->with_copy = opts->unwind != NPS_UNWIND_FP;
	bpf_program__set_autoload(b->progs.sample_wanted, opts->on_cpu);
	bpf_program__set_autoload(b->progs.stack_switched, opts->off_cpu);
	bpf_program__set_autoload(b->progs.stack_sleepers, opts->off_cpu);
	bpf_program__set_autoload(b->progs.sleeper_ended,
				  opts->off_cpu && !nps_bpf_loader__cap(k)->task_storage);
	bpf_map__set_autocreate(b->maps.sleepers, opts->off_cpu);
	err = bpf_map__set_max_entries(b->maps.messages, MESSAGES_RING);
	if (err)
		return err;
	err = nps_bpf_loader__share_maps(k, b->obj);
	return err ? err : prepare_python(k, opts, b);
}

static int sample_programs_try(struct nps_bpf_loader *k, const struct nps_stacks_opts *opts,
			       struct sample_bpf **out)
{
	struct sample_bpf *b = sample_bpf__open();
	int err;

	if (!b)
		return -errno;
	err = sample_programs_prepare(k, opts, b);
	if (err)
		goto fail;
	err = sample_bpf__load(b);
	if (err)
		goto fail;
	*out = b;
	return 0;
fail:
	sample_bpf__destroy(b);
	return err;
}

/* Where the kernel refuses the walk of Python frames, stacks do without. */
static int sample_programs_try_python(struct nps_bpf_loader *k, struct nps_stacks_opts *opts,
				      struct sample_bpf **out)
{
	int err;

	if (!opts->python_at)
		return sample_programs_try(k, opts, out);
	err = nps_bpf_loader__cap(k)->python_samples ? sample_programs_try(k, opts, out) : -ENOTSUP;
	if (err == 0)
		return 0;
	opts->python_at = 0;
	if (sample_programs_try(k, opts, out))
		return err;
	nps_warn("no Python frames in stacks: %s: this kernel cannot walk them there: see `npuscope doctor`, "
		 "or "
		 "run with --verbose for its reason",
		 strerror(-err));
	return 0;
}

int nps_sample_programs__load(struct nps_bpf_loader *k, struct nps_stacks_opts *opts, struct sample_bpf **out)
{
	uint32_t python_at = opts->python_at;
	int err = sample_programs_try_python(k, opts, out);

	if (err == 0 || !opts->off_cpu || !opts->on_cpu)
		return err;
	nps_warn("no stacks of sleeps: %s: this kernel has no task storage or BTF: samples are taken",
		 strerror(-err));
	opts->off_cpu = false;
	opts->python_at = python_at;
	return sample_programs_try_python(k, opts, out);
}
