/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libsimtruth: the simulated stack writes down what it really did.  See TRUTH.md for the file.
 *
 * Every call is a no-op until truth_start() found NPUSIM_TRUTH in the environment.
 */
#ifndef NPUSIM_TRUTH_H
#define NPUSIM_TRUTH_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

struct truth_task {
	uint32_t device;
	uint16_t stream;
	uint32_t task; /* 16 bits and flips; a 950 has 32 bits and none */
	uint32_t flip;
	uint8_t type; /* SQE type */
	uint8_t kind; /* the same in the 910B's numbers */
	uint64_t launch;
	uint64_t submit, start, end;
};

/* A line of the file: its kind, and its fields as printf() makes them, tabs between them. */
void truth_line(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Writes the lines of this thread now, not within a tenth of a second: for the last lines of a process that
 * ends without destructors.
 */
void truth_flush(void);

/* CLOCK_MONOTONIC_RAW in ns, the time base of the truth file and of the device model. */
uint64_t truth_now(void);

void truth_start(void);
void truth_device(uint32_t device, uint64_t hz, uint64_t offset, double drift_ppm);

/*
 * A call of the job into the stack.  Calls nest (aclrtX -> rtX); only the outermost is written, with one
 * `launch` line for every SQE that was submitted in it.
 */
const char *truth_enter(const char *api);
void truth_leave(const char **api);
#define TRUTH_CALL(name)                                                                                     \
	__attribute__((cleanup(truth_leave), unused)) const char *truth_call_ = truth_enter(name)

/* What the next submissions of this thread are for; the strings must live until the call is left. */
void truth_kernel_name(const char *name);
void truth_operator(const char *aclnn_api, const char *l0_operator);
/* Six fields, tabs between them, as the `launch` line ends with; NULL: it has no tensors. */
void truth_tensors(const char *fields);
/* Is there a file? What is only needed for it need not be made. */
_Bool truth_is_written(void);

/* One SQE reached the driver; returns its launch id. */
uint64_t truth_sqe(const struct truth_task *task);
/* The device finished a task. */
void truth_task_done(const struct truth_task *task);

void truth_op(const char *aclnn_api, const void *executor, int phase, uint64_t begin);

/* Between begin and end the thread's submissions are collected as the tasks of one collective. */
void truth_collective_begin(void);
void truth_collective_end(const char *api, uint64_t begin, uint64_t count, int dtype, const char *group);

#pragma GCC visibility pop

#endif
