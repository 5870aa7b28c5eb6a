/* SPDX-License-Identifier: BSD-2-Clause */
/* How long the hardware takes. */
#include "device.h"

#define CORES 24
#define KERNEL_SETUP_NS 1500
#define SDMA_SETUP_NS 3000
#define SDMA_BYTES_PER_US 25000
#define PCIE_SETUP_NS 4000
#define PCIE_BYTES_PER_US 20000

/* xorshift32: the jitter needs no quality, only not to be the same every time. */
uint32_t model_random(struct device *d, uint32_t below)
{
	uint32_t x = d->random;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	d->random = x;
	return x % below;
}

static uint64_t ideal_duration(const struct stars_sqe *sqe)
{
	switch (sqe->type & STARS_TYPE_MASK) {
	case STARS_AICORE:
	case STARS_AICPU:
		return KERNEL_SETUP_NS + (uint64_t)(sqe->block_dim + CORES - 1) / CORES * sqe->kernel.wave_ns;
	case STARS_SDMA:
		return SDMA_SETUP_NS + sqe->dma.len * 1000 / SDMA_BYTES_PER_US;
	case STARS_PCIE_DMA:
		return PCIE_SETUP_NS + sqe->dma.len * 1000 / PCIE_BYTES_PER_US;
	default:
		return 240;
	}
}

/* Ideal, -3..+5 %. */
uint64_t model_duration(struct device *d, const struct stars_sqe *sqe)
{
	uint64_t ns = ideal_duration(sqe);

	return ns * (970 + model_random(d, 80)) / 1000;
}
