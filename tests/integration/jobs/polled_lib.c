/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libacl_rt.so and libruntime.so with functions whose first block has no instruction that a kernel emulates.
 * Each calls its first argument, if it is given one.
 */
#if defined(__x86_64__)
#define FUNCTION(name)                                                                                       \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"                          \
		"sub $8, %rsp\nmovl $1, (%rsi)\ntest %rdi, %rdi\nje 1f\ncall *%rdi\n"                        \
		"1: add $8, %rsp\nxor %eax, %eax\nret\n"                                                     \
		".size " #name ", . - " #name "\n")
#else
#define FUNCTION(name)                                                                                       \
	__asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n"                          \
		"stp x29, x30, [sp, #-16]!\nmov w9, #1\nstr w9, [x1]\ncbz x0, 1f\nblr x0\n"                  \
		"1: ldp x29, x30, [sp], #16\nmov w0, #0\nret\n"                                              \
		".size " #name ", . - " #name "\n")
#endif

FUNCTION(aclrtQueryEventStatus); /* is polled */
FUNCTION(aclrtSetDevice); /* is not */
FUNCTION(rtKernelLaunch); /* of libruntime.so: no record of it while a call that records as much is open */
