/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/host/host_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER (64U << 10)

int nps_host_out__init(struct nps_host_out *out, struct nps_stream *stream)
{
	memset(out, 0, sizeof(*out));
	out->stream = stream;
	for (int i = 0; i < NPS_HOST_KINDS; i++) {
		out->buffers[i].data = malloc(BUFFER);
		if (!out->buffers[i].data) {
			nps_host_out__free(out);
			return -ENOMEM;
		}
	}
	return 0;
}

void nps_host_out__free(struct nps_host_out *out)
{
	for (int i = 0; i < NPS_HOST_KINDS; i++) {
		free(out->buffers[i].data);
		out->buffers[i].data = NULL;
	}
}

static void out_flush(struct nps_host_out *out, int i)
{
	if (out->buffers[i].used)
		nps_stream__append(out->stream, NPS_CHUNK_HOST_NAMES + i, 0, out->buffers[i].data,
				   out->buffers[i].used);
	out->buffers[i].used = 0;
}

void nps_host_out__put(struct nps_host_out *out, uint16_t type, const void *record, uint32_t size)
{
	int i = type - NPS_CHUNK_HOST_NAMES;

	if (out->buffers[i].used + size > BUFFER)
		out_flush(out, i);
	memcpy(out->buffers[i].data + out->buffers[i].used, record, size);
	out->buffers[i].used += size;
	out->records++;
}

void nps_host_out__name(struct nps_host_out *out, struct nps_host_name name, const char *text)
{
	size_t len = strnlen(text, sizeof(name.text) - 1);

	memcpy(name.text, text, len);
	memset(name.text + len, 0, sizeof(name.text) - len);
	nps_host_out__put(out, NPS_CHUNK_HOST_NAMES, &name, sizeof(name));
}

void nps_host_out__flush(struct nps_host_out *out)
{
	for (int i = 0; i < NPS_HOST_KINDS; i++)
		out_flush(out, i);
}
