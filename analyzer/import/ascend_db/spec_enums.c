/* SPDX-License-Identifier: BSD-2-Clause */
/* ENUM_* tables of both generations (outputs 4.4). */
#include "import/ascend_db/spec.h"

#include <string.h>

#define R(id, name)                                                                                          \
	{                                                                                                    \
		id, NPS_DB_BOTH, name                                                                        \
	}
#define A(id, name)                                                                                          \
	{                                                                                                    \
		id, NPS_DB_A, name                                                                           \
	}
#define B(id, name)                                                                                          \
	{                                                                                                    \
		id, NPS_DB_B, name                                                                           \
	}
#define UNKNOWN R(65534, "N/A"), R(65535, "INVALID_TYPE")

static const struct nps_db_enum_row api[] = {
	R(5000, "runtime"), A(5500, "hccl"), B(5500, "communication"), R(10000, "node"),  R(15000, "model"),
	R(20000, "acl"),    R(50001, "op"),  R(50002, "queue"),	       R(50003, "trace"), R(50004, "mstx"),
};

static const struct nps_db_enum_row module[] = {
	R(0, "SLOG"),
	R(1, "IDEDD"),
	A(2, "IDEDH"),
	B(2, "SCC"),
	R(3, "HCCL"),
	R(4, "FMK"),
	A(5, "HIAIENGINE"),
	B(5, "CCU"),
	R(6, "DVPP"),
	R(7, "RUNTIME"),
	R(8, "CCE"),
	R(9, "HDC"),
	R(10, "DRV"),
	A(11, "MDCFUSION"),
	B(11, "NET"),
	A(12, "MDCLOCATION"),
	A(13, "MDCPERCEPTION"),
	A(14, "MDCFSM"),
	A(15, "MDCCOMMON"),
	A(16, "MDCMONITOR"),
	A(17, "MDCBSWP"),
	A(18, "MDCDEFAULT"),
	A(19, "MDCSC"),
	A(20, "MDCPNC"),
	A(21, "MLL"),
	R(22, "DEVMM"),
	R(23, "KERNEL"),
	R(24, "LIBMEDIA"),
	R(25, "CCECPU"),
	A(26, "ASCENDDK"),
	R(27, "ROS"),
	R(28, "HCCP"),
	R(29, "ROCE"),
	R(30, "TEFUSION"),
	R(31, "PROFILING"),
	R(32, "DP"),
	R(33, "APP"),
	R(34, "TS"),
	R(35, "TSDUMP"),
	R(36, "AICPU"),
	R(37, "LP"),
	R(38, "TDT"),
	R(39, "FE"),
	R(40, "MD"),
	R(41, "MB"),
	R(42, "ME"),
	R(43, "IMU"),
	R(44, "IMP"),
	R(45, "GE"),
	A(46, "MDCFUSA"),
	R(47, "CAMERA"),
	R(48, "ASCENDCL"),
	R(49, "TEEOS"),
	R(50, "ISP"),
	R(51, "SIS"),
	R(52, "HSM"),
	R(53, "DSS"),
	R(54, "PROCMGR"),
	R(55, "BBOX"),
	R(56, "AIVECTOR"),
	R(57, "TBE"),
	R(58, "FV"),
	A(59, "MDCMAP"),
	R(60, "TUNE"),
	R(61, "HSS"),
	R(62, "FFTS"),
	R(63, "OP"),
	R(64, "UDF"),
	R(65, "HICAID"),
	R(66, "TSYNC"),
	R(67, "AUDIO"),
	R(68, "TPRT"),
	R(69, "ASCENDCKERNEL"),
	R(70, "ASYS"),
	R(71, "ATRACE"),
	R(72, "RTC"),
	R(73, "SYSMONITOR"),
	R(74, "AMP"),
	R(75, "ADETECT"),
	R(76, "MBUFF"),
	R(77, "CUSTOM"),
};

static const struct nps_db_enum_row data_type[] = {
	R(0, "INT8"),	  R(1, "INT16"),    R(2, "INT32"),	R(3, "FP16"),	R(4, "FP32"),
	R(5, "INT64"),	  R(6, "UINT64"),   R(7, "UINT8"),	R(8, "UINT16"), R(9, "UINT32"),
	R(10, "FP64"),	  R(11, "BFP16"),   R(12, "INT128"),	B(14, "HIF8"),	B(15, "FP8E4M3"),
	B(16, "FP8E5M2"), B(17, "FP8E8M0"), B(255, "RESERVED"), UNKNOWN,
};

static const struct nps_db_enum_row link_type[] = {
	R(0, "ON_CHIP"), R(1, "HCCS"),	  R(2, "PCIE"),		 R(3, "ROCE"),
	R(4, "SIO"),	 R(5, "HCCS_SW"), R(6, "STANDARD_ROCE"), A(7, "RESERVED"),
	B(7, "UB"),	 B(8, "UBoE"),	  B(255, "RESERVED"),	 UNKNOWN,
};

static const struct nps_db_enum_row transport[] = {
	R(0, "SDMA"), R(1, "RDMA"), R(2, "LOCAL"), B(3, "UB"), B(4, "ROCE"), B(255, "RESERVED"), UNKNOWN,
};

static const struct nps_db_enum_row rdma[] = {
	R(0, "RDMA_SEND_NOTIFY"),     R(1, "RDMA_SEND_PAYLOAD"),
	A(2, "RDMA_PAYLOAD_PREPARE"), A(3, "RDMA_PAYLOAD_CHECK"),
	A(4, "RDMA_PAYLOAD_ACK"),     A(5, "RDMA_SEND_OP"),
	B(255, "RESERVED"),	      UNKNOWN,
};

static const struct nps_db_enum_row mstx[] = {
	R(0, "marker"),
	R(1, "push/pop"),
	R(2, "start/end"),
	R(3, "marker_ex"),
};

static const struct nps_db_enum_row memcpy_operation[] = {
	R(0, "host to host"),	   R(1, "host to device"),    R(2, "device to host"),
	R(3, "device to device"),  R(4, "managed memory"),    R(5, "addr device to device"),
	R(6, "host to device ex"), R(7, "device to host ex"), R(65535, "other"),
};

static const struct nps_db_enum_row overlap[] = {
	R(0, "COMPUTE"), R(1, "COMMUNICATION"), R(2, "COMM_NOT_OVERLAP_COMP"),
	R(3, "FREE"),	 R(65535, "RESERVE"),
};

#define ROWS(array) array, NPS_ARRAY_SIZE(array)
#define WITH(field) offsetof(struct nps_model, field)

const struct nps_db_enum nps_db_enums[] = {
	{ "ENUM_API_TYPE", NPS_DB_BOTH, ROWS(api), 0 },
	{ "ENUM_MODULE", NPS_DB_BOTH, ROWS(module), 0 },
	{ "ENUM_HCCL_DATA_TYPE", NPS_DB_BOTH, ROWS(data_type), 0 },
	{ "ENUM_HCCL_LINK_TYPE", NPS_DB_BOTH, ROWS(link_type), 0 },
	{ "ENUM_HCCL_TRANSPORT_TYPE", NPS_DB_BOTH, ROWS(transport), 0 },
	{ "ENUM_HCCL_RDMA_TYPE", NPS_DB_BOTH, ROWS(rdma), 0 },
	{ "ENUM_MSTX_EVENT_TYPE", NPS_DB_BOTH, ROWS(mstx), 0 },
	{ "ENUM_MEMCPY_OPERATION", NPS_DB_B, ROWS(memcpy_operation), WITH(memcpy) },
	{ "ENUM_OVERLAP_ANALYSIS_TYPE", NPS_DB_B, ROWS(overlap), 0 },
	{ 0 },
};

const char *nps_db_enum_name(const char *table, uint32_t id, unsigned int generation)
{
	const struct nps_db_enum *e = nps_db_enums;
	const char *other = NULL;

	while (e->name && strcmp(e->name, table) != 0)
		e++;
	for (size_t i = 0; e->name && i < e->nrows; i++) {
		if ((uint32_t)e->rows[i].id != id)
			continue;
		if (e->rows[i].generations & generation)
			return e->rows[i].name;
		other = e->rows[i].name;
	}
	return other;
}
