/* SPDX-License-Identifier: BSD-2-Clause */
/* Models of a few rows whose answers are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "findings/findings.h"

#define US 1000ULL
#define T0 (1700000000ULL * 1000000000ULL)
#define MAIN ((7ULL << 32) | 8)
#define OTHER ((7ULL << 32) | 9)

static int tmpfd;

static void begin(struct nps_model *m)
{
	assert_int_equal(nps_model__init(m, tmpfd, NULL), 0);
	m->start = T0;
}

static size_t new_row(struct nps_table *table)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(table, &row), 0);
	return row;
}

static uint32_t text(struct nps_model *m, const char *what)
{
	return nps_strings__addz(m->strings, what);
}

/* A task from START to END us; SUBMIT 0: not known. */
static size_t add_task(struct nps_model *m, uint64_t start, uint64_t end, uint64_t submit,
		       enum nps_task_class class)
{
	struct nps_task_table *t = &m->task;
	size_t row;

	row = new_row(&t->t);
	t->start[row] = T0 + start * US;
	t->end[row] = T0 + end * US;
	t->submit[row] = submit ? T0 + submit * US : 0;
	t->connection[row] = NPS_NO_ID;
	t->class[row] = class;
	t->name[row] = text(m, "task");
	t->step[row] = NPS_NONE;
	m->end = NPS_MAX(m->end, t->end[row]);
	return row;
}

static size_t add_kernel(struct nps_model *m, uint64_t start, uint64_t end, uint64_t submit, const char *type,
			 const char *shapes)
{
	size_t task = add_task(m, start, end, submit, NPS_CLASS_COMPUTE), row;

	row = new_row(&m->compute.t);
	m->compute.task[row] = task;
	m->compute.name[row] = text(m, "kernel");
	m->compute.type[row] = text(m, type);
	m->compute.core[row] = text(m, "AI_CORE");
	m->compute.input_shapes[row] = shapes ? text(m, shapes) : NPS_NONE;
	return task;
}

static void add_api(struct nps_model *m, uint64_t start, uint64_t end, uint64_t gtid, uint32_t connection,
		    const char *name)
{
	size_t row;

	row = new_row(&m->api.t);
	m->api.start[row] = T0 + start * US;
	m->api.end[row] = T0 + end * US;
	m->api.gtid[row] = gtid;
	m->api.type[row] = NPS_API_ACL;
	m->api.connection[row] = connection;
	m->api.name[row] = text(m, name);
	m->api.item[row] = NPS_NONE;
}

static void add_op(struct nps_model *m, uint64_t start, uint64_t end, uint64_t gtid, const char *name)
{
	size_t row;

	row = new_row(&m->torch.t);
	m->torch.start[row] = T0 + start * US;
	m->torch.end[row] = T0 + end * US;
	m->torch.gtid[row] = gtid;
	m->torch.type[row] = NPS_API_TORCH_OP;
	m->torch.name[row] = text(m, name);
	m->torch.callchain[row] = NPS_NULL;
	m->torch.input_shapes[row] = NPS_NONE;
}

static void add_call(struct nps_model *m, uint64_t start, uint64_t end, uint64_t gtid, const char *name)
{
	size_t row;

	row = new_row(&m->osrt.t);
	m->osrt.start[row] = T0 + start * US;
	m->osrt.end[row] = T0 + end * US;
	m->osrt.gtid[row] = gtid;
	m->osrt.name[row] = text(m, name);
}

static void add_step(struct nps_model *m, const char *name, double computing, double alone, double free_time)
{
	struct nps_step_trace_table *t = &m->step_trace;
	size_t row;

	row = new_row(&t->t);
	t->step[row] = text(m, name);
	t->computing[row] = computing;
	t->not_overlapped[row] = t->communication[row] = alone;
	t->free[row] = free_time;
	row = new_row(&m->step.t);
	m->step.id[row] = strtoll(name, NULL, 10);
	m->step.start[row] = T0 + row;
	m->step.end[row] = T0 + row + 1;
}

static const cJSON *at(const cJSON *from, const char *path)
{
	while (from && *path) {
		size_t len = strcspn(path, "/");
		char key[64];

		memcpy(key, path, len);
		key[len] = 0;
		from = cJSON_IsArray(from) ? cJSON_GetArrayItem(from, atoi(key))
					   : cJSON_GetObjectItemCaseSensitive(from, key);
		path += len + (path[len] == '/');
	}
	return from;
}

static double number(const cJSON *from, const char *path)
{
	const cJSON *item = at(from, path);

	if (cJSON_IsRaw(item))
		return strtod(item->valuestring, NULL);
	assert_true(cJSON_IsNumber(item));
	return cJSON_GetNumberValue(item);
}

static const char *string(const cJSON *from, const char *path)
{
	const char *value = cJSON_GetStringValue(at(from, path));

	assert_non_null(value);
	return value;
}

static const cJSON *finding(const cJSON *document, const char *id)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, at(document, "findings")) if (!strcmp(string(item, "id"), id)) return item;
	return NULL;
}

static cJSON *make(struct nps_model *m)
{
	cJSON *document = nps_findings__make(m);

	assert_non_null(document);
	nps_model__free(m);
	return document;
}

/*
 * The host's part of a gap ends with the submission; what it did
 * meanwhile is found in the thread that counts.
 */
static void test_idle(void **state)
{
	struct nps_model m;
	cJSON *d;
	size_t row;

	(void)state;
	begin(&m);
	add_kernel(&m, 1000, 2000, 900, "A", NULL);
	add_kernel(&m, 5000, 6000, 4500, "A", NULL); /* 2500 of 3000 us are the host's */
	add_kernel(&m, 7000, 8000, 5500, "A", NULL); /* 1000 us in the device's queue */
	row = add_task(&m, 9500, 9600, 0,
		       NPS_CLASS_MEMCPY); /* after the collective; nobody knows about 100 us */
	m.task.connection[row] = 99;
	add_task(&m, 20000, 30000, 0, NPS_CLASS_EVENT); /* no work */
	add_task(&m, 30000, 31000, 29000, NPS_CLASS_MEMCPY);
	m.task.source[5] = NPS_TIME_HOST_BOUNDS; /* not measured */
	row = new_row(&m.comm_op.t);
	m.comm_op.name[row] = text(&m, "hcom_allReduce__1_0_1");
	m.comm_op.type[row] = m.comm_op.group[row] = NPS_NONE;
	m.comm_op.start[row] = T0 + 8500 * US; /* 400 of 500 us are the host's */
	m.comm_op.end[row] = T0 + 9400 * US;
	m.comm_op.connection[row] = 7;
	add_api(&m, 1900, 4400, MAIN, NPS_NO_ID, "outer");
	add_api(&m, 2100, 4300, MAIN, NPS_NO_ID, "inner");
	add_api(&m, 4350, 4400, MAIN, NPS_NO_ID, "short");
	add_api(&m, 8100, 8400, OTHER, 7, "hcom");
	add_op(&m, 1000, 9000, MAIN, "ProfilerStep#3");
	add_op(&m, 2050, 4450, MAIN, "aten::item");
	add_call(&m, 0, 9000, OTHER, "epoll_wait"); /* sleeps all the time: shows nothing */
	add_call(&m, 2200, 4200, MAIN, "futex");
	d = make(&m);

	assert_true(number(d, "idle/devices/0/span_us") == 8600);
	assert_true(number(d, "idle/devices/0/idle_us") == 3000 + 1000 + 500 + 100);
	assert_true(number(d, "idle/devices/0/host_bound_us") == 2500 + 400);
	assert_true(number(d, "idle/devices/0/device_side_us") == 500 + 1000 + 100);
	assert_true(number(d, "idle/devices/0/unknown_us") == 100);
	assert_true(number(d, "idle/devices/0/gaps") == 4);
	assert_true(number(d, "idle/devices/0/mean_kernel_us") == 1000);
	assert_true(number(d, "idle/devices/0/mean_launch_interval_us") == 2300);
	assert_true(number(d, "idle/tasks_left_out") == 1);
	assert_int_equal(cJSON_GetArraySize(at(d, "idle/longest_gaps")), 2);
	assert_true(number(d, "idle/longest_gaps/0/host_us") == 2500);
	assert_string_equal(string(d, "idle/longest_gaps/0/host_call/name"), "inner");
	assert_string_equal(string(d, "idle/longest_gaps/0/torch_op/name"), "aten::item");
	assert_string_equal(string(d, "idle/longest_gaps/0/system_call/name"), "futex");
	assert_true(number(d, "idle/longest_gaps/0/system_call/within_us") == 2000);
	assert_true(number(d, "idle/longest_gaps/1/launching_thread") == 9);
	assert_string_equal(string(d, "idle/longest_gaps/1/system_call/name"), "epoll_wait");
	assert_true(fabs(number(finding(d, "host_bound"), "share") - 2900 / 31000.) < 0.001);
	assert_non_null(strstr(string(finding(d, "host_bound"), "title"), "33.7 % of its time"));
	assert_non_null(strstr(string(finding(d, "host_bound"), "title"), "futex"));
	assert_true(number(d, "apis/rows/0/total_us") == 2500);
	assert_string_equal(string(d, "apis/rows/0/name"), "outer");
	cJSON_Delete(d);
}

/* Gaps of two devices overlap: the one that begins last is not the one that ends last. */
static void test_idle_devices(void **state)
{
	struct nps_model m;
	cJSON *d;

	(void)state;
	begin(&m);
	add_kernel(&m, 0, 10, 0, "A", NULL);
	m.task.device[add_kernel(&m, 0, 20, 0, "A", NULL)] = 1;
	m.task.device[add_kernel(&m, 40, 50, 35, "A", NULL)] = 1;
	add_kernel(&m, 1000, 1010, 995, "A", NULL);
	add_api(&m, 100, 900, MAIN, NPS_NO_ID, "aclrtMalloc");
	d = make(&m);
	assert_int_equal(cJSON_GetArraySize(at(d, "idle/longest_gaps")), 2);
	assert_true(number(d, "idle/longest_gaps/0/host_us") == 985);
	assert_string_equal(string(d, "idle/longest_gaps/0/host_call/name"), "aclrtMalloc");
	assert_null(at(d, "idle/longest_gaps/1/host_call"));
	cJSON_Delete(d);
}

/* A launch of a kernel and one of a collective have the same name. */
static void test_apis(void **state)
{
	static const uint32_t types[] = { NPS_API_NODE, NPS_API_COMM, NPS_API_NODE };
	struct nps_model m;
	cJSON *d;

	(void)state;
	begin(&m);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(types); i++) {
		add_api(&m, 10 * i, 10 * i + 5 + i, MAIN, NPS_NO_ID, "launch");
		m.api.type[i] = types[i];
	}
	m.end = T0 + 100 * US;
	d = make(&m);
	assert_true(number(d, "apis/names") == 2);
	assert_string_equal(string(d, "apis/rows/0/level"), "node");
	assert_true(number(d, "apis/rows/0/total_us") == 5 + 7);
	assert_true(number(d, "apis/rows/0/max_us") == 7);
	assert_string_equal(string(d, "apis/rows/1/level"), "communication");
	assert_true(number(d, "apis/rows/1/total_us") == 6);
	cJSON_Delete(d);
}

static void test_launch_bound(void **state)
{
	struct nps_model m;
	cJSON *d;

	(void)state;
	begin(&m);
	for (int i = 1; i <= 200; i++)
		add_kernel(&m, i * 50, i * 50 + 10, i * 50 - 1, "A", NULL);
	d = make(&m);
	assert_true(number(finding(d, "launch_bound"), "numbers/mean_launch_interval_us") == 50);
	assert_true(number(finding(d, "launch_bound"), "numbers/mean_kernel_us") == 10);
	cJSON_Delete(d);
}

static void test_steps(void **state)
{
	struct nps_model m;
	cJSON *d;
	char name[32];

	(void)state;
	begin(&m);
	for (int i = 0; i < 2000; i++) { /* more than are listed */
		snprintf(name, sizeof(name), "%d", i);
		add_step(&m, name, 100 + i % 7, 10, i == 1234 ? 500 : 20);
	}
	m.end = T0 + 2000 * 140 * US;
	d = make(&m);
	assert_true(number(d, "steps/median_us") == 133);
	assert_true(number(d, "steps/slowest_us") == 100 + 1234 % 7 + 510);
	assert_string_equal(string(d, "steps/rows/0/step"), "1234");
	assert_int_equal(cJSON_GetArraySize(at(d, "steps/rows")), 1000);
	for (int i = 1; i < 999; i++) {
		snprintf(name, sizeof(name), "steps/rows/%d", i);
		assert_true(number(at(d, name), "total_us") == 136 ||
			    number(at(d, name), "total_us") == 135 ||
			    number(at(d, name), "total_us") == 134 || number(at(d, name), "total_us") == 133);
	}
	assert_true(number(finding(d, "step_jitter"), "numbers/slow_steps") == 1);
	assert_string_equal(string(finding(d, "step_jitter"), "numbers/grown_part"), "free time");
	assert_true(number(finding(d, "step_jitter"), "numbers/grown_part_us") == 480);
	cJSON_Delete(d);
}

/*
 * Steps without a row, of which nothing was measured: one in which the device
 * had nothing to do lasts as on the host.
 */
static void test_idle_step(void **state)
{
	struct nps_model m;
	cJSON *d;

	(void)state;
	begin(&m);
	add_step(&m, "1", 100, 10, 20);
	m.step.id[new_row(&m.step.t)] = 2;
	add_step(&m, "3", 0, 0, 0);
	m.step.end[2] = m.step.start[2] + 300 * US;
	m.end = T0 + 4000 * US;
	d = make(&m);
	assert_string_equal(string(d, "steps/rows/0/step"), "3");
	assert_true(number(d, "steps/rows/0/total_us") == 300);
	cJSON_Delete(d);
}

/* Shares are of the capture's time, not of the steps' or of all devices' together. */
static void test_shares(void **state)
{
	struct nps_model m;
	char name[16];
	cJSON *d;

	(void)state;
	begin(&m);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "%d", i / 2);
		add_step(&m, name, 60, 40, i < 18 ? 0 : 500);
		m.step_trace.device[i] = i % 2;
	}
	m.end = T0 + 4000 * US; /* each device works for 1000 us of them and waits for 500 */
	d = make(&m);
	assert_true(number(finding(d, "communication_not_overlapped"), "share") == 0.1);
	assert_non_null(strstr(string(finding(d, "communication_not_overlapped"), "title"), " 26.7 % "));
	assert_true(number(finding(d, "step_jitter"), "share") == 0.125);
	assert_true(number(finding(d, "step_jitter"), "numbers/lost_us") == 1000);
	cJSON_Delete(d);
}

/* MatMul varies with its shapes, Add does not vary, Gelu varies for no reason that is known. */
static void test_operators(void **state)
{
	struct nps_model m;
	uint64_t now = 10;
	cJSON *d;

	(void)state;
	begin(&m);
	for (int i = 0; i < 100; i++) {
		uint64_t matmul = i % 10 ? 100 : 900, gelu = i % 10 ? 20 : 90;

		add_kernel(&m, now, now + matmul, now - 5, "MatMul", i % 10 ? "8,8" : "64,64");
		now += matmul;
		add_kernel(&m, now, now + 50, now - 30, "Add", "8,8");
		now += 50;
		add_kernel(&m, now, now + gelu, 0, "Gelu", "8,8");
		now += gelu;
	}
	m.task.end[0] = T0; /* a database may have that */
	d = make(&m);
	assert_true(number(d, "operators/types") == 3);
	assert_string_equal(string(d, "operators/rows/0/type"), "MatMul");
	assert_true(number(d, "operators/rows/0/count") == 100);
	assert_true(number(d, "operators/rows/0/total_us") == 90 * 100 + 9 * 900);
	assert_true(number(d, "operators/rows/0/max_us") == 900);
	assert_true(fabs(number(d, "operators/rows/0/p50_us") - 100) <= 100 / 32.);
	assert_true(number(d, "operators/rows/0/queue_wait_max_us") == 5);
	assert_string_equal(string(d, "operators/rows/0/why"), "varies with its shapes");
	assert_string_equal(string(d, "operators/rows/0/slowest/input_shapes"), "64,64");
	assert_string_equal(string(d, "operators/rows/1/why"), "takes about the same time each time");
	assert_string_equal(string(d, "operators/rows/2/why"),
			    "varies although its shapes explain little of it");
	assert_non_null(finding(d, "slow_operator"));
	cJSON_Delete(d);
}

static void add_link(struct nps_model *m, const char *src, const char *dst, const char *transport, double mb,
		     double ms)
{
	struct nps_comm_matrix_table *t = &m->comm_matrix;
	size_t row;

	row = new_row(&t->t);
	t->src[row] = text(m, src);
	t->dst[row] = text(m, dst);
	t->op[row] = text(m, "hcom_allReduce__1_0_1");
	t->group[row] = text(m, "g");
	t->transport[row] = text(m, transport);
	t->size[row] = mb;
	t->time[row] = ms;
}

static void test_communication(void **state)
{
	struct nps_model m;
	size_t row;
	cJSON *d;

	(void)state;
	begin(&m);
	m.end = T0 + 100000 * US;
	for (int i = 0; i < 3; i++) {
		row = new_row(&m.comm_op.t);
		m.comm_op.name[row] = text(&m, i ? "b" : "a");
		m.comm_op.type[row] = text(&m, "allReduce");
		m.comm_op.group[row] = text(&m, "g");
		m.comm_op.start[row] = T0 + i * 1000 * US;
		m.comm_op.end[row] = T0 + (i * 1000 + 100 + i) * US;
		m.comm_op.connection[row] = NPS_NO_ID;
		m.comm_op.tasks[row] = i == 2; /* the last has a task that nobody measured */
		row = new_row(&m.comm_time.t);
		m.comm_time.elapse[row] = 10;
		m.comm_time.wait[row] = 4;
		m.comm_time.transit[row] = 6;
	}
	add_link(&m, "0", "1", "HCCS", 100, 5); /* 20 GB/s */
	add_link(&m, "0", "1", "HCCS", 100, 5);
	add_link(&m, "0", "2", "HCCS", 100, 20); /* 5 GB/s */
	add_link(&m, "0", "3", "HCCS", 0.1, 20); /* too little for a finding */
	add_link(&m, "0", "4", "RDMA", 100, 90); /* another kind of link */
	add_link(&m, "0", "0", "LOCAL", 100, 0.01);
	d = make(&m);
	assert_true(number(d, "communication/rows/0/count") == 3);
	assert_true(number(d, "communication/rows/0/total_us") == 201);
	assert_true(number(d, "communication/rows/0/max_us") == 101);
	assert_string_equal(string(d, "communication/rows/0/slowest/name"), "b");
	assert_true(number(d, "communication/without_measured_tasks") == 1);
	assert_true(number(finding(d, "communication_wait"), "numbers/wait_us") == 12000);
	assert_true(number(finding(d, "slow_link"), "numbers/slow_gb_per_s") == 5);
	assert_true(number(finding(d, "slow_link"), "numbers/fast_gb_per_s") == 20);
	assert_string_equal(string(finding(d, "slow_link"), "where/slow_link_to"), "2");
	cJSON_Delete(d);
}

/* A total of what nobody measured is none, not 0. */
static void test_unmeasured(void **state)
{
	struct nps_model m;
	size_t row, task;
	cJSON *d;

	(void)state;
	begin(&m);
	m.end = T0 + 1000 * US;
	row = new_row(&m.comm_op.t);
	m.comm_op.name[row] = m.comm_op.type[row] = m.comm_op.group[row] = text(&m, "a");
	m.comm_op.start[row] = m.comm_op.end[row] = T0;
	m.comm_op.connection[row] = NPS_NO_ID;
	m.comm_op.tasks[row] = 1;
	task = new_row(&m.task.t);
	m.task.start[task] = m.task.end[task] = T0;
	m.task.source[task] = NPS_TIME_HOST_BOUNDS;
	row = new_row(&m.compute.t);
	m.compute.task[row] = task;
	m.compute.name[row] = m.compute.type[row] = m.compute.core[row] = text(&m, "Add");
	d = make(&m);
	assert_true(cJSON_IsNull(at(d, "communication/total_us")));
	assert_true(cJSON_IsNull(at(d, "communication/rows/0/total_us")));
	assert_true(cJSON_IsNull(at(d, "operators/total_us")));
	assert_true(number(d, "operators/tasks_left_out") == 1);
	cJSON_Delete(d);
}

/*
 * A link's transfers are stored as a sum and once more as the best, the middle and the worst of them. Ranks
 * of different groups share nothing but their numbers.
 */
static void test_links(void **state)
{
	static const struct {
		const char *op, *group;
		double mb, ms;
	} links[] = { { "allreduce-top1", "one", 300, 15 },    { "allreduce-middle", "one", 300, 15 },
		      { "allreduce-bottom1", "one", 300, 15 }, { "allreduce-total", "one", 300, 15 },
		      { "allreduce-top1", "two", 40, 10 },     { "allreduce-total", "two", 100, 50 },
		      { "allgather-total", "two", 100, 50 } };
	struct nps_model m;
	const cJSON *slow;
	cJSON *d;

	(void)state;
	begin(&m);
	m.end = T0 + 400000 * US;
	new_row(&m.comm_op.t);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(links); i++) {
		add_link(&m, "0", "1", "HCCS", links[i].mb, links[i].ms);
		m.comm_matrix.op[i] = text(&m, links[i].op);
		m.comm_matrix.group[i] = text(&m, links[i].group);
	}
	d = make(&m);
	slow = finding(d, "slow_link");
	assert_true(number(slow, "numbers/slow_mb") == 200);
	assert_true(number(slow, "numbers/slow_us") == 100000);
	assert_true(number(slow, "numbers/slow_gb_per_s") == 2);
	assert_true(number(slow, "numbers/fast_gb_per_s") == 20);
	assert_true(number(slow, "share") == 0.25);
	assert_string_equal(string(slow, "where/group"), "two");
	assert_non_null(strstr(string(slow, "title"), "from rank 0 to 1 of group two"));
	cJSON_Delete(d);
}

static bool is_utf8(const char *text)
{
	size_t left = strlen(text), n;

	for (; left; text += n, left -= n) {
		n = nps_utf8_len(text, left);
		if (!n)
			return false;
	}
	return true;
}

/* Texts that are too long for a title are cut between characters. */
static void test_long_texts(void **state)
{
	(void)state;
	for (int from = 0; from < 4; from++) {
		char name[1001] = "";
		struct nps_model m;
		size_t row;
		cJSON *d;

		memset(name, 'x', from);
		for (int at = from; at + 4 < (int)sizeof(name); at += 4)
			memcpy(name + at, "\xf0\x9f\x8d\x80", 5);
		begin(&m);
		nps_model__lost(&m, 1, "lines of %s", name);
		add_kernel(&m, 100, 200, 50, "A", NULL);
		add_kernel(&m, 900, 1000, 850, "A", NULL);
		add_api(&m, 210, 840, MAIN, NPS_NO_ID, name);
		row = new_row(&m.comm_op.t);
		m.comm_op.start[row] = m.comm_op.end[row] = T0 + 100 * US;
		add_link(&m, "0", "1", name, 100, 5);
		add_link(&m, "0", "2", name, 100, 50);
		d = make(&m);
		assert_true(is_utf8(string(d, "capture/lost/0/what")));
		assert_non_null(strstr(string(finding(d, "host_bound"), "title"), "mostly in"));
		assert_true(is_utf8(string(finding(d, "host_bound"), "title")));
		assert_true(strlen(string(finding(d, "slow_link"), "title")) > 500);
		assert_true(is_utf8(string(finding(d, "slow_link"), "title")));
		cJSON_Delete(d);
	}
	assert_int_equal(nps_utf8_fit("", 5), 0);
	assert_int_equal(nps_utf8_fit("abc", 0), 0);
	assert_int_equal(nps_utf8_fit("abc", 2), 2);
	assert_int_equal(nps_utf8_fit("a\xc3\xa4", 2), 1);
	assert_int_equal(nps_utf8_fit("a\xc3\xa4", 3), 3);
	assert_int_equal(nps_utf8_fit("a\xc3\xa4", 9), 3);
	assert_int_equal(nps_utf8_fit("\xe4\xbd\xa0\xe5\xa5\xbd", 5), 3);
}

static void test_memory_and_host(void **state)
{
	struct nps_model m;
	size_t row;
	cJSON *d;

	(void)state;
	begin(&m);
	m.end = T0 + 1000 * US;
	for (int i = 0; i < 3; i++) {
		row = new_row(&m.memory_record.t);
		m.memory_record.component[row] = text(&m, "PTA");
		m.memory_record.timestamp[row] = T0 + i;
		m.memory_record.reserved[row] = (i == 1 ? 4LL : 2LL) << 30;
		m.memory_record.allocated[row] = 1LL << 30;
		row = new_row(&m.run.t);
		m.run.tid[row] = 12;
		m.run.left[row] = T0 + i * 100 * US;
		m.run.woken[row] =
			i == 2 ? 0 : T0 + i * 100 * US; /* at last it lost its CPU, and nobody woke it */
		m.run.start[row] = T0 + (i * 100 + 30) * US;
		m.run.state[row] = i == 1 ? 0 : 1;
	}
	add_call(&m, 1, 5, MAIN, "read");
	add_call(&m, 10, 30, MAIN, "read");
	add_call(&m, 12, 13, MAIN, "major page fault");
	m.osrt.shape[m.osrt.t.len - 1] = NPS_OS_FAULT;
	row = new_row(&m.osrt_sum.t);
	m.osrt_sum.name[row] = text(&m, "getppid");
	m.osrt_sum.count[row] = 40;
	d = make(&m);
	assert_true(number(d, "capture/system_calls") == 42);
	assert_true(number(d, "memory/rows/0/peak_reserved_mib") == 4096);
	assert_true(number(d, "memory/rows/0/allocated_then_mib") == 1024);
	assert_non_null(finding(d, "memory_reserved"));
	assert_true(number(d, "host/system_calls/0/total_us") == 24);
	assert_true(number(d, "host/system_calls/0/max_us") == 20);
	assert_true(number(finding(d, "cpu_starved"), "numbers/runnable_us") == 90);
	cJSON_Delete(d);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* No quantile is off by more than is stated. */
static void test_histogram(void **state)
{
	static const double quantiles[] = { 0, 0.1, 0.5, 0.9, 0.99 };
	static uint64_t values[5000];
	const size_t count = NPS_ARRAY_SIZE(values);
	struct nps_histogram h = { 0 };

	(void)state;
	srand(3);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(values); i++) {
		values[i] = (uint64_t)rand() >> rand() % 31;
		values[i] <<= rand() % 30;
		nps_histogram__add(&h, values[i]);
	}
	qsort(values, NPS_ARRAY_SIZE(values), sizeof(*values), by_value);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(quantiles); i++) {
		size_t rank = (size_t)(quantiles[i] * (double)count);
		double exact = values[rank];

		assert_true(fabs(nps_histogram__quantile(&h, quantiles[i]) - exact) <= exact / 32);
	}
	nps_histogram__add(&h, UINT64_MAX);
	assert_true(nps_histogram__quantile(&h, 1) == UINT64_MAX);
}

/* Senseless rows make senseless numbers, not crashes. */
static void test_hostile(void **state)
{
	struct nps_model m;
	size_t row;
	cJSON *d;

	(void)state;
	begin(&m);
	row = add_kernel(&m, 10, 5, 20, "A", NULL);
	m.task.device[row] = 4000000000U;
	row = add_kernel(&m, 10, 5, 20, "A", NULL);
	m.task.end[row] = UINT64_MAX;
	row = add_kernel(&m, 3, 2, 1, "A", NULL); /* out of order */
	m.task.connection[row] = 5;
	add_api(&m, 9, 1, MAIN, 5, "backwards");
	add_api(&m, 0, 1, MAIN, UINT32_MAX - 1, "far");
	add_op(&m, 9, 1, MAIN, "npu_fx_compiler inference");
	add_op(&m, 1, 9, MAIN, "npu_fx_compiler inference");
	add_call(&m, 9, 1, MAIN, "\033[2Jclear");
	add_step(&m, "1", (double)NAN, INFINITY, -5);
	add_step(&m, "", -1, 0, 0);
	row = new_row(&m.frame.t);
	m.frame.stack[row] = NPS_NONE;
	m.torch.callchain[1] = 0;
	m.end = 1;
	d = make(&m);
	assert_non_null(at(d, "findings"));
	cJSON_Delete(d);

	begin(&m);
	d = make(&m); /* nothing at all */
	assert_int_equal(cJSON_GetArraySize(at(d, "findings")), 0);
	cJSON_Delete(d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_idle_devices),
		cmocka_unit_test(test_apis),
		cmocka_unit_test(test_launch_bound),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_idle_step),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_operators),
		cmocka_unit_test(test_communication),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_unmeasured),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_memory_and_host),
		cmocka_unit_test(test_histogram),
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
