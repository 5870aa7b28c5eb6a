/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPUSIM_HCCL_COMM_H
#define NPUSIM_HCCL_COMM_H

#include "../abi/hccl.h"
#include "../abi/runtime.h"

#define RANKS_MAX 16

/* The points at which two ranks meet, each with its own notify in each direction. */
enum meeting { MEET_READY, MEET_MIDDLE, MEET_DONE, MEET_RECEIVER, MEET_SENDER, MEETINGS };

struct comm {
	char name[128];
	uint32_t nranks, rank;
	uint32_t device[RANKS_MAX]; /* physical ids */
	rtNotify_t own[RANKS_MAX][MEETINGS]; /* peers record them, we wait */
	rtNotify_t theirs[RANKS_MAX][MEETINGS];
};

#endif
