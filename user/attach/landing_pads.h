/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Landing pads of a function: where exceptions that pass through it continue, which no branch leads to.
 * They are found as an unwinder does: .eh_frame_hdr, the function's description in .eh_frame, its table in
 * .gcc_except_table.
 */
#ifndef NPS_LANDING_PADS_H
#define NPS_LANDING_PADS_H

#include "attach/elf_file.h"

/*
 * Calls EACH with every landing pad of FN, as byte offset from its start. 0, also if the function has none;
 * -EINVAL: the tables are damaged, or not as compilers for these processors write them; -E2BIG: they are
 * too long; -ENOMEM.
 */
int nps_landing_pads__each(const struct nps_elf *elf, const struct nps_elf_function *fn,
			   void (*each)(int64_t at, void *arg), void *arg);

#endif
