/* SPDX-License-Identifier: BSD-2-Clause */
/* At which instruction the functions of a library are probed, given what the catalogue reads of them. */
#ifndef NPS_PROBE_ADDRESS_H
#define NPS_PROBE_ADDRESS_H

#include <stdbool.h>
#include <stdio.h>

#include "attach/elf_file.h"
#include "attach/probe_point.h"
#include "attach/probe_rows.h"

struct nps_probe_address {
	uint64_t start; /* of the function, in the file */
	uint64_t offset; /* of the probe, in the file */
	enum nps_probe_class class;
	bool stepped; /* this kernel single-steps it */
	const char *why; /* reason why it is single-stepped; NULL: it is not. Static */
};

/*
 * Chooses the offset of a probe of FN, a function of the open file ELF. row: what is read, NULL: every
 * argument, in registers and on the stack, and the memory they point to. returns: also probed at its return.
 */
struct nps_probe_address nps_probe_address__find(const struct nps_elf *elf, const struct nps_elf_function *fn,
						 const struct nps_probe_row *row, bool returns);

/* The same for another kernel: LINUX_VERSION_CODE. */
struct nps_probe_address nps_probe_address__find_for(uint32_t kernel, const struct nps_elf *elf,
						     const struct nps_elf_function *fn,
						     const struct nps_probe_row *row, bool returns);

/*
 * Prints at which offset each function of the catalogue is probed in a library, or in the libraries that a
 * process has mapped: a line each, tabs between columns. target: path of the library, or pid. Warnings go
 * to stderr. 0 or a negative errno.
 */
int nps_probe_address__print(const char *target, FILE *out);

#endif
