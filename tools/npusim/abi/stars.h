/* SPDX-License-Identifier: BSD-2-Clause */
/* What the device reads (SQE), answers (CQE) and logs (STARS record); 910B numbering. */
#ifndef NPUSIM_ABI_STARS_H
#define NPUSIM_ABI_STARS_H

#include <stdint.h>

enum stars_type {
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
#define STARS_FLIP 98 /* TS_TASK_TYPE of a PLACE_HOLDER */
#define STARS_HOST_FUNC 72

/* Only memory that is this process' own is touched; a peer's is not mapped here. */
enum stars_dma { STARS_DMA_NONE, STARS_DMA_COPY, STARS_DMA_FILL /* with the low byte of src */ };

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
		} dma;
		struct {
			uint64_t address, value;
		} write;
		struct {
			uint32_t kind, flip;
			uint64_t function, argument;
		} holder;
		uint8_t bytes[56];
	};
};

struct stars_cqe {
	uint16_t flags; /* phase, warn, evt, place_hold, sq id:11, error */
	uint16_t sq_head, stream, task;
	uint64_t syscnt;
};

struct stars_record {
	uint16_t header; /* func:6 cnt:4 sqe type:6 */
	uint16_t magic;
	uint16_t stream, task;
	uint64_t syscnt;
	uint16_t reserved;
	uint16_t engine; /* acc:6 acsq:10 */
	uint8_t rest[44];
};

#define STARS_MAGIC 0x6BD3
enum { STARS_FUNC_START, STARS_FUNC_END };

_Static_assert(sizeof(struct stars_sqe) == 64, "ABI");
_Static_assert(sizeof(struct stars_cqe) == 16, "ABI");
_Static_assert(sizeof(struct stars_record) == 64, "ABI");

#endif
