/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One channel of one device: opened when it is free, read until it is empty, stored unchanged. The driver's
 * ring has no check for overflow: a late reader finds newer bytes in place of older ones. Sequence numbers
 * and times of records show such a loss, and the next beginning of a record is searched. A whole round of
 * the ring does not show in the sequence numbers, because it is a multiple of theirs: it is inferred from
 * the time since the last read and the channel's rate.
 */
#ifndef NPS_DEVICE_STREAM_H
#define NPS_DEVICE_STREAM_H

#include "capture/log_budget.h"
#include "driver/prof_files.h"
#include "sources/device/device_channels.h"

/* Plausible records in a row needed to accept a beginning: reads and writes of all units. */
#define NPS_STREAM_UNSEEN 16
#define NPS_STREAM_HELD (NPS_STREAM_UNSEEN + 2) /* records held back during that search */
#define NPS_STREAM_CODES 6 /* different errors reported of one channel */

enum nps_stream_state {
	NPS_STREAM_WAITS, /* is started at `retry` */
	NPS_STREAM_OPEN,
	NPS_STREAM_ABSENT, /* the device has no such channel */
	NPS_STREAM_REFUSED, /* a retry is useless */
	NPS_STREAM_LEFT, /* left to the helper, which counts by task what would be sampled */
};

struct nps_device_stream {
	const struct nps_channel *ch;
	struct nps_log_account *account; /* of the device; NULL: no limit */
	enum nps_stream_state state;
	uint64_t retry, pause; /* CLOCK_MONOTONIC ns of the next try; ns to wait after that */
	int segment; /* of the thread: index of the PROF directory that it fills */
	uint32_t period_ms;
	uint32_t tick_ns; /* of the device's counter, approximately */
	uint64_t opened; /* CLOCK_MONOTONIC ns */
	struct nps_prof_file file;
	int version; /* of the records, -1 not known yet */
	/* An incomplete record, or bytes that are not plausible records. */
	uint8_t rest[NPS_STREAM_HELD * NPS_CHANNEL_RECORD];
	uint32_t n_rest;
	int number; /* last sequence number, -1: none */
	uint64_t time; /* of the last record */
	unsigned int failures; /* failed reads in a row */
	uint64_t bytes_before; /* part of `bytes` that was read before it was opened last */
	uint64_t read_at; /* CLOCK_MONOTONIC ns when the last read returned */
	uint64_t away[2]; /* longest time between two reads, ns: in this drain, and in the previous one */
	/* sum of the times between successive records, in units of theirs, and their number */
	uint64_t span, spanned;
	uint64_t bytes, records, lost, gaps, torn; /* torn: bytes of records that were partly overwritten */
	/* whole rounds of the driver's ring that were overwritten; their records are in `lost` */
	uint64_t rounds;
	uint64_t unread; /* ns without a read before the last of them */
	bool rounds_reported;
	unsigned int starts;
	int codes[NPS_STREAM_CODES]; /* codes of the driver that were reported, 0: free */
};

/* Starts the channel into PROF directory DIR. 0, the driver's code, or INT32_MIN for -ENOMEM. */
int nps_device_stream__start(struct nps_device_stream *s, const struct nps_device_lib *lib,
			     const struct nps_device_opts *o, const struct nps_device_info *d,
			     const char *dir);

/*
 * Reads into the session, through BUF of SIZE bytes, until the channel is empty or the account's limit is
 * reached. 0 or the driver's code; *DISK: -errno of a write. Sets d->second_version when the records show it.
 */
int nps_device_stream__drain(struct nps_device_stream *s, const struct nps_device_lib *lib,
			     struct nps_device_info *d, struct nps_session_writer *session, char *buf,
			     uint32_t size, int *disk);

/* Flushes, stops and reads the rest. Returns the driver's code of the stop. */
int nps_device_stream__stop(struct nps_device_stream *s, const struct nps_device_lib *lib,
			    struct nps_device_info *d, struct nps_session_writer *session, char *buf,
			    uint32_t size, int *disk);

/* Closes the file of a stream that the driver has ended by itself. */
void nps_device_stream__abandon(struct nps_device_stream *s, struct nps_device_info *d,
				struct nps_session_writer *session, int *disk);

#endif
