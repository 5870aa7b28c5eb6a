/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry of CANN's raw data: finds the directories, runs the parts, and describes the capture. */
#include "base/input_file.h"
#include "base/progress.h"
#include "import/cann/capture.h"
#include "import/cann/hardware.h"
#include "import/cann/aux_files.h"
#include "import/import.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIVER_WITH_BATCHES 0x072211

void *nps_cann_capture__push(struct nps_cann_capture *capture, struct nps_vec *vec)
{
	void *row = vec->len < NPS_NONE - 1 ? nps_vec__push(vec) : NULL;

	if (!row && !capture->err)
		capture->err = vec->len < NPS_NONE - 1 && errno ? -errno : -EOVERFLOW;
	return row;
}

void *nps_cann_capture__sort(struct nps_cann_capture *capture, struct nps_ext_sort *sort)
{
	void *row = nps_ext_sort__add(sort);

	if (!row && !capture->err)
		capture->err = sort->err;
	return row;
}

void nps_cann_capture__init(struct nps_cann_capture *capture, struct nps_model *m)
{
	int tmpfd = m->tmpfd;

	*capture = (struct nps_cann_capture){ .model = m, .host = { .fd = -1, .datafd = -1 } };
	nps_tensors__init(&capture->tensors, m->strings, tmpfd);
	nps_vec__init(&capture->launches, tmpfd, sizeof(struct nps_launch));
	nps_vec__init(&capture->host_tasks, tmpfd, sizeof(struct nps_host_task));
	nps_vec__init(&capture->kernels, tmpfd, sizeof(struct nps_kernel_info));
	nps_vec__init(&capture->parts, tmpfd, sizeof(struct nps_part_info));
	nps_vec__init(&capture->collectives, tmpfd, sizeof(struct nps_host_collective));
	nps_vec__init(&capture->runs, tmpfd, sizeof(struct nps_cann_run));
	nps_vec__init(&capture->run_pmus, tmpfd, sizeof(struct nps_run_pmu));
	nps_vec__init(&capture->block_runs, tmpfd, sizeof(struct nps_block_run));
	nps_vec__init(&capture->task_breaks, tmpfd, sizeof(uint64_t));
	nps_vec__init(&capture->pmu_breaks, tmpfd, sizeof(uint64_t));
	nps_ext_sort__init(&capture->pmu_order, tmpfd, sizeof(struct nps_row_pair));
	nps_ext_sort__init(&capture->marks, tmpfd, sizeof(struct nps_mark));
	nps_ext_sort__init(&capture->steps, tmpfd, sizeof(struct nps_step_mark));
	nps_ext_sort__init(&capture->matches, tmpfd, sizeof(struct nps_match));
}

void nps_cann_capture__free(struct nps_cann_capture *capture)
{
	nps_tensors__free(&capture->tensors);
	nps_dictionary__free(&capture->names);
	nps_vec__free(&capture->launches);
	nps_vec__free(&capture->host_tasks);
	nps_vec__free(&capture->kernels);
	nps_vec__free(&capture->parts);
	nps_vec__free(&capture->collectives);
	nps_vec__free(&capture->runs);
	nps_vec__free(&capture->run_pmus);
	nps_vec__free(&capture->block_runs);
	nps_vec__free(&capture->task_breaks);
	nps_vec__free(&capture->pmu_breaks);
	nps_ext_sort__free(&capture->pmu_order);
	nps_ext_sort__free(&capture->marks);
	nps_ext_sort__free(&capture->steps);
	nps_ext_sort__free(&capture->matches);
	if (capture->host.fd >= 0)
		nps_cann_dir__close(&capture->host);
	for (size_t i = 0; i < capture->ndevices; i++)
		nps_cann_dir__close(&capture->devices[i]);
	free(capture->devices);
}

/* --- directories ---------------------------------------------------------------------------------- */

static bool device_name(const char *name, uint32_t *device)
{
	char *end;
	unsigned long number;

	if (strncmp(name, "device_", 7) || name[7] < '0' || name[7] > '9')
		return false;
	number = strtoul(name + 7, &end, 10);
	*device = number;
	return !*end && number < NPS_DEVICES_MAX && number != NPS_CANN_HOST;
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Device numbers in the directory, each once. Returns how many. */
static size_t list_devices(int fd, uint32_t *numbers)
{
	DIR *dir = nps_input_dir__list(fd);
	struct dirent *entry;
	size_t n = 0;

	if (!dir)
		return 0;
	while (n < NPS_DEVICES_MAX && (entry = nps_input_dir__next(dir))) {
		char name[32];

		/* Ignores names such as device_07: a directory is opened by a name made from its number. */
		if (!device_name(entry->d_name, &numbers[n]))
			continue;
		snprintf(name, sizeof(name), "device_%u", numbers[n]);
		n += !strcmp(name, entry->d_name);
	}
	closedir(dir);
	qsort(numbers, n, sizeof(*numbers), compare_numbers);
	return n;
}

static int open_dirs(struct nps_cann_capture *capture, int fd)
{
	uint32_t numbers[NPS_DEVICES_MAX];
	size_t n = list_devices(fd, numbers);
	int err = nps_cann_dir__open(&capture->host, capture->model, fd, "host", NPS_CANN_HOST);

	if (err == -ENOMEM)
		return err;
	if (err) {
		capture->host.fd = -1;
		nps_model__lost(capture->model, 1, "host directories that are missing");
	}
	capture->devices = calloc(n + 1, sizeof(*capture->devices));
	if (!capture->devices)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "device_%u", numbers[i]);
		err = nps_cann_dir__open(&capture->devices[capture->ndevices], capture->model, fd, name,
					 numbers[i]);
		if (err == -ENOMEM)
			return err;
		if (err)
			nps_model__lost(capture->model, 1, "device directories that cannot be opened");
		else
			capture->ndevices++;
	}
	return capture->host.fd < 0 && !capture->ndevices ? -ENOENT : 0;
}

/* --- the description of the capture --------------------------------------------------------------- */

/* PROF_<index>_<time>_<pid><letters> */
static uint32_t pid_of_name(const char *path)
{
	const char *name = strstr(path, "PROF_"), *next;
	unsigned int pid;

	while (name && (next = strstr(name + 1, "PROF_")))
		name = next;
	if (!name || sscanf(name, "PROF_%*[0-9]_%*[0-9]_%8u", &pid) != 1)
		return 0;
	return pid;
}

static uint32_t text_or_none(struct nps_model *m, const char *text)
{
	return *text ? nps_strings__addz(m->strings, text) : NPS_NONE;
}

/* The vendor's is a hexadecimal number; the tables have decimal ones. */
static uint32_t uid_text(struct nps_model *m, const char *text)
{
	unsigned long long uid;
	char *end;

	if (strspn(text, "0123456789") == strlen(text))
		return text_or_none(m, text);
	errno = 0;
	uid = strtoull(text, &end, 16);
	return *end || errno ? text_or_none(m, text) : nps_strings__addf(m->strings, "%llu", uid);
}

static int add_devices(struct nps_cann_capture *capture)
{
	struct nps_model *m = capture->model;
	int err = 0;

	for (size_t i = 0; !err && i < capture->ndevices; i++) {
		const struct nps_cann_dir *dir = &capture->devices[i];

		err = nps_device_table__add(
			&m->device, &(struct nps_device_row){
					    .id = dir->device,
					    .chip = nps_strings__addz(m->strings, nps_chip_name(dir->chip)),
					    .rank = dir->rank >= 0 ? dir->rank : NPS_NULL,
					    .aic_mhz = dir->aic_mhz,
					    .aic_cores = dir->aic_cores,
					    .aiv_cores = dir->aiv_cores });
	}
	return err;
}

static int device_describe(struct nps_cann_capture *capture, const char *path)
{
	struct nps_model *m = capture->model;
	const struct nps_cann_dir *first = capture->host.fd >= 0 ? &capture->host : &capture->devices[0];
	const struct nps_cann_dir *device = capture->ndevices ? &capture->devices[0] : first;

	m->generation = NPS_GENERATION_B;
	m->layout = NPS_LAYOUT_MSPROF;
	m->level = NPS_MAX(NPS_MAX(first->level, device->level), 0);
	if (first->level < 0 && device->level < 0)
		m->level = 1;
	m->pid = first->pid ? first->pid : device->pid ? device->pid : pid_of_name(path);
	m->process = text_or_none(m, first->process);
	m->host_name = text_or_none(m, first->host_name);
	m->host_uid = uid_text(m, first->host_uid);
	m->rank = capture->ndevices ? device->device : 0;
	if (device->rank >= 0 || first->rank >= 0) {
		m->has_rank = true;
		m->rank = device->rank >= 0 ? device->rank : first->rank;
	}
	capture->v6 = nps_cann_dir__v6(device);
	capture->batches = !capture->v6 && device->chip != NPS_CHIP_310 && device->chip != 2 &&
			   device->chip != NPS_CHIP_V1_1_3 &&
			   NPS_MAX(first->driver, device->driver) >= DRIVER_WITH_BATCHES;
	return add_devices(capture);
}

/* Clocks; what a directory lacks comes from the others. */
static void capture_set_clocks(struct nps_cann_capture *capture)
{
	struct nps_model *m = capture->model;
	struct nps_cann_dir *host = &capture->host;

	nps_cann_dir__clocks(host, capture->ndevices ? &capture->devices[0] : NULL);
	if (capture->host.fd >= 0 && !host->host_clock.known)
		nps_model__lost(m, 1, "host clocks that cannot be read");
	for (size_t i = 0; i < capture->ndevices; i++) {
		nps_cann_dir__clocks(&capture->devices[i], host);
		if (!capture->devices[i].device_clock.known)
			nps_model__lost(m, 1, "device clocks that cannot be read");
	}
	if (host->has_begin)
		m->start = host->begin_us * 1000;
	if (host->has_end)
		nps_model__cover(m, 0, host->end_us * 1000);
}

static uint64_t directory_bytes(const struct nps_cann_dir *dir)
{
	uint64_t total = 0;

	for (size_t i = 0; i < dir->files.n; i++)
		total += nps_slices__bytes(&dir->files, i);
	return total;
}

static int capture_import(struct nps_cann_capture *capture)
{
	struct nps_model *m = capture->model;
	uint64_t total = 0;

	if (capture->host.fd >= 0)
		total += directory_bytes(&capture->host);
	for (size_t i = 0; i < capture->ndevices; i++)
		total += directory_bytes(&capture->devices[i]);
	nps_progress__stage(m->progress, "reading", total, NULL);
	capture->err = nps_dictionary__read(&capture->names, m, &capture->host.files);
	if (!capture->err)
		nps_cann_capture__host(capture);
	if (!capture->err)
		nps_cann_capture__devices(capture);
	if (!capture->err)
		nps_cann_capture__aicore(capture);
	if (!capture->err)
		nps_cann_capture__join(capture);
	/* Their frequencies are wanted for the kernels' counters. */
	if (!capture->err)
		capture->err = nps_cann_aux__import(m, &capture->names,
						    capture->host.fd >= 0 ? &capture->host : NULL,
						    capture->devices, capture->ndevices, NULL);
	if (!capture->err)
		nps_cann_capture__fill(capture);
	if (!capture->err)
		nps_cann_capture__mstx(capture);
	if (!capture->err)
		nps_cann_capture__steps(capture);
	nps_cann_capture__trust(capture);
	return capture->err;
}

int nps_import__cann(struct nps_model *model, const char *path)
{
	struct nps_cann_capture *capture = calloc(1, sizeof(*capture));
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = fd < 0 ? -errno : 0;

	if (!capture || fd < 0) {
		err = capture ? err : -ENOMEM;
		free(capture);
		if (fd >= 0)
			close(fd);
		nps_msg_cannot(path, err);
		return err;
	}
	nps_cann_capture__init(capture, model);
	err = open_dirs(capture, fd);
	close(fd);
	if (err) {
		nps_msg_failure(
			"cannot analyse %s: neither a host nor a device_N directory of CANN's profiler",
			path);
		goto out;
	}
	capture_set_clocks(capture);
	err = device_describe(capture, path);
	if (err)
		goto out;
	err = capture_import(capture);
out:
	if (err && err != -ENOENT)
		nps_msg_cannot(path, err);
	nps_cann_capture__free(capture);
	free(capture);
	return err;
}
