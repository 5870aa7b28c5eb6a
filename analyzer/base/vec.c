/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/vec.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALL (256UL << 10) /* up to here no file */
#define STEP (16UL << 20) /* larger arrays grow by this, not by doubling */
#define HOT (1U << 16) /* rows of which the latest stay resident while an array is being filled */

void nps_vec__init(struct nps_vec *vec, int dirfd, size_t elem)
{
	*vec = (struct nps_vec){ .elem = elem, .fd = -1, .dirfd = dirfd };
}

int nps_temp_file(int dirfd)
{
	static _Atomic unsigned int serial;
	char name[64];
	int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
		return fd < 0 ? -errno : fd;
	for (int tries = 0; tries < 100; tries++) {
		snprintf(name, sizeof(name), ".npuscope.%d.%u.tmp", (int)getpid(), serial++);
		fd = openat(dirfd, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0600);
		if (fd >= 0) {
			unlinkat(dirfd, name, 0);
			return fd;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static size_t grown(size_t have, size_t need)
{
	size_t next = have < STEP ? have * 2 : have + STEP;

	next = next > need ? next : need;
	return (next + 0xffff) & ~0xffffUL;
}

/* Moves the rows into a file of BYTES bytes. */
static int vec_map_file(struct nps_vec *vec, size_t bytes)
{
	int fd = nps_temp_file(vec->dirfd), err;
	void *map;

	if (fd < 0)
		return fd;
	/* Blocks are allocated now: a full disk must be an error here, not SIGBUS later. */
	err = posix_fallocate(fd, 0, bytes);
	if (err) {
		close(fd);
		return -err;
	}
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		err = errno;
		close(fd);
		return -err;
	}
	if (vec->data) {
		memcpy(map, vec->data, vec->len * vec->elem);
		munmap(vec->data, vec->bytes);
	}
	vec->data = map;
	vec->bytes = bytes;
	vec->fd = fd;
	return 0;
}

static int in_memory(struct nps_vec *vec, size_t bytes)
{
	void *map = vec->data ? mremap(vec->data, vec->bytes, bytes, MREMAP_MAYMOVE)
			      : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return -errno;
	vec->data = map;
	vec->bytes = bytes;
	return 0;
}

static int reserve(struct nps_vec *vec, size_t len)
{
	size_t need, bytes;
	void *map;
	int err;

	if (len <= vec->bytes / vec->elem)
		return 0;
	if (__builtin_mul_overflow(len, vec->elem, &need) || need > SIZE_MAX / 4)
		return -ENOMEM;
	bytes = grown(vec->bytes, need);
	if (bytes <= SMALL)
		return in_memory(vec, bytes);
	if (vec->fd < 0)
		return vec_map_file(vec, bytes);
	err = posix_fallocate(vec->fd, vec->bytes, bytes - vec->bytes);
	if (err)
		return -err;
	map = mremap(vec->data, vec->bytes, bytes, MREMAP_MAYMOVE);
	if (map == MAP_FAILED)
		return -errno;
	vec->data = map;
	vec->bytes = bytes;
	return 0;
}

int nps_vec__reserve(struct nps_vec *vec, size_t len)
{
	int err = reserve(vec, len);

	return err ? nps_memory__fail(err) : 0;
}

int nps_vec__resize(struct nps_vec *vec, size_t len)
{
	int err = nps_vec__reserve(vec, len);

	if (err)
		return err;
	if (len > vec->len)
		memset((char *)vec->data + vec->len * vec->elem, 0, (len - vec->len) * vec->elem);
	vec->len = len;
	return 0;
}

void *nps_vec__push(struct nps_vec *vec)
{
	void *row;

	if (vec->len >= vec->bytes / vec->elem) {
		int err = nps_vec__reserve(vec, vec->len + 1);

		if (err) {
			errno = -err;
			return NULL;
		}
	}
	if (vec->fd >= 0 && !(vec->len & (HOT - 1)))
		nps_vec__cool(vec);
	row = (char *)vec->data + vec->len++ * vec->elem;
	memset(row, 0, vec->elem);
	return row;
}

void nps_vec__cool(const struct nps_vec *vec)
{
	if (vec->fd >= 0)
		madvise(vec->data, vec->bytes, MADV_DONTNEED);
}

int nps_vec__own(struct nps_vec *vec)
{
	if (vec->fd < 0)
		return 0;
	if (mmap(vec->data, vec->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, vec->fd, 0) ==
	    MAP_FAILED)
		return -errno;
	/* Without a file the array grows into a new one. Not cooled: that would drop its private pages. */
	close(vec->fd);
	vec->fd = -1;
	return 0;
}

void nps_vec__free(struct nps_vec *vec)
{
	if (vec->data) { /* a vec that is all zero was never made: 0 is not its file */
		munmap(vec->data, vec->bytes);
		if (vec->fd >= 0)
			close(vec->fd);
	}
	nps_vec__init(vec, vec->dirfd, vec->elem);
}
