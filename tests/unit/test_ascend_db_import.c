/* SPDX-License-Identifier: BSD-2-Clause */
/* What is read of databases that were made by hand: times, texts, damage, what is no database. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db_folder.h"
#include "export/export.h"
#include "import/import.h"

/* Makes a database with SQL. */
static void make(const char *path, const char *sql)
{
	sqlite3 *db = NULL;
	char *error = NULL;

	unlink(path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &error))
		fail_msg("%s", error);
	sqlite3_close(db);
}

static uint64_t lost(const struct nps_model *model, const char *what)
{
	for (size_t i = 0; i < model->losses.len; i++) {
		const struct nps_lost *loss = &NPS_AT(&model->losses, struct nps_lost, i);

		if (strstr(loss->what, what))
			return loss->count;
	}
	return 0;
}

#define SMALL                                                                                                \
	"CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY,value TEXT);"                                       \
	"INSERT INTO STRING_IDS "                                                                            \
	"VALUES(0,'KERNEL_AIVEC'),(1,'Add'),(2,'AI_VECTOR_CORE'),(3,'N/A'),(4,'launch'),(5,'FFTS_PLUS');"
#define TASK                                                                                                 \
	"CREATE TABLE TASK (startNs,endNs,deviceId,connectionId,globalTaskId,globalPid,taskType,contextId,"  \
	"streamId,taskId,modelId);"
#define COMPUTE "CREATE TABLE COMPUTE_TASK_INFO (name,globalTaskId,blockNum,mixBlockNum,taskType,opType);"

/*
 * What is only bounded stays unmeasured, of collectives, too; the one
 * before deviceId lies where its task ran.
 */
static void collectives_of_bounded_tasks(void **state)
{
	const char *path = db_folder_path("msprof_5.db");
	struct nps_model model;

	(void)state;
	make(path,
	     "CREATE TABLE STRING_IDS (id,value); INSERT INTO STRING_IDS VALUES (0,'a');"
	     "CREATE TABLE TASK (startNs,endNs,deviceId,connectionId,globalTaskId,globalPid,taskType,"
	     "contextId,streamId,taskId,modelId);"
	     "INSERT INTO TASK VALUES "
	     "(5,5,3,0,1,0,0,0,0,0,0),(6,6,3,0,2,0,0,0,0,0,0),(7,8,4,0,3,0,0,0,0,0,0);"
	     "CREATE TABLE COMMUNICATION_OP (opName,startNs,endNs,connectionId,groupName,opId,relay,retry,"
	     "dataType,algType,count,opType);"
	     "INSERT INTO COMMUNICATION_OP VALUES (0,5,6,0,0,10,0,0,0,0,0,0),(0,7,8,0,0,11,0,0,0,0,0,0),"
	     "(0,9,9,0,0,12,0,0,0,0,0,0);"
	     "CREATE TABLE COMMUNICATION_TASK_INFO (name,globalTaskId,opId);"
	     "INSERT INTO COMMUNICATION_TASK_INFO VALUES (0,1,10),(0,2,10),(0,3,11);"
	     "CREATE TABLE NPUSCOPE_TASK_TIME "
	     "(globalTaskId,source,startLowNs,startHighNs,endLowNs,endHighNs);"
	     "INSERT INTO NPUSCOPE_TASK_TIME VALUES (1,'host bounds',5,6,7,8),(2,'host bounds',5,6,7,8),"
	     "(3,'device log',NULL,NULL,NULL,NULL)");
	db_folder_import(&model, path);
	assert_int_equal(model.comm_op.t.len, 3);
	for (uint32_t i = 0; i < 3; i++) {
		static const uint32_t tasks[] = { 2, 1, 0 }, measured[] = { 0, 1, 0 }, device[] = { 3, 4, 0 };

		assert_int_equal(model.comm_op.tasks[i], tasks[i]);
		assert_int_equal(model.comm_op.measured[i], measured[i]);
		assert_int_equal(model.comm_op.device[i], device[i]);
	}
	nps_model__free(&model);
}

/* Their names are held against each other. */
static void endless_metadata(void **state)
{
	const char *path = db_folder_path("msprof_6.db");
	struct nps_model model;

	(void)state;
	make(path,
	     "CREATE TABLE META_DATA (name TEXT,value TEXT); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
	     "SELECT i+1 FROM n WHERE i<5000) INSERT INTO META_DATA SELECT 'k'||i,i FROM n");
	db_folder_import(&model, path);
	assert_int_equal(model.meta.t.len, 1024);
	assert_int_equal(lost(&model, "META_DATA, which has too many rows"), 1);
	nps_model__free(&model);
}

/* Whether they hold something is a question about all rows. */
static void endless_columns(void **state)
{
	const char *path = db_folder_path("msprof_7.db");
	struct nps_model model;
	char sql[8192] = "CREATE TABLE NPU_MEM (type INTEGER", *end = sql + strlen(sql);

	(void)state;
	for (int i = 0; i < 100; i++)
		end += sprintf(end, ",c%d INTEGER", i);
	strcpy(end, "); INSERT INTO NPU_MEM (type,c0,c5) VALUES (1,2,3)");
	make(path, sql);
	db_folder_import(&model, path);
	assert_int_equal(lost(&model, "column c0 of table NPU_MEM"), 1);
	assert_int_equal(lost(&model, "column c1 of table NPU_MEM"), 0);
	assert_int_equal(lost(&model, "column c5 of table NPU_MEM"), 1);
	assert_int_equal(lost(&model, "further columns of table NPU_MEM"), 68);
	nps_model__free(&model);
}

/* Whole numbers of more digits than a double holds, in META_DATA and in the files above. */
static void numbers_keep_their_digits(void **state)
{
	static const char info[] = "{\"end_info\":{\"collectionTimeEnd\":1736407068203015510}}";
	const char *path = db_folder_path("in/ascend_pytorch_profiler_0.db");
	struct nps_model model;
	char *text;

	(void)state;
	make(path, "CREATE TABLE META_DATA (name TEXT,value TEXT); INSERT INTO META_DATA VALUES "
		   "('id','[1736407068203015511]'),('number','1736407068203015512'),('release','3.1.0')");
	db_folder_write(db_folder_path("profiler_info_0.json"), info, strlen(info));
	db_folder_import(&model, path);
	text = cJSON_PrintUnformatted(model.info);
	assert_string_equal(text, info);
	cJSON_free(text);
	text = cJSON_PrintUnformatted(model.metadata);
	assert_string_equal(
		text, "{\"id\":[1736407068203015511],\"number\":1736407068203015512,\"release\":\"3.1.0\"}");
	cJSON_free(text);
	nps_model__free(&model);
	unlink(db_folder_path("profiler_info_0.json"));
}

/* What damage leaves of a table that follows from others is not taken for the whole. */
static void damaged_overlap(void **state)
{
	const char *path = db_folder_path("msprof_7.db");
	struct nps_model model;
	char sql[1024];

	(void)state;
	for (int damaged = 0; damaged < 2; damaged++) {
		snprintf(sql, sizeof(sql),
			 SMALL TASK "INSERT INTO TASK VALUES(100,110,0,8,80,1,0,0,0,0,0);"
				    "CREATE TABLE OVERLAP_ANALYSIS (deviceId,startNs,endNs,type);"
				    "INSERT INTO OVERLAP_ANALYSIS VALUES(0,100,110,0),(0,%s,120,3)",
			 damaged ? "NULL" : "110");
		make(path, sql);
		db_folder_import(&model, path);
		assert_int_equal(model.overlap.t.len, damaged ? 0 : 2);
		assert_int_equal(model.overlapped, !damaged);
		assert_int_equal(model.losses.len, damaged);
		nps_model__free(&model);
		unlink(path);
	}
}

/* Kernels stay kernels in a trace, also without the texts that name the core on which they ran. */
static void kernels_without_texts(void **state)
{
	const char *path = db_folder_path("msprof_8.db");
	struct nps_model model;

	(void)state;
	make(path, TASK COMPUTE "INSERT INTO TASK VALUES(100,110,0,8,80,1,0,4294967295,0,0,0);"
				"INSERT INTO COMPUTE_TASK_INFO VALUES(1,80,1,1,2,1)");
	db_folder_import(&model, path);
	assert_int_equal(model.task.class[0], NPS_CLASS_COMPUTE);
	assert_string_equal(nps_model__text(&model, model.task.hw_type[0]), "AI_CORE");
	nps_model__free(&model);
	unlink(path);
}

static void unsorted_rows(void **state)
{
	const char *path = db_folder_path("msprof_1.db");
	struct nps_model model;

	(void)state;
	make(path, SMALL TASK COMPUTE
	     "INSERT INTO TASK VALUES(300,310,0,7,70,1,0,0,0,0,0),(100,110,0,8,80,1,0,0,0,0,0),"
	     "(200,210,0,9,90,1,5,0,0,0,0);"
	     "INSERT INTO COMPUTE_TASK_INFO VALUES(1,70,1,1,2,1),(1,80,2,1,2,1);"
	     "CREATE TABLE CANN_API (startNs,endNs,type,globalTid,connectionId,name);"
	     "INSERT INTO CANN_API VALUES(50,60,10000,1,8,4),(20,30,20000,1,9,4);");
	db_folder_import(&model, path);
	assert_int_equal(model.layout, NPS_LAYOUT_MSPROF);
	assert_int_equal(model.task.t.len, 3);
	assert_int_equal(model.task.start[0], 100);
	assert_int_equal(model.task.start[2], 300);
	assert_int_equal(model.compute.task[0], 0);
	assert_int_equal(model.compute.blocks[0], 2);
	assert_int_equal(model.compute.task[1], 2);
	assert_int_equal(model.task.class[0], NPS_CLASS_COMPUTE);
	assert_string_equal(nps_model__text(&model, model.task.name[0]), "Add");
	assert_string_equal(nps_model__text(&model, model.task.hw_type[0]), "AI_CORE");
	assert_int_equal(model.task.class[1], NPS_CLASS_PARENT);
	assert_int_equal(model.api.start[0], 20);
	assert_int_equal(model.api.item[0], NPS_NONE); /* no node row */
	assert_string_equal(nps_model__text(&model, model.api.item[1]), "Add");
	assert_int_equal(model.start, 20);
	assert_int_equal(model.end, 310);
	nps_model__free(&model);
}

/*
 * A task that never ended has the largest number for an end: it is left
 * out and counted, and so are its details.
 */
static void tasks_that_never_ended(void **state)
{
	const char *path = db_folder_path("msprof_1.db");
	struct nps_model model;

	(void)state;
	make(path, SMALL TASK COMPUTE
	     "INSERT INTO TASK "
	     "VALUES(100,110,0,7,70,1,0,0,0,0,0),(200,9223372036854775807,0,8,80,1,0,0,0,0,0),"
	     "(300,310,0,9,90,1,0,0,0,0,0);"
	     "INSERT INTO COMPUTE_TASK_INFO VALUES(1,70,1,1,2,1),(1,80,2,1,2,1),(1,90,2,1,2,1);");
	db_folder_import(&model, path);
	assert_int_equal(model.task.t.len, 2);
	assert_int_equal(model.compute.t.len, 2);
	assert_int_equal(model.end, 310);
	assert_int_equal(NPS_AT(&model.losses, struct nps_lost, 0).count, 1);
	assert_non_null(strstr(NPS_AT(&model.losses, struct nps_lost, 0).what, "TASK that end too late"));
	nps_model__free(&model);
}

#define UNIX_S "1736412474" /* of a capture; nine zeros behind it are ns */

/*
 * A start of 0 is a time where the table counts from the start of the capture, and none where it
 * counts from 1970: of a row that ends, of one that is a moment, of a table that has no other,
 * also if it is read before those that have.
 */
static void starts_of_zero(void **state)
{
	static const struct {
		const char *rows, *calls_of;
		size_t tasks;
		uint64_t calls, lost, lost_calls, start, end;
	} made[] = {
		{ "(0,10,0,7,70,1,0,0,0,0,0),(300,310,0,9,90,1,0,0,0,0,0)", "(0,5)", 2, 1, 0, 0, 0, 310 },
		{ "(0,0,0,7,70,1,0,0,0,0,0)", "(0,5)", 1, 1, 0, 0, 0, 5 },
		{ "(0," UNIX_S "000000310,0,7,70,1,0,0,0,0,0),(" UNIX_S "000000300," UNIX_S
		  "000000310,0,9,90,1,0,0,0,0,0)",
		  "(0,5)", 1, 0, 1, 1, 1736412474000000300, 1736412474000000310 },
		{ "(0,10,0,7,70,1,0,0,0,0,0),(0,0,0,8,80,1,0,0,0,0,0),(" UNIX_S "000000300," UNIX_S
		  "000000310,0,9,90,1,0,0,0,0,0)",
		  "(0," UNIX_S "000000400),(" UNIX_S "000000310," UNIX_S "000000320)", 1, 1, 2, 1,
		  1736412474000000300, 1736412474000000320 },
		{ "(300,310,0,9,90,1,0,0,0,0,0)", "(0," UNIX_S "000000400),(0,20)", 1, 1, 0, 1, 0, 310 },
		{ "(0,0,0,7,70,1,0,0,0,0,0),(0,0,0,8,80,1,0,0,0,0,0)",
		  "(" UNIX_S "000000310," UNIX_S "000000320)", 0, 1, 2, 0, 1736412474000000310,
		  1736412474000000320 },
	};
	const char *path = db_folder_path("msprof_1.db");
	struct nps_model model;
	char sql[2048];

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(made); i++) {
		snprintf(sql, sizeof(sql),
			 SMALL TASK
			 "INSERT INTO TASK VALUES%s;CREATE TABLE CANN_API "
			 "(startNs,endNs,type,globalTid,connectionId,name);"
			 "INSERT INTO CANN_API SELECT column1,column2,20000,1,8,4 FROM (VALUES%s);",
			 made[i].rows, made[i].calls_of);
		make(path, sql);
		db_folder_import(&model, path);
		assert_int_equal(model.task.t.len, made[i].tasks);
		assert_int_equal(model.api.t.len, made[i].calls);
		assert_int_equal(lost(&model, "of table TASK"), made[i].lost);
		assert_int_equal(lost(&model, "of table CANN_API"), made[i].lost_calls);
		assert_int_equal(model.start, made[i].start);
		assert_int_equal(model.end, made[i].end);
		nps_model__free(&model);
	}
}

/*
 * torch_npu of January 2025 wrote the types where the shapes belong. The content
 * of the columns decides, not a version.
 */
static void shapes_in_the_column_of_types(void **state)
{
	static const char *const columns[] = { "inputDtypes,inputShapes", "inputShapes,inputDtypes" };
	const char *path = db_folder_path("ascend_pytorch_profiler_0.db");
	char sql[1024];

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(columns); i++) {
		struct nps_model model;

		/* The first two rows decide nothing. */
		snprintf(sql, sizeof(sql),
			 SMALL
			 "INSERT INTO STRING_IDS "
			 "VALUES(20,'aten::mm'),(21,'float;\r\nc10::BFloat16;\r\nScalar'),"
			 "(22,'2,3;\r\n3,4;\r\n'),(23,';\r\n'),(24,'None'),(25,';');"
			 "CREATE TABLE PYTORCH_API (startNs TEXT,endNs TEXT,globalTid,connectionId,name,"
			 "sequenceNumber,fwdThreadId,%s,callchainId,type);"
			 "INSERT INTO PYTORCH_API "
			 "VALUES('100','110',1,NULL,20,NULL,NULL,NULL,NULL,NULL,50001),"
			 "('120','130',1,NULL,20,NULL,NULL,23,25,NULL,50001),"
			 "('140','150',1,NULL,20,NULL,NULL,21,22,NULL,50001),"
			 "('160','170',1,NULL,20,NULL,NULL,24,23,NULL,50001);",
			 columns[i]);
		unlink(path);
		make(path, sql);
		db_folder_import(&model, path);
		assert_int_equal(model.torch.t.len, 4);
		assert_int_equal(model.torch.input_shapes[0], NPS_NONE);
		assert_string_equal(nps_model__text(&model, model.torch.input_shapes[2]), "2,3;\r\n3,4;\r\n");
		assert_string_equal(nps_model__text(&model, model.torch.input_types[2]),
				    "float;\r\nc10::BFloat16;\r\nScalar");
		assert_string_equal(nps_model__text(&model, model.torch.input_types[3]), "None");
		nps_model__free(&model);
	}
}

static void hostile_cells(void **state)
{
	const char *path = db_folder_path("msprof_1.db");
	struct nps_model model;

	(void)state;
	make(path, SMALL TASK COMPUTE
	     "INSERT INTO STRING_IDS "
	     "VALUES(-4,'negative'),(8589934592,'large'),(4294967295,''),(6,x'61006200ff');"
	     "INSERT INTO TASK VALUES(100,50,0,1,0,1,0,0,0,0,0),(-1,5,0,1,1,1,0,0,0,0,0),"
	     "('soon',5,0,1,2,1,0,0,0,0,0),(NULL,5,0,1,3,1,0,0,0,0,0),"
	     "(200,300,0,1,99999999999,1,777,0,0,'x',0),(9e30,1,0,0,0,0,0,0,0,0,0),"
	     "('250',260,x'00',1,5,1,6,0,0,0,0),(400,1e300,0,1,6,1,0,0,0,0,0);"
	     "INSERT INTO COMPUTE_TASK_INFO VALUES(1,0,1,1,2,1),(1,4444,1,1,2,1),(1,'none',1,1,2,1),"
	     "('Add',5,-7,1.5,9e99,x'00');");
	db_folder_import(&model, path);
	assert_int_equal(model.task.t.len, 4); /* 100, 200, 250, 400 */
	assert_int_equal(lost(&model, "TASK without a valid time"), 4);
	assert_int_equal(lost(&model, "TASK that end before"), 2);
	assert_int_equal(lost(&model, "texts of table TASK"), 1);
	assert_int_equal(lost(&model, "COMPUTE_TASK_INFO whose task"), 2);
	assert_int_equal(lost(&model, "cells of table COMPUTE_TASK_INFO"), 5);
	assert_int_equal(lost(&model, "STRING_IDS without an id"), 2);
	assert_int_equal(model.task.start[2], 250);
	assert_string_equal(nps_model__text(&model, model.task.type[2]), "a\xef\xbf\xbd"
									 "b\xef\xbf\xbd\xef\xbf\xbd");
	assert_int_equal(model.task.id[1], NPS_NONE);
	assert_int_equal(model.task.end[0], 100);
	nps_model__free(&model);
}

static void not_tables(void **state)
{
	const char *path = db_folder_path("msprof_1.db");
	struct nps_model model;

	(void)state;
	make(path,
	     SMALL "CREATE VIEW TASK AS SELECT * FROM CANN_API; CREATE VIEW CANN_API AS SELECT * FROM TASK;"
		   "CREATE TABLE COMPUTE_TASK_INFO (other TEXT); INSERT INTO COMPUTE_TASK_INFO VALUES('x');"
		   "CREATE TABLE OSRT_API (name,globalTid,startNs,endNs,flavour);"
		   "INSERT INTO OSRT_API VALUES(1,1,5,6,'sweet');"
		   "CREATE TABLE \"odd \"\" name\x1b\" (x); INSERT INTO \"odd \"\" name\x1b\" VALUES(1);"
		   "CREATE TABLE HCCS (deviceId,timestampNs PRIMARY KEY,txThroughput,rxThroughput) "
		   "WITHOUT ROWID; INSERT INTO HCCS VALUES(0,9,1,1);");
	db_folder_import(&model, path);
	assert_int_equal(model.task.t.len, 0);
	assert_int_equal(lost(&model, "TASK, which is no ordinary table"), 1);
	assert_int_equal(lost(&model, "CANN_API, which is no ordinary table"), 1);
	assert_int_equal(lost(&model, "COMPUTE_TASK_INFO, which lacks columns"), 1);
	assert_int_equal(lost(&model, "column flavour of table OSRT_API"), 1);
	assert_int_equal(lost(&model, "table odd \" name?, which is unknown"), 1);
	assert_int_equal(lost(&model, "table HCCS"), 1);
	assert_int_equal(model.osrt.t.len, 1);
	nps_model__free(&model);
}

static int try(const char *path)
{
	struct nps_model model;
	int err = nps_model__init(&model, db_folder_fd, NULL);

	assert_int_equal(err, 0);
	err = nps_import__ascend_db(&model, path);
	nps_model__free(&model);
	return err;
}

static void not_databases(void **state)
{
	const char *path = db_folder_path("msprof_1.db");
	int ready[2], go[2], status;
	char byte;
	pid_t pid;

	(void)state;
	unlink(path);
	assert_int_equal(try(path), -ENOENT);
	db_folder_write(path, "", 0);
	assert_int_equal(try(path), -EINVAL);
	db_folder_write(path, "SQLite format 3", 16);
	assert_int_equal(try(path), -EINVAL);
	assert_int_equal(try(db_folder), -EINVAL);
	make(path, SMALL TASK);
	db_folder_write(db_folder_path("msprof_1.db-wal"), "x", 1);
	assert_int_equal(try(path), -EBUSY);
	unlink(db_folder_path("msprof_1.db-wal"));
	db_folder_write(db_folder_path("msprof_1.db-journal"), "x", 1);
	assert_int_equal(try(path), -EBUSY);
	unlink(db_folder_path("msprof_1.db-journal"));
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (!pid) { /* writes and does not end */
		sqlite3 *db;

		close(go[1]);
		sqlite3_open(path, &db);
		sqlite3_exec(
			db,
			"PRAGMA journal_mode=MEMORY; BEGIN IMMEDIATE; INSERT INTO TASK(startNs) VALUES(1)",
			NULL, NULL, NULL);
		status = write(ready[1], "", 1) == 1 && read(go[0], &byte, 1) == 0;
		_exit(!status);
	}
	close(go[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(try(path), -EBUSY);
	close(go[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(try(path), 0);
}

/* The database of a result of MindSpore has MindSpore's name, which leaves out a rank of 0. */
static void mindspore_keeps_its_name(void **state)
{
	static const char *const names[] = { "ascend_mindspore_profiler_5.db",
					     "ascend_mindspore_profiler.db" };
	struct nps_export ex = { .generation = NPS_GENERATION_B };
	char in[600], out[600];
	struct nps_model model;

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(names); i++) {
		snprintf(in, sizeof(in), "%s/%s", db_folder_path("in"), names[i]);
		snprintf(out, sizeof(out), "%s/%s", db_folder_path("out"), names[i]);
		make(in, SMALL);
		db_folder_import(&model, in);
		unlink(out);
		ex.model = &model;
		assert_int_equal(nps_export__db(&ex, db_folder_fd, db_folder_path("out")), 0);
		assert_int_equal(access(out, F_OK), 0);
		unlink(out);
		nps_model__free(&model);
	}
	snprintf(in, sizeof(in), "%s/host_7_20250101000000000_ascend_ms", db_folder_path("in"));
	assert_int_equal(mkdir(in, 0700), 0);
	assert_int_equal(nps_model__init(&model, db_folder_fd, NULL), 0);
	assert_int_equal(nps_import__torch(&model, in), 0);
	assert_true(model.mindspore);
	nps_model__free(&model);
	rmdir(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives_of_bounded_tasks),
		cmocka_unit_test(endless_metadata),
		cmocka_unit_test(endless_columns),
		cmocka_unit_test(numbers_keep_their_digits),
		cmocka_unit_test(mindspore_keeps_its_name),
		cmocka_unit_test(damaged_overlap),
		cmocka_unit_test(kernels_without_texts),
		cmocka_unit_test(unsorted_rows),
		cmocka_unit_test(shapes_in_the_column_of_types),
		cmocka_unit_test(tasks_that_never_ended),
		cmocka_unit_test(starts_of_zero),
		cmocka_unit_test(hostile_cells),
		cmocka_unit_test(not_tables),
		cmocka_unit_test(not_databases),
	};

	return cmocka_run_group_tests(tests, db_folder_setup, db_folder_teardown);
}
