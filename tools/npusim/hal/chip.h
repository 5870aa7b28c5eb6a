/* SPDX-License-Identifier: BSD-2-Clause */
/* What differs between the generations of the chip. */
#ifndef NPUSIM_HAL_CHIP_H
#define NPUSIM_HAL_CHIP_H

#include "../abi/stars.h"

#include <stdbool.h>
#include <stdint.h>

enum chip_log {
	CHIP_STARS, /* 64-byte records with stream and task */
	CHIP_STARS2, /* 32-byte records, one 32-bit id */
	CHIP_HWTS, /* hardware scheduler; copies are the task scheduler's, logged in the TS track */
};

enum chip_ids {
	IDS_PLAIN, /* as they are */
	IDS_MANGLED, /* bits 12 and 13 of the stream select how the two are mixed */
	IDS_EXPANDED, /* bit 15 does */
};

struct chip_channel {
	uint16_t id;
	uint8_t application; /* 1: belongs to a context, 0: to the whole device */
	uint8_t chips; /* bits: which have it */
	const char *name;
};

struct chip {
	const char *name; /* as NPUSIM_CHIP has it */
	const char *chip_name, *soc;
	uint32_t platform; /* as in info.json */
	uint32_t version; /* halGetDeviceInfo(SYSTEM, VERSION) */
	uint64_t counter_hz;
	uint32_t aicores, vector_cores, aicpus;
	uint32_t core_mhz;
	enum chip_log log;
	uint32_t pmu_events; /* in one record */
	uint8_t channels; /* the chip's bit in the table of channels */
};

/* The chip of a name, the first one for NULL; NULL if there is none. */
const struct chip *chip_named(const char *name);
/* By its index in the table, as the board stores it. */
const struct chip *chip_at(uint32_t index);
uint32_t chip_index(const struct chip *chip);
const struct chip_channel *chip_next_channel(const struct chip *chip, const struct chip_channel *after);
const struct chip_channel *chip_channel(const struct chip *chip, uint32_t id);

/* NPUSIM_IDS; IDS_PLAIN for a chip that has one mode only. */
enum chip_ids chip_ids_named(const struct chip *chip, const char *name);

/* The kind of an SQE, which has the chip's own number for it. */
enum stars_kind chip_kind(const struct chip *chip, const struct stars_sqe *sqe);
/* The TS_TASK_TYPE of a kind. */
uint16_t chip_ts_type(enum stars_kind kind);

#endif
