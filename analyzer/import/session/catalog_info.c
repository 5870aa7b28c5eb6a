/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/catalog_info.h"

#include <stddef.h>
#include <string.h>

#define ROW(id, sym, lib, lay, does, fl, s0, s1, s2, s3)                                                     \
	[NPS_PROBE_##id] = { .symbol = sym,                                                                  \
			     .layer = NPS_LAYER_##lay,                                                       \
			     .call = NPS_CALL_##does,                                                        \
			     .flags = fl,                                                                    \
			     .slot = { { s0 }, { s1 }, { s2 }, { s3 } } },

static const struct nps_probe_info rows[NPS_PROBE_MAX] = { NPS_CATALOG(ROW) };

/* As the vendor's names of collectives have them: hcom_allReduce__... */
static const char *const collectives[NPS_PROBE_MAX] = {
	[NPS_PROBE_HCCL_ALL_REDUCE] = "allReduce",
	[NPS_PROBE_HCCL_REDUCE] = "reduce",
	[NPS_PROBE_HCCL_BROADCAST] = "broadcast",
	[NPS_PROBE_HCCL_ALL_GATHER] = "allGather",
	[NPS_PROBE_HCCL_ALL_GATHER_V] = "allGatherV",
	[NPS_PROBE_HCCL_REDUCE_SCATTER] = "reduceScatter",
	[NPS_PROBE_HCCL_REDUCE_SCATTER_V] = "reduceScatterV",
	[NPS_PROBE_HCCL_SCATTER] = "scatter",
	[NPS_PROBE_HCCL_ALL_TO_ALL] = "alltoall",
	[NPS_PROBE_HCCL_ALL_TO_ALL_V] = "alltoallv",
	[NPS_PROBE_HCCL_ALL_TO_ALL_VC] = "alltoallvc",
	[NPS_PROBE_HCCL_SEND] = "send",
	[NPS_PROBE_HCCL_RECV] = "receive",
	[NPS_PROBE_HCCL_BATCH_SEND_RECV] = "batchSendRecv",
	[NPS_PROBE_HCCL_BARRIER] = "barrier",
};

const struct nps_probe_info *nps_probe_info(unsigned int probe)
{
	return probe < NPS_PROBE_MAX && rows[probe].symbol ? &rows[probe] : NULL;
}

const char *nps_probe_collective(unsigned int probe)
{
	return probe < NPS_PROBE_MAX ? collectives[probe] : NULL;
}

unsigned int nps_probe_of(const char *symbol)
{
	for (unsigned int probe = 1; probe < NPS_PROBE_MAX; probe++)
		if (!strcmp(rows[probe].symbol, symbol))
			return probe;
	return NPS_PROBE_NONE;
}

int nps_event_arg(const struct nps_event *ev, enum nps_meaning meaning, uint64_t *value)
{
	const struct nps_probe_info *info = nps_probe_info(ev->probe);

	for (unsigned int i = 0; info && i < 4; i++) {
		if (info->slot[i].how == NPS_SLOT_NONE || info->slot[i].meaning != meaning)
			continue;
		if (ev->flags & NPS_F_SLOT_FAULT(i))
			return 0;
		*value = ev->call.slot[i];
		if (info->slot[i].how == NPS_SLOT_OUT32)
			*value &= UINT32_MAX;
		return 1;
	}
	return 0;
}
