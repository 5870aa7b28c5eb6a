/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_DEMANGLE_H
#define NPS_DEMANGLE_H

#include <stddef.h>

#define NPS_DEMANGLED_MAX 1024 /* bytes of a name with its NUL */

/*
 * Writes the C++ name of SYMBOL into OUT, cut to SIZE bytes with the NUL. SYMBOL itself is written if it is
 * no mangled name, or one whose text could fill the memory.
 */
void nps_demangle(const char *symbol, char *out, size_t size);

#endif
