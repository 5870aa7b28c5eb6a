/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/calls/open_slices.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf_shared.h"
#include "core/log.h"
#include "event.h"

static bool thread_read_file(uint32_t pid, uint32_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", pid, tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

/* Contents of a thread's stat: fields 3, 10, 12, 18 and 39, after the name. */
struct thread_stat {
	char state; /* 0: the thread has exited */
	uint16_t prio;
	uint32_t cpu;
	uint64_t minor, major; /* page faults */
};

static struct thread_stat thread_read_stat(uint32_t pid, uint32_t tid)
{
	struct thread_stat stat = { 0 };
	char text[1024], *at;

	if (!thread_read_file(pid, tid, "stat", text, sizeof(text)))
		return stat;
	at = strrchr(text, ')');
	for (int field = 3; at && field <= 39; field++) {
		at = strchr(at + 1, ' ');
		if (at && field == 3)
			stat.state = at[1];
		else if (at && field == 10)
			stat.minor = strtoull(at, NULL, 10);
		else if (at && field == 12)
			stat.major = strtoull(at, NULL, 10);
		else if (at && field == 18)
			stat.prio = strtol(at, NULL, 10) + 100; /* /proc shows the kernel's 0 as -100 */
		else if (at && field == 39)
			stat.cpu = strtoul(at, NULL, 10);
	}
	return stat;
}

void nps_open_slices__keep(struct nps_open_slices *s, const struct nps_event *e)
{
	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 256;
		struct nps_event *more = realloc(s->events, room * sizeof(*more));

		if (!more) {
			s->lost++;
			return;
		}
		s->events = more;
		s->room = room;
	}
	s->events[s->n++] = *e;
}

/* Adds the slice or wait that the end cut off. Nothing for a thread that started after it. */
static void add_stretch(struct nps_open_slices *s, uint32_t tid, const struct nps_thread *st,
			const struct thread_stat *stat)
{
	/* It may have got a CPU just after the end. */
	uint64_t on = st->on < s->end ? st->on : 0, since = on ? on : st->off;
	struct nps_event e = { .kind = NPS_EV_SCHED,
			       .flags = NPS_F_OPEN,
			       .pid = st->pid,
			       .tid = tid,
			       .waker = st->waker,
			       .start = on ? on : s->end };

	if (!since || since >= s->end)
		return;
	e.dur = s->end - e.start;
	e.sched = (struct nps_event_sched){ .off = st->off,
					    .runnable = st->runnable < e.start ? st->runnable : 0,
					    .cpu = stat->cpu,
					    .prio = stat->prio };
	/* Nobody woke it: it sleeps, unless it was preempted. */
	if (!e.sched.runnable && !on && st->state)
		e.sched.runnable = s->end;
	nps_open_slices__keep(s, &e);
}

/* Threads report their faults when they leave a CPU, at most once a second: these came after that. */
static void add_faults(struct nps_open_slices *s, uint32_t tid, const struct nps_thread *st,
		       const struct thread_stat *stat)
{
	struct nps_event e = { .kind = NPS_EV_FAULT,
			       .what = NPS_FAULT_SUM,
			       .pid = st->pid,
			       .tid = tid,
			       .start = st->faults_reported };

	if (st->faults_reported >= s->end || stat->minor < st->minor || stat->major < st->major ||
	    (stat->minor == st->minor && stat->major == st->major))
		return; /* it has exited, or has none */
	e.dur = s->end - e.start;
	e.fault_sum.minor = stat->minor - st->minor;
	e.fault_sum.major = stat->major - st->major;
	nps_open_slices__keep(s, &e);
}

void nps_open_slices__collect(struct nps_open_slices *s, struct nps_bpf_loader *k)
{
	int map = nps_bpf_loader__threads_fd(k);
	uint32_t tid, *last = NULL;
	struct nps_thread st;

	while (!bpf_map_get_next_key(map, last, &tid)) {
		struct thread_stat stat;

		last = &tid;
		if (bpf_map_lookup_elem(map, &tid, &st) ||
		    st.pid == (uint32_t)getpid()) /* ours, if our parent is watched */
			continue;
		stat = thread_read_stat(st.pid, tid);
		if (nps_bpf_loader__has_sched(k))
			add_stretch(s, tid, &st, &stat);
		add_faults(s, tid, &st, &stat);
	}
}

/*
 * Does the thread run now, and has it used nearly as much CPU time as one that ran for LENGTH ns? Only half
 * is required, because a guest's clock stops at times.
 */
static bool has_run_for(uint32_t pid, uint32_t tid, uint64_t length)
{
	char text[128];

	return thread_read_stat(pid, tid).state == 'R' &&
	       thread_read_file(pid, tid, "schedstat", text, sizeof(text)) &&
	       strtoull(text, NULL, 10) >= length / 2;
}

void nps_open_slices__collect_unseen(struct nps_open_slices *s, struct nps_bpf_loader *k, pid_t pid)
{
	int map = nps_bpf_loader__threads_fd(k);
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = nps_bpf_loader__has_sched(k) && s->begin < s->end ? opendir(path) : NULL;
	while (dir && (entry = readdir(dir))) {
		uint32_t tid = strtoul(entry->d_name, NULL, 10);
		struct nps_thread st;
		struct thread_stat stat;

		if (!tid || !bpf_map_lookup_elem(map, &tid, &st) ||
		    !has_run_for((uint32_t)pid, tid, s->end - s->begin))
			continue;
		st = (struct nps_thread){ .on = s->begin, .pid = (uint32_t)pid };
		stat = thread_read_stat((uint32_t)pid, tid);
		add_stretch(s, tid, &st, &stat);
	}
	if (dir)
		closedir(dir);
}

size_t nps_open_slices__write(struct nps_open_slices *s, struct nps_reader *reader)
{
	size_t lost = s->lost;

	if (lost)
		nps_warn("what was going on at the end is lost of %zu threads: no memory", lost);
	nps_reader__append(reader, s->events, s->n);
	free(s->events);
	*s = (struct nps_open_slices){ 0 };
	return lost;
}
