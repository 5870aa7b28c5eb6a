/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocations that failed. Their effects look like valid data: cJSON leaves out what it has no memory for,
 * so a text or a key that is missing looks as if it never was there; SQLite reports of some statements only
 * that they failed; a text that could not be kept is "none". So a failure is remembered here, whatever had
 * it, and no result is written after one.
 */
#ifndef NPS_MEMORY_H
#define NPS_MEMORY_H

/* Watches the allocations of cJSON and SQLite; before the first use of SQLite. May be called again. */
void nps_memory__watch(void);

/* Remembers that an allocation, of memory or of a temporary file, failed with ERR, < 0. Returns ERR. */
int nps_memory__fail(int err);

/* The first failure since nps_memory__reset(), a negative errno; 0: there was none. */
int nps_memory__failure(void);
void nps_memory__reset(void);

#endif
