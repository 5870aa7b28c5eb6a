/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CSV files that msprof writes, also in slices, and what is beside those of both profilers: calls of the
 * driver, traffic of collectives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "csv_model.h"
#include "export/csv_modules.h"

static void modules_have_the_names_of_their_generation(void **state)
{
	(void)state;
	assert_string_equal(nps_module_name(2, NPS_GENERATION_A), "IDEDH");
	assert_string_equal(nps_module_name(2, NPS_GENERATION_B), "SCC");
	assert_string_equal(nps_module_name(7, NPS_GENERATION_B), "RUNTIME");
	assert_string_equal(nps_module_name(12, NPS_GENERATION_B), "MDCLOCATION");
	assert_string_equal(nps_module_name(74, NPS_GENERATION_A), "AML");
	assert_string_equal(nps_module_name(77, NPS_GENERATION_B), "CUSTOM");
	assert_null(nps_module_name(78, NPS_GENERATION_A));
	assert_null(nps_module_name(UINT32_MAX, NPS_GENERATION_A));
}

static void msprof_layout(void **state)
{
	struct csv_model *f = *state;
	struct nps_iteration_table *it = &f->m.iteration;
	struct nps_iteration_part_table *part = &f->m.iteration_part;
	size_t at;

	f->m.layout = NPS_LAYOUT_MSPROF;
	csv_model_kernel(f, 1000, 2000, 3, "Add", "AI_VECTOR_CORE");
	csv_model_collective(f, 4000, 5500, 3);
	for (uint64_t i = 0; i < 2; i++) {
		at = csv_model_row(&it->t);
		it->id[at] = i + 1;
		it->model[at] = 1;
		it->start[at] = CSV_MODEL_T0 + 1000 * i;
		it->end[at] = CSV_MODEL_T0 + 1000 * i + 900;
		it->fp_start[at] = i ? CSV_MODEL_T0 + 1100 : 0;
		it->bp_end[at] = i ? CSV_MODEL_T0 + 1500 : 0;
	}
	at = csv_model_row(&part->t);
	part->id[at] = 2;
	part->model[at] = 1;
	part->start[at] = CSV_MODEL_T0 + 1200;
	part->end[at] = CSV_MODEL_T0 + 1300;
	assert_int_equal(nps_export__msprof_csv(&f->ex, f->fd), 0);
	assert_memory_equal(
		csv_model_read(f, "op_summary_20240101120000.csv"),
		"Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start "
		"Time(us),",
		91);
	assert_string_equal(csv_model_rows(f, "communication_statistic_20240101120000.csv"),
			    "3,hcom_allReduce_,1,1.500,1.500,1.500,1.500,100.000\n");
	assert_string_equal(csv_model_rows(f, "task_time_20240101120000.csv"),
			    "3,\"aclnn, \"\"odd\"\" name\",AI_VECTOR_CORE,2,100,1.0,1700000000000001.000\t,"
			    "1700000000000002.000\t\n");
	assert_string_equal(
		csv_model_rows(f, "step_trace_20240101120000.csv"),
		"0,1,N/A,N/A,1700000000000000.900\t,0.9,N/A,N/A,N/A,1,N/A,N/A\n"
		"0,2,1700000000000001.100\t,1700000000000001.500\t,1700000000000001.900\t,0.9,0.4,0.4,0.1,"
		"1,1700000000000001.200\t,0.1\n");
	assert_false(csv_model_exists(f, "npu_mem_20240101120000.csv"));
}

/*
 * What the vendor's files have: the function's name and the core of
 * kernels, else the runtime's type of the task.
 */
static void tasks_by_function(void **state)
{
	struct csv_model *f = *state;
	size_t at;

	f->m.layout = NPS_LAYOUT_MSPROF;
	at = csv_model_kernel(f, 1000, 2000, 0, "Cast", "AI_VECTOR_CORE");
	f->m.task.kernel[at] = csv_model_text(f, "Cast_kernel_2");
	at = csv_model_task(f, 2500, 3500, 0, 8);
	f->m.task.name[at] = f->m.task.type[at] = csv_model_text(f, "EVENT_RECORD");
	at = csv_model_kernel(f, 4000, 5000, 0, "Add", "N/A");
	f->m.task.kernel[at] = csv_model_text(f, "te_add_1");
	assert_int_equal(nps_export__msprof_csv(&f->ex, f->fd), 0);
	assert_string_equal(csv_model_rows(f, "task_time_20240101120000.csv"),
			    "0,Cast_kernel_2,AI_VECTOR_CORE,2,100,1.0,1700000000000001.000\t,"
			    "1700000000000002.000\t\n"
			    "0,EVENT_RECORD,EVENT_RECORD,2,101,1.0,1700000000000002.500\t,"
			    "1700000000000003.500\t\n"
			    "0,te_add_1,KERNEL_AICORE,2,102,1.0,1700000000000004.000\t,"
			    "1700000000000005.000\t\n");
}

/* Not with strchr(), which a sanitizer makes read the whole rest each time. */
static size_t lines(const char *bytes)
{
	size_t n = 0;

	for (; *bytes; bytes++)
		n += *bytes == '\n';
	return n;
}

/* A million rows a slice: the next one begins where it ended. */
static void check_slices(struct csv_model *f, const char *table, const char *const starts[3])
{
	static const size_t rows[] = { 1000000, 1000000, 1 };
	size_t header = 0;
	char name[96];

	snprintf(name, sizeof(name), "%s_20240101120000.csv", table);
	assert_false(csv_model_exists(f, name));
	for (int i = 0; i < 3; i++) {
		const char *first;

		snprintf(name, sizeof(name), "%s_slice_%d_20240101120000.csv", table, i);
		assert_int_equal(lines(csv_model_read(f, name)), 1 + rows[i]);
		header = i ? header : strcspn(f->text, "\n");
		assert_int_equal(strcspn(f->text, "\n"), header);
		first = strstr(f->text + header, ",17000000");
		assert_non_null(first);
		assert_memory_equal(first + 1, starts[i], strlen(starts[i]));
	}
}

static void slices(void **state)
{
	static const char *const starts[] = { "1700000000000000.000", "1700000000001000.000",
					      "1700000000002000.000" };
	struct csv_model *f = *state;

	f->m.layout = NPS_LAYOUT_MSPROF;
	for (size_t i = 0; i < 2000001; i++) {
		size_t at = 0;

		if (nps_table__add(&f->m.task.t, &at))
			fail();
		f->m.task.name[at] = f->m.task.type[at] = f->m.task.kernel[at] = NPS_NONE;
		f->m.task.start[at] = f->m.task.end[at] = CSV_MODEL_T0 + i;
		if (nps_table__add(&f->m.compute.t, &at))
			fail();
		f->m.compute.task[at] = i;
		f->m.compute.name[at] = f->m.compute.core[at] = f->m.compute.type[at] = NPS_NONE;
	}
	assert_int_equal(nps_export__msprof_csv(&f->ex, f->fd), 0);
	check_slices(f, "task_time", starts);
	check_slices(f, "op_summary", starts);
}

static void traffic_of_many_collectives(void **state)
{
	const char size[] = "\"Transit Size(MB)\": 5.0, \"Transit Time(ms)\": 1.0, \"Bandwidth(GB/s)\"";
	const size_t n = 70000;
	struct csv_model *f = *state;
	struct nps_comm_time_table *t = &f->m.comm_time;
	struct nps_comm_bandwidth_table *b = &f->m.comm_bandwidth;
	uint32_t step = csv_model_text(f, "step1"), group = csv_model_text(f, "11"),
		 transport = csv_model_text(f, "HCCS");
	const uint32_t types[] = { csv_model_text(f, "p2p"), csv_model_text(f, "collective") };
	size_t found = 0;
	char name[32];

	for (size_t i = 0; i < n; i++) { /* the types take turns, so that rows are brought together */
		size_t at = csv_model_row(&t->t), bw = csv_model_row(&b->t);

		snprintf(name, sizeof(name), "hcom_x__011_%zu_1", i);
		t->op[at] = b->op[bw] = csv_model_text(f, name);
		t->group[at] = b->group[bw] = group;
		t->step[at] = b->step[bw] = step;
		t->type[at] = b->type[bw] = types[i & 1];
		b->transport[bw] = transport;
		b->size[bw] = b->bandwidth[bw] = b->package[bw] = 5;
		b->time[bw] = b->count[bw] = b->total[bw] = 1;
	}
	assert_int_equal(nps_export__communication(&f->ex, f->fd), 0);
	for (const char *at = csv_model_read(f, "communication.json"); *at; at++)
		found += *at == '"' && !strncmp(at, size, sizeof(size) - 1);
	assert_int_equal(found, n);
}

static void driver_call(struct csv_model *f, const char *name, uint64_t ns, int64_t result)
{
	struct nps_driver_table *t = &f->m.driver;
	size_t at = csv_model_row(&t->t);

	csv_model_no_texts(&t->t, at);
	t->name[at] = csv_model_text(f, name);
	t->start[at] = CSV_MODEL_T0 + at;
	t->end[at] = CSV_MODEL_T0 + at + ns;
	t->result[at] = result;
}

static size_t driver_task(struct csv_model *f)
{
	struct nps_driver_task_table *t = &f->m.driver_task;
	size_t at = csv_model_row(&t->t);

	csv_model_no_texts(&t->t, at);
	t->gtid[at] = 77ULL << 32 | 78;
	t->device[at] = 1;
	t->stream[at] = 2;
	t->queue[at] = 3;
	t->type[at] = 255;
	t->start[at] = CSV_MODEL_T0 + 5000;
	t->task[at] = t->driver_ns[at] = t->queued[at] = NPS_NULL;
	return at;
}

/* Calls by what they took in all; whatever the layout, the names have no stamp. */
static void the_driver(void **state)
{
	struct csv_model *f = *state;
	struct nps_driver_task_table *t = &f->m.driver_task;
	size_t known;

	for (uint64_t ns = 100; ns; ns--)
		driver_call(f, "ioctl", ns * 1000, ns == 50 ? -EINVAL : 0);
	driver_call(f, "mmap", 6000001, 0);
	driver_task(f);
	known = driver_task(f);
	t->task[known] = 9;
	t->name[known] = csv_model_text(f, "MatMul");
	t->submit[known] = CSV_MODEL_T0 + 1500;
	t->queued[known] = 3500;
	t->driver_ns[known] = 250;
	f->m.layout = NPS_LAYOUT_MSPROF;
	assert_int_equal(nps_export__driver_csv(&f->ex, f->fd), 0);
	assert_string_equal(csv_model_read(f, "driver_statistic.csv"),
			    "Name,Count,Errors,Total Time(us),Avg(us),Min(us),Max(us),P99(us)\n"
			    "mmap,1,0,6000.001,6000.001,6000.001,6000.001,6000.001\n"
			    "ioctl,100,1,5050.000,50.500,1.000,100.000,99.000\n");
	assert_string_equal(
		csv_model_read(f, "npuscope_driver_tasks.csv"),
		"Process ID,Device_id,Stream ID,Task ID,SQ ID,SQE Type,Name,Submit(us),In "
		"Driver(us),Queued(us),"
		"Driver(us)\n"
		"77,1,2,N/A,3,255,N/A,N/A,1700000000000005.000\t,N/A,N/A\n"
		"77,1,2,9,3,255,MatMul,1700000000000001.500\t,1700000000000005.000\t,3.500,0.250\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, csv_model_setup, csv_model_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_have_the_names_of_their_generation),
		TEST(msprof_layout),
		TEST(tasks_by_function),
		TEST(slices),
		TEST(traffic_of_many_collectives),
		TEST(the_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
