/* SPDX-License-Identifier: BSD-2-Clause */
/* Prologues as compilers make them, and where the probe must go. Bytes assembled by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <linux/version.h>
#include <stdbool.h>
#include <string.h>

#include "attach/probe_point.h"

#define REGISTERS 0x3f /* all arguments that x86-64 passes in them */
#define CALL 1 /* probed at entry and return */
#define ENTRY 0

/* Code at another address: what lies `where` bytes from the function's start. */
struct part {
	int64_t where;
	const uint8_t *code;
	size_t len;
};

static int read_part(void *arg, int64_t at, uint8_t *buf, size_t len)
{
	const struct part *part = arg;

	memset(buf, 0xcc, len);
	if (part->len && part->where >= at && (size_t)(part->where - at) + part->len <= len)
		memcpy(buf + (part->where - at), part->code, part->len);
	return (int)len;
}

static size_t point_with_part(int machine, uint32_t arguments, bool returns, const uint8_t *code, size_t len,
			      struct part part)
{
	const struct nps_probe_need need = { arguments, true, returns, read_part, &part, NULL };

	return nps_probe_point(machine, code, len, &need);
}

/* What the function jumps to elsewhere does not lead back. */
static size_t point(int machine, uint32_t arguments, bool returns, const uint8_t *code, size_t len)
{
	return point_with_part(machine, arguments, returns, code, len, (struct part){ 0 });
}

#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ })
#define X86(...) point(EM_X86_64, REGISTERS, CALL, BYTES(__VA_ARGS__))
#define X86_ENTRY(arguments, ...) point(EM_X86_64, arguments, ENTRY, BYTES(__VA_ARGS__))

/* Instructions of arm64, a word each. */
static size_t arm(uint32_t arguments, bool returns, const uint32_t *words, size_t n)
{
	return point(EM_AARCH64, arguments, returns, (const uint8_t *)words, 4 * n);
}

#define WORDS(...) (const uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4
#define ARM(...) arm(0xff, CALL, WORDS(__VA_ARGS__))
#define ARM_ENTRY(arguments, ...) arm(arguments, ENTRY, WORDS(__VA_ARGS__))

static void push_first(void **state)
{
	(void)state;
	assert_int_equal(X86(0x53, 0xc3), 0); /* push rbx; ret */
	assert_int_equal(X86(0x41, 0x54, 0xc3), 0); /* push r12; ret */
}

static void endbr_then_push(void **state)
{
	(void)state;
	assert_int_equal(X86(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0xc3), 4); /* endbr64; push rbp; ret */
	assert_int_equal(X86(0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57, 0xc3), 4); /* endbr64; push r15 */
}

static void harmless_moves_are_skipped(void **state)
{
	(void)state;
	/* endbr64; mov rax, rdi; push rbp */
	assert_int_equal(X86(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8, 0x55, 0xc3), 7);
	/* xor eax, eax; push rbx */
	assert_int_equal(X86(0x31, 0xc0, 0x53, 0xc3), 2);
}

static void touched_arguments_stop(void **state)
{
	(void)state;
	/* mov rdi, rsi; push rbx */
	assert_int_equal(X86(0x48, 0x89, 0xf7, 0x53, 0xc3), 0);
	/* xor edx, edx; push rbx */
	assert_int_equal(X86(0x31, 0xd2, 0x53, 0xc3), 0);
	/* mov cl, 1; push rbx */
	assert_int_equal(X86(0xb1, 0x01, 0x53, 0xc3), 0);
	/* xor r9d, r9d; push rbx */
	assert_int_equal(X86(0x45, 0x31, 0xc9, 0x53, 0xc3), 0);
}

static void moved_stack_stops(void **state)
{
	(void)state;
	/* sub rsp, 24; push rbx: the return address is no longer on top */
	assert_int_equal(X86(0x48, 0x83, 0xec, 0x18, 0x53, 0xc3), 0);
	/* endbr64; sub rsp, 8; push rbx */
	assert_int_equal(X86(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08, 0x53, 0xc3), 0);
}

static void written_memory_stops(void **state)
{
	(void)state;
	/* mov [rsi-8], rdi; push rbx */
	assert_int_equal(X86(0x48, 0x89, 0x7e, 0xf8, 0x53, 0xc3), 0);
}

static void jumps_are_emulated(void **state)
{
	(void)state;
	assert_int_equal(X86(0xe9, 0x00, 0x01, 0x00, 0x00), 0); /* jmp rel32: a tail call */
	/* endbr64; jmp rel32 */
	assert_int_equal(X86(0xf3, 0x0f, 0x1e, 0xfa, 0xe9, 0x00, 0x01, 0x00, 0x00), 4);
	/* test rdi, rdi; je +4; ... */
	assert_int_equal(X86(0x48, 0x85, 0xff, 0x74, 0x04, 0x31, 0xc0, 0xc3), 3);
	/* endbr64; jmp [rip+...]: an indirect jump is not */
	assert_int_equal(X86(0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x00, 0x01, 0x00, 0x00), 0);
}

static void loop_head_is_no_probe_point(void **state)
{
	(void)state;
	/* xor eax, eax; 2: push rbx; pop rbx; inc eax; cmp eax, 9; jne 2; ret */
	assert_int_equal(X86(0x31, 0xc0, 0x53, 0x5b, 0xff, 0xc0, 0x83, 0xf8, 0x09, 0x75, 0xf7, 0xc3), 0);
}

static void loop_into_the_skipped_is_no_probe_point(void **state)
{
	(void)state;
	/* xor eax, eax; 2: cmp byte [rdi+rax], 0; je +4; inc eax; jmp 2; ret */
	assert_int_equal(X86(0x31, 0xc0, 0x80, 0x3c, 0x07, 0x00, 0x74, 0x04, 0xff, 0xc0, 0xeb, 0xf6, 0xc3),
			 0);
}

static void only_arguments_that_are_read_matter(void **state)
{
	(void)state;
	/* endbr64; xor ecx, ecx; push rbx: the fourth argument is overwritten */
	assert_int_equal(X86_ENTRY(0x7, 0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc9, 0x53, 0xc3), 6);
	assert_int_equal(X86_ENTRY(0x8, 0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc9, 0x53, 0xc3), 0);
	/* mov rdi, [rip+0]; push rbx: the first */
	assert_int_equal(X86_ENTRY(0x2, 0x48, 0x8b, 0x3d, 0, 0, 0, 0, 0x53, 0xc3), 7);
	assert_int_equal(X86_ENTRY(0x1, 0x48, 0x8b, 0x3d, 0, 0, 0, 0, 0x53, 0xc3), 0);
	/* cpuid writes registers that it does not name */
	assert_int_equal(X86_ENTRY(0x1, 0x0f, 0xa2, 0x53, 0xc3), 2);
	assert_int_equal(X86_ENTRY(0x4, 0x0f, 0xa2, 0x53, 0xc3), 0);
}

static void an_entry_may_lie_behind_the_frame(void **state)
{
	(void)state;
	/* sub rsp, 24; call: with arguments in registers */
	assert_int_equal(X86_ENTRY(REGISTERS, 0x48, 0x83, 0xec, 0x18, 0xe8, 0, 1, 0, 0), 4);
	/* the seventh lies on the stack, where the stack pointer does not lead any more */
	assert_int_equal(X86_ENTRY(0x40, 0x48, 0x83, 0xec, 0x18, 0xe8, 0, 1, 0, 0), 0);
	assert_int_equal(X86_ENTRY(0x40, 0xf3, 0x0f, 0x1e, 0xfa, 0x53), 4); /* not moved yet */
	/* the return address is not on top any more */
	assert_int_equal(X86(0x48, 0x83, 0xec, 0x18, 0xe8, 0, 1, 0, 0), 0);
	/* lea rsp, [rsp-8]; push imm; call */
	assert_int_equal(X86_ENTRY(REGISTERS, 0x48, 0x8d, 0x64, 0x24, 0xf8, 0x6a, 0x01, 0xe8, 0, 1, 0, 0), 7);
	/* mov rsp, rax: to another stack */
	assert_int_equal(X86_ENTRY(REGISTERS, 0x48, 0x89, 0xc4, 0x53), 0);
}

static void own_frame_may_be_written(void **state)
{
	(void)state;
	/* sub rsp, 24; mov [rsp+8], rdi; call */
	assert_int_equal(X86_ENTRY(REGISTERS, 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x7c, 0x24, 0x08, 0xe8, 0,
				   1, 0, 0),
			 9);
	/* ... mov [rsp+24], rdi: the return address; mov [rsp+20], rdi: half of it */
	assert_int_equal(X86_ENTRY(REGISTERS, 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x7c, 0x24, 0x18, 0xe8, 0,
				   1, 0, 0),
			 0);
	assert_int_equal(X86_ENTRY(REGISTERS, 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x7c, 0x24, 0x14, 0xe8, 0,
				   1, 0, 0),
			 0);
	/* ... mov [rsp+rax], rdi: who knows */
	assert_int_equal(
		X86_ENTRY(REGISTERS, 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x3c, 0x04, 0xe8, 0, 1, 0, 0), 0);
	/* mov [rdi], rsi; push rbx */
	assert_int_equal(X86_ENTRY(REGISTERS, 0x48, 0x89, 0x37, 0x53), 0);
	/* movaps [rdi], xmm0; push rbx */
	assert_int_equal(X86_ENTRY(REGISTERS, 0x0f, 0x29, 0x07, 0x53), 0);
	/* sub rsp, 24; mov rbp, rsp; mov [rbp+8], rdi; call */
	assert_int_equal(X86_ENTRY(REGISTERS, 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0xe5, 0x48, 0x89, 0x7d,
				   0x08, 0xe8, 0, 1, 0, 0),
			 11);
	/* without the mov, rbp is the caller's */
	assert_int_equal(
		X86_ENTRY(REGISTERS, 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x7d, 0x08, 0xe8, 0, 1, 0, 0), 0);
	/* mov [rsp-8], rdi; test rdi, rdi; je: below the stack pointer, of a call too */
	assert_int_equal(X86(0x48, 0x89, 0x7c, 0x24, 0xf8, 0x48, 0x85, 0xff, 0x74, 0x00, 0xc3), 8);
}

static void memory_that_is_not_read_may_be_written(void **state)
{
	static const struct nps_probe_need values = { REGISTERS, false, true, NULL, NULL, NULL };
	static const struct nps_probe_need stack = { REGISTERS | 1 << 6, false, true, NULL, NULL, NULL };
	static const struct nps_probe_need of_arm64 = { 0xff, false, false, NULL, NULL, NULL };
	/* mov [rdi], rsi; test rsi, rsi; je 8; 8: ret */
	static const uint8_t code[] = { 0x48, 0x89, 0x37, 0x48, 0x85, 0xf6, 0x74, 0x00, 0xc3 };
	/* str x0, [x1]; str x0, [x1, x2]; stp x0, x1, [x2, #16]; adrp x8; ret */
	static const uint32_t arm64[] = { 0xf9000020, 0xf8226820, 0xa9010440, 0x90000008, 0xd65f03c0 };

	(void)state;
	assert_int_equal(nps_probe_point(EM_X86_64, code, sizeof(code), &values), 6);
	assert_int_equal(nps_probe_point(EM_X86_64, code, sizeof(code), &stack), 0);
	assert_int_equal(nps_probe_point(EM_AARCH64, (const uint8_t *)arm64, sizeof(arm64), &of_arm64), 12);
}

static void a_nop_is_the_second_choice(void **state)
{
	(void)state;
	/* endbr64; nopl 0(rax,rax); sub rsp, 8; ret */
	assert_int_equal(X86(0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0, 0, 0x48, 0x83, 0xec, 0x08, 0xc3),
			 4);
	/* endbr64; nopl 0(rax,rax); push rbx; ret: older kernels single-step such a nop */
	assert_int_equal(X86(0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0, 0, 0x53, 0xc3), 9);
}

static void an_indirect_jump_may_lead_back(void **state)
{
	(void)state;
	/* test rdi, rdi; je 5; 5: jmp rax */
	assert_int_equal(X86(0x48, 0x85, 0xff, 0x74, 0x00, 0xff, 0xe0), 0);
	/* a tail call through the file's table cannot */
	assert_int_equal(X86(0x48, 0x85, 0xff, 0x74, 0x00, 0xff, 0x25, 0, 1, 0, 0), 3);
	/* nor can any to a push, without the pop that belongs to it: endbr64; push rbx; notrack jmp rax */
	assert_int_equal(X86(0xf3, 0x0f, 0x1e, 0xfa, 0x53, 0x3e, 0xff, 0xe0), 4);
}

static void a_part_elsewhere_may_lead_back(void **state)
{
	/* sub rsp, 8; 4: cmp byte [rdi], 0; je +0x1000 (to 0x100d); ret */
	static const uint8_t code[] = { 0x48, 0x83, 0xec, 0x08, 0x80, 0x3f, 0x00,
					0x0f, 0x84, 0x00, 0x10, 0x00, 0x00, 0xc3 };
	/* inc rdi; jmp 4 */
	static const uint8_t back[] = { 0x48, 0xff, 0xc7, 0xe9, 0xef, 0xef, 0xff, 0xff };
	/* the same 0x400 bytes before */
	static const uint8_t before[] = { 0x48, 0xff, 0xc7, 0xe9, 0xef, 0xf3, 0xff, 0xff };
	static const struct nps_probe_need blind = { REGISTERS, true, false, NULL, NULL, NULL };
	/* inc rdi; jmp 13 */
	static const uint8_t on[] = { 0x48, 0xff, 0xc7, 0xe9, 0xf8, 0xef, 0xff, 0xff };

	(void)state;
	assert_int_equal(point_with_part(EM_X86_64, REGISTERS, ENTRY, code, sizeof(code),
					 (struct part){ 0x100d, on, sizeof(on) }),
			 7);
	assert_int_equal(point_with_part(EM_X86_64, REGISTERS, ENTRY, code, sizeof(code),
					 (struct part){ 0x100d, back, sizeof(back) }),
			 0);
	/* the piece that leads back lies before the one that is jumped to */
	assert_int_equal(point_with_part(EM_X86_64, REGISTERS, ENTRY, code, sizeof(code),
					 (struct part){ 0x100d - 0x400, before, sizeof(before) }),
			 0);
	/* nothing is known of it */
	assert_int_equal(nps_probe_point(EM_X86_64, code, sizeof(code), &blind), 0);
}

static void a_part_of_arm64_may_lead_back(void **state)
{
	/* sub sp, sp, #16; 4: ldr w9, [x0]; cbz w9, 0x1008; ret */
	static const uint32_t code[] = { 0xd10043ff, 0xb9400009, 0x34008009, 0xd65f03c0 };
	static const uint32_t back[] = { 0x91000400, 0x17fffbfe }; /* add x0, x0, #1; b 4 */
	static const uint32_t on[] = { 0x91000400, 0x17fffc00 }; /* add x0, x0, #1; b 12 */
	const uint8_t *bytes = (const uint8_t *)code;

	(void)state;
	assert_int_equal(point_with_part(EM_AARCH64, 0xff, ENTRY, bytes, sizeof(code),
					 (struct part){ 0x1008, (const uint8_t *)on, sizeof(on) }),
			 8);
	assert_int_equal(point_with_part(EM_AARCH64, 0xff, ENTRY, bytes, sizeof(code),
					 (struct part){ 0x1008, (const uint8_t *)back, sizeof(back) }),
			 0);
}

static void junk_and_short_code(void **state)
{
	static const struct nps_probe_need need = { REGISTERS, true, true, NULL, NULL, NULL };

	(void)state;
	assert_int_equal(X86(0x06), 0); /* no such instruction in 64-bit mode */
	assert_int_equal(X86(0xf3, 0x0f), 0); /* cut in an instruction */
	assert_int_equal(nps_probe_point(EM_X86_64, (const uint8_t *)"", 0, &need), 0);
	assert_int_equal(nps_probe_point(EM_AARCH64, (const uint8_t *)"", 0, &need), 0);
	assert_int_equal(nps_probe_point(EM_RISCV, (const uint8_t *)"\x53", 1, &need), 0);
}

#define RET 0xd65f03c0
#define STP_FRAME 0xa9bf7bfd /* stp x29, x30, [sp, #-16]! */
#define ADRP_X8 0x90000008
#define PACIASP 0xd503233f
#define NOP 0xd503201f

static void calls_of_arm64(void **state)
{
	(void)state;
	/* the return address is saved: a return probe there comes too late */
	assert_int_equal(ARM(STP_FRAME, ADRP_X8, RET), 0);
	assert_int_equal(ARM(PACIASP, ADRP_X8, RET), 0);
	assert_int_equal(ARM(0xd10043ff, ADRP_X8, RET), 0); /* sub sp, sp, #16 */
	assert_int_equal(ARM(0xaa0003fe, ADRP_X8, RET), 0); /* mov x30, x0 */
	assert_int_equal(ARM(0xaa0003e9, ADRP_X8, RET), 4); /* mov x9, x0 */
	assert_int_equal(ARM(0xd503245f, ADRP_X8, RET), 4); /* bti c */
	assert_int_equal(ARM(NOP, ADRP_X8, RET), 4);
	assert_int_equal(ARM(0xf9400009, 0xb4000049, RET, RET), 4); /* ldr x9, [x0]; cbz x9 */
	assert_int_equal(ARM(0xd53bd048, ADRP_X8, RET), 4); /* mrs x8, tpidr_el0 */
	assert_int_equal(ARM(0xd53bd040, ADRP_X8, RET), 0); /* mrs x0, tpidr_el0 */
	assert_int_equal(ARM(0xd503203f, ADRP_X8, RET), 0); /* yield: a hint that is not on the list */
	assert_int_equal(ARM(0xaa0003e9, NOP, STP_FRAME, RET), 4); /* only newer kernels simulate it */
}

static void entries_of_arm64(void **state)
{
	(void)state;
	assert_int_equal(ARM_ENTRY(0xff, STP_FRAME, ADRP_X8, RET), 4);
	assert_int_equal(ARM_ENTRY(0x100, STP_FRAME, ADRP_X8, RET), 0); /* the ninth lies on the stack */
	assert_int_equal(ARM_ENTRY(0xff, PACIASP, STP_FRAME, ADRP_X8, RET), 8);
	/* sub sp, sp, #48; stp x29, x30, [sp, #32]; add x29, sp, #32; str x0, [sp, #8]; bl */
	assert_int_equal(ARM_ENTRY(0xff, 0xd100c3ff, 0xa9027bfd, 0x910083fd, 0xf90007e0, 0x94000100), 16);
	/* ... str x0, [sp, #48]: the caller's frame */
	assert_int_equal(ARM_ENTRY(0xff, 0xd100c3ff, 0xf9001be0, 0x94000100), 0);
	/* ... stp x0, x1, [sp, #40]: half of it */
	assert_int_equal(ARM_ENTRY(0xff, 0xd100c3ff, 0xa90287e0, 0x94000100), 0);
	/* stp x29, x30, [sp, #-16]!; mov x29, sp; str x0, [x29, #8]; bl, and without the mov */
	assert_int_equal(ARM_ENTRY(0xff, STP_FRAME, 0x910003fd, 0xf90007a0, 0x94000100), 12);
	assert_int_equal(ARM_ENTRY(0xff, STP_FRAME, 0xf90007a0, 0x94000100), 0);
	/* str x19, [sp, #-16]!; mov x19, x0; ldr x19, [sp], #16; ret: the frame is freed again */
	assert_int_equal(ARM_ENTRY(0xff, 0xf81f0ff3, 0xaa0003f3, 0xf84107f3, RET), 12);
	assert_int_equal(ARM_ENTRY(0xff, STP_FRAME, 0xa8c17bfd, RET), 8); /* ldp x29, x30, [sp], #16 */
	assert_int_equal(ARM_ENTRY(0xff, STP_FRAME, 0xa8c27bfd, RET), 0); /* ..., #32: the caller's too */
	assert_int_equal(ARM_ENTRY(0xff, STP_FRAME, 0x910043ff, RET), 8); /* add sp, sp, #16 */
	assert_int_equal(ARM_ENTRY(0xff, STP_FRAME, 0x910083ff, RET), 0); /* add sp, sp, #32 */
	/* str x0, [x1] */
	assert_int_equal(ARM_ENTRY(0xff, 0xf9000020, ADRP_X8, RET), 0);
	/* str x0, [sp], #16; str x0, [x1, #-16]! */
	assert_int_equal(ARM_ENTRY(0xff, 0xf80107e0, ADRP_X8, RET), 0);
	assert_int_equal(ARM_ENTRY(0xff, 0xf81f0c20, ADRP_X8, RET), 0);
	/* ldxr, ldadd */
	assert_int_equal(ARM_ENTRY(0xff, 0xc85f7c09, ADRP_X8, RET), 0);
	assert_int_equal(ARM_ENTRY(0xff, 0xf8290008, ADRP_X8, RET), 0);
}

static void written_arguments_of_arm64(void **state)
{
	(void)state;
	assert_int_equal(ARM_ENTRY(0x1, 0xaa0003e1, ADRP_X8, RET), 4); /* mov x1, x0 */
	assert_int_equal(ARM_ENTRY(0x2, 0xaa0003e1, ADRP_X8, RET), 0);
	assert_int_equal(ARM_ENTRY(0x2, 0x52800021, ADRP_X8, RET), 0); /* mov w1, #1 */
	assert_int_equal(ARM_ENTRY(0x2, 0x91000421, ADRP_X8, RET), 0); /* add x1, x1, #1 */
	assert_int_equal(ARM_ENTRY(0x2, 0x12001c21, ADRP_X8, RET), 0); /* and w1, w1, #0xff */
	assert_int_equal(ARM_ENTRY(0x2, 0x53001c21, ADRP_X8, RET), 0); /* uxtb w1, w1 */
	assert_int_equal(ARM_ENTRY(0x2, 0x1b007c21, ADRP_X8, RET), 0); /* mul w1, w1, w0 */
	assert_int_equal(ARM_ENTRY(0x2, 0xf9400021, ADRP_X8, RET), 0); /* ldr x1, [x1] */
	assert_int_equal(ARM_ENTRY(0x2, 0xa9400400, ADRP_X8, RET), 0); /* ldp x0, x1, [x0] */
	assert_int_equal(ARM_ENTRY(0x2, 0xf8408421, ADRP_X8, RET), 0); /* ldr x1, [x1], #8 */
	assert_int_equal(ARM_ENTRY(0x2, 0xf8627821, ADRP_X8, RET), 0); /* ldr x1, [x1, x2, lsl #3] */
	assert_int_equal(ARM_ENTRY(0x2, 0x58000041, ADRP_X8, RET), 0); /* ldr x1, =... */
	assert_int_equal(ARM_ENTRY(0x2, 0x9e660001, ADRP_X8, RET), 0); /* fmov x1, d0 */
	assert_int_equal(ARM_ENTRY(0x2, 0xfd400021, ADRP_X8, RET), 4); /* ldr d1, [x1] */
	assert_int_equal(ARM_ENTRY(0x2, 0xf100003f, ADRP_X8, RET), 4); /* cmp x1, #0 */
	assert_int_equal(ARM_ENTRY(0xff, 0x8b2063ff, ADRP_X8, RET), 0); /* add sp, sp, x0 */
	assert_int_equal(ARM_ENTRY(0xff, 0x910043ff, ADRP_X8, RET), 0); /* add sp, sp, #16 */
	assert_int_equal(ARM_ENTRY(0xff, 0x927cec1f, ADRP_X8, RET), 0); /* and sp, x0, #~15 */
}

static void loops_of_arm64(void **state)
{
	(void)state;
	/* 0: mov x9, x0; 4: ldrb w10, [x9]; cbz w10, 20; add x9, x9, #1; b 4; 20: ret */
	assert_int_equal(ARM(0xaa0003e9, 0x3940012a, 0x3400006a, 0x91000529, 0x17fffffd, RET), 0);
	/* ...; cbnz w10, 4 and tbnz w10, #0, 4 and b.ne 4 instead */
	assert_int_equal(ARM(0xaa0003e9, 0x3940012a, 0x3400006a, 0x91000529, 0x35ffffaa, RET), 0);
	assert_int_equal(ARM(0xaa0003e9, 0x3940012a, 0x3400006a, 0x91000529, 0x3707ffaa, RET), 0);
	assert_int_equal(ARM(0xaa0003e9, 0x3940012a, 0x3400006a, 0x91000529, 0x54ffffa1, RET), 0);
	/* ...; b 12 */
	assert_int_equal(ARM(0xaa0003e9, 0x3940012a, 0x3400006a, 0x91000529, 0x17ffffff, RET), 8);
	/* ...; br x9 may lead anywhere, blr x9 and ret come back or leave */
	assert_int_equal(ARM(0xaa0003e9, 0x3940012a, 0x3400006a, 0xd61f0120, RET), 0);
	assert_int_equal(ARM(0xaa0003e9, 0x3940012a, 0x3400006a, 0xd63f0120, RET), 8);
}

#define CLASS(machine, offset, ...)                                                                          \
	nps_probe_point__class(machine, (const uint8_t[]){ __VA_ARGS__ },                                    \
			       sizeof((uint8_t[]){ __VA_ARGS__ }), offset)

static void classes_of_x86(void **state)
{
	(void)state;
	assert_int_equal(CLASS(EM_X86_64, 0, 0x53), NPS_PROBE_EMULATED); /* push rbx */
	assert_int_equal(CLASS(EM_X86_64, 0, 0x41, 0x57), NPS_PROBE_EMULATED); /* push r15 */
	assert_int_equal(CLASS(EM_X86_64, 0, 0x41, 0x5f), NPS_PROBE_STEPPED); /* pop r15 */
	assert_int_equal(CLASS(EM_X86_64, 0, 0x90), NPS_PROBE_EMULATED); /* nop */
	assert_int_equal(CLASS(EM_X86_64, 0, 0xe8, 0, 0, 0, 0), NPS_PROBE_EMULATED); /* call rel32 */
	assert_int_equal(CLASS(EM_X86_64, 0, 0xff, 0xd0), NPS_PROBE_STEPPED); /* call rax */
	assert_int_equal(CLASS(EM_X86_64, 0, 0xe9, 0, 0, 0, 0), NPS_PROBE_EMULATED); /* jmp rel32 */
	assert_int_equal(CLASS(EM_X86_64, 0, 0xeb, 0), NPS_PROBE_EMULATED); /* jmp rel8 */
	assert_int_equal(CLASS(EM_X86_64, 0, 0x74, 0), NPS_PROBE_EMULATED); /* je rel8 */
	assert_int_equal(CLASS(EM_X86_64, 0, 0x0f, 0x85, 0, 0, 0, 0), NPS_PROBE_EMULATED); /* jne rel32 */
	assert_int_equal(CLASS(EM_X86_64, 0, 0xf3, 0x0f, 0x1e, 0xfa), NPS_PROBE_STEPPED); /* endbr64 */
	assert_int_equal(CLASS(EM_X86_64, 4, 0xf3, 0x0f, 0x1e, 0xfa, 0x55), NPS_PROBE_EMULATED);
	assert_int_equal(CLASS(EM_X86_64, 0, 0x0f, 0x1f, 0x44, 0, 0), NPS_PROBE_NOP);
	assert_int_equal(CLASS(EM_X86_64, 0, 0x0f, 0x1f, 0x40, 0, 0x90), NPS_PROBE_STEPPED); /* 4-byte nop */
	assert_int_equal(CLASS(EM_X86_64, 0, 0xc3), NPS_PROBE_STEPPED); /* ret */
}

static void classes_of_arm64(void **state)
{
	(void)state;
	assert_int_equal(CLASS(EM_AARCH64, 0, 0x00, 0x00, 0x00, 0x90), NPS_PROBE_EMULATED); /* adrp x0 */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0x05, 0x00, 0x00, 0x50), NPS_PROBE_EMULATED); /* adr x5 */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0x02, 0x00, 0x00, 0x94), NPS_PROBE_EMULATED); /* bl */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0x02, 0x00, 0x00, 0x14), NPS_PROBE_EMULATED); /* b */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0x40, 0x00, 0x00, 0x54), NPS_PROBE_EMULATED); /* b.eq */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0x40, 0x00, 0x00, 0xb5), NPS_PROBE_EMULATED); /* cbnz x0 */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0x40, 0x00, 0x08, 0x36), NPS_PROBE_EMULATED); /* tbz w0, #1 */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0x00, 0x02, 0x1f, 0xd6), NPS_PROBE_EMULATED); /* br x16 */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0x00, 0x02, 0x3f, 0xd6), NPS_PROBE_EMULATED); /* blr x16 */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0xc0, 0x03, 0x5f, 0xd6), NPS_PROBE_EMULATED); /* ret */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0xff, 0x0b, 0x5f, 0xd6), NPS_PROBE_STEPPED); /* retaa */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0xfd, 0x7b, 0xbf, 0xa9), NPS_PROBE_STEPPED); /* stp */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0x3f, 0x23, 0x03, 0xd5), NPS_PROBE_STEPPED); /* paciasp */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0x1f, 0x20, 0x03, 0xd5), NPS_PROBE_STEPPED); /* nop */
	assert_int_equal(CLASS(EM_AARCH64, 0, 0x40, 0x00, 0x00, 0x58), NPS_PROBE_STEPPED); /* ldr literal */
	assert_int_equal(CLASS(EM_AARCH64, 4, 0x3f, 0x23, 0x03, 0xd5, 0x02, 0x00, 0x00, 0x94),
			 NPS_PROBE_EMULATED);
}

static void what_is_not_known_is_stepped(void **state)
{
	(void)state;
	assert_int_equal(CLASS(EM_RISCV, 0, 0x53), NPS_PROBE_STEPPED);
	assert_int_equal(CLASS(EM_X86_64, 1, 0x53), NPS_PROBE_STEPPED); /* beyond the code */
	assert_int_equal(CLASS(EM_X86_64, 0, 0xe9, 0, 0, 0), NPS_PROBE_STEPPED); /* cut */
	assert_int_equal(CLASS(EM_X86_64, 0, 0x0f, 0x1f, 0x44, 0), NPS_PROBE_STEPPED);
	assert_int_equal(CLASS(EM_AARCH64, 0, 0x02, 0x00, 0x00), NPS_PROBE_STEPPED);
	assert_int_equal(CLASS(EM_AARCH64, 4, 0x02, 0x00, 0x00, 0x94), NPS_PROBE_STEPPED);
}

static void some_classes_are_stepped_by_some_kernels(void **state)
{
	(void)state;
	for (uint32_t kernel = KERNEL_VERSION(4, 18, 0); kernel < KERNEL_VERSION(7, 9, 0); kernel += 0x100) {
		assert_true(nps_probe_class__is_stepped(NPS_PROBE_STEPPED, kernel));
		assert_false(nps_probe_class__is_stepped(NPS_PROBE_EMULATED, kernel));
	}
	assert_true(nps_probe_class__is_stepped(NPS_PROBE_NOP, KERNEL_VERSION(6, 17, 255)));
	assert_false(nps_probe_class__is_stepped(NPS_PROBE_NOP, KERNEL_VERSION(6, 18, 0)));
	assert_true(nps_probe_class__is_stepped(NPS_PROBE_NOP, 0)); /* not known which */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push_first),
		cmocka_unit_test(endbr_then_push),
		cmocka_unit_test(harmless_moves_are_skipped),
		cmocka_unit_test(touched_arguments_stop),
		cmocka_unit_test(moved_stack_stops),
		cmocka_unit_test(written_memory_stops),
		cmocka_unit_test(jumps_are_emulated),
		cmocka_unit_test(loop_head_is_no_probe_point),
		cmocka_unit_test(loop_into_the_skipped_is_no_probe_point),
		cmocka_unit_test(junk_and_short_code),
		cmocka_unit_test(only_arguments_that_are_read_matter),
		cmocka_unit_test(an_entry_may_lie_behind_the_frame),
		cmocka_unit_test(own_frame_may_be_written),
		cmocka_unit_test(memory_that_is_not_read_may_be_written),
		cmocka_unit_test(a_nop_is_the_second_choice),
		cmocka_unit_test(some_classes_are_stepped_by_some_kernels),
		cmocka_unit_test(an_indirect_jump_may_lead_back),
		cmocka_unit_test(a_part_elsewhere_may_lead_back),
		cmocka_unit_test(a_part_of_arm64_may_lead_back),
		cmocka_unit_test(calls_of_arm64),
		cmocka_unit_test(entries_of_arm64),
		cmocka_unit_test(written_arguments_of_arm64),
		cmocka_unit_test(loops_of_arm64),
		cmocka_unit_test(classes_of_x86),
		cmocka_unit_test(classes_of_arm64),
		cmocka_unit_test(what_is_not_known_is_stepped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
