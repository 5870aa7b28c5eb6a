/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/output_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT 200 /* bytes of a result's name in the temporary one's, whose length file systems limit */

/* A directory on NFS, for example: other analyses do not remove such a one. */
static bool cannot_be_locked(int err)
{
	return err == EBADF || err == ENOLCK || err == EOPNOTSUPP || err == ENOSYS;
}

/* Opens and locks the new directory, which another analysis may have removed meanwhile. */
static int claim(struct nps_output_dir *dir)
{
	struct stat st;
	int err = 0;

	dir->fd = openat(dir->parent, dir->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir->fd < 0)
		return -errno;
	if ((flock(dir->fd, LOCK_EX | LOCK_NB) && !cannot_be_locked(errno)) || fchmod(dir->fd, 0750) ||
	    fstat(dir->fd, &st))
		err = -errno;
	else if (!st.st_nlink)
		err = -ENOENT;
	if (err) {
		close(dir->fd);
		dir->fd = -1;
	}
	return err;
}

int nps_output_dir__open(struct nps_output_dir *dir, int parent, const char *name)
{
	*dir = (struct nps_output_dir){ .parent = parent, .fd = -1 };
	snprintf(dir->name, sizeof(dir->name), "%s", name);
	dir->note.dirfd = -1;
	for (unsigned int try = 0; try < 100; try++) {
		int err;

		snprintf(dir->temp, sizeof(dir->temp),
			 NPS_UNFINISHED_PREFIX "%.*s@%s.%d.%u" NPS_UNFINISHED_SUFFIX, KEPT, dir->name,
			 nps_unfinished__host(), (int)getpid(), try);
		err = mkdirat(parent, dir->temp, 0750) ? -errno : claim(dir);
		if (!err) {
			nps_unfinished__note(&dir->note, parent, dir->temp);
			return 0;
		}
		if (err != -EEXIST)
			unlinkat(parent, dir->temp, AT_REMOVEDIR);
		if (err != -EEXIST && err != -ENOENT && err != -EWOULDBLOCK)
			return err;
	}
	return -EEXIST;
}

/* FROM in FROMDIR becomes NAME in PARENT; what had that name becomes FROM, or OLD. */
static int exchange(int fromdir, const char *from, int parent, const char *name, const char *old)
{
	int err;

	if (!renameat2(fromdir, from, parent, name, RENAME_EXCHANGE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* NFS and others cannot do that in one step. */
	nps_remove_tree(parent, old);
	if (renameat(parent, name, parent, old))
		return -errno;
	if (!renameat(fromdir, from, parent, name))
		return 0;
	err = -errno;
	renameat(parent, old, parent, name);
	return err;
}

static int move(int fromdir, const char *from, int parent, const char *name)
{
	char old[KEPT + 8];
	int err = renameat(fromdir, from, parent, name) ? -errno : 0;

	snprintf(old, sizeof(old), ".%.*s.old", KEPT, name);
	if (err == -ENOTEMPTY || err == -EEXIST)
		err = exchange(fromdir, from, parent, name, old);
	if (err)
		return err;
	nps_remove_tree(parent, old); /* also that of a writer which was killed after its first step */
	return 0;
}

int nps_output_dir__commit(struct nps_output_dir *dir)
{
	int err = move(dir->parent, dir->temp, dir->parent, dir->name);

	nps_remove_tree(dir->parent, dir->temp); /* if it failed, or the old one */
	nps_unfinished__done(&dir->note);
	close(dir->fd);
	dir->fd = -1;
	return err;
}

int nps_output_dir__commit_entries(struct nps_output_dir *dir)
{
	struct dirent **entries;
	int n = scandirat(dir->parent, dir->temp, &entries, NULL, alphasort), err = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;

		if (!err && strcmp(name, ".") && strcmp(name, ".."))
			err = move(dir->fd, name, dir->parent, name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	nps_output_dir__abort(dir);
	return err;
}

void nps_output_dir__abort(struct nps_output_dir *dir)
{
	if (dir->fd >= 0)
		close(dir->fd);
	dir->fd = -1;
	nps_remove_tree(dir->parent, dir->temp);
	nps_unfinished__done(&dir->note);
}
