/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/driver/trace_switch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/log.h"
#include "core/run_directory.h"
#include "core/session_writer.h"

const struct nps_trace_paths nps_trace_paths = { "/proc", "/run/npuscope" };

#define MOST 128 /* switches */
#define NAME_MAX_ 24 /* devD-tsT */
#define MOST_BYTES (MOST * 48) /* of a list */
#define LIST "trace_enable." /* followed by the pid */
#define TURN_MS 10
#define TURNS 100 /* waits for another process that uses the lists */

static const char *const folders[NPS_TRACE_SYSTEMS] = {
	[NPS_TRACE_CHAN] = "trs_chan", [NPS_TRACE_CORE] = "trs_core/ts_inst"
};

struct one {
	enum nps_trace_system system;
	char device[NAME_MAX_];
};

struct trace_set {
	struct one all[MOST];
	unsigned int n;
};

struct nps_trace_switch {
	struct nps_trace_paths paths;
	struct trace_set mine;
	struct trace_set left; /* what a former process with this pid could not switch off */
	struct trace_set refused;
	int state[NPS_TRACE_SYSTEMS]; /* 0: some are on; else the reason why none is */
	char list[32];
	int fd; /* of the list, locked */
};

/* Accepts only names of devices, nothing that leads elsewhere. */
static bool is_device(const char *name)
{
	unsigned int device, ts;
	char again[NAME_MAX_];

	if (sscanf(name, "dev%u-ts%u", &device, &ts) != 2)
		return false;
	snprintf(again, sizeof(again), "dev%u-ts%u", device, ts);
	return !strcmp(again, name);
}

static bool set_has(const struct trace_set *s, const struct one *o)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (s->all[i].system == o->system && !strcmp(s->all[i].device, o->device))
			return true;
	return false;
}

static void set_add(struct trace_set *s, enum nps_trace_system system, const char *device)
{
	struct one o = { .system = system };

	if (!is_device(device) || s->n == MOST)
		return;
	snprintf(o.device, sizeof(o.device), "%s", device);
	if (!set_has(s, &o))
		s->all[s->n++] = o;
}

static void add_all(struct trace_set *s, const struct trace_set *others)
{
	for (unsigned int i = 0; i < others->n; i++)
		set_add(s, others->all[i].system, others->all[i].device);
}

/* --- the switches --- */

static int open_switch(const struct nps_trace_paths *paths, const struct one *o, int flags)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s/trace_enable", paths->proc, folders[o->system], o->device);
	return open(path, flags | O_CLOEXEC | O_NOFOLLOW);
}

/* One that cannot be read counts as off. */
static bool is_on(const struct nps_trace_paths *paths, const struct one *o)
{
	int fd = open_switch(paths, o, O_RDONLY);
	char state = '0';

	if (fd >= 0 && read(fd, &state, 1) != 1)
		state = '0';
	if (fd >= 0)
		close(fd);
	return state == '1';
}

static int set_to(const struct nps_trace_paths *paths, const struct one *o, bool on)
{
	int fd = open_switch(paths, o, O_WRONLY), err = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	/* The driver expects these two bytes in one write. */
	n = write(fd, on ? "1\n" : "0\n", 2);
	if (n != 2)
		err = n < 0 ? -errno : -EIO;
	close(fd);
	return err;
}

static void find(const struct nps_trace_paths *paths, enum nps_trace_system system, struct trace_set *s)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", paths->proc, folders[system]);
	d = opendir(path);
	while (d && (entry = readdir(d))) {
		struct one o = { .system = system };
		int fd;

		if (!is_device(entry->d_name))
			continue;
		snprintf(o.device, sizeof(o.device), "%.23s", entry->d_name);
		fd = open_switch(paths, &o, O_RDONLY);
		if (fd < 0)
			continue;
		close(fd);
		set_add(s, system, entry->d_name);
	}
	if (d)
		closedir(d);
}

bool nps_trace_switch__there(const struct nps_trace_paths *paths, enum nps_trace_system system)
{
	struct trace_set s = { .n = 0 };

	find(paths, system, &s);
	return s.n;
}

/* --- the lists --- */

/* Creates a folder of root's that no other user can write to. */
static int make_folder(const char *path)
{
	int fd = nps_run_directory__open(AT_FDCWD, path);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/*
 * Locks the lists and the switches in them: one process at a time. Returns a descriptor to close, or -errno.
 */
static int lists_enter(const struct nps_trace_paths *paths)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/trace.lock", paths->lists);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	for (int i = 0; i < TURNS; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		usleep(TURN_MS * 1000);
	}
	close(fd);
	return -EBUSY;
}

static void read_list(int fd, struct trace_set *s)
{
	char text[MOST_BYTES + 1], *save, *line;
	ssize_t n = pread(fd, text, MOST_BYTES, 0);

	text[n > 0 ? n : 0] = '\0';
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned int system;
		char device[NAME_MAX_];

		if (sscanf(line, "%u %23s", &system, device) == 2 && system < NPS_TRACE_SYSTEMS)
			set_add(s, system, device);
	}
}

static int write_list(int fd, const struct trace_set *s)
{
	char text[MOST_BYTES];
	size_t n = 0;
	int err;

	for (unsigned int i = 0; i < s->n; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%d %s\n", (int)s->all[i].system,
				      s->all[i].device);
	/* Truncated last: a process that is killed in between leaves a longer list, which does no harm. */
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	err = nps_write_all(fd, text, n);
	return !err && ftruncate(fd, (off_t)n) ? -errno : err;
}

struct lists {
	const struct nps_trace_paths *paths;
	struct trace_set living; /* switches in lists of live processes */
	struct trace_set left; /* switches in other lists that could not be switched off */
	unsigned int restored; /* number of those that could */
	const char *own; /* list that is skipped; NULL: none */
};

/* A switch that is being switched off by a thread of its own. */
struct turn {
	const struct nps_trace_paths *paths;
	const struct one *what;
	pthread_t thread;
	bool threaded, wanted;
	int err;
};

static void *turn_off(void *arg)
{
	struct turn *t = arg;

	t->err = set_to(t->paths, t->what, false);
	return NULL;
}

/*
 * Reports each once: lists of killed processes and our own can contain the same one, and are read at both
 * ends of a capture.
 */
static void report_on(const struct nps_trace_paths *paths, const struct one *o, int err)
{
	static struct trace_set reported;

	if (set_has(&reported, o))
		return;
	set_add(&reported, o->system, o->device);
	nps_warn("tracepoints of the NPU's driver stay on: %s/%s/%s/trace_enable: %s: write 0 there",
		 paths->proc, folders[o->system], o->device, strerror(-err));
}

/*
 * Switches off what no live process uses, all at the same time, so that a faulty device only blocks its own
 * thread. Returns how many; LEFT receives those that failed, of existing devices.
 */
static unsigned int set_switch_off(const struct nps_trace_paths *paths, const struct trace_set *s,
				   const struct trace_set *living, struct trace_set *left)
{
	struct turn turns[MOST];
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->n; i++) {
		struct turn *t = &turns[i];

		*t = (struct turn){ .paths = paths,
				    .what = &s->all[i],
				    .wanted = !set_has(living, &s->all[i]) };
		t->threaded = t->wanted && s->n > 1 && !pthread_create(&t->thread, NULL, turn_off, t);
	}
	for (unsigned int i = 0; i < s->n; i++)
		if (turns[i].wanted && !turns[i].threaded)
			turn_off(&turns[i]);
	for (unsigned int i = 0; i < s->n; i++) {
		const struct one *o = &s->all[i];

		if (turns[i].threaded)
			pthread_join(turns[i].thread, NULL);
		if (!turns[i].wanted)
			continue;
		n += !turns[i].err;
		if (!turns[i].err || turns[i].err == -ENOENT)
			continue;
		set_add(left, o->system, o->device);
		report_on(paths, o, turns[i].err);
	}
	return n;
}

static void read_living(struct lists *l, int dir, const char *name, int fd, bool held)
{
	(void)dir;
	(void)name;
	if (held)
		read_list(fd, &l->living);
}

/*
 * What cannot be switched off now is left to the next capture. The list is removed last, so a process that
 * is killed here leaves it.
 */
static void bury_dead(struct lists *l, int dir, const char *name, int fd, bool held)
{
	struct trace_set dead = { .n = 0 }, left = { .n = 0 };

	if (held)
		return;
	read_list(fd, &dead);
	l->restored += set_switch_off(l->paths, &dead, &l->living, &left);
	add_all(&l->left, &left);
	if (left.n)
		write_list(fd, &left);
	else
		unlinkat(dir, name, 0);
}

static void for_each_list(struct lists *l,
			  void (*each)(struct lists *l, int dir, const char *name, int fd, bool held))
{
	DIR *d = opendir(l->paths->lists);
	const struct dirent *entry;

	while (d && (entry = readdir(d))) {
		int fd;

		if (strncmp(entry->d_name, LIST, strlen(LIST)) != 0 ||
		    (l->own && !strcmp(entry->d_name, l->own)))
			continue;
		fd = openat(dirfd(d), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0)
			continue;
		each(l, dirfd(d), entry->d_name, fd, flock(fd, LOCK_EX | LOCK_NB));
		close(fd);
	}
	if (d)
		closedir(d);
}

/* The caller has locked the lists, and read those of live processes. */
static void bury(struct lists *l)
{
	for_each_list(l, bury_dead);
	if (l->restored)
		nps_info("tracepoints of the NPU's driver that another npuscope had left on are off again");
}

static void lists_restore(struct lists *l)
{
	for_each_list(l, read_living);
	bury(l);
}

void nps_trace_switch__restore(const struct nps_trace_paths *paths)
{
	struct lists lists = { .paths = paths };
	int lock = access(paths->lists, F_OK) || make_folder(paths->lists) ? -1 : lists_enter(paths);

	if (lock < 0)
		return;
	lists_restore(&lists);
	close(lock);
}

/*
 * Chooses switches that are off, or on for another capture, or that a killed capture left on and that could
 * not be switched off; what else is on stays so.
 */
static void switch_choose(struct nps_trace_switch *s, unsigned int systems, const struct lists *l)
{
	struct trace_set found = { .n = 0 };

	for (int system = 0; system < NPS_TRACE_SYSTEMS; system++) {
		s->state[system] = -ENOENT;
		if (systems & 1U << system)
			find(&s->paths, system, &found);
	}
	for (unsigned int i = 0; i < found.n; i++) {
		const struct one *o = &found.all[i];

		if (set_has(&l->living, o) || set_has(&l->left, o) || !is_on(&s->paths, o))
			set_add(&s->mine, o->system, o->device);
		else
			s->state[o->system] = 0;
	}
}

/* An existing list belongs to a dead process with the same pid: its remaining entries are kept. */
static int open_list(struct nps_trace_switch *s)
{
	char path[PATH_MAX];
	int err;

	snprintf(s->list, sizeof(s->list), LIST "%d", (int)getpid());
	snprintf(path, sizeof(path), "%s/%s", s->paths.lists, s->list);
	s->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->fd < 0)
		return -errno;
	if (flock(s->fd, LOCK_EX | LOCK_NB)) {
		err = -errno;
		close(s->fd);
		s->fd = -1;
		return err;
	}
	read_list(s->fd, &s->left);
	return 0;
}

/* The list is kept if anything is LEFT. */
static void close_list(const struct nps_trace_switch *s, const struct trace_set *left)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", s->paths.lists, s->list);
	if (left->n)
		write_list(s->fd, left);
	else
		unlink(path);
	close(s->fd);
}

static int list_all(const struct nps_trace_switch *s)
{
	struct trace_set all = s->mine;

	add_all(&all, &s->left);
	return write_list(s->fd, &all);
}

/* Reports devices that fail while others are on. */
static void report_switch_refused(const struct nps_trace_switch *s, int why)
{
	const struct one *first = &s->refused.all[0];
	char more[32] = "";

	if (s->refused.n > 1)
		snprintf(more, sizeof(more), " (and %u more)", s->refused.n - 1);
	nps_warn("tracepoints of the NPU's driver are silent for a device: %s/%s/%s/trace_enable%s: %s: what "
		 "they report of it is missing",
		 s->paths.proc, folders[first->system], first->device, more, strerror(-why));
}

/* Writes the list first: a process that is killed in between has listed too much, which does no harm. */
static int switch_turn_on(struct nps_trace_switch *s)
{
	const struct trace_set wanted = s->mine;
	int refused[MOST] = { 0 }, why = 0, err = list_all(s);

	s->mine.n = 0;
	for (unsigned int i = 0; i < wanted.n && !err; i++) {
		const struct one *o = &wanted.all[i];

		refused[i] = set_to(&s->paths, o, true);
		if (!refused[i])
			set_add(&s->mine, o->system, o->device);
		if (!refused[i] || s->state[o->system])
			s->state[o->system] = refused[i];
	}
	for (unsigned int i = 0; i < wanted.n && !err; i++) {
		const struct one *o = &wanted.all[i];

		if (!refused[i] || s->state[o->system])
			continue;
		why = why ? why : refused[i];
		set_add(&s->refused, o->system, o->device);
	}
	if (!err && s->mine.n < wanted.n)
		list_all(s);
	if (s->refused.n)
		report_switch_refused(s, why);
	return err;
}

/* The caller has locked the lists. */
static int turn_on(struct nps_trace_switch *s, unsigned int systems)
{
	struct lists lists = { .paths = &s->paths };
	int err;

	lists_restore(&lists);
	switch_choose(s, systems, &lists);
	err = open_list(s);
	if (err)
		return err;
	err = switch_turn_on(s);
	for (int system = 0; system < NPS_TRACE_SYSTEMS && !err; system++)
		if (systems & 1U << system && !s->state[system])
			return 0;
	close_list(s, &s->left);
	for (int system = 0; system < NPS_TRACE_SYSTEMS && !err; system++)
		err = systems & 1U << system ? s->state[system] : 0;
	return err ? err : -ENOENT;
}

int nps_trace_switch__on(const struct nps_trace_paths *paths, unsigned int systems,
			 struct nps_trace_switch **out)
{
	struct nps_trace_switch *s = calloc(1, sizeof(*s));
	int lock, err;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->paths = *paths;
	s->fd = -1;
	err = make_folder(paths->lists);
	lock = err ? err : lists_enter(paths);
	err = lock < 0 ? lock : turn_on(s, systems);
	if (lock >= 0)
		close(lock);
	if (err)
		free(s);
	else
		*out = s;
	return err;
}

int nps_trace_switch__state(const struct nps_trace_switch *s, enum nps_trace_system system)
{
	return s->state[system];
}

bool nps_trace_switch__refused(const struct nps_trace_switch *s)
{
	return s && s->refused.n;
}

void nps_trace_switch__off(struct nps_trace_switch *s)
{
	struct lists lists = { .own = NULL };
	struct trace_set left = { .n = 0 };
	int lock;

	if (!s)
		return;
	lists.paths = &s->paths;
	lists.own = s->list;
	lock = lists_enter(&s->paths);
	for_each_list(&lists, read_living);
	add_all(&s->mine, &s->left);
	set_switch_off(&s->paths, &s->mine, &lists.living, &left);
	close_list(s, &left);
	/*
	 * Other processes' switches last, because a faulty device can block this thread. Not while another
	 * process writes a list.
	 */
	if (lock >= 0) {
		bury(&lists);
		close(lock);
	}
	free(s);
}
