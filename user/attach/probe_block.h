/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps through the first instructions of a function, and tracks which values that a probe reads they have
 * changed: arguments, the stack pointer, the return address. Used by probe_point.c.
 */
#ifndef NPS_PROBE_BLOCK_H
#define NPS_PROBE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <capstone/capstone.h>

/*
 * State before the instruction `at` bytes into the function. Initialise
 * with zeros, except the first three members.
 */
struct nps_block {
	csh cs; /* x86-64 only */
	cs_insn *in;
	bool memory_matters; /* memory that arguments point to, or on the stack, is read */
	size_t at;
	uint32_t overwritten; /* bit n - 1: the register of argument n */
	bool sp_moved;
	bool return_moved; /* arm64: the register of the return address was signed or overwritten */
	int64_t depth; /* bytes by which the stack pointer is below that at the entry, at least */
	bool has_frame; /* the frame pointer is known: */
	int64_t frame; /* bytes by which it is below the stack pointer at the entry */
};

/*
 * Steps over one instruction of `code`, of which `len` bytes are known. False, with the state unchanged: it
 * may leave the block, write memory outside the function's own frame when that matters, or is unknown.
 */
bool nps_block_x86__step(struct nps_block *b, const uint8_t *code, size_t len);
bool nps_block_arm64__step(struct nps_block *b, const uint8_t *code, size_t len);

#endif
