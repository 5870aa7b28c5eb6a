/* SPDX-License-Identifier: BSD-2-Clause */
/* The switches of the NPU driver's tracepoints, and where their records have their fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sources/driver/trace_format.h"
#include "sources/driver/trace_switch.h"

static char top[64], proc[96], lists[96];
static struct nps_trace_paths paths = { proc, lists };

#define CHAN "trs_chan/dev0-ts0"
#define CORE "trs_core/ts_inst/dev3-ts0"
#define BOTH (1U << NPS_TRACE_CHAN | 1U << NPS_TRACE_CORE)

static void path_of(const char *device, char *path, size_t size)
{
	snprintf(path, size, "%s/%s/trace_enable", proc, device);
}

static void set(const char *device, const char *state)
{
	char path[256];
	int fd;

	path_of(device, path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, state, 2), 2);
	close(fd);
}

static int state(const char *device)
{
	char path[256], text[4] = "";
	int fd;

	path_of(device, path, sizeof(path));
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), 2);
	close(fd);
	assert_int_equal(text[1], '\n');
	return text[0] - '0';
}

static int set_up(void **s)
{
	static const char *const folders[] = { "",	 "/trs_chan", "/trs_core",	  "/trs_core/ts_inst",
					       "/" CHAN, "/" CORE,    "/trs_chan/summary" };

	(void)s;
	snprintf(top, sizeof(top), "/tmp/nps_switch_XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(proc, sizeof(proc), "%s/proc", top);
	snprintf(lists, sizeof(lists), "%s/run", top);
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		char path[256];

		snprintf(path, sizeof(path), "%s%s", proc, folders[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	set(CHAN, "0\n");
	set(CORE, "0\n");
	return 0;
}

static int tear_down(void **s)
{
	char command[128];

	(void)s;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static void on_while_it_is_held(void **s)
{
	struct nps_trace_switch *sw;

	(void)s;
	assert_true(nps_trace_switch__there(&paths, NPS_TRACE_CHAN));
	assert_int_equal(nps_trace_switch__on(&paths, 1U << NPS_TRACE_CHAN, &sw), 0);
	assert_int_equal(state(CHAN), 1);
	assert_int_equal(state(CORE), 0);
	nps_trace_switch__restore(&paths); /* whose list is held is not touched */
	assert_int_equal(state(CHAN), 1);
	nps_trace_switch__off(sw);
	assert_int_equal(state(CHAN), 0);
}

/* What somebody else switched on is not ours to switch off. */
static void others_stay_on(void **s)
{
	struct nps_trace_switch *sw;

	(void)s;
	set(CHAN, "1\n");
	assert_int_equal(nps_trace_switch__on(&paths, BOTH, &sw), 0);
	assert_int_equal(state(CORE), 1);
	nps_trace_switch__off(sw);
	assert_int_equal(state(CHAN), 1);
	assert_int_equal(state(CORE), 0);
}

/* A process that holds them, until it is killed; it is killed when this returns, if KILLED. */
static pid_t another(bool killed)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct nps_trace_switch *sw;

		if (nps_trace_switch__on(&paths, BOTH, &sw) || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	if (killed) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return pid;
}

static void the_next_start_restores(void **s)
{
	(void)s;
	another(true);
	assert_int_equal(state(CHAN), 1);
	nps_trace_switch__restore(&paths);
	assert_int_equal(state(CHAN), 0);
	assert_int_equal(state(CORE), 0);
	set(CHAN, "1\n"); /* somebody else's, after that: the list is deleted */
	nps_trace_switch__restore(&paths);
	assert_int_equal(state(CHAN), 1);
}

static void two_at_a_time(void **s)
{
	struct nps_trace_switch *sw;
	pid_t pid = another(false);

	(void)s;
	assert_int_equal(nps_trace_switch__on(&paths, BOTH, &sw), 0);
	nps_trace_switch__off(sw);
	assert_int_equal(state(CHAN), 1);
	assert_int_equal(nps_trace_switch__on(&paths, BOTH, &sw), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	nps_trace_switch__restore(&paths); /* the dead one's, but the living one has them too */
	assert_int_equal(state(CHAN), 1);
	nps_trace_switch__off(sw);
	assert_int_equal(state(CHAN), 0);
	assert_int_equal(state(CORE), 0);
}

/* Lists name only switches, and only root's folder is trusted. */
static void lists_lead_nowhere_else(void **s)
{
	struct nps_trace_switch *sw;
	char path[256], victim[128];
	FILE *f;

	(void)s;
	assert_int_equal(mkdir(lists, 0700), 0);
	snprintf(victim, sizeof(victim), "%s/victim", top);
	assert_int_equal(mkdir(victim, 0700), 0);
	snprintf(path, sizeof(path), "%s/trace_enable.1", lists);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "0 ../../victim\n7 dev0-ts0\n0 dev0-ts0/../dev0-ts0\n\n0\n0 dev00-ts0\n-1 dev0-ts0\n0 "
		   "dev9-ts9\n");
	fclose(f);
	snprintf(path, sizeof(path), "%s/trace_enable", victim);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("1\n", f);
	fclose(f);
	set(CHAN, "1\n");
	nps_trace_switch__restore(&paths);
	assert_int_equal(state(CHAN), 1);
	assert_int_equal(state("../victim"), 1);
	set(CHAN, "0\n");
	assert_int_equal(chmod(lists, 0777), 0);
	assert_int_equal(nps_trace_switch__on(&paths, BOTH, &sw), -EPERM);
	assert_null(sw);
	assert_int_equal(state(CHAN), 0);
}

/* A switch that opens, and takes nothing. */
static void jam(const char *device)
{
	char path[256];

	path_of(device, path, sizeof(path));
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void unjam(const char *device, const char *state)
{
	char path[256];

	path_of(device, path, sizeof(path));
	assert_int_equal(rmdir(path), 0);
	set(device, state);
}

static unsigned int count_lists(void)
{
	DIR *d = opendir(lists);
	const struct dirent *entry;
	unsigned int n = 0;

	assert_non_null(d);
	while ((entry = readdir(d)))
		n += !strncmp(entry->d_name, "trace_enable.", 13);
	closedir(d);
	return n;
}

#define NEXT "trs_chan/dev1-ts0"

static void one_that_refuses_costs_no_other(void **s)
{
	struct nps_trace_switch *sw;
	char path[256];

	(void)s;
	snprintf(path, sizeof(path), "%s/" NEXT, proc);
	assert_int_equal(mkdir(path, 0700), 0);
	jam(NEXT);
	assert_int_equal(nps_trace_switch__on(&paths, BOTH, &sw), 0);
	assert_int_equal(state(CHAN), 1);
	assert_int_equal(state(CORE), 1);
	assert_true(nps_trace_switch__refused(sw));
	unjam(NEXT, "1\n"); /* somebody else's */
	nps_trace_switch__off(sw);
	assert_int_equal(state(CHAN), 0);
	assert_int_equal(state(CORE), 0);
	assert_int_equal(state(NEXT), 1);
	assert_int_equal(count_lists(), 0);
}

static void a_system_of_which_all_refuse(void **s)
{
	struct nps_trace_switch *sw;

	(void)s;
	jam(CORE);
	assert_int_equal(nps_trace_switch__on(&paths, BOTH, &sw), 0);
	assert_int_equal(nps_trace_switch__state(sw, NPS_TRACE_CHAN), 0);
	assert_int_equal(nps_trace_switch__state(sw, NPS_TRACE_CORE), -EISDIR);
	assert_false(nps_trace_switch__refused(sw));
	nps_trace_switch__off(sw);
	assert_int_equal(nps_trace_switch__on(&paths, 1U << NPS_TRACE_CORE, &sw), -EISDIR);
	assert_null(sw);
	assert_int_equal(count_lists(), 0);
}

static void what_stays_on_is_tried_again(void **s)
{
	(void)s;
	another(true);
	jam(CORE);
	nps_trace_switch__restore(&paths);
	assert_int_equal(state(CHAN), 0);
	set(CHAN, "1\n"); /* somebody else's: this one was done with */
	unjam(CORE, "1\n");
	nps_trace_switch__restore(&paths);
	assert_int_equal(state(CHAN), 1);
	assert_int_equal(state(CORE), 0);
	assert_int_equal(count_lists(), 0);
}

/* As the capture itself does, and another one of the same process does not forget it. */
static void what_a_capture_could_not_switch_off(void **s)
{
	struct nps_trace_switch *sw;

	(void)s;
	assert_int_equal(nps_trace_switch__on(&paths, BOTH, &sw), 0);
	jam(CORE);
	nps_trace_switch__off(sw);
	assert_int_equal(count_lists(), 1);
	assert_int_equal(nps_trace_switch__on(&paths, 1U << NPS_TRACE_CHAN, &sw), 0);
	nps_trace_switch__off(sw);
	assert_int_equal(state(CHAN), 0);
	unjam(CORE, "1\n");
	nps_trace_switch__restore(&paths);
	assert_int_equal(state(CORE), 0);
	assert_int_equal(count_lists(), 0);
}

static void a_removed_device_is_forgotten(void **s)
{
	char path[256];

	(void)s;
	another(true);
	path_of(CORE, path, sizeof(path));
	assert_int_equal(unlink(path), 0);
	nps_trace_switch__restore(&paths);
	assert_int_equal(count_lists(), 0);
}

/* As tracefs prints it for the mock driver's. */
static const char sqe_format[] = "name: sqe\nID: 1700\nformat:\n"
				 "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
				 "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
				 "\tfield:char what[16];\toffset:8;\tsize:16;\tsigned:0;\n"
				 "\tfield:u32 devid;\toffset:24;\tsize:4;\tsigned:0;\n"
				 "\tfield:u32 tsid;\toffset:28;\tsize:4;\tsigned:0;\n"
				 "\tfield:u32 sqid;\toffset:32;\tsize:4;\tsigned:0;\n"
				 "\tfield:u32 type;\toffset:60;\tsize:4;\tsigned:0;\n"
				 "\tfield:u32 task_id;\toffset:64;\tsize:%d;\tsigned:0;\n"
				 "\tfield:u32 stream_id;\toffset:%u;\tsize:4;\tsigned:0;\n"
				 "\nprint fmt: \"%%s devid=%%u\", REC->what, REC->devid\n";

static bool parse(const char *text, enum nps_trace_system system, struct nps_trace_layout *layout)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	bool known;

	assert_non_null(f);
	known = nps_trace_format__parse(f, system, layout);
	fclose(f);
	return known;
}

static void fields_are_where_tracefs_has_them(void **s)
{
	struct nps_trace_layout layout;
	char text[1024];

	(void)s;
	snprintf(text, sizeof(text), sqe_format, 4, 68U);
	assert_true(parse(text, NPS_TRACE_CHAN, &layout));
	assert_int_equal(layout.device, 24);
	assert_int_equal(layout.tsid, 28);
	assert_int_equal(layout.queue, 32);
	assert_int_equal(layout.type, 60);
	assert_int_equal(layout.task, 64);
	assert_int_equal(layout.stream, 68);
	assert_false(parse(text, NPS_TRACE_CORE, &layout)); /* logic_cqid */
	snprintf(text, sizeof(text), sqe_format, 2, 68U);
	assert_false(parse(text, NPS_TRACE_CHAN, &layout));
	snprintf(text, sizeof(text), sqe_format, 4, 1U << 20);
	assert_false(parse(text, NPS_TRACE_CHAN, &layout));
	assert_false(parse("field:;\nfield\n\n", NPS_TRACE_CHAN, &layout));
}

static const char cqe_format[] = "\tfield:char what[16];\toffset:8;\tsize:16;\tsigned:0;\n"
				 "\tfield:u32 devid;\toffset:24;\tsize:4;\tsigned:0;\n"
				 "\tfield:u32 tsid;\toffset:28;\tsize:4;\tsigned:0;\n"
				 "\tfield:u32 logic_cqid;\toffset:32;\tsize:4;\tsigned:0;\n"
				 "\tfield:u32 task_id;\toffset:44;\tsize:4;\tsigned:0;\n"
				 "\tfield:u32 stream_id;\toffset:48;\tsize:4;\tsigned:0;\n"
				 "\tfield:u32 errcode;\toffset:68;\tsize:4;\tsigned:0;\n"
				 "\tfield:u32 errtype;\toffset:72;\tsize:4;\tsigned:0;\n"
				 "\tfield:u32 %s;\toffset:76;\tsize:%d;\tsigned:0;\n";

static void errors_are_reported_or_not(void **s)
{
	struct nps_trace_layout layout;
	char text[1024];

	(void)s;
	snprintf(text, sizeof(text), cqe_format, "drop_flag", 4);
	assert_true(parse(text, NPS_TRACE_CORE, &layout));
	assert_int_equal(layout.stream, 48);
	assert_int_equal(layout.error, 68);
	assert_int_equal(layout.error_type, 72);
	assert_int_equal(layout.dropped, 76);
	snprintf(text, sizeof(text), cqe_format, "drop", 4);
	assert_true(parse(text, NPS_TRACE_CORE, &layout));
	assert_int_equal(layout.dropped, 0);
	snprintf(text, sizeof(text), cqe_format, "drop_flag", 1);
	assert_true(parse(text, NPS_TRACE_CORE, &layout));
	assert_int_equal(layout.dropped, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(on_while_it_is_held, set_up, tear_down),
		cmocka_unit_test_setup_teardown(others_stay_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_next_start_restores, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_at_a_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lists_lead_nowhere_else, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_refuses_costs_no_other, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_system_of_which_all_refuse, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_stays_on_is_tried_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_capture_could_not_switch_off, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_removed_device_is_forgotten, set_up, tear_down),
		cmocka_unit_test(fields_are_where_tracefs_has_them),
		cmocka_unit_test(errors_are_reported_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
