/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of a device that its users share: one file in /dev/shm per device.
 *
 * A process proves that it lives by an open-file-description lock on the byte of its slot, which the kernel
 * drops however the process ends.  A process that opens a board which no other process holds powers it up
 * afresh.
 */
#ifndef NPUSIM_HAL_BOARD_H
#define NPUSIM_HAL_BOARD_H

#include "../abi/ascend_hal.h"
#include "chip.h"
#include "links.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <stdbool.h>
#include <stdint.h>

#define BOARD_SLOTS 64
#define BOARD_STREAMS 2048
#define BOARD_NOTIFIES 4096
#define BOARD_POSTS 8
#define BOARD_HBM_BYTES (64ull << 30)
#define BOARD_OWN_BYTES (3ull << 30) /* what the device itself takes of it */
#define CLOCK_SEGMENTS 32

/* From `raw` on the counter runs at the chip's rate and `ppb` more. */
struct clock_segment {
	uint64_t raw, ticks;
	int64_t ppb;
};

struct board_slot {
	_Atomic uint32_t doorbell; /* futex */
	_Atomic uint64_t hbm_used;
	_Atomic uint64_t moved[COUNTERS]; /* stays when the slot gets another holder */
	_Atomic int32_t pid;
};

/* Device times at which the notify was recorded and not yet waited for. */
struct board_notify {
	_Atomic uint32_t owner; /* slot + 1 */
	_Atomic uint32_t posted;
	uint32_t used;
	_Atomic uint64_t when[BOARD_POSTS];
};

struct board_shared {
	uint64_t magic;
	uint32_t chip; /* index of its generation */
	enum chip_ids ids;
	_Atomic uint32_t clock_segments;
	struct clock_segment clock[CLOCK_SEGMENTS];
	_Atomic uint32_t resets;
	_Atomic uint64_t load_at, load_cycles; /* the last look of board_load() */
	_Atomic uint32_t load; /* permille */
	uint32_t resets_ordered; /* by the control file; so many have been followed or were there before */
	_Atomic uint64_t reset_at; /* raw; 0: never */
	struct board_slot slots[BOARD_SLOTS];
	uint32_t channel_owner[PROF_CHANNELS];
	uint32_t stream_owner[BOARD_STREAMS];
	struct board_notify notifies[BOARD_NOTIFIES];
};

struct board {
	int fd;
	unsigned int slot;
	pthread_mutex_t lock; /* the file lock does not hold off our own threads */
	struct board_shared *shared;
};

/* Also used for the boards of peers, whose notifies we record; that takes a slot there too. */
drvError_t board_open(struct board *b, uint32_t device);
/* In a forked child: closes what the parent has. */
void board_forget(struct board *b);
void board_lock(struct board *b);
void board_unlock(struct board *b);
bool board_owner_alive(struct board *b, uint32_t owner);

/* This process as the host numbers it, also in a container: the driver is the host's. */
pid_t host_pid(void);

/* Lowest free entry of an owner table, taken for this process; -1 if all are in use. */
int board_claim_stream(struct board *b);
void board_release_stream(struct board *b, uint32_t id);
int board_claim_notify(struct board *b);
void board_release_notify(struct board *b, uint32_t id);
bool board_claim_channel(struct board *b, uint32_t channel);
void board_release_channel(struct board *b, uint32_t channel);

void board_notify_post(struct board *b, uint32_t id, uint64_t when);
/* Device time of the oldest post, which is thereby consumed; 0 if there is none. */
uint64_t board_notify_consume(struct board *b, uint32_t id);

/* Resets the board unless it has followed so many orders already. The number of resets that it has seen. */
uint32_t board_follow_reset(struct board *b, uint32_t orders);

void board_ring(struct board *b, uint32_t slot);

uint64_t board_hbm_used(struct board *b);
/* Of the cores, permille, in the last moments. */
uint32_t board_load(struct board *b);
/* In 0.1 W, by how busy the cores were in the last moments. */
uint32_t board_power(struct board *b);

const struct chip *board_chip(const struct board *b);

/* clock.c: power up; a reset at `raw`; the counter. */
void clock_start(struct board_shared *s, uint32_t device, uint64_t raw);
void clock_restart(struct board_shared *s, uint64_t raw);
uint64_t board_counter(const struct board *b, uint64_t raw_ns);
/* Writes `device` and, for what comes after, `clock_step`. */
void clock_truth(const struct board *b, uint32_t device);
/* Writes the last piece's `clock_step`. */
void clock_truth_after_reset(const struct board *b, uint32_t device);
/* What a query adds to its answer's way: jitter and outliers as configured in the environment. */
uint64_t clock_query_delay(uint32_t random);

#endif
