/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The injector's own judgement: what a filter of system calls answers, against the kernel's answer to the
 * same program; and the code that is copied into jobs, which must be whole wherever it lies.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/audit.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/inject_impl.h"

#define PROGRAMS 400
#define LENGTH 24
#define ERRNO_BITS 0xfff

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

/*
 * Every call but getppid is allowed; getppid gets an errno that depends on
 * its arguments in a way made at random.
 */
static unsigned int random_program(struct sock_filter *code)
{
	static const uint16_t alus[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_OR, BPF_AND, BPF_XOR, BPF_NEG };
	static const uint16_t jumps[] = { BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET };
	unsigned int n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	for (uint32_t i = 0; i < 4; i++) /* memory must be written before it is read */
		code[n++] = (struct sock_filter)BPF_STMT(BPF_ST, i);
	while (n < LENGTH) {
		uint32_t k = (uint32_t)rand();
		uint16_t source = rand() & 1 ? BPF_X : BPF_K;
		uint8_t left = (uint8_t)(LENGTH - 1 - n);

		switch (rand() % 9) {
		case 0:
		case 1: /* a half of an argument */
			code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16 + 4 * (k % 12));
			break;
		case 2:
			code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | alus[k % 7] | source, k);
			break;
		case 3: /* by a constant: by 0 the kernel refuses the program */
			code[n++] = (struct sock_filter)BPF_STMT(
				BPF_ALU | (k & 1 ? BPF_RSH : BPF_LSH) | BPF_K, k % 32);
			break;
		case 4:
			code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, k | 1);
			break;
		case 5:
			code[n++] = (struct sock_filter)BPF_STMT(k & 1 ? BPF_ST : BPF_STX, k % 4);
			break;
		case 6:
			code[n++] = (struct sock_filter)BPF_STMT((k & 1 ? BPF_LD : BPF_LDX) | BPF_MEM, k % 4);
			break;
		case 7:
			code[n++] = (struct sock_filter)BPF_STMT(BPF_MISC | (k & 1 ? BPF_TAX : BPF_TXA), 0);
			break;
		default:
			code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | jumps[k % 4] | source, k >> 8,
								 (uint8_t)(k % (left + 1U)),
								 (uint8_t)(k / 7 % (left + 1U)));
		}
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ERRNO_BITS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
	return n;
}

/* The errno that the kernel makes of it, -1: it refuses the program. */
static int query_kernel(struct sock_filter *code, unsigned int n, const struct seccomp_data *data,
			volatile int *answer)
{
	struct sock_fprog prog = { (unsigned short)n, code };
	const __u64 *value = data->args;
	pid_t pid = fork();
	int status;

	*answer = -1;
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
			_exit(0);
		errno = 0;
		if (syscall(SYS_getppid, value[0], value[1], value[2], value[3], value[4], value[5]) == -1 ||
		    !errno)
			*answer = errno;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return *answer;
}

static void filters_answer_as_the_kernel_does(void **state)
{
	volatile int *answer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int compared = 0, different = 0;
	int first = -1;

	(void)state;
	assert_ptr_not_equal((void *)answer, MAP_FAILED);
	srand(20261123);
	for (int i = 0; i < PROGRAMS; i++) {
		struct seccomp_data data = { .nr = SYS_getppid, .arch = ARCH };
		struct sock_filter code[LENGTH + 3];
		unsigned int n = random_program(code);
		uint32_t ours;
		int theirs;

		for (__u64 *value = data.args; value < data.args + 6; value++)
			*value = (uint64_t)rand() << 33 ^ (uint64_t)rand();
		ours = nps_inject_filter__run(code, n, &data);
		assert_int_equal(ours & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
		theirs = query_kernel(code, n, &data, answer);
		/* It checks programs; the C library takes -errno up to 4095 for an errno. */
		if (theirs < 0)
			continue;
		compared++;
		different += first < 0 ? 0U : (unsigned int)(first != theirs);
		first = theirs;
		if ((ours & ERRNO_BITS) != (uint32_t)theirs)
			fail_msg("program %d: %u, and the kernel says %d", i, ours & ERRNO_BITS, theirs);
	}
	munmap((void *)answer, 4096);
	assert_true(compared > PROGRAMS / 2);
	assert_true(different > PROGRAMS / 8);
}

static void filters_that_make_no_sense_allow_nothing(void **state)
{
	struct sock_filter beyond[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 62) };
	struct sock_filter far[] = { BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff),
				     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_filter memory[] = { BPF_STMT(BPF_ST, 16) };
	struct seccomp_data data = { .nr = 1 };

	(void)state;
	assert_int_equal(nps_inject_filter__run(beyond, 1, &data), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(nps_inject_filter__run(far, 2, &data), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(nps_inject_filter__run(memory, 1, &data), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(nps_inject_filter__run(NULL, 0, &data), SECCOMP_RET_KILL_PROCESS);
}

static void code_is_whole_and_small(void **state)
{
	size_t size = NPS_INJECT_BYTES;
	const struct nps_inject_input none = { 0 };

	(void)state;
	assert_true(size > sizeof(none) && size <= 2048); /* what is free behind code is 2 KB on average */
	assert_true(NPS_INJECT_OFFSET(nps_inject_entry) < size);
	assert_true(NPS_INJECT_OFFSET(nps_inject_input) + sizeof(none) <= size);
	assert_memory_equal(nps_inject_input, &none, sizeof(none));
}

/* What the code does in a job, done here: to a copy at another address, and with our own functions. */
static uint64_t unmapped_at, unmapped_size;

static int no_thread(uint64_t *thread, const void *attr, void *(*start)(void *), void *arg)
{
	(void)attr;
	(void)start;
	*thread = (uint64_t)(uintptr_t)arg;
	unmapped_at = (uint64_t)(uintptr_t)arg;
	unmapped_size++;
	return EAGAIN;
}

typedef void detour_fn(const struct nps_inject_input *in, uint64_t loader);
extern detour_fn nps_inject_detour __attribute__((visibility("hidden")));

static void thread_that_cannot_be_made_leaves_nothing(void **state)
{
	size_t size = sizeof(struct nps_inject_area);
	struct nps_inject_input in = { .area_size = (size + 0xffff) & ~0xffffUL,
				       .pthread_create = (uint64_t)(uintptr_t)no_thread };
	char *copy = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *hole = mmap(NULL, in.area_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigset_t before, after;
	detour_fn *detour;
	unsigned char vec;

	(void)state;
	assert_ptr_not_equal(copy, MAP_FAILED);
	memcpy(copy, __start_nps_inject, NPS_INJECT_BYTES);
	__builtin___clear_cache(copy, copy + 4096);
	detour = (detour_fn *)(uintptr_t)(copy + NPS_INJECT_OFFSET(nps_inject_detour));
	in.area = (uint64_t)(uintptr_t)hole;
	sigprocmask(SIG_BLOCK, NULL, &before);
	detour(&in, 0); /* somebody has mapped something there */
	assert_int_equal(unmapped_size, 0);
	assert_int_equal(mincore(hole, 4096, &vec), 0); /* still that */
	munmap(hole, in.area_size);
	detour(&in, 0);
	assert_int_equal(unmapped_size, 1);
	assert_int_equal(unmapped_at, in.area);
	assert_int_equal(mincore(hole, 4096, &vec), -1);
	assert_int_equal(errno, ENOMEM);
	sigprocmask(SIG_BLOCK, NULL, &after);
	assert_memory_equal(&before, &after, 8);
	munmap(copy, 4096);
}

/* A sleep would replace the one that the kernel is to go on with. */
static void thread_of_the_job_does_not_sleep(void **state)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_nanosleep, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_nanosleep, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog prog = { .len = sizeof(code) / sizeof(*code), .filter = code };
	struct nps_inject_input in = { .area_size = (sizeof(struct nps_inject_area) + 0xffff) & ~0xffffUL,
				       .pthread_create = (uint64_t)(uintptr_t)no_thread };
	void *hole = mmap(NULL, in.area_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child;
	int status;

	(void)state;
	in.area = (uint64_t)(uintptr_t)hole;
	munmap(hole, in.area_size);
	child = fork();
	if (child == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
			_exit(1);
		nps_inject_detour(&in, 0);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/*
 * A child that a signal has interrupted in spin(), and that stays in the
 * handler, on a stack of its own or not.
 */
static volatile uint32_t *handled;

static __attribute__((noinline)) void spin(void)
{
	for (;;)
		__asm__ volatile("");
}

static void stay(int sig)
{
	(void)sig;
	*handled = 1;
	for (;;)
		pause();
}

static pid_t child_in_handler(bool own_stack)
{
	static char stack[65536];
	const stack_t alternative = { .ss_sp = stack, .ss_size = sizeof(stack) };
	const struct sigaction sa = { .sa_handler = stay, .sa_flags = own_stack ? SA_ONSTACK : 0 };
	const struct itimerval soon = { .it_value = { 0, 2000 } };
	pid_t child;

	*handled = 0;
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if ((own_stack && sigaltstack(&alternative, NULL)) || sigaction(SIGVTALRM, &sa, NULL) ||
		    setitimer(ITIMER_VIRTUAL, &soon, NULL)) /* of its own time: it is in spin() then */
			_exit(1);
		spin();
	}
	return child;
}

static void code_stays_while_a_handler_returns_there(bool own_stack)
{
	/*
	 * Static: not on the stack, where the child would inherit the addresses. Not the start of the other
	 * function: sanitizers keep that in its frame.
	 */
	static const struct nps_range here = { (uintptr_t)spin, (uintptr_t)spin + 16 };
	static const struct nps_range other = { (uintptr_t)child_in_handler + 1,
						(uintptr_t)child_in_handler + 2 };
	char why[128];
	struct nps_inject_job job = { .why = why, .why_size = sizeof(why) };
	struct nps_inject_thread t = { 0 };

	job.input.area_size = 65536;
	job.pid = t.pid = t.tid = child_in_handler(own_stack);
	assert_true(t.pid > 0);
	while (!*handled && !waitpid(t.pid, NULL, WNOHANG))
		usleep(1000);
	assert_int_equal(*handled, 1);
	assert_int_equal(ptrace(PTRACE_SEIZE, t.tid, 0, 0), 0);
	assert_int_equal(nps_inject__stop(&t), 0);
	assert_int_equal(nps_inject_job__refresh(&job), 0);
	assert_true(nps_inject__may_return(&job, &t.regs, &here));
	assert_false(nps_inject__may_return(&job, &t.regs, &other));
	nps_inject__let_go(&t);
	kill(t.pid, SIGKILL);
	waitpid(t.pid, NULL, 0);
	nps_inject_job__free(&job);
}

static void handler_that_returns_to_the_code_is_seen(void **state)
{
	(void)state;
	handled = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(handled, MAP_FAILED);
	code_stays_while_a_handler_returns_there(false);
	code_stays_while_a_handler_returns_there(true);
	munmap((void *)(uintptr_t)handled, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filters_answer_as_the_kernel_does),
		cmocka_unit_test(filters_that_make_no_sense_allow_nothing),
		cmocka_unit_test(code_is_whole_and_small),
		cmocka_unit_test(thread_that_cannot_be_made_leaves_nothing),
		cmocka_unit_test(thread_of_the_job_does_not_sleep),
		cmocka_unit_test(handler_that_returns_to_the_code_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
