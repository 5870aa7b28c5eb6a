/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The small files of a capture, made by hand: rates, clocks, damage. With two arguments, a PROF_* directory
 * and a directory that exists, only these files are imported and written as msprof would.
 */
#include "export/export.h"
#include "import/cann/aux_files.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define UNIX_US 1736408883000000ULL
#define UNIX (UNIX_US * 1000)
#define RAW 5000000000ULL /* raw ns of the host at UNIX, and when the devices were synchronised */
#define COUNT 700000ULL /* of the host and the device then; 100 and 50 MHz */
#define DEVICES 2

struct fixture {
	char dir[64];
	int prof, tmpfd;
	struct nps_model m;
	struct nps_cann_dir host, devices[DEVICES];
};

static int device_dir(const struct fixture *f, unsigned int device)
{
	char name[16];

	snprintf(name, sizeof(name), device == NPS_CANN_HOST ? "host" : "device_%u", device);
	return openat(f->prof, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void put_file(int dirfd, const char *name, const void *bytes, size_t len)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

static void put_text(int dirfd, const char *name, const char *text)
{
	put_file(dirfd, name, text, strlen(text));
}

/* The file NAME of a device with its control file's suffix. */
static void control(int dirfd, const char *name, unsigned int device, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), device == NPS_CANN_HOST ? "%s" : "%s.%u", name, device);
	put_text(dirfd, path, text);
}

static void make_dir(struct fixture *f, unsigned int device, const char *version)
{
	char name[16], text[1200];
	int fd;

	snprintf(name, sizeof(name), device == NPS_CANN_HOST ? "host" : "device_%u", device);
	assert_int_equal(mkdirat(f->prof, name, 0700), 0);
	fd = device_dir(f, device);
	assert_int_equal(mkdirat(fd, "data", 0700), 0);
	snprintf(text, sizeof(text),
		 "{\"version\":\"%s\",\"platform_version\":\"5\",\"pid\":\"77\",\"memoryTotal\":8000,"
		 "\"cpuNums\":4,"
		 "\"sysClockFreq\":100,\"netCard\":[{\"netCardName\":\"eth0\",\"speed\":8},"
		 "{\"netCardName\":\"lo\",\"speed\":-1}],\"CPU\":[{\"Frequency\":\"100\"}],\"DeviceInfo\":[%"
		 "s]}",
		 version,
		 device == NPS_CANN_HOST ? ""
					 : "{\"hwts_frequency\":\"50\",\"aic_frequency\":\"1000\","
					   "\"ai_cpu\":\"2,3\",\"ctrl_cpu\":\"0,1\"}");
	control(fd, "info.json", device, text);
	put_text(fd, "sample.json",
		 "{\"llc_profiling\":\"write\",\"qosEvents\":\"A,B\",\"ai_core_profiling_mode\":\"sample-"
		 "based\","
		 "\"l2CacheTaskProfilingEvents\":\"0xfb,0xfc,0x90,0x91,0x9c\",\"npuEvents\":\"HA:0x1;SMMU:"
		 "0x8a,0x2\","
		 "\"host_disk_freq\":4}");
	snprintf(text, sizeof(text), "{\"collectionTimeBegin\":\"%llu\",\"clockMonotonicRaw\":\"%llu\"}",
		 UNIX_US, RAW);
	control(fd, "start_info", device, text);
	snprintf(text, sizeof(text), "clock_monotonic_raw: %llu\ncntvct: %llu\ncntvct_diff: 0\n", RAW, COUNT);
	control(fd, "host_start.log", device, text);
	if (device != NPS_CANN_HOST)
		control(fd, "dev_start.log", device, "clock_monotonic_raw: 1000\ncntvct: 700000\n");
	close(fd);
}

static struct fixture *make(const char *version)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/nps_aux_XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->prof = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->tmpfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->prof >= 0 && f->tmpfd >= 0);
	assert_int_equal(nps_model__init(&f->m, f->tmpfd, NULL), 0);
	make_dir(f, NPS_CANN_HOST, version);
	for (unsigned int d = 0; d < DEVICES; d++)
		make_dir(f, d, version);
	return f;
}

static int setup(void **state)
{
	*state = make("1.0");
	return 0;
}

static int setup_second(void **state)
{
	*state = make("2.0");
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	nps_model__free(&f->m);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
	close(f->prof);
	close(f->tmpfd);
	free(f);
	return 0;
}

static int import_from(struct nps_model *m, struct nps_cann_dir *host, struct nps_cann_dir *devices,
		       const unsigned int *numbers, size_t n, int prof)
{
	struct nps_cann_dir *known = NULL;
	struct nps_dictionary names = { .strings = m->strings };
	char name[32];
	int err = 0;

	if (!nps_cann_dir__open(host, m, prof, "host", NPS_CANN_HOST)) {
		known = host;
		nps_cann_dir__clocks(host, NULL);
	}
	for (size_t i = 0; !err && i < n; i++) {
		snprintf(name, sizeof(name), "device_%u", numbers[i]);
		err = nps_cann_dir__open(&devices[i], m, prof, name, numbers[i]);
		if (!err)
			nps_cann_dir__clocks(&devices[i], known);
	}
	if (!err && known)
		err = nps_dictionary__read(&names, m, &known->files);
	if (!err)
		err = nps_cann_aux__import(m, &names, known, devices, n, NULL);
	nps_dictionary__free(&names);
	for (size_t i = 0; i < n; i++)
		nps_cann_dir__close(&devices[i]);
	if (known)
		nps_cann_dir__close(known);
	return err;
}

static void import(struct fixture *f)
{
	static const unsigned int numbers[DEVICES] = { 0, 1 };

	assert_int_equal(import_from(&f->m, &f->host, f->devices, numbers, DEVICES, f->prof), 0);
}

/* Bytes of the file `data/NAME[.DEVICE].slice_0`. */
static void data(struct fixture *f, unsigned int device, const char *name, const void *bytes, size_t len)
{
	int dir = device_dir(f, device), fd = openat(dir, "data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[96];

	if (device == NPS_CANN_HOST)
		snprintf(path, sizeof(path), "%s.slice_0", name);
	else
		snprintf(path, sizeof(path), "%s.%u.slice_0", name, device);
	put_file(fd, path, bytes, len);
	close(fd);
	close(dir);
}

static void text(struct fixture *f, unsigned int device, const char *name, const char *lines)
{
	data(f, device, name, lines, strlen(lines));
}

/* How much of what WHAT begins with was lost. */
static uint64_t lost(const struct fixture *f, const char *what)
{
	uint64_t count = 0;

	for (size_t i = 0; i < f->m.losses.len; i++) {
		const struct nps_lost *loss = &NPS_AT(&f->m.losses, struct nps_lost, i);

		if (!strncmp(loss->what, what, strlen(what)))
			count += loss->count;
	}
	return count;
}

static const char *name_of(const struct fixture *f, uint32_t id)
{
	return nps_model__text(&f->m, id);
}

/* --- records --- */

struct hbm1 {
	uint64_t us, count;
	uint32_t event, id;
};

static void hbm_rates_are_of_the_same_unit(void **state)
{
	static const struct hbm1 records[] = {
		{ 1000, 5, 0, 0 },  { 1000, 7, 1, 0 }, { 1000, 9, 0, 1 },
		{ 3000, 10, 0, 0 }, { 3000, 3, 1, 0 }, { 3000, 1, 0, 1 },
	};
	struct fixture *f = *state;
	const struct nps_hbm_table *t = &f->m.hbm;

	data(f, 0, "hbm.data", records, sizeof(records));
	import(f);
	assert_int_equal(t->t.len, 6);
	assert_int_equal(t->timestamp[0], UNIX + 1000000);
	assert_int_equal(t->timestamp[5], UNIX + 3000000);
	assert_true(t->bandwidth[0] == 0); /* nothing came before */
	assert_true(t->bandwidth[3] == 10 * 32 * 500);
	assert_true(t->bandwidth[4] == 3 * 32 * 500);
	assert_true(t->bandwidth[5] == 32 * 500);
	assert_string_equal(name_of(f, t->type[3]), "read");
	assert_string_equal(name_of(f, t->type[4]), "write");
	assert_int_equal(t->id[5], 1);
	assert_int_equal(f->m.losses.len, 0);
}

static void hbm_of_the_second_version_has_unix_times(void **state)
{
	static const struct {
		uint32_t a, b, event, id;
		uint64_t count, ns;
	} records[] = { { 0, 0, 1, 3, 4, UNIX + 1 }, { 0, 0, 1, 3, 4, UNIX + 1000001 } };
	struct fixture *f = *state;

	data(f, 0, "hbm.data", records, sizeof(records));
	import(f);
	assert_int_equal(f->m.hbm.t.len, 2);
	assert_int_equal(f->m.hbm.timestamp[0], UNIX + 1);
	assert_true(f->m.hbm.bandwidth[1] == 4 * 32 * 1000);
}

static void damage_is_counted(void **state)
{
	static const struct hbm1 records[] = {
		{ 1000, 5, 0, 0 },	 { 1000, 5, 77, 0 }, /* no such event */
		{ 1ULL << 63, 5, 0, 0 }, /* no such time */
		{ 1ULL << 60, 5, 0, 0 }, /* a time after all times */
		{ 2000, 5, 0, 0 },	 { 3000, 5, 0, 0 },  { 4000, 5, 0, 0 }, { 5000, 5, 0, 0 },
	};
	struct fixture *f = *state;

	data(f, 0, "hbm.data", records, sizeof(records));
	import(f);
	assert_int_equal(f->m.hbm.t.len, 5);
	assert_int_equal(lost(f, "records of hbm.data.0 that are no records"), 2);
	assert_int_equal(lost(f, "records of hbm.data.0 without a time"), 1);
}

static void streams_may_begin_inside_a_record(void **state)
{
	struct hbm1 records[8];
	struct fixture *f = *state;

	for (size_t i = 0; i < 8; i++)
		records[i] = (struct hbm1){ 1000 * (i + 1), 100 * i, i & 1, i / 2 };
	data(f, 0, "hbm.data", (const char *)records + 7, sizeof(records) - 7);
	import(f);
	assert_int_equal(f->m.hbm.t.len, 7);
	assert_int_equal(f->m.hbm.timestamp[0], UNIX + 2000000);
	assert_int_equal(lost(f, "records of hbm.data.0"), 1);
}

static void streams_may_end_inside_a_record(void **state)
{
	struct hbm1 records[8];
	struct fixture *f = *state;

	for (size_t i = 0; i < 8; i++)
		records[i] = (struct hbm1){ 1000 * (i + 1), 100 * i, i & 1, i / 2 };
	data(f, 0, "hbm.data", records, sizeof(records) - 7);
	import(f);
	assert_int_equal(f->m.hbm.t.len, 7);
	assert_int_equal(f->m.hbm.timestamp[0], UNIX + 1000000);
	assert_int_equal(lost(f, "records of hbm.data.0"), 1);
}

static void devices_are_merged_by_time(void **state)
{
	static const struct hbm1 first[] = { { 1000, 1, 0, 0 }, { 3000, 1, 0, 0 } };
	static const struct hbm1 second[] = { { 2000, 1, 0, 5 }, { 4000, 1, 0, 5 } };
	struct fixture *f = *state;

	data(f, 0, "hbm.data", first, sizeof(first));
	data(f, 1, "hbm.data", second, sizeof(second));
	import(f);
	assert_int_equal(f->m.hbm.t.len, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(f->m.hbm.timestamp[i], UNIX + (i + 1) * 1000000);
		assert_int_equal(f->m.hbm.device[i], i & 1);
		assert_int_equal(f->m.hbm.id[i], i & 1 ? 5 : 0);
	}
}

static void llc_samples_are_several_events(void **state)
{
	static const struct hbm1 records[] = {
		{ 1000, 10, 0x00, 0 }, { 1000, 5, 0x01, 0 },  { 1000, 3, 0x03, 0 },  { 1000, 4, 0x21, 0 },
		{ 2000, 20, 0x00, 0 }, { 2000, 30, 0x01, 0 }, { 2000, 99, 0x02, 0 }, { 2000, 2, 0x03, 0 },
		{ 2000, 1, 0x23, 0 },  { 2000, 8, 0x21, 0 },
	};
	struct fixture *f = *state;
	const struct nps_llc_table *t = &f->m.llc;

	data(f, 0, "llc.data", records, sizeof(records));
	import(f);
	assert_int_equal(t->t.len, 2);
	assert_true(t->throughput[0] == 0);
	assert_true(t->throughput[1] == 50.0 * 64 * 64 * 1000);
	assert_true(t->hit_rate[0] == 75);
	assert_true(t->hit_rate[1] == 37.5);
	assert_string_equal(name_of(f, t->mode[0]), "write");
}

static void times_of_32_bits_wrap(void **state)
{
	static const uint32_t ddr[][5] = { { 4294967000U, 1, 0, 0, UINT32_MAX },
					   { 4294967000U, 2, 1, 0, UINT32_MAX },
					   { 704, 3, 0, 0, UINT32_MAX },
					   { 704, 5, 0, 1, UINT32_MAX },
					   { 704, 7, 1, 0, 9 } };
	struct fixture *f = *state;

	data(f, 0, "ddr.data", ddr, sizeof(ddr));
	import(f);
	assert_int_equal(f->m.ddr.t.len, 2);
	assert_int_equal(f->m.ddr.timestamp[0], UNIX + 4294967000000ULL);
	assert_int_equal(f->m.ddr.timestamp[1], UNIX + 4294968000000ULL);
	assert_true(f->m.ddr.read[1] == 8 * 16 * 1000);
	assert_true(f->m.ddr.write[1] == 0); /* one master's share is not the traffic */
}

static void frequency_before_the_start_is_that_of_the_start(void **state)
{
	uint8_t record[888] = { 4 };
	static const struct {
		uint64_t ticks;
		uint32_t mhz, rest;
	} points[] = {
		{ COUNT - 9, 800, 0 }, { COUNT - 1, 900, 0 }, { COUNT + 50, 1000, 0 }, { COUNT + 51, 1100, 0 }
	};
	struct fixture *f = *state;
	const struct nps_frequency_table *t = &f->m.frequency;

	memcpy(record + 8, points, sizeof(points));
	data(f, 0, "lpmFreqConv.data", record, sizeof(record));
	record[4] = 1;
	data(f, 0, "lpmInfoConv.data", record, sizeof(record));
	record[0] = 1;
	record[4] = 2;
	data(f, 0, "lpmInfoConv.data", record, sizeof(record));
	import(f);
	assert_int_equal(f->m.voltage.t.len, 4); /* in order of time */
	assert_int_equal(f->m.voltage.timestamp[0], UNIX);
	assert_int_equal(f->m.voltage.mv[0] + f->m.voltage.mv[1], 900 + 800);
	assert_int_equal(f->m.voltage.bus[0] + f->m.voltage.bus[1], 1);
	assert_int_equal(f->m.voltage.timestamp[3], UNIX + 1020);
	assert_int_equal(f->m.voltage.mv[3], 1100);
	assert_int_equal(f->m.voltage.bus[3], 0);
	assert_int_equal(t->t.len, 3);
	assert_int_equal(t->timestamp[0], UNIX);
	assert_int_equal(t->mhz[0], 900);
	assert_int_equal(t->timestamp[1], UNIX + 1000);
	assert_int_equal(t->timestamp[2], UNIX + 1020);
	assert_int_equal(t->mhz[2], 1100);
}

static void soc_record(struct fixture *f, unsigned int kind, uint64_t ticks, unsigned int id,
		       const uint32_t *words, unsigned int magic)
{
	uint8_t record[64] = { 0 };

	memcpy(record, &(uint16_t){ kind }, 2);
	memcpy(record + 2, &(uint16_t){ magic }, 2);
	memcpy(record + 8, &ticks, 8);
	memcpy(record + 18, &(uint16_t){ id }, 2);
	memcpy(record + 32, words, 32);
	data(f, 0, "stars_soc_profile.data", record, sizeof(record));
}

/*
 * Amounts of the time since the record before, 232 bytes of 20 ms, however
 * long ago that was and whatever it held.
 */
static void die_amounts_are_of_intervals(void **state)
{
	static const uint32_t first[8] = { UINT32_MAX - 9, 5 }, second[8] = { 232, 1000 },
			      third[8] = { 232, UINT32_MAX };
	struct fixture *f = *state;

	soc_record(f, 0x19, COUNT + 50, 1, first, 0x6bd3);
	soc_record(f, 0x19, COUNT + 60, 1, first, 0x1234);
	soc_record(f, 0x19, COUNT + 50 + 20 * 50000, 1, second, 0x6bd3);
	soc_record(f, 0x3f, COUNT + 51 + 20 * 50000, 1, second, 0x6bd3);
	soc_record(f, 0x19, COUNT + 50 + 60 * 50000, 1, third, 0x6bd3);
	import(f);
	assert_int_equal(f->m.sio.t.len, 2);
	assert_true(f->m.sio.rx_req[0] == 11600);
	assert_true(f->m.sio.rx_rsp[0] == 50000);
	assert_true(f->m.sio.rx_req[1] == 5800);
	assert_true(f->m.sio.rx_rsp[1] == UINT32_MAX * 25.0);
	assert_string_equal(name_of(f, f->m.sio.name[0]), "die 1");
	assert_int_equal(lost(f, "records of stars_soc_profile.data.0"), 2);
}

/* Mata 3 in bits 0 to 2, the L2 buffer 5 in bits 3 to 10. */
static void levels_are_their_own(void **state)
{
	static const uint32_t words[8] = { 5 << 3 | 3 };
	struct fixture *f = *state;

	soc_record(f, 0x1c, COUNT + 50, 0, words, 0x6bd3);
	import(f);
	assert_int_equal(f->m.soc_level.t.len, 1);
	assert_int_equal(f->m.soc_level.mata[0], 3);
	assert_int_equal(f->m.soc_level.l2_buffer[0], 5);
}

static void task_counters_become_rates(void **state)
{
	static const struct {
		uint16_t type, stream, task, rest;
		uint64_t events[8];
	} l2[] = { { 0, 2049, 7, 0, { 30, 70, 20, 5, 10 } }, { 0, 3, 8, 0, { 0 } } };
	static const struct {
		uint8_t rest[8];
		uint16_t type, stream, task, kind;
		uint64_t events[8];
	} soc[] = { { { 0 }, 0, 3, 9, 2, { 4, 1 } },
		    { { 0 }, 0, 3, 9, 4, { 6 } },
		    { { 0 }, 0, 3, 9, 7, { 6 } } };
	struct fixture *f = *state;

	data(f, 0, "l2_cache.data", l2, sizeof(l2));
	data(f, 0, "socpmu.data", soc, sizeof(soc));
	import(f);
	assert_int_equal(f->m.l2_cache.t.len, 2);
	assert_int_equal(f->m.l2_cache.stream[0], 1);
	assert_true(f->m.l2_cache.first[0] == 0.25);
	assert_true(f->m.l2_cache.second[0] == 0.1);
	assert_true(isnan(f->m.l2_cache.first[1]));
	assert_int_equal(f->m.soc_pmu.t.len, 1);
	assert_true(isnan(f->m.soc_pmu.first[0])); /* hits were not recorded */
	assert_int_equal(f->m.page_fault.t.len, 1);
	assert_true(f->m.page_fault.first[0] == 6);
	assert_int_equal(lost(f, "records of socpmu.data.0"), 1);
}

/* --- lines --- */

static void hccs_that_goes_back_has_no_rate(void **state)
{
	struct fixture *f = *state;

	text(f, 0, "hccs.data",
	     "timestamp tx rx\n0:000001000 100 200\n0:001001000 1100 2200\n0:002001000 5 3000\nrubbish\n"
	     "0:003001000 1005 4000\n0:9999999999 1 1\n0:004001000 2005 99999999999999999999999\n0:0050010");
	import(f);
	assert_int_equal(f->m.hccs.t.len, 2);
	assert_int_equal(f->m.hccs.timestamp[0], UNIX + 1000000);
	assert_true(f->m.hccs.tx[0] == 1000000);
	assert_true(f->m.hccs.rx[0] == 2000000);
	assert_true(f->m.hccs.tx[1] == 1000000);
	assert_int_equal(lost(f, "records of hccs.data.0"), 4);
}

static void ports_have_what_the_chip_reports(void **state)
{
	struct fixture *f = *state;
	const struct nps_port_table *t = &f->m.nic;

	text(f, 0, "nic.data",
	     "time bandwidth rxPacket/s x\n"
	     "0:000001000 100 1.5 2.25 3 99999999999999 5 6 7 8 9 10 11 12 4\n"
	     "0:000001001 100 1 2 3 4 5 6 7 8 9 10 11 12\n"
	     "0:000001002 1 2 3 4 5 6 7 8 9 10 11 12\n"
	     "0:000001003 1 2 3 4 5 6 7 8 9 10 11\n"
	     "0:000001004 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n");
	import(f);
	assert_int_equal(t->t.len, 3);
	assert_int_equal(t->bandwidth[0], 100 << 20);
	assert_true(t->rx_packet_rate[0] == 1.5);
	assert_int_equal(t->rx_bytes[0], 99999999999999);
	assert_int_equal(t->tx_dropped[0], 12);
	assert_int_equal(t->function[0], 4);
	assert_int_equal(t->tx_dropped[1], 12);
	assert_int_equal(t->function[1], 0);
	assert_int_equal(t->bandwidth[2], NPS_NULL);
	assert_int_equal(t->tx_dropped[2], 12);
	assert_int_equal(lost(f, "records of nic.data.0"), 2);
}

static void rows_of_netdev_have_what_grew(void **state)
{
	struct fixture *f = *state;
	const struct nps_netdev_table *t = &f->m.netdev;

	text(f, 0, "netdev_stats.data",
	     "5000001000 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n5000001000 1\n"
	     "5001001000 2 4 1003 2004 0 6 7 8 9 10 11 12 14 3014 4015\n");
	import(f);
	assert_int_equal(t->t.len, 1);
	assert_int_equal(t->timestamp[0], UNIX + 1001000);
	assert_int_equal(t->mac_tx_pfc[0], 1);
	assert_int_equal(t->mac_rx_pfc[0], 2);
	assert_int_equal(t->mac_tx_bytes[0], 1000);
	assert_int_equal(t->mac_tx_bad[0], 0);
	assert_int_equal(t->roce_retries[0], 1);
	assert_true(t->nic_rx_bandwidth[0] == 4000000);
	assert_int_equal(lost(f, "records of netdev_stats.data.0"), 1);
}

#define STAT(tid, comm, user, cpu)                                                                           \
	tid " (" comm ") R 1 1 1 0 -1 0 0 0 0 0 " user                                                       \
	    " 0 0 0 20 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 " cpu " 0 0\n"

static void threads_of_one_cpu_are_summed(void **state)
{
	struct fixture *f = *state;
	const struct nps_cpu_usage_table *t = &f->m.cpu_usage;

	text(f, NPS_CANN_HOST, "host_cpu.data",
	     "7 (lost) R 1\ntime 5000001000\n10.00 99.0\n" STAT("7", "a", "100", "1") STAT("8", "b) (c 1",
											   "0", "1")
		     STAT("9", "d", "0", "3") "time 6000001000\n11.00 99.0\n" STAT("7", "a", "130", "1")
			     STAT("8", "b) (c 1", "20", "1") STAT("9", "d", "0", "3")
				     STAT("10", "new", "500", "0") "9 (short) R 1 2\n");
	import(f);
	assert_int_equal(t->t.len, 3);
	assert_int_equal(t->timestamp[0], UNIX + 1000);
	assert_string_equal(name_of(f, t->cpu[0]), "1");
	assert_true(t->usage[0] == 50);
	assert_string_equal(name_of(f, t->cpu[1]), "3");
	assert_true(t->usage[1] == 0);
	assert_string_equal(name_of(f, t->cpu[2]), "Avg");
	assert_true(t->usage[2] == 12.5);
	assert_int_equal(lost(f, "records of host_cpu.data"), 2);
}

static void cards_without_a_speed_do_not_count(void **state)
{
	struct fixture *f = *state;

	text(f, NPS_CANN_HOST, "host_network.data",
	     "time 5000001000\n  eth0: 1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n    lo: 9 1 0 0 0 0 0 0 9 1 0 0 "
	     "0 0 0 0\n"
	     "time 6000001000\n  eth0: 101000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n    lo: 99999 1 0 0 0 0 0 0 "
	     "9\n"
	     "eth0: 1 2\n");
	import(f);
	assert_int_equal(f->m.host_network.t.len, 1);
	assert_int_equal(f->m.host_network.timestamp[0], UNIX + 1000);
	assert_true(f->m.host_network.speed[0] == 100000);
	assert_true(f->m.host_network.usage[0] == 10);
	assert_int_equal(f->m.host.t.len, 1);
	assert_true(f->m.host.network[0] == 1000000);
	assert_int_equal(lost(f, "records of host_network.data"), 1);
}

static void disk_samples_follow_their_rate(void **state)
{
	struct fixture *f = *state;
	const struct nps_host_disk_table *t = &f->m.host_disk;

	text(f, NPS_CANN_HOST, "host_disk.data",
	     "1 be/4 root 1.00 K/s 0.00 B/s 0.00 % 1.00 % too early\nstart_time 5000000500\n"
	     "Total DISK READ: 0.00 B/s\n 77 be/4 root 1.50 K/s 2.00 M/s  0.00 %  3.25 % python3 train.py -x "
	     "3 K/s\n"
	     "77 be/4 root 1.50 X/s 2.00 M/s  0.00 %  3.25 % x\n77 be/4 root 0.00 B/s 1.00 G/s 0.00 % 99.99 "
	     "% x\n");
	import(f);
	assert_int_equal(t->t.len, 2);
	assert_int_equal(t->timestamp[0], UNIX + 500);
	assert_int_equal(t->timestamp[1], UNIX + 500 + 250000000);
	assert_true(t->read[0] == 1536);
	assert_true(t->write[0] == 2 << 20);
	assert_true(t->usage[0] == 3.25);
	assert_true(t->write[1] == 1 << 30);
	assert_int_equal(lost(f, "records of host_disk.data"), 2);
}

/*
 * What iotop 0.6 writes as msprof calls it, `-b -d 0.02 -P -t -p PID`:
 * heads and rows begin with the time of day.
 */
static void disk_samples_of_iotop(void **state)
{
	struct fixture *f = *state;
	const struct nps_host_disk_table *t = &f->m.host_disk;

	text(f, NPS_CANN_HOST, "host_disk.data",
	     "start_time 5000000000\n"
	     "14:07:31 Total DISK READ :       0.00 B/s | Total DISK WRITE :       7.85 K/s\n"
	     "14:07:31 Actual DISK READ:       0.00 B/s | Actual DISK WRITE:       0.00 B/s\n"
	     "    TIME    PID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN      IO    COMMAND\n"
	     "14:07:31   4242 be/4 root        1.50 K/s    7.85 K/s  0.00 %  2.50 % python3 train.py\n"
	     "14:07:31 Total DISK READ :       0.00 B/s | Total DISK WRITE :       0.00 B/s\n"
	     "14:07:31   4242 be/4 root        0.00 B/s    2.00 M/s ?unavailable?  python3 train.py\n"
	     "14:07:32   4242 be/4 root        0.00 B/s    2.00 M/s  0.00 % x % python3 train.py\n"
	     "14:07:32\n");
	import(f);
	assert_int_equal(t->t.len, 2);
	assert_int_equal(t->timestamp[0], UNIX);
	assert_int_equal(t->timestamp[1], UNIX + 250000000);
	assert_true(t->read[0] == 1536);
	assert_true(t->write[0] == 7.85 * 1024);
	assert_true(t->usage[0] == 2.5);
	assert_true(t->write[1] == 2 << 20);
	assert_true(isnan(t->usage[1]));
	assert_int_equal(lost(f, "records of host_disk.data"), 1);
}

static void calls_begin_with_the_collection(void **state)
{
	struct fixture *f = *state;
	const struct nps_osrt_table *t = &f->m.osrt;

	text(f, NPS_CANN_HOST, "host_syscall.data",
	     " 123.456 (  0.002 ms): py/1 (x/99 futex(uaddr: 0x7f/8 x(1)) = 0\n"
	     " 123.956 (         ): py/99 read(fd: 3</dev/null>\n 124.456 (  1.000 ms): py/98 read(fd: 3) = "
	     "1\n");
	text(f, NPS_CANN_HOST, "host_pthreadcall.data",
	     "[pid 98] 1736408999.000001 lib->pthread_once(0x1, 0) = 0 <0.000001>\n"
	     "[pid 98] 1736408999.000501 lib->pthread_mutex_lock(0x1, \"<\") = 0 <0.000250>\n"
	     "1736408999.002001 lib->pthread_cond_wait(0x1) = 0 <0.5>\n[pid 98] 1 lib->pthread_x( "
	     "<unfinished ...>\n");
	import(f);
	assert_int_equal(t->t.len, 4);
	assert_string_equal(name_of(f, t->name[0]), "futex");
	assert_int_equal(t->start[0], UNIX);
	assert_int_equal(t->end[0], UNIX + 2000);
	assert_int_equal(t->gtid[0], 77ULL << 32 | 99);
	assert_string_equal(name_of(f, t->name[1]), "pthread_mutex_lock");
	assert_int_equal(t->start[1], UNIX + 500000);
	assert_int_equal(t->end[1], UNIX + 750000);
	assert_int_equal(t->start[2], UNIX + 1000000);
	assert_int_equal(t->gtid[3], 77ULL << 32 | 77);
	assert_int_equal(t->end[3], UNIX + 502000000);
	assert_int_equal(lost(f, "records of host_syscall.data"), 1);
	assert_int_equal(lost(f, "records of host_pthreadcall.data"), 1);
}

/*
 * A session has its host's rows when its devices are cut to the capture: a call
 * that began before is still open in it.
 */
static void only_devices_are_clipped(void **state)
{
	static const struct hbm1 records[] = { { 1000, 1, 0, 0 }, { 3000, 1, 0, 0 }, { 9000, 1, 0, 0 } };
	struct fixture *f = *state;

	text(f, NPS_CANN_HOST, "host_pthreadcall.data",
	     "[pid 98] 1736408999.000001 lib->pthread_cond_wait(0x1, 0) = 0 <0.5>\n");
	data(f, 0, "hbm.data", records, sizeof(records));
	import(f);
	assert_int_equal(nps_cann_aux__clip(&f->m, UNIX + 2000000, UNIX + 8000000), 0);
	assert_int_equal(f->m.hbm.t.len, 1);
	assert_int_equal(f->m.hbm.timestamp[0], UNIX + 3000000);
	assert_int_equal(f->m.osrt.t.len, 1);
	assert_int_equal(f->m.osrt.start[0], UNIX);
	assert_int_equal(f->m.osrt.end[0], UNIX + 500000000);
}

/* The vendor's rule: the counters of all samples, from the start of the system on, are summed up. */
static void shares_are_of_all_samples(void **state)
{
	struct fixture *f = *state;
	const struct nps_cpu_share_table *t = &f->m.cpu_share;

	text(f, NPS_CANN_HOST, "host_sys_cpu.data",
	     "TimeStamp:1\nIndex:0\nDataLen:9\ncpu  100 0 100 800 0 0 0 0 0 0\ncpu0 9 9\n\n"
	     "TimeStamp:2\nIndex:1\nDataLen:9\ncpu  150 0 100 750 0 0 0 0 0 0\n\n");
	text(f, 1, "SystemCpuUsage.data",
	     "TimeStamp:1\nIndex:0\nDataLen:9\ncpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 0 0 3 0 0 0 0 0 0\n"
	     "cpu2 1 0 0 1 0 0 0 0 0 0\ncpu3 0 0 2 0 0 0 0 0 0 0\n\n"
	     "TimeStamp:2\nIndex:1\nDataLen:9\ncpu  9 9 9 9 9 9 9 9 9 9\ncpu0 3 0 0 5 0 0 0 0 0 0\n"
	     "cpu2 2 0 0 2 0 0 0 0 0 0\ncpu3 0 0 4 0 0 0 0 0 0 0\n");
	text(f, 0, "SystemCpuUsage.data",
	     "TimeStamp:1\nIndex:0\nDataLen:9\ncpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 0 0 2 0 0 0 0 0 1\n");
	import(f);
	assert_int_equal(t->t.len, 4);
	assert_int_equal(t->device[0], NPS_NONE);
	assert_string_equal(name_of(f, t->type[0]), "host");
	assert_true(t->user[0] == 12.5 && t->sys[0] == 10 && t->idle[0] == 77.5);
	assert_string_equal(name_of(f, t->type[1]), "ctrlcpu");
	assert_true(t->user[1] == 25 && t->idle[1] == 50);
	assert_string_equal(name_of(f, t->type[2]), "aicpu");
	assert_int_equal(t->device[2], 1);
	assert_true(t->user[2] == 25 && t->sys[2] == 50 && t->idle[2] == 25);
	assert_string_equal(name_of(f, t->type[3]), "ctrlcpu");
	assert_true(t->user[3] == 100.0 / 3);
	assert_int_equal(lost(f, "records of host_sys_cpu.data"), 1);
}

static void processes_have_files_of_their_own(void **state)
{
	struct fixture *f = *state;

	text(f, NPS_CANN_HOST, "77-CpuUsage.data",
	     "TimeStamp:1000000000\nIndex:0\nDataLen:9\n77 (py) R 1 1 1 0 -1 0 0 0 0 0 100 0 0 0 20 0\n"
	     "ProcessName:py\n\nTimeStamp:3000000000\nIndex:1\nDataLen:9\n"
	     "77 (py) R 1 1 1 0 -1 0 0 0 0 0 120 20 0 10 20 0\nProcessName:py\n\n");
	text(f, NPS_CANN_HOST, "78-Memory.data",
	     "TimeStamp:1\nIndex:0\nDataLen:9\n10 20 30 4 0 5 0\nProcessName:a b\n\n"
	     "TimeStamp:2\nIndex:1\nDataLen:9\n20 40 30 4 0 5 0\nProcessName:a b\n\n");
	text(f, 0, "Memory.data",
	     "TimeStamp:1\nIndex:0\nDataLen:9\nMemTotal: 100 kB\nMemFree: 10 kB\nOther: 5\nnonsense\n\n"
	     "TimeStamp:2\nIndex:1\nDataLen:9\nMemTotal: 100 kB\nMemFree: 21 kB\n\n");
	import(f);
	assert_int_equal(f->m.process_cpu.t.len, 1);
	assert_int_equal(f->m.process_cpu.pid[0], 77);
	assert_true(f->m.process_cpu.cpu[0] == 25);
	assert_int_equal(f->m.process_mem.t.len, 1);
	assert_int_equal(f->m.process_mem.size[0], 15);
	assert_int_equal(f->m.process_mem.resident[0], 30);
	assert_string_equal(name_of(f, f->m.process_mem.name[0]), "a b");
	assert_int_equal(f->m.sys_mem.t.len, 1);
	assert_int_equal(f->m.sys_mem.free[0], 15);
	assert_int_equal(lost(f, "records of Memory.data.0"), 1);
}

static void older_files_of_the_ai_cpu(void **state)
{
	static const char lines[] = "Node:GetNext_dequeue_wait, queue size:6, Run start:2, Run end:5\n\0"
				    "Node:x, queue size:7, Run start:9, Run end:3\n\0nothing\n\0";
	uint8_t record[128] = { 0x5a, 0x5a, 100 };
	struct fixture *f = *state;

	data(f, 0, "DATA_PREPROCESS.AICPUMI", lines, sizeof(lines) - 1);
	memcpy(record + 8, &(uint64_t){ RAW + 9 }, 8);
	memcpy(record + 16, "enqueue\0garbage", 16);
	memset(record + 32, 's', 64);
	record[104] = 3;
	data(f, 0, "DATA_PREPROCESS.DP", record, sizeof(record));
	import(f);
	assert_int_equal(f->m.aicpu_mi.t.len, 1);
	assert_int_equal(f->m.aicpu_mi.start[0], UNIX + 1000);
	assert_int_equal(f->m.aicpu_mi.end[0], UNIX + 4000);
	assert_int_equal(f->m.aicpu_mi.queue[0], 6);
	assert_int_equal(lost(f, "records of DATA_PREPROCESS.AICPUMI.0"), 2);
	assert_int_equal(f->m.dp.t.len, 1);
	assert_int_equal(f->m.dp.timestamp[0], UNIX + 9);
	assert_string_equal(name_of(f, f->m.dp.action[0]), "enqueue");
	assert_int_equal(strlen(name_of(f, f->m.dp.source[0])), 64);
	assert_int_equal(f->m.dp.size[0], 3);
}

/*
 * A session begins another directory when it starts channels again: a core's numbers
 * are of all of them, and reported once.
 */
static void sums_of_cores_are_of_all_segments(void **state)
{
	static const struct nps_aux_start none = { .file = NULL };
	struct nps_aux_cores cores = { .first = NULL };
	const struct nps_aux_session session = { .starts = &none, .to = UINT64_MAX, .cores = &cores };
	struct fixture *f = *state;
	const struct nps_sample_summary_table *t = &f->m.sample_summary;
	uint8_t record[96] = { 0, 0, 80 };

	record[89] = 3; /* core */
	for (unsigned int segment = 0; segment < 2; segment++) {
		struct nps_dictionary names = { .strings = f->m.strings };

		memcpy(record + 72, &(uint64_t){ 1000 + segment }, 8);
		memcpy(record + 80, &(uint64_t){ 1000 }, 8);
		data(f, 0, "ffts_profile.data", record, sizeof(record));
		assert_int_equal(nps_cann_dir__open(&f->devices[0], &f->m, f->prof, "device_0", 0), 0);
		nps_cann_dir__clocks(&f->devices[0], NULL);
		f->devices[0].sampled_pmu = true;
		strcpy(f->devices[0].aic.name, "PipeUtilization");
		f->devices[0].aic.nevents = 1;
		f->devices[0].aic.events[0] = 0x9;
		assert_int_equal(nps_cann_aux__import(&f->m, &names, NULL, f->devices, 1, &session), 0);
		nps_dictionary__free(&names);
		nps_cann_dir__close(&f->devices[0]);
		assert_int_equal(t->t.len, 0);
	}
	assert_int_equal(nps_aux_cores__write(&cores, &f->m), 0);
	nps_aux_cores__free(&cores);
	assert_int_equal(t->t.len, 4); /* time, cycles, the event's time and ratio */
	for (size_t i = 0; i < t->t.len; i++) {
		assert_int_equal(t->core[i], 3);
		if (!strcmp(name_of(f, t->metric[i]), "total_cycles"))
			assert_true(t->value[i] == 1000 + 1000 + 1001);
	}
}

/* Every file full of the same byte: nothing of it makes a row that has a time, and nothing breaks. */
static void nonsense_is_survived(void **state)
{
	static const char *const names[] = { "hbm.data",
					     "llc.data",
					     "ddr.data",
					     "npu_mem.data",
					     "npu_module_mem.data",
					     "pcie.data",
					     "ub.data",
					     "hccs.data",
					     "nic.data",
					     "netdev_stats.data",
					     "dvpp.data",
					     "qos.data",
					     "lpmFreqConv.data",
					     "stars_soc_profile.data",
					     "l2_cache.data",
					     "socpmu.data",
					     "ffts_profile.data",
					     "aicpu.data",
					     "SystemCpuUsage.data",
					     "Memory.data" };
	static const char *const host_names[] = { "host_cpu.data",
						  "host_mem.data",
						  "host_network.data",
						  "host_disk.data",
						  "host_syscall.data",
						  "host_pthreadcall.data",
						  "host_sys_cpu.data",
						  "9-CpuUsage.data",
						  "99999999999-Memory.data",
						  "aging.additional.task_memory_info",
						  "unaging.additional.static_op_mem" };
	struct fixture *f = *state;
	char bytes[5000];

	for (unsigned int device = 0; device < DEVICES; device++) {
		memset(bytes, device ? 0xff : '0', sizeof(bytes));
		for (size_t i = 0; i < NPS_ARRAY_SIZE(names); i++)
			data(f, device, names[i], bytes, sizeof(bytes));
	}
	memset(bytes, '1', sizeof(bytes));
	for (size_t i = 0; i < NPS_ARRAY_SIZE(host_names); i++)
		data(f, NPS_CANN_HOST, host_names[i], bytes, sizeof(bytes));
	import(f);
	assert_int_equal(f->m.hbm.t.len + f->m.pcie.t.len + f->m.aicpu.t.len + f->m.cpu_usage.t.len, 0);
}

/* --- the files of a directory, as msprof would write them --- */

static int write_all(const char *prof, const char *out)
{
	static struct nps_cann_dir host, devices[64];
	static const unsigned int all[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	struct nps_export ex = { .formats = NPS_FORMAT_TEXT | NPS_FORMAT_DB, .stamp = "20260101000000" };
	unsigned int numbers[NPS_ARRAY_SIZE(all)];
	struct nps_model m;
	size_t n = 0;
	int err, proffd = open(prof, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int dirfd = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (proffd < 0 || dirfd < 0 || nps_model__init(&m, dirfd, NULL))
		return 2;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(all); i++) {
		char name[32];

		snprintf(name, sizeof(name), "device_%u", all[i]);
		if (!faccessat(proffd, name, F_OK, 0))
			numbers[n++] = all[i];
	}
	m.layout = NPS_LAYOUT_MSPROF;
	ex.model = &m;
	err = import_from(&m, &host, devices, numbers, n, proffd);
	m.pid = host.pid;
	nps_model__cover(&m, host.begin_us * 1000, host.end_us * 1000);
	if (!err)
		err = nps_export__counter_csv(&ex, dirfd);
	if (!err)
		err = nps_export__msprof_csv(&ex, dirfd);
	if (!err)
		err = nps_export__trace(&ex, dirfd);
	if (!err)
		err = nps_export__db(&ex, dirfd, out);
	for (size_t i = 0; i < m.losses.len; i++)
		printf("%llu %s\n", (unsigned long long)NPS_AT(&m.losses, struct nps_lost, i).count,
		       NPS_AT(&m.losses, struct nps_lost, i).what);
	nps_model__free(&m);
	close(proffd);
	close(dirfd);
	return err ? 1 : 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(hbm_rates_are_of_the_same_unit),
		cmocka_unit_test_setup_teardown(hbm_of_the_second_version_has_unix_times, setup_second,
						teardown),
		TEST(damage_is_counted),
		TEST(streams_may_begin_inside_a_record),
		TEST(streams_may_end_inside_a_record),
		TEST(devices_are_merged_by_time),
		TEST(llc_samples_are_several_events),
		TEST(times_of_32_bits_wrap),
		TEST(frequency_before_the_start_is_that_of_the_start),
		TEST(die_amounts_are_of_intervals),
		TEST(levels_are_their_own),
		TEST(task_counters_become_rates),
		TEST(hccs_that_goes_back_has_no_rate),
		TEST(ports_have_what_the_chip_reports),
		TEST(rows_of_netdev_have_what_grew),
		TEST(threads_of_one_cpu_are_summed),
		TEST(cards_without_a_speed_do_not_count),
		TEST(disk_samples_follow_their_rate),
		TEST(disk_samples_of_iotop),
		TEST(calls_begin_with_the_collection),
		TEST(only_devices_are_clipped),
		TEST(shares_are_of_all_samples),
		TEST(processes_have_files_of_their_own),
		TEST(older_files_of_the_ai_cpu),
		TEST(sums_of_cores_are_of_all_segments),
		TEST(nonsense_is_survived),
	};

	if (argc == 3)
		return write_all(argv[1], argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
