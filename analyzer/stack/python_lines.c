/* SPDX-License-Identifier: BSD-2-Clause */
#include "stack/python_lines.h"

#include <stdbool.h>

#define UNIT 2 /* bytes of an instruction */
#define NO_LINE_310 (-128) /* instead of a line delta */
/* What an entry of a location table describes, from 3.11 on. */
#define ENTRY 0x80 /* set in the first byte of each */
#define ONE_LINE0 10 /* ... to 12: that many lines on */
#define ONE_LINE2 12
#define NO_COLUMNS 13 /* and LONG: a signed number of lines on */
#define LONG 14
#define NO_LOCATION 15

/* The range of code that a table's entry describes: it ends before `end`. */
struct range {
	int64_t end, line;
	bool has_line;
};

static int32_t line_of(const struct range *range)
{
	return range->has_line && range->line > 0 && range->line <= INT32_MAX ? (int32_t)range->line : 0;
}

/* co_lnotab: pairs of bytes and lines to the next instruction that begins a line. */
static int32_t lnotab_line(int32_t first_line, const uint8_t *table, size_t n, int32_t at)
{
	struct range r = { .line = first_line, .has_line = true };

	for (size_t i = 0; i + 1 < n; i += 2) {
		r.end += table[i];
		if (r.end > at)
			break;
		r.line += (int8_t)table[i + 1];
	}
	return line_of(&r);
}

/* 3.10: pairs of the bytes of a range, and lines from the one before. */
static int32_t linetable_310_line(int32_t first_line, const uint8_t *table, size_t n, int32_t at)
{
	struct range r = { .line = first_line };

	for (size_t i = 0; i + 1 < n; i += 2) {
		int8_t lines = (int8_t)table[i + 1];

		r.end += table[i];
		r.has_line = lines != NO_LINE_310;
		r.line += r.has_line ? lines : 0;
		if (r.end > at)
			return line_of(&r);
	}
	return 0;
}

/* A signed number: 6 bits a byte, lowest first, bit 6: there are more; its lowest bit is the sign. */
static int64_t read_signed(const uint8_t *table, size_t n, size_t i)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; i < n && shift < 36; shift += 6) {
		value |= (uint64_t)(table[i] & 0x3f) << shift;
		if (!(table[i++] & 0x40))
			break;
	}
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static int64_t entry_lines(const uint8_t *table, size_t n, size_t i)
{
	int kind = table[i] >> 3 & 15;

	if (kind == NO_COLUMNS || kind == LONG)
		return read_signed(table, n, i + 1);
	return kind >= ONE_LINE0 && kind <= ONE_LINE2 ? kind - ONE_LINE0 : 0;
}

static int32_t location_line(int32_t first_line, const uint8_t *table, size_t n, int32_t at)
{
	struct range r = { .line = first_line };
	size_t i = 0;

	while (i < n) {
		r.line += entry_lines(table, n, i);
		r.has_line = (table[i] >> 3 & 15) != NO_LOCATION;
		r.end += ((table[i] & 7) + 1) * UNIT;
		if (r.end > at)
			return line_of(&r);
		do
			i++;
		while (i < n && !(table[i] & ENTRY));
	}
	return 0;
}

int32_t nps_python_line(uint16_t version, int32_t first_line, const uint8_t *table, size_t n, int32_t at)
{
	if (at < 0)
		return first_line;
	if (version < 0x030a)
		return lnotab_line(first_line, table, n, at);
	if (version == 0x030a)
		return linetable_310_line(first_line, table, n, at);
	return location_line(first_line, table, n, at);
}
