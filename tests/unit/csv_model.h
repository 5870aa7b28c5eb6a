/* SPDX-License-Identifier: BSD-2-Clause */
/* A model whose tables tests fill row by row, and the CSV files that are exported of it. */
#ifndef CSV_MODEL_H
#define CSV_MODEL_H

#include "export/export.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSV_MODEL_T0 1700000000000000000ULL /* ns; what the times of rows are added to */

struct csv_model {
	struct nps_model m;
	struct nps_export ex;
	char dir[64];
	int fd;
	char *text; /* of the file read last */
};

/* Of each test, whose state is the model. */
int csv_model_setup(void **state);
int csv_model_teardown(void **state);

/* --- rows ----------------------------------------------------------------------------------------------- */

uint32_t csv_model_text(struct csv_model *f, const char *bytes);

/* Adds a row; its ordinal. */
size_t csv_model_row(struct nps_table *table);

/* Sets every cell that row AT of TABLE has of type text to NPS_NONE. */
void csv_model_no_texts(struct nps_table *table, size_t at);

/* Adds a task, a kernel and its task, or a collective; times in ns. */
size_t csv_model_task(struct csv_model *f, uint64_t start, uint64_t end, uint32_t device,
		      uint32_t connection);
size_t csv_model_kernel(struct csv_model *f, uint64_t start, uint64_t end, uint32_t device, const char *type,
			const char *core);
void csv_model_collective(struct csv_model *f, uint64_t start, uint64_t end, uint32_t device);

/* --- files ---------------------------------------------------------------------------------------------- */

/* Exports what torch_npu writes, into an empty directory. */
void csv_model_torch(struct csv_model *f, enum nps_generation generation);

void csv_model_empty_dir(struct csv_model *f);
bool csv_model_exists(struct csv_model *f, const char *name);

/* The content of a file; valid until the next one is read. */
const char *csv_model_read(struct csv_model *f, const char *name);

/* What follows its first line. */
const char *csv_model_rows(struct csv_model *f, const char *name);

#endif
