/* SPDX-License-Identifier: BSD-2-Clause */
/* From a synthetic session with known truth to results that hold it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent.h"
#include "analyze.h"
#include "gen_session.h"
#include "import/session/bounds.h"
#include "import/session/join.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *dir;

static int setup(void **state)
{
	(void)state;
	dir = gen_temp_dir();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gen_remove(dir);
	return 0;
}

static struct nps_summary analyze(unsigned int what)
{
	const struct nps_analyze_opts opts = { .size = sizeof(opts), .formats = what };
	struct nps_summary summary;

	assert_int_equal(nps_analyze(dir, &opts, &summary), 0);
	return summary;
}

static sqlite3 *open_db(const struct nps_summary_proc *proc)
{
	char path[8192];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_%u.db", proc->path,
		 proc->rank);
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	return db;
}

static int64_t one(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;
	int64_t value;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return value;
}

/* Every true task is in the database, within 1 us (the simulated clock has 20 ns ticks). */
static void hold_against_truth(const struct nps_summary_proc *proc, const struct gen_task *truth, size_t n)
{
	sqlite3 *db = open_db(proc);
	sqlite3_stmt *stmt;

	assert_int_equal(one(db, "SELECT count(*) FROM TASK"), n);
	assert_int_equal(sqlite3_prepare_v2(db,
					    "SELECT startNs, endNs, (SELECT value FROM STRING_IDS s JOIN "
					    "COMPUTE_TASK_INFO c ON s.id = c.name "
					    "WHERE c.globalTaskId = t.globalTaskId) FROM TASK t WHERE "
					    "streamId = ? AND taskId = ? "
					    "ORDER BY startNs LIMIT 1 OFFSET ?",
					    -1, &stmt, NULL),
			 SQLITE_OK);
	for (size_t i = 0; i < n; i++) {
		int64_t start, end;

		sqlite3_bind_int64(stmt, 1, truth[i].stream);
		sqlite3_bind_int64(stmt, 2, truth[i].task);
		sqlite3_bind_int64(stmt, 3, truth[i].flip);
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		start = sqlite3_column_int64(stmt, 0) - GEN_REAL0 + GEN_T0;
		end = sqlite3_column_int64(stmt, 1) - GEN_REAL0 + GEN_T0;
		assert_true(llabs(start - (int64_t)truth[i].start) < 1000);
		assert_true(llabs(end - (int64_t)truth[i].end) < 1000);
		if (!strncmp(truth[i].name, "aclnn", 5))
			assert_string_equal((const char *)sqlite3_column_text(stmt, 2), truth[i].name);
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
	assert_int_equal(one(db, "SELECT count(*) FROM TASK WHERE connectionId NOT IN (SELECT connectionId "
				 "FROM CANN_API)"),
			 0);
	assert_int_equal(one(db, "SELECT count(*) FROM COMPUTE_TASK_INFO") +
				 one(db, "SELECT count(*) FROM COMMUNICATION_OP"),
			 one(db, "SELECT count(*) FROM CANN_API WHERE type = 10000"));
	sqlite3_close(db);
}

static void two_ranks_with_device_log(void **state)
{
	struct gen_job job = { .ranks = 2, .launches = 2000, .agent = true, .os = true };
	struct nps_summary summary;

	(void)state;
	gen_job(dir, &job);
	summary = analyze(NPS_FORMAT_DEFAULT);
	assert_int_equal(summary.nprocs, 2);
	assert_false(summary.incomplete);
	for (size_t r = 0; r < 2; r++) {
		const struct nps_summary_proc *p = &summary.procs[r];

		assert_int_equal(p->rank, r);
		assert_int_equal(p->launches, 2000);
		assert_int_equal(p->device_tasks, job.per_rank);
		assert_int_equal(p->measured, job.per_rank);
		assert_int_equal(p->host_bounds, 0);
		assert_int_equal(p->collectives, 20);
		assert_int_equal(p->steps, 20);
		assert_int_equal(p->os_calls, 200);
		assert_int_equal(p->top[0].count, 500);
		assert_true(p->clock_drift_ppm > 22.9 && p->clock_drift_ppm < 23.1);
		hold_against_truth(p, job.truth + r * job.stride, job.per_rank);
	}
	nps_summary_free(&summary);
	free(job.truth);
}

static void lost_records_become_bounds(void **state)
{
	struct gen_job job = { .ranks = 1, .launches = 1000, .agent = true, .lose_every = 37 };
	struct nps_summary summary;
	sqlite3 *db;

	(void)state;
	gen_job(dir, &job);
	summary = analyze(NPS_FORMAT_DB);
	assert_int_equal(summary.procs[0].host_bounds, (job.per_rank + 36) / 37);
	assert_int_equal(summary.procs[0].device_tasks, job.per_rank);
	db = open_db(&summary.procs[0]);
	for (size_t i = 0; i < job.per_rank; i += 37) {
		const struct gen_task *t = &job.truth[i];
		char where[256], sql[512];

		snprintf(where, sizeof(where),
			 "FROM NPUSCOPE_TASK_TIME JOIN TASK USING (globalTaskId) WHERE source = 'host "
			 "bounds' AND streamId = %u AND taskId = %u",
			 t->stream, t->task);
		snprintf(sql, sizeof(sql), "SELECT startLowNs %s", where);
		assert_true(one(db, sql) - GEN_REAL0 + GEN_T0 <= t->start);
		snprintf(sql, sizeof(sql), "SELECT coalesce(endHighNs, 9223372036854775807) %s", where);
		assert_true((uint64_t)one(db, sql) - GEN_REAL0 + GEN_T0 + 1000 >= t->end);
		snprintf(sql, sizeof(sql), "SELECT endNs - startNs %s", where);
		assert_int_equal(one(db, sql), 1); /* ns, the least: Insight draws nothing shorter */
	}
	sqlite3_close(db);
	nps_summary_free(&summary);
	free(job.truth);
}

static void host_only_bounds_hold(void **state)
{
	struct gen_job job = { .ranks = 1, .launches = 500 };
	struct nps_summary summary;
	sqlite3 *db;

	(void)state;
	gen_job(dir, &job);
	summary = analyze(NPS_FORMAT_DB);
	assert_int_equal(summary.procs[0].host_bounds, job.per_rank);
	db = open_db(&summary.procs[0]);
	for (size_t i = 0; i < job.per_rank; i++) {
		char sql[256];
		uint64_t high;

		snprintf(sql, sizeof(sql),
			 "SELECT endHighNs FROM NPUSCOPE_TASK_TIME JOIN TASK USING (globalTaskId) WHERE "
			 "streamId = %u AND taskId = %u",
			 job.truth[i].stream, job.truth[i].task);
		high = one(db, sql) - GEN_REAL0 + GEN_T0;
		assert_true(high >=
			    job.truth[i].end); /* true, and not later than one step's synchronisation */
		assert_true(high < job.truth[i].end + 2000000);
	}
	sqlite3_close(db);
	nps_summary_free(&summary);
	free(job.truth);
}

/*
 * Slow reads of the counter leave the clock 5 ms off, as far as they show: tasks
 * that seem to start first are still found.
 */
static void a_bad_clock_still_finds_submissions(void **state)
{
	struct nps_summary summary;
	struct gen gen;

	(void)state;
	gen_open(&gen, dir);
	for (uint64_t t = GEN_T0; t < GEN_T0 + 2000000000ULL; t += 200000000) {
		uint64_t raw = gen_raw(&gen, t);
		const struct nps_device_clock read = { .pid = 4000,
						       .raw_before = raw - 10000000,
						       .raw_after = raw,
						       .counter = gen_counter(&gen, t) };

		gen_clock(&gen, t);
		gen_chunk(&gen, 'c', NPS_CHUNK_DEVICE_CLOCKS, &read, sizeof(read));
	}
	gen_soc_open(&gen, 4000, 0);
	for (unsigned int i = 0; i < 50; i++) {
		uint64_t at = GEN_T0 + 10000000ULL * (i + 1);

		gen_sqe(&gen, 4000, 4000, at, at + 600, 0, 0, 2, i, 8);
		gen_soc(&gen, 0, 0, 2, i, at + 3000);
		gen_soc(&gen, 1, 0, 2, i, at + 9000);
	}
	gen_soc_close(&gen);
	gen_close(&gen, true, "{\"pid\": 4000, \"comm\": \"x\", \"rank\": 0, \"prof_dir\": \"PROF_4000\"}",
		  "{\"id\": 0, \"freq_khz\": 50000}", NULL);
	summary = analyze(NPS_FORMAT_TEXT);
	assert_int_equal(summary.procs[0].measured, 50);
	assert_int_equal(summary.procs[0].host_bounds, 0);
	assert_int_equal(summary.procs[0].before_capture, 0);
	nps_summary_free(&summary);
}

/*
 * Submissions of which only the beginning was recorded: one that finds no room is made again, alike, until
 * there is; one whose launch failed never reached the device; and two of one call are two.
 */
static void submissions_without_an_end(void **state)
{
	struct nps_summary summary;
	uint64_t at = GEN_T0 + 10000000ULL;
	struct gen gen;
	sqlite3 *db;

	(void)state;
	gen_open(&gen, dir);
	gen_clock(&gen, GEN_T0);
	/* the launch of 10 us: refused twice, then taken */
	gen_api(&gen, 4000, 4000, NPS_PROBE_LAUNCH, at, at + 10000, 0x100, 8, 0x200, 0);
	for (unsigned int i = 1; i <= 3; i++)
		gen_sqe(&gen, 4000, 4000, at + 1000 * i, at + 1000 * i, 0, NPS_SQE_AI_CORE, 2, 7, 8);
	/* a launch that failed */
	gen_event(&gen, &(struct nps_event){ .kind = NPS_EV_API,
					     .probe = NPS_PROBE_LAUNCH,
					     .pid = 4000,
					     .tid = 4000,
					     .ret = 107000,
					     .start = at + 20000,
					     .dur = 10000,
					     .call.slot = { 0x100, 8, 0x200 } });
	gen_sqe(&gen, 4000, 4000, at + 21000, at + 21000, 0, NPS_SQE_AI_CORE, 2, 8, 8);
	/*
	 * two of one call, which is made again; then the same as the last
	 * one after another call: a task of its own
	 */
	gen_api(&gen, 4000, 4000, NPS_PROBE_LAUNCH, at + 40000, at + 50000, 0x100, 8, 0x200, 0);
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int task = 9; task < 11; task++)
			gen_sqe(&gen, 4000, 4000, at + 41000 + 1000 * i, at + 41000 + 1000 * i, 0,
				NPS_SQE_AI_CORE, 2, task, 8);
	gen_api(&gen, 4000, 4000, NPS_PROBE_LAUNCH, at + 60000, at + 70000, 0x100, 8, 0x200, 0);
	gen_sqe(&gen, 4000, 4000, at + 61000, at + 61000, 0, NPS_SQE_AI_CORE, 2, 10, 8);
	gen_close(&gen, true, "{\"pid\": 4000, \"comm\": \"x\", \"rank\": 0}",
		  "{\"id\": 0, \"freq_khz\": 50000}", NULL);
	summary = analyze(NPS_FORMAT_DB);
	assert_int_equal(summary.nprocs, 1);
	db = open_db(&summary.procs[0]);
	assert_int_equal(one(db, "SELECT count(*) FROM TASK"), 4);
	assert_int_equal(one(db, "SELECT count(*) FROM TASK WHERE taskId = 7"), 1);
	assert_int_equal(one(db, "SELECT count(*) FROM TASK WHERE taskId = 8"), 0);
	assert_int_equal(one(db, "SELECT count(*) FROM TASK WHERE taskId = 9"), 1);
	assert_int_equal(one(db, "SELECT count(*) FROM TASK WHERE taskId = 10"), 2);
	sqlite3_close(db);
	nps_summary_free(&summary);
}

static void task_ids_wrap(void **state)
{
	struct gen_job job = { .ranks = 1, .launches = 70000, .agent = true };
	struct nps_summary summary;

	(void)state;
	gen_job(dir, &job);
	summary = analyze(NPS_FORMAT_TEXT);
	assert_int_equal(summary.procs[0].measured, job.per_rank);
	assert_int_equal(summary.procs[0].host_bounds, 0);
	nps_summary_free(&summary);
	free(job.truth);
}

static void bounds_of_one_stream(void **state)
{
	const struct nps_sub subs[] = { { .begin = 100, .end = 101 },
					{ .begin = 200, .end = 201 },
					{ .begin = 300, .end = 301 },
					{ .begin = 400, .end = 401 } };
	const struct nps_task measured = { .start = 250, .end = 280 };
	const struct nps_sub *s[] = { &subs[0], &subs[1], &subs[2], &subs[3] };
	const struct nps_task *t[] = { NULL, &measured, NULL, NULL };
	const struct nps_sync syncs[] = { { .cover = 350, .done = 900 } };
	struct nps_bounds b[4] = { { 0 } };

	(void)state;
	nps_bounds__stream(s, t, 0, NULL, 4, syncs, 1, b);
	assert_int_equal(b[0].start_low, 100);
	assert_int_equal(b[0].end_high, 280); /* the measured one after it had ended */
	assert_int_equal(b[2].start_low, 300);
	assert_int_equal(b[2].end_high, 900);
	assert_true(b[3].end_high == UINT64_MAX); /* no synchronisation followed */
	nps_bounds__stream(s, t, 7, NULL, 4, syncs, 1, b);
	assert_int_equal(b[0].end_high, 287); /* as far as its end is known */
}

static void a_known_moment_bounds_both_ends(void **state)
{
	const struct nps_sub subs[] = { { .begin = 100, .end = 101 },
					{ .begin = 200, .end = 201 },
					{ .begin = 300, .end = 301 } };
	const struct nps_sub *s[] = { &subs[0], &subs[1], &subs[2] };
	const struct nps_task *t[] = { NULL, NULL, NULL };
	const struct nps_pin pins[] = { { 0, UINT64_MAX }, { 400, 450 }, { 0, UINT64_MAX } };
	const struct nps_sync syncs[] = { { .cover = 350, .done = 900 } };
	struct nps_bounds b[3] = { { 0 } };

	(void)state;
	nps_bounds__stream(s, t, 0, pins, 3, syncs, 1, b);
	assert_int_equal(b[0].start_low, 100);
	assert_int_equal(b[0].end_high, 450);
	assert_int_equal(b[1].start_low, 200);
	assert_int_equal(b[1].start_high, 450);
	assert_int_equal(b[1].end_low, 400);
	assert_int_equal(b[1].end_high, 900);
	assert_int_equal(b[2].start_low, 400);
	assert_int_equal(b[2].end_high, 900);
}

#define SUBS 6

/*
 * Stream 1: event 0, kernel 1, event 2, submitted 1000 apart, awaited by 50000. Stream 2: kernel 3, wait 4
 * for event 2, kernel 5, which nobody awaits.
 */
static void streams_of_two(struct nps_session *rec, struct nps_key *keys)
{
	static const struct nps_sync sync = { .cover = 10000, .done = 50000, .stream = 1 };

	nps_session__init(rec, AT_FDCWD, AT_FDCWD);
	assert_non_null(nps_session__proc(rec, 50));
	for (uint32_t i = 0; i < SUBS; i++) {
		struct nps_sub *sub = nps_vec__push(&rec->subs);

		*sub = (struct nps_sub){ .begin = 1000 * (i + 1),
					 .end = 1000 * (i + 1) + 10,
					 .stream = 1 + i / 3 };
		keys[i] = (struct nps_key){ .key = sub->begin, .row = i, .group = i / 3 };
	}
	*(struct nps_sync *)nps_vec__push(&rec->syncs) = sync;
}

static void timing(struct nps_session *rec, enum nps_timing_kind kind, uint32_t from, uint32_t to, double ns)
{
	struct nps_timing *t = nps_vec__push(&rec->timings);

	*t = (struct nps_timing){ .kind = kind,
				  .from = { from, from },
				  .to = { to, to },
				  .ns = ns,
				  .at = (uint64_t)ns,
				  .error = kind == NPS_TIMING_AT ? 1000 : 0 };
}

/* Give or take what numbers with a fraction are rounded by. */
static void assert_about(uint64_t ns, uint64_t expected)
{
	assert_in_range(ns, expected - 1, expected + 1);
}

static void events_tighten_streams(void **state)
{
	const struct nps_task *tasks[SUBS] = { NULL };
	struct nps_bounds b[SUBS] = { { 0 } };
	struct nps_key keys[SUBS];
	const struct nps_streams streams = { keys, SUBS };
	struct nps_session rec;

	(void)state;
	streams_of_two(&rec, keys);
	timing(&rec, NPS_TIMING_BETWEEN, 0, 2, 30000);
	timing(&rec, NPS_TIMING_WAIT, 2, 4, 0);
	assert_int_equal(nps_bounds__all(&rec, &streams, tasks, b), 0);
	/* 600 ppm of 30000 ns are 18 */
	assert_about(b[0].start_high, 50000 - 30000 + 18);
	assert_int_equal(b[1].end_high, 50000);
	assert_about(b[2].end_low, 1000 + 30000 - 18);
	assert_int_equal(b[3].start_low, 4000);
	assert_about(b[4].end_low, 30982); /* in the other stream */
	assert_about(b[5].start_low, 30982);
	assert_true(b[5].end_high == UINT64_MAX);
	/* a timestamp is one against another */
	rec.timings.len = 0;
	timing(&rec, NPS_TIMING_AT, 0, 0, 7000000);
	timing(&rec, NPS_TIMING_AT, 2, 2, 7030000);
	assert_int_equal(nps_bounds__all(&rec, &streams, tasks, b), 0);
	assert_about(b[0].start_high, 50000 - 30000 + 1018);
	assert_about(b[2].end_low, 1000 + 30000 - 1018);
	/* what cannot be is not believed */
	rec.timings.len = 0;
	timing(&rec, NPS_TIMING_BETWEEN, 0, 2, 90000);
	timing(&rec, NPS_TIMING_BETWEEN, 2, 0, 9e30);
	assert_int_equal(nps_bounds__all(&rec, &streams, tasks, b), 0);
	assert_true(b[0].start_high == UINT64_MAX);
	assert_int_equal(b[1].start_low, 2000);
	assert_int_equal(b[1].end_high, 50000);
	nps_session__free(&rec);
}

static void results_are_replaced_whole(void **state)
{
	struct gen_job job = { .ranks = 1, .launches = 100, .agent = true };
	struct nps_summary first, second;
	char path[8192];
	struct stat st;

	(void)state;
	gen_job(dir, &job);
	first = analyze(NPS_FORMAT_DEFAULT);
	second = analyze(NPS_FORMAT_TEXT);
	assert_string_equal(first.procs[0].path, second.procs[0].path);
	snprintf(path, sizeof(path), "%s/ASCEND_PROFILER_OUTPUT/analysis.db", second.procs[0].path);
	assert_int_equal(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "%s/ASCEND_PROFILER_OUTPUT/trace_view.json", second.procs[0].path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	nps_summary_free(&first);
	nps_summary_free(&second);
	free(job.truth);
}

/* One process, two devices, kernels of both in turn: rows and sums are each device's own. */
static void two_devices_of_one_process(void **state)
{
	char line[8192];
	struct nps_summary summary;
	struct gen gen;
	double ratio[2] = { 0 }, wait;
	unsigned int device, last = 0, rows = 0;
	FILE *file;

	(void)state;
	gen_open(&gen, dir);
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t at = GEN_T0 + 1000000 + i * 10000;

		gen_api(&gen, 4000, 4000, NPS_PROBE_LAUNCH, at, at + 3000, 0xf1, 8, 0x77 + i % 2, 0);
		gen_sqe(&gen, 4000, 4000, at + 1000, at + 2000, i % 2, NPS_SQE_AI_CORE, 2, i / 2, 8);
	}
	for (unsigned int d = 0; d < 2; d++) {
		gen_soc_open(&gen, 4000, d);
		for (uint64_t i = d; i < 20; i += 2) {
			gen_soc(&gen, 0, NPS_SQE_AI_CORE, 2, i / 2, GEN_T0 + 1000000 + i * 10000 + 4000);
			gen_soc(&gen, 1, NPS_SQE_AI_CORE, 2, i / 2, GEN_T0 + 1000000 + i * 10000 + 12000);
		}
		gen_soc_close(&gen);
		for (uint64_t i = 0; i < 4; i++)
			gen_device_clock(&gen, 4000, d, GEN_T0 + i * 500000000, 2500);
	}
	gen_clock(&gen, GEN_T0);
	gen_clock(&gen, GEN_T0 + 1000000000);
	gen_close(&gen, true, "{\"pid\": 4000, \"comm\": \"job\", \"prof_dir\": \"PROF_4000\"}",
		  "{\"id\": 0, \"freq_khz\": 50000}, {\"id\": 1, \"freq_khz\": 50000}", "null");
	summary = analyze(NPS_FORMAT_TEXT);
	assert_int_equal(summary.procs[0].measured, 20);
	snprintf(line, sizeof(line), "%s/ASCEND_PROFILER_OUTPUT/kernel_details.csv", summary.procs[0].path);
	file = fopen(line, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	while (fgets(line, sizeof(line), file)) {
		assert_int_equal(sscanf(line, "%u,%*u,%*u,%*u,%*[^,],%*[^,],%*[^,],%*[^,],%*f\t,%*f,%lf",
					&device, &wait),
				 2);
		assert_true(device >= last);
		last = device;
		assert_true(rows++ % 10 ? wait > 11.9 && wait < 12.1 : wait == 0);
	}
	fclose(file);
	assert_int_equal(rows, 20);
	snprintf(line, sizeof(line), "%s/ASCEND_PROFILER_OUTPUT/op_statistic.csv", summary.procs[0].path);
	file = fopen(line, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	while (fgets(line, sizeof(line), file)) {
		device = strtoul(line, NULL, 10);
		assert_true(device < 2);
		ratio[device] += strtod(strrchr(line, ',') + 1, NULL);
	}
	fclose(file);
	assert_true(ratio[0] == 100 && ratio[1] == 100);
	nps_summary_free(&summary);
}

static void name_thread(struct gen *gen, uint32_t pid, uint32_t tid, uint64_t at, const char *name)
{
	struct nps_string s = {
		.kind = NPS_STR_COMM, .pid = pid, .id = tid, .time = GEN_T0 + at, .len = strlen(name)
	};

	strcpy(s.text, name);
	gen_chunk(gen, 's', NPS_CHUNK_STRINGS, &s, sizeof(s));
}

/* Calls of threads, of which the helper library has some, in ns of the session. */
static const struct {
	uint32_t pid, tid;
	uint64_t at;
	bool helper;
} helper_calls[] = {
	{ 4000, 4000, 10, false },	   { 4000, 4001, 1000000000, false },
	{ 4000, 4001, 4999900000, true }, /* before it had its name */
	{ 4000, 4001, 5000100000, true },  { 4000, 4001, 7000000000, true },
	{ 4000, 4001, 9000000100, false }, { 4100, 4001, 6000000000, false },
	{ 4000, 4002, 6000000000, true },  { 4200, 4201, 7000000000, false }, /* its process has no helper */
	{ 4300, 4301, 7000000000, true }, /* it may have one: not all of its mappings are known, */
	{ 4400, 4401, 7000000000, true }, /* its loader was at work, */
	{ 4500, 4501, 7000000000, true }, /* another one that had its pid has one */
	{ 4600, 4601, 7000000000, true },
};

static void write_helper_calls(void)
{
	struct gen gen;

	gen_open(&gen, dir);
	name_thread(&gen, 4000, 4001, 500, "worker");
	name_thread(&gen, 4000, 4001, 5000000000, NPS_AGENT_COMM);
	name_thread(&gen, 4000, 4001, 9000000000, "late");
	name_thread(&gen, 4000, 4002, 6000000000, NPS_AGENT_COMM);
	name_thread(&gen, 4100, 4001, 10, "another");
	for (uint32_t pid = 4200; pid <= 4600; pid += 100)
		name_thread(&gen, pid, pid + 1, 6000000000, NPS_AGENT_COMM);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(helper_calls); i++)
		gen_event(&gen, &(struct nps_event){ .kind = NPS_EV_SYSCALL,
						     .nr = 1,
						     .pid = helper_calls[i].pid,
						     .tid = helper_calls[i].tid,
						     .start = GEN_T0 + helper_calls[i].at,
						     .dur = 10 });
	gen_clock(&gen, GEN_T0);
	gen_clock(&gen, GEN_T0 + 10000000000);
	gen_close(&gen, true,
		  "{\"pid\": 4000, \"comm\": \"job\", \"maps\": [{\"path\": \"/lib/libc.so.6\"}, {\"path\": "
		  "\"/x/libnpuscope_agent.so (deleted)\"}]}, {\"pid\": 4100, \"comm\": \"job\"}, "
		  "{\"pid\": 4200, \"comm\": \"job\", \"left_out\": [], \"maps\": [{\"path\": "
		  "\"/lib/libc.so.6\"}]}, "
		  "{\"pid\": 4300, \"comm\": \"job\", \"left_out\": [\"mappings\"], \"maps\": [{\"path\": "
		  "\"/lib/libc.so.6\"}]}, "
		  "{\"pid\": 4400, \"comm\": \"job\", \"maps\": [{\"path\": \"/bin/job\"}, {\"path\": "
		  "\"/lib/ld-linux-aarch64.so.1\"}]}, "
		  "{\"pid\": 4500, \"comm\": \"job\", \"maps\": [{\"path\": \"/x/libnpuscope_agent.so\"}, "
		  "{\"path\": \"/lib/libc-2.31.so\"}]}, "
		  "{\"pid\": 4500, \"comm\": \"job\", \"maps\": [{\"path\": \"/lib/libc-2.31.so\"}]}, "
		  "{\"pid\": 4600, \"comm\": \"job\", \"maps\": [{\"path\": \"/lib/libc.so.6\"}]}, "
		  "{\"pid\": 4600, \"comm\": \"job\", \"task_source\": \"agent\", \"maps\": [{\"path\": "
		  "\"/lib/libc.so.6\"}]}",
		  "", "null");
}

/* Those of one process are in its database, unless they are the helper's and not shown; how many it made. */
static size_t check_helper_calls(const struct nps_summary_proc *proc, bool show)
{
	sqlite3 *db = open_db(proc);
	size_t n = 0;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(helper_calls); i++) {
		char sql[256];

		if (helper_calls[i].pid != proc->pid)
			continue;
		snprintf(sql, sizeof(sql),
			 "SELECT count(*) FROM OSRT_API WHERE globalTid & 0xffffffff = %u "
			 "AND startNs = %llu",
			 helper_calls[i].tid, (unsigned long long)(GEN_REAL0 + helper_calls[i].at));
		assert_int_equal(one(db, sql), show || !helper_calls[i].helper);
		n++;
	}
	sqlite3_close(db);
	return n;
}

/*
 * The helper library's threads are left out, but not what else had a number of theirs: before, after, in
 * another process.
 */
static void threads_of_the_helper(void **state)
{
	struct nps_summary summary;

	(void)state;
	write_helper_calls();
	for (int show = 0; show < 2; show++) {
		const struct nps_analyze_opts opts = { .size = sizeof(opts),
						       .formats = NPS_FORMAT_DB,
						       .show_self = show };
		size_t n = 0;

		assert_int_equal(nps_analyze(dir, &opts, &summary), 0);
		assert_int_equal(summary.nprocs, 7);
		for (size_t p = 0; p < summary.nprocs; p++) {
			uint32_t pid = summary.procs[p].pid;

			assert_int_equal(summary.procs[p].helper_threads, show		? 0
									  : pid == 4000 ? 2
									  : pid >= 4300 ? 1
											: 0);
			n += check_helper_calls(&summary.procs[p], show);
		}
		assert_int_equal(n, NPS_ARRAY_SIZE(helper_calls));
		nps_summary_free(&summary);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(two_ranks_with_device_log),	   TEST(lost_records_become_bounds),
		TEST(a_bad_clock_still_finds_submissions), TEST(host_only_bounds_hold),
		TEST(submissions_without_an_end),	   TEST(task_ids_wrap),
		TEST(two_devices_of_one_process),	   TEST(threads_of_the_helper),
		cmocka_unit_test(bounds_of_one_stream),	   cmocka_unit_test(a_known_moment_bounds_both_ends),
		cmocka_unit_test(events_tighten_streams),  TEST(results_are_replaced_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
