/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Python stacks and code objects on their way from the rings into python.nps (python_stack.h). BPF programs
 * send code objects as they are in memory: here their texts become UTF-8, and what was too long for a record
 * is read from the process. All of it is the job's memory, so lengths are limited, and nothing is trusted.
 */
#ifndef NPS_PYTHON_RECORDS_H
#define NPS_PYTHON_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/session_writer.h"
#include "python_stack.h"

struct nps_python_records;

#define NPS_PYTHON_BYTES_MAX (512ULL << 20) /* of python.nps: a job can make code objects forever */

/*
 * Records of STREAM, which must outlive them. Once it has MOST bytes, others are left out, and counted. NULL:
 * no memory.
 */
struct nps_python_records *nps_python_records__new(struct nps_stream *stream, uint64_t most);
void nps_python_records__free(struct nps_python_records *r);

/* Is this record of a ring, of SIZE bytes, one of Python? */
bool nps_python_records__is(const void *data, size_t size);

/* Adds such a record. */
void nps_python_records__add(struct nps_python_records *r, const void *data, size_t size);

/* Stacks and code objects that were left out. From any thread. NULL: 0. */
uint64_t nps_python_records__left_out(const struct nps_python_records *r);

/* Writes what was added. NULL: does nothing. */
void nps_python_records__flush(struct nps_python_records *r);

/*
 * Characters of a str object as UTF-8: RAW are N bytes of its memory from where an ASCII text begins, STATE
 * and LENGTH (characters) are its members, VERSION is the interpreter's. Writes at most SIZE bytes without a
 * NUL to OUT; code points that are none become U+FFFD. Returns the number of bytes; *CUT is set if
 * characters are missing.
 */
size_t nps_python_text__decode(uint16_t version, uint32_t state, uint64_t length, const uint8_t *raw,
			       size_t n, char *out, size_t size, bool *cut);

#endif
