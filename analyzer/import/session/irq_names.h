/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of interrupts: from the session, or those that the kernel uses itself. */
#ifndef NPS_IRQ_NAMES_H
#define NPS_IRQ_NAMES_H

#include "import/session/session_model.h"

/* The text that names IRQ, with its number if the name is not known; NPS_NONE: no memory. */
uint32_t nps_irq_name(struct nps_session *rec, enum nps_irq_what what, unsigned int irq);

#endif
