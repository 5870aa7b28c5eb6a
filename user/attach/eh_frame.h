/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables of an ELF file, as an unwinder finds them: .eh_frame_hdr, which lists all frame descriptions
 * by address, and .eh_frame. Only what compilers and linkers for x86-64 and arm64 write is accepted.
 */
#ifndef NPS_EH_FRAME_H
#define NPS_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/elf_file.h"

#define NPS_EH_OMITTED 0xff /* DW_EH_PE_omit */
#define NPS_EH_RELATIVE 0x1b /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */

/* Bytes of the file from an address on. `failed` is set by a read beyond the end. */
struct nps_eh_bytes {
	const uint8_t *at, *end;
	uint64_t address; /* of `at` */
	bool failed;
};

/* Reads up to SIZE bytes at ADDRESS into BUF. */
struct nps_eh_bytes nps_eh_bytes__at(const struct nps_elf *elf, uint64_t address, uint8_t *buf, size_t size);
/* Reads an integer of N bytes. */
uint64_t nps_eh_bytes__read(struct nps_eh_bytes *b, size_t n);
/* Reads an integer in LEB128. */
uint64_t nps_eh_bytes__read_leb(struct nps_eh_bytes *b);
/* Reads an address in the encoding NPS_EH_RELATIVE. 0: none. */
uint64_t nps_eh_bytes__read_address(struct nps_eh_bytes *b);

/* .eh_frame_hdr of a file. */
struct nps_eh_frame {
	const struct nps_elf *elf;
	uint64_t header; /* its address; 0: the file has none, no exception passes through it */
	uint64_t n; /* frame descriptions listed */
	uint8_t *table; /* NULL: it is read from the file at each search */
};

/* Reads the start of .eh_frame_hdr. 0, or -EINVAL: it is damaged, or of an unknown form. */
int nps_eh_frame__init(struct nps_eh_frame *f, const struct nps_elf *elf);

/* Reads all of the table, for many searches. 0; -EINVAL: cut off or not sorted; -ENOMEM; -E2BIG; -ETIME. */
int nps_eh_frame__read_table(struct nps_eh_frame *f);
void nps_eh_frame__free(struct nps_eh_frame *f);

/* A frame description (FDE): a range of code, and how it is unwound. */
struct nps_fde {
	uint64_t start, size; /* of the code */
	uint64_t landing_pads; /* address of its table of landing pads, 0: none */
	uint64_t common, rules, end; /* addresses: of the CIE; of the unwind rules and their end */
};

/* Finds the description that covers ADDRESS. 0; -ENOENT: none does; -EINVAL. */
int nps_eh_frame__find(const struct nps_eh_frame *f, uint64_t address, struct nps_fde *fde);

/* Start of the first code after ADDRESS that has a description; UINT64_MAX: none has. The table was read. */
uint64_t nps_eh_frame__next_start(const struct nps_eh_frame *f, uint64_t address);

/* Where the canonical frame address lies: a register, as DWARF numbers them, and a distance. */
struct nps_cfa {
	uint64_t reg, offset;
};

/* The rule at ADDRESS, which FDE covers. 0; -ENOTSUP: an expression, or too many rules; -EINVAL. */
int nps_fde__cfa(const struct nps_elf *elf, const struct nps_fde *fde, uint64_t address, struct nps_cfa *cfa);

#endif
