/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace, plain or compressed. */
#include "fuzz.h"

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_one(data, size, "trace_view.json", nps_import__trace);
	return 0;
}
