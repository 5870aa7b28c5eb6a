/* SPDX-License-Identifier: BSD-2-Clause */
/* What a backend has to have: tensors without values, views, and copies. */
#include "log.h"
#include "operators.h"
#include "stream.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace npusim
{

static const c10::DispatchKeySet npu_keys(c10::DispatchKey::PrivateUse1);

static int index_of(c10::optional<at::Device> device)
{
	return device && device->has_index() ? device->index() : current_device();
}

static at::Tensor empty(at::IntArrayRef size, c10::optional<at::ScalarType> type, c10::optional<at::Layout>,
			c10::optional<at::Device> device, c10::optional<bool>,
			c10::optional<at::MemoryFormat> format)
{
	c10::DeviceGuard guard(c10::Device(c10::DeviceType::PrivateUse1, (c10::DeviceIndex)index_of(device)));

	return at::detail::empty_generic(size, c10::GetAllocator(c10::DeviceType::PrivateUse1), npu_keys,
					 c10::dtype_or_default(type), format);
}

static at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
				c10::optional<at::ScalarType> type, c10::optional<at::Layout>,
				c10::optional<at::Device> device, c10::optional<bool>)
{
	return empty_on_npu(size, stride, c10::dtype_or_default(type), index_of(device));
}

static bool is_on_npu(const at::Tensor &t)
{
	return t.device().type() == c10::DeviceType::PrivateUse1;
}

static at::Tensor host_view(const at::Tensor &t)
{
	return is_on_npu(t) ? cpu_alias(t) : t;
}

/* On the NPU: an operator. */
static void copy_on_npu(const at::Tensor &self, const at::Tensor &dst)
{
	std::vector<c10::IValue> args = { dst, self };
	uint64_t begin = now();

	cpu_alias(dst).copy_(cpu_alias(self));
	launch("aten::copy_", *find_row("copy_", args), args, { dst }, begin);
}

static void copy_bytes(const at::Tensor &self, const at::Tensor &dst, bool to_npu)
{
	size_t bytes = dst.nbytes();

	check(aclrtMemcpy(dst.data_ptr(), bytes, self.data_ptr(), bytes,
			  to_npu ? ACL_MEMCPY_HOST_TO_DEVICE : ACL_MEMCPY_DEVICE_TO_HOST),
	      "aclrtMemcpy");
}

/* From or to the host, waiting: what is queued comes first. Type and layout change on the host. */
static void copy_across(const at::Tensor &self, const at::Tensor &dst)
{
	bool to_npu = is_on_npu(dst);
	uint64_t begin = now();

	synchronize(to_npu ? dst.device().index() : self.device().index());
	if (self.scalar_type() == dst.scalar_type() && self.strides() == dst.strides() &&
	    dst.is_non_overlapping_and_dense()) {
		copy_bytes(self, dst, to_npu);
	} else if (dst.is_non_overlapping_and_dense()) {
		at::Tensor host =
			at::empty_strided(dst.sizes(), dst.strides(), dst.options().device(at::kCPU));

		host.copy_(host_view(self));
		copy_bytes(host, dst, to_npu);
	} else {
		host_view(dst).copy_(host_view(self));
	}
	log_copy(to_npu ? "h2d" : "d2h", dst.nbytes(), begin);
}

static at::Tensor copy_from(const at::Tensor &self, const at::Tensor &dst, bool)
{
	c10::DeviceGuard guard(is_on_npu(dst) ? dst.device() : self.device());
	at::Tensor from = self.sizes() == dst.sizes() ? self : self.expand_as(dst);

	if (!dst.numel())
		return dst;
	if (is_on_npu(self) && is_on_npu(dst))
		copy_on_npu(from, dst);
	else
		copy_across(from, dst);
	return dst;
}

static at::Tensor copy_from_and_resize(const at::Tensor &self, const at::Tensor &dst)
{
	dst.resize_(self.sizes());
	return copy_from(self, dst, false);
}

static at::Scalar local_scalar_dense(const at::Tensor &self)
{
	at::Tensor host = at::empty({}, at::TensorOptions(self.scalar_type()).device(at::kCPU));

	copy_from(self.reshape({}), host, false);
	return host.item();
}

static const at::Tensor &resize(const at::Tensor &self, at::IntArrayRef size,
				c10::optional<at::MemoryFormat> format)
{
	c10::DeviceGuard guard(self.device());
	c10::TensorImpl *impl = self.unsafeGetTensorImpl();
	size_t bytes = at::detail::computeStorageNbytesContiguous(size, self.itemsize(),
								  (size_t)self.storage_offset());

	if (self.sizes() != size) {
		if (bytes > self.storage().nbytes()) {
			c10::DataPtr data = c10::GetAllocator(c10::DeviceType::PrivateUse1)->allocate(bytes);

			if (self.storage().nbytes())
				memcpy(data.get(), self.storage().data(), self.storage().nbytes());
			impl->unsafe_storage().set_data_ptr_noswap(std::move(data));
			impl->unsafe_storage().set_nbytes(bytes);
		}
		impl->set_sizes_contiguous(size);
	}
	if (format && *format != at::MemoryFormat::Preserve)
		impl->empty_tensor_restride(*format);
	return self;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("empty.memory_format", empty);
	m.impl("empty_strided", empty_strided);
	m.impl("_copy_from", copy_from);
	m.impl("_copy_from_and_resize", copy_from_and_resize);
	m.impl("_local_scalar_dense", local_scalar_dense);
	m.impl("resize_", resize);
	m.impl("as_strided", at::native::as_strided_tensorimpl);
	m.impl("view", at::native::view);
	m.impl("_reshape_alias", at::native::_reshape_alias);
}

} // namespace npusim
