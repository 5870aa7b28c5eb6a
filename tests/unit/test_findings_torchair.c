/* SPDX-License-Identifier: BSD-2-Clause */
/* The walk over calls of graphs at its limits; traces with known parts are in tests/conformance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "findings/torchair.h"

#define NAME 3

static int tmpfd;

static void span(struct nps_tah *tah, uint64_t thread, uint64_t start, uint64_t end, enum nps_tah_kind kind)
{
	assert_int_equal(nps_tah__span(tah, &(struct nps_tah_span){ .start = start,
								    .end = end,
								    .thread = thread,
								    .name = NAME,
								    .caller = NPS_NONE,
								    .inputs = NPS_NONE,
								    .kind = kind }),
			 0);
}

static void call(struct nps_tah *tah, uint64_t thread, uint64_t at)
{
	span(tah, thread, at, at + 1000, NPS_TAH_CALL);
	span(tah, thread, at + 300, at + 990, NPS_TAH_RUN);
	span(tah, thread, at + 500, at + 900, NPS_TAH_EXECUTE);
}

static const struct nps_tah_graph *graph(const struct nps_tah *tah, size_t i)
{
	return &NPS_AT(&tah->graphs, struct nps_tah_graph, i);
}

static void test_labels(void **state)
{
	static const struct {
		const char *name;
		bool frame;
		enum nps_tah_kind kind;
	} labels[] = {
		{ "npu_fx_compiler inference", false, NPS_TAH_CALL },
		{ "npu_fx_compiler_inference", false, NPS_TAH_CALL },
		{ "NPU_FX_compiler inference", false, NPS_TAH_CALL },
		{ "cache_compiler inference", false, NPS_TAH_CALL },
		{ "npu_fx_compiler", false, NPS_TAH_OP },
		{ "npu_fx_compiler inference!", false, NPS_TAH_OP },
		{ "TorchNpuGraphBase::Run", false, NPS_TAH_RUN },
		{ "Run", false, NPS_TAH_RUN_PLAIN },
		{ "<built-in method Run of PyCapsule object at 0x7f>", true, NPS_TAH_RUN_PLAIN },
		{ "StaticNpuGraphExecutor::ExecuteGraph", false, NPS_TAH_EXECUTE },
		{ "RunGraph", false, NPS_TAH_EXECUTE },
		{ "TorchNpuGraphBase::SetHintShape", false, NPS_TAH_COLD },
		{ "LoadGraph", false, NPS_TAH_COLD },
		{ "acl_graph_replay", false, NPS_TAH_MODE },
		{ "aten::to", false, NPS_TAH_TENSOR },
		{ "aten::topk", false, NPS_TAH_OP },
		{ "aten::contiguous", false, NPS_TAH_COPY },
		{ "TorchDynamo Cache Lookup", false, NPS_TAH_CACHE },
		{ "Torch-Compiled Region: 0/0", false, NPS_TAH_REGION },
		{ "ProfilerStep#12", false, NPS_TAH_STEP },
		{ "nn.Module: OptimizedModule_0", true, NPS_TAH_MODULE },
		{ "torch/_dynamo/eval_frame.py(465): _fn", true, NPS_TAH_MODULE },
		{ "nn.Module: Linear_3", true, NPS_TAH_FRAME },
		{ "torch/nn/modules/module.py(1501): _call_impl", true, NPS_TAH_FRAME },
		{ "/usr/lib/python3.11/logging/__init__.py(1477): debug", true, NPS_TAH_LOGGING },
		{ "serve.py(12): step", true, NPS_TAH_CALLER },
		{ "", false, NPS_TAH_OP },
		{ "", true, NPS_TAH_CALLER },
	};

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(labels); i++)
		assert_int_equal(nps_tah__kind(labels[i].name, labels[i].frame), labels[i].kind);
}

/* Deeper, more threads and more graphs than are kept: reported, and what is kept is right. */
static void test_limits(void **state)
{
	struct nps_tah tah;

	(void)state;
	assert_int_equal(nps_tah__init(&tah, tmpfd), 0);
	for (uint64_t i = 0; i < 5000; i++)
		span(&tah, 1, 10 + i, 1000000 - i, NPS_TAH_OP);
	call(&tah, 1, 6000);
	assert_true(tah.dropped > 2000);
	for (uint64_t thread = 2; thread < 6000; thread++)
		call(&tah, thread, 20000);
	for (uint32_t i = 0; i < 200; i++) {
		struct nps_tah_span s = { .start = 30000 + 2000 * (uint64_t)i,
					  .end = 31000 + 2000 * (uint64_t)i,
					  .thread = 2,
					  .caller = i,
					  .inputs = NPS_NONE,
					  .kind = NPS_TAH_CALL };

		assert_int_equal(nps_tah__span(&tah, &s), 0);
	}
	assert_int_equal(nps_tah__finish(&tah), 0);
	assert_int_equal(tah.ended, 1 + 4095 + 200);
	assert_int_equal(tah.calls.len, NPS_TAH_LISTED);
	assert_int_equal(tah.graphs.len, 65);
	assert_true(graph(&tah, 64)->rest);
	assert_int_equal(graph(&tah, 64)->calls, 200 - 63);
	nps_tah__free(&tah);
}

/* Kernels begin long after their launch; those of forgotten launches belong to nobody. */
static void test_kernels(void **state)
{
	const uint32_t calls = 3000, launches = 50;
	struct nps_tah tah;

	(void)state;
	assert_int_equal(nps_tah__init(&tah, tmpfd), 0);
	for (uint32_t i = 0; i < calls; i++) {
		uint64_t at = 10000 * (uint64_t)(i + 1);

		call(&tah, 1, at);
		for (uint32_t k = 0; k < launches; k++)
			assert_int_equal(nps_tah__launch(&tah, 1, at + 520 + k, i * launches + k), 0);
		assert_int_equal(nps_tah__launch(&tah, 1, at + 950, 4000000 + i),
				 0); /* behind the execution */
		assert_int_equal(nps_tah__launch(&tah, 2, at + 960, 5000000 + i), 0); /* of another thread */
		if (i < 10)
			continue;
		for (uint32_t k = 0; k < launches; k++) /* of ten calls before */
			nps_tah__kernel(&tah, (i - 10) * launches + k, at + 2000 + k, at + 2010 + k);
		nps_tah__kernel(&tah, 4000000 + i, at + 2000, at + 9000);
		nps_tah__kernel(&tah, 5000000 + i, at + 2000, at + 9000);
	}
	nps_tah__kernel(&tah, 12345678, 1, 2);
	assert_int_equal(nps_tah__finish(&tah), 0);
	assert_int_equal(graph(&tah, 0)->calls, calls);
	assert_int_equal(graph(&tah, 0)->device_calls, calls - 10);
	assert_int_equal(graph(&tah, 0)->device_ns, (uint64_t)(calls - 10) * launches * 10);
	assert_int_equal(graph(&tah, 0)->launch.least, 20);
	assert_int_equal(graph(&tah, 0)->launch.most, 20);
	assert_int_equal(graph(&tah, 0)->kernel.most, 100000 + 1500);
	assert_int_equal(NPS_AT(&tah.calls, struct nps_tah_call, 7).device_ns, launches * 10);
	nps_tah__free(&tah);
}

/* Events without order or sense. */
static void test_hostile(void **state)
{
	struct nps_tah tah;

	(void)state;
	srand(11);
	assert_int_equal(nps_tah__init(&tah, tmpfd), 0);
	for (int i = 0; i < 200000; i++) {
		uint64_t start = rand() % 100000, end = rand() % 5 ? start + rand() % 5000 : (uint64_t)rand();

		span(&tah, rand() % 9 ? (uint64_t)rand() % 20 : NPS_TAH_NO_THREAD, start, end,
		     rand() % NPS_TAH_KINDS);
		assert_int_equal(nps_tah__launch(&tah, rand() % 20, rand() % 100000, rand() % 100), 0);
		nps_tah__kernel(&tah, rand() % 100, rand(), rand());
	}
	span(&tah, 1, UINT64_MAX, UINT64_MAX, NPS_TAH_CALL);
	assert_int_equal(nps_tah__finish(&tah), 0);
	assert_true(tah.ended > 0);
	nps_tah__free(&tah);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_hostile),
	};
	int failed;

	tmpfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tmpfd < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	close(tmpfd);
	return failed;
}
