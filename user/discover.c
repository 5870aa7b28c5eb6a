/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_client.h"
#include "capture_agents.h"
#include "catalog.h"
#include "channel_files.h"
#include "clocks.h"
#include "launch.h"
#include "log.h"
#include "own_file.h"
#include "probe_rows.h"

struct nps_process *nps_discover__find(struct nps_capture *c, pid_t pid)
{
	for (struct nps_process *p = c->processes; p; p = p->next)
		if (p->pid == pid)
			return p;
	return NULL;
}

static void attach_fd(struct nps_capture *c, int fd, const char *path)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	int n = nps_probes__attach_file(c->probes, fd, path);

	if (n < 0) {
		nps_warn("cannot probe %s: %s: its calls will be missing", path, strerror(-n));
		c->degraded = true;
	}
	if (nps_probe_rows__library(nps_basename(path)) == NPS_LIB_HAL)
		nps_task_source__library(c->tasks, fd, path);
	c->attach_ns += nps_now(CLOCK_MONOTONIC) - begin;
}

/* A library of operators; SECOND: their second phases have no function in common. */
static void attach_operators_fd(struct nps_capture *c, int fd, const char *path, bool second)
{
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	int n = nps_probes__attach_operators(c->probes, fd, path, second);

	if (n < 0) {
		nps_warn("cannot probe %s: %s: %s", path,
			 n == -ENOTSUP ? "this kernel wants an event for each operator (no uprobe_multi)"
				       : strerror(-n),
			 second ? "its calls will be missing" : "shapes of its operators will be missing");
		c->degraded = true;
	}
	c->attach_ns += nps_now(CLOCK_MONOTONIC) - begin;
}

/* A library in one directory as process `pid` sees it (0: as we do); negative if it is not there. */
static int open_library(pid_t pid, const char *dir, size_t dir_len, const char *soname, char path[PATH_MAX])
{
	if (snprintf(path, PATH_MAX, "%.*s/%s", (int)dir_len, dir, soname) >= PATH_MAX)
		return -ENAMETOOLONG;
	return nps_open_in_root(pid, path);
}

/* For shapes the libraries of operators too, if it is certain that only their first phases are to be probed. */
static void attach_operators_of(struct nps_capture *c, pid_t pid, const char *dir, size_t dir_len)
{
	int fd = -1, common = 0;
	const char *soname;
	char path[PATH_MAX];

	if (c->opts->shapes)
		fd = open_library(pid, dir, dir_len, "libnnopbase.so", path);
	if (fd >= 0) {
		common = nps_probes__has(c->probes, fd, NPS_PROBE_NN_PHASE2);
		close(fd);
	}
	for (size_t i = 0; common && (soname = nps_operators__soname(i)); i++) {
		fd = open_library(pid, dir, dir_len, soname, path);
		if (fd < 0)
			continue;
		attach_operators_fd(c, fd, path, false);
		close(fd);
	}
}

/*
 * Tries every library name in one directory as process `pid` sees it (0: as we do). Libraries that
 * the job loads later are then probed before their first call. Link stubs are never loaded.
 */
static void attach_directory(struct nps_capture *c, pid_t pid, const char *dir, size_t dir_len)
{
	const char *soname;
	char path[PATH_MAX];

	if (!dir_len || dir[0] != '/' || memmem(dir, dir_len, "/devlib", 7) ||
	    memmem(dir, dir_len, "/stub", 5))
		return;
	for (size_t i = 0; (soname = nps_probe_rows__soname(i)); i++) {
		int fd = open_library(pid, dir, dir_len, soname, path);

		if (fd < 0)
			continue;
		attach_fd(c, fd, path);
		close(fd);
	}
	attach_operators_of(c, pid, dir, dir_len);
}

/* The library that a job with the headers of mstx loads at its first mark, which is to be seen already. */
static void attach_injection(struct nps_capture *c, pid_t pid, const char *path)
{
	int fd;

	if (!path || path[0] != '/' || !nps_probe_rows__library(nps_basename(path)))
		return;
	fd = nps_open_in_root(pid, path);
	if (fd < 0)
		return;
	attach_fd(c, fd, path);
	close(fd);
}

static void attach_search_path(struct nps_capture *c, pid_t pid, const char *dirs)
{
	for (const char *end; dirs && *dirs; dirs = *end ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		attach_directory(c, pid, dirs, end - dirs);
	}
}

static void attach_marker(struct nps_capture *c, int fd, const char *path)
{
	int err = nps_probes__attach_marker(c->probes, fd, path, c->opts->step_marker);

	if (err >= 0)
		c->marker_found = true;
	else if (err != -ENOENT && err != -ENOEXEC)
		nps_debug("%s: %s", path, strerror(-err));
}

/* Searching a file for the marker reads all its symbols: each file once. */
static bool first_search(struct nps_capture *c, const struct nps_mapping *m)
{
	uint64_t key = m->ino ^ m->dev << 48;
	uint64_t *v;

	for (size_t i = 0; i < c->n_searched; i++)
		if (c->searched[i] == key)
			return false;
	v = realloc(c->searched, (c->n_searched + 1) * sizeof(*v));
	if (!v)
		return true;
	c->searched = v;
	v[c->n_searched++] = key;
	return true;
}

static void scan_mapping(struct nps_capture *c, struct nps_process *p, const struct nps_mapping *m,
			 bool want_marker)
{
	bool wanted = nps_probe_rows__library(nps_basename(m->path));
	int fd;

	want_marker = want_marker && m->exec && !c->marker_found && first_search(c, m);
	if (!m->exec || (!wanted && !want_marker))
		return;
	fd = nps_mapping__open(p->pid, m, O_RDONLY);
	if (fd < 0) {
		if (wanted)
			nps_warn("cannot open %s of pid %d: %s: its calls will be missing", m->path, p->pid,
				 strerror(-fd));
		return;
	}
	if (wanted) {
		attach_fd(c, fd, m->path);
		p->has_cann = true;
	}
	if (want_marker)
		attach_marker(c, fd, m->path);
	close(fd);
}

static bool opened(struct nps_process *p, const struct nps_mapping *m, int *fd)
{
	*fd = m->exec ? nps_mapping__open(p->pid, m, O_RDONLY) : -1;
	return *fd >= 0;
}

/* Has the process functions through which all its operators go? -1: their library is not mapped yet. */
static int has_common_phase(struct nps_capture *c, struct nps_process *p, const struct nps_maps *maps)
{
	int found = -1, fd;

	for (size_t i = 0; i < maps->n && found <= 0; i++) {
		if (nps_probe_rows__library(nps_basename(maps->v[i].path)) != NPS_LIB_NNOPBASE ||
		    !opened(p, &maps->v[i], &fd))
			continue;
		found = nps_probes__has(c->probes, fd, NPS_PROBE_NN_PHASE2);
		close(fd);
	}
	return found;
}

/* Where it has none, and for shapes, its operators are probed one by one. */
static void attach_operators(struct nps_capture *c, struct nps_process *p, const struct nps_maps *maps)
{
	int common = -2; /* not looked at */

	for (size_t i = 0; i < maps->n; i++) {
		int fd;

		if (!nps_operators__library(nps_basename(maps->v[i].path)) || !maps->v[i].exec)
			continue;
		if (common == -2)
			common = has_common_phase(c, p, maps);
		if (common < 0 || (common > 0 && !c->opts->shapes) || !opened(p, &maps->v[i], &fd))
			continue;
		attach_operators_fd(c, fd, maps->v[i].path, common == 0);
		close(fd);
	}
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

void nps_discover__scan(struct nps_capture *c, struct nps_process *p)
{
	bool want_marker = c->opts->step_marker && !c->marker_found;
	char last_dir[PATH_MAX] = "";
	struct nps_maps maps;

	nps_driver_side__look_at(c->driver, p->pid);
	if (nps_maps__read(p->pid, &maps))
		return;
	for (size_t i = 0; i < maps.n; i++) {
		const char *base = nps_basename(maps.v[i].path);
		size_t dir_len = base - maps.v[i].path;

		scan_mapping(c, p, &maps.v[i], want_marker);
		if (!maps.v[i].exec || !nps_probe_rows__library(base) || dir_len >= sizeof(last_dir) ||
		    dir_len < 2)
			continue;
		if (strncmp(last_dir, maps.v[i].path, dir_len - 1) == 0 && !last_dir[dir_len - 1])
			continue;
		snprintf(last_dir, sizeof(last_dir), "%.*s", (int)dir_len - 1, maps.v[i].path);
		attach_directory(c, p->pid, last_dir, dir_len - 1);
	}
	attach_operators(c, p, &maps);
	attach_search_path(c, p->pid,
			   cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(p->env, "LD_LIBRARY_PATH")));
	attach_injection(
		c, p->pid,
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(p->env, "MSTX_INJECTION_PATH")));
	nps_process__set_maps(p, &maps);
	find_agent(c, p, &maps);
	nps_maps__free(&maps);
}

static int watch(struct nps_capture *c, struct nps_process *p)
{
	uint32_t flags = NPS_TARGET_WATCH | (c->opts->children ? NPS_TARGET_FOLLOW : 0) |
			 (c->opts->osrt ? NPS_TARGET_OSRT : 0);

	return nps_kernel_side__add_target(c->kernel, p->pid, flags);
}

static int add(struct nps_capture *c, pid_t pid, bool born)
{
	struct nps_process *p = nps_discover__find(c, pid);
	int err;

	if (p && p->alive)
		return 0;
	if (!c->armed && nps_capture__interrupted(c))
		return -EINTR;
	nps_agents__keep(c); /* there may be hundreds to be looked at */
	err = nps_process__read(pid, &p);
	if (err)
		return err;
	p->born = born || pid == c->child;
	if (c->armed && !born)
		err = watch(c, p);
	if (err) {
		nps_process__free(p);
		return err;
	}
	if (!nps_pid_exists(pid)) /* it ended meanwhile, and its number may come again */
		nps_kernel_side__del_target(c->kernel, pid);
	p->next = c->processes;
	c->processes = p;
	if (c->tasks)
		p->files = nps_channel_files__new(p->pid, &c->session, &c->logs);
	nps_stacks__watch(c->stacks, pid);
	nps_host_sys__target(c->host_sys, pid);
	nps_device_sampler__process(c->devices, pid, nps_process__foreign(p));
	nps_discover__scan(c, p);
	return 0;
}

int nps_discover__add(struct nps_capture *c, pid_t pid)
{
	return add(c, pid, false);
}

int nps_discover__add_born(struct nps_capture *c, pid_t pid)
{
	return add(c, pid, true);
}

int nps_discover__arm(struct nps_capture *c)
{
	int err = 0;

	c->armed = true;
	for (struct nps_process *p = c->processes; p && !err; p = p->next)
		err = watch(c, p);
	/* Children that were born while we attached. */
	for (int i = 0; i < c->opts->n_pids && !err && c->opts->children; i++)
		nps_discover__add_tree(c, c->opts->pids[i]);
	return err;
}

uint64_t nps_discover__disarm(struct nps_capture *c)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	c->armed = false;
	nps_driver_side__end(c->driver, now);
	nps_kernel_side__end(c->kernel, now); /* waits for programs of both */
	return now;
}

static void add_child(pid_t pid, void *arg)
{
	nps_discover__add_tree(arg, pid);
}

int nps_discover__add_tree(struct nps_capture *c, pid_t pid)
{
	int err = nps_discover__add(c, pid);

	if (!err && c->opts->children)
		nps_children__for_each(pid, add_child, c);
	return err;
}

void nps_discover__before_exec(struct nps_capture *c, const char *command)
{
	char path[PATH_MAX];
	int fd;

	attach_search_path(c, 0, getenv("LD_LIBRARY_PATH"));
	attach_injection(c, 0, getenv("MSTX_INJECTION_PATH"));
	if (!c->opts->step_marker || nps_launch__find(command, path, sizeof(path)))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	attach_marker(c, fd, path);
	close(fd);
}

int nps_discover__agent_path(char *path, size_t size)
{
	return nps_own_file__find("libnpuscope_agent.so", path, size);
}
