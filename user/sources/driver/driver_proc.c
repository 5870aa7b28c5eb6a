/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/driver/driver_proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"

#define MOST_FILES 1024
#define MOST_TOGETHER (16U << 20) /* bytes */
#define MOST_BYTES (256U << 10) /* of one file */
#define DEEPEST 5

#define MOST_LEFT_OUT 65536 /* counting stops there */

struct copy {
	struct nps_session_writer *session;
	const char *dir;
	struct nps_driver_proc n;
	size_t bytes;
};

static void copy_file(struct copy *c, const char *path)
{
	char to[PATH_MAX], buf[16384];
	int in = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), out;
	size_t left = MOST_BYTES;
	ssize_t n = 0;
	int err = 0;

	snprintf(to, sizeof(to), "%s%.200s", c->dir, path + strlen("/proc"));
	out = in < 0 ? -1 : nps_session_writer__open_file(c->session, to);
	while (out >= 0 && left && (n = read(in, buf, left < sizeof(buf) ? left : sizeof(buf))) > 0) {
		err = nps_write_all(out, buf, (size_t)n);
		if (err)
			break;
		left -= (size_t)n;
		c->bytes += (size_t)n;
		nps_session_writer__add_bytes(c->session, (uint64_t)n);
	}
	/* A file is not truncated if it ends exactly at the limit. */
	c->n.cut += out >= 0 && (n < 0 || (n > 0 && (left || read(in, buf, 1) > 0)));
	c->n.files += out >= 0;
	c->n.left_out += out < 0;
	if (out >= 0 && close(out) && !err)
		err = -errno;
	if (err)
		nps_session_writer__failed(c->session, to, err);
	if (in >= 0)
		close(in);
}

static bool copy_is_full(const struct copy *c)
{
	return c->n.files >= MOST_FILES || c->bytes >= MOST_TOGETHER;
}

static void copy_tree(struct copy *c, const char *path, int depth)
{
	DIR *d = depth < DEEPEST ? opendir(path) : NULL;
	const struct dirent *entry;

	c->n.left_out += !d && depth; /* the top directories need not exist */
	while (d && c->n.left_out < MOST_LEFT_OUT && (entry = readdir(d))) {
		char below[256];
		struct stat st;

		if (entry->d_name[0] == '.')
			continue;
		st.st_mode = 0;
		if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) < (int)sizeof(below) &&
		    lstat(below, &st))
			st.st_mode = 0;
		if (S_ISDIR(st.st_mode))
			copy_tree(c, below, depth + 1);
		else if (S_ISREG(st.st_mode) && !copy_is_full(c))
			copy_file(c, below);
		else
			c->n.left_out++;
	}
	if (d)
		closedir(d);
}

struct nps_driver_proc nps_driver_proc__copy(struct nps_session_writer *s, const char *dir)
{
	static const char *const paths[] = { "/proc/trs_core", "/proc/trs_chan", "/proc/svm/task" };
	struct copy c = { .session = s, .dir = dir };

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		copy_tree(&c, paths[i], 0);
	nps_debug("%u files of the NPU's driver in /proc, %u left out, %u cut", c.n.files, c.n.left_out,
		  c.n.cut);
	return c.n;
}
