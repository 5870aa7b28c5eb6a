/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps from a function to its callers with .eh_frame, on a copy of the stack. */
#ifndef NPS_UNWIND_H
#define NPS_UNWIND_H

#include "stack.h"
#include "stack/elf_image.h"

#define NPS_UNWIND_REGS 33
#define NPS_UNWIND_MAX 512 /* frames of a stack */

/*
 * What an address is. PROBE: the kernel's, where an instruction under a probe is executed. RETURN: the
 * kernel's trampoline, whose address replaces the return address of a call whose return is probed.
 */
enum nps_unwind_code { NPS_UNWIND_NOWHERE, NPS_UNWIND_CODE, NPS_UNWIND_PROBE, NPS_UNWIND_RETURN };

struct nps_unwind {
	uint64_t regs[NPS_UNWIND_REGS]; /* in DWARF's order, see kheaders/stack.h */
	uint32_t nregs; /* 17: x86-64, 33: arm64 */
	const uint8_t *stack; /* what was copied from the stack pointer upwards */
	size_t stack_len;
	const struct nps_return
		*returns; /* of calls whose returns are probed, innermost first; NULL: there are none */
	size_t nreturns;
	/* The file that PC is in and its address there; NULL: there is none. *CODE is NOWHERE before. */
	struct nps_elf_image *(*find)(void *ctx, uint64_t pc, uint64_t *vaddr, enum nps_unwind_code *code);
	void *ctx;
	uint64_t *
		caller_sp; /* set to the stack pointer of the innermost frame's caller, 0: unknown; or NULL */
};

/*
 * Writes the addresses of execution, innermost first, callers as the address behind the call. Returns how
 * many, at most NPS_UNWIND_MAX. *COMPLETE: whether the walk reached the begin of the thread.
 */
size_t nps_unwind__walk(const struct nps_unwind *unwind, uint64_t *frames, bool *complete);

/* Where memory, registers and the frame's address of an expression come from. */
struct nps_expr {
	const uint64_t *regs;
	uint32_t nregs;
	uint64_t cfa, stack_at;
	const uint8_t *stack;
	size_t stack_len;
};

/* Value of a DWARF expression. False: it uses what is not there, or makes no sense. */
bool nps_expr__eval(const struct nps_expr *expr, const Dwarf_Op *ops, size_t nops, uint64_t *value);

#endif
