/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A start that does not wait for its turn: what is done before recording begins is some tenths of a second of CPU time, which
 * on a crowded machine would take seconds. For the calling thread, and those that it starts meanwhile.
 */
#ifndef NPS_PRIORITY_H
#define NPS_PRIORITY_H

/* Raises the priority, where it is the usual one and may be raised. Returns what nps_priority__restore() takes. Start no processes before that. */
int nps_priority__raise(void);
void nps_priority__restore(int before);

#endif
