/* SPDX-License-Identifier: BSD-2-Clause */
/* Child processes for jobs that share nothing, and threads for those that share a model. */
#ifndef NPS_POOL_H
#define NPS_POOL_H

#include <stddef.h>
#include <stdio.h>

/* Job I; what it writes to OUT is handed to the parent. 0 or a negative errno. */
typedef int (*nps_job_fn)(void *ctx, size_t i, FILE *out);

/*
 * Reads the result of job I from IN; ERR is what the job returned, -EIO if it died. Called in order of I. 0
 * or negative errno.
 */
typedef int (*nps_job_done_fn)(void *ctx, size_t i, int err, FILE *in);

/*
 * Runs N jobs, at most MAX at once, each in a child process (in this process if MAX is 1 or N is 1), then
 * hands over their results. What a child prints with nps_msg() appears before its result is handed over, so
 * messages are in the order of the jobs, too. TMPFD: directory for what is handed over. 0 or the first
 * error of `done`.
 */
int nps_pool__run(size_t n, size_t max, nps_job_fn fn, nps_job_done_fn done, void *ctx, int tmpfd);

/* Runs FN(ctx, i) for i < N in up to MAX threads. The first error, by i, or 0. */
int nps_threads__run(size_t n, size_t max, int (*fn)(void *ctx, size_t i), void *ctx);

/* CPUs that this process may use, at least 1. */
size_t nps_cpus(void);

#endif
