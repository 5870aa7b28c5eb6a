/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/call_class.h"

#include "base/util.h"

#include <string.h>

static bool name_is_listed(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

enum nps_os_call_class nps_os_call_class(const char *name)
{
	static const char *const locks[] = { "futex",	   "futex_wait",    "futex_waitv",
					     "futex_wake", "futex_requeue", "flock",
					     "semop",	   "semtimedop",    "futex_time64" };
	static const char *const io[] = {
		"read",
		"write",
		"pread64",
		"pwrite64",
		"readv",
		"writev",
		"preadv",
		"pwritev",
		"preadv2",
		"pwritev2",
		"recvfrom",
		"recvmsg",
		"recvmmsg",
		"sendto",
		"sendmsg",
		"sendmmsg",
		"sendfile",
		"splice",
		"tee",
		"vmsplice",
		"copy_file_range",
		"fsync",
		"fdatasync",
		"sync",
		"syncfs",
		"msync",
		"readahead",
		"sync_file_range",
		"open",
		"openat",
		"openat2",
		"creat",
		"close",
		"connect",
		"accept",
		"accept4",
		"io_submit",
		"fallocate",
		"truncate",
		"io_getevents",
		"getdents",
		"getdents64",
		"ftruncate",
		"unlink",
		"unlinkat",
		"rename",
		"renameat",
		"renameat2",
		"mkdir",
		"mkdirat",
		"rmdir",
		"stat",
		"fstat",
		"lstat",
		"newfstatat",
		"statx",
		"fadvise64",
		"lseek",
		"access",
		"faccessat",
		"readlink",
		"readlinkat",
		"io_uring_enter",
	};

	return name_is_listed(name, locks, NPS_ARRAY_SIZE(locks)) ? NPS_OS_LOCK
	       : name_is_listed(name, io, NPS_ARRAY_SIZE(io))	  ? NPS_OS_IO
								  : NPS_OS_OTHER;
}

bool nps_is_device_wait(const char *name)
{
	static const char *const blocking[] = {
		"aclrtMemcpy",	   "aclrtMemcpy2d",	   "rtMemcpy",	      "rtMemcpy2d",
		"rtsMemcpy",	   "aclmdlExecute",	   "aclmdlExecuteV2", "rtModelExecuteSync",
		"aclmdlRIExecute", "aclrtFreeWithDevSync", "aclrtMemcpyBatch"
	};

	return strstr(name, "Synchronize") || name_is_listed(name, blocking, NPS_ARRAY_SIZE(blocking));
}
