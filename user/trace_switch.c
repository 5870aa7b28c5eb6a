/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_switch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "session_writer.h"

const struct nps_trace_places nps_trace_places = { "/proc", "/run/npuscope" };

#define MOST 128 /* switches */
#define NAME_MAX_ 24 /* devD-tsT */
#define MOST_BYTES (MOST * 48) /* of a list */
#define LIST "trace_enable." /* and the process */
#define TURN_MS 10
#define TURNS 100 /* that another one's look at the lists is waited for */

static const char *const folders[NPS_TRACE_SYSTEMS] = {
	[NPS_TRACE_CHAN] = "trs_chan", [NPS_TRACE_CORE] = "trs_core/ts_inst"
};

struct one {
	enum nps_trace_system system;
	char device[NAME_MAX_];
};

struct set {
	struct one all[MOST];
	unsigned int n;
};

struct nps_trace_switch {
	struct nps_trace_places places;
	struct set mine;
	char list[32];
	int fd; /* of the list, locked */
};

/* Nothing that leads elsewhere: lists are files. */
static bool is_device(const char *name)
{
	unsigned int device, ts;
	char again[NAME_MAX_];

	if (sscanf(name, "dev%u-ts%u", &device, &ts) != 2)
		return false;
	snprintf(again, sizeof(again), "dev%u-ts%u", device, ts);
	return !strcmp(again, name);
}

static bool has(const struct set *s, const struct one *o)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (s->all[i].system == o->system && !strcmp(s->all[i].device, o->device))
			return true;
	return false;
}

static void add(struct set *s, enum nps_trace_system system, const char *device)
{
	struct one o = { .system = system };

	if (!is_device(device) || s->n == MOST)
		return;
	snprintf(o.device, sizeof(o.device), "%s", device);
	if (!has(s, &o))
		s->all[s->n++] = o;
}

/* --- the switches --- */

static int open_switch(const struct nps_trace_places *places, const struct one *o, int flags)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s/trace_enable", places->proc, folders[o->system], o->device);
	return open(path, flags | O_CLOEXEC | O_NOFOLLOW);
}

/* One that does not tell is taken for one that is off. */
static bool is_on(const struct nps_trace_places *places, const struct one *o)
{
	int fd = open_switch(places, o, O_RDONLY);
	char state = '0';

	if (fd >= 0 && read(fd, &state, 1) != 1)
		state = '0';
	if (fd >= 0)
		close(fd);
	return state == '1';
}

static int set_to(const struct nps_trace_places *places, const struct one *o, bool on)
{
	int fd = open_switch(places, o, O_WRONLY), err = 0;

	if (fd < 0)
		return -errno;
	/* The driver takes these two bytes, together. */
	if (write(fd, on ? "1\n" : "0\n", 2) != 2)
		err = -errno;
	close(fd);
	return err;
}

static void find(const struct nps_trace_places *places, enum nps_trace_system system, struct set *s)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", places->proc, folders[system]);
	d = opendir(path);
	while (d && (entry = readdir(d))) {
		struct one o = { .system = system };
		int fd;

		if (!is_device(entry->d_name))
			continue;
		snprintf(o.device, sizeof(o.device), "%.23s", entry->d_name);
		fd = open_switch(places, &o, O_RDONLY);
		if (fd < 0)
			continue;
		close(fd);
		add(s, system, entry->d_name);
	}
	if (d)
		closedir(d);
}

bool nps_trace_switch__there(const struct nps_trace_places *places, enum nps_trace_system system)
{
	struct set s = { .n = 0 };

	find(places, system, &s);
	return s.n;
}

/* --- the lists --- */

/* A folder of root's that nobody else can put anything into. */
static int make_folder(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	if (lstat(path, &st))
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EPERM;
}

/* One process at a time looks at the lists, and at what they are about. Returns what has to be closed, -errno. */
static int enter(const struct nps_trace_places *places)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/trace.lock", places->lists);
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

static void read_list(int fd, struct set *s)
{
	char text[MOST_BYTES + 1], *save, *line;
	ssize_t n = pread(fd, text, MOST_BYTES, 0);

	text[n > 0 ? n : 0] = '\0';
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned int system;
		char device[NAME_MAX_];

		if (sscanf(line, "%u %23s", &system, device) == 2 && system < NPS_TRACE_SYSTEMS)
			add(s, system, device);
	}
}

static int write_list(int fd, const struct set *s)
{
	char text[MOST_BYTES];
	size_t n = 0;

	for (unsigned int i = 0; i < s->n; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%d %s\n", (int)s->all[i].system,
				      s->all[i].device);
	return nps_write_all(fd, text, n);
}

struct lists {
	struct set living, dead;
	const char *own; /* of which neither is asked; NULL none */
};

/* What they hold; those of the dead can be forgotten meanwhile. */
static void read_lists(const struct nps_trace_places *places, struct lists *l, bool forget)
{
	DIR *d = opendir(places->lists);
	const struct dirent *entry;

	while (d && (entry = readdir(d))) {
		int fd;

		if (strncmp(entry->d_name, LIST, strlen(LIST)) != 0 ||
		    (l->own && !strcmp(entry->d_name, l->own)))
			continue;
		fd = openat(dirfd(d), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0)
			continue;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			read_list(fd, &l->living);
		} else {
			read_list(fd, &l->dead);
			if (forget)
				unlinkat(dirfd(d), entry->d_name, 0);
		}
		close(fd);
	}
	if (d)
		closedir(d);
}

/* What no living one has. Returns how many. */
static unsigned int switch_off(const struct nps_trace_places *places, const struct set *s,
			       const struct set *living)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->n; i++) {
		int err = has(living, &s->all[i]) ? -EBUSY : set_to(places, &s->all[i], false);

		n += !err;
		if (err && err != -EBUSY && err != -ENOENT)
			nps_warn("tracepoints of the NPU's driver stay on: %s/%s/%s/trace_enable: %s: write "
				 "0 there",
				 places->proc, folders[s->all[i].system], s->all[i].device, strerror(-err));
	}
	return n;
}

/* With the lists entered. Those of the dead go last: whoever is killed here leaves them. */
static void restore(const struct nps_trace_places *places, struct lists *l)
{
	read_lists(places, l, false);
	if (!l->dead.n)
		return;
	if (switch_off(places, &l->dead, &l->living))
		nps_info("tracepoints of the NPU's driver that a killed npuscope had left on are off again");
	read_lists(places, l, true);
}

void nps_trace_switch__restore(const struct nps_trace_places *places)
{
	struct lists lists = { .own = NULL };
	int lock = access(places->lists, F_OK) || make_folder(places->lists) ? -1 : enter(places);

	if (lock < 0)
		return;
	restore(places, &lists);
	close(lock);
}

/* Those that are off, or on for another capture. */
static void choose(struct nps_trace_switch *s, unsigned int systems, const struct set *living)
{
	struct set found = { .n = 0 };

	for (int system = 0; system < NPS_TRACE_SYSTEMS; system++)
		if (systems & 1U << system)
			find(&s->places, system, &found);
	for (unsigned int i = 0; i < found.n; i++)
		if (has(living, &found.all[i]) || !is_on(&s->places, &found.all[i]))
			add(&s->mine, found.all[i].system, found.all[i].device);
}

static int open_list(struct nps_trace_switch *s)
{
	char path[PATH_MAX];

	snprintf(s->list, sizeof(s->list), LIST "%d", (int)getpid());
	snprintf(path, sizeof(path), "%s/%s", s->places.lists, s->list);
	s->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->fd < 0 || flock(s->fd, LOCK_EX | LOCK_NB))
		return -errno;
	return 0;
}

static void forget(const struct nps_trace_switch *s)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", s->places.lists, s->list);
	unlink(path);
	close(s->fd);
}

/* The list first: one that is killed in between has listed what it did not do, which harms nobody. */
static int switch_on(struct nps_trace_switch *s, const struct set *living)
{
	int err = write_list(s->fd, &s->mine);

	for (unsigned int i = 0; i < s->mine.n && !err; i++)
		err = set_to(&s->places, &s->mine.all[i], true);
	if (err)
		switch_off(&s->places, &s->mine, living);
	return err;
}

/* With the lists entered. */
static int turn_on(struct nps_trace_switch *s, unsigned int systems)
{
	struct lists lists = { .own = NULL };
	int err;

	restore(&s->places, &lists);
	choose(s, systems, &lists.living);
	err = open_list(s);
	if (!err)
		err = switch_on(s, &lists.living);
	if (err && s->fd >= 0)
		forget(s);
	return err;
}

int nps_trace_switch__on(const struct nps_trace_places *places, unsigned int systems,
			 struct nps_trace_switch **out)
{
	struct nps_trace_switch *s = calloc(1, sizeof(*s));
	int lock, err;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->places = *places;
	s->fd = -1;
	err = make_folder(places->lists);
	lock = err ? err : enter(places);
	err = lock < 0 ? lock : turn_on(s, systems);
	if (lock >= 0)
		close(lock);
	if (err)
		free(s);
	else
		*out = s;
	return err;
}

void nps_trace_switch__off(struct nps_trace_switch *s)
{
	struct lists lists = { .own = NULL };
	int lock;

	if (!s)
		return;
	lists.own = s->list;
	lock = enter(&s->places);
	restore(&s->places, &lists);
	switch_off(&s->places, &s->mine, &lists.living);
	forget(s);
	if (lock >= 0)
		close(lock);
	free(s);
}
