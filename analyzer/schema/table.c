/* SPDX-License-Identifier: BSD-2-Clause */
#include "schema/table.h"

#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST 64 /* rows of the first mapping */
#define SMALL (128UL << 10) /* bytes of a column up to which it has no file */
#define STEP (1UL << 18) /* rows by which a large table grows, instead of doubling */

int nps_table__init(struct nps_table *table, const struct nps_column *columns, size_t ncolumns, int dirfd)
{
	*table = (struct nps_table){ .columns = columns, .ncolumns = ncolumns, .dirfd = dirfd };
	table->maps = calloc(ncolumns, sizeof(*table->maps));
	if (!table->maps)
		return -ENOMEM;
	for (size_t i = 0; i < ncolumns; i++)
		table->maps[i].fd = -1;
	return 0;
}

static void **cells(struct nps_table *table, size_t column)
{
	return (void **)(table + 1) + column;
}

void nps_table__free(struct nps_table *table)
{
	for (size_t i = 0; table->maps && i < table->ncolumns; i++) {
		if (table->maps[i].bytes)
			munmap(*cells(table, i), table->maps[i].bytes);
		if (table->maps[i].fd >= 0)
			close(table->maps[i].fd);
		*cells(table, i) = NULL;
	}
	free(table->maps);
	table->maps = NULL;
	table->len = table->room = 0;
}

/* Moves a column into a file of BYTES bytes. */
static int column_map_file(struct nps_table *table, size_t column, size_t bytes)
{
	struct nps_table_mapping *map = &table->maps[column];
	int fd = nps_temp_file(table->dirfd), err;
	void *to;

	if (fd < 0)
		return fd;
	/* Blocks are allocated now: a full disk must be an error here, not SIGBUS later. */
	err = posix_fallocate(fd, 0, bytes);
	to = err ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (to == MAP_FAILED) {
		err = err ? err : errno;
		close(fd);
		return -err;
	}
	if (map->bytes) {
		memcpy(to, *cells(table, column), table->len * table->columns[column].size);
		munmap(*cells(table, column), map->bytes);
	}
	*cells(table, column) = to;
	*map = (struct nps_table_mapping){ bytes, fd };
	return 0;
}

static int column_grow(struct nps_table *table, size_t column, size_t bytes)
{
	struct nps_table_mapping *map = &table->maps[column];
	void *to;
	int err;

	bytes = (bytes + 0xfff) & ~0xfffUL;
	if (bytes <= map->bytes)
		return 0;
	if (map->fd < 0 && bytes > SMALL)
		return column_map_file(table, column, bytes);
	err = map->fd < 0 ? 0 : posix_fallocate(map->fd, map->bytes, bytes - map->bytes);
	if (err)
		return -err;
	to = map->bytes ? mremap(*cells(table, column), map->bytes, bytes, MREMAP_MAYMOVE)
			: mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (to == MAP_FAILED)
		return -errno;
	*cells(table, column) = to;
	map->bytes = bytes;
	return 0;
}

int nps_table__reserve(struct nps_table *table, size_t len)
{
	size_t room = table->room ? table->room : FIRST;
	int err = 0;

	if (len <= table->room)
		return 0;
	if (len >= NPS_NONE) /* row numbers are 32 bits */
		return -EOVERFLOW;
	room = room < STEP ? room * 2 : room + STEP;
	room = NPS_MAX(room, len);
	/* A column may have grown when a later one cannot: it is only larger than it needs to be. */
	for (size_t i = 0; !err && i < table->ncolumns; i++)
		err = column_grow(table, i, room * table->columns[i].size);
	if (err)
		return err;
	table->room = room;
	return 0;
}

int nps_table__resize(struct nps_table *table, size_t len)
{
	int err = nps_table__reserve(table, len);

	if (err)
		return err;
	for (size_t i = 0; len < table->len && i < table->ncolumns; i++)
		memset((char *)*cells(table, i) + len * table->columns[i].size, 0,
		       (table->len - len) * table->columns[i].size);
	table->len = len;
	return 0;
}

void nps_table__cool(const struct nps_table *table)
{
	for (size_t i = 0; i < table->ncolumns; i++)
		if (table->maps[i].fd >= 0)
			madvise(nps_table__cells(table, i), table->maps[i].bytes, MADV_DONTNEED);
}
