/* SPDX-License-Identifier: BSD-2-Clause */
/* Which aclnn operator stands for which ATen operator, and its call. */
#include "log.h"
#include "operators.h"

#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <sstream>
#include <unordered_map>

extern "C" {
bool CanUsePTACache(const char *api);
aclOpExecutor *PTAGetExecCache(uint64_t hash, uint64_t *workspaceSize);
void InitPTACacheThreadLocal(void);
void SetPTAHashKey(uint64_t hash);
void UnInitPTACacheThreadLocal(void);
int InitHugeMemThreadLocal(void *arg, bool sync);
void UnInitHugeMemThreadLocal(void *arg, bool sync);
void ReleaseHugeMem(void *arg, bool sync);
}

namespace npusim
{

const aclnn_row aclnn_rows[] = {
	{ "add.Tensor", "aclnnAdd", "t0 t1 s2 r0", false },
	{ "add.Tensor", "aclnnAdds", "t0 s1 s2 r0", true },
	{ "add.out", "aclnnAdd", "t0 t1 s2 r0", false },
	{ "add.out", "aclnnAdds", "t0 s1 s2 r0", true },
	{ "add_.Tensor", "aclnnInplaceAdd", "r0 t1 s2", false },
	{ "add_.Tensor", "aclnnInplaceAdds", "r0 s1 s2", true },
	{ "sub.Tensor", "aclnnSub", "t0 t1 s2 r0", false },
	{ "sub.Tensor", "aclnnSubs", "t0 s1 s2 r0", true },
	{ "sub_.Tensor", "aclnnInplaceSub", "r0 t1 s2", false },
	{ "sub_.Tensor", "aclnnInplaceSubs", "r0 s1 s2", true },
	{ "mul.Tensor", "aclnnMul", "t0 t1 r0", false },
	{ "mul.Tensor", "aclnnMuls", "t0 s1 r0", true },
	{ "mul_.Tensor", "aclnnInplaceMul", "r0 t1", false },
	{ "mul_.Tensor", "aclnnInplaceMuls", "r0 s1", true },
	{ "div.Tensor", "aclnnDiv", "t0 t1 r0", false },
	{ "div.Tensor", "aclnnDivs", "t0 s1 r0", true },
	{ "div_.Tensor", "aclnnInplaceDiv", "r0 t1", false },
	{ "div_.Tensor", "aclnnInplaceDivs", "r0 s1", true },
	{ "addcmul_", "aclnnInplaceAddcmul", "r0 t1 t2 s3", false },
	{ "addcdiv_", "aclnnInplaceAddcdiv", "r0 t1 t2 s3", false },
	{ "relu", "aclnnRelu", "t0 r0", false },
	{ "relu_", "aclnnInplaceRelu", "r0", false },
	{ "threshold_backward", "aclnnThresholdBackward", "t0 t1 s2 r0", false },
	{ "sqrt", "aclnnSqrt", "t0 r0", false },
	{ "sqrt_", "aclnnInplaceSqrt", "r0", false },
	{ "neg", "aclnnNeg", "t0 r0", false },
	{ "exp", "aclnnExp", "t0 r0", false },
	{ "log", "aclnnLog", "t0 r0", false },
	{ "tanh", "aclnnTanh", "t0 r0", false },
	{ "tanh_backward", "aclnnTanhBackward", "t0 t1 r0", false },
	{ "sigmoid", "aclnnSigmoid", "t0 r0", false },
	{ "sigmoid_backward", "aclnnSigmoidBackward", "t0 t1 r0", false },
	{ "gelu", "aclnnGelu", "t0 r0", false },
	{ "gelu_backward", "aclnnGeluBackward", "t0 t1 r0", false },
	{ "mm", "aclnnMm", "t0 t1 r0 0", false },
	{ "addmm", "aclnnAddmm", "t0 t1 t2 s3 s4 r0 0", false },
	{ "bmm", "aclnnBatchMatMul", "t0 t1 r0 0", false },
	{ "convolution_overrideable", "aclnnConvolution", "t0 t1 t2 a3 a4 a5 i6 a7 i8 r0 0", false },
	{ "convolution_backward_overrideable", "aclnnConvolutionBackward",
	  "t0 t1 t2 0 a3 a4 a5 i6 a7 i8 m9 0 r0 r1 r2", false },
	{ "_adaptive_avg_pool2d", "aclnnAdaptiveAvgPool2d", "t0 a1 r0", false },
	{ "sum.dim_IntList", "aclnnReduceSum", "t0 a1 i2 d r0", false },
	{ "mean.dim", "aclnnMean", "t0 a1 i2 d r0", false },
	{ "argmax", "aclnnArgMax", "t0 i1 i2 r0", false },
	{ "eq.Tensor", "aclnnEqTensor", "t0 t1 r0", false },
	{ "_softmax", "aclnnSoftmax", "t0 i1 r0", false },
	{ "_softmax_backward_data", "aclnnSoftmaxBackward", "t0 t1 i2 r0", false },
	{ "_log_softmax", "aclnnLogSoftmax", "t0 i1 r0", false },
	{ "_log_softmax_backward_data", "aclnnLogSoftmaxBackward", "t0 t1 i2 r0", false },
	{ "nll_loss_forward", "aclnnNLLLoss", "t0 t1 t2 i3 i4 r0 r1", false },
	{ "nll_loss_backward", "aclnnNLLLossBackward", "t0 t1 t2 t3 i4 i5 t6 r0", false },
	{ "mse_loss", "aclnnMseLoss", "t0 t1 i2 r0", false },
	{ "mse_loss_backward", "aclnnMseLossBackward", "t0 t1 t2 i3 r0", false },
	{ "native_layer_norm", "aclnnLayerNorm", "t0 a1 t2 t3 r0 r1 r2", false },
	{ "native_layer_norm_backward", "aclnnLayerNormBackward", "t0 t1 a2 t3 t4 t5 t6 m7 r0 r1 r2", false },
	{ "native_batch_norm", "aclnnBatchNorm", "t0 t1 t2 t3 t4 i5 r0 r1 r2", false },
	{ "native_batch_norm_backward", "aclnnBatchNormBackward", "t0 t1 t2 t3 t4 t5 t6 i7 m9 r0 r1 r2",
	  false },
	{ "max_pool2d_with_indices", "aclnnMaxPool2dWithIndices", "t0 a1 a2 a3 a4 i5 r0 r1", false },
	{ "max_pool2d_with_indices_backward", "aclnnMaxPool2dWithIndicesBackward",
	  "t0 t1 t7 a2 a3 a4 a5 i6 r0", false },
	{ "cat", "aclnnCat", "l0 i1 r0", false },
	{ "max", "aclnnMax", "t0 r0", false },
	{ "gt.Scalar", "aclnnGtScalar", "t0 s1 r0", false },
	{ "index_select", "aclnnIndexSelect", "t0 i1 t2 r0", false },
	{ "topk", "aclnnTopk", "t0 i1 i2 i3 i4 r0 r1", false },
	{ "embedding_dense_backward", "aclnnEmbeddingDenseBackward", "t0 t1 i2 i3 i4 r0", false },
	{ "bernoulli_.float", "aclnnInplaceBernoulli", "r0 s1 0 0", false },
	{ "zero_", "aclnnInplaceZero", "r0", false },
	{ "fill_.Scalar", "aclnnInplaceFillScalar", "r0 s1", false },
	{ "normal_", "aclnnInplaceNormal", "r0 0 0", false },
	{ "uniform_", "aclnnInplaceUniform", "r0 0 0", false },
	{ "copy_", "aclnnInplaceCopy", "r0 t1", false },
};
const size_t aclnn_rows_count = sizeof(aclnn_rows) / sizeof(*aclnn_rows);

static constexpr size_t PARAMS_MAX = 18; /* with the workspace size and the executor */

/* What a call made of libnnopbase's objects; freed after phase 2. */
struct operands {
	std::vector<const aclTensor *> tensors;
	std::vector<const aclScalar *> scalars;
	std::vector<const aclIntArray *> ints;
	std::vector<const aclBoolArray *> bools;
	std::vector<const aclTensorList *> lists;

	~operands()
	{
		for (auto *t : tensors)
			aclDestroyTensor(t);
		for (auto *s : scalars)
			aclDestroyScalar(s);
		for (auto *a : ints)
			aclDestroyIntArray(a);
		for (auto *a : bools)
			aclDestroyBoolArray(a);
		for (auto *l : lists)
			aclDestroyTensorList(l);
	}
};

static aclDataType type_of(at::ScalarType type)
{
	switch (type) {
	case at::kHalf:
		return ACL_FLOAT16;
	case at::kChar:
		return 2;
	case at::kInt:
		return 3;
	case at::kByte:
		return 4;
	case at::kShort:
		return 6;
	case at::kLong:
		return 9;
	case at::kDouble:
		return 11;
	case at::kBool:
		return 12;
	case at::kBFloat16:
		return ACL_BF16;
	default:
		return ACL_FLOAT;
	}
}

static const aclTensor *create_tensor(const at::Tensor &t)
{
	int64_t storage;
	const aclTensor *tensor;

	if (!t.defined())
		return nullptr;
	storage = (int64_t)(t.storage().nbytes() / t.itemsize());
	tensor = aclCreateTensor(t.sizes().data(), (uint64_t)t.dim(), type_of(t.scalar_type()),
				 t.strides().data(), t.storage_offset(), ACL_FORMAT_ND, &storage, 1,
				 t.storage().data());
	TORCH_CHECK(tensor, "aclCreateTensor failed");
	return tensor;
}

static const aclTensor *tensor_of(const at::Tensor &t, operands &made)
{
	made.tensors.push_back(create_tensor(t));
	return made.tensors.back();
}

/* The list owns its tensors. */
static const aclTensorList *list_of(const c10::IValue &value, operands &made)
{
	std::vector<const aclTensor *> tensors;

	for (const at::Tensor &t : value.toTensorVector())
		tensors.push_back(create_tensor(t));
	made.lists.push_back(aclCreateTensorList(tensors.data(), tensors.size()));
	return made.lists.back();
}

static const aclScalar *scalar_of(const c10::IValue &value, operands &made)
{
	at::Scalar scalar = value.isTensor() ? value.toTensor().item()
			    : value.isNone() ? at::Scalar(1)
					     : value.toScalar();
	float number = scalar.toFloat();
	const aclScalar *made_scalar = aclCreateScalar(&number, ACL_FLOAT);

	made.scalars.push_back(made_scalar);
	return made_scalar;
}

static const aclIntArray *ints_of(const c10::IValue &value, operands &made)
{
	std::vector<int64_t> numbers;
	const aclIntArray *array;

	if (value.isIntList())
		numbers = value.toIntVector();
	else if (value.isInt())
		numbers = { value.toInt() };
	array = aclCreateIntArray(numbers.data(), numbers.size());
	made.ints.push_back(array);
	return array;
}

static const aclBoolArray *bools_of(const c10::IValue &value, operands &made)
{
	bool values[8] = {};
	auto list = value.toBoolList();
	size_t n = std::min(list.size(), sizeof(values));
	const aclBoolArray *array;

	for (size_t i = 0; i < n; i++)
		values[i] = list[i];
	array = aclCreateBoolArray(values, n);
	made.bools.push_back(array);
	return array;
}

static uintptr_t integer_of(const c10::IValue &value)
{
	if (value.isInt())
		return (uintptr_t)value.toInt();
	return value.isBool() && value.toBool();
}

static uintptr_t param_of(const std::string &token, const std::vector<c10::IValue> &args,
			  const std::vector<at::Tensor> &results, operands &made)
{
	size_t n = token.size() > 1 ? (size_t)(token[1] - '0') : 0;

	switch (token[0]) {
	case 't':
		return (uintptr_t)(args.at(n).isTensor() ? tensor_of(args[n].toTensor(), made) : nullptr);
	case 'l':
		return (uintptr_t)list_of(args.at(n), made);
	case 'r':
		return (uintptr_t)tensor_of(results.at(n), made);
	case 's':
		return (uintptr_t)scalar_of(args.at(n), made);
	case 'a':
		return (uintptr_t)ints_of(args.at(n), made);
	case 'm':
		return (uintptr_t)bools_of(args.at(n), made);
	case 'i':
		return integer_of(args.at(n));
	case 'd':
		return (uintptr_t)type_of(results.at(0).scalar_type());
	default:
		return 0;
	}
}

/* As torch_npu: the libraries of operators are loaded at first use, and functions found by name. */
static void *find_function(const std::string &name)
{
	static std::mutex lock;
	static std::unordered_map<std::string, void *> found;
	static void *const libraries[] = { dlopen("libopapi.so", RTLD_LAZY),
					   dlopen("libopapi_nn.so", RTLD_LAZY) };
	std::lock_guard<std::mutex> guard(lock);
	auto it = found.find(name);
	void *function = nullptr;

	if (it != found.end())
		return it->second;
	for (void *library : libraries)
		if (!function && library)
			function = dlsym(library, name.c_str());
	TORCH_CHECK(function, "torch_npu: no library of operators has ", name, ": is set_env.sh sourced?");
	found[name] = function;
	return function;
}

/* Of the call: what makes another one alike. */
static uint64_t key_of(const aclnn_row &row, const std::vector<c10::IValue> &args,
		       const std::vector<at::Tensor> &results)
{
	size_t key = std::hash<std::string>()(row.aclnn);
	auto mix = [&key](size_t n) { key = (key ^ n) * 0x100000001b3ull; };
	auto mix_tensor = [&mix](const at::Tensor &t) {
		mix(0x746e7372);
		if (!t.defined())
			return;
		mix((size_t)t.scalar_type());
		for (int64_t size : t.sizes())
			mix((size_t)size);
		for (int64_t stride : t.strides())
			mix((size_t)stride);
	};

	for (const auto &arg : args)
		if (arg.isTensor())
			mix_tensor(arg.toTensor());
		else if (arg.isScalar())
			mix(std::hash<double>()(arg.toScalar().toDouble()));
	for (const auto &result : results)
		mix_tensor(result);
	return key;
}

using words = uintptr_t[PARAMS_MAX];
typedef aclnnStatus (*phase_1)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
			       uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
			       uintptr_t, uintptr_t, uintptr_t, uintptr_t);
typedef aclnnStatus (*phase_2)(void *, uint64_t, aclOpExecutor *, aclrtStream);

/* Words in registers and on the stack are passed alike whatever their number: those behind are not read. */
static aclOpExecutor *plan(const aclnn_row &row, const std::vector<c10::IValue> &args,
			   const std::vector<at::Tensor> &results, operands &made, uint64_t *workspace)
{
	auto function = reinterpret_cast<phase_1>(find_function(std::string(row.aclnn) + "GetWorkspaceSize"));
	aclOpExecutor *executor = nullptr;
	std::istringstream tokens(row.params);
	std::string token;
	words w = {};
	size_t n = 0;

	while (n < PARAMS_MAX - 2 && tokens >> token)
		w[n++] = param_of(token, args, results, made);
	w[n++] = (uintptr_t)workspace;
	w[n++] = (uintptr_t)&executor;
	check(function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13],
		       w[14], w[15], w[16], w[17]),
	      row.aclnn);
	return executor;
}

const aclnn_row *find_row(const std::string &aten, const std::vector<c10::IValue> &args)
{
	bool scalar_other = args.size() > 1 && args[1].isTensor() && args[1].toTensor().defined() &&
			    args[1].toTensor().is_cpu() && args[1].toTensor().dim() == 0;

	for (const aclnn_row &row : aclnn_rows)
		if (aten == row.aten && scalar_other == row.scalar_other)
			return &row;
	return nullptr;
}

/* NPUSIM_TORCH_API: through which function, as different versions of torch_npu. */
static void submit(const char *name, const at_npu::native::PROC_FUNC &func)
{
	static const char *const variable = getenv("NPUSIM_TORCH_API");
	static const std::string api = variable ? variable : "V2";

	if (api == "RUN")
		at_npu::native::OpCommand().Name(name).SetCustomHandler(func).Run();
	else if (api == "V1")
		at_npu::native::OpCommand::RunOpApi(name, func);
	else if (api == "V3")
		at_npu::native::OpCommand::RunOpApiV3(name, func, false, nullptr);
	else
		at_npu::native::OpCommand::RunOpApiV2(name, func);
}

void launch(const std::string &aten, const aclnn_row &row, const std::vector<c10::IValue> &args,
	    const std::vector<at::Tensor> &results, uint64_t begin)
{
	auto run = reinterpret_cast<phase_2>(find_function(row.aclnn));
	auto made = std::make_shared<operands>();
	uint64_t key = key_of(row, args, results), workspace = 0, id = log_next_id();
	aclOpExecutor *executor = nullptr;
	aclrtStream stream = default_stream(current_device());
	const char *name = row.aclnn;
	bool cached;

	InitHugeMemThreadLocal(nullptr, false);
	InitPTACacheThreadLocal();
	if (CanUsePTACache(name))
		executor = PTAGetExecCache(key, &workspace);
	cached = executor != nullptr;
	if (!cached) {
		SetPTAHashKey(key);
		executor = plan(row, args, results, *made, &workspace);
	}
	UnInitPTACacheThreadLocal();
	log_op(aten.c_str(), name, id, executor, cached, begin);
	submit(name, [=]() -> int {
		uint64_t run_begin = now();
		int err = run(nullptr, workspace, executor, stream);

		(void)made; /* until here */
		ReleaseHugeMem(nullptr, false);
		log_launch(id, name, run_begin);
		return err;
	});
	UnInitHugeMemThreadLocal(nullptr, false);
}

} // namespace npusim
