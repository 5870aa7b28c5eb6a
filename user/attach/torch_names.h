/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of PyTorch's operators. An operator is the function call() of a struct in at::_ops, whose name is
 * that of the schema and its overload with `_` between them (add_Tensor, add__Tensor, empty_like): where the
 * overload begins is in the texts of the schemas alone, which the library has in its read-only data.
 */
#ifndef NPS_TORCH_NAMES_H
#define NPS_TORCH_NAMES_H

#include <stddef.h>

#include "attach/elf_file.h"

#define NPS_TORCH_NAME_MAX 160 /* bytes of a name with "aten::" and its NUL */

struct nps_torch_names;

/* Where an operator's result is, by its schema. */
enum nps_torch_result {
	NPS_TORCH_RESULT_UNKNOWN,
	NPS_TORCH_RESULT_IN_REGISTERS, /* or there is none */
	NPS_TORCH_RESULT_IN_MEMORY, /* of the caller, who passes its address */
};

/*
 * Reads the schemas' names from the read-only data of ELF, in its budget of CPU time. What it returns does
 * not need the file. 0, -ENOMEM, or -ETIME: the budget is spent.
 */
int nps_torch_names__new(struct nps_elf *elf, struct nps_torch_names **out);

/*
 * The name of the operator that SYMBOL, a mangled name, calls: "aten::add.Tensor" in BUF. Where the library
 * has no schema of that name, or several, it is the struct's: "aten::add_Tensor", and its RESULT (NULL is
 * allowed) is not known. 0, -ENOENT: it is no operator's call(); -ENAMETOOLONG: BUF is too small.
 */
int nps_torch_names__of(struct nps_torch_names *names, const char *symbol, char *buf, size_t size,
			enum nps_torch_result *result);

/* NULL is allowed. */
void nps_torch_names__free(struct nps_torch_names *names);

#endif
