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
#include <unistd.h>

#include "db_folder.h"
#include "export/export.h"
#include "export/export_db.h"
#include "import/ascend_db/spec.h"
#include "import/import.h"

static int export_to(const struct nps_model *model, const char *dir, enum nps_generation generation)
{
	struct nps_export ex = { .model = model, .generation = generation, .stamp = "20250109000000" };
	int err = nps_export__db(&ex, db_folder_fd, dir);

	return err ? err : nps_export__analysis_db(&ex, db_folder_fd, dir);
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
	assert_int_equal(nps_model__init(model, db_folder_fd, NULL), 0);
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

/* --- what is written --- */

static void every_table_comes_back(void **state)
{
	static const enum nps_generation generations[] = { NPS_GENERATION_B, NPS_GENERATION_A };
	struct nps_model model, copy;

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(generations); i++) {
		const char *first = db_folder_path("in/ascend_pytorch_profiler_3.db"), *analysis;

		unlink(first);
		unlink(db_folder_path("in/analysis.db"));
		unlink(db_folder_path("out/ascend_pytorch_profiler_3.db"));
		unlink(db_folder_path("out/analysis.db"));
		fill_model(&model);
		assert_int_equal(export_to(&model, db_folder_path("in"), generations[i]), 0);
		db_folder_import(&copy, first);
		if (copy.losses.len)
			fail_msg("lost: %s", NPS_AT(&copy.losses, struct nps_lost, 0).what);
		assert_int_equal(copy.generation, generations[i]);
		assert_int_equal(copy.rank, 3);
		assert_int_equal(copy.task.t.len, TASKS);
		assert_int_equal(copy.bounds.t.len, TASKS / 3);
		assert_true(copy.comm_analyzed && copy.step_traced);
		assert_int_equal(copy.overlapped, generations[i] == NPS_GENERATION_B);
		assert_int_equal(export_to(&copy, db_folder_path("out"), generations[i]), 0);
		assert_same_file(first, db_folder_path("out/ascend_pytorch_profiler_3.db"));
		analysis = db_folder_path("in/analysis.db");
		assert_same_file(analysis, db_folder_path("out/analysis.db"));
		nps_model__free(&model);
		nps_model__free(&copy);
	}
}

static void details_find_their_task(void **state)
{
	const char *path = db_folder_path("in/ascend_pytorch_profiler_3.db");
	struct nps_model model;

	(void)state;
	unlink(path);
	unlink(db_folder_path("in/analysis.db"));
	fill_model(&model);
	assert_int_equal(export_to(&model, db_folder_path("in"), NPS_GENERATION_B), 0);
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

static void empty_model(void **state)
{
	const char *path = db_folder_path("in/ascend_pytorch_profiler_0.db");
	struct nps_model model;
	struct stat st;

	(void)state;
	unlink(path);
	assert_int_equal(nps_model__init(&model, db_folder_fd, NULL), 0);
	umask(0);
	assert_int_equal(export_to(&model, db_folder_path("in"), NPS_GENERATION_B), 0);
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
	assert_int_equal(export_to(&model, db_folder_path("in"), NPS_GENERATION_B), -EEXIST);
	unlink(path);
	assert_int_equal(symlink("elsewhere", path), 0);
	assert_int_equal(export_to(&model, db_folder_path("in"), NPS_GENERATION_B), -EEXIST);
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
	const char *path = db_folder_path("in/ascend_pytorch_profiler_0.db");
	struct nps_model model, *m = &model;
	size_t row;

	(void)state;
	unlink(path);
	assert_int_equal(nps_model__init(m, db_folder_fd, NULL), 0);
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
	assert_int_equal(export_to(m, db_folder_path("in"), NPS_GENERATION_B), 0);
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
	db_folder_import(m, path);
	for (size_t i = 0; i < m->losses.len; i++)
		fail_msg("%s", NPS_AT(&m->losses, struct nps_lost, i).what);
	/*
	 * What has to be a number for Insight is none again, and written in the same way; a measured 0 stays.
	 */
	assert_true(isnan(m->host_network.usage[0]));
	assert_true(m->host_mem.usage[0] == 0);
	unlink(path);
	unlink(db_folder_path("in/analysis.db"));
	assert_int_equal(export_to(m, db_folder_path("in"), NPS_GENERATION_B), 0);
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
	const char *path = db_folder_path("in/ascend_pytorch_profiler_0.db");
	struct nps_model model, *m = &model;
	size_t row;

	(void)state;
	unlink(path);
	assert_int_equal(nps_model__init(m, db_folder_fd, NULL), 0);
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
	assert_int_equal(export_to(m, db_folder_path("in"), NPS_GENERATION_B), 0);
	assert_string_equal(query(path, "SELECT group_concat(startNs||'-'||endNs,' ') FROM TASK"),
			    "1000-1001 2000-2000");
	assert_string_equal(query(path, "SELECT startNs||'-'||endNs FROM COMMUNICATION_OP"), "1000-1001");
	nps_model__free(m);
	db_folder_import(m, path);
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
	const char *path = db_folder_path("in/ascend_pytorch_profiler_0.db");
	struct nps_model model;
	size_t row = 0;

	(void)state;
	unlink(path);
	assert_int_equal(nps_model__init(&model, db_folder_fd, NULL), 0);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(connections); i++) {
		assert_int_equal(nps_table__add(&model.api.t, &row), 0);
		model.api.start[row] = 100 + i;
		model.api.connection[row] = connections[i];
	}
	assert_int_equal(export_to(&model, db_folder_path("in"), NPS_GENERATION_B), 0);
	assert_string_equal(query(path, "SELECT count(*)||' '||count(DISTINCT startNs) FROM CANN_API"),
			    "6 6");
	assert_string_equal(query(path, "SELECT startNs FROM CANN_API WHERE connectionId=4"), "102");
	assert_string_equal(query(path, "SELECT group_concat(connectionId) FROM (SELECT * FROM CANN_API "
					"ORDER BY connectionId)"),
			    "2,4,9,10,11,12");
	nps_model__free(&model);
}

static void full_ranges_of_ids(void **state)
{
	const char *path = db_folder_path("ids.db");
	const uint32_t used[] = { 268435455, 805306369 }; /* the last of a range, and one above all */
	struct nps_db_writer db;
	struct nps_db_ids ids;
	struct nps_model model;
	uint32_t text[5];

	(void)state;
	assert_int_equal(nps_model__init(&model, db_folder_fd, NULL), 0);
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

/* Damage anywhere: the importer ends, what it could read is in the model. */
static void damage(void **state)
{
	const char *path = db_folder_path("in/ascend_pytorch_profiler_3.db"),
		   *broken = db_folder_path("msprof_2.db");
	struct nps_model model;
	char *bytes, *copy;
	size_t len, read = 0, lossy = 0;

	(void)state;
	unlink(path);
	unlink(db_folder_path("in/analysis.db"));
	fill_model(&model);
	assert_int_equal(export_to(&model, db_folder_path("in"), NPS_GENERATION_B), 0);
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
		db_folder_write(broken, copy, cut);
		assert_int_equal(nps_model__init(&model, db_folder_fd, NULL), 0);
		if (!nps_import__ascend_db(&model, broken)) {
			read += model.task.t.len > 0;
			lossy += model.losses.len > 0;
			unlink(db_folder_path("out/msprof_20250109000000.db"));
			unlink(db_folder_path("out/ascend_pytorch_profiler_0.db"));
			assert_int_equal(export_to(&model, db_folder_path("out"), model.generation), 0);
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_table_comes_back),
		cmocka_unit_test(details_find_their_task),
		cmocka_unit_test(empty_model),
		cmocka_unit_test(lanes_for_viewers),
		cmocka_unit_test(bounded_tasks),
		cmocka_unit_test(keys_that_are_none),
		cmocka_unit_test(full_ranges_of_ids),
		cmocka_unit_test(damage),
	};

	if (argc >= 4 && !strcmp(argv[1], "--convert"))
		return convert(argv + 2);
	return cmocka_run_group_tests(tests, db_folder_setup, db_folder_teardown);
}
