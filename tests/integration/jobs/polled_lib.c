/* SPDX-License-Identifier: BSD-2-Clause */
/* libacl_rt.so with functions whose first block has no instruction that a kernel emulates. */
#if defined(__x86_64__)
#define FUNCTION(name)                                                                                       \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"                          \
		"sub $8, %rsp\nmovl $1, (%rsi)\nadd $8, %rsp\nxor %eax, %eax\nret\n"                         \
		".size " #name ", . - " #name "\n")
#else
#define FUNCTION(name)                                                                                       \
	__asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n"                          \
		"stp x29, x30, [sp, #-16]!\nmov w9, #1\nstr w9, [x1]\nldp x29, x30, [sp], #16\n"             \
		"mov w0, #0\nret\n.size " #name ", . - " #name "\n")
#endif

FUNCTION(aclrtQueryEventStatus); /* is polled */
FUNCTION(aclrtSetDevice); /* is not */
