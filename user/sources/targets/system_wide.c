/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/targets/system_wide.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/probe_rows.h"
#include "capture/capture.h"
#include "capture/discover.h"
#include "core/clocks.h"
#include "core/log.h"

#define MS 1000000ULL
#define LIST_MS 100 /* between two lists of processes */
#define BUDGET_MS 10 /* of one call, after the first */
/* of CPU time, for the mappings of one process: twice what the maximum of kept ones needs */
#define BUDGET_ONE_MS 500
#define MOST_DELAY_MS 5000
#define MOST_PIDS (1U << 22) /* the kernel's own limit */
#define MOST_FILES 4096 /* open files of one process that are checked */
#define NODE "/dev/davinci"

struct seen {
	uint32_t round; /* of the list that contained it last */
	uint32_t due, delay; /* ms: time of the next check, and the delay before it */
};

struct nps_system_wide {
	struct seen *seen; /* by pid; pages of unused pids stay untouched */
	uint64_t begin, listed;
	uint32_t round;
};

static bool maps_npu(pid_t pid)
{
	struct nps_budget budget;
	struct nps_maps maps;
	bool found = false;

	/* Each process is checked less and less often, so it needs no account. */
	nps_budget__init(&budget, BUDGET_ONE_MS * MS, NPS_BUDGET_PERCENT, nps_now(CLOCK_MONOTONIC));
	nps_budget__begin_once(&budget);
	if (nps_maps__read(pid, &budget, &maps))
		return false;
	for (size_t i = 0; i < maps.n && !found; i++)
		found = nps_probe_rows__library(nps_basename(maps.v[i].path)) ||
			!strncmp(maps.v[i].path, NODE, sizeof(NODE) - 1);
	nps_maps__free(&maps);
	return found;
}

static bool holds_npu(pid_t pid)
{
	char path[300], target[64];
	struct dirent *e;
	bool found = false;
	int files = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && !found && files++ < MOST_FILES && (e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);

		found = n >= (ssize_t)sizeof(NODE) - 1 && !memcmp(target, NODE, sizeof(NODE) - 1);
	}
	if (dir)
		closedir(dir);
	return found;
}

static void pid_check(struct nps_capture *c, pid_t pid)
{
	struct nps_process *p = nps_discover__find(c, pid);
	int err;

	if (pid == getpid() || (p && p->alive) || (!maps_npu(pid) && !holds_npu(pid)))
		return;
	err = nps_discover__add(c, pid);
	if (err && err != -ESRCH && err != -EINTR) {
		nps_warn("cannot watch pid %d: %s: its calls will be missing", pid, strerror(-err));
		c->degraded = true;
	}
	p = err ? NULL : nps_discover__find(c, pid);
	if (p)
		nps_discover__scan(c, p);
}

/* Handles one pid of the list. */
static void pid_visit(struct nps_system_wide *w, struct nps_capture *c, uint32_t pid)
{
	struct seen *s = &w->seen[pid];
	uint32_t now = (uint32_t)((nps_now(CLOCK_MONOTONIC) - w->begin) / MS);

	if (!s->round || s->round != w->round - 1)
		/* the process is new, or the pid was reused */
		*s = (struct seen){ .due = now, .delay = LIST_MS };
	s->round = w->round;
	if (now < s->due)
		return;
	s->due = now + s->delay;
	s->delay = s->delay * 2 < MOST_DELAY_MS ? s->delay * 2 : MOST_DELAY_MS;
	pid_check(c, (pid_t)pid);
}

void nps_system_wide__scan(struct nps_system_wide *w, struct nps_capture *c)
{
	uint64_t began = nps_now(CLOCK_MONOTONIC);
	struct dirent *e;
	DIR *proc;

	if (began - w->listed < LIST_MS * MS)
		return;
	w->listed = began;
	proc = opendir("/proc");
	if (!proc) {
		nps_debug("/proc: %s", strerror(errno));
		return;
	}
	w->round++;
	while ((e = readdir(proc))) {
		unsigned long pid = isdigit((unsigned char)e->d_name[0]) ? strtoul(e->d_name, NULL, 10) : 0;
		bool late = w->round > 1 && nps_now(CLOCK_MONOTONIC) - began > BUDGET_MS * MS;

		if (!pid || pid >= MOST_PIDS)
			continue;
		/* The rest is checked in the next call. */
		if (late)
			w->seen[pid].round = w->seen[pid].round ? w->round : 0;
		else
			pid_visit(w, c, (uint32_t)pid);
	}
	closedir(proc);
}

int nps_system_wide__new(struct nps_system_wide **out)
{
	struct nps_system_wide *w = calloc(1, sizeof(*w));

	if (w)
		w->seen = calloc(MOST_PIDS, sizeof(*w->seen));
	if (!w || !w->seen) {
		free(w);
		return -ENOMEM;
	}
	w->begin = nps_now(CLOCK_MONOTONIC);
	*out = w;
	return 0;
}

void nps_system_wide__free(struct nps_system_wide *w)
{
	if (!w)
		return;
	free(w->seen);
	free(w);
}
