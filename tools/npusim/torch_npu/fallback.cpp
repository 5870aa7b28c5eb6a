/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An operator's arithmetic: its arguments are passed to the CPU's kernel as tensors of the CPU with the same
 * memory, what it returns is moved to memory of the NPU, and then the operator is launched.
 */
#include "log.h"
#include "operators.h"

#include <ATen/EmptyTensor.h>
#include <torch/library.h>

namespace npusim
{

using c10::IValue;
using torch::jit::Stack;

static const c10::DispatchKeySet npu_keys(c10::DispatchKey::PrivateUse1);

static bool is_on_npu(const at::Tensor &t)
{
	return t.defined() && t.device().type() == c10::DeviceType::PrivateUse1;
}

at::Tensor empty_on_npu(at::IntArrayRef size, at::IntArrayRef stride, at::ScalarType type, int device)
{
	c10::DeviceGuard guard(c10::Device(c10::DeviceType::PrivateUse1, (c10::DeviceIndex)device));

	return at::detail::empty_strided_generic(
		size, stride, c10::GetAllocator(c10::DeviceType::PrivateUse1), npu_keys, type);
}

at::Tensor cpu_alias(const at::Tensor &t)
{
	const at::Storage &from = t.storage();
	c10::Storage storage(c10::Storage::use_byte_size_t(), from.nbytes(),
			     at::DataPtr(from.data(), c10::Device(c10::DeviceType::CPU)), nullptr, false);
	at::Tensor alias = at::detail::make_tensor<c10::TensorImpl>(
		std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), t.dtype());

	alias.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
	if (t.unsafeGetTensorImpl()->is_wrapped_number())
		alias.unsafeGetTensorImpl()->set_wrapped_number(true);
	return alias;
}

/* What one call passes to the CPU, and what it stands for. */
struct call {
	std::vector<IValue> args; /* as they came */
	std::vector<std::pair<at::Tensor, at::Tensor>> aliases; /* of the NPU, of the CPU */
	std::vector<std::pair<at::Tensor, at::Tensor>> empties; /* written, and without memory so far */
	int device = current_device();
};

static at::Tensor to_cpu(call &c, const at::Tensor &t, bool written)
{
	at::Tensor alias;

	if (!is_on_npu(t))
		return t;
	c.device = t.device().index();
	if (written && t.numel() == 0) {
		alias = at::empty({ 0 }, at::TensorOptions(t.scalar_type()).device(at::kCPU));
		c.empties.emplace_back(t, alias);
	} else {
		alias = cpu_alias(t);
	}
	c.aliases.emplace_back(t, alias);
	return alias;
}

static IValue arg_to_cpu(call &c, const IValue &arg, bool written)
{
	if (arg.isTensor())
		return arg.toTensor().defined() ? IValue(to_cpu(c, arg.toTensor(), written)) : arg;
	if (arg.isTensorList()) {
		c10::List<at::Tensor> list;

		for (const at::Tensor &t : arg.toTensorVector())
			list.push_back(to_cpu(c, t, written));
		return list;
	}
	if (arg.isOptionalTensorList()) {
		c10::List<c10::optional<at::Tensor>> list;

		for (const c10::optional<at::Tensor> &t : arg.toOptionalTensorList())
			list.push_back(t ? c10::make_optional(to_cpu(c, *t, false)) : t);
		return list;
	}
	if (arg.isDevice() && arg.toDevice().type() == c10::DeviceType::PrivateUse1)
		return c10::Device(c10::DeviceType::CPU);
	return arg;
}

/* The result as a tensor of the NPU: an argument, a view of one, or new memory. */
static at::Tensor to_npu(const call &c, const at::Tensor &result)
{
	at::Tensor to;

	if (!result.defined())
		return result;
	for (const auto &[npu, cpu] : c.aliases) {
		if (result.unsafeGetTensorImpl() == cpu.unsafeGetTensorImpl())
			return npu;
		if (result.numel() && cpu.storage().data() && result.storage().data() == cpu.storage().data())
			return at::as_strided(npu, result.sizes(), result.strides(), result.storage_offset());
	}
	to = empty_on_npu(result.sizes(), result.strides(), result.scalar_type(), c.device);
	if (result.numel()) /* not by copy_(), which is an operator itself */
		memcpy(to.data_ptr(), result.data_ptr(),
		       at::detail::computeStorageNbytes(result.sizes(), result.strides(), result.itemsize()));
	return to;
}

static void fill_empties(const call &c)
{
	for (const auto &[npu, cpu] : c.empties) {
		npu.resize_(cpu.sizes());
		if (cpu.numel())
			cpu_alias(npu).copy_(cpu);
	}
}

/* The convolution that a backend may override is the CPU's own convolution, with its choice of algorithm. */
static void compute(const c10::OperatorHandle &op, const std::string &name, Stack *stack)
{
	static const auto forward = c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
	static const auto backward =
		c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution_backward", "");

	if (name == "convolution_overrideable") {
		forward.callBoxed(stack);
	} else if (name == "convolution_backward_overrideable") {
		IValue sizes =
			std::vector<int64_t>{ (*stack)[2].toTensor().size((*stack)[6].toBool() ? 1 : 0) };

		stack->insert(stack->begin() + 3, sizes);
		backward.callBoxed(stack);
	} else {
		op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
	}
}

static std::string name_of(const c10::OperatorHandle &op)
{
	const c10::OperatorName &name = op.operator_name();
	std::string base = name.name.substr(name.name.find("::") + 2);

	return name.overload_name.empty() ? base : base + "." + name.overload_name;
}

static bool is_written(const c10::Argument &arg)
{
	return arg.alias_info() && arg.alias_info()->isWrite();
}

/* The CPU's results on the stack, as the NPU's; the tensors among them. */
static std::vector<at::Tensor> results_to_npu(const call &c, Stack &results)
{
	std::vector<at::Tensor> tensors;

	for (IValue &value : results) {
		if (value.isTensor()) {
			value = to_npu(c, value.toTensor());
			tensors.push_back(value.toTensor());
		} else if (value.isTensorList()) {
			c10::List<at::Tensor> list;

			for (const at::Tensor &t : value.toTensorVector())
				list.push_back(to_npu(c, t));
			value = list;
		}
	}
	return tensors;
}

void run_boxed(const c10::OperatorHandle &op, Stack *stack)
{
	const auto &schema = op.schema();
	size_t nargs = schema.arguments().size();
	std::string name = name_of(op);
	uint64_t begin = now();
	std::vector<at::Tensor> results;
	const aclnn_row *row;
	Stack inner;
	call c;

	c.args.assign(stack->end() - (ptrdiff_t)nargs, stack->end());
	stack->resize(stack->size() - nargs);
	for (size_t i = 0; i < nargs; i++)
		inner.push_back(arg_to_cpu(c, c.args[i], is_written(schema.arguments()[i])));
	{
		at::AutoDispatchBelowADInplaceOrView guard;

		compute(op, name, &inner);
	}
	fill_empties(c);
	results = results_to_npu(c, inner);
	row = find_row(name, c.args);
	c10::DeviceGuard guard(c10::Device(c10::DeviceType::PrivateUse1, (c10::DeviceIndex)c.device));
	if (row)
		launch("aten::" + name, *row, c.args, results, begin);
	else
		log_op(("aten::" + name).c_str(), nullptr, 0, nullptr, false, begin);
	stack->insert(stack->end(), inner.begin(), inner.end());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m)
{
	m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_boxed>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	std::string before;

	for (size_t i = 0; i < aclnn_rows_count; i++) {
		std::string name = aclnn_rows[i].aten;

		if (name != before && name != "copy_")
			m.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_boxed>());
		before = name;
	}
}

} // namespace npusim
