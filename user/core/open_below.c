/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/open_below.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_DEPTH 64 /* directories below the root */
#define MAX_LINKS 40 /* the kernel's limit */

struct path_walk {
	int root, n;
	int fds[MAX_DEPTH]; /* descriptors of the components so far */
	char rest[PATH_MAX]; /* the part of the path that is not opened yet */
	int links;
};

static int walk_fd(const struct path_walk *w)
{
	return w->n ? w->fds[w->n - 1] : w->root;
}

static void ascend_to(struct path_walk *w, int n)
{
	while (w->n > n)
		close(w->fds[--w->n]);
}

/* Prepends the target of LINK to the rest of the path, which is empty or begins with a slash. */
static int follow(struct path_walk *w, int link)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(link, "", target, sizeof(target));
	size_t rest = strlen(w->rest);

	if (len < 0)
		return -errno;
	if (++w->links > MAX_LINKS)
		return -ELOOP;
	if (!len)
		return -ENOENT;
	if ((size_t)len + rest >= sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + len, w->rest, rest + 1);
	memcpy(w->rest, target, (size_t)len);
	if (target[0] == '/')
		ascend_to(w, 0);
	return 0;
}

/* Opens the next component, which may be a link. */
static int walk_enter(struct path_walk *w, const char *name)
{
	int fd = openat(walk_fd(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC), err = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (S_ISLNK(st.st_mode))
		err = follow(w, fd);
	else if (*w->rest && !S_ISDIR(st.st_mode))
		err = -ENOTDIR;
	else if (w->n == MAX_DEPTH)
		err = -ENAMETOOLONG;
	else
		w->fds[w->n++] = fd;
	if (!w->n || w->fds[w->n - 1] != fd)
		close(fd);
	return err;
}

/*
 * Removes the next component from the rest; false: there is none. A slash after it stays, because it
 * requires a directory.
 */
static bool next_component(struct path_walk *w, char name[NAME_MAX + 1], int *err)
{
	const char *from = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(from, "/");

	*err = len > NAME_MAX ? -ENAMETOOLONG : 0;
	if (!len || *err)
		return false;
	memcpy(name, from, len);
	name[len] = '\0';
	memmove(w->rest, from + len, strlen(from + len) + 1);
	return true;
}

int nps_open_below__walk(int root, const char *path)
{
	struct path_walk w = { .root = root };
	char name[NAME_MAX + 1];
	int err = 0, fd;

	if (!*path)
		return -ENOENT;
	if (strlen(path) >= sizeof(w.rest))
		return -ENAMETOOLONG;
	strcpy(w.rest, path);
	while (!err && next_component(&w, name, &err)) {
		if (!strcmp(name, ".."))
			ascend_to(&w, w.n ? w.n - 1 : 0);
		else if (strcmp(name, "."))
			err = walk_enter(&w, name);
	}
	fd = err ? err : fcntl(walk_fd(&w), F_DUPFD_CLOEXEC, 0);
	if (!err && fd < 0)
		fd = -errno;
	ascend_to(&w, 0);
	return fd;
}

int nps_open_below(int root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return nps_open_below__walk(root, path);
	return fd < 0 ? -errno : (int)fd;
}
