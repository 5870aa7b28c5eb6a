/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/unfinished.h"

#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define DEPTH 8
#define MAGIC "npuscope unfinished 1"
#define MOST_NOTES 256 /* of one input */
#define OLD (30L * 86400) /* s */
#define ELSEWHERE_S 86400 /* what other hosts began is left alone for so long */

static uint64_t input_hash; /* of the path of what is analysed */

/* --- removing, also by a process that has no memory left ------------------------------------------ */

struct unfinished_dir { /* struct linux_dirent64 */
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};

static void remove_entries(int fd, int depth);

static void remove_at(int parent, const char *name, int depth)
{
	int fd = depth ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

	if (fd < 0) {
		unlinkat(parent, name, 0);
		return;
	}
	remove_entries(fd, depth - 1);
	close(fd);
	unlinkat(parent, name, AT_REMOVEDIR);
}

static void remove_entries(int fd, int depth)
{
	_Alignas(struct unfinished_dir) char buf[2048];
	long len;

	while ((len = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < len;) {
			const struct unfinished_dir *entry = (const struct unfinished_dir *)(buf + at);

			at += entry->len;
			if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
				continue;
			if (unlinkat(fd, entry->name, 0) && (errno == EISDIR || errno == EPERM))
				remove_at(fd, entry->name, depth);
		}
	}
}

void nps_remove_tree(int parent, const char *name)
{
	struct stat st;

	for (int try = 0; try < 3 && !fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW); try++)
		remove_at(parent, name, DEPTH);
}

/* --- what is unfinished --------------------------------------------------------------------------- */

/* TEXT from AT on is `.<number>.<number>.tmp`. */
static bool ends_as_ours(const char *text)
{
	for (int i = 0; i < 2; i++) {
		if (*text++ != '.' || !strspn(text, "0123456789"))
			return false;
		text += strspn(text, "0123456789");
	}
	return !strcmp(text, NPS_UNFINISHED_SUFFIX);
}

/* .npuscope-NAME.PID.N.tmp */
static bool is_our_name(const char *name)
{
	if (strncmp(name, NPS_UNFINISHED_PREFIX, strlen(NPS_UNFINISHED_PREFIX)))
		return false;
	for (const char *dot = name + strlen(NPS_UNFINISHED_PREFIX); (dot = strchr(dot, '.')); dot++)
		if (ends_as_ours(dot))
			return true;
	return false;
}

/* A temporary file, where the file system has no O_TMPFILE: its maker unlinks it at once. */
static bool is_our_file(const char *name)
{
	static const char prefix[] = ".npuscope";

	return !strncmp(name, prefix, strlen(prefix)) && ends_as_ours(name + strlen(prefix));
}

const char *nps_unfinished__host(void)
{
	static _Thread_local char mark[9];
	struct utsname uts;

	if (!mark[0])
		snprintf(mark, sizeof(mark), "%08lx",
			 uname(&uts) ? 0UL
				     : crc32(0, (const Bytef *)uts.nodename, (uInt)strlen(uts.nodename)));
	return mark;
}

/* NAME ends in @HOST.PID.N.tmp */
static bool is_of_this_host(const char *name)
{
	const char *at = strrchr(name, '@');

	return at && !strncmp(at + 1, nps_unfinished__host(), 8) && ends_as_ours(at + 9);
}

/*
 * A writer holds a lock on its directory as long as it lives, whatever its PID namespace and even if it is
 * stopped. Where directories cannot be locked, the directory stays. Some file systems that several hosts
 * share do not show the locks of another host, so what another host began stays for a day.
 */
void nps_unfinished__remove(int parent, const char *name)
{
	struct stat locked, named;
	int fd;

	if (!is_our_name(name))
		return;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &locked) &&
	    !fstatat(parent, name, &named, AT_SYMLINK_NOFOLLOW) && named.st_dev == locked.st_dev &&
	    named.st_ino == locked.st_ino && locked.st_uid == geteuid() &&
	    (is_of_this_host(name) || locked.st_mtime < time(NULL) - ELSEWHERE_S))
		nps_remove_tree(parent, name);
	close(fd);
}

static void remove_file(int parent, const char *name)
{
	struct stat st;

	if (is_our_file(name) && !fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	    st.st_uid == geteuid())
		unlinkat(parent, name, 0);
}

static void remove_all(int output)
{
	int fd = openat(output, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		nps_unfinished__remove(output, entry->d_name);
		remove_file(output, entry->d_name);
	}
	closedir(dir);
}

/* --- notes ---------------------------------------------------------------------------------------- */

/* NAME in PARENT, which is closed: made if need be. */
static int directory_enter(int parent, const char *name)
{
	int fd = -1;

	if (parent >= 0 && (!mkdirat(parent, name, 0700) || errno == EEXIST))
		fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent >= 0)
		close(parent);
	return fd;
}

/* A directory of this user that nobody else can write, or -1. */
static int own(int fd)
{
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 022)))
		return fd;
	close(fd);
	return -1;
}

/* The directory of the notes, or -1. Under sudo HOME may be another user's: nothing is made there. */
static int open_notes(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int fd;

	if (state && *state == '/') {
		fd = own(open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	} else {
		fd = home && *home == '/' ? own(open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) : -1;
		fd = directory_enter(directory_enter(fd, ".local"), "state");
	}
	return own(directory_enter(own(directory_enter(fd, "npuscope")), "unfinished"));
}

/* Is the file NAME in DIRFD so old that the directory it is about will not come back? */
static bool is_old(int dirfd, const char *name)
{
	struct stat st;

	return !fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) && time(NULL) - st.st_mtime > OLD;
}

/* Removes the directory that the note NAME names, and the note once that does not exist any more. */
static void follow_note(int notes, const char *name)
{
	char text[2 * PATH_MAX] = "", temp[NAME_MAX + 1];
	int fd = openat(notes, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), parent, at = 0;
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	struct stat st;

	if (fd >= 0)
		close(fd);
	text[len < 0 ? 0 : len] = 0;
	if (sscanf(text, MAGIC "\n%255[^\n]\n%n", temp, &at) != 1 || text[at] != '/') {
		if (len > 0)
			unlinkat(notes, name, 0);
		return; /* an empty one is being written */
	}
	parent = open(text + at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent >= 0)
		nps_unfinished__remove(parent, temp);
	/* Without its directory, that may be on a disk that is not there now. */
	if (parent < 0 ? errno == ENOENT && is_old(notes, name)
		       : fstatat(parent, temp, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT)
		unlinkat(notes, name, 0);
	if (parent >= 0)
		close(parent);
}

static void follow_notes(void)
{
	int notes = open_notes(),
	    copy = notes < 0 ? -1 : openat(notes, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "%016" PRIx64 ".", input_hash);
	for (int n = 0; dir && n < MOST_NOTES && (entry = readdir(dir));) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)))
			continue;
		follow_note(notes, entry->d_name);
		n++;
	}
	if (dir)
		closedir(dir);
	else if (copy >= 0)
		close(copy);
	if (notes >= 0)
		close(notes);
}

void nps_unfinished__begin(const char *input, int output, const char *const *below)
{
	char path[PATH_MAX];
	int fd;

	input = realpath(input, path) ? path : input;
	input_hash = nps_hash_bytes(input, strlen(input));
	remove_all(output);
	for (; *below; below++) {
		fd = openat(output, *below, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		remove_all(fd);
		close(fd);
	}
	follow_notes();
}

void nps_unfinished__note(struct nps_unfinished *note, int parent, const char *temp)
{
	char link[64], path[PATH_MAX], text[2 * PATH_MAX];
	struct stat st;
	ssize_t len;
	int fd, n;

	*note = (struct nps_unfinished){ .dirfd = -1 };
	snprintf(link, sizeof(link), "/proc/self/fd/%d", parent);
	len = readlink(link, path, sizeof(path) - 1);
	if (len <= 0 || fstatat(parent, temp, &st, AT_SYMLINK_NOFOLLOW))
		return;
	path[len] = 0;
	note->dirfd = open_notes();
	if (note->dirfd < 0)
		return;
	n = snprintf(text, sizeof(text), MAGIC "\n%s\n%s", temp, path);
	/* By its text: the number of an inode may come again, here or on another disk. */
	snprintf(note->name, sizeof(note->name), "%016" PRIx64 ".%016" PRIx64, input_hash,
		 nps_hash_bytes(text, n));
	fd = openat(note->dirfd, note->name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, n) != n)
		unlinkat(note->dirfd, note->name, 0); /* then only the output directory leads to it */
	if (fd >= 0)
		close(fd);
}

void nps_unfinished__done(struct nps_unfinished *note)
{
	if (note->dirfd < 0)
		return;
	unlinkat(note->dirfd, note->name, 0);
	close(note->dirfd);
	note->dirfd = -1;
}
