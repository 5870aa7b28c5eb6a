/* SPDX-License-Identifier: BSD-2-Clause */
/* What Python calls, as torch.ops.npu. */
#include "allocator.h"
#include "log.h"
#include "operators.h"

#include <torch/library.h>

extern "C" {
#include "../abi/hccl.h"
}

namespace npusim
{

static HcclComm comm;

static void npu_synchronize(int64_t device)
{
	synchronize((int)device);
}

static void npu_set_step(int64_t step)
{
	log_step((long)step);
}

static std::vector<int64_t> memory_stats(int64_t device)
{
	c10_npu::NPUCachingAllocator::DeviceStats s =
		c10_npu::NPUCachingAllocator::allocator.load()->getDeviceStats((int)device);

	return { s.allocated,	  s.reserved,	 s.active, s.allocated_peak,
		 s.reserved_peak, s.allocations, s.frees,  s.segments };
}

static void empty_cache()
{
	c10_npu::NPUCachingAllocator::allocator.load()->emptyCache();
}

static void npu_shut_down()
{
	if (comm)
		HcclCommDestroy(comm);
	comm = nullptr;
	c10_npu::NPUCachingAllocator::shut_down();
	shut_down();
}

/* The root's information about the communicator, to be passed to the other ranks. */
static at::Tensor hccl_root_info()
{
	at::Tensor info = at::zeros({ (int64_t)sizeof(HcclRootInfo) }, at::kByte);

	use_device(current_device());
	check(HcclGetRootInfo(static_cast<HcclRootInfo *>(info.data_ptr())), "HcclGetRootInfo");
	return info;
}

static void hccl_init(const at::Tensor &info, int64_t world, int64_t rank, int64_t device)
{
	TORCH_CHECK(info.numel() == (int64_t)sizeof(HcclRootInfo), "not the information of a root");
	default_stream((int)device);
	check(HcclCommInitRootInfo((uint32_t)world, static_cast<HcclRootInfo *>(info.data_ptr()),
				   (uint32_t)rank, &comm),
	      "HcclCommInitRootInfo");
}

/* The launch; the sum is made by who calls this, in host_view(). */
static void hccl_all_reduce(const at::Tensor &t)
{
	int device = t.device().index();
	c10::DeviceGuard guard(t.device());
	aclrtStream stream = default_stream(device);
	uint64_t count = (uint64_t)t.numel();
	void *data = t.data_ptr();

	TORCH_CHECK(comm, "all_reduce: no communicator: call init_process_group first");
	TORCH_CHECK(t.scalar_type() == at::kFloat && t.is_contiguous(),
		    "all_reduce: needs contiguous float32");
	at_npu::native::OpCommand::RunOpApi("HcclAllreduce", [=]() -> int {
		uint64_t begin = now();
		int err =
			HcclAllReduce(data, data, count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream);

		log_collective("HcclAllReduce", count, begin);
		return err;
	});
}

static at::Tensor host_view(const at::Tensor &t)
{
	return cpu_alias(t);
}

TORCH_LIBRARY(npu, m)
{
	m.def("device_count() -> int", [] { return (int64_t)device_count(); });
	m.def("synchronize(int device) -> ()", npu_synchronize);
	m.def("set_step(int step) -> ()", npu_set_step);
	m.def("memory_stats(int device) -> int[]", memory_stats);
	m.def("empty_cache() -> ()", empty_cache);
	m.def("shut_down() -> ()", npu_shut_down);
	m.def("hccl_root_info() -> Tensor", hccl_root_info);
	m.def("hccl_init(Tensor info, int world, int rank, int device) -> ()", hccl_init);
	m.def("hccl_all_reduce(Tensor t) -> ()", hccl_all_reduce);
	m.def("host_view(Tensor t) -> Tensor", host_view);
}

} // namespace npusim
