/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sources of npuscope, a row each: source_NAME.c has nps_source_NAME. Hooks are called in this order,
 * or backwards (source.h), so a source follows those that it uses (struct nps_shared).
 */
#ifndef NPS_SOURCE_ROWS_H
#define NPS_SOURCE_ROWS_H

#include "capture/source.h"

#define NPS_SOURCE_ROWS(ROW)                                                                                 \
	ROW(calls) /* the BPF programs, probes and records that most others use */                           \
	ROW(targets)                                                                                         \
	ROW(system_wide)                                                                                     \
	ROW(costs) /* forks, so it precedes processes of ours that others communicate with */                \
	ROW(inject)                                                                                          \
	ROW(queries)                                                                                         \
	ROW(facts)                                                                                           \
	ROW(agents)                                                                                          \
	ROW(tasks)                                                                                           \
	ROW(stacks)                                                                                          \
	ROW(python)                                                                                          \
	ROW(driver)                                                                                          \
	ROW(clocks) /* after what may take long, so that it is close to the first record */                  \
	ROW(host)                                                                                            \
	ROW(devices)                                                                                         \
	ROW(overhead) /* reads the counts of all others */

#define NPS_SOURCE_DECLARE(name) extern const struct nps_source_ops nps_source_##name;
NPS_SOURCE_ROWS(NPS_SOURCE_DECLARE)
#undef NPS_SOURCE_DECLARE

#endif
