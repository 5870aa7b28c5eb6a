/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded: one call fails, as it does on a full disk or without memory.
 *   FAIL_KIND   malloc, mmap, open, opendir, stat, read, write, pwrite, ftruncate, fallocate, fsync, rename,
 *               close, mkdir, thread, fork
 *   FAIL_AT     number of the call of that kind that fails, from 1; 0: none
 *   FAIL_STAYS  set: all later calls fail, too
 *   FAIL_ERRNO  what they fail with
 *   FAIL_STOP   set: the process is stopped at that call, which does not fail
 *   FAIL_COUNT  file to which each process appends how many calls it saw
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static const char *failing, *count_file;
static long fail_at, calls;
static bool stays, stops;
static int fail_errno;

static long number(const char *name)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void)
{
	fail_at = number("FAIL_AT");
	stays = getenv("FAIL_STAYS") != NULL;
	stops = getenv("FAIL_STOP") != NULL;
	fail_errno = (int)number("FAIL_ERRNO");
	count_file = getenv("FAIL_COUNT");
	failing = getenv("FAIL_KIND");
}

/* By system calls: those of libc are the ones that fail. */
__attribute__((destructor)) static void end(void)
{
	char text[32];
	int len, fd;

	if (!count_file || !failing)
		return;
	len = snprintf(text, sizeof(text), "%ld\n", calls);
	fd = (int)syscall(SYS_openat, AT_FDCWD, count_file, O_CREAT | O_WRONLY | O_APPEND, 0600);
	if (fd < 0 || syscall(SYS_write, fd, text, len) != len)
		_exit(99);
	syscall(SYS_close, fd);
}

static bool fails(const char *kind)
{
	long call;

	if (!failing || strcmp(failing, kind))
		return false;
	call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	if (!fail_at || (stays ? call < fail_at : call != fail_at))
		return false;
	if (stops) {
		kill(getpid(), SIGSTOP);
		return false;
	}
	errno = fail_errno;
	return true;
}

void *malloc(size_t size)
{
	return fails("malloc") ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails("malloc") ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	return size && fails("malloc") ? NULL : __libc_realloc(old, size);
}

#define NEXT(name)                                                                                           \
	static __typeof__(&name) next;                                                                       \
	if (!next)                                                                                           \
	next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* A function NAME that fails as KIND with WRONG. */
#define CALL(kind, type, wrong, name, args, ...)                                                             \
	type name args                                                                                       \
	{                                                                                                    \
		NEXT(name);                                                                                  \
		return fails(kind) ? (wrong) : next(__VA_ARGS__);                                            \
	}

#define OPENING(name, args, ...)                                                                             \
	int name args                                                                                        \
	{                                                                                                    \
		va_list ap;                                                                                  \
		mode_t mode;                                                                                 \
		NEXT(name);                                                                                  \
		va_start(ap, flags);                                                                         \
		mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;                             \
		va_end(ap);                                                                                  \
		return fails("open") ? -1 : next(__VA_ARGS__, mode);                                         \
	}

OPENING(open, (const char *path, int flags, ...), path, flags)
OPENING(open64, (const char *path, int flags, ...), path, flags)
OPENING(openat, (int dir, const char *path, int flags, ...), dir, path, flags)
OPENING(openat64, (int dir, const char *path, int flags, ...), dir, path, flags)
CALL("open", FILE *, NULL, fopen, (const char *path, const char *mode), path, mode)
CALL("open", FILE *, NULL, fopen64, (const char *path, const char *mode), path, mode)
CALL("open", FILE *, NULL, fdopen, (int fd, const char *mode), fd, mode)
CALL("opendir", DIR *, NULL, opendir, (const char *path), path)
CALL("opendir", DIR *, NULL, fdopendir, (int fd), fd)
CALL("opendir", struct dirent *, NULL, readdir, (DIR * dir), dir)
CALL("opendir", struct dirent64 *, NULL, readdir64, (DIR * dir), dir)
CALL("stat", int, -1, stat, (const char *path, struct stat *st), path, st)
CALL("stat", int, -1, lstat, (const char *path, struct stat *st), path, st)
CALL("stat", int, -1, fstat, (int fd, struct stat *st), fd, st)
CALL("stat", int, -1, fstatat, (int dir, const char *path, struct stat *st, int flags), dir, path, st, flags)
CALL("stat", int, -1, faccessat, (int dir, const char *path, int mode, int flags), dir, path, mode, flags)
CALL("stat", int, -1, access, (const char *path, int mode), path, mode)
CALL("read", ssize_t, -1, read, (int fd, void *to, size_t len), fd, to, len)
CALL("read", ssize_t, -1, pread, (int fd, void *to, size_t len, off_t at), fd, to, len, at)
CALL("read", ssize_t, -1, pread64, (int fd, void *to, size_t len, off64_t at), fd, to, len, at)
CALL("pwrite", ssize_t, -1, pwrite, (int fd, const void *from, size_t len, off_t at), fd, from, len, at)
CALL("pwrite", ssize_t, -1, pwrite64, (int fd, const void *from, size_t len, off64_t at), fd, from, len, at)
CALL("ftruncate", int, -1, ftruncate, (int fd, off_t len), fd, len)
CALL("ftruncate", int, -1, ftruncate64, (int fd, off64_t len), fd, len)
CALL("fallocate", int, -1, fallocate, (int fd, int mode, off_t at, off_t len), fd, mode, at, len)
CALL("fallocate", int, -1, fallocate64, (int fd, int mode, off64_t at, off64_t len), fd, mode, at, len)
CALL("fallocate", int, fail_errno, posix_fallocate, (int fd, off_t at, off_t len), fd, at, len)
CALL("fallocate", int, fail_errno, posix_fallocate64, (int fd, off64_t at, off64_t len), fd, at, len)
CALL("fsync", int, -1, fsync, (int fd), fd)
CALL("fsync", int, -1, fdatasync, (int fd), fd)
CALL("rename", int, -1, renameat, (int a, const char *from, int b, const char *to), a, from, b, to)
CALL("rename", int, -1, renameat2, (int a, const char *from, int b, const char *to, unsigned int flags), a,
     from, b, to, flags)
CALL("mkdir", int, -1, mkdir, (const char *path, mode_t mode), path, mode)
CALL("mkdir", int, -1, mkdirat, (int dir, const char *path, mode_t mode), dir, path, mode)
CALL("mmap", void *, MAP_FAILED, mmap, (void *at, size_t len, int prot, int flags, int fd, off_t from), at,
     len, prot, flags, fd, from)
CALL("mmap", void *, MAP_FAILED, mmap64, (void *at, size_t len, int prot, int flags, int fd, off64_t from),
     at, len, prot, flags, fd, from)
CALL("thread", int, fail_errno, pthread_create,
     (pthread_t * id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg), id, attr, fn, arg)
CALL("fork", pid_t, -1, fork, (void), )

/* Messages of a program to its user are not to fail. */
ssize_t write(int fd, const void *from, size_t len)
{
	NEXT(write);
	return fd > 2 && fails("write") ? -1 : next(fd, from, len);
}

ssize_t writev(int fd, const struct iovec *from, int n)
{
	NEXT(writev);
	return fd > 2 && fails("write") ? -1 : next(fd, from, n);
}

/* As Linux does: the descriptor is closed all the same. */
int close(int fd)
{
	NEXT(close);
	if (fd > 2 && fails("close")) {
		next(fd);
		errno = fail_errno;
		return -1;
	}
	return next(fd);
}
