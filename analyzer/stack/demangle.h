/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_DEMANGLE_H
#define NPS_DEMANGLE_H

#include <stddef.h>

#define NPS_DEMANGLED_MAX 1024 /* bytes of a name with its NUL */

/*
 * Writes the C++ name that SYMBOL stands for, or SYMBOL itself where it is none or one whose text could fill the memory; cut
 * to SIZE bytes with the NUL.
 */
void nps_demangle(const char *symbol, char *out, size_t size);

#endif
