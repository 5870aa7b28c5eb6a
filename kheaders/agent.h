/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Shared memory between the helper library in the job and the collector.
 *
 * The helper creates one memfd named NPS_AGENT_NAME, sealed against shrinking, and
 * sleeps on `wake`. The collector finds it in /proc/PID/maps, opens it through
 * /proc/PID/map_files and maps it. The mapping is the control page followed by the ring.
 * Nothing in it is trusted by the collector: it belongs to the job.
 */
#ifndef NPS_AGENT_H
#define NPS_AGENT_H

#include <linux/types.h>

#define NPS_AGENT_NAME "npuscope-agent"
#define NPS_AGENT_MAGIC 0x544741534e50554eULL /* "NUPNSAGT" */
#define NPS_AGENT_VERSION 1
#define NPS_AGENT_CONTROL_SIZE 4096U
#define NPS_AGENT_RING_SIZE (32U << 20) /* bytes, a power of two */
#define NPS_AGENT_MAX_DEVICES 64
#define NPS_AGENT_RECORD 64 /* bytes of a record of the task log */

enum nps_agent_command { NPS_AGENT_IDLE = 0, NPS_AGENT_RUN = 1 };

enum nps_agent_status {
	NPS_AGENT_S_OFF = 0, /* not asked, or no context on this device */
	NPS_AGENT_S_ON = 1, /* channel open, records flow */
	NPS_AGENT_S_BUSY = 2, /* somebody else holds the channel */
	NPS_AGENT_S_ERROR = 3, /* the driver refused; see error */
	NPS_AGENT_S_NO_CHANNEL = 4, /* the device has no task-log channel */
};

struct nps_agent_device {
	__u32 status; /* enum nps_agent_status */
	__s32 error; /* driver's code */
	__u64 bytes; /* delivered so far */
	__u64 started_raw; /* CLOCK_MONOTONIC_RAW ns when the channel opened */
	__u32 freq_khz; /* of the device's counter, as the driver says; 0 unknown */
	char chip[28]; /* name of the chip, "" unknown */
};

struct nps_agent_control {
	__u64 magic;
	__u32 version;
	__u32 ring_size;
	__u32 command; /* collector: enum nps_agent_command */
	__u32 clock_request; /* collector adds 1 to ask for clock samples */
	__u32 clock_done; /* helper: last request served */
	__u32 heartbeat; /* collector adds 1 at least every second; 5 s of silence idles the helper */
	__u32 owner; /* collector: its pid, so that a second one can tell whether the first lives */
	__u32 state; /* helper: enum nps_agent_command it has reached */
	__u32 wake; /* futex word: collector adds 1 and wakes after any change */
	__u32 pad;
	__u64 head; /* helper: bytes ever written to the ring */
	__u64 tail; /* collector: bytes ever taken */
	__u64 lost; /* helper: bytes dropped because the ring was full */
	struct nps_agent_device device[NPS_AGENT_MAX_DEVICES];
};

/* In the ring, 8-byte aligned, never wrapped: a block that would cross the end
 * is preceded by a NPS_AGENT_B_SKIP block that fills the rest. */
enum nps_agent_block_type { NPS_AGENT_B_SKIP = 0, NPS_AGENT_B_DATA = 1, NPS_AGENT_B_CLOCK = 2 };

struct nps_agent_block {
	__u32 type; /* enum nps_agent_block_type */
	__u32 len; /* bytes of payload, the padding to 8 not counted */
	__u16 device;
	__u16 channel;
	__u32 phase; /* DATA: position of the first byte in its record, to find records again after a loss */
	/* payload: bytes of the channel as read, or struct nps_device_clock[] */
};

#endif
