/* SPDX-License-Identifier: BSD-2-Clause */
/* Decimal digits two at a time: the hot loop of every text exporter, so inline. */
#ifndef NPS_DIGITS_H
#define NPS_DIGITS_H

#include <stdint.h>
#include <string.h>

/* Number of decimal digits; 0 has one. */
static inline unsigned int nps_digits(uint64_t value)
{
	static const uint64_t powers[] = { 0,
					   10,
					   100,
					   1000,
					   10000,
					   100000,
					   1000000,
					   10000000,
					   100000000,
					   1000000000,
					   10000000000,
					   100000000000,
					   1000000000000,
					   10000000000000,
					   100000000000000,
					   1000000000000000,
					   10000000000000000,
					   100000000000000000,
					   1000000000000000000,
					   10000000000000000000U };
	unsigned int guess = (64 - __builtin_clzll(value | 1)) * 1233 >> 12; /* bits * log10(2) */

	return guess + (value >= powers[guess]);
}

/* The last N digits of VALUE, so that they end before END. */
static inline void nps_put_digits(char *end, uint64_t value, unsigned int n)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";

	for (; n >= 2; n -= 2, value /= 100)
		memcpy(end -= 2, pairs + value % 100 * 2, 2);
	if (n)
		end[-1] = '0' + value % 10;
}

#endif
