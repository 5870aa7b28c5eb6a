/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mutations that keep the files of an archive apart, records where they are and checksums right, so that
 * inputs get past the first look. What libFuzzer does with plain bytes is one of them.
 */
#include "fuzz.h"

#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out,
				 size_t max, unsigned int seed);

static uint64_t state;

static uint64_t random_number(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static size_t below(size_t n)
{
	return n ? random_number() % n : 0;
}

static const uint64_t edges[] = {
	0,
	1,
	2,
	63,
	64,
	127,
	128,
	255,
	256,
	1000,
	4095,
	4096,
	0x7fff,
	0x8000,
	0xffff,
	0x10000,
	0x5a5a,
	0x7fffffff,
	0x80000000,
	0xfffffffe,
	0xffffffff,
	0x100000000,
	1000000000,
	1000000000000000000,
	0x7fffffffffffffff,
	0x8000000000000000,
	0xfffffffffffffffe,
	0xffffffffffffffff,
};

/* Sizes of records of the formats, for moves by whole ones. */
static const size_t records[] = { 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128, 256, 512 };

static const char *const words[] = { "",
				     "-1",
				     "0",
				     "18446744073709551615",
				     "9223372036854775808",
				     "1e308",
				     "-1e309",
				     "null",
				     "\"\"",
				     "\"a\\\"b,\\n\\u0000\"",
				     "\xff\xfe",
				     "\r\n,\"",
				     "{",
				     "}",
				     "[[[[",
				     "N/A",
				     "nan",
				     "../x",
				     "true",
				     "99999999999999999999" };

static void replace(struct fuzz_file *file, size_t at, size_t old, const void *with, size_t len)
{
	size_t rest = file->len - at - old;
	uint8_t *data = malloc(at + len + rest + 1);

	if (!data)
		abort();
	memcpy(data, file->data, at);
	memcpy(data + at, with, len);
	memcpy(data + at + len, file->data + at + old, rest);
	free(file->data);
	file->data = data;
	file->len = at + len + rest;
}

static void put_edge(struct fuzz_file *file)
{
	size_t width = (size_t)1 << below(4);
	uint64_t value = edges[below(sizeof(edges) / sizeof(edges[0]))];
	size_t at;

	if (file->len < width)
		return;
	at = below(file->len - width + 1) & ~(width - 1);
	memcpy(file->data + at, &value, width);
}

static void nudge(struct fuzz_file *file)
{
	size_t at;
	uint64_t value;

	if (file->len < sizeof(value))
		return;
	at = below(file->len - sizeof(value) + 1) & ~(sizeof(value) - 1);
	memcpy(&value, file->data + at, sizeof(value));
	value += (below(2) ? 1 : -1) * (uint64_t)1 << below(40);
	memcpy(file->data + at, &value, sizeof(value));
}

/* A few records: written over others, put in once more, or taken out. */
static void move_records(struct fuzz_file *file)
{
	size_t size = records[below(sizeof(records) / sizeof(records[0]))] * (1 + below(3)), from, to;
	uint8_t copy[512 * 3];

	if (!size || file->len < size)
		return;
	from = below(file->len / size) * size;
	to = below(file->len / size) * size;
	memcpy(copy, file->data + from, size);
	if (below(3))
		replace(file, to, below(2) ? size : 0, copy, size);
	else
		replace(file, to, size, copy, 0);
}

static void window(struct fuzz_file *file)
{
	uint8_t block[64] = { 0 };
	size_t len = 1 + below(sizeof(block)), at;

	if (file->len < len)
		return;
	at = below(file->len - len + 1);
	memcpy(block, file->data + at, len);
	LLVMFuzzerMutate(block, len, len);
	memcpy(file->data + at, block, len);
}

/* A number or a quoted text of a text file becomes another. */
static void put_word(struct fuzz_file *file)
{
	const char *word = words[below(sizeof(words) / sizeof(words[0]))];
	size_t at = below(file->len), len = 0;

	while (at < file->len && !strchr("0123456789\"", file->data[at] ? file->data[at] : ' '))
		at++;
	if (at == file->len)
		return;
	if (file->data[at] == '"') {
		for (len = 1; at + len < file->len && file->data[at + len] != '"';)
			len++;
		len += at + len < file->len;
	} else {
		while (at + len < file->len && file->data[at + len] >= '0' && file->data[at + len] <= '9')
			len++;
	}
	replace(file, at, len, word, strlen(word));
}

static void plain(struct fuzz_file *file, size_t room)
{
	size_t max = file->len + (room < 4096 ? room : 4096);

	file->data = realloc(file->data, max + 1);
	if (!file->data)
		abort();
	file->len = LLVMFuzzerMutate(file->data, file->len, max);
}

static bool is_database(const struct fuzz_file *file)
{
	return file->len > 100 && !memcmp(file->data, "SQLite format 3", 16);
}

static void database(struct fuzz_file *file, size_t room)
{
	size_t max = file->len + room;

	file->data = realloc(file->data, max + 1);
	if (!file->data)
		abort();
	file->len = fuzz_mutate_db(file->data, file->len, max, random_number());
}

static void content(struct fuzz_file *file, size_t room)
{
	if (is_database(file) && below(4)) {
		database(file, room);
		return;
	}
	switch (below(8)) {
	case 0:
		plain(file, room);
		break;
	case 1:
		window(file);
		break;
	case 2:
		nudge(file);
		break;
	case 3:
		move_records(file);
		break;
	case 4:
		file->len = below(file->len + 1);
		break;
	case 5:
		put_word(file);
		break;
	default:
		put_edge(file);
	}
}

static void drop_entry(struct fuzz_archive *archive, size_t i)
{
	free(archive->files[i].data);
	archive->files[i] = archive->files[--archive->n];
}

/* The file once more under another name, or instead of the one with that name. */
static void copy_file(struct fuzz_archive *archive, const struct fuzz_file *from, const char *name)
{
	struct fuzz_file *to;
	size_t i = 0;

	while (i < archive->n && strcmp(archive->files[i].name, name))
		i++;
	to = &archive->files[i];
	if (i == FUZZ_FILES || to == from)
		return;
	if (i < archive->n)
		free(to->data);
	else
		archive->n++;
	snprintf(to->name, sizeof(to->name), "%s", name);
	to->len = from->len;
	to->data = malloc(from->len + 1);
	if (!to->data)
		abort();
	memcpy(to->data, from->data, from->len);
}

/* Another number in its name: of a slice, a device, a process. */
static void other_number(struct fuzz_archive *archive, size_t i)
{
	char name[FUZZ_NAME];
	char *digit = name + strlen(archive->files[i].name);

	snprintf(name, sizeof(name), "%s", archive->files[i].name);
	while (digit > name && (*digit < '0' || *digit > '9' || below(3) == 0))
		digit--;
	if (*digit >= '0' && *digit <= '9')
		*digit = '0' + below(10);
	copy_file(archive, &archive->files[i], name);
}

static void swap(struct fuzz_archive *archive, size_t a, size_t b)
{
	struct fuzz_file *one = &archive->files[a], *other = &archive->files[b];
	uint8_t *data = one->data;
	size_t len = one->len;

	one->data = other->data;
	one->len = other->len;
	other->data = data;
	other->len = len;
}

/* Chunks of our own files are worthless with a wrong checksum. */
static void mend(struct fuzz_file *file)
{
	size_t len = strlen(file->name), at = 0;
	struct nps_chunk chunk;

	if (len < 4 || strcmp(file->name + len - 4, ".nps"))
		return;
	for (uint64_t seq = 0; at + sizeof(chunk) <= file->len; seq++) {
		memcpy(&chunk, file->data + at, sizeof(chunk));
		chunk.magic = NPS_CHUNK_MAGIC;
		chunk.version = NPS_SESSION_VERSION;
		chunk.seq = seq;
		at += sizeof(chunk);
		if (chunk.len > file->len - at)
			chunk.len = file->len - at;
		chunk.crc = crc32(crc32(0, NULL, 0), file->data + at, chunk.len);
		memcpy(file->data + at - sizeof(chunk), &chunk, sizeof(chunk));
		at += chunk.len;
	}
}

static size_t packed_size(const struct fuzz_archive *archive)
{
	size_t size = FUZZ_HEAD;

	for (size_t i = 0; i < archive->n; i++)
		size += 6 + strlen(archive->files[i].name) + archive->files[i].len;
	return size;
}

static void mutate(struct fuzz_archive *archive, size_t max)
{
	size_t i = below(archive->n), used = packed_size(archive);

	switch (below(24)) {
	case 0:
		drop_entry(archive, i);
		break;
	case 1:
		other_number(archive, i);
		break;
	case 2:
		swap(archive, i, below(archive->n));
		break;
	case 3:
		archive->options = below(4);
		break;
	default:
		content(&archive->files[i], used < max ? max - used : 0);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	struct fuzz_archive archive;
	size_t times;

	state = seed * 0x9e3779b97f4a7c15ULL + 1;
	if (!fuzz_archive__read(&archive, data, size) || !archive.n)
		return LLVMFuzzerMutate(data, size, max);
	times = (size_t)1 << below(4);
	for (size_t i = 0; i < times && archive.n; i++)
		mutate(&archive, max);
	if (below(16))
		for (size_t i = 0; i < archive.n; i++)
			mend(&archive.files[i]);
	size = fuzz_archive__write(&archive, data, max);
	fuzz_archive__free(&archive);
	return size;
}

/* Some files of the one, some of the other. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out,
				 size_t max, unsigned int seed)
{
	struct fuzz_archive one, other;
	size_t size = 0;

	state = seed * 0x9e3779b97f4a7c15ULL + 1;
	if (!fuzz_archive__read(&one, a, na))
		return 0;
	if (fuzz_archive__read(&other, b, nb))
		for (size_t i = 0; i < other.n; i++)
			if (!below(3))
				copy_file(&one, &other.files[i], other.files[i].name);
	size = fuzz_archive__write(&one, out, max);
	fuzz_archive__free(&one);
	fuzz_archive__free(&other);
	return size;
}
