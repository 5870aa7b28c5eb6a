/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups of events of AI cores (--aic-metrics). A new group is a row here; its events are in
 * user/driver/aic_metrics.c, what they are computed to in analyzer/import/cann/pmu.c.
 */
#ifndef NPS_AIC_METRIC_ROWS_H
#define NPS_AIC_METRIC_ROWS_H

/* The first is none. X(enumerator, name in options and sample.json, name in the profiler's enumeration) */
#define NPS_AIC_METRIC_ROWS(X)                                                                               \
	X(NPS_AIC_NONE, "None", "AiCoreNone")                                                                \
	X(NPS_AIC_PIPE, "PipeUtilization", "ACL_AICORE_PIPE_UTILIZATION")                                    \
	X(NPS_AIC_ARITHMETIC, "ArithmeticUtilization", "ACL_AICORE_ARITHMETIC_UTILIZATION")                  \
	X(NPS_AIC_MEMORY, "Memory", "ACL_AICORE_MEMORY_BANDWIDTH")                                           \
	X(NPS_AIC_MEMORY_L0, "MemoryL0", "ACL_AICORE_L0B_AND_WIDTH")                                         \
	X(NPS_AIC_MEMORY_UB, "MemoryUB", "ACL_AICORE_MEMORY_UB")                                             \
	X(NPS_AIC_CONFLICT, "ResourceConflictRatio", "ACL_AICORE_RESOURCE_CONFLICT_RATIO")                   \
	X(NPS_AIC_L2_CACHE, "L2Cache", "ACL_AICORE_L2_CACHE")                                                \
	X(NPS_AIC_MEMORY_ACCESS, "MemoryAccess", "ACL_AICORE_MEMORY_ACCESS")

#endif
