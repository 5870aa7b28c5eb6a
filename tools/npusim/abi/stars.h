/* SPDX-License-Identifier: BSD-2-Clause */
/* What the device reads (SQE) and answers (CQE). Numbers of kinds of tasks are the 910B's; chips differ. */
#ifndef NPUSIM_ABI_STARS_H
#define NPUSIM_ABI_STARS_H

#include <stdint.h>

enum stars_kind {
	STARS_AICORE = 0,
	STARS_AICPU = 1,
	STARS_PLACE_HOLDER = 3,
	STARS_EVENT_RECORD = 4,
	STARS_EVENT_WAIT = 5,
	STARS_NOTIFY_RECORD = 6,
	STARS_NOTIFY_WAIT = 7,
	STARS_WRITE_VALUE = 8,
	STARS_SDMA = 11,
	STARS_PCIE_DMA = 17,
};

#define STARS_TYPE_MASK 0x3f
#define STARS_WR_CQE 0x40
/* TS_TASK_TYPE of a PLACE_HOLDER */
#define STARS_FLIP 98
#define STARS_PROFILER_TRACE 26
#define STARS_HOST_FUNC 72

/* Only memory that is this process' own is touched; a peer's is not mapped here. */
enum stars_dma { STARS_DMA_NONE, STARS_DMA_COPY, STARS_DMA_FILL /* with the low byte of src */ };

/* Which cores a kernel is made for. */
enum stars_core { STARS_CUBE, STARS_VECTOR, STARS_MIX };

/* Between which memories the bytes go. */
enum stars_route { STARS_ON_DEVICE, STARS_TO_DEVICE, STARS_TO_HOST };

/* What another device's memory looks like from here: an address that identifies the device. */
#define STARS_PEER_BASE 0x500000000000ull
#define STARS_PEER_SHIFT 36
#define STARS_PEER_END (STARS_PEER_BASE + (64ull << STARS_PEER_SHIFT))

struct stars_sqe {
	uint8_t type;
	uint8_t flags;
	uint16_t block_dim;
	uint16_t stream;
	uint16_t task;
	union {
		struct {
			uint64_t pc, args;
			uint32_t args_size;
			uint32_t wave_ns; /* time of one block on one core */
			uint8_t core; /* an enum stars_core */
		} kernel;
		struct {
			uint32_t id, sequence;
		} event;
		struct {
			uint32_t device, id, timeout;
		} notify;
		struct {
			uint64_t src, dst, len;
			uint32_t action; /* what to do with the bytes, an enum stars_dma */
			uint8_t route; /* an enum stars_route */
		} dma;
		struct {
			uint64_t address, value;
		} write;
		struct {
			uint32_t kind, flip;
			uint64_t function, argument;
			uint16_t tag;
		} holder;
		uint8_t bytes[56];
		/* The last byte is the simulation's own: the kind, where a chip has one number for two. */
		struct {
			uint8_t before[55];
			uint8_t kind;
		} own;
	};
};

struct stars_cqe {
	uint16_t flags; /* phase, warn, evt, place_hold, sq id:11, error */
	uint16_t sq_head, stream, task;
	uint64_t syscnt;
};

_Static_assert(sizeof(struct stars_sqe) == 64, "ABI");
_Static_assert(sizeof(struct stars_cqe) == 16, "ABI");

#endif
