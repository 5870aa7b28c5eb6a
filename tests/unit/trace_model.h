/* SPDX-License-Identifier: BSD-2-Clause */
/* A small model that has something of everything that a trace shows. */
#ifndef TRACE_MODEL_H
#define TRACE_MODEL_H

#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TRACE_MODEL_T0 1736408883704643212ULL /* ns; when it begins */
#define TRACE_MODEL_PID 3016828U

extern struct nps_model trace_model;

/* Adds a row to a table of the model; its ordinal. */
#define TRACE_MODEL_ADD(field)                                                                               \
	({                                                                                                   \
		size_t row_;                                                                                 \
		assert_int_equal(nps_table__add(&trace_model.field.t, &row_), 0);                            \
		row_;                                                                                        \
	})

/* Sets a cell of the row that was added last. */
#define TRACE_MODEL_SET(field, column, value)                                                                \
	(trace_model.field.column[trace_model.field.t.len - 1] = (value))

/* Makes the model, whose temporary files are in DIRFD; nps_model__free() releases it. */
void trace_model_init(int dirfd);

#endif
