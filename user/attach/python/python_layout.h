/* SPDX-License-Identifier: BSD-2-Clause */
/* Where CPython's structs have what a stack is made of, by version and processor. */
#ifndef NPS_PYTHON_LAYOUT_H
#define NPS_PYTHON_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "python.h"

#define NPS_PY_DESCRIPTION 1024 /* bytes at the start of _PyRuntime: more than any _Py_DebugOffsets has */
#define NPS_PY_DESCRIBED 0x030d /* the first version that has _Py_DebugOffsets */

/* The layout that version's headers have, 0x030b: 3.11. machine: EM_X86_64, EM_AARCH64. NULL: unknown. */
const struct nps_py_layout *nps_python_layout__find(uint16_t version, int machine);

/*
 * Replaces what _Py_DebugOffsets describes, which the job may have made up: N bytes read from the start of
 * its _PyRuntime. 0; -ENOTSUP and *why, a static phrase: it is none of that version, is of a free-threaded
 * build, or has impossible values.
 */
int nps_python_layout__describe(struct nps_py_layout *layout, const uint8_t *description, size_t n,
				const char **why);

#endif
