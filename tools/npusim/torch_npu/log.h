/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the extension did, as a witness for tests: lines of JSON in truth.PID.torch.jsonl of the directory
 * NPUSIM_TRUTH. Without that variable every call is a no-op.
 */
#ifndef NPUSIM_TORCH_NPU_LOG_H
#define NPUSIM_TORCH_NPU_LOG_H

#include <cstdint>
#include <string>

namespace npusim
{

/* CLOCK_MONOTONIC_RAW in ns, as in the other truth files. */
uint64_t now();
bool log_is_written();
void log_step(long step);
/*
 * An ATen operator that reached the NPU; ACLNN is NULL if it was computed without a kernel. ID is the one of
 * its run.
 */
void log_op(const char *aten, const char *aclnn, uint64_t id, const void *executor, bool cached,
	    uint64_t begin);
/* The number that joins an operator and its run: it is not the queue's correlation id. */
uint64_t log_next_id();
/* Phase 2 of operator ID runs in this thread from BEGIN to now. */
void log_launch(uint64_t id, const char *aclnn, uint64_t begin);
/* The queue's correlation id of what this thread runs next; 0: it does not run tasks of a queue. */
void log_correlation(uint64_t id);
void log_copy(const char *direction, uint64_t bytes, uint64_t begin);
/* What the allocator did on DEVICE: a block's address and size, and the device's bytes after it. */
void log_memory(const char *kind, int device, const void *ptr, int64_t size, int64_t allocated,
		int64_t reserved, int64_t active, const void *stream);
void log_collective(const char *api, uint64_t count, uint64_t begin);
void log_end();

} // namespace npusim

#endif
