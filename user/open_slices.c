/* SPDX-License-Identifier: BSD-2-Clause */
#include "open_slices.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf_shared.h"
#include "event.h"
#include "log.h"

static bool read_file(const char *format, uint32_t tid, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), format, tid);
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

/* The process of a thread that is still there, 0 if it is not. */
static uint32_t process_of(uint32_t tid)
{
	char text[2048], *line;

	if (!read_file("/proc/%u/status", tid, text, sizeof(text)))
		return 0;
	line = strstr(text, "\nTgid:");
	return line ? strtoul(line + 6, NULL, 10) : 0;
}

/* What its stat tells: the fields 3, 18 and 39, which begin behind the name. */
struct place {
	char state;
	uint16_t prio;
	uint32_t cpu;
};

static struct place place_of(uint32_t tid)
{
	struct place place = { 0 };
	char text[1024], *at;

	if (!read_file("/proc/%u/stat", tid, text, sizeof(text)))
		return place;
	at = strrchr(text, ')');
	for (int field = 3; at && field <= 39; field++) {
		at = strchr(at + 1, ' ');
		if (at && field == 3)
			place.state = at[1];
		else if (at && field == 18)
			place.prio = strtol(at, NULL, 10) + 100; /* the kernel's 0 is told as -100 */
		else if (at && field == 39)
			place.cpu = strtoul(at, NULL, 10);
	}
	return place;
}

static void keep(struct nps_open_slices *s, const struct nps_event *e)
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

/* Nothing of a thread that left its CPU, or came to be, after the end. */
static void add(struct nps_open_slices *s, uint32_t tid, const struct nps_thread *st)
{
	uint64_t since = st->on ? st->on : st->off;
	struct nps_event e = {
		.kind = NPS_EV_SCHED, .flags = NPS_F_OPEN, .tid = tid, .ret = (int32_t)st->waker
	};
	struct place place;

	e.pid = since && since < s->end ? process_of(tid) : 0;
	if (!e.pid || e.pid == (uint32_t)getpid()) /* that is the calibration's */
		return;
	place = place_of(tid);
	e.start = st->on ? st->on : s->end;
	e.dur = s->end - e.start;
	e.args[0] = st->off;
	e.args[1] = st->runnable < e.start ? st->runnable : 0;
	e.args[2] = place.cpu;
	e.args[3] = (uint64_t)place.prio << 32;
	/* Nobody woke it: it sleeps, unless it was preempted. */
	if (!e.args[1] && !st->on && place.state != 'R')
		e.args[1] = s->end;
	keep(s, &e);
}

/* The kernel side's map of what threads do; NULL if it keeps that elsewhere. */
static struct bpf_map *sched_map(struct nps_kernel_side *k)
{
	struct bpf_map *map = nps_kernel_side__sched_map(k, "scheds");

	if (map && bpf_map__value_size(map) == sizeof(struct nps_thread) &&
	    bpf_map__key_size(map) == sizeof(uint32_t))
		return map;
	nps_debug("the last stretches of threads are not known: the kernel side keeps them elsewhere");
	return NULL;
}

void nps_open_slices__collect(struct nps_open_slices *s, struct nps_kernel_side *k)
{
	struct bpf_map *map = sched_map(k);
	uint32_t tid, *last = NULL;
	struct nps_thread st;

	while (map && !bpf_map_get_next_key(bpf_map__fd(map), last, &tid)) {
		last = &tid;
		if (!bpf_map_lookup_elem(bpf_map__fd(map), &tid, &st))
			add(s, tid, &st);
	}
}

/* Whether the thread runs now and has used as much CPU as one must have that ran for LENGTH ns, or nearly: a guest's clock stops. */
static bool has_run_for(uint32_t tid, uint64_t length)
{
	char text[128];

	return place_of(tid).state == 'R' && read_file("/proc/%u/schedstat", tid, text, sizeof(text)) &&
	       strtoull(text, NULL, 10) >= length / 2;
}

void nps_open_slices__collect_unseen(struct nps_open_slices *s, struct nps_kernel_side *k, pid_t pid)
{
	struct bpf_map *map = sched_map(k);
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = map && s->begin < s->end ? opendir(path) : NULL;
	while (dir && (entry = readdir(dir))) {
		uint32_t tid = strtoul(entry->d_name, NULL, 10);
		struct nps_thread st;

		if (!tid || !bpf_map_lookup_elem(bpf_map__fd(map), &tid, &st) ||
		    !has_run_for(tid, s->end - s->begin))
			continue;
		st = (struct nps_thread){ .on = s->begin };
		add(s, tid, &st);
	}
	if (dir)
		closedir(dir);
}

void nps_open_slices__write(struct nps_open_slices *s, struct nps_reader *reader)
{
	if (s->lost)
		nps_warn("the last stretches of %zu threads are lost: no memory", s->lost);
	nps_reader__append(reader, s->events, s->n);
	free(s->events);
	*s = (struct nps_open_slices){ 0 };
}
