/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiling channels of one process: what the parts of the profiler share. */
#ifndef NPUSIM_HAL_PROF_H
#define NPUSIM_HAL_PROF_H

#include "device.h"
#include "links.h"
#include "pmu.h"

#define CONFIG_MAX 128
#define EVENTS_OF_PMU 10

/* What happened to a task, kept until the batch is written. */
struct prof_event {
	uint64_t when;
	enum { EVENT_START, EVENT_END, EVENT_RECEIVED, EVENT_SUB_START, EVENT_SUB_END } what;
	uint16_t sq;
	uint16_t context, thread; /* of a sub-task */
	struct task task;
};

struct channel {
	struct device *device;
	uint32_t id;
	const struct channel_kind *kind;
	/* under the device's lock */
	bool active;
	bool collects_tasks, collects_samples; /* one of them */
	uint32_t config[CONFIG_MAX / 4], config_bytes; /* user_data of the start */
	uint32_t period_ms;
	uint64_t opened; /* raw */
	uint8_t count; /* running number in the records */
	uint32_t since_loss, lose_run;
	uint64_t lost_records, lost_bytes; /* not yet written to the truth file */
	uint64_t next; /* sample, raw */
	uint64_t last; /* sample, raw */
	void *state; /* of the kind; freed when the channel stops */
	/* under the ring's lock */
	char *ring;
	/* Bytes since the start: they distinguish a full ring from an empty one. */
	uint64_t written, read;
	uint32_t reads;
	uint32_t record; /* bytes of the last one */
	bool queued; /* for poll: once until polled */
};

/* The kind of a channel id; one line each in prof_kinds.c. */
struct channel_kind {
	uint32_t id;
	int type; /* channel_type of the start */
	uint32_t config_min; /* bytes of user_data that it needs */
	/* Is it about the tasks of a context in this process? Else it samples. */
	bool (*in_context)(const struct channel *c);
	void (*task)(struct channel *c, const struct prof_event *e);
	void (*sample)(struct channel *c, uint64_t now);
};

const struct channel_kind *channel_kind(uint32_t id);

/* channel.c: the ring. All but channel_put() take its lock. */
bool channel_ring_start(struct channel *c);
/* One record, with the device locked; what is to be lost is. */
void channel_put(struct channel *c, const void *record, uint32_t size);
/* After a batch of records: wakes the reader, drops what is to be overwritten, writes the truth. */
void channel_batch_done(struct channel *c);
uint32_t channel_available(struct channel *c);
uint32_t channel_read(struct channel *c, char *buf, uint32_t size);
void channel_dequeue(struct channel *c);
/* Waits until a channel was queued; those are moved to `out`. -1 if none is active. */
int channel_poll(struct prof_poll_info *out, int num, int seconds);

/* u32 number `i` of the start parameters, 0 beyond their end; 1 means on. */
uint32_t channel_config(const struct channel *c, uint32_t i);
bool channel_on(const struct channel *c, uint32_t i);
uint64_t channel_ticks(const struct channel *c, uint64_t raw);

/* A counter at the last two looks that a sampling channel took. */
struct span {
	uint64_t before, after, amount;
};

struct span channel_span(struct channel *c, enum counter counter);
/* The device's own CLOCK_MONOTONIC_RAW. */
uint64_t channel_device_ns(const struct channel *c, uint64_t raw);
void samples_collect(struct channel *c, uint64_t now);
/* When the channel ends: what all its samples came to. */
void samples_truth(const struct channel *c);

/* pmu.c */
void pmu_ffts_task(struct channel *c, const struct prof_event *e);
void pmu_aicore_task(struct channel *c, const struct prof_event *e);
void pmu_sample_ffts(struct channel *c, uint64_t now);
void pmu_sample_aicore(struct channel *c, uint64_t now);
/* Of a channel with the parameters of 43: else it samples. */
bool pmu_is_per_task(const struct channel *c);

/* With the device locked: notices a reset. */
void prof_check_reset(struct device *d);

/* sampler.c: has a thread that samples. */
bool sampler_wake(void);
/* In a forked child: there is no thread, and no lock is held. */
void sampler_forget(void);
void channel_forget(void);

/* NPUSIM_BLOCKS: so many of a kernel's blocks are logged one by one, as all are millions a second. */
uint32_t tasklog_blocks_logged(uint32_t blocks);
/* Fills in the common head of a STARS record, with the running number. */
void tasklog_head(struct channel *c, const struct truth_task *t, uint32_t func, uint64_t when, void *head);
/* tasklog.c */
void tasklog_stars(struct channel *c, const struct prof_event *e);
void tasklog_blocks(struct channel *c, const struct prof_event *e);
void tasklog_hwts(struct channel *c, const struct prof_event *e);
void tasklog_track(struct channel *c, const struct prof_event *e);
void tasklog_l2(struct channel *c, const struct prof_event *e);
void tasklog_soc_pmu(struct channel *c, const struct prof_event *e);
void tasklog_aicpu(struct channel *c, const struct prof_event *e);

#endif
