/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/discover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/probe_rows.h"
#include "capture/agent_client.h"
#include "capture/channel_files.h"
#include "capture/job_processes.h"
#include "capture/launch.h"
#include "capture/torch_library.h"
#include "catalog.h"
#include "core/clocks.h"
#include "core/log.h"
#include "core/own_file.h"

#define RESCAN_NS (100 * NPS_BUDGET_MS) /* between two scans of one process */
#define KEEP_NS (50 * NPS_BUDGET_MS) /* between two heartbeats to helpers */
#define TURN_NS (50 * NPS_BUDGET_MS) /* for all scans of one turn; for all retries of births */
#define LATE_NS (1000 * NPS_BUDGET_MS) /* a process that waits longer for a scan may miss probes */
#define MAPPINGS 64 /* searched between two reads of the clock */

struct nps_process *nps_discover__find(struct nps_capture *c, pid_t pid)
{
	return nps_job_processes__find(c, pid);
}

/* Attaches to an open file. 0, or -ETIME: the budget is spent. */
static int attach_fd(struct nps_capture *c, struct nps_budget *budget, int fd, const char *path)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	int n = nps_probes__attach_file(c->shared.probes, fd, path, budget);

	if (n < 0 && n != -ETIME) {
		nps_warn("cannot probe %s: %s: its calls will be missing", path, strerror(-n));
		c->degraded = true;
	}
	if (n != -ETIME && nps_probe_rows__library(nps_basename(path)) == NPS_LIB_HAL &&
	    !(budget && budget->files >= NPS_BUDGET_FILES))
		nps_sources__process(
			c, &(struct nps_source_event){
				   .kind = NPS_EVENT_LIBRARY, .budget = budget, .path = path, .fd = fd });
	c->attach_ns += nps_now(CLOCK_MONOTONIC) - begin;
	return nps_budget__spent(budget) ? -ETIME : 0;
}

/*
 * Attaches to a library of operators; SECOND: there is no function that all second phases call. 0 or -ETIME.
 */
static int attach_operators_fd(struct nps_capture *c, struct nps_budget *budget, int fd, const char *path,
			       bool second)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	int n = nps_probes__attach_operators(c->shared.probes, fd, path, second, budget);

	if (n < 0 && n != -ETIME) {
		nps_warn("cannot probe %s: %s: %s", path,
			 n == -ENOTSUP ? "this kernel wants an event for each operator (no uprobe_multi)"
				       : strerror(-n),
			 second		   ? "its calls will be missing"
			 : c->opts->shapes ? "shapes and ends of its operators will be missing"
					   : "ends of its operators will be missing");
		c->degraded = true;
	}
	c->attach_ns += nps_now(CLOCK_MONOTONIC) - begin;
	return nps_budget__spent(budget) ? -ETIME : 0;
}

/* Opens a library in one directory as process `pid` sees it (0: as we do); negative if it does not exist. */
static int open_library(pid_t pid, const char *dir, size_t dir_len, const char *soname, char path[PATH_MAX])
{
	if (snprintf(path, PATH_MAX, "%.*s/%s", (int)dir_len, dir, soname) >= PATH_MAX)
		return -ENAMETOOLONG;
	return nps_open_in_root(pid, path);
}

/*
 * Also attaches to libraries of operators where single ones are wanted, if it is certain that there is a
 * function that all their second phases call.
 */
static int attach_operators_of(struct nps_capture *c, struct nps_budget *budget, pid_t pid, const char *dir,
			       size_t dir_len)
{
	int fd = -1, common = 0, err = 0;
	const char *soname;
	char path[PATH_MAX];

	if (nps_probes__wants_operators(c->shared.probes))
		fd = open_library(pid, dir, dir_len, "libnnopbase.so", path);
	if (fd >= 0) {
		common = nps_probes__has(c->shared.probes, fd, NPS_PROBE_NN_PHASE2);
		close(fd);
	}
	for (size_t i = 0; !err && common && (soname = nps_operators__soname(i)); i++) {
		fd = open_library(pid, dir, dir_len, soname, path);
		if (fd < 0)
			continue;
		err = attach_operators_fd(c, budget, fd, path, false);
		close(fd);
	}
	return err;
}

/*
 * Tries every library name in one directory as process `pid` sees it (0: as we do), so that libraries that
 * the job loads later are probed before their first call. CANN's directories of link-time libraries are
 * skipped, because those are never loaded.
 */
static int attach_directory(struct nps_capture *c, struct nps_budget *budget, pid_t pid, const char *dir,
			    size_t dir_len)
{
	const char *soname;
	char path[PATH_MAX];
	int err = 0;

	if (!dir_len || dir[0] != '/' || memmem(dir, dir_len, "/devlib", 7) ||
	    memmem(dir, dir_len, "/stub", 5))
		return 0;
	for (size_t i = 0; !err && (soname = nps_probe_rows__soname(i)); i++) {
		int fd = open_library(pid, dir, dir_len, soname, path);

		/* Also if there is none, because a path of thousands of links takes time. */
		err = fd >= 0 ? attach_fd(c, budget, fd, path) : nps_budget__spent(budget) ? -ETIME : 0;
		if (fd >= 0)
			close(fd);
	}
	return err ? err : attach_operators_of(c, budget, pid, dir, dir_len);
}

/* Directories of one scan: each is searched once. */
struct dirs {
	struct {
		const char *path;
		size_t len;
	} v[NPS_BUDGET_DIRS];
	size_t n;
};

/* 1: it is new; 0: it is known; -E2BIG: there are too many. */
static int dirs_add(struct dirs *dirs, const char *path, size_t len)
{
	for (size_t i = 0; i < dirs->n; i++)
		if (dirs->v[i].len == len && !memcmp(dirs->v[i].path, path, len))
			return 0;
	if (dirs->n == NPS_BUDGET_DIRS)
		return -E2BIG;
	dirs->v[dirs->n].path = path;
	dirs->v[dirs->n++].len = len;
	return 1;
}

static int attach_new_directory(struct nps_capture *c, struct nps_budget *budget, pid_t pid,
				struct dirs *dirs, const char *path, size_t len)
{
	int fresh = dirs_add(dirs, path, len);

	if (fresh < 0)
		nps_budget__leave_out(budget, NPS_LEFT_DIRS);
	if (fresh > 0)
		return attach_directory(c, budget, pid, path, len);
	return nps_budget__spent(budget) ? -ETIME : 0;
}

/* The library that a job with the headers of mstx loads at its first mark, which must be recorded already. */
static int attach_injection(struct nps_capture *c, struct nps_budget *budget, pid_t pid, const char *path)
{
	int fd, err;

	if (!path || path[0] != '/' || !nps_probe_rows__library(nps_basename(path)))
		return 0;
	fd = nps_open_in_root(pid, path);
	if (fd < 0)
		return 0;
	err = attach_fd(c, budget, fd, path);
	close(fd);
	return err;
}

static int attach_search_path(struct nps_capture *c, struct nps_budget *budget, pid_t pid, struct dirs *dirs,
			      const char *path)
{
	int err = 0;

	for (const char *end; !err && path && *path && dirs->n < NPS_BUDGET_DIRS;
	     path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		err = attach_new_directory(c, budget, pid, dirs, path, (size_t)(end - path));
	}
	if (!err && path && *path)
		nps_budget__leave_out(budget, NPS_LEFT_DIRS);
	return err;
}

static int attach_marker(struct nps_capture *c, struct nps_budget *budget, int fd, const char *path)
{
	int err = nps_probes__attach_marker(c->shared.probes, fd, path, c->opts->step_marker, budget);

	if (err >= 0)
		c->marker_found = true;
	else if (err == -E2BIG)
		nps_budget__leave_out(budget, NPS_LEFT_SEARCHED);
	else if (err != -ENOENT && err != -ENOEXEC)
		nps_debug("%s: %s", path, strerror(-err));
	return err == -ETIME ? err : 0;
}

/*
 * Is it the first search of that file? A search for the marker reads all
 * symbols, so each file is searched once.
 */
static bool first_search(struct nps_capture *c, const struct nps_mapping *m)
{
	uint64_t key = m->ino ^ m->dev << 48;

	for (size_t i = 0; i < c->n_searched; i++)
		if (c->searched[i] == key)
			return false;
	return true;
}

static void remember_search(struct nps_capture *c, const struct nps_mapping *m)
{
	bool full = !(c->n_searched & (c->n_searched - 1));
	size_t room = c->n_searched ? 2 * c->n_searched : 1;
	uint64_t *v = full ? realloc(c->searched, room * sizeof(*v)) : c->searched;

	if (!v)
		return;
	c->searched = v;
	v[c->n_searched++] = m->ino ^ m->dev << 48;
}

static bool wants_marker(struct nps_capture *c, struct nps_process *p, const struct nps_mapping *m)
{
	if (!c->opts->step_marker || c->marker_found || !first_search(c, m))
		return false;
	if (p->budget.searched >= NPS_BUDGET_SEARCHED) {
		nps_budget__leave_out(&p->budget, NPS_LEFT_SEARCHED);
		return false;
	}
	return true;
}

static int search_marker(struct nps_capture *c, struct nps_process *p, const struct nps_mapping *m, int fd)
{
	int err = attach_marker(c, &p->budget, fd, m->path);

	if (err)
		return err;
	remember_search(c, m);
	p->budget.searched++;
	return 0;
}

static int scan_mapping(struct nps_capture *c, struct nps_process *p, const struct nps_mapping *m)
{
	bool wanted = nps_probe_rows__library(nps_basename(m->path)), marker;
	bool torch = nps_torch_library__wanted(c, m->path);
	int fd, err = 0;

	if (!m->exec)
		return 0;
	marker = wants_marker(c, p, m);
	if (!wanted && !marker && !torch)
		return 0;
	fd = nps_mapping__open(p->pid, m, O_RDONLY);
	if (fd < 0) {
		if (wanted || torch)
			nps_budget__leave_out(&p->budget, NPS_LEFT_OPEN);
		return nps_budget__spent(&p->budget) ? -ETIME : 0;
	}
	if (wanted) {
		err = attach_fd(c, &p->budget, fd, m->path);
		p->has_cann = true;
	}
	if (!err && torch)
		err = nps_torch_library__attach(c, p, fd, m->path);
	if (!err && marker)
		err = search_marker(c, p, m, fd);
	close(fd);
	return err;
}

static bool library_opened(struct nps_process *p, const struct nps_mapping *m, int *fd)
{
	*fd = m->exec ? nps_mapping__open(p->pid, m, O_RDONLY) : -1;
	return *fd >= 0;
}

/* Has the process functions that all its operators call? -1: their library is not mapped yet. */
static int has_common_phase(struct nps_capture *c, struct nps_process *p, const struct nps_maps *maps)
{
	int found = -1, fd;

	for (size_t i = 0; i < maps->n && found <= 0; i++) {
		if (nps_probe_rows__library(nps_basename(maps->v[i].path)) != NPS_LIB_NNOPBASE ||
		    !library_opened(p, &maps->v[i], &fd))
			continue;
		found = nps_probes__has(c->shared.probes, fd, NPS_PROBE_NN_PHASE2);
		close(fd);
	}
	return found;
}

/* If it has none, for shapes, and for the ends of phases, its operators are probed one by one. */
static int attach_operators(struct nps_capture *c, struct nps_process *p, const struct nps_maps *maps)
{
	int common = -2; /* not checked yet */
	int err = 0;

	for (size_t i = 0; !err && i < maps->n; i++) {
		int fd;

		if (!nps_operators__library(nps_basename(maps->v[i].path)) || !maps->v[i].exec)
			continue;
		if (common == -2)
			common = has_common_phase(c, p, maps);
		if (common < 0 || (common > 0 && !nps_probes__wants_operators(c->shared.probes)) ||
		    !library_opened(p, &maps->v[i], &fd))
			continue;
		err = attach_operators_fd(c, &p->budget, fd, maps->v[i].path, common == 0);
		close(fd);
	}
	return err;
}

static void find_agent(struct nps_capture *c, struct nps_process *p, const struct nps_maps *maps)
{
	bool profiler = c->opts->task_source == NPS_TASKS_PROFILER;

	if (p->agent || profiler || c->opts->task_source == NPS_TASKS_HOST) {
		if (!p->agent)
			snprintf(p->agent_reason, sizeof(p->agent_reason), "%s",
				 profiler ? "the job's own profiler does not read it" : "--task-source host");
		return;
	}
	if (!p->files)
		p->files = nps_channel_files__new(p->pid, &c->session, &c->logs);
	if (!p->files || nps_agent_client__open(p->pid, maps, &c->session, p->files, &p->agent,
						p->agent_reason, sizeof(p->agent_reason)))
		return;
	p->agent_reason[0] = '\0';
	nps_agent_client__start(p->agent, c->opts->devices.metric);
}

/* Attaches to mapped libraries, and to those in the same directories. */
static int scan_mappings(struct nps_capture *c, struct nps_process *p, const struct nps_maps *maps,
			 struct dirs *dirs)
{
	int err = 0;

	for (size_t i = 0; i < maps->n && !err; i++) {
		const struct nps_mapping *m = &maps->v[i];
		const char *base = nps_basename(m->path);

		if (i % MAPPINGS == MAPPINGS - 1 && nps_budget__spent(&p->budget))
			return -ETIME;
		err = scan_mapping(c, p, m);
		if (!err && m->exec && base - m->path >= 2 && nps_probe_rows__library(base))
			err = attach_new_directory(c, &p->budget, p->pid, dirs, m->path,
						   (size_t)(base - m->path) - 1);
	}
	return err;
}

static const char *env_of(const struct nps_process *p, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(p->env, name));
}

static int attach_libraries(struct nps_capture *c, struct nps_process *p, const struct nps_maps *maps)
{
	struct dirs dirs = { .n = 0 };
	int err = scan_mappings(c, p, maps, &dirs);

	if (err)
		return err;
	err = attach_operators(c, p, maps);
	if (err)
		return err;
	err = attach_search_path(c, &p->budget, p->pid, &dirs, env_of(p, "LD_LIBRARY_PATH"));
	if (err)
		return err;
	return attach_injection(c, &p->budget, p->pid, env_of(p, "MSTX_INJECTION_PATH"));
}

/* Scans all mappings of a process. -ETIME: its budget was spent first. */
static int scan_maps(struct nps_capture *c, struct nps_process *p, const struct nps_maps *maps)
{
	int err = attach_libraries(c, p, maps);

	nps_process__set_maps(p, maps);
	find_agent(c, p, maps);
	return err;
}

/* Reads the process's mappings to MAPS, which the caller frees. */
static int scan_in_budget(struct nps_capture *c, struct nps_process *p, bool mapped, struct nps_maps *maps)
{
	int err;

	if (!c->ending) {
		err = nps_sources__process(
			c, &(struct nps_source_event){
				   .kind = NPS_EVENT_SCAN, .p = p, .budget = &p->budget, .mapped = mapped });
		if (err)
			return err;
	}
	err = nps_maps__read(p->pid, &p->budget, maps);
	if (err)
		return err;
	err = nps_process__name_host_functions(p, maps);
	if (err)
		return err;
	return mapped && !c->ending ? scan_maps(c, p, maps) : 0;
}

/* One unit of work for a process, as long as its budget allows. -ETIME: it is not done. */
static int process_scan_step(struct nps_capture *c, struct nps_process *p)
{
	bool mapped = p->rescan || p->refresh;
	struct nps_maps maps = { 0 };
	int err;

	if (p->refresh)
		nps_process__refresh(p);
	p->refresh = false;
	err = scan_in_budget(c, p, mapped, &maps);
	nps_maps__free(&maps);
	nps_process__count_texts(p);
	return err == -ETIME ? err : 0;
}

/* Scans a process now. True: done; false: the next turn continues. */
static bool process_scan(struct nps_capture *c, struct nps_process *p)
{
	bool done;

	nps_budget__begin(&p->budget);
	p->scanned = nps_now(CLOCK_MONOTONIC);
	done = !process_scan_step(c, p);
	nps_budget__pay(&c->work, nps_budget__end(&p->budget));
	p->rescan = !done;
	if (!done && !nps_budget__ready(&p->budget, p->scanned))
		nps_budget__leave_out(&p->budget, NPS_LEFT_SCANS);
	c->degraded |= nps_budget__report(&p->budget, p->pid);
	return done;
}

static void scan_leave_out(struct nps_capture *c, struct nps_process *p, enum nps_left_out what)
{
	nps_budget__leave_out(&p->budget, what);
	c->degraded |= nps_budget__report(&p->budget, p->pid);
}

static bool has_work(const struct nps_process *p)
{
	return p->alive && (p->rescan || p->refresh || p->n_host_functions);
}

static bool may_scan(struct nps_capture *c, struct nps_process *p, uint64_t now)
{
	return nps_budget__ready(&p->budget, now) && nps_budget__ready(&c->work, now);
}

void nps_discover__refresh(struct nps_capture *c, struct nps_process *p)
{
	uint64_t begin = nps_now(CLOCK_THREAD_CPUTIME_ID), elapsed;

	p->refresh = !may_scan(c, p, nps_now(CLOCK_MONOTONIC));
	if (p->refresh) {
		nps_process__forget_program(p);
		return;
	}
	nps_process__refresh(p);
	nps_process__count_texts(p);
	elapsed = nps_now(CLOCK_THREAD_CPUTIME_ID) - begin;
	nps_budget__pay(&p->budget, elapsed);
	nps_budget__pay(&c->work, elapsed);
}

void nps_discover__scan(struct nps_capture *c, struct nps_process *p)
{
	p->rescan = true;
	if (p->alive && may_scan(c, p, nps_now(CLOCK_MONOTONIC)))
		process_scan(c, p);
}

static int compare_credit(const void *a, const void *b)
{
	int64_t x = (*(struct nps_process *const *)a)->budget.credit,
		y = (*(struct nps_process *const *)b)->budget.credit;

	return x > y ? -1 : x < y;
}

/*
 * Lists *N processes to scan now, those with the least recent work
 * first. EAGER: also those that were scanned just now.
 */
static struct nps_process **list_due(struct nps_capture *c, bool eager, size_t *n)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);
	struct nps_process **v = NULL;
	size_t room = 0;

	*n = 0;
	for (struct nps_process *p = c->processes; p; p = p->next) {
		bool rests = !eager && !p->refresh && !p->n_host_functions && now - p->scanned < RESCAN_NS;

		if (!has_work(p) || rests)
			continue;
		if (!nps_budget__ready(&p->budget, now)) {
			if (now - p->scanned > LATE_NS && now - p->start_mono > LATE_NS)
				scan_leave_out(c, p, NPS_LEFT_SCANS);
			continue;
		}
		if (*n == room) {
			struct nps_process **more = realloc(v, (room ? 2 * room : 16) * sizeof(*v));

			if (!more)
				break;
			v = more;
			room = room ? 2 * room : 16;
		}
		v[(*n)++] = p;
	}
	if (*n)
		qsort(v, *n, sizeof(*v), compare_credit);
	return v;
}

/* One pass over those that are due, for up to NS. True: something was done. */
static bool is_scan_due(struct nps_capture *c, bool eager, uint64_t ns)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	bool worked = false;
	size_t n;
	struct nps_process **due = list_due(c, eager, &n);

	for (size_t i = 0; i < n; i++) {
		uint64_t now = nps_now(CLOCK_MONOTONIC);

		if (now - begin > ns || !may_scan(c, due[i], now))
			break;
		process_scan(c, due[i]);
		worked = true;
	}
	free(due);
	return worked;
}

void nps_discover__turn(struct nps_capture *c)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	if (!c->ending && now - c->retried >= RESCAN_NS) {
		c->retried = now;
		nps_job_processes__retry(c, TURN_NS);
	}
	is_scan_due(c, false, TURN_NS);
}

void nps_discover__settle(struct nps_capture *c)
{
	while (is_scan_due(c, true, UINT64_MAX))
		;
}

static int process_watch(struct nps_capture *c, struct nps_process *p)
{
	uint32_t flags = NPS_TARGET_WATCH | (c->opts->children ? NPS_TARGET_FOLLOW : 0) |
			 (c->opts->osrt ? NPS_TARGET_OSRT : 0);

	return nps_bpf_loader__add_target(c->shared.kernel, p->pid, flags);
}

/* Does the budget of PARENT allow to add a child? */
static bool may_add_born(struct nps_process *parent)
{
	return nps_budget__solvent(&parent->budget, nps_now(CLOCK_MONOTONIC)) &&
	       parent->root->n_born < NPS_BUDGET_BORN;
}

/* Is that process in the list? */
static bool is_listed(const struct nps_capture *c, const struct nps_process *p)
{
	for (const struct nps_process *k = nps_job_processes__find(c, p->pid); k; k = k->next_of_pid)
		if (k->pid == p->pid && p->start_ticks && k->start_ticks == p->start_ticks)
			return true;
	return false;
}

/* BORN: BPF programs watch it already. STARTED: from the BPF event (CLOCK_BOOTTIME ns, 0: unknown). */
static int add_new(struct nps_capture *c, pid_t pid, struct nps_process *parent, bool born, uint64_t started)
{
	struct nps_process *p;
	int err;

	err = nps_process__read(pid, &p);
	if (err)
		return err;
	/* The pid was reused. */
	if (!nps_process__has_started(p, started))
		err = -ESRCH;
	if (err || is_listed(c, p)) {
		nps_process__free(p);
		return err;
	}
	p->born = born || pid == c->child;
	if (!born && !c->armed && !c->ending && !c->opts->all)
		nps_budget__advance(&p->budget, NPS_BUDGET_NAMED_CPU_NS);
	if (c->armed && !born)
		err = process_watch(c, p);
	if (err) {
		nps_process__free(p);
		return err;
	}
	/* It has exited meanwhile, and its pid may be reused; for a child BPF programs notice that. */
	if (!born && !nps_pid_exists(pid))
		nps_bpf_loader__del_target(c->shared.kernel, pid);
	nps_job_processes__add(c, p, parent);
	if (c->ending)
		return 0;
	nps_sources__process(c, &(struct nps_source_event){ .kind = NPS_EVENT_WATCHED, .p = p });
	return 0;
}

/* Before recording begins there may be thousands of processes to scan, while helpers wait for a heartbeat. */
static void keep_agents(struct nps_capture *c)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	if (c->armed || c->ending || now - c->kept < KEEP_NS)
		return;
	c->kept = now;
	nps_sources__turn(c, NPS_TURN_KEEPALIVE);
}

/* PARENT, NULL: none, pays for it. -E2BIG: its budget does not allow it. */
static int process_add(struct nps_capture *c, pid_t pid, struct nps_process *parent, bool born,
		       uint64_t started)
{
	struct nps_process *p = nps_job_processes__find_started(c, pid, started);
	uint64_t begin, elapsed;
	int err;

	if (p && (p->alive || started))
		return 0;
	if (parent && !may_add_born(parent))
		return -E2BIG;
	if (!c->armed && !c->ending && nps_capture__interrupted(c))
		return -EINTR;
	keep_agents(c);
	begin = nps_now(CLOCK_THREAD_CPUTIME_ID);
	err = add_new(c, pid, parent, born, started);
	elapsed = nps_now(CLOCK_THREAD_CPUTIME_ID) - begin;
	if (parent) {
		nps_budget__pay(&parent->budget, elapsed);
		nps_budget__pay(&c->work, elapsed);
	}
	return err;
}

int nps_discover__add(struct nps_capture *c, pid_t pid)
{
	return process_add(c, pid, NULL, false, 0);
}

/*
 * A process with unknown parent: all of them count as one family, so
 * that being hard to trace gains no extra budget.
 */
static int add_orphan(struct nps_capture *c, pid_t pid, uint64_t started)
{
	const struct nps_process *before = c->processes;
	int err = process_add(c, pid, c->orphans, true, started);

	if (!err && !c->orphans && c->processes != before) /* it is new */
		c->orphans = c->processes;
	return err;
}

struct nps_process *nps_discover__payer(struct nps_capture *c, pid_t parent)
{
	struct nps_process *p = parent ? nps_discover__find(c, parent) : NULL;

	return p ? p : c->orphans;
}

bool nps_discover__may_add_born(struct nps_capture *c, pid_t parent)
{
	struct nps_process *payer = nps_discover__payer(c, parent);

	return !payer || may_add_born(payer);
}

int nps_discover__add_child(struct nps_capture *c, pid_t pid, struct nps_process *payer, uint64_t started)
{
	return payer ? process_add(c, pid, payer, true, started) : add_orphan(c, pid, started);
}

int nps_discover__add_born(struct nps_capture *c, pid_t pid, pid_t parent, uint64_t started)
{
	return nps_discover__add_child(c, pid, nps_discover__payer(c, parent), started);
}

int nps_discover__arm(struct nps_capture *c)
{
	int err = 0;

	c->armed = true;
	nps_budget__end_advance(&c->work);
	for (struct nps_process *p = c->processes; p && !err; p = p->next) {
		nps_budget__end_advance(&p->budget);
		err = process_watch(c, p);
	}
	/* Children that were started during the attach. */
	for (int i = 0; i < c->opts->n_pids && !err && c->opts->children; i++)
		nps_discover__add_tree(c, c->opts->pids[i]);
	return err;
}

struct scan_tree {
	struct nps_capture *c;
	struct nps_process *root; /* NULL: not added yet */
};

static int tree_add(pid_t pid, void *arg)
{
	struct scan_tree *tree = arg;
	int err;

	if (tree->c->shared.costs.child && pid == tree->c->shared.costs.child)
		return 0; /* this process is in the tree, too: its children are no part of the job */
	err = process_add(tree->c, pid, tree->root, false, 0);
	if (!tree->root)
		tree->root = nps_discover__find(tree->c, pid);
	if (err == -E2BIG)
		scan_leave_out(tree->c, tree->root, NPS_LEFT_TREE);
	return err;
}

int nps_discover__add_tree(struct nps_capture *c, pid_t pid)
{
	struct scan_tree tree = { .c = c };
	int err = nps_tree__for_each(pid, c->opts->children, tree_add, &tree);

	if (err == -E2BIG && tree.root)
		scan_leave_out(c, tree.root, NPS_LEFT_TREE);
	return err == -E2BIG && tree.root ? 0 : err;
}

void nps_discover__before_exec(struct nps_capture *c, const char *command)
{
	struct dirs dirs = { .n = 0 };
	char path[PATH_MAX];
	int fd;

	attach_search_path(c, NULL, 0, &dirs, getenv("LD_LIBRARY_PATH"));
	attach_injection(c, NULL, 0, getenv("MSTX_INJECTION_PATH"));
	if (!c->opts->step_marker || nps_launch__find(command, path, sizeof(path)))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	attach_marker(c, NULL, fd, path);
	close(fd);
}

void nps_discover__finish(struct nps_capture *c)
{
	nps_job_processes__abandon(c);
	for (struct nps_process *p = c->processes; p; p = p->next) {
		if (p->n_host_functions)
			nps_budget__leave_out(&p->budget, NPS_LEFT_HOST_FUNCTIONS);
		c->degraded |= nps_budget__report(&p->budget, p->pid);
	}
}

int nps_discover__agent_path(char *path, size_t size)
{
	return nps_own_file__find("libnpuscope_agent.so", path, size);
}
