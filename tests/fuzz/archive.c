/* SPDX-License-Identifier: BSD-2-Clause */
#include "archive.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_HEAD 6

/* Files stay inside of the directory that is made for them. */
static bool safe(const char *name)
{
	return *name && *name != '/' && !strstr(name, "..") && !strstr(name, "//") && !strstr(name, "/./") &&
	       name[strlen(name) - 1] != '/';
}

bool fuzz_archive__read(struct fuzz_archive *archive, const uint8_t *data, size_t size)
{
	size_t at = FUZZ_HEAD;

	*archive = (struct fuzz_archive){ 0 };
	if (size < FUZZ_HEAD || memcmp(data, FUZZ_MAGIC, FUZZ_HEAD - 1))
		return false;
	archive->options = data[FUZZ_HEAD - 1];
	while (archive->n < FUZZ_FILES && size - at >= FILE_HEAD) {
		struct fuzz_file *file = &archive->files[archive->n];
		size_t name = data[at] | data[at + 1] << 8;
		size_t len = data[at + 2] | data[at + 3] << 8 | data[at + 4] << 16 |
			     (size_t)data[at + 5] << 24;

		at += FILE_HEAD;
		if (name > size - at || len > size - at - name)
			break;
		if (name < FUZZ_NAME) {
			memcpy(file->name, data + at, name);
			file->name[name] = 0;
			if (safe(file->name)) {
				file->len = len;
				file->data = malloc(len + 1);
				if (!file->data)
					abort();
				memcpy(file->data, data + at + name, len);
				archive->n++;
			}
		}
		at += name + len;
	}
	return true;
}

void fuzz_archive__free(struct fuzz_archive *archive)
{
	for (size_t i = 0; i < archive->n; i++)
		free(archive->files[i].data);
	archive->n = 0;
}

size_t fuzz_archive__write(const struct fuzz_archive *archive, uint8_t *out, size_t max)
{
	size_t at = FUZZ_HEAD;

	if (max < FUZZ_HEAD)
		return 0;
	memcpy(out, FUZZ_MAGIC, FUZZ_HEAD - 1);
	out[FUZZ_HEAD - 1] = archive->options;
	for (size_t i = 0; i < archive->n; i++) {
		const struct fuzz_file *file = &archive->files[i];
		size_t name = strlen(file->name);

		if (FILE_HEAD + name + file->len > max - at)
			continue;
		out[at++] = name & 0xff;
		out[at++] = name >> 8;
		for (int shift = 0; shift < 32; shift += 8)
			out[at++] = file->len >> shift & 0xff;
		memcpy(out + at, file->name, name);
		memcpy(out + at + name, file->data, file->len);
		at += name + file->len;
	}
	return at;
}

static void make_parents(int dirfd, const char *name)
{
	char part[FUZZ_NAME];

	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - name), name);
		mkdirat(dirfd, part, 0750);
	}
}

void fuzz_archive__unpack(const struct fuzz_archive *archive, int dirfd)
{
	for (size_t i = 0; i < archive->n; i++) {
		const struct fuzz_file *file = &archive->files[i];
		int fd;

		make_parents(dirfd, file->name);
		fd = openat(dirfd, file->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
		if (fd < 0)
			continue; /* one name is the directory of another */
		if (write(fd, file->data, file->len) != (ssize_t)file->len)
			abort();
		close(fd);
	}
}
