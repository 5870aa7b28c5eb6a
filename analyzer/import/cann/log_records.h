/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records of a device's task logs, one at a time: the content of each, whatever the chip (prof-raw
 * 2.5). Nothing is kept between records, and nothing in them is trusted.
 */
#ifndef NPS_CANN_LOG_RECORDS_H
#define NPS_CANN_LOG_RECORDS_H

#include "import/cann/capture.h"

/* How ids of a stream and a task are logged. */
enum nps_ids {
	NPS_IDS_PLAIN, /* as they are */
	NPS_IDS_BITS, /* two bits of the stream select the field that holds bits of the other */
	NPS_IDS_EXPANDED, /* streams of 15 bits; the 16th marks swapped fields */
	NPS_IDS_WHOLE /* one number of 32 bits, no stream */
};

enum nps_log_kind {
	NPS_LOG_NOTHING, /* of no concern here */
	NPS_LOG_UNKNOWN,
	NPS_LOG_START, /* of NPS_RUN_BLOCK `value`: 1 on a vector core */
	NPS_LOG_END,
	NPS_LOG_PMU, /* counters of a task, or of one block of it: nps_log__counters() */
	NPS_LOG_BLOCKS, /* `value`: how many */
	NPS_LOG_FLIP, /* ids of a stream begin again; `value`: number of the flip, `task`: the first new id */
	NPS_LOG_STEP /* a mark of a step or of mstx */
};

#define NPS_NO_SEQUENCE 16

struct nps_log_record {
	uint64_t count; /* the device's counter; of PMU: when the task ended */
	uint32_t stream, task; /* as logged: nps_log__unmangle() */
	uint32_t context; /* NPS_NO_CONTEXT: the task as a whole; of NPS_RUN_BLOCK the block */
	uint32_t value;
	uint16_t thread; /* of a context: it runs in several at once */
	uint8_t kind; /* enum nps_log_kind */
	uint8_t source; /* enum nps_run_source */
	uint8_t type; /* of the task, as logged; of NPS_RUN_BLOCK the number of its core */
	uint8_t sequence; /* 4-bit running number, NPS_NO_SEQUENCE: the format has none */
	bool mangled; /* the ids may be */
};

/* One PMU record. */
struct nps_counters {
	uint64_t cycles, values[NPS_CANN_EVENTS];
	uint8_t core; /* 0 AI core, 1 vector core */
	uint8_t block; /* of one block, to be added up */
};

struct nps_log_format {
	const char *file; /* without device and slice: "stars_soc.data" */
	uint16_t bytes, bytes_v6;
	struct nps_magic magic;
	bool tasks; /* of tasks as they begin and end on the cores */
	void (*decode)(const uint8_t *p, struct nps_log_record *r);
};

/* The formats, ended by one without a file. Readers go through them in this order. */
extern const struct nps_log_format nps_log_formats[];

/* The format of FILE, NULL if it is none of a task log. */
const struct nps_log_format *nps_log_format(const char *file);

/* Decodes record P, of the format's length. */
static inline void nps_log__decode(const struct nps_log_format *format, const uint8_t *p,
				   struct nps_log_record *r)
{
	*r = (struct nps_log_record){ .context = NPS_NO_CONTEXT, .sequence = NPS_NO_SEQUENCE };
	format->decode(p, r);
}

/* The counters of a PMU record P of ffts_profile.data, and its context or NPS_NO_CONTEXT. */
uint32_t nps_log__counters(const uint8_t *p, struct nps_counters *counters);

/* Is PMU record P, of a chip of the last generation, one block's? Others are the sums of a task's blocks. */
bool nps_log__is_block(const uint8_t *p);

/* The counters of record P of aicore.data or aiVectorCore.data; stream and task go to *STREAM and *TASK. */
void nps_log__old_counters(const uint8_t *p, struct nps_counters *counters, uint32_t *stream, uint32_t *task);

/* How CHIP logs ids; EXPANDED: where it has two ways, the second one. */
enum nps_ids nps_log__ids(uint32_t chip, bool expanded);

/* The stream and the task that R is about. */
void nps_log__unmangle(enum nps_ids ids, const struct nps_log_record *r, uint32_t *stream, uint32_t *task);

/*
 * Counts records that the device lost, by their running numbers of 4 bits; of more than 15 lost in a row,
 * only the rest modulo 16 shows.
 */
struct nps_sequence {
	uint8_t last; /* NPS_NO_SEQUENCE: none yet */
	uint64_t gaps;
};

static inline void nps_sequence__next(struct nps_sequence *sequence, uint8_t number)
{
	if (number >= NPS_NO_SEQUENCE)
		return;
	if (sequence->last < NPS_NO_SEQUENCE)
		sequence->gaps += (number - sequence->last - 1) & 0xf;
	sequence->last = number;
}

#endif
