/* SPDX-License-Identifier: BSD-2-Clause */
/* Whatever a session directory holds: one clear end, never a crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze.h"
#include "gen_session.h"
#include "import/session/session_reader.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *dir;
static int dirfd_;

static int setup(void **state)
{
	(void)state;
	dir = gen_temp_dir();
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dirfd_ < 0;
}

static int teardown(void **state)
{
	(void)state;
	close(dirfd_);
	gen_remove(dir);
	return 0;
}

static void write_file(const char *name, const char *text)
{
	int fd = openat(dirfd_, name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0640);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static int count(void *ctx, const struct nps_chunk *chunk, const void *payload)
{
	(void)payload;
	*(size_t *)ctx += chunk->len;
	return 0;
}

/* A session of three event chunks, 64 bytes of payload each. */
static void three_chunks(void)
{
	struct nps_event ev = { .kind = NPS_EV_API,
				.probe = NPS_PROBE_ACL_INIT,
				.pid = 5,
				.tid = 5,
				.start = GEN_T0 + 10,
				.dur = 5 };
	struct gen gen;

	gen_open(&gen, dir);
	for (int i = 0; i < 3; i++)
		gen_chunk(&gen, 'e', NPS_CHUNK_EVENTS, &ev, sizeof(ev));
	gen_clock(&gen, GEN_T0);
	gen_close(&gen, true, "{\"pid\": 5, \"comm\": \"job\", \"rank\": null}", "", NULL);
}

static void damage(const char *name, off_t at, unsigned char byte)
{
	int fd = openat(dirfd_, name, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static struct nps_chunks read_all(size_t *bytes)
{
	struct nps_chunks result;

	*bytes = 0;
	assert_int_equal(nps_chunks__read(dirfd_, "events.nps", count, bytes, &result), 0);
	return result;
}

static void good_file(void **state)
{
	struct nps_chunks result;
	size_t bytes;

	(void)state;
	three_chunks();
	result = read_all(&bytes);
	assert_int_equal(result.end, NPS_CHUNKS_COMPLETE);
	assert_int_equal(result.chunks, 3);
	assert_int_equal(bytes, 3 * sizeof(struct nps_event));
}

static void cut_anywhere(void **state)
{
	const off_t whole = sizeof(struct nps_chunk) + sizeof(struct nps_event);
	size_t bytes;

	(void)state;
	three_chunks();
	for (off_t size = 3 * whole - 1; size >= 0; size -= 7) {
		char path[600];

		snprintf(path, sizeof(path), "%s/events.nps", dir);
		assert_int_equal(truncate(path, size), 0);
		struct nps_chunks result = read_all(&bytes);

		assert_int_equal(result.end, size % whole ? NPS_CHUNKS_CUT : NPS_CHUNKS_COMPLETE);
		assert_int_equal(result.chunks, size / whole);
	}
}

static void damaged_anywhere(void **state)
{
	const off_t whole = sizeof(struct nps_chunk) + sizeof(struct nps_event);
	struct nps_chunks result;
	size_t bytes;

	(void)state;
	three_chunks();
	damage("events.nps", 2 * whole + sizeof(struct nps_chunk) + 9,
	       0xaa); /* payload of the third: checksum */
	result = read_all(&bytes);
	assert_int_equal(result.end, NPS_CHUNKS_DAMAGED);
	assert_int_equal(result.chunks, 2);
	damage("events.nps", whole + offsetof(struct nps_chunk, seq), 9); /* sequence */
	assert_int_equal(read_all(&bytes).chunks, 1);
	damage("events.nps", offsetof(struct nps_chunk, len) + 3, 0xff); /* length */
	result = read_all(&bytes);
	assert_int_equal(result.end, NPS_CHUNKS_DAMAGED);
	assert_int_equal(result.chunks, 0);
	three_chunks();
	damage("events.nps", whole + offsetof(struct nps_chunk, version), 9);
	result = read_all(&bytes);
	assert_int_equal(result.end, NPS_CHUNKS_VERSION);
	assert_int_equal(result.version, 9);
}

static void long_integers_keep_their_digits(void **state)
{
	cJSON *json;

	(void)state;
	write_file("session.json",
		   "{\"a\": 1736408883704643213, \"b\": \"x 12345678901234567890 \\\" 1\", \"c\": "
		   "-12345678901234567, "
		   "\"d\": 18446744073709551616, \"e\": 7, \"f\": 1.5, \"g\": [1736408883704643213]}");
	json = nps_session__json(dirfd_, "session.json");
	assert_non_null(json);
	assert_true(nps_json_u64(json, "a", 0) == 1736408883704643213ULL);
	assert_string_equal(nps_json_str(json, "b", ""), "x 12345678901234567890 \" 1");
	assert_int_equal(nps_json_u64(json, "c", 99), 99);
	assert_int_equal(nps_json_u64(json, "d", 99), 99);
	assert_int_equal(nps_json_u64(json, "e", 99), 7);
	assert_int_equal(nps_json_u64(json, "missing", 99), 99);
	cJSON_Delete(json);
}

static void broken_json_is_distinguished(void **state)
{
	(void)state;
	errno = 0;
	assert_null(nps_session__json(dirfd_, "session.json"));
	assert_int_equal(errno, ENOENT);
	write_file("session.json", "{\"a\": ");
	assert_null(nps_session__json(dirfd_, "session.json"));
	assert_int_equal(errno, EILSEQ);
	write_file("session.json", "12345678901234567890");
	cJSON_Delete(nps_session__json(dirfd_, "session.json"));
	assert_int_equal(symlinkat("/dev/zero", dirfd_, "zero.json"), 0);
	assert_null(nps_session__json(dirfd_, "zero.json"));
}

static int analyze(void)
{
	const struct nps_analyze_opts opts = { .size = sizeof(opts), .formats = NPS_FORMAT_TEXT };
	struct nps_summary summary;
	int err = nps_analyze(dir, &opts, &summary);

	if (!err)
		err = summary.incomplete;
	nps_summary_free(&summary);
	return err;
}

/* session.json of this program's version, with MEMBERS behind it. */
static void write_json(const char *members)
{
	char text[512];

	snprintf(text, sizeof(text), "{\"format\": \"npuscope-session\", \"version\": %d%s}",
		 NPS_SESSION_VERSION, members);
	write_file("session.json", text);
}

static void what_is_no_session_is_refused(void **state)
{
	(void)state;
	assert_int_equal(analyze(), -ENOENT);
	write_file("session.json", "[]");
	assert_int_equal(analyze(), -EPROTO);
	write_json("");
	assert_int_equal(analyze(), -EPROTO);
	write_json(", \"start\": {\"monotonic\": 18446744073709551615, \"realtime\": 5}");
	assert_int_equal(analyze(), -EPROTO);
}

/* A whole session but for the version OTHER of its events, or of its document. */
static void expect_refused(unsigned char other)
{
	char text[4096], *version;
	ssize_t len;
	int fd;

	three_chunks();
	assert_true(analyze() >= 0);
	damage("events.nps", offsetof(struct nps_chunk, version), other);
	assert_int_equal(analyze(), -EPROTO);
	three_chunks();
	fd = openat(dirfd_, "session.json", O_RDONLY | O_CLOEXEC);
	len = read(fd, text, sizeof(text) - 1);
	assert_true(len > 0);
	close(fd);
	text[len] = '\0';
	version = strstr(text, "\"version\": ");
	assert_non_null(version);
	version[strlen("\"version\": ")] = (char)('0' + other);
	write_file("session.json", text);
	assert_int_equal(analyze(), -EPROTO);
}

/* Of an older version, and of one that is not made yet. */
static void other_versions_are_refused(void **state)
{
	(void)state;
	expect_refused(1);
	expect_refused(NPS_SESSION_VERSION + 1);
}

static void nothing_was_recorded(void **state)
{
	(void)state;
	write_json(", \"complete\": false, \"end_reason\": \"starting\", \"start\": null, \"processes\": []");
	assert_int_equal(analyze(), -ENODATA);
}

/* Analyses a session with PROCESSES in session.json, and a system call of each of pids 4000 and 4001. */
static void analyze_processes(const char *processes, struct nps_summary *summary)
{
	const struct nps_analyze_opts opts = { .size = sizeof(opts) };
	struct gen gen;

	gen_open(&gen, dir);
	for (uint32_t pid = 4000; pid <= 4001; pid++)
		gen_event(&gen, &(struct nps_event){ .kind = NPS_EV_SYSCALL,
						     .pid = pid,
						     .tid = pid,
						     .start = GEN_T0 + 5000000,
						     .dur = 700 });
	gen_clock(&gen, GEN_T0);
	gen_clock(&gen, GEN_T0 + 1000000000);
	gen_close(&gen, true, processes, "", NULL);
	assert_int_equal(nps_analyze(dir, &opts, summary), 0);
}

/* Processes that exited before they were inspected have names; those without events have no results. */
static void processes_that_had_exited(void **state)
{
	struct nps_summary summary;

	(void)state;
	analyze_processes("{\"pid\": 4002, \"comm\": \"true\", \"known_from\": \"kernel\"},"
			  "{\"pid\": 4001, \"comm\": \"uname\", \"known_from\": \"kernel\"},"
			  "{\"pid\": 4000, \"comm\": \"job\", \"known_from\": \"proc\"}",
			  &summary);
	assert_int_equal(summary.nprocs, 2);
	assert_string_equal(summary.procs[0].comm, "job");
	assert_string_equal(summary.procs[1].comm, "uname");
	assert_false(summary.cut);
	nps_summary_free(&summary);
}

static void a_pid_of_two_processes(void **state)
{
	struct nps_summary summary;

	(void)state;
	analyze_processes("{\"pid\": 4000, \"comm\": \"true\", \"known_from\": \"kernel\"},"
			  "{\"pid\": 4000, \"comm\": \"job\", \"known_from\": \"proc\"},"
			  "{\"pid\": 4001, \"comm\": \"other\", \"known_from\": \"proc\"}",
			  &summary);
	assert_int_equal(summary.nprocs, 2);
	assert_string_equal(summary.procs[0].comm, "job");
	assert_true(summary.cut);
	nps_summary_free(&summary);
}

/* Bytes that helpers lost are by pid and start. */
static void losses_of_every_version_count(void **state)
{
	const struct nps_analyze_opts opts = { .size = sizeof(opts) };
	struct gen_job job = { .ranks = 1, .launches = 10, .agent = true };
	struct nps_summary summary;
	char cmd[800];

	(void)state;
	gen_job(dir, &job);
	snprintf(cmd, sizeof(cmd),
		 "sed -i 's/\"agent\": {}/\"agent\": {\"4000@7\": 5, \"4000@8\": 6, \"4000\": 70}/' "
		 "'%s/session.json'",
		 dir);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(nps_analyze(dir, &opts, &summary), 0);
	assert_int_equal(summary.agent_bytes_lost, 81);
	assert_true(summary.incomplete);
	nps_summary_free(&summary);
	free(job.truth);
}

static void a_killed_capture_is_analysed_up_to_the_cut(void **state)
{
	struct gen_job job = { .ranks = 1, .launches = 300, .agent = true };
	char path[600];
	struct stat st;

	(void)state;
	gen_job(dir, &job);
	assert_int_equal(analyze(), 0);
	snprintf(path, sizeof(path), "%s/events.nps", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size * 2 / 3), 0);
	snprintf(path, sizeof(path), "%s/PROF_4000/device_0/data/stars_soc.data.0.slice_0", dir);
	assert_int_equal(truncate(path, 64 * 100 + 17), 0);
	assert_int_equal(analyze(), 1);
	snprintf(path, sizeof(path), "%s/clocks.nps", dir);
	assert_int_equal(truncate(path, 3), 0);
	assert_int_equal(analyze(), 1);
	free(job.truth);
}

static void an_unreadable_log_is_a_loss(void **state)
{
	struct gen_job job = { .ranks = 1, .launches = 100, .agent = true };
	char path[600];

	(void)state;
	gen_job(dir, &job);
	snprintf(path, sizeof(path), "%s/PROF_4000/device_0/data/stars_soc.data.0.slice_007", dir);
	assert_int_equal(symlink("/dev/zero", path), 0); /* read by its number, 7: there is none */
	assert_int_equal(analyze(), 1);
	snprintf(path, sizeof(path), "%s/PROF_4000/device_9", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/PROF_4000/device_9/data", dir);
	assert_int_equal(symlink("/", path), 0);
	assert_int_equal(analyze(), 1);
	free(job.truth);
}

static uint32_t random_next(uint32_t *seed)
{
	return *seed = *seed * 1664525 + 1013904223;
}

/* Valid chunks of random events, random bytes for a device log, a few hundred times. */
static void hostile_events(void **state)
{
	uint32_t seed = 7;

	(void)state;
	for (int round = 0; round < 150; round++) {
		struct nps_event ev[200];
		struct gen gen;

		gen_open(&gen, dir);
		for (int i = 0; i < 200; i++) {
			unsigned char *p = (unsigned char *)&ev[i];

			for (size_t b = 0; b < sizeof(ev[i]); b++)
				p[b] = random_next(&seed) >> 24;
			ev[i].kind %= 8;
			ev[i].probe %= NPS_PROBE_MAX + 3;
			ev[i].pid %= 3;
			ev[i].tid %= 4;
			if (i % 2)
				ev[i].ret = 0;
			if (i % 8) {
				ev[i].start = GEN_T0 + ev[i].start % 1000;
				ev[i].dur %= 300;
			}
			for (int slot = 0; slot < 4; slot++)
				if (i % 3)
					ev[i].call.slot[slot] &= 0x0003000300030003ULL;
		}
		gen_chunk(&gen, 'e', NPS_CHUNK_EVENTS, ev, sizeof(ev));
		gen_chunk(&gen, 'e', 77, ev, 11);
		gen_chunk(&gen, 's', NPS_CHUNK_STRINGS, ev, sizeof(struct nps_string) * 30);
		gen_chunk(&gen, 'c', NPS_CHUNK_CLOCKS, ev, sizeof(struct nps_clock) * 30);
		gen_device_clock(&gen, 1, 1, GEN_T0, 1000);
		gen_soc_open(&gen, 1, 1);
		for (int i = 0; i < 60; i++)
			gen_soc(&gen, random_next(&seed) >> 20 & 0x23, random_next(&seed) >> 20 & 63,
				random_next(&seed) >> 16, random_next(&seed) >> 16,
				GEN_T0 + random_next(&seed) % 5000);
		fwrite(ev, 1, 1000, gen.soc);
		gen_soc_close(&gen);
		gen_close(&gen, round % 2,
			  "{\"pid\": 1, \"prof_dir\": \"PROF_1\", \"rank\": 99999999999, \"task_source\": 5, "
			  "\"env\": []}, {\"pid\": -4}, 7",
			  "{\"id\": 1, \"freq_khz\": 1, \"chip\": {}}, null, {\"id\": 999}", "\"x@4\"");
		assert_true(analyze() >= 0);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(good_file),
		TEST(cut_anywhere),
		TEST(damaged_anywhere),
		TEST(long_integers_keep_their_digits),
		TEST(broken_json_is_distinguished),
		TEST(what_is_no_session_is_refused),
		TEST(other_versions_are_refused),
		TEST(nothing_was_recorded),
		TEST(processes_that_had_exited),
		TEST(a_pid_of_two_processes),
		TEST(a_killed_capture_is_analysed_up_to_the_cut),
		TEST(losses_of_every_version_count),
		TEST(an_unreadable_log_is_a_loss),
		TEST(hostile_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
