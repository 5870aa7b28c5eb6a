/* SPDX-License-Identifier: BSD-2-Clause */
/* What may have been meant by a mistyped word. */
#ifndef NPS_NEAREST_H
#define NPS_NEAREST_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define NPS_NEAREST_NAME 64 /* characters: longer words are near to nothing */

/*
 * Insertions, deletions, substitutions and swaps of neighbours that make B of A (optimal string alignment).
 * UINT_MAX if one of them is too long.
 */
unsigned int nps_edit_distance(const char *a, const char *b);

/* Is WORD a typing error of NAME, *DISTANCE edits apart? 1 may be, 2 from 6 characters on, and so on. */
bool nps_is_near(const char *word, const char *name, unsigned int *distance);

#endif
