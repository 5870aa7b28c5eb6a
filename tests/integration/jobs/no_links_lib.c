// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes the kernel look older to the program it is preloaded to: links of the attach types in NO_LINKS (numbers, commas between) are
 * refused as a kernel refuses what it does not know.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static int refused(unsigned int type)
{
	for (const char *at = getenv("NO_LINKS"); at && *at;
	     at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strtoul(at, NULL, 10) == type)
			return 1;
	return 0;
}

long syscall(long nr, ...)
{
	static long (*real)(long, ...);
	const union bpf_attr *attr;
	long arg[6];
	va_list ap;

	if (!real) {
		void *f = dlsym(RTLD_NEXT, "syscall");

		memcpy(&real, &f, sizeof(f));
	}
	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	attr = (const union bpf_attr *)arg[1];
	if (nr == SYS_bpf && arg[0] == BPF_LINK_CREATE && refused(attr->link_create.attach_type)) {
		errno = EINVAL;
		return -1;
	}
	return real(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
