/* SPDX-License-Identifier: BSD-2-Clause */
#include "proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

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
	return 0;
}

static bool parse_line(const char *line, struct nps_mapping *m, const char **path)
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
	return m->ino && **path == '/';
}

int nps_maps__read(pid_t pid, struct nps_maps *maps)
{
	char name[64], *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int err = 0;
	FILE *f;

	memset(maps, 0, sizeof(*maps));
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!err && (n = getline(&line, &cap, f)) > 0) {
		struct nps_mapping m;
		const char *path;

		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (parse_line(line, &m, &path))
			err = maps_add(maps, &m, path);
	}
	free(line);
	fclose(f);
	if (err)
		nps_maps__free(maps);
	return err;
}

void nps_maps__free(struct nps_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		free(maps->v[i].path);
	free(maps->v);
	memset(maps, 0, sizeof(*maps));
}

int nps_mapping__open(pid_t pid, const struct nps_mapping *m, int flags)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, m->start, m->end);
	fd = open(path, flags | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (snprintf(path, sizeof(path), "/proc/%d/root%s", pid, m->path) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	/* The name may lead to another file by now. */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_ino != m->ino) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}
