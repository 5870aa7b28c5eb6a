/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Databases in and out. With `--convert DB OUTDIR [A|B]` the program imports DB and exports it, for the tests
 * that hold the result against real captures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "export/export.h"
#include "export/export_db.h"
#include "import/ascend_db/spec.h"
#include "import/import.h"

/* --- a folder and what lies in it --- */

static char folder[128];
static int folder_fd = -1;

/* The path of a file in the folder; it stays. */
static const char *in_folder(const char *name)
{
	static char paths[32][256];
	char path[256];
	size_t i = 0;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	while (i < NPS_ARRAY_SIZE(paths) - 1 && paths[i][0] && strcmp(paths[i], path))
		i++;
	return strcpy(paths[i], path);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_ascend_db.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder_fd < 0 || mkdir(in_folder("in"), 0755) || mkdir(in_folder("out"), 0755);
}

static int tear_down(void **state)
{
	char command[256];

	(void)state;
	close(folder_fd);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static int export_to(const struct nps_model *model, const char *dir, enum nps_generation generation)
{
	struct nps_export ex = { .model = model, .generation = generation, .stamp = "20250109000000" };
	int err = nps_export__db(&ex, folder_fd, dir);

	return err ? err : nps_export__analysis_db(&ex, folder_fd, dir);
}

/* The first cell that SQL gives, as text; "-" without a row, "NULL" for NULL. */
static const char *query(const char *path, const char *sql)
{
	static char answers[8][256];
	static unsigned int at;
	char *answer = answers[at++ % 8];
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db = NULL;
	const char *text;

	snprintf(answer, sizeof(answers[0]), "-");
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
		snprintf(answer, sizeof(answers[0]), "%s", sqlite3_errmsg(db));
	else if (sqlite3_step(stmt) == SQLITE_ROW) {
		text = (const char *)sqlite3_column_text(stmt, 0);
		snprintf(answer, sizeof(answers[0]), "%s", text ? text : "NULL");
	}
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return answer;
}

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

static void put(const char *path, const void *bytes, size_t len)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	fclose(file);
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

static char *contents(const char *path, size_t *len)
{
	FILE *file = fopen(path, "rb");
	char *bytes = malloc(8 << 20);

	assert_non_null(file);
	assert_non_null(bytes);
	*len = fread(bytes, 1, 8 << 20, file);
	fclose(file);
	return bytes;
}

static void assert_same_file(const char *one, const char *other)
{
	size_t len, other_len;
	char *bytes = contents(one, &len), *other_bytes = contents(other, &other_len);

	assert_int_equal(len, other_len);
	assert_memory_equal(bytes, other_bytes, len);
	free(bytes);
	free(other_bytes);
}

/* --- a model with something in every table --- */

#define TASKS 40

static uint32_t random_state = 1;

static uint32_t next_random(void)
{
	random_state = random_state * 1664525 + 1013904223;
	return random_state >> 8;
}

static uint32_t some_text(struct nps_model *model)
{
	uint32_t text = nps_strings__addf(model->strings, "text %u", next_random() % 50);

	assert_int_not_equal(text, NPS_NONE);
	return text;
}

static void fill_cell(struct nps_model *model, void *cells, size_t row, unsigned int kind)
{
	switch (kind) {
	case NPS_COLUMN_u8:
		((uint8_t *)cells)[row] = next_random() % 2;
		break;
	case NPS_COLUMN_u16:
		((uint16_t *)cells)[row] = next_random();
		break;
	case NPS_COLUMN_u32:
		((uint32_t *)cells)[row] = next_random() % 1000;
		break;
	case NPS_COLUMN_text:
		((uint32_t *)cells)[row] = some_text(model);
		break;
	case NPS_COLUMN_f64:
		((double *)cells)[row] = next_random() % 3 ? next_random() / 7.0 : next_random();
		break;
	case NPS_COLUMN_time:
		((uint64_t *)cells)[row] = 1000000 + 100 * row;
		break;
	default:
		((uint64_t *)cells)[row] = next_random();
	}
}

static void fill_table(struct nps_model *model, const struct nps_db_table *spec)
{
	struct nps_table *table = nps_db_table__of(model, spec);

	for (size_t i = 0; i < TASKS; i++) {
		size_t row = 0;

		assert_int_equal(nps_table__add(table, &row), 0);
		for (uint32_t c = 0; c < table->ncolumns; c++)
			fill_cell(model, nps_table__cells(table, c), row, table->columns[c].kind);
		/* Details follow the tasks; keys are distinguished. */
		for (int c = 0; c < spec->ncolumns; c++) {
			const struct nps_db_column *column = &spec->columns[c];
			uint32_t *cells =
				column->cell == NPS_DB_NO_CELL ? NULL : nps_table__cells(table, column->cell);

			if (cells && column->value == NPS_DB_TASK)
				cells[row] = row;
			else if (cells && spec->key && !strcmp(spec->key, column->name))
				cells[row] = 2000 + row;
		}
	}
}

static void fill_model(struct nps_model *model)
{
	assert_int_equal(nps_model__init(model, folder_fd, NULL), 0);
	random_state = 1;
	for (const struct nps_db_table *const *family = nps_db_families; *family; family++)
		for (const struct nps_db_table *table = *family; table->name; table++)
			if (*family != nps_db_own_tables)
				fill_table(model, table);
	for (const struct nps_db_table *table = nps_db_analysis_tables; table->name; table++)
		fill_table(model, table);
	for (size_t i = 0; i < TASKS; i++) {
		model->task.id[i] = i ^ 5; /* not in order of time */
		model->task.source[i] = i % 3;
		model->comm_task.op[i] = model->comm_op.id[i];
		model->comm_op.tasks[i] = 1;
		model->comm_op.measured[i] = i % 3 != NPS_TIME_HOST_BOUNDS;
		if (i % 3 == NPS_TIME_HOST_BOUNDS) {
			size_t row = 0;

			assert_int_equal(nps_table__add(&model->bounds.t, &row), 0);
			model->bounds.task[row] = i;
			model->bounds.start_low[row] = 5;
			model->bounds.start_high[row] = UINT64_MAX;
			model->bounds.end_low[row] = 7;
			model->bounds.end_high[row] = 8;
		}
	}
	model->start = 1000000;
	model->end = 2000000;
	model->has_rank = true;
	model->rank = 3;
	model->host_name = nps_strings__addz(model->strings, "host");
	model->host_uid = nps_strings__addz(model->strings, "17");
	model->metadata = cJSON_Parse("{\"distributed_args\":{\"rank\":3},\"trace_id\":\"x\"}");
}

static void import(struct nps_model *model, const char *path)
{
	assert_int_equal(nps_model__init(model, folder_fd, NULL), 0);
	assert_int_equal(nps_import__ascend_db(model, path), 0);
}

/* --- what is written --- */

static void every_table_comes_back(void **state)
{
	static const enum nps_generation generations[] = { NPS_GENERATION_B, NPS_GENERATION_A };
	struct nps_model model, copy;

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(generations); i++) {
		const char *first = in_folder("in/ascend_pytorch_profiler_3.db"), *analysis;

		unlink(first);
		unlink(in_folder("in/analysis.db"));
		unlink(in_folder("out/ascend_pytorch_profiler_3.db"));
		unlink(in_folder("out/analysis.db"));
		fill_model(&model);
		assert_int_equal(export_to(&model, in_folder("in"), generations[i]), 0);
		import(&copy, first);
		if (copy.losses.len)
			fail_msg("lost: %s", NPS_AT(&copy.losses, struct nps_lost, 0).what);
		assert_int_equal(copy.generation, generations[i]);
		assert_int_equal(copy.rank, 3);
		assert_int_equal(copy.task.t.len, TASKS);
		assert_int_equal(copy.bounds.t.len, TASKS / 3);
		assert_true(copy.comm_analyzed && copy.step_traced);
		assert_int_equal(copy.overlapped, generations[i] == NPS_GENERATION_B);
		assert_int_equal(export_to(&copy, in_folder("out"), generations[i]), 0);
		assert_same_file(first, in_folder("out/ascend_pytorch_profiler_3.db"));
		analysis = in_folder("in/analysis.db");
		assert_same_file(analysis, in_folder("out/analysis.db"));
		nps_model__free(&model);
		nps_model__free(&copy);
	}
}

static void details_find_their_task(void **state)
{
	const char *path = in_folder("in/ascend_pytorch_profiler_3.db");
	struct nps_model model;

	(void)state;
	unlink(path);
	unlink(in_folder("in/analysis.db"));
	fill_model(&model);
	assert_int_equal(export_to(&model, in_folder("in"), NPS_GENERATION_B), 0);
	assert_string_equal(query(path, "PRAGMA integrity_check"), "ok");
	assert_string_equal(query(path,
				  "SELECT group_concat(globalTaskId) FROM (SELECT * FROM TASK LIMIT 4)"),
			    "5,4,7,6");
	assert_string_equal(query(path, "SELECT globalTaskId FROM MEMCPY_INFO WHERE rowid=2"), "4");
	assert_string_equal(query(path,
				  "SELECT count(*) FROM COMPUTE_TASK_INFO c JOIN TASK t USING(globalTaskId)"),
			    "40");
	assert_string_equal(query(path,
				  "SELECT group_concat(source) FROM (SELECT * FROM NPUSCOPE_TASK_TIME t "
				  "WHERE globalTaskId IN (4,5,7) ORDER BY globalTaskId)"),
			    "device log,profiler,host bounds");
	assert_string_equal(query(path, "SELECT startLowNs||','||(startHighNs IS NULL)||','||endLowNs||','||"
					"endHighNs FROM NPUSCOPE_TASK_TIME WHERE globalTaskId=7"),
			    "5,1,7,8");
	assert_string_equal(query(path, "SELECT typeof(startNs) FROM PYTORCH_API"), "text");
	assert_string_equal(query(path, "SELECT min(name)>=1<<28 AND max(name)<2<<28 FROM PYTORCH_API"), "1");
	assert_string_equal(query(path, "SELECT min(component)>=2<<28 FROM MEMORY_RECORD"), "1");
	assert_string_equal(query(path, "SELECT max(name)<1<<28 FROM COMPUTE_TASK_INFO"), "1");
	assert_string_equal(query(path, "SELECT value FROM META_DATA WHERE name='distributed_args'"),
			    "{\"rank\":3}");
	assert_string_equal(query(path, "SELECT value FROM META_DATA WHERE name='SCHEMA_VERSION'"), "1.2.0");
	nps_model__free(&model);
}

/*
 * What is only bounded stays unmeasured, of collectives, too; the one
 * before deviceId lies where its task ran.
 */
static void collectives_of_bounded_tasks(void **state)
{
	const char *path = in_folder("msprof_5.db");
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
	import(&model, path);
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
	const char *path = in_folder("msprof_6.db");
	struct nps_model model;

	(void)state;
	make(path,
	     "CREATE TABLE META_DATA (name TEXT,value TEXT); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
	     "SELECT i+1 FROM n WHERE i<5000) INSERT INTO META_DATA SELECT 'k'||i,i FROM n");
	import(&model, path);
	assert_int_equal(model.meta.t.len, 1024);
	assert_int_equal(lost(&model, "META_DATA, which has too many rows"), 1);
	nps_model__free(&model);
}

/* Whether they hold something is a question about all rows. */
static void endless_columns(void **state)
{
	const char *path = in_folder("msprof_7.db");
	struct nps_model model;
	char sql[8192] = "CREATE TABLE NPU_MEM (type INTEGER", *end = sql + strlen(sql);

	(void)state;
	for (int i = 0; i < 100; i++)
		end += sprintf(end, ",c%d INTEGER", i);
	strcpy(end, "); INSERT INTO NPU_MEM (type,c0,c5) VALUES (1,2,3)");
	make(path, sql);
	import(&model, path);
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
	const char *path = in_folder("in/ascend_pytorch_profiler_0.db");
	struct nps_model model;
	char *text;

	(void)state;
	make(path, "CREATE TABLE META_DATA (name TEXT,value TEXT); INSERT INTO META_DATA VALUES "
		   "('id','[1736407068203015511]'),('number','1736407068203015512'),('release','3.1.0')");
	put(in_folder("profiler_info_0.json"), info, strlen(info));
	import(&model, path);
	text = cJSON_PrintUnformatted(model.info);
	assert_string_equal(text, info);
	cJSON_free(text);
	text = cJSON_PrintUnformatted(model.metadata);
	assert_string_equal(
		text, "{\"id\":[1736407068203015511],\"number\":1736407068203015512,\"release\":\"3.1.0\"}");
	cJSON_free(text);
	nps_model__free(&model);
	unlink(in_folder("profiler_info_0.json"));
}

static void empty_model(void **state)
{
	const char *path = in_folder("in/ascend_pytorch_profiler_0.db");
	struct nps_model model;
	struct stat st;

	(void)state;
	unlink(path);
	assert_int_equal(nps_model__init(&model, folder_fd, NULL), 0);
	umask(0);
	assert_int_equal(export_to(&model, in_folder("in"), NPS_GENERATION_B), 0);
	umask(022);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_string_equal(query(path, "SELECT count(*) FROM SESSION_TIME_INFO"), "1");
	assert_string_equal(query(path, "SELECT id||name FROM NPU_INFO"), "-1UNKNOWN");
	assert_string_equal(
		query(path, "SELECT count(*) FROM sqlite_master WHERE name IN ('CANN_API','MEMCPY_INFO',"
			    "'OSRT_API','STEP_TIME','STRING_IDS')"),
		"5");
	/* Insight shows lanes for those without a row in them */
	assert_string_equal(
		query(path, "SELECT count(*) FROM sqlite_master WHERE name IN ('TASK','COMMUNICATION_OP',"
			    "'COMPUTE_TASK_INFO','COMMUNICATION_TASK_INFO','OVERLAP_ANALYSIS')"),
		"0");
	assert_string_equal(query(path, "SELECT count(*) FROM sqlite_master WHERE name LIKE 'NPUSCOPE%'"),
			    "0");
	assert_string_equal(query(path, "PRAGMA journal_mode"), "delete");
	assert_int_equal(export_to(&model, in_folder("in"), NPS_GENERATION_B), -EEXIST);
	unlink(path);
	assert_int_equal(symlink("elsewhere", path), 0);
	assert_int_equal(export_to(&model, in_folder("in"), NPS_GENERATION_B), -EEXIST);
	unlink(path);
	nps_model__free(&model);
}

static size_t row_of(struct nps_table *table)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(table, &row), 0);
	return row;
}

static void memory_row(struct nps_model *m, uint64_t time, const char *kind, int64_t bytes)
{
	size_t row = row_of(&m->job_memory.t);

	m->job_memory.timestamp[row] = time;
	m->job_memory.device[row] = 2;
	m->job_memory.kind[row] = nps_strings__addz(m->strings, kind);
	m->job_memory.allocated[row] = bytes;
}

/*
 * What only tables of npuscope have is in those of which Insight makes lanes,
 * and usage that is not known is a number.
 */
static void lanes_for_viewers(void **state)
{
	const char *path = in_folder("in/ascend_pytorch_profiler_0.db");
	struct nps_model model, *m = &model;
	size_t row;

	(void)state;
	unlink(path);
	assert_int_equal(nps_model__init(m, folder_fd, NULL), 0);
	m->pid = 77;
	m->start = 1;
	m->end = 1000;
	memory_row(m, 100, "device", 4096);
	memory_row(m, 150, "host", 5); /* pinned, not of the device */
	memory_row(m, 200, "device", 8192);
	for (uint32_t pid = 77; pid < 79; pid++) {
		row = row_of(&m->npu_process.t);
		m->npu_process.timestamp[row] = 300;
		m->npu_process.device[row] = 2;
		m->npu_process.pid[row] = pid;
		m->npu_process.bytes[row] = pid;
	}
	row = row_of(&m->host_network.t);
	m->host_network.timestamp[row] = 7;
	m->host_network.usage[row] = m->host_network.speed[row] = NPS_NAN;
	row = row_of(&m->host_mem.t);
	m->host_mem.timestamp[row] = 7;
	m->host_mem.usage[row] = 0;
	row = row_of(&m->os_thread.t);
	m->os_thread.gtid[row] = 77ULL << 32 | 77;
	m->os_thread.name[row] = nps_strings__addz(m->strings, "train");
	assert_int_equal(export_to(m, in_folder("in"), NPS_GENERATION_B), 0);
	assert_string_equal(query(path,
				  "SELECT group_concat(value||':'||timestampNs||':'||deviceId||':'||hbm,' ') "
				  "FROM NPU_MEM "
				  "JOIN STRING_IDS ON id=type"),
			    "job:100:2:4096 job:200:2:8192 app:300:2:77");
	assert_string_equal(query(path, "SELECT usage||','||ifnull(speed,'unknown') FROM HOST_NETWORK_USAGE"),
			    "0,unknown");
	assert_string_equal(query(path, "SELECT group_concat(pid||name) FROM NPUSCOPE_PROCESS"), "77train");
	nps_model__free(m);
	assert_string_equal(query(path, "SELECT value FROM META_DATA WHERE name LIKE 'npuscope_usage%'"),
			    "[\"HOST_NETWORK_USAGE\"]");
	import(m, path);
	for (size_t i = 0; i < m->losses.len; i++)
		fail_msg("%s", NPS_AT(&m->losses, struct nps_lost, i).what);
	/*
	 * What has to be a number for Insight is none again, and written in the same way; a measured 0 stays.
	 */
	assert_true(isnan(m->host_network.usage[0]));
	assert_true(m->host_mem.usage[0] == 0);
	unlink(path);
	unlink(in_folder("in/analysis.db"));
	assert_int_equal(export_to(m, in_folder("in"), NPS_GENERATION_B), 0);
	assert_string_equal(
		query(path, "SELECT group_concat(value) FROM META_DATA WHERE name LIKE 'npuscope_usage%'"),
		"[\"HOST_NETWORK_USAGE\"]");
	unlink(path);
	nps_model__free(m);
}

static void task_row(struct nps_model *m, uint64_t start, uint64_t end, enum nps_time_source source)
{
	size_t row = row_of(&m->task.t);

	m->task.start[row] = start;
	m->task.end[row] = end;
	m->task.id[row] = row;
	m->task.source[row] = source;
}

/*
 * A task that nobody measured has the least length, for Insight; it is none when the database is read again.
 */
static void bounded_tasks(void **state)
{
	const char *path = in_folder("in/ascend_pytorch_profiler_0.db");
	struct nps_model model, *m = &model;
	size_t row;

	(void)state;
	unlink(path);
	assert_int_equal(nps_model__init(m, folder_fd, NULL), 0);
	task_row(m, 1000, 1000, NPS_TIME_HOST_BOUNDS);
	task_row(m, 2000, 2000, NPS_TIME_DEVICE_LOG);
	row = row_of(&m->bounds.t);
	m->bounds.task[row] = 0;
	row = row_of(&m->comm_op.t);
	m->comm_op.start[row] = m->comm_op.end[row] = 1000;
	m->comm_op.id[row] = 5;
	m->comm_op.tasks[row] = 1;
	m->comm_op.measured[row] = 0;
	row = row_of(&m->comm_task.t);
	m->comm_task.task[row] = 0;
	m->comm_task.op[row] = 5;
	m->start = 500;
	m->end = 3000;
	assert_int_equal(export_to(m, in_folder("in"), NPS_GENERATION_B), 0);
	assert_string_equal(query(path, "SELECT group_concat(startNs||'-'||endNs,' ') FROM TASK"),
			    "1000-1001 2000-2000");
	assert_string_equal(query(path, "SELECT startNs||'-'||endNs FROM COMMUNICATION_OP"), "1000-1001");
	nps_model__free(m);
	import(m, path);
	assert_int_equal(m->task.source[0], NPS_TIME_HOST_BOUNDS);
	assert_int_equal(m->task.end[0], 1000);
	assert_int_equal(m->comm_op.tasks[0], 1);
	assert_int_equal(m->comm_op.measured[0], 0);
	assert_int_equal(m->comm_op.end[0], 1000);
	unlink(path);
	nps_model__free(m);
}

/* Calls without a connection, and two with the same, are all kept. */
static void keys_that_are_none(void **state)
{
	static const uint32_t connections[] = { 9, NPS_NO_ID, 4, 9, NPS_NO_ID, 2 };
	const char *path = in_folder("in/ascend_pytorch_profiler_0.db");
	struct nps_model model;
	size_t row = 0;

	(void)state;
	unlink(path);
	assert_int_equal(nps_model__init(&model, folder_fd, NULL), 0);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(connections); i++) {
		assert_int_equal(nps_table__add(&model.api.t, &row), 0);
		model.api.start[row] = 100 + i;
		model.api.connection[row] = connections[i];
	}
	assert_int_equal(export_to(&model, in_folder("in"), NPS_GENERATION_B), 0);
	assert_string_equal(query(path, "SELECT count(*)||' '||count(DISTINCT startNs) FROM CANN_API"),
			    "6 6");
	assert_string_equal(query(path, "SELECT startNs FROM CANN_API WHERE connectionId=4"), "102");
	assert_string_equal(query(path, "SELECT group_concat(connectionId) FROM (SELECT * FROM CANN_API "
					"ORDER BY connectionId)"),
			    "2,4,9,10,11,12");
	nps_model__free(&model);
}

/* --- what is read --- */

#define SMALL                                                                                                \
	"CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY,value TEXT);"                                       \
	"INSERT INTO STRING_IDS "                                                                            \
	"VALUES(0,'KERNEL_AIVEC'),(1,'Add'),(2,'AI_VECTOR_CORE'),(3,'N/A'),(4,'launch'),(5,'FFTS_PLUS');"
#define TASK                                                                                                 \
	"CREATE TABLE TASK (startNs,endNs,deviceId,connectionId,globalTaskId,globalPid,taskType,contextId,"  \
	"streamId,taskId,modelId);"
#define COMPUTE "CREATE TABLE COMPUTE_TASK_INFO (name,globalTaskId,blockNum,mixBlockNum,taskType,opType);"

/* What damage leaves of a table that follows from others is not taken for the whole. */
static void damaged_overlap(void **state)
{
	const char *path = in_folder("msprof_7.db");
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
		import(&model, path);
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
	const char *path = in_folder("msprof_8.db");
	struct nps_model model;

	(void)state;
	make(path, TASK COMPUTE "INSERT INTO TASK VALUES(100,110,0,8,80,1,0,4294967295,0,0,0);"
				"INSERT INTO COMPUTE_TASK_INFO VALUES(1,80,1,1,2,1)");
	import(&model, path);
	assert_int_equal(model.task.class[0], NPS_CLASS_COMPUTE);
	assert_string_equal(nps_model__text(&model, model.task.hw_type[0]), "AI_CORE");
	nps_model__free(&model);
	unlink(path);
}

static void unsorted_rows(void **state)
{
	const char *path = in_folder("msprof_1.db");
	struct nps_model model;

	(void)state;
	make(path, SMALL TASK COMPUTE
	     "INSERT INTO TASK VALUES(300,310,0,7,70,1,0,0,0,0,0),(100,110,0,8,80,1,0,0,0,0,0),"
	     "(200,210,0,9,90,1,5,0,0,0,0);"
	     "INSERT INTO COMPUTE_TASK_INFO VALUES(1,70,1,1,2,1),(1,80,2,1,2,1);"
	     "CREATE TABLE CANN_API (startNs,endNs,type,globalTid,connectionId,name);"
	     "INSERT INTO CANN_API VALUES(50,60,10000,1,8,4),(20,30,20000,1,9,4);");
	import(&model, path);
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
	const char *path = in_folder("msprof_1.db");
	struct nps_model model;

	(void)state;
	make(path, SMALL TASK COMPUTE
	     "INSERT INTO TASK "
	     "VALUES(100,110,0,7,70,1,0,0,0,0,0),(200,9223372036854775807,0,8,80,1,0,0,0,0,0),"
	     "(300,310,0,9,90,1,0,0,0,0,0);"
	     "INSERT INTO COMPUTE_TASK_INFO VALUES(1,70,1,1,2,1),(1,80,2,1,2,1),(1,90,2,1,2,1);");
	import(&model, path);
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
	const char *path = in_folder("msprof_1.db");
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
		import(&model, path);
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
	const char *path = in_folder("ascend_pytorch_profiler_0.db");
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
		import(&model, path);
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
	const char *path = in_folder("msprof_1.db");
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
	import(&model, path);
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

static void full_ranges_of_ids(void **state)
{
	const char *path = in_folder("ids.db");
	const uint32_t used[] = { 268435455, 805306369 }; /* the last of a range, and one above all */
	struct nps_db_writer db;
	struct nps_db_ids ids;
	struct nps_model model;
	uint32_t text[5];

	(void)state;
	assert_int_equal(nps_model__init(&model, folder_fd, NULL), 0);
	for (uint32_t i = 0; i < NPS_ARRAY_SIZE(text); i++)
		text[i] = nps_strings__addf(model.strings, "text %u", i);
	assert_int_equal(nps_vec__resize(&model.db_ids, text[4] + 1), 0);
	memset(model.db_ids.data, 0xff, model.db_ids.len * sizeof(uint32_t));
	NPS_AT(&model.db_ids, uint32_t, text[0]) = used[0];
	NPS_AT(&model.db_ids, uint32_t, text[1]) = used[1];
	nps_db_ids__init(&ids, &model);
	assert_int_equal(nps_db_ids__get(&ids, NPS_DB_MSPROF, text[0]), used[0]);
	assert_int_equal(nps_db_ids__get(&ids, NPS_DB_MSPROF, text[2]), 805306368);
	assert_int_equal(nps_db_ids__get(&ids, NPS_DB_TORCH, text[3]), 268435456);
	assert_int_equal(nps_db_ids__get(&ids, NPS_DB_MSPROF, text[4]), 805306370);
	assert_int_equal(nps_db_ids__find(&ids, NPS_DB_MSPROF, text[2]), 805306368);
	assert_int_equal(nps_db_writer__open(&db, path), 0);
	nps_db_ids__write(&ids, &db);
	nps_db_writer__exec(&db, "INSERT INTO STRING_IDS VALUES(805306370,'again')");
	assert_int_equal(db.err, -EILSEQ);
	db.err = 0;
	assert_int_equal(nps_db_writer__close(&db), 0);
	assert_string_equal(
		query(path, "SELECT group_concat(id||value) FROM STRING_IDS"),
		"268435455text 0,268435456text 3,805306368text 2,805306369text 1,805306370text 4");
	nps_db_ids__free(&ids);
	nps_model__free(&model);
}

static void not_tables(void **state)
{
	const char *path = in_folder("msprof_1.db");
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
	import(&model, path);
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
	int err = nps_model__init(&model, folder_fd, NULL);

	assert_int_equal(err, 0);
	err = nps_import__ascend_db(&model, path);
	nps_model__free(&model);
	return err;
}

static void not_databases(void **state)
{
	const char *path = in_folder("msprof_1.db");
	int ready[2], go[2], status;
	char byte;
	pid_t pid;

	(void)state;
	unlink(path);
	assert_int_equal(try(path), -ENOENT);
	put(path, "", 0);
	assert_int_equal(try(path), -EINVAL);
	put(path, "SQLite format 3", 16);
	assert_int_equal(try(path), -EINVAL);
	assert_int_equal(try(folder), -EINVAL);
	make(path, SMALL TASK);
	put(in_folder("msprof_1.db-wal"), "x", 1);
	assert_int_equal(try(path), -EBUSY);
	unlink(in_folder("msprof_1.db-wal"));
	put(in_folder("msprof_1.db-journal"), "x", 1);
	assert_int_equal(try(path), -EBUSY);
	unlink(in_folder("msprof_1.db-journal"));
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

/* Damage anywhere: the importer ends, what it could read is in the model. */
static void damage(void **state)
{
	const char *path = in_folder("in/ascend_pytorch_profiler_3.db"), *broken = in_folder("msprof_2.db");
	struct nps_model model;
	char *bytes, *copy;
	size_t len, read = 0, lossy = 0;

	(void)state;
	unlink(path);
	unlink(in_folder("in/analysis.db"));
	fill_model(&model);
	assert_int_equal(export_to(&model, in_folder("in"), NPS_GENERATION_B), 0);
	nps_model__free(&model);
	bytes = contents(path, &len);
	copy = malloc(len);
	assert_non_null(copy);
	random_state = 7;
	for (int round = 0; round < 150; round++) {
		size_t cut = round % 5 ? len : next_random() % len;

		memcpy(copy, bytes, len);
		for (int i = 0; i < 1 + round % 40; i++)
			copy[next_random() % len] = next_random();
		put(broken, copy, cut);
		assert_int_equal(nps_model__init(&model, folder_fd, NULL), 0);
		if (!nps_import__ascend_db(&model, broken)) {
			read += model.task.t.len > 0;
			lossy += model.losses.len > 0;
			unlink(in_folder("out/msprof_20250109000000.db"));
			unlink(in_folder("out/ascend_pytorch_profiler_0.db"));
			assert_int_equal(export_to(&model, in_folder("out"), model.generation), 0);
		}
		nps_model__free(&model);
	}
	assert_true(read > 30 && lossy > 30);
	free(bytes);
	free(copy);
}

static int convert(char **argv)
{
	struct nps_model model;
	int dirfd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	enum nps_generation generation;

	if (dirfd < 0 || nps_model__init(&model, dirfd, NULL))
		return 1;
	err = nps_import__ascend_db(&model, argv[0]);
	for (size_t i = 0; i < model.losses.len; i++)
		fprintf(stderr, "lost %llu %s\n",
			(unsigned long long)NPS_AT(&model.losses, struct nps_lost, i).count,
			NPS_AT(&model.losses, struct nps_lost, i).what);
	generation = model.generation;
	if (argv[2])
		generation = argv[2][0] == 'A' ? NPS_GENERATION_A : NPS_GENERATION_B;
	if (!err)
		err = export_to(&model, argv[1], generation);
	nps_model__free(&model);
	close(dirfd);
	return err ? 1 : 0;
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
		snprintf(in, sizeof(in), "%s/%s", in_folder("in"), names[i]);
		snprintf(out, sizeof(out), "%s/%s", in_folder("out"), names[i]);
		make(in, SMALL);
		import(&model, in);
		unlink(out);
		ex.model = &model;
		assert_int_equal(nps_export__db(&ex, folder_fd, in_folder("out")), 0);
		assert_int_equal(access(out, F_OK), 0);
		unlink(out);
		nps_model__free(&model);
	}
	snprintf(in, sizeof(in), "%s/host_7_20250101000000000_ascend_ms", in_folder("in"));
	assert_int_equal(mkdir(in, 0700), 0);
	assert_int_equal(nps_model__init(&model, folder_fd, NULL), 0);
	assert_int_equal(nps_import__torch(&model, in), 0);
	assert_true(model.mindspore);
	nps_model__free(&model);
	rmdir(in);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_table_comes_back),
		cmocka_unit_test(details_find_their_task),
		cmocka_unit_test(collectives_of_bounded_tasks),
		cmocka_unit_test(endless_metadata),
		cmocka_unit_test(endless_columns),
		cmocka_unit_test(numbers_keep_their_digits),
		cmocka_unit_test(empty_model),
		cmocka_unit_test(lanes_for_viewers),
		cmocka_unit_test(mindspore_keeps_its_name),
		cmocka_unit_test(bounded_tasks),
		cmocka_unit_test(damaged_overlap),
		cmocka_unit_test(kernels_without_texts),
		cmocka_unit_test(keys_that_are_none),
		cmocka_unit_test(unsorted_rows),
		cmocka_unit_test(shapes_in_the_column_of_types),
		cmocka_unit_test(tasks_that_never_ended),
		cmocka_unit_test(starts_of_zero),
		cmocka_unit_test(hostile_cells),
		cmocka_unit_test(full_ranges_of_ids),
		cmocka_unit_test(not_tables),
		cmocka_unit_test(not_databases),
		cmocka_unit_test(damage),
	};

	if (argc >= 4 && !strcmp(argv[1], "--convert"))
		return convert(argv + 2);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
