/* SPDX-License-Identifier: BSD-2-Clause */
/* The device management interface, as far as the simulation has it. */
#ifndef NPUSIM_ABI_DCMI_H
#define NPUSIM_ABI_DCMI_H

#include <stdint.h>

#pragma GCC visibility push(default)

enum {
	DCMI_OK = 0,
	DCMI_ERR_CODE_INVALID_PARAMETER = -8001,
	DCMI_ERR_CODE_OPER_NOT_PERMITTED = -8002,
	DCMI_ERR_CODE_TIME_OUT = -8006,
	DCMI_ERR_CODE_INVALID_DEVICE_ID = -8008,
	DCMI_ERR_CODE_NOT_READY = -8012,
	DCMI_ERR_CODE_NOT_SUPPORT_IN_CONTAINER = -8013,
	DCMI_ERR_CODE_IS_UPGRADING_OR_RESET = -8015,
	DCMI_ERR_CODE_NOT_SUPPORT = -8255,
};

struct dcmi_multi_utilization_info {
	uint32_t aic, aiv, aicore, npu, reserved[8];
};

struct dcmi_hbm_info {
	uint64_t memory_size; /* MB */
	uint32_t freq;
	uint64_t memory_usage;
	int32_t temp;
	uint32_t bandwith_util_rate;
};

struct dcmi_get_memory_info_stru {
	uint64_t memory_size, memory_available;
	uint32_t freq;
	uint64_t hugepagesize, hugepages_total, hugepages_free;
	uint32_t utiliza;
	uint8_t reserve[60];
};

struct dcmi_aicore_info {
	uint32_t freq, cur_freq;
};

struct dcmi_aicpu_info {
	uint32_t max_freq, cur_freq, aicpu_num, util_rate[16];
};

struct dcmi_proc_mem_info {
	int32_t proc_id;
	uint64_t proc_mem_usage;
};

struct dcmi_llc_perf {
	uint32_t wr_hit_rate, rd_hit_rate, throughput;
};

struct dcmi_pcie_link_bandwidth_info {
	int32_t profiling_time;
	uint32_t tx_p[3], tx_np[3], tx_cpl[3], tx_np_lantency[3], rx_p[3], rx_np[3], rx_cpl[3];
};

struct dcmi_hccs_bandwidth_info {
	int32_t profiling_time;
	double total_txbw, total_rxbw, tx_bandwidth[16], rx_bandwidth[16];
};

struct dcmi_hccs_statistic_info {
	uint32_t tx_cnt[16], rx_cnt[16], crc_err_cnt[16], retry_cnt[16], reserved[64];
};

struct dcmi_hccs_statistic_info_u64 {
	uint64_t tx_cnt[16], rx_cnt[16], crc_err_cnt[16], retry_cnt[16], reserved[64];
};

struct dcmi_network_rdma_bandwidth_info {
	uint32_t tx_bandwidth, rx_bandwidth;
};

/* Indexes in the table of 48 counters that the simulation counts. */
enum {
	MAC_TX_PKT = 20,
	MAC_TX_OCT = 21,
	MAC_RX_PKT = 24,
	MAC_RX_OCT = 25,
	ROCE_RX_ALL = 30,
	ROCE_TX_ALL = 33
};
enum { NIC_TX_PKG = 44, NIC_TX_OCT = 45, NIC_RX_PKG = 46, NIC_RX_OCT = 47 };

struct dcmi_network_pkt_stats_info {
	uint64_t counter[48];
	int64_t tv_sec, tv_usec;
	uint8_t reserved[64];
};

struct dcmi_pcie_info_all {
	uint32_t vendorid, subvendorid, deviceid, subdeviceid;
	int32_t domain;
	uint32_t bdf_busid, bdf_deviceid, bdf_funcid;
	uint8_t reserved[32];
};

struct dcmi_chip_info_v2 {
	uint8_t chip_type[32], chip_name[32], chip_ver[32];
	uint32_t aicore_cnt;
	uint8_t npu_name[32];
};

struct dcmi_cgroup_info {
	uint64_t limit_in_bytes, max_usage_in_bytes, usage_in_bytes;
};

union dcmi_sensor_info {
	uint8_t uchar;
	uint16_t ushort;
	uint32_t uint;
	int32_t iint;
	int8_t temp[16];
	int32_t ntc_tmp[4];
	int32_t data[16];
};

_Static_assert(sizeof(struct dcmi_multi_utilization_info) == 48, "ABI");
_Static_assert(sizeof(struct dcmi_hbm_info) == 32, "ABI");
_Static_assert(sizeof(struct dcmi_get_memory_info_stru) == 112, "ABI");
_Static_assert(sizeof(struct dcmi_proc_mem_info) == 16, "ABI");
_Static_assert(sizeof(struct dcmi_pcie_link_bandwidth_info) == 88, "ABI");
_Static_assert(sizeof(struct dcmi_hccs_bandwidth_info) == 280, "ABI");
_Static_assert(sizeof(struct dcmi_network_pkt_stats_info) == 464, "ABI");
_Static_assert(sizeof(struct dcmi_pcie_info_all) == 64, "ABI");
_Static_assert(sizeof(struct dcmi_chip_info_v2) == 132, "ABI");

int dcmi_init(void);
int dcmi_get_card_list(int *card_num, int *card_list, int list_len);
int dcmi_get_device_num_in_card(int card_id, int *device_num);
int dcmi_get_device_logic_id(int *logic_id, int card_id, int device_id);
int dcmi_get_device_phyid_from_logicid(unsigned int logicid, unsigned int *phyid);
int dcmi_get_card_id_device_id_from_logicid(int *card_id, int *device_id, unsigned int logicid);
int dcmi_get_device_utilization_rate(int card_id, int device_id, int input_type, unsigned int *rate);
int dcmi_get_device_multi_utilization_rate(int card_id, int device_id,
					   struct dcmi_multi_utilization_info *info);
int dcmi_get_device_hbm_info(int card_id, int device_id, struct dcmi_hbm_info *info);
int dcmi_get_device_memory_info_v3(int card_id, int device_id, struct dcmi_get_memory_info_stru *info);
int dcmi_get_device_aicore_info(int card_id, int device_id, struct dcmi_aicore_info *info);
int dcmi_get_device_aicpu_info(int card_id, int device_id, struct dcmi_aicpu_info *info);
int dcmi_get_device_frequency(int card_id, int device_id, int input_type, unsigned int *frequency);
int dcmi_get_device_temperature(int card_id, int device_id, int *temperature);
int dcmi_get_device_power_info(int card_id, int device_id, int *power);
int dcmi_get_device_voltage(int card_id, int device_id, unsigned int *voltage);
int dcmi_get_device_sensor_info(int card_id, int device_id, int sensor_id, union dcmi_sensor_info *info);
int dcmi_get_device_resource_info(int card_id, int device_id, struct dcmi_proc_mem_info *info, int *num);
int dcmi_get_device_llc_perf_para(int card_id, int device_id, struct dcmi_llc_perf *info);
int dcmi_get_pcie_link_bandwidth_info(int card_id, int device_id, struct dcmi_pcie_link_bandwidth_info *info);
int dcmi_get_hccs_link_bandwidth_info(int card_id, int device_id, struct dcmi_hccs_bandwidth_info *info);
int dcmi_get_device_info(int card_id, int device_id, int main_cmd, unsigned int sub_cmd, void *buf,
			 unsigned int *size);
int dcmi_get_rdma_bandwidth_info(int card_id, int device_id, int port_id, unsigned int prof_time,
				 struct dcmi_network_rdma_bandwidth_info *info);
int dcmi_get_netdev_pkt_stats_info(int card_id, int device_id, int port_id,
				   struct dcmi_network_pkt_stats_info *info);
int dcmi_get_device_health(int card_id, int device_id, unsigned int *health);
int dcmi_get_device_errorcode_v2(int card_id, int device_id, int *error_count, unsigned int *error_code_list,
				 unsigned int list_len);
int dcmi_get_device_pcie_info_v2(int card_id, int device_id, struct dcmi_pcie_info_all *info);
int dcmi_get_device_chip_info_v2(int card_id, int device_id, struct dcmi_chip_info_v2 *info);
int dcmi_get_device_cgroup_info(int card_id, int device_id, struct dcmi_cgroup_info *info);
int dcmi_get_affinity_cpu_info_by_device_id(int card_id, int device_id, char *affinity_cpu, int *length);

#pragma GCC visibility pop

#endif
