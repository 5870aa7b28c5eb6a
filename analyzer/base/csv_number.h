/* SPDX-License-Identifier: BSD-2-Clause */
/* Decimal numbers as the vendor's writers print them. Each returns the length; nothing is terminated. */
#ifndef NPS_CSV_NUMBER_H
#define NPS_CSV_NUMBER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NPS_NUMBER_MAX 40 /* bytes that any of them needs; all may be written, whatever the length */

/* LEN bytes of TEXT. */
static inline size_t nps_put_text(char *out, const char *text, size_t len)
{
	memcpy(out, text, len);
	return len;
}

/* VALUE in decimal digits. */
size_t nps_put_u64(char *out, uint64_t value);
size_t nps_put_i64(char *out, int64_t value);

/* THOUSANDTHS / 1000 with three decimals: 12.340. */
size_t nps_put_milli(char *out, uint64_t thousandths);

/* The same without trailing zeros, but with at least one decimal: 12.34, 5.0. */
size_t nps_put_milli_short(char *out, uint64_t thousandths);

/* The shortest decimal that reads back as VALUE, as Python writes a float: 0.1, 5.0, 4.1e-05, nan. */
size_t nps_put_repr(char *out, double value);

/* VALUE rounded to thousandths like printf does it; negative and huge values become 0 and the largest. */
uint64_t nps_thousandths(double value);

#endif
