/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/legacy_loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "legacy.h"
#include "legacy.skel.h"

struct nps_legacy {
	struct legacy_bpf *skel;
	bool syscalls;
};

static const struct nps_legacy_spec specs[] = {
#define SPEC(id, symbol, lib, layer, call, flags, s0, s1, s2, s3)                                            \
	[NPS_PROBE_##id] = { flags, { { s0 }, { s1 }, { s2 }, { s3 } } },
	NPS_CATALOG(SPEC)
#undef SPEC
};

_Static_assert(NPS_PROBE_MAX <= NPS_LEGACY_SPECS, "room for the catalogue");

static int fill_specs(const struct nps_legacy *l)
{
	int fd = bpf_map__fd(l->skel->maps.specs);

	for (uint32_t i = 0; i < sizeof(specs) / sizeof(*specs); i++)
		if (bpf_map_update_elem(fd, &i, &specs[i], BPF_ANY))
			return -errno;
	return 0;
}

static int legacy_load(struct nps_legacy *l)
{
	int err;

	l->skel = legacy_bpf__open();
	if (!l->skel)
		return -errno;
	bpf_program__set_autoload(l->skel->progs.syscall_entered, l->syscalls);
	bpf_program__set_autoload(l->skel->progs.syscall_returned, l->syscalls);
	err = legacy_bpf__load(l->skel);
	if (err)
		return err;
	return fill_specs(l);
}

int nps_legacy__open(bool syscalls, struct nps_legacy **out)
{
	struct nps_legacy *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->syscalls = syscalls;
	err = legacy_load(l);
	if (err) {
		nps_legacy__close(l);
		return err;
	}
	*out = l;
	return 0;
}

void nps_legacy__close(struct nps_legacy *l)
{
	if (!l)
		return;
	legacy_bpf__destroy(l->skel);
	free(l);
}

static int legacy_attach(struct bpf_program *prog, struct bpf_link **link)
{
	*link = bpf_program__attach(prog);
	return *link ? 0 : -errno;
}

int nps_legacy__attach(struct nps_legacy *l)
{
	int err = legacy_attach(l->skel->progs.thread_exited, &l->skel->links.thread_exited);

	if (!err && l->syscalls)
		err = legacy_attach(l->skel->progs.syscall_returned, &l->skel->links.syscall_returned);
	if (!err && l->syscalls)
		err = legacy_attach(l->skel->progs.syscall_entered, &l->skel->links.syscall_entered);
	return err;
}

void nps_legacy__detach(struct nps_legacy *l)
{
	legacy_bpf__detach(l->skel);
}

void nps_legacy__set_group(struct nps_legacy *l, uint32_t group, uint8_t state)
{
	struct nps_legacy_group g = { .state = state };

	if (bpf_map_update_elem(bpf_map__fd(l->skel->maps.groups), &group, &g, BPF_ANY))
		nps_debug("cannot set the state of group %u of probes: %s", group, strerror(errno));
}

uint64_t nps_legacy__entered(const struct nps_legacy *l, uint32_t group)
{
	struct nps_legacy_group g = { 0 };

	return bpf_map_lookup_elem(bpf_map__fd(l->skel->maps.groups), &group, &g) ? 0 : g.entered;
}

static void legacy_link_drop(struct bpf_link **link)
{
	bpf_link__destroy(*link);
	*link = NULL;
}

void nps_legacy__drop_syscalls(struct nps_legacy *l)
{
	legacy_link_drop(&l->skel->links.syscall_entered);
	legacy_link_drop(&l->skel->links.syscall_returned);
}

bool nps_legacy__has_syscalls(const struct nps_legacy *l)
{
	return l->skel->links.syscall_returned;
}

struct bpf_program *nps_legacy__program(const struct nps_legacy *l, enum nps_program which)
{
	switch (which) {
	case NPS_PROG_ENTRY:
		return l->skel->progs.call_entry;
	case NPS_PROG_RETURN:
		return l->skel->progs.call_return;
	case NPS_PROG_MARK:
		return l->skel->progs.call_mark;
	default:
		return NULL;
	}
}

struct bpf_map *nps_legacy__map(const struct nps_legacy *l, const char *name)
{
	return bpf_object__find_map_by_name(l->skel->obj, name);
}
