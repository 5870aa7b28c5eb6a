/* SPDX-License-Identifier: BSD-2-Clause */
/* A session of `npuscope record`: one result for each of its first processes. */
#include "fuzz.h"

#include "import/session/import_process.h"

#include <stdlib.h>

#define PROCESSES 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void one_process(struct nps_session *rec, uint32_t row, const struct fuzz_scratch *scratch,
			uint8_t options)
{
	struct nps_model model;

	if (nps_model__init(&model, scratch->outfd, &rec->strings))
		abort();
	if (nps_import__process(&model, rec, row))
		abort(); /* the session was read: only space could be missing now */
	fuzz_check_model(&model);
	fuzz_finish(&model, scratch, options);
	nps_model__free(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nps_session rec; /* too large for the stack */
	struct fuzz_archive archive;
	struct fuzz_scratch scratch;
	int results = 0;

	if (!fuzz_begin(&scratch, &archive, data, size))
		return 0;
	nps_session__init(&rec, scratch.infd, scratch.outfd);
	if (!nps_session__load(&rec, scratch.in))
		for (uint32_t row = 0; row < rec.nprocs && results < PROCESSES; row++)
			if (nps_session__has_result(&rec, row)) {
				one_process(&rec, row, &scratch, archive.options);
				results++;
			}
	nps_session__free(&rec);
	fuzz_end(&scratch, &archive);
	return 0;
}
