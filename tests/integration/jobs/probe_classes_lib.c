// SPDX-License-Identifier: BSD-2-Clause
/*
 * A libacl_rt.so whose functions begin each with another kind of instruction, so that each is probed in
 * another way: emulated (aclrtSetDevice), a nop of five bytes (aclrtSynchronizeDevice) and single-stepped
 * (aclrtSynchronizeStream). step_here is of the last kind, for probes at entry only. aclrtFree is emulated,
 * too: each aclrtSetDevice wakes the collector. Each does nothing, and returns 0.
 */
#if defined(__x86_64__)
#define EMULATED "push %rbx\nxor %eax, %eax\npop %rbx\nret\n"
#define NOP ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\nxor %eax, %eax\nret\n"
#define STEPPED "sub $24, %rsp\nxor %eax, %eax\nadd $24, %rsp\nret\n"
#else
#define EMULATED "b 1f\n1: mov w0, #0\nret\n"
#define NOP "nop\nmov w0, #0\nret\n"
#define STEPPED "stp x29, x30, [sp, #-16]!\nmov w0, #0\nldp x29, x30, [sp], #16\nret\n"
#endif

/* Within a page: the kernel patches no other nop. */
#define FUNCTION(name, body)                                                                                 \
	__asm__(".text\n.balign 16\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" body         \
		".size " #name ", . - " #name "\n")

FUNCTION(aclrtSetDevice, EMULATED);
FUNCTION(aclrtFree, EMULATED);
FUNCTION(aclrtSynchronizeDevice, NOP);
FUNCTION(aclrtSynchronizeStream, STEPPED);
FUNCTION(step_here, STEPPED);
