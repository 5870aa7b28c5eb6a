/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/ext_sort.h"

#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK_BYTES (12UL << 20) /* of records and of what sorts them */
#define MERGE_BYTES (6UL << 20) /* of all runs' buffers */
#define BUFFER_MIN (8UL << 10)
#define BUFFER_MAX (512UL << 10)
#define WRITE_BYTES (256UL << 10)
#define FEW 24 /* equal upper halves up to which insertion is the quickest */

void nps_ext_sort__init(struct nps_ext_sort *sort, int dirfd, size_t elem)
{
	*sort = (struct nps_ext_sort){ .dirfd = dirfd, .fd = -1, .elem = elem };
	sort->chunk_rows = CHUNK_BYTES / (elem + 2 * sizeof(struct nps_key));
}

static struct nps_sort_key record_key(const uint8_t *record)
{
	struct nps_sort_key key;

	memcpy(&key, record, sizeof(key));
	return key;
}

static const uint8_t *row_at(const struct nps_ext_sort *sort, size_t i)
{
	return sort->chunk + sort->order[i].row * sort->elem;
}

/* Rows [FIRST, END) of the order have the same upper half: sorts them by the lower one. */
static void sort_low(struct nps_ext_sort *sort, size_t first, size_t end)
{
	struct nps_key *order = sort->order + first;
	size_t n = end - first;

	for (size_t i = 0; i < n; i++)
		order[i].key = record_key(sort->chunk + order[i].row * sort->elem).low;
	if (n > FEW) {
		nps_sort_keys(order, sort->spare, n);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		struct nps_key key = order[i];
		size_t at = i;

		for (; at && order[at - 1].key > key.key; at--)
			order[at] = order[at - 1];
		order[at] = key;
	}
}

/* Fills sort->order with the chunk's rows in order. */
static void sort_chunk(struct nps_ext_sort *sort)
{
	struct nps_sort_key last = { 0, 0 };
	bool sorted = true;

	for (size_t i = 0; i < sort->rows; i++) {
		struct nps_sort_key key = record_key(sort->chunk + i * sort->elem);

		sorted = sorted && !nps_sort_key__less(key, last);
		last = key;
		sort->order[i] = (struct nps_key){ .key = key.high, .row = i };
	}
	if (sorted)
		return;
	nps_sort_keys(sort->order, sort->spare, sort->rows);
	for (size_t i = 0, end; i < sort->rows; i = end) {
		uint64_t high = sort->order[i].key;

		for (end = i + 1; end < sort->rows && sort->order[end].key == high; end++)
			;
		if (end - i > 1)
			sort_low(sort, i, end);
	}
}

static int run_write_bytes(struct nps_ext_sort *sort, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = pwrite(sort->fd, data, len, sort->end);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		len -= n;
		sort->end += n;
	}
	return 0;
}

static int new_run(struct nps_ext_sort *sort)
{
	if (sort->nruns == sort->room) {
		size_t room = sort->room ? sort->room * 2 : 16;
		struct nps_sort_run *runs = realloc(sort->runs, room * sizeof(*runs));

		if (!runs)
			return -ENOMEM;
		sort->runs = runs;
		sort->room = room;
	}
	sort->runs[sort->nruns++] = (struct nps_sort_run){ .at = sort->end };
	return 0;
}

/* Writes the sorted rows to the file, gathered in the second half of the spare keys, which is free by now. */
static int run_write(struct nps_ext_sort *sort)
{
	uint8_t *out = (uint8_t *)sort->spare;
	size_t room = NPS_MIN((size_t)WRITE_BYTES, sort->chunk_rows * sizeof(*sort->spare)), used = 0;
	int err = 0;

	for (size_t i = 0; !err && i < sort->rows; i++) {
		if (used + sort->elem > room) {
			err = run_write_bytes(sort, out, used);
			used = 0;
		}
		memcpy(out + used, row_at(sort, i), sort->elem);
		used += sort->elem;
	}
	return err ? err : run_write_bytes(sort, out, used);
}

static int spill(struct nps_ext_sort *sort)
{
	int err = 0;

	sort_chunk(sort);
	if (sort->fd < 0) {
		sort->fd = nps_temp_file(sort->dirfd);
		if (sort->fd < 0)
			return sort->fd;
	}
	if (!sort->nruns || nps_sort_key__less(record_key(row_at(sort, 0)), sort->last))
		err = new_run(sort);
	sort->last = record_key(row_at(sort, sort->rows - 1));
	err = err ? err : run_write(sort);
	if (err)
		goto out;
	sort->runs[sort->nruns - 1].end = sort->end;
out:
	sort->rows = 0;
	return err;
}

static int map_chunk(struct nps_ext_sort *sort)
{
	size_t keys = sort->chunk_rows * sizeof(struct nps_key);
	uint8_t *map;

	sort->bytes = 2 * keys + sort->chunk_rows * sort->elem;
	map = mmap(NULL, sort->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	sort->order = (struct nps_key *)map;
	sort->spare = (struct nps_key *)(map + keys);
	sort->chunk = map + 2 * keys;
	return 0;
}

void *nps_ext_sort__add(struct nps_ext_sort *sort)
{
	if (!sort->err && !sort->chunk)
		sort->err = map_chunk(sort);
	else if (!sort->err && sort->rows == sort->chunk_rows)
		sort->err = spill(sort);
	if (sort->err)
		return NULL;
	sort->total++;
	return sort->chunk + sort->rows++ * sort->elem;
}

static void unmap_chunk(struct nps_ext_sort *sort)
{
	if (sort->chunk)
		munmap(sort->order, sort->bytes);
	sort->chunk = NULL;
	sort->order = sort->spare = NULL;
}

/* Fills the buffer of a run. False at its end or on an error. */
static bool refill(struct nps_ext_sort *sort, uint32_t run)
{
	struct nps_sort_source *source = &sort->sources[run];
	struct nps_sort_run *at = &sort->runs[run];
	size_t want = NPS_MIN((off_t)sort->buffer_bytes, at->end - at->at);

	source->used = source->len = 0;
	while (source->len < want) {
		ssize_t n = pread(sort->fd, source->buffer + source->len, want - source->len, at->at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			sort->err = n < 0 ? -errno : -EIO;
			return false;
		}
		source->len += n;
		at->at += n;
	}
	/* Rows that were read are not needed again; file systems that cannot free their blocks keep them. */
	if (source->len)
		fallocate(sort->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at->at - (off_t)source->len,
			  (off_t)source->len);
	return source->len > 0;
}

static bool head_less(const struct nps_sort_head *a, const struct nps_sort_head *b)
{
	if (a->key.high != b->key.high)
		return a->key.high < b->key.high;
	if (a->key.low != b->key.low)
		return a->key.low < b->key.low;
	return a->run < b->run;
}

/* The head at AT grew: moves it down. */
static void sift_down(struct nps_ext_sort *sort, size_t at)
{
	struct nps_sort_head head = sort->heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < sort->nheap && head_less(&sort->heap[child + 1], &sort->heap[child]))
			child++;
		if (child >= sort->nheap || !head_less(&sort->heap[child], &head))
			break;
		sort->heap[at] = sort->heap[child];
		at = child;
	}
	sort->heap[at] = head;
}

static int begin_merge(struct nps_ext_sort *sort)
{
	size_t rows = NPS_MIN((size_t)BUFFER_MAX, NPS_MAX((size_t)BUFFER_MIN, MERGE_BYTES / sort->nruns)) /
		      sort->elem;
	void *buffers;

	sort->buffer_bytes = NPS_MAX((size_t)1, rows) * sort->elem;
	sort->sources = calloc(sort->nruns, sizeof(*sort->sources));
	sort->heap = calloc(sort->nruns, sizeof(*sort->heap));
	if (!sort->sources || !sort->heap)
		return -ENOMEM;
	/* malloc() would not return the memory to the kernel when it is freed. */
	sort->bytes = sort->nruns * sort->buffer_bytes;
	buffers = mmap(NULL, sort->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffers == MAP_FAILED)
		return -errno;
	sort->buffers = buffers;
	for (size_t i = 0; i < sort->nruns; i++) {
		sort->sources[i].buffer = sort->buffers + i * sort->buffer_bytes;
		if (refill(sort, i))
			sort->heap[sort->nheap++] =
				(struct nps_sort_head){ record_key(sort->sources[i].buffer), i };
	}
	for (size_t i = sort->nheap / 2; i-- > 0;)
		sift_down(sort, i);
	sort->merging = true;
	return sort->err;
}

int nps_ext_sort__finish(struct nps_ext_sort *sort)
{
	if (!sort->err && sort->nruns && sort->rows)
		sort->err = spill(sort);
	if (!sort->err && sort->nruns) {
		unmap_chunk(sort);
		sort->err = begin_merge(sort);
	} else if (!sort->err && sort->rows) {
		sort_chunk(sort);
	}
	return sort->err;
}

/* Releases the record that was returned last, and steps to the next one of its run. */
static void run_advance(struct nps_ext_sort *sort)
{
	uint32_t run = sort->heap[0].run;
	struct nps_sort_source *source = &sort->sources[run];

	source->used += sort->elem;
	if (source->used < source->len || refill(sort, run))
		sort->heap[0].key = record_key(source->buffer + source->used);
	else
		sort->heap[0] = sort->heap[--sort->nheap];
	if (sort->nheap > 1)
		sift_down(sort, 0);
}

const void *nps_ext_sort__next(struct nps_ext_sort *sort)
{
	const struct nps_sort_source *source;

	if (sort->err)
		return NULL;
	if (!sort->merging)
		return sort->next < sort->rows ? row_at(sort, sort->next++) : NULL;
	if (sort->started && sort->nheap)
		run_advance(sort);
	sort->started = true;
	if (sort->err || !sort->nheap)
		return NULL;
	source = &sort->sources[sort->heap[0].run];
	return source->buffer + source->used;
}

void nps_ext_sort__free(struct nps_ext_sort *sort)
{
	unmap_chunk(sort);
	if (sort->buffers)
		munmap(sort->buffers, sort->bytes);
	free(sort->runs);
	free(sort->sources);
	free(sort->heap);
	if (sort->elem && sort->fd >= 0)
		close(sort->fd);
	nps_ext_sort__init(sort, sort->dirfd, sort->elem ? sort->elem : 1);
}
