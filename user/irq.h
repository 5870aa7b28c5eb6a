/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts: an object of its own, because it costs time at each interrupt and is optional. */
#ifndef NPS_IRQ_H
#define NPS_IRQ_H

#include <cjson/cJSON.h>
#include <stdint.h>

struct nps_irq_side;
struct nps_kernel_side;

/*
 * Loads the object, which uses the maps of the others. 0, or -errno after a warning: the capture
 * continues without it.
 */
int nps_irq_side__open(struct nps_kernel_side *k, uint64_t wake_bytes, struct nps_irq_side **out);
/* NULL: does nothing. */
void nps_irq_side__close(struct nps_irq_side *irq);

/* Attaches what this kernel supports. 0, or -errno after a warning about what is missing. */
int nps_irq_side__attach(struct nps_irq_side *irq);
void nps_irq_side__detach(struct nps_irq_side *irq);

/* Adds the names of the host's interrupts by number, from /sys; none if they are not there. */
void nps_irq_side__names(cJSON *interrupts);

#endif
