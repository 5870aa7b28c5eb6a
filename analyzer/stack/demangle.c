/* SPDX-License-Identifier: BSD-2-Clause */
#include "stack/demangle.h"

#include "base/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANGLED_MAX                                                                                          \
	2048 /* a short name can stand for a very long one, and a long one for more than there is memory */

/* The C++ runtime's; its ABI fixes name and arguments. */
char *__cxa_demangle(const char *mangled, char *buf, size_t *len, int *status);

void nps_demangle(const char *symbol, char *out, size_t size)
{
	char *name = NULL;
	int status = 0;
	size_t len;

	if (symbol[0] == '_' && symbol[1] == 'Z' && strnlen(symbol, MANGLED_MAX) < MANGLED_MAX)
		name = __cxa_demangle(symbol, NULL, NULL, &status);
	len = nps_utf8_fit(name ? name : symbol, size - 1);
	memcpy(out, name ? name : symbol, len);
	out[len] = '\0';
	free(name);
}
