/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers samples of the host for host.nps: one buffer per kind, written
 * as a chunk when it is full or flushed.
 */
#ifndef NPS_HOST_OUT_H
#define NPS_HOST_OUT_H

#include <stdint.h>

#include "core/session_writer.h"

#define NPS_HOST_KINDS (NPS_CHUNK_HOST_CARDS - NPS_CHUNK_HOST_NAMES + 1)

struct nps_host_out {
	struct nps_stream *stream; /* not owned; after an error of it nothing is written */
	struct {
		char *data;
		uint32_t used;
	} buffers[NPS_HOST_KINDS];
	uint64_t records;
};

/* Allocates all memory. 0 or -ENOMEM. */
int nps_host_out__init(struct nps_host_out *out, struct nps_stream *stream);
void nps_host_out__free(struct nps_host_out *out);

/* Adds a record of chunk type `type`, of `size` bytes: the type's struct. */
void nps_host_out__put(struct nps_host_out *out, uint16_t type, const void *record, uint32_t size);

/* Adds the name of process, thread, disk or card `id`; `text` is truncated to fit. */
void nps_host_out__name(struct nps_host_out *out, struct nps_host_name name, const char *text);

/* Writes what is buffered. */
void nps_host_out__flush(struct nps_host_out *out);

#endif
