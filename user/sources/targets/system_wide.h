/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record -a: processes that use an NPU are found by their mappings and open
 * files, and become targets, also if they start later. A process that uses none
 * is checked again, less and less often, because it may still load a library.
 */
#ifndef NPS_SYSTEM_WIDE_H
#define NPS_SYSTEM_WIDE_H

struct nps_capture;
struct nps_system_wide;

/* 0 or -ENOMEM. */
int nps_system_wide__new(struct nps_system_wide **out);
void nps_system_wide__free(struct nps_system_wide *w);

/* Checks those that are due, for a bounded time except in the first call. */
void nps_system_wide__scan(struct nps_system_wide *w, struct nps_capture *c);

#endif
