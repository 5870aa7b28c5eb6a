/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/torch_memory.h"

#include "import/common/torch_memory.h"

/* The number, NPS_NULL if the record has none. */
static int64_t memory_number(const struct nps_event *ev, enum nps_memory_number i)
{
	if (ev->flags & NPS_F_SLOT_FAULT(i))
		return NPS_NULL;
	return (int64_t)ev->memory.high[i] * (1LL << 32) + ev->memory.low[i];
}

static int memory_events_add(struct nps_torch_memory *memory, const struct nps_session *rec,
			     const struct nps_proc *proc)
{
	uint64_t unknown = 0;

	for (size_t i = 0; i < proc->allocator.len; i++) {
		const struct nps_event *ev = &NPS_AT(&proc->allocator, struct nps_event, i);
		struct nps_memory_event *event;

		if (!(i & (NPS_TABLE_HOT - 1)))
			nps_vec__cool(&proc->allocator);
		if (ev->memory_head.what >= NPS_MEMORY_EVENT_KINDS || ev->memory_head.device < 0) {
			unknown++;
			continue;
		}
		event = nps_torch_memory__add(memory);
		if (!event)
			return memory->events.err;
		*event = (struct nps_memory_event){
			.order = { nps_session__real(rec, ev->start), i },
			.ptr = ev->address,
			.size = memory_number(ev, NPS_MEMORY_SIZE),
			.levels = { memory_number(ev, NPS_MEMORY_ALLOCATED),
				    memory_number(ev, NPS_MEMORY_RESERVED),
				    memory_number(ev, NPS_MEMORY_ACTIVE), (int64_t)ev->memory.stream },
			.device = (uint8_t)ev->memory_head.device,
			.component = ev->memory_head.component,
			.kind = ev->memory_head.what,
			.gtid = nps_proc__gtid(proc, ev->tid),
		};
	}
	nps_model__lost(memory->m, unknown, "reports of torch_npu's allocator of unknown kinds or devices");
	return 0;
}

int nps_session_memory__fill(struct nps_model *model, const struct nps_session *rec,
			     const struct nps_proc *proc)
{
	struct nps_rows ops = nps_model__torch_rows(model, NPS_API_TORCH_OP);
	struct nps_torch_memory memory;
	int err;

	if (!proc->allocator.len)
		return 0;
	nps_torch_memory__init(&memory, model, ops.begin, ops.end);
	memory.with_stacks = true;
	err = memory_events_add(&memory, rec, proc);
	err = err ? err : nps_torch_memory__fill(&memory);
	nps_model__lost(model, memory.forgotten, "allocations of PyTorch that were not followed");
	nps_torch_memory__free(&memory);
	return err;
}
