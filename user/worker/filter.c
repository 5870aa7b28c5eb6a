/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seccomp filter of a worker. It allows calls on files, device nodes, memory, threads and local
 * sockets, and nothing that creates or signals another process, opens a network socket, or reaches less
 * used parts of the kernel. execveat(2) has to be allowed, because the worker executes its own program
 * with the filter; anything else that it executes has the same filter.
 */
#include "worker.h"

#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#endif

#define X32_BIT 0x40000000U
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_rseq
#if defined(__x86_64__)
#define SYS_rseq 334
#else
#define SYS_rseq 293
#endif
#endif
#ifndef SYS_statx
#if defined(__x86_64__)
#define SYS_statx 332
#else
#define SYS_statx 291
#endif
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

/* clang-format off */
static const uint16_t allowed[] = {
	/* files; what they may open is decided by the worker's ids */
	SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_openat, SYS_close, SYS_close_range,
	SYS_fstat, SYS_newfstatat, SYS_statx, SYS_statfs, SYS_fstatfs, SYS_lseek, SYS_getdents64, SYS_readlinkat,
	SYS_faccessat, SYS_faccessat2, SYS_flock, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_fadvise64,
	SYS_dup, SYS_dup3, SYS_pipe2, SYS_mkdirat, SYS_unlinkat, SYS_renameat, SYS_renameat2, SYS_umask, SYS_getcwd,
	/* memory */
	SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk, SYS_msync, SYS_mincore, SYS_mlock,
	SYS_munlock, SYS_membarrier, SYS_get_mempolicy,
	/* threads, signals within the process, and its end */
	SYS_futex, SYS_set_robust_list, SYS_get_robust_list, SYS_rseq, SYS_set_tid_address, SYS_exit, SYS_exit_group,
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_sigaltstack,
	SYS_restart_syscall, SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sched_getparam,
	SYS_sched_getscheduler, SYS_sched_get_priority_max, SYS_sched_get_priority_min,
	/* time, and what it is */
	SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_times,
	SYS_getpid, SYS_gettid, SYS_getppid, SYS_getpgid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
	SYS_getgroups, SYS_getresuid, SYS_getresgid, SYS_uname, SYS_sysinfo, SYS_getrusage, SYS_getcpu, SYS_getrandom,
	SYS_capget,
	/* waiting */
	SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_eventfd2,
	SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime, SYS_timer_create, SYS_timer_settime,
	SYS_timer_gettime, SYS_timer_delete,
	/* sockets; how they are made is below */
	SYS_connect, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_shutdown,
	SYS_getsockname, SYS_getpeername, SYS_setsockopt, SYS_getsockopt,
#if defined(__x86_64__)
	SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_dup2, SYS_pipe, SYS_mkdir, SYS_unlink, SYS_rmdir,
	SYS_rename, SYS_getdents, SYS_poll, SYS_select, SYS_epoll_create, SYS_epoll_wait, SYS_eventfd,
	SYS_time, SYS_arch_prctl, SYS_getrlimit, SYS_pause, SYS_creat, SYS_getpgrp,
#endif
};
/* clang-format on */

#define N_ALLOWED (sizeof(allowed) / sizeof(*allowed))
#define MOST_CODE (2 * N_ALLOWED + 128) /* of 4096 */

struct program {
	struct sock_filter code[MOST_CODE];
	unsigned short n;
};

static void program_add(struct program *p, uint16_t op, uint32_t k, uint8_t yes, uint8_t no)
{
	if (p->n < MOST_CODE)
		p->code[p->n] = (struct sock_filter){ op, yes, no, k };
	p->n++;
}

static void program_return(struct program *p, uint32_t what)
{
	program_add(p, BPF_RET | BPF_K, what, 0, 0);
}

/* The lower half of argument N of the call. */
static void program_load_argument(struct program *p, unsigned int n)
{
	program_add(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, args[0]) + 8 * n, 0,
		    0);
}

/* Returns LISTED for call NR, whose number is loaded, if argument ARG is one of N values, else OTHERS. */
static void program_match_values(struct program *p, uint32_t nr, unsigned int arg, const uint32_t *values,
				 uint8_t n, uint32_t listed, uint32_t others)
{
	program_add(p, BPF_JMP | BPF_JEQ | BPF_K, nr, 0, (uint8_t)(n + 3));
	program_load_argument(p, arg);
	for (uint8_t i = 0; i < n; i++)
		program_add(p, BPF_JMP | BPF_JEQ | BPF_K, values[i], (uint8_t)(n - i), 0);
	program_return(p, others);
	program_return(p, listed);
}

static void program_allow_values(struct program *p, uint32_t nr, unsigned int arg, const uint32_t *values,
				 uint8_t n)
{
	program_match_values(p, nr, arg, values, n, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM);
}

static void program_refuse_values(struct program *p, uint32_t nr, unsigned int arg, const uint32_t *values,
				  uint8_t n)
{
	program_match_values(p, nr, arg, values, n, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
}

/* Allows call NR, whose number is loaded, if all of BITS are set in argument ARG. */
static void program_allow_bits(struct program *p, uint32_t nr, unsigned int arg, uint32_t bits)
{
	program_add(p, BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 5);
	program_load_argument(p, arg);
	program_add(p, BPF_ALU | BPF_AND | BPF_K, bits, 0, 0);
	program_add(p, BPF_JMP | BPF_JEQ | BPF_K, bits, 1, 0);
	program_return(p, SECCOMP_RET_ERRNO | EPERM);
	program_return(p, SECCOMP_RET_ALLOW);
}

#define COUNT(v) ((uint8_t)(sizeof(v) / sizeof(*(v))))

static void program_write(struct program *p)
{
	static const uint32_t local[] = { AF_UNIX }, self[] = { 0 };
	/* without F_SETOWN and F_SETSIG, by which other processes can be signalled */
	static const uint32_t descriptor_commands[] = {
		F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD,  F_SETFD,	 F_GETFL,     F_SETFL,
		F_GETLK, F_SETLK,	  F_SETLKW, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW
	};
	/* the same by ioctl(2), and input that is put into a terminal */
	static const uint32_t signalling[] = { FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX };
	const uint32_t own_process[] = { (uint32_t)getpid() };
	/* without PR_SET_PDEATHSIG: a worker must die with its launcher */
	static const uint32_t prctls[] = { PR_SET_NAME, PR_GET_NAME, PR_SET_DUMPABLE, PR_GET_DUMPABLE,
					   0x53564d41 /* PR_SET_VMA: names of mappings */ };

	p->n = 0;
	program_add(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	program_add(p, BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0);
	program_return(p, SECCOMP_RET_KILL_PROCESS);
	program_add(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	program_add(p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	program_return(p, SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < N_ALLOWED; i++) {
		program_add(p, BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
		program_return(p, SECCOMP_RET_ALLOW);
	}
	/* A filter cannot read its flags, which are in memory. With ENOSYS libc uses clone instead. */
	program_add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
	program_return(p, SECCOMP_RET_ERRNO | ENOSYS);
	/*
	 * Each of these replaces the loaded call number by an argument, so it has to return if the number
	 * matches.
	 */
	program_allow_bits(p, SYS_clone, 0, CLONE_THREAD);
	program_allow_bits(p, SYS_execveat, 4, 0x1000); /* AT_EMPTY_PATH: how this program begins */
	program_allow_values(p, SYS_socket, 0, local, COUNT(local));
	program_allow_values(p, SYS_socketpair, 0, local, COUNT(local));
	program_allow_values(p, SYS_prlimit64, 0, self, COUNT(self));
	program_allow_values(p, SYS_tgkill, 0, own_process, COUNT(own_process)); /* abort(3) */
	program_allow_values(p, SYS_prctl, 0, prctls, COUNT(prctls));
	program_allow_values(p, SYS_fcntl, 1, descriptor_commands, COUNT(descriptor_commands));
	program_refuse_values(p, SYS_ioctl, 1, signalling, COUNT(signalling));
	/* Calls that are newer than this list: libraries fall back to older ones if they get ENOSYS. */
	program_add(p, BPF_JMP | BPF_JGE | BPF_K, SYS_faccessat2 + 1, 0, 1);
	program_return(p, SECCOMP_RET_ERRNO | ENOSYS);
	program_return(p, SECCOMP_RET_ERRNO | EPERM);
}

int worker_filter_calls(void)
{
	static struct program p;
	struct sock_fprog prog = { .filter = p.code };

	program_write(&p);
	if (p.n > MOST_CODE)
		return -E2BIG;
	prog.len = p.n;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) ? -errno : 0;
}
