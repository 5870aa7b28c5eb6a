/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A faster start: the work before recording begins is some tenths of a second of CPU time, which on a
 * crowded machine would take seconds. Affects the calling thread, and threads that it starts meanwhile.
 */
#ifndef NPS_PRIORITY_H
#define NPS_PRIORITY_H

/*
 * Raises the priority, if it is the default and may be raised. Returns the argument for
 * nps_priority__restore(). Start no processes in between.
 */
int nps_priority__raise(void);
void nps_priority__restore(int before);

#endif
