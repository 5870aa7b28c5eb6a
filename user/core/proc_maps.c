/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/open_below.h"
#include "core/work_budget.h"

#define LINES 256 /* lines between two reads of the clock */

const char *nps_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int maps_add(struct nps_maps *maps, const struct nps_mapping *m, const char *path)
{
	struct nps_mapping *v;

	if ((maps->n & (maps->n - 1)) == 0) {
		v = realloc(maps->v, (maps->n ? 2 * maps->n : 1) * sizeof(*v));
		if (!v)
			return -ENOMEM;
		maps->v = v;
	}
	v = &maps->v[maps->n];
	*v = *m;
	v->path = strdup(path);
	if (!v->path)
		return -ENOMEM;
	maps->n++;
	maps->path_bytes += strlen(path) + 1;
	return 0;
}

static bool maps_parse_line(const char *line, struct nps_mapping *m, const char **path)
{
	unsigned int major, minor;
	char perms[8];
	int at = 0;

	memset(m, 0, sizeof(*m));
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &m->start, &m->end,
		   perms, &m->offset, &major, &minor, &m->ino, &at) < 7)
		return false;
	m->dev = makedev(major, minor);
	m->write = perms[1] == 'w';
	m->exec = perms[2] == 'x';
	m->shared = perms[3] == 's';
	*path = line + at;
	return true;
}

static int read_maps(pid_t pid, struct nps_maps *maps, bool all, struct nps_budget *budget)
{
	char name[64];
	int err;
	FILE *f;

	memset(maps, 0, sizeof(*maps));
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	err = nps_maps__parse(f, all, budget, maps);
	fclose(f);
	return err;
}

/* Is there room for one more? */
static bool maps_have_room(const struct nps_maps *maps, const char *path)
{
	return maps->n < NPS_BUDGET_MAPPINGS && maps->path_bytes + strlen(path) < NPS_BUDGET_PATHS;
}

int nps_maps__parse(FILE *f, bool all, struct nps_budget *budget, struct nps_maps *maps)
{
	char *line = NULL;
	size_t cap = 0, lines = 0;
	ssize_t n;
	int err = 0;

	memset(maps, 0, sizeof(*maps));
	while (!err && (n = getline(&line, &cap, f)) > 0) {
		struct nps_mapping m;
		const char *path;

		if (lines++ % LINES == LINES - 1 && nps_budget__spent(budget))
			err = -ETIME;
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (err || !maps_parse_line(line, &m, &path) || !(all || (m.ino && *path == '/')))
			continue;
		if (!maps_have_room(maps, path)) {
			maps->cut = true;
			break;
		}
		err = maps_add(maps, &m, *path ? path : "//anon");
	}
	if (maps->cut)
		nps_budget__leave_out(budget, NPS_LEFT_MAPPINGS);
	free(line);
	if (err)
		nps_maps__free(maps);
	return err;
}

int nps_maps__read(pid_t pid, struct nps_budget *budget, struct nps_maps *maps)
{
	return read_maps(pid, maps, false, budget);
}

int nps_maps__read_all(pid_t pid, struct nps_budget *budget, struct nps_maps *maps)
{
	return read_maps(pid, maps, true, budget);
}

void nps_maps__free(struct nps_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		free(maps->v[i].path);
	free(maps->v);
	memset(maps, 0, sizeof(*maps));
}

/* Reopens a file from an O_PATH descriptor, which this closes, for reading or with FLAGS. */
static int reopen(int handle, int flags)
{
	char path[32];
	struct stat st;
	int fd;

	if (fstat(handle, &st))
		fd = -errno;
	else if (!S_ISREG(st.st_mode))
		fd = -EINVAL;
	else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
		fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		fd = fd < 0 ? -errno : fd;
	}
	close(handle);
	return fd;
}

int nps_open_in_root(pid_t pid, const char *path)
{
	char name[32];
	int root, handle;

	snprintf(name, sizeof(name), pid ? "/proc/%d/root" : "/", pid);
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	handle = nps_open_below(root, path);
	close(root);
	return handle < 0 ? handle : reopen(handle, O_RDONLY);
}

/*
 * Is it the file of the mapping? File systems with anonymous devices (overlay, btrfs) may show another
 * device for the file than for the mapping; their major number is 0.
 */
static bool is_file_of(const struct stat *st, const struct nps_mapping *m)
{
	return st->st_ino == m->ino && (st->st_dev == m->dev || !major(st->st_dev) || !major(m->dev));
}

int nps_mapping__open(pid_t pid, const struct nps_mapping *m, int flags)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, m->start, m->end);
	fd = open(path, O_PATH | O_CLOEXEC);
	fd = fd < 0 ? -errno : reopen(fd, flags);
	if (fd >= 0 || fd == -EINVAL || (flags & O_ACCMODE) != O_RDONLY)
		return fd;
	fd = nps_open_in_root(pid, m->path);
	if (fd < 0)
		return fd;
	/* The name may lead to another file now. */
	if (fstat(fd, &st) || !is_file_of(&st, m)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}
