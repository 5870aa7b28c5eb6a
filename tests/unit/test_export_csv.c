/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/csv_number.h"
#include "export/csv_modules.h"
#include "export/export.h"

#define T0 1700000000000000000ULL

struct fixture {
	struct nps_model m;
	struct nps_export ex;
	char dir[64];
	int fd;
	char *text; /* of the file read last */
};

static uint32_t text(struct fixture *f, const char *bytes)
{
	return nps_strings__addz(f->m.strings, bytes);
}

static size_t row(struct nps_table *table)
{
	size_t at = 0;

	assert_int_equal(nps_table__add(table, &at), 0);
	return at;
}

/* Sets every cell that ROW of TABLE has of type text to NPS_NONE. */
static void no_texts(struct nps_table *table, size_t at)
{
	for (size_t i = 0; i < table->ncolumns; i++)
		if (table->columns[i].kind == NPS_COLUMN_text)
			((uint32_t *)nps_table__cells(table, i))[at] = NPS_NONE;
}

static size_t task(struct fixture *f, uint64_t start, uint64_t end, uint32_t device, uint32_t connection)
{
	struct nps_task_table *t = &f->m.task;
	size_t at = row(&t->t);

	no_texts(&t->t, at);
	t->start[at] = T0 + start;
	t->end[at] = T0 + end;
	t->device[at] = device;
	t->connection[at] = connection;
	t->model[at] = t->context[at] = NPS_NO_ID;
	t->stream[at] = 2;
	t->task[at] = 100 + at;
	t->step[at] = NPS_NONE;
	return at;
}

static size_t kernel(struct fixture *f, uint64_t start, uint64_t end, uint32_t device, const char *type,
		     const char *core)
{
	size_t at = task(f, start, end, device, 7 + f->m.compute.t.len), c = row(&f->m.compute.t);
	struct nps_compute_table *k = &f->m.compute;

	no_texts(&k->t, c);
	f->m.task.class[at] = NPS_CLASS_COMPUTE;
	f->m.task.type[at] = text(f, "KERNEL_AICORE");
	f->m.task.hw_type[at] = text(f, core);
	k->task[c] = at;
	k->type[c] = text(f, type);
	k->core[c] = text(f, core);
	k->name[c] = f->m.task.name[at] = text(f, "aclnn, \"odd\"\tname");
	k->blocks[c] = 20;
	return at;
}

static void collective(struct fixture *f, uint64_t start, uint64_t end, uint32_t device)
{
	struct nps_comm_op_table *op = &f->m.comm_op;
	size_t at = row(&op->t);

	no_texts(&op->t, at);
	op->name[at] = text(f, "hcom_allReduce__123_0_1");
	op->type[at] = text(f, "hcom_allReduce_");
	op->start[at] = T0 + start;
	op->end[at] = T0 + end;
	op->device[at] = device;
	op->model[at] = NPS_NO_ID;
	op->connection[at] = 900;
	op->step[at] = NPS_NONE;
}

static void counter(struct fixture *f, uint32_t of, const char *name, double value)
{
	size_t at = row(&f->m.pmu.t);

	f->m.pmu.task[at] = of;
	f->m.pmu.name[at] = text(f, name);
	f->m.pmu.value[at] = value;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/npuscope-csv-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->fd = open(f->dir, O_RDONLY | O_DIRECTORY);
	assert_true(f->fd >= 0);
	assert_int_equal(nps_model__init(&f->m, f->fd, NULL), 0);
	f->m.level = 1;
	f->ex = (struct nps_export){ .model = &f->m,
				     .generation = NPS_GENERATION_B,
				     .stamp = "20240101120000" };
	*state = f;
	return 0;
}

static void empty_dir(struct fixture *f)
{
	DIR *dir = fdopendir(openat(f->fd, ".", O_RDONLY | O_DIRECTORY));

	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));)
		if (e->d_name[0] != '.')
			assert_int_equal(unlinkat(f->fd, e->d_name, 0), 0);
	closedir(dir);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	empty_dir(f);
	nps_model__free(&f->m);
	close(f->fd);
	rmdir(f->dir);
	free(f->text);
	free(f);
	return 0;
}

static bool exists(struct fixture *f, const char *name)
{
	return !faccessat(f->fd, name, F_OK, 0);
}

static const char *read_all(struct fixture *f, const char *name)
{
	int fd = openat(f->fd, name, O_RDONLY);
	struct stat st;

	if (fd < 0)
		fail_msg("%s is missing", name);
	assert_int_equal(fstat(fd, &st), 0);
	free(f->text);
	f->text = calloc(1, st.st_size + 1);
	assert_non_null(f->text);
	assert_int_equal(read(fd, f->text, st.st_size), st.st_size);
	close(fd);
	return f->text;
}

/* What follows the first line. */
static const char *rows_of(struct fixture *f, const char *name)
{
	const char *bytes = strchr(read_all(f, name), '\n');

	assert_non_null(bytes);
	return bytes + 1;
}

static void torch(struct fixture *f, enum nps_generation generation)
{
	empty_dir(f);
	f->ex.generation = generation;
	assert_int_equal(nps_export__torch_csv(&f->ex, f->fd), 0);
}

/* --- numbers ------------------------------------------------------------------------------------------- */

static void expect_repr(double value, const char *expected)
{
	char out[NPS_NUMBER_MAX + 1];

	out[nps_put_repr(out, value)] = 0;
	assert_string_equal(out, expected);
}

static void floats_of_python(void **state)
{
	(void)state;
	expect_repr(0, "0.0");
	expect_repr(-0.5, "-0.5");
	expect_repr(0.1, "0.1");
	expect_repr(0.1 + 0.2, "0.30000000000000004");
	expect_repr(4.1e-05, "4.1e-05");
	expect_repr(0.00123, "0.00123");
	expect_repr(1e15, "1000000000000000.0");
	expect_repr(1e16, "1e+16");
	expect_repr(123456789012345680.0, "1.2345678901234568e+17");
	expect_repr(8873.756000000001, "8873.756000000001");
	expect_repr(954.3701171875, "954.3701171875");
	expect_repr(12345.00048828125, "12345.00048828125");
	expect_repr(5e-324, "5e-324");
	expect_repr(100, "100.0");
}

/* Digits but for zeros at both ends. */
static size_t significant(const char *number)
{
	size_t digits = 0, kept = 0;

	for (; *number && *number != 'e'; number++) {
		if (*number == '.' || (*number == '0' && !kept))
			continue;
		digits++;
		if (*number != '0')
			kept = digits;
	}
	return kept;
}

/* Whatever is printed reads back, and nothing shorter does. */
static void floats_round_trip(void **state)
{
	uint64_t random = 88172645463325252ULL;
	char out[NPS_NUMBER_MAX + 1], shortest[64];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		double value;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		value = i & 1 ? (double)(random >> 20) / 1000 : (double)random / 1048576 / 4096;
		out[nps_put_repr(out, value)] = 0;
		assert_true(strtod(out, NULL) == value);
		for (int digits = 1; digits <= 17; digits++) {
			snprintf(shortest, sizeof(shortest), "%.*g", digits, value);
			if (strtod(shortest, NULL) == value)
				break;
		}
		assert_int_equal(significant(out), significant(shortest));
	}
}

static void expect_milli(double value, uint64_t expected)
{
	assert_int_equal(nps_thousandths(value), expected);
}

static void rounding_is_that_of_printf(void **state)
{
	(void)state;
	expect_milli(0.0005, 1); /* the double is a little more */
	expect_milli(0.0015, 2);
	expect_milli(2.5e-3, 3);
	expect_milli(1.0005, 1000); /* a little less */
	expect_milli(310.5257638888889, 310526);
	expect_milli(-1, 0);
	expect_milli(NPS_NAN, 0);
}

/* --- kernel_details ------------------------------------------------------------------------------------ */

static void kernels_wait_for_their_device(void **state)
{
	struct fixture *f = *state;

	kernel(f, 1000, 2500, 1, "Add", "AI_VECTOR_CORE");
	kernel(f, 2000, 3000, 0, "MatMul", "AI_CORE");
	kernel(f, 5000, 6001, 0, "Add", "AI_VECTOR_CORE");
	collective(f, 4000, 5500, 1);
	torch(f, NPS_GENERATION_B);
	assert_string_equal(read_all(f, "kernel_details.csv"),
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
	struct fixture *f = *state;
	size_t at, step = row(&f->m.step.t);

	f->m.step.id[step] = 50;
	at = kernel(f, 1000, 4400, 0, "Conv2D", "AI_CORE");
	f->m.task.step[at] = step;
	f->m.compute.input_shapes[0] = text(f, "\"32,3;64\"");
	f->m.compute.output_shapes[0] = text(f, "32");
	collective(f, 5000, 5020, 0);
	torch(f, NPS_GENERATION_A);
	assert_string_equal(
		read_all(f, "kernel_details.csv"),
		"Step Id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start "
		"Time(us),Duration(us),Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input "
		"Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output "
		"Formats,Context ID\r\n"
		"50,4294967295,100,2,\"aclnn, \"\"odd\"\" name\",Conv2D,N/A,AI_CORE,"
		"1700000000000001.000\t,3.4,0,20,0,N/A,\"\"\"32,3;64\"\"\",N/A,N/A,\"\"\"32\"\"\",N/A,"
		"N/A,N/A\r\n"
		",4294967295,N/A,N/A,hcom_allReduce__123_0_1,hcom_allReduce_,N/A,HCCL,"
		"1700000000000005.000\t,0.02,0.6,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A\r\n");
	assert_false(exists(f, "task_time.csv"));
	f->m.level = 0;
	torch(f, NPS_GENERATION_A);
	assert_string_equal(
		rows_of(f, "kernel_details.csv"),
		"50,\"aclnn, \"\"odd\"\" name\",Conv2D,AI_CORE,1700000000000001.000\t,3.4,0,20\r\n"
		",hcom_allReduce__123_0_1,hcom_allReduce_,HCCL,1700000000000005.000\t,0.02,0.6,0\r\n");
	assert_false(exists(f, "op_statistic.csv"));
}

static void counters_are_columns(void **state)
{
	struct fixture *f = *state;
	size_t first = kernel(f, 1000, 315000, 0, "Conv2D", "AI_CORE"), dev = row(&f->m.device.t);
	const char *tail;

	kernel(f, 400000, 410000, 0, "DSA", "DSA_SQE"); /* has none */
	kernel(f, 420000, 430000, 0, "Add", "AI_VECTOR_CORE");
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
	torch(f, NPS_GENERATION_B);
	tail = strstr(read_all(f, "kernel_details.csv"), ",Context ID,");
	assert_non_null(tail);
	assert_memory_equal(tail,
			    ",Context ID,aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,"
			    "aiv_time(us),aiv_vec_ratio,cube_utilization(%)\n",
			    118);
	assert_non_null(strstr(tail, ",N/A,310.526,8943142,162.5,0.523,0.0,0.0,65.929\n"));
	assert_non_null(strstr(tail, ",N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n"));
	assert_non_null(strstr(tail, ",N/A,0.0,0,0.0,0.0,9.4,0.05,0.000\n"));
	torch(f, NPS_GENERATION_A);
	assert_non_null(strstr(read_all(f, "kernel_details.csv"), ",N/A,0.0,0,0.0,0.0,9.4,0.05,0\r\n"));
}

/* --- statistics ---------------------------------------------------------------------------------------- */

static void statistics(void **state)
{
	struct fixture *f = *state;
	size_t bounded;

	kernel(f, 1000, 2000, 0, "Add", "AI_VECTOR_CORE");
	kernel(f, 3000, 6000, 0, "MatMul", "AI_CORE");
	kernel(f, 7000, 9000, 0, "Add", "AI_VECTOR_CORE");
	bounded = kernel(f, 9000, 90000, 0, "Add", "AI_VECTOR_CORE");
	f->m.task.source[bounded] = NPS_TIME_HOST_BOUNDS;
	for (size_t i = 0; i < 3; i++) {
		size_t at = row(&f->m.api.t);

		no_texts(&f->m.api.t, at);
		f->m.api.name[at] = text(f, i < 2 ? "launch" : "Launch");
		f->m.api.type[at] = i < 2 ? NPS_API_NODE : NPS_API_COMM;
		f->m.api.start[at] = T0 + 1000 * i;
		f->m.api.end[at] = T0 + 2000 * i + 500;
	}
	torch(f, NPS_GENERATION_B);
	assert_string_equal(rows_of(f, "op_statistic.csv"),
			    "0,Add,AI_VECTOR_CORE,3,3.000,1.000,1.500,2.000,50.000\n"
			    "0,MatMul,AI_CORE,1,3.000,3.000,3.000,3.000,50.000\n");
	assert_string_equal(rows_of(f, "api_statistic.csv"),
			    "host,communication,Launch,2.500,1,2.500,2.500,2.500,0.000\n"
			    "host,node,launch,2.000,2,1.000,0.500,1.500,0.250\n");
	torch(f, NPS_GENERATION_A);
	assert_string_equal(rows_of(f, "op_statistic.csv"), "Add,AI_VECTOR_CORE,3,3.0,1.0,1.5,2.0,50.0\n"
							    "MatMul,AI_CORE,1,3.0,3.0,3.0,3.0,50.0\n");
	assert_string_equal(rows_of(f, "api_statistic.csv"), "hccl,Launch,2.5,1,2.5,2.5,2.5,0.0\n"
							     "node,launch,2.0,2,1.0,0.5,1.5,0.25\n");
}

/* --- operator_details ---------------------------------------------------------------------------------- */

static size_t op(struct fixture *f, uint64_t start, uint64_t end, uint64_t gtid, const char *name,
		 int64_t link)
{
	struct nps_torch_table *t = &f->m.torch;
	size_t at = row(&t->t);

	no_texts(&t->t, at);
	t->type[at] = NPS_API_TORCH_OP;
	t->start[at] = T0 + start;
	t->end[at] = T0 + end;
	t->gtid[at] = gtid;
	t->name[at] = text(f, name);
	t->connection[at] = link;
	t->callchain[at] = NPS_NULL;
	return at;
}

static void add_link(struct fixture *f, uint32_t id, uint32_t connection)
{
	size_t at = row(&f->m.link.t);

	f->m.link.id[at] = id;
	f->m.link.connection[at] = connection;
}

static void add_frame(struct fixture *f, uint32_t id, const char *line, uint32_t depth)
{
	size_t at = row(&f->m.frame.t);

	f->m.frame.id[at] = id;
	f->m.frame.stack[at] = text(f, line);
	f->m.frame.depth[at] = depth;
}

static void operators(void **state)
{
	struct fixture *f = *state;
	size_t at;

	kernel(f, 50000, 51000, 0, "Add", "AI_CORE"); /* connection 7 */
	kernel(f, 52000, 54500, 0, "Cast", "MIX_AIV"); /* 8 */
	task(f, 60000, 61000, 0, 9); /* a copy */
	f->m.task.class[task(f, 52000, 99000, 0, 8)] = NPS_CLASS_PARENT;
	f->m.task.class[task(f, 70000, 75000, 0, 900)] = NPS_CLASS_COMM;
	collective(f, 70000, 80000, 0); /* 900 */
	op(f, 0, 40000, 1, "ProfilerStep#3", NPS_NULL);
	at = op(f, 1000, 9000, 1, "aten::outer", 5);
	f->m.torch.input_shapes[at] = text(f, "2,3;\r\n");
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
	torch(f, NPS_GENERATION_B);
	assert_string_equal(
		rows_of(f, "operator_details.csv"),
		"aten::outer,\"2,3;\r\n\",\"a.py(1): f;\r\nb\"\".py(2): g\",2.5,8.0,1.0,28.0,1.0,1.0\n"
		"other_thread,,,1.5,1.5,0,0,0,0\n"
		"aten::inner,,,3.0,4.0,13.5,27.0,0,0\n"
		"aten::leaf,,,1.0,1.0,13.5,13.5,0,0\n"
		"aten::second,,plain(1): f,1.5,1.5,0,0,0,0\n");
}

/* --- memory -------------------------------------------------------------------------------------------- */

static void npu_op_mem(struct fixture *f, uint64_t time, const char *type, int64_t address, int64_t allocated)
{
	struct nps_npu_op_mem_table *t = &f->m.npu_op_mem;
	size_t at = row(&t->t);

	t->name[at] = text(f, "Conv,2D");
	t->component[at] = text(f, "GE");
	t->type[at] = text(f, type);
	t->timestamp[at] = T0 + time;
	t->address[at] = address;
	t->size[at] = 2560;
	t->allocated[at] = allocated;
	t->reserved[at] = 1 << 20;
}

static void record(struct fixture *f, uint64_t time, const char *component, int64_t allocated)
{
	struct nps_memory_record_table *t = &f->m.memory_record;
	size_t at = row(&t->t);

	t->component[at] = text(f, component);
	t->timestamp[at] = T0 + time;
	t->allocated[at] = t->active[at] = allocated;
	t->reserved[at] = 2 << 20;
	t->stream[at] = 77;
}

static void memory_of_both(void **state)
{
	struct fixture *f = *state;
	struct nps_op_memory_table *t = &f->m.op_memory;
	size_t at;

	npu_op_mem(f, 1000, "allocate", 10, 512);
	npu_op_mem(f, 2000, "allocate", 20, 1024);
	npu_op_mem(f, 3000, "release", 10, 512);
	npu_op_mem(f, 4000, "release", 99, 512); /* of before */
	record(f, 500, "PTA", 1 << 20);
	record(f, 2500, "PTA", 3 << 19);
	at = row(&f->m.npu_mem.t);
	f->m.npu_mem.type[at] = text(f, "app");
	f->m.npu_mem.timestamp[at] = T0;
	f->m.npu_mem.hbm[at] = 3 << 20;
	at = row(&t->t);
	t->name[at] = text(f, "aten::empty");
	t->size[at] = 512;
	t->allocation[at] = T0 + 500;
	t->stream[at] = 77;
	t->release[at] = t->active_release[at] = t->duration[at] = t->active_duration[at] = NPS_NULL;
	t->allocation_allocated[at] = t->allocation_active[at] = 1 << 20;
	t->allocation_reserved[at] = 2 << 20;
	t->release_allocated[at] = t->release_active[at] = t->release_reserved[at] = NPS_NULL;
	torch(f, NPS_GENERATION_B);
	assert_string_equal(
		rows_of(f, "operator_memory.csv"),
		"aten::empty,0.5,1700000000000000.500\t,,,,,1.0,2.0,1.0,,,,77,NPU:0\n"
		"\"cann::Conv,2D\",2.5,1700000000000001.000\t,1700000000000003.000\t,,2.0,,0.00048828125,"
		"1.0,,0.00048828125,1.0,,,NPU:0\n"
		"\"cann::Conv,2D\",2.5,1700000000000002.000\t,,,,,0.0009765625,1.0,,,,,,NPU:0\n");
	assert_string_equal(rows_of(f, "memory_record.csv"),
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
	struct fixture *f = *state;
	struct nps_npu_module_mem_table *t = &f->m.npu_module_mem;

	for (uint32_t i = 0; i < 6; i++) {
		size_t at = row(&t->t);

		t->module[at] = i % 3 == 2 ? 500 : 2 - i % 3;
		t->timestamp[at] = T0 + i / 3 * 1000;
		t->reserved[at] = i << 19;
		t->device[at] = 4;
	}
	torch(f, NPS_GENERATION_B);
	assert_string_equal(rows_of(f, "npu_module_mem.csv"), "4,IDEDD,1700000000000000.000\t,0.5,NPU:4\n"
							      "4,IDEDD,1700000000000001.000\t,2.0,NPU:4\n"
							      "4,SCC,1700000000000000.000\t,0.0,NPU:4\n"
							      "4,SCC,1700000000000001.000\t,1.5,NPU:4\n"
							      "4,500,1700000000000000.000\t,1.0,NPU:4\n"
							      "4,500,1700000000000001.000\t,2.5,NPU:4\n");
	f->m.layout = NPS_LAYOUT_MSPROF;
	empty_dir(f);
	f->ex.generation = NPS_GENERATION_A;
	assert_int_equal(nps_export__msprof_csv(&f->ex, f->fd), 0);
	assert_memory_equal(read_all(f, "npu_module_mem_20240101120000.csv"),
			    "Component,Timestamp(us),Total Reserved(KB),Device\n"
			    "IDEDD,1700000000000000.000\t,512.0,NPU:4\n",
			    90);
}

/* --- steps, msprof ------------------------------------------------------------------------------------- */

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

static void step_times(void **state)
{
	struct fixture *f = *state;
	struct nps_step_trace_table *t = &f->m.step_trace;
	size_t at = row(&t->t);

	t->step[at] = text(f, "50");
	t->computing[at] = 8873.756;
	t->communication[at] = 0.1 + 0.2;
	t->preparing[at] = -1.5;
	torch(f, NPS_GENERATION_A);
	assert_string_equal(rows_of(f, "step_trace_time.csv"),
			    "50,8873.756,0.0,0.0,0.30000000000000004,0.0,0.0,0,0.0,-1.5\r\n");
	t->step[at] = text(f, "");
	torch(f, NPS_GENERATION_B);
	assert_string_equal(rows_of(f, "step_trace_time.csv"),
			    "0,,8873.756,0.000,0.000,0.300,0.000,0.000,0,0.000,-1.5\n");
	/* Of which nothing was measured, before that row and behind it. */
	for (size_t i = 0; i < 2; i++) {
		struct nps_unmeasured_step *step = nps_vec__push(&f->m.unmeasured_steps);

		assert_non_null(step);
		*step = (struct nps_unmeasured_step){ i, text(f, i ? "51" : "49"), i };
	}
	t->step[at] = text(f, "50");
	torch(f, NPS_GENERATION_B);
	assert_string_equal(rows_of(f, "step_trace_time.csv"),
			    "0,49,,,,,,,,,\n"
			    "0,50,8873.756,0.000,0.000,0.300,0.000,0.000,0,0.000,-1.5\n"
			    "1,51,,,,,,,,,\n");
}

static void msprof_layout(void **state)
{
	struct fixture *f = *state;
	struct nps_iteration_table *it = &f->m.iteration;
	struct nps_iteration_part_table *part = &f->m.iteration_part;
	size_t at;

	f->m.layout = NPS_LAYOUT_MSPROF;
	kernel(f, 1000, 2000, 3, "Add", "AI_VECTOR_CORE");
	collective(f, 4000, 5500, 3);
	for (uint64_t i = 0; i < 2; i++) {
		at = row(&it->t);
		it->id[at] = i + 1;
		it->model[at] = 1;
		it->start[at] = T0 + 1000 * i;
		it->end[at] = T0 + 1000 * i + 900;
		it->fp_start[at] = i ? T0 + 1100 : 0;
		it->bp_end[at] = i ? T0 + 1500 : 0;
	}
	at = row(&part->t);
	part->id[at] = 2;
	part->model[at] = 1;
	part->start[at] = T0 + 1200;
	part->end[at] = T0 + 1300;
	assert_int_equal(nps_export__msprof_csv(&f->ex, f->fd), 0);
	assert_memory_equal(
		read_all(f, "op_summary_20240101120000.csv"),
		"Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start "
		"Time(us),",
		91);
	assert_string_equal(rows_of(f, "communication_statistic_20240101120000.csv"),
			    "3,hcom_allReduce_,1,1.500,1.500,1.500,1.500,100.000\n");
	assert_string_equal(rows_of(f, "task_time_20240101120000.csv"),
			    "3,\"aclnn, \"\"odd\"\" name\",AI_VECTOR_CORE,2,100,1.0,1700000000000001.000\t,"
			    "1700000000000002.000\t\n");
	assert_string_equal(
		rows_of(f, "step_trace_20240101120000.csv"),
		"0,1,N/A,N/A,1700000000000000.900\t,0.9,N/A,N/A,N/A,1,N/A,N/A\n"
		"0,2,1700000000000001.100\t,1700000000000001.500\t,1700000000000001.900\t,0.9,0.4,0.4,0.1,"
		"1,1700000000000001.200\t,0.1\n");
	assert_false(exists(f, "npu_mem_20240101120000.csv"));
}

/*
 * What the vendor's files have: the function's name and the core of
 * kernels, else the runtime's type of the task.
 */
static void tasks_by_function(void **state)
{
	struct fixture *f = *state;
	size_t at;

	f->m.layout = NPS_LAYOUT_MSPROF;
	at = kernel(f, 1000, 2000, 0, "Cast", "AI_VECTOR_CORE");
	f->m.task.kernel[at] = text(f, "Cast_kernel_2");
	at = task(f, 2500, 3500, 0, 8);
	f->m.task.name[at] = f->m.task.type[at] = text(f, "EVENT_RECORD");
	at = kernel(f, 4000, 5000, 0, "Add", "N/A");
	f->m.task.kernel[at] = text(f, "te_add_1");
	assert_int_equal(nps_export__msprof_csv(&f->ex, f->fd), 0);
	assert_string_equal(rows_of(f, "task_time_20240101120000.csv"),
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
static void check_slices(struct fixture *f, const char *table, const char *const starts[3])
{
	static const size_t rows[] = { 1000000, 1000000, 1 };
	size_t header = 0;
	char name[96];

	snprintf(name, sizeof(name), "%s_20240101120000.csv", table);
	assert_false(exists(f, name));
	for (int i = 0; i < 3; i++) {
		const char *first;

		snprintf(name, sizeof(name), "%s_slice_%d_20240101120000.csv", table, i);
		assert_int_equal(lines(read_all(f, name)), 1 + rows[i]);
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
	struct fixture *f = *state;

	f->m.layout = NPS_LAYOUT_MSPROF;
	for (size_t i = 0; i < 2000001; i++) {
		size_t at = 0;

		if (nps_table__add(&f->m.task.t, &at))
			fail();
		f->m.task.name[at] = f->m.task.type[at] = f->m.task.kernel[at] = NPS_NONE;
		f->m.task.start[at] = f->m.task.end[at] = T0 + i;
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
	struct fixture *f = *state;
	struct nps_comm_time_table *t = &f->m.comm_time;
	struct nps_comm_bandwidth_table *b = &f->m.comm_bandwidth;
	uint32_t step = text(f, "step1"), group = text(f, "11"), transport = text(f, "HCCS");
	const uint32_t types[] = { text(f, "p2p"), text(f, "collective") };
	size_t found = 0;
	char name[32];

	for (size_t i = 0; i < n; i++) { /* the types take turns, so that rows are brought together */
		size_t at = row(&t->t), bw = row(&b->t);

		snprintf(name, sizeof(name), "hcom_x__011_%zu_1", i);
		t->op[at] = b->op[bw] = text(f, name);
		t->group[at] = b->group[bw] = group;
		t->step[at] = b->step[bw] = step;
		t->type[at] = b->type[bw] = types[i & 1];
		b->transport[bw] = transport;
		b->size[bw] = b->bandwidth[bw] = b->package[bw] = 5;
		b->time[bw] = b->count[bw] = b->total[bw] = 1;
	}
	assert_int_equal(nps_export__communication(&f->ex, f->fd), 0);
	for (const char *at = read_all(f, "communication.json"); *at; at++)
		found += *at == '"' && !strncmp(at, size, sizeof(size) - 1);
	assert_int_equal(found, n);
}

static void driver_call(struct fixture *f, const char *name, uint64_t ns, int64_t result)
{
	struct nps_driver_table *t = &f->m.driver;
	size_t at = row(&t->t);

	no_texts(&t->t, at);
	t->name[at] = text(f, name);
	t->start[at] = T0 + at;
	t->end[at] = T0 + at + ns;
	t->result[at] = result;
}

static size_t driver_task(struct fixture *f)
{
	struct nps_driver_task_table *t = &f->m.driver_task;
	size_t at = row(&t->t);

	no_texts(&t->t, at);
	t->gtid[at] = 77ULL << 32 | 78;
	t->device[at] = 1;
	t->stream[at] = 2;
	t->queue[at] = 3;
	t->type[at] = 255;
	t->start[at] = T0 + 5000;
	t->task[at] = t->driver_ns[at] = t->queued[at] = NPS_NULL;
	return at;
}

/* Calls by what they took in all; whatever the layout, the names have no stamp. */
static void the_driver(void **state)
{
	struct fixture *f = *state;
	struct nps_driver_task_table *t = &f->m.driver_task;
	size_t known;

	for (uint64_t ns = 100; ns; ns--)
		driver_call(f, "ioctl", ns * 1000, ns == 50 ? -EINVAL : 0);
	driver_call(f, "mmap", 6000001, 0);
	driver_task(f);
	known = driver_task(f);
	t->task[known] = 9;
	t->name[known] = text(f, "MatMul");
	t->submit[known] = T0 + 1500;
	t->queued[known] = 3500;
	t->driver_ns[known] = 250;
	f->m.layout = NPS_LAYOUT_MSPROF;
	assert_int_equal(nps_export__driver_csv(&f->ex, f->fd), 0);
	assert_string_equal(read_all(f, "driver_statistic.csv"),
			    "Name,Count,Errors,Total Time(us),Avg(us),Min(us),Max(us),P99(us)\n"
			    "mmap,1,0,6000.001,6000.001,6000.001,6000.001,6000.001\n"
			    "ioctl,100,1,5050.000,50.500,1.000,100.000,99.000\n");
	assert_string_equal(
		read_all(f, "npuscope_driver_tasks.csv"),
		"Process ID,Device_id,Stream ID,Task ID,SQ ID,SQE Type,Name,Submit(us),In "
		"Driver(us),Queued(us),"
		"Driver(us)\n"
		"77,1,2,N/A,3,255,N/A,N/A,1700000000000005.000\t,N/A,N/A\n"
		"77,1,2,9,3,255,MatMul,1700000000000001.500\t,1700000000000005.000\t,3.500,0.250\n");
}

static void nothing_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	DIR *dir;
	int n = 0;

	torch(f, NPS_GENERATION_B);
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
	struct fixture *f = *state;

	kernel(f, 1000, 2000, 0, "Add", "AI_VECTOR_CORE");
	close(openat(f->fd, "kernel_details.csv", O_CREAT | O_WRONLY, 0600));
	assert_int_equal(nps_export__torch_csv(&f->ex, f->fd), -EEXIST);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(floats_of_python),
		cmocka_unit_test(floats_round_trip),
		cmocka_unit_test(rounding_is_that_of_printf),
		TEST(kernels_wait_for_their_device),
		TEST(early_generation),
		TEST(counters_are_columns),
		TEST(statistics),
		TEST(operators),
		TEST(memory_of_both),
		TEST(modules_are_grouped),
		cmocka_unit_test(modules_have_the_names_of_their_generation),
		TEST(step_times),
		TEST(msprof_layout),
		TEST(tasks_by_function),
		TEST(slices),
		TEST(traffic_of_many_collectives),
		TEST(the_driver),
		TEST(nothing_leaves_nothing),
		TEST(a_file_in_the_way_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
