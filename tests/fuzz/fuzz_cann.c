/* SPDX-License-Identifier: BSD-2-Clause */
/* CANN's raw data: a PROF_* directory. */
#include "fuzz.h"

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_one(data, size, "PROF_1", nps_import__cann);
	return 0;
}
