/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The switches of the NPU driver's tracepoints: trace_enable in its /proc, one for each device. Attaching to them does not do it, as
 * the driver asks the switch before it calls them. They are on only while somebody records.
 *
 * What a capture switched on is listed in a file below /run that it holds a lock on. A list that nobody holds is of a process
 * that was killed: the next one switches off what is in it.
 */
#ifndef NPS_TRACE_SWITCH_H
#define NPS_TRACE_SWITCH_H

#include <stdbool.h>

/* Where things are; a test has other places. */
struct nps_trace_places {
	const char *proc, *lists;
};
extern const struct nps_trace_places nps_trace_places;

enum nps_trace_system { NPS_TRACE_CHAN, NPS_TRACE_CORE, NPS_TRACE_SYSTEMS };

/* Whether the driver has switches for SYSTEM. */
bool nps_trace_switch__there(const struct nps_trace_places *places, enum nps_trace_system system);

/*
 * Switches off what a process that is gone left on, unless another one that lives uses it. What cannot be switched off is listed
 * until it can.
 */
void nps_trace_switch__restore(const struct nps_trace_places *places);

struct nps_trace_switch;

/*
 * Switches on those of SYSTEMS, a bit each (1 << enum nps_trace_system), for every device. One that is on already and that no
 * capture has switched on is somebody else's, and is left alone, here and later. One that refuses is told in a line, unless all of its
 * system do. -errno: none is on.
 */
int nps_trace_switch__on(const struct nps_trace_places *places, unsigned int systems,
			 struct nps_trace_switch **out);

/* 0: some of SYSTEM are on. Else why none is, -errno. */
int nps_trace_switch__state(const struct nps_trace_switch *s, enum nps_trace_system system);
/* Some are not, of a system of which others are. NULL is fine. */
bool nps_trace_switch__refused(const struct nps_trace_switch *s);

/* Switches off what no other capture uses. NULL is fine. */
void nps_trace_switch__off(struct nps_trace_switch *s);

#endif
