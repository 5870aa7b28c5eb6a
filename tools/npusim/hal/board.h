/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of a device that its users share: one file in /dev/shm per device.
 *
 * A process proves that it lives by an open-file-description lock on the byte of its slot, which the kernel
 * drops however the process ends.  Whoever opens a board that nobody else holds powers it up afresh.
 */
#ifndef NPUSIM_HAL_BOARD_H
#define NPUSIM_HAL_BOARD_H

#include "../abi/ascend_hal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BOARD_SLOTS 64
#define BOARD_STREAMS 2048
#define BOARD_NOTIFIES 4096
#define BOARD_POSTS 8
#define BOARD_HBM_BYTES (64ull << 30)
#define COUNTER_HZ 50000000ull

struct board_slot {
	_Atomic uint32_t doorbell; /* futex */
	_Atomic uint64_t hbm_used;
};

/* Device times at which the notify was recorded and not yet waited for. */
struct board_notify {
	_Atomic uint32_t owner; /* slot + 1 */
	_Atomic uint32_t posted;
	uint32_t taken;
	_Atomic uint64_t when[BOARD_POSTS];
};

struct board_shared {
	uint64_t magic;
	uint64_t counter_offset; /* ticks at CLOCK_MONOTONIC_RAW 0 */
	int64_t drift_ppb;
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
void board_lock(struct board *b);
void board_unlock(struct board *b);
bool board_owner_alive(struct board *b, uint32_t owner);

/* Lowest free entry of an owner table, taken for this process; -1 if all are in use. */
int board_claim_stream(struct board *b);
void board_release_stream(struct board *b, uint32_t id);
int board_claim_notify(struct board *b);
void board_release_notify(struct board *b, uint32_t id);
bool board_claim_channel(struct board *b, uint32_t channel);
void board_release_channel(struct board *b, uint32_t channel);

void board_notify_post(struct board *b, uint32_t id, uint64_t when);
/* Device time of the oldest post, which is thereby consumed; 0 if there is none. */
uint64_t board_notify_take(struct board *b, uint32_t id);

void board_ring(struct board *b, uint32_t slot);

uint64_t board_hbm_used(struct board *b);
uint64_t board_counter(const struct board *b, uint64_t raw_ns);

#endif
