/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/tasklog/profiler_tap.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/elf_file.h"
#include "attach/link_set.h"
#include "attach/perf_probe.h"
#include "attach/trampolines.h"
#include "attach/uprobe_link.h"
#include "core/log.h"
#include "proftap.skel.h"

static const struct {
	const char *symbol;
	uint64_t call;
} functions[] = {
	{ "prof_drv_start", NPS_TAP_CALL_START },
	{ "prof_stop", NPS_TAP_CALL_STOP },
	{ "prof_channel_read", NPS_TAP_CALL_READ },
	{ "prof_drv_get_channels", NPS_TAP_CALL_LIST },
};
#define N_FUNCTIONS (sizeof(functions) / sizeof(*functions))

struct nps_profiler_tap {
	struct proftap_bpf *bpf;
	bool multi; /* one link for all functions of a file */
	uint32_t attach_type;
	struct nps_trampolines *trampolines; /* NULL: probes have cookies */
	struct nps_links links;
	struct {
		dev_t dev;
		ino_t ino;
	} * files;
	size_t n_files;
	struct ring_buffer *ring;
	nps_tap_fn fn;
	void *ctx;
	int read;
};

static int tap_on_record(void *ctx, void *record, size_t size)
{
	struct nps_profiler_tap *t = ctx;
	const struct nps_tap_event *e = record;

	if (size >= sizeof(*e) && size - sizeof(*e) >= e->len)
		t->fn(t->ctx, e, e + 1);
	return ++t->read < NPS_TAP_MOST_RECORDS ? 0 : -ECANCELED;
}

static int tap_make_trampolines(struct nps_profiler_tap *t)
{
	int programs[] = { bpf_program__fd(t->bpf->progs.tap_enter),
			   bpf_program__fd(t->bpf->progs.tap_leave) };

	return nps_trampolines__new(bpf_map__fd(t->bpf->maps.cookie), programs, 2, &t->trampolines);
}

int nps_profiler_tap__open(struct nps_bpf_loader *k, bool copy, struct nps_profiler_tap **out)
{
	struct nps_profiler_tap *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->multi = nps_bpf_loader__uprobe_row(k) != NPS_UPROBE_PERF;
	t->attach_type = t->multi ? NPS_BPF_TRACE_UPROBE_MULTI : 0;
	t->bpf = proftap_bpf__open();
	if (!t->bpf) {
		err = -errno;
		goto fail;
	}
	t->bpf->rodata->copy = copy;
	if (!copy)
		bpf_map__set_max_entries(t->bpf->maps.tap_ring, 1U << 20);
	bpf_program__set_expected_attach_type(t->bpf->progs.tap_enter, t->attach_type);
	bpf_program__set_expected_attach_type(t->bpf->progs.tap_leave, t->attach_type);
	err = nps_bpf_loader__share_maps(k, t->bpf->obj);
	if (err)
		goto fail;
	err = proftap_bpf__load(t->bpf);
	if (!err && !nps_bpf_loader__cap(k)->cookie)
		err = tap_make_trampolines(t);
	if (err)
		goto fail;
	t->ring = ring_buffer__new(bpf_map__fd(t->bpf->maps.tap_ring), tap_on_record, t, NULL);
	if (!t->ring) {
		err = -errno;
		goto fail;
	}
	*out = t;
	return 0;
fail:
	nps_profiler_tap__close(t);
	return err;
}

void nps_profiler_tap__detach(struct nps_profiler_tap *t)
{
	if (t)
		nps_links__close(&t->links, 0);
}

void nps_profiler_tap__close(struct nps_profiler_tap *t)
{
	if (!t)
		return;
	nps_profiler_tap__detach(t);
	nps_links__free(&t->links);
	ring_buffer__free(t->ring);
	nps_trampolines__free(t->trampolines);
	proftap_bpf__destroy(t->bpf);
	free(t->files);
	free(t);
}

/* Is the file new? Then it is added. */
static int tap_remember(struct nps_profiler_tap *t, const struct stat *st)
{
	void *more;

	for (size_t i = 0; i < t->n_files; i++)
		if (t->files[i].dev == st->st_dev && t->files[i].ino == st->st_ino)
			return 0;
	more = realloc(t->files, (t->n_files + 1) * sizeof(*t->files));
	if (!more)
		return -ENOMEM;
	t->files = more;
	t->files[t->n_files].dev = st->st_dev;
	t->files[t->n_files++].ino = st->st_ino;
	return 1;
}

static int tap_link(struct nps_profiler_tap *t, const char *path, uint64_t offset, uint64_t cookie, bool ret)
{
	struct nps_perf_probe probe = { .program = ret ? t->bpf->progs.tap_leave : t->bpf->progs.tap_enter,
					.trampolines = t->trampolines,
					.which = ret,
					.path = path,
					.offset = offset,
					.cookie = cookie,
					.returns = ret };

	return nps_perf_probe__attach(&probe, &t->links);
}

static int link_all(struct nps_profiler_tap *t, const char *path, const uint64_t *offsets,
		    const uint64_t *cookies, uint32_t n)
{
	int err = 0;

	/* Returns first: else the return of a call entered in between would be missed. */
	for (int ret = 1; ret >= 0 && !err; ret--) {
		int fd;

		for (uint32_t i = 0; i < n && !t->multi && !err; i++)
			err = tap_link(t, path, offsets[i], cookies[i], ret);
		if (!t->multi)
			continue;
		fd = nps_uprobe_multi__link(bpf_program__fd(ret ? t->bpf->progs.tap_leave
								: t->bpf->progs.tap_enter),
					    t->attach_type, path, offsets, cookies, n, ret, 0);
		err = fd < 0 ? fd : nps_links__keep_fd(&t->links, fd, 0);
	}
	return err;
}

int nps_profiler_tap__attach(struct nps_profiler_tap *t, int fd, const char *path, struct nps_budget *budget)
{
	uint64_t offsets[N_FUNCTIONS], cookies[N_FUNCTIONS];
	unsigned int before = t->links.n;
	struct nps_elf_function fn;
	struct nps_elf *elf = NULL;
	char self[32];
	struct stat st;
	uint32_t n = 0;
	int err;

	if (fstat(fd, &st))
		return -errno;
	err = tap_remember(t, &st);
	if (err <= 0)
		return err;
	err = nps_elf__open(fd, budget, &elf);
	for (size_t i = 0; !err && i < N_FUNCTIONS; i++) {
		int missing = nps_elf__find(elf, functions[i].symbol, true, &fn);

		if (missing) {
			err = missing == -ETIME ? missing : 0;
			continue;
		}
		offsets[n] = fn.offset;
		cookies[n++] = functions[i].call;
	}
	nps_elf__close(elf);
	if (err == -ETIME)
		t->n_files--; /* the next scan tries it again */
	if (err)
		return err;
	if (n < N_FUNCTIONS) {
		nps_debug("%s: no functions of the profiling API", path);
		return -ENOENT;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	err = link_all(t, self, offsets, cookies, n);
	if (err)
		nps_links__undo(&t->links, before);
	return err;
}

void nps_profiler_tap__helper(struct nps_profiler_tap *t, pid_t pid, const struct nps_tap_helper *helper)
{
	int fd = bpf_map__fd(t->bpf->maps.helpers);
	uint32_t key = (uint32_t)pid;

	if (!helper)
		bpf_map_delete_elem(fd, &key);
	else if (bpf_map_update_elem(fd, &key, helper, BPF_ANY))
		nps_debug("pid %d: its profiler will not wait for the helper: %s", pid, strerror(errno));
}

int nps_profiler_tap__drain(struct nps_profiler_tap *t, nps_tap_fn fn, void *ctx)
{
	int err;

	t->fn = fn;
	t->ctx = ctx;
	t->read = 0;
	err = ring_buffer__consume(t->ring);
	return err < 0 && err != -ECANCELED ? err : t->read;
}

int nps_profiler_tap__fd(const struct nps_profiler_tap *t)
{
	return ring_buffer__epoll_fd(t->ring);
}

uint64_t nps_profiler_tap__lost_events(const struct nps_profiler_tap *t)
{
	return t->bpf->bss->lost_events;
}

uint64_t nps_profiler_tap__lost_bytes(const struct nps_profiler_tap *t)
{
	return t->bpf->bss->lost_bytes;
}
