/* SPDX-License-Identifier: BSD-2-Clause */
/* Line numbers of Python code, from the table that its code object has. */
#ifndef NPS_PYTHON_LINES_H
#define NPS_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

/*
 * The line of the instruction at byte AT of a function's code, as a traceback has it. VERSION: 0x030b for
 * 3.11; TABLE: N bytes in the format of that version, co_lnotab before 3.10, then co_linetable. FIRST_LINE:
 * co_firstlineno, and the result if AT is negative (nothing has run yet). 0: the instruction has no line, or
 * the table is damaged.
 */
int32_t nps_python_line(uint16_t version, int32_t first_line, const uint8_t *table, size_t n, int32_t at);

#endif
