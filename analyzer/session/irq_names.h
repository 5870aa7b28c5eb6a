/* SPDX-License-Identifier: BSD-2-Clause */
/* What interrupts are called: as the session tells it, or the kernel's own words. */
#ifndef NPS_IRQ_NAMES_H
#define NPS_IRQ_NAMES_H

#include "session/recording.h"

/* The text that names IRQ, which is a number if nobody told more; NPS_NONE: no memory. */
uint32_t nps_irq_name(struct nps_recording *rec, enum nps_irq_what what, unsigned int irq);

#endif
