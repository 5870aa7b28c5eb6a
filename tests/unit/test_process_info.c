/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/session/import_process.h"

/* profiler_info's level and activities of a session whose `request` is REQUEST. */
static void expect(const char *request, const char *level, unsigned int number, int activities)
{
	const cJSON *config, *common, *experimental;
	struct nps_session rec;
	struct nps_model model;

	nps_session__init(&rec, AT_FDCWD, AT_FDCWD);
	assert_non_null(nps_session__proc(&rec, 50));
	rec.json = cJSON_Parse(request);
	assert_non_null(rec.json);
	assert_int_equal(nps_model__init(&model, AT_FDCWD, NULL), 0);
	assert_int_equal(nps_import__process(&model, &rec, 0), 0);
	assert_int_equal(model.level, number);
	config = cJSON_GetObjectItemCaseSensitive(model.info, "config");
	common = cJSON_GetObjectItemCaseSensitive(config, "common_config");
	experimental = cJSON_GetObjectItemCaseSensitive(config, "experimental_config");
	assert_string_equal(
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(experimental, "_profiler_level")),
		level);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(common, "activities")),
			 activities);
	nps_model__free(&model);
	nps_session__free(&rec);
}

static void what_was_requested(void **state)
{
	(void)state;
	expect("{\"request\":{\"level\":2,\"activities\":\"cpu,npu,osrt\"}}", "Level2", 2, 2);
	expect("{\"request\":{\"level\":1,\"activities\":\"npu\"}}", "Level1", 1, 1);
	expect("{\"request\":{\"level\":77,\"activities\":7}}", "Level1", 1, 2);
	expect("{}", "Level1", 1, 2); /* older */
}

static const cJSON *item(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* profiler_info lists what the session used, not what is usual. */
static void what_was_used(void **state)
{
	static const char session[] =
		"{\"request\":{\"level\":1,\"activities\":\"cpu,npu\",\"mstx\":true,\"l2_cache\":true,\"sys_"
		"io\":true,"
		"\"sys_interconnection\":false,\"record_shapes\":true,\"with_stack\":true,\"host_sys\":["
		"\"cpu\",\"osrt\"]},"
		"\"devices\":[{\"id\":0,\"aic_metrics\":\"Memory\"},{\"id\":3,\"aic_metrics\":\"L2Cache\"}]}";
	const cJSON *config, *common, *more;
	struct nps_session rec;
	struct nps_model model;
	size_t row = 0;

	(void)state;
	nps_session__init(&rec, AT_FDCWD, AT_FDCWD);
	assert_non_null(nps_session__proc(&rec, 50));
	rec.procs[0].devices = 1 << 3;
	rec.json = cJSON_Parse(session);
	assert_non_null(rec.json);
	assert_int_equal(nps_model__init(&model, AT_FDCWD, NULL), 0);
	assert_int_equal(nps_table__add(&model.job_memory.t, &row), 0);
	assert_int_equal(nps_import__process_info(&model, &rec, 0), 0);
	config = item(model.info, "config");
	common = item(config, "common_config");
	more = item(config, "experimental_config");
	assert_string_equal(cJSON_GetStringValue(item(more, "_aic_metrics")), "ACL_AICORE_L2_CACHE");
	assert_true(cJSON_IsTrue(item(more, "_l2_cache")));
	assert_true(cJSON_IsTrue(item(more, "_mstx")));
	assert_true(cJSON_IsTrue(item(more, "_sys_io")));
	assert_true(cJSON_IsFalse(item(more, "_sys_interconnection")));
	assert_int_equal(cJSON_GetArraySize(item(more, "_host_sys")), 2);
	assert_true(cJSON_IsTrue(item(common, "record_shapes")));
	assert_true(cJSON_IsTrue(item(common, "profile_memory")));
	assert_true(cJSON_IsFalse(item(common, "with_stack"))); /* npuscope has none of Python's */
	nps_model__free(&model);
	nps_session__free(&rec);
}

/*
 * Kernels that the job registered before the capture are counted: by names,
 * and by shapes if these were requested.
 */
static void kernels_from_before_the_attach(void **state)
{
	static const char *const names[] = { "kernel@0x7f00", "aclnnMatmul_MatMulV2" };
	struct nps_session rec;
	struct nps_model model;

	(void)state;
	for (int requested = 0; requested < 2; requested++) {
		nps_session__init(&rec, AT_FDCWD, AT_FDCWD);
		assert_non_null(nps_session__proc(&rec, 50));
		rec.json = cJSON_Parse(requested ? "{\"request\":{\"record_shapes\":true}}" : "{}");
		for (size_t i = 0; i < 2; i++) {
			struct nps_task *task = nps_vec__push(&rec.tasks);

			assert_non_null(task);
			*task = (struct nps_task){ .start = 10 + i,
						   .end = 20 + i,
						   .conn = NPS_NONE,
						   .context = NPS_NO_ID,
						   .name = nps_strings__addz(&rec.strings, names[i]),
						   .type = nps_strings__addz(&rec.strings, "N/A"),
						   .comm = NPS_NONE,
						   .step = NPS_NONE,
						   .bounds = NPS_NONE,
						   .operands = NPS_NONE,
						   .pmu = NPS_NONE,
						   .kind = NPS_TASK_COMPUTE };
		}
		rec.procs[0].tasks = 2;
		rec.procs[0].unseen_executors = 5;
		assert_int_equal(nps_model__init(&model, AT_FDCWD, &rec.strings), 0);
		assert_int_equal(nps_import__process(&model, &rec, 0), 0);
		assert_int_equal(model.compute.t.len, 2);
		assert_int_equal(model.unnamed_kernels, 1);
		assert_int_equal(model.shapeless_kernels, requested ? 2 : 0);
		nps_model__free(&model);
		nps_session__free(&rec);
	}
}

/* Each cause is reported, none that was not there. */
static void causes_of_what_is_missing(void **state)
{
#define REGISTERED "the job registered them before npuscope was attached to it"
#define PHASES "3 executors ran whose first phase came before npuscope was attached to it"
#define LOST "7 records were lost (--ring-size)"
#define STARTED "{\"request\":{\"pids\":[],\"all\":false}"
#define DROPPED "\"cost\":{\"given_up\":[{\"what\":\"detail\"},{\"what\":\"names\"}]}}"
	static const struct {
		const char *json;
		uint64_t executors, phases, marks;
		const char *unnamed, *shapeless;
	} made[] = {
		{ "{}", 0, 0, 0, REGISTERED, "" },
		{ "{}", 5, 0, 0, REGISTERED,
		  "the job's cache of executors answered 5 times with one from before npuscope was attached "
		  "to it" },
		{ "{}", 0, 3, 0, REGISTERED, PHASES },
		{ "{}", 0, 3, 7, REGISTERED "; " LOST, LOST },
		/* Another process' losses: what this one lacks it would lack without them. */
		{ "{}", 0, 0, 7, REGISTERED "; " LOST, "" },
		{ "{" DROPPED, 0, 3, 0, REGISTERED "; names of kernels were given up (--max-overhead)",
		  "their records were given up (--max-overhead)" },
		/*
		 * Nothing comes before a job that npuscope starts, or before a process that the job starts.
		 */
		{ STARTED "}", 0, 3, 0, "what registered them was not probed yet, or not by npuscope", "" },
		{ STARTED "}", 0, 3, 7, LOST, LOST },
		{ STARTED "," DROPPED, 0, 3, 0, "names of kernels were given up (--max-overhead)",
		  "their records were given up (--max-overhead)" },
		{ "{\"request\":{\"pids\":[50]},\"capture\":{\"begin_monotonic\":\"9\"}}", 0, 3, 0,
		  REGISTERED, PHASES },
		{ "{\"request\":{\"pids\":[50]},\"capture\":{\"begin_monotonic\":\"8\"}}", 0, 3, 0,
		  "what registered them was not probed yet, or not by npuscope", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		struct nps_session rec;
		struct nps_model model;
		cJSON *proc;

		nps_session__init(&rec, AT_FDCWD, AT_FDCWD);
		assert_non_null(nps_session__proc(&rec, 50));
		rec.json = cJSON_Parse(made[i].json);
		assert_non_null(rec.json);
		proc = cJSON_Parse("{\"start_monotonic\":\"9\"}");
		rec.procs[0].json = proc;
		rec.procs[0].unseen_executors = made[i].executors;
		rec.procs[0].unseen_phases = made[i].phases;
		rec.losses.ring[NPS_EV_MARK] = made[i].marks;
		assert_int_equal(nps_model__init(&model, AT_FDCWD, &rec.strings), 0);
		assert_int_equal(nps_import__process(&model, &rec, 0), 0);
		assert_string_equal(model.why_unnamed, made[i].unnamed);
		assert_string_equal(model.why_shapeless, made[i].shapeless);
		nps_model__free(&model);
		nps_session__free(&rec);
		cJSON_Delete(proc);
	}
}

/* One entry that is no directory does not take the rest of the result with it. */
static void samples_that_cannot_be_read_are_left_out(void **state)
{
	char dir[] = "/tmp/nps_unit_XXXXXX", command[64];
	struct nps_session rec;
	struct nps_model model;
	int dirfd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(dirfd, "PROF_1", 0700), 0);
	close(openat(dirfd, "PROF_1/device_0", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	nps_session__init(&rec, dirfd, dirfd);
	assert_non_null(nps_session__proc(&rec, 50));
	rec.json =
		cJSON_Parse("{\"device_sampler\": {\"devices\": [{\"id\": 0, \"segments\": [{\"prof_dir\": "
			    "\"PROF_1\"}, {\"prof_dir\": \"PROF_2\"}, {\"prof_dir\": \"PROF_2\"}]}]}}");
	assert_non_null(rec.json);
	rec.npu.requested = true;
	assert_int_equal(nps_model__init(&model, dirfd, NULL), 0);
	assert_int_equal(nps_import__process(&model, &rec, 0), 0);
	assert_int_equal(model.losses.len, 1);
	assert_int_equal(NPS_AT(&model.losses, struct nps_lost, 0).count, 2);
	nps_model__free(&model);
	nps_session__free(&rec);
	close(dirfd);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/*
 * What the session reports that it lost of the devices' samples, and where the times of its tasks are from.
 */
static void losses_and_sources_are_reported(void **state)
{
	struct nps_session rec;
	struct nps_model model;
	const cJSON *own;

	(void)state;
	nps_session__init(&rec, AT_FDCWD, AT_FDCWD);
	rec.json = cJSON_Parse("{\"processes\": [{\"task_source\": \"profiler\"}], \"device_sampler\": {}}");
	assert_non_null(rec.json);
	nps_session__proc(&rec, 50)->json =
		cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(rec.json, "processes"), 0);
	rec.npu.requested = true;
	rec.losses.device_samples = 77;
	assert_int_equal(nps_model__init(&model, AT_FDCWD, NULL), 0);
	assert_int_equal(nps_import__process(&model, &rec, 0), 0);
	own = cJSON_GetObjectItemCaseSensitive(model.metadata, "npuscope");
	assert_string_equal(cJSON_GetObjectItemCaseSensitive(own, "task_source")->valuestring, "profiler");
	assert_int_equal(model.losses.len, 1);
	assert_int_equal(NPS_AT(&model.losses, struct nps_lost, 0).count, 77);
	own = cJSON_GetObjectItemCaseSensitive(own, "drops");
	assert_string_equal(cJSON_GetObjectItemCaseSensitive(own, "device_samples")->valuestring, "77");
	nps_model__free(&model);
	nps_session__free(&rec);
}

/* SESSION has one process: what its host is called in results. */
static void expect_host(const char *session, const char *name)
{
	struct nps_session rec;
	struct nps_model model;

	nps_session__init(&rec, AT_FDCWD, AT_FDCWD);
	rec.json = cJSON_Parse(session);
	assert_non_null(rec.json);
	nps_session__proc(&rec, 50)->json =
		cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(rec.json, "processes"), 0);
	assert_int_equal(nps_model__init(&model, AT_FDCWD, NULL), 0);
	assert_int_equal(nps_import__process(&model, &rec, 0), 0);
	assert_string_equal(nps_model__text(&model, model.host_name), name);
	nps_model__free(&model);
	nps_session__free(&rec);
}

/* A process in a UTS namespace of which nobody knows the name is not on the host that npuscope ran on. */
static void the_host_of_a_process(void **state)
{
	(void)state;
	expect_host("{\"host\": {\"name\": \"ours\"}, \"processes\": [{\"host_name\": \"its\"}]}", "its");
	expect_host("{\"host\": {\"name\": \"ours\"}, \"processes\": [{\"host_name\": null}]}", "unknown");
	expect_host("{\"host\": {\"name\": \"ours\"}, \"processes\": [{\"host_name\": 5}]}", "unknown");
	expect_host("{\"host\": {\"name\": \"ours\"}, \"processes\": [{}]}", "ours"); /* of an old version */
}

/* Is the overhead of a session whose costs come from SOURCE reported as an estimate? */
static void expect_estimated(const char *source, bool estimated)
{
	struct nps_session rec;
	struct nps_model model;
	const cJSON *own;
	char text[128];

	snprintf(text, sizeof(text), "{\"cost\": {\"source\": %s, \"overhead_percent\": 2.5}}", source);
	nps_session__init(&rec, AT_FDCWD, AT_FDCWD);
	assert_non_null(nps_session__proc(&rec, 50));
	rec.json = cJSON_Parse(text);
	assert_non_null(rec.json);
	assert_int_equal(nps_model__init(&model, AT_FDCWD, NULL), 0);
	assert_int_equal(nps_import__process(&model, &rec, 0), 0);
	own = cJSON_GetObjectItemCaseSensitive(model.metadata, "npuscope");
	assert_true(cJSON_GetObjectItemCaseSensitive(own, "overhead_percent_of_cpu_time")->valuedouble ==
		    2.5);
	assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(own, "overhead_is_estimated")),
			 estimated);
	nps_model__free(&model);
	nps_session__free(&rec);
}

static void estimates_are_reported(void **state)
{
	(void)state;
	expect_estimated("\"estimated\"", true);
	expect_estimated("\"measured\"", false);
	expect_estimated("\"cached\"", false);
	expect_estimated("7", false); /* of no session of ours */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_requested),
		cmocka_unit_test(what_was_used),
		cmocka_unit_test(kernels_from_before_the_attach),
		cmocka_unit_test(causes_of_what_is_missing),
		cmocka_unit_test(samples_that_cannot_be_read_are_left_out),
		cmocka_unit_test(losses_and_sources_are_reported),
		cmocka_unit_test(estimates_are_reported),
		cmocka_unit_test(the_host_of_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
