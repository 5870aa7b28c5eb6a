/* SPDX-License-Identifier: BSD-2-Clause */
/* What the session writer leaves on disk, read back byte by byte; and a disk that is full. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "capture/channel_files.h"
#include "core/session_end.h"
#include "core/session_writer.h"
#include "driver/prof_files.h"

static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/nps_unit_XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char cmd[96];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd);
}

static size_t slurp(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(buf, 1, size, f);
	fclose(f);
	return n;
}

static void chunks_and_modes(void **state)
{
	char path[PATH_MAX + 64], buf[4096];
	struct nps_session_writer s;
	struct nps_chunk c;
	struct stat st;

	(void)state;
	assert_int_equal(nps_session_writer__create(dir, &s), 0);
	assert_int_equal(stat(s.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(nps_stream__append(&s.events, NPS_CHUNK_EVENTS, 3, "first", 5), 0);
	assert_int_equal(nps_stream__append(&s.events, NPS_CHUNK_LOSS, 0, "second!", 7), 0);
	snprintf(path, sizeof(path), "%s/events.nps", s.path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(slurp(path, buf, sizeof(buf)), 2 * sizeof(c) + 12);
	memcpy(&c, buf, sizeof(c));
	assert_int_equal(c.magic, NPS_CHUNK_MAGIC);
	assert_int_equal(c.version, NPS_SESSION_VERSION);
	assert_int_equal(c.type, NPS_CHUNK_EVENTS);
	assert_int_equal(c.seq, 0);
	assert_int_equal(c.len, 5);
	assert_int_equal(c.cpu, 3);
	assert_int_equal(c.crc, crc32(0, (const unsigned char *)"first", 5));
	memcpy(&c, buf + sizeof(c) + 5, sizeof(c));
	assert_int_equal(c.seq, 1);
	assert_memory_equal(buf + 2 * sizeof(c) + 5, "second!", 7);
	nps_session_writer__close(&s);
}

static void json_is_replaced_whole(void **state)
{
	char path[PATH_MAX + 64], buf[4096] = "";
	struct nps_session_writer s;
	cJSON *j = cJSON_CreateObject();

	(void)state;
	assert_int_equal(nps_session_writer__create(dir, &s), 0);
	cJSON_AddStringToObject(j, "a", "a rather long text that the second version does not have");
	assert_int_equal(nps_session_writer__write_json(&s, j, true), 0);
	cJSON_Delete(j);
	j = cJSON_CreateObject();
	cJSON_AddNumberToObject(j, "b", 1);
	assert_int_equal(nps_session_writer__write_json(&s, j, true), 0);
	cJSON_Delete(j);
	snprintf(path, sizeof(path), "%s/session.json", s.path);
	slurp(path, buf, sizeof(buf));
	assert_null(strstr(buf, "rather"));
	assert_non_null(strstr(buf, "\"b\""));
	snprintf(path, sizeof(path), "%s/session.json.new", s.path);
	assert_int_not_equal(access(path, F_OK), 0);
	nps_session_writer__close(&s);
}

static void links_are_refused(void **state)
{
	struct nps_session_writer s;
	char link[96], file[96];

	(void)state;
	snprintf(link, sizeof(link), "%s/link", dir);
	snprintf(file, sizeof(file), "%s/file", dir);
	assert_int_equal(symlink(dir, link), 0);
	assert_int_equal(nps_session_writer__create(link, &s), -ELOOP);
	close(creat(file, 0640));
	assert_int_equal(nps_session_writer__create(file, &s), -ENOTDIR);
	assert_int_equal(nps_session_writer__create("/nonexistent/a/b", &s), -ENOENT);
}

/* A limit on the file size stands for the full disk: the chunk that does not fit leaves no trace. */
static void full_disk_keeps_whole_chunks(void **state)
{
	struct rlimit old, small = { 4096, RLIM_INFINITY };
	static char payload[3000];
	char path[PATH_MAX + 64];
	struct nps_session_writer s;
	struct stat st;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(nps_session_writer__create(dir, &s), 0);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(nps_stream__append(&s.events, NPS_CHUNK_EVENTS, 0, payload, sizeof(payload)), 0);
	assert_int_equal(nps_stream__append(&s.events, NPS_CHUNK_EVENTS, 0, payload, sizeof(payload)),
			 -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(nps_stream__append(&s.events, NPS_CHUNK_EVENTS, 0, "x", 1), -EFBIG);
	assert_int_equal(nps_session_writer__error(&s), -EFBIG);
	snprintf(path, sizeof(path), "%s/events.nps", s.path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, sizeof(struct nps_chunk) + sizeof(payload));
	nps_session_writer__close(&s);
}

/* Whoever finds the directory finds session.json: it is the first file. */
static void json_comes_first(void **state)
{
	char path[PATH_MAX + 64], buf[4096] = "";
	struct nps_session_writer s;
	cJSON *j = cJSON_CreateObject();

	(void)state;
	cJSON_AddStringToObject(j, "end_reason", "starting");
	assert_int_equal(nps_session_writer__create_with(dir, j, &s), 0);
	cJSON_Delete(j);
	snprintf(path, sizeof(path), "%s/session.json", s.path);
	slurp(path, buf, sizeof(buf));
	assert_non_null(strstr(buf, "starting"));
	nps_session_writer__close(&s);
}

static void a_failed_write_is_noted(void **state)
{
	struct nps_session_end e = { 0 };
	struct nps_prof_file file;
	struct nps_session_writer s;
	char path[PATH_MAX + 64];

	(void)state;
	assert_int_equal(nps_session_writer__create(dir, &s), 0);
	assert_int_equal(nps_session_end__check(&s, &e), 0);
	assert_false(e.lost);
	/* where a directory of the log has to be there is a file */
	snprintf(path, sizeof(path), "%s/PROF", s.path);
	close(creat(path, 0640));
	assert_int_equal(nps_prof_file__init(&file, "PROF", 0, "stars_soc.data", 0), 0);
	assert_int_equal(nps_prof_file__write(&file, &s, "x", 1), -ENOTDIR);
	assert_int_equal(nps_prof__put(&s, "PROF/host/info.json", "{}"), -ENOTDIR);
	assert_int_equal(nps_prof_file__finish(&file, &s), 0);
	assert_int_equal(atomic_load(&s.failures), 2);
	assert_int_equal(s.failed_error, -ENOTDIR);
	assert_string_equal(s.failed_path, "PROF/device_0/data/stars_soc.data.0.slice_0");
	assert_int_equal(nps_session_end__check(&s, &e), 0);
	assert_true(e.lost);
	nps_session_writer__close(&s);
}

/*
 * Some file systems report what they could not write when the file is closed,
 * which may be long before its slice ends.
 */
static void a_failed_close_is_noted(void **state)
{
	struct nps_prof_file file;
	struct nps_session_writer s;

	(void)state;
	assert_int_equal(nps_session_writer__create(dir, &s), 0);
	assert_int_equal(nps_prof_file__init(&file, "PROF", 0, "stars_soc.data", 0), 0);
	assert_int_equal(nps_prof_file__pause(&file, &s), 0); /* there is nothing to be closed */
	assert_int_equal(nps_prof_file__write(&file, &s, "x", 1), 0);
	assert_int_equal(nps_prof_file__pause(&file, &s), 0);
	assert_int_equal(atomic_load(&s.failures), 0);
	assert_int_equal(nps_prof_file__write(&file, &s, "x", 1), 0);
	close(file.fd); /* so that the next close(2) of it fails */
	assert_int_equal(nps_prof_file__pause(&file, &s), -EBADF);
	assert_int_equal(atomic_load(&s.failures), 1);
	assert_int_equal(s.failed_error, -EBADF);
	assert_string_equal(s.failed_path, "PROF/device_0/data/stars_soc.data.0.slice_0");
	assert_int_equal(nps_prof_file__write(&file, &s, "yz", 2), 0);
	assert_int_equal(nps_prof_file__finish(&file, &s), 0);
	/* What may lack bytes is not marked as complete, what came after it is. */
	assert_int_equal(faccessat(s.dir_fd, "PROF/device_0/data/stars_soc.data.0.slice_0.done", F_OK, 0),
			 -1);
	assert_int_equal(faccessat(s.dir_fd, "PROF/device_0/data/stars_soc.data.0.slice_1.done", F_OK, 0), 0);
	nps_session_writer__close(&s);
}

/* A slice that the disk had no room for ends with a whole record, and goes on with one. */
static void full_disk_keeps_whole_records(void **state)
{
	struct rlimit old, small = { 4096, RLIM_INFINITY };
	static char payload[3000];
	char path[PATH_MAX + 64];
	struct nps_prof_file file;
	struct nps_session_writer s;
	struct stat st;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(nps_session_writer__create(dir, &s), 0);
	assert_int_equal(nps_prof_file__init(&file, "PROF", 0, "stars_soc.data", 0), 0);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(nps_prof_file__write(&file, &s, payload, sizeof(payload)), 0);
	assert_int_equal(nps_prof_file__write(&file, &s, payload, sizeof(payload)), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(nps_prof_file__write(&file, &s, payload, 64), 0);
	assert_int_equal(nps_prof_file__finish(&file, &s), 0);
	snprintf(path, sizeof(path), "%s/PROF/device_0/data/stars_soc.data.0.slice_0", s.path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, sizeof(payload) + 64);
	nps_session_writer__close(&s);
}

/*
 * Of a device's log, of which the disk had no room for a part, all that is
 * there are whole records in their order.
 */
static void full_disk_keeps_the_log_aligned(void **state)
{
	const struct nps_channel_at at = { .channel = 50, .reader = NPS_READ_BY_AGENT };
	struct rlimit old, small = { 4096, RLIM_INFINITY };
	struct nps_log_budget budget;
	struct nps_channel_files *files;
	struct nps_channel_at next = at;
	static uint8_t records[128 * 64];
	char path[PATH_MAX + 128];
	uint8_t found[sizeof(records)];
	struct nps_session_writer s;
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(records); i++)
		records[i] = (uint8_t)(i / 64);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(nps_session_writer__create(dir, &s), 0);
	nps_log_budget__init(&budget, &s, 1ULL << 30, NPS_LOG_RATE);
	files = nps_channel_files__new(getpid(), &s, &budget);
	assert_int_equal(nps_channel_files__put(files, &next, records, 100), 0); /* a record and a part */
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	next.position = 100;
	assert_int_equal(nps_channel_files__put(files, &next, records + 100, 5000), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	next.position = 5100;
	assert_int_equal(nps_channel_files__put(files, &next, records + 5100, 1000), -EFBIG);
	nps_channel_files__finish(files);
	snprintf(path, sizeof(path), "%s/%s/device_0/data/stars_soc.data.0.slice_0", s.path,
		 nps_channel_files__dir(files));
	n = slurp(path, (char *)found, sizeof(found));
	assert_int_equal(n % 64, 0);
	assert_memory_equal(found, records, n);
	nps_channel_files__free(files);
	nps_log_budget__free(&budget);
	nps_session_writer__close(&s);
}

static void directory_is_found_again(void **state)
{
	char old[PATH_MAX], other[96], cmd[PATH_MAX + 16];
	struct nps_session_end e = { 0 };
	struct nps_session_writer s;

	(void)state;
	assert_int_equal(nps_session_writer__create(dir, &s), 0);
	assert_int_equal(nps_session_writer__locate(&s), NPS_SESSION_THERE);
	snprintf(old, sizeof(old), "%s", s.path);
	snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(rename(old, other), 0);
	assert_int_equal(mkdir(old, 0750), 0); /* another user's, instead of it */
	assert_int_equal(nps_session_writer__locate(&s), NPS_SESSION_MOVED);
	assert_string_equal(s.path, other);
	assert_false(nps_session_writer__is_deleted(&s));
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", other);
	assert_int_equal(system(cmd), 0);
	assert_true(nps_session_writer__is_deleted(&s));
	assert_int_equal(nps_session_writer__locate(&s), NPS_SESSION_DELETED);
	assert_int_equal(nps_session_end__check(&s, &e), -ENOENT);
	nps_session_writer__close(&s);
}

static void json_error_is_reported(void **state)
{
	struct nps_session_end first = { .json_error = -EIO },
			       later = { .json_error = -EIO, .described = true };
	struct nps_session_writer s;

	(void)state;
	assert_int_equal(nps_session_writer__create(dir, &s), 0);
	assert_int_equal(nps_session_end__check(&s, &first), -EIO);
	assert_int_equal(nps_session_end__check(&s, &later), 0);
	assert_true(later.lost);
	nps_session_writer__close(&s);
}

static void discarded_whole(void **state)
{
	struct nps_session_writer s;
	int fd;

	(void)state;
	assert_int_equal(nps_session_writer__create(dir, &s), 0);
	fd = nps_session_writer__open_file(&s, "PROF_000001/device_0/data/stars_soc.data.0.slice_0");
	assert_true(fd >= 0);
	close(fd);
	close(openat(s.dir_fd, "session.json.new", O_CREAT | O_WRONLY, 0640));
	nps_session_writer__discard(&s);
	assert_int_not_equal(access(s.path, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(chunks_and_modes, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(json_is_replaced_whole, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(links_are_refused, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(full_disk_keeps_whole_chunks, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(json_comes_first, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_failed_write_is_noted, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_failed_close_is_noted, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(full_disk_keeps_whole_records, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(full_disk_keeps_the_log_aligned, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(directory_is_found_again, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(json_error_is_reported, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(discarded_whole, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
