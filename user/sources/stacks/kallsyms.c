/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/stacks/kallsyms.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION_MAX (1UL << 20) /* bytes: an address farther from any symbol belongs to none */

/* Index of the first of the syms above `address`. */
static size_t upper(const struct nps_ksym *syms, size_t n, uint64_t address)
{
	size_t low = 0;

	while (low < n) {
		size_t mid = low + (n - low) / 2;

		if (syms[mid].address >= address)
			n = mid;
		else
			low = mid + 1;
	}
	return low;
}

static bool is_code(char type)
{
	return strchr("tTwW", type);
}

/* Assigns a line to the first address at or above it; symbols_inherit() handles the addresses after that. */
static void one_line(const char *line, struct nps_ksym *syms, uint64_t *nearest, size_t n)
{
	char name[128], module[64] = "", type;
	uint64_t address;
	size_t i;

	if (sscanf(line, "%" SCNx64 " %c %127s [%62[^]]", &address, &type, name, module) < 3 || !address ||
	    !is_code(type))
		return;
	i = upper(syms, n, address);
	if (i == n || nearest[i] >= address)
		return;
	nearest[i] = address;
	memset(syms[i].name, 0, sizeof(syms[i].name)); /* all of it is written to the file */
	snprintf(syms[i].name, sizeof(syms[i].name), module[0] ? "%.80s [%.30s]" : "%.80s", name, module);
}

static void symbols_inherit(struct nps_ksym *syms, uint64_t *nearest, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i && nearest[i] < nearest[i - 1]) {
			nearest[i] = nearest[i - 1];
			memcpy(syms[i].name, syms[i - 1].name, sizeof(syms[i].name));
		}
		if (syms[i].address - nearest[i] > FUNCTION_MAX)
			syms[i].name[0] = '\0';
	}
}

int nps_kallsyms__name(FILE *f, struct nps_ksym *syms, size_t n)
{
	uint64_t *nearest = calloc(n + 1, sizeof(*nearest));
	char *line = NULL;
	size_t cap = 0;

	if (!nearest)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		syms[i].name[0] = '\0';
	while (getline(&line, &cap, f) > 0)
		one_line(line, syms, nearest, n);
	symbols_inherit(syms, nearest, n);
	free(line);
	free(nearest);
	return ferror(f) ? -EIO : 0;
}
