/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/irq_names.h"

#include "event.h"
#include "import/session/session_reader.h"

#include <cjson/cJSON.h>
#include <stdio.h>

uint32_t nps_irq_name(struct nps_session *rec, enum nps_irq_what what, unsigned int irq)
{
	/* Vectors of the kernel, which do not change (include/linux/interrupt.h). */
	static const char *const soft[] = { "HI",	"TIMER",   "NET_TX", "NET_RX",	"BLOCK",
					    "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU" };
	static const char *const local[] = { "local_timer", "reschedule", "call_function",
					     "call_function_single" };
	const cJSON *listed = cJSON_GetObjectItemCaseSensitive(rec->json, "interrupts");
	const char *name = NULL;
	char number[32];

	snprintf(number, sizeof(number), "%u", irq);
	if (what == NPS_IRQ_SOFT && irq < NPS_ARRAY_SIZE(soft))
		name = soft[irq];
	else if (what == NPS_IRQ_LOCAL && irq < NPS_ARRAY_SIZE(local))
		name = local[irq];
	else if (what == NPS_IRQ_HARD)
		name = nps_json_str(listed, number, NULL);
	if (name)
		return nps_strings__addz(&rec->strings, name);
	snprintf(number, sizeof(number), "irq_%u", irq);
	return nps_strings__addz(&rec->strings, number);
}
