/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/own_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int nps_own_file__find(const char *name, char *path, size_t size)
{
	static const char *const dirs[] = { "", "../lib/npuscope/" };
	char exe[PATH_MAX], candidate[PATH_MAX + 128], real[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	if (n < 0)
		return -errno;
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	if (!slash)
		return -ENOENT;
	slash[1] = '\0';
	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
		snprintf(candidate, sizeof(candidate), "%s%s%s", exe, dirs[i], name);
		if (realpath(candidate, real) && access(real, R_OK) == 0)
			return snprintf(path, size, "%s", real) < (int)size ? 0 : -ENAMETOOLONG;
	}
	return -ENOENT;
}
