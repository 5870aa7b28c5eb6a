/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's channels that a process other than the job may read: the name of each, the file of CANN's
 * layout that it fills, how it is started (cann-abi 4.1) and the layout of its records (cann-abi 4.2,
 * prof-raw 2.5, 2.6).
 */
#ifndef NPS_DEVICE_CHANNELS_H
#define NPS_DEVICE_CHANNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "driver/device_info.h"
#include "driver/device_lib.h"
#include "driver/device_options.h"

#define NPS_CHANNEL_RECORD 1024 /* bytes, largest record */

/* A number in a record that never exceeds `most`. width 0: none. */
struct nps_channel_field {
	uint16_t offset;
	uint8_t width;
	uint32_t most;
};

/* Layout of the records of one version. */
struct nps_channel_format {
	uint16_t size; /* 0: lines of text */
	uint16_t time; /* offset of an increasing 64-bit time, or NPS_CHANNEL_NO_TIME */
	uint16_t unit; /* ns of the time's unit, 0: ticks of the device's counter */
	bool stars; /* has a magic number, and a sequence number of four bits */
	struct nps_channel_field fields[3];
};

#define NPS_CHANNEL_NO_TIME 0xffff

struct nps_channel {
	uint16_t id;
	const char *name; /* for messages */
	const char *file; /* without the device's number */
	bool relative; /* its times count from its start */
	struct nps_channel_format formats[2]; /* of the first version, and of the second where that differs */
	unsigned int (*hz)(const struct nps_device_opts *o,
			   const struct nps_device_info *d); /* samples a second; 0: not requested */
	/* Fills `data`, at most 128 bytes; returns their number. NULL: the channel has no parameters. */
	size_t (*params)(const struct nps_device_opts *o, const struct nps_device_info *d, uint32_t period_ms,
			 void *data);
	int32_t type; /* enum nps_prof_type */
};

/* Channel number I of the table, NULL past its end. */
const struct nps_channel *nps_channel__at(size_t i);
size_t nps_channels__count(void);

/*
 * Is the channel used either for samples or by task, as its first reader
 * starts it? That reader may be a helper.
 */
bool nps_channel__is_shared(const struct nps_channel *ch);

/* Starts the channel according to O. Returns the driver's code. *PERIOD_MS: of its samples. */
int nps_channel__start(const struct nps_channel *ch, const struct nps_device_lib *lib,
		       const struct nps_device_opts *o, const struct nps_device_info *d, uint32_t *period_ms);

/* Adds what the channel measures to sample.json. */
void nps_channel__describe(const struct nps_channel *ch, const struct nps_device_opts *o,
			   const struct nps_device_info *d, cJSON *sample);

/* Format of the first LEN bytes: 0 or 1; -1: too few bytes to decide. */
int nps_channel__version(const struct nps_channel *ch, const struct nps_device_info *d, const uint8_t *data,
			 size_t len);

/* The time of a record; 0 if it has none. */
uint64_t nps_channel__time(const struct nps_channel_format *f, const uint8_t *record);

/* Is it a plausible record? */
bool nps_channel__sane(const struct nps_channel_format *f, const uint8_t *record);

#endif
