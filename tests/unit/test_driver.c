/* SPDX-License-Identifier: BSD-2-Clause */
/* The NPU's driver: names of nodes, parts and commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "driver/driver_nodes.h"
#include "event.h"
#include "import/session/driver_names.h"
#include "import/session/import_driver.h"
#include "sources/driver/driver_fn.h"

static void expect_node(const char *name, uint8_t kind, uint16_t device)
{
	struct nps_node node;

	assert_true(nps_driver_node__parse(name, &node));
	assert_int_equal(node.kind, kind);
	assert_int_equal(node.device, device);
}

static void nodes_by_name(void **state)
{
	static const char *const none[] = { "davinci",	 "davinci-1", "davinci_managerx", "davinci1x",
					    "null",	 "",	      "davinci99999",	  "hisi_hdc2",
					    "davinci 1", "devmm" };
	struct nps_node node;

	(void)state;
	expect_node("davinci_manager", NPS_NODE_MANAGER, NPS_DRIVER_NO_DEVICE);
	expect_node("davinci_manager_docker", NPS_NODE_MANAGER, NPS_DRIVER_NO_DEVICE);
	expect_node("davinci0", NPS_NODE_DEVICE, 0);
	expect_node("davinci63", NPS_NODE_DEVICE, 63);
	expect_node("vdavinci100", NPS_NODE_DEVICE, NPS_DRIVER_NO_DEVICE);
	expect_node("devmm_svm", NPS_NODE_SVM, NPS_DRIVER_NO_DEVICE);
	expect_node("hisi_hdc", NPS_NODE_HDC, NPS_DRIVER_NO_DEVICE);
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		assert_false(nps_driver_node__parse(none[i], &node));
}

static bool has_major(const char *devices, uint32_t rdev)
{
	FILE *f = fmemopen((void *)devices, strlen(devices), "r");
	bool has;

	assert_non_null(f);
	has = nps_driver_nodes__has_major(f, rdev);
	fclose(f);
	return has;
}

static void majors_of_the_driver(void **state)
{
	static const char devices[] = "Character devices:\n  1 mem\n 10 misc\n236 hisi_davinci_intf\n"
				      "237 devdrv-cdev\n238 devmm_svm\n 511 devdrv-cdev-more\n\n"
				      "Block devices:\n  8 sd\n240 hisi_hdc\n";

	(void)state;
	assert_true(has_major(devices, 236 << 20));
	assert_true(has_major(devices, 237 << 20 | 63));
	assert_true(has_major(devices, 238 << 20));
	assert_false(has_major(devices, 1 << 20 | 5));
	assert_false(has_major(devices, 10 << 20 | 236));
	assert_false(has_major(devices, 511 << 20)); /* not its whole name */
	assert_false(has_major(devices, 240 << 20)); /* of blocks */
	assert_false(has_major("nonsense", 236 << 20));
}

static void count_node(void *arg, const struct nps_node_found *found)
{
	(void)found;
	++*(int *)arg;
}

/* A job's /dev can be anything. */
static void folders_alone_are_read(void **state)
{
	char folder[] = "/tmp/nps_nodes_XXXXXX", path[64];
	int n = 0;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/davinci0", folder);
	assert_int_equal(symlink("/dev/null", path), 0);
	snprintf(path, sizeof(path), "%s/dev", folder);
	assert_int_equal(symlink("/dev", path), 0);
	assert_int_equal(nps_driver_nodes__find(path, count_node, &n), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(nps_driver_nodes__find(path, count_node, &n), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(nps_driver_nodes__find(path, count_node, &n), 0);
	assert_int_equal(nps_driver_nodes__find(folder, count_node, &n), 0);
	assert_int_equal(n, 0);
	snprintf(path, sizeof(path), "%s/davinci0", folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void parts_by_their_first_bytes(void **state)
{
	char name[NPS_DRIVER_NAME_MAX];

	(void)state;
	nps_driver_part_name("", name);
	assert_string_equal(name, "");
	nps_driver_part_name("TSDRV\0x", name);
	assert_string_equal(name, "TSDRV");
	nps_driver_part_name("TSDRV_MMAP", name); /* the first 8 bytes alone */
	assert_string_equal(name, "TSDRV_MMAP");
	nps_driver_part_name("eight456 and more", name);
	assert_string_equal(name, "eight456");
	nps_driver_part_name("a\n\xff", name);
	assert_string_equal(name, "a??");
}

static void expect_call(uint16_t call, uint32_t command, uint8_t kind, const char *part, const char *text)
{
	char node[NPS_DRIVER_NAME_MAX], name[2 * NPS_DRIVER_NAME_MAX];

	nps_driver_node_name(kind, 2, node);
	nps_driver_call_name(call, command, kind, part, node, name, sizeof(name));
	assert_string_equal(name, text);
}

#define IO(magic, number) ((uint32_t)(magic) << 8 | (number))

static void calls_are_named(void **state)
{
	(void)state;
	expect_call(NPS_DRIVER_OPEN, 0, NPS_NODE_DEVICE, "", "open davinci2");
	expect_call(NPS_DRIVER_CLOSE, 0, NPS_NODE_MANAGER, "TSDRV", "close TSDRV");
	expect_call(NPS_DRIVER_IOCTL, IO('Z', 0), NPS_NODE_MANAGER, "TSDRV", "ioctl davinci_manager OPEN");
	expect_call(NPS_DRIVER_IOCTL, IO('X', 19), NPS_NODE_MANAGER, "TSDRV", "ioctl TSDRV SQCQ_SEND");
	/* handed over before the capture */
	expect_call(NPS_DRIVER_IOCTL, IO('X', 20), NPS_NODE_MANAGER, "", "ioctl TSDRV SQCQ_RECV");
	expect_call(NPS_DRIVER_IOCTL, IO('X', 14), NPS_NODE_MANAGER, "TSDRV", "ioctl TSDRV 0x580e");
	expect_call(NPS_DRIVER_IOCTL, IO('X', 255), NPS_NODE_MANAGER, "TSDRV", "ioctl TSDRV 0x58ff");
	expect_call(NPS_DRIVER_IOCTL, IO('M', 3), NPS_NODE_SVM, "", "ioctl devmm_svm ALLOC");
	expect_call(NPS_DRIVER_IOCTL, IO('M', 3), NPS_NODE_HDC, "", "ioctl hisi_hdc 0x4d03");
	expect_call(NPS_DRIVER_IOCTL, IO('H', 0x15), NPS_NODE_HDC, "", "ioctl hisi_hdc SEND");
	/* one magic, two parts */
	expect_call(NPS_DRIVER_IOCTL, IO('U', 30), NPS_NODE_MANAGER, "SVM", "ioctl SVM MPL_POPULATE");
	expect_call(NPS_DRIVER_IOCTL, IO('U', 2), NPS_NODE_MANAGER, "uda", "ioctl uda GET_DEV_LIST");
	expect_call(NPS_DRIVER_IOCTL, IO('U', 2), NPS_NODE_MANAGER, "", "ioctl davinci_manager 0x5502");
	expect_call(999, 0, 200, "", "call unknown node");
}

/* --- functions of the driver --- */

static void functions_are_resolved(void **state)
{
	static const char text[] = "ffffffff81000000 T _stext\n"
				   "ffffffffc0000000 d tsagent_sqe_update\t[elsewhere]\n"
				   "nonsense\n"
				   "ffffffffc0000010 t tsagent_sqe_update_more\t[elsewhere]\n"
				   "ffffffffc0000018 t trs_chan_ops_sqe_update\t["
				   "a_name_of_fifty_six_bytes_is_longer_than_linux_allows_it]\n"
				   "ffffffffc0000020 t tsagent_sqe_update\t[ts_agent]\n"
				   "ffffffffc0000030 t tsagent_sqe_update\t[another]\n"
				   "ffffffffc0000040 t longest\t["
				   "a_name_of_fifty_five_bytes_is_the_longest_there_can_be_]\n"
				   "ffffffffc0000050 t\n"
				   "ffffffffc0000060 T last";
	struct nps_driver_symbol wanted[] = {
		{ .name = "tsagent_sqe_update" },
		{ .name = "trs_chan_ops_sqe_update" },
		{ .name = "_stext" },
		{ .name = "sqe_update" },
		{ .name = "longest" },
		{ .name = "last" },
	};
	FILE *f = fmemopen((void *)text, sizeof(text) - 1, "r");

	(void)state;
	assert_non_null(f);
	assert_int_equal(nps_driver_fn__resolve(f, wanted, 6), 4);
	fclose(f);
	assert_true(wanted[0].there);
	assert_string_equal(wanted[0].module, "ts_agent");
	assert_false(wanted[1].there);
	assert_true(wanted[2].there);
	assert_string_equal(wanted[2].module, "");
	assert_false(wanted[3].there);
	assert_string_equal(wanted[4].module, "a_name_of_fifty_five_bytes_is_the_longest_there_can_be_");
	assert_true(wanted[5].there);
	assert_string_equal(wanted[5].module, "");
}

static void only_known_layouts(void **state)
{
	static const char *const unknown[] = { "", "ef377e", "ef377e91", "24.1.rc3" };
	struct nps_sqe_layout layout;

	(void)state;
	assert_true(nps_driver_fn__layout("ef377e9", &layout));
	assert_int_equal(layout.sqe, 24);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		assert_false(nps_driver_fn__layout(unknown[i], &layout));
}

static void one_line_names_what_is_missing(void **state)
{
	struct nps_driver_ways ways = { 0 };
	char text[600];

	(void)state;
	for (size_t i = 0; i < NPS_DRIVER_KINDS; i++)
		strcpy(ways.way[i].detail, "why not");
	assert_true(nps_driver_ways__missing(&ways, text, sizeof(text)));
	assert_string_equal(text, "tasks, CQEs, copies: why not");
	strcpy(ways.way[NPS_DRIVER_TASKS].detail, "unknown");
	assert_true(nps_driver_ways__missing(&ways, text, sizeof(text)));
	assert_string_equal(text, "tasks: unknown; CQEs, copies: why not");
	assert_true(nps_driver_ways__missing(&ways, text, 20)); /* cut, within its bounds */
	assert_string_equal(text, "tasks: unknown; CQE");
	ways.way[NPS_DRIVER_TASKS].method = ways.way[NPS_DRIVER_COPIES].method = NPS_DRIVER_BY_KPROBE;
	assert_true(nps_driver_ways__missing(&ways, text, sizeof(text)));
	assert_string_equal(text, "CQEs: why not");
	ways.way[NPS_DRIVER_COMPLETIONS].method = NPS_DRIVER_BY_FEXIT;
	assert_false(nps_driver_ways__missing(&ways, text, sizeof(text)));
}

/* --- SQEs, CQEs and who waited --- */

#define PID 7
#define FIRST 1000000

static struct nps_session rec;
static struct nps_model model;
static int dir;

static int setup(void **state)
{
	(void)state;
	dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	nps_session__init(&rec, -1, dir);
	rec.begin = rec.begin_real = FIRST;
	return nps_model__init(&model, dir, &rec.strings) || !nps_session__proc(&rec, PID);
}

static int teardown(void **state)
{
	(void)state;
	nps_model__free(&model);
	nps_session__free(&rec);
	close(dir);
	return 0;
}

static void submit(uint64_t when, uint16_t stream, uint32_t task)
{
	struct nps_task *t = nps_vec__push(&rec.tasks);

	assert_non_null(t);
	*t = (struct nps_task){
		.submit = FIRST + when, .stream = stream, .task = task, .device = 1, .conn = 9
	};
	t->name = nps_strings__addz(&rec.strings, "a task");
	rec.procs[0].tasks++;
}

static void keep(struct nps_event ev)
{
	ev.pid = PID;
	ev.tid = 8;
	ev.start += FIRST;
	assert_int_equal(nps_event__keep(&rec.procs[0].drivers, &ev), 0);
}

static void sqe(uint64_t when, uint16_t stream, uint16_t task)
{
	keep((struct nps_event){ .kind = NPS_EV_DRIVER_TASK,
				 .start = when,
				 .dur = 5,
				 .driver_task = { .device = 1,
						  .queue = 3,
						  .sqe = { .type = 11, .stream = stream, .task = task } } });
}

static void sqes_find_their_submissions(void **state)
{
	const int64_t queued[] = { 100, 50, NPS_NULL, NPS_NULL, 40 };

	(void)state;
	submit(1000, 4, 65535 + 3); /* the driver has 16 bits of it */
	submit(2000, 4, 3);
	submit(5000, 4, 2);
	sqe(1100, 4, 2); /* of the first: 65538 */
	sqe(2050, 4, 3);
	sqe(2060, 4, 3); /* a second one of the same: nothing is known of it */
	sqe(2070, 5, 3);
	sqe(5040, 4, 2);
	assert_int_equal(nps_driver__fill(&model, &rec, &rec.procs[0]), 0);
	assert_int_equal(model.driver_task.t.len, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_true(model.driver_task.queued[i] == queued[i]);
		assert_int_equal(model.driver_task.submit[i] != 0, queued[i] != NPS_NULL);
		assert_int_equal(model.driver_task.queue[i], 3);
		assert_int_equal(model.driver_task.type[i], 11);
	}
	assert_int_equal(model.driver_task.connection[0], 9);
	assert_int_equal(model.driver_task.connection[2], NPS_NO_ID);
}

static void wait_for(uint64_t when, uint64_t dur, uint32_t stream, uint32_t task)
{
	keep((struct nps_event){ .kind = NPS_EV_DRIVER,
				 .call_type = NPS_DRIVER_IOCTL,
				 .start = when,
				 .dur = dur,
				 .driver = { .command = IO('X', 20),
					     .node = NPS_NODE_MANAGER,
					     .device = 1,
					     .waits_for = { stream, task } } });
}

static void cqe(uint64_t when, uint16_t stream, uint16_t task)
{
	keep((struct nps_event){ .kind = NPS_EV_DRIVER_DONE,
				 .start = when,
				 .driver_done = { .device = 1, .stream = stream, .task = task } });
}

static void waits_end_with_a_cqe(void **state)
{
	(void)state;
	wait_for(100, 50, 4, 6);
	cqe(120, 4, 6);
	cqe(130, 4, 7); /* nobody waits for it */
	cqe(200, 4, 6); /* the wait is over */
	assert_int_equal(nps_driver__fill(&model, &rec, &rec.procs[0]), 0);
	assert_int_equal(model.driver_cqe.t.len, 3);
	assert_int_equal(model.driver_cqe.wakeup[0], 30);
	assert_int_equal(model.driver_cqe.waiter[0], 8);
	assert_true(model.driver_cqe.wakeup[1] == NPS_NULL && model.driver_cqe.wakeup[2] == NPS_NULL);
	assert_int_equal(model.driver.t.len, 1);
	assert_true(model.driver.bytes[0] == NPS_NULL);
}

/* In a container device 1 is another one, and so may be its streams and tasks. */
static void nothing_is_joined_in_a_container(void **state)
{
	cJSON *json = cJSON_Parse("{\"device_numbers\": \"container\"}");

	(void)state;
	assert_non_null(json);
	rec.procs[0].json = json;
	submit(1000, 4, 3);
	sqe(1100, 4, 3);
	wait_for(2000, 50, 4, 6);
	cqe(2020, 4, 6);
	assert_int_equal(nps_driver__fill(&model, &rec, &rec.procs[0]), 0);
	assert_int_equal(model.driver_task.t.len, 1);
	assert_true(model.driver_task.queued[0] == NPS_NULL);
	assert_int_equal(model.driver_task.connection[0], NPS_NO_ID);
	assert_int_equal(model.driver_cqe.t.len, 1);
	assert_int_equal(model.driver_cqe.waiter[0], 0);
	assert_true(model.driver_cqe.wakeup[0] == NPS_NULL);
	rec.procs[0].json = NULL;
	cJSON_Delete(json);
}

static void all_of_it_is_in_the_span(void **state)
{
	(void)state;
	model.start = FIRST + 500;
	model.end = FIRST + 600;
	wait_for(400, 50, 4, 6);
	sqe(598, 4, 3); /* takes 5 */
	assert_int_equal(nps_driver__fill(&model, &rec, &rec.procs[0]), 0);
	nps_driver__cover(&model);
	assert_int_equal(model.start, FIRST + 400);
	assert_int_equal(model.end, FIRST + 603);
	cqe(700, 4, 6);
	model.driver.t.len = model.driver_task.t.len = 0;
	assert_int_equal(nps_driver__fill(&model, &rec, &rec.procs[0]), 0);
	nps_driver__cover(&model);
	assert_int_equal(model.end, FIRST + 700);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_by_name),
		cmocka_unit_test(majors_of_the_driver),
		cmocka_unit_test(folders_alone_are_read),
		cmocka_unit_test(parts_by_their_first_bytes),
		cmocka_unit_test(calls_are_named),
		cmocka_unit_test(functions_are_resolved),
		cmocka_unit_test(only_known_layouts),
		cmocka_unit_test(one_line_names_what_is_missing),
		cmocka_unit_test_setup_teardown(sqes_find_their_submissions, setup, teardown),
		cmocka_unit_test_setup_teardown(waits_end_with_a_cqe, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_joined_in_a_container, setup, teardown),
		cmocka_unit_test_setup_teardown(all_of_it_is_in_the_span, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
