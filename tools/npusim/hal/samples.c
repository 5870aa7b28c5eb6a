/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of the channels that sample memories and links. Each holds what was moved since the one before,
 * so all of them together are what was moved between the first sample, at the start, and the last one.
 */
#include "prof.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HBM_UNIT 32
#define DDR_UNIT 32
#define LLC_UNIT 4096
#define HBMS 4
#define LLC_EVENTS 8
#define NIC_MBIT 200000u
#define PACKET_BYTES 4096
#define PACKET_HEAD 82 /* of Ethernet, IP, UDP and InfiniBand, on the wire */
#define UB_PORTS 2

struct series {
	uint64_t begin;
	uint64_t first[COUNTERS], before[COUNTERS], after[COUNTERS];
	uint64_t rest[COUNTERS]; /* bytes that were too few for a unit of a rate */
};

struct span channel_span(struct channel *c, enum counter counter)
{
	const struct series *s = c->state;

	return (struct span){ s->before[counter], s->after[counter], s->after[counter] - s->before[counter] };
}

uint64_t channel_device_ns(const struct channel *c, uint64_t raw)
{
	uint64_t hz = board_chip(&c->device->board)->counter_hz;

	return (uint64_t)((unsigned __int128)channel_ticks(c, raw) * 1000000000u / hz);
}

/* Since the channel was started, in us of the device's clock. */
static uint64_t since_start(const struct channel *c, uint64_t now)
{
	return (channel_device_ns(c, now) - channel_device_ns(c, c->opened)) / 1000;
}

static uint64_t real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool is_950(const struct channel *c)
{
	return board_chip(&c->device->board)->log == CHIP_STARS2;
}

/* What came to `unit`s of part `i` of `n`; parts and samples add up to the whole. */
static uint64_t units(const struct span *s, uint64_t unit, uint32_t n, uint32_t i)
{
	return (s->after / unit + i) / n - (s->before / unit + i) / n;
}

/* Per second. */
static uint64_t rate(const struct channel *c, uint64_t now, uint64_t amount)
{
	return now > c->last ? (uint64_t)((unsigned __int128)amount * 1000000000u / (now - c->last)) : 0;
}

struct old_count {
	uint64_t time, count;
	uint32_t event, id;
};

static void put_hbm(struct channel *c, uint64_t now, uint32_t event, uint32_t id, uint64_t count)
{
	struct old_count r = { .time = since_start(c, now), .count = count, .event = event, .id = id };
	struct {
		uint32_t reserved[2], event, id;
		uint64_t count, time;
	} r2 = { .event = event, .id = id, .count = count, .time = real_ns() };

	if (is_950(c))
		channel_put(c, &r2, sizeof(r2));
	else
		channel_put(c, &r, sizeof(r));
}

/* Parameters: period, master, number of events, events. */
static void hbm(struct channel *c, uint64_t now)
{
	for (uint32_t i = 0; i < channel_config(c, 2) && i < 2; i++) {
		uint32_t event = channel_config(c, 3 + i);
		struct span s = channel_span(c, event ? HBM_WRITE : HBM_READ);

		for (uint32_t id = 0; id < HBMS; id++)
			put_hbm(c, now, event, id, units(&s, HBM_UNIT, HBMS, id));
	}
}

static void ddr(struct channel *c, uint64_t now)
{
	for (uint32_t i = 0; i < channel_config(c, 2) && i < 2; i++) {
		uint32_t event = channel_config(c, 3 + i);
		struct span s = channel_span(c, event ? DDR_WRITE : DDR_READ);
		struct {
			uint32_t time, count, event, controller, master;
		} r = { .time = (uint32_t)since_start(c, now),
			.count = (uint32_t)units(&s, DDR_UNIT, 1, 0),
			.event = event,
			.master = 0xffffffff };

		channel_put(c, &r, sizeof(r));
	}
}

/* A 910B has two. */
static uint32_t llc_units(const struct channel *c)
{
	return board_chip(&c->device->board)->platform == 5 ? 2 : 4;
}

/*
 * Lines of the last level that memory traffic went through, in two halves each: what was moved, hits of the
 * near and the far half, accesses, hits that were prefetched. Of each four accesses three hit. The numbers
 * of the events are not in the driver's description; these are the requests of the vendor's reader.
 */
static void llc(struct channel *c, uint64_t now)
{
	static const uint8_t events[2][LLC_EVENTS] = { { 0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36 },
						       { 0x00, 0x01, 0x03, 0x14, 0x21, 0x23, 0x35, 0x37 } };
	uint32_t write = channel_config(c, 1) == 1, n_units = llc_units(c);
	bool has_hbm = chip_channel(board_chip(&c->device->board), CHANNEL_HBM);
	struct span s = channel_span(c, (has_hbm ? HBM_READ : DDR_READ) + write);

	for (uint32_t id = 0; id < n_units; id++) {
		uint64_t n = units(&s, LLC_UNIT, n_units, id), half = n / 2;
		uint64_t counts[LLC_EVENTS] = { n - half, half, half, n - half, n * 2, n, n * 2, n };

		for (int e = 0; e < LLC_EVENTS; e++) {
			struct old_count r = { since_start(c, now), counts[e], events[write][e], id };
			struct {
				uint32_t reserved, count, event, id;
				uint64_t time;
			} r2 = { 0, (uint32_t)counts[e], events[write][e], id, real_ns() };

			channel_put(c, is_950(c) ? (void *)&r2 : (void *)&r, 24);
		}
	}
}

static void three(uint32_t *v, uint64_t average)
{
	v[0] = (uint32_t)(average * 3 / 4);
	v[1] = (uint32_t)(average * 5 / 4);
	v[2] = (uint32_t)average;
}

/* In bytes a us; a rest below one goes to the next sample, so that rates add up to what was moved. */
static uint64_t rate_in_mb(const struct channel *c, uint64_t now, enum counter counter)
{
	struct series *s = c->state;
	uint64_t ns = now - c->last, amount = s->after[counter] - s->before[counter] + s->rest[counter];
	uint64_t mb = rate(c, now, amount) / 1000000, counted = mb * ns / 1000;

	s->rest[counter] = amount > counted ? amount - counted : 0;
	return mb;
}

/* Bandwidths in bytes a us, which is MB/s. Writes to the host are posted; reads cause completions. */
static void pcie(struct channel *c, uint64_t now)
{
	struct span rx = channel_span(c, PCIE_RX);
	struct {
		uint64_t time;
		uint32_t device;
		uint32_t v[21];
	} r = { .time = channel_device_ns(c, now), .device = c->device->id };

	three(r.v, rate_in_mb(c, now, PCIE_TX));
	three(r.v + 3, rate(c, now, rx.amount / 16) / 1000000);
	three(r.v + 9, rx.amount ? 850 : 0);
	three(r.v + 18, rate_in_mb(c, now, PCIE_RX));
	channel_put(c, &r, sizeof(r));
}

static void put_text(struct channel *c, const char *text)
{
	channel_put(c, text, (uint32_t)strlen(text));
}

static int sample_stamp(const struct channel *c, uint64_t now, char *to, size_t size)
{
	uint64_t ns = channel_device_ns(c, now);

	return snprintf(to, size, "%" PRIu64 ":%09" PRIu64, ns / 1000000000u, ns % 1000000000u);
}

/* Totals since the start, so that the first line is at 0. */
static void hccs(struct channel *c, uint64_t now)
{
	const struct series *s = c->state;
	char line[128];
	int n;

	if (!c->last)
		put_text(c, "timestamp: tx rx\n");
	n = sample_stamp(c, now, line, sizeof(line));
	snprintf(line + n, sizeof(line) - (size_t)n, " %" PRIu64 " %" PRIu64 "\n",
		 s->after[HCCS_TX] - s->first[HCCS_TX], s->after[HCCS_RX] - s->first[HCCS_RX]);
	put_text(c, line);
}

static uint64_t sample_packets(uint64_t bytes)
{
	return (bytes + PACKET_BYTES - 1) / PACKET_BYTES;
}

/* Of RoCE the payload is counted, of the port all that is on the wire. */
static uint64_t net_bytes(const struct channel *c, uint64_t bytes)
{
	return c->id == CHANNEL_NIC ? bytes + sample_packets(bytes) * PACKET_HEAD : bytes;
}

static int net_half(const struct channel *c, uint64_t now, enum counter counter, char *to, size_t size)
{
	const struct series *s = c->state;
	uint64_t before = s->before[counter] - s->first[counter],
		 after = s->after[counter] - s->first[counter];
	uint64_t bytes = net_bytes(c, after) - net_bytes(c, before);

	return snprintf(to, size, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " 0 0",
			rate(c, now, sample_packets(after) - sample_packets(before)), rate(c, now, bytes),
			sample_packets(after), net_bytes(c, after));
}

static void net(struct channel *c, uint64_t now)
{
	char line[512];
	size_t n;

	if (!c->last)
		put_text(c, "timestamp bandwidth rxPacket/s rxByte/s rxPackets rxBytes rxErrors rxDropped "
			    "txPacket/s txByte/s txPackets txBytes txErrors txDropped funcId\n");
	n = (size_t)sample_stamp(c, now, line, sizeof(line));
	n += (size_t)snprintf(line + n, sizeof(line) - n, " %u", NIC_MBIT);
	n += (size_t)net_half(c, now, ROCE_RX, line + n, sizeof(line) - n);
	n += (size_t)net_half(c, now, ROCE_TX, line + n, sizeof(line) - n);
	snprintf(line + n, sizeof(line) - n, " 0\n");
	put_text(c, line);
}

/* The first master reads and writes for kernels, the second for the links. */
static void qos_bandwidths(struct channel *c, uint64_t now, uint32_t *bw)
{
	struct span r = channel_span(c, HBM_READ), w = channel_span(c, HBM_WRITE);
	struct span tx = channel_span(c, is_950(c) ? UB_TX : HCCS_TX);
	struct span rx = channel_span(c, is_950(c) ? UB_RX : HCCS_RX);

	bw[0] = (uint32_t)(rate(c, now, r.amount + w.amount) >> 20);
	bw[1] = (uint32_t)(rate(c, now, tx.amount + rx.amount) >> 20);
}

static void qos(struct channel *c, uint64_t now)
{
	struct {
		uint32_t reserved[2];
		uint64_t reserved2, ticks;
		uint32_t bw[10];
	} r = { .ticks = channel_ticks(c, now) };

	qos_bandwidths(c, now, r.bw);
	channel_put(c, &r, sizeof(r));
}

/* Parameters: period, -, 1 the applications' or 2 the device's, -. */
static void npu_mem(struct channel *c, uint64_t now)
{
	uint32_t event = channel_config(c, 2) == 2;
	bool hbm_chip = chip_channel(board_chip(&c->device->board), CHANNEL_HBM);
	uint64_t used = board_hbm_used(&c->device->board) + (event ? BOARD_OWN_BYTES : 0);
	struct {
		uint32_t time, event;
		uint64_t reserved, ddr, hbm;
	} r = { .time = (uint32_t)since_start(c, now), .event = event };
	struct {
		uint32_t reserved, event;
		uint64_t time, ddr, hbm;
	} r2 = { .event = event, .time = since_start(c, now) };

	r.hbm = r2.hbm = hbm_chip ? used : 0;
	r.ddr = r2.ddr = hbm_chip ? 0 : used;
	channel_put(c, is_950(c) ? (void *)&r2 : (void *)&r, sizeof(r));
}

static void module_mem(struct channel *c, uint64_t now)
{
	static const uint32_t modules[] = { 3, 7, 33 }; /* HCCL, RUNTIME, APP */
	uint64_t used = board_hbm_used(&c->device->board);
	uint64_t bytes[] = { 200u << 20, used / 16, used - used / 16 };

	/* The host's counter, which at the rate that the driver reports is its raw clock. */
	for (int i = 0; i < 3; i++) {
		struct {
			uint32_t module, reserved;
			uint64_t time, bytes;
		} r = { .module = modules[i], .time = now, .bytes = bytes[i] };

		channel_put(c, &r, sizeof(r));
	}
}

#define LP_ENTRIES 55

static void put_lp(struct channel *c, uint64_t now, uint32_t type, uint32_t value)
{
	struct {
		uint32_t n, type;
		struct {
			uint64_t ticks;
			uint32_t value, reserved;
		} entry[LP_ENTRIES];
	} r = { .n = 1, .type = type, .entry[0] = { channel_ticks(c, now), value, 0 } };

	channel_put(c, &r, sizeof(r));
}

/* Parameters: period, version; from version 1 on there are voltages too. */
static void lp(struct channel *c, uint64_t now)
{
	put_lp(c, now, 0, board_chip(&c->device->board)->core_mhz);
	if (channel_config(c, 1)) {
		put_lp(c, now, 1, 850);
		put_lp(c, now, 2, 800);
	}
}

static void ub(struct channel *c, uint64_t now)
{
	struct span tx = channel_span(c, UB_TX), rx = channel_span(c, UB_RX);
	const struct series *s = c->state;

	for (uint32_t port = 0; port < UB_PORTS; port++) {
		uint64_t moved[2] = { units(&rx, 1, UB_PORTS, port), units(&tx, 1, UB_PORTS, port) };
		uint64_t total[2] = {
			(s->after[UB_RX] + port) / UB_PORTS - (s->first[UB_RX] + port) / UB_PORTS,
			(s->after[UB_TX] + port) / UB_PORTS - (s->first[UB_TX] + port) / UB_PORTS
		};
		struct {
			uint16_t magic, reserved, port, reserved2;
			uint64_t time, bind[2], node[2][6];
		} r = { .magic = 0x6bd3, .port = (uint16_t)port, .time = channel_device_ns(c, now) };

		for (int i = 0; i < 2; i++) {
			r.bind[i] = moved[i];
			r.node[i][0] = rate(c, now, moved[i]);
			r.node[i][1] = rate(c, now, sample_packets(moved[i]));
			r.node[i][2] = total[i];
			r.node[i][3] = sample_packets(total[i]);
		}
		channel_put(c, &r, sizeof(r));
	}
}

/* --- channel 52: seven kinds of records, each with a switch and a period of its own --- */

enum { SOC_ACC, SOC_LEVELS, SOC_DIES, SOC_CHIPS, SOC_POWER, SOC_INFO, SOC_UB };
enum { F_QOS = 0x18, F_DIES, F_ACC, F_CHIPS, F_LEVELS, F_POWER };
enum { LINK_PA = 0x3f, LINK_PCIE = 0x22 };

struct soc_record {
	uint16_t func, magic, pad[2];
	uint64_t ticks;
	uint16_t reserved, id;
	uint32_t reserved2;
	union {
		struct {
			uint64_t reserved, v[4];
		} wide;
		struct {
			uint64_t reserved;
			uint32_t v[8];
		} narrow;
		struct {
			uint64_t reserved;
			uint16_t bits;
		} levels;
		struct {
			uint16_t v[20];
		} power;
		struct {
			uint32_t v[10];
		} bandwidths;
	};
};

_Static_assert(sizeof(struct soc_record) == 64, "format");

static void put_soc(struct channel *c, uint64_t now, uint32_t func, uint32_t top, uint16_t id,
		    const struct soc_record *values)
{
	struct soc_record r = *values;

	r.func = (uint16_t)(func | (c->count++ & 0xf) << 6 | top << 10);
	r.magic = 0x6bd3;
	r.ticks = channel_ticks(c, now);
	r.id = id;
	channel_put(c, &r, sizeof(r));
}

/* One accelerator, the cores: bytes written and read since the last record, and how much is on its way. */
static void soc_acc(struct channel *c, uint64_t now)
{
	struct span rd = channel_span(c, HBM_READ), wr = channel_span(c, HBM_WRITE);
	struct soc_record r = { .wide = { .v = { wr.amount, rd.amount, wr.amount >> 16, rd.amount >> 16 } } };

	put_soc(c, now, F_ACC, 0, 0, &r);
}

/* A quarter of the memory's traffic is between the dies: for both, bytes since the last record. */
static void soc_dies(struct channel *c, uint64_t now)
{
	struct span rd = channel_span(c, HBM_READ), wr = channel_span(c, HBM_WRITE);
	uint32_t rx = (uint32_t)units(&rd, 4, 1, 0), tx = (uint32_t)units(&wr, 4, 1, 0);

	for (uint16_t die = 0; die < 2; die++) {
		uint32_t in = die ? tx : rx, out = die ? rx : tx;
		struct soc_record r = { .narrow = { .v = { in / 64, in / 64, 0, in, out / 64, out / 64, 0,
							   out } } };

		put_soc(c, now, F_DIES, 0, die, &r);
	}
}

static void soc_chips(struct channel *c, uint64_t now)
{
	struct span tx = channel_span(c, is_950(c) ? UB_TX : HCCS_TX),
		    rx = channel_span(c, is_950(c) ? UB_RX : HCCS_RX);
	struct span wr = channel_span(c, PCIE_TX), rd = channel_span(c, PCIE_RX);
	struct soc_record pa = { .wide = { .v = { rx.amount, tx.amount } } };
	struct soc_record pcie_record = { .wide = { .v = { wr.amount, rd.amount } } };

	put_soc(c, now, F_CHIPS, LINK_PA, 0, &pa);
	put_soc(c, now, F_CHIPS, LINK_PCIE, 0, &pcie_record);
}

static void soc_levels(struct channel *c, uint64_t now)
{
	struct span rd = channel_span(c, HBM_READ);
	uint64_t gb = rate(c, now, rd.amount) >> 30;
	struct soc_record r = { .levels = { .bits = (uint16_t)((gb > 7 ? 7 : gb) | (gb > 255 ? 255 : gb)
											   << 3) } };

	put_soc(c, now, F_LEVELS, 0, 0, &r);
}

/* Ten words, their halves swapped; the first is the power in 0.1 W. */
static void soc_power(struct channel *c, uint64_t now)
{
	uint32_t words[10] = { board_power(&c->device->board) };
	struct soc_record r = { 0 };

	for (int i = 0; i < 10; i++) {
		r.power.v[2 * i] = (uint16_t)(words[i] >> 16);
		r.power.v[2 * i + 1] = (uint16_t)words[i];
	}
	put_soc(c, now, F_POWER, 0, 0, &r);
}

static void soc_info(struct channel *c, uint64_t now)
{
	struct soc_record r = { 0 };

	qos_bandwidths(c, now, r.bandwidths.v);
	put_soc(c, now, F_QOS, 0, 0, &r);
}

static void soc_profile(struct channel *c, uint64_t now)
{
	static void (*const sorts[])(struct channel *, uint64_t) = {
		[SOC_ACC] = soc_acc,	 [SOC_LEVELS] = soc_levels, [SOC_DIES] = soc_dies,
		[SOC_CHIPS] = soc_chips, [SOC_POWER] = soc_power,   [SOC_INFO] = soc_info,
	};

	for (uint32_t i = 0; i < sizeof(sorts) / sizeof(*sorts); i++) {
		if (channel_on(c, 2 * i))
			sorts[i](c, now);
	}
}

static void (*sampler_of(uint32_t id))(struct channel *, uint64_t)
{
	switch (id) {
	case CHANNEL_HBM:
		return hbm;
	case CHANNEL_DDR:
		return ddr;
	case CHANNEL_LLC:
		return llc;
	case CHANNEL_PCIE:
		return pcie;
	case CHANNEL_HCCS:
		return hccs;
	case CHANNEL_NIC:
	case CHANNEL_ROCE:
		return net;
	case CHANNEL_QOS:
		return qos;
	case CHANNEL_NPU_MEM:
	case CHANNEL_NPU_APP_MEM:
		return npu_mem;
	case CHANNEL_NPU_MODULE_MEM:
		return module_mem;
	case CHANNEL_LP:
		return lp;
	case CHANNEL_UB:
		return ub;
	case CHANNEL_STARS_SOC_PROFILE:
		return soc_profile;
	case CHANNEL_FFTS_PROFILE_SAMPLE:
		return pmu_sample_ffts;
	default:
		return pmu_sample_aicore;
	}
}

/* The first look writes only what is no difference; text begins with a header and a line. */
static bool has_first(uint32_t id)
{
	return id == CHANNEL_HCCS || id == CHANNEL_NIC || id == CHANNEL_ROCE || id == CHANNEL_LP ||
	       id == CHANNEL_NPU_MEM || id == CHANNEL_NPU_APP_MEM || id == CHANNEL_NPU_MODULE_MEM;
}

void samples_collect(struct channel *c, uint64_t now)
{
	struct series *s = c->state ? c->state : calloc(1, sizeof(*s));

	if (!s)
		return;
	memcpy(s->before, s->after, sizeof(s->before));
	for (int i = 0; i < COUNTERS; i++)
		s->after[i] = links_total(&c->device->board, (enum counter)i);
	if (!c->state) {
		c->state = s;
		s->begin = now;
		memcpy(s->first, s->after, sizeof(s->first));
		memcpy(s->before, s->after, sizeof(s->before));
	}
	if (c->last || has_first(c->id)) {
		sampler_of(c->id)(c, now);
		truth_line("sample", "%u\t%u\t%" PRIu64, c->device->id, c->id, since_start(c, now));
	}
	c->last = now;
}

void samples_truth(const struct channel *c)
{
	const struct series *s = c->state;

	for (int i = 0; s && i < COUNTERS; i++) {
		if (s->after[i] != s->first[i])
			truth_line("sampled", "%u\t%u\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64, c->device->id,
				   c->id, links_name((enum counter)i), s->begin, c->last,
				   s->after[i] - s->first[i]);
	}
}
