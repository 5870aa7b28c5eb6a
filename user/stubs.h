/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cookies for kernels whose probes have none (before 5.15): each probe gets a program of a few instructions that
 * puts the cookie where the object's programs look for it, and goes on in one of them.
 */
#ifndef NPS_STUBS_H
#define NPS_STUBS_H

#include <stdint.h>

struct nps_stubs;

/*
 * COOKIE_MAP: descriptor of a per-CPU array of one u64, the caller's. PROGRAMS[N]: descriptors of the programs gone
 * on in, negative: not loaded. -errno.
 */
int nps_stubs__new(int cookie_map, const int *programs, unsigned int n, struct nps_stubs **out);
void nps_stubs__free(struct nps_stubs *s);

/* Descriptor of the program that goes on in PROGRAMS[WHICH] with COOKIE; it stays the stubs'. -errno. */
int nps_stubs__get(struct nps_stubs *s, unsigned int which, uint64_t cookie);

/* Each that was made, with the program it goes on in: the kernel's run statistics are the stub's. S may be NULL. */
void nps_stubs__each(const struct nps_stubs *s, void (*each)(unsigned int which, int fd, void *arg),
		     void *arg);

#endif
