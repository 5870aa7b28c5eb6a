/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Landing pads of a function: where exceptions that pass through it continue, which no branch leads to.
 * They are found as an unwinder does: the function's description in .eh_frame (eh_frame.h), its table in
 * .gcc_except_table.
 */
#ifndef NPS_LANDING_PADS_H
#define NPS_LANDING_PADS_H

#include "attach/eh_frame.h"
#include "attach/elf_file.h"

struct nps_landing_pad {
	uint64_t calls, size; /* range of code with the calls whose exceptions continue there */
	uint64_t address;
};

/*
 * Calls EACH with every landing pad of the code that FDE describes, until it returns non-zero; returns that.
 * 0, also if there is none; -EINVAL: the table is damaged, or not as compilers for these processors write it;
 * -E2BIG: it is too long; -ENOMEM.
 */
int nps_landing_pads__of(const struct nps_elf *elf, const struct nps_fde *fde,
			 int (*each)(const struct nps_landing_pad *pad, void *arg), void *arg);

/*
 * Calls EACH with every landing pad of FN, as byte offset from its start. 0, also if the function has none;
 * -EINVAL: the tables are damaged, or not as compilers for these processors write them; -E2BIG: they are
 * too long; -ENOMEM.
 */
int nps_landing_pads__each(const struct nps_elf *elf, const struct nps_elf_function *fn,
			   void (*each)(int64_t at, void *arg), void *arg);

#endif
