/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes of a process's driver channels as files of CANN's layout: PROF_x/device_N/data/<name>.N.slice_K,
 * cut at whole records. Positions at which bytes are missing are listed in npuscope.breaks
 * (docs/session-format.md).
 */
#ifndef NPS_CHANNEL_FILES_H
#define NPS_CHANNEL_FILES_H

#include <stdint.h>
#include <sys/types.h>

#include "driver/aic_metrics.h"
#include "driver/prof_control.h"
#include "driver/device_lib.h"
#include "capture/log_budget.h"
#include "session.h"
#include "core/session_writer.h"

struct nps_channel_files;

/* Who read the channel. */
enum nps_channel_reader { NPS_READ_BY_AGENT, NPS_READ_BY_PROFILER };

/* Position of bytes in a channel. */
struct nps_channel_at {
	uint32_t device, channel;
	enum nps_channel_reader reader;
	uint32_t epoch; /* how often this reader has opened the channel */
	uint64_t position; /* bytes of the channel before these, since that */
};

/*
 * Creates nothing on disk before the first byte. BUDGET is not owned, and must outlive it. NULL: no memory.
 */
struct nps_channel_files *nps_channel_files__new(pid_t pid, struct nps_session_writer *s,
						 struct nps_log_budget *budget);

/*
 * No more bytes will follow: writes what is held back, closes open
 * files, and marks the directory as complete.
 */
void nps_channel_files__finish(struct nps_channel_files *f);
void nps_channel_files__free(struct nps_channel_files *f);

/*
 * Appends LEN bytes. A gap between them and the bytes before is recorded as a break. Channels without a
 * known file are skipped. 0; -EPROTO: the position is impossible; -ENOBUFS: its account ended the log
 * (nps_channel_files__account(f)->end); another -errno: a write failed.
 */
int nps_channel_files__put(struct nps_channel_files *f, const struct nps_channel_at *at, const void *data,
			   uint32_t len);

/* Limit and use of the reads of its channels. */
struct nps_log_account *nps_channel_files__account(struct nps_channel_files *f);

/* Bit d: data of device d was written. */
uint64_t nps_channel_files__devices(const struct nps_channel_files *f);

/* METRIC is what the cores' counters hold by task: for the control files. */
void nps_channel_files__count(struct nps_channel_files *f, enum nps_aic_metric metric);

/* Device properties for the control files. */
void nps_channel_files__know(struct nps_channel_files *f, const struct nps_device_info *info);

/* A read of a device's clock: the control files relate the clocks by the shortest read. */
void nps_channel_files__clock(struct nps_channel_files *f, const struct nps_device_clock *clock);

/*
 * Writes or replaces the control files of the directory, if there is one. NAME: of the process, NULL:
 * unknown; RANK -1: none; END NULL: the log goes on. 0 or -errno.
 */
int nps_channel_files__write_control(struct nps_channel_files *f, const char *name, int rank, int level,
				     const struct nps_clock *end);

/* Number of bytes written. */
uint64_t nps_channel_files__bytes(const struct nps_channel_files *f);

/* Name of the PROF_* directory, NULL before the first byte. */
const char *nps_channel_files__dir(const struct nps_channel_files *f);

#endif
