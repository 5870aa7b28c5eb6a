/* SPDX-License-Identifier: BSD-2-Clause */
/* Buckets of equal width within each power of two, as HdrHistogram has them. */
#include "findings/findings.h"

#define LINEAR 4 /* log2 of the buckets of a power of two */

static unsigned int bucket(uint64_t value)
{
	unsigned int shift;

	if (value < 1U << LINEAR)
		return value;
	shift = 63 - __builtin_clzll(value) - LINEAR;
	return ((shift + 1) << LINEAR) + (value >> shift) - (1U << LINEAR);
}

/* The middle of bucket I. */
static uint64_t bucket_value(unsigned int i)
{
	unsigned int shift;

	if (i < 1U << LINEAR)
		return i;
	shift = (i >> LINEAR) - 1;
	return ((uint64_t)((i & ((1U << LINEAR) - 1)) + (1U << LINEAR)) << shift) +
	       (shift ? 1ULL << (shift - 1) : 0);
}

void nps_histogram__add(struct nps_histogram *h, uint64_t value)
{
	if (!h->count || value < h->least)
		h->least = value;
	h->most = NPS_MAX(h->most, value);
	h->count++;
	h->total = nps_add_sat(h->total, value);
	h->buckets[bucket(value)]++;
}

uint64_t nps_histogram__quantile(const struct nps_histogram *h, double q)
{
	uint64_t want = (uint64_t)(q * h->count), seen = 0;

	for (unsigned int i = 0; i < NPS_HISTOGRAM_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen > want)
			return NPS_MIN(NPS_MAX(bucket_value(i), h->least), h->most);
	}
	return h->most;
}

double nps_histogram__quantile_us(const struct nps_histogram *h, double q)
{
	return h->count ? nps_histogram__quantile(h, q) / 1e3 : NPS_NAN;
}

double nps_histogram__mean_us(const struct nps_histogram *h)
{
	return h->count ? h->total / 1e3 / h->count : NPS_NAN;
}
