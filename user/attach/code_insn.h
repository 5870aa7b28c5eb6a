/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the code continues after one instruction. */
#ifndef NPS_CODE_INSN_H
#define NPS_CODE_INSN_H

#include <stddef.h>
#include <stdint.h>

#include <capstone/capstone.h>

enum nps_insn_kind {
	NPS_INSN_PLAIN, /* at the next one */
	NPS_INSN_CALL, /* at the target; then at the next one, unless the function does not return */
	NPS_INSN_CALL_INDIRECT,
	NPS_INSN_JUMP, /* at the target */
	NPS_INSN_BRANCH, /* at the target or the next one */
	NPS_INSN_RETURN,
	NPS_INSN_TRAP, /* nowhere */
	NPS_INSN_TAIL_CALL, /* x86-64: at the address in a word of the file, as a trampoline does */
	NPS_INSN_JUMP_INDIRECT, /* unknown */
	NPS_INSN_UNKNOWN, /* unknown: not decoded, or not an instruction of compilers' code */
};

struct nps_insn {
	uint64_t address, target;
	uint8_t size;
	uint8_t kind; /* enum nps_insn_kind */
};

/* Decoder of one processor's instructions. */
struct nps_insn_decoder {
	int machine; /* EM_X86_64, EM_AARCH64 */
	csh cs; /* x86-64 only */
	cs_insn *in;
};

/* 0, -ENOTSUP: another processor, -ENOMEM. */
int nps_insn_decoder__init(struct nps_insn_decoder *d, int machine);
void nps_insn_decoder__free(struct nps_insn_decoder *d);

/* Decodes the instruction at ADDRESS, of whose code LEN bytes are known. */
struct nps_insn nps_insn_decoder__decode(const struct nps_insn_decoder *d, const uint8_t *code, size_t len,
					 uint64_t address);

#endif
