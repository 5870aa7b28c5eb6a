/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts: an object of its own, because it costs time at each interrupt and is optional. */
#ifndef NPS_IRQ_H
#define NPS_IRQ_H

#include <cjson/cJSON.h>
#include <stdint.h>

struct nps_irq_tracer;
struct nps_bpf_loader;

/*
 * Loads the object, which uses the maps of the others. 0, or -errno
 * after a warning: the capture continues without it.
 */
int nps_irq_tracer__open(struct nps_bpf_loader *k, uint64_t wake_bytes, struct nps_irq_tracer **out);
/* NULL: does nothing. */
void nps_irq_tracer__close(struct nps_irq_tracer *irq);

/* Attaches what this kernel supports. 0, or -errno after a warning about what is missing. */
int nps_irq_tracer__attach(struct nps_irq_tracer *irq);
void nps_irq_tracer__detach(struct nps_irq_tracer *irq);

/* Adds the names of the host's interrupts by number, from /sys; none if they are not there. */
void nps_irq_tracer__names(cJSON *interrupts);

#endif
