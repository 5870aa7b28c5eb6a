/* SPDX-License-Identifier: BSD-2-Clause */
/* torch.memory_usage: what the framework's allocators did. */
#include "import/common/torch_memory.h"
#include "import/torch/framework.h"
#include "import/torch/records.h"

#include <errno.h>

#define KIND 3
#define FIXED 77
#define NPU 20 /* device type */

static int memory_read_events(struct nps_framework *fw, struct nps_torch_memory *memory)
{
	struct nps_fw_record record;
	struct nps_fw_file file;
	int err = nps_fw_file__open(&file, fw->model, fw->dirfd, "torch.memory_usage");

	if (err)
		return err == -ENOMEM ? err : 0;
	while (!err && nps_fw_file__typed(&file, KIND, FIXED, &record)) {
		const uint8_t *p = record.fixed;
		struct nps_memory_event *event;
		uint64_t ns;

		if (p[59] >= NPS_MEMORY_EVENT_KINDS || (int8_t)p[57] < 0 ||
		    !nps_framework__ns(fw, nps_fw_i64(p + 8), &ns)) {
			file.damaged++;
			continue;
		}
		if (p[56] != NPU) /* the host's memory is not in these tables */
			continue;
		event = nps_torch_memory__add(memory);
		if (!event) {
			err = memory->events.err;
			break;
		}
		*event = (struct nps_memory_event){
			.order.high = ns,
			.ptr = nps_fw_u64(p),
			.size = nps_fw_i64(p + 16),
			.levels = { nps_fw_i64(p + 24), nps_fw_i64(p + 32), nps_fw_i64(p + 40),
				    nps_fw_i64(p + 48) },
			.device = p[57],
			.component = p[58],
			.kind = p[59],
			.gtid = nps_framework__gtid(fw, nps_fw_u64(p + 69), nps_fw_u64(p + 61)),
		};
	}
	nps_fw_file__close(&file);
	return err;
}

int nps_framework__memory(struct nps_framework *fw)
{
	struct nps_torch_memory memory;
	int err;

	nps_torch_memory__init(&memory, fw->model, fw->first_op, fw->end_ops);
	err = memory_read_events(fw, &memory);
	err = err ? err : nps_torch_memory__fill(&memory);
	nps_model__lost(fw->model, memory.forgotten,
			"allocations of FRAMEWORK/torch.memory_usage that were not followed");
	nps_torch_memory__free(&memory);
	return err;
}
