/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/probes_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/elf_file.h"
#include "core/log.h"
#include "attach/operators.h"
#include "core/proc_maps.h"
#include "attach/reader.h"
#include "attach/probe_address.h"
#include "attach/probe_rows.h"
#include "core/session_json.h"
#include "core/work_budget.h"

#define POLLED_MOST 2000 /* single steps of one function a second: 2 % of a CPU at 10 us each */
#define TURN_NS 1000000000ULL

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

void nps_probes__with_caches(struct nps_probes *p)
{
	p->with_caches = true;
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

static void set_groups(struct nps_probes *p, enum nps_tier from, uint8_t state)
{
	for (unsigned tier = from; tier < NPS_TIERS; tier++)
		nps_bpf_loader__set_group(p->k, 1 + tier, state);
	for (const struct nps_probed_file *f = p->files; f; f = f->next)
		for (unsigned i = 0; i < f->n; i++)
			if (f->probes[i].group && nps_attached__tier(&f->probes[i]) >= from)
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

/* Our injection library exports the functions of mstx under names with a prefix, which avoids conflicts. */
static const char *name_in_catalogue(const char *name, uint32_t lib)
{
	static const char own[] = "npuscope_";

	return lib == NPS_LIB_MSTX && !strncmp(name, own, sizeof(own) - 1) ? name + sizeof(own) - 1 : name;
}

/* Where the job's cache of executors answers, no first phase shows who planned what runs. */
static bool is_cache_query(const struct nps_probe_row *row)
{
	return row->id == NPS_PROBE_PTA_GET || row->id == NPS_PROBE_PTA_FIND;
}

static bool row_is_wanted(const struct nps_probes *p, const struct nps_probe_row *row)
{
	return nps_probe_rows__wanted(row, p->level, p->shapes) ||
	       (p->with_caches && p->level >= 0 && is_cache_query(row));
}

static int match_row(const struct nps_elf_function *fn, void *arg)
{
	struct nps_probe_match *m = arg;
	const struct nps_probe_row *row = nps_probe_rows__find(name_in_catalogue(fn->name, m->lib));
	struct nps_probe_address address;
	bool returns;
	int err;

	if (!row || !(row->libs & m->lib) || !row_is_wanted(m->p, row) ||
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

/* -ETIME: the budget is spent; nothing is attached, and the file is not remembered. */
static int match_attach(struct nps_probes *p, int fd, struct nps_probe_match *m,
			int (*collect)(struct nps_probe_match *m))
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
	return nps_probes__link_file(p, fd, m);
}

int nps_probes__attach_new(struct nps_probes *p, int fd, const char *path, struct nps_probe_match *m,
			   int (*collect)(struct nps_probe_match *m))
{
	char build_id[41] = "";
	struct stat st;
	int err;

	/* Each scan of a process calls this: a known file is not parsed again. */
	if (nps_probes__knows(p, fd))
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
		err = match_attach(p, fd, m, collect);
	nps_debug("%s: %u probes", path, m->file ? m->file->n : 0);
	nps_elf__close(m->elf);
	if (err == -ETIME)
		/* so that the next scan, or another process, tries it again */
		nps_probed_files__forget_last(&p->files);
	else if (m->budget)
		m->budget->files++;
	return err;
}

static int collect_rows(struct nps_probe_match *m)
{
	return nps_elf__for_each_function(m->elf, false, match_row, m);
}

int nps_probes__attach_file(struct nps_probes *p, int fd, const char *path, struct nps_budget *budget)
{
	struct nps_probe_match m = { .p = p,
				     .budget = budget,
				     .lib = nps_probe_rows__library(nps_basename(path)) };

	return m.lib & ~p->left_out ? nps_probes__attach_new(p, fd, path, &m, collect_rows) : 0;
}

bool nps_probes__knows(const struct nps_probes *p, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && nps_probed_files__find(p->files, fd, &st);
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
	nps_probes__fd_path(fd, link_path, sizeof(link_path));
	err = nps_probes__link(p, link_path, &probe, 1, NULL);
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
		 nps_probes__name(p, a), f->path, rate);
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
			if (!a->group || a->detached || nps_attached__tier(a) >= p->shed)
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
			uint64_t hits = reader ? nps_reader__hits(reader, a->id, a->number) : 0;
			cJSON *j;

			/* A library of PyTorch has thousands of operators, of which a job uses some tens. */
			if (a->number && !hits && nps_probe_rows__get(a->id)->flags & NPS_P_ENDS)
				continue;
			j = cJSON_CreateObject();
			cJSON_AddNumberToObject(j, "id", a->id);
			cJSON_AddStringToObject(j, "symbol", nps_probe_rows__get(a->id)->symbol);
			if (a->number)
				cJSON_AddItemToObject(
					j, "operator",
					nps_json_text(nps_operators__name(p->operators, a->number)));
			cJSON_AddItemToObject(j, "library", nps_json_text(f->path));
			cJSON_AddNumberToObject(j, "offset", (double)a->offset);
			cJSON_AddStringToObject(j, "how", a->returns ? "call" : a->at_end ? "end" : "entry");
			cJSON_AddStringToObject(j, "class", nps_probe_class__name(a->class));
			if (a->detached)
				cJSON_AddNumberToObject(j, "taken_out_monotonic", (double)a->detached);
			cJSON_AddNumberToObject(j, "hits", (double)hits);
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
