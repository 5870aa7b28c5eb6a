/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internals of the injector: inject.c controls it, inject_job.c reads the job, inject_pick.c stops threads,
 * inject_regs.c and inject_filter.c check a stopped one.
 */
#ifndef NPS_INJECT_IMPL_H
#define NPS_INJECT_IMPL_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

#include "core/proc_maps.h"
#include "core/work_budget.h"
#include "inject/inject.h"
#include "injob/inject_code.h"

#define NPS_INJECT_RANGES 512

struct nps_range {
	uint64_t start, end;
};

struct nps_ranges {
	struct nps_range v[NPS_INJECT_RANGES];
	unsigned int n;
};

bool nps_ranges__hold(const struct nps_ranges *r, uint64_t address);

/* The job's state before anything is changed. */
struct nps_inject_job {
	pid_t pid;
	struct nps_budget budget; /* of reads from it */
	struct nps_maps maps; /* all, sorted by address */
	struct nps_inject_input input; /* addresses of functions; area */
	struct nps_ranges libc; /* code of the C library */
	struct nps_ranges never; /* code in which a thread must not be redirected: loader, allocators, vdso */
	struct nps_ranges allocators; /* other than libc's */
	struct nps_ranges caves; /* unused room after the code of libraries */
	uint64_t restorers[8]; /* where signal handlers return to */
	unsigned int n_restorers;
	char *why;
	size_t why_size;
};

/* Reads the job. 0, or -errno with the reason in job->why. Call the free function in both cases. */
int nps_inject_job__inspect(struct nps_inject_job *job);
/* Reads the mappings again. */
int nps_inject_job__refresh(struct nps_inject_job *job);
void nps_inject_job__free(struct nps_inject_job *job);

/* Finds room for `size` bytes of code from which a branch reaches `pc`; pc 0: anywhere. 0: none. */
uint64_t nps_inject_job__cave(const struct nps_inject_job *job, uint64_t pc, size_t size);

/* Are there only zeros? */
bool nps_inject_job__is_empty(const struct nps_inject_job *job, uint64_t at, size_t size);

const struct nps_mapping *nps_inject_job__mapping(const struct nps_inject_job *job, uint64_t address);

/* Code mapping of libc itself. */
const struct nps_mapping *nps_inject_job__libc(const struct nps_inject_job *job);

int nps_inject__read(pid_t pid, uint64_t address, void *to, size_t size);
int nps_inject__write(pid_t pid, uint64_t address, const void *from, size_t size);

/* Writes the reason to job->why, and returns -err. */
int nps_inject_job__refuse(struct nps_inject_job *job, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Numbers from /proc/PID/task/TID/status; -1: not there. */
enum nps_inject_field {
	NPS_INJECT_TRACER,
	NPS_INJECT_PPID,
	NPS_INJECT_NSPID,
	NPS_INJECT_SECCOMP,
	NPS_INJECT_SIGPND, /* this one and the following are in hex */
	NPS_INJECT_SHDPND,
	NPS_INJECT_SIGBLK,
	NPS_INJECT_N_FIELDS
};
#define NPS_INJECT_FIELDS                                                                                    \
	{                                                                                                    \
		"TracerPid", "PPid", "NSpid", "Seccomp", "SigPnd", "ShdPnd", "SigBlk"                        \
	}

struct nps_inject_status {
	long v[NPS_INJECT_N_FIELDS];
};

void nps_inject__status(pid_t pid, pid_t tid, struct nps_inject_status *status);

/* ---- registers of a stopped thread ---- */

struct nps_inject_regs {
	struct user_regs_struct r;
};

/* System call of a sleeping thread, from /proc. */
struct nps_inject_sleep {
	long nr; /* -1: none, it runs */
	uint64_t arg[6], sp, pc;
};

int nps_inject_regs__get(pid_t tid, struct nps_inject_regs *regs);
int nps_inject_regs__set(pid_t tid, const struct nps_inject_regs *regs);
uint64_t nps_inject_regs__pc(const struct nps_inject_regs *regs);
uint64_t nps_inject_regs__sp(const struct nps_inject_regs *regs);

/*
 * Sets `now` to the system call that the stop interrupted: nr -1: none; NPS_INJECT_INEXACT: one that cannot
 * be continued exactly. Rewinds the registers so that the call is made again without its caller noticing,
 * also for calls that the kernel lets fail with EINTR. `before` is what the thread did before it was stopped.
 */
#define NPS_INJECT_INEXACT (-2)
void nps_inject_regs__rewind(pid_t tid, struct nps_inject_regs *regs, const struct nps_inject_sleep *before,
			     struct nps_inject_sleep *now);

/*
 * Did the stop end a call with EINTR? Rewinds only such a call: the
 * kernel rewinds the others. True: set the registers.
 */
bool nps_inject_regs__mend(struct nps_inject_regs *regs, const struct nps_inject_sleep *before);

/* Can this thread be redirected and resumed without losing state? NULL: yes; else the reason. */
const char *nps_inject_regs__check(pid_t tid, const struct nps_inject_regs *regs);

/* Base address of the thread-local storage. */
uint64_t nps_inject_regs__tls(pid_t tid, const struct nps_inject_regs *regs);

/*
 * Completes a copy of the code that will be at `at`, and its landing, which will be at `landing`, so that it
 * continues with the rewound registers, and redirects the thread there. -ERANGE: too far from the landing.
 */
int nps_inject_regs__lead(struct nps_inject_regs *regs, uint64_t at, uint64_t landing, char *code);

/* ---- system call filters ---- */

/*
 * NULL: the seccomp filters of a stopped thread allow the system calls of the injected code and the helper;
 * else what they refuse.
 */
const char *nps_inject_filter__check(pid_t tid);

/* Result of a classic BPF program of seccomp: a SECCOMP_RET_* value; kill for invalid programs. */
uint32_t nps_inject_filter__run(const struct sock_filter *code, unsigned int n,
				const struct seccomp_data *data);

/* ---- threads ---- */

struct nps_inject_thread {
	pid_t pid, tid;
	struct nps_inject_sleep before;
	struct nps_inject_regs regs; /* as it stopped */
	struct nps_inject_regs rewound; /* its registers when it resumes */
	uint64_t stopped_at;
};

/*
 * Stops a thread of the job at a point where it can be redirected. 0, or -errno with the reason in
 * job->why. Counts stops in r.
 */
int nps_inject__stop_somewhere(struct nps_inject_job *job, struct nps_inject_thread *t,
			       struct nps_inject_result *r);
/* A stop ends now: records its length in r. */
void nps_inject__count_stop(const struct nps_inject_thread *t, struct nps_inject_result *r);

/* Stops a thread that is seized already; 0, -ESRCH: it has exited, -ETIMEDOUT. */
int nps_inject__stop(struct nps_inject_thread *t);

/*
 * Can a stopped thread return to `code`: does it execute there, or does its stack contain an address there,
 * such as the frame of a signal delivered there? Also true when the stack cannot be searched, or has a
 * frame of any signal handler or allocator. job->maps must contain the stack.
 */
bool nps_inject__may_return(const struct nps_inject_job *job, const struct nps_inject_regs *regs,
			    const struct nps_range *code);

/* Resumes a stopped thread; it stays seized. */
void nps_inject__go_on(struct nps_inject_thread *t);

/* Resumes and detaches a stopped thread. */
void nps_inject__let_go(struct nps_inject_thread *t);

#endif
