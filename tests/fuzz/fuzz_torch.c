/* SPDX-License-Identifier: BSD-2-Clause */
/* The PyTorch profiler's raw data, over CANN's as far as that can be read. */
#include "fuzz.h"

#include "import/import.h"

#include <stdio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int import(struct nps_model *model, const char *path)
{
	char prof[300];
	int err = 0;

	snprintf(prof, sizeof(prof), "%s/PROF_1", path);
	if (!access(prof, F_OK))
		err = nps_import__cann(model, prof);
	return err ? err : nps_import__torch(model, path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_one(data, size, "x_ascend_pt", import);
	return 0;
}
