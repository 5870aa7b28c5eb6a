/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/probes.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/elf_file.h"
#include "attach/link_set.h"
#include "core/log.h"
#include "attach/operators.h"
#include "attach/op_arguments.h"
#include "attach/perf_probe.h"
#include "core/proc_maps.h"
#include "attach/reader.h"
#include "attach/probe_address.h"
#include "attach/probed_files.h"
#include "attach/probe_rows.h"
#include "core/session_json.h"
#include "attach/uprobe_link.h"
#include "core/work_budget.h"

#define POLLED_MOST 2000 /* single steps of one function a second: 2 % of a CPU at 10 us each */
#define TURN_NS 1000000000ULL
#define ENOTSUPP 524 /* the kernel's, which libc does not have */

struct nps_probes {
	struct nps_bpf_loader *k;
	int level;
	bool shapes;
	uint32_t left_out; /* enum nps_lib */
	struct nps_operators *operators;
	struct nps_probed_file *files;
	struct nps_links links;
	enum nps_tier shed; /* this tier and those above are not attached */
	unsigned refused; /* probes that the kernel refused */
	bool keeps_polled, whole_submissions;
	unsigned groups; /* number of the newest group with one probe only */
	uint64_t turned; /* CLOCK_MONOTONIC */
};

int nps_probes__new(struct nps_bpf_loader *k, int level, bool shapes, struct nps_operators *operators,
		    struct nps_probes **out)
{
	struct nps_probes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->k = k;
	p->level = level;
	p->shapes = shapes;
	p->shed = NPS_TIERS;
	p->groups = NPS_GROUPS_COUNTED - 1;
	p->operators = operators;
	*out = p;
	return 0;
}

void nps_probes__leave_out(struct nps_probes *p, uint32_t libs)
{
	p->left_out |= libs;
}

void nps_probes__detach(struct nps_probes *p)
{
	nps_links__close(&p->links, 0);
}

bool nps_probes__has_tier(const struct nps_probes *p, enum nps_tier tier)
{
	for (unsigned i = 0; i < p->links.n; i++)
		if (p->links.v[i].tier == tier)
			return true;
	return false;
}

_Static_assert(1 + NPS_TIERS <= NPS_GROUPS_COUNTED, "a group each tier");

static enum nps_tier tier_of(const struct nps_attached *a)
{
	return nps_probe_rows__tier(nps_probe_rows__get(a->id));
}

/* Group of calls: of the probe only, else of its tier. */
static unsigned group_of(const struct nps_attached *a)
{
	return a->group ? a->group : 1 + tier_of(a);
}

static void set_groups(struct nps_probes *p, enum nps_tier from, uint8_t state)
{
	for (unsigned tier = from; tier < NPS_TIERS; tier++)
		nps_bpf_loader__set_group(p->k, 1 + tier, state);
	for (const struct nps_probed_file *f = p->files; f; f = f->next)
		for (unsigned i = 0; i < f->n; i++)
			if (f->probes[i].group && tier_of(&f->probes[i]) >= from)
				nps_bpf_loader__set_group(p->k, f->probes[i].group, state);
}

void nps_probes__shed(struct nps_probes *p, enum nps_tier tier)
{
	if (tier < p->shed)
		p->shed = tier;
	set_groups(p, tier, NPS_GROUP_DETACHED);
	nps_links__close(&p->links, tier);
}

enum nps_tier nps_probes__shed_tier(const struct nps_probes *p)
{
	return p->shed;
}

void nps_probes__free(struct nps_probes *p)
{
	if (!p)
		return;
	nps_probes__detach(p);
	while (p->files)
		nps_probed_files__forget_last(&p->files);
	nps_links__free(&p->links);
	free(p);
}

struct match {
	struct nps_elf *elf;
	struct nps_budget *budget;
	struct nps_probes *p;
	uint32_t lib;
	bool second; /* attach to second phases of operators */
	struct nps_probed_file *file;
};

/* Our injection library exports the functions of mstx under names with a prefix, which avoids conflicts. */
static const char *name_in_catalogue(const char *name, uint32_t lib)
{
	static const char own[] = "npuscope_";

	return lib == NPS_LIB_MSTX && !strncmp(name, own, sizeof(own) - 1) ? name + sizeof(own) - 1 : name;
}

static int match_row(const struct nps_elf_function *fn, void *arg)
{
	struct match *m = arg;
	const struct nps_probe_row *row = nps_probe_rows__find(name_in_catalogue(fn->name, m->lib));
	struct nps_probe_address address;
	bool returns;
	int err;

	if (!row || !(row->libs & m->lib) || !nps_probe_rows__wanted(row, m->p->level, m->p->shapes) ||
	    (row->id == NPS_PROBE_ACLPROF_MARK && (m->p->left_out & NPS_LIB_MSTX)) ||
	    /* The programs of old kernels do not record it. */
	    (row->id == NPS_PROBE_CQ_REPORT_RECV && nps_bpf_loader__is_legacy(m->p->k)))
		return 0;
	/* Before the function is read, because a file can have any number of symbols of one name. */
	if (nps_probed_file__has(m->file, row->id))
		return 0;
	if (nps_budget__spent(m->budget))
		return -ETIME;
	returns = nps_probe_rows__returns(row, m->p->whole_submissions || nps_bpf_loader__is_legacy(m->p->k));
	address = nps_probe_address__find(m->elf, fn, row, returns);
	if (nps_probed_file__has_at(m->file, &address))
		return 0;
	err = nps_probed_file__add(m->file, row->id, returns, &address);
	if (!err && address.stepped && nps_probe_rows__is_polled(row) && !m->p->keeps_polled &&
	    m->p->groups + 1 < NPS_GROUPS)
		m->file->probes[m->file->n - 1].group = ++m->p->groups;
	return err;
}

/* How a function is probed. */
enum how { HOW_CALL, HOW_MARK, HOW_OPERANDS, HOWS };

static enum how how_of(const struct nps_attached *a)
{
	if (a->returns)
		return HOW_CALL;
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
	static const enum nps_program entry[] = { NPS_PROG_ENTRY, NPS_PROG_MARK, NPS_PROG_OPERANDS };
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
		if (how_of(&probes[i]) != sort->how || tier_of(&probes[i]) != sort->tier)
			continue;
		sort->from[sort->n] = i;
		sort->offsets[sort->n] = probes[i].offset;
		sort->cookies[sort->n++] =
			NPS_COOKIE(probes[i].id, probes[i].returns ? group_of(&probes[i]) : probes[i].number,
				   probes[i].arguments, probes[i].class);
	}
}

/* Attaches probes of one file: all of them or none, except those marked in REFUSED. */
static int probes_attach(struct nps_probes *p, const char *path, const struct nps_attached *probes,
			 unsigned n, bool *refused)
{
	struct sort sort = { .path = path, .refused = refused };
	unsigned before = p->links.n;
	int err = 0;

	sort.offsets = calloc(n, sizeof(*sort.offsets));
	sort.cookies = calloc(n, sizeof(*sort.cookies));
	sort.from = calloc(n, sizeof(*sort.from));
	if (n && (!sort.offsets || !sort.cookies || !sort.from))
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

/* The kernel needs a path; this one leads to the open file even if it was deleted. */
static void fd_path(int fd, char *buf, size_t size)
{
	snprintf(buf, size, "/proc/%d/fd/%d", getpid(), fd);
}

static int open_elf(int fd, struct nps_budget *budget, struct stat *st, struct nps_elf **elf,
		    char build_id[41])
{
	int err;

	if (fstat(fd, st))
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -EINVAL;
	err = nps_elf__open(fd, budget, elf);
	if (err)
		return err;
	nps_elf__build_id(*elf, build_id);
	return 0;
}

/* Name of the function for messages. */
static const char *probe_name(const struct nps_probes *p, const struct nps_attached *a)
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
		 probe_name(p, probe), path,
		 err == -ENOTSUPP || err == -ENOTSUP ? "its first instruction" : strerror(-err));
}

static int try_range(struct nps_probes *p, const char *link_path, const struct nps_attached *v, unsigned n)
{
	unsigned before = p->links.n;
	int err = probes_attach(p, link_path, v, n, NULL);

	nps_links__undo(&p->links, before);
	return err;
}

/*
 * Keeps those of N probes that the kernel accepts, in order, and returns their number. It refuses all
 * because of one, so halves are tried until that one is found: a library of thousands must not need
 * thousands of tries. If a file has more refused probes than its process's budget allows to find, the rest
 * of it is not probed.
 */
static unsigned keep_probeable(struct nps_probes *p, const char *link_path, struct match *m, const char *path,
			       struct nps_attached *v, unsigned n)
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
	err = probes_attach(p, link_path, f->probes, f->n, refused);
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

static int probes_attach_all(struct nps_probes *p, int fd, struct match *m)
{
	struct nps_probed_file *f = m->file;
	char link_path[64];
	int err;

	fd_path(fd, link_path, sizeof(link_path));
	if (nps_bpf_loader__uprobe_row(p->k) == NPS_UPROBE_PERF) {
		err = attach_each(p, link_path, f);
	} else {
		err = probes_attach(p, link_path, f->probes, f->n, NULL);
		if (of_one_probe(err)) {
			f->n = keep_probeable(p, link_path, m, f->path, f->probes, f->n);
			err = probes_attach(p, link_path, f->probes, f->n, NULL);
		}
	}
	if (err)
		f->n = 0;
	return err ? err : (int)f->n;
}

/* -ETIME: the budget is spent; nothing is attached, and the file is not remembered. */
static int collect_and_attach(struct nps_probes *p, int fd, struct match *m, int (*collect)(struct match *m))
{
	int err = collect(m);

	if (err == -E2BIG) { /* what was found in the rest of the file is probed */
		nps_budget__leave_out(m->budget, NPS_LEFT_SYMBOLS);
		err = 0;
	} else if (!err && !m->file->n && !nps_elf__has_symbols(m->elf)) {
		err = -ENOEXEC;
	}
	if (err) {
		m->file->n = 0;
		return err;
	}
	return probes_attach_all(p, fd, m);
}

/* Attaches what COLLECT finds in a file that is not known yet. */
static int attach_new(struct nps_probes *p, int fd, const char *path, struct match *m,
		      int (*collect)(struct match *m))
{
	char build_id[41] = "";
	struct stat st;
	int err;

	/* Each scan of a process calls this: a known file is not parsed again. */
	if (!fstat(fd, &st) && nps_probed_files__find(p->files, fd, &st))
		return 0;
	if (m->budget && m->budget->files >= NPS_BUDGET_FILES) {
		nps_budget__leave_out(m->budget, NPS_LEFT_FILES);
		return 0;
	}
	err = open_elf(fd, m->budget, &st, &m->elf, build_id);
	if (err == -ETIME)
		return err;
	/* Damaged files, too, so that the next scan does not report them again. */
	m->file = nps_probed_files__add(&p->files, fd, &st, build_id, path);
	if (!err && !m->file)
		err = -ENOMEM;
	if (!err)
		err = collect_and_attach(p, fd, m, collect);
	nps_debug("%s: %u probes", path, m->file ? m->file->n : 0);
	nps_elf__close(m->elf);
	if (err == -ETIME)
		/* so that the next scan, or another process, tries it again */
		nps_probed_files__forget_last(&p->files);
	else if (m->budget)
		m->budget->files++;
	return err;
}

static int collect_rows(struct match *m)
{
	return nps_elf__for_each_function(m->elf, false, match_row, m);
}

int nps_probes__attach_file(struct nps_probes *p, int fd, const char *path, struct nps_budget *budget)
{
	struct match m = { .p = p, .budget = budget, .lib = nps_probe_rows__library(nps_basename(path)) };

	return m.lib & ~p->left_out ? attach_new(p, fd, path, &m, collect_rows) : 0;
}

bool nps_probes__has(const struct nps_probes *p, int fd, unsigned id)
{
	const struct nps_probed_file *f;
	struct stat st;

	f = fstat(fd, &st) ? NULL : nps_probed_files__find(p->files, fd, &st);
	for (unsigned i = 0; f && i < f->n; i++)
		if (f->probes[i].id == id)
			return true;
	return false;
}

/* Attaches to a phase of operator NUMBER. */
static int add_phase(struct match *m, const struct nps_elf_function *fn, uint16_t id, int number)
{
	/* All arguments of operands are read. */
	const struct nps_probe_row *row = id == NPS_PROBE_NN_OPERANDS ? NULL : nps_probe_rows__get(id);
	struct nps_probe_address address = nps_probe_address__find(m->elf, fn, row, false);
	int err;

	if (nps_probed_file__has_at(m->file, &address))
		return 0; /* an alias */
	err = nps_probed_file__add(m->file, id, false, &address);
	if (err)
		return err;
	m->file->probes[m->file->n - 1].number = (uint16_t)number;
	return 0;
}

static int match_operator(const struct nps_elf_function *first, const struct nps_elf_function *second,
			  void *arg)
{
	struct match *m = arg;
	uint8_t arguments = m->p->shapes ? nps_op_arguments(second->name) : 0;
	unsigned before, known;
	int number, err = 0;

	if (!m->second && !arguments)
		return 0;
	if (nps_budget__spent(m->budget))
		return -ETIME;
	known = m->p->operators->n;
	if (m->budget && m->budget->operators >= NPS_BUDGET_OPERATORS)
		return -E2BIG;
	number = nps_operators__add(m->p->operators, second->name);
	if (number < 0)
		return number == -ENOSPC ? -E2BIG : number;
	if (m->budget)
		m->budget->operators += m->p->operators->n - known;
	if (m->second)
		err = add_phase(m, second, NPS_PROBE_NN_EXPORT, number);
	before = m->file->n;
	if (!err && arguments)
		err = add_phase(m, first, NPS_PROBE_NN_OPERANDS, number);
	if (!err && m->file->n > before)
		m->file->probes[before].arguments = arguments;
	return err;
}

static int collect_operators(struct match *m)
{
	if (m->p->level < 0)
		return 0;
	if (nps_bpf_loader__uprobe_row(m->p->k) == NPS_UPROBE_PERF)
		return -ENOTSUP;
	return nps_operators__find(m->elf, match_operator, m);
}

int nps_probes__attach_operators(struct nps_probes *p, int fd, const char *path, bool second,
				 struct nps_budget *budget)
{
	struct match m = { .p = p, .budget = budget, .second = second };

	return attach_new(p, fd, path, &m, collect_operators);
}

int nps_probes__attach_marker(struct nps_probes *p, int fd, const char *path, const char *function,
			      struct nps_budget *budget)
{
	struct nps_elf *elf = NULL;
	struct nps_elf_function fn;
	char build_id[41] = "", link_path[64];
	struct nps_probe_address address;
	struct nps_attached probe;
	struct nps_probed_file *f;
	struct stat st;
	int err;

	err = open_elf(fd, budget, &st, &elf, build_id);
	if (err)
		return err;
	err = nps_elf__find(elf, function, true, &fn);
	if (err)
		goto out;
	f = nps_probed_files__find(p->files, fd, &st);
	if (!f)
		f = nps_probed_files__add(&p->files, fd, &st, build_id, path);
	if (!f) {
		err = -ENOMEM;
		goto out;
	}
	address = nps_probe_address__find(elf, &fn, nps_probe_rows__get(NPS_PROBE_STEP_MARKER), false);
	probe = (struct nps_attached){ .id = NPS_PROBE_STEP_MARKER,
				       .class = address.class,
				       .offset = address.offset };
	if (nps_probed_file__has_at(f, &address) || nps_probed_file__has(f, probe.id))
		goto out;
	fd_path(fd, link_path, sizeof(link_path));
	err = probes_attach(p, link_path, &probe, 1, NULL);
	if (err)
		goto out;
	err = nps_probed_file__add(f, probe.id, false, &address);
	if (err)
		goto out;
	err = 1;
out:
	nps_elf__close(elf);
	return err;
}

void nps_probes__watch_submissions(struct nps_probes *p)
{
	p->whole_submissions = true;
}

void nps_probes__keep_polled(struct nps_probes *p)
{
	p->keeps_polled = true;
}

/* From now on entries are not recorded; open calls may return, so the links stay until the next turn. */
static void probe_detach(struct nps_probes *p, const struct nps_probed_file *f, struct nps_attached *a,
			 double rate, uint64_t now)
{
	nps_bpf_loader__set_group(p->k, a->group, NPS_GROUP_CLOSING);
	a->closing = true;
	a->detached = now;
	nps_info("%s of %s is not recorded any more: the job polls it %.0f times a second, and the kernel "
		 "has to "
		 "single-step it: --keep-polled keeps it",
		 probe_name(p, a), f->path, rate);
}

static void close_polled(struct nps_probes *p, struct nps_attached *a)
{
	nps_bpf_loader__set_group(p->k, a->group, NPS_GROUP_DETACHED);
	nps_links__close_group(&p->links, a->group);
	a->closing = false;
}

void nps_probes__turn(struct nps_probes *p, uint64_t now)
{
	double seconds = (double)(now - p->turned) / 1e9;
	bool first = !p->turned;

	if (p->groups < NPS_GROUPS_COUNTED || (!first && now - p->turned < TURN_NS))
		return;
	p->turned = now;
	for (struct nps_probed_file *f = p->files; f; f = f->next)
		for (unsigned i = 0; i < f->n; i++) {
			struct nps_attached *a = &f->probes[i];
			uint64_t entered;

			if (a->closing)
				close_polled(p, a);
			if (!a->group || a->detached || tier_of(a) >= p->shed)
				continue;
			entered = nps_bpf_loader__entered(p->k, a->group);
			if (!first && (double)(entered - a->entered) > POLLED_MOST * seconds)
				probe_detach(p, f, a, (double)(entered - a->entered) / seconds, now);
			a->entered = entered;
		}
}

void nps_probes__describe(const struct nps_probes *p, const struct nps_reader *reader, cJSON *session)
{
	cJSON *libs = cJSON_AddArrayToObject(session, "libraries");
	cJSON *probes = cJSON_AddArrayToObject(session, "probes");

	for (const struct nps_probed_file *f = p->files; f; f = f->next) {
		cJSON *lib = cJSON_CreateObject();

		cJSON_AddItemToObject(lib, "path", nps_json_text(f->path));
		cJSON_AddNumberToObject(lib, "dev", (double)f->dev);
		cJSON_AddNumberToObject(lib, "ino", (double)f->ino);
		cJSON_AddStringToObject(lib, "build_id", f->build_id);
		cJSON_AddNumberToObject(lib, "probes", f->n);
		cJSON_AddItemToArray(libs, lib);
		for (unsigned i = 0; i < f->n; i++) {
			const struct nps_attached *a = &f->probes[i];
			cJSON *j = cJSON_CreateObject();

			cJSON_AddNumberToObject(j, "id", a->id);
			cJSON_AddStringToObject(j, "symbol", nps_probe_rows__get(a->id)->symbol);
			if (a->number)
				cJSON_AddItemToObject(
					j, "operator",
					nps_json_text(nps_operators__name(p->operators, a->number)));
			cJSON_AddItemToObject(j, "library", nps_json_text(f->path));
			cJSON_AddNumberToObject(j, "offset", (double)a->offset);
			cJSON_AddStringToObject(j, "how", a->returns ? "call" : "entry");
			cJSON_AddStringToObject(j, "class", nps_probe_class__name(a->class));
			if (a->detached)
				cJSON_AddNumberToObject(j, "taken_out_monotonic", (double)a->detached);
			cJSON_AddNumberToObject(
				j, "hits", reader ? (double)nps_reader__hits(reader, a->id, a->number) : 0);
			cJSON_AddItemToArray(probes, j);
		}
	}
}

const char *nps_probes__a_file(const struct nps_probes *p)
{
	return p->files ? p->files->path : NULL;
}

unsigned nps_probes__count(const struct nps_probes *p)
{
	unsigned n = 0;

	for (const struct nps_probed_file *f = p->files; f; f = f->next)
		n += f->n;
	return n;
}

unsigned nps_probes__refused(const struct nps_probes *p)
{
	return p->refused;
}

unsigned nps_probes__files(const struct nps_probes *p)
{
	unsigned n = 0;

	for (const struct nps_probed_file *f = p->files; f; f = f->next)
		n += f->n > 0;
	return n;
}
