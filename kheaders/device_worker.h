/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Messages between the collector and npuscope-device-worker, the process that loads the driver's
 * libraries.
 *
 * `npuscope-device-worker launch` keeps the rights that the collector was started with. It reads struct
 * nps_launch_request from descriptor NPS_WORKER_FD, a SOCK_SEQPACKET socket, starts a worker for each,
 * and answers with struct nps_launch_reply.
 *
 * A worker drops all rights before it executes the first instruction of a library. Its descriptor
 * NPS_WORKER_FD is a SOCK_SEQPACKET socket, too: each message on it carries a SOCK_STREAM socket, on
 * which a thread of the worker then answers struct nps_worker_request with struct nps_worker_reply, one
 * after the other. A worker ends when that descriptor is closed. The collector trusts no answer, because
 * the library may be the job's.
 */
#ifndef NPS_DEVICE_WORKER_H
#define NPS_DEVICE_WORKER_H

#include <linux/types.h>

#define NPS_WORKER_FD 3
#define NPS_WORKER_DATA (256U << 10) /* bytes after a request or a reply, at most */
#define NPS_WORKER_PATHS 16384 /* bytes of the paths of a launch */
#define NPS_WORKER_GROUPS 32
#define NPS_WORKER_MOST 8 /* workers of one launcher at a time */

enum nps_launch_op { NPS_LAUNCH_START = 1, NPS_LAUNCH_END = 2 };

/* Where the libraries come from, which decides the identity that their code runs with. */
enum nps_launch_from {
	NPS_LAUNCH_HOST, /* this host's installation: as `uid`, `gid`, `groups`, in our namespaces */
	NPS_LAUNCH_JOB, /* the job's: with its ids, in its namespaces and control groups */
};

/*
 * NPS_LAUNCH_START passes two descriptors: the worker's NPS_WORKER_FD, and /proc/PID of the job or, for
 * the host, /proc/self. `paths` holds NUL-terminated texts: `n_hal` paths of libascend_hal.so and
 * `n_dcmi` of libdcmi.so, tried in that order, then `n_dirs` directories for LD_LIBRARY_PATH. Paths that
 * other users could have written are skipped.
 */
struct nps_launch_request {
	__u32 op; /* enum nps_launch_op */
	__u32 id; /* NPS_LAUNCH_END: of the worker */
	__u32 grace; /* ... it is about to end: wait a moment for it to do so by itself */
	__u32 from; /* enum nps_launch_from */
	__u32 uid, gid; /* NPS_LAUNCH_HOST */
	__u32 n_groups;
	__u32 groups[NPS_WORKER_GROUPS];
	/* NPS_LAUNCH_JOB: user whose files are trusted like root's, the one who ran sudo; 0: none */
	__u32 also_trusted;
	__u32 n_hal, n_dcmi, n_dirs;
	char paths[NPS_WORKER_PATHS];
};

struct nps_launch_reply {
	__s32 error; /* 0; -errno: the reason is in `why` */
	__u32 id; /* NPS_LAUNCH_START: of the worker */
	__s32 pid; /* ... and its process */
	__s32 status; /* NPS_LAUNCH_END: as from wait(2), -1: it had to be killed */
	char why[160];
};

enum nps_worker_library { NPS_WORKER_HAL, NPS_WORKER_DCMI };

/* Names are those of the driver's functions (cann-abi 4.1, 4.3, 4.4), with arguments -> results. */
enum nps_worker_op {
	NPS_WORKER_OPEN = 1, /* library -> 0 and its path; -ENOENT, -ELIBACC, and the reason */
	NPS_WORKER_GET_CHANNELS, /* device -> struct nps_prof_channels */
	NPS_WORKER_START, /* device, channel; payload: struct nps_worker_start and its parameters */
	NPS_WORKER_STOP, /* device, channel */
	NPS_WORKER_READ, /* device, channel, room -> code: bytes that follow */
	NPS_WORKER_FLUSH, /* device, channel */
	NPS_WORKER_DEVICE_INFO, /* device, kind: module, info -> value, before, after */
	NPS_WORKER_DEVICES, /* -> u32 ids */
	NPS_WORKER_API_VERSION, /* -> value */
	NPS_WORKER_CHIP_NAME, /* device -> char[32] */
	NPS_WORKER_CARDS, /* -> s32 cards */
	NPS_WORKER_CARD_DEVICES, /* device: card -> value */
	/* device: card, channel: device of it -> value; both the same in the following ones */
	NPS_WORKER_LOGIC_ID,
	NPS_WORKER_RATE, /* kind: of utilisation -> value */
	NPS_WORKER_HBM, /* -> struct nps_dcmi_hbm */
	NPS_WORKER_TEMPERATURE, /* -> value */
	NPS_WORKER_POWER, /* -> value */
	NPS_WORKER_HEALTH, /* -> value */
	NPS_WORKER_PROCESSES, /* -> struct nps_dcmi_process[] */
	NPS_WORKER_PACKETS, /* kind: port -> struct nps_dcmi_packets */
	NPS_WORKER_OPS
};

#define NPS_WORKER_TEXT 256 /* bytes of a path or a reason */
#define NPS_WORKER_NO_FUNCTION (-38) /* -ENOSYS: the library has no such function */

struct nps_worker_request {
	__u32 op; /* enum nps_worker_op */
	__u32 size; /* bytes that follow */
	__u32 device, channel;
	__s32 kind, info;
	__u32 room; /* bytes that the reply may carry, at most NPS_WORKER_DATA */
	__u32 library; /* NPS_WORKER_OPEN */
};

struct nps_worker_reply {
	__u32 op; /* that of the request */
	__u32 size; /* bytes that follow */
	__s32 code; /* what the driver's function returned, NPS_WORKER_NO_FUNCTION */
	__u32 pad;
	__s64 value;
	__u64 before, after; /* CLOCK_MONOTONIC_RAW ns around the driver's function */
};

struct nps_worker_start {
	__s32 type; /* enum nps_prof_type */
	__u32 period_ms, real_time, pad;
};

/* --- structures of the driver ------------------------------------------------------------------------ */

#define NPS_PROF_CHANNELS 160
#define NPS_DEVICE_MAX 64
#define NPS_CHIP_TEXT 32
#define NPS_PROF_PARAMETERS 256 /* bytes for a channel's start, at most */
#define NPS_DCMI_PROCESSES 32 /* of one device, at most */

struct nps_prof_channel {
	char name[32];
	__u32 type, id;
};

struct nps_prof_channels {
	__u32 chip, n;
	struct nps_prof_channel v[NPS_PROF_CHANNELS];
};

enum nps_prof_type { NPS_PROF_TS = 0, NPS_PROF_PERIPHERAL = 1 };

struct nps_dcmi_hbm {
	__u64 size_mb;
	__u32 mhz, pad;
	__u64 usage_mb;
	__s32 temperature;
	__u32 bandwidth_percent;
};

struct nps_dcmi_process {
	__s32 pid;
	__u64 bytes;
};

struct nps_dcmi_packets {
	__u64 counters[48];
	__s64 seconds, microseconds;
	__u8 reserved[64];
};

#endif
