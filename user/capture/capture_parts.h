/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a capture that are no sources (source.h): capture.c starts it and runs the loop,
 * capture_end.c ends it, capture_signals.c handles the signals that end it, capture_json.c and
 * process_json.c describe it in session.json.
 */
#ifndef NPS_CAPTURE_PARTS_H
#define NPS_CAPTURE_PARTS_H

#include <signal.h>

#include "capture/capture.h"

/* --- capture.c --- */

/* Rewrites session.json. DURABLE: synced to disk, which can take seconds. An error is reported at the end. */
void nps_capture__save(struct nps_capture *c, bool durable);

/*
 * To be called at least 20 times a second by a source that waits: runs
 * KEEPALIVE and DRAIN of all sources. ARG: the capture.
 */
void nps_capture__wait_turn(void *arg);

/* --- capture_signals.c --- */

/*
 * The first Ctrl-C ends the capture properly; a second one, during the cleanup, ends it at once. Blocks
 * *SET, returns its signalfd, or -1 with errno.
 */
int nps_capture__catch_signals(sigset_t *set);

/*
 * Reads all pending signals of the signalfd FD: they ended the capture, or could have. A later one counts
 * as a second one, and stays pending until signals are unblocked. Was a SIGTERM among them?
 */
bool nps_capture__read_signals(int fd);

/*
 * Closes FD and unblocks *SET, except SIGTERM if one has TERMINATED the capture: see
 * nps_capture__heed_sigterm().
 */
void nps_capture__release_signals(int fd, sigset_t *set, bool terminated);

/* --- process_json.c --- */

/* Creates an entry of "processes", which the caller owns. */
cJSON *nps_capture__describe_process(const struct nps_process *p);

/* --- capture_end.c --- */

/*
 * Runs the stages before RESTORE: what happens from now on is not
 * recorded. Returns whether SIGTERM ended the capture.
 */
bool nps_capture__end(struct nps_capture *c);

/* Runs the stages after it: detaches everything, writes the rest of the session, reports what is missing. */
void nps_capture__finish(struct nps_capture *c);

/* Call after that. 0, or -errno if nothing of the session can be used; the reason has been printed. */
int nps_capture__check_session(struct nps_capture *c);

/* Call instead if the capture could not begin: ends all threads, removes the session. */
void nps_capture__discard(struct nps_capture *c);

#endif
