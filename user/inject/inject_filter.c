/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Seccomp filters of the job: finds out how they treat the calls needed to load the helper by running them
 * here, because a try in the job could kill it.
 */
#include <errno.h>
#include <linux/audit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "inject/inject_impl.h"

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif
#define MAX_CODE 4096 /* instructions of one filter: BPF_MAXINSNS */
#define MAX_FILTERS 64
#define MEMORY 16 /* words of scratch memory */

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#else
#define OUR_ARCH AUDIT_ARCH_AARCH64
#endif

/* CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, SETTLS, PARENT_SETTID, CHILD_CLEARTID: a thread of glibc. */
#define THREAD_FLAGS 0x3d0f00

static const struct {
	const char *name;
	long nr;
	uint64_t arg[4];
	int error; /* an error that does no harm; 0: none */
} calls[] = {
	{ "mmap", SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS }, 0 },
	{ "mmap", SYS_mmap, { 0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK }, 0 },
	{ "mmap", SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE }, 0 },
	{ "mmap", SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED }, 0 },
	{ "munmap", SYS_munmap, { 0, 4096 }, 0 },
	{ "mprotect", SYS_mprotect, { 0, 4096, PROT_READ | PROT_WRITE }, 0 },
	{ "mprotect", SYS_mprotect, { 0, 4096, PROT_READ }, 0 },
	{ "clone", SYS_clone, { THREAD_FLAGS }, 0 },
#ifdef SYS_clone3
	{ "clone3", SYS_clone3, { 0, 88 }, ENOSYS },
#endif
	{ "rt_sigprocmask", SYS_rt_sigprocmask, { 2 }, 0 },
	{ "openat", SYS_openat, { (uint64_t)-100, 0, 02000000 }, 0 },
	{ "read", SYS_read, { 3 }, 0 },
	{ "pread64", SYS_pread64, { 3 }, EPERM },
	{ "newfstatat", SYS_newfstatat, { 3 }, EPERM },
	{ "fstat", SYS_fstat, { 3 }, EPERM },
	{ "close", SYS_close, { 3 }, 0 },
	{ "memfd_create", SYS_memfd_create, { 0, 3 }, 0 },
	{ "write", SYS_write, { 3 }, 0 },
	{ "ftruncate", SYS_ftruncate, { 3 }, 0 },
	{ "fcntl", SYS_fcntl, { 3, 1033 /* F_ADD_SEALS */ }, 0 },
	{ "madvise", SYS_madvise, { 0, 4096, 10 /* MADV_DONTFORK */ }, EPERM },
	{ "prlimit64", SYS_prlimit64, { 0, 1 }, 0 },
	{ "futex", SYS_futex, { 0 }, 0 },
	{ "prctl", SYS_prctl, { 15 /* PR_SET_NAME */ }, EPERM },
	{ "nanosleep", SYS_nanosleep, { 0 }, EPERM },
	{ "sched_yield", SYS_sched_yield, { 0 }, EPERM },
	{ "clock_gettime", SYS_clock_gettime, { 1 }, EPERM },
	{ "clock_nanosleep", SYS_clock_nanosleep, { 0 }, EPERM },
	{ "set_robust_list", SYS_set_robust_list, { 0, 24 }, EPERM },
#ifdef SYS_rseq
	{ "rseq", SYS_rseq, { 0, 32 }, EPERM },
#endif
	{ "exit", SYS_exit, { 0 }, 0 },
};

static uint32_t alu(uint16_t op, uint32_t a, uint32_t b)
{
	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_OR:
		return a | b;
	case BPF_AND:
		return a & b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return b < 32 ? a << b : 0;
	case BPF_RSH:
		return b < 32 ? a >> b : 0;
	default: /* BPF_NEG */
		return 0 - a;
	}
}

static bool filter_jumps(uint16_t op, uint32_t a, uint32_t b)
{
	return op == BPF_JEQ ? a == b : op == BPF_JGT ? a > b : op == BPF_JGE ? a >= b : (a & b) != 0;
}

uint32_t nps_inject_filter__run(const struct sock_filter *code, unsigned int n,
				const struct seccomp_data *data)
{
	uint32_t a = 0, x = 0, mem[MEMORY] = { 0 };

	for (unsigned int pc = 0; pc < n; pc++) {
		const struct sock_filter *f = &code[pc];
		uint32_t b = BPF_SRC(f->code) == BPF_X ? x : f->k;

		switch (BPF_CLASS(f->code)) {
		case BPF_LD:
		case BPF_LDX: {
			uint32_t v = f->k;

			if (BPF_MODE(f->code) == BPF_ABS && f->k <= sizeof(*data) - sizeof(v))
				memcpy(&v, (const char *)data + f->k, sizeof(v));
			else if (BPF_MODE(f->code) == BPF_LEN)
				v = sizeof(*data);
			else if (BPF_MODE(f->code) == BPF_MEM && f->k < MEMORY)
				v = mem[f->k];
			else if (BPF_MODE(f->code) != BPF_IMM)
				return SECCOMP_RET_KILL_PROCESS;
			*(BPF_CLASS(f->code) == BPF_LD ? &a : &x) = v;
			break;
		}
		case BPF_ST:
		case BPF_STX:
			if (f->k >= MEMORY)
				return SECCOMP_RET_KILL_PROCESS;
			mem[f->k] = BPF_CLASS(f->code) == BPF_ST ? a : x;
			break;
		case BPF_ALU:
			a = alu(BPF_OP(f->code), a, b);
			break;
		case BPF_JMP:
			/* Jumps only go forward, so it ends; beyond the end there is no result. */
			if (BPF_OP(f->code) == BPF_JA)
				pc = f->k < n ? pc + f->k : n;
			else
				pc += filter_jumps(BPF_OP(f->code), a, b) ? f->jt : f->jf;
			break;
		case BPF_RET:
			return BPF_RVAL(f->code) == BPF_A ? a : f->k;
		default: /* BPF_MISC */
			if (BPF_MISCOP(f->code) == BPF_TXA)
				a = x;
			else
				x = a;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

static bool harmless(uint32_t answer, int error)
{
	switch (answer & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
	case SECCOMP_RET_LOG:
		return true;
	case SECCOMP_RET_ERRNO:
		/* EPERM here means any error: the call may fail */
		return error == EPERM || (error && (int)(answer & SECCOMP_RET_DATA) == error);
	default:
		return false;
	}
}

/* Name of the first call that one filter refuses. */
static const char *refused_by(const struct sock_filter *code, unsigned int n)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		struct seccomp_data data = { .nr = (int)calls[i].nr, .arch = OUR_ARCH };

		memcpy(data.args, calls[i].arg, sizeof(calls[i].arg));
		if (!harmless(nps_inject_filter__run(code, n, &data), calls[i].error))
			return calls[i].name;
	}
	return NULL;
}

const char *nps_inject_filter__check(pid_t tid)
{
	struct sock_filter *code = malloc(MAX_CODE * sizeof(*code));
	const char *refused = code ? NULL : "(no memory here)";
	unsigned long i;

	for (i = 0; code && !refused && i < MAX_FILTERS; i++) {
		long n = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, i, NULL);

		if (n < 0 && errno == ENOENT && i)
			break;
		if (n <= 0 || n > MAX_CODE || ptrace(PTRACE_SECCOMP_GET_FILTER, tid, i, code) != n)
			refused = "(its filter cannot be read)";
		else
			refused = refused_by(code, (unsigned int)n);
	}
	free(code);
	return i == MAX_FILTERS ? "(too many filters)" : refused;
}
