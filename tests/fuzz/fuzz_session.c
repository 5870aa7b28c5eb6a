/* SPDX-License-Identifier: BSD-2-Clause */
/* A session of `npuscope record`: one result for each of its first processes. */
#include "fuzz.h"

#include "session/import_process.h"

#include <stdlib.h>

#define PROCESSES 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void one_process(struct nps_recording *rec, uint32_t row, const struct fuzz_place *place,
			uint8_t options)
{
	struct nps_model model;

	if (nps_model__init(&model, place->outfd, &rec->strings))
		abort();
	if (nps_import__process(&model, rec, row))
		abort(); /* the session was read: only space could be missing now */
	fuzz_check_model(&model);
	fuzz_finish(&model, place, options);
	nps_model__free(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nps_recording rec; /* too large for the stack */
	struct fuzz_archive archive;
	struct fuzz_place place;
	int results = 0;

	if (!fuzz_begin(&place, &archive, data, size))
		return 0;
	nps_recording__init(&rec, place.infd, place.outfd);
	if (!nps_recording__load(&rec, place.in))
		for (uint32_t row = 0; row < rec.nprocs && results < PROCESSES; row++)
			if (nps_recording__has_result(&rec, row)) {
				one_process(&rec, row, &place, archive.options);
				results++;
			}
	nps_recording__free(&rec);
	fuzz_end(&place, &archive);
	return 0;
}
