/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A job that is hard to interrupt without its noticing: inject_job MODE SECONDS LIBRARY It maps LIBRARY, does
 * one thing for that long in one thread, or until its input, a pipe, is closed, and ends with
 *   result MODE rounds=N wrong=N eintr=N slowest_us=N
 * where wrong counts what it found changed: registers, memory, orders, times that were too short.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define SLEEP_US 30000
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static uint64_t wrong, interrupted, slowest_us;
static int feed; /* what a child writes one number after the other to */

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void expect(int good)
{
	if (!good && errno == EINTR)
		interrupted++;
	wrong += !good;
}

/* A sleep may not end early. How much too late it ends is reported, not judged. */
static void slept(uint64_t begin)
{
	uint64_t elapsed = now_us() - begin;

	wrong += elapsed < SLEEP_US;
	if (elapsed > SLEEP_US && elapsed - SLEEP_US > slowest_us)
		slowest_us = elapsed - SLEEP_US;
}

static void mode_nanosleep(void)
{
	struct timespec t = { 0, SLEEP_US * 1000 };
	uint64_t begin = now_us();

	errno = 0;
	expect(nanosleep(&t, NULL) == 0);
	slept(begin);
}

static void mode_clock(void)
{
	struct timespec t;
	uint64_t begin = now_us(), end = begin + SLEEP_US + 1;

	t.tv_sec = (time_t)(end / 1000000);
	t.tv_nsec = (long)(end % 1000000) * 1000;
	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	expect(errno == 0);
	slept(begin);
}

static void mode_poll(void)
{
	struct pollfd p = { .fd = -1 };
	uint64_t begin = now_us();

	errno = 0;
	expect(poll(&p, 1, SLEEP_US / 1000) == 0);
	slept(begin);
}

static void mode_select(void)
{
	struct timeval t = { 0, SLEEP_US };
	uint64_t begin = now_us();

	errno = 0;
	expect(select(0, NULL, NULL, NULL, &t) == 0);
	slept(begin);
}

static void mode_futex(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec t;
	uint64_t begin = now_us();

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += SLEEP_US * 1000L;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_mutex_lock(&lock);
	errno = pthread_cond_timedwait(&cond, &lock, &t);
	expect(errno == ETIMEDOUT);
	pthread_mutex_unlock(&lock);
	(void)begin; /* another clock: no statement about the length */
}

static void mode_epoll(void)
{
	static int ep = -1, timer;
	struct epoll_event e = { .events = EPOLLIN };
	struct itimerspec when = { .it_value = { 0, SLEEP_US * 1000 } };
	uint64_t begin, times;

	if (ep < 0) {
		ep = epoll_create1(0);
		timer = timerfd_create(CLOCK_MONOTONIC, 0);
		epoll_ctl(ep, EPOLL_CTL_ADD, timer, &e);
	}
	begin = now_us();
	timerfd_settime(timer, 0, &when, NULL);
	errno = 0;
	expect(epoll_wait(ep, &e, 1, -1) == 1);
	expect(read(timer, &times, sizeof(times)) == sizeof(times));
	slept(begin);
}

static void mode_recv(void)
{
	static int sock[2] = { -1, -1 };
	struct timeval t = { 0, SLEEP_US };
	char c;

	if (sock[0] < 0) {
		expect(socketpair(AF_UNIX, SOCK_STREAM, 0, sock) == 0);
		expect(setsockopt(sock[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) == 0);
	}
	errno = 0;
	expect(recv(sock[0], &c, 1, 0) == -1 && errno == EAGAIN);
}

static void mode_read(void)
{
	static uint64_t last;
	uint64_t v = 0;

	errno = 0;
	expect(read(feed, &v, sizeof(v)) == sizeof(v));
	wrong += v != ++last;
}

static void start_feeder(void)
{
	int fds[2];

	if (pipe(fds))
		exit(1);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (uint64_t i = 1;; i++) {
			if (write(fds[1], &i, sizeof(i)) != sizeof(i))
				_exit(0);
			usleep(SLEEP_US / 3);
		}
	}
	feed = fds[0];
}

/* Blocks of many sizes, filled and checked; most of the time is spent in the allocator. */
static void mode_malloc(void)
{
	static struct {
		unsigned char *p;
		size_t n;
		unsigned char v;
	} slot[64];
	static uint32_t seed = 1;

	for (int i = 0; i < 20000; i++) {
		uint32_t r = seed = seed * 1664525 + 1013904223;
		size_t k = r >> 26;

		if (slot[k].p) {
			wrong += slot[k].p[0] != slot[k].v || slot[k].p[slot[k].n - 1] != slot[k].v;
			free(slot[k].p);
		}
		slot[k].n = 1 + (r & 0xfff) * ((r & 0x1000) ? 64 : 1);
		slot[k].v = (unsigned char)(r >> 16);
		slot[k].p = malloc(slot[k].n);
		slot[k].p[0] = slot[k].p[slot[k].n - 1] = slot[k].v;
	}
}

static void mode_vfork(void)
{
	int status = 0;
	pid_t pid = vfork();

	if (pid == 0)
		_exit(7);
	errno = 0;
	expect(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
}

/* ---- every register, while nothing but registers is touched ---- */

#if defined(__x86_64__)

/* Not static: the assembler code below names them. */
volatile uint64_t spins;
uint64_t gpr[14], zone[16], flags, vec[16][4] __attribute__((aligned(32))),
	wide[16][8] __attribute__((aligned(64)));
uint64_t pattern_v[4] __attribute__((aligned(32))) = { 0x0123456789abcdef, 0xfedcba9876543210,
						       0x5555aaaa5555aaaa, 0xdeadbeefcafef00d };
uint64_t pattern_w[8] __attribute__((aligned(64))) = { 11, 22, 33, 44, 55, 66, 77, 88 };
uint32_t mxcsr_in = 0x1f80 | 3 << 13, mxcsr_out;
uint16_t fcw_in = 0x0f7f, fcw_out;
double st0, st1;

#define EACH16(m) m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7) m(8) m(9) m(10) m(11) m(12) m(13) m(14) m(15)

static void spin_wide_in(void)
{
#define IN(n) "vmovdqa64 pattern_w(%%rip), %%zmm" #n "\n"
	__asm__ volatile(IN(16) IN(17) IN(18) IN(19) IN(20) IN(21) IN(22) IN(23) IN(24) IN(25) IN(26) IN(27)
				 IN(28) IN(29) IN(30) IN(31) "mov $0x5a5a, %%eax\nkmovw %%eax, %%k3\n" ::
					 : "eax");
}

static int spin_wide_out(void)
{
	unsigned int k = 0;

#define OUT(n, i) "vmovdqa64 %%zmm" #n ", wide+64*" #i "(%%rip)\n"
	__asm__ volatile(OUT(16, 0) OUT(17, 1) OUT(18, 2) OUT(19, 3) OUT(20, 4) OUT(21, 5) OUT(22, 6)
				 OUT(23, 7) OUT(24, 8) OUT(25, 9) OUT(26, 10) OUT(27, 11) OUT(28, 12)
					 OUT(29, 13) OUT(30, 14)
						 OUT(31, 15) "kmovw %%k3, %%eax\nmov %%eax, %0\n"
			 : "=m"(k)
			 :
			 : "eax", "memory");
	for (size_t i = 0; i < 16; i++)
		if (memcmp(wide[i], pattern_w, sizeof(pattern_w)) != 0)
			return 0;
	return k == 0x5a5a;
}

__asm__(".data\n.globl spin_sp, spin_save\nspin_sp: .quad 0\nspin_save: .quad 0\n.text\n"
	"spin_registers:\n"
	"	push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
	"	ldmxcsr mxcsr_in(%rip)\n fldcw fcw_in(%rip)\n fld1\n fldpi\n"
#define LOAD(n) "vmovdqa pattern_v(%rip), %ymm" #n "\n"
	EACH16(LOAD)
#define ZONE(n) "movq $" #n "+1000, -8-8*" #n "(%rsp)\n"
		EACH16(ZONE) "	mov $1,%rax\n mov $2,%rbx\n mov $3,%rcx\n mov $4,%rdx\n mov $5,%rsi\n mov "
			     "$6,%rdi\n mov $7,%rbp\n"
			     "	mov $8,%r8\n mov $9,%r9\n mov $10,%r10\n mov $11,%r11\n mov $12,%r12\n mov "
			     "$13,%r13\n mov $14,%r14\n"
			     "	mov %rsp, spin_sp(%rip)\n"
			     "	stc\n std\n"
			     "1:	decq spins(%rip)\n"
			     "	jnz 1b\n"
			     "	mov %rax, gpr(%rip)\n mov %rbx, gpr+8(%rip)\n mov %rcx, gpr+16(%rip)\n mov "
			     "%rdx, gpr+24(%rip)\n"
			     "	mov %rsi, gpr+32(%rip)\n mov %rdi, gpr+40(%rip)\n mov %rbp, gpr+48(%rip)\n "
			     "mov %r8, gpr+56(%rip)\n"
			     "	mov %r9, gpr+64(%rip)\n mov %r10, gpr+72(%rip)\n mov %r11, gpr+80(%rip)\n "
			     "mov %r12, gpr+88(%rip)\n"
			     "	mov %r13, gpr+96(%rip)\n mov %r14, gpr+104(%rip)\n"
#define KEEP(n) "mov -8-8*" #n "(%rsp), %rax\n mov %rax, zone+8*" #n "(%rip)\n"
	EACH16(KEEP) "	pushfq\n pop %rax\n cld\n mov %rax, flags(%rip)\n"
		     "	sub %rsp, spin_sp(%rip)\n" /* 0 */
#define STORE(n) "vmovdqa %ymm" #n ", vec+32*" #n "(%rip)\n"
	EACH16(STORE) "	vzeroupper\n fstpl st0(%rip)\n fstpl st1(%rip)\n fnstcw fcw_out(%rip)\n stmxcsr "
		      "mxcsr_out(%rip)\n"
		      "	fninit\n push $0x1f80\n ldmxcsr (%rsp)\n pop %rax\n"
		      "	pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
		      "	ret\n");
extern void spin_registers(void);
extern uint64_t spin_sp;

static void mode_spin(void)
{
	int is_wide = __builtin_cpu_supports("avx512f"), good;

	spins = 20000000;
	if (is_wide)
		spin_wide_in();
	spin_registers();
	good = !is_wide || spin_wide_out();
	for (size_t i = 0; i < COUNT(gpr); i++)
		good &= gpr[i] == i + 1;
	for (size_t i = 0; i < COUNT(zone); i++)
		good &= zone[i] == i + 1000;
	for (size_t i = 0; i < COUNT(vec); i++)
		good &= memcmp(vec[i], pattern_v, sizeof(pattern_v)) == 0;
	good &= (flags & 0x401) == 0x401 && spin_sp == 0; /* carry and direction */
	good &= mxcsr_out == mxcsr_in && fcw_out == fcw_in && st0 > 3.14 && st0 < 3.15 && st1 == 1.0;
	errno = 0;
	expect(good);
}

#else

uint64_t arm_x[32], arm_q[64], arm_sp, arm_flags;

/* clang-format off */
/* x18 is the system's */
#define ALL "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,19,20,21,22,23,24,25,26,27,28,29,30"
#define AT(name) "	adrp x0, " name "\n	add x0, x0, :lo12:" name "\n"

/* x0 counts; x1 to x30 hold their numbers plus one, q0 to q31 a pattern, and the flags are all set. */
static void mode_spin(void)
{
	int good = 1;

	__asm__ volatile(
		"	stp x29, x30, [sp, #-16]!\n"
		AT("arm_sp")
		"	mov x1, sp\n	str x1, [x0]\n"
		"	.irp n," ALL ",18,31\n	mov x0, #(1000 + \\n)\n	dup v\\n\\().2d, x0\n	.endr\n"
		"	mov x1, #0xf0000000\n	msr nzcv, x1\n"
		"	.irp n," ALL "\n	mov x\\n, #(\\n + 1)\n	.endr\n"
		"	movz x0, #20000000 >> 16, lsl #16\n"
		"1:	sub x0, x0, #1\n	cbnz x0, 1b\n"
		AT("arm_x")
		"	.irp n,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,19,20,21,22,23,24,25,26,27,28,29,30\n"
		"	str x\\n, [x0, #(8 * \\n)]\n	.endr\n"
		AT("arm_q")
		"	.irp n," ALL ",18,31\n	str q\\n, [x0, #(16 * \\n)]\n	.endr\n"
		"	mrs x1, nzcv\n"
		AT("arm_flags")
		"	str x1, [x0]\n"
		AT("arm_sp")
		"	ldr x1, [x0]\n	mov x2, sp\n	sub x1, x1, x2\n	str x1, [x0]\n"
		"	ldp x29, x30, [sp], #16\n"
		:
		:
		: "memory", "cc", "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11",
		  "x12", "x13", "x14", "x15", "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25",
		  "x26", "x27", "x28", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",
		  "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
		  "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
	/* clang-format on */
	good &= arm_flags == 0xf0000000 && arm_sp == 0;
	for (size_t i = 1; i < 31; i++)
		good &= i == 18 || arm_x[i] == i + 1;
	for (size_t i = 0; i < COUNT(arm_q); i++)
		good &= arm_q[i] == 1000 + i / 2;
	errno = 0;
	expect(good);
}

#endif

/* ---- a handler that has interrupted the allocator, and does not return ---- */

static volatile sig_atomic_t in_allocator;
static uint64_t handler_end;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	Dl_info where;
#if defined(__x86_64__)
	void *pc = (void *)uc->uc_mcontext.gregs[REG_RIP];
#else
	void *pc = (void *)uc->uc_mcontext.pc;
#endif

	(void)sig;
	(void)info;
	if (!dladdr(pc, &where) || !where.dli_fname || !strstr(where.dli_fname, "libc.so"))
		return;
	if (write(1, "in the allocator\n", 17) != 17)
		_exit(1);
	in_allocator = 1;
	while (now_us() < handler_end)
		for (volatile int i = 0; i < 1000; i++)
			;
}

static void mode_handler(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (!in_allocator)
		mode_malloc();
	setitimer(ITIMER_REAL, &never, NULL);
}

/* ---- filters of system calls ---- */

static void refuse(int nr, uint32_t answer)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { COUNT(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		exit(1);
}

static void mode_filter_clone3(void)
{
	static int done;

	if (!done++)
		refuse(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
	mode_nanosleep();
}

static void mode_filter_mmap(void)
{
	static int done;

	if (!done++) {
		mode_nanosleep(); /* everything that maps is loaded */
		refuse(SYS_mmap, SECCOMP_RET_ERRNO | EPERM);
	}
	mode_nanosleep();
}

static void mode_filter_memfd(void)
{
	static int done;

	if (!done++)
		refuse(SYS_memfd_create, SECCOMP_RET_KILL_PROCESS);
	mode_nanosleep();
}

/* No signal gets in, one waits outside, and so it stays. */
static void mode_masked(void)
{
	static int done;
	sigset_t all, now;

	sigfillset(&all);
	if (!done++) {
		pthread_sigmask(SIG_SETMASK, &all, NULL);
		raise(SIGUSR1);
	}
	mode_nanosleep();
	expect(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0);
	for (int n = 1; n < SIGRTMAX; n++)
		wrong += n != SIGKILL && n != SIGSTOP && (n < 32 || n >= SIGRTMIN) && !sigismember(&now, n);
	expect(sigpending(&now) == 0);
	wrong += !sigismember(&now, SIGUSR1);
}

static const struct {
	const char *name;
	void (*round)(void);
} modes[] = {
	{ "nanosleep", mode_nanosleep },
	{ "clock", mode_clock },
	{ "poll", mode_poll },
	{ "select", mode_select },
	{ "futex", mode_futex },
	{ "epoll", mode_epoll },
	{ "recv", mode_recv },
	{ "read", mode_read },
	{ "malloc", mode_malloc },
	{ "vfork", mode_vfork },
	{ "spin", mode_spin },
	{ "handler", mode_handler },
	{ "masked", mode_masked },
	{ "filter_clone3", mode_filter_clone3 },
	{ "filter_mmap", mode_filter_mmap },
	{ "filter_memfd", mode_filter_memfd },
};

/* By the loader; or, where there is none, only so that it is seen in the mappings. */
static int map_library(const char *path)
{
#ifdef NO_LOADER
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *m = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	close(fd);
	return m != MAP_FAILED;
#else
	return dlopen(path, RTLD_NOW | RTLD_GLOBAL) != NULL;
#endif
}

/* When its input is closed; /dev/null can always be read. */
static int is_end_requested(void)
{
	struct pollfd p = { .fd = 0 };

	return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP);
}

int main(int argc, char **argv)
{
	uint64_t rounds = 0, end;
	size_t mode = 0;

	while (argc == 4 && mode < COUNT(modes) && strcmp(modes[mode].name, argv[1]) != 0)
		mode++;
	if (argc != 4 || mode == COUNT(modes) || !map_library(argv[3])) {
		fprintf(stderr, "inject_job: usage: inject_job MODE SECONDS LIBRARY\n");
		return 2;
	}
	if (strcmp(argv[1], "read") == 0)
		start_feeder();
	printf("ready %d\n", getpid());
	fflush(stdout);
	end = handler_end = now_us() + (uint64_t)(atof(argv[2]) * 1e6);
	for (; now_us() < end && !is_end_requested(); rounds++)
		modes[mode].round();
	printf("result %s rounds=%llu wrong=%llu eintr=%llu slowest_us=%llu\n", argv[1],
	       (unsigned long long)rounds, (unsigned long long)wrong, (unsigned long long)interrupted,
	       (unsigned long long)slowest_us);
	return 0;
}
