/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices: ACL's initialisation, the current device of a thread, a device's default stream and queue. */
#include "log.h"
#include "queue.h"

#include <memory>
#include <mutex>
#include <stdexcept>

namespace npusim
{

static constexpr int DEVICES_MAX = 64;

struct device {
	std::once_flag made;
	aclrtStream stream = nullptr;
	std::unique_ptr<c10_npu::Repository> repository;
};

static device devices[DEVICES_MAX];
static thread_local int current = 0;
static thread_local int used = -1; /* the device whose context this thread has */

void check(int error, const char *call)
{
	if (error)
		throw std::runtime_error(std::string("torch_npu: ") + call + ": error " +
					 std::to_string(error));
}

static void initialize_once()
{
	static std::once_flag once;

	std::call_once(once, [] { check(aclInit(nullptr), "aclInit"); });
}

int device_count()
{
	static const int count = [] {
		uint32_t n = 0;

		initialize_once();
		check(aclrtGetDeviceCount(&n), "aclrtGetDeviceCount");
		return (int)n < DEVICES_MAX ? (int)n : DEVICES_MAX;
	}();

	return count;
}

int current_device()
{
	return current;
}

void set_current_device(int device)
{
	current = device;
}

void use_device(int device)
{
	if (used == device)
		return;
	if (device < 0 || device >= device_count())
		throw std::runtime_error("torch_npu: there is no device " + std::to_string(device));
	check(aclrtSetDevice(device), "aclrtSetDevice");
	used = device;
}

static device &made_device(int index)
{
	device &d = devices[index];

	use_device(index);
	std::call_once(d.made, [&d, index] {
		check(aclrtCreateStreamWithConfig(&d.stream, 0, 1), "aclrtCreateStreamWithConfig");
		if (c10_npu::queue_is_enabled()) {
			d.repository = std::make_unique<c10_npu::Repository>();
			d.repository->InitRepo((int8_t)index);
		}
	});
	return d;
}

aclrtStream default_stream(int index)
{
	return made_device(index).stream;
}

void drain(int index)
{
	device &d = made_device(index);

	if (d.repository)
		d.repository->MakeSureQueueEmpty();
}

void synchronize(int index)
{
	device &d = made_device(index);

	drain(index);
	check(aclrtSynchronizeStream(d.stream), "aclrtSynchronizeStream");
}

void shut_down()
{
	for (int i = 0; i < DEVICES_MAX; i++) {
		device &d = devices[i];

		if (!d.stream)
			continue;
		use_device(i);
		if (d.repository)
			d.repository->Stop();
		aclrtSynchronizeStream(d.stream);
		aclrtDestroyStream(d.stream);
		d.stream = nullptr;
		aclrtResetDevice(i);
	}
	log_end();
}

} // namespace npusim

namespace c10_npu
{

static std::string name_of(const queue::QueueParas &paras)
{
	switch (paras.paramType) {
	case queue::EXECUTE_OPAPI:
		return static_cast<queue::ExecuteParasOpApi *>(paras.paramVal)->opType;
	case queue::EXECUTE_OPAPI_V2:
		return *static_cast<queue::ExecuteParasOpApiV2 *>(paras.paramVal)->opName;
	case queue::COMPILE_AND_EXECUTE:
		return static_cast<queue::ExecuteParas *>(paras.paramVal)->opType;
	default:
		return "";
	}
}

PROBED void enCurrentNPUStream(void *cur_paras, int8_t device_index)
{
	auto *paras = static_cast<queue::QueueParas *>(cur_paras);
	npusim::device &d = npusim::made_device(device_index < 0 ? npusim::current_device() : device_index);
	std::string op = name_of(*paras);

	paras->correlation_id = ++queue::QueueParas::g_correlation_id;
	paras->paramStream = d.stream;
	at_npu::native::NpuUtils::ProfReportMarkDataToNpuProfiler(0, op, paras->correlation_id);
	d.repository->Enqueue(cur_paras);
	at_npu::native::NpuUtils::ProfReportMarkDataToNpuProfiler(1, op, paras->correlation_id);
}

} // namespace c10_npu
