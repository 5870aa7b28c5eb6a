/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cookies for kernels whose probes have none (before 5.15): each probe gets
 * a trampoline, a program of a few instructions that stores the cookie in a
 * map, where the object's programs read it, and tail-calls one of them.
 */
#ifndef NPS_TRAMPOLINES_H
#define NPS_TRAMPOLINES_H

#include <stdint.h>

struct nps_trampolines;

/*
 * COOKIE_MAP: descriptor of a per-CPU array of one u64, owned by the caller. PROGRAMS[N]: descriptors of
 * the programs that are tail-called, negative: not loaded. 0 or -errno.
 */
int nps_trampolines__new(int cookie_map, const int *programs, unsigned int n, struct nps_trampolines **out);
void nps_trampolines__free(struct nps_trampolines *s);

/*
 * Descriptor of the trampoline that calls PROGRAMS[WHICH] with COOKIE,
 * which the caller must not close; or -errno.
 */
int nps_trampolines__get(struct nps_trampolines *s, unsigned int which, uint64_t cookie);

/*
 * Calls EACH for every trampoline, with the program it calls: the kernel counts run statistics for the
 * trampoline. S may be NULL.
 */
void nps_trampolines__each(const struct nps_trampolines *s,
			   void (*each)(unsigned int which, int fd, void *arg), void *arg);

#endif
