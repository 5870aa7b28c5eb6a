/* SPDX-License-Identifier: BSD-2-Clause */
/* Little-endian stores at unaligned addresses: the records are little-endian whatever the machine is. */
#ifndef CANNRAW_BYTES_H
#define CANNRAW_BYTES_H

#include <stdint.h>
#include <string.h>

static inline void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void put32(uint8_t *p, uint32_t v)
{
	put16(p, v & 0xFFFF);
	put16(p + 2, v >> 16);
}

static inline void put64(uint8_t *p, uint64_t v)
{
	put32(p, (uint32_t)v);
	put32(p + 4, (uint32_t)(v >> 32));
}

#endif
