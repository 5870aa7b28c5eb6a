/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writer of Perfetto traces (.pftrace). Items go to the file at once, through a buffer: memory depends on
 * the number of tracks and on what is open at the same time, not on the number of events. The first error
 * sticks and is returned by close, so that callers write without checking each call.
 *
 * Texts are UTF-8 of any length, invalid bytes become U+FFFD. Times are nanoseconds of one clock.
 */
#ifndef NPS_PFTRACE_WRITER_H
#define NPS_PFTRACE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NPS_PFTRACE_ENDLESS UINT64_MAX /* duration of what had not ended when recording stopped */

struct nps_pftrace;

/* Creates NAME (0640, must not exist, no symlink) in DIRFD. 0 or negative errno. */
int nps_pftrace__open(struct nps_pftrace **w, int dirfd, const char *name);

/* Ends what is open, writes what is left and frees W. 0 or the first error; the file is then incomplete. */
int nps_pftrace__close(struct nps_pftrace *w);

/* Numbers of the format. */
enum nps_pftrace_clock_id {
	NPS_PFTRACE_REALTIME = 1,
	NPS_PFTRACE_MONOTONIC = 3,
	NPS_PFTRACE_MONOTONIC_RAW = 5,
	NPS_PFTRACE_BOOTTIME = 6,
};

struct nps_pftrace_clock {
	enum nps_pftrace_clock_id id;
	uint64_t ns;
};

/*
 * Clocks read at the same moment, the first being that of all times in this file. Before any event; without
 * it, times are those of CLOCK_BOOTTIME. With CLOCK_REALTIME among them, viewers show the time of day.
 */
void nps_pftrace__clocks(struct nps_pftrace *w, const struct nps_pftrace_clock *clocks, size_t n);

/*
 * Tracks, each below its parent (0: at the top). Siblings are shown by RANK. They return the track's id, 0
 * after an error; what is written to track 0 is dropped. A process is one of the traced system, not a mere
 * group: groups are tracks that have children. A thread's name is "" if it is not known.
 */
uint64_t nps_pftrace__process(struct nps_pftrace *w, int32_t pid, const char *name, int32_t rank);
uint64_t nps_pftrace__thread(struct nps_pftrace *w, uint64_t process, int32_t tid, const char *name,
			     int32_t rank);
uint64_t nps_pftrace__track(struct nps_pftrace *w, uint64_t parent, const char *name, int32_t rank);
uint64_t nps_pftrace__counter(struct nps_pftrace *w, uint64_t parent, const char *name, const char *unit,
			      int32_t rank);

/*
 * A slice of a track, which must come in order of their begin, of the same begin the longer one first.
 * The format has no durations: it nests by begins and ends. So slices that overlap without nesting, or that
 * come out of order, go to another lane: a track with the same name, parent and rank, which viewers draw
 * merged. When a track has no room for another lane, the slice becomes an instant with an argument dur_ns.
 */
void nps_pftrace__slice(struct nps_pftrace *w, uint64_t track, uint64_t ts, uint64_t dur,
			const char *category, const char *name);

/* Slices that had to become instants so far. */
uint64_t nps_pftrace__crowded(const struct nps_pftrace *w);

/* A moment of a track, and the value of a counter from TS on. Times in ns. */
void nps_pftrace__instant(struct nps_pftrace *w, uint64_t track, uint64_t ts, const char *category,
			  const char *name);
void nps_pftrace__value(struct nps_pftrace *w, uint64_t counter, uint64_t ts, double value);

/*
 * Arguments and flows of the slice or instant written last. A flow connects, in order of time, all that carry
 * its id, up to the one that ends it.
 */
void nps_pftrace__arg_u64(struct nps_pftrace *w, const char *key, uint64_t value);
void nps_pftrace__arg_i64(struct nps_pftrace *w, const char *key, int64_t value);
void nps_pftrace__arg_bool(struct nps_pftrace *w, const char *key, bool value);
void nps_pftrace__arg_double(struct nps_pftrace *w, const char *key, double value);
void nps_pftrace__arg_text(struct nps_pftrace *w, const char *key, const char *value);
void nps_pftrace__arg_pointer(struct nps_pftrace *w, const char *key, uint64_t value);
void nps_pftrace__flow(struct nps_pftrace *w, uint64_t id);
void nps_pftrace__flow_end(struct nps_pftrace *w, uint64_t id);

#endif
