/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of a connection to workers, which a thread plays, and each call of device_lib.h with the
 * request that it sends.
 */
#ifndef DEVICE_CALLS_H
#define DEVICE_CALLS_H

#include "driver/device_lib.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_ANSWER_WHOLE SIZE_MAX
#define DEVICE_CALLS 21

/* --- the worker ----------------------------------------------------------------------------------------- */

struct device_answer {
	struct nps_worker_reply reply;
	const void *data;
	size_t len; /* bytes of data that follow the reply, whatever size it states */
	size_t sent; /* bytes of both before the connection is closed; DEVICE_ANSWER_WHOLE: it stays open */
	unsigned int delay_us; /* before the first of them */
	void (*stamp)(struct nps_worker_reply *reply); /* sets the instants; NULL: they are as given */
};

struct device_peer {
	struct nps_device_lib lib;
	int fds[2]; /* the workers' ends */
	pthread_t thread;
	bool runs; /* the thread */
	enum nps_worker_library library; /* that the thread plays */
	struct device_answer answer;
	bool received; /* a whole request, which is: */
	struct nps_worker_request request;
	char payload[1024];
};

extern struct device_peer device_peer;

/* Of each test: connected to one worker a library. Ends a test that waits for ever. */
int device_peer_setup(void **state);
int device_peer_teardown(void **state);

void device_peer_connect(void);
void device_peer_close(void);

/* The workers' end alone. */
void device_peer_close_one(enum nps_worker_library library);

/* The worker of LIBRARY replies A to the next request. */
void device_peer_begin(enum nps_worker_library library, const struct device_answer *a);

/* Until it has; it has received a whole request. */
void device_peer_join(void);

/* Whether there is something to be received. */
bool device_peer_has_bytes(int fd);

/* --- each of the driver's functions --------------------------------------------------------------------- */

/* What the driver's functions return, between redzones of the sanitizer. */
extern char device_reply_data[NPS_WORKER_DATA + 64];

/* Where the calls below leave what came back. */
extern struct device_out {
	struct nps_prof_channels channels;
	struct nps_call_span span;
	struct nps_dcmi_hbm hbm;
	struct nps_dcmi_process processes[NPS_DCMI_PROCESSES];
	struct nps_dcmi_packets packets;
	char text[NPS_WORKER_TEXT], name[NPS_CHIP_TEXT], buf[100];
	uint32_t ids[NPS_DEVICE_MAX], n_ids;
	int cards[8];
	int64_t value;
	size_t got;
} device_out;

/* Which of them a call sets. */
enum device_kept { DEVICE_KEEPS_NOTHING, DEVICE_KEEPS_VALUE, DEVICE_KEEPS_DATA };

struct device_call {
	int (*make)(void);
	enum nps_worker_library library;
	struct nps_worker_request request; /* that kheaders/device_worker.h documents for it */
	enum device_kept kept;
	void *out; /* DEVICE_KEEPS_DATA */
};

/* All of them, on device 7 and its channel 43, or card 5 and its device 1. */
extern const struct device_call device_calls[DEVICE_CALLS];

/* Those that tests make by themselves. */
int device_call_load_hal(void);
int device_call_channels(void);
int device_call_read(void);
int device_call_info(void);
int device_call_devices(void);
int device_call_chip_name(void);
int device_call_hbm(void);

/* Starts a channel with so many bytes of device_call_parameters. */
int device_call_start_with(uint32_t data_size);
extern const char device_call_parameters[NPS_PROF_PARAMETERS + 1];

/*
 * The reply to C that fills all of its room. A number of channels is among the bytes: 32 lie within the list.
 */
struct device_answer device_call_full_answer(const struct device_call *c);

/* Makes the call C, to which the worker replies A. */
int device_call_answered(const struct device_call *c, const struct device_answer *a);

/*
 * Makes a call of the HAL, to which the worker replies REPLY, with as many bytes of device_reply_data as it
 * states.
 */
int device_call_answer(int (*make)(void), struct nps_worker_reply reply);

#endif
