/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stops a thread of the job when it holds no lock that thread creation needs, and can be resumed exactly
 * where it was. Only its own locks matter, because other threads continue and release theirs.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clocks.h"
#include "inject/inject_impl.h"

#define MOST_THREADS 4096
#define SEARCH_NS 5000000000ULL /* longest search for a safe point */
#define LONGEST_PAUSE_US 10000
#define STOP_US 1000000 /* limit for one thread to stop: it may have to wait for a CPU */
#define DEEPEST_STACK (16UL << 20)
#define STACK_ROOM 1536 /* below the stack pointer, for the red zone and the registers that the code saves */
#define DESCRIPTOR 0x1000 /* bytes around the thread pointer in which glibc keeps the thread's id */

/* Best first: a sleeping thread loses no time. */
enum eagerness { SLEEPS_ON_FUTEX, SLEEPS, RUNS, SLEEPS_WITH_EINTR, LEAVE_ALONE };

/*
 * Calls that the C library does not make while it holds one of its locks, so a thread in such a call holds
 * none. Of futexes only the kind that condition variables, semaphores and joins use, not that of locks. A
 * call with a signal mask of its own waits for a signal, which must not arrive before it.
 */
static enum eagerness sleep_sort(const struct nps_inject_sleep *s)
{
	switch (s->nr) {
	case SYS_futex:
		return (s->arg[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET ? SLEEPS_ON_FUTEX : LEAVE_ALONE;
	case SYS_ppoll:
		return s->arg[3] ? LEAVE_ALONE : SLEEPS;
	case SYS_read:
	case SYS_readv:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_pselect6: /* its last argument points to the mask, which is checked later */
	case SYS_restart_syscall: /* of a sleep that was interrupted before */
#ifdef SYS_poll
	case SYS_poll:
	case SYS_select:
#endif
		return SLEEPS;
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_accept:
	case SYS_accept4:
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
		return SLEEPS_WITH_EINTR;
	case SYS_epoll_pwait:
		return s->arg[4] ? LEAVE_ALONE : SLEEPS_WITH_EINTR;
	default:
		return LEAVE_ALONE;
	}
}

static char read_first(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(buf, 1, size - 1, f) : 0;

	if (f)
		fclose(f);
	buf[n] = '\0';
	return buf[0];
}

static void read_sleep(pid_t pid, pid_t tid, struct nps_inject_sleep *s)
{
	char path[64], text[512];

	memset(s, 0, sizeof(*s));
	s->nr = -1;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	if (!isdigit((unsigned char)read_first(path, text, sizeof(text))) ||
	    sscanf(text,
		   "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		   " %" SCNx64,
		   &s->nr, &s->arg[0], &s->arg[1], &s->arg[2], &s->arg[3], &s->arg[4], &s->arg[5], &s->sp,
		   &s->pc) != 9)
		s->nr = -1;
}

static enum eagerness sort_of(pid_t pid, pid_t tid, struct nps_inject_sleep *s)
{
	char path[64], text[512], *at;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	read_first(path, text, sizeof(text));
	at = strrchr(text, ')');
	if (!at || (at[2] != 'R' && at[2] != 'S'))
		return LEAVE_ALONE; /* stopped, exited, or in a driver */
	read_sleep(pid, tid, s);
	if (at[2] == 'R')
		return RUNS;
	return s->nr < 0 ? LEAVE_ALONE : sleep_sort(s);
}

/* Is there a pending signal that it will handle? Then its call is about to end with EINTR anyway. */
static bool has_signal(const struct nps_inject_status *status)
{
	return (status->v[NPS_INJECT_SIGPND] | status->v[NPS_INJECT_SHDPND]) & ~status->v[NPS_INJECT_SIGBLK];
}

/* ---- stopping and resuming ---- */

static void on_alarm(int sig)
{
	(void)sig;
}

/* Interrupts a wait that takes too long. */
static void set_alarm(long us)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct itimerspec when = { .it_value = { us / 1000000, us % 1000000 * 1000 },
				   /* repeated, because it may fire just before the wait */
				   .it_interval = { 0, 10000000 } };
	static timer_t timer;
	static bool made;

	if (!made) {
		sigset_t set;

		sigaction(SIGALRM, &sa, NULL);
		sigemptyset(&set);
		sigaddset(&set, SIGALRM);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		made = timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0;
	}
	if (!us)
		when.it_interval.tv_nsec = 0;
	if (made)
		timer_settime(timer, 0, &when, NULL);
}

int nps_inject__stop(struct nps_inject_thread *t)
{
	int status, err = 0;

	read_sleep(t->pid, t->tid, &t->before);
	t->stopped_at = nps_now(CLOCK_MONOTONIC);
	if (ptrace(PTRACE_INTERRUPT, t->tid, 0, 0))
		return -errno;
	set_alarm(STOP_US);
	for (;;) {
		if (waitpid(t->tid, &status, __WALL) < 0) {
			err = errno == EINTR ? -ETIMEDOUT : -errno;
			break;
		}
		if (!WIFSTOPPED(status)) {
			err = -ESRCH;
			break;
		}
		if (status >> 16 == PTRACE_EVENT_STOP) {
			err = WSTOPSIG(status) == SIGTRAP ? 0
							  : -EBUSY; /* else the whole job is being stopped */
			break;
		}
		/* One of the job's own signals was first: pass it on. */
		ptrace(PTRACE_CONT, t->tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	}
	set_alarm(0);
	if (err)
		return err;
	return nps_inject_regs__get(t->tid, &t->regs);
}

/* Hides the stop from the interrupted call. */
static void mend(struct nps_inject_thread *t)
{
	struct nps_inject_status status;

	if (!nps_inject_regs__mend(&t->regs, &t->before))
		return;
	nps_inject__status(t->pid, t->tid, &status);
	if (!has_signal(&status)) /* else EINTR is correct */
		nps_inject_regs__set(t->tid, &t->regs);
}

void nps_inject__go_on(struct nps_inject_thread *t)
{
	mend(t);
	ptrace(PTRACE_CONT, t->tid, 0, 0);
}

void nps_inject__let_go(struct nps_inject_thread *t)
{
	mend(t);
	ptrace(PTRACE_DETACH, t->tid, 0, 0);
}

void nps_inject__count_stop(const struct nps_inject_thread *t, struct nps_inject_result *r)
{
	uint64_t elapsed = nps_now(CLOCK_MONOTONIC) - t->stopped_at;

	r->stops++;
	if (elapsed > r->stopped_ns)
		r->stopped_ns = elapsed;
}

/* ---- is this a safe point? ---- */

/*
 * Is there a frame of a signal handler, of an allocator or of the code at `also` (NULL: none) on the stack?
 * Every word that could be such an address counts.
 */
static const char *check_stack(const struct nps_inject_job *job, uint64_t sp, const struct nps_range *also)
{
	const struct nps_mapping *m = nps_inject_job__mapping(job, sp);
	size_t size = m ? m->end - sp : 0;
	const char *found = NULL;
	uint64_t *words;

	if (!m || !m->write)
		return "its stack is not known";
	if (sp - m->start < STACK_ROOM)
		return "its stack is full";
	if (size > DEEPEST_STACK || sp & 7)
		return "its stack is too deep to be looked through";
	words = malloc(size);
	if (!words || nps_inject__read(job->pid, sp, words, size & ~7UL))
		found = "its stack cannot be read";
	for (size_t i = 0; !found && i < size / 8; i++) {
		if (nps_ranges__hold(&job->allocators, words[i]))
			found = "it is inside of an allocator";
		if (also && words[i] >= also->start && words[i] < also->end)
			found = "it returns to the code";
		for (unsigned int k = 0; !found && k < job->n_restorers; k++)
			if (words[i] == job->restorers[k])
				found = "it is inside of a signal handler";
	}
	free(words);
	return found;
}

bool nps_inject__may_return(const struct nps_inject_job *job, const struct nps_inject_regs *regs,
			    const struct nps_range *code)
{
	uint64_t pc = nps_inject_regs__pc(regs);

	return (pc >= code->start && pc < code->end) ||
	       check_stack(job, nps_inject_regs__sp(regs), code) != NULL;
}

/* Only threads created by glibc can create threads: their descriptor contains their id. */
static bool is_of_libc(const struct nps_inject_job *job, const struct nps_inject_thread *t, long id)
{
	uint64_t tls = nps_inject_regs__tls(t->tid, &t->regs);
	uint32_t words[DESCRIPTOR / 4];

#if defined(__aarch64__)
	tls -= sizeof(words);
#endif
	for (size_t part = 0; part < sizeof(words); part += 256)
		if (nps_inject__read(job->pid, tls + part, (char *)words + part, 256))
			memset((char *)words + part, 0, 256);
	for (size_t i = 0; i < sizeof(words) / 4; i++)
		if (words[i] == (uint32_t)id)
			return true;
	return false;
}

/* Reason why the thread cannot be redirected from where it stopped; NULL: it can. Rewinds its registers. */
static const char *judge(struct nps_inject_job *job, struct nps_inject_thread *t)
{
	const char *why = nps_inject_regs__check(t->tid, &t->regs), *refused;
	struct nps_inject_status status;
	struct nps_inject_sleep now;
	const struct nps_mapping *m;
	uint64_t pc, mask[2];

	if (why)
		return why;
	nps_inject__status(job->pid, t->tid, &status);
	if (has_signal(&status))
		return "a signal waits for it";
	t->rewound = t->regs;
	nps_inject_regs__rewind(t->tid, &t->rewound, &t->before, &now);
	pc = nps_inject_regs__pc(&t->rewound);
	m = nps_inject_job__mapping(job, pc);
	if (!m || !m->exec)
		return "it runs code that is not known";
	if (nps_ranges__hold(&job->never, pc))
		return "it is in the loader, an allocator or the kernel's code";
	if (now.nr != -1 && sleep_sort(&now) == LEAVE_ALONE)
		return "it is in a system call that cannot be interrupted";
	if (now.nr == SYS_pselect6 && now.arg[5] &&
	    (nps_inject__read(job->pid, now.arg[5], mask, sizeof(mask)) || mask[0]))
		return "it waits for a signal";
	if (now.nr == -1 && nps_ranges__hold(&job->libc, pc))
		return "it is in the C library";
	why = check_stack(job, nps_inject_regs__sp(&t->regs), NULL);
	if (why)
		return why;
	if (!is_of_libc(job, t, status.v[NPS_INJECT_NSPID]))
		return "it is no thread of the C library";
	if (status.v[NPS_INJECT_SECCOMP] <= 0)
		return NULL;
	refused = nps_inject_filter__check(t->tid);
	if (refused)
		nps_inject_job__refuse(job, EPERM, "its filter of system calls (seccomp) refuses %s",
				       refused);
	return refused ? job->why : NULL;
}

/* ---- search ---- */

struct candidate {
	pid_t tid;
	enum eagerness sort;
};

static int by_eagerness(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return (int)x->sort - (int)y->sort;
}

static int candidates_list(pid_t pid, struct candidate *v)
{
	struct nps_inject_sleep s;
	char path[32];
	struct dirent *d;
	DIR *dir;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && n < MOST_THREADS && (d = readdir(dir))) {
		pid_t tid = atoi(d->d_name);

		if (tid <= 0)
			continue;
		v[n].tid = tid;
		v[n].sort = sort_of(pid, tid, &s);
		n += v[n].sort != LEAVE_ALONE;
	}
	if (dir)
		closedir(dir);
	qsort(v, (size_t)n, sizeof(*v), by_eagerness);
	return n;
}

/* 1: it is stopped at a safe point, 0: not; -errno: more tries are useless. */
static int try_thread(struct nps_inject_job *job, struct nps_inject_thread *t, pid_t tid, const char **why,
		      struct nps_inject_result *r)
{
	int err;

	t->pid = job->pid;
	t->tid = tid;
	if (ptrace(PTRACE_SEIZE, tid, 0, 0)) {
		*why = "it may not be traced";
		return errno == EPERM ? -EPERM : 0;
	}
	err = nps_inject__stop(t);
	if (err == -ETIMEDOUT) /* only the end of this process withdraws the request */
		return nps_inject_job__refuse(job, ETIMEDOUT, "thread %d does not stop: is it frozen?", tid);
	*why = err ? "it is ending, or being stopped" : judge(job, t);
	if (!*why)
		return 1;
	if (err != -ESRCH) {
		nps_inject__let_go(t);
		nps_inject__count_stop(t, r);
	}
	return *why == job->why ? -EPERM : 0;
}

int nps_inject__stop_somewhere(struct nps_inject_job *job, struct nps_inject_thread *t,
			       struct nps_inject_result *r)
{
	struct candidate *v = calloc(MOST_THREADS, sizeof(*v));
	uint64_t begin = nps_now(CLOCK_MONOTONIC);
	const char *why = "none of them can be stopped without its noticing";
	unsigned int pause = 500;
	int found = v ? 0 : -ENOMEM;

	while (!found && nps_now(CLOCK_MONOTONIC) - begin < SEARCH_NS) {
		int n = candidates_list(job->pid, v);

		found = nps_inject_job__refresh(job);
		for (int i = 0; !found && i < n; i++) {
			found = try_thread(job, t, v[i].tid, &why, r);
		}
		if (!found) {
			usleep(pause);
			pause = 2 * pause < LONGEST_PAUSE_US ? 2 * pause : LONGEST_PAUSE_US;
		}
	}
	free(v);
	if (found == -EPERM && why != job->why)
		return nps_inject_job__refuse(job, EPERM,
					      "it may not be traced: is npuscope root, "
					      "and kernel.yama.ptrace_scope below 3?");
	if (!found)
		return nps_inject_job__refuse(
			job, EAGAIN, "no thread was at a safe point within 5 s: the last one: %s", why);
	return found < 0 ? found : 0;
}
