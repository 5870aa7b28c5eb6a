/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver_proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

#define MOST_FILES 1024
#define MOST_TOGETHER (16U << 20) /* bytes */
#define MOST_BYTES (256U << 10) /* of a file */
#define DEEPEST 5

struct copy {
	struct nps_session *session;
	const char *dir;
	unsigned int files;
	size_t bytes;
};

static void copy_file(struct copy *c, const char *path)
{
	char to[PATH_MAX], buf[16384];
	int in = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), out;
	size_t left = MOST_BYTES;
	ssize_t n;

	if (in < 0)
		return;
	snprintf(to, sizeof(to), "%s%.200s", c->dir, path + strlen("/proc"));
	out = nps_session__open_file(c->session, to);
	while (out >= 0 && left && (n = read(in, buf, left < sizeof(buf) ? left : sizeof(buf))) > 0) {
		if (nps_write_all(out, buf, (size_t)n))
			break;
		left -= (size_t)n;
		c->bytes += (size_t)n;
	}
	c->files += out >= 0;
	if (out >= 0)
		close(out);
	close(in);
}

static void copy_tree(struct copy *c, const char *path, int depth)
{
	DIR *d = depth < DEEPEST ? opendir(path) : NULL;
	const struct dirent *entry;

	while (d && c->files < MOST_FILES && c->bytes < MOST_TOGETHER && (entry = readdir(d))) {
		char below[256];
		struct stat st;

		if (entry->d_name[0] == '.' ||
		    snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) >= (int)sizeof(below) ||
		    lstat(below, &st))
			continue;
		if (S_ISDIR(st.st_mode))
			copy_tree(c, below, depth + 1);
		else if (S_ISREG(st.st_mode))
			copy_file(c, below);
	}
	if (d)
		closedir(d);
}

unsigned int nps_driver_proc__copy(struct nps_session *s, const char *dir)
{
	static const char *const places[] = { "/proc/trs_core", "/proc/trs_chan", "/proc/svm/task" };
	struct copy c = { .session = s, .dir = dir };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		copy_tree(&c, places[i], 0);
	nps_debug("%u files of the NPU's driver in /proc", c.files);
	return c.files;
}
