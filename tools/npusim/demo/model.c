/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network: what is launched in a step.  The number of layers follows from the launch rate, the size of
 * the tensors from the time that a kernel may take at that rate.
 */
#define _GNU_SOURCE
#include "job.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LAUNCHES_PER_LAYER 20
#define LAUNCHES_PER_STEP 18 /* outside the layers */
#define BUSY_SHARE 0.5 /* of a launch's period, for the mean kernel */
#define MEAN_WAVE_NS 1500.0
#define KERNEL_SETUP_NS 1500.0
#define CORES 24
#define BLOCK_ELEMENTS 8192
#define BUCKETS 4
#define TIMES 16 /* events of a timed step, at most */
#define ACTIVATION_BYTES (8u << 20)
#define OPERANDS_MAX 16
#define EVAL_KERNEL "eval_metric_custom"

struct model {
	struct rank *rank;
	long layers;
	uint64_t launch_ns;
	uint64_t next_launch; /* the pace: launches are not made before their time */
	void *memory, *gradients;
	uint64_t gradient_count;
	int64_t elements; /* of a tensor */
	int layer; /* the layers' tensors have different shapes */
	aclTensor *made[OPERANDS_MAX]; /* of the operator that is being called */
	int nmade;
	aclScalar *alpha;
	aclIntArray *dims;
	aclBoolArray *mask;
	aclrtEvent gradients_ready[BUCKETS], reduced;
	aclrtEvent times[TIMES]; /* NULL: no step is timed */
	int ntimes; /* recorded in this step */
	bool timed;
	void *binary;
};

static const char stub_name[] = "scale_gradients_custom";

/* The host stub of a kernel launched the <<<>>> way: only its address matters. */
void scale_gradients_custom(void);

void scale_gradients_custom(void)
{
}

static void *create_memory(size_t bytes)
{
	void *p = NULL;

	check(aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
	return p;
}

/* So many elements that the mean kernel needs its share of a launch's period. */
static int64_t elements_for(uint64_t launch_ns)
{
	double waves = ((double)launch_ns * BUSY_SHARE - KERNEL_SETUP_NS) / MEAN_WAVE_NS;

	return (int64_t)((waves < 1 ? 1 : waves) * CORES) * BLOCK_ELEMENTS;
}

static void register_stub(struct model *m)
{
	rtDevBinary_t binary = { .magic = 0x41494343, .data = stub_name, .length = sizeof(stub_name) };

	check(rtDevBinaryRegister(&binary, &m->binary), "rtDevBinaryRegister");
	check(rtFunctionRegister(m->binary, (const void *)(uintptr_t)scale_gradients_custom, stub_name,
				 stub_name, 0),
	      "rtFunctionRegister");
}

struct model *model_create(struct rank *r)
{
	struct model *m = calloc(1, sizeof(*m));
	int64_t dims[] = { 1 };
	bool mask[] = { true, true, true };
	float one = 1;

	check(!m, "model");
	m->rank = r;
	m->launch_ns = 1000000000ull / (uint64_t)r->options->rate;
	m->layers = (long)(STEP_PERIOD_NS / m->launch_ns - LAUNCHES_PER_STEP) / LAUNCHES_PER_LAYER;
	m->layers = m->layers < BUCKETS ? BUCKETS : m->layers;
	m->memory = create_memory(ACTIVATION_BYTES);
	m->gradients = create_memory(ACTIVATION_BYTES);
	m->gradient_count = ACTIVATION_BYTES / 2 / BUCKETS;
	m->elements = elements_for(m->launch_ns);
	m->alpha = aclCreateScalar(&one, ACL_FLOAT);
	m->dims = aclCreateIntArray(dims, 1);
	m->mask = aclCreateBoolArray(mask, 3);
	check(!m->alpha || !m->dims || !m->mask, "aclCreateScalar");
	for (int i = 0; i < BUCKETS; i++)
		check(aclrtCreateEventExWithFlag(&m->gradients_ready[i], ACL_EVENT_SYNC),
		      "aclrtCreateEventExWithFlag");
	check(aclrtCreateEventWithFlag(&m->reduced, ACL_EVENT_TIME_LINE), "aclrtCreateEventWithFlag");
	for (int i = 0; i < TIMES && r->options->time_every; i++)
		check(aclrtCreateEventWithFlag(&m->times[i], ACL_EVENT_TIME_LINE),
		      "aclrtCreateEventWithFlag");
	register_stub(m);
	m->next_launch = now_ns();
	return m;
}

void model_destroy(struct model *m)
{
	for (int i = 0; i < BUCKETS; i++)
		check(aclrtDestroyEvent(m->gradients_ready[i]), "aclrtDestroyEvent");
	check(aclrtDestroyEvent(m->reduced), "aclrtDestroyEvent");
	for (int i = 0; i < TIMES && m->times[i]; i++)
		check(aclrtDestroyEvent(m->times[i]), "aclrtDestroyEvent");
	aclDestroyScalar(m->alpha);
	aclDestroyIntArray(m->dims);
	aclDestroyBoolArray(m->mask);
	check(rtDevBinaryUnRegister(m->binary), "rtDevBinaryUnRegister");
	check(aclrtFree(m->memory), "aclrtFree");
	check(aclrtFree(m->gradients), "aclrtFree");
	free(m);
}

/* Sleeps only when well ahead: a sleep costs more than a launch. Catches up after a delay, within limits. */
static void pace(struct model *m, long launches)
{
	uint64_t now = now_ns();

	m->next_launch += m->launch_ns * (uint64_t)launches;
	if (m->next_launch > now + 200000) {
		uint64_t ns = m->next_launch - now;
		struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000u),
				       .tv_nsec = (long)(ns % 1000000000u) };

		nanosleep(&ts, NULL);
	} else if (m->next_launch + STEP_PERIOD_NS / 4 < now) {
		m->next_launch = now;
	}
}

static aclTensor *make_tensor(struct model *m, int64_t rows, aclDataType type, aclFormat format)
{
	int64_t dims[] = { rows, m->elements / rows }, stride[] = { m->elements / rows, 1 };
	aclTensor *t = aclCreateTensor(dims, 2, type, stride, 0, format, dims, 2, m->memory);

	check(!t || m->nmade == OPERANDS_MAX, "aclCreateTensor");
	return m->made[m->nmade++] = t;
}

/* An activation of the layer; one with the other data type; a weight. */
static aclTensor *x(struct model *m)
{
	return make_tensor(m, 16 << m->layer % 4, ACL_FLOAT16, ACL_FORMAT_ND);
}

static aclTensor *x32(struct model *m)
{
	return make_tensor(m, 16 << m->layer % 4, ACL_FLOAT, ACL_FORMAT_ND);
}

static aclTensor *w(struct model *m)
{
	return make_tensor(m, 128 << m->layer % 4, ACL_BF16, ACL_FORMAT_FRACTAL_NZ);
}

static void destroy_tensors(struct model *m)
{
	while (m->nmade)
		check(aclDestroyTensor(m->made[--m->nmade]), "aclDestroyTensor");
}

/*
 * Both phases of an operator on the compute stream, with tensors that are made for it and live as long;
 * then a pause in proportion to its launches.
 */
#define OP(m, launches, op, ...)                                                                             \
	do {                                                                                                 \
		uint64_t ws_;                                                                                \
		aclOpExecutor *ex_;                                                                          \
		check(aclnn##op##GetWorkspaceSize(__VA_ARGS__, &ws_, &ex_), "aclnn" #op "GetWorkspaceSize"); \
		check(aclnn##op(NULL, ws_, ex_, (m)->rank->compute), "aclnn" #op);                           \
		destroy_tensors(m);                                                                          \
		pace(m, launches);                                                                           \
	} while (0)

static void forward_layer(struct model *m)
{
	OP(m, 1, LayerNorm, x(m), m->dims, w(m), w(m), 1e-5, x(m), NULL, NULL);
	OP(m, 1, Matmul, x(m), w(m), x(m), 0);
	OP(m, 1, FlashAttentionScore, x(m), x(m), x(m), NULL, NULL, NULL, NULL, NULL, 0.125, 1.0, 65536, 0,
	   16, (char *)"BSH", 0, 0, NULL, NULL, NULL, x(m));
	OP(m, 1, Matmul, x(m), w(m), x(m), 0);
	OP(m, 1, Add, x(m), x(m), m->alpha, x(m));
	OP(m, 2, Mm, x(m), w(m), x(m), 0);
	OP(m, 1, Gelu, x(m), x(m));
	OP(m, 1, Mul, x(m), w(m), x(m));
}

static void backward_layer(struct model *m)
{
	OP(m, 1, GeluBackward, x(m), x(m), x(m));
	OP(m, 2, Mm, x(m), w(m), x(m), 0);
	OP(m, 1, Matmul, x(m), w(m), x(m), 0);
	OP(m, 1, SoftmaxBackward, x(m), x(m), -1, x(m));
	OP(m, 2, Mm, x(m), w(m), x(m), 0);
	OP(m, 3, LayerNormBackward, x(m), x(m), m->dims, x(m), x(m), w(m), w(m), m->mask, x(m), x(m), x(m));
	OP(m, 1, InplaceCopy, x(m), x(m));
}

/* The end of a part of a step. */
static void mark_time(struct model *m)
{
	if (m->timed && m->ntimes < TIMES)
		check(aclrtRecordEvent(m->times[m->ntimes++], m->rank->compute), "aclrtRecordEvent");
}

/* How long each part took, when all have ended. */
static void query_times(struct model *m)
{
	uint64_t us;
	float ms;

	for (int i = 1; i < m->ntimes && !m->rank->options->never_query; i++)
		check(aclrtEventElapsedTime(&ms, m->times[i - 1], m->times[i]), "aclrtEventElapsedTime");
	if (m->ntimes && !m->rank->options->never_query)
		check(aclrtEventGetTimestamp(m->times[0], &us), "aclrtEventGetTimestamp");
	m->ntimes = 0;
}

/* Gradients of a part of the layers go out while the next part is computed. */
static void reduce_bucket(struct model *m, int bucket)
{
	struct rank *r = m->rank;
	char *gradients = (char *)m->gradients + m->gradient_count * 2 * (uint64_t)bucket;

	check(aclrtRecordEvent(m->gradients_ready[bucket], r->compute), "aclrtRecordEvent");
	check(aclrtStreamWaitEvent(r->communication, m->gradients_ready[bucket]), "aclrtStreamWaitEvent");
	check(HcclAllReduce(gradients, gradients, m->gradient_count, HCCL_DATA_TYPE_FP16, HCCL_REDUCE_SUM,
			    r->comm, r->communication),
	      "HcclAllReduce");
	mark_time(m);
	pace(m, 1);
}

static void backward(struct model *m)
{
	int bucket = 0;

	for (long i = 0; i < m->layers; i++) {
		m->layer = (int)(m->layers - 1 - i);
		backward_layer(m);
		if (bucket < BUCKETS && i + 1 == m->layers * (bucket + 1) / BUCKETS)
			reduce_bucket(m, bucket++);
	}
}

/* One executor, used for all buckets. */
static void update_weights(struct model *m)
{
	aclOpExecutor *executor;
	uint64_t ws;

	check(aclnnApplyAdamWGetWorkspaceSize(x(m), x(m), x32(m), x(m), x(m), x(m), x(m), x(m), x(m), x(m),
					      w(m), NULL, false, false, &ws, &executor),
	      "aclnnApplyAdamWGetWorkspaceSize");
	check(aclSetAclOpExecutorRepeatable(executor), "aclSetAclOpExecutorRepeatable");
	for (int i = 0; i < BUCKETS; i++) {
		check(aclnnApplyAdamW(NULL, ws, executor, m->rank->compute), "aclnnApplyAdamW");
		pace(m, 1);
	}
	check(aclDestroyAclOpExecutor(executor), "aclDestroyAclOpExecutor");
	destroy_tensors(m);
}

static void optimizer(struct model *m)
{
	struct rank *r = m->rank;
	void *kernel_args[2] = { m->gradients, NULL };

	check(aclrtRecordEvent(m->reduced, r->communication), "aclrtRecordEvent");
	check(aclrtStreamWaitEvent(r->compute, m->reduced), "aclrtStreamWaitEvent");
	check(rtKernelLaunch((const void *)(uintptr_t)scale_gradients_custom, 48, kernel_args,
			     sizeof(kernel_args), NULL, r->compute),
	      "rtKernelLaunch");
	pace(m, 1);
	update_weights(m);
	OP(m, 1, InplaceZero, x(m));
}

static void loss(struct model *m)
{
	OP(m, 1, Cast, x(m), ACL_FLOAT, x32(m));
	OP(m, 1, Softmax, x(m), -1, x(m));
	OP(m, 2, ReduceSum, x(m), m->dims, false, ACL_FLOAT, x(m));
}

void model_step(struct model *m, const void *batch, size_t bytes, bool timed)
{
	struct rank *r = m->rank;
	void *activations = create_memory(ACTIVATION_BYTES);

	m->timed = timed;
	mark_time(m);
	check(aclrtMemcpyAsync(activations, ACTIVATION_BYTES, batch, bytes, ACL_MEMCPY_HOST_TO_DEVICE,
			       r->compute),
	      "aclrtMemcpyAsync");
	pace(m, 1);
	OP(m, 1, Embedding, w(m), x(m), x(m));
	for (long i = 0; i < m->layers; i++) {
		m->layer = (int)i;
		forward_layer(m);
		if (i % 2)
			mark_time(m);
	}
	if (r->options->ai_cpu)
		check(rtAicpuKernelLaunchExWithArgs(0, "GetNextSample", 1, NULL, NULL, r->compute, 0),
		      "rtAicpuKernelLaunchExWithArgs");
	loss(m);
	backward(m);
	optimizer(m);
	mark_time(m);
	check(aclrtSynchronizeStream(r->compute), "aclrtSynchronizeStream");
	query_times(m);
	check(aclrtFree(activations), "aclrtFree");
}

static void eval_kernel_path(char *path, size_t size)
{
	const char *opp = getenv("ASCEND_OPP_PATH");

	check(!opp, "ASCEND_OPP_PATH is not set");
	check(snprintf(path, size, "%s/built-in/op_impl/ai_core/tbe/kernel/ascend910b/%s.o", opp,
		       EVAL_KERNEL) >= (int)size,
	      "ASCEND_OPP_PATH");
}

/* A handle that is used at once and then freed: a tracer that learns names must keep up with that. */
void model_evaluate(struct model *m)
{
	aclrtBinHandle binary;
	aclrtFuncHandle function;
	uint64_t kernel_args[2] = { 0 };
	char path[PATH_MAX];

	eval_kernel_path(path, sizeof(path));
	check(aclrtBinaryLoadFromFile(path, NULL, &binary), "aclrtBinaryLoadFromFile");
	check(aclrtBinaryGetFunction(binary, EVAL_KERNEL, &function), "aclrtBinaryGetFunction");
	check(aclrtLaunchKernel(function, 96, kernel_args, sizeof(kernel_args), m->rank->compute),
	      "aclrtLaunchKernel");
	check(aclrtSynchronizeStream(m->rank->compute), "aclrtSynchronizeStream");
	check(aclrtBinaryUnLoad(binary), "aclrtBinaryUnLoad");
}
