/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs in the job. Compiled without vector registers, stack protector, tables and external calls, into one
 * section (the Makefile has the flags, and checks it).
 *
 * A thread of the job that the injector has stopped continues at nps_inject_entry. It saves every register,
 * maps an area, creates a thread, restores every register and continues where it was. It needs no help for
 * that, so the injector may die at any moment. The new thread, a regular one of the job's C library, loads
 * the library: however long that takes, the job's own threads do not wait for it.
 */
#include "inject_code.h"

#include <linux/futex.h>
#include <linux/mman.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

#define SECTION __attribute__((section("nps_inject"), noinline, used))
#define INLINE static inline __attribute__((always_inline))
#define SIG_SETMASK_ALL 2 /* SIG_SETMASK of the kernel */
#define SIG_UNBLOCK_SOME 1
#define LIBC_SIGNALS (3ULL << 31) /* 32 and 33, which the C library needs in every thread */
#define PROT_READ_WRITE 3
#define MAP_PRIVATE_ANON 0x22
#define MFD_CLOSE_ON_EXEC 1U
#define RTLD_NOW_FLAG 2
#define MOST_YIELDS 100000

SECTION __attribute__((visibility("hidden"))) void nps_inject_detour(const struct nps_inject_input *in,
								     uint64_t loader);
SECTION __attribute__((visibility("hidden"))) void nps_inject_load(struct nps_inject_area *a);

/* Saves vector registers, calls fn(arg[0], ..., arg[3]) on another stack, restores them. */
__attribute__((visibility("hidden"))) int nps_inject_call(char *stack_end, char *vectors, uint64_t fn,
							  const uint64_t arg[4]);

#if defined(__x86_64__)

/*
 * The 128 bytes below the stack pointer belong to the interrupted
 * function. Neither lea nor mov changes flags.
 */
__asm__(".pushsection nps_inject, \"ax\", @progbits\n"
	".globl nps_inject_entry, nps_inject_loader, nps_inject_call, nps_inject_input, nps_inject_landing\n"
	".hidden nps_inject_entry, nps_inject_loader, nps_inject_call, nps_inject_input, nps_inject_landing\n"
	"nps_inject_entry:\n"
	"	lea	-128(%rsp), %rsp\n"
	"	pushfq\n"
	"	push	%rax\n	push	%rcx\n	push	%rdx\n	push	%rbx\n	push	%rbp\n"
	"	push	%rsi\n	push	%rdi\n	push	%r8\n	push	%r9\n	push	%r10\n"
	"	push	%r11\n	push	%r12\n	push	%r13\n	push	%r14\n	push	%r15\n"
	"	cld\n"
	"	mov	%rsp, %rbx\n"
	"	and	$-16, %rsp\n"
	"	lea	nps_inject_input(%rip), %rdi\n"
	"	lea	nps_inject_loader(%rip), %rsi\n"
	"	call	nps_inject_detour\n"
	"	mov	%rbx, %rsp\n"
	"	pop	%r15\n	pop	%r14\n	pop	%r13\n	pop	%r12\n	pop	%r11\n"
	"	pop	%r10\n	pop	%r9\n	pop	%r8\n	pop	%rdi\n	pop	%rsi\n"
	"	pop	%rbp\n	pop	%rbx\n	pop	%rdx\n	pop	%rcx\n	pop	%rax\n"
	"	popfq\n"
	"	lea	128(%rsp), %rsp\n"
	"nps_inject_landing:\n"
	"	jmp	*nps_inject_input(%rip)\n"
	/* The thread's last step is to unmap the area: munmap returns to the C library. */
	"nps_inject_loader:\n"
	"	endbr64\n"
	"	push	%rbx\n"
	"	call	nps_inject_load\n"
	"	pop	%rbx\n"
	"	mov	nps_inject_input+8(%rip), %rdi\n"
	"	mov	nps_inject_input+16(%rip), %rsi\n"
	"	jmp	*nps_inject_input+24(%rip)\n"
	"nps_inject_call:\n"
	"	push	%rbp\n	push	%rbx\n	push	%r12\n"
	"	mov	%rsp, %rbp\n"
	"	mov	%rsi, %rbx\n"
	"	mov	%rdx, %r12\n"
	"	mov	%rcx, %r11\n"
	"	mov	%rdi, %rsp\n"
	"	xor	%ecx, %ecx\n"
	"	xgetbv\n" /* every component that the kernel has enabled */
	"	xsave64	(%rbx)\n"
	"	mov	(%r11), %rdi\n"
	"	mov	8(%r11), %rsi\n"
	"	mov	16(%r11), %rdx\n"
	"	mov	24(%r11), %rcx\n"
	"	call	*%r12\n"
	"	mov	%eax, %r12d\n"
	"	xor	%ecx, %ecx\n"
	"	xgetbv\n"
	"	xrstor64 (%rbx)\n"
	"	mov	%r12d, %eax\n"
	"	mov	%rbp, %rsp\n"
	"	pop	%r12\n	pop	%rbx\n	pop	%rbp\n"
	"	ret\n"
	"	.balign 16\n"
	"nps_inject_input:\n"
	"	.zero	64\n"
	".popsection\n");

INLINE long sys(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	register uint64_t r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = 0;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#elif defined(__aarch64__)

/*
 * There is no red zone, and the only jump that needs no register is a direct branch: the injector fills in
 * its distance and, if that is out of reach, moves the landing. Vector registers are 128 bits wide, because
 * the injector rejects threads with wider ones.
 */
#define PAIRS(op, r, base, step)                                                                             \
	"	" op "	" r "0, " r "1, [sp, #" #base "]\n"                                                  \
	"	" op "	" r "2, " r "3, [sp, #" #base "+" #step "]\n"                                        \
	"	" op "	" r "4, " r "5, [sp, #" #base "+2*" #step "]\n"                                      \
	"	" op "	" r "6, " r "7, [sp, #" #base "+3*" #step "]\n"                                      \
	"	" op "	" r "8, " r "9, [sp, #" #base "+4*" #step "]\n"                                      \
	"	" op "	" r "10, " r "11, [sp, #" #base "+5*" #step "]\n"                                    \
	"	" op "	" r "12, " r "13, [sp, #" #base "+6*" #step "]\n"                                    \
	"	" op "	" r "14, " r "15, [sp, #" #base "+7*" #step "]\n"                                    \
	"	" op "	" r "16, " r "17, [sp, #" #base "+8*" #step "]\n"                                    \
	"	" op "	" r "18, " r "19, [sp, #" #base "+9*" #step "]\n"                                    \
	"	" op "	" r "20, " r "21, [sp, #" #base "+10*" #step "]\n"                                   \
	"	" op "	" r "22, " r "23, [sp, #" #base "+11*" #step "]\n"                                   \
	"	" op "	" r "24, " r "25, [sp, #" #base "+12*" #step "]\n"                                   \
	"	" op "	" r "26, " r "27, [sp, #" #base "+13*" #step "]\n"                                   \
	"	" op "	" r "28, " r "29, [sp, #" #base "+14*" #step "]\n"

/* clang-format off */
__asm__(".pushsection nps_inject, \"ax\", @progbits\n"
	".globl nps_inject_entry, nps_inject_loader, nps_inject_call, nps_inject_input, nps_inject_landing\n"
	".hidden nps_inject_entry, nps_inject_loader, nps_inject_call, nps_inject_input, nps_inject_landing\n"
	".balign 4\n"
	"nps_inject_entry:\n"
	"	sub	sp, sp, #800\n"
	PAIRS("stp", "x", 0, 16)
	"	str	x30, [sp, #240]\n"
	"	mrs	x0, nzcv\n"
	"	str	x0, [sp, #248]\n"
	PAIRS("stp", "q", 256, 32)
	"	stp	q30, q31, [sp, #736]\n"
	"	mrs	x0, fpsr\n"
	"	mrs	x1, fpcr\n"
	"	str	x0, [sp, #768]\n"
	"	str	x1, [sp, #776]\n"
	"	adr	x0, nps_inject_input\n"
	"	adr	x1, nps_inject_loader\n"
	"	bl	nps_inject_detour\n"
	"	ldr	x0, [sp, #768]\n"
	"	ldr	x1, [sp, #776]\n"
	"	msr	fpsr, x0\n"
	"	msr	fpcr, x1\n"
	PAIRS("ldp", "q", 256, 32)
	"	ldp	q30, q31, [sp, #736]\n"
	"	ldr	x0, [sp, #248]\n"
	"	msr	nzcv, x0\n"
	"	ldr	x30, [sp, #240]\n"
	PAIRS("ldp", "x", 0, 16)
	"	ldr	x16, nps_inject_input\n"
	"	br	x16\n"
	"nps_inject_landing:\n" /* NPS_INJECT_LANDING bytes */
	"	hint	#38\n" /* bti jc */
	"	ldr	x16, [sp, #128]\n"
	"	add	sp, sp, #800\n"
	"	b	.\n"
	"nps_inject_loader:\n"
	"	hint	#34\n" /* bti c */
	"	stp	x29, x30, [sp, #-16]!\n"
	"	bl	nps_inject_load\n"
	"	ldp	x29, x30, [sp], #16\n"
	"	adr	x9, nps_inject_input\n"
	"	ldp	x0, x1, [x9, #8]\n"
	"	ldr	x16, [x9, #24]\n"
	"	br	x16\n"
	"nps_inject_call:\n"
	"	stp	x29, x30, [sp, #-32]!\n"
	"	str	x19, [sp, #16]\n"
	"	mov	x19, sp\n"
	"	mov	sp, x0\n"
	"	mov	x9, x2\n"
	"	mov	x10, x3\n"
	"	ldp	x0, x1, [x10]\n"
	"	ldp	x2, x3, [x10, #16]\n"
	"	blr	x9\n"
	"	mov	sp, x19\n"
	"	ldr	x19, [sp, #16]\n"
	"	ldp	x29, x30, [sp], #32\n"
	"	ret\n"
	"	.balign 16\n"
	"nps_inject_input:\n"
	"	.zero	64\n"
	".popsection\n");
/* clang-format on */

INLINE long sys(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	register long x8 __asm__("x8") = nr;
	register uint64_t x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	register uint64_t x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = 0;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return (long)x0;
}

#else
#error "the injector knows x86-64 and arm64"
#endif

_Static_assert(sizeof(struct nps_inject_input) == 64, "the assembler reserves this much");
_Static_assert(offsetof(struct nps_inject_input, area) == 8 &&
		       offsetof(struct nps_inject_input, munmap) == 24,
	       "the assembler reads these");

SECTION static uint64_t now(void)
{
	struct timespec ts = { 0 };

	sys(SYS_clock_gettime, CLOCK_MONOTONIC, (uint64_t)(uintptr_t)&ts, 0, 0, 0);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

INLINE uint32_t get(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

INLINE void set(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* For threads that we have created. */
SECTION static void wait_for(const uint32_t *word, int ms)
{
	struct timespec turn = { .tv_sec = 0, .tv_nsec = 1000000 };

	for (int i = 0; i < ms && !get(word); i++)
		sys(SYS_nanosleep, (uint64_t)(uintptr_t)&turn, 0, 0, 0, 0);
}

/*
 * For the job's thread: a sleep would overwrite its restart block, which the kernel may need to continue
 * the interrupted system call (restart_syscall).
 */
SECTION static void yield_for(const uint32_t *word, uint64_t ns)
{
	uint64_t begin = now();

	/* A seccomp filter may refuse the clock. */
	for (int i = 0; i < MOST_YIELDS && !get(word) && now() - begin < ns; i++)
		sys(SYS_sched_yield, 0, 0, 0, 0, 0);
}

/* Runs on the job's thread, with its stack. Signals are blocked, because their handlers may never return. */
SECTION void nps_inject_detour(const struct nps_inject_input *in, uint64_t loader)
{
	uint64_t all = ~0ULL, old = 0, began = now(), arg[4];
	struct nps_inject_area *a;
	long got;

	if (sys(SYS_rt_sigprocmask, SIG_SETMASK_ALL, (uint64_t)(uintptr_t)&all, (uint64_t)(uintptr_t)&old, 8,
		0))
		return;
	got = sys(SYS_mmap, in->area, in->area_size, PROT_READ_WRITE, MAP_PRIVATE_ANON | MAP_FIXED_NOREPLACE,
		  ~0ULL);
	if (got == (long)in->area) {
		a = (struct nps_inject_area *)(uintptr_t)got;
		a->input = in;
		a->began_ns = began;
		arg[0] = (uint64_t)(uintptr_t)&a->thread;
		arg[1] = 0;
		arg[2] = loader;
		arg[3] = (uint64_t)(uintptr_t)a;
		a->create_error =
			nps_inject_call(a->stack + sizeof(a->stack), a->vectors, in->pthread_create, arg);
		set(&a->created, 1);
		if (a->create_error) { /* no other thread will unmap it */
			yield_for(&a->bye, NPS_INJECT_FAIL_MS * 1000000ULL);
			sys(SYS_munmap, in->area, in->area_size, 0, 0, 0);
		} else {
			a->left_ns = now();
			set(&a->left, 1);
		}
	} else if (got > 0) { /* a kernel that does not know the flag */
		sys(SYS_munmap, (uint64_t)got, in->area_size, 0, 0, 0);
	}
	sys(SYS_rt_sigprocmask, SIG_SETMASK_ALL, (uint64_t)(uintptr_t)&old, 0, 8, 0);
}

/* Writes the path by which the process itself opens a descriptor. */
SECTION static void name_descriptor(char *path, long fd)
{
	volatile char *p = path; /* or the compiler calls memcpy */
	/* /proc/se, as a number: a string would be outside of the section */
	uint64_t prefix = 0x65732f636f72702fULL;
	long scale = 1;

	for (; prefix; prefix >>= 8)
		*p++ = (char)prefix;
	for (prefix = 0x2f64662f666cULL /* lf/fd/ */; prefix; prefix >>= 8)
		*p++ = (char)prefix;
	while (fd / scale >= 10)
		scale *= 10;
	for (; scale; scale /= 10)
		*p++ = (char)('0' + fd / scale % 10);
	*p = '\0';
}

/* For a job whose root does not contain the library: a file in memory. Returns the descriptor or -errno. */
INLINE long put_library(struct nps_inject_area *a)
{
	long fd, n;

	fd = sys(SYS_memfd_create, (uint64_t)(uintptr_t)a->path, MFD_CLOSE_ON_EXEC, 0, 0, 0);
	for (uint64_t at = 0; fd >= 0 && at < a->library_bytes; at += (uint64_t)n) {
		n = sys(SYS_write, (uint64_t)fd, (uint64_t)(uintptr_t)a->library + at, a->library_bytes - at,
			0, 0);
		if (n <= 0) {
			sys(SYS_close, (uint64_t)fd, 0, 0, 0, 0);
			return n ? n : -28 /* ENOSPC */;
		}
	}
	if (fd >= 0)
		name_descriptor(a->path, fd);
	return fd;
}

INLINE void load_library(struct nps_inject_area *a)
{
	void *(*dl_open)(const char *, int) = (void *(*)(const char *, int))(uintptr_t)a->input->dlopen;
	const char *(*dl_error)(void) = (const char *(*)(void))(uintptr_t)a->input->dlerror;
	volatile char *message = a->message;
	const char *text;
	long fd = a->library_bytes ? put_library(a) : 0;

	if (fd < 0) {
		a->create_error = (int32_t)-fd;
		return;
	}
	a->loaded = dl_open(a->path, RTLD_NOW_FLAG) != NULL;
	text = a->loaded ? NULL : dl_error();
	for (unsigned int i = 0; text && text[i] && i < sizeof(a->message) - 1; i++)
		message[i] = text[i];
	if (a->library_bytes)
		sys(SYS_close, (uint64_t)fd, 0, 0, 0, 0);
}

/* Runs on the new thread, which has inherited that all signals are blocked. */
SECTION void nps_inject_load(struct nps_inject_area *a)
{
	int (*detach)(uint64_t) = (int (*)(uint64_t))(uintptr_t)a->input->pthread_detach;
	uint64_t needed = LIBC_SIGNALS;

	sys(SYS_rt_sigprocmask, SIG_UNBLOCK_SOME, (uint64_t)(uintptr_t)&needed, 0, 8, 0);
	detach(a->thread);
	wait_for(&a->go, NPS_INJECT_WAIT_MS);
	if (get(&a->go) == NPS_INJECT_LOAD)
		load_library(a);
	set(&a->done, 1);
	wait_for(&a->bye, NPS_INJECT_WAIT_MS);
	while (!get(&a->left))
		wait_for(&a->left, NPS_INJECT_WAIT_MS);
}
