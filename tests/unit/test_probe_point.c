/* SPDX-License-Identifier: BSD-2-Clause */
/* Prologues as compilers make them, and where the probe must go. Bytes assembled by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>

#include "probe_point.h"

#define POINT(machine, ...)                                                                                  \
	nps_probe_point(machine, (const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }))
#define X86(...) POINT(EM_X86_64, __VA_ARGS__)
#define ARM(...) POINT(EM_AARCH64, __VA_ARGS__)

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
	/* mov [rsp-8], rdi; push rbx */
	assert_int_equal(X86(0x48, 0x89, 0x7c, 0x24, 0xf8, 0x53, 0xc3), 0);
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

static void loop_head_is_no_place(void **state)
{
	(void)state;
	/* xor eax, eax; 2: push rbx; pop rbx; inc eax; cmp eax, 9; jne 2; ret */
	assert_int_equal(X86(0x31, 0xc0, 0x53, 0x5b, 0xff, 0xc0, 0x83, 0xf8, 0x09, 0x75, 0xf7, 0xc3), 0);
}

static void loop_into_the_skipped_is_no_place(void **state)
{
	(void)state;
	/* xor eax, eax; 2: cmp byte [rdi+rax], 0; je +4; inc eax; jmp 2; ret */
	assert_int_equal(X86(0x31, 0xc0, 0x80, 0x3c, 0x07, 0x00, 0x74, 0x04, 0xff, 0xc0, 0xeb, 0xf6, 0xc3),
			 0);
}

static void junk_and_short_code(void **state)
{
	(void)state;
	assert_int_equal(X86(0x06), 0); /* no such instruction in 64-bit mode */
	assert_int_equal(X86(0xf3, 0x0f), 0); /* cut in an instruction */
	assert_int_equal(nps_probe_point(EM_X86_64, (const uint8_t *)"", 0), 0);
	assert_int_equal(nps_probe_point(EM_RISCV, (const uint8_t *)"\x53", 1), 0);
}

static void arm64(void **state)
{
	(void)state;
	/* stp x29, x30, [sp, #-16]!: the usual start, nothing better behind it */
	assert_int_equal(ARM(0xfd, 0x7b, 0xbf, 0xa9, 0xc0, 0x03, 0x5f, 0xd6), 0);
	/* nop first */
	assert_int_equal(ARM(0x1f, 0x20, 0x03, 0xd5, 0xfd, 0x7b, 0xbf, 0xa9), 0);
	/* paciasp writes the link register, which a return probe replaces */
	assert_int_equal(ARM(0x3f, 0x23, 0x03, 0xd5, 0x00, 0x01, 0x00, 0x94), 0);
	/* mov x9, x0; bl */
	assert_int_equal(ARM(0xe9, 0x03, 0x00, 0xaa, 0x00, 0x01, 0x00, 0x94), 4);
	/* mov x9, x0; nop, which kernels before 6.12 single-step */
	assert_int_equal(ARM(0xe9, 0x03, 0x00, 0xaa, 0x1f, 0x20, 0x03, 0xd5), 0);
	/* mov x1, x0; bl */
	assert_int_equal(ARM(0xe1, 0x03, 0x00, 0xaa, 0x00, 0x01, 0x00, 0x94), 0);
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
		cmocka_unit_test(loop_head_is_no_place),
		cmocka_unit_test(loop_into_the_skipped_is_no_place),
		cmocka_unit_test(junk_and_short_code),
		cmocka_unit_test(arm64),
		cmocka_unit_test(classes_of_x86),
		cmocka_unit_test(classes_of_arm64),
		cmocka_unit_test(what_is_not_known_is_stepped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
