/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers of a stopped thread: how each architecture repeats a system call that the stop interrupted. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "inject/inject_impl.h"

/* Results of interrupted calls inside the kernel, which only tracers see. */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

struct rseq_configuration {
	uint64_t pointer;
	uint32_t size, signature, flags, pad;
};

static int regset(int request, pid_t tid, int type, void *data, size_t size)
{
	struct iovec io = { data, size };

	return ptrace(request, tid, type, &io) ? -errno : 0;
}

int nps_inject_regs__get(pid_t tid, struct nps_inject_regs *regs)
{
	return regset(PTRACE_GETREGSET, tid, NT_PRSTATUS, &regs->r, sizeof(regs->r));
}

int nps_inject_regs__set(pid_t tid, const struct nps_inject_regs *regs)
{
	return regset(PTRACE_SETREGSET, tid, NT_PRSTATUS, (void *)(uintptr_t)&regs->r, sizeof(regs->r));
}

/*
 * Calls that end with EINTR whenever their thread was stopped, without any effect, so they can be repeated.
 * With a timeout they take up to twice as long, because the remaining time is unknown.
 */
static bool ends_with_eintr(long nr)
{
	switch (nr) {
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
#endif
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_read: /* of a socket with a time limit */
		return true;
	default:
		return false;
	}
}

/* Is the thread inside a restartable sequence? The kernel would not notice its return there. */
static bool in_sequence(pid_t tid)
{
	struct rseq_configuration rseq = { 0 };
	uint64_t section = 0;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(rseq), &rseq) < 0 || !rseq.pointer)
		return false;
	return nps_inject__read(tid, rseq.pointer + 8, &section, sizeof(section)) || section;
}

#if defined(__x86_64__)

#include <cpuid.h>

#define CODE_64 0x33
#define SYSCALL_BYTES 2

uint64_t nps_inject_regs__pc(const struct nps_inject_regs *regs)
{
	return regs->r.rip;
}

uint64_t nps_inject_regs__sp(const struct nps_inject_regs *regs)
{
	return regs->r.rsp;
}

bool nps_inject_regs__mend(struct nps_inject_regs *regs, const struct nps_inject_sleep *before)
{
	(void)before;
	if ((long)regs->r.orig_rax < 0 || (long)regs->r.rax != -EINTR ||
	    !ends_with_eintr((long)regs->r.orig_rax))
		return false;
	regs->r.rax = regs->r.orig_rax;
	regs->r.rip -= SYSCALL_BYTES;
	regs->r.orig_rax = (unsigned long)-1;
	return true;
}

void nps_inject_regs__rewind(pid_t tid, struct nps_inject_regs *regs, const struct nps_inject_sleep *before,
			     struct nps_inject_sleep *now)
{
	struct user_regs_struct *r = &regs->r;

	(void)tid;
	*now = (struct nps_inject_sleep){ (long)r->orig_rax < 0 ? -1 : (long)r->orig_rax,
					  { r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9 },
					  r->rsp,
					  r->rip };
	if (now->nr < 0 || nps_inject_regs__mend(regs, before))
		return;
	switch (-(long)r->rax) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
		r->rax = r->orig_rax;
		r->rip -= SYSCALL_BYTES;
		break;
	case ERESTART_RESTARTBLOCK: /* the kernel has recorded how long it has waited */
		r->rax = SYS_restart_syscall;
		r->rip -= SYSCALL_BYTES;
		break;
	}
	r->orig_rax = (unsigned long)-1;
}

const char *nps_inject_regs__check(pid_t tid, const struct nps_inject_regs *regs)
{
	unsigned int a, size = 0, c, d;

	if (regs->r.cs != CODE_64)
		return "it runs 32-bit code";
	if (!__get_cpuid(1, &a, &size, &c, &d) || !(c & bit_OSXSAVE) ||
	    !__get_cpuid_count(0xd, 0, &a, &size, &c, &d) || size > NPS_INJECT_VECTORS)
		return "vector registers of this CPU cannot be saved";
	return in_sequence(tid) ? "it is in a restartable sequence" : NULL;
}

uint64_t nps_inject_regs__tls(pid_t tid, const struct nps_inject_regs *regs)
{
	(void)tid;
	return regs->r.fs_base;
}

int nps_inject_regs__lead(struct nps_inject_regs *regs, uint64_t at, uint64_t landing, char *code)
{
	struct nps_inject_input *in = (void *)(code + NPS_INJECT_OFFSET(nps_inject_input));

	(void)landing;
	in->resume = regs->r.rip;
	regs->r.rip = at + NPS_INJECT_OFFSET(nps_inject_entry);
	return 0;
}

#else

#define SVC 0xd4000001U
#define INSTRUCTION 4
#define BTYPE (3UL << 10) /* of pstate: an indirect branch has just been taken */
#define BRANCH 0x14000000U
#define REACH (1L << 27)
#ifndef NT_ARM_SVE
#define NT_ARM_SVE 0x405
#endif
#ifndef NT_ARM_SSVE
#define NT_ARM_SSVE 0x40b
#endif
#define SVE_LIVE 1 /* SVE_PT_REGS_SVE */

uint64_t nps_inject_regs__pc(const struct nps_inject_regs *regs)
{
	return regs->r.pc;
}

uint64_t nps_inject_regs__sp(const struct nps_inject_regs *regs)
{
	return regs->r.sp;
}

/* x0 contains the result: the argument is known from before, if the thread has not moved since. */
bool nps_inject_regs__mend(struct nps_inject_regs *regs, const struct nps_inject_sleep *before)
{
	if ((long)regs->r.regs[0] != -EINTR || before->nr < 0 || (long)regs->r.regs[8] != before->nr ||
	    before->pc != regs->r.pc || before->sp != regs->r.sp || !ends_with_eintr(before->nr))
		return false;
	regs->r.regs[0] = before->arg[0];
	regs->r.pc -= INSTRUCTION;
	return true;
}

/*
 * The kernel has rewound the others itself. A relative sleep would start again instead of continuing, which
 * only restart_syscall does: such a thread is not used.
 */
void nps_inject_regs__rewind(pid_t tid, struct nps_inject_regs *regs, const struct nps_inject_sleep *before,
			     struct nps_inject_sleep *now)
{
	uint32_t instruction = 0;

	nps_inject_regs__mend(regs, before);
	*now = (struct nps_inject_sleep){ .nr = -1, .sp = regs->r.sp, .pc = regs->r.pc };
	if (nps_inject__read(tid, regs->r.pc, &instruction, sizeof(instruction)) || instruction != SVC)
		return;
	memcpy(now->arg, regs->r.regs, sizeof(now->arg));
	now->nr = (long)regs->r.regs[8];
	if (now->nr == SYS_nanosleep || (now->nr == SYS_clock_nanosleep && !(now->arg[1] & 1)))
		now->nr = NPS_INJECT_INEXACT;
}

static bool uses_sve(pid_t tid, int type)
{
	uint16_t header[8] = { 0 };

	return regset(PTRACE_GETREGSET, tid, type, header, sizeof(header)) == 0 && (header[6] & SVE_LIVE);
}

const char *nps_inject_regs__check(pid_t tid, const struct nps_inject_regs *regs)
{
	if (regs->r.pstate & 0x10)
		return "it runs 32-bit code";
	if (regs->r.pstate & BTYPE)
		return "it is in the middle of a branch";
	if (uses_sve(tid, NT_ARM_SVE) || uses_sve(tid, NT_ARM_SSVE))
		return "its SVE registers are in use";
	return in_sequence(tid) ? "it is in a restartable sequence" : NULL;
}

uint64_t nps_inject_regs__tls(pid_t tid, const struct nps_inject_regs *regs)
{
	uint64_t tls = 0;

	(void)regs;
	return regset(PTRACE_GETREGSET, tid, NT_ARM_TLS, &tls, sizeof(tls)) ? 0 : tls;
}

int nps_inject_regs__lead(struct nps_inject_regs *regs, uint64_t at, uint64_t landing, char *code)
{
	struct nps_inject_input *in = (void *)(code + NPS_INJECT_OFFSET(nps_inject_input));
	size_t branch = NPS_INJECT_LANDING - INSTRUCTION;
	long distance = (long)(regs->r.pc - (landing + branch));
	uint32_t instruction = BRANCH | ((uint32_t)(distance >> 2) & 0x3ffffff);

	if (distance >= REACH || distance < -REACH || distance & 3)
		return -ERANGE;
	memcpy(code + NPS_INJECT_OFFSET(nps_inject_landing) + branch, &instruction, sizeof(instruction));
	in->resume = landing;
	regs->r.pc = at + NPS_INJECT_OFFSET(nps_inject_entry);
	return 0;
}

#endif
