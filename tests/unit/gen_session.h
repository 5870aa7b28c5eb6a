/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes synthetic session directories with known content, so that the analyzer can be tested
 * without a collector and without an NPU. Time starts at GEN_T0 of CLOCK_MONOTONIC.
 */
#ifndef GEN_SESSION_H
#define GEN_SESSION_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "catalog.h"
#include "event.h"
#include "session.h"

#define GEN_T0 1000000000000ULL /* monotonic ns at which captures begin */
#define GEN_REAL0 1736408883704643212ULL /* the same instant as Unix time */
#define GEN_RAW_AHEAD 777000000ULL /* raw - mono at GEN_T0 */

struct gen_file {
	FILE *file;
	uint64_t seq;
};

struct gen {
	char dir[512];
	struct gen_file events, strings, clocks;
	struct nps_event *batch;
	size_t nbatch;
	FILE *soc; /* the open device log */
	unsigned int soc_count; /* its 4-bit counter */
	double raw_ppm; /* how much faster raw runs than mono */
	double device_ppm; /* how much faster the device runs than nominal */
	uint64_t last;
	struct gen_file devices; /* device.nps, if a sampler of devices wrote it */
};

/* Opens a new session in DIR, which exists. */
void gen_open(struct gen *gen, const char *dir);

void gen_event(struct gen *gen, const struct nps_event *ev);
/* Interns TEXT and returns its id. */
uint64_t gen_text(struct gen *gen, const char *text);
void gen_comm(struct gen *gen, uint32_t tid, uint64_t time, const char *comm);
/* A chunk of TYPE into events.nps, strings.nps (which = 's'), clocks.nps ('c') or device.nps ('d'). */
void gen_chunk(struct gen *gen, char which, unsigned int type, const void *payload, size_t len);

/* The simulated clocks. */
uint64_t gen_raw(const struct gen *gen, uint64_t mono);
uint64_t gen_counter(const struct gen *gen, uint64_t mono);
/* One sample of the host clocks; one bracketed read of DEVICE's counter, WIDTH ns wide. */
void gen_clock(struct gen *gen, uint64_t mono);
void gen_device_clock(struct gen *gen, uint32_t pid, uint32_t device, uint64_t mono, uint64_t width);

/* Opens PROF_{pid}/device_{device}/data/stars_soc.data.{device}.slice_0. */
void gen_soc_open(struct gen *gen, uint32_t pid, unsigned int device);
void gen_soc(struct gen *gen, unsigned int func, unsigned int sqe_type, unsigned int stream,
	     unsigned int task, uint64_t mono);
void gen_soc_close(struct gen *gen);

/* Short forms of events. */
void gen_api(struct gen *gen, uint32_t pid, uint32_t tid, unsigned int probe, uint64_t start, uint64_t end,
	     uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3);
void gen_mark(struct gen *gen, uint32_t pid, uint32_t tid, unsigned int probe, uint64_t at, uint64_t a0,
	      uint64_t a1, uint64_t a2);
void gen_sqe(struct gen *gen, uint32_t pid, uint32_t tid, uint64_t start, uint64_t end, unsigned int device,
	     unsigned int type, unsigned int stream, unsigned int task, unsigned int blocks);

/* Writes session.json with PROCESSES as the content of that array (and so on) and closes. */
void gen_close(struct gen *gen, bool complete, const char *processes, const char *devices,
	       const char *step_marker);

/* What happened to one device task. */
struct gen_task {
	uint64_t submit, start, end; /* mono ns */
	uint32_t stream;
	uint16_t task;
	uint32_t flip;
	char name[48];
};

struct gen_job {
	unsigned int ranks, launches; /* kernels of each rank */
	bool agent; /* with a device log */
	bool os; /* with system calls and scheduling */
	bool memory; /* with allocations, and npu-smi's values of memory */
	bool ops; /* with operators of PyTorch around the launches, and backward passes of another thread */
	unsigned int lose_every; /* drop the device records of every n-th task; 0 none */
	/* filled: tasks of rank r are truth[r * stride], per_rank of them */
	struct gen_task *truth;
	size_t stride, per_rank;
};

/*
 * A training job: aclnn operators on stream 2, a host-to-device copy every 50 of them, an event and
 * an all-reduce on stream 5 every 100, then a synchronisation and a new step.
 */
void gen_job(const char *dir, struct gen_job *job);

/* A fresh directory below $TMPDIR or /tmp; the caller frees the name. */
char *gen_temp_dir(void);
/* Removes it and everything below. */
void gen_remove(char *dir);

#endif
