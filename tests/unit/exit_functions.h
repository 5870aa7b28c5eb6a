/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions for test_exit_points.c, each with one hazard, and the exits that follow from their source. */
#ifndef NPS_TEST_EXIT_FUNCTIONS_H
#define NPS_TEST_EXIT_FUNCTIONS_H

#define BEGIN(name) ".text\n.globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " name ", . - " name "\n"
#define FUNCTION(name, body) __asm__(BEGIN(name) body END(name))
/* Code in front of a probe's offset is marked by a symbol. */
#define EXIT(name) ".type " name "_exit, @function\n" name "_exit:\n"
#define FRAME "push %rbx\n.cfi_def_cfa_offset 16\n"
#define LEAVE "pop %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_def_cfa_offset 16\n"
#define FAIL "call exit_test_fails\n"

/* What is called; it is never run. */
FUNCTION("exit_test_fails", "ud2\n");
FUNCTION("exit_test_other", FRAME "nop\n" LEAVE);

FUNCTION("exit_protected", FRAME
	 "call exit_test_other\nsub %fs:0x28, %rax\n" EXIT("exit_protected") "jne 1f\n" LEAVE "1: " FAIL);
FUNCTION("exit_plain", FRAME "call exit_test_other\n" EXIT("exit_plain") LEAVE);
FUNCTION("exit_recursive", FRAME "call exit_recursive\n" EXIT("exit_recursive") "jne 1f\n" LEAVE "1: " FAIL);
FUNCTION("exit_push", FRAME "call exit_test_other\n" EXIT("exit_push") "push %rax\npop %rcx\n" LEAVE);
FUNCTION("exit_push_call", FRAME "push %rax\ncall exit_test_other\npop %rcx\n" EXIT("exit_push_call") LEAVE);
FUNCTION("exit_realigned",
	 "push %rbp\n.cfi_def_cfa_offset 16\nmov %rsp, %rbp\n.cfi_def_cfa_register 6\n"
	 "and $-32, %rsp\nsub %rax, %rsp\ncall exit_test_other\n" EXIT(
		 "exit_realigned") "jne 1f\nleave\n.cfi_def_cfa 7, 8\nret\n.cfi_def_cfa 6, 16\n1: " FAIL);
FUNCTION("exit_trap", FRAME EXIT("exit_trap") "jne 1f\n" LEAVE "1: ud2\n");
/* The conditional jump leads to a throw, which leaves the function. */
FUNCTION("exit_throws", FRAME "call exit_test_other\ntest %eax, %eax\njne 1f\n" EXIT("exit_throws") LEAVE
	 "1: mov $4, %edi\n" FAIL);

/* The push is where its entry is probed. */
FUNCTION("exit_entry", FRAME EXIT("exit_entry") LEAVE);
FUNCTION("exit_only", "ret\n");

/* It returns whether it jumps or not, so the jump is no exit. */
FUNCTION("exit_both", "test %edi, %edi\njne 1f\nret\n1: lea 1(%rdi), %eax\n" EXIT("exit_both") "ret\n");
/* It jumps back, so that the jump is passed twice. */
FUNCTION("exit_again", FRAME "1: call exit_test_other\ntest %eax, %eax\njne 1b\n" EXIT("exit_again") LEAVE);
/* Another jump leads behind the conditional one. */
FUNCTION("exit_behind", FRAME "test %edi, %edi\nje 2f\ncall exit_test_other\njne 1f\n2:\n" EXIT("exit_behind")
				LEAVE "1: " FAIL);

FUNCTION("exit_switch", FRAME "jmp *%rax\n" LEAVE);
FUNCTION("exit_tail", FRAME "pop %rbx\n.cfi_def_cfa_offset 8\njmp exit_test_other\n");
FUNCTION("exit_tail_if", "test %edi, %edi\njne exit_test_other\nret\n");
FUNCTION("exit_tail_got", "test %edi, %edi\njne 1f\nret\n1: jmp *exit_test_other@GOTPCREL(%rip)\n");
FUNCTION("exit_never", "nop\n1: pause\njmp 1b\n");
FUNCTION("exit_beyond", FRAME "nop\n");
FUNCTION("exit_data", FRAME ".byte 0x06, 0x0e\n" LEAVE);
FUNCTION("exit_data_not_run", FRAME "jmp 1f\n.byte 0x06, 0x0e\n1: pause\n" EXIT("exit_data_not_run") LEAVE);
FUNCTION("exit_middle", FRAME "1: mov $0xc3, %eax\njne 1b + 1\n" LEAVE);
FUNCTION("exit_overlap", FRAME "je 1f + 2\n.byte 0x0f, 0x1f\n1: .byte 0x44, 0, 0\n" LEAVE "jmp 1b\n");
FUNCTION("exit_lock", FRAME "jne 1f\nlock\n1: incl (%rdi)\n" LEAVE);
FUNCTION("exit_pops", FRAME "pop %rbx\n.cfi_def_cfa_offset 8\nret $16\n");
FUNCTION("exit_transaction", FRAME "xbegin 1f\n1:\n" LEAVE);
FUNCTION("exit_16", FRAME ".byte 0x66, 0xe9, 0, 0, 0, 0\n" LEAVE);
FUNCTION("exit_own_call", FRAME "call 1f\n1: pop %rax\n" LEAVE);
FUNCTION("exit_start", "dec %edi\njne exit_start\nret\n");
FUNCTION("exit_large", ".rept 20001\nnop\n.endr\nret\n");
FUNCTION("exit_many", ".rept 17\ntest %edi, %edi\njne 1f\nnop\nret\n1:\n.endr\nud2\n");
FUNCTION("exit_shared", FRAME "jmp exit_plain + 1\n");
FUNCTION("exit_entry_middle",
	 FRAME "nop\n.globl exit_inner\n.type exit_inner, @function\nexit_inner:\nnop\n" LEAVE
	       ".size exit_inner, . - exit_inner\n");
__asm__(".text\n.globl exit_no_tables\n.type exit_no_tables, @function\nexit_no_tables:\nnop\nret\n"
	".size exit_no_tables, . - exit_no_tables\n");
__asm__(BEGIN("exit_short") "nop\nret\n.cfi_endproc\nnop\n.size exit_short, . - exit_short\n");
__asm__(BEGIN("exit_long") "nop\nret\n.size exit_long, . - exit_long\nnop\n.cfi_endproc\n");

/* A part that was moved away: FRAME_THERE is its frame. */
#define COLD(name, frame_there, body)                                                                        \
	__asm__(".section .text.unlikely, \"ax\"\n.globl " name "_cold\n" name                               \
		"_cold:\n.cfi_startproc\n.cfi_def_cfa_offset " frame_there "\n" body                         \
		".cfi_endproc\n.text\n")

FUNCTION("exit_cold", FRAME "je exit_cold_cold\n.globl exit_cold_back\nexit_cold_back:\npause\n"
			    "sub %fs:0x28, %rax\n" EXIT("exit_cold") "jne 1f\n" LEAVE "1: " FAIL);
COLD("exit_cold", "16", "nop\njmp exit_cold_back\n");
FUNCTION("exit_cold_inside",
	 FRAME "je exit_cold_inside_cold + 5\n" EXIT("exit_cold_inside") "jne 1f\n" LEAVE "1: " FAIL);
COLD("exit_cold_inside", "16", FAIL FAIL);
FUNCTION("exit_cold_returns", FRAME "je exit_cold_returns_cold\n" FAIL);
COLD("exit_cold_returns", "16", EXIT("exit_cold_returns") "jne 1f\n" LEAVE "1: " FAIL);
FUNCTION("exit_cold_frame", FRAME "je exit_cold_frame_cold\n" LEAVE);
COLD("exit_cold_frame", "32", FAIL);
FUNCTION("exit_cold_entry", FRAME "je exit_cold_entry_cold + 1\n" LEAVE);
COLD("exit_cold_entry", "8", "nop\n" FAIL);

/* Exceptions of CALLS (up to its end), a part of the body, continue at PAD. */
#define THROWS(name, body, calls, calls_end, pad)                                                            \
	__asm__(BEGIN(name) ".cfi_lsda 0x1b, " name "_table\n" body END(name));                              \
	__asm__(".section .gcc_except_table, \"a\"\n" name                                                   \
		"_table:\n.byte 0xff, 0xff, 1\n.uleb128 9f - 8f\n"                                           \
		"8: .uleb128 " calls " - " name ", " calls_end " - " calls ", " pad " - " name               \
		", 0\n9: .text\n")

/* It is caught, and the function returns. The failure's call is in front of the landing pad. */
THROWS("exit_caught",
       FRAME
       "exit_caught_calls: call exit_test_other\nexit_caught_end: pause\nexit_caught_out:\nsub %fs:0x28, "
       "%rax\n" EXIT("exit_caught") "jne 1f\n" LEAVE "1: " FAIL
				    "exit_caught_pad: call exit_test_other\njmp exit_caught_out\n",
       "exit_caught_calls", "exit_caught_end", "exit_caught_pad");
/* What the conditional jump leads to throws, which is caught here: the function returns all the same. */
THROWS("exit_retried",
       FRAME "exit_retried_out: pause\ntest %eax, %eax\njne 1f\n" EXIT("exit_retried") LEAVE
       "1:\nexit_retried_calls: " FAIL "exit_retried_end:\nexit_retried_pad: jmp exit_retried_out\n",
       "exit_retried_calls", "exit_retried_end", "exit_retried_pad");
/* The pad lies between the jump and the return, as nothing that compilers write does. */
THROWS("exit_pad_behind",
       FRAME "exit_pad_behind_calls: call exit_test_other\nexit_pad_behind_end: jne "
	     "1f\nexit_pad_behind_pad:\n" EXIT("exit_pad_behind") LEAVE "1: " FAIL,
       "exit_pad_behind_calls", "exit_pad_behind_end", "exit_pad_behind_pad");
THROWS("exit_pad_outside",
       FRAME "exit_pad_outside_calls: call exit_test_other\nexit_pad_outside_end: pause\n" LEAVE,
       "exit_pad_outside_calls", "exit_pad_outside_end", "exit_pad_outside + 0x20000000");

#endif
