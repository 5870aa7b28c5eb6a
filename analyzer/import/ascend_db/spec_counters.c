/* SPDX-License-Identifier: BSD-2-Clause */
/* Sampled counters, by the rows of schema/counter_tables.h. */
#include "import/ascend_db/spec_rows.h"

COLUMNS(hbm, NPS_HBM_COLUMNS)
COLUMNS(llc, NPS_LLC_COLUMNS)
COLUMNS(ddr, NPS_DDR_COLUMNS)
COLUMNS(frequency, NPS_FREQUENCY_COLUMNS)
COLUMNS(soc_level, NPS_SOC_LEVEL_COLUMNS)
COLUMNS(acc_pmu, NPS_ACC_PMU_COLUMNS)
COLUMNS(hccs, NPS_HCCS_COLUMNS)
COLUMNS(pcie, NPS_PCIE_COLUMNS)
COLUMNS(port, NPS_PORT_COLUMNS)
COLUMNS(netdev, NPS_NETDEV_COLUMNS)
COLUMNS(qos, NPS_QOS_COLUMNS)
COLUMNS(sio, NPS_SIO_COLUMNS)
COLUMNS(ub, NPS_UB_COLUMNS)
COLUMNS(sample_pmu, NPS_SAMPLE_PMU_COLUMNS)
COLUMNS(sample_summary, NPS_SAMPLE_SUMMARY_COLUMNS)

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
	{ ROWS_OF("SAMPLE_PMU_SUMMARY", sample_summary, sample_summary) },
	{ 0 },
};
