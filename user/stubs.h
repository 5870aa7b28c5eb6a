/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cookies for kernels whose probes have none (before 5.15): each probe gets a trampoline, a program of a
 * few instructions that stores the cookie in a map, where the object's programs read it, and tail-calls
 * one of them.
 */
#ifndef NPS_STUBS_H
#define NPS_STUBS_H

#include <stdint.h>

struct nps_stubs;

/*
 * COOKIE_MAP: descriptor of a per-CPU array of one u64, owned by the caller. PROGRAMS[N]: descriptors of
 * the programs that are tail-called, negative: not loaded. 0 or -errno.
 */
int nps_stubs__new(int cookie_map, const int *programs, unsigned int n, struct nps_stubs **out);
void nps_stubs__free(struct nps_stubs *s);

/*
 * Descriptor of the trampoline that calls PROGRAMS[WHICH] with COOKIE, which the caller must not close;
 * or -errno.
 */
int nps_stubs__get(struct nps_stubs *s, unsigned int which, uint64_t cookie);

/*
 * Calls EACH for every trampoline, with the program it calls: the kernel counts run statistics for the
 * trampoline. S may be NULL.
 */
void nps_stubs__each(const struct nps_stubs *s, void (*each)(unsigned int which, int fd, void *arg),
		     void *arg);

#endif
