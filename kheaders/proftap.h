/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What the kernel side tells of a job's own profiler: its calls of the driver, and the bytes that they gave it. */
#ifndef NPS_PROFTAP_H
#define NPS_PROFTAP_H

#include <linux/types.h>

/* Bytes of one record of data: large ones, and small ones for what is left. The driver's ring is 4 MiB, or 8. */
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
	NPS_TAP_EMPTY =
		4, /* a read of a channel that was open before us gave nothing: what comes next begins a record */
	NPS_TAP_LIST = 6, /* prof_drv_get_channels was entered: some are about to be started */
	NPS_TAP_DATA = 5, /* a part of what a read gave; with struct nps_tap_small or nps_tap_large */
};

struct nps_tap_event {
	__u32 what; /* enum nps_tap_what */
	__u32 pid, tid;
	__u32 device, channel;
	__s32 ret; /* of the call */
	__u32 len; /* bytes of data, or of the parameters */
	__u32 epoch; /* how often the channel was started while we looked; 0: it was open before */
	__u64 position; /* DATA: bytes of the channel before these, since then */
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

/* A process in which our helper has channels open: which signal makes a thread of the job wait until it has let go. */
struct nps_tap_helper {
	__u64 handler; /* its address: where the job has put another one, no signal is sent */
	__u32 signal;
	__u32 pad;
};

#endif
