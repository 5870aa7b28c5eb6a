/* SPDX-License-Identifier: BSD-2-Clause */
/* The job reads its own STARS log, as an in-process profiler would. */
#include "job.h"
#include "../abi/ascend_hal.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#define READ_BYTES (1u << 20)

static struct {
	unsigned int device, channel;
	atomic_bool stopping;
	pthread_t thread;
	FILE *out;
} profile;

static void read_until_empty(char *buf)
{
	int n;

	while ((n = prof_channel_read(profile.device, profile.channel, buf, READ_BYTES)) > 0)
		check(fwrite(buf, 1, (size_t)n, profile.out) != (size_t)n, "self profile");
	check(n, "prof_channel_read");
}

/* The chip's task log. */
static unsigned int find_channel(unsigned int device)
{
	static channel_list_t list;
	unsigned int channel = 0;

	check(prof_drv_get_channels(device, &list), "prof_drv_get_channels");
	for (uint32_t i = 0; i < list.channel_num; i++) {
		if (list.channel[i].id == CHANNEL_STARS_SOC_LOG || list.channel[i].id == CHANNEL_HWTS_LOG)
			channel = list.channel[i].id;
	}
	check(!channel, "no task log");
	return channel;
}

static void *profile_run(void *arg)
{
	char *buf = malloc(READ_BYTES);
	struct prof_poll_info ready;
	unsigned int len;

	(void)arg;
	check(!buf, "self profile");
	while (!atomic_load(&profile.stopping)) {
		int n = prof_channel_poll(&ready, 1, 1);

		check(n < 0 ? n : 0, "prof_channel_poll");
		read_until_empty(buf);
	}
	check(halProfDataFlush(profile.device, profile.channel, &len), "halProfDataFlush");
	read_until_empty(buf);
	free(buf);
	return NULL;
}

void self_profile_start(const char *path, int rank, int device)
{
	uint32_t config[11] = { 1 }; /* acsq_task */
	struct prof_start_para para = { .channel_type = PROF_TS_TYPE,
					.sample_period = 20,
					.real_time = 1,
					.user_data = config,
					.user_data_size = sizeof(config) };
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s.%d", path, rank);
	profile.out = fopen(name, "w");
	check(!profile.out, name);
	profile.device = (unsigned int)device;
	profile.channel = find_channel(profile.device);
	check(prof_drv_start(profile.device, profile.channel, &para), "prof_drv_start");
	check(pthread_create(&profile.thread, NULL, profile_run, NULL), "self profile thread");
}

void self_profile_stop(void)
{
	atomic_store(&profile.stopping, true);
	pthread_join(profile.thread, NULL);
	check(prof_stop(profile.device, profile.channel), "prof_stop");
	check(fclose(profile.out), "self profile");
}
