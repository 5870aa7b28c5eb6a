/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The auxiliary files of a capture, made by hand: rates, clocks, damage. With two arguments, a PROF_*
 * directory and a directory that exists, only these files are imported and written as msprof would.
 */
#include "cann_aux_capture.h"
#include "export/export.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

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
	struct cann_aux_capture *f = *state;
	const struct nps_hbm_table *t = &f->m.hbm;

	cann_aux_data(f, 0, "hbm.data", records, sizeof(records));
	cann_aux_import(f);
	assert_int_equal(t->t.len, 6);
	assert_int_equal(t->timestamp[0], CANN_AUX_UNIX + 1000000);
	assert_int_equal(t->timestamp[5], CANN_AUX_UNIX + 3000000);
	assert_true(t->bandwidth[0] == 0); /* nothing came before */
	assert_true(t->bandwidth[3] == 10 * 32 * 500);
	assert_true(t->bandwidth[4] == 3 * 32 * 500);
	assert_true(t->bandwidth[5] == 32 * 500);
	assert_string_equal(cann_aux_name(f, t->type[3]), "read");
	assert_string_equal(cann_aux_name(f, t->type[4]), "write");
	assert_int_equal(t->id[5], 1);
	assert_int_equal(f->m.losses.len, 0);
}

static void hbm_of_the_second_version_has_unix_times(void **state)
{
	static const struct {
		uint32_t a, b, event, id;
		uint64_t count, ns;
	} records[] = { { 0, 0, 1, 3, 4, CANN_AUX_UNIX + 1 }, { 0, 0, 1, 3, 4, CANN_AUX_UNIX + 1000001 } };
	struct cann_aux_capture *f = *state;

	cann_aux_data(f, 0, "hbm.data", records, sizeof(records));
	cann_aux_import(f);
	assert_int_equal(f->m.hbm.t.len, 2);
	assert_int_equal(f->m.hbm.timestamp[0], CANN_AUX_UNIX + 1);
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
	struct cann_aux_capture *f = *state;

	cann_aux_data(f, 0, "hbm.data", records, sizeof(records));
	cann_aux_import(f);
	assert_int_equal(f->m.hbm.t.len, 5);
	assert_int_equal(cann_aux_lost(f, "records of hbm.data.0 that are no records"), 2);
	assert_int_equal(cann_aux_lost(f, "records of hbm.data.0 without a time"), 1);
}

static void streams_may_begin_inside_a_record(void **state)
{
	struct hbm1 records[8];
	struct cann_aux_capture *f = *state;

	for (size_t i = 0; i < 8; i++)
		records[i] = (struct hbm1){ 1000 * (i + 1), 100 * i, i & 1, i / 2 };
	cann_aux_data(f, 0, "hbm.data", (const char *)records + 7, sizeof(records) - 7);
	cann_aux_import(f);
	assert_int_equal(f->m.hbm.t.len, 7);
	assert_int_equal(f->m.hbm.timestamp[0], CANN_AUX_UNIX + 2000000);
	assert_int_equal(cann_aux_lost(f, "records of hbm.data.0"), 1);
}

static void streams_may_end_inside_a_record(void **state)
{
	struct hbm1 records[8];
	struct cann_aux_capture *f = *state;

	for (size_t i = 0; i < 8; i++)
		records[i] = (struct hbm1){ 1000 * (i + 1), 100 * i, i & 1, i / 2 };
	cann_aux_data(f, 0, "hbm.data", records, sizeof(records) - 7);
	cann_aux_import(f);
	assert_int_equal(f->m.hbm.t.len, 7);
	assert_int_equal(f->m.hbm.timestamp[0], CANN_AUX_UNIX + 1000000);
	assert_int_equal(cann_aux_lost(f, "records of hbm.data.0"), 1);
}

static void devices_are_merged_by_time(void **state)
{
	static const struct hbm1 first[] = { { 1000, 1, 0, 0 }, { 3000, 1, 0, 0 } };
	static const struct hbm1 second[] = { { 2000, 1, 0, 5 }, { 4000, 1, 0, 5 } };
	struct cann_aux_capture *f = *state;

	cann_aux_data(f, 0, "hbm.data", first, sizeof(first));
	cann_aux_data(f, 1, "hbm.data", second, sizeof(second));
	cann_aux_import(f);
	assert_int_equal(f->m.hbm.t.len, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(f->m.hbm.timestamp[i], CANN_AUX_UNIX + (i + 1) * 1000000);
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
	struct cann_aux_capture *f = *state;
	const struct nps_llc_table *t = &f->m.llc;

	cann_aux_data(f, 0, "llc.data", records, sizeof(records));
	cann_aux_import(f);
	assert_int_equal(t->t.len, 2);
	assert_true(t->throughput[0] == 0);
	assert_true(t->throughput[1] == 50.0 * 64 * 64 * 1000);
	assert_true(t->hit_rate[0] == 75);
	assert_true(t->hit_rate[1] == 37.5);
	assert_string_equal(cann_aux_name(f, t->mode[0]), "write");
}

static void times_of_32_bits_wrap(void **state)
{
	static const uint32_t ddr[][5] = { { 4294967000U, 1, 0, 0, UINT32_MAX },
					   { 4294967000U, 2, 1, 0, UINT32_MAX },
					   { 704, 3, 0, 0, UINT32_MAX },
					   { 704, 5, 0, 1, UINT32_MAX },
					   { 704, 7, 1, 0, 9 } };
	struct cann_aux_capture *f = *state;

	cann_aux_data(f, 0, "ddr.data", ddr, sizeof(ddr));
	cann_aux_import(f);
	assert_int_equal(f->m.ddr.t.len, 2);
	assert_int_equal(f->m.ddr.timestamp[0], CANN_AUX_UNIX + 4294967000000ULL);
	assert_int_equal(f->m.ddr.timestamp[1], CANN_AUX_UNIX + 4294968000000ULL);
	assert_true(f->m.ddr.read[1] == 8 * 16 * 1000);
	assert_true(f->m.ddr.write[1] == 0); /* one master's share is not the traffic */
}

static void frequency_before_the_start_is_that_of_the_start(void **state)
{
	uint8_t record[888] = { 4 };
	static const struct {
		uint64_t ticks;
		uint32_t mhz, rest;
	} points[] = { { CANN_AUX_TICKS - 9, 800, 0 },
		       { CANN_AUX_TICKS - 1, 900, 0 },
		       { CANN_AUX_TICKS + 50, 1000, 0 },
		       { CANN_AUX_TICKS + 51, 1100, 0 } };
	struct cann_aux_capture *f = *state;
	const struct nps_frequency_table *t = &f->m.frequency;

	memcpy(record + 8, points, sizeof(points));
	cann_aux_data(f, 0, "lpmFreqConv.data", record, sizeof(record));
	record[4] = 1;
	cann_aux_data(f, 0, "lpmInfoConv.data", record, sizeof(record));
	record[0] = 1;
	record[4] = 2;
	cann_aux_data(f, 0, "lpmInfoConv.data", record, sizeof(record));
	cann_aux_import(f);
	assert_int_equal(f->m.voltage.t.len, 4); /* in order of time */
	assert_int_equal(f->m.voltage.timestamp[0], CANN_AUX_UNIX);
	assert_int_equal(f->m.voltage.mv[0] + f->m.voltage.mv[1], 900 + 800);
	assert_int_equal(f->m.voltage.bus[0] + f->m.voltage.bus[1], 1);
	assert_int_equal(f->m.voltage.timestamp[3], CANN_AUX_UNIX + 1020);
	assert_int_equal(f->m.voltage.mv[3], 1100);
	assert_int_equal(f->m.voltage.bus[3], 0);
	assert_int_equal(t->t.len, 3);
	assert_int_equal(t->timestamp[0], CANN_AUX_UNIX);
	assert_int_equal(t->mhz[0], 900);
	assert_int_equal(t->timestamp[1], CANN_AUX_UNIX + 1000);
	assert_int_equal(t->timestamp[2], CANN_AUX_UNIX + 1020);
	assert_int_equal(t->mhz[2], 1100);
}

static void soc_record(struct cann_aux_capture *f, unsigned int kind, uint64_t ticks, unsigned int id,
		       const uint32_t *words, unsigned int magic)
{
	uint8_t record[64] = { 0 };

	memcpy(record, &(uint16_t){ kind }, 2);
	memcpy(record + 2, &(uint16_t){ magic }, 2);
	memcpy(record + 8, &ticks, 8);
	memcpy(record + 18, &(uint16_t){ id }, 2);
	memcpy(record + 32, words, 32);
	cann_aux_data(f, 0, "stars_soc_profile.data", record, sizeof(record));
}

/*
 * Amounts of the time since the record before, 232 bytes of 20 ms, however
 * long ago that was and whatever it held.
 */
static void die_amounts_are_of_intervals(void **state)
{
	static const uint32_t first[8] = { UINT32_MAX - 9, 5 }, second[8] = { 232, 1000 },
			      third[8] = { 232, UINT32_MAX };
	struct cann_aux_capture *f = *state;

	soc_record(f, 0x19, CANN_AUX_TICKS + 50, 1, first, 0x6bd3);
	soc_record(f, 0x19, CANN_AUX_TICKS + 60, 1, first, 0x1234);
	soc_record(f, 0x19, CANN_AUX_TICKS + 50 + 20 * 50000, 1, second, 0x6bd3);
	soc_record(f, 0x3f, CANN_AUX_TICKS + 51 + 20 * 50000, 1, second, 0x6bd3);
	soc_record(f, 0x19, CANN_AUX_TICKS + 50 + 60 * 50000, 1, third, 0x6bd3);
	cann_aux_import(f);
	assert_int_equal(f->m.sio.t.len, 2);
	assert_true(f->m.sio.rx_req[0] == 11600);
	assert_true(f->m.sio.rx_rsp[0] == 50000);
	assert_true(f->m.sio.rx_req[1] == 5800);
	assert_true(f->m.sio.rx_rsp[1] == UINT32_MAX * 25.0);
	assert_string_equal(cann_aux_name(f, f->m.sio.name[0]), "die 1");
	assert_int_equal(cann_aux_lost(f, "records of stars_soc_profile.data.0"), 2);
}

/* Mata 3 in bits 0 to 2, the L2 buffer 5 in bits 3 to 10. */
static void levels_are_their_own(void **state)
{
	static const uint32_t words[8] = { 5 << 3 | 3 };
	struct cann_aux_capture *f = *state;

	soc_record(f, 0x1c, CANN_AUX_TICKS + 50, 0, words, 0x6bd3);
	cann_aux_import(f);
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
	struct cann_aux_capture *f = *state;

	cann_aux_data(f, 0, "l2_cache.data", l2, sizeof(l2));
	cann_aux_data(f, 0, "socpmu.data", soc, sizeof(soc));
	cann_aux_import(f);
	assert_int_equal(f->m.l2_cache.t.len, 2);
	assert_int_equal(f->m.l2_cache.stream[0], 1);
	assert_true(f->m.l2_cache.first[0] == 0.25);
	assert_true(f->m.l2_cache.second[0] == 0.1);
	assert_true(isnan(f->m.l2_cache.first[1]));
	assert_int_equal(f->m.soc_pmu.t.len, 1);
	assert_true(isnan(f->m.soc_pmu.first[0])); /* hits were not recorded */
	assert_int_equal(f->m.page_fault.t.len, 1);
	assert_true(f->m.page_fault.first[0] == 6);
	assert_int_equal(cann_aux_lost(f, "records of socpmu.data.0"), 1);
}

/*
 * A session has its host's rows when its devices are cut to the capture: a call
 * that began before is still open in it.
 */
static void only_devices_are_clipped(void **state)
{
	static const struct hbm1 records[] = { { 1000, 1, 0, 0 }, { 3000, 1, 0, 0 }, { 9000, 1, 0, 0 } };
	struct cann_aux_capture *f = *state;

	cann_aux_text(f, NPS_CANN_HOST, "host_pthreadcall.data",
		      "[pid 98] 1736408999.000001 lib->pthread_cond_wait(0x1, 0) = 0 <0.5>\n");
	cann_aux_data(f, 0, "hbm.data", records, sizeof(records));
	cann_aux_import(f);
	assert_int_equal(nps_cann_aux__clip(&f->m, CANN_AUX_UNIX + 2000000, CANN_AUX_UNIX + 8000000), 0);
	assert_int_equal(f->m.hbm.t.len, 1);
	assert_int_equal(f->m.hbm.timestamp[0], CANN_AUX_UNIX + 3000000);
	assert_int_equal(f->m.osrt.t.len, 1);
	assert_int_equal(f->m.osrt.start[0], CANN_AUX_UNIX);
	assert_int_equal(f->m.osrt.end[0], CANN_AUX_UNIX + 500000000);
}

static void older_files_of_the_ai_cpu(void **state)
{
	static const char lines[] = "Node:GetNext_dequeue_wait, queue size:6, Run start:2, Run end:5\n\0"
				    "Node:x, queue size:7, Run start:9, Run end:3\n\0nothing\n\0";
	uint8_t record[128] = { 0x5a, 0x5a, 100 };
	struct cann_aux_capture *f = *state;

	cann_aux_data(f, 0, "DATA_PREPROCESS.AICPUMI", lines, sizeof(lines) - 1);
	memcpy(record + 8, &(uint64_t){ CANN_AUX_RAW + 9 }, 8);
	memcpy(record + 16, "enqueue\0garbage", 16);
	memset(record + 32, 's', 64);
	record[104] = 3;
	cann_aux_data(f, 0, "DATA_PREPROCESS.DP", record, sizeof(record));
	cann_aux_import(f);
	assert_int_equal(f->m.aicpu_mi.t.len, 1);
	assert_int_equal(f->m.aicpu_mi.start[0], CANN_AUX_UNIX + 1000);
	assert_int_equal(f->m.aicpu_mi.end[0], CANN_AUX_UNIX + 4000);
	assert_int_equal(f->m.aicpu_mi.queue[0], 6);
	assert_int_equal(cann_aux_lost(f, "records of DATA_PREPROCESS.AICPUMI.0"), 2);
	assert_int_equal(f->m.dp.t.len, 1);
	assert_int_equal(f->m.dp.timestamp[0], CANN_AUX_UNIX + 9);
	assert_string_equal(cann_aux_name(f, f->m.dp.action[0]), "enqueue");
	assert_int_equal(strlen(cann_aux_name(f, f->m.dp.source[0])), 64);
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
	struct cann_aux_capture *f = *state;
	const struct nps_sample_summary_table *t = &f->m.sample_summary;
	uint8_t record[96] = { 0, 0, 80 };

	record[89] = 3; /* core */
	for (unsigned int segment = 0; segment < 2; segment++) {
		struct nps_dictionary names = { .strings = f->m.strings };

		memcpy(record + 72, &(uint64_t){ 1000 + segment }, 8);
		memcpy(record + 80, &(uint64_t){ 1000 }, 8);
		cann_aux_data(f, 0, "ffts_profile.data", record, sizeof(record));
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
		if (!strcmp(cann_aux_name(f, t->metric[i]), "total_cycles"))
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
	struct cann_aux_capture *f = *state;
	char bytes[5000];

	for (unsigned int device = 0; device < CANN_AUX_DEVICES; device++) {
		memset(bytes, device ? 0xff : '0', sizeof(bytes));
		for (size_t i = 0; i < NPS_ARRAY_SIZE(names); i++)
			cann_aux_data(f, device, names[i], bytes, sizeof(bytes));
	}
	memset(bytes, '1', sizeof(bytes));
	for (size_t i = 0; i < NPS_ARRAY_SIZE(host_names); i++)
		cann_aux_data(f, NPS_CANN_HOST, host_names[i], bytes, sizeof(bytes));
	cann_aux_import(f);
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
	err = cann_aux_import_dirs(&m, &host, devices, numbers, n, proffd);
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, cann_aux_setup, cann_aux_teardown)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(hbm_rates_are_of_the_same_unit),
		cmocka_unit_test_setup_teardown(hbm_of_the_second_version_has_unix_times,
						cann_aux_setup_second, cann_aux_teardown),
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
		TEST(only_devices_are_clipped),
		TEST(older_files_of_the_ai_cpu),
		TEST(sums_of_cores_are_of_all_segments),
		TEST(nonsense_is_survived),
	};

	if (argc == 3)
		return write_all(argv[1], argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
