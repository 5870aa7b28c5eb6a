/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers and the clocks. Exact: 128-bit integers, rounded down. */
#include "gen.h"

#define NS_KHZ 1000000ull /* a clock of 1 GHz ticks in ns */
#define RAW0 5123456789012ull
#define BEGIN_US 1764028800123456ull

__extension__ typedef __int128 wide;

uint64_t mix64(uint64_t x)
{
	x += 0x9E3779B97F4A7C15ull;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
	return x ^ (x >> 31);
}

uint64_t gen_rnd(struct gen *g)
{
	return mix64(g->rnd++);
}

uint64_t gen_range(struct gen *g, uint64_t lo, uint64_t hi)
{
	return lo + gen_rnd(g) % (hi - lo + 1);
}

static int64_t floor_div(wide a, wide b)
{
	wide q = a / b;

	return (int64_t)(a % b < 0 ? q - 1 : q);
}

static uint64_t ceil_div(wide a, wide b)
{
	return (uint64_t)((a + b - 1) / b);
}

/*
 * The sync points of host and devices differ, and so do, by some hundred ns, the offsets between
 * raw and wall clock that their start_info files have: whoever takes the wrong file is found out.
 */
void gen_clocks(struct gen *g)
{
	uint64_t shift = g->o.seed % 100000;

	g->clock.begin_us = BEGIN_US + shift * 1000003;
	g->clock.begin_raw = RAW0 + shift * 977;
	g->clock.raw0 = g->clock.begin_raw + 1500021;
	g->clock.khz = g->o.host_khz ? g->o.host_khz : NS_KHZ;
	g->clock.cnt0 = g->o.host_khz ? 51234567890123ull + shift : g->clock.raw0;
	for (uint32_t i = 0; i < g->o.devices; i++) {
		struct device *d = &g->devices[i];
		uint64_t later = 2000000ull * (i + 1);

		d->id = i;
		d->clock.begin_us = g->clock.begin_us + later / 1000;
		d->clock.begin_raw = g->clock.begin_raw + later - 250 * (i + 1);
		d->clock.raw0 = d->clock.begin_raw + 700013;
		d->clock.khz = g->o.device_khz;
		d->clock.cnt0 = 7770000000ull + 1000000007ull * i + shift;
		d->dev_start_raw = 3210000000000ull + 77777777ull * i;
	}
}

uint64_t host_ticks(const struct gen *g, uint64_t ns)
{
	return ceil_div((wide)ns * g->clock.khz, NS_KHZ);
}

uint64_t host_value(const struct gen *g, uint64_t now)
{
	return g->clock.cnt0 + now;
}

static int64_t wall(const struct clock *c, uint64_t cnt)
{
	int64_t raw = (int64_t)c->raw0 + floor_div(((wide)cnt - (wide)c->cnt0) * (wide)NS_KHZ, c->khz);

	return raw + (int64_t)(c->begin_us * 1000) - (int64_t)c->begin_raw;
}

int64_t host_wall(const struct gen *g, uint64_t now)
{
	return wall(&g->clock, host_value(g, now));
}

int64_t device_wall(const struct device *d, uint64_t cnt)
{
	return wall(&d->clock, cnt);
}

uint64_t device_ticks(const struct device *d, uint64_t ns)
{
	return ceil_div((wide)ns * d->clock.khz, NS_KHZ);
}

uint64_t device_after(const struct gen *g, const struct device *d, uint64_t now, uint64_t ns)
{
	uint64_t raw = g->clock.raw0 + ceil_div((wide)now * NS_KHZ, g->clock.khz) + ns;

	return d->clock.cnt0 + device_ticks(d, raw - d->clock.raw0);
}

uint64_t host_at(const struct gen *g, const struct device *d, uint64_t cnt)
{
	uint64_t raw = d->clock.raw0 + ceil_div((wide)(cnt - d->clock.cnt0) * NS_KHZ, d->clock.khz);

	return host_ticks(g, raw - g->clock.raw0);
}

uint64_t advance(struct gen *g, struct thread *t, uint64_t lo, uint64_t hi)
{
	t->now += host_ticks(g, gen_range(g, lo, hi));
	return t->now;
}
