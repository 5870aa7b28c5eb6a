/* SPDX-License-Identifier: BSD-2-Clause */
/* What became of a session by the end of its capture: everything that could not be written is reported. */
#ifndef NPS_SESSION_END_H
#define NPS_SESSION_END_H

#include "session_writer.h"

struct nps_session_end {
	int json_error; /* -errno of the last time that session.json was written */
	bool described; /* a session.json that says when recording began was written before */
	bool reported; /* that a stream cannot be written was reported when it ended the capture */
	bool lost; /* out: something is missing in the session */
	bool unreachable; /* out: s->path does not lead to it any more, and no other path is known */
};

/* What to do about -errno of a write. */
const char *nps_session_end__advice(int err);

/* Brings a stream to the disk. What fails, or that somebody deleted its file, is noted with nps_session__failed(). */
void nps_session_end__sync_stream(struct nps_session *s, struct nps_stream *st, const char *name);
void nps_session_end__sync(struct nps_session *s);

/*
 * After the last write. Reports on stderr what could not be written, and if the directory was renamed (s->path is the new path
 * then) or deleted. 0, or -errno if nothing of the session can be used.
 */
int nps_session_end__check(struct nps_session *s, struct nps_session_end *e);

#endif
