/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces made by hand: whose events are what, and where the rank comes from. */
#include "import/import.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static int folder_fd = -1;

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/nps_trace_XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder_fd < 0 ? -1 : mkdirat(folder_fd, "out", 0700);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	close(folder_fd);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void put(const char *name, const char *text)
{
	int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void import_as(struct nps_model *m, const char *path)
{
	assert_int_equal(nps_model__init(m, folder_fd, NULL), 0);
	assert_int_equal(nps_import__trace(m, path), 0);
}

/* Imports the trace TEXT, which lies in the folder "out". */
static void import(struct nps_model *m, const char *text)
{
	char path[128];

	put("out/trace_view.json", text);
	snprintf(path, sizeof(path), "%s/out/trace_view.json", folder);
	import_as(m, path);
}

static void only_named_layers_are_read(void **state)
{
	struct nps_model m;

	(void)state;
	/* 102623 is (100 << 10) | (6 << 5) | 31: the lane of ranges, named after the application */
	import(&m, "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":100,\"tid\":0,\"args\":{\"name\":"
		   "\"Python\"}},"
		   "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":102623,\"tid\":0,\"args\":{\"name\":"
		   "\"python3\"}},"
		   "{\"ph\":\"X\",\"name\":\"range\",\"pid\":102623,\"tid\":5,\"ts\":\"1736408883676317.0\","
		   "\"dur\":100},"
		   "{\"ph\":\"X\",\"name\":\"no "
		   "layer\",\"pid\":7,\"tid\":5,\"ts\":\"1736408883676318.0\",\"dur\":1},"
		   "{\"ph\":\"X\",\"name\":\"aten::add\",\"cat\":\"cpu_op\",\"pid\":100,\"tid\":5,"
		   "\"ts\":\"1736408883676320.0\",\"dur\":10,\"args\":{}}]");
	assert_int_equal(m.torch.t.len, 1);
	assert_string_equal(nps_model__text(&m, m.torch.name[0]), "aten::add");
	assert_int_equal(m.losses.len, 1);
	assert_int_equal(NPS_AT(&m.losses, struct nps_lost, 0).count, 2);
	nps_model__free(&m);
}

#define NAME_OF(pid, name)                                                                                   \
	"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" pid ",\"tid\":0,\"args\":{\"name\":\"" name "\"}" \
	"}"
#define TASK(pid, name, type, ts, dur)                                                                       \
	"{\"ph\":\"X\",\"name\":\"" name "\",\"pid\":" pid ",\"tid\":3,\"ts\":" ts ",\"dur\":" dur           \
	",\"args\":{\"Task Type\":\"" type "\",\"Task Id\":1}}"
#define CALL(phase, name, ts)                                                                                \
	"{\"ph\":\"" phase "\",\"name\":\"" name "\",\"pid\":100,\"tid\":7,\"ts\":" ts ",\"cat\":\"cpu_"     \
	"op\"}"

/* How often WHAT was lost. */
static uint64_t lost(const struct nps_model *m, const char *what)
{
	for (size_t i = 0; i < m->losses.len; i++)
		if (strstr(NPS_AT(&m->losses, struct nps_lost, i).what, what))
			return NPS_AT(&m->losses, struct nps_lost, i).count;
	return 0;
}

/* Times that were made relative to the first event: it is at 0, and that is a time. */
static void the_first_event_is_at_zero(void **state)
{
	struct nps_model m;

	(void)state;
	import(&m, "[" NAME_OF("5", "Ascend Hardware") "," TASK("5", "MatMul", "AI_CORE", "0.0",
								"5000.0") "," TASK("5", "Add", "AI_CORE",
										   "6000.0", "1000.0") "]");
	assert_int_equal(m.task.t.len, 2);
	assert_int_equal(m.start, 0);
	assert_int_equal(m.end, 7000000);
	nps_model__free(&m);
}

/*
 * npuscope's own traces mark what nobody measured: its 1 ns is no
 * length, as in the session that it came from.
 */
static void bounded_tasks(void **state)
{
#define KERNEL "\"Task Type\":\"AI_CORE\",\"Task Id\":1,"
#define MEASURED "\"time_source\":\"device log\""
#define BOUNDED "\"time_source\":\"host bounds\""
#define LIMITS ",\"start_low_us\":\"1736408883704643.212\",\"end_high_us\":\"1736408883704700.001\""
	static const struct {
		const char *pid, *name, *us, *length, *args;
	} events[] = {
		{ "5", "A", "643.100", "0.500", KERNEL MEASURED },
		{ "5", "B", "643.212", "0.001", KERNEL BOUNDED LIMITS },
		{ "7", "hcom_allReduce__1_0_1", "650.000", "0.001", BOUNDED },
		{ "7", "hcom_allReduce__1_1_1", "660.000", "2.000", MEASURED },
	};
	char text[2048];
	struct nps_model m;
	int len = snprintf(text, sizeof(text),
			   "[" NAME_OF("5", "Ascend Hardware") "," NAME_OF("7", "Communication"));

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(events); i++)
		len += snprintf(text + len, sizeof(text) - len,
				",{\"ph\":\"X\",\"pid\":%s,\"tid\":3,\"name\":\"%s\","
				"\"ts\":\"1736408883704%s\",\"dur\":%s,\"args\":{%s}}",
				events[i].pid, events[i].name, events[i].us, events[i].length,
				events[i].args);
	strcpy(text + len, "]");
	import(&m, text);
	assert_int_equal(m.task.t.len, 2);
	assert_int_equal(m.task.source[0], NPS_TIME_DEVICE_LOG);
	assert_int_equal(m.task.source[1], NPS_TIME_HOST_BOUNDS);
	assert_int_equal(m.task.end[0] - m.task.start[0], 500);
	assert_int_equal(m.task.end[1], m.task.start[1]);
	assert_int_equal(m.bounds.t.len, 1);
	assert_int_equal(m.bounds.task[0], 1);
	assert_true(m.bounds.start_low[0] == 1736408883704643212ULL);
	assert_true(m.bounds.start_high[0] == UINT64_MAX && m.bounds.end_low[0] == UINT64_MAX);
	assert_true(m.bounds.end_high[0] == 1736408883704700001ULL);
	assert_int_equal(m.comm_op.t.len, 2);
	assert_false(nps_model__comm_measured(&m, 0));
	assert_int_equal(m.comm_op.end[0], m.comm_op.start[0]);
	assert_true(nps_model__comm_measured(&m, 1));
	assert_int_equal(m.comm_op.end[1] - m.comm_op.start[1], 2000);
	nps_model__free(&m);
}

/* Joined pieces are lists behind each other; what is none is counted. */
static void lists_behind_each_other(void **state)
{
#define HEAD NAME_OF("5", "Ascend Hardware") ","
	static const struct {
		const char *text;
		size_t tasks;
		uint64_t damaged, behind, cut;
	} made[] = {
		{ "[" HEAD TASK("5", "A", "AI_CORE", "1", "1") "][" TASK("5", "B", "AI_CORE", "3",
									 "1") "] \n ",
		  2, 0, 0, 0 },
		{ "[" HEAD TASK("5", "A", "AI_CORE", "1", "1") "]," TASK("5", "B", "AI_CORE", "3", "1") "]",
		  2, 1, 0, 0 },
		{ "[" HEAD TASK("5", "A", "AI_CORE", "1", "1") "]\n{\"name\":\"late\",\"ph\":\"X\"}", 1, 2, 0,
		  0 },
		{ "[" HEAD TASK("5", "A", "AI_CORE", "1", "1") "]rubbish", 1, 0, 7, 0 },
		{ "[" HEAD TASK("5", "A", "AI_CORE", "1", "1") "][" TASK("5", "B", "AI_CORE", "3", "1"), 2, 0,
		  0, 1 },
		{ "{\"traceEvents\":[" HEAD TASK("5", "A", "AI_CORE", "1",
						 "1") "],\"x\":1}{\"traceEvents\":[" TASK("5", "B", "AI_CORE",
											  "3", "1") "]}",
		  2, 0, 0, 0 },
		{ "{\"traceEvents\":[" HEAD TASK("5", "A", "AI_CORE", "1", "1") "]}{\"other\":1}", 1, 0, 11,
		  0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		struct nps_model m;

		import(&m, made[i].text);
		assert_int_equal(m.task.t.len, made[i].tasks);
		assert_int_equal(lost(&m, "events that are damaged"), made[i].damaged);
		assert_int_equal(lost(&m, "bytes behind"), made[i].behind);
		assert_int_equal(lost(&m, "ends early"), made[i].cut);
		nps_model__free(&m);
	}
}

/* Of a process without a name tasks are known by their type; nothing else is taken for what it may not be. */
static void processes_without_a_name(void **state)
{
	struct nps_model m;

	(void)state;
	import(&m, "[" TASK("1000", "k", "MIX_AIC", "1000000.000",
			    "42399.12") ",{\"ph\":\"X\",\"name\":\"VADD\","
					"\"pid\":\"core0.veccore0\",\"tid\":"
					"\"VECTOR\",\"ts\":10.512,\"dur\":"
					"0.013}]");
	assert_int_equal(m.torch.t.len, 0);
	assert_int_equal(m.compute.t.len, 1);
	assert_string_equal(nps_model__text(&m, m.compute.core[0]), "MIX_AIC");
	assert_int_equal(lost(&m, "processes that no table shows"), 1);
	nps_model__free(&m);
}

/* Begins and ends nest by thread; ends are of what began last. What has no other half is counted. */
static void begins_and_ends(void **state)
{
	struct nps_model m;

	(void)state;
	import(&m,
	       "[" CALL("E", "", "5") "," CALL("B", "outer", "10") "," CALL(
		       "B", "inner",
		       "20") ",{\"ph\":\"B\","
			     "\"name\":\"other\",\"pid\":100,\"tid\":8,\"ts\":25,\"cat\":\"cpu_op\"}," CALL(
				     "E", "", "30") "," CALL("E", "outer",
							     "40") "," CALL("B", "again",
									    "50") "," CALL("E", "",
											   "60") "]");
	assert_int_equal(m.torch.t.len, 3);
	assert_string_equal(nps_model__text(&m, m.torch.name[0]), "outer");
	assert_int_equal(m.torch.start[0], 10000);
	assert_int_equal(m.torch.end[0], 40000);
	assert_string_equal(nps_model__text(&m, m.torch.name[1]), "inner");
	assert_int_equal(m.torch.end[1], 30000);
	assert_string_equal(nps_model__text(&m, m.torch.name[2]), "again");
	assert_int_equal(m.torch.end[2], 60000);
	assert_int_equal(lost(&m, "begin and never end"), 1);
	assert_int_equal(lost(&m, "end before they begin"), 1);
	nps_model__free(&m);
}

/* An end that was never written is a large number: such an event is not part of the capture. */
static void ends_that_cannot_be(void **state)
{
	struct nps_model m;

	(void)state;
	import(&m, "[" NAME_OF("5", "Ascend Hardware") "," TASK("5", "A", "AI_CORE", "1000", "1") "," TASK(
			   "5", "B", "AI_CORE", "2000", "7473372036854375") "," TASK("5", "C", "AI_CORE",
										     "3000", "1") "]");
	assert_int_equal(m.task.t.len, 2);
	assert_int_equal(m.end, 3001000);
	assert_int_equal(lost(&m, "too late for any capture"), 1);
	nps_model__free(&m);
}

/* Among times since 1970 a start of 0 is one that was not recorded. */
static void starts_that_were_not_recorded(void **state)
{
	struct nps_model m;

	(void)state;
	import(&m, "[" NAME_OF("5", "Ascend Hardware") "," TASK("5", "A", "AI_CORE", "0", "1") "," TASK(
			   "5", "B", "AI_CORE", "0",
			   "1736412474000001") "," TASK("5", "C", "AI_CORE", "1736412474000000", "1") "]");
	assert_int_equal(m.task.t.len, 1);
	assert_int_equal(m.start, 1736412474000000000);
	assert_int_equal(lost(&m, "whose start is 0"), 1);
	assert_int_equal(lost(&m, "too late for any capture"), 1);
	nps_model__free(&m);
}

/* The vendor's pids hold the device in their low bits, as their order shows; plain pids hold nothing. */
static void devices_of_processes(void **state)
{
#define ORDER(pid, index)                                                                                    \
	"{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":" pid                                         \
	",\"tid\":0,\"args\":{\"sort_index\":" index "}}"
#define LABEL(pid, label)                                                                                    \
	"{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":" pid ",\"tid\":0,\"args\":{\"labels\":\"" label  \
	"\"}}"
	static const struct {
		const char *text;
		uint32_t device;
	} made[] = {
		{ NAME_OF("102563", "Ascend Hardware") "," ORDER("102563", "5") "," LABEL("102563", "NPU"),
		  3 },
		{ NAME_OF("102563", "Ascend Hardware") "," LABEL("102563", "NPU"), 0 },
		{ NAME_OF("102563", "Ascend Hardware") "," ORDER("102563", "2"), 0 },
		{ NAME_OF("102563", "Ascend Hardware") "," ORDER("102563", "5") "," LABEL("102563", "NPU 7"),
		  7 },
	};

	(void)state; /* 102563 is (100 << 10) | (5 << 5) | 3 */
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		struct nps_model m;
		char text[2048];

		snprintf(text, sizeof(text), "[%s," TASK("102563", "A", "AI_CORE", "1", "1") "]",
			 made[i].text);
		import(&m, text);
		assert_int_equal(m.task.t.len, 1);
		assert_int_equal(m.task.device[0], made[i].device);
		nps_model__free(&m);
	}
}

/*
 * Unknown values are reported, for the collectives beside it count; types of
 * chips that are known count as kernels.
 */
static void types_of_tasks(void **state)
{
	struct nps_model m;

	(void)state;
	import(&m, "[" NAME_OF("5", "Ascend Hardware") "," TASK("5", "A", "AICPU_D", "1", "1") "," TASK(
			   "5", "B", "FUSION", "3",
			   "1") "," TASK("5", "C", "Notify Wait", "5",
					 "1") "," TASK("5", "D", "AI_WHAT", "7",
						       "1") "," TASK("5", "E", "AI_WHAT", "9", "1") "]");
	assert_int_equal(m.task.t.len, 5);
	assert_int_equal(m.compute.t.len, 2);
	assert_int_equal(m.losses.len, 1);
	assert_int_equal(lost(&m, "tasks of type AI_WHAT"), 2);
	nps_model__free(&m);
}

/* Two ids of 64 bits that agree in what fits 32, and in what fits a double, are two. */
static void wide_ids(void **state)
{
#define LINK(tid, id, ts)                                                                                    \
	"{\"ph\":\"X\",\"name\":\"AscendCL@a\",\"pid\":6,\"tid\":" tid ",\"ts\":" ts                         \
	",\"dur\":1,\"args\":{\"connection_id\":" id "}}"
	struct nps_model m;

	(void)state;
	import(&m,
	       "[" NAME_OF("6", "CANN") "," LINK("140187372123904", "9007199254740993", "1") "," LINK(
		       "144585418635008", "9007199254740992", "3") "," LINK("140187372123904", "7", "5") "]");
	assert_int_equal(m.api.t.len, 3);
	assert_int_not_equal(m.api.connection[0], m.api.connection[1]);
	assert_int_not_equal(m.api.connection[0], NPS_NO_ID);
	assert_int_equal(m.api.connection[2], 7);
	assert_int_not_equal(m.api.gtid[0], m.api.gtid[1]);
	assert_int_equal(m.api.gtid[0], m.api.gtid[2]);
	nps_model__free(&m);
}

/* The rank of the trace as it is named from its own directory and from elsewhere; -1: none. */
static int rank_of_trace(void)
{
	struct nps_model near, far;
	char path[128];
	int cwd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rank;

	put("out/trace_view.json", "[]");
	snprintf(path, sizeof(path), "%s/out", folder);
	assert_int_equal(chdir(path), 0);
	import_as(&near, "trace_view.json");
	assert_int_equal(fchdir(cwd), 0);
	close(cwd);
	snprintf(path, sizeof(path), "%s/out/../out/trace_view.json", folder);
	import_as(&far, path);
	assert_int_equal(near.has_rank, far.has_rank);
	assert_int_equal(near.rank, far.rank);
	rank = near.has_rank ? (int)near.rank : -1;
	nps_model__free(&near);
	nps_model__free(&far);
	return rank;
}

static void the_rank_is_that_of_the_only_info(void **state)
{
	(void)state;
	assert_int_equal(rank_of_trace(), -1);
	put("profiler_info_7.json", "{}");
	put("profiler_info_8.json.bak", "{}");
	put("profiler_info_.json", "{}");
	assert_int_equal(rank_of_trace(), 7);
	put("profiler_info_9.json", "{}");
	assert_int_equal(rank_of_trace(), -1);
	put("out/profiler_info_3.json", "{}"); /* nearer */
	assert_int_equal(rank_of_trace(), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(only_named_layers_are_read),
		TEST(bounded_tasks),
		TEST(the_first_event_is_at_zero),
		TEST(lists_behind_each_other),
		TEST(processes_without_a_name),
		TEST(begins_and_ends),
		TEST(ends_that_cannot_be),
		TEST(starts_that_were_not_recorded),
		TEST(devices_of_processes),
		TEST(types_of_tasks),
		TEST(wide_ids),
		TEST(the_rank_is_that_of_the_only_info),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
