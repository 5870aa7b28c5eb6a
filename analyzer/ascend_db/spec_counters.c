/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the device. */
#include "ascend_db/spec.h"

#define C(...) NPS_DB_C(__VA_ARGS__)
#define CB(...) NPS_DB_CB(__VA_ARGS__)

static const struct nps_db_column hbm[] = {
	C(hbm, "deviceId", INTEGER, NUMBER, device),	 C(hbm, "timestampNs", INTEGER, NUMBER, timestamp),
	C(hbm, "bandwidth", NUMERIC, NUMBER, bandwidth), C(hbm, "hbmId", INTEGER, NUMBER, id),
	C(hbm, "type", INTEGER, STRING, type),
};

static const struct nps_db_column llc[] = {
	C(llc, "deviceId", INTEGER, NUMBER, device),	   C(llc, "llcId", INTEGER, NUMBER, id),
	C(llc, "timestampNs", INTEGER, NUMBER, timestamp), C(llc, "hitRate", REAL, NUMBER, hit_rate),
	C(llc, "throughput", INTEGER, NUMBER, throughput), C(llc, "mode", INTEGER, STRING, mode),
};

static const struct nps_db_column ddr[] = {
	C(ddr, "deviceId", INTEGER, NUMBER, device),
	C(ddr, "timestampNs", INTEGER, NUMBER, timestamp),
	C(ddr, "read", NUMERIC, NUMBER, read),
	C(ddr, "write", NUMERIC, NUMBER, write),
};

static const struct nps_db_column frequency[] = {
	C(frequency, "deviceId", INTEGER, NUMBER, device),
	C(frequency, "timestampNs", NUMERIC, NUMBER, timestamp),
	C(frequency, "freq", INTEGER, NUMBER, mhz),
	CB(frequency, "dieId", NUMERIC, NUMBER, die),
};

/* The vendor's parser stores each level in the column of the other, and what reads the table expects it so. */
static const struct nps_db_column soc_level[] = {
	C(soc_level, "l2BufferBwLevel", INTEGER, NUMBER, mata),
	C(soc_level, "mataBwLevel", INTEGER, NUMBER, l2_buffer),
	C(soc_level, "timestampNs", NUMERIC, NUMBER, timestamp),
	C(soc_level, "deviceId", INTEGER, NUMBER, device),
};

static const struct nps_db_column acc_pmu[] = {
	C(acc_pmu, "accId", INTEGER, NUMBER, acc),
	C(acc_pmu, "readBwLevel", INTEGER, NUMBER, read_bandwidth),
	C(acc_pmu, "writeBwLevel", INTEGER, NUMBER, write_bandwidth),
	C(acc_pmu, "readOstLevel", INTEGER, NUMBER, read_ost),
	C(acc_pmu, "writeOstLevel", INTEGER, NUMBER, write_ost),
	C(acc_pmu, "timestampNs", NUMERIC, NUMBER, timestamp),
	C(acc_pmu, "deviceId", INTEGER, NUMBER, device),
};

static const struct nps_db_column hccs[] = {
	C(hccs, "deviceId", INTEGER, NUMBER, device),
	C(hccs, "timestampNs", INTEGER, NUMBER, timestamp),
	C(hccs, "txThroughput", NUMERIC, NUMBER, tx),
	C(hccs, "rxThroughput", NUMERIC, NUMBER, rx),
};

#define THREE(sql, column)                                                                                   \
	C(pcie, sql "Min", NUMERIC, NUMBER, column##_min),                                                   \
		C(pcie, sql "Max", NUMERIC, NUMBER, column##_max),                                           \
		C(pcie, sql "Avg", NUMERIC, NUMBER, column##_avg)

static const struct nps_db_column pcie[] = {
	C(pcie, "deviceId", INTEGER, NUMBER, device),
	C(pcie, "timestampNs", INTEGER, NUMBER, timestamp),
	THREE("txPost", tx_post),
	THREE("txNonpost", tx_nonpost),
	THREE("txCpl", tx_cpl),
	THREE("txNonpostLatency", latency),
	THREE("rxPost", rx_post),
	THREE("rxNonpost", rx_nonpost),
	THREE("rxCpl", rx_cpl),
};

static const struct nps_db_column port[] = {
	C(port, "deviceId", INTEGER, NUMBER, device),
	C(port, "timestampNs", INTEGER, NUMBER, timestamp),
	C(port, "bandwidth", INTEGER, NUMBER, bandwidth),
	C(port, "rxPacketRate", NUMERIC, NUMBER, rx_packet_rate),
	C(port, "rxByteRate", NUMERIC, NUMBER, rx_byte_rate),
	C(port, "rxPackets", INTEGER, NUMBER, rx_packets),
	C(port, "rxBytes", INTEGER, NUMBER, rx_bytes),
	C(port, "rxErrors", INTEGER, NUMBER, rx_errors),
	C(port, "rxDropped", INTEGER, NUMBER, rx_dropped),
	C(port, "txPacketRate", NUMERIC, NUMBER, tx_packet_rate),
	C(port, "txByteRate", NUMERIC, NUMBER, tx_byte_rate),
	C(port, "txPackets", INTEGER, NUMBER, tx_packets),
	C(port, "txBytes", INTEGER, NUMBER, tx_bytes),
	C(port, "txErrors", INTEGER, NUMBER, tx_errors),
	C(port, "txDropped", INTEGER, NUMBER, tx_dropped),
	C(port, "funcId", INTEGER, NUMBER, function),
};

static const struct nps_db_column netdev[] = {
	C(netdev, "deviceId", INTEGER, NUMBER, device),
	C(netdev, "timestampNs", INTEGER, NUMBER, timestamp),
	C(netdev, "macTxPfcPkt", INTEGER, NUMBER, mac_tx_pfc),
	C(netdev, "macRxPfcPkt", INTEGER, NUMBER, mac_rx_pfc),
	C(netdev, "macTxByte", INTEGER, NUMBER, mac_tx_bytes),
	C(netdev, "macTxBandwidth", NUMERIC, NUMBER, mac_tx_bandwidth),
	C(netdev, "macRxByte", INTEGER, NUMBER, mac_rx_bytes),
	C(netdev, "macRxBandwidth", NUMERIC, NUMBER, mac_rx_bandwidth),
	C(netdev, "macTxBadByte", INTEGER, NUMBER, mac_tx_bad),
	C(netdev, "macRxBadByte", INTEGER, NUMBER, mac_rx_bad),
	C(netdev, "roceTxPkt", INTEGER, NUMBER, roce_tx),
	C(netdev, "roceRxPkt", INTEGER, NUMBER, roce_rx),
	C(netdev, "roceTxErrPkt", INTEGER, NUMBER, roce_tx_errors),
	C(netdev, "roceRxErrPkt", INTEGER, NUMBER, roce_rx_errors),
	C(netdev, "roceTxCnpPkt", INTEGER, NUMBER, roce_tx_cnp),
	C(netdev, "roceRxCnpPkt", INTEGER, NUMBER, roce_rx_cnp),
	C(netdev, "roceNewPktRty", INTEGER, NUMBER, roce_retries),
	C(netdev, "nicTxByte", INTEGER, NUMBER, nic_tx_bytes),
	C(netdev, "nicTxBandwidth", NUMERIC, NUMBER, nic_tx_bandwidth),
	C(netdev, "nicRxByte", INTEGER, NUMBER, nic_rx_bytes),
	C(netdev, "nicRxBandwidth", NUMERIC, NUMBER, nic_rx_bandwidth),
};

static const struct nps_db_column qos[] = {
	C(qos, "deviceId", INTEGER, NUMBER, device),	 C(qos, "eventName", NUMERIC, STRING, event),
	C(qos, "bandwidth", NUMERIC, NUMBER, bandwidth), C(qos, "timestampNs", NUMERIC, NUMBER, timestamp),
	C(qos, "dieId", NUMERIC, NUMBER, die),
};

static const struct nps_db_column sio[] = {
	C(sio, "deviceId", NUMERIC, NUMBER, device),	   C(sio, "name", NUMERIC, STRING, name),
	C(sio, "timestampNs", NUMERIC, NUMBER, timestamp), C(sio, "rxReq", NUMERIC, NUMBER, rx_req),
	C(sio, "rxRsp", NUMERIC, NUMBER, rx_rsp),	   C(sio, "rxSnp", NUMERIC, NUMBER, rx_snp),
	C(sio, "rxDat", NUMERIC, NUMBER, rx_dat),	   C(sio, "txReq", NUMERIC, NUMBER, tx_req),
	C(sio, "txRsp", NUMERIC, NUMBER, tx_rsp),	   C(sio, "txSnp", NUMERIC, NUMBER, tx_snp),
	C(sio, "txDat", NUMERIC, NUMBER, tx_dat),
};

static const struct nps_db_column ub[] = {
	C(ub, "deviceId", NUMERIC, NUMBER, device),	  C(ub, "portId", NUMERIC, NUMBER, port),
	C(ub, "timestampNs", NUMERIC, NUMBER, timestamp), C(ub, "rxUdmaBind", NUMERIC, NUMBER, rx),
	C(ub, "txUdmaBind", NUMERIC, NUMBER, tx),
};

static const struct nps_db_column sample_pmu[] = {
	C(sample_pmu, "deviceId", INTEGER, NUMBER, device),
	C(sample_pmu, "timestampNs", INTEGER, NUMBER, timestamp),
	C(sample_pmu, "totalCycle", INTEGER, NUMBER, total_cycle),
	C(sample_pmu, "usage", NUMERIC, NUMBER, usage),
	C(sample_pmu, "freq", NUMERIC, NUMBER, mhz),
	C(sample_pmu, "coreId", INTEGER, NUMBER, core),
	C(sample_pmu, "coreType", INTEGER, STRING, core_type),
};

static const struct nps_db_column sample_summary[] = {
	C(sample_summary, "deviceId", INTEGER, NUMBER, device),
	C(sample_summary, "metric", INTEGER, STRING, metric),
	C(sample_summary, "value", NUMERIC, NUMBER, value),
	C(sample_summary, "coreId", INTEGER, NUMBER, core),
	C(sample_summary, "coreType", INTEGER, STRING, core_type),
};

#define SAMPLES(sql, array, field)                                                                           \
	{                                                                                                    \
		.name = sql, NPS_DB_COLUMNS(array), NPS_DB_OF(field), .generations = NPS_DB_BOTH,            \
		.order = NPS_DB_BY_TIME, .sorted = "timestampNs"                                             \
	}

const struct nps_db_table nps_db_counter_tables[] = {
	SAMPLES("HBM", hbm, hbm),
	SAMPLES("LLC", llc, llc),
	SAMPLES("DDR", ddr, ddr),
	SAMPLES("AICORE_FREQ", frequency, frequency),
	SAMPLES("SOC_BANDWIDTH_LEVEL", soc_level, soc_level),
	SAMPLES("ACC_PMU", acc_pmu, acc_pmu),
	SAMPLES("HCCS", hccs, hccs),
	SAMPLES("PCIE", pcie, pcie),
	SAMPLES("NIC", port, nic),
	SAMPLES("ROCE", port, roce),
	SAMPLES("NETDEV_STATS", netdev, netdev),
	SAMPLES("QOS", qos, qos),
	SAMPLES("SIO", sio, sio),
	SAMPLES("UB", ub, ub),
	SAMPLES("SAMPLE_PMU_TIMELINE", sample_pmu, sample_pmu),
	{ .name = "SAMPLE_PMU_SUMMARY",
	  NPS_DB_COLUMNS(sample_summary),
	  NPS_DB_OF(sample_summary),
	  .generations = NPS_DB_BOTH },
	{ 0 },
};
