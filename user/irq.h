/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts: an object of its own, because it costs something at each one, and is asked for. */
#ifndef NPS_IRQ_H
#define NPS_IRQ_H

#include <cjson/cJSON.h>
#include <stdint.h>

struct bpf_object;
struct nps_irq_side;

/*
 * Loads the object; SHARE makes it use the maps of the others. 0, or -errno after saying why: the capture goes on without.
 */
int nps_irq_side__open(int (*share)(void *ctx, struct bpf_object *obj), void *ctx, uint64_t wake_bytes,
		       struct nps_irq_side **out);
/* NULL is nothing. */
void nps_irq_side__close(struct nps_irq_side *irq);

/* Attaches what this kernel has. 0, or -errno after saying what is missing. */
int nps_irq_side__attach(struct nps_irq_side *irq);
void nps_irq_side__detach(struct nps_irq_side *irq);

/* Adds the names of the host's interrupts by number, as /sys tells them; none where it does not. */
void nps_irq_side__names(cJSON *interrupts);

#endif
