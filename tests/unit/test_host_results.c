/* SPDX-License-Identifier: BSD-2-Clause */
/* What is written of the host's scheduling: ftrace_data.db, the tables, findings, wakers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "derive/host.h"
#include "event.h"
#include "export/counter_csv.h"
#include "export/export.h"
#include "findings/findings.h"
#include "gen_session.h"
#include "import/session/wakers.h"

#define PID 100U
#define T0 1700000000000000000ULL

#define ADD(table)                                                                                           \
	size_t row = 0;                                                                                      \
	assert_int_equal(nps_table__add(&m->table.t, &row), 0)

static void add_run(struct nps_model *m, uint64_t start, uint64_t end, uint64_t left, uint64_t woken,
		    uint32_t state, const char *comm)
{
	ADD(run);
	m->run.start[row] = T0 + start;
	m->run.end[row] = T0 + end;
	m->run.left[row] = left ? T0 + left : 0;
	m->run.woken[row] = woken ? T0 + woken : 0;
	m->run.tid[row] = PID;
	m->run.cpu[row] = 3;
	m->run.prio[row] = 120;
	m->run.state[row] = state;
	m->run.comm[row] = nps_strings__addz(m->strings, comm);
	m->run.next_comm[row] = m->run.waker_comm[row] = NPS_NONE;
}

static void add_call(struct nps_model *m, const char *name, uint64_t start, uint64_t end)
{
	ADD(osrt);
	m->osrt.name[row] = nps_strings__addz(m->strings, name);
	m->osrt.gtid[row] = (uint64_t)PID << 32 | PID;
	m->osrt.start[row] = T0 + start;
	m->osrt.end[row] = T0 + end;
}

static void add_irq(struct nps_model *m, uint64_t start, uint64_t end, uint8_t what, const char *name)
{
	ADD(irq);
	m->irq.start[row] = T0 + start;
	m->irq.end[row] = T0 + end;
	m->irq.tid[row] = PID;
	m->irq.cpu[row] = 3;
	m->irq.what[row] = what;
	m->irq.name[row] = nps_strings__addz(m->strings, name);
	m->irq.comm[row] = NPS_NONE;
}

static void open_model(struct nps_model *m)
{
	assert_int_equal(nps_model__init(m, AT_FDCWD, NULL), 0);
	m->pid = PID;
	m->process = nps_strings__addz(m->strings, "job");
	m->start = T0;
	m->end = T0 + 1000;
}

/* --- ftrace_data.db ------------------------------------------------------------------------------------- */

static int64_t number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *s = NULL;
	int64_t value;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	value = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return value;
}

static sqlite3 *export_db(const struct nps_model *m, const char *dir)
{
	struct nps_export ex = { .model = m, .formats = NPS_FORMAT_DB };
	char path[600];
	sqlite3 *db = NULL;

	assert_int_equal(nps_export__ftrace_db(&ex, -1, dir), 0);
	snprintf(path, sizeof(path), "%s/ftrace_data.db", dir);
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	return db;
}

static void states_and_switches(void **state)
{
	struct nps_model model, *m = &model;
	char *dir = gen_temp_dir();
	sqlite3 *db;

	(void)state;
	open_model(m);
	add_run(m, 100, 200, 0, 0, 1, "a\"b:\xff{");
	add_run(m, 300, 400, 200, 280, 0, "a\"b:\xff{");
	add_run(m, 450, 500, 400, 0, 2, "other");
	add_run(m, 900, 900, 500, 900, NPS_RUN_OPEN, "other");
	m->run.waker[1] = 77;
	add_irq(m, 110, 120, NPS_IRQ_HARD, "eth\"0");
	add_irq(m, 130, 150, NPS_IRQ_SOFT, "NET_RX");
	db = export_db(m, dir);
	assert_int_equal(number(db, "SELECT count(*) FROM process"), 2);
	assert_int_equal(
		number(db, "SELECT count(*) FROM thread WHERE pid = 'CPU Scheduling' AND tid = 'CPU 3'"), 1);
	assert_int_equal(number(db, "SELECT count(*) FROM thread WHERE pid = 'Process Scheduling'"), 2);
	assert_int_equal(number(db, "SELECT count(*) FROM thread WHERE tid = 'a\"b:\xef\xbf\xbd{:100'"), 1);
	assert_int_equal(number(db, "SELECT sum(duration) FROM slice WHERE name = 'Running'"), 250);
	assert_int_equal(number(db, "SELECT sum(duration) FROM slice WHERE name = 'Sleeping'"), 80 + 400);
	assert_int_equal(number(db, "SELECT sum(duration) FROM slice WHERE name = 'Sleeping' AND "
				    "json_extract(args, '$.state') = 'D'"),
			 400);
	assert_int_equal(number(db, "SELECT sum(duration) FROM slice WHERE name = 'Runnable'"), 20 + 50);
	assert_int_equal(
		number(db, "SELECT count(*) FROM slice WHERE json_extract(args, '$.waker') = 'unknown:77'"),
		1);
	assert_int_equal(
		number(db, "SELECT count(*) FROM slice WHERE name = 'sched_switch' AND duration = 0"), 3);
	assert_int_equal(
		number(db, "SELECT count(*) FROM slice WHERE json_extract(args, '$.prev_state') = 'R'"), 1);
	assert_int_equal(
		number(db, "SELECT count(*) FROM slice WHERE name = 'irq' AND json_extract(args, '$.name') = "
			   "'eth\"0' AND json_extract(args, '$.task') = 'job:100'"),
		1);
	assert_int_equal(number(db, "SELECT duration FROM slice WHERE name = 'softirq'"), 20);
	/* Insight's server gives up at an argument that is no string */
	assert_int_equal(
		number(db, "SELECT count(*) FROM slice, json_each(slice.args) a WHERE a.type != 'text'"), 0);
	assert_int_equal(number(db, "SELECT count(*) FROM slice WHERE json_extract(args, '$.cpu') = '3'"), 7);
	assert_int_equal(
		number(db, "SELECT count(*) FROM slice WHERE json_extract(args, '$.prev_pid') = '100'"), 3);
	/* one for each lane, without a CPU, for the viewer's count of switches */
	assert_int_equal(
		number(db,
		       "SELECT count(*) FROM slice WHERE name = 'Running' AND args IS NULL AND duration = 0"),
		2);
	sqlite3_close(db);
	nps_model__free(m);
	gen_remove(dir);
}

static void nothing_is_no_file(void **state)
{
	struct nps_export ex = { .formats = NPS_FORMAT_DB };
	struct nps_model m;
	char *dir = gen_temp_dir(), path[600];

	(void)state;
	open_model(&m);
	ex.model = &m;
	assert_int_equal(nps_export__ftrace_db(&ex, -1, dir), 0);
	snprintf(path, sizeof(path), "%s/ftrace_data.db", dir);
	assert_int_not_equal(access(path, F_OK), 0);
	nps_model__free(&m);
	gen_remove(dir);
}

/* --- tables and findings -------------------------------------------------------------------------------- */

static void table_of_parts(void **state)
{
	struct nps_model model, *m = &model;
	char *dir = gen_temp_dir(), path[600], text[2048] = "";
	struct nps_export ex = { .model = m, .formats = NPS_FORMAT_TEXT };
	int dirfd = open(dir, O_RDONLY | O_DIRECTORY);
	FILE *file;

	(void)state;
	open_model(m);
	add_run(m, 100, 300, 0, 0, 1, "job,1");
	add_run(m, 400, 1000, 300, 390, 1, "job,1");
	add_call(m, "futex", 290, 402);
	assert_int_equal(nps_derive__host(m), 0);
	assert_int_equal(nps_export__host_csv(&ex, dirfd), 0);
	snprintf(path, sizeof(path), "%s/npuscope_host_breakdown.csv", dir);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	assert_non_null(strstr(
		text, "\n,100,100,\"job,1\",1700000000000000.000\t,1.000,0.788,0.000,0.000,0.012,0.000,0.090,"
		      "0.010,0.000,0.000,N/A,0.000,0.100\n"));
	close(dirfd);
	nps_model__free(m);
	gen_remove(dir);
}

/* A job that slept all the time: the tables that were requested are there, others are not. */
static void tables_without_rows(void **state)
{
	static const char *const files[] = { "npuscope_host_breakdown.csv", "npuscope_threads.csv",
					     "npuscope_locks.csv", "flamegraph_offcpu.svg" };

	(void)state;
	for (int requested = 0; requested < 2; requested++) {
		struct nps_model model, *m = &model;
		struct nps_export ex = { .model = m, .formats = NPS_FORMAT_TEXT };
		char *dir = gen_temp_dir();
		int dirfd = open(dir, O_RDONLY | O_DIRECTORY);

		open_model(m);
		m->requested = requested ? NPS_REQUESTED_OS | NPS_REQUESTED_OFFCPU : 0;
		assert_int_equal(nps_derive__host(m), 0);
		assert_int_equal(nps_derive__threads(m), 0);
		assert_int_equal(nps_export__host_csv(&ex, dirfd), 0);
		assert_int_equal(nps_counter__os(&ex, dirfd), 0);
		assert_int_equal(nps_export__stacks(&ex, dirfd), 0);
		for (size_t i = 0; i < NPS_ARRAY_SIZE(files); i++)
			assert_int_equal(faccessat(dirfd, files[i], F_OK, 0), requested ? 0 : -1);
		assert_int_equal(faccessat(dirfd, "flamegraph_oncpu.svg", F_OK, 0), -1);
		assert_int_equal(faccessat(dirfd, "npuscope_offcpu.folded", F_OK, 0), -1);
		close(dirfd);
		nps_model__free(m);
		gen_remove(dir);
	}
}

static const cJSON *finding(const cJSON *document, const char *id)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(document, "findings"))
	{
		if (!strcmp(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "id")), id))
			return item;
	}
	return NULL;
}

/* A job whose steps wait for a lock has that finding; not if it is the device that it waits for. */
static void what_holds_the_steps_up(void **state)
{
	(void)state;
	for (int waits_for_device = 0; waits_for_device < 2; waits_for_device++) {
		struct nps_model model, *m = &model;
		cJSON *document;
		size_t task = 0;

		open_model(m);
		add_run(m, 1, 100, 0, 0, 1, "job");
		add_run(m, 900, 1000, 100, 890, 1, "job");
		add_call(m, "futex", 90, 902);
		if (waits_for_device) {
			ADD(api);
			m->api.start[row] = T0 + 80;
			m->api.end[row] = T0 + 910;
			m->api.gtid[row] = (uint64_t)PID << 32 | PID;
			m->api.name[row] = nps_strings__addz(m->strings, "aclrtSynchronizeDevice");
		}
		assert_int_equal(nps_table__add(&m->task.t, &task), 0);
		m->task.connection[task] = NPS_NO_ID;
		m->task.step[task] = NPS_NONE;
		m->task.name[task] = m->process;
		assert_int_equal(nps_derive__host(m), 0);
		document = nps_findings__make(m);
		assert_non_null(document);
		assert_int_equal(finding(document, "host_lock_wait") != NULL, !waits_for_device);
		assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(document, "host_time")),
				 1);
		cJSON_Delete(document);
		nps_model__free(m);
	}
}

/* --- wakers --------------------------------------------------------------------------------------------- */

static void who_cannot_have_woken(void **state)
{
	static const struct {
		const char *call;
		uint32_t waker;
		bool kept;
	} cases[] = { { "clock_nanosleep", PID, false },
		      { "clock_nanosleep", 9, false },
		      { "futex", PID, true },
		      { "futex", 9, false },
		      { "read", 9, true } };

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(cases); i++) {
		struct nps_model model, *m = &model;

		open_model(m);
		add_run(m, 10, 100, 0, 0, 1, "job");
		add_run(m, 200, 300, 100, 190, 1, "job");
		add_run(m, 400, 500, 300, 390, 1, "job"); /* the call is over */
		m->run.waker[1] = m->run.waker[2] = cases[i].waker;
		add_call(m, cases[i].call, 90, 210);
		assert_int_equal(nps_wakers__check(m), 0);
		assert_int_equal(m->run.waker[1], cases[i].kept ? cases[i].waker : 0);
		assert_int_equal(m->run.waker[2], cases[i].waker);
		nps_model__free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_and_switches),	 cmocka_unit_test(nothing_is_no_file),
		cmocka_unit_test(table_of_parts),	 cmocka_unit_test(what_holds_the_steps_up),
		cmocka_unit_test(who_cannot_have_woken), cmocka_unit_test(tables_without_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
