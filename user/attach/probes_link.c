/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/probes_impl.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/operators.h"
#include "attach/perf_probe.h"
#include "attach/uprobe_link.h"
#include "core/log.h"
#include "core/work_budget.h"

#define ENOTSUPP 524 /* the kernel's, which libc does not have */

enum nps_tier nps_attached__tier(const struct nps_attached *a)
{
	return nps_probe_rows__tier(nps_probe_rows__get(a->id));
}

/* Group of calls: of the probe only, else of its tier. */
static unsigned attached_group(const struct nps_attached *a)
{
	return a->group ? a->group : 1 + nps_attached__tier(a);
}

/* How a function is probed. */
enum how {
	HOW_CALL,
	HOW_MARK,
	HOW_OPERANDS,
	/* The ends first: a call whose end is not probed yet would look as if an exception had left it. */
	HOW_OP_END,
	HOW_OP_ENTRY,
	HOW_TORCH_MEMORY,
	HOW_OP_LABEL,
	HOWS
};

static enum how how_of(const struct nps_attached *a)
{
	if (a->returns)
		return HOW_CALL;
	if (nps_probe_rows__get(a->id)->flags & NPS_P_ENDS)
		return a->at_end ? HOW_OP_END : HOW_OP_ENTRY;
	if (a->id == NPS_PROBE_TORCH_MEMORY)
		return HOW_TORCH_MEMORY;
	if (nps_probe_rows__is_label(nps_probe_rows__get(a->id)))
		return HOW_OP_LABEL;
	return a->id == NPS_PROBE_NN_OPERANDS || a->id == NPS_PROBE_NN_PHASE1_END ? HOW_OPERANDS : HOW_MARK;
}

/* Functions of one file and tier that are probed in the same way. */
struct sort {
	const char *path;
	enum how how;
	enum nps_tier tier;
	uint64_t *offsets, *cookies;
	unsigned *from; /* their indices in the list that they were picked from */
	unsigned n;
	/* by index in that list: set for those that the kernel refuses; NULL: a refusal is an error */
	bool *refused;
};

static int link_multi(struct nps_probes *p, enum nps_program which, uint32_t attach_type,
		      const struct sort *sort)
{
	int prog = bpf_program__fd(nps_bpf_loader__program(p->k, which));
	int fd = nps_uprobe_multi__link(prog, attach_type, sort->path, sort->offsets, sort->cookies, sort->n,
					which == NPS_PROG_RETURN, 0);

	return fd < 0 ? fd : nps_links__keep_fd(&p->links, fd, sort->tier);
}

static int link_perf(struct nps_probes *p, enum nps_program which, const struct sort *sort, unsigned i)
{
	struct nps_perf_probe probe = { .program = nps_bpf_loader__program(p->k, which),
					.trampolines = nps_bpf_loader__trampolines(p->k),
					.which = which,
					.path = sort->path,
					.offset = sort->offsets[i],
					.cookie = sort->cookies[i],
					.returns = which == NPS_PROG_RETURN,
					.tier = sort->tier };

	return nps_perf_probe__attach(&probe, &p->links);
}

/* Is it an error that the kernel returns for a single instruction or offset? */
static bool of_one_probe(int err)
{
	return err == -ENOTSUPP || err == -ENOTSUP || err == -EINVAL || err == -EIO;
}

/*
 * Attaches one perf event, or two. The return first, because an entry
 * without its return would look like a lost call.
 */
static int link_events(struct nps_probes *p, enum nps_program entry, const struct sort *sort, unsigned i)
{
	if (sort->how == HOW_CALL) {
		int err = link_perf(p, NPS_PROG_RETURN, sort, i);

		if (err)
			return err;
	}
	return link_perf(p, entry, sort, i);
}

static int probe_link(struct nps_probes *p, enum nps_program entry, const struct sort *sort, unsigned i)
{
	unsigned before = p->links.n;
	int err = link_events(p, entry, sort, i);

	if (!sort->refused || !of_one_probe(err))
		return err;
	nps_links__undo(&p->links, before);
	sort->refused[sort->from[i]] = true;
	return 0;
}

static int link_sort(struct nps_probes *p, const struct sort *sort)
{
	enum nps_uprobe_row row = nps_bpf_loader__uprobe_row(p->k);
	static const enum nps_program entry[] = { NPS_PROG_ENTRY,   NPS_PROG_MARK,     NPS_PROG_OPERANDS,
						  NPS_PROG_OP_END,  NPS_PROG_OP_ENTRY, NPS_PROG_TORCH_MEMORY,
						  NPS_PROG_OP_LABEL };
	int err = 0;

	if (row == NPS_UPROBE_PERF) {
		for (unsigned i = 0; i < sort->n && !err; i++)
			err = probe_link(p, entry[sort->how], sort, i);
		return err;
	}
	if (sort->how != HOW_CALL)
		return link_multi(p, entry[sort->how], NPS_BPF_TRACE_UPROBE_MULTI, sort);
	if (row == NPS_UPROBE_SESSION)
		return link_multi(p, NPS_PROG_SESSION, NPS_BPF_TRACE_UPROBE_SESSION, sort);
	err = link_multi(p, NPS_PROG_RETURN, NPS_BPF_TRACE_UPROBE_MULTI, sort);
	return err ? err : link_multi(p, NPS_PROG_ENTRY, NPS_BPF_TRACE_UPROBE_MULTI, sort);
}

/* Picks the probes that share links; or ONE that does not. */
static void pick(struct sort *sort, const struct nps_attached *probes, unsigned n,
		 const struct nps_attached *one)
{
	sort->n = 0;
	for (unsigned i = 0; i < n; i++) {
		if (one ? &probes[i] != one : probes[i].group)
			continue;
		if (how_of(&probes[i]) != sort->how || nps_attached__tier(&probes[i]) != sort->tier)
			continue;
		sort->from[sort->n] = i;
		sort->offsets[sort->n] = probes[i].offset;
		sort->cookies[sort->n++] = NPS_COOKIE(probes[i].id, probes[i].number, probes[i].arguments,
						      probes[i].class, attached_group(&probes[i]));
	}
}

int nps_probes__link(struct nps_probes *p, const char *path, const struct nps_attached *probes, unsigned n,
		     bool *refused)
{
	struct sort sort = { .path = path, .refused = refused };
	unsigned before = p->links.n;
	int err = 0;

	if (!n)
		return 0;
	sort.offsets = calloc(n, sizeof(*sort.offsets));
	sort.cookies = calloc(n, sizeof(*sort.cookies));
	sort.from = calloc(n, sizeof(*sort.from));
	if (!sort.offsets || !sort.cookies || !sort.from)
		err = -ENOMEM;
	for (sort.tier = 0; !err && sort.tier < p->shed; sort.tier++)
		for (sort.how = 0; !err && sort.how < HOWS; sort.how++) {
			pick(&sort, probes, n, NULL);
			if (sort.n)
				err = link_sort(p, &sort);
			for (unsigned i = 0; !err && i < n; i++) {
				if (!probes[i].group)
					continue;
				pick(&sort, probes, n, &probes[i]);
				p->links.group = probes[i].group;
				if (sort.n)
					err = link_sort(p, &sort);
				p->links.group = 0;
			}
		}
	if (err)
		nps_links__undo(&p->links, before);
	free(sort.offsets);
	free(sort.cookies);
	free(sort.from);
	return err;
}

void nps_probes__fd_path(int fd, char *buf, size_t size)
{
	snprintf(buf, size, "/proc/%d/fd/%d", getpid(), fd);
}

const char *nps_probes__name(const struct nps_probes *p, const struct nps_attached *a)
{
	const char *name = a->number ? nps_operators__name(p->operators, a->number) : NULL;

	return name ? name : nps_probe_rows__get(a->id)->symbol;
}

static void report_probe_refused(struct nps_probes *p, const struct nps_attached *probe, const char *path,
				 int err)
{
	if (p->refused++ >= NPS_BUDGET_LINES)
		return;
	nps_warn("cannot probe %s of %s: the kernel refuses %s: its calls will be missing",
		 nps_probes__name(p, probe), path,
		 err == -ENOTSUPP || err == -ENOTSUP ? "its first instruction" : strerror(-err));
}

static int try_range(struct nps_probes *p, const char *link_path, const struct nps_attached *v, unsigned n)
{
	unsigned before = p->links.n;
	int err = nps_probes__link(p, link_path, v, n, NULL);

	nps_links__undo(&p->links, before);
	return err;
}

/*
 * Keeps those of N probes that the kernel accepts, in order, and returns their number. It refuses all
 * because of one, so halves are tried until that one is found: a library of thousands must not need
 * thousands of tries. If a file has more refused probes than its process's budget allows to find, the rest
 * of it is not probed.
 */
static unsigned keep_probeable(struct nps_probes *p, const char *link_path, struct nps_probe_match *m,
			       const char *path, struct nps_attached *v, unsigned n)
{
	unsigned half = n / 2, kept;
	int err;

	if (n && nps_budget__spent(m->budget)) {
		nps_budget__leave_out(m->budget, NPS_LEFT_FILES);
		return 0;
	}
	err = n ? try_range(p, link_path, v, n) : 0;
	if (!err)
		return n;
	if (n == 1) {
		report_probe_refused(p, v, path, err);
		return 0;
	}
	kept = keep_probeable(p, link_path, m, path, v, half);
	n = keep_probeable(p, link_path, m, path, v + half, n - half);
	memmove(v + kept, v + half, n * sizeof(*v));
	return kept + n;
}

static unsigned count_ends(const struct nps_probed_file *f, uint64_t start)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->n; i++)
		n += f->probes[i].at_end && f->probes[i].start == start;
	return n;
}

/*
 * A call whose end is not probed would look as if an exception had left it: then its entry is not probed,
 * either.
 */
static void drop_entries_without_ends(struct nps_probed_file *f)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < f->n; i++)
		if (f->probes[i].ends && count_ends(f, f->probes[i].start) != f->probes[i].ends)
			f->probes[i].ends = UINT8_MAX; /* more than any function has */
	for (unsigned i = 0; i < f->n; i++)
		if (f->probes[i].ends != UINT8_MAX)
			f->probes[kept++] = f->probes[i];
	f->n = kept;
}

/*
 * If each probe is attached on its own, each can be refused on its own: detaching is too slow to try halves.
 */
static int attach_each(struct nps_probes *p, const char *link_path, struct nps_probed_file *f)
{
	bool *refused = calloc(f->n + 1, sizeof(*refused));
	unsigned kept = 0;
	int err;

	if (!refused)
		return -ENOMEM;
	err = nps_probes__link(p, link_path, f->probes, f->n, refused);
	if (err)
		goto out;
	for (unsigned i = 0; i < f->n; i++) {
		if (refused[i])
			report_probe_refused(p, &f->probes[i], f->path, -ENOTSUP);
		else
			f->probes[kept++] = f->probes[i];
	}
	f->n = kept;
out:
	free(refused);
	return err;
}

int nps_probes__link_file(struct nps_probes *p, int fd, struct nps_probe_match *m)
{
	struct nps_probed_file *f = m->file;
	char link_path[64];
	int err;

	nps_probes__fd_path(fd, link_path, sizeof(link_path));
	if (nps_bpf_loader__uprobe_row(p->k) == NPS_UPROBE_PERF) {
		err = attach_each(p, link_path, f);
	} else {
		err = nps_probes__link(p, link_path, f->probes, f->n, NULL);
		if (of_one_probe(err)) {
			f->n = keep_probeable(p, link_path, m, f->path, f->probes, f->n);
			drop_entries_without_ends(f);
			err = nps_probes__link(p, link_path, f->probes, f->n, NULL);
		}
	}
	if (err)
		f->n = 0;
	return err ? err : (int)f->n;
}
