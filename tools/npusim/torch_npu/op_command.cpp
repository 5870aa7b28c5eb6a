/* SPDX-License-Identifier: BSD-2-Clause */
/* How an operator gets to the device: through the queue, or in place without one. */
#include "log.h"
#include "queue.h"

#include <memory>
#include <stdexcept>

namespace at_npu
{
namespace native
{

/* There is no profiler to report to: a tracer finds the calls and their arguments. */
PROBED void NpuUtils::ProfReportMarkDataToNpuProfiler(uint32_t category, const std::string &data,
						      uint64_t correlation_id)
{
	__asm__ volatile("" ::"r"(category), "r"(&data), "r"(correlation_id));
}

PROBED void NpuUtils::ProfReportMarkDataToNpuProfiler(uint32_t category, void *data, size_t offset)
{
	__asm__ volatile("" ::"r"(category), "r"(data), "r"(offset));
}

static void run_in_place(const std::string &op_name, const PROC_FUNC &func)
{
	npusim::use_device(npusim::current_device());
	npusim::check(func(), op_name.c_str());
}

static void enqueue(c10_npu::queue::QueueParamType type, void *value, size_t length)
{
	c10_npu::queue::QueueParas paras;

	paras.paramType = type;
	paras.paramVal = value;
	paras.paramLen = length;
	c10_npu::enCurrentNPUStream(&paras);
}

OpCommand &OpCommand::Name(const std::string &op_name)
{
	name = op_name;
	return *this;
}

OpCommand &OpCommand::SetCustomHandler(PROC_FUNC func)
{
	handler = std::move(func);
	return *this;
}

void OpCommand::Run()
{
	auto value = std::make_unique<c10_npu::queue::ExecuteParas>();

	if (!c10_npu::queue_is_enabled())
		return run_in_place(name, handler);
	name.copy(value->opType, sizeof(value->opType) - 1);
	value->pta_correlation_id = ++c10_npu::queue::ExecuteParas::g_pta_correlation_id;
	value->customHandler = std::move(handler);
	enqueue(c10_npu::queue::COMPILE_AND_EXECUTE, value.get(), sizeof(*value));
}

void OpCommand::RunOpApi(const std::string &op_name, PROC_FUNC func, bool sync)
{
	c10_npu::queue::ExecuteParasOpApi value;

	if (!c10_npu::queue_is_enabled()) {
		run_in_place(op_name, func);
	} else {
		op_name.copy(value.opType, sizeof(value.opType) - 1);
		value.customHandler = std::move(func);
		enqueue(c10_npu::queue::EXECUTE_OPAPI, &value, sizeof(value));
	}
	if (sync)
		npusim::synchronize(npusim::current_device());
}

void OpCommand::RunOpApiV2(const std::string &op_name, const PROC_FUNC &func, bool sync)
{
	std::string name = op_name;
	c10_npu::queue::ExecuteParasOpApiV2 value = { &name, &func };

	if (!c10_npu::queue_is_enabled())
		run_in_place(op_name, func);
	else
		enqueue(c10_npu::queue::EXECUTE_OPAPI_V2, &value, sizeof(value));
	if (sync)
		npusim::synchronize(npusim::current_device());
}

void OpCommand::RunOpApiV3(const std::string &op_name, const PROC_FUNC &func, bool sync, c10_npu::NPUStream *)
{
	RunOpApiV2(op_name, func, sync);
}

} // namespace native
} // namespace at_npu
