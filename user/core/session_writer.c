/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/session_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "core/log.h"

#define RESERVE_MAX (1UL << 20) /* bytes for the last session.json */
#define DELETED " (deleted)" /* what the kernel appends to the path of a descriptor */
#define DEPTH_MAX 8 /* of nested directories in a session */
#define RESERVE_SHARE 4 /* of the free space, one part at most */

int nps_write_all(int fd, const void *buf, size_t len)
{
	const char *at = buf;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENOSPC;
		at += n;
		len -= n;
	}
	return 0;
}

int nps_sync(int fd)
{
	if (!fsync(fd) || errno == EINVAL || errno == ENOTSUP)
		return 0;
	return -errno;
}

static int create_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);

	return fd < 0 ? -errno : fd;
}

static int stream_open(struct nps_session_writer *s, struct nps_stream *st, const char *name)
{
	st->fd = create_file(s->dir_fd, name);
	return st->fd < 0 ? st->fd : 0;
}

/* A host name may contain any characters, our file names must not. */
static void clean_name(char *s)
{
	for (; *s; s++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", *s))
			*s = '_';
}

static void session_name(char *buf, size_t size)
{
	struct utsname uts = { .nodename = "host" };
	struct timespec now;
	char stamp[32];
	struct tm tm;

	uname(&uts);
	clean_name(uts.nodename);
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d%H%M%S", &tm);
	snprintf(buf, size, "npuscope_%.64s_%s%03ld", uts.nodename, stamp, now.tv_nsec / 1000000);
}

static int open_out(const char *name)
{
	size_t len = strlen(name);
	char out[PATH_MAX];
	struct stat st;
	int fd;

	/* `link/` would follow the link */
	while (len > 1 && name[len - 1] == '/')
		len--;
	if (snprintf(out, sizeof(out), "%.*s", (int)len, name) >= (int)sizeof(out)) {
		nps_warn("cannot use the output directory: its name is too long: choose another with -o");
		return -ENAMETOOLONG;
	}

	if (mkdir(out, 0750) && errno != EEXIST) {
		nps_warn("cannot create output directory %s: %s: choose another with -o", out,
			 strerror(errno));
		return -errno;
	}
	if (!lstat(out, &st) && S_ISLNK(st.st_mode)) {
		nps_warn("cannot use output directory %s: it is a symbolic link: name the directory itself",
			 out);
		return -ELOOP;
	}
	fd = open(out, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		nps_warn("cannot use output directory %s: %s: choose another with -o", out, strerror(errno));
		return -errno;
	}
	return fd;
}

/*
 * Reserves space for the last session.json in case of a full disk: an unnamed file, which disappears even
 * after a SIGKILL. Not every file system supports that.
 */
static void reserve_room(struct nps_session_writer *s)
{
	struct statvfs vfs;
	off_t room;
	int fd;

	if (fstatvfs(s->dir_fd, &vfs))
		return;
	room = (off_t)(vfs.f_bavail < RESERVE_MAX * RESERVE_SHARE / vfs.f_frsize
			       ? vfs.f_bavail * vfs.f_frsize / RESERVE_SHARE
			       : RESERVE_MAX);
	fd = openat(s->dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	s->reserve = fd + 1;
	if (fd >= 0 && room && fallocate(fd, 0, 0, room))
		nps_debug("no room is reserved for session.json: %s", strerror(errno));
}

static int create_files(struct nps_session_writer *s, const cJSON *description)
{
	int err = description ? nps_session_writer__write_json(s, description, true) : 0;

	if (err)
		return err;
	err = stream_open(s, &s->events, "events.nps");
	if (err)
		return err;
	err = stream_open(s, &s->strings, "strings.nps");
	if (err)
		return err;
	err = stream_open(s, &s->clocks, "clocks.nps");
	if (err)
		return err;
	reserve_room(s);
	return 0;
}

/* Creates the session's directory in OUT, which is open as OUT_FD, and its files. */
static int create_directory(struct nps_session_writer *s, const char *out, int out_fd,
			    const cJSON *description)
{
	char name[128], real[PATH_MAX];
	int err;

	session_name(name, sizeof(name));
	err = mkdirat(out_fd, name, 0750) ? -errno : 0;
	/* In case of two captures that begin in the same millisecond. */
	for (int i = 0; err == -EEXIST && i < 1000; i++) {
		usleep(1000);
		session_name(name, sizeof(name));
		err = mkdirat(out_fd, name, 0750) ? -errno : 0;
	}
	if (err)
		return err;
	s->dir_fd = openat(out_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->dir_fd < 0)
		return -errno;
	if (!realpath(out, real) ||
	    snprintf(s->path, sizeof(s->path), "%s/%s", real, name) >= (int)sizeof(s->path))
		return -ENAMETOOLONG;
	return create_files(s, description);
}

int nps_session_writer__create_with(const char *out, const cJSON *description, struct nps_session_writer *s)
{
	int out_fd, err;

	memset(s, 0, sizeof(*s));
	s->dir_fd = s->events.fd = s->strings.fd = s->clocks.fd = s->host.fd = s->device.fd = s->python.fd =
		-1;
	out_fd = open_out(out);
	if (out_fd < 0)
		return out_fd;
	err = create_directory(s, out, out_fd, description);
	close(out_fd);
	if (err) {
		nps_warn("cannot write in output directory %s: %s: choose another with -o", out,
			 strerror(-err));
		nps_session_writer__discard(s);
	}
	return err;
}

int nps_session_writer__create(const char *out, struct nps_session_writer *s)
{
	return nps_session_writer__create_with(out, NULL, s);
}

int nps_session_writer__open_python(struct nps_session_writer *s)
{
	return stream_open(s, &s->python, "python.nps");
}

int nps_session_writer__open_host(struct nps_session_writer *s)
{
	return stream_open(s, &s->host, "host.nps");
}

int nps_session_writer__open_device(struct nps_session_writer *s)
{
	return stream_open(s, &s->device, "device.nps");
}

static bool path_leads_to(const char *path, const struct stat *to)
{
	struct stat st;

	return !stat(path, &st) && st.st_dev == to->st_dev && st.st_ino == to->st_ino;
}

bool nps_session_writer__is_deleted(const struct nps_session_writer *s)
{
	struct stat dir, events;

	return !fstat(s->dir_fd, &dir) && !fstat(s->events.fd, &events) &&
	       (!dir.st_nlink || !events.st_nlink);
}

enum nps_session_location nps_session_writer__locate(struct nps_session_writer *s)
{
	char link[48], now[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fstat(s->dir_fd, &st))
		return NPS_SESSION_UNREACHABLE;
	if (!st.st_nlink)
		return NPS_SESSION_DELETED;
	if (path_leads_to(s->path, &st))
		return NPS_SESSION_THERE;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", s->dir_fd);
	n = readlink(link, now, sizeof(now) - 1);
	if (n <= 0)
		return NPS_SESSION_UNREACHABLE;
	now[n] = '\0';
	/* Not every file system shows a deletion in the link count. */
	if (n > (ssize_t)strlen(DELETED) && !strcmp(now + n - strlen(DELETED), DELETED) &&
	    !path_leads_to(now, &st))
		return NPS_SESSION_DELETED;
	if (!path_leads_to(now, &st))
		return NPS_SESSION_UNREACHABLE;
	snprintf(s->path, sizeof(s->path), "%s", now);
	return NPS_SESSION_MOVED;
}

void nps_session_writer__release_reserve(struct nps_session_writer *s)
{
	if (s->reserve)
		close(s->reserve - 1);
	s->reserve = 0;
}

void nps_session_writer__close(struct nps_session_writer *s)
{
	int *fds[] = { &s->events.fd, &s->strings.fd, &s->clocks.fd, &s->host.fd,
		       &s->device.fd, &s->python.fd,  &s->dir_fd };

	nps_session_writer__release_reserve(s);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

/* Removes all entries of directory DIR except KEPT. Errors are ignored. */
static void remove_entries(int dir, const char *kept, int depth)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), below;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!d && fd >= 0)
		close(fd);
	while (d && (entry = readdir(d))) {
		const char *name = entry->d_name;

		if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, kept) ||
		    !unlinkat(dir, name, 0))
			continue;
		below = depth ? openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
		if (below < 0)
			continue;
		remove_entries(below, "", depth - 1);
		close(below);
		unlinkat(dir, name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

void nps_session_writer__discard(struct nps_session_writer *s)
{
	if (s->dir_fd < 0)
		return;
	remove_entries(s->dir_fd, "session.json", DEPTH_MAX);
	if (nps_session_writer__locate(s) == NPS_SESSION_DELETED) {
		nps_session_writer__close(s);
		return;
	}
	unlinkat(s->dir_fd, "session.json", 0);
	if (rmdir(s->path))
		nps_warn("cannot remove %s: %s: nothing was recorded in it: remove it", s->path,
			 strerror(errno));
	nps_session_writer__close(s);
}

void nps_session_writer__failed(struct nps_session_writer *s, const char *path, int err)
{
	nps_debug("cannot write %s/%s: %s", s->path, path, strerror(-err));
	if (atomic_fetch_add(&s->failures, 1))
		return;
	snprintf(s->failed_path, sizeof(s->failed_path), "%s", path);
	s->failed_error = err;
}

static int write_both(int fd, const void *head, size_t head_len, const void *body, size_t body_len)
{
	struct iovec v[] = { { (void *)head, head_len }, { (void *)body, body_len } };
	ssize_t n = writev(fd, v, 2);
	size_t done = n > 0 ? (size_t)n : 0;
	int err = 0;

	if (n < 0 && errno != EINTR)
		return -errno;
	if (done < head_len)
		err = nps_write_all(fd, (const char *)head + done, head_len - done);
	if (err)
		return err;
	done = done > head_len ? done - head_len : 0;
	return nps_write_all(fd, (const char *)body + done, body_len - done);
}

int nps_stream__append(struct nps_stream *st, uint16_t type, uint32_t cpu, const void *payload, uint32_t len)
{
	struct nps_chunk c = { .magic = NPS_CHUNK_MAGIC,
			       .version = NPS_SESSION_VERSION,
			       .type = type,
			       .seq = st->seq,
			       .len = len,
			       .crc = crc32(0, payload, len),
			       .cpu = cpu };
	int err = atomic_load(&st->error);

	if (err)
		return err;
	err = write_both(st->fd, &c, sizeof(c), payload, len);
	if (err) {
		atomic_store(&st->error, err);
		/* A reader would detect the incomplete chunk, too; this removes it. */
		if (ftruncate(st->fd, (off_t)atomic_load(&st->size)))
			nps_debug("cannot take back half a chunk: %s", strerror(errno));
		return err;
	}
	st->seq++;
	atomic_fetch_add(&st->size, sizeof(c) + len);
	return 0;
}

int nps_session_writer__error(const struct nps_session_writer *s)
{
	const struct nps_stream *streams[] = { &s->events, &s->strings, &s->clocks,
					       &s->host,   &s->device,	&s->python };

	for (size_t i = 0; i < sizeof(streams) / sizeof(*streams); i++) {
		int err = atomic_load(&streams[i]->error);

		if (err)
			return err;
	}
	return 0;
}

uint64_t nps_session_writer__bytes(const struct nps_session_writer *s)
{
	return atomic_load(&s->events.size) + atomic_load(&s->strings.size) + atomic_load(&s->clocks.size) +
	       atomic_load(&s->host.size) + atomic_load(&s->device.size) + atomic_load(&s->python.size) +
	       atomic_load(&s->other_bytes);
}

void nps_session_writer__add_bytes(struct nps_session_writer *s, uint64_t bytes)
{
	atomic_fetch_add(&s->other_bytes, bytes);
}

static int write_line(int fd, const char *text, bool durable)
{
	int err = nps_write_all(fd, text, strlen(text));

	if (err)
		return err;
	err = nps_write_all(fd, "\n", 1);
	if (err)
		return err;
	return durable ? nps_sync(fd) : 0;
}

int nps_session_writer__write_json(struct nps_session_writer *s, const cJSON *json, bool durable)
{
	char *text = cJSON_Print(json);
	int fd, err;

	if (!text)
		return -ENOMEM;
	unlinkat(s->dir_fd, "session.json.new", 0);
	fd = create_file(s->dir_fd, "session.json.new");
	err = fd < 0 ? fd : write_line(fd, text, durable);
	if (fd >= 0 && close(fd) && !err)
		err = -errno;
	if (!err && renameat(s->dir_fd, "session.json.new", s->dir_fd, "session.json"))
		err = -errno;
	if (!err && durable)
		err = nps_sync(s->dir_fd);
	if (err)
		unlinkat(s->dir_fd, "session.json.new", 0);
	free(text);
	return err;
}

static int open_file(struct nps_session_writer *s, const char *path)
{
	char copy[PATH_MAX];

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return -ENAMETOOLONG;
	for (char *slash = strchr(copy, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(s->dir_fd, copy, 0750) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return create_file(s->dir_fd, copy);
}

int nps_session_writer__open_file(struct nps_session_writer *s, const char *path)
{
	int fd = open_file(s, path);

	if (fd < 0)
		nps_session_writer__failed(s, path, fd);
	return fd;
}

int nps_session_writer__append_file(struct nps_session_writer *s, const char *path)
{
	int fd = openat(s->dir_fd, path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	fd = -errno;
	nps_session_writer__failed(s, path, fd);
	return fd;
}
