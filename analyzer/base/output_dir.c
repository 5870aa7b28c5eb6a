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

#define DEPTH 8
#define KEPT 200 /* bytes of a name that its temporary one has: that must not be too long for a file system */

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

/* True if NAME is `.WHOSE.<pid>.<n>.tmp`. */
static bool is_temp_of(const char *name, const char *whose)
{
	size_t len = strnlen(whose, KEPT), all = strlen(name);

	return name[0] == '.' && !strncmp(name + 1, whose, len) && name[1 + len] == '.' && all > 4 &&
	       !strcmp(name + all - 4, ".tmp");
}

/* A writer holds a lock on its directory as long as it lives, whatever PID namespace it is in. */
static void remove_stale(const struct nps_output_dir *out)
{
	int fd = openat(out->parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		int old;

		if (!is_temp_of(entry->d_name, out->name))
			continue;
		old = openat(out->parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (old < 0)
			continue;
		if (!flock(old, LOCK_EX | LOCK_NB))
			remove_tree(out->parent, entry->d_name, DEPTH);
		close(old);
	}
	closedir(dir);
}

/* Opens and locks the new directory, which remove_stale() elsewhere may have taken away meanwhile. */
static int claim(struct nps_output_dir *dir)
{
	struct stat st;
	int err = 0;

	dir->fd = openat(dir->parent, dir->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir->fd < 0)
		return -errno;
	if (flock(dir->fd, LOCK_EX | LOCK_NB) || fchmod(dir->fd, 0750) || fstat(dir->fd, &st))
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
	remove_stale(dir);
	for (unsigned int try = 0; try < 100; try++) {
		int err;

		snprintf(dir->temp, sizeof(dir->temp), ".%.*s.%d.%u.tmp", KEPT, dir->name, (int)getpid(),
			 try);
		err = mkdirat(parent, dir->temp, 0750) ? -errno : claim(dir);
		if (!err)
			return 0;
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
	remove_tree(parent, old, DEPTH);
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
	if (!err)
		remove_tree(parent, old,
			    DEPTH); /* also that of a writer which was killed after its first step */
	return err;
}

int nps_output_dir__commit(struct nps_output_dir *dir)
{
	int err = move(dir->parent, dir->temp, dir->parent, dir->name);

	remove_tree(dir->parent, dir->temp, DEPTH); /* if it failed, or the old one */
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
	remove_tree(dir->parent, dir->temp, DEPTH);
}
