/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fuzzers eat: a few files in one, so that a mutator can keep them apart. The magic, a
 * byte of options, then for each file the length of its name (2 bytes), of its content (4 bytes),
 * both little-endian, the name, the content.
 */
#ifndef FUZZ_ARCHIVE_H
#define FUZZ_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_MAGIC "NFZ"
#define FUZZ_HEAD 4 /* magic and options */
#define FUZZ_FILES 256 /* more are left out */
#define FUZZ_NAME 200

/* Options. */
#define FUZZ_COMPAT_A 1
#define FUZZ_GZIP 2

struct fuzz_file {
	char name[FUZZ_NAME];
	uint8_t *data; /* owned */
	size_t len;
};

struct fuzz_archive {
	uint8_t options;
	size_t n;
	struct fuzz_file files[FUZZ_FILES];
};

/* Reads an archive; what does not fit the description is left out. False if it is none. */
bool fuzz_archive__read(struct fuzz_archive *archive, const uint8_t *data, size_t size);
void fuzz_archive__free(struct fuzz_archive *archive);

/* Packs it into OUT of MAX bytes, leaving out files that do not fit. The size. */
size_t fuzz_archive__write(const struct fuzz_archive *archive, uint8_t *out, size_t max);

/* Writes the files into the directory DIRFD. */
void fuzz_archive__unpack(const struct fuzz_archive *archive, int dirfd);

#endif
