/* SPDX-License-Identifier: BSD-2-Clause */
/* The events that --aic-metrics NAME programs the AI cores' counters with (outputs 3.3, prof-raw 2.5). */
#ifndef NPS_AIC_METRICS_H
#define NPS_AIC_METRICS_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "aic_metric_rows.h"

#define NPS_AIC_EVENTS 10 /* counters of a core: 8, on the newest generation 10 */

enum nps_aic_metric {
#define X(id, name, number) id,
	NPS_AIC_METRIC_ROWS(X)
#undef X
		NPS_AIC_METRICS
};

/* The metric of that name, as the vendor's options and enumerations spell it; -EINVAL. */
int nps_aic_metrics__parse(const char *text, enum nps_aic_metric *metric);

/* Its name in --aic-metrics: PipeUtilization; "" for none. */
const char *nps_aic_metrics__name(enum nps_aic_metric metric);

/*
 * Stores the events of METRIC on chips of PLATFORM, of vector cores if VECTOR, in EVENTS. Returns their
 * number, 0: that chip does not have them.
 */
size_t nps_aic_metrics__events(enum nps_aic_metric metric, uint32_t platform, int vector,
			       uint16_t events[NPS_AIC_EVENTS]);

/* "0x8,0xa,...", as in sample.json. */
void nps_aic_metrics__text(const uint16_t *events, size_t n, char *text, size_t size);

/*
 * Adds the keys of sample.json that describe the counters of a chip of PLATFORM, except those that JSON
 * already has: without them, or with a name that does not match the events, the vendor's parser skips the
 * counters. PERIOD_MS: of samples; 0: the counters are by task.
 */
void nps_aic_metrics__describe(enum nps_aic_metric metric, uint32_t platform, unsigned int period_ms,
			       cJSON *json);

#endif
