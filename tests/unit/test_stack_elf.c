/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and callers from ELF files: this program's own, and damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/util.h"
#include "stack/demangle.h"
#include "huge_elf.h"
#include "stack/elf_image.h"
#include "stack/unwind.h"

#define KEEP __attribute__((noinline, noclone, used))

static struct nps_elf_image *self;
static struct nps_elf_limits limits;
static uint64_t self_base; /* what is to be taken off an address to have it as the file has it */

static int first_object(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uint64_t *)base = info->dlpi_addr;
	return 1; /* it is the program */
}

static int open_self(void **state)
{
	(void)state;
	dl_iterate_phdr(first_object, &self_base);
	limits = NPS_ELF_LIMITS;
	return nps_elf_image__open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &limits, &self);
}

static int close_self(void **state)
{
	(void)state;
	nps_elf_image__close(self);
	return 0;
}

static uint64_t vaddr_of(const void *address)
{
	return (uint64_t)(uintptr_t)address - self_base;
}

static void names_its_functions(void **state)
{
	uint64_t at = vaddr_of((void *)(uintptr_t)names_its_functions), vaddr = 0;

	(void)state;
	assert_true(nps_elf_image__has_symtab(self));
	assert_string_equal(nps_elf_image__symbol(self, at), "names_its_functions");
	assert_string_equal(nps_elf_image__symbol(self, at + 9), "names_its_functions");
	assert_null(nps_elf_image__symbol(self, 0));
	assert_null(nps_elf_image__symbol(self, UINT64_MAX));
	assert_true(nps_elf_image__vaddr(self, 0, &vaddr));
	assert_int_equal(vaddr, 0);
	assert_false(nps_elf_image__vaddr(self, 1ULL << 40, &vaddr));
}

/* --- walking -------------------------------------------------------------------------------------------- */

static struct nps_unwind shot; /* of this thread's stack, taken in the innermost function */
static uint8_t copy[16384];
static uint64_t stack_top;
#define IN_A_PROBE 0x12345
#define TRAMPOLINE 0x23456 /* where returns that are probed lead */

static struct nps_elf_image *find_self(void *ctx, uint64_t pc, uint64_t *vaddr, enum nps_unwind_code *code)
{
	(void)ctx;
	*vaddr = pc - self_base;
	if (pc == IN_A_PROBE)
		*code = NPS_UNWIND_PROBE;
	else if (pc == TRAMPOLINE)
		*code = NPS_UNWIND_RETURN;
	else if (*vaddr < 256U << 20)
		*code = NPS_UNWIND_CODE;
	return *code == NPS_UNWIND_CODE ? self : NULL;
}

/* Callers' registers that a function saves, as they are here; the others do not matter. */
__attribute__((noinline, no_sanitize("address", "undefined"))) static void capture_stack(void)
{
#if defined(__x86_64__)
	uint64_t sp, pc;

	__asm__ volatile(
		"movq %%rsp, %0\n\tleaq (%%rip), %1\n\tmovq %%rbx, %2\n\tmovq %%rbp, %3\n\tmovq %%r12, %4\n\t"
		"movq %%r13, %5\n\tmovq %%r14, %6\n\tmovq %%r15, %7"
		: "=&r"(sp), "=&r"(pc), "=m"(shot.regs[3]), "=m"(shot.regs[6]), "=m"(shot.regs[12]),
		  "=m"(shot.regs[13]), "=m"(shot.regs[14]), "=m"(shot.regs[15]));
	shot.regs[7] = sp;
	shot.regs[16] = pc;
	shot.nregs = 17;
	for (size_t i = 0; i < sizeof(copy) / 8 && sp + 8 * i < stack_top; i++)
		((uint64_t *)(void *)copy)[i] = ((volatile uint64_t *)sp)[i];
#endif
	shot.stack = copy;
	shot.stack_len = sizeof(copy);
	shot.find = find_self;
}

KEEP int inner(int x)
{
	capture_stack();
	return x + 1;
}

/* Frame pointers, where functions have them, as their callees give them back. */
static uint64_t middles_rbp, outers_rbp;

#if defined(__x86_64__)
#define READ_RBP(to) __asm__ volatile("movq %%rbp, %0" : "=r"(to))
#else
#define READ_RBP(to) ((to) = 0)
#endif

KEEP int middle(int x)
{
	volatile char room[1000];

	READ_RBP(middles_rbp);
	room[x & 511] = 1;
	return inner(x) + room[x & 511];
}

KEEP int outer(int x)
{
	READ_RBP(outers_rbp);
	return middle(x) * 3;
}

static int index_of(const uint64_t *frames, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		const char *symbol = nps_elf_image__symbol(self, frames[i] - self_base - (i > 0));

		if (symbol && !strcmp(symbol, name))
			return (int)i;
	}
	return -1;
}

static void collect(void)
{
	pthread_attr_t attr;
	void *low;
	size_t size;

	assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
	assert_int_equal(pthread_attr_getstack(&attr, &low, &size), 0);
	pthread_attr_destroy(&attr);
	stack_top = (uint64_t)(uintptr_t)low + size;
	memset(&shot, 0, sizeof(shot));
	assert_true(outer(3) > 0);
	if (!shot.nregs)
		skip();
}

/* The same on x86-64, and all frames from there: how many. */
static size_t collect_whole(uint64_t *all)
{
	bool complete;
	size_t n;

	collect();
	if (shot.nregs != 17)
		skip();
	n = nps_unwind__walk(&shot, all, &complete);
	assert_true(n >= 5);
	return n;
}

static void walks_to_its_callers(void **state)
{
	uint64_t frames[NPS_UNWIND_MAX];
	bool complete;
	size_t n;

	(void)state;
	collect();
	n = nps_unwind__walk(&shot, frames, &complete);
	assert_true(n >= 5);
	assert_int_equal(index_of(frames, n, "capture_stack"), 0);
	assert_int_equal(index_of(frames, n, "inner"), 1);
	assert_int_equal(index_of(frames, n, "middle"), 2);
	assert_int_equal(index_of(frames, n, "outer"), 3);
	assert_true(index_of(frames, n, "walks_to_its_callers") > 3);
	assert_false(complete); /* the C library is not among what find_self() knows */
}

static void stops_where_the_copy_ends(void **state)
{
	uint64_t frames[NPS_UNWIND_MAX];
	bool complete;
	size_t n, last = 0;

	(void)state;
	collect();
	for (shot.stack_len = 0; shot.stack_len < 4096; shot.stack_len += 8) {
		n = nps_unwind__walk(&shot, frames, &complete);
		assert_true(n >= last); /* more of the stack never gives less */
		assert_false(complete);
		last = n;
	}
	assert_true(last >= 5);
}

/* As if a probe stood at the beginning of inner(), before or after its first push. */
static void steps_out_of_a_probe(void **state)
{
	uint64_t frames[NPS_UNWIND_MAX], all[NPS_UNWIND_MAX], sp, *word = (uint64_t *)(void *)copy;
	bool complete;
	size_t n, whole;

	(void)state;
	whole = collect_whole(all);
	for (sp = 0; word[sp] != all[1]; sp++) /* where capture_stack() returns to */
		assert_true(sp < 512);
	if (sp)
		word[--sp] = 7;
	shot.regs[7] += 8 * sp;
	shot.regs[16] = IN_A_PROBE;
	shot.stack += 8 * sp;
	shot.stack_len -= 8 * sp;
	n = nps_unwind__walk(&shot, frames, &complete);
	assert_int_equal(n, whole);
	assert_int_equal(frames[0], IN_A_PROBE);
	assert_memory_equal(frames + 1, all + 1, (n - 1) * sizeof(*frames));
}

/* Puts the trampoline over the return addresses to frames 1 to N, as probes do. Their addresses are in R. */
static void probe_returns(const uint64_t *all, size_t n, struct nps_return *r)
{
	uint64_t *word = (uint64_t *)(void *)copy;
	size_t at = 0;

	for (size_t i = 1; i <= n; i++) {
		while (word[at] != all[i])
			assert_true(++at < sizeof(copy) / 8);
		r[i - 1] = (struct nps_return){ .stack = shot.regs[7] + 8 * at, .address = all[i] };
		word[at] = TRAMPOLINE;
	}
}

static void puts_return_addresses_back(void **state)
{
	uint64_t frames[NPS_UNWIND_MAX], all[NPS_UNWIND_MAX];
	struct nps_return r[6];
	bool complete;
	size_t n, whole;

	(void)state;
	whole = collect_whole(all);
	probe_returns(all, 3, r + 1);
	n = nps_unwind__walk(&shot, frames, &complete);
	assert_int_equal(n, 1); /* what became of such stacks */
	assert_false(complete);
	/*
	 * one that longjmp left, below all that there is, and an older one
	 * of a stack pointer that is in use again
	 */
	r[0] = (struct nps_return){ .stack = shot.regs[7] - 64, .address = all[4] };
	r[4] = (struct nps_return){ .stack = r[3].stack, .address = all[4] };
	shot.returns = r;
	shot.nreturns = 5;
	n = nps_unwind__walk(&shot, frames, &complete);
	assert_int_equal(n, whole);
	assert_memory_equal(frames, all, n * sizeof(*frames));
	/* The stack pointer decides, not the order: where it is not known the walk ends. */
	r[2].stack += 8;
	n = nps_unwind__walk(&shot, frames, &complete);
	assert_int_equal(n, 2);
	assert_memory_equal(frames, all, n * sizeof(*frames));
	assert_false(complete);
}

/* A function has just returned into the trampoline, which pushes three registers and calls the kernel. */
static void steps_out_of_the_trampoline(void **state)
{
	uint64_t frames[NPS_UNWIND_MAX], all[NPS_UNWIND_MAX], *word = (uint64_t *)(void *)copy, sp, at;
	struct nps_return r[3];
	bool complete;
	size_t n, whole;

	(void)state;
	whole = collect_whole(all);
	probe_returns(all, 3, r);
	sp = shot.regs[7];
	at = (r[2].stack - sp) / 8; /* middle(), whose frame is large, returns to outer() */
	shot.returns = r + 2;
	shot.nreturns = 1;
	shot.regs[6] = outers_rbp;
	shot.regs[16] = TRAMPOLINE;
	word[at] = word[at - 1] = word[at - 2] = all[4] + 1; /* registers can hold anything */
	for (uint64_t pushed = 0; pushed <= 3; pushed++) {
		shot.regs[7] = sp + 8 * (at + 1 - pushed);
		shot.stack = copy + 8 * (at + 1 - pushed);
		shot.stack_len = sizeof(copy) - 8 * (at + 1 - pushed);
		n = nps_unwind__walk(&shot, frames, &complete);
		assert_int_equal(n, whole - 2);
		assert_int_equal(frames[0], TRAMPOLINE);
		assert_memory_equal(frames + 1, all + 3, (n - 1) * sizeof(*frames));
	}
}

/*
 * A function whose return is probed too is at its first instruction, which the kernel carries out elsewhere.
 */
static void steps_out_of_a_probe_of_both(void **state)
{
	uint64_t frames[NPS_UNWIND_MAX], all[NPS_UNWIND_MAX], at;
	struct nps_return r[2];
	bool complete;
	size_t n, whole;

	(void)state;
	whole = collect_whole(all);
	probe_returns(all, 2, r);
	at = r[1].stack - shot.regs[7];
	shot.returns = r;
	shot.nreturns = 2;
	shot.regs[6] = middles_rbp; /* inner() has not pushed anything yet */
	shot.regs[16] = IN_A_PROBE;
	shot.regs[7] += at;
	shot.stack += at;
	shot.stack_len -= at;
	n = nps_unwind__walk(&shot, frames, &complete);
	assert_int_equal(n, whole - 1);
	assert_memory_equal(frames + 1, all + 2, (n - 1) * sizeof(*frames));
}

/*
 * arm64, code without tables: return addresses are signed, and stand in frame
 * records anywhere in their functions' frames.
 */
#define SIGNED(address) ((address) | 0x5aULL << 48)
#define CODE(n) (0x1000ULL + (n))

static struct nps_elf_image *find_arm64(void *ctx, uint64_t pc, uint64_t *vaddr, enum nps_unwind_code *code)
{
	(void)ctx;
	*vaddr = pc;
	*code = pc == TRAMPOLINE	      ? NPS_UNWIND_RETURN
		: pc == IN_A_PROBE	      ? NPS_UNWIND_PROBE
		: pc >= 0x1000 && pc < 0x2000 ? NPS_UNWIND_CODE
					      : NPS_UNWIND_NOWHERE;
	return NULL;
}

static void expect_arm64(const struct nps_unwind *u, bool begun, const uint64_t *want, size_t n)
{
	uint64_t frames[NPS_UNWIND_MAX];
	bool complete;

	assert_int_equal(nps_unwind__walk(u, frames, &complete), n);
	assert_memory_equal(frames, want, n * sizeof(*frames));
	assert_int_equal(complete, begun);
}

static void puts_back_on_arm64(void **state)
{
	const uint64_t at = 0x7000, stack[] = { at + 48, SIGNED(TRAMPOLINE), 1, 2, 3, 4,
						at + 80, SIGNED(TRAMPOLINE), 5, 6, 0, 0 };
	/* entered at the ends of their frames, the first behind the instruction that made room */
	const struct nps_return r[] = { { at + 40, CODE(1) }, { at + 80, CODE(2) } };
	struct nps_unwind u = { .nregs = 33,
				.regs = { [29] = at, [31] = at, [32] = CODE(0) },
				.stack = (const uint8_t *)stack,
				.stack_len = sizeof(stack),
				.returns = r,
				.nreturns = 2,
				.find = find_arm64 };

	(void)state;
	expect_arm64(&u, true, (const uint64_t[]){ CODE(0), CODE(1), CODE(2) }, 3);
	/*
	 * Just entered: the return address is in the link register; just returned: nothing has it any more.
	 */
	u.regs[32] = IN_A_PROBE;
	u.regs[30] = TRAMPOLINE;
	u.regs[31] = r[0].stack;
	u.regs[29] = at + 48;
	u.stack += 40;
	u.stack_len -= 40;
	expect_arm64(&u, true, (const uint64_t[]){ IN_A_PROBE, CODE(1), CODE(2) }, 3);
	u.regs[32] = TRAMPOLINE;
	expect_arm64(&u, true, (const uint64_t[]){ TRAMPOLINE, CODE(1), CODE(2) }, 3);
}

/* Any stack and any registers: it ends, within its bounds. */
static void survives_nonsense(void **state)
{
	uint64_t frames[NPS_UNWIND_MAX];
	bool complete;

	(void)state;
	collect();
	srand(1);
	for (int i = 0; i < 20000; i++) {
		uint64_t pc = shot.regs[16], sp = shot.regs[7];

		((uint64_t *)(void *)copy)[rand() % (int)(sizeof(copy) / 8)] =
			i % 3 ? (uint64_t)rand() << (rand() % 34)
			      : self_base + (uint64_t)(rand() % (1 << 20));
		shot.regs[16] = i % 2 ? self_base + (uint64_t)(rand() % (1 << 20)) : pc;
		shot.regs[7] = i % 5 ? sp : UINT64_MAX - (uint64_t)(rand() % 64);
		shot.regs[6] = sp + (uint64_t)(rand() % (int)sizeof(copy));
		assert_true(nps_unwind__walk(&shot, frames, &complete) <= NPS_UNWIND_MAX);
		shot.regs[16] = pc;
		shot.regs[7] = sp;
	}
}

/* --- expressions ---------------------------------------------------------------------------------------- */

static const uint64_t memory[] = { 11, 22, 33 };
static const uint64_t regs[17] = { [6] = 0x2000, [7] = 0x1000, [16] = 0x40000b };
static const struct nps_expr expr = { .regs = regs,
				      .nregs = 17,
				      .cfa = 0x1010,
				      .stack_at = 0x1000,
				      .stack = (const uint8_t *)memory,
				      .stack_len = sizeof(memory) };

static bool eval(const Dwarf_Op *ops, size_t n, uint64_t *value)
{
	return nps_expr__eval(&expr, ops, n, value);
}

#define EVAL(value, ...)                                                                                     \
	eval((const Dwarf_Op[]){ __VA_ARGS__ }, sizeof((Dwarf_Op[]){ __VA_ARGS__ }) / sizeof(Dwarf_Op), value)
#define IS(want, ...)                                                                                        \
	do {                                                                                                 \
		uint64_t got = 0;                                                                            \
		assert_true(EVAL(&got, __VA_ARGS__));                                                        \
		assert_int_equal(got, want);                                                                 \
	} while (0)
#define IS_NONE(...)                                                                                         \
	do {                                                                                                 \
		uint64_t got = 0;                                                                            \
		assert_false(EVAL(&got, __VA_ARGS__));                                                       \
	} while (0)

static void expressions(void **state)
{
	(void)state;
	IS(0x1008, { .atom = DW_OP_breg7, .number = 8 });
	IS(22, { .atom = DW_OP_breg7, .number = 8 }, { .atom = DW_OP_deref });
	IS(0x1008, { .atom = DW_OP_call_frame_cfa }, { .atom = DW_OP_plus_uconst, .number = (Dwarf_Word)-8 });
	IS(5, { .atom = DW_OP_lit7 }, { .atom = DW_OP_lit2 }, { .atom = DW_OP_minus });
	IS(UINT64_MAX, { .atom = DW_OP_const1s, .number = (Dwarf_Word)-8 }, { .atom = DW_OP_lit3 },
	   { .atom = DW_OP_shra });
	IS(1, { .atom = DW_OP_lit8 }, { .atom = DW_OP_lit3 }, { .atom = DW_OP_shra });
	IS(7, { .atom = DW_OP_lit2 }, { .atom = DW_OP_lit7 }, { .atom = DW_OP_swap }, { .atom = DW_OP_drop });
	/* what linkers write for the stubs of calls into libraries: 8 more from the 11th byte of 16 on */
	IS(0x1010, { .atom = DW_OP_breg7, .number = 8 }, { .atom = DW_OP_breg16 }, { .atom = DW_OP_lit15 },
	   { .atom = DW_OP_and }, { .atom = DW_OP_lit11 }, { .atom = DW_OP_ge }, { .atom = DW_OP_lit3 },
	   { .atom = DW_OP_shl }, { .atom = DW_OP_plus });
	IS(9, { .atom = DW_OP_lit1, .offset = 0 }, { .atom = DW_OP_bra, .number = 1, .offset = 1 },
	   { .atom = DW_OP_lit5, .offset = 4 }, { .atom = DW_OP_lit9, .offset = 5 });
	IS_NONE({ .atom = DW_OP_deref });
	IS_NONE({ .atom = DW_OP_breg7, .number = 17 }, { .atom = DW_OP_deref }); /* 7 bytes are left */
	IS_NONE({ .atom = DW_OP_breg7, .number = (Dwarf_Word)-8 }, { .atom = DW_OP_deref });
	IS_NONE({ .atom = DW_OP_bregx, .number = 17 });
	IS_NONE({ .atom = DW_OP_lit1 }, { .atom = DW_OP_plus });
	IS_NONE({ .atom = 0xff });
	IS_NONE({ .atom = DW_OP_skip, .number = (Dwarf_Word)-3, .offset = 0 }); /* for ever */
}

/* --- damaged files -------------------------------------------------------------------------------------- */

static void read_all(struct nps_elf_image *image)
{
	uint8_t id[20];
	uint64_t vaddr;

	nps_elf_image__build_id(image, id);
	nps_elf_image__has_symtab(image);
	for (uint64_t at = 0; at < 1 << 20; at += 4093) {
		nps_elf_image__vaddr(image, at, &vaddr);
		nps_elf_image__symbol(image, at);
		free(nps_elf_image__frame(image, at));
	}
}

static void try_bytes(const uint8_t *bytes, size_t len)
{
	char path[] = "/tmp/test_stack_elf.XXXXXX";
	struct nps_elf_image *image;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	limits = NPS_ELF_LIMITS;
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	if (!nps_elf_image__open(fd, &limits, &image)) {
		read_all(image);
		nps_elf_image__close(image);
	}
	if (!nps_elf_image__memory(bytes, len, &limits, &image)) {
		read_all(image);
		nps_elf_image__close(image);
	}
}

static uint8_t *read_file(const char *path, size_t *len)
{
	struct stat st = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *bytes;

	assert_true(fd >= 0 && !fstat(fd, &st));
	bytes = malloc(st.st_size + 1);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, st.st_size), st.st_size);
	close(fd);
	*len = st.st_size;
	return bytes;
}

static void damaged_files(void **state)
{
	size_t len;
	uint8_t *good = read_file("/bin/true", &len), *bad;

	(void)state;
	if (!len) {
		fail();
		return;
	}
	bad = malloc(len);
	assert_non_null(bad);
	for (size_t cut = 0; cut < len; cut += len / 97 + 1)
		try_bytes(good, cut);
	srand(7);
	for (int round = 0; round < 400; round++) {
		int hits = 1 + rand() % 32;

		memcpy(bad, good, len);
		/* mostly where the headers and tables are */
		for (int i = 0; i < hits; i++)
			bad[round % 3 ? (size_t)rand() % 4096 % len : (size_t)rand() % len] = (uint8_t)rand();
		if (round % 5 == 0)
			memset(bad + len - len / 8, 0xff, len / 16); /* section headers lie at the end */
		try_bytes(bad, len);
	}
	free(good);
	free(bad);
}

static void not_elf(void **state)
{
	struct nps_elf_image *image;

	(void)state;
	assert_int_equal(nps_elf_image__open(open("/etc/passwd", O_RDONLY | O_CLOEXEC), &limits, &image),
			 -ENOEXEC);
	assert_int_equal(nps_elf_image__open(open("/dev/null", O_RDONLY | O_CLOEXEC), &limits, &image),
			 -ENOEXEC);
	assert_int_equal(nps_elf_image__memory("\177ELF", 4, &limits, &image), -ENOEXEC);
}

/* --- files that are larger than any --------------------------------------------------------------------- */

static size_t peak_kb(void)
{
	struct rusage use;

	assert_int_equal(getrusage(RUSAGE_SELF, &use), 0);
	return (size_t)use.ru_maxrss;
}

/* What is the name of an address of such a file? NULL: none. */
static const char *first_name(const struct huge_elf *shape, struct nps_elf_image **image)
{
	assert_int_equal(nps_elf_image__open(huge_elf__make(shape), &limits, image), 0);
	return nps_elf_image__symbol(*image, 64);
}

static void large_files_have_names(void **state)
{
	/* as many as libtorch_cpu.so has in .symtab */
	struct huge_elf torch = { .symbols = 600000, .names = 100UL << 20, .name = "f", .written = 4 };
	struct nps_elf_image *image;

	(void)state;
	limits = NPS_ELF_LIMITS;
	assert_string_equal(first_name(&torch, &image), "ff");
	assert_false(limits.exceeded);
	nps_elf_image__close(image);
}

static void files_beyond_all_measure_have_none(void **state)
{
	struct huge_elf symbols = { .symbols = 15000000, .names = 64 },
			names = { .symbols = 8, .names = 40UL << 30 };
	size_t before = peak_kb();
	struct nps_elf_image *image;

	(void)state;
	limits = NPS_ELF_LIMITS;
	assert_null(first_name(&symbols, &image));
	assert_true(limits.exceeded);
	nps_elf_image__close(image);
	assert_null(first_name(&names, &image));
	nps_elf_image__close(image);
	assert_true(peak_kb() - before < 64 * 1024);
}

#ifndef __SANITIZE_ADDRESS__ /* which takes address space without end */
/* A file, which is the job's, can need more memory than there is: then it loses its names, and no more. */
static void files_that_need_too_much_memory(void **state)
{
	struct huge_elf shape = { .symbols = 600000, .names = 200UL << 20, .name = "f", .written = 4 };
	struct rlimit limit, all;
	struct nps_elf_image *image;
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	(void)state;
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	assert_int_equal(getrlimit(RLIMIT_AS, &all), 0);
	limit = (struct rlimit){ pages * (rlim_t)sysconf(_SC_PAGESIZE) + (100UL << 20), all.rlim_max };
	limits = NPS_ELF_LIMITS;
	nps_memory__reset();
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	assert_null(first_name(&shape, &image));
	assert_null(nps_elf_image__symbol(image, 64));
	assert_int_equal(setrlimit(RLIMIT_AS, &all), 0);
	nps_elf_image__close(image);
	assert_int_equal(nps_memory__failure(), 0);
	assert_int_equal(limits.refused, 1);
	assert_false(limits.exceeded);
	assert_string_equal(first_name(&shape, &image), "ff");
	nps_elf_image__close(image);
	assert_int_equal(limits.refused, 1);
}
#endif

/* Each file is one that could be, but there is no end of them. */
static void many_files_share_one_limit(void **state)
{
	struct huge_elf shape = { .symbols = 500000, .names = 64UL << 20, .name = "f", .written = 4 };
	struct nps_elf_image *images[64];
	unsigned int named = 0;

	(void)state;
	limits = NPS_ELF_LIMITS;
	for (size_t i = 0; i < 64; i++) {
		named += first_name(&shape, &images[i]) != NULL;
		nps_elf_image__close(images[i]);
	}
	assert_in_range(named, 10, 20); /* 2 GiB / 125 MiB */
	assert_true(limits.exceeded);
}

/*
 * One name for all symbols, which ends with the table: whoever looks for its end each time is busy for a day.
 */
static void one_long_name(void **state)
{
	struct huge_elf shape = {
		.symbols = 500000, .names = 100UL << 20, .name = "f", .written = 100UL << 20
	};
	struct nps_elf_image *image;

	(void)state;
	limits = NPS_ELF_LIMITS;
	assert_non_null(first_name(&shape, &image));
	nps_elf_image__close(image);
}

/* --- C++ ------------------------------------------------------------------------------------------------ */

/*
 * pair<pair<pair<...>>>: each step is twice as long as the one before it, and only six bytes of the symbol.
 */
static void names_that_explode(void **state)
{
	char symbol[1024] = "_Z1f1aSt4pairIS_S_E", name[NPS_DEMANGLED_MAX];
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	(void)state;
	for (int i = 1; i < 36; i++) {
		size_t len = strlen(symbol);

		snprintf(symbol + len, sizeof(symbol) - len, "S0_IS%c_S%c_E", digits[i], digits[i]);
		nps_demangle(symbol, name, sizeof(name));
		if (i < 8)
			assert_int_equal(strncmp(name, "f(a, std::pair<a, a>", 20), 0);
	}
	assert_string_equal(name, symbol);
	/* What code is made of is named as ever. */
	nps_demangle(
		"_ZNSt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES5_St4lessIS5_ESaISt4pairIKS5_"
		"S5_EEE6insertERKSA_",
		name, sizeof(name));
	assert_int_equal(strncmp(name, "std::map<std::", 14), 0);
}

static void demangles(void **state)
{
	char name[NPS_DEMANGLED_MAX], small[8], *deep = malloc(5000);

	(void)state;
	nps_demangle("_ZN6shapes7PolygonImE4areaEi", name, sizeof(name));
	assert_string_equal(name, "shapes::Polygon<unsigned long>::area(int)");
	nps_demangle("plain_c", name, sizeof(name));
	assert_string_equal(name, "plain_c");
	nps_demangle("_Z", name, sizeof(name));
	assert_string_equal(name, "_Z");
	nps_demangle("_ZN6shapes7PolygonImE4areaEi", small, sizeof(small));
	assert_string_equal(small, "shapes:");
	assert_non_null(deep);
	memset(deep, 'P', 5000);
	memcpy(deep, "_Z1f", 4);
	deep[4999] = '\0';
	nps_demangle(deep, name, sizeof(name));
	assert_int_equal(strlen(name), sizeof(name) - 1);
	deep[2000] = '\0';
	nps_demangle(deep, name, sizeof(name)); /* it ends, whatever the result */
	/* What could be references may overlap: here are four in five bytes. */
	for (size_t i = 2; i < 2047; i++)
		deep[i] = (i - 2) % 5 == 4 ? '_' : 'S';
	deep[2047] = '\0';
	nps_demangle(deep, name, sizeof(name));
	assert_int_equal(strncmp(name, deep, sizeof(name) - 1), 0);
	free(deep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_its_functions),
		cmocka_unit_test(walks_to_its_callers),
		cmocka_unit_test(stops_where_the_copy_ends),
		cmocka_unit_test(survives_nonsense),
		cmocka_unit_test(steps_out_of_a_probe),
		cmocka_unit_test(puts_return_addresses_back),
		cmocka_unit_test(steps_out_of_the_trampoline),
		cmocka_unit_test(steps_out_of_a_probe_of_both),
		cmocka_unit_test(puts_back_on_arm64),
		cmocka_unit_test(expressions),
		cmocka_unit_test(damaged_files),
		cmocka_unit_test(not_elf),
		cmocka_unit_test(files_beyond_all_measure_have_none),
		cmocka_unit_test(large_files_have_names),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(files_that_need_too_much_memory),
#endif
		cmocka_unit_test(many_files_share_one_limit),
		cmocka_unit_test(one_long_name),
		cmocka_unit_test(demangles),
		cmocka_unit_test(names_that_explode),
	};

	return cmocka_run_group_tests(tests, open_self, close_self);
}
