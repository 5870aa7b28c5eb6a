/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LD_PRELOAD for npuscope: calls on files whose path contains FAIL_PATH fail with FAIL_ERRNO (a number) while
 * the file FAIL_WHILE exists (unset: always). FAIL_CALL: write (and writev), fsync, renameat, openat, close;
 * "kill": the process is killed when it opens such a file, "kill_rename": when it renames one.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static bool is_meant(const char *call, const char *path)
{
	const char *failing = getenv("FAIL_CALL"), *what = getenv("FAIL_PATH"),
		   *trigger = getenv("FAIL_WHILE");

	return failing && what && !strcmp(failing, call) && strstr(path, what) &&
	       (!trigger || !syscall(SYS_faccessat, AT_FDCWD, trigger, F_OK));
}

static bool fd_is_meant(const char *call, int fd)
{
	char link[64], path[4096] = "";

	if (fd <= 2 || !getenv("FAIL_CALL"))
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, path, sizeof(path) - 1) > 0 && is_meant(call, path);
}

static int fail(void)
{
	errno = getenv("FAIL_ERRNO") ? atoi(getenv("FAIL_ERRNO")) : EIO;
	return -1;
}

ssize_t write(int fd, const void *buf, size_t len)
{
	return fd_is_meant("write", fd) ? fail() : syscall(SYS_write, fd, buf, len);
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
	return fd_is_meant("write", fd) ? fail() : syscall(SYS_writev, fd, v, n);
}

int fsync(int fd)
{
	return fd_is_meant("fsync", fd) ? fail() : (int)syscall(SYS_fsync, fd);
}

int close(int fd)
{
	bool meant = fd_is_meant("close", fd);
	int err = (int)syscall(SYS_close, fd);

	return meant ? fail() : err;
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	static int (*real)(int, const char *, int, const char *);

	if (is_meant("kill_rename", from))
		kill(getpid(), SIGKILL);
	if (!real)
		real = (int (*)(int, const char *, int, const char *))dlsym(RTLD_NEXT, "renameat");
	return is_meant("renameat", from) ? fail() : real(from_dir, from, to_dir, to);
}

int openat(int dir, const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = va_arg(args, int);
	va_end(args);
	if (flags & O_CREAT && is_meant("kill", path))
		kill(getpid(), SIGKILL);
	return flags & O_CREAT && is_meant("openat", path) ? fail()
							   : (int)syscall(SYS_openat, dir, path, flags, mode);
}
