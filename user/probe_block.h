/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first instructions of a function, one after the other, and what they have changed of what a probe reads: its arguments,
 * the stack pointer, the return address. Used by probe_point.c.
 */
#ifndef NPS_PROBE_BLOCK_H
#define NPS_PROBE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <capstone/capstone.h>

/* Stands before the instruction `at` bytes into the function. Begins as zeros, but for the first three. */
struct nps_block {
	csh cs; /* x86-64 alone */
	cs_insn *in;
	bool memory_matters; /* what is behind the arguments, or on the stack, is read */
	size_t at;
	uint32_t overwritten; /* bit n - 1: the register of argument n */
	bool sp_moved;
	bool return_moved; /* of arm64: its register was signed or overwritten */
	int64_t depth; /* bytes that the stack pointer is below that of the entry, at least */
	bool has_frame; /* the frame pointer is known: */
	int64_t frame; /* bytes that it is below the entry's stack pointer */
};

/*
 * Goes past one instruction of `code`, of which `len` bytes are known. False, and nothing is changed: it may leave the block,
 * write memory outside the function's own frame where that matters, or is none that is understood.
 */
bool nps_block_x86__step(struct nps_block *b, const uint8_t *code, size_t len);
bool nps_block_arm64__step(struct nps_block *b, const uint8_t *code, size_t len);

#endif
