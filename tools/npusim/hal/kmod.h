/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way into the mock driver (kmod/), where it is loaded: the ioctls that a real library makes. Without
 * its device nodes these do nothing, and waits are sleeps of this process.
 */
#ifndef NPUSIM_HAL_KMOD_H
#define NPUSIM_HAL_KMOD_H

#include "../abi/ascend_hal.h"

/* A queue was made; its number is in OUT. */
void kmod_queue(uint32_t device, const struct halSqCqInputInfo *in, const struct halSqCqOutputInfo *out);
void kmod_queue_freed(uint32_t device, const struct halSqCqFreeInfo *info);
/* SQEs were accepted. */
void kmod_send(uint32_t device, const struct halTaskSendInfo *info);
/* Sleeps until the device is done with a task, NS from now: by its interrupt where the driver is loaded. */
void kmod_wait(uint32_t device, uint16_t stream, uint16_t task, uint64_t ns);
/* Device memory, and copies: FREED and the copy's DIRECTION (1: from the device) as flags. */
void kmod_memory(uint32_t device, const void *address, uint64_t size, int freed);
void kmod_copy(uint32_t device, const void *dst, const void *src, uint64_t size, int direction);

#endif
