/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the simulated torch_npu share that need no header of PyTorch. */
#ifndef NPUSIM_TORCH_NPU_H
#define NPUSIM_TORCH_NPU_H

#include <cstdint>
#include <functional>
#include <string>

extern "C" {
#include "../abi/aclnn.h"
}

#define TORCH_NPU_API __attribute__((visibility("default")))
#define C10_NPU_API __attribute__((visibility("default")))
/* A function that a tracer probes by its name: it is in .symtab, and called as it is declared. */
#define PROBED __attribute__((noipa))

namespace npusim
{

/* Throws, naming the call, unless ERROR is 0. */
void check(int error, const char *call);
/* The device's context is current in this thread; initialises ACL on the first call of the process. */
void use_device(int device);
int device_count();
int current_device();
void set_current_device(int device);
/* The stream of a device's default queue. */
aclrtStream default_stream(int device);
/* Waits until the device's queue is empty. */
void drain(int device);
/* Waits until the queue is empty and the stream is idle. */
void synchronize(int device);
/* Drains the queues and resets the devices; for the end of the process. */
void shut_down();

} // namespace npusim

namespace c10_npu
{
class NPUStream;
}

namespace at_npu
{
namespace native
{

using PROC_FUNC = std::function<int()>;

class TORCH_NPU_API OpCommand
{
      public:
	OpCommand &Name(const std::string &op_name);
	OpCommand &SetCustomHandler(PROC_FUNC func);
	/* As older versions of torch_npu launch all operators, and newer ones those without aclnn. */
	void Run();
	static void RunOpApi(const std::string &op_name, PROC_FUNC func, bool sync = false);
	static void RunOpApiV2(const std::string &op_name, const PROC_FUNC &func, bool sync = false);
	static void RunOpApiV3(const std::string &op_name, const PROC_FUNC &func, bool sync,
			       c10_npu::NPUStream *stream);

      private:
	std::string name;
	PROC_FUNC handler;
};

class NpuUtils
{
      public:
	/* Category 0 and 1: begin and end of an enqueue; 2 and 3: of a dequeue. */
	static void ProfReportMarkDataToNpuProfiler(uint32_t category, const std::string &data,
						    uint64_t correlation_id);
	static void ProfReportMarkDataToNpuProfiler(uint32_t category, void *data, size_t offset);
};

} // namespace native
} // namespace at_npu

#endif
