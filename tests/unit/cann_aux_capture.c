/* SPDX-License-Identifier: BSD-2-Clause */
#include "cann_aux_capture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define UNIX_US (CANN_AUX_UNIX / 1000)

static int device_dir(const struct cann_aux_capture *f, unsigned int device)
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

static void make_dir(struct cann_aux_capture *f, unsigned int device, const char *version)
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
		 UNIX_US, CANN_AUX_RAW);
	control(fd, "start_info", device, text);
	snprintf(text, sizeof(text), "clock_monotonic_raw: %llu\ncntvct: %llu\ncntvct_diff: 0\n",
		 CANN_AUX_RAW, CANN_AUX_TICKS);
	control(fd, "host_start.log", device, text);
	if (device != NPS_CANN_HOST)
		control(fd, "dev_start.log", device, "clock_monotonic_raw: 1000\ncntvct: 700000\n");
	close(fd);
}

static struct cann_aux_capture *make(const char *version)
{
	struct cann_aux_capture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/nps_aux_XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->prof = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->tmpfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->prof >= 0 && f->tmpfd >= 0);
	assert_int_equal(nps_model__init(&f->m, f->tmpfd, NULL), 0);
	make_dir(f, NPS_CANN_HOST, version);
	for (unsigned int d = 0; d < CANN_AUX_DEVICES; d++)
		make_dir(f, d, version);
	return f;
}

int cann_aux_setup(void **state)
{
	*state = make("1.0");
	return 0;
}

int cann_aux_setup_second(void **state)
{
	*state = make("2.0");
	return 0;
}

int cann_aux_teardown(void **state)
{
	struct cann_aux_capture *f = *state;
	char command[128];

	nps_model__free(&f->m);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
	close(f->prof);
	close(f->tmpfd);
	free(f);
	return 0;
}

int cann_aux_import_dirs(struct nps_model *m, struct nps_cann_dir *host, struct nps_cann_dir *devices,
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
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "device_%u", numbers[i]);
		err = nps_cann_dir__open(&devices[i], m, prof, name, numbers[i]);
		if (err)
			goto out;
		nps_cann_dir__clocks(&devices[i], known);
	}
	if (known) {
		err = nps_dictionary__read(&names, m, &known->files);
		if (err)
			goto out;
	}
	err = nps_cann_aux__import(m, &names, known, devices, n, NULL);
out:
	nps_dictionary__free(&names);
	for (size_t i = 0; i < n; i++)
		nps_cann_dir__close(&devices[i]);
	if (known)
		nps_cann_dir__close(known);
	return err;
}

void cann_aux_import(struct cann_aux_capture *f)
{
	static const unsigned int numbers[CANN_AUX_DEVICES] = { 0, 1 };

	assert_int_equal(
		cann_aux_import_dirs(&f->m, &f->host, f->devices, numbers, CANN_AUX_DEVICES, f->prof), 0);
}

void cann_aux_data(struct cann_aux_capture *f, unsigned int device, const char *name, const void *bytes,
		   size_t len)
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

void cann_aux_text(struct cann_aux_capture *f, unsigned int device, const char *name, const char *lines)
{
	cann_aux_data(f, device, name, lines, strlen(lines));
}

uint64_t cann_aux_lost(const struct cann_aux_capture *f, const char *what)
{
	uint64_t count = 0;

	for (size_t i = 0; i < f->m.losses.len; i++) {
		const struct nps_lost *loss = &NPS_AT(&f->m.losses, struct nps_lost, i);

		if (!strncmp(loss->what, what, strlen(what)))
			count += loss->count;
	}
	return count;
}

const char *cann_aux_name(const struct cann_aux_capture *f, uint32_t id)
{
	return nps_model__text(&f->m, id);
}
