/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Shared memory between the helper library in the job and the collector.
 *
 * The helper creates one memfd named NPS_AGENT_NAME, sealed against shrinking, and sleeps on `wake`. The
 * collector finds it in /proc/PID/maps, opens it through /proc/PID/map_files and maps it. The mapping is
 * the control pages followed by the ring. The collector trusts nothing in it, because it belongs to the
 * job.
 */
#ifndef NPS_AGENT_H
#define NPS_AGENT_H

#include <linux/types.h>

#define NPS_AGENT_NAME "npuscope-agent"
#define NPS_AGENT_COMM "npuscope_agent" /* of the helper's threads */
#define NPS_AGENT_LIBRARY "libnpuscope_agent.so"
#define NPS_AGENT_MAGIC 0x544741534e50554eULL /* "NUPNSAGT" */
#define NPS_AGENT_VERSION 4
#define NPS_AGENT_CONTROL_SIZE 32768U
#define NPS_AGENT_RING_SIZE (32U << 20) /* bytes, a power of two */
#define NPS_AGENT_MAX_DEVICES 64
#define NPS_AGENT_MAX_WANTS 12
#define NPS_AGENT_MAX_ERRORS 12
#define NPS_AGENT_PARA_MAX 128
#define NPS_AGENT_BLOCK_MAX (1U << 20) /* bytes of a block's payload */

enum nps_agent_command { NPS_AGENT_IDLE = 0, NPS_AGENT_RUN = 1 };

enum nps_agent_status {
	NPS_AGENT_S_OFF = 0, /* not requested, or no context on this device */
	NPS_AGENT_S_ON = 1, /* channel open, records flow */
	NPS_AGENT_S_BUSY = 2, /* another process holds the channel */
	NPS_AGENT_S_ERROR = 3, /* the driver refused; see error */
	NPS_AGENT_S_NO_CHANNEL = 4, /* the device has no such channel */
	NPS_AGENT_S_HELD = 5, /* released for the job's own profiler */
	NPS_AGENT_S_OPENING = 6, /* requested from the driver, which has not answered yet */
};

/* A channel that the collector wants, and the parameters of its start. */
struct nps_agent_want {
	__u32 channel;
	__s32 type; /* prof_start_para.channel_type */
	__u32 period_ms;
	__u32 size; /* of data */
	__u64 chips; /* bit N: on chips of type N, as prof_drv_get_channels reports it; 63: 63 and above */
	__u32 log; /* it is the task log: a device without it is not recorded */
	__u32 pad;
	__u8 data[NPS_AGENT_PARA_MAX];
};

/* A function of the driver. */
enum nps_agent_call {
	NPS_AGENT_CALL_CHANNELS,
	NPS_AGENT_CALL_START,
	NPS_AGENT_CALL_READ,
	NPS_AGENT_CALL_FLUSH,
	NPS_AGENT_CALL_STOP
};

/* An error that it returned. */
struct nps_agent_error {
	__u32 channel;
	__u32 call; /* enum nps_agent_call */
	__s32 code;
};

struct nps_agent_device {
	__u32 status; /* enum nps_agent_status, of the task log */
	__s32 error; /* driver's code */
	/*
	 * Other than 0: the helper has to release the device. The helper adds 1 when the job's own
	 * profiler calls the driver; the collector sets it to 0, if it has not changed, once the job's
	 * profiler has no channel open.
	 */
	__u32 hold;
	__u32 busy; /* helper: a channel is open, or is being opened or closed */
	__u64 bytes; /* delivered so far, of all channels */
	__u64 started_raw; /* CLOCK_MONOTONIC_RAW ns when the task log opened */
	__u32 freq_khz; /* of the device's counter, from the driver; 0 unknown */
	__u32 chip_type; /* as prof_drv_get_channels reports it */
	__u32 aic_cores, aiv_cores, aic_mhz, aiv_mhz; /* 0 unknown */
	__u32 open; /* bit N: want N is open */
	__u32 refused; /* bit N: want N was refused with `want_error` */
	__s32 want_error[NPS_AGENT_MAX_WANTS];
	char chip[32]; /* name of the chip, "" unknown */
	/*
	 * Collector: it has channels of the device open, which it releases when the job's own profiler
	 * starts one.
	 */
	__u32 sampled;
	__u32 n_errors; /* helper: number of `errors`, each kind once */
	struct nps_agent_error errors[NPS_AGENT_MAX_ERRORS];
};

struct nps_agent_control {
	__u64 magic;
	__u32 version;
	__u32 ring_size;
	__u32 command; /* collector: enum nps_agent_command */
	__u32 clock_request; /* collector adds 1 to request clock samples */
	__u32 clock_done; /* helper: last request served */
	/* collector adds 1 at least once a second; after 5 s without a change the helper goes idle */
	__u32 heartbeat;
	/* collector: its pid, so that a second collector can find out whether the first is alive */
	__u32 owner;
	__u32 state; /* helper: enum nps_agent_command it has reached */
	__u32 wake; /* futex word: collector adds 1 and wakes after any change */
	__u32 released; /* futex word: helper and collector add 1 and wake when they have released a device */
	/* helper: signal whose handler makes a thread of the job wait for that; 0: none was free */
	__u32 signal;
	__u32 n_wants; /* collector */
	__u64 handler; /* helper: address of the handler of `signal` */
	__u64 head; /* helper: bytes ever written to the ring */
	__u64 tail; /* collector: bytes ever read from it */
	__u64 lost; /* helper: bytes dropped because the ring was full */
	struct nps_agent_want want[NPS_AGENT_MAX_WANTS];
	struct nps_agent_device device[NPS_AGENT_MAX_DEVICES];
};

/*
 * Blocks in the ring are aligned to 8 bytes and never wrapped: before a block that would cross the end, a
 * NPS_AGENT_B_SKIP block fills the rest.
 */
enum nps_agent_block_type { NPS_AGENT_B_SKIP = 0, NPS_AGENT_B_DATA = 1, NPS_AGENT_B_CLOCK = 2 };

struct nps_agent_block {
	__u32 type; /* enum nps_agent_block_type */
	__u32 len; /* bytes of payload, without the padding to 8 */
	__u16 device;
	__u16 channel;
	__u32 epoch; /* DATA: how often the channel has been opened */
	__u64 position; /* DATA: bytes of the channel before these since it was opened */
	/* payload: bytes of the channel as read, or struct nps_device_clock[] */
};

#endif
