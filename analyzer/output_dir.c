/* SPDX-License-Identifier: BSD-2-Clause */
#include "output_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH 8

/* Removes NAME in PARENT and what is in it; symlinks are removed, not followed. */
static void remove_tree(int parent, const char *name, int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		unlinkat(parent, name, 0);
		return;
	}
	while (depth && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) && (errno == EISDIR || errno == EPERM))
			remove_tree(dirfd(dir), entry->d_name, depth - 1);
	}
	closedir(dir);
	unlinkat(parent, name, AT_REMOVEDIR);
}

int nps_output_dir__open(struct nps_output_dir *dir, int parent, const char *name)
{
	*dir = (struct nps_output_dir){ .parent = parent, .fd = -1 };
	snprintf(dir->name, sizeof(dir->name), "%s", name);
	for (unsigned int try = 0; try < 100; try++) {
		snprintf(dir->temp, sizeof(dir->temp), ".%s.%d.%u.tmp", dir->name, (int)getpid(), try);
		if (!mkdirat(parent, dir->temp, 0750))
			break;
		if (errno != EEXIST || try == 99)
			return -errno;
	}
	dir->fd = openat(parent, dir->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir->fd < 0 || fchmod(dir->fd, 0750)) {
		int err = -errno;

		nps_output_dir__abort(dir);
		return err;
	}
	return 0;
}

int nps_output_dir__commit(struct nps_output_dir *dir)
{
	int err = 0;

	if (renameat(dir->parent, dir->temp, dir->parent, dir->name)) {
		/* There is one already: change places, then the temporary name is the old one's. */
		if ((errno != ENOTEMPTY && errno != EEXIST) ||
		    renameat2(dir->parent, dir->temp, dir->parent, dir->name, RENAME_EXCHANGE))
			err = -errno;
		remove_tree(dir->parent, dir->temp, DEPTH);
	}
	close(dir->fd);
	dir->fd = -1;
	return err;
}

void nps_output_dir__abort(struct nps_output_dir *dir)
{
	if (dir->fd >= 0)
		close(dir->fd);
	dir->fd = -1;
	remove_tree(dir->parent, dir->temp, DEPTH);
}
