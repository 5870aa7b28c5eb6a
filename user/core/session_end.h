/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a session at the end of its capture: everything that could not be written is reported. */
#ifndef NPS_SESSION_END_H
#define NPS_SESSION_END_H

#include "core/session_writer.h"

struct nps_session_end {
	int json_error; /* -errno of the last write of session.json */
	bool described; /* a session.json with the time when recording began was written */
	bool reported; /* the error of a stream was reported when it ended the capture */
	bool lost; /* out: something is missing in the session */
	bool unreachable; /* out: s->path does not lead to it any more, and no other path is known */
};

/* Advice for the user about -errno of a write. Static. */
const char *nps_session_end__advice(int err);

/* Syncs a stream to disk. A failure, or a deleted file, is recorded with nps_session_writer__failed(). */
void nps_session_end__sync_stream(struct nps_session_writer *s, struct nps_stream *st, const char *name);
void nps_session_end__sync(struct nps_session_writer *s);

/*
 * Call after the last write. Reports on stderr what could not be written, and if the directory was renamed
 * (s->path is the new path then) or deleted. 0, or -errno if nothing of the session can be used.
 */
int nps_session_end__check(struct nps_session_writer *s, struct nps_session_end *e);

#endif
