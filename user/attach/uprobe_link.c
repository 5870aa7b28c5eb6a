/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/uprobe_link.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UPROBE_MULTI_RETURN 1U

/* union bpf_attr of BPF_LINK_CREATE as of Linux 6.6. */
struct link_create_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};

static uint64_t ptr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

int nps_uprobe_multi__link(int prog_fd, uint32_t attach_type, const char *path, const uint64_t *offsets,
			   const uint64_t *cookies, uint32_t n, bool returns, int pid)
{
	struct link_create_attr attr = {
		.prog_fd = prog_fd,
		.attach_type = attach_type,
		.path = ptr(path),
		.offsets = ptr(offsets),
		.cookies = ptr(cookies),
		.cnt = n,
		.multi_flags = returns ? UPROBE_MULTI_RETURN : 0,
		.pid = pid,
	};
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

/* Reads a number from the kernel's description of its uprobe events; FORMAT for scanf. -errno. */
static int event_source(const char *file, const char *format)
{
	char path[96];
	int value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/uprobe/%s", file);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	if (fscanf(f, format, &value) != 1)
		value = -EPROTO;
	fclose(f);
	return value;
}

int nps_uprobe_perf__link(int prog_fd, const char *path, uint64_t offset, bool returns)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .config1 = ptr(path), .config2 = offset };
	int type = event_source("type", "%d"),
	    bit = returns ? event_source("format/retprobe", "config:%d") : 0;
	int fd, err = 0;

	if (type < 0 || bit < 0)
		return type < 0 ? type : bit;
	attr.type = (uint32_t)type;
	attr.config = returns ? 1ULL << bit : 0;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog_fd) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		err = -errno;
	if (err)
		close(fd);
	return err ? err : fd;
}

int nps_uprobe_perf__check(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	int type = event_source("type", "%d"), fd;

	if (type < 0)
		return type;
	attr.type = (uint32_t)type;
	/* Rights are checked first: with them the error is that the file is missing. */
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno == EINVAL ? 0 : -errno;
	close(fd);
	return 0;
}

bool nps_uprobe_multi__supported(uint32_t attach_type)
{
	struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach_type);
	uint64_t offset = 0;
	int prog, link;

	prog = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, 2, &opts);
	if (prog < 0)
		return false;
	/* A kernel that supports the link refuses the path, because it is no file. */
	link = nps_uprobe_multi__link(prog, attach_type, "/", &offset, NULL, 1, false, 0);
	close(prog);
	if (link >= 0)
		close(link);
	return link == -EBADF;
}
