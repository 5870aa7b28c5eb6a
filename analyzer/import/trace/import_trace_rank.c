/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/trace/import_trace_rank.h"

#include "base/input_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_rank_info(const char *name, uint32_t *rank)
{
	unsigned int number;
	int end = 0;

	if (sscanf(name, "profiler_info_%9u.json%n", &number, &end) != 1 || !end || name[end])
		return false;
	*rank = number;
	return true;
}

/* The number of profiler_info_{rank}.json; *RANK: that of one of them. Closes DIRFD, which may be none. */
static unsigned int count_infos(int dirfd, uint32_t *rank)
{
	DIR *dir = dirfd < 0 ? NULL : nps_input_dir__list(dirfd);
	const struct dirent *entry;
	unsigned int n = 0;

	while (dir && (entry = nps_input_dir__next(dir)))
		n += is_rank_info(entry->d_name, rank);
	if (dir)
		closedir(dir);
	if (dirfd >= 0)
		close(dirfd);
	return n;
}

void nps_trace__find_rank(struct nps_model *m, const char *path)
{
	const char *slash = strrchr(path, '/');
	char beside[PATH_MAX];
	unsigned int n;
	int len;

	len = snprintf(beside, sizeof(beside) - 2, "%.*s", slash ? (int)(slash - path) + 1 : 2,
		       slash ? path : "./");
	n = count_infos(nps_input_dir__open(AT_FDCWD, beside), &m->rank);
	if (!n && len + 2 < (int)sizeof(beside)) {
		strcpy(beside + len, "..");
		n = count_infos(nps_input_dir__open(AT_FDCWD, beside), &m->rank);
	}
	m->has_rank = n == 1;
	m->rank = m->has_rank ? m->rank : 0;
}
