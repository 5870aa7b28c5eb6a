/* SPDX-License-Identifier: BSD-2-Clause */
/* Device records that are known but whose time has not come: a heap by time, then by age. */
#ifndef CANNRAW_HEAP_H
#define CANNRAW_HEAP_H

#include <stdint.h>

#define HEAP_RECORD 256

struct heap;

struct heap *heap_new(void);
void heap_free(struct heap *h);
/* Room for one record of FILE at TIME; the caller fills it before the next call. */
uint8_t *heap_add(struct heap *h, uint64_t time, uint32_t file);
/* The oldest record if it lies before UNTIL, else NULL. It stays valid until the next heap_add. */
uint8_t *heap_pop(struct heap *h, uint64_t until, uint32_t *file);

#endif
