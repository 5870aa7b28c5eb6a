// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes the kernel look older to the program it is preloaded to: links of the attach types in NO_LINKS
 * (numbers, commas between) are refused as a kernel refuses what it does not know; with NO_KFUNCS programs
 * that call functions of the kernel are, as by a kernel whose JIT is off; with UPROBES_WANT_ADMIN perf events
 * of functions are refused without CAP_SYS_ADMIN.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define ENOTSUPP 524 /* of the kernel, not of libc */

static int refused(unsigned int type)
{
	for (const char *at = getenv("NO_LINKS"); at && *at;
	     at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strtoul(at, NULL, 10) == type)
			return 1;
	return 0;
}

static int calls_kernel(const union bpf_attr *attr)
{
	const struct bpf_insn *insns = (const struct bpf_insn *)(uintptr_t)attr->insns;

	if (!getenv("NO_KFUNCS"))
		return 0;
	for (unsigned int i = 0; i < attr->insn_cnt; i++)
		if (insns[i].code == (BPF_JMP | BPF_CALL) && insns[i].src_reg == BPF_PSEUDO_KFUNC_CALL)
			return 1;
	return 0;
}

static int is_uprobe(const struct perf_event_attr *attr)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	unsigned int type = 0;
	int n = f ? fscanf(f, "%u", &type) : 0;

	if (f)
		fclose(f);
	return n == 1 && attr->type == type;
}

static int is_admin(long (*real)(long, ...))
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];

	return !real(SYS_capget, &h, d) && d[0].effective >> CAP_SYS_ADMIN & 1;
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
	if (nr == SYS_bpf && arg[0] == BPF_PROG_LOAD && calls_kernel(attr)) {
		errno = ENOTSUPP;
		return -1;
	}
	if (nr == SYS_perf_event_open && getenv("UPROBES_WANT_ADMIN") &&
	    is_uprobe((const struct perf_event_attr *)arg[0]) && !is_admin(real)) {
		errno = EACCES;
		return -1;
	}
	return real(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
