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

/* There is a result of that name: they change places, then the temporary name is the old one's. */
static int replace(const struct nps_output_dir *dir)
{
	char old[sizeof(dir->temp) + 4];

	if (!renameat2(dir->parent, dir->temp, dir->parent, dir->name, RENAME_EXCHANGE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* NFS and others cannot do that in one step. */
	snprintf(old, sizeof(old), "%s.old", dir->temp);
	if (renameat(dir->parent, dir->name, dir->parent, old))
		return -errno;
	if (renameat(dir->parent, dir->temp, dir->parent, dir->name)) {
		int err = -errno;

		renameat(dir->parent, old, dir->parent, dir->name);
		return err;
	}
	remove_tree(dir->parent, old, DEPTH);
	return 0;
}

int nps_output_dir__commit(struct nps_output_dir *dir)
{
	int err = renameat(dir->parent, dir->temp, dir->parent, dir->name) ? -errno : 0;

	if (err) {
		if (err == -ENOTEMPTY || err == -EEXIST)
			err = replace(dir);
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
