/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function of PyTorch before 2.0 that begins a label of record_function(): it has no symbol. It has the
 * parameters of record_function_enter_new(), which is exported, does the same, and stands near it.
 */
#ifndef NPS_LABEL_TWIN_H
#define NPS_LABEL_TWIN_H

#include "attach/elf_file.h"

/*
 * Finds the only function within 64 KiB of FN, record_function_enter_new(), that calls all functions which FN
 * calls. Its code is compared, not run. 0; -ENOENT: there is none, several, or FN calls too few to compare;
 * -EINVAL, -ENOTSUP: the file's unwind tables or its processor are not known; -ENOMEM; -ETIME: the budget of
 * the file is spent.
 */
int nps_label_twin__find(struct nps_elf *elf, const struct nps_elf_function *fn,
			 struct nps_elf_function *twin);

#endif
