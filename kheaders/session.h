/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Files of a session directory. docs/session-format.md is the full description.
 *
 * events.nps, strings.nps and clocks.nps are sequences of chunks: a header, then
 * `len` bytes of payload. A reader stops at the first chunk whose magic, length,
 * sequence or checksum is wrong: everything before it is good.
 */
#ifndef NPS_SESSION_H
#define NPS_SESSION_H

#include <linux/types.h>

#define NPS_SESSION_VERSION 1
#define NPS_CHUNK_MAGIC 0x4b43504eU /* "NPCK" */
#define NPS_CHUNK_MAX (4U << 20) /* no payload is larger */

enum nps_chunk_type {
	NPS_CHUNK_EVENTS = 1, /* struct nps_event[] */
	NPS_CHUNK_STRINGS = 2, /* struct nps_string[] */
	NPS_CHUNK_CLOCKS = 3, /* struct nps_clock[] */
	NPS_CHUNK_DEVICE_CLOCKS = 4, /* struct nps_device_clock[] */
	NPS_CHUNK_LOSS = 5, /* struct nps_loss[], running totals; in events.nps */
	/* 16..31: samples of the host, in host.nps; 32..47: stacks, in stacks.nps */
	NPS_CHUNK_STACKS = 32, /* struct nps_stack and what follows each, stack.h */
	NPS_CHUNK_MAPS = 33, /* struct nps_map_record with paths */
	NPS_CHUNK_KSYMS = 34, /* struct nps_ksym[] */
	NPS_CHUNK_VDSO = 35, /* the ELF image of [vdso] */
};

struct nps_chunk {
	__u32 magic;
	__u16 version; /* NPS_SESSION_VERSION */
	__u16 type; /* enum nps_chunk_type */
	__u64 seq; /* 0, 1, 2 ... within the file */
	__u32 len; /* bytes of payload */
	__u32 crc; /* crc32 (zlib) of the payload */
	__u32 cpu; /* ring the payload came from; 0 where that has no meaning */
	__u32 pad;
};

/* The four host clocks, read back to back; raw_after - raw bounds the read. */
struct nps_clock {
	__u64 mono, raw, real, boot; /* ns */
	__u64 raw_after;
};

/* One bracketed read of a device's counter, in CLOCK_MONOTONIC_RAW ns. */
struct nps_device_clock {
	__u32 device;
	__u32 pid; /* process that asked */
	__u64 raw_before, raw_after;
	__u64 counter;
};

struct nps_loss {
	__u8 kind; /* enum nps_kind; NPS_STR_* for strings */
	__u8 pad[3];
	__u32 cpu; /* 0xffffffff: all together */
	__u64 lost; /* records since the start */
};

#endif
