/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/input_file.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRIES 32 /* of a path while somebody renames or mounts */
#define NAMED 64 /* files that are named; the others are only counted */

/*
 * The calls that open input are many layers below the code that knows the exit status, and share nothing
 * with each other but the process.
 */
static struct {
	pthread_mutex_t lock;
	uint64_t names[NAMED]; /* hashes of paths that were reported */
	bool counted[NAMED]; /* of this input */
	size_t n, searched; /* searched: of these, those of the search for inputs */
	uint64_t count; /* since the last look */
	bool reported_more, begun;
} unreadable = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The path of FD, "" if it is not known. */
static void fd_path(int fd, char *path, size_t size)
{
	char link[64];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, size - 1);
	path[len < 0 ? 0 : len] = 0;
}

static void input_report(const char *path, const char *why)
{
	uint64_t hash = nps_hash_bytes(path, strlen(path));
	bool name, more;
	size_t i = 0;

	pthread_mutex_lock(&unreadable.lock);
	while (i < unreadable.n && unreadable.names[i] != hash)
		i++;
	name = i == unreadable.n && i < NAMED;
	more = i == NAMED && !unreadable.reported_more;
	if (name)
		unreadable.names[unreadable.n++] = hash;
	unreadable.reported_more |= more;
	unreadable.count += i == NAMED || !unreadable.counted[i];
	if (i < NAMED)
		unreadable.counted[i] = true;
	pthread_mutex_unlock(&unreadable.lock);
	if (name)
		nps_msg("cannot read %s: %s: the result is without it", path, why);
	else if (more)
		nps_msg("cannot read %s: %s: the result is without it and others that are not named", path,
			why);
}

void nps_input__unusable(int dirfd, const char *name, const char *why)
{
	char path[2 * PATH_MAX] = "";

	if (dirfd >= 0 && name[0] != '/')
		fd_path(dirfd, path, PATH_MAX);
	if (*path && strcmp(name, ".") != 0)
		strcat(path, "/");
	if (!*path || strcmp(name, ".") != 0)
		strncat(path, name, PATH_MAX - 2);
	input_report(path, why);
}

void nps_input__unreadable(int dirfd, const char *name, int err)
{
	nps_input__unusable(dirfd, name, strerror(-err));
}

void nps_input__unreadable_fd(int fd, int err)
{
	char path[PATH_MAX];

	fd_path(fd, path, sizeof(path));
	input_report(path, strerror(-err));
}

void nps_input__begin(void)
{
	pthread_mutex_lock(&unreadable.lock);
	if (!unreadable.begun)
		unreadable.searched = unreadable.n;
	unreadable.begun = true;
	unreadable.n = unreadable.searched;
	unreadable.reported_more = false;
	memset(unreadable.counted, 0, sizeof(unreadable.counted));
	pthread_mutex_unlock(&unreadable.lock);
}

uint64_t nps_input__drain_unreadable(void)
{
	uint64_t count;

	pthread_mutex_lock(&unreadable.lock);
	count = unreadable.count;
	unreadable.count = 0;
	pthread_mutex_unlock(&unreadable.lock);
	return count;
}

/* Why NAME, which could not be opened because of ERR, is to be reported; 0: it is not there. */
static int reason(int dirfd, const char *name, int err)
{
	struct stat st;

	if (err != -ENOENT)
		return err;
	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) ? 0 : -ENOENT; /* a link to nothing */
}

static int open_failed(int dirfd, const char *name, int err)
{
	int why = reason(dirfd, name, err);

	if (why)
		nps_input__unreadable(dirfd, name, why);
	return err;
}

/*
 * Opening a device can have effects, so the type is checked before open(), and again after it, as the file
 * may have been exchanged.
 */
int nps_input_file__open(int dirfd, const char *name, struct stat *st)
{
	struct stat own = { 0 };
	int fd, err;
	char byte;

	st = st ? st : &own;
	if (fstatat(dirfd, name, st, 0))
		return open_failed(dirfd, name, -errno);
	if (!S_ISREG(st->st_mode))
		return open_failed(dirfd, name, S_ISDIR(st->st_mode) ? -EISDIR : -EINVAL);
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return open_failed(dirfd, name, -errno);
	err = fstat(fd, st) ? -errno : S_ISREG(st->st_mode) ? 0 : -EINVAL;
	/* Files of /proc are regular and have no size; what cannot be read of one is not empty. */
	if (!err && !st->st_size && pread(fd, &byte, 1, 0) < 0)
		err = -errno;
	if (err) {
		close(fd);
		return open_failed(dirfd, name, err);
	}
	return fd;
}

/* From a mere handle, which this closes, to a file that can be read. */
static int reopen_regular(int handle)
{
	char path[64];
	struct stat st;
	int fd;

	if (fstat(handle, &st))
		fd = -errno;
	else if (!S_ISREG(st.st_mode))
		fd = -EINVAL;
	else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		fd = fd < 0 ? -errno : fd;
	}
	close(handle);
	return fd;
}

/*
 * A handle of PATH in DIR, or -1 with errno. EAGAIN is no lasting error: a rename or a mount anywhere
 * causes it while ".." is followed.
 */
static int open_inside(int dir, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int handle = -1;

	for (int i = 0; i < TRIES && handle < 0; i++) {
		handle = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
		if (handle < 0 && errno != EAGAIN)
			break;
	}
	return handle;
}

int nps_input_file__open_in(const char *root, const char *path)
{
	int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), handle;

	if (dir < 0)
		return -errno;
	while (*path == '/')
		path++;
	handle = open_inside(dir, path);
	if (handle < 0 &&
	    (errno == ENOSYS || errno == EPERM)) /* before 5.6, or a filter that does not know it */
		handle = openat(dir, path, O_PATH | O_CLOEXEC);
	handle = handle < 0 ? -errno : handle;
	close(dir);
	return handle < 0 ? handle : reopen_regular(handle);
}

int nps_input_file__open_link(const char *link)
{
	int handle = open(link, O_PATH | O_CLOEXEC);

	return handle < 0 ? -errno : reopen_regular(handle);
}

int nps_input_dir__open(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? open_failed(dirfd, name, -errno) : fd;
}

DIR *nps_input_dir__list(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		return dir;
	nps_input__unreadable(dirfd, ".", -errno);
	if (fd >= 0)
		close(fd);
	return NULL;
}

struct dirent *nps_input_dir__next(DIR *dir)
{
	struct dirent *entry;

	errno = 0;
	entry = readdir(dir);
	if (!entry && errno)
		nps_input__unreadable_fd(dirfd(dir), -errno);
	return entry;
}

bool nps_input__stat(const char *path, struct stat *st)
{
	if (!stat(path, st))
		return true;
	if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
		nps_input__unreadable(AT_FDCWD, path, -errno);
	return false;
}

bool nps_input__exists(int dirfd, const char *name)
{
	struct stat st;

	if (!fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW))
		return true;
	if (errno != ENOENT)
		nps_input__unreadable(dirfd, name, -errno);
	return false;
}
