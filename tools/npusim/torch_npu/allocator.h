/* SPDX-License-Identifier: BSD-2-Clause */
/* The caching allocator of device memory. */
#ifndef NPUSIM_TORCH_NPU_ALLOCATOR_H
#define NPUSIM_TORCH_NPU_ALLOCATOR_H

#include "npu.h"

#include <c10/core/Allocator.h>
#include <atomic>

namespace torch_npu
{
namespace profiler
{

/* 56 bytes in all versions of torch_npu. */
struct MemoryUsage {
	int8_t device_type;
	int8_t device_index;
	uint8_t component_type; /* 0 caching allocator, 1 workspace */
	uint8_t data_type; /* 0 malloc, 1 free, 2 block free */
	uint8_t allocator_type; /* 0 inner, 1 external */
	int64_t ptr;
	int64_t alloc_size; /* negative when it is freed */
	int64_t total_allocated;
	int64_t total_reserved;
	int64_t total_active;
	int64_t stream_ptr;
};

void reportMemoryDataToNpuProfiler(const MemoryUsage &data);

} // namespace profiler
} // namespace torch_npu

namespace c10_npu
{
namespace NPUCachingAllocator
{

struct DeviceStats {
	int64_t allocated, reserved, active; /* bytes */
	int64_t allocated_peak, reserved_peak;
	int64_t allocations, frees, segments; /* counts; segments: those that exist */
};

class NPUAllocator : public c10::Allocator
{
      public:
	virtual void *raw_alloc(size_t nbytes) = 0;
	virtual void raw_delete(void *ptr) = 0;
	virtual void emptyCache() = 0;
	virtual DeviceStats getDeviceStats(int device) = 0;
};

C10_NPU_API extern std::atomic<NPUAllocator *> allocator;

/* Memory that is freed later is not counted: the devices are about to be reset. */
void shut_down();

} // namespace NPUCachingAllocator
} // namespace c10_npu

#endif
