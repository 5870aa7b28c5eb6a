/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/op_arguments.h"

#include <stdlib.h>
#include <string.h>

#include "event.h"
#include "op_signatures.h"

struct argument_row {
	const char *name, *arguments;
};

static const struct argument_row rows[] = {
#define ROW(name, arguments) { (name), (arguments) },
	NPS_OP_SIGNATURES(ROW)
#undef ROW
};

#define FITS(name, arguments) _Static_assert(sizeof(arguments) - 1 <= NPS_MAX_OPERANDS, "arguments of " name);
NPS_OP_SIGNATURES(FITS)
#undef FITS

static int argument_compare(const void *name, const void *row)
{
	return strcmp(name, ((const struct argument_row *)row)->name);
}

uint8_t nps_op_arguments(const char *name)
{
	const struct argument_row *row =
		bsearch(name, rows, sizeof(rows) / sizeof(*rows), sizeof(*rows), argument_compare);

	return row ? (uint8_t)strlen(row->arguments) : 0;
}
