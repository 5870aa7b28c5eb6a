/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `ingest DIR TASKS`: what a task costs the collector, from the helper's blocks to the session's files, and
 * the analyzer, from those files to tasks with a start and an end. Prints a line for each: name, CPU
 * seconds, tasks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/channel_files.h"
#include "import/cann/capture.h"

#define RECORD 64
#define BLOCK (256U << 10) /* as the helper hands them over */
#define STREAMS 8

static double cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void fail(const char *what, int err)
{
	fprintf(stderr, "ingest: %s: %s\n", what, strerror(-err));
	exit(1);
}

static void record(unsigned char *p, uint64_t number)
{
	uint64_t task = number / 2, count = 1000 + number * 50;
	unsigned int head = (unsigned int)(number & 1) | (number & 0xf) << 6;

	memset(p, 0, RECORD);
	p[0] = (unsigned char)head;
	p[1] = (unsigned char)(head >> 8);
	p[2] = 0xd3;
	p[3] = 0x6b;
	p[4] = task % STREAMS;
	p[6] = (unsigned char)(task / STREAMS);
	p[7] = (unsigned char)(task / STREAMS >> 8);
	memcpy(p + 8, &count, sizeof(count));
}

static void collect(struct nps_channel_files *files, uint64_t tasks)
{
	struct nps_channel_at at = { .device = 0, .channel = 50, .reader = NPS_READ_BY_AGENT, .epoch = 1 };
	unsigned char *block = malloc(BLOCK);
	double spent = 0;

	if (!block)
		fail("block", -ENOMEM);
	for (uint64_t n = 0; n < 2 * tasks;) {
		uint32_t len = 0;
		double begin;
		int err;

		for (; len < BLOCK && n < 2 * tasks; len += RECORD)
			record(block + len, n++);
		begin = cpu();
		err = nps_channel_files__put(files, &at, block, len);
		spent += cpu() - begin;
		if (err)
			fail("put", err);
		at.position += len;
	}
	free(block);
	printf("collect %.6f %llu\n", spent, (unsigned long long)tasks);
}

static void decode(const struct nps_session_writer *s, const char *prof, uint64_t tasks)
{
	struct nps_cann_capture capture;
	struct nps_model model;
	double begin = cpu();
	char path[64];
	int err = nps_model__init(&model, s->dir_fd, NULL), fd;
	uint64_t ended = 0;

	if (err)
		fail("model", err);
	nps_cann_capture__init(&capture, &model);
	capture.devices = calloc(1, sizeof(*capture.devices));
	snprintf(path, sizeof(path), "device_0");
	fd = openat(s->dir_fd, prof, O_RDONLY | O_DIRECTORY);
	err = fd < 0 ? -errno : nps_cann_dir__open(&capture.devices[0], &model, fd, path, 0);
	if (err)
		fail(prof, err);
	capture.ndevices = 1;
	capture.devices[0].chip = NPS_CHIP_910B;
	capture.devices[0].device_clock = (struct nps_cann_clock){ .known = true, .hz = NPS_NS_PER_S };
	err = nps_cann_capture__devices(&capture);
	if (err)
		fail("decode", err);
	for (size_t i = 0; i < capture.runs.len; i++)
		ended += NPS_AT(&capture.runs, struct nps_cann_run, i).end != 0;
	printf("decode %.6f %llu\n", cpu() - begin, (unsigned long long)ended);
	if (ended != tasks)
		fail("not every task came back", -EPROTO);
	nps_cann_capture__free(&capture);
	nps_model__free(&model);
	close(fd);
}

int main(int argc, char **argv)
{
	struct nps_channel_files *files;
	struct nps_log_budget budget;
	struct nps_session_writer s;
	uint64_t tasks = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	int err;

	if (!tasks) {
		fprintf(stderr, "usage: ingest DIR TASKS\n");
		return 2;
	}
	err = nps_session_writer__create(argv[1], &s);
	if (!err)
		nps_log_budget__init(&budget, &s, UINT64_MAX, NPS_LOG_RATE);
	files = err ? NULL : nps_channel_files__new(getpid(), &s, &budget);
	if (!files)
		fail(argv[1], err ? err : -ENOMEM);
	collect(files, tasks);
	nps_channel_files__finish(files);
	decode(&s, nps_channel_files__dir(files), tasks);
	nps_channel_files__free(files);
	nps_log_budget__free(&budget);
	nps_session_writer__close(&s);
	return 0;
}
