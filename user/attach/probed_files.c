/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/probed_files.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

static bool is_overlay(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/*
 * Is it the file that we know? An overlay shows the file below it under a device number of its own, so
 * there the times decide. Otherwise another device is another file, even if number, size and build-id are
 * equal: containers that unpack the same image into memory have files with equal numbers.
 */
static bool file_is_same(const struct nps_probed_file *f, const struct stat *st, bool overlay)
{
	if (f->dev == st->st_dev)
		return f->ino == st->st_ino;
	/* The upper half of an inode number can be the overlay's id of the layer. */
	return (overlay || f->overlay) && (uint32_t)f->ino == (uint32_t)st->st_ino &&
	       f->size == st->st_size && same_time(&f->changed, &st->st_ctim) &&
	       same_time(&f->modified, &st->st_mtim);
}

struct nps_probed_file *nps_probed_files__find(struct nps_probed_file *files, int fd, const struct stat *st)
{
	bool overlay = is_overlay(fd);

	for (struct nps_probed_file *f = files; f; f = f->next)
		if (file_is_same(f, st, overlay))
			return f;
	return NULL;
}

struct nps_probed_file *nps_probed_files__add(struct nps_probed_file **files, int fd, const struct stat *st,
					      const char *build_id, const char *path)
{
	struct nps_probed_file *f = calloc(1, sizeof(*f));

	if (!f || !(f->path = strdup(path))) {
		free(f);
		return NULL;
	}
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->size = st->st_size;
	f->changed = st->st_ctim;
	f->modified = st->st_mtim;
	f->overlay = is_overlay(fd);
	snprintf(f->build_id, sizeof(f->build_id), "%s", build_id);
	f->next = *files;
	*files = f;
	return f;
}

int nps_probed_file__add(struct nps_probed_file *f, uint16_t id, bool returns,
			 const struct nps_probe_address *address)
{
	/* The allocation doubles: it is full if the number of probes is a power of two. */
	bool full = !(f->n & (f->n - 1));
	struct nps_attached *v = full ? realloc(f->probes, (f->n ? 2 * f->n : 1) * sizeof(*v)) : f->probes;

	if (!v)
		return -ENOMEM;
	f->probes = v;
	v[f->n++] = (struct nps_attached){ .id = id,
					   .returns = returns,
					   .class = address->class,
					   .start = address->start,
					   .offset = address->offset };
	return 0;
}

int nps_probed_file__add_end(struct nps_probed_file *f, uint16_t id, uint64_t start,
			     const struct nps_exit *end)
{
	struct nps_probe_address address = { .start = start, .offset = end->offset, .class = end->class };
	int err = nps_probed_file__add(f, id, false, &address);

	if (err)
		return err;
	f->probes[f->n - 1].at_end = true;
	return 0;
}

bool nps_probed_file__has_ends(const struct nps_probed_file *f, uint16_t id, uint64_t start)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->probes[i].at_end && f->probes[i].id == id && f->probes[i].start == start)
			return true;
	return false;
}

bool nps_probed_file__has(const struct nps_probed_file *f, uint16_t id)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->probes[i].id == id)
			return true;
	return false;
}

bool nps_probed_file__has_at(const struct nps_probed_file *f, const struct nps_probe_address *address)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->probes[i].offset == address->offset ||
		    (!f->probes[i].at_end && f->probes[i].start == address->start))
			return true;
	return false;
}

void nps_probed_files__forget_last(struct nps_probed_file **files)
{
	struct nps_probed_file *f = *files;

	*files = f->next;
	free(f->path);
	free(f->probes);
	free(f);
}
