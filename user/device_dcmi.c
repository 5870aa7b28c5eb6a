/* SPDX-License-Identifier: BSD-2-Clause */
#include "device_dcmi.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MOST_CARDS 64
#define NO_FUNCTION (-8255) /* DCMI's code for what it does not support */

/* Types of dcmi_get_device_utilization_rate */
enum {
	RATE_MEMORY = 1,
	RATE_AI_CORE = 2,
	RATE_AI_CPU = 3,
	RATE_CTRL_CPU = 4,
	RATE_BANDWIDTH = 5,
	RATE_HBM = 6,
	RATE_HBM_BANDWIDTH = 10,
	RATE_VECTOR = 12
};

int nps_dcmi__find(const struct nps_device_lib *lib, uint32_t device, struct nps_dcmi_place *place)
{
	int cards[MOST_CARDS], n = 0;

	if (!lib->dcmi)
		return -ENOENT;
	nps_device_lib__alive(lib);
	if (lib->card_list(&n, cards, MOST_CARDS))
		return -ENODEV;
	for (int c = 0; c < n && c < MOST_CARDS; c++) {
		int devices = 0, logic;

		nps_device_lib__alive(lib);
		if (lib->devices_in_card(cards[c], &devices))
			continue;
		for (int d = 0; d < devices && d < MOST_CARDS; d++) {
			nps_device_lib__alive(lib);
			if (!lib->logic_id(&logic, cards[c], d) && logic == (int)device) {
				*place = (struct nps_dcmi_place){ cards[c], d };
				return 0;
			}
		}
	}
	return -ENODEV;
}

static uint32_t rate(const struct nps_device_lib *lib, const struct nps_dcmi_place *place, int type)
{
	unsigned int percent = 0;

	if (!lib->utilization || lib->utilization(place->card, place->device, type, &percent) ||
	    percent > 100)
		return NPS_NPU_UNKNOWN;
	return percent;
}

void nps_dcmi__usage(const struct nps_device_lib *lib, const struct nps_dcmi_place *place, bool profiled,
		     struct nps_npu_usage *usage)
{
	struct nps_dcmi_hbm hbm = { 0 };
	unsigned int health;
	int number;

	usage->ai_core = profiled ? NPS_NPU_UNKNOWN : rate(lib, place, RATE_AI_CORE);
	usage->vector = profiled ? NPS_NPU_UNKNOWN : rate(lib, place, RATE_VECTOR);
	usage->ai_cpu = rate(lib, place, RATE_AI_CPU);
	usage->ctrl_cpu = rate(lib, place, RATE_CTRL_CPU);
	usage->memory = rate(lib, place, RATE_HBM);
	if (usage->memory == NPS_NPU_UNKNOWN)
		usage->memory = rate(lib, place, RATE_MEMORY);
	usage->bandwidth = rate(lib, place, RATE_BANDWIDTH);
	usage->hbm_bandwidth = rate(lib, place, RATE_HBM_BANDWIDTH);
	usage->hbm_total = usage->hbm_used = 0;
	usage->hbm_temperature = usage->temperature = INT32_MAX;
	usage->power = usage->health = NPS_NPU_UNKNOWN;
	if (lib->hbm && !lib->hbm(place->card, place->device, &hbm)) {
		usage->hbm_total = hbm.size_mb << 20;
		usage->hbm_used = hbm.usage_mb << 20;
		usage->hbm_temperature = hbm.temperature;
	}
	if (lib->temperature && !lib->temperature(place->card, place->device, &number))
		usage->temperature = number;
	if (lib->power && !lib->power(place->card, place->device, &number) && number >= 0)
		usage->power = (uint32_t)number;
	if (lib->health && !lib->health(place->card, place->device, &health))
		usage->health = health;
}

size_t nps_dcmi__processes(const struct nps_device_lib *lib, const struct nps_dcmi_place *place,
			   struct nps_npu_process list[NPS_DCMI_PROCESSES])
{
	struct nps_dcmi_process found[NPS_DCMI_PROCESSES] = { 0 };
	int n = NPS_DCMI_PROCESSES;
	size_t kept = 0;

	nps_device_lib__alive(lib);
	if (!lib->processes || lib->processes(place->card, place->device, found, &n))
		return 0;
	for (int i = 0; i < n && i < NPS_DCMI_PROCESSES; i++)
		if (found[i].pid > 0)
			list[kept++] = (struct nps_npu_process){ .pid = (uint32_t)found[i].pid,
								 .bytes = found[i].bytes };
	return kept;
}

bool nps_dcmi__holds(const struct nps_device_lib *lib, const struct nps_dcmi_place *place, pid_t pid,
		     bool *holds)
{
	struct nps_dcmi_process found[NPS_DCMI_PROCESSES] = { 0 };
	int n = NPS_DCMI_PROCESSES;

	*holds = false;
	nps_device_lib__alive(lib);
	if (!lib->processes || lib->processes(place->card, place->device, found, &n) || n < 0 ||
	    n >= NPS_DCMI_PROCESSES)
		return false;
	for (int i = 0; i < n; i++)
		*holds |= found[i].pid == pid;
	return true;
}

int nps_dcmi__netdev(const struct nps_device_lib *lib, const struct nps_dcmi_place *place, uint64_t raw,
		     char line[NPS_DCMI_LINE])
{
	/* PFC, bytes, bad bytes of the MAC; packets, errors, CNP of RoCE; its retries; bytes of the NIC: sent, received */
	static const uint8_t order[] = { 2, 11, 21, 25, 23, 27, 33, 30, 34, 31, 37, 36, 42, 45, 47 };
	struct nps_dcmi_packets p;
	int err, len;

	if (!lib->packets)
		return NO_FUNCTION;
	memset(&p, 0, sizeof(p));
	err = lib->packets(place->card, place->device, 0, &p);
	if (err)
		return err;
	len = snprintf(line, NPS_DCMI_LINE, "%llu", (unsigned long long)raw);
	for (size_t i = 0; i < sizeof(order); i++)
		len += snprintf(line + len, NPS_DCMI_LINE - (size_t)len, " %llu",
				(unsigned long long)p.counters[order[i]]);
	snprintf(line + len, NPS_DCMI_LINE - (size_t)len, "\n");
	return 0;
}
