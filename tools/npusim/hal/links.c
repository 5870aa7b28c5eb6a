/* SPDX-License-Identifier: BSD-2-Clause */
#include "links.h"
#include "device.h"
#include "pmu.h"

#include <stdlib.h>

#define FLOWS_MAX 8
#define BIN_NS 10000000u
#define SERVER_DEVICES 8
#define LOAD_NS 100000000u

struct flow {
	uint32_t device;
	enum counter counter;
	uint64_t amount;
};

struct flows {
	int n;
	struct flow flow[FLOWS_MAX];
};

/* What this process moved in one span of time, for the truth file. */
struct bin {
	uint64_t index, amount;
};

static const char *const names[COUNTERS] = {
	[HBM_READ] = "HBM\tread",     [HBM_WRITE] = "HBM\twrite",   [DDR_READ] = "DDR\tread",
	[DDR_WRITE] = "DDR\twrite",   [HCCS_TX] = "HCCS\ttx",	    [HCCS_RX] = "HCCS\trx",
	[ROCE_TX] = "ROCE\ttx",	      [ROCE_RX] = "ROCE\trx",	    [UB_TX] = "UB\ttx",
	[UB_RX] = "UB\trx",	      [PCIE_TX] = "PCIE\ttx",	    [PCIE_RX] = "PCIE\trx",
	[AIC_CYCLES] = "AIC\tcycles", [AIV_CYCLES] = "AIV\tcycles",
};

static pthread_mutex_t bins_lock = PTHREAD_MUTEX_INITIALIZER;
static struct bin bins[DEVICES_MAX][COUNTERS];

static void put_bin(uint32_t device, enum counter counter, struct bin *b)
{
	if (b->amount)
		truth_line("counter", "%u\t%s\t%llu\t%llu\t%llu", device, names[counter],
			   (unsigned long long)b->index * BIN_NS, (unsigned long long)(b->index + 1) * BIN_NS,
			   (unsigned long long)b->amount);
	b->amount = 0;
}

void links_truth(void)
{
	pthread_mutex_lock(&bins_lock);
	for (uint32_t i = 0; i < DEVICES_MAX; i++) {
		for (int c = 0; c < COUNTERS; c++)
			put_bin(i, (enum counter)c, &bins[i][c]);
	}
	pthread_mutex_unlock(&bins_lock);
}

static void note(uint32_t device, enum counter counter, uint64_t index, uint64_t amount)
{
	struct bin *b = &bins[device % DEVICES_MAX][counter];

	if (!amount)
		return;
	pthread_mutex_lock(&bins_lock);
	if (b->index != index) {
		put_bin(device, counter, b);
		b->index = index;
	}
	b->amount += amount;
	pthread_mutex_unlock(&bins_lock);
}

static void flow(struct flows *f, uint32_t device, enum counter counter, uint64_t amount)
{
	if (amount && f->n < FLOWS_MAX)
		f->flow[f->n++] = (struct flow){ device, counter, amount };
}

/* Chips without HBM have DDR. */
static void memory_flow(struct flows *f, const struct chip *chip, uint32_t device, int write, uint64_t bytes)
{
	bool hbm = chip_channel(chip, CHANNEL_HBM);

	flow(f, device, (hbm ? HBM_READ : DDR_READ) + (enum counter)write, bytes);
}

/* The first of the two counters of the link between two devices. */
static enum counter link_between(const struct chip *chip, uint32_t a, uint32_t b)
{
	const char *per = getenv("NPUSIM_SERVER_DEVICES");
	uint32_t n = per ? (uint32_t)strtoul(per, NULL, 10) : SERVER_DEVICES;

	if (chip_channel(chip, CHANNEL_UB))
		return UB_TX;
	if (!chip_channel(chip, CHANNEL_HCCS))
		return PCIE_TX;
	return a / (n ? n : SERVER_DEVICES) == b / (n ? n : SERVER_DEVICES) ? HCCS_TX : ROCE_TX;
}

static int peer_of(uint64_t address)
{
	if (address < STARS_PEER_BASE || address >= STARS_PEER_END)
		return -1;
	return (int)((address - STARS_PEER_BASE) >> STARS_PEER_SHIFT);
}

static void between(struct flows *f, const struct chip *chip, uint32_t from, uint32_t to, uint64_t bytes)
{
	enum counter link = link_between(chip, from, to);

	memory_flow(f, chip, from, 0, bytes);
	flow(f, from, link, bytes);
	flow(f, to, link + 1, bytes);
	memory_flow(f, chip, to, 1, bytes);
}

static void copy_flows(struct flows *f, const struct device *d, const struct task *t)
{
	const struct chip *chip = board_chip(&d->board);
	int to = peer_of(t->sqe.dma.dst), from = peer_of(t->sqe.dma.src);
	uint64_t bytes = t->sqe.dma.len;

	if (to >= 0 || from >= 0) {
		between(f, chip, from < 0 ? d->id : (uint32_t)from, to < 0 ? d->id : (uint32_t)to, bytes);
		return;
	}
	if (t->sqe.dma.route != STARS_TO_DEVICE && t->sqe.dma.action != STARS_DMA_FILL)
		memory_flow(f, chip, d->id, 0, bytes);
	if (t->sqe.dma.route != STARS_TO_HOST)
		memory_flow(f, chip, d->id, 1, bytes);
	if (t->sqe.dma.route == STARS_TO_DEVICE)
		flow(f, d->id, PCIE_RX, bytes);
	if (t->sqe.dma.route == STARS_TO_HOST)
		flow(f, d->id, PCIE_TX, bytes);
}

/* A kernel reads and writes as its cycles go. */
static void kernel_flows(struct flows *f, const struct device *d, const struct task *t)
{
	const struct chip *chip = board_chip(&d->board);
	uint64_t aic = pmu_cycles(d, t, PMU_AIC), aiv = pmu_cycles(d, t, PMU_AIV), cycles = aic + aiv;
	uint32_t per_cycle = 4 + t->sqe.kernel.wave_ns % 8; /* bytes, of one core */

	memory_flow(f, chip, d->id, 0, cycles * per_cycle);
	memory_flow(f, chip, d->id, 1, cycles * per_cycle / 2);
	if (chip_channel(chip, CHANNEL_HBM) && chip_channel(chip, CHANNEL_DDR)) {
		flow(f, d->id, DDR_READ, cycles * per_cycle / 64);
		flow(f, d->id, DDR_WRITE, cycles * per_cycle / 128);
	}
	flow(f, d->id, AIC_CYCLES, aic);
	flow(f, d->id, AIV_CYCLES, aiv);
}

static void add(struct device *d, const struct flow *f, uint64_t index, uint64_t amount)
{
	struct device *at = f->device == d->id ? d : device_get(f->device);

	if (!at)
		return;
	atomic_fetch_add(&at->board.shared->slots[at->board.slot].moved[f->counter], amount);
	if (truth_is_written())
		note(f->device, f->counter, index, amount);
}

/* What is done of `amount` at an instant of the task. */
static uint64_t done_at(const struct task *t, uint64_t amount, uint64_t when)
{
	uint64_t length = t->facts.end - t->facts.start;

	return (uint64_t)((unsigned __int128)amount * (when - t->facts.start) / (length ? length : 1));
}

static void progress(struct device *d, struct task *t, const struct flows *f, uint64_t until)
{
	while (t->accounted < until) {
		uint64_t index = t->accounted / BIN_NS, stop = (index + 1) * BIN_NS;

		stop = stop < until ? stop : until;
		for (int i = 0; i < f->n; i++)
			add(d, &f->flow[i], index,
			    done_at(t, f->flow[i].amount, stop) -
				    done_at(t, f->flow[i].amount, t->accounted));
		t->accounted = stop;
	}
}

void links_progress(struct device *d, struct task *t, uint64_t until)
{
	struct flows f = { .n = 0 };

	if (!t->accounted)
		t->accounted = t->facts.start;
	if (until > t->facts.end)
		until = t->facts.end;
	if (until <= t->accounted)
		return;
	if (t->facts.kind == STARS_AICORE)
		kernel_flows(&f, d, t);
	else if (t->facts.kind == STARS_SDMA || t->facts.kind == STARS_PCIE_DMA)
		copy_flows(&f, d, t);
	if (f.n)
		progress(d, t, &f, until);
}

void links_copied(struct device *d, int to_device, uint64_t bytes)
{
	const struct chip *chip = board_chip(&d->board);
	uint64_t index = truth_now() / BIN_NS;
	struct flows f = { .n = 0 };

	memory_flow(&f, chip, d->id, to_device, bytes);
	flow(&f, d->id, to_device ? PCIE_RX : PCIE_TX, bytes);
	for (int i = 0; i < f.n; i++)
		add(d, &f.flow[i], index, f.flow[i].amount);
}

const char *links_name(enum counter counter)
{
	return names[counter];
}

uint64_t links_total(const struct board *b, enum counter counter)
{
	uint64_t sum = 0;

	for (int i = 0; i < BOARD_SLOTS; i++)
		sum += atomic_load(&b->shared->slots[i].moved[counter]);
	return sum;
}

/* Permille of the cores' cycles since the look before, which was at least LOAD_NS ago. */
uint32_t board_load(struct board *b)
{
	const struct chip *chip = board_chip(b);
	struct board_shared *s = b->shared;
	uint64_t now = truth_now(), at = atomic_load(&s->load_at);
	uint64_t cycles = links_total(b, AIC_CYCLES) + links_total(b, AIV_CYCLES), most;

	if (now - at < LOAD_NS)
		return atomic_load(&s->load);
	if (at) {
		most = (now - at) * chip->core_mhz / 1000 * (chip->aicores + chip->vector_cores);
		atomic_store(&s->load,
			     (uint32_t)((cycles - atomic_load(&s->load_cycles)) * 1000 / (most ? most : 1)));
	}
	atomic_store(&s->load_cycles, cycles);
	atomic_store(&s->load_at, now);
	return atomic_load(&s->load);
}

uint32_t board_power(struct board *b)
{
	return 900 + board_load(b) * 3;
}
