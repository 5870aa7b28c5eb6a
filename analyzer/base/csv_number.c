/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/csv_number.h"

#include "base/digits.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t nps_put_u64(char *out, uint64_t value)
{
	unsigned int len = nps_digits(value);

	nps_put_digits(out + len, value, len);
	return len;
}

size_t nps_put_i64(char *out, int64_t value)
{
	if (value >= 0)
		return nps_put_u64(out, value);
	*out = '-';
	return 1 + nps_put_u64(out + 1, -(uint64_t)value);
}

size_t nps_put_milli(char *out, uint64_t thousandths)
{
	size_t len = nps_put_u64(out, thousandths / 1000);

	out[len] = '.';
	nps_put_digits(out + len + 4, thousandths % 1000, 3);
	return len + 4;
}

size_t nps_put_milli_short(char *out, uint64_t thousandths)
{
	size_t len;

	if (!thousandths) /* most counters of a kernel are those of the other core */
		return nps_put_text(out, "0.0", 3);
	len = nps_put_milli(out, thousandths);
	len -= out[len - 1] == '0';
	len -= out[len - 1] == '0' && out[len - 2] != '.';
	return len;
}

uint64_t nps_thousandths(double value)
{
	double scaled = value * 1000, rest, error;
	uint64_t whole;

	if (!(value > 0)) /* NaN too */
		return 0;
	if (scaled >= 1e18)
		return 1000000000000000000;
	whole = (int64_t)scaled;
	rest = scaled - (double)(int64_t)whole;
	if (rest != 0.5)
		return whole + (rest > 0.5);
	/* The product may have been rounded onto a tie that VALUE itself is not. */
	error = fma(value, 1000, -scaled);
	return whole + (error > 0 || (error == 0 && whole & 1));
}

/* DIGITS / 10^DECIMALS. */
static size_t put_decimal(char *out, uint64_t digits, unsigned int decimals)
{
	size_t len;

	while (decimals > 1 && digits % 10 == 0) {
		digits /= 10;
		decimals--;
	}
	len = nps_put_u64(out, digits);
	if (len <= decimals) { /* 0.00x */
		size_t pad = decimals + 1 - len;

		memmove(out + pad, out, len);
		memset(out, '0', pad);
		len += pad;
	}
	memmove(out + len - decimals + 1, out + len - decimals, decimals);
	out[len - decimals] = '.';
	return len + 1;
}

/*
 * VALUE needs at least LEAST digits; 17 are always enough. Up to 15 digits, rounding to 15 is exact, and %g
 * leaves out the zeros at the end. Only a subnormal number has fewer digits that are certain.
 */
static size_t put_repr_slowly(char *out, double value, int least)
{
	char text[NPS_NUMBER_MAX];
	size_t len;

	if (fabs(value) >= DBL_MIN && least < DBL_DIG)
		least = DBL_DIG;

	for (int digits = least; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (digits == 17 || strtod(text, NULL) == value)
			break;
	}
	/* Python begins with exponents at 1e16, printf where the digits end. */
	if (fabs(value) < 1e16 && fabs(value) >= 1)
		snprintf(text, sizeof(text), "%.*f",
			 (int)(strchr(text, '.') && !strchr(text, 'e') ? strlen(strchr(text, '.')) - 1 : 1),
			 value);
	len = strlen(text);
	if (!strpbrk(text, ".en"))
		len += nps_put_text(text + len, ".0", 2);
	memcpy(out, text, len);
	return len;
}

size_t nps_put_repr(char *out, double value)
{
	static const double powers[] = { 1,    1e1,  1e2,  1e3,	 1e4,  1e5,  1e6,  1e7,	 1e8,  1e9,
					 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19 };
	unsigned int whole = 0; /* digits before the point */
	size_t sign = 0;

	if (value < 0) {
		*out++ = '-';
		value = -value;
		sign = 1;
	}
	if (value == 0)
		return sign + nps_put_text(out, "0.0", 3);
	if (!(value >= 1e-3 && value < 1e14))
		return sign + put_repr_slowly(out, value, 1);
	while (value >= powers[whole])
		whole++;
	/* The quotient of two exact numbers is correctly rounded: it is what a reader of the digits gets. */
	for (unsigned int digits = 15; digits <= 16; digits++) {
		unsigned int decimals = digits - whole;
		uint64_t scaled = llrintl((long double)value * powers[decimals]);

		if (scaled < 1ULL << 53 && (double)scaled / powers[decimals] == value)
			return sign + put_decimal(out, scaled, decimals);
	}
	return sign + put_repr_slowly(out, value, 16);
}
