/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels of devices, read from a driver that is made here: it splits records where it likes, overwrites,
 * fails. What is in the files is compared with what the driver delivered.
 */
#include "driver/device_report.h"
#include "sources/device/device_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE (1U << 20)

/* --- a driver ---------------------------------------------------------------------------------------- */

static struct {
	uint8_t data[4 * SIZE];
	size_t len, at;
	int start_code, read_code, stop_code;
	struct nps_worker_start start;
	uint8_t params[128];
	uint32_t params_size;
	unsigned int channel, starts, stops;
} driver;

static int fake_start(const struct nps_worker_request *r, const struct nps_worker_start *start)
{
	size_t size = r->size - sizeof(*start);

	driver.start = *start;
	driver.channel = r->channel;
	driver.starts++;
	assert_true(size <= sizeof(driver.params));
	memset(driver.params, 0, sizeof(driver.params));
	memcpy(driver.params, start + 1, size);
	driver.params_size = (uint32_t)size;
	return driver.start_code;
}

/* At most a third of what is requested, ending anywhere. */
static int fake_read(unsigned int size, char *buf)
{
	size_t n = driver.len - driver.at, most = 1 + (size_t)rand() % (size / 3);

	if (driver.read_code)
		return driver.read_code;
	n = n < most ? n : most;
	memcpy(buf, driver.data + driver.at, n);
	driver.at += n;
	return (int)n;
}

static int fake_exchange(const struct nps_device_lib *of, enum nps_worker_library library,
			 const struct nps_worker_request *r, const void *payload,
			 struct nps_worker_reply *reply, void *data)
{
	(void)of;
	assert_int_equal(library, NPS_WORKER_HAL);
	assert_int_equal(r->device, 3);
	*reply = (struct nps_worker_reply){ .op = r->op };
	if (r->op == NPS_WORKER_START) {
		reply->code = fake_start(r, payload);
		return 0;
	}
	assert_int_equal(r->channel, driver.channel);
	if (r->op == NPS_WORKER_READ) {
		reply->code = fake_read(r->room, data);
		reply->size = reply->code > 0 ? (uint32_t)reply->code : 0;
	} else if (r->op == NPS_WORKER_STOP) {
		driver.stops++;
		reply->code = driver.stop_code;
	} else {
		reply->code = NPS_WORKER_NO_FUNCTION;
	}
	return 0;
}

static const struct nps_device_lib lib = { .exchange = fake_exchange };

/* --- a session and a stream -------------------------------------------------------------------------- */

struct position {
	struct nps_session_writer session;
	char root[64];
	struct nps_device_info info;
	struct nps_device_opts opts;
	struct nps_device_stream stream;
	char buf[64U << 10];
};

static const struct nps_channel *channel(unsigned int id)
{
	const struct nps_channel *ch;

	for (size_t i = 0; (ch = nps_channel__at(i)); i++)
		if (ch->id == id)
			return ch;
	fail();
	return NULL;
}

static int setup(void **state)
{
	struct position *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	memset(&driver, 0, sizeof(driver));
	srand(1);
	snprintf(p->root, sizeof(p->root), "/tmp/npuscope-stream.XXXXXX");
	assert_non_null(mkdtemp(p->root));
	p->session.dir_fd = open(p->root, O_RDONLY | O_DIRECTORY);
	assert_true(p->session.dir_fd >= 0);
	p->info = (struct nps_device_info){
		.id = 3, .platform = NPS_PLATFORM_910B, .counter_khz = 50000, .aic_cores = 24, .aiv_cores = 48
	};
	p->opts = (struct nps_device_opts){ .memory = true,
					    .links = true,
					    .io = true,
					    .metric = NPS_AIC_PIPE,
					    .llc = 'r',
					    .io_hz = 100,
					    .links_hz = 50,
					    .memory_hz = 50,
					    .aic_hz = 100 };
	*state = p;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct position *p = *state;

	close(p->session.dir_fd);
	nftw(p->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(p);
	return 0;
}

static void start(struct position *p, unsigned int id)
{
	p->stream = (struct nps_device_stream){ .ch = channel(id) };
	assert_int_equal(nps_device_stream__start(&p->stream, &lib, &p->opts, &p->info, "PROF_1"), 0);
	assert_int_equal(p->stream.state, NPS_STREAM_OPEN);
}

static void drain_and_stop(struct position *p)
{
	int disk = 0;

	/* A drain is bounded: the next one goes on. */
	while (driver.at < driver.len)
		assert_int_equal(nps_device_stream__drain(&p->stream, &lib, &p->info, &p->session, p->buf,
							  sizeof(p->buf), &disk),
				 0);
	assert_int_equal(nps_device_stream__stop(&p->stream, &lib, &p->info, &p->session, p->buf,
						 sizeof(p->buf), &disk),
			 0);
	assert_int_equal(disk, 0);
	assert_int_equal(driver.stops, 1);
}

/* The slices of the stream's file, one behind the other; *SLICES: how many, each with its .done. */
static size_t contents(const struct position *p, const char *file, uint8_t *data, size_t room,
		       unsigned int *slices)
{
	char path[256], done[300];
	size_t len = 0;
	ssize_t n;
	int fd;

	for (*slices = 0;; ++*slices) {
		snprintf(path, sizeof(path), "%s/PROF_1/device_3/data/%s.3.slice_%u", p->root, file, *slices);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			return len;
		while ((n = read(fd, data + len, room - len)) > 0)
			len += (size_t)n;
		close(fd);
		snprintf(done, sizeof(done), "%s.done", path);
		assert_int_equal(access(done, R_OK), 0);
	}
}

static void put(size_t at, unsigned int width, uint64_t value)
{
	for (unsigned int i = 0; i < width; i++)
		driver.data[at + i] = (uint8_t)(value >> 8 * i);
}

static void hbm_record(size_t at, uint64_t i)
{
	put(at, 8, 1000 * (1 + i / 4));
	put(at + 8, 8, i * 77);
	put(at + 16, 4, i & 1);
	put(at + 20, 4, i >> 1 & 1);
}

static void stars_record(size_t at, uint64_t i)
{
	put(at, 2, 0x1a | (i & 0xf) << 6);
	put(at + 2, 2, 0x6bd3);
	put(at + 8, 8, 1000000 + i * 1000000);
	put(at + 32, 8, i);
}

/* --- tests ------------------------------------------------------------------------------------------- */

static void records_arrive_whole_and_in_order(void **state)
{
	struct position *p = *state;
	uint8_t *got = malloc(4 * SIZE);
	unsigned int slices;

	assert_non_null(got);
	for (driver.len = 0; driver.len + 24 <= sizeof(driver.data); driver.len += 24)
		hbm_record(driver.len, driver.len / 24);
	start(p, 1);
	drain_and_stop(p);
	assert_int_equal(contents(p, "hbm.data", got, 4 * SIZE, &slices), driver.len);
	assert_memory_equal(got, driver.data, driver.len);
	assert_int_equal(slices, 2); /* of 2 MiB */
	assert_int_equal(p->stream.records, driver.len / 24);
	assert_int_equal(p->stream.torn, 0);
	assert_false(p->info.second_version);
	free(got);
}

static void the_second_version_is_recognised(void **state)
{
	struct position *p = *state;
	uint8_t got[32 * 100];
	unsigned int slices;

	for (size_t i = 0; i < 100; i++) {
		put(i * 32 + 8, 4, i & 1);
		put(i * 32 + 12, 4, i >> 1 & 7);
		put(i * 32 + 16, 8, i);
		put(i * 32 + 24, 8, 1700000000000000000ULL + i * 20000000);
	}
	driver.len = sizeof(got);
	start(p, 1);
	drain_and_stop(p);
	assert_int_equal(contents(p, "hbm.data", got, sizeof(got), &slices), sizeof(got));
	assert_memory_equal(got, driver.data, sizeof(got));
	assert_true(p->info.second_version);
	assert_int_equal(p->stream.records, 100);
}

/* From the middle of a record on, as a reader finds it that was a whole ring late. */
static void after_an_overwrite_records_begin_anew(void **state)
{
	struct position *p = *state;
	uint8_t got[24 * 1000];
	unsigned int slices;
	size_t len;

	for (size_t i = 0; i < 1000; i++)
		hbm_record(i * 24, i);
	memmove(driver.data + 24 * 500 + 10, driver.data + 24 * 700 + 17, 24 * 300 - 17);
	driver.len = 24 * 500 + 10 + 24 * 300 - 17;
	start(p, 1);
	drain_and_stop(p);
	len = contents(p, "hbm.data", got, sizeof(got), &slices);
	assert_int_equal(len % 24, 0);
	/* The record before the break may be made of two: it goes too. */
	assert_int_equal(p->stream.torn, 24 + 10 + 7);
	assert_int_equal(len, 24 * (499 + 299));
	assert_memory_equal(got, driver.data, 24 * 499);
	assert_memory_equal(got + 24 * 499, driver.data + 24 * 500 + 10 + 7, 24 * 299);
	assert_int_equal(p->stream.gaps >= 1, 1);
}

static void missing_numbers_are_lost_records(void **state)
{
	static const struct {
		size_t after;
		unsigned int missing;
	} losses[] = { { 5, 1 }, { 40, 7 }, { 41, 15 }, { 99, 3 } };
	struct position *p = *state;
	uint64_t number = 0, missing = 0;

	for (size_t i = 0; i < 200; i++) {
		for (size_t k = 0; k < sizeof(losses) / sizeof(*losses); k++)
			if (losses[k].after == i) {
				number += losses[k].missing;
				missing += losses[k].missing;
			}
		stars_record(i * 64, number++);
	}
	driver.len = 200 * 64;
	start(p, 52);
	drain_and_stop(p);
	assert_int_equal(p->stream.records, 200);
	assert_int_equal(p->stream.lost, missing);
}

/* So many records follow those that are there; numbered and timed on from record FIRST. */
static void more_stars(size_t first, size_t n)
{
	for (size_t i = 0; i < n; i++, driver.len += 64)
		stars_record(driver.len, first + i);
}

static void drain(struct position *p)
{
	int disk = 0;

	while (driver.at < driver.len)
		assert_int_equal(nps_device_stream__drain(&p->stream, &lib, &p->info, &p->session, p->buf,
							  sizeof(p->buf), &disk),
				 0);
	assert_int_equal(disk, 0);
}

/* Nobody read for that long. */
static void go_away(struct position *p, uint64_t seconds)
{
	p->stream.read_at -= seconds * 1000000000;
	p->stream.opened -= seconds * 1000000000;
}

/*
 * A record each 20 ms. A round of the ring is 65536 of them, in 1310 s; their
 * numbers go on as if nothing were missing.
 */
static void whole_rounds_of_the_ring_are_lost_records(void **state)
{
	struct position *p = *state;
	const size_t round = (4U << 20) / 64;

	start(p, 52);
	more_stars(0, 200);
	drain(p);
	assert_int_equal(p->stream.lost, 0);
	go_away(p, 1400);
	more_stars(200 + round, 200);
	drain(p);
	assert_int_equal(p->stream.lost, round);
	assert_int_equal(p->stream.rounds, 1);
	go_away(p, 2700); /* two, and some that the numbers show */
	more_stars(400 + 3 * round + 5, 200);
	drain_and_stop(p);
	assert_int_equal(p->stream.lost, 3 * round + 5);
	assert_int_equal(p->stream.rounds, 3);
	assert_int_equal(p->stream.gaps, 2);
	assert_int_equal(p->stream.records, 600);
}

/* The device had no data for that long, or we were away for less than the ring holds: nothing is lost. */
static void pauses_are_no_losses(void **state)
{
	struct position *p = *state;
	const size_t round = (4U << 20) / 64;

	start(p, 52);
	more_stars(0, 200);
	drain(p);
	more_stars(200 + round, 200);
	drain(p);
	go_away(p, 500);
	more_stars(400 + round + 16, 200);
	drain_and_stop(p);
	assert_int_equal(p->stream.lost, 0);
	assert_int_equal(p->stream.rounds, 0);
	assert_int_equal(p->stream.gaps, 2);
}

/* Records without times show it only by their rate. 24 bytes each 20 ms or so: a round takes 58 minutes. */
static void rounds_of_records_without_times(void **state)
{
	struct position *p = *state;

	start(p, 142);
	driver.len = 24 * 3000;
	go_away(p, 60);
	p->stream.read_at += 60000000000ULL; /* a minute in which all of this was read */
	drain(p);
	driver.len += 24 * 100;
	drain(p);
	assert_int_equal(p->stream.lost, 0);
	go_away(p, 4000);
	driver.len += 24 * 100;
	drain_and_stop(p);
	assert_int_equal(p->stream.rounds, 1);
	assert_int_equal(p->stream.lost, (4U << 20) / 24);
}

/* What was read before a channel was started afresh does not show how fast it writes now. */
static void a_fresh_start_is_measured_afresh(void **state)
{
	struct position *p = *state;

	start(p, 142);
	driver.len = 24 * 30000;
	drain_and_stop(p);
	assert_int_equal(nps_device_stream__start(&p->stream, &lib, &p->opts, &p->info, "PROF_2"), 0);
	p->stream.opened -= 2000000000;
	driver.len += 24 * 100;
	drain(p);
	go_away(p, 60);
	driver.len += 24 * 100;
	drain(p);
	assert_int_equal(p->stream.lost, 0);
	nps_prof_file__finish(&p->stream.file, &p->session);
}

/*
 * What no record can be is kept as it came, unless records begin
 * elsewhere: chips may know values that we do not.
 */
static void unusual_records_are_kept(void **state)
{
	struct position *p = *state;
	uint8_t got[24 * 64];
	unsigned int slices;

	for (size_t i = 0; i < 64; i++) {
		hbm_record(i * 24, i);
		put(i * 24 + 16, 4, 0x01020304);
		put(i * 24 + 20, 4, 0x05060708);
		put(i * 24 + 8, 8, 0x1112131415161718ULL);
		put(i * 24, 8, 0x2122232425262728ULL);
	}
	driver.len = sizeof(got);
	start(p, 1);
	p->stream.version = 0;
	drain_and_stop(p);
	assert_int_equal(contents(p, "hbm.data", got, sizeof(got), &slices), sizeof(got));
	assert_memory_equal(got, driver.data, sizeof(got));
}

static void text_is_stored_as_it_came(void **state)
{
	struct position *p = *state;
	uint8_t got[SIZE];
	unsigned int slices;

	for (size_t i = 0; i < 5000; i++)
		driver.len += (size_t)sprintf((char *)driver.data + driver.len, "%zu:%09zu %zu %zu\n", i, i,
					      i * 3, i * 5);
	start(p, 9);
	drain_and_stop(p);
	assert_int_equal(contents(p, "hccs.data", got, sizeof(got), &slices), driver.len);
	assert_memory_equal(got, driver.data, driver.len);
}

static uint32_t word(size_t i)
{
	uint32_t v;

	memcpy(&v, driver.params + 4 * i, sizeof(v));
	return v;
}

/* cann-abi 4.1, by channel */
static void start_parameters_are_as_the_driver_wants_them(void **state)
{
	static const uint16_t aic[] = { 0x416, 0x417, 0x9, 0x302, 0xc, 0x303, 0x54, 0x55 };
	struct position *p = *state;
	uint16_t events[8];

	start(p, 1);
	assert_int_equal(driver.start.type, 1);
	assert_int_equal(driver.start.period_ms, 20);
	assert_int_equal(driver.start.real_time, 1);
	assert_int_equal(driver.params_size, 20);
	assert_int_equal(word(0), 20);
	assert_int_equal(word(2), 2);
	assert_int_equal(word(3), 0);
	assert_int_equal(word(4), 1);
	nps_prof_file__finish(&p->stream.file, &p->session);
	start(p, 129);
	assert_int_equal(driver.start.period_ms, 10);
	assert_int_equal(driver.params_size, 0);
	nps_prof_file__finish(&p->stream.file, &p->session);
	start(p, 52);
	assert_int_equal(driver.start.type, 0);
	assert_int_equal(driver.params_size, 56);
	assert_int_equal(word(0), 1);
	assert_int_equal(word(4), 1);
	assert_int_equal(word(10), 2); /* the scheduler's own counters are not wanted */
	nps_prof_file__finish(&p->stream.file, &p->session);
	start(p, 54);
	assert_int_equal(driver.params_size, 72);
	assert_int_equal(word(0), 3);
	assert_int_equal(word(1), 2); /* samples */
	assert_int_equal(word(2), 10);
	assert_int_equal(word(3), (1U << 24) - 1);
	assert_int_equal(word(4), 8);
	memcpy(events, driver.params + 20, sizeof(events));
	assert_memory_equal(events, aic, sizeof(aic));
	nps_prof_file__finish(&p->stream.file, &p->session);
}

static void what_the_driver_refuses_makes_no_file(void **state)
{
	struct position *p = *state;
	struct stat st;
	char path[128];

	p->stream = (struct nps_device_stream){ .ch = channel(1) };
	driver.start_code = NPS_PROF_OCCUPIED;
	assert_int_equal(nps_device_stream__start(&p->stream, &lib, &p->opts, &p->info, "PROF_1"),
			 NPS_PROF_OCCUPIED);
	assert_int_not_equal(p->stream.state, NPS_STREAM_OPEN);
	snprintf(path, sizeof(path), "%s/PROF_1", p->root);
	assert_int_not_equal(stat(path, &st), 0);
	assert_false(nps_device_report__final(NPS_PROF_OCCUPIED));
	assert_true(nps_device_report__final(NPS_PROF_NO_CONTEXT));
}

static void a_failing_read_is_reported(void **state)
{
	struct position *p = *state;
	int disk = 0;

	start(p, 1);
	driver.read_code = NPS_PROF_STOPPED;
	assert_int_equal(nps_device_stream__drain(&p->stream, &lib, &p->info, &p->session, p->buf,
						  sizeof(p->buf), &disk),
			 NPS_PROF_STOPPED);
	nps_device_stream__abandon(&p->stream, &p->info, &p->session, &disk);
	assert_int_equal(p->stream.state, NPS_STREAM_WAITS);
	assert_int_equal(disk, 0);
}

/* Any bytes in any pieces: nothing crashes, files hold whole records, and what is not in them is counted. */
static void hostile_bytes(void **state)
{
	static const unsigned int ids[] = { 1, 8, 7, 131, 142, 133, 3, 146, 132, 52, 54 };
	struct position *p = *state;
	uint8_t *got = malloc(SIZE);
	unsigned int slices;
	size_t len;

	assert_non_null(got);
	for (size_t k = 0; k < sizeof(ids) / sizeof(*ids); k++) {
		driver.at = 0;
		driver.stops = 0;
		driver.len = 30000 + (size_t)rand() % 5000;
		for (size_t i = 0; i < driver.len; i++)
			driver.data[i] = (uint8_t)(rand() & (rand() & 1 ? 0xff : 1));
		start(p, ids[k]);
		drain_and_stop(p);
		assert_true(p->stream.version >= 0);
		len = contents(p, p->stream.ch->file, got, SIZE, &slices);
		assert_int_equal(len % p->stream.ch->formats[p->stream.version].size, 0);
		assert_int_equal(p->stream.bytes, driver.len);
		assert_int_equal(len + p->stream.torn, driver.len); /* stored, or reported as missing */
	}
	free(got);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(records_arrive_whole_and_in_order),
		TEST(the_second_version_is_recognised),
		TEST(after_an_overwrite_records_begin_anew),
		TEST(missing_numbers_are_lost_records),
		TEST(whole_rounds_of_the_ring_are_lost_records),
		TEST(pauses_are_no_losses),
		TEST(rounds_of_records_without_times),
		TEST(a_fresh_start_is_measured_afresh),
		TEST(unusual_records_are_kept),
		TEST(text_is_stored_as_it_came),
		TEST(start_parameters_are_as_the_driver_wants_them),
		TEST(what_the_driver_refuses_makes_no_file),
		TEST(a_failing_read_is_reported),
		TEST(hostile_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
