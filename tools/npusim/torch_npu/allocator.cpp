/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The caching allocator. Segments come from the device, blocks are cut from them: small ones from segments of
 * 2 MiB, others from segments of 20 MiB or more. A freed block is joined with its free neighbours and kept.
 */
#include "allocator.h"
#include "log.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

namespace torch_npu
{
namespace profiler
{

static_assert(sizeof(MemoryUsage) == 56, "layout of MemoryUsage");

PROBED void reportMemoryDataToNpuProfiler(const MemoryUsage &data)
{
	__asm__ volatile("" ::"r"(&data) : "memory");
}

} // namespace profiler
} // namespace torch_npu

namespace c10_npu
{
namespace NPUCachingAllocator
{

static constexpr size_t kMinBlockSize = 512, kSmallSize = 1 << 20, kSmallBuffer = 2 << 20;
static constexpr size_t kLargeBuffer = 20 << 20, kMinLargeAlloc = 10 << 20, kRoundLarge = 2 << 20;
enum { MEMORY_MALLOC, MEMORY_FREE, MEMORY_BLOCK_FREE };

struct Block {
	int device;
	size_t size;
	void *ptr;
	bool small, allocated;
	Block *prev, *next; /* in the segment, by address */
};

struct BlockBySize {
	bool operator()(const Block *a, const Block *b) const
	{
		return a->size != b->size ? a->size < b->size : a->ptr < b->ptr;
	}
};

using Pool = std::set<Block *, BlockBySize>;

/* What is known of one device; the caller holds the allocator's lock. */
class DeviceCachingAllocator
{
      public:
	Block *malloc(int device, size_t size);
	void free(Block *block);
	void emptyCache();
	DeviceStats stats{};

      private:
	Block *find_free(Pool &pool, size_t size);
	Block *alloc_block(int device, size_t size, bool small);
	void split(Block *block, size_t size);
	void join(Block *block, Block *next);
	void release_cached(Pool &pool);
	void report(const Block *block, uint8_t type, int64_t size);

	Pool small_blocks, large_blocks;
};

void DeviceCachingAllocator::report(const Block *block, uint8_t type, int64_t size)
{
	static const char *const names[] = { "malloc", "free", "block_free" };
	aclrtStream stream = npusim::default_stream(block->device);

	torch_npu::profiler::reportMemoryDataToNpuProfiler(
		{ static_cast<int8_t>(c10::DeviceType::PrivateUse1), static_cast<int8_t>(block->device), 0,
		  type, 0, reinterpret_cast<int64_t>(block->ptr), size, stats.allocated, stats.reserved,
		  stats.active, reinterpret_cast<int64_t>(stream) });
	npusim::log_memory(names[type], block->device, block->ptr, size, stats.allocated, stats.reserved,
			   stats.active, stream);
}

Block *DeviceCachingAllocator::find_free(Pool &pool, size_t size)
{
	Block key = { 0, size, nullptr, false, false, nullptr, nullptr };
	auto it = pool.lower_bound(&key);
	Block *block;

	if (it == pool.end())
		return nullptr;
	block = *it;
	pool.erase(it);
	return block;
}

static size_t segment_size(size_t size)
{
	if (size <= kSmallSize)
		return kSmallBuffer;
	if (size < kMinLargeAlloc)
		return kLargeBuffer;
	return (size + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
}

Block *DeviceCachingAllocator::alloc_block(int device, size_t size, bool small)
{
	size_t bytes = segment_size(size);
	void *ptr = nullptr;
	int err = aclrtMallocAlign32(&ptr, bytes, ACL_MEM_MALLOC_HUGE_FIRST);

	if (err) {
		emptyCache();
		err = aclrtMallocAlign32(&ptr, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
	}
	npusim::check(err, "aclrtMallocAlign32: out of memory");
	stats.reserved += (int64_t)bytes;
	stats.reserved_peak = std::max(stats.reserved_peak, stats.reserved);
	stats.segments++;
	return new Block{ device, bytes, ptr, small, false, nullptr, nullptr };
}

/* What is behind the first SIZE bytes of BLOCK becomes a free block. */
void DeviceCachingAllocator::split(Block *block, size_t size)
{
	size_t left = block->size - size;
	Block *rest;

	if (block->small ? left < kMinBlockSize : left <= kSmallSize)
		return;
	rest = new Block{ block->device, left,	static_cast<char *>(block->ptr) + size,
			  block->small,	 false, block,
			  block->next };
	if (block->next)
		block->next->prev = rest;
	block->next = rest;
	block->size = size;
	(rest->small ? small_blocks : large_blocks).insert(rest);
}

Block *DeviceCachingAllocator::malloc(int device, size_t size)
{
	size_t rounded = size < kMinBlockSize ? kMinBlockSize
					      : (size + kMinBlockSize - 1) / kMinBlockSize * kMinBlockSize;
	bool small = rounded <= kSmallSize;
	Block *block = find_free(small ? small_blocks : large_blocks, rounded);

	if (!block)
		block = alloc_block(device, rounded, small);
	split(block, rounded);
	block->allocated = true;
	stats.allocations++;
	stats.allocated += (int64_t)block->size;
	stats.active += (int64_t)block->size;
	stats.allocated_peak = std::max(stats.allocated_peak, stats.allocated);
	report(block, MEMORY_MALLOC, (int64_t)block->size);
	return block;
}

/* NEXT, free and not in a pool, becomes a part of BLOCK. */
void DeviceCachingAllocator::join(Block *block, Block *next)
{
	block->size += next->size;
	block->next = next->next;
	if (next->next)
		next->next->prev = block;
	delete next;
}

void DeviceCachingAllocator::free(Block *block)
{
	Pool &pool = block->small ? small_blocks : large_blocks;
	int64_t size = (int64_t)block->size;

	block->allocated = false;
	stats.frees++;
	stats.allocated -= size;
	report(block, MEMORY_FREE, -size);
	stats.active -= size;
	report(block, MEMORY_BLOCK_FREE, -size);
	if (block->next && !block->next->allocated) {
		pool.erase(block->next);
		join(block, block->next);
	}
	if (block->prev && !block->prev->allocated) {
		Block *prev = block->prev;

		pool.erase(prev);
		join(prev, block);
		block = prev;
	}
	pool.insert(block);
}

void DeviceCachingAllocator::release_cached(Pool &pool)
{
	for (auto it = pool.begin(); it != pool.end();) {
		Block *block = *it;

		if (block->prev || block->next) {
			++it;
			continue;
		}
		npusim::check(aclrtFree(block->ptr), "aclrtFree");
		stats.reserved -= (int64_t)block->size;
		stats.segments--;
		it = pool.erase(it);
		delete block;
	}
}

void DeviceCachingAllocator::emptyCache()
{
	release_cached(small_blocks);
	release_cached(large_blocks);
}

static void delete_memory(void *ptr);

class CachingAllocator final : public NPUAllocator
{
      public:
	c10::DataPtr allocate(size_t nbytes) const override
	{
		int device = npusim::current_device();
		void *ptr = const_cast<CachingAllocator *>(this)->raw_alloc(nbytes);

		return { ptr, ptr, &delete_memory,
			 c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)) };
	}

	c10::DeleterFnPtr raw_deleter() const override
	{
		return &delete_memory;
	}

	void *raw_alloc(size_t nbytes) override
	{
		int device = npusim::current_device();
		Block *block;

		if (!nbytes)
			return nullptr;
		npusim::default_stream(device);
		std::lock_guard<std::mutex> guard(lock);
		block = devices[device].malloc(device, nbytes);
		allocated[block->ptr] = block;
		return block->ptr;
	}

	void raw_delete(void *ptr) override
	{
		std::lock_guard<std::mutex> guard(lock);
		auto it = allocated.find(ptr);

		if (it == allocated.end() || down)
			return;
		devices[it->second->device].free(it->second);
		allocated.erase(it);
	}

	void emptyCache() override
	{
		int device = npusim::current_device();

		npusim::synchronize(device);
		std::lock_guard<std::mutex> guard(lock);
		devices[device].emptyCache();
	}

	DeviceStats getDeviceStats(int device) override
	{
		std::lock_guard<std::mutex> guard(lock);

		return devices[device].stats;
	}

	/* From here on memory is the process's to end with. */
	void shut_down()
	{
		std::lock_guard<std::mutex> guard(lock);

		down = true;
	}

      private:
	std::mutex lock;
	bool down = false;
	std::map<int, DeviceCachingAllocator> devices;
	std::unordered_map<void *, Block *> allocated;
};

/* Never destroyed: tensors may be freed after all destructors. */
static CachingAllocator &the_allocator()
{
	static CachingAllocator *const instance = new CachingAllocator();

	return *instance;
}

std::atomic<NPUAllocator *> allocator{ &the_allocator() };

static void delete_memory(void *ptr)
{
	if (ptr)
		allocator.load()->raw_delete(ptr);
}

void shut_down()
{
	the_allocator().shut_down();
}

static struct Registration {
	Registration()
	{
		c10::SetAllocator(c10::DeviceType::PrivateUse1, &the_allocator());
	}
} registration;

} // namespace NPUCachingAllocator
} // namespace c10_npu
