/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record -a: processes that use an NPU are found by what they have mapped and opened, and become targets, those that
 * come later too. A process that uses none is looked at again, less and less often: it may still load a library.
 */
#ifndef NPS_SYSTEM_WIDE_H
#define NPS_SYSTEM_WIDE_H

struct nps_capture;
struct nps_system_wide;

/* 0 or -ENOMEM. */
int nps_system_wide__new(struct nps_system_wide **out);
void nps_system_wide__free(struct nps_system_wide *w);

/* Looks at those that are due, for a bounded time unless it is the first look. */
void nps_system_wide__look(struct nps_system_wide *w, struct nps_capture *c);

#endif
