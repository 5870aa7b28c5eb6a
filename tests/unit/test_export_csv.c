/* SPDX-License-Identifier: BSD-2-Clause */
/* The CSV files that torch_npu writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "csv_model.h"

static void counter(struct csv_model *f, uint32_t of, const char *name, double value)
{
	size_t at = csv_model_row(&f->m.pmu.t);

	f->m.pmu.task[at] = of;
	f->m.pmu.name[at] = csv_model_text(f, name);
	f->m.pmu.value[at] = value;
}

/* --- kernel_details ------------------------------------------------------------------------------------ */

static void kernels_wait_for_their_device(void **state)
{
	struct csv_model *f = *state;

	csv_model_kernel(f, 1000, 2500, 1, "Add", "AI_VECTOR_CORE");
	csv_model_kernel(f, 2000, 3000, 0, "MatMul", "AI_CORE");
	csv_model_kernel(f, 5000, 6001, 0, "Add", "AI_VECTOR_CORE");
	csv_model_collective(f, 4000, 5500, 1);
	csv_model_torch(f, NPS_GENERATION_B);
	assert_string_equal(csv_model_read(f, "kernel_details.csv"),
			    "Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start "
			    "Time(us),Duration(us),Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,Input "
			    "Shapes,Input Data "
			    "Types,Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID\n"
			    "0,4294967295,101,2,\"aclnn, \"\"odd\"\" "
			    "name\",MatMul,N/A,AI_CORE,1700000000000002.000\t,1.000,0,20,"
			    "0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n"
			    "0,4294967295,102,2,\"aclnn, \"\"odd\"\" "
			    "name\",Add,N/A,AI_VECTOR_CORE,1700000000000005.000\t,1.001,"
			    "2.000,20,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n"
			    "1,4294967295,100,2,\"aclnn, \"\"odd\"\" "
			    "name\",Add,N/A,AI_VECTOR_CORE,1700000000000001.000\t,1.500,"
			    "0,20,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n"
			    "1,4294967295,N/A,N/A,hcom_allReduce__123_0_1,hcom_allReduce_,N/A,COMMUNICATION,"
			    "1700000000000004.000\t,1.500,1.500,0,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n");
}

static void early_generation(void **state)
{
	struct csv_model *f = *state;
	size_t at, step = csv_model_row(&f->m.step.t);

	f->m.step.id[step] = 50;
	at = csv_model_kernel(f, 1000, 4400, 0, "Conv2D", "AI_CORE");
	f->m.task.step[at] = step;
	f->m.compute.input_shapes[0] = csv_model_text(f, "\"32,3;64\"");
	f->m.compute.output_shapes[0] = csv_model_text(f, "32");
	csv_model_collective(f, 5000, 5020, 0);
	csv_model_torch(f, NPS_GENERATION_A);
	assert_string_equal(
		csv_model_read(f, "kernel_details.csv"),
		"Step Id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start "
		"Time(us),Duration(us),Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input "
		"Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output "
		"Formats,Context ID\r\n"
		"50,4294967295,100,2,\"aclnn, \"\"odd\"\" name\",Conv2D,N/A,AI_CORE,"
		"1700000000000001.000\t,3.4,0,20,0,N/A,\"\"\"32,3;64\"\"\",N/A,N/A,\"\"\"32\"\"\",N/A,"
		"N/A,N/A\r\n"
		",4294967295,N/A,N/A,hcom_allReduce__123_0_1,hcom_allReduce_,N/A,HCCL,"
		"1700000000000005.000\t,0.02,0.6,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A\r\n");
	assert_false(csv_model_exists(f, "task_time.csv"));
	f->m.level = 0;
	csv_model_torch(f, NPS_GENERATION_A);
	assert_string_equal(
		csv_model_rows(f, "kernel_details.csv"),
		"50,\"aclnn, \"\"odd\"\" name\",Conv2D,AI_CORE,1700000000000001.000\t,3.4,0,20\r\n"
		",hcom_allReduce__123_0_1,hcom_allReduce_,HCCL,1700000000000005.000\t,0.02,0.6,0\r\n");
	assert_false(csv_model_exists(f, "op_statistic.csv"));
}

static void counters_are_columns(void **state)
{
	struct csv_model *f = *state;
	size_t first = csv_model_kernel(f, 1000, 315000, 0, "Conv2D", "AI_CORE"),
	       dev = csv_model_row(&f->m.device.t);
	const char *tail;

	csv_model_kernel(f, 400000, 410000, 0, "DSA", "DSA_SQE"); /* has none */
	csv_model_kernel(f, 420000, 430000, 0, "Add", "AI_VECTOR_CORE");
	f->m.device.id[dev] = 0;
	f->m.device.aic_mhz[dev] = 1800;
	f->m.device.aic_cores[dev] = 24;
	for (size_t of = first; of < 3; of += 2) {
		counter(f, of, "aiv_mac_time", 5); /* has no meaning there */
		counter(f, of, "aic_total_time", of ? 0 : 310525.7638888889);
		counter(f, of, "aic_total_cycles", of ? 0 : 8943142);
		counter(f, of, "aic_mac_ratio", of ? 0 : 0.5232398188466648);
		counter(f, of, "aic_mac_time", of ? 0 : 162500);
		counter(f, of, "aiv_vec_ratio", of ? 0.05 : 0);
		counter(f, of, "aiv_total_time", of ? 9400.4 : 0);
	}
	csv_model_torch(f, NPS_GENERATION_B);
	tail = strstr(csv_model_read(f, "kernel_details.csv"), ",Context ID,");
	assert_non_null(tail);
	assert_memory_equal(tail,
			    ",Context ID,aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,"
			    "aiv_time(us),aiv_vec_ratio,cube_utilization(%)\n",
			    118);
	assert_non_null(strstr(tail, ",N/A,310.526,8943142,162.5,0.523,0.0,0.0,65.929\n"));
	assert_non_null(strstr(tail, ",N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n"));
	assert_non_null(strstr(tail, ",N/A,0.0,0,0.0,0.0,9.4,0.05,0.000\n"));
	csv_model_torch(f, NPS_GENERATION_A);
	assert_non_null(strstr(csv_model_read(f, "kernel_details.csv"), ",N/A,0.0,0,0.0,0.0,9.4,0.05,0\r\n"));
}

/* --- statistics ---------------------------------------------------------------------------------------- */

static void statistics(void **state)
{
	struct csv_model *f = *state;
	size_t bounded;

	csv_model_kernel(f, 1000, 2000, 0, "Add", "AI_VECTOR_CORE");
	csv_model_kernel(f, 3000, 6000, 0, "MatMul", "AI_CORE");
	csv_model_kernel(f, 7000, 9000, 0, "Add", "AI_VECTOR_CORE");
	bounded = csv_model_kernel(f, 9000, 90000, 0, "Add", "AI_VECTOR_CORE");
	f->m.task.source[bounded] = NPS_TIME_HOST_BOUNDS;
	for (size_t i = 0; i < 3; i++) {
		size_t at = csv_model_row(&f->m.api.t);

		csv_model_no_texts(&f->m.api.t, at);
		f->m.api.name[at] = csv_model_text(f, i < 2 ? "launch" : "Launch");
		f->m.api.type[at] = i < 2 ? NPS_API_NODE : NPS_API_COMM;
		f->m.api.start[at] = CSV_MODEL_T0 + 1000 * i;
		f->m.api.end[at] = CSV_MODEL_T0 + 2000 * i + 500;
	}
	csv_model_torch(f, NPS_GENERATION_B);
	assert_string_equal(csv_model_rows(f, "op_statistic.csv"),
			    "0,Add,AI_VECTOR_CORE,3,3.000,1.000,1.500,2.000,50.000\n"
			    "0,MatMul,AI_CORE,1,3.000,3.000,3.000,3.000,50.000\n");
	assert_string_equal(csv_model_rows(f, "api_statistic.csv"),
			    "host,communication,Launch,2.500,1,2.500,2.500,2.500,0.000\n"
			    "host,node,launch,2.000,2,1.000,0.500,1.500,0.250\n");
	csv_model_torch(f, NPS_GENERATION_A);
	assert_string_equal(csv_model_rows(f, "op_statistic.csv"),
			    "Add,AI_VECTOR_CORE,3,3.0,1.0,1.5,2.0,50.0\n"
			    "MatMul,AI_CORE,1,3.0,3.0,3.0,3.0,50.0\n");
	assert_string_equal(csv_model_rows(f, "api_statistic.csv"), "hccl,Launch,2.5,1,2.5,2.5,2.5,0.0\n"
								    "node,launch,2.0,2,1.0,0.5,1.5,0.25\n");
}

/* --- operator_details ---------------------------------------------------------------------------------- */

static size_t op(struct csv_model *f, uint64_t start, uint64_t end, uint64_t gtid, const char *name,
		 int64_t link)
{
	struct nps_torch_table *t = &f->m.torch;
	size_t at = csv_model_row(&t->t);

	csv_model_no_texts(&t->t, at);
	t->type[at] = NPS_API_TORCH_OP;
	t->start[at] = CSV_MODEL_T0 + start;
	t->end[at] = CSV_MODEL_T0 + end;
	t->gtid[at] = gtid;
	t->name[at] = csv_model_text(f, name);
	t->connection[at] = link;
	t->callchain[at] = NPS_NULL;
	return at;
}

static void add_link(struct csv_model *f, uint32_t id, uint32_t connection)
{
	size_t at = csv_model_row(&f->m.link.t);

	f->m.link.id[at] = id;
	f->m.link.connection[at] = connection;
}

static void add_frame(struct csv_model *f, uint32_t id, const char *line, uint32_t depth)
{
	size_t at = csv_model_row(&f->m.frame.t);

	f->m.frame.id[at] = id;
	f->m.frame.stack[at] = csv_model_text(f, line);
	f->m.frame.depth[at] = depth;
}

static void operators(void **state)
{
	struct csv_model *f = *state;
	size_t at;

	csv_model_kernel(f, 50000, 51000, 0, "Add", "AI_CORE"); /* connection 7 */
	csv_model_kernel(f, 52000, 54500, 0, "Cast", "MIX_AIV"); /* 8 */
	csv_model_task(f, 60000, 61000, 0, 9); /* a copy */
	f->m.task.class[csv_model_task(f, 52000, 99000, 0, 8)] = NPS_CLASS_PARENT;
	f->m.task.class[csv_model_task(f, 70000, 75000, 0, 900)] = NPS_CLASS_COMM;
	csv_model_collective(f, 70000, 80000, 0); /* 900 */
	op(f, 0, 40000, 1, "ProfilerStep#3", NPS_NULL);
	at = op(f, 1000, 9000, 1, "aten::outer", 5);
	f->m.torch.input_shapes[at] = csv_model_text(f, "2,3;\r\n");
	f->m.torch.callchain[at] = 1;
	op(f, 1500, 3000, 2, "other_thread", NPS_NULL);
	op(f, 2000, 6000, 1, "aten::inner", 6);
	op(f, 3000, 4000, 1, "aten::leaf", 6);
	at = op(f, 7000, 8500, 1, "aten::second", NPS_NULL);
	f->m.torch.callchain[at] = 0;
	add_link(f, 5, 7);
	add_link(f, 6, 8);
	add_link(f, 6, 9);
	add_link(f, 6, 900);
	add_frame(f, 0, "plain(1): f", 0);
	add_frame(f, 1, "a.py(1): f", 0);
	add_frame(f, 1, "b\".py(2): g", 1);
	csv_model_torch(f, NPS_GENERATION_B);
	assert_string_equal(
		csv_model_rows(f, "operator_details.csv"),
		"aten::outer,\"2,3;\r\n\",\"a.py(1): f;\r\nb\"\".py(2): g\",2.5,8.0,1.0,28.0,1.0,1.0\n"
		"other_thread,,,1.5,1.5,0,0,0,0\n"
		"aten::inner,,,3.0,4.0,13.5,27.0,0,0\n"
		"aten::leaf,,,1.0,1.0,13.5,13.5,0,0\n"
		"aten::second,,plain(1): f,1.5,1.5,0,0,0,0\n");
}

/* --- memory -------------------------------------------------------------------------------------------- */

static void npu_op_mem(struct csv_model *f, uint64_t time, const char *type, int64_t address,
		       int64_t allocated)
{
	struct nps_npu_op_mem_table *t = &f->m.npu_op_mem;
	size_t at = csv_model_row(&t->t);

	t->name[at] = csv_model_text(f, "Conv,2D");
	t->component[at] = csv_model_text(f, "GE");
	t->type[at] = csv_model_text(f, type);
	t->timestamp[at] = CSV_MODEL_T0 + time;
	t->address[at] = address;
	t->size[at] = 2560;
	t->allocated[at] = allocated;
	t->reserved[at] = 1 << 20;
}

static void record(struct csv_model *f, uint64_t time, const char *component, int64_t allocated)
{
	struct nps_memory_record_table *t = &f->m.memory_record;
	size_t at = csv_model_row(&t->t);

	t->component[at] = csv_model_text(f, component);
	t->timestamp[at] = CSV_MODEL_T0 + time;
	t->allocated[at] = t->active[at] = allocated;
	t->reserved[at] = 2 << 20;
	t->stream[at] = 77;
}

static void memory_of_both(void **state)
{
	struct csv_model *f = *state;
	struct nps_op_memory_table *t = &f->m.op_memory;
	size_t at;

	npu_op_mem(f, 1000, "allocate", 10, 512);
	npu_op_mem(f, 2000, "allocate", 20, 1024);
	npu_op_mem(f, 3000, "release", 10, 512);
	npu_op_mem(f, 4000, "release", 99, 512); /* of before */
	record(f, 500, "PTA", 1 << 20);
	record(f, 2500, "PTA", 3 << 19);
	at = csv_model_row(&f->m.npu_mem.t);
	f->m.npu_mem.type[at] = csv_model_text(f, "app");
	f->m.npu_mem.timestamp[at] = CSV_MODEL_T0;
	f->m.npu_mem.hbm[at] = 3 << 20;
	at = csv_model_row(&t->t);
	t->name[at] = csv_model_text(f, "aten::empty");
	t->size[at] = 512;
	t->allocation[at] = CSV_MODEL_T0 + 500;
	t->stream[at] = 77;
	t->release[at] = t->active_release[at] = t->duration[at] = t->active_duration[at] = NPS_NULL;
	t->allocation_allocated[at] = t->allocation_active[at] = 1 << 20;
	t->allocation_reserved[at] = 2 << 20;
	t->release_allocated[at] = t->release_active[at] = t->release_reserved[at] = NPS_NULL;
	csv_model_torch(f, NPS_GENERATION_B);
	assert_string_equal(
		csv_model_rows(f, "operator_memory.csv"),
		"aten::empty,0.5,1700000000000000.500\t,,,,,1.0,2.0,1.0,,,,77,NPU:0\n"
		"\"cann::Conv,2D\",2.5,1700000000000001.000\t,1700000000000003.000\t,,2.0,,0.00048828125,"
		"1.0,,0.00048828125,1.0,,,NPU:0\n"
		"\"cann::Conv,2D\",2.5,1700000000000002.000\t,,,,,0.0009765625,1.0,,,,,,NPU:0\n");
	assert_string_equal(csv_model_rows(f, "memory_record.csv"),
			    "APP,1700000000000000.000\t,,3.0,,,NPU:0\n"
			    "PTA,1700000000000000.500\t,1.0,2.0,1.0,77,NPU:0\n"
			    "PTA+GE,1700000000000000.500\t,1.0,2.0,1.0,77,NPU:0\n"
			    "GE,1700000000000001.000\t,0.00048828125,1.0,,,NPU:0\n"
			    "PTA+GE,1700000000000001.000\t,1.00048828125,3.0,1.0,77,NPU:0\n"
			    "GE,1700000000000002.000\t,0.0009765625,1.0,,,NPU:0\n"
			    "PTA+GE,1700000000000002.000\t,1.0009765625,3.0,1.0,77,NPU:0\n"
			    "PTA,1700000000000002.500\t,1.5,2.0,1.5,77,NPU:0\n"
			    "PTA+GE,1700000000000002.500\t,1.5009765625,3.0,1.5,77,NPU:0\n"
			    "GE,1700000000000003.000\t,0.00048828125,1.0,,,NPU:0\n"
			    "PTA+GE,1700000000000003.000\t,1.50048828125,3.0,1.5,77,NPU:0\n"
			    "GE,1700000000000004.000\t,0.00048828125,1.0,,,NPU:0\n"
			    "PTA+GE,1700000000000004.000\t,1.50048828125,3.0,1.5,77,NPU:0\n");
}

static void modules_are_grouped(void **state)
{
	struct csv_model *f = *state;
	struct nps_npu_module_mem_table *t = &f->m.npu_module_mem;

	for (uint32_t i = 0; i < 6; i++) {
		size_t at = csv_model_row(&t->t);

		t->module[at] = i % 3 == 2 ? 500 : 2 - i % 3;
		t->timestamp[at] = CSV_MODEL_T0 + i / 3 * 1000;
		t->reserved[at] = i << 19;
		t->device[at] = 4;
	}
	csv_model_torch(f, NPS_GENERATION_B);
	assert_string_equal(csv_model_rows(f, "npu_module_mem.csv"),
			    "4,IDEDD,1700000000000000.000\t,0.5,NPU:4\n"
			    "4,IDEDD,1700000000000001.000\t,2.0,NPU:4\n"
			    "4,SCC,1700000000000000.000\t,0.0,NPU:4\n"
			    "4,SCC,1700000000000001.000\t,1.5,NPU:4\n"
			    "4,500,1700000000000000.000\t,1.0,NPU:4\n"
			    "4,500,1700000000000001.000\t,2.5,NPU:4\n");
	f->m.layout = NPS_LAYOUT_MSPROF;
	csv_model_empty_dir(f);
	f->ex.generation = NPS_GENERATION_A;
	assert_int_equal(nps_export__msprof_csv(&f->ex, f->fd), 0);
	assert_memory_equal(csv_model_read(f, "npu_module_mem_20240101120000.csv"),
			    "Component,Timestamp(us),Total Reserved(KB),Device\n"
			    "IDEDD,1700000000000000.000\t,512.0,NPU:4\n",
			    90);
}

/* --- steps, files --------------------------------------------------------------------------------------- */

static void step_times(void **state)
{
	struct csv_model *f = *state;
	struct nps_step_trace_table *t = &f->m.step_trace;
	size_t at = csv_model_row(&t->t);

	t->step[at] = csv_model_text(f, "50");
	t->computing[at] = 8873.756;
	t->communication[at] = 0.1 + 0.2;
	t->preparing[at] = -1.5;
	csv_model_torch(f, NPS_GENERATION_A);
	assert_string_equal(csv_model_rows(f, "step_trace_time.csv"),
			    "50,8873.756,0.0,0.0,0.30000000000000004,0.0,0.0,0,0.0,-1.5\r\n");
	t->step[at] = csv_model_text(f, "");
	csv_model_torch(f, NPS_GENERATION_B);
	assert_string_equal(csv_model_rows(f, "step_trace_time.csv"),
			    "0,,8873.756,0.000,0.000,0.300,0.000,0.000,0,0.000,-1.5\n");
	/* Of which nothing was measured, before that row and behind it. */
	for (size_t i = 0; i < 2; i++) {
		struct nps_unmeasured_step *step = nps_vec__push(&f->m.unmeasured_steps);

		assert_non_null(step);
		*step = (struct nps_unmeasured_step){ i, csv_model_text(f, i ? "51" : "49"), i };
	}
	t->step[at] = csv_model_text(f, "50");
	csv_model_torch(f, NPS_GENERATION_B);
	assert_string_equal(csv_model_rows(f, "step_trace_time.csv"),
			    "0,49,,,,,,,,,\n"
			    "0,50,8873.756,0.000,0.000,0.300,0.000,0.000,0,0.000,-1.5\n"
			    "1,51,,,,,,,,,\n");
}

static void nothing_leaves_nothing(void **state)
{
	struct csv_model *f = *state;
	DIR *dir;
	int n = 0;

	csv_model_torch(f, NPS_GENERATION_B);
	f->m.layout = NPS_LAYOUT_MSPROF;
	assert_int_equal(nps_export__msprof_csv(&f->ex, f->fd), 0);
	dir = fdopendir(openat(f->fd, ".", O_RDONLY | O_DIRECTORY));
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));)
		n += e->d_name[0] != '.';
	closedir(dir);
	assert_int_equal(n, 0);
}

static void a_file_in_the_way_is_an_error(void **state)
{
	struct csv_model *f = *state;

	csv_model_kernel(f, 1000, 2000, 0, "Add", "AI_VECTOR_CORE");
	close(openat(f->fd, "kernel_details.csv", O_CREAT | O_WRONLY, 0600));
	assert_int_equal(nps_export__torch_csv(&f->ex, f->fd), -EEXIST);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, csv_model_setup, csv_model_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernels_wait_for_their_device),
		TEST(early_generation),
		TEST(counters_are_columns),
		TEST(statistics),
		TEST(operators),
		TEST(memory_of_both),
		TEST(modules_are_grouped),
		TEST(step_times),
		TEST(nothing_leaves_nothing),
		TEST(a_file_in_the_way_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
