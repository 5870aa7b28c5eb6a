/* SPDX-License-Identifier: BSD-2-Clause */
/* A database of the vendor's profilers, and the analysis.db beside it. */
#include "fuzz.h"

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_one(data, size, "ascend_pytorch_profiler_0.db", nps_import__ascend_db);
	return 0;
}
