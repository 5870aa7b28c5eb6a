/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Files of a session directory. docs/session-format.md is the full description.
 *
 * events.nps, strings.nps and clocks.nps are sequences of chunks: a header,
 * then `len` bytes of payload. A reader stops at the first chunk whose magic,
 * length, sequence or checksum is wrong: everything before it is good.
 */
#ifndef NPS_SESSION_H
#define NPS_SESSION_H

#include <linux/types.h>

#define NPS_SESSION_VERSION 2 /* records of events have a struct for each kind */
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
	NPS_CHUNK_HOST_NAMES = 16, /* struct nps_host_name[] */
	NPS_CHUNK_HOST_CPUS = 17, /* struct nps_host_cpu[] */
	NPS_CHUNK_HOST_SYSTEM = 18, /* struct nps_host_system[] */
	NPS_CHUNK_HOST_THREADS = 19, /* struct nps_host_thread[] */
	NPS_CHUNK_HOST_PROCESSES = 20, /* struct nps_host_process[] */
	NPS_CHUNK_HOST_MEMORY = 21, /* struct nps_host_memory[] */
	NPS_CHUNK_HOST_DISKS = 22, /* struct nps_host_disk[] */
	NPS_CHUNK_HOST_CARDS = 23, /* struct nps_host_card[] */
	/* 48..63: of devices, in device.nps, beside DEVICE_CLOCKS */
	/* struct nps_device_clock[], whose counter is ns of the device's CLOCK_MONOTONIC_RAW */
	NPS_CHUNK_DEVICE_RAWS = 48,
	NPS_CHUNK_NPU_USAGE = 49, /* struct nps_npu_usage[] */
	NPS_CHUNK_NPU_PROCESSES = 50, /* struct nps_npu_process[] */
	/* 64..79: Python, in python.nps */
	NPS_CHUNK_PY_STACKS = 64, /* struct nps_py_stack, python_stack.h */
	NPS_CHUNK_PY_CODES = 65, /* struct nps_py_code_record and what follows each */
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
	__u32 pid; /* process that read it */
	__u64 raw_before, raw_after;
	__u64 counter;
};

struct nps_loss {
	__u8 kind; /* enum nps_kind; NPS_STR_* for strings */
	__u8 pad[3];
	__u32 cpu; /* 0xffffffff: all together */
	__u64 lost; /* records since the start */
};

/*
 * Samples of the host. Times are CLOCK_MONOTONIC ns. Counters are the kernel's running totals, so that a
 * missing sample only reduces the resolution. NPS_HOST_UNKNOWN: not requested, or not available.
 */
#define NPS_HOST_UNKNOWN 0xffffffffffffffffULL
#define NPS_HOST_NAME_MAX 32 /* bytes with the closing NUL */

enum nps_host_what {
	NPS_HOST_PROCESS = 1, /* id = pid; text = its comm */
	NPS_HOST_THREAD = 2, /* id = tid, pid = its process */
	NPS_HOST_DISK = 3, /* id = major << 20 | minor */
	NPS_HOST_CARD = 4, /* network interface: id as in nps_host_card */
};

#define NPS_HOST_TARGET 0x1 /* a watched process, not another one of the host */
#define NPS_HOST_JOB_NET 0x2 /* an interface of the job's own network namespace */
/* a partition, or a device that consists of others: its bytes are counted there too */
#define NPS_HOST_PART 0x4

struct nps_host_name {
	__u8 what; /* enum nps_host_what */
	__u8 flags; /* NPS_HOST_*, valid from `time` on */
	__u16 pad;
	__u32 id;
	__u32 pid;
	__u32 pad2;
	__u64 time;
	__u64 speed; /* CARD: bytes a second, 0 unknown */
	char text[NPS_HOST_NAME_MAX];
};

/* One CPU since boot, ns in steps of the kernel's clock tick; cpu 0xffffffff: all together. */
struct nps_host_cpu {
	__u64 time;
	__u32 cpu, pad;
	__u64 user, sys, iowait, irq, soft, idle, steal; /* user: with nice */
};

struct nps_host_system {
	__u64 time;
	__u64 switches, forks; /* since boot */
	__u32 running, blocked; /* threads, now */
};

struct nps_host_thread {
	__u64 time;
	__u32 pid, tid;
	__u64 run, wait; /* ns on a CPU; ns runnable without one */
	__u64 switches; /* times that it got a CPU */
	__u32 cpu; /* its current or last one */
	__u32 pad;
};

struct nps_host_process {
	__u64 time;
	__u32 pid, threads;
	__u64 run; /* ns on a CPU of all its threads, including those that exited */
	__u64 resident; /* bytes of memory, now */
	__u64 read, written,
		cancelled; /* bytes from and for storage; written, but dropped before it was stored */
	__u64 received, sent; /* bytes through sockets of the internet families */
};

/* kB; huge pages: their number */
struct nps_host_memory {
	__u64 time;
	__u64 total, free, available, buffers, cached, shared, swap_total, swap_free, dirty, commit_limit,
		committed, huge_total, huge_free;
};

struct nps_host_disk {
	__u64 time;
	__u32 id, pad;
	__u64 reads, read, writes, written; /* requests, bytes */
	__u64 busy, queue; /* ns with requests in flight; the same weighted by their number */
};

struct nps_host_card {
	__u64 time;
	__u32 id, pad;
	__u64 received, received_packets, receive_errors, receive_drops;
	__u64 sent, sent_packets, send_errors, send_drops;
};

/* What npu-smi reports of a device. NPS_NPU_UNKNOWN: the driver does not report it. */
#define NPS_NPU_UNKNOWN 0xffffffffU

struct nps_npu_usage {
	__u64 time; /* CLOCK_MONOTONIC ns */
	__u64 hbm_total, hbm_used; /* bytes, 0 unknown */
	__u32 device;
	__u32 ai_core, vector, ai_cpu, ctrl_cpu, memory, bandwidth; /* percent in use */
	__u32 hbm_bandwidth; /* percent */
	__s32 temperature, hbm_temperature; /* degrees Celsius, INT32_MAX unknown */
	__u32 power; /* 0.1 W */
	__u32 health; /* 0 healthy, 1 notice, 2 minor, 3 major, 4 critical */
};

/* Memory of a device that one process holds, by its pid on the host. */
struct nps_npu_process {
	__u64 time;
	__u64 bytes;
	__u32 device, pid;
};

#endif
