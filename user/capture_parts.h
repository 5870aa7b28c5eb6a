/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the two halves of a capture share: capture.c begins it and watches, capture_end.c ends it and says what is missing.
 */
#ifndef NPS_CAPTURE_PARTS_H
#define NPS_CAPTURE_PARTS_H

#include "capture.h"
#include "open_slices.h"

/* --- capture.c --- */

/* Rewrites session.json. DURABLE: down to the disk, which can take seconds. What the last time failed for is reported at the end. */
void nps_capture__save(struct nps_capture *c, bool durable);

/* Reads the host's clocks into CLOCK, and writes them. */
void nps_capture__sample_clocks(struct nps_capture *c, struct nps_clock *clock);

/* While something is waited for: helpers go on, and the job's own profiler too. ARG is the capture. */
void nps_capture__take_what_comes(void *arg);

/*
 * What the kernel side tells of processes. Returns how many notices there were: one batch, since a job that maps code all the time must
 * not keep us from everything else.
 */
int nps_capture__handle_notices(struct nps_capture *c);

/*
 * Reads all that wait in the signalfd FD. They ended the capture, or could have: one that comes later is a second one, and waits until
 * they are let through. Was a SIGTERM among them?
 */
bool nps_capture__take_signals(int fd);

/* --- capture_end.c --- */

/* Nothing that happens from now on is recorded; what goes on now is collected into SLICES. Was it SIGTERM that ended it? */
bool nps_capture__end(struct nps_capture *c, struct nps_open_slices *slices);

/* Stops and detaches everything, writes SLICES and the rest of the session, says what is missing. */
void nps_capture__finish(struct nps_capture *c, struct nps_open_slices *slices);

/* After that. 0, or -errno if nothing of the session can be used; the reason has been printed. */
int nps_capture__check_session(struct nps_capture *c);

/* Instead: it could not begin. Stops everything, and removes the session. */
void nps_capture__discard(struct nps_capture *c);

#endif
