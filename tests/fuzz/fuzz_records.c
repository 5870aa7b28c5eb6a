/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records of a device's task logs: one byte chooses the format, one the chip and whether ids
 * are expanded; then records. They are decoded one by one, and, as a file of that name, read,
 * paired and counted as an importer does.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/cann/device_records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint32_t chips[] = { NPS_CHIP_910B, NPS_CHIP_950, NPS_CHIP_910A, NPS_CHIP_310P };
static const char *const files[] = { "stars_soc.data",	  "hwts.data",	       "hwts.aiv_data",
				     "ts_track.data",	  "ffts_profile.data", "aicore.data",
				     "aiVectorCore.data", "stars_block.data" };

static void each(const struct nps_log_format *format, uint32_t chip, bool expanded, const uint8_t *data,
		 size_t size)
{
	enum nps_ids ids = nps_log__ids(chip, expanded);
	struct nps_sequence sequence = { .last = NPS_NO_SEQUENCE };
	struct nps_log_record r;
	struct nps_counters c;
	uint32_t stream, task;

	for (size_t at = 0; at + format->bytes <= size; at += format->bytes) {
		nps_log__decode(format, data + at, &r);
		nps_log__unmangle(ids, &r, &stream, &task);
		nps_sequence__next(&sequence, r.sequence);
		if (r.kind == NPS_LOG_PMU)
			nps_log__counters(data + at, &c);
		if (r.kind > NPS_LOG_STEP || r.sequence > NPS_NO_SEQUENCE ||
		    (r.kind == NPS_LOG_PMU && (c.core > 1 || c.block > 1)))
			abort();
	}
	if (sequence.gaps > 15 * (size / format->bytes + 1))
		abort();
}

/* Runs come in order of their starts, and none ends before it begins. */
static void check(const struct nps_cann_capture *capture)
{
	uint64_t last = 0;

	for (size_t i = 0; i < capture->runs.len; i++) {
		const struct nps_cann_run *run = &NPS_AT(&capture->runs, struct nps_cann_run, i);

		if (run->start < last || (run->end && run->end < run->start))
			abort();
		last = run->start;
	}
	for (size_t i = 0; i < capture->block_runs.len; i++) {
		const struct nps_block_run *run = &NPS_AT(&capture->block_runs, struct nps_block_run, i);

		if (run->end && run->end < run->start)
			abort();
	}
}

static void whole(int dirfd, uint32_t chip, bool expanded)
{
	struct nps_cann_capture capture;
	struct nps_model model;

	if (nps_model__init(&model, dirfd, NULL))
		return;
	nps_cann_capture__init(&capture, &model);
	capture.devices = calloc(1, sizeof(*capture.devices));
	capture.devices[0] = (struct nps_cann_dir){ .fd = -1,
						    .datafd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY),
						    .chip = chip };
	capture.devices[0].device_clock = (struct nps_cann_clock){ .known = true, .hz = NPS_NS_PER_S };
	capture.ndevices = 1;
	capture.v6 = nps_cann_dir__v6(&capture.devices[0]);
	capture.batches = !capture.v6;
	capture.expanded = expanded;
	if (!nps_slices__open(&capture.devices[0].files, capture.devices[0].datafd) &&
	    !nps_cann_capture__devices(&capture) && !nps_cann_capture__aicore(&capture))
		check(&capture);
	nps_cann_capture__free(&capture);
	nps_model__free(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *folder = getenv("FUZZ_TMP");
	const struct nps_log_format *format;
	char dir[128], name[64];
	const char *file;
	uint32_t chip;
	int dirfd, fd;

	if (size < 2)
		return 0;
	file = files[data[0] % (sizeof(files) / sizeof(*files))];
	chip = chips[data[1] % 4];
	format = nps_log_format(file);
	if (format)
		each(format, chip, data[1] & 0x80, data + 2, size - 2);
	snprintf(dir, sizeof(dir), "%s/records.XXXXXX", folder ? folder : "/dev/shm");
	if (!mkdtemp(dir))
		abort();
	dirfd = open(dir, O_RDONLY | O_DIRECTORY);
	snprintf(name, sizeof(name), "%s.0.slice_0", file);
	fd = openat(dirfd, name, O_WRONLY | O_CREAT, 0600);
	if (fd < 0 || write(fd, data + 2, size - 2) != (ssize_t)(size - 2))
		abort();
	close(fd);
	whole(dirfd, chip, data[1] & 0x80);
	unlinkat(dirfd, name, 0);
	close(dirfd);
	rmdir(dir);
	return 0;
}
