/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides who can change what a path leads to. Components are checked from the root on. No other user can
 * change the entries of a trusted directory afterwards, so there is no race with a later open.
 */
#include "worker.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_LINKS 40 /* as the kernel */

/* LAST: ST is of the end of the path. */
static bool inode_trusted(const struct stat *st, const struct worker_trust *trust, bool last)
{
	bool owned = st->st_uid == 0;
	mode_t others = S_IWOTH;

	for (size_t i = 0; i < sizeof(trust->owners) / sizeof(*trust->owners); i++)
		owned |= st->st_uid == trust->owners[i];
	if (!owned)
		return false;
	if (S_ISLNK(st->st_mode)) /* has no mode of its own */
		return true;
	if (trust->sticky && !last && S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX)
		return true;
	if (!trust->by_group || st->st_gid != trust->group)
		others |= S_IWGRP;
	return !(st->st_mode & others);
}

/* Moves the first component of REST to the end of DONE. False: DONE is full. */
static bool path_step(char *done, char *rest)
{
	size_t skip = strspn(rest, "/"), len = strcspn(rest + skip, "/"), have = strlen(done);
	const char *name = rest + skip;

	if (len == 2 && !memcmp(name, "..", 2)) {
		char *last = strrchr(done, '/');

		if (last)
			*last = '\0';
	} else if (len && !(len == 1 && *name == '.')) {
		if (have + len + 2 > PATH_MAX)
			return false;
		done[have] = '/';
		memcpy(done + have + 1, name, len);
		done[have + len + 1] = '\0';
	}
	memmove(rest, rest + skip + len, strlen(rest + skip + len) + 1);
	return true;
}

/* DONE is a symbolic link: puts its target before REST. False: it cannot be read, or is too long. */
static bool path_follow_link(char *done, char *rest)
{
	char target[PATH_MAX], joined[PATH_MAX];
	ssize_t n = readlink(done, target, sizeof(target) - 1);
	char *last = strrchr(done, '/');

	if (n <= 0 || !last)
		return false;
	target[n] = '\0';
	if (snprintf(joined, sizeof(joined), "%s%s", target, rest) >= (int)sizeof(joined))
		return false;
	memcpy(rest, joined, strlen(joined) + 1);
	if (target[0] == '/')
		*done = '\0';
	else
		*last = '\0';
	return true;
}

bool worker_path_trusted(const char *path, const struct worker_trust *trust)
{
	char done[PATH_MAX] = "", rest[PATH_MAX];
	int links = 0;
	struct stat st;

	if (path[0] != '/' || snprintf(rest, sizeof(rest), "%s", path) >= (int)sizeof(rest))
		return false;
	if (lstat("/", &st) || !inode_trusted(&st, trust, false))
		return false;
	while (rest[0]) {
		if (!path_step(done, rest) || lstat(*done ? done : "/", &st) ||
		    !inode_trusted(&st, trust, !rest[strspn(rest, "/")]))
			return false;
		if (!S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode) && rest[0])
			return false; /* ENOTDIR */
		if (S_ISLNK(st.st_mode) && (++links > MOST_LINKS || !path_follow_link(done, rest)))
			return false;
	}
	return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}
