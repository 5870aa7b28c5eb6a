/* SPDX-License-Identifier: BSD-2-Clause */
/* The trace of a small model that has something of everything, read back as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen_session.h"
#include "base/map.h"
#include "export/export.h"
#include "trace_model.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static struct nps_export ex;
static char *dir, *text;
static int dirfd_;
static cJSON *events;

static int setup(void **state)
{
	(void)state;
	dir = gen_temp_dir();
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	trace_model_init(dirfd_);
	ex = (struct nps_export){ .model = &trace_model,
				  .formats = NPS_FORMAT_TEXT,
				  .stamp = "20250109074803" };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cJSON_Delete(events);
	events = NULL;
	free(text);
	text = NULL;
	nps_model__free(&trace_model);
	close(dirfd_);
	gen_remove(dir);
	return 0;
}

/* --- reading back --- */

/* The unpacked content of NAME: zlib reads plain files as they are. */
static char *content(const char *name)
{
	char path[512], *bytes = calloc(1, 1 << 20);
	gzFile file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = gzopen(path, "rb");
	assert_non_null(file);
	assert_true(gzread(file, bytes, (1 << 20) - 1) > 0);
	gzclose(file);
	return bytes;
}

static void export(const char *name)
{
	assert_int_equal(nps_export__trace(&ex, dirfd_), 0);
	text = content(name);
	events = cJSON_Parse(text);
	assert_true(cJSON_IsArray(events));
}

static const char *str(const cJSON *event, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, key);

	return cJSON_IsString(item) ? item->valuestring : "";
}

static uint64_t num(const cJSON *event, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, key);

	return cJSON_IsNumber(item) ? (uint64_t)item->valuedouble : 0;
}

static bool same(const cJSON *a, const cJSON *b, const char *key)
{
	return cJSON_Compare(cJSON_GetObjectItemCaseSensitive(a, key),
			     cJSON_GetObjectItemCaseSensitive(b, key), true);
}

static bool is(const cJSON *event, const char *ph, const char *name)
{
	return !strcmp(str(event, "ph"), ph) && (!name || !strcmp(str(event, "name"), name));
}

static const cJSON *find(const char *ph, const char *name)
{
	const cJSON *event;

	cJSON_ArrayForEach(event, events) if (is(event, ph, name)) return event;
	return NULL;
}

static bool is_time(const char *ts)
{
	size_t whole = strspn(ts, "0123456789");

	return whole && ts[whole] == '.' && strspn(ts + whole + 1, "0123456789") == 3 && !ts[whole + 4];
}

static size_t bare_times;

static void check_event(const cJSON *event)
{
	const cJSON *last = event->child;

	while (last->next)
		last = last->next;
	assert_string_equal(last->string, "ph");
	if (is(event, "M", NULL))
		return;
	bare_times += !is_time(str(event, "ts"));
	if (is(event, "X", NULL))
		assert_true(cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(event, "dur")));
}

static bool has_lane_name(const cJSON *slice)
{
	const cJSON *event;

	cJSON_ArrayForEach(event, events) if (is(event, "M", "thread_name") && same(event, slice, "pid") &&
					      same(event, slice, "tid")) return true;
	return false;
}

static bool has_process_row(const cJSON *slice, const char *name)
{
	const cJSON *event;

	cJSON_ArrayForEach(event, events) if (is(event, "M", name) && same(event, slice, "pid")) return true;
	return false;
}

static size_t count_flow(const cJSON *flow, const char *ph)
{
	const cJSON *event;
	size_t n = 0;

	cJSON_ArrayForEach(event, events)
		n += is(event, ph, NULL) && same(event, flow, "cat") && same(event, flow, "id");
	return n;
}

static bool starts_slice(const cJSON *flow)
{
	const cJSON *event;

	cJSON_ArrayForEach(event, events) if (is(event, "X", NULL) && same(event, flow, "pid") &&
					      same(event, flow, "tid") &&
					      same(event, flow, "ts")) return true;
	return false;
}

/* T1, T3, T4, T5 and that "ph" comes last. */
static void check_all(size_t bare)
{
	const cJSON *event;

	bare_times = 0;
	cJSON_ArrayForEach(event, events)
	{
		check_event(event);
		if (!is(event, "M", NULL) && !is(event, "s", NULL) && !is(event, "f", NULL)) {
			assert_true(has_process_row(event, "process_name"));
			assert_true(has_process_row(event, "process_labels"));
			assert_true(has_process_row(event, "process_sort_index"));
		}
		if (is(event, "X", NULL))
			assert_true(has_lane_name(event));
		if (!is(event, "s", NULL) && !is(event, "f", NULL))
			continue;
		if (!strcmp(str(event, "cat"), "Data_aug Bound"))
			continue;
		assert_true(starts_slice(event));
		assert_int_equal(count_flow(event, "s"), 1);
		/* A mark that no device came to begins a flow without an end. */
		if (strcmp(str(event, "cat"), "MsTx") != 0)
			assert_true(count_flow(event, "f") >= 1);
	}
	assert_int_equal(bare_times, bare);
}

static size_t count(const char *ph, const char *name)
{
	const cJSON *event;
	size_t n = 0;

	cJSON_ArrayForEach(event, events) n += is(event, ph, name);
	return n;
}

static void has(const char *line)
{
	if (!strstr(text, line))
		fail_msg("no %s", line);
}

static void lacks(const char *line)
{
	if (strstr(text, line))
		fail_msg("has %s", line);
}

/* The process called NAME: its pid and its sort index. */
static void layer(const char *name, unsigned int sort, unsigned int device, const char *label)
{
	uint64_t pid = nps_layer_pid(TRACE_MODEL_PID, sort, device);
	char line[200];

	snprintf(line, sizeof(line),
		 "{\"name\":\"process_name\",\"pid\":%" PRIu64 ",\"tid\":0,\"args\":{\"name\":\"%s\"}", pid,
		 name);
	has(line);
	snprintf(line, sizeof(line),
		 "{\"name\":\"process_labels\",\"pid\":%" PRIu64 ",\"tid\":0,\"args\":{\"labels\":\"%s\"}",
		 pid, label);
	has(line);
}

/* --- what is expected --- */

static void every_layer_in_generation_b(void **state)
{
	(void)state;
	export("trace_view.json");
	check_all(0);
	layer("CANN", 7, 31, "CPU");
	layer("MsTx", 6, 31, "CPU");
	layer("CPU Usage", 9, 31, "CPU");
	layer("OS Runtime API", 13, 31, "CPU");
	layer("Ascend Hardware", 14, 0, "NPU 0");
	layer("Communication", 16, 0, "NPU 0");
	layer("HBM", 24, 0, "NPU 0");
	layer("Ub", 33, 0, "NPU 0");
	layer("Overlap Analysis", 31, 0, "NPU 0");
	layer("Process Scheduling", 35, 31, "CPU");
	has("{\"name\":\"Plane 1\"}");
	has("Group group_name_0 Communication");
	has("{\"name\":\"Node@launch\",\"pid\":3089232127,\"tid\":3016828,\"ts\":\"1736408883704644.212\","
	    "\"dur\":5.000,"
	    "\"args\":{\"Thread Id\":3016828,\"Mode\":\"launch\",\"level\":\"node\",\"id\":\"0\","
	    "\"item_id\":\"MatMul{\\\"V2\\\"\",\"connection_id\":2},\"ph\":\"X\"},\n"
	    "{\"name\":\"HostToDevice8589934592\",\"pid\":3089232127,\"tid\":3016828,\"cat\":"
	    "\"HostToDevice\","
	    "\"id\":\"8589934592\",\"ts\":\"1736408883704644.212\",\"ph\":\"s\"}");
	has("\"name\":\"Communication@launch\"");
	has("\"Mode\":\"ACL_NN\",\"level\":\"acl\",\"id\":\"aclnnMatmul\",\"item_id\":\"0\"");
	has("\"size(B)\":4000,\"bandwidth(GB/s)\":2.000000,\"operation\":\"host to device\"}");
	has("\"Grid Dim\":\"8\"}");
	has("\"args\":{\"rank_size\":\"N/A\",\"connection_id\":4,\"model "
	    "id\":4294967295,\"data_type\":\"FP32\","
	    "\"alg_type\":\"N/A\",\"count\":1024,\"relay\":\"no\",\"retry\":\"no\"}");
	has("\"link type\":\"HCCS\",\"bandwidth(GB/s)\":2.5,");
	has("\"dur\":5.000,\"args\":{},\"ph\":\"X\"}");
	has("write_bandwidth");
	lacks("time_source");
	lacks("FFTS_PLUS");
}

static void no_two_layers_share_a_pid(void **state)
{
	/* Those of both generations, and of layers that generation A never had. */
	static const unsigned char sorts[] = { 1,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
					       20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 33, 35, 36 };
	struct nps_map seen = { 0 };

	(void)state;
	assert_true(nps_layer_pid(TRACE_MODEL_PID, 13, 0) == 3089232288);
	for (unsigned int device = 0; device < 64; device++)
		for (unsigned int i = 0; i < NPS_ARRAY_SIZE(sorts); i++)
			for (uint32_t pid = UINT32_MAX - 1; pid; pid++) { /* an even one and an odd one */
				uint64_t layer = nps_layer_pid(pid, sorts[i], device);

				assert_int_equal(nps_map__get(&seen, layer), NPS_NONE);
				assert_int_equal(nps_map__put(&seen, layer, 1), 0);
				assert_true(layer < 1ULL << 53);
				assert_true(device > 31 || layer >> 10 == pid);
				assert_int_equal(layer & 31, device & 31);
			}
	nps_map__free(&seen);
}

static void every_layer_in_generation_a(void **state)
{
	(void)state;
	ex.generation = NPS_GENERATION_A;
	export("trace_view.json");
	check_all(1); /* the closing frequency */
	layer("CANN", 7, 0, "CPU");
	layer("Ascend Hardware", 13, 0, "NPU");
	layer("HCCL", 15, 0, "NPU");
	layer("HBM", 17, 0, "NPU");
	layer("Overlap Analysis", 23, 0, "NPU");
	has("Group 0 Communication");
	has("\"name\":\"Hccl@launch\"");
	has("\"data size(Byte)\":4000,\"memcpy direction\":\"host to device\"}");
	has("write_band_width");
	has("\"name\":\"Enqueue\"");
	/* (2 << 64) + (65535 << 48) + 4294967295 */
	has("\"id\":\"55339950750446911487\"");
	has("\"id\":\"3\"");
	has("\"id\":\"17179869183\"");
	lacks("HostToDevice5\"");
}

static void framework_events(void **state)
{
	const cJSON *flow;

	(void)state;
	export("trace_view.json");
	has("{\"name\":\"aten::addmm\",\"pid\":3016828,\"tid\":3016828,\"ts\":\"1736408883704643.612\","
	    "\"dur\":8.000,"
	    "\"cat\":\"cpu_op\",\"args\":{\"Sequence number\":7,\"Fwd thread id\":0,"
	    "\"Input Dims\":\"2,2;\\r\\n2,2;\\r\\n\",\"Input type\":\"float;\\r\\nfloat\","
	    "\"Module Hierarchy\":\"nn.Module: Linear_0\",\"flops\":16,"
	    "\"Call stack\":\"inner.py(1): f;\\r\\nouter.py(2): g\"},\"ph\":\"X\"}");
	has("\"cat\":\"enqueue\",\"args\":{\"correlation_id\":8235}");
	has("\"args\":{\"Python id\":2,\"Python parent id\":1,\"Python module id\":0}");
	has("\"args\":{\"Python id\":1,\"Python parent id\":null}");
	has("\"name\":\"GC\"");
	/* The queue's reader is shown last. */
	has("\"tid\":3016829,\"args\":{\"sort_index\":3016831}");
	assert_int_equal(count("s", "enqueue_to_dequeue"), 1);
	flow = find("s", "fwdbwd");
	assert_non_null(flow);
	assert_string_equal(str(flow, "ts"), "1736408883704643.612"); /* of the inner one */
	assert_int_equal(num(find("f", "fwdbwd"), "tid"), TRACE_MODEL_PID + 2);
	assert_int_equal(count("s", "torch_to_npu"), 3); /* kernel, memcpy, collective */
	has("{\"bp\":\"e\",\"name\":\"torch_to_npu\",\"id\":1736408883704651212,\"pid\":3016828,\"tid\":"
	    "3016828,"
	    "\"ts\":\"1736408883704643.612\",\"cat\":\"async_npu\",\"ph\":\"s\"}");
}

static void counters_of_all_kinds(void **state)
{
	static const char *const names[] = {
		"CPU Avg",	  "Memory Usage",   "Disk Usage",
		"Network Usage",  "AI Core Freq",   "APP/HBM",
		"DDR/Read",	  "read_bandwidth", "Tx",
		"Port 0/Rx",	  "PCIe_post",	    "HBM 0/Write",
		"Mata Bw Level",  "PA Link Rx",	    "LLC 0 Read/Hit Rate",
		"req_rx",	  "QoS OTHERS",	    "UB Port003",
		"Aicore Voltage", "Bus Voltage",
	};

	(void)state;
	export("trace_view.json");
	for (size_t i = 0; i < NPS_ARRAY_SIZE(names); i++)
		if (!find("C", names[i]))
			fail_msg("no %s", names[i]);
	assert_int_equal(count("C", "AI Core Freq"), 2);
	assert_int_equal(count("C", "Port 0/Rx"), 2); /* NIC and RoCE */
	has("\"args\":{\"KB\":2160232.0}");
	has("\"args\":{\"Write(MB/s)\":21.25}");
	has("\"args\":{\"Hit Rate(%)\":0.84}");
	has("\"args\":{\"Tx\":1.5,\"Rx\":0.0}");
	has("\"args\":{\"mV\":850}");
	has("\"args\":{\"mV\":900}");
	has("Voltage Info");
	/* as the vendor's timeline: each under the name of the other */
	has("\"args\":{\"Mata Bw Level\":5}");
	has("\"args\":{\"L2 Buffer Bw Level\":3}");
	has("\"args\":{\"value\":1876.0}");
	has("\"Rx Bandwidth Efficiency\":4.0");
	has("\"Tx Error Rate\":25.0");
	lacks("Read/Throughput");
}

static void marks_and_iterations(void **state)
{
	(void)state;
	export("trace_view.json");
	has("\"args\":{\"event_type\":\"marker\",\"domain\":\"default\"}");
	assert_int_equal(count("s", "MsTx_4000000000"), 1);
	assert_int_equal(count("f", "MsTx_4000000000"), 1);
	assert_int_equal(count("s", "MsTx_4000000009"), 1);
	assert_int_equal(count("f", "MsTx_4000000009"), 0);
	has("Step Trace(Model ID:13)");
	has("\"name\":\"Iteration 1\",\"pid\":3089232320,\"tid\":70013");
	has("\"name\":\"Reduce_1_0\"");
	has("\"name\":\"GetNext\"");
	has("\"Data_aug Bound(us)\":2.000");
	assert_int_equal(count("t", "Data_aug Bound 1"), 1);
}

static void threads_and_cpus(void **state)
{
	const char *sleeping, *running;

	(void)state;
	export("trace_view.json");
	sleeping = strstr(text, "\"name\":\"Sleeping\"");
	running = strstr(text, "\"ts\":\"1736408883704649.212\",\"dur\":2.000");
	assert_true(sleeping && running && sleeping < running);
	has("\"tid\":\"wor:ker:3016831\",\"ts\":\"1736408883704646.212\",\"dur\":1.000,\"args\":{\"cpu\":0,"
	    "\"state\":\"S\"}");
	has("\"name\":\"Runnable\"");
	assert_int_equal(count("X", "sched_switch"), 2);
	has("\"prev_state\":\"S\",\"next_comm\":\"swapper\",\"next_pid\":0");
}

/* Iterations of another model between two of one hide nothing. */
static void models_that_alternate(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		TRACE_MODEL_ADD(iteration);
		TRACE_MODEL_SET(iteration, model, 14 - i);
		TRACE_MODEL_SET(iteration, id, i ? 3 : 1);
		TRACE_MODEL_SET(iteration, start, TRACE_MODEL_T0 + 40000 + i * 1000);
		TRACE_MODEL_SET(iteration, fp_start, TRACE_MODEL_T0 + 42000);
		TRACE_MODEL_SET(iteration, bp_end, TRACE_MODEL_T0 + 45000);
		TRACE_MODEL_SET(iteration, end, TRACE_MODEL_T0 + 46000);
	}
	export("trace_view.json");
	assert_int_equal(count("s", "Data_aug Bound 1"), 1);
	assert_int_equal(count("s", "Data_aug Bound 2"), 1);
	assert_int_equal(count("t", "Data_aug Bound 2"), 1);
	has("\"args\":{\"Data_aug Bound(us)\":3.000},\"ph\":\"s\"}");
}

static void own_times_name_their_source(void **state)
{
	(void)state;
	trace_model.task.source[0] = NPS_TIME_DEVICE_LOG;
	trace_model.task.source[1] = NPS_TIME_HOST_BOUNDS;
	TRACE_MODEL_ADD(bounds);
	TRACE_MODEL_SET(bounds, task, 1);
	TRACE_MODEL_SET(bounds, start_low, TRACE_MODEL_T0);
	TRACE_MODEL_SET(bounds, start_high, UINT64_MAX);
	TRACE_MODEL_SET(bounds, end_low, UINT64_MAX);
	TRACE_MODEL_SET(bounds, end_high, TRACE_MODEL_T0 + 27000);
	trace_model.comm_op.tasks[0] = 2;
	trace_model.comm_op.measured[0] = 1;
	export("trace_view.json");
	has("\"time_source\":\"device log\"");
	has("\"time_source\":\"host bounds\",\"start_low_us\":\"1736408883704643.212\",\"end_high_us\":");
	has("\"time_source\":\"device log of a part of its tasks\"");
}

static void level_0_has_no_calls_and_planes(void **state)
{
	(void)state;
	trace_model.level = 0;
	export("trace_view.json");
	check_all(0);
	lacks("AscendCL@");
	lacks("Plane");
	lacks("HostToDevice");
	has("hcom_allReduce");
	assert_int_equal(count("f", "torch_to_npu"), 3);
}

static void level_0_of_generation_a_keeps_its_flows(void **state)
{
	(void)state;
	trace_model.level = 0;
	ex.generation = NPS_GENERATION_A;
	export("trace_view.json");
	lacks("\"name\":\"CANN\"");
	lacks("AscendCL@");
	has("\"name\":\"Plane 0\"");
	assert_int_equal(count("s", "HostToDevice3"), 1);
	assert_int_equal(count("s", "MsTx_4000000000"), 1);
	assert_int_equal(count("s", "MsTx_4000000009"), 0); /* no device came to it */
}

static void msprof_has_no_framework(void **state)
{
	(void)state;
	trace_model.layout = NPS_LAYOUT_MSPROF;
	trace_model.level = 0;
	export("msprof_20250109074803.json");
	lacks("\"Python\"");
	lacks("cpu_op");
	lacks("torch_to_npu");
	has("AscendCL@");
	check_all(0);
}

static void compressed_is_the_same(void **state)
{
	char *first;

	(void)state;
	export("trace_view.json");
	ex.gzip = true;
	assert_int_equal(nps_export__trace(&ex, dirfd_), 0);
	first = content("trace_view.json.gz");
	assert_string_equal(first, text);
	free(first);
}

static void an_empty_capture_is_a_trace(void **state)
{
	struct nps_model empty;

	(void)state;
	assert_int_equal(nps_model__init(&empty, dirfd_, NULL), 0);
	ex.model = &empty;
	export("trace_view.json");
	nps_model__free(&empty);
	assert_int_equal(count("X", NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_two_layers_share_a_pid),
		cmocka_unit_test_setup_teardown(every_layer_in_generation_b, setup, teardown),
		cmocka_unit_test_setup_teardown(every_layer_in_generation_a, setup, teardown),
		cmocka_unit_test_setup_teardown(framework_events, setup, teardown),
		cmocka_unit_test_setup_teardown(counters_of_all_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(marks_and_iterations, setup, teardown),
		cmocka_unit_test_setup_teardown(threads_and_cpus, setup, teardown),
		cmocka_unit_test_setup_teardown(models_that_alternate, setup, teardown),
		cmocka_unit_test_setup_teardown(own_times_name_their_source, setup, teardown),
		cmocka_unit_test_setup_teardown(level_0_has_no_calls_and_planes, setup, teardown),
		cmocka_unit_test_setup_teardown(level_0_of_generation_a_keeps_its_flows, setup, teardown),
		cmocka_unit_test_setup_teardown(msprof_has_no_framework, setup, teardown),
		cmocka_unit_test_setup_teardown(compressed_is_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(an_empty_capture_is_a_trace, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
