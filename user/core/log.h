/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to the user: one line each, `npuscope: message: reason: what to do`, on stderr. */
#ifndef NPS_LOG_H
#define NPS_LOG_H

/* Reports that something failed or is missing. printf-like; no newline. */
void nps_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Progress; silent with nps_log_quiet(1). */
void nps_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void nps_log_quiet(int quiet);

/* Details for --verbose. */
void nps_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void nps_log_verbose(int verbose);
int nps_log_is_verbose(void);

#endif
