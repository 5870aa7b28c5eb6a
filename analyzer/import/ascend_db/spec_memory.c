/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the device as msprof saw it. */
#include "import/ascend_db/spec_rows.h"

#define C(...) NPS_DB_C(__VA_ARGS__)

COLUMNS(npu_mem, NPS_NPU_MEM_COLUMNS)

static const struct nps_db_column npu_module_mem[] = {
	C(npu_module_mem, "moduleId", INTEGER, NUMBER, module),
	C(npu_module_mem, "timestampNs", INTEGER, NUMBER, timestamp),
	C(npu_module_mem, "totalReserved", NUMERIC, NUMBER, reserved),
	C(npu_module_mem, "deviceId", INTEGER, NUMBER, device),
};

static const struct nps_db_column npu_op_mem[] = {
	C(npu_op_mem, "operatorName", INTEGER, STRING, name),
	C(npu_op_mem, "addr", INTEGER, NUMBER, address),
	C(npu_op_mem, "type", INTEGER, STRING, type),
	C(npu_op_mem, "size", INTEGER, NUMBER, size),
	C(npu_op_mem, "timestampNs", INTEGER, NUMBER, timestamp),
	C(npu_op_mem, "globalTid", INTEGER, NUMBER, gtid),
	C(npu_op_mem, "totalAllocate", NUMERIC, NUMBER, allocated),
	C(npu_op_mem, "totalReserve", NUMERIC, NUMBER, reserved),
	C(npu_op_mem, "component", INTEGER, STRING, component),
	C(npu_op_mem, "deviceId", INTEGER, NUMBER, device),
};

#define EVENTS(sql, array)                                                                                   \
	{                                                                                                    \
		.name = sql, NPS_DB_COLUMNS(array), NPS_DB_OF(array), .generations = NPS_DB_BOTH,            \
		.order = NPS_DB_BY_TIME, .sorted = "timestampNs"                                             \
	}

const struct nps_db_table nps_db_memory_tables[] = {
	SAMPLES("NPU_MEM", npu_mem, npu_mem),
	EVENTS("NPU_MODULE_MEM", npu_module_mem),
	EVENTS("NPU_OP_MEM", npu_op_mem),
	{ 0 },
};
