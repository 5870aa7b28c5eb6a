/* SPDX-License-Identifier: BSD-2-Clause */
/* How long the hardware takes. */
#include "device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_SETUP_NS 1500
#define SDMA_SETUP_NS 3000
#define SDMA_BYTES_PER_US 25000
#define PCIE_SETUP_NS 4000
#define PCIE_BYTES_PER_US 20000

#define SUB_TASK_NS 300 /* a sub-task begins and ends so far inside its task */
#define OTHERS_MAX 8

static struct ffts ffts = { .threads = 1, .others = 1 };

/* NPUSIM_FFTS: CONTEXTS or CONTEXTSxTHREADS. NPUSIM_MIX: aic or aiv, :N. */
static void read_ffts(void)
{
	const char *text = getenv("NPUSIM_FFTS"), *mix = getenv("NPUSIM_MIX");
	unsigned int contexts = 1, threads = 1, others = 1;

	if (!text)
		return;
	sscanf(text, "%ux%u", &contexts, &threads);
	ffts.threads = threads >= 1 && threads <= SUB_TASKS_MAX ? threads : 1;
	ffts.contexts = contexts >= 1 && contexts <= SUB_TASKS_MAX / ffts.threads ? contexts : 1;
	if (!mix)
		return;
	ffts.vector_leads = !strncmp(mix, "aiv", 3);
	sscanf(mix, "%*[a-z]:%u", &others);
	ffts.others = others <= OTHERS_MAX ? others : 1;
}

const struct ffts *task_ffts(const struct device *d, const struct task *t)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_ffts);
	if (board_chip(&d->board)->log != CHIP_STARS || t->facts.kind != STARS_AICORE ||
	    t->sqe.kernel.core != STARS_MIX || !ffts.contexts)
		return NULL;
	return &ffts;
}

uint64_t ffts_start(const struct ffts *f, const struct task *t, uint32_t k)
{
	uint64_t room = t->facts.end - t->facts.start - 2 * SUB_TASK_NS;

	return t->facts.start + SUB_TASK_NS + room * k / (4 * f->contexts * f->threads);
}

uint64_t ffts_end(const struct ffts *f, const struct task *t, uint32_t k)
{
	uint64_t room = t->facts.end - t->facts.start - 2 * SUB_TASK_NS, n = f->contexts * f->threads;

	return t->facts.end - SUB_TASK_NS - room * (k % 2 ? k : n - 1 - k) / (4 * n);
}

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

/* How often the cores are filled until all blocks have run. */
uint32_t model_waves(const struct chip *chip, const struct stars_sqe *sqe)
{
	return (sqe->block_dim + chip->aicores - 1) / chip->aicores;
}

static uint64_t ideal_duration(const struct chip *chip, const struct stars_sqe *sqe)
{
	switch (chip_kind(chip, sqe)) {
	case STARS_AICORE:
	case STARS_AICPU:
		return KERNEL_SETUP_NS + (uint64_t)model_waves(chip, sqe) * sqe->kernel.wave_ns;
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
	uint64_t ns = ideal_duration(board_chip(&d->board), sqe);

	return ns * (970 + model_random(d, 80)) / 1000;
}
