/* SPDX-License-Identifier: BSD-2-Clause */
#include "derive/period_text.h"

#include "base/util.h"

#include <errno.h>

/* Polynomial hashes modulo a Mersenne prime. A job that makes collisions gets wrong steps in its result. */
#define MODULUS ((1ULL << 61) - 1)
#define BASE 0x14c0ffee5eedULL
#define NEAR 8 /* symbols that are compared one by one first */

static uint64_t mul(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	uint64_t sum = (uint64_t)(product & MODULUS) + (uint64_t)(product >> 61);

	return sum >= MODULUS ? sum - MODULUS : sum;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a + b >= MODULUS ? a + b - MODULUS : a + b;
}

int nps_period_text__init(struct nps_period_text *text, int dirfd, const uint32_t *symbols, size_t len)
{
	uint64_t *prefix, *power;
	int err;

	*text = (struct nps_period_text){ .symbols = symbols, .len = len };
	nps_vec__init(&text->prefix, dirfd, sizeof(uint64_t));
	nps_vec__init(&text->power, dirfd, sizeof(uint64_t));
	err = nps_vec__resize(&text->prefix, len + 1);
	err = err ? err : nps_vec__resize(&text->power, len + 1);
	if (err)
		return err;
	prefix = text->prefix.data;
	power = text->power.data;
	power[0] = 1;
	for (size_t i = 0; i < len; i++) {
		prefix[i + 1] = plus(mul(prefix[i], BASE), nps_hash2(symbols[i], 1) >> 4);
		power[i + 1] = mul(power[i], BASE);
	}
	return 0;
}

uint64_t nps_period_text__hash(const struct nps_period_text *text, size_t from, size_t to)
{
	const uint64_t *prefix = text->prefix.data, *power = text->power.data;

	return plus(prefix[to], MODULUS - mul(prefix[from], power[to - from]));
}

size_t nps_period_text__same_after(const struct nps_period_text *text, size_t a, size_t b, size_t max)
{
	size_t low = 0, high;

	max = NPS_MIN(max, text->len - NPS_MAX(a, b));
	while (low < max && text->symbols[a + low] == text->symbols[b + low])
		if (++low == NEAR)
			break;
	if (low < NEAR)
		return low;
	high = max;
	while (low < high) { /* the first LOW are the same, more than HIGH are not */
		size_t mid = high - (high - low) / 2;

		if (nps_period_text__hash(text, a, a + mid) == nps_period_text__hash(text, b, b + mid))
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

size_t nps_period_text__same_before(const struct nps_period_text *text, size_t a, size_t b, size_t max)
{
	size_t low = 0, high;

	max = NPS_MIN(max, NPS_MIN(a, b));
	while (low < max && text->symbols[a - 1 - low] == text->symbols[b - 1 - low])
		if (++low == NEAR)
			break;
	if (low < NEAR)
		return low;
	high = max;
	while (low < high) {
		size_t mid = high - (high - low) / 2;

		if (nps_period_text__hash(text, a - mid, a) == nps_period_text__hash(text, b - mid, b))
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

void nps_period_text__free(struct nps_period_text *text)
{
	nps_vec__free(&text->prefix);
	nps_vec__free(&text->power);
}
