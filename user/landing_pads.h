/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where exceptions that pass through a function go on: its landing pads, which no branch leads to. Found as an unwinder finds
 * them: .eh_frame_hdr, the function's description in .eh_frame, its table in .gcc_except_table.
 */
#ifndef NPS_LANDING_PADS_H
#define NPS_LANDING_PADS_H

#include "elf_file.h"

/*
 * Calls EACH with every landing pad of FN, in bytes from its start. 0, also where the function has none; -EINVAL: what the file has
 * of it is damaged, or written as no compiler for these processors does; -E2BIG: it is too long; -ENOMEM.
 */
int nps_landing_pads__each(const struct nps_elf *elf, const struct nps_elf_function *fn,
			   void (*each)(int64_t at, void *arg), void *arg);

#endif
