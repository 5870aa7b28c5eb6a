/* SPDX-License-Identifier: BSD-2-Clause */
/* The timeline's items, as a sink that writes them down reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "event.h"
#include "export/timeline.h"

#define ALL ((1U << NPS_ITEM_KINDS) - 1)

static struct nps_model m;
static int tmp_fd = -1;

static int set_up(void **state)
{
	(void)state;
	tmp_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tmp_fd < 0 || nps_model__init(&m, tmp_fd, NULL))
		return -1;
	m.start = 1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nps_model__free(&m);
	return close(tmp_fd);
}

#define ADD(field)                                                                                           \
	({                                                                                                   \
		size_t row_ = 0;                                                                             \
		assert_int_equal(nps_table__add(&m.field.t, &row_), 0);                                      \
		row_;                                                                                        \
	})
#define SET(field, column, value) (m.field.column[m.field.t.len - 1] = (value))

static uint32_t word(const char *text)
{
	return nps_strings__addz(m.strings, text);
}

static void call(uint64_t start, uint64_t end, const char *name, uint32_t connection)
{
	ADD(api);
	SET(api, start, start);
	SET(api, end, end);
	SET(api, gtid, 7ULL << 32 | 8);
	SET(api, name, word(name));
	SET(api, connection, connection);
}

static void torch(uint32_t type, uint64_t start, uint64_t end, const char *name)
{
	ADD(torch);
	SET(torch, type, type);
	SET(torch, start, start);
	SET(torch, end, end);
	SET(torch, gtid, 7ULL << 32 | 8);
	SET(torch, name, word(name));
}

static void task(uint64_t start, uint64_t end, const char *name, uint8_t class)
{
	ADD(task);
	SET(task, start, start);
	SET(task, end, end);
	SET(task, device, 1);
	SET(task, stream, 2);
	SET(task, name, word(name));
	SET(task, connection, 5);
	SET(task, class, class);
}

static void run(uint64_t start, uint64_t end, uint32_t tid, const char *comm, uint64_t left, uint64_t woken)
{
	ADD(run);
	SET(run, start, start);
	SET(run, end, end);
	SET(run, left, left);
	SET(run, woken, woken);
	SET(run, tid, tid);
	SET(run, cpu, 3);
	SET(run, state, 1);
	SET(run, comm, word(comm));
}

/* --- the sink: a line an item --- */

static char items[4096];

static void write_item(const struct nps_item *item)
{
	static const char *const kinds[NPS_ITEM_KINDS] = {
		[NPS_ITEM_PYTHON] = "python",
		[NPS_ITEM_OPERATOR] = "operator",
		[NPS_ITEM_TORCH_MARK] = "torch mark",
		[NPS_ITEM_CALL] = "call",
		[NPS_ITEM_TASK] = "task",
		[NPS_ITEM_COLLECTIVE] = "collective",
		[NPS_ITEM_COLLECTIVE_TASK] = "collective task",
		[NPS_ITEM_OVERLAP] = "overlap",
		[NPS_ITEM_SYSTEM_CALL] = "system call",
		[NPS_ITEM_DRIVER_CALL] = "driver call",
		[NPS_ITEM_MARK] = "mark",
		[NPS_ITEM_DEVICE_MARK] = "device mark",
		[NPS_ITEM_ITERATION] = "iteration",
		[NPS_ITEM_ITERATION_PART] = "iteration part",
		[NPS_ITEM_SAMPLE] = "sample",
		[NPS_ITEM_INTERRUPT] = "interrupt",
		[NPS_ITEM_SLEEPING] = "sleeping",
		[NPS_ITEM_RUNNABLE] = "runnable",
		[NPS_ITEM_FIRST] = "first",
		[NPS_ITEM_RUNNING] = "running",
		[NPS_ITEM_SWITCH] = "switch",
		[NPS_ITEM_STEP] = "step",
		[NPS_ITEM_COLLECTION] = "collection",
		[NPS_ITEM_QUEUE] = "queue",
	};
	size_t len = strlen(items);

	snprintf(items + len, sizeof(items) - len, "%s %llu-%llu on %u/%u %s\n", kinds[item->kind],
		 (unsigned long long)item->start, (unsigned long long)item->end, nps_item__device(item),
		 nps_item__tid(item), item->name == NPS_NONE ? "-" : nps_strings__get(m.strings, item->name));
}

static void assert_items(uint32_t wanted, const char *expected)
{
	struct nps_timeline timeline;
	struct nps_item item;

	items[0] = 0;
	nps_timeline__open(&timeline, &m, wanted);
	while (nps_timeline__next(&timeline, &item))
		write_item(&item);
	assert_true(nps_timeline__ended(&timeline));
	assert_int_equal(nps_timeline__close(&timeline), 0);
	assert_string_equal(items, expected);
}

/* --- tests --- */

static void tables_are_merged_by_time(void **state)
{
	char expected[1024];

	(void)state;
	call(100, 200, "launch", 5);
	call(400, 500, "wait", NPS_NO_ID);
	task(150, 300, "MatMul", NPS_CLASS_COMPUTE);
	task(400, 450, "SDMA", NPS_CLASS_COMM);
	ADD(comm_op);
	SET(comm_op, start, 390);
	SET(comm_op, end, 460);
	SET(comm_op, device, 1);
	SET(comm_op, group, word("world"));
	SET(comm_op, name, word("allReduce"));
	ADD(comm_task);
	SET(comm_task, task, 1);
	SET(comm_task, group, m.comm_op.group[0]);
	SET(comm_task, type, word("Memcpy"));
	ADD(osrt);
	SET(osrt, start, 120);
	SET(osrt, end, 130);
	SET(osrt, gtid, 7ULL << 32 | 9);
	SET(osrt, name, word("read"));
	ADD(step);
	SET(step, start, 100);
	SET(step, end, 600);
	/*
	 * Times and device of a collective's task are those of the task; of
	 * the same time, kinds have their order.
	 */
	snprintf(expected, sizeof(expected),
		 "call 100-200 on 7/8 launch\n"
		 "step 100-600 on 0/0 -\n"
		 "system call 120-130 on 7/9 read\n"
		 "task 150-300 on 1/2 MatMul\n"
		 "collective 390-460 on 1/%u allReduce\n"
		 "call 400-500 on 7/8 wait\n"
		 "task 400-450 on 1/2 SDMA\n"
		 "collective task 400-450 on 1/%u Memcpy\n",
		 m.comm_op.group[0], m.comm_op.group[0]);
	assert_items(ALL, expected);
	assert_items(NPS_ITEM(TASK), "task 150-300 on 1/2 MatMul\ntask 400-450 on 1/2 SDMA\n");
	assert_items(0, "");
}

static void connections_and_rows(void **state)
{
	struct nps_timeline timeline;
	struct nps_item item;

	(void)state;
	task(10, 20, "parent", NPS_CLASS_PARENT);
	task(11, 20, "part", NPS_CLASS_COMPUTE);
	ADD(overlap);
	SET(overlap, start, 12);
	SET(overlap, end, 11);
	nps_timeline__open(&timeline, &m, ALL);
	assert_true(nps_timeline__next(&timeline, &item));
	assert_int_equal(item.kind, NPS_ITEM_TASK);
	assert_int_equal(item.row, 1);
	assert_int_equal(item.connection, 5);
	assert_int_equal(nps_item__length(&item), 9);
	assert_false(nps_timeline__ended(&timeline));
	assert_true(nps_timeline__next(&timeline, &item));
	assert_int_equal(item.connection, NPS_NO_ID);
	assert_int_equal(nps_item__length(&item), 0); /* it ends before it starts */
	assert_false(nps_timeline__next(&timeline, &item));
	assert_int_equal(nps_timeline__close(&timeline), 0);
}

static void what_has_no_time_is_no_item(void **state)
{
	(void)state;
	torch(NPS_API_TORCH_OP, 0, 50, "half recorded");
	task(0, 50, "unknown", NPS_CLASS_COMPUTE);
	task(60, 70, "known", NPS_CLASS_COMPUTE);
	ADD(mstx); /* a mark that no device reached */
	SET(mstx, start, 65);
	SET(mstx, end, 65);
	SET(mstx, message, word("mark"));
	assert_items(ALL, "task 60-70 on 1/2 known\nmark 65-65 on 0/0 mark\n");
}

/*
 * Databases have Python's frames by their end. Of the same start the longer is the
 * outer one, then kinds have their order.
 */
static void host_rows_nest(void **state)
{
	(void)state;
	torch(NPS_API_PYTHON, 300, 400, "leaf");
	torch(NPS_API_PYTHON, 100, 500, "first");
	torch(NPS_API_PYTHON, 100, 900, "main");
	torch(NPS_API_TORCH_OP, 100, 450, "mul");
	torch(NPS_API_TORCH_OP, 300, 400, "add");
	call(300, 420, "launch", 5);
	call(300, 400, "launch", 6);
	assert_items(ALL, "python 100-900 on 7/8 main\n"
			  "python 100-500 on 7/8 first\n"
			  "operator 100-450 on 7/8 mul\n"
			  "call 300-420 on 7/8 launch\n"
			  "python 300-400 on 7/8 leaf\n"
			  "operator 300-400 on 7/8 add\n"
			  "call 300-400 on 7/8 launch\n");
}

/* A wait is read from the run that ends it, but comes when it begins. */
static void scheduling_is_in_order_of_time(void **state)
{
	(void)state;
	run(100, 200, 8, "python", 0, 0);
	run(150, 600, 9, "worker", 0, 0);
	run(500, 700, 8, "python", 200, 450);
	run(900, 900, 9, "worker", 600, 0);
	SET(run, state, NPS_RUN_OPEN); /* the capture ended while it slept */
	run(950, 990, 8, "renamed", 0, 0);
	SET(run, state, NPS_RUN_OPEN);
	assert_items(ALL, "first 100-100 on 3/8 python\n"
			  "running 100-200 on 3/8 python\n"
			  "first 150-150 on 3/9 worker\n"
			  "running 150-600 on 3/9 worker\n"
			  "switch 200-200 on 3/8 python\n"
			  "sleeping 200-450 on 3/8 python\n"
			  "runnable 450-500 on 3/8 python\n"
			  "running 500-700 on 3/8 python\n"
			  "switch 600-600 on 3/9 worker\n"
			  "sleeping 600-900 on 3/9 worker\n"
			  "switch 700-700 on 3/8 python\n"
			  "first 950-950 on 3/8 renamed\n"
			  "running 950-990 on 3/8 renamed\n");
	assert_items(NPS_ITEM(RUNNING), "running 100-200 on 3/8 python\n"
					"running 150-600 on 3/9 worker\n"
					"running 500-700 on 3/8 python\n"
					"running 950-990 on 3/8 renamed\n");
}

/* A thread that only waited when the capture ended has no first run: there is no switch to count. */
static void run_by_run(void **state)
{
	struct nps_item out[3];

	(void)state;
	run(500, 500, 8, "python", 200, 0);
	SET(run, state, NPS_RUN_OPEN);
	assert_int_equal(nps_timeline__run(&m, 0, true, out), 0);
	assert_int_equal(nps_timeline__wait(&m, 0, NPS_NONE, out), 1);
	assert_int_equal(out[0].kind, NPS_ITEM_RUNNABLE); /* nobody woke it: it had not been asleep */
	assert_int_equal(out[0].before, NPS_NONE);
	run(600, 700, 8, "python", 550, 580);
	assert_int_equal(nps_timeline__run(&m, 1, true, out), 3);
	assert_int_equal(out[0].kind, NPS_ITEM_FIRST);
	assert_int_equal(out[2].kind, NPS_ITEM_SWITCH);
	assert_int_equal(out[2].start, 700);
	assert_int_equal(nps_timeline__wait(&m, 1, 0, out), 2);
	assert_int_equal(out[0].kind, NPS_ITEM_SLEEPING);
	assert_int_equal(out[0].end, 580);
	assert_int_equal(out[1].before, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tables_are_merged_by_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(connections_and_rows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_has_no_time_is_no_item, set_up, tear_down),
		cmocka_unit_test_setup_teardown(host_rows_nest, set_up, tear_down),
		cmocka_unit_test_setup_teardown(scheduling_is_in_order_of_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(run_by_run, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
