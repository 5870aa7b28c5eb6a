/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collector's end of the helper's memory. This program plays the helper: what it puts into
 * the ring, true or hostile, must come out as whole records or be refused.
 */
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
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "capture/agent_client.h"
#include "capture/capture.h"

#define SIZE (NPS_AGENT_CONTROL_SIZE + NPS_AGENT_RING_SIZE)

static char dir[64];
static struct nps_session_writer session;
static struct nps_log_budget budget;
static struct nps_channel_files *files;
static struct nps_agent_control *ctl;
static char *ring;
static int memfd;
static uint32_t delivered; /* bytes of the log so far: a block has where in a record it begins */

static void make_memory(unsigned int seals, off_t size)
{
	void *m;

	memfd = memfd_create(NPS_AGENT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(memfd >= 0);
	assert_int_equal(ftruncate(memfd, size), 0);
	/* executable or not does not matter: the collector looks for the name */
	m = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	assert_true(m != MAP_FAILED);
	if (seals)
		assert_int_equal(fcntl(memfd, F_ADD_SEALS, seals), 0);
	ctl = m;
	ring = (char *)m + NPS_AGENT_CONTROL_SIZE;
}

static void announce(void)
{
	ctl->version = NPS_AGENT_VERSION;
	ctl->ring_size = NPS_AGENT_RING_SIZE;
	ctl->magic = NPS_AGENT_MAGIC;
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/nps_unit_XXXXXX");
	if (!mkdtemp(dir) || nps_session_writer__create(dir, &session))
		return -1;
	nps_log_budget__init(&budget, &session, 1ULL << 30, NPS_LOG_RATE);
	files = nps_channel_files__new(getpid(), &session, &budget);
	make_memory(F_SEAL_SHRINK, SIZE);
	delivered = 0;
	return files ? 0 : -1;
}

static int teardown(void **state)
{
	char cmd[96];

	(void)state;
	munmap(ctl, SIZE);
	close(memfd);
	nps_channel_files__free(files);
	nps_log_budget__free(&budget);
	nps_session_writer__close(&session);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd);
}

static int open_client(struct nps_agent_client **a)
{
	struct nps_maps maps;
	char why[128] = "";
	int err;

	assert_int_equal(nps_maps__read(getpid(), NULL, &maps), 0);
	err = nps_agent_client__open(getpid(), &maps, &session, files, a, why, sizeof(why));
	nps_maps__free(&maps);
	if (err)
		assert_true(why[0] != '\0');
	return err;
}

/* Opening a mapping through map_files needs privileges that not every tester has. */
static struct nps_agent_client *start(void)
{
	struct nps_agent_client *a = NULL;
	int err;

	announce();
	err = open_client(&a);
	if (err == -EPERM || err == -EACCES || err == -ENOENT)
		skip();
	assert_int_equal(err, 0);
	nps_agent_client__start(a, NPS_AIC_NONE);
	assert_int_equal(ctl->command, NPS_AGENT_RUN);
	return a;
}

/* As a child by vfork(2) is seen: what its parent's helper does is not changed. */
static void the_helper_of_another_process(void **state)
{
	struct nps_agent_client *a = start(), *b = NULL;
	uint32_t woken = ctl->wake;

	(void)state;
	assert_int_equal(open_client(&b), -EBUSY);
	assert_null(b);
	assert_int_equal(ctl->command, NPS_AGENT_RUN);
	assert_int_equal(ctl->owner, getpid());
	assert_int_equal(ctl->wake, woken);
	nps_agent_client__free(a);
	assert_int_equal(open_client(&b), 0);
	nps_agent_client__free(b);
	assert_int_equal(ctl->owner, 0);
}

static void put(uint32_t type, uint32_t device, const void *data, uint32_t len)
{
	struct nps_agent_block b = {
		.type = type, .len = len, .device = device, .channel = 50, .epoch = 1, .position = delivered
	};
	uint32_t at = ctl->head & (NPS_AGENT_RING_SIZE - 1);

	memcpy(ring + at, &b, sizeof(b));
	memcpy(ring + at + sizeof(b), data, len);
	ctl->head += sizeof(b) + ((len + 7) & ~7U);
	if (type == NPS_AGENT_B_DATA)
		delivered += len;
}

static size_t slice(unsigned int device, char *buf, size_t size)
{
	char path[PATH_MAX + 256];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/device_%u/data/stars_soc.data.%u.slice_0", session.path,
		 nps_channel_files__dir(files), device, device);
	f = fopen(path, "r");
	if (f) {
		n = fread(buf, 1, size, f);
		fclose(f);
	}
	return n;
}

static void split_records_come_out_whole(void **state)
{
	struct nps_agent_client *a = start();
	char records[320], got[512];

	(void)state;
	for (int i = 0; i < 320; i++)
		records[i] = (char)(i * 7);
	put(NPS_AGENT_B_DATA, 3, records, 100); /* a record and a half */
	assert_int_equal(nps_agent_client__drain(a), 0);
	assert_int_equal(slice(3, got, sizeof(got)), 64);
	put(NPS_AGENT_B_DATA, 3, records + 100, 1);
	put(NPS_AGENT_B_DATA, 3, records + 101, 219);
	assert_int_equal(nps_agent_client__drain(a), 0);
	assert_int_equal(slice(3, got, sizeof(got)), 320);
	assert_memory_equal(got, records, 320);
	assert_int_equal(ctl->tail, ctl->head);
	assert_true(nps_agent_client__delivered(a));
	nps_agent_client__free(a);
	assert_int_equal(ctl->owner, 0);
}

/* The helper had no room for 90 bytes in the middle: what follows is found again at a whole record. */
static void a_gap_costs_only_itself(void **state)
{
	struct nps_agent_client *a = start();
	char records[320], got[512];

	(void)state;
	for (int i = 0; i < 320; i++)
		records[i] = (char)(i / 64);
	put(NPS_AGENT_B_DATA, 0, records, 70);
	delivered += 90;
	put(NPS_AGENT_B_DATA, 0, records + 160, 160);
	assert_int_equal(nps_agent_client__drain(a), 0);
	/* record 0 before the gap, 3 and 4 after it; 1 and 2 were torn */
	assert_int_equal(slice(0, got, sizeof(got)), 192);
	assert_int_equal(got[0], 0);
	assert_int_equal(got[64], 3);
	assert_int_equal(got[191], 4);
	nps_agent_client__free(a);
}

static void ring_wraps(void **state)
{
	struct nps_agent_client *a;
	struct nps_agent_block skip_block = { .type = NPS_AGENT_B_SKIP };
	char record[64] = "after the end", got[256];

	(void)state;
	/* 40 bytes before the end: a skip block, then on at the start */
	ctl->head = NPS_AGENT_RING_SIZE - 40;
	a = start();
	skip_block.len = 40 - sizeof(skip_block);
	memcpy(ring + NPS_AGENT_RING_SIZE - 40, &skip_block, sizeof(skip_block));
	ctl->head += 40;
	put(NPS_AGENT_B_DATA, 0, record, 64);
	assert_int_equal(nps_agent_client__drain(a), 0);
	assert_int_equal(slice(0, got, sizeof(got)), 64);
	assert_string_equal(got, "after the end");
	nps_agent_client__free(a);
}

static void end_too_short_for_a_block(void **state)
{
	struct nps_agent_client *a;
	char record[64] = "x", got[256];

	(void)state;
	ctl->head = NPS_AGENT_RING_SIZE - 8;
	a = start();
	ctl->head += 8;
	put(NPS_AGENT_B_DATA, 0, record, 64);
	assert_int_equal(nps_agent_client__drain(a), 0);
	assert_int_equal(slice(0, got, sizeof(got)), 64);
	nps_agent_client__free(a);
}

static void hostile_numbers(void **state)
{
	static const struct nps_agent_block bad[] = {
		{ .type = NPS_AGENT_B_DATA, .len = 0xffffffff },
		{ .type = NPS_AGENT_B_DATA, .len = NPS_AGENT_RING_SIZE },
		{ .type = NPS_AGENT_B_DATA, .len = 1000 }, /* more than head - tail */
		{ .type = NPS_AGENT_B_DATA, .len = 16, .device = NPS_AGENT_MAX_DEVICES },
		{ .type = 77, .len = 16 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct nps_agent_client *a;

		ctl->head = 0;
		ctl->owner = 0;
		ctl->command = ctl->state = 0;
		delivered = 0;
		a = start();
		memcpy(ring, &bad[i], sizeof(bad[i]));
		ctl->head = 64;
		assert_int_equal(nps_agent_client__drain(a), -EPROTO);
		assert_int_equal(nps_agent_client__drain(a), 0); /* given up, quietly */
		assert_true(nps_agent_client__idle(a));
		nps_agent_client__free(a);
	}
}

static void block_longer_than_a_helper_makes(void **state)
{
	struct nps_agent_client *a = start();
	struct nps_agent_block b = { .type = NPS_AGENT_B_DATA,
				     .len = NPS_AGENT_BLOCK_MAX + 8,
				     .channel = 50 };

	(void)state;
	memcpy(ring, &b, sizeof(b));
	ctl->head += sizeof(b) + b.len;
	assert_int_equal(nps_agent_client__drain(a), -EPROTO);
	nps_agent_client__free(a);
}

/* The log alone ends: the session has no error, and the helper is ordered to release it. */
static void log_that_has_its_share_ends(void **state)
{
	static char data[64 << 10];
	struct nps_agent_client *a = start();

	(void)state;
	budget.max_size = nps_session_writer__bytes(&session) + (1 << 20);
	budget.n_owners = 2; /* there is somebody else */
	ctl->state = NPS_AGENT_RUN;
	for (int i = 0; i < 10; i++)
		put(NPS_AGENT_B_DATA, 0, data, sizeof(data));
	assert_int_equal(nps_agent_client__drain(a), -ENOBUFS);
	assert_in_range(nps_agent_client__bytes(a), 6 * sizeof(data), 9 * sizeof(data));
	assert_int_equal(nps_session_writer__error(&session), 0);
	assert_int_equal(ctl->command, NPS_AGENT_IDLE);
	assert_true(nps_agent_client__idle(a));
	assert_int_equal(nps_agent_client__drain(a), 0);
	nps_agent_client__free(a);
}

/* Blocks without a byte cost time, and clocks bytes: none of it is for nothing. */
static void clocks_count_as_bytes(void **state)
{
	struct nps_agent_client *a = start();
	struct nps_device_clock c[16] = { 0 };
	int err = 0;

	(void)state;
	budget.max_size = nps_session_writer__bytes(&session) + (256 << 10);
	budget.n_owners = 2;
	for (int i = 0; i < 1000 && !err; i++) {
		put(NPS_AGENT_B_CLOCK, 0, c, sizeof(c));
		err = nps_agent_client__drain(a);
	}
	assert_int_equal(err, -ENOBUFS);
	nps_agent_client__free(a);
}

/* Of a collector that was killed: its helper may be in the driver for long. */
static void helper_that_runs_still_is_not_waited_for(void **state)
{
	struct nps_agent_client *a = NULL;
	char data[64] = "", reason[128];
	int err;

	(void)state;
	announce();
	ctl->command = ctl->state = NPS_AGENT_RUN;
	ctl->device[1].status = NPS_AGENT_S_ON;
	ctl->device[1].started_raw = 1;
	err = open_client(&a);
	if (err == -EPERM || err == -EACCES || err == -ENOENT)
		skip();
	assert_int_equal(err, 0);
	nps_agent_client__start(a, NPS_AIC_NONE);
	assert_int_equal(ctl->command, NPS_AGENT_IDLE);
	assert_false(nps_agent_client__is_logging(a) || nps_agent_client__uses(a, 1));
	assert_true(nps_agent_client__idle(a)); /* nothing of this capture's is to be waited for */
	nps_agent_client__reason(a, reason, sizeof(reason));
	assert_non_null(strstr(reason, "the capture before this one"));
	put(NPS_AGENT_B_DATA, 0, data, sizeof(data)); /* of the capture before */
	assert_int_equal(nps_agent_client__drain(a), 0);
	ctl->state = NPS_AGENT_IDLE;
	assert_int_equal(nps_agent_client__drain(a), 0);
	assert_int_equal(ctl->command, NPS_AGENT_RUN);
	assert_int_equal(ctl->device[1].started_raw, 0);
	assert_int_equal(nps_agent_client__bytes(a), 0);
	nps_agent_client__free(a);
	assert_int_equal(ctl->command, NPS_AGENT_IDLE);
	assert_int_equal(ctl->owner, 0);
}

/* What is in the ring when the capture ends, and nobody reads any more, is lost, and counted. */
static void bytes_that_are_left_count_as_lost(void **state)
{
	struct nps_agent_client *a = start();
	char data[64] = "";

	(void)state;
	put(NPS_AGENT_B_DATA, 0, data, sizeof(data));
	assert_false(nps_agent_client__drained(a));
	assert_int_equal(nps_agent_client__drain(a), 0);
	assert_true(nps_agent_client__drained(a));
	nps_agent_client__finish(a);
	assert_int_equal(nps_agent_client__lost(a), 0);
	put(NPS_AGENT_B_DATA, 0, data, sizeof(data));
	nps_agent_client__finish(a);
	assert_int_equal(nps_agent_client__lost(a), sizeof(struct nps_agent_block) + sizeof(data));
	nps_agent_client__free(a);
}

/* The job claims an end of 4 bytes where 8 are left to the end of the ring. */
static void head_inside_the_end(void **state)
{
	struct nps_agent_client *a;

	(void)state;
	ctl->head = NPS_AGENT_RING_SIZE - 8;
	a = start();
	ctl->head += 4;
	assert_int_equal(nps_agent_client__drain(a), -EPROTO);
	nps_agent_client__free(a);
}

static void head_that_runs_away(void **state)
{
	struct nps_agent_client *a = start();

	(void)state;
	ctl->head = 1ULL << 60;
	assert_int_equal(nps_agent_client__drain(a), -EPROTO);
	nps_agent_client__free(a);
}

static void clocks_are_stamped_by_us(void **state)
{
	struct nps_agent_client *a = start();
	struct nps_device_clock c = { .device = 63,
				      .pid = 1,
				      .raw_before = 10,
				      .raw_after = 20,
				      .counter = 30 },
				got;
	char path[PATH_MAX + 16];
	FILE *f;

	(void)state;
	put(NPS_AGENT_B_CLOCK, 2, &c, sizeof(c));
	assert_int_equal(nps_agent_client__drain(a), 0);
	snprintf(path, sizeof(path), "%s/clocks.nps", session.path);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fseek(f, sizeof(struct nps_chunk), SEEK_SET), 0);
	assert_int_equal(fread(&got, sizeof(got), 1, f), 1);
	fclose(f);
	assert_int_equal(got.device, 2);
	assert_int_equal(got.pid, getpid());
	assert_int_equal(got.counter, 30);
	nps_agent_client__free(a);
}

/* The number that the driver has for a chip, where anybody has described it; else its name. */
static void chips_are_distinguished(void **state)
{
	static const struct {
		uint32_t type;
		const char *name;
		uint32_t platform;
		int events;
	} chips[] = { { 1, "910A", 1, 8 },	{ 5, "910B3", 5, 8 },	{ 15, "950PR", 15, 9 },
		      { 16, "950DT", 16, 9 },	{ 17, "new", 17, 0 },	{ 17, "910B4", 5, 8 },
		      { 1000, "950PR", 15, 9 }, { 1000, "new", 255, 0 } };
	static const struct nps_device_facts none;
	struct nps_agent_client *a = start();

	(void)state;
	nps_agent_client__start(a, NPS_AIC_PIPE);
	for (size_t i = 0; i < sizeof(chips) / sizeof(*chips); i++) {
		cJSON *list = cJSON_CreateArray();
		const cJSON *device, *platform;

		ctl->device[4].started_raw = 1;
		ctl->device[4].chip_type = chips[i].type;
		snprintf(ctl->device[4].chip, sizeof(ctl->device[4].chip), "%s", chips[i].name);
		nps_agent_client__describe_devices(a, &none, getuid(), false, list);
		nps_agent_client__describe_events(a, list);
		device = cJSON_GetArrayItem(list, 0);
		assert_non_null(device);
		platform = cJSON_GetObjectItem(device, "platform");
		assert_int_equal(platform ? platform->valueint : 255, chips[i].platform);
		assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(device, "aic_events")),
				 chips[i].events);
		cJSON_Delete(list);
	}
	nps_agent_client__free(a);
}

/*
 * The entry of device 4 that a helper of user UID leads to, "" for its chip:
 * there is none. The caller frees the list.
 */
static const char *described(const struct nps_agent_client *a, const struct nps_device_facts *facts,
			     uid_t uid, bool foreign, cJSON **list)
{
	const cJSON *chip;

	*list = cJSON_CreateArray();
	nps_device_facts__describe(facts, *list);
	nps_agent_client__describe_devices(a, facts, uid, foreign, *list);
	nps_agent_client__describe_events(a, *list);
	assert_in_range(cJSON_GetArraySize(*list), 0, 1);
	chip = cJSON_GetObjectItem(cJSON_GetArrayItem(*list, 0), "chip");
	return chip ? chip->valuestring : "";
}

static void expect_chip(const struct nps_agent_client *a, const struct nps_device_facts *facts, uid_t uid,
			bool foreign, const char *chip)
{
	cJSON *list;

	assert_string_equal(described(a, facts, uid, foreign, &list), chip);
	cJSON_Delete(list);
}

/* The helper reports that device 4 is a 910A. */
static void report_chip(struct nps_agent_client *a)
{
	nps_agent_client__start(a, NPS_AIC_PIPE);
	ctl->device[4].started_raw = 1;
	ctl->device[4].chip_type = 1;
	snprintf(ctl->device[4].chip, sizeof(ctl->device[4].chip), "910A");
}

/*
 * Chip and frequency decide how everybody's log of that device is read: nobody sets
 * them for a device that another user has.
 */
static void nobody_describes_anothers_device(void **state)
{
	static struct nps_device_facts facts;
	struct nps_agent_client *a = start();
	cJSON *list;

	(void)state;
	memset(&facts, 0, sizeof(facts));
	report_chip(a);
	expect_chip(a, &facts, 2000, false, "910A"); /* nobody else is known to have it */
	nps_device_facts__used(&facts, 7, 0, 4, true);
	expect_chip(a, &facts, 0, true, "910A"); /* nor but in containers */
	nps_device_facts__used(&facts, 8, 1000, 4, false);
	expect_chip(a, &facts, 1000, false, "910A");
	expect_chip(a, &facts, 2000, false, "");
	expect_chip(a, &facts, 0, true, "");
	expect_chip(a, &facts, 1000, true, "");
	nps_device_facts__used(&facts, 8, 1000, 4, false);
	expect_chip(a, &facts, 1000, false, "910A");
	nps_device_facts__used(&facts, 7, 0, 4, true); /* what a container calls so is another */
	expect_chip(a, &facts, 1000, false, "910A");
	nps_device_facts__used(&facts, 9, 2000, 4, false); /* two users: the driver has the word */
	expect_chip(a, &facts, 1000, false, "");
	expect_chip(a, &facts, 2000, false, "");
	nps_device_facts__used(&facts, 9, 2000, 4, false);
	expect_chip(a, &facts, 2000, false, "");
	memset(&facts, 0, sizeof(facts));
	nps_device_facts__used(&facts, 8, 1000, 4, false);
	facts.known = 1 << 4;
	facts.info[4] = (struct nps_device_info){ .id = 4, .platform = 15, .chip = "950PR" };
	expect_chip(a, &facts, 2000, false, "950PR");
	assert_string_equal(described(a, &facts, 1000, false, &list), "950PR");
	/* What its counters count is npuscope's choice, by the chip that it is. */
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(cJSON_GetArrayItem(list, 0), "aic_events")),
			 9);
	cJSON_Delete(list);
	/* ... also of a device that two users had one after the other */
	nps_device_facts__used(&facts, 9, 2000, 4, false);
	assert_string_equal(described(a, &facts, 2000, false, &list), "950PR");
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(cJSON_GetArrayItem(list, 0), "aic_events")),
			 9);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(cJSON_GetArrayItem(list, 0), "aiv_events")),
			 9);
	cJSON_Delete(list);
	nps_agent_client__free(a);
}

/* Containers of several users may mean several devices by one number. */
static void containers_of_others_do_not_describe(void **state)
{
	static struct nps_device_facts facts;
	struct nps_agent_client *a = start();

	(void)state;
	memset(&facts, 0, sizeof(facts));
	report_chip(a);
	nps_device_facts__used(&facts, 7, 1000, 4, true);
	expect_chip(a, &facts, 1000, true, "910A");
	expect_chip(a, &facts, 2000, true, "");
	expect_chip(a, &facts, 2000, false, "");
	nps_device_facts__used(&facts, 8, 2000, 4, true);
	expect_chip(a, &facts, 1000, true, "");
	expect_chip(a, &facts, 2000, true, "");
	nps_device_facts__used(&facts, 9, 2000, 4, false); /* one of the host has the word */
	expect_chip(a, &facts, 2000, false, "910A");
	expect_chip(a, &facts, 2000, true, "");
	nps_agent_client__free(a);
}

static void memory_that_can_shrink_is_refused(void **state)
{
	struct nps_agent_client *a = NULL;
	int err;

	(void)state;
	munmap(ctl, SIZE);
	close(memfd);
	make_memory(0, SIZE);
	announce();
	err = open_client(&a);
	if (err == -EPERM || err == -EACCES || err == -ENOENT)
		skip();
	assert_int_equal(err, -EPROTO);
}

static void wrong_version_and_busy(void **state)
{
	struct nps_agent_client *a = start(), *second = NULL;
	pid_t kin;

	(void)state;
	/* another process of our name, alive: somebody else's */
	kin = fork();
	if (kin == 0) {
		pause();
		_exit(0);
	}
	ctl->owner = (uint32_t)kin;
	assert_int_equal(open_client(&second), -EBUSY);
	kill(kin, SIGKILL);
	waitpid(kin, NULL, 0);
	/* dead now: the helper is free again */
	assert_int_equal(open_client(&second), 0);
	nps_agent_client__free(second);
	ctl->version = NPS_AGENT_VERSION + 1;
	assert_int_equal(open_client(&second), -EPROTO);
	nps_agent_client__free(a);
}

/* exec: what the old program's helper delivered stays counted, and the new one's can be opened beside it. */
static void program_before_exec_stays_counted(void **state)
{
	struct nps_agent_client *a = start(), *former = NULL;
	char data[128] = "";

	(void)state;
	nps_agent_client__retire(&a, &former); /* it has delivered nothing */
	assert_null(a);
	assert_null(former);
	ctl->command = ctl->state = NPS_AGENT_IDLE;
	a = start();
	put(NPS_AGENT_B_DATA, 0, data, sizeof(data));
	ctl->lost += 64;
	assert_int_equal(nps_agent_client__drain(a), 0);
	nps_agent_client__retire(&a, &former);
	assert_null(a);
	assert_true(nps_agent_client__delivered(former));
	assert_false(nps_agent_client__delivered(a));
	ctl->owner = 0; /* as a new program's memory */
	ctl->command = ctl->state = NPS_AGENT_IDLE;
	delivered = 0;
	a = start();
	put(NPS_AGENT_B_DATA, 1, data, 64);
	assert_int_equal(nps_agent_client__drain(a), 0);
	assert_int_equal(nps_agent_client__bytes(a), 64);
	nps_agent_client__retire(&a, &former);
	assert_int_equal(nps_agent_client__bytes(former), 192);
	assert_int_equal(nps_agent_client__lost(former), 64);
	nps_agent_client__free(former);
}

static uint64_t lost_of(const cJSON *session, const char *key)
{
	const cJSON *drops = cJSON_GetObjectItemCaseSensitive(session, "drops"),
		    *lost = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(drops, "agent"),
							     key);

	assert_non_null(lost);
	return strtoull(lost->valuestring, NULL, 10); /* a raw item: all its digits */
}

/* The kernel gives a pid again: what each process's helper lost is the session's. */
static void losses_of_two_processes_with_one_pid(void **state)
{
	struct nps_record_opts opts = { .sz = sizeof(opts) };
	struct nps_process *first = nps_process__new(4000), *second = nps_process__new(4000);
	struct nps_capture *c = calloc(1, sizeof(*c));
	char data[64] = { 0 };
	cJSON *j;

	(void)state;
	assert_non_null(c);
	c->opts = &opts;
	c->processes = first;
	first->next = second;
	first->start_mono = 7000000000000000001;
	second->start_mono = 5;
	first->agent = start();
	put(NPS_AGENT_B_DATA, 0, data, 64);
	assert_int_equal(nps_agent_client__drain(first->agent), 0);
	ctl->lost += 64;
	nps_agent_client__retire(&first->agent, &first->former);
	ctl->owner = 0; /* as a new process's memory */
	ctl->command = ctl->state = NPS_AGENT_IDLE;
	second->agent = start();
	ctl->lost += 16; /* of the first one too, whose memory it is */
	j = nps_capture__describe(c);
	assert_int_equal(lost_of(j, "4000@7000000000000000001"), 80);
	assert_int_equal(lost_of(j, "4000@5"), 16);
	cJSON_Delete(j);
	nps_agent_client__free(second->agent);
	nps_agent_client__free(first->former);
	nps_process__free(first);
	nps_process__free(second);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(split_records_come_out_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(a_gap_costs_only_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(ring_wraps, setup, teardown),
		cmocka_unit_test_setup_teardown(end_too_short_for_a_block, setup, teardown),
		cmocka_unit_test_setup_teardown(hostile_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(block_longer_than_a_helper_makes, setup, teardown),
		cmocka_unit_test_setup_teardown(log_that_has_its_share_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(bytes_that_are_left_count_as_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(clocks_count_as_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(helper_that_runs_still_is_not_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(head_inside_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(head_that_runs_away, setup, teardown),
		cmocka_unit_test_setup_teardown(clocks_are_stamped_by_us, setup, teardown),
		cmocka_unit_test_setup_teardown(chips_are_distinguished, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_describes_anothers_device, setup, teardown),
		cmocka_unit_test_setup_teardown(containers_of_others_do_not_describe, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_that_can_shrink_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(the_helper_of_another_process, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_version_and_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(program_before_exec_stays_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(losses_of_two_processes_with_one_pid, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
