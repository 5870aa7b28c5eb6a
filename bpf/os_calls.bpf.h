/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* System calls by number: which of their arguments to decode. */
#ifndef NPS_OS_CALLS_BPF_H
#define NPS_OS_CALLS_BPF_H

#include "common.bpf.h"

enum os_call {
	CALL_BYTES = 0x1, /* the result is a number of bytes */
	CALL_FD = 0x2, /* the kind of the descriptor in the first argument is recorded */
	CALL_SOCKET = 0x4, /* it is always a socket */
	CALL_PATH = 0x8, /* the first argument is a path */
	CALL_PATH_AT = 0x10, /* the second one is */
	CALL_TIME = 0x20, /* has a timeout: see timeout_of() */
	CALL_FUTEX = 0x40,
	CALL_MAPS = 0x80, /* can map code into the process: the reader has to know */
};

#define OS_CALLS 512 /* a power of two */

static const __u8 os_calls[OS_CALLS] = {
#if defined(__TARGET_ARCH_x86)
	[0] = CALL_FD | CALL_BYTES, /* read */
	[1] = CALL_FD | CALL_BYTES, /* write */
	[2] = CALL_PATH, /* open */
	[7] = CALL_TIME, /* poll */
	[9] = CALL_MAPS, /* mmap */
	[16] = CALL_FD, /* ioctl */
	[17] = CALL_FD | CALL_BYTES, /* pread64 */
	[18] = CALL_FD | CALL_BYTES, /* pwrite64 */
	[19] = CALL_FD | CALL_BYTES, /* readv */
	[20] = CALL_FD | CALL_BYTES, /* writev */
	[23] = CALL_TIME, /* select */
	[35] = CALL_TIME, /* nanosleep */
	[40] = CALL_FD | CALL_BYTES, /* sendfile: the first is what it sends to */
	[44] = CALL_SOCKET | CALL_BYTES, /* sendto */
	[45] = CALL_SOCKET | CALL_BYTES, /* recvfrom */
	[46] = CALL_SOCKET | CALL_BYTES, /* sendmsg */
	[47] = CALL_SOCKET | CALL_BYTES, /* recvmsg */
	[85] = CALL_PATH, /* creat */
	[202] = CALL_FUTEX,
	[230] = CALL_TIME, /* clock_nanosleep */
	[232] = CALL_TIME, /* epoll_wait */
	[257] = CALL_PATH_AT, /* openat */
	[270] = CALL_TIME, /* pselect6 */
	[271] = CALL_TIME, /* ppoll */
	[275] = CALL_BYTES, /* splice */
	[276] = CALL_BYTES, /* tee */
	[278] = CALL_BYTES, /* vmsplice */
	[281] = CALL_TIME, /* epoll_pwait */
	[295] = CALL_FD | CALL_BYTES, /* preadv */
	[296] = CALL_FD | CALL_BYTES, /* pwritev */
	[319] = CALL_MAPS, /* memfd_create */
	[326] = CALL_BYTES, /* copy_file_range */
	[327] = CALL_FD | CALL_BYTES, /* preadv2 */
	[328] = CALL_FD | CALL_BYTES, /* pwritev2 */
#else
	[22] = CALL_TIME, /* epoll_pwait */
	[29] = CALL_FD, /* ioctl */
	[56] = CALL_PATH_AT, /* openat */
	[63] = CALL_FD | CALL_BYTES, /* read */
	[64] = CALL_FD | CALL_BYTES, /* write */
	[65] = CALL_FD | CALL_BYTES, /* readv */
	[66] = CALL_FD | CALL_BYTES, /* writev */
	[67] = CALL_FD | CALL_BYTES, /* pread64 */
	[68] = CALL_FD | CALL_BYTES, /* pwrite64 */
	[69] = CALL_FD | CALL_BYTES, /* preadv */
	[70] = CALL_FD | CALL_BYTES, /* pwritev */
	[71] = CALL_FD | CALL_BYTES, /* sendfile: the first is what it sends to */
	[72] = CALL_TIME, /* pselect6 */
	[73] = CALL_TIME, /* ppoll */
	[75] = CALL_BYTES, /* vmsplice */
	[76] = CALL_BYTES, /* splice */
	[77] = CALL_BYTES, /* tee */
	[98] = CALL_FUTEX,
	[101] = CALL_TIME, /* nanosleep */
	[115] = CALL_TIME, /* clock_nanosleep */
	[206] = CALL_SOCKET | CALL_BYTES, /* sendto */
	[207] = CALL_SOCKET | CALL_BYTES, /* recvfrom */
	[211] = CALL_SOCKET | CALL_BYTES, /* sendmsg */
	[212] = CALL_SOCKET | CALL_BYTES, /* recvmsg */
	[222] = CALL_MAPS, /* mmap */
	[279] = CALL_MAPS, /* memfd_create */
	[285] = CALL_BYTES, /* copy_file_range */
	[286] = CALL_FD | CALL_BYTES, /* preadv2 */
	[287] = CALL_FD | CALL_BYTES, /* pwritev2 */
#endif
	[437] = CALL_PATH_AT, /* openat2 */
	[441] = CALL_TIME, /* epoll_pwait2 */
};

#define HIGHEST_CALL 4096 /* far above all that exist */
#define X86_IN_COMPAT_CALL 0x2 /* TS_COMPAT */
#define ARM64_RUNS_32_BITS (1UL << 22) /* TIF_32BIT */

/*
 * Does the number mean another call, or none? So it is in 32-bit
 * programs, and 64-bit ones can make 32-bit calls too.
 */
static __always_inline bool is_foreign(struct task_struct *current, __u64 nr)
{
#if defined(__TARGET_ARCH_x86)
	__u32 status = has_task_storage ? current->thread_info.status
					: BPF_CORE_READ(current, thread_info.status);

	return nr >= HIGHEST_CALL || status & X86_IN_COMPAT_CALL;
#else
	__u64 flags = has_task_storage ? current->thread_info.flags
				       : BPF_CORE_READ(current, thread_info.flags);

	return nr >= HIGHEST_CALL || flags & ARM64_RUNS_32_BITS;
#endif
}

static __always_inline __u8 os_call(__u32 nr)
{
	__u64 i = nr;

	if (nr >= OS_CALLS)
		return 0;
	/* the verifier keeps the bound of a mask where it forgets that of a comparison */
	asm volatile("%0 &= %1" : "+r"(i) : "i"(OS_CALLS - 1));
	return os_calls[i];
}

/* The first four arguments of the system call whose registers are REGS, at entry and at return. */
static __always_inline long os_call_args(struct pt_regs *regs, __u64 arg[4])
{
#if defined(__TARGET_ARCH_x86)
	__u64 r[8]; /* from r10 to di; between them r11, cx and ax, which hold values of the return */
	long err = bpf_probe_read_kernel(r, sizeof(r), &regs->r10);

	arg[0] = r[7];
	arg[1] = r[6];
	arg[2] = r[5];
	arg[3] = r[0];
	return err;
#else
	long err = bpf_probe_read_kernel(arg, 4 * sizeof(arg[0]), &regs->user_regs.regs[0]);

	/* at the return x0 has the result */
	return err ? err : bpf_probe_read_kernel(&arg[0], sizeof(arg[0]), &regs->orig_x0);
#endif
}

/* As os_call_args(), of a copy of the registers of a call that has not returned. */
static __always_inline void os_call_args_of(const struct pt_regs *regs, __u64 arg[4])
{
#if defined(__TARGET_ARCH_x86)
	arg[0] = regs->di;
	arg[1] = regs->si;
	arg[2] = regs->dx;
	arg[3] = regs->r10;
#else
	arg[0] = regs->orig_x0;
	arg[1] = regs->user_regs.regs[1];
	arg[2] = regs->user_regs.regs[2];
	arg[3] = regs->user_regs.regs[3];
#endif
}

#define NO_END (~0ULL)

static __always_inline __u64 time_at(__u64 address, __u64 fraction_ns)
{
	__u64 t[2];

	if (!address)
		return NO_END;
	if (bpf_probe_read_user(t, sizeof(t), (void *)address)) {
		count_up(NPS_COUNTER_FAULT);
		return NO_END;
	}
	return t[0] * 1000000000ULL + t[1] * fraction_ns;
}

/* CLOCK_REALTIME minus CLOCK_MONOTONIC, ns; the collector sets it. */
volatile __s64 realtime_offset = 0;

#define SLEEP_UNTIL 1U /* TIMER_ABSTIME */

/* Remaining time, ns, of a sleep until a time of CLOCK; for a clock of CPU time that time itself. */
static __always_inline __u64 time_left(__u32 clock, __u64 until)
{
	__u64 now;

	switch (clock) {
	case 0: /* CLOCK_REALTIME, and its alarm */
	case 8:
		now = bpf_ktime_get_ns() + realtime_offset;
		break;
	case 1: /* CLOCK_MONOTONIC */
		now = bpf_ktime_get_ns();
		break;
	case 7: /* CLOCK_BOOTTIME, and its alarm */
	case 9:
		now = bpf_ktime_get_boot_ns();
		break;
	default:
		return until;
	}
	return until > now ? until - now : 0;
}

/* clock_nanosleep */
static __always_inline __u64 time_of_sleep(const __u64 arg[4])
{
	__u64 time = time_at(arg[2], 1);

	return time != NO_END && arg[1] & SLEEP_UNTIL ? time_left(arg[0], time) : time;
}

static __always_inline __u64 time_of_ms(__s32 ms)
{
	return ms < 0 ? NO_END : (__u64)ms * 1000000;
}

/* Timeout, ns, of a call with CALL_TIME. Read when the call begins: some write back the remaining time. */
static __always_inline __u64 timeout_of(__u32 nr, struct pt_regs *regs, const __u64 arg[4])
{
	__u64 fifth = 0;

	switch (nr) {
#if defined(__TARGET_ARCH_x86)
	case 7: /* poll */
		return time_of_ms(arg[2]);
	case 232: /* epoll_wait */
	case 281: /* epoll_pwait */
		return time_of_ms(arg[3]);
	case 35: /* nanosleep */
		return time_at(arg[0], 1);
	case 230: /* clock_nanosleep */
		return time_of_sleep(arg);
	case 271: /* ppoll */
		return time_at(arg[2], 1);
	case 441: /* epoll_pwait2 */
		return time_at(arg[3], 1);
	default: /* select, pselect6 */
		bpf_probe_read_kernel(&fifth, sizeof(fifth), &regs->r8);
		return time_at(fifth, nr == 23 ? 1000 : 1);
#else
	case 22: /* epoll_pwait */
		return time_of_ms(arg[3]);
	case 101: /* nanosleep */
		return time_at(arg[0], 1);
	case 115: /* clock_nanosleep */
		return time_of_sleep(arg);
	case 73: /* ppoll */
		return time_at(arg[2], 1);
	case 441: /* epoll_pwait2 */
		return time_at(arg[3], 1);
	default: /* pselect6 */
		bpf_probe_read_kernel(&fifth, sizeof(fifth), &regs->user_regs.regs[4]);
		return time_at(fifth, 1);
#endif
	}
}

/* Device nodes of the NPU's driver by the first 8 bytes of their names; numbers and suffixes follow. */
static __always_inline bool is_npu_name(const char name[8])
{
	static const char known[][8] = { "davinci", "vdavinci", "devmm_s", "hisi_hd",
					 "dvpp_cm", "event_s",	"xsmem_d", "queue_m" };

	for (int k = 0; k < 8; k++) {
		bool same = true;

		for (int i = 0; i < 7; i++)
			same &= name[i] == known[k][i];
		if (same)
			return true;
	}
	return false;
}

#define S_IFMT_ 0170000
#define S_IFSOCK_ 0140000
#define S_IFCHR_ 0020000

/* The kind of descriptor FD of a thread: NPS_F_SOCKET, NPS_F_NPU_NODE or 0. */
static __always_inline __u8 fd_kind(struct task_struct *task, __u32 fd)
{
	struct fdtable *table;
	struct file *file = NULL, **files;
	__u32 n;
	struct inode *inode;
	__u16 mode;

	/*
	 * Where the verifier knows the pointer's type it can be read directly, without reads that can fail.
	 */
	if (has_task_storage) {
		table = task->files->fdt;
		files = table->fd;
		n = table->max_fds;
	} else {
		table = BPF_CORE_READ(task, files, fdt);
		files = BPF_CORE_READ(table, fd);
		n = BPF_CORE_READ(table, max_fds);
	}
	if (fd >= n || bpf_probe_read_kernel(&file, sizeof(file), files + fd) || !file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	mode = BPF_CORE_READ(inode, i_mode) & S_IFMT_;
	if (mode == S_IFSOCK_)
		return NPS_F_SOCKET;
	if (mode == S_IFCHR_) {
		const unsigned char *at = BPF_CORE_READ(file, f_path.dentry, d_name.name);
		char name[8] = {};

		bpf_probe_read_kernel_str(name, sizeof(name), at);
		return is_npu_name(name) ? NPS_F_NPU_NODE : 0;
	}
	return 0;
}

#endif
