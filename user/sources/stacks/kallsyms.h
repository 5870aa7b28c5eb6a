/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of kernel addresses, from /proc/kallsyms. */
#ifndef NPS_KALLSYMS_H
#define NPS_KALLSYMS_H

#include <stddef.h>
#include <stdio.h>

#include "stack.h"

/*
 * Fills in the names of `n` addresses, sorted ascending; "" if the
 * kernel hides it. Reads `f` to its end. 0 or -errno.
 */
int nps_kallsyms__name(FILE *f, struct nps_ksym *syms, size_t n);

#endif
