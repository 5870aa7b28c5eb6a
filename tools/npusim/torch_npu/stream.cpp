/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams and the guard, by which PyTorch switches devices. Each device has its default stream only. */
#include "stream.h"
#include "queue.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace c10_npu
{

using c10::Device;
using c10::DeviceType;
using c10::Stream;

aclrtStream NPUStream::stream() const
{
	npusim::drain(stream_.device_index());
	return npusim::default_stream(stream_.device_index());
}

void NPUStream::synchronize() const
{
	npusim::synchronize(stream_.device_index());
}

Stream NPUStream::unwrap() const
{
	return stream_;
}

NPUStream getDefaultNPUStream(c10::DeviceIndex device_index)
{
	int index = device_index < 0 ? npusim::current_device() : device_index;

	return NPUStream(Stream(Stream::DEFAULT, Device(DeviceType::PrivateUse1, (c10::DeviceIndex)index)));
}

NPUStream getCurrentNPUStream(c10::DeviceIndex device_index)
{
	return getDefaultNPUStream(device_index);
}

struct NPUGuardImpl final : public c10::impl::DeviceGuardImplInterface {
	DeviceType type() const override
	{
		return DeviceType::PrivateUse1;
	}
	Device exchangeDevice(Device device) const override
	{
		Device before = getDevice();

		setDevice(device);
		return before;
	}
	Device getDevice() const override
	{
		return Device(DeviceType::PrivateUse1, (c10::DeviceIndex)npusim::current_device());
	}
	void setDevice(Device device) const override
	{
		npusim::set_current_device(device.has_index() ? device.index() : 0);
	}
	void uncheckedSetDevice(Device device) const noexcept override
	{
		setDevice(device);
	}
	Stream getStream(Device device) const noexcept override
	{
		return Stream(Stream::DEFAULT, device);
	}
	Stream getDefaultStream(Device device) const override
	{
		return Stream(Stream::DEFAULT, device);
	}
	Stream exchangeStream(Stream stream) const noexcept override
	{
		return stream;
	}
	c10::DeviceIndex deviceCount() const noexcept override
	{
		return (c10::DeviceIndex)npusim::device_count();
	}
	void synchronizeStream(const Stream &stream) const override
	{
		npusim::synchronize(stream.device_index());
	}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, NPUGuardImpl);

} // namespace c10_npu
