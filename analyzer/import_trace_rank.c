/* SPDX-License-Identifier: BSD-2-Clause */
#include "import_trace_rank.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_info(const char *name, uint32_t *rank)
{
	unsigned int number;
	int end = 0;

	if (sscanf(name, "profiler_info_%9u.json%n", &number, &end) != 1 || !end || name[end])
		return false;
	*rank = number;
	return true;
}

/* How many profiler_info_{rank}.json there are; *RANK: that of one of them. Closes DIRFD. */
static unsigned int count_infos(int dirfd, uint32_t *rank)
{
	DIR *dir = dirfd < 0 ? NULL : fdopendir(dirfd);
	const struct dirent *entry;
	unsigned int n = 0;

	if (!dir && dirfd >= 0)
		close(dirfd);
	while (dir && (entry = readdir(dir)))
		n += is_info(entry->d_name, rank);
	if (dir)
		closedir(dir);
	return n;
}

void nps_trace__find_rank(struct nps_model *m, const char *path)
{
	const char *slash = strrchr(path, '/');
	char beside[PATH_MAX];
	int fd, above;
	unsigned int n;

	snprintf(beside, sizeof(beside), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	fd = open(beside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	above = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	n = count_infos(fd, &m->rank);
	if (!n)
		n = count_infos(above, &m->rank);
	else if (above >= 0)
		close(above);
	m->has_rank = n == 1;
	m->rank = m->has_rank ? m->rank : 0;
}
