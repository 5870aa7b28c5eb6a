/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's channels that a process other than the job may read: what each is called, which file of CANN's layout it
 * fills, how it is started (cann-abi 4.1) and how its records look (cann-abi 4.2, prof-raw 2.5, 2.6).
 */
#ifndef NPS_DEVICE_CHANNELS_H
#define NPS_DEVICE_CHANNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "device_info.h"
#include "device_lib.h"
#include "device_options.h"

#define NPS_CHANNEL_RECORD 1024 /* no record is larger */

/* A number in a record that cannot exceed `most`. width 0: none. */
struct nps_channel_field {
	uint16_t offset;
	uint8_t width;
	uint32_t most;
};

/* Records of one version. */
struct nps_channel_format {
	uint16_t size; /* 0: lines of text */
	uint16_t time; /* offset of an increasing 64-bit time; 0xffff: there is none */
	uint16_t unit; /* ns of the time's unit, 0: ticks of the device's counter */
	bool stars; /* a magic number, and a running number of four bits */
	struct nps_channel_field fields[3];
};

#define NPS_CHANNEL_NO_TIME 0xffff

struct nps_channel {
	uint16_t id;
	const char *name; /* for people */
	const char *file; /* without the device's number */
	bool relative; /* its times count from its start */
	struct nps_channel_format formats[2]; /* of the first version, and of the second where that differs */
	unsigned int (*hz)(const struct nps_device_opts *o,
			   const struct nps_device_info *d); /* 0: not asked for */
	/* Fills `data`, at most 128 bytes; returns how many. NULL: none. */
	size_t (*params)(const struct nps_device_opts *o, const struct nps_device_info *d, uint32_t period_ms,
			 void *data);
	int32_t type; /* enum nps_prof_type */
};

/* Channel number I of the table, NULL past its end. */
const struct nps_channel *nps_channel__at(size_t i);
size_t nps_channels__count(void);

/* Does the channel either sample or count by task, as its first reader wants it? A helper may be that reader. */
bool nps_channel__is_shared(const struct nps_channel *ch);

/* Starts it as asked. What the driver returned. *PERIOD_MS: of its samples. */
int nps_channel__start(const struct nps_channel *ch, const struct nps_device_lib *lib,
		       const struct nps_device_opts *o, const struct nps_device_info *d, uint32_t *period_ms);

/* Adds to sample.json what the channel measures. */
void nps_channel__describe(const struct nps_channel *ch, const struct nps_device_opts *o,
			   const struct nps_device_info *d, cJSON *sample);

/* Which format the first LEN bytes are in: 0 or 1; -1: too few to tell. */
int nps_channel__version(const struct nps_channel *ch, const struct nps_device_info *d, const uint8_t *data,
			 size_t len);

/* The time of a record; 0 if it has none. */
uint64_t nps_channel__time(const struct nps_channel_format *f, const uint8_t *record);

/* Can that be a record? */
bool nps_channel__sane(const struct nps_channel_format *f, const uint8_t *record);

#endif
