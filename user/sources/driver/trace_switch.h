/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The switches of the NPU driver's tracepoints: trace_enable in its /proc, one for each device. Attaching
 * to the tracepoints is not enough, because the driver only calls them if the switch is on. They are on
 * only during captures.
 *
 * What a capture has switched on is listed in a file below /run that it holds a lock on. A list without a
 * lock belongs to a process that was killed: the next capture switches off what is in it.
 */
#ifndef NPS_TRACE_SWITCH_H
#define NPS_TRACE_SWITCH_H

#include <stdbool.h>

/* Directories of the switches and lists; tests use others. */
struct nps_trace_paths {
	const char *proc, *lists;
};
extern const struct nps_trace_paths nps_trace_paths;

enum nps_trace_system { NPS_TRACE_CHAN, NPS_TRACE_CORE, NPS_TRACE_SYSTEMS };

/* Has the driver switches for SYSTEM? */
bool nps_trace_switch__there(const struct nps_trace_paths *paths, enum nps_trace_system system);

/*
 * Switches off what a process that was killed left on, unless a live one uses it. What cannot be switched
 * off stays listed until it can.
 */
void nps_trace_switch__restore(const struct nps_trace_paths *paths);

struct nps_trace_switch;

/*
 * Switches on those of SYSTEMS, a bit each (1 << enum nps_trace_system), for every device. One that is on
 * already, but not by a capture, belongs to another tool and is never changed. One that fails is reported
 * in a line, unless all of its system fail. 0; -errno: none is on.
 */
int nps_trace_switch__on(const struct nps_trace_paths *paths, unsigned int systems,
			 struct nps_trace_switch **out);

/* 0: some of SYSTEM are on; -errno: the reason why none is. */
int nps_trace_switch__state(const struct nps_trace_switch *s, enum nps_trace_system system);
/* Are some switches of a system off while others are on? NULL is allowed. */
bool nps_trace_switch__refused(const struct nps_trace_switch *s);

/* Switches off what no other capture uses. NULL is allowed. */
void nps_trace_switch__off(struct nps_trace_switch *s);

#endif
