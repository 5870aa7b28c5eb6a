/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory.  A "device pointer" is an address of this process whose pages appear when touched; what the
 * device holds is a number on the board.
 */
#include "device.h"
#include "kmod.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
#define HUGE_BYTES (2u << 20)

/* Lies in the page before the memory. */
struct block {
	uint64_t size;
	uint32_t device;
	bool hbm;
};

struct drv_mem_handle {
	uint64_t size;
	uint32_t device;
};

static uint64_t round_up(uint64_t size, uint64_t unit)
{
	return (size + unit - 1) / unit * unit;
}

static drvError_t memory_charge(uint32_t device, uint64_t size)
{
	struct device *d = device_get(device);
	_Atomic uint64_t *used;

	if (!d)
		return DRV_ERROR_INVALID_DEVICE;
	used = &d->board.shared->slots[d->board.slot].hbm_used;
	if (atomic_fetch_add(used, size) + size > BOARD_HBM_BYTES) {
		atomic_fetch_sub(used, size);
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	return DRV_ERROR_NONE;
}

static void discharge(uint32_t device, uint64_t size)
{
	struct device *d = device_get(device);

	if (d)
		atomic_fetch_sub(&d->board.shared->slots[d->board.slot].hbm_used, size);
}

static struct block *map_block(uint64_t size)
{
	struct block *b = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return b == MAP_FAILED ? NULL : b;
}

drvError_t halMemAlloc(void **pp, unsigned long long size, unsigned long long flag)
{
	bool hbm = MEM_KIND(flag) == MEM_KIND_DEV;
	uint64_t bytes = round_up(size, flag & MEM_PAGE_HUGE ? HUGE_BYTES : PAGE);
	struct block *b;

	if (!pp || size == 0)
		return DRV_ERROR_INVALID_VALUE;
	if (hbm) {
		drvError_t err = memory_charge(MEM_DEVID(flag), bytes);

		if (err)
			return err;
	}
	b = map_block(bytes);
	if (!b) {
		if (hbm)
			discharge(MEM_DEVID(flag), bytes);
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	b->size = bytes;
	b->device = MEM_DEVID(flag);
	b->hbm = hbm;
	*pp = (char *)b + PAGE;
	if (hbm)
		kmod_memory(b->device, *pp, bytes, 0);
	return DRV_ERROR_NONE;
}

drvError_t halMemFree(void *pp)
{
	struct block *b;

	if (!pp || (uintptr_t)pp % PAGE)
		return DRV_ERROR_INVALID_VALUE;
	b = (struct block *)((char *)pp - PAGE);
	if (b->hbm) {
		kmod_memory(b->device, pp, b->size, 1);
		discharge(b->device, b->size);
	}
	munmap(b, b->size + PAGE);
	return DRV_ERROR_NONE;
}

drvError_t halMemCreate(drv_mem_handle_t **handle, size_t size, const struct drv_mem_prop *prop,
			uint64_t flag)
{
	drv_mem_handle_t *h;
	drvError_t err;

	(void)flag;
	if (!handle || !prop || size == 0 || size % HUGE_BYTES)
		return DRV_ERROR_INVALID_VALUE;
	h = malloc(sizeof(*h));
	if (!h)
		return DRV_ERROR_OUT_OF_MEMORY;
	h->size = size;
	h->device = prop->devid;
	err = memory_charge(h->device, size);
	if (err) {
		free(h);
		return err;
	}
	*handle = h;
	return DRV_ERROR_NONE;
}

drvError_t halMemRelease(drv_mem_handle_t *handle)
{
	if (!handle)
		return DRV_ERROR_INVALID_VALUE;
	discharge(handle->device, handle->size);
	free(handle);
	return DRV_ERROR_NONE;
}

drvError_t halMemAddressReserve(void **ptr, size_t size, size_t alignment, void *addr, uint64_t flag)
{
	(void)alignment;
	(void)addr;
	return halMemAlloc(ptr, size, (unsigned long long)MEM_KIND_SVM << 10 | (flag ? MEM_PAGE_HUGE : 0));
}

drvError_t halMemAddressFree(void *ptr)
{
	return halMemFree(ptr);
}

/* The reservation is backed by host pages already; only the bounds are checked. */
drvError_t halMemMap(void *ptr, size_t size, size_t offset, drv_mem_handle_t *handle, uint64_t flag)
{
	(void)flag;
	if (!ptr || !handle || offset > handle->size || size > handle->size - offset)
		return DRV_ERROR_INVALID_VALUE;
	return DRV_ERROR_NONE;
}

drvError_t halMemUnmap(void *ptr)
{
	return ptr ? DRV_ERROR_NONE : DRV_ERROR_INVALID_VALUE;
}

drvError_t halMemcpy(void *dst, size_t dst_size, void *src, size_t count, void *info)
{
	const struct memcpy_info *way = info;
	struct device *d = way ? device_get(way->devid) : NULL;

	if (count > dst_size || (count && (!dst || !src)))
		return DRV_ERROR_INVALID_VALUE;
	memmove(dst, src, count);
	if (d && (way->dir == 1 || way->dir == 2)) {
		kmod_copy(way->devid, dst, src, count, way->dir == 2);
		links_copied(d, way->dir == 1, count);
	}
	return DRV_ERROR_NONE;
}

drvError_t halMemGetInfo(uint32_t devId, unsigned int type, struct MemInfo *info)
{
	struct device *d = device_get(devId);
	uint64_t used;

	(void)type;
	if (!d)
		return DRV_ERROR_INVALID_DEVICE;
	used = board_hbm_used(&d->board);
	info->phy_total = BOARD_HBM_BYTES;
	info->phy_free = used < BOARD_HBM_BYTES ? BOARD_HBM_BYTES - used : 0;
	return DRV_ERROR_NONE;
}
