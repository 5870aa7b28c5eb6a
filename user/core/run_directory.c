/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE 0755

static int check(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	return (st.st_mode & 07777) != MODE && fchmod(fd, MODE) ? -errno : 0;
}

int nps_run_directory__open(int parent, const char *name)
{
	int fd, err;

	if (mkdirat(parent, name, MODE) && errno != EEXIST)
		return -errno;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
	err = check(fd);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}
