/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far the times of a vendor's capture can be trusted. The capture relates a device's counter to the
 * host's clock once, at its start (prof-raw 3); from there on the vendor's tools assume that the oscillator
 * is perfect. So does this import: it shows the same times as the vendor.
 */
#include "clock/errors.h"
#include "import/cann/capture.h"

#include <errno.h>

/* ns; the pair is the middle of the best of five round trips of tens of us, which are not recorded */
#define ROUND_TRIP 50000

static int trust(struct nps_cann_capture *capture, const struct nps_cann_dir *dir)
{
	const struct nps_device_clock pair = { .raw_before = dir->start_raw - ROUND_TRIP / 2,
					       .raw_after = dir->start_raw + ROUND_TRIP / 2,
					       .counter = dir->device_count };
	const struct nps_clock_host host = { .offset = (int64_t)(dir->begin_us * 1000 - dir->begin_raw) };
	struct nps_model *m = capture->model;
	struct nps_clock_map map;
	int err;

	if (!dir->device_clock.known || dir->device_clock.map || dir->start_raw < ROUND_TRIP)
		return 0;
	err = nps_clock_map__fit(&map, &pair, 1, dir->device_hz);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = nps_clock_errors(m, &map, &host, dir->device, m->start, m->end);
	nps_clock_map__free(&map);
	return err;
}

void nps_cann_capture__trust(struct nps_cann_capture *capture)
{
	for (size_t i = 0; !capture->err && i < capture->ndevices; i++)
		capture->err = trust(capture, &capture->devices[i]);
}
