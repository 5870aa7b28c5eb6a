/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * What BPF programs report of a job's own profiler: its calls of the driver, and the bytes that they
 * returned.
 */
#ifndef NPS_PROFTAP_H
#define NPS_PROFTAP_H

#include <linux/types.h>

/* Bytes of one data record: large ones, and small ones for the rest. The driver's ring is 4 or 8 MiB. */
#define NPS_TAP_LARGE 32768
#define NPS_TAP_SMALL 4096
#define NPS_TAP_MOST_LARGE 256
#define NPS_TAP_PARA 128

/* Which function a probe is on. */
enum nps_tap_call {
	NPS_TAP_CALL_START = 1,
	NPS_TAP_CALL_STOP = 2,
	NPS_TAP_CALL_READ = 3,
	NPS_TAP_CALL_LIST = 4
};

enum nps_tap_what {
	NPS_TAP_ENTER = 1, /* prof_drv_start was entered; with struct nps_tap_start */
	NPS_TAP_START = 2, /* it returned */
	NPS_TAP_STOP = 3, /* prof_stop returned */
	/* a read of a channel opened before the capture returned nothing: the next bytes begin a record */
	NPS_TAP_EMPTY = 4,
	NPS_TAP_LIST = 6, /* prof_drv_get_channels was entered: channels are about to be started */
	NPS_TAP_DATA = 5, /* a part of what a read returned; with struct nps_tap_small or nps_tap_large */
};

struct nps_tap_event {
	__u32 what; /* enum nps_tap_what */
	__u32 pid, tid;
	__u32 device, channel;
	__s32 ret; /* of the call */
	__u32 len; /* bytes of data, or of the parameters */
	__u32 epoch; /* number of starts of the channel during the capture; 0: it was open before */
	__u64 position; /* DATA: bytes of the channel before these, since that start */
};

struct nps_tap_start {
	struct nps_tap_event e;
	__u8 para[NPS_TAP_PARA]; /* user_data of prof_start_para */
};

struct nps_tap_small {
	struct nps_tap_event e;
	__u8 data[NPS_TAP_SMALL];
};

struct nps_tap_large {
	struct nps_tap_event e;
	__u8 data[NPS_TAP_LARGE];
};

/*
 * A process in which our helper has channels open: the signal that makes a thread of the job wait until
 * the helper has released them.
 */
struct nps_tap_helper {
	__u64 handler; /* address of its handler: if the job has installed another one, no signal is sent */
	__u32 signal;
	__u32 pad;
};

#endif
