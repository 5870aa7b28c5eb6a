/* SPDX-License-Identifier: BSD-2-Clause */
/* BPF programs that the kernel runs on request, once for each thread of the host. */
#ifndef NPS_TASK_ITER_H
#define NPS_TASK_ITER_H

#include <stddef.h>

struct bpf_program;

/*
 * Runs the loaded program PROG (iter/task) over all threads; EACH is called with every record of SIZE bytes
 * (at most 256) that it writes; NULL: it writes none. 0 or -errno.
 */
int nps_task_iter__run(const struct bpf_program *prog, size_t size,
		       void (*each)(void *arg, const void *record), void *arg);

#endif
