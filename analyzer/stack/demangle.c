/* SPDX-License-Identifier: BSD-2-Clause */
#include "stack/demangle.h"

#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANGLED_MAX 2048
#define MOST (1U << 24) /* bytes that a name may stand for; of LLVM's own 40,000 four are beyond */
/* A reference to a template's argument, of which it is not known how early it was complete. */
#define TEMPLATE UINT32_MAX

/* The C++ runtime's; its ABI fixes name and arguments. */
char *__cxa_demangle(const char *mangled, char *buf, size_t *len, int *status);

/* The number of a reference that P points at (S_, S0_, T1_, ...), 0 if it is none. */
static uint32_t reference(const char *p)
{
	uint32_t number = 0;
	size_t i = 1;

	for (; (p[i] >= '0' && p[i] <= '9') || (p[i] >= 'A' && p[i] <= 'Z'); i++) {
		if (number > MANGLED_MAX)
			return 0;
		number = number * 36 + (uint32_t)(p[i] <= '9' ? p[i] - '0' : p[i] - 'A' + 10);
	}
	if (p[i] != '_')
		return 0;
	return *p == 'T' ? TEMPLATE : number + (i > 1) + 1;
}

/*
 * Whether the name may stand for more text than there is memory: each of many parts may refer twice to the
 * part before, which doubles the text each time. A part is no longer than the whole text with the
 * references of lower number before it.
 */
static bool explodes(const char *symbol, size_t len)
{
	struct {
		uint32_t number;
		uint64_t size;
	} refs[MANGLED_MAX / 2];
	uint64_t all = len;
	size_t n = 0;

	for (const char *p = symbol; (p = strpbrk(p, "ST")); p++) {
		uint32_t number = reference(p);
		uint64_t size = 0;

		if (!number)
			continue;
		for (size_t i = 0; i < n && number != TEMPLATE && !size; i++)
			size = refs[i].number == number ? refs[i].size : 0;
		if (!size) {
			size = len;
			for (size_t i = 0; i < n; i++)
				if (number == TEMPLATE || refs[i].number == TEMPLATE ||
				    refs[i].number < number)
					size += refs[i].size;
		}
		/* They overlap, SSS_ may be three. No compiler makes so many. */
		if (n == NPS_ARRAY_SIZE(refs))
			return true;
		refs[n].number = number;
		refs[n++].size = size;
		all += size;
		if (all > MOST)
			return true;
	}
	return false;
}

void nps_demangle(const char *symbol, char *out, size_t size)
{
	char *name = NULL;
	int status = 0;
	size_t len = strnlen(symbol, MANGLED_MAX);

	if (symbol[0] == '_' && symbol[1] == 'Z' && len < MANGLED_MAX && !explodes(symbol, len))
		name = __cxa_demangle(symbol, NULL, NULL, &status);
	len = nps_utf8_fit(name ? name : symbol, size - 1);
	memcpy(out, name ? name : symbol, len);
	out[len] = '\0';
	free(name);
}
