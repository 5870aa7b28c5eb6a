/* SPDX-License-Identifier: BSD-2-Clause */
/* NPUSIM_CONTROL: a file of orders to the simulated driver, read again when it changes.  See NOTES.md. */
#ifndef NPUSIM_HAL_CONTROL_H
#define NPUSIM_HAL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

enum control_call {
	CALL_START,
	CALL_READ,
	CALL_STOP,
	CALL_FLUSH,
	CALL_POLL,
	CALL_CHANNELS,
	CALL_DCMI,
	CALL_INFO,
	CALLS
};

enum control_order { ORDER_ERROR, ORDER_SLOW, ORDER_LOSE, ORDER_OVERWRITE, ORDER_RESET };

#define CONTROL_ANY UINT32_MAX

bool control_is_used(void);
/* Sleeps if the call is to be slow; the code that it is to fail with, 0 if it is not. */
int control_call(uint32_t device, uint32_t channel, enum control_call call);
/* Of what is still to be lost (records) or overwritten (bytes), at most `most`; it is taken off the order. */
uint64_t control_consume(enum control_order order, uint32_t device, uint32_t channel, uint64_t most);
/* In a forked child: the file has not been read. */
void control_forget(void);
/* How many orders to reset the device the file holds. */
uint32_t control_resets(uint32_t device);

#endif
