/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver/prof_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clocks.h"
#include "core/log.h"

#define LETTERS 18 /* A to R */
#define SLICE_PATH 224 /* bytes of a slice's path below the session, with the closing NUL */

void nps_prof__name(char name[NPS_PROF_NAME], unsigned int index, pid_t pid)
{
	uint64_t hash = nps_now(CLOCK_MONOTONIC) * 0x9e3779b97f4a7c15ULL;
	struct timespec now;
	char stamp[32], letters[9] = "";
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d%H%M%S", &tm);
	for (int i = 0; i < 8; i++, hash /= LETTERS)
		letters[i] = (char)('A' + (hash >> 8) % LETTERS);
	snprintf(name, NPS_PROF_NAME, "PROF_%06u_%s%03ld_%08d%s", index % 1000000, stamp,
		 now.tv_nsec / 1000000, pid, letters);
}

int nps_prof_file__init(struct nps_prof_file *f, const char *dir, unsigned int device, const char *file,
			uint32_t hold)
{
	*f = (struct nps_prof_file){ .fd = -1, .room = hold };
	if (snprintf(f->path, sizeof(f->path), "%s/device_%u/data/%s.%u", dir, device, file, device) >=
	    (int)sizeof(f->path))
		return -ENAMETOOLONG;
	f->held = hold ? malloc(hold) : NULL;
	return hold && !f->held ? -ENOMEM : 0;
}

static uint64_t size_of(const struct nps_session_writer *s, const char *path)
{
	struct stat st;

	return fstatat(s->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) || st.st_size < 0 ? 0
										    : (uint64_t)st.st_size;
}

/*
 * A file of SIZE bytes replaces one of BEFORE. A decrease is not
 * subtracted, because marks differ by a digit only.
 */
static void count_file(struct nps_session_writer *s, uint64_t before, uint64_t size)
{
	nps_session_writer__add_bytes(s, size > before ? size - before : 0);
}

/* CANN's mark of a file that is complete. */
static int mark_done(struct nps_session_writer *s, const char *path, uint64_t size)
{
	char done[256], text[96];
	uint64_t before;
	int fd, err;

	if (snprintf(done, sizeof(done), "%s.done", path) >= (int)sizeof(done))
		return -ENAMETOOLONG;
	snprintf(text, sizeof(text), "filesize:%llu\nstarttime:0\nendtime  :0\n", (unsigned long long)size);
	before = size_of(s, done);
	unlinkat(s->dir_fd, done, 0); /* left by a small file that was replaced */
	fd = nps_session_writer__open_file(s, done);
	if (fd < 0)
		return fd;
	err = nps_write_all(fd, text, strlen(text));
	if (close(fd) && !err)
		err = -errno;
	if (err)
		nps_session_writer__failed(s, done, err);
	else
		count_file(s, before, strlen(text));
	return err;
}

bool nps_prof_file__is_open(const struct nps_prof_file *f)
{
	return f->fd >= 0;
}

static void slice_path(const struct nps_prof_file *f, char path[SLICE_PATH])
{
	snprintf(path, SLICE_PATH, "%s.slice_%u", f->path, f->slice);
}

/*
 * Closes the descriptor, if there is one: file systems with delayed
 * writes (NFS, quotas) report their errors here.
 */
static int close_slice(struct nps_prof_file *f, struct nps_session_writer *s)
{
	int err = f->fd >= 0 && close(f->fd) ? -errno : 0;
	char path[SLICE_PATH];

	f->fd = -1;
	if (!err)
		return 0;
	slice_path(f, path);
	nps_session_writer__failed(s, path, err);
	return err;
}

int nps_prof_file__pause(struct nps_prof_file *f, struct nps_session_writer *s)
{
	int err;

	if (f->fd < 0)
		return 0;
	err = close_slice(f, s);
	f->paused = !err; /* else it is incomplete, and must not be marked as complete at the end */
	if (err)
		f->slice++;
	return err;
}

static int end_slice(struct nps_prof_file *f, struct nps_session_writer *s)
{
	char path[SLICE_PATH];
	int err;

	if (f->fd < 0 && !f->paused)
		return 0;
	err = close_slice(f, s);
	f->paused = false;
	slice_path(f, path);
	f->slice++;
	return err ? err : mark_done(s, path, f->size);
}

static int write_slice(struct nps_prof_file *f, struct nps_session_writer *s, const void *data, size_t len)
{
	char path[SLICE_PATH];
	int err;

	slice_path(f, path);
	if (f->fd < 0) {
		f->fd = f->paused ? nps_session_writer__append_file(s, path)
				  : nps_session_writer__open_file(s, path);
		if (f->fd < 0)
			return f->fd;
		if (!f->paused)
			f->size = 0;
		f->paused = false;
	}
	err = nps_write_all(f->fd, data, len);
	if (err) {
		nps_session_writer__failed(s, path, err);
		/* So that later data begins with a whole record. */
		if (ftruncate(f->fd, (off_t)f->size) || lseek(f->fd, (off_t)f->size, SEEK_SET) < 0)
			nps_debug("cannot take back half a record: %s", strerror(errno));
		return err;
	}
	f->size += (uint32_t)len;
	f->total += len;
	nps_session_writer__add_bytes(s, len);
	return f->size >= NPS_PROF_SLICE ? end_slice(f, s) : 0;
}

int nps_prof_file__flush(struct nps_prof_file *f, struct nps_session_writer *s)
{
	uint32_t n = f->n_held;

	f->n_held = 0;
	return n ? write_slice(f, s, f->held, n) : 0;
}

int nps_prof_file__write(struct nps_prof_file *f, struct nps_session_writer *s, const void *data, size_t len)
{
	int err = 0;

	if (f->n_held + len > f->room)
		err = nps_prof_file__flush(f, s);
	if (err)
		return err;
	if (len > f->room)
		return write_slice(f, s, data, len);
	memcpy(f->held + f->n_held, data, len);
	f->n_held += (uint32_t)len;
	return 0;
}

int nps_prof_file__finish(struct nps_prof_file *f, struct nps_session_writer *s)
{
	int err = nps_prof_file__flush(f, s), end = end_slice(f, s);

	free(f->held);
	f->held = NULL;
	f->room = 0;
	return err ? err : end;
}

/*
 * Replaces PATH by FRESH. By an exchange, if the file system supports it: ext4 syncs a file at once that is
 * renamed onto another, and the end of a capture has hundreds of them.
 */
static int replace(const struct nps_session_writer *s, const char *fresh, const char *path)
{
	if (!renameat2(s->dir_fd, fresh, s->dir_fd, path, RENAME_EXCHANGE))
		return unlinkat(s->dir_fd, fresh, 0) ? -errno : 0;
	return renameat(s->dir_fd, fresh, s->dir_fd, path) ? -errno : 0;
}

int nps_prof__put(struct nps_session_writer *s, const char *path, const char *text)
{
	char fresh[256];
	uint64_t before = size_of(s, path);
	int fd, err;

	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
		return -ENAMETOOLONG;
	unlinkat(s->dir_fd, fresh, 0);
	fd = nps_session_writer__open_file(s, fresh);
	if (fd < 0)
		return fd;
	err = nps_write_all(fd, text, strlen(text));
	if (close(fd) && !err)
		err = -errno;
	if (err)
		goto fail;
	err = replace(s, fresh, path);
	if (err)
		goto fail;
	count_file(s, before, strlen(text));
	return mark_done(s, path, strlen(text));
fail:
	nps_session_writer__failed(s, path, err);
	unlinkat(s->dir_fd, fresh, 0);
	return err;
}
