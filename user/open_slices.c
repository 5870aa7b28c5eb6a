/* SPDX-License-Identifier: BSD-2-Clause */
#include "open_slices.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "event.h"
#include "log.h"

/* As bpf/sched.bpf.c keeps it. */
struct sched_state {
	uint64_t on, off, runnable;
	uint32_t waker;
};

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

/* False: it left the CPU, or came to be, after the end. */
static bool make_event(uint32_t tid, const struct sched_state *st, uint64_t end, struct nps_event *e)
{
	uint64_t since = st->on ? st->on : st->off;
	struct place place;

	*e = (struct nps_event){
		.kind = NPS_EV_SCHED, .flags = NPS_F_OPEN, .tid = tid, .ret = (int32_t)st->waker
	};
	e->pid = since && since < end ? process_of(tid) : 0;
	if (!e->pid)
		return false;
	place = place_of(tid);
	e->start = st->on ? st->on : end;
	e->dur = end - e->start;
	e->args[0] = st->off;
	e->args[1] = st->runnable < e->start ? st->runnable : 0;
	e->args[2] = place.cpu;
	e->args[3] = (uint64_t)place.prio << 32;
	/* Nobody woke it: it sleeps, unless it was preempted. */
	if (!e->args[1] && !st->on && place.state != 'R')
		e->args[1] = end;
	return true;
}

void nps_open_slices__write(struct nps_kernel_side *k, struct nps_reader *reader, uint64_t end)
{
	struct bpf_map *map = nps_kernel_side__sched_map(k, "scheds");
	uint32_t tid, *last = NULL;
	struct sched_state st;
	struct nps_event e;

	if (!map || bpf_map__value_size(map) != sizeof(st) || bpf_map__key_size(map) != sizeof(tid)) {
		nps_debug(
			"the last stretches of threads are not known: the kernel side keeps them elsewhere");
		return;
	}
	while (!bpf_map_get_next_key(bpf_map__fd(map), last, &tid)) {
		last = &tid;
		if (!bpf_map_lookup_elem(bpf_map__fd(map), &tid, &st) && make_event(tid, &st, end, &e))
			nps_reader__append(reader, &e, 1);
	}
}
