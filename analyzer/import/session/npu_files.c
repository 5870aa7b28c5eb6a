/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/npu_files.h"

#include "base/util.h"
#include "import/session/session_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void nps_npu_samples__init(struct nps_npu_samples *npu, int tmpfd)
{
	*npu = (struct nps_npu_samples){ .requested = false };
	nps_vec__init(&npu->clocks, tmpfd, sizeof(struct nps_device_clock));
	nps_vec__init(&npu->raws, tmpfd, sizeof(struct nps_device_clock));
	nps_vec__init(&npu->usage, tmpfd, sizeof(struct nps_npu_usage));
	nps_vec__init(&npu->processes, tmpfd, sizeof(struct nps_npu_process));
}

void nps_npu_samples__free(struct nps_npu_samples *npu)
{
	nps_vec__free(&npu->clocks);
	nps_vec__free(&npu->raws);
	nps_vec__free(&npu->usage);
	nps_vec__free(&npu->processes);
}

/* Is a record plausible? Device, and the time unless it is a clock's, which is not limited to the capture. */
static bool believed(uint16_t type, const void *record, uint64_t first, uint64_t last)
{
	const struct nps_device_clock *clock = record;
	const struct nps_npu_usage *usage = record;
	const struct nps_npu_process *process = record;

	switch (type) {
	case NPS_CHUNK_NPU_USAGE:
		return usage->device < NPS_MAX_DEVICES && usage->time >= first && usage->time <= last;
	case NPS_CHUNK_NPU_PROCESSES:
		return process->device < NPS_MAX_DEVICES && process->time >= first && process->time <= last;
	default:
		return clock->device < NPS_MAX_DEVICES && clock->raw_after >= clock->raw_before;
	}
}

int nps_npu_samples__add(struct nps_npu_samples *npu, const struct nps_chunk *chunk, const void *payload,
			 uint64_t first, uint64_t last)
{
	struct nps_vec *to = chunk->type == NPS_CHUNK_DEVICE_CLOCKS   ? &npu->clocks
			     : chunk->type == NPS_CHUNK_DEVICE_RAWS   ? &npu->raws
			     : chunk->type == NPS_CHUNK_NPU_USAGE     ? &npu->usage
			     : chunk->type == NPS_CHUNK_NPU_PROCESSES ? &npu->processes
								      : NULL;

	if (!to)
		return 1;
	for (size_t i = 0; i < chunk->len / to->elem; i++) {
		const char *record = (const char *)payload + i * to->elem;
		void *copy;

		if (!believed(chunk->type, record, first, last)) {
			npu->strange++;
			continue;
		}
		copy = nps_vec__push(to);
		if (!copy)
			return -errno;
		memcpy(copy, record, to->elem);
	}
	return 0;
}

int nps_npu_samples__fit(const struct nps_vec *reads, uint32_t device, uint64_t hz, struct nps_clock_map *map)
{
	struct nps_device_clock *own = calloc(reads->len + 1, sizeof(*own));
	size_t n = 0;
	int err;

	if (!own)
		return -ENOMEM;
	for (size_t i = 0; i < reads->len; i++)
		if (NPS_AT(reads, struct nps_device_clock, i).device == device)
			own[n++] = NPS_AT(reads, struct nps_device_clock, i);
	err = nps_clock_map__fit(map, own, n, hz);
	free(own);
	return err;
}
