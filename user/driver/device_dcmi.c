/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver/device_dcmi.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#define MOST_CARDS 64
#define NO_FUNCTION (-8255) /* DCMI's code for unsupported functions */

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

/* The value, of 32 bits, of a function of the device. False: it has none. */
static bool value_of(const struct nps_device_lib *lib, const struct nps_dcmi_unit *unit,
		     enum nps_worker_op op, int kind, int64_t *value)
{
	return !nps_device_lib__dcmi_value(lib, op, unit->card, unit->device, kind, value) &&
	       *value >= INT32_MIN && *value <= UINT32_MAX;
}

int nps_dcmi__find(const struct nps_device_lib *lib, uint32_t device, struct nps_dcmi_unit *unit)
{
	int cards[MOST_CARDS];
	size_t got = 0;

	if (!lib->has[NPS_WORKER_DCMI])
		return -ENOENT;
	if (nps_device_lib__dcmi_data(lib, NPS_WORKER_CARDS, 0, 0, cards, sizeof(cards), &got))
		return -ENODEV;
	for (size_t c = 0; c < got / sizeof(*cards); c++) {
		int64_t devices = 0, logic;

		if (nps_device_lib__dcmi_value(lib, NPS_WORKER_CARD_DEVICES, cards[c], 0, 0, &devices))
			continue;
		for (int d = 0; d < devices && d < MOST_CARDS; d++)
			if (!nps_device_lib__dcmi_value(lib, NPS_WORKER_LOGIC_ID, cards[c], d, 0, &logic) &&
			    logic == device) {
				*unit = (struct nps_dcmi_unit){ cards[c], d };
				return 0;
			}
	}
	return -ENODEV;
}

static uint32_t rate(const struct nps_device_lib *lib, const struct nps_dcmi_unit *unit, int type)
{
	int64_t percent;

	if (!value_of(lib, unit, NPS_WORKER_RATE, type, &percent) || percent < 0 || percent > 100)
		return NPS_NPU_UNKNOWN;
	return (uint32_t)percent;
}

void nps_dcmi__usage(const struct nps_device_lib *lib, const struct nps_dcmi_unit *unit, bool profiled,
		     struct nps_npu_usage *usage)
{
	struct nps_dcmi_hbm hbm = { 0 };
	int64_t value;
	size_t got;

	usage->ai_core = profiled ? NPS_NPU_UNKNOWN : rate(lib, unit, RATE_AI_CORE);
	usage->vector = profiled ? NPS_NPU_UNKNOWN : rate(lib, unit, RATE_VECTOR);
	usage->ai_cpu = rate(lib, unit, RATE_AI_CPU);
	usage->ctrl_cpu = rate(lib, unit, RATE_CTRL_CPU);
	usage->memory = rate(lib, unit, RATE_HBM);
	if (usage->memory == NPS_NPU_UNKNOWN)
		usage->memory = rate(lib, unit, RATE_MEMORY);
	usage->bandwidth = rate(lib, unit, RATE_BANDWIDTH);
	usage->hbm_bandwidth = rate(lib, unit, RATE_HBM_BANDWIDTH);
	usage->hbm_total = usage->hbm_used = 0;
	usage->hbm_temperature = usage->temperature = INT32_MAX;
	usage->power = usage->health = NPS_NPU_UNKNOWN;
	if (!nps_device_lib__dcmi_data(lib, NPS_WORKER_HBM, unit->card, unit->device, &hbm, sizeof(hbm),
				       &got) &&
	    got == sizeof(hbm)) {
		usage->hbm_total = hbm.size_mb << 20;
		usage->hbm_used = hbm.usage_mb << 20;
		usage->hbm_temperature = hbm.temperature;
	}
	if (value_of(lib, unit, NPS_WORKER_TEMPERATURE, 0, &value))
		usage->temperature = (int32_t)value;
	if (value_of(lib, unit, NPS_WORKER_POWER, 0, &value) && value >= 0)
		usage->power = (uint32_t)value;
	if (value_of(lib, unit, NPS_WORKER_HEALTH, 0, &value))
		usage->health = (uint32_t)value;
}

/* Processes of the device. Returns their number; negative: unknown. */
static int unit_list_processes(const struct nps_device_lib *lib, const struct nps_dcmi_unit *unit,
			       struct nps_dcmi_process found[NPS_DCMI_PROCESSES])
{
	size_t got;

	/* In a container they have other pids than ours. */
	if (!nps_device_lib__is_hosts(lib) ||
	    nps_device_lib__dcmi_data(lib, NPS_WORKER_PROCESSES, unit->card, unit->device, found,
				      NPS_DCMI_PROCESSES * sizeof(*found), &got))
		return -1;
	return (int)(got / sizeof(*found));
}

size_t nps_dcmi__processes(const struct nps_device_lib *lib, const struct nps_dcmi_unit *unit,
			   struct nps_npu_process list[NPS_DCMI_PROCESSES])
{
	struct nps_dcmi_process found[NPS_DCMI_PROCESSES] = { 0 };
	int n = unit_list_processes(lib, unit, found);
	size_t kept = 0;

	for (int i = 0; i < n; i++)
		if (found[i].pid > 0)
			list[kept++] = (struct nps_npu_process){ .pid = (uint32_t)found[i].pid,
								 .bytes = found[i].bytes };
	return kept;
}

bool nps_dcmi__holds(const struct nps_device_lib *lib, const struct nps_dcmi_unit *unit, pid_t pid,
		     bool *holds)
{
	struct nps_dcmi_process found[NPS_DCMI_PROCESSES] = { 0 };
	int n = unit_list_processes(lib, unit, found);

	*holds = false;
	if (n < 0 || n >= NPS_DCMI_PROCESSES)
		return false;
	for (int i = 0; i < n; i++)
		*holds |= found[i].pid == pid;
	return true;
}

int nps_dcmi__netdev(const struct nps_device_lib *lib, const struct nps_dcmi_unit *unit, uint64_t raw,
		     char line[NPS_DCMI_LINE])
{
	/*
	 * sent and received: PFC, bytes, bad bytes of the MAC; packets, errors,
	 * CNP of RoCE; its retries; bytes of the NIC
	 */
	static const uint8_t order[] = { 2, 11, 21, 25, 23, 27, 33, 30, 34, 31, 37, 36, 42, 45, 47 };
	struct nps_dcmi_packets p;
	size_t got;
	int err, len;

	err = nps_device_lib__dcmi_data(lib, NPS_WORKER_PACKETS, unit->card, unit->device, &p, sizeof(p),
					&got);
	if (err)
		return err == NPS_WORKER_NO_FUNCTION ? NO_FUNCTION : err;
	if (got != sizeof(p))
		return -EPROTO;
	len = snprintf(line, NPS_DCMI_LINE, "%llu", (unsigned long long)raw);
	for (size_t i = 0; i < sizeof(order); i++)
		len += snprintf(line + len, NPS_DCMI_LINE - (size_t)len, " %llu",
				(unsigned long long)p.counters[order[i]]);
	snprintf(line + len, NPS_DCMI_LINE - (size_t)len, "\n");
	return 0;
}
