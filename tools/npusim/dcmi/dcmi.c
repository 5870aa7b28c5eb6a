/* SPDX-License-Identifier: BSD-2-Clause */
/* Each card has one device, whose number is the card's. */
#include "../abi/dcmi.h"
#include "../hal/dsmi.h"
#include "../truth/truth.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MB (1u << 20)
#define HUGE_KB 2048u
#define IDLE_DEGREES 40
#define PACKET_BYTES 4096
#define PACKET_HEAD 82

static atomic_bool initialised;

int dcmi_init(void)
{
	atomic_store(&initialised, true);
	return DCMI_OK;
}

/* The checks that every call makes. */
static int query(int card, int device, const void *out, struct dsmi_state *s)
{
	int err;

	if (!atomic_load(&initialised))
		return DCMI_ERR_CODE_NOT_READY;
	if (!out || card < 0 || device < 0)
		return DCMI_ERR_CODE_INVALID_PARAMETER;
	if (device != 0 || (uint32_t)card >= dsmi_device_count())
		return DCMI_ERR_CODE_INVALID_DEVICE_ID;
	err = dsmi_read((uint32_t)card, s);
	if (err)
		return err == -1 ? DCMI_ERR_CODE_INVALID_DEVICE_ID : err;
	return s->fresh ? DCMI_ERR_CODE_IS_UPGRADING_OR_RESET : DCMI_OK;
}

/* Calls that a container may not make. */
static int query_as_host(int card, int device, const void *out, struct dsmi_state *s)
{
	return getenv("NPUSIM_CONTAINER") ? DCMI_ERR_CODE_NOT_SUPPORT_IN_CONTAINER
					  : query(card, device, out, s);
}

static void sleep_ms(uint32_t ms)
{
	const struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}

int dcmi_get_card_list(int *card_num, int *card_list, int list_len)
{
	int n = (int)dsmi_device_count();

	if (!atomic_load(&initialised))
		return DCMI_ERR_CODE_NOT_READY;
	if (!card_num || !card_list || list_len <= 0)
		return DCMI_ERR_CODE_INVALID_PARAMETER;
	for (int i = 0; i < n && i < list_len; i++)
		card_list[i] = i;
	*card_num = n;
	return DCMI_OK;
}

int dcmi_get_device_num_in_card(int card_id, int *device_num)
{
	if (!device_num || card_id < 0 || (uint32_t)card_id >= dsmi_device_count())
		return DCMI_ERR_CODE_INVALID_PARAMETER;
	*device_num = 1;
	return DCMI_OK;
}

int dcmi_get_device_logic_id(int *logic_id, int card_id, int device_id)
{
	if (!logic_id || device_id != 0 || card_id < 0 || (uint32_t)card_id >= dsmi_device_count())
		return DCMI_ERR_CODE_INVALID_PARAMETER;
	*logic_id = card_id;
	return DCMI_OK;
}

int dcmi_get_device_phyid_from_logicid(unsigned int logicid, unsigned int *phyid)
{
	if (!phyid || logicid >= dsmi_device_count())
		return DCMI_ERR_CODE_INVALID_PARAMETER;
	*phyid = logicid;
	return DCMI_OK;
}

int dcmi_get_card_id_device_id_from_logicid(int *card_id, int *device_id, unsigned int logicid)
{
	if (!card_id || !device_id || logicid >= dsmi_device_count())
		return DCMI_ERR_CODE_INVALID_PARAMETER;
	*card_id = (int)logicid;
	*device_id = 0;
	return DCMI_OK;
}

/* The cores' counters are the profiler's while it runs. */
static uint32_t cores_percent(const struct dsmi_state *s)
{
	return s->profiled ? 0 : (s->load + 5) / 10;
}

static uint32_t memory_percent(const struct dsmi_state *s)
{
	return (uint32_t)(s->hbm_used * 100 / s->hbm_total);
}

int dcmi_get_device_utilization_rate(int card_id, int device_id, int input_type, unsigned int *rate)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, rate, &s);

	if (err)
		return err;
	switch (input_type) {
	case 1: /* memory */
	case 6: /* HBM */
		*rate = memory_percent(&s);
		return DCMI_OK;
	case 2: /* AI Core */
	case 12: /* vector */
	case 13: /* NPU */
		*rate = cores_percent(&s);
		return DCMI_OK;
	case 3: /* AI CPU */
	case 4: /* control CPU */
		*rate = 0;
		return DCMI_OK;
	case 5: /* memory bandwidth */
	case 10: /* HBM bandwidth */
		*rate = s.load / 10;
		return DCMI_OK;
	default:
		return DCMI_ERR_CODE_NOT_SUPPORT;
	}
}

int dcmi_get_device_multi_utilization_rate(int card_id, int device_id,
					   struct dcmi_multi_utilization_info *info)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, info, &s);

	if (err)
		return err;
	memset(info, 0, sizeof(*info));
	info->aic = info->aiv = info->aicore = info->npu = cores_percent(&s);
	return DCMI_OK;
}

static int temperature(const struct dsmi_state *s)
{
	return IDLE_DEGREES + (int)(s->load / 40);
}

int dcmi_get_device_hbm_info(int card_id, int device_id, struct dcmi_hbm_info *info)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, info, &s);

	if (err)
		return err;
	*info = (struct dcmi_hbm_info){ .memory_size = s.hbm_total / MB,
					.freq = 1600,
					.memory_usage = s.hbm_used / MB,
					.temp = temperature(&s) - 3,
					.bandwith_util_rate = s.load / 10 };
	return DCMI_OK;
}

int dcmi_get_device_memory_info_v3(int card_id, int device_id, struct dcmi_get_memory_info_stru *info)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, info, &s);

	if (err)
		return err;
	*info = (struct dcmi_get_memory_info_stru){ .memory_size = s.hbm_total / MB,
						    .memory_available = (s.hbm_total - s.hbm_used) / MB,
						    .freq = 1600,
						    .hugepagesize = HUGE_KB,
						    .utiliza = memory_percent(&s) };
	return DCMI_OK;
}

int dcmi_get_device_aicore_info(int card_id, int device_id, struct dcmi_aicore_info *info)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, info, &s);

	if (err)
		return err;
	*info = (struct dcmi_aicore_info){ s.core_mhz, s.core_mhz };
	return DCMI_OK;
}

int dcmi_get_device_aicpu_info(int card_id, int device_id, struct dcmi_aicpu_info *info)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, info, &s);

	if (err)
		return err;
	*info = (struct dcmi_aicpu_info){ .max_freq = 2000, .cur_freq = 2000, .aicpu_num = s.aicpus };
	return DCMI_OK;
}

int dcmi_get_device_frequency(int card_id, int device_id, int input_type, unsigned int *frequency)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, frequency, &s);

	if (err)
		return err;
	switch (input_type) {
	case 2: /* control CPU */
		*frequency = 2000;
		return DCMI_OK;
	case 6: /* HBM */
		*frequency = 1600;
		return DCMI_OK;
	case 7: /* AI Core now */
	case 9: /* AI Core at most */
	case 12: /* vector */
		*frequency = s.core_mhz;
		return DCMI_OK;
	default:
		return DCMI_ERR_CODE_NOT_SUPPORT;
	}
}

int dcmi_get_device_temperature(int card_id, int device_id, int *degrees)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, degrees, &s);

	if (err)
		return err;
	*degrees = temperature(&s);
	return DCMI_OK;
}

int dcmi_get_device_power_info(int card_id, int device_id, int *power)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, power, &s);

	if (err)
		return err;
	*power = (int)s.power;
	return DCMI_OK;
}

int dcmi_get_device_voltage(int card_id, int device_id, unsigned int *voltage)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, voltage, &s);

	if (err)
		return err;
	*voltage = 85;
	return DCMI_OK;
}

int dcmi_get_device_sensor_info(int card_id, int device_id, int sensor_id, union dcmi_sensor_info *info)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, info, &s);

	if (err)
		return err;
	memset(info, 0, sizeof(*info));
	switch (sensor_id) {
	case 0: /* cluster, periphery, cores */
	case 1:
	case 2:
	case 3:
	case 14: /* HBM */
		info->iint = temperature(&s);
		return DCMI_OK;
	default:
		return DCMI_ERR_CODE_NOT_SUPPORT;
	}
}

int dcmi_get_device_resource_info(int card_id, int device_id, struct dcmi_proc_mem_info *info, int *num)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, num ? info : NULL, &s);

	if (err)
		return err;
	for (int i = 0; i < s.nprocesses; i++)
		info[i] = (struct dcmi_proc_mem_info){ s.process[i].pid, s.process[i].bytes };
	*num = s.nprocesses;
	return DCMI_OK;
}

int dcmi_get_device_llc_perf_para(int card_id, int device_id, struct dcmi_llc_perf *info)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, info, &s);

	if (err)
		return err;
	*info = (struct dcmi_llc_perf){ 75, 75, s.load * 1024 };
	return DCMI_OK;
}

/* What was moved while the call waited, per second. */
static uint64_t per_second(uint64_t before, uint64_t after, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)(after - before) * 1000000000u / (ns ? ns : 1));
}

/* Looks, waits, looks again. */
static int query_for(int card, int device, uint32_t ms, const void *out, struct dsmi_state s[2], uint64_t *ns)
{
	uint64_t begin = truth_now();
	int err = query_as_host(card, device, out, &s[0]);

	if (err)
		return err;
	sleep_ms(ms);
	*ns = truth_now() - begin;
	return query(card, device, out, &s[1]);
}

static void min_max_average(uint32_t *v, uint64_t bytes_per_second)
{
	v[2] = (uint32_t)(bytes_per_second / 1000000000u); /* MB/ms */
	v[0] = v[2] * 3 / 4;
	v[1] = v[2] * 5 / 4;
}

int dcmi_get_pcie_link_bandwidth_info(int card_id, int device_id, struct dcmi_pcie_link_bandwidth_info *info)
{
	struct dsmi_state s[2];
	uint64_t ns;
	int err, ms;

	if (!info || info->profiling_time <= 0 || info->profiling_time > 2000)
		return DCMI_ERR_CODE_INVALID_PARAMETER;
	ms = info->profiling_time;
	err = query_for(card_id, device_id, (uint32_t)ms, info, s, &ns);
	if (err)
		return err;
	memset(info, 0, sizeof(*info));
	info->profiling_time = ms;
	min_max_average(info->tx_p, per_second(s[0].pcie_tx, s[1].pcie_tx, ns));
	min_max_average(info->rx_cpl, per_second(s[0].pcie_rx, s[1].pcie_rx, ns));
	return DCMI_OK;
}

/* The totals add to what the caller left in them. */
int dcmi_get_hccs_link_bandwidth_info(int card_id, int device_id, struct dcmi_hccs_bandwidth_info *info)
{
	struct dsmi_state s[2];
	uint64_t ns;
	int err;

	if (!info || info->profiling_time <= 0 || info->profiling_time > 1000)
		return DCMI_ERR_CODE_INVALID_PARAMETER;
	err = query_for(card_id, device_id, (uint32_t)info->profiling_time, info, s, &ns);
	if (err)
		return err;
	if (!s[0].has_hccs)
		return DCMI_ERR_CODE_NOT_SUPPORT;
	info->tx_bandwidth[0] = (double)per_second(s[0].hccs_tx, s[1].hccs_tx, ns) / 1e9;
	info->rx_bandwidth[0] = (double)per_second(s[0].hccs_rx, s[1].hccs_rx, ns) / 1e9;
	info->total_txbw += info->tx_bandwidth[0];
	info->total_rxbw += info->rx_bandwidth[0];
	return DCMI_OK;
}

#define MAIN_HCCS 16
#define HCCS_STATISTIC 3
#define HCCS_STATISTIC_U64 5

int dcmi_get_device_info(int card_id, int device_id, int main_cmd, unsigned int sub_cmd, void *buf,
			 unsigned int *size)
{
	struct dcmi_hccs_statistic_info_u64 wide;
	struct dcmi_hccs_statistic_info narrow;
	struct dsmi_state s;
	int err = query(card_id, device_id, size ? buf : NULL, &s);

	if (err)
		return err;
	if (main_cmd != MAIN_HCCS || !s.has_hccs ||
	    (sub_cmd != HCCS_STATISTIC && sub_cmd != HCCS_STATISTIC_U64))
		return DCMI_ERR_CODE_NOT_SUPPORT;
	if (*size < (sub_cmd == HCCS_STATISTIC ? sizeof(narrow) : sizeof(wide)))
		return DCMI_ERR_CODE_INVALID_PARAMETER;
	memset(&wide, 0, sizeof(wide));
	memset(&narrow, 0, sizeof(narrow));
	wide.tx_cnt[0] = s.hccs_tx;
	wide.rx_cnt[0] = s.hccs_rx;
	narrow.tx_cnt[0] = (uint32_t)s.hccs_tx;
	narrow.rx_cnt[0] = (uint32_t)s.hccs_rx;
	*size = sub_cmd == HCCS_STATISTIC ? sizeof(narrow) : sizeof(wide);
	memcpy(buf, sub_cmd == HCCS_STATISTIC ? (void *)&narrow : (void *)&wide, *size);
	return DCMI_OK;
}

int dcmi_get_rdma_bandwidth_info(int card_id, int device_id, int port_id, unsigned int prof_time,
				 struct dcmi_network_rdma_bandwidth_info *info)
{
	struct dsmi_state s[2];
	uint64_t ns;
	int err;

	if (port_id != 0 || prof_time < 100 || prof_time > 10000)
		return DCMI_ERR_CODE_INVALID_PARAMETER;
	err = query_for(card_id, device_id, prof_time, info, s, &ns);
	if (err)
		return err;
	info->tx_bandwidth = (uint32_t)(per_second(s[0].roce_tx, s[1].roce_tx, ns) / MB);
	info->rx_bandwidth = (uint32_t)(per_second(s[0].roce_rx, s[1].roce_rx, ns) / MB);
	return DCMI_OK;
}

static uint64_t dcmi_packets(uint64_t bytes)
{
	return (bytes + PACKET_BYTES - 1) / PACKET_BYTES;
}

int dcmi_get_netdev_pkt_stats_info(int card_id, int device_id, int port_id,
				   struct dcmi_network_pkt_stats_info *info)
{
	struct timespec now;
	struct dsmi_state s;
	int err = port_id ? DCMI_ERR_CODE_INVALID_PARAMETER : query(card_id, device_id, info, &s);
	uint64_t tx, rx;

	if (err)
		return err;
	memset(info, 0, sizeof(*info));
	tx = dcmi_packets(s.roce_tx);
	rx = dcmi_packets(s.roce_rx);
	info->counter[MAC_TX_PKT] = info->counter[ROCE_TX_ALL] = info->counter[NIC_TX_PKG] = tx;
	info->counter[MAC_RX_PKT] = info->counter[ROCE_RX_ALL] = info->counter[NIC_RX_PKG] = rx;
	info->counter[MAC_TX_OCT] = info->counter[NIC_TX_OCT] = s.roce_tx + tx * PACKET_HEAD;
	info->counter[MAC_RX_OCT] = info->counter[NIC_RX_OCT] = s.roce_rx + rx * PACKET_HEAD;
	clock_gettime(CLOCK_REALTIME, &now);
	info->tv_sec = now.tv_sec;
	info->tv_usec = now.tv_nsec / 1000;
	return DCMI_OK;
}

int dcmi_get_device_health(int card_id, int device_id, unsigned int *health)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, health, &s);

	if (err)
		return err;
	*health = 0;
	return DCMI_OK;
}

int dcmi_get_device_errorcode_v2(int card_id, int device_id, int *error_count, unsigned int *error_code_list,
				 unsigned int list_len)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, error_code_list ? error_count : NULL, &s);

	(void)list_len;
	if (err)
		return err;
	*error_count = 0;
	return DCMI_OK;
}

int dcmi_get_device_pcie_info_v2(int card_id, int device_id, struct dcmi_pcie_info_all *info)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, info, &s);

	if (err)
		return err;
	*info = (struct dcmi_pcie_info_all){ .vendorid = 0x19e5,
					     .subvendorid = 0x0200,
					     .deviceid = 0xd802,
					     .subdeviceid = 0x0100,
					     .bdf_busid = 0x81 + (uint32_t)card_id };
	return DCMI_OK;
}

int dcmi_get_device_chip_info_v2(int card_id, int device_id, struct dcmi_chip_info_v2 *info)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, info, &s);

	if (err)
		return err;
	memset(info, 0, sizeof(*info));
	snprintf((char *)info->chip_type, sizeof(info->chip_type), "Ascend");
	snprintf((char *)info->chip_name, sizeof(info->chip_name), "%s", s.chip_name);
	snprintf((char *)info->chip_ver, sizeof(info->chip_ver), "V1");
	snprintf((char *)info->npu_name, sizeof(info->npu_name), "%s", s.soc);
	info->aicore_cnt = s.aicores;
	return DCMI_OK;
}

int dcmi_get_device_cgroup_info(int card_id, int device_id, struct dcmi_cgroup_info *info)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, info, &s);

	if (err)
		return err;
	*info = (struct dcmi_cgroup_info){ s.hbm_total, s.hbm_used, s.hbm_used };
	return DCMI_OK;
}

int dcmi_get_affinity_cpu_info_by_device_id(int card_id, int device_id, char *affinity_cpu, int *length)
{
	struct dsmi_state s;
	int err = query(card_id, device_id, length ? affinity_cpu : NULL, &s);

	if (err)
		return err;
	if (*length < 8)
		return DCMI_ERR_CODE_INVALID_PARAMETER;
	*length = snprintf(affinity_cpu, (size_t)*length, "0-%d", 1);
	return DCMI_OK;
}
