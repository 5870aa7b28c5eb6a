/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPUSIM_TORCH_NPU_STREAM_H
#define NPUSIM_TORCH_NPU_STREAM_H

#include "npu.h"

#include <c10/core/Stream.h>

namespace c10_npu
{

class C10_NPU_API NPUStream
{
      public:
	explicit NPUStream(c10::Stream stream) : stream_(stream)
	{
	}
	/* Empties the queue first, so that what is submitted to the stream comes after what is queued. */
	aclrtStream stream() const;
	void synchronize() const;
	c10::Stream unwrap() const;

      private:
	c10::Stream stream_;
};

C10_NPU_API NPUStream getCurrentNPUStream(c10::DeviceIndex device_index = -1);
C10_NPU_API NPUStream getDefaultNPUStream(c10::DeviceIndex device_index = -1);

} // namespace c10_npu

#endif
