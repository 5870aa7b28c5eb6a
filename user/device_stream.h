/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One channel of one device: opened when it is free, read until it is empty, stored as it came. The driver's ring has no
 * check for overflow: who reads late finds newer bytes in the place of older ones. What that did is found by the records'
 * running numbers and times, and where records begin is found again. A whole round of the ring leaves no trace in the numbers,
 * since it is a multiple of theirs: it is known by how long nobody read, and by how much the channel writes in that time.
 */
#ifndef NPS_DEVICE_STREAM_H
#define NPS_DEVICE_STREAM_H

#include "device_channels.h"
#include "log_budget.h"
#include "prof_files.h"

/* Records that must look right where records are thought to begin again: reads and writes of all units. */
#define NPS_STREAM_UNSEEN 16
#define NPS_STREAM_DOUBT (NPS_STREAM_UNSEEN + 2) /* records that are held back to find that */
#define NPS_STREAM_CODES 6 /* different errors that are told of one channel */

enum nps_stream_state {
	NPS_STREAM_WAITS, /* to be started at `retry` */
	NPS_STREAM_OPEN,
	NPS_STREAM_ABSENT, /* the device has no such channel */
	NPS_STREAM_REFUSED, /* it will not be had however often we ask */
	NPS_STREAM_LEFT, /* to the helper, which counts by task what would be sampled */
};

struct nps_device_stream {
	const struct nps_channel *ch;
	struct nps_log_account *account; /* of the device; NULL: there is no limit */
	enum nps_stream_state state;
	uint64_t retry, pause; /* CLOCK_MONOTONIC ns: when to try again, and how long after that */
	int segment; /* of the thread: whose PROF directory it fills */
	uint32_t period_ms;
	uint32_t tick_ns; /* of the device's counter, about */
	uint64_t opened; /* CLOCK_MONOTONIC ns */
	struct nps_prof_file file;
	int version; /* of the records, -1 not known yet */
	/* A record whose end is still to come, or whose look is strange. */
	uint8_t rest[NPS_STREAM_DOUBT * NPS_CHANNEL_RECORD];
	uint32_t n_rest;
	int number; /* last running number, -1: none */
	uint64_t time; /* of the last record */
	unsigned int failures; /* reads in a row */
	uint64_t bytes_before; /* of `bytes`: that were read before it was opened */
	uint64_t read_at; /* CLOCK_MONOTONIC ns when the last read came back */
	uint64_t away[2]; /* the longest time between two reads: of this drain, and of the one before */
	uint64_t span,
		spanned; /* time between records that follow each other, in units of theirs, and how many do */
	uint64_t bytes, records, lost, gaps, torn; /* torn: bytes of records that were overwritten in part */
	uint64_t rounds; /* of the driver's ring that were overwritten whole; their records are in `lost` */
	uint64_t unread; /* ns for which nobody read before the last of them */
	bool rounds_told;
	unsigned int starts;
	int codes[NPS_STREAM_CODES]; /* of the driver that were told, 0: free */
};

/* Starts the channel into PROF directory DIR. 0 or what the driver returned; -ENOMEM as INT32_MIN. */
int nps_device_stream__start(struct nps_device_stream *s, const struct nps_device_lib *lib,
			     const struct nps_device_opts *o, const struct nps_device_info *d,
			     const char *dir);

/*
 * Reads until there is nothing, or the account allows no more, into the session, through BUF of SIZE bytes. 0; what the driver returned; *DISK: -errno of
 * writing. Sets d->second_version when the records show it.
 */
int nps_device_stream__drain(struct nps_device_stream *s, const struct nps_device_lib *lib,
			     struct nps_device_info *d, struct nps_session *session, char *buf, uint32_t size,
			     int *disk);

/* Flushes, stops and reads the rest. What the driver said to the stop. */
int nps_device_stream__stop(struct nps_device_stream *s, const struct nps_device_lib *lib,
			    struct nps_device_info *d, struct nps_session *session, char *buf, uint32_t size,
			    int *disk);

/* Closes the file of a stream that the driver has ended by itself. */
void nps_device_stream__abandon(struct nps_device_stream *s, struct nps_device_info *d,
				struct nps_session *session, int *disk);

#endif
