/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/catalog_info.h"

#include <stddef.h>

#define ROW(id, sym, lib, lay, fl, s0, s1, s2, s3)                                                           \
	[NPS_PROBE_##id] = { .symbol = sym,                                                                  \
			     .layer = NPS_LAYER_##lay,                                                       \
			     .flags = (uint8_t)(fl),                                                         \
			     .slot = { { s0 }, { s1 }, { s2 }, { s3 } } },

static const struct nps_probe_info rows[NPS_PROBE_MAX] = { NPS_CATALOG(ROW) };

static const struct call_class {
	uint8_t call;
	const char *collective;
} classes[NPS_PROBE_MAX] = {
	[NPS_PROBE_MEMCPY] = { NPS_CALL_MEMCPY, NULL },
	[NPS_PROBE_MEMCPY_ASYNC] = { NPS_CALL_MEMCPY, NULL },
	[NPS_PROBE_MEMCPY_ASYNC_COND] = { NPS_CALL_MEMCPY, NULL },
	[NPS_PROBE_RT_MEMCPY_ASYNC] = { NPS_CALL_MEMCPY, NULL },
	[NPS_PROBE_SYNC_DEVICE] = { NPS_CALL_SYNC_DEVICE, NULL },
	[NPS_PROBE_SYNC_DEVICE_TO] = { NPS_CALL_SYNC_DEVICE, NULL },
	[NPS_PROBE_RT_SYNC_DEVICE] = { NPS_CALL_SYNC_DEVICE, NULL },
	[NPS_PROBE_SYNC_STREAM] = { NPS_CALL_SYNC_STREAM, NULL },
	[NPS_PROBE_SYNC_STREAM_TO] = { NPS_CALL_SYNC_STREAM, NULL },
	[NPS_PROBE_RT_SYNC_STREAM] = { NPS_CALL_SYNC_STREAM, NULL },
	[NPS_PROBE_SYNC_EVENT] = { NPS_CALL_SYNC_EVENT, NULL },
	[NPS_PROBE_QUERY_EVENT] = { NPS_CALL_QUERY_EVENT, NULL },
	[NPS_PROBE_RECORD_EVENT] = { NPS_CALL_RECORD_EVENT, NULL },
	[NPS_PROBE_DESTROY_EVENT] = { NPS_CALL_DESTROY_EVENT, NULL },
	[NPS_PROBE_SET_DEVICE] = { NPS_CALL_SET_CONTEXT, NULL },
	[NPS_PROBE_RT_SET_DEVICE] = { NPS_CALL_SET_CONTEXT, NULL },
	[NPS_PROBE_CREATE_CONTEXT] = { NPS_CALL_SET_CONTEXT, NULL },
	[NPS_PROBE_SET_CONTEXT] = { NPS_CALL_SET_CONTEXT, NULL },
	[NPS_PROBE_HCCL_ALL_REDUCE] = { NPS_CALL_COLLECTIVE, "allReduce" },
	[NPS_PROBE_HCCL_REDUCE] = { NPS_CALL_COLLECTIVE, "reduce" },
	[NPS_PROBE_HCCL_BROADCAST] = { NPS_CALL_COLLECTIVE, "broadcast" },
	[NPS_PROBE_HCCL_ALL_GATHER] = { NPS_CALL_COLLECTIVE, "allGather" },
	[NPS_PROBE_HCCL_REDUCE_SCATTER] = { NPS_CALL_COLLECTIVE, "reduceScatter" },
	[NPS_PROBE_HCCL_SCATTER] = { NPS_CALL_COLLECTIVE, "scatter" },
	[NPS_PROBE_HCCL_ALL_TO_ALL] = { NPS_CALL_COLLECTIVE, "alltoall" },
	[NPS_PROBE_HCCL_SEND] = { NPS_CALL_COLLECTIVE, "send" },
	[NPS_PROBE_HCCL_RECV] = { NPS_CALL_COLLECTIVE, "receive" },
	[NPS_PROBE_HCCL_BARRIER] = { NPS_CALL_COLLECTIVE, "barrier" },
};

const struct nps_probe_info *nps_probe_info(unsigned int probe)
{
	static struct nps_probe_info merged[NPS_PROBE_MAX];

	if (probe >= NPS_PROBE_MAX || !rows[probe].symbol)
		return NULL;
	if (!merged[probe].symbol) {
		merged[probe] = rows[probe];
		merged[probe].call = rows[probe].flags & NPS_P_LAUNCH ? NPS_CALL_LAUNCH : classes[probe].call;
		merged[probe].collective = classes[probe].collective;
	}
	return &merged[probe];
}

int nps_event_arg(const struct nps_event *ev, enum nps_meaning meaning, uint64_t *value)
{
	const struct nps_probe_info *info = nps_probe_info(ev->probe);

	for (unsigned int i = 0; info && i < 4; i++) {
		if (info->slot[i].how == NPS_SLOT_NONE || info->slot[i].meaning != meaning)
			continue;
		if (ev->flags & NPS_F_SLOT_FAULT(i))
			return 0;
		*value = ev->args[i];
		if (info->slot[i].how == NPS_SLOT_OUT32)
			*value &= UINT32_MAX;
		return 1;
	}
	return 0;
}
