/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/task_iter.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ROOM 64 /* records read at once */
#define MOST 256 /* bytes of one record */

/* The kernel returns any number of bytes: a record can be split between two reads. */
static int read_all(int fd, size_t size, void (*each)(void *arg, const void *record), void *arg)
{
	char buf[ROOM * MOST];
	size_t have = 0;

	for (;;) {
		ssize_t n = read(fd, buf + have, sizeof(buf) - have);
		size_t at = 0;

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		have += (size_t)n;
		for (; have - at >= size; at += size)
			if (each)
				each(arg, buf + at);
		have -= at;
		memmove(buf, buf + at, have);
	}
}

int nps_task_iter__run(const struct bpf_program *prog, size_t size,
		       void (*each)(void *arg, const void *record), void *arg)
{
	struct bpf_link *link;
	int fd, err;

	if (!size || size > MOST)
		return -EINVAL;
	link = bpf_program__attach_iter(prog, NULL);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	err = fd < 0 ? -errno : read_all(fd, size, each, arg);
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err;
}
