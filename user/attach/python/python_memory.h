/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a process that runs Python, as it is at the moment: nothing is stopped, so two reads may not fit
 * together, and the process may have made up what it contains. The number of reads is limited, which ends
 * every walk.
 */
#ifndef NPS_PYTHON_MEMORY_H
#define NPS_PYTHON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/work_budget.h"
#include "python.h"

struct nps_py_memory {
	pid_t pid;
	unsigned int reads; /* that are still allowed */
	struct nps_budget *budget; /* when it is spent, none are allowed any more; NULL: none */
};

/* All of it or nothing. */
bool nps_py_memory__read(struct nps_py_memory *m, uint64_t address, void *buf, size_t len);

/* The pointer at an address; 0 if there is none. */
uint64_t nps_py_memory__pointer(struct nps_py_memory *m, uint64_t address);

/*
 * A str as UTF-8, cut to SIZE - 1 bytes at a character. False: that is no str, or has more than 64 Ki
 * characters.
 */
bool nps_py_memory__text(struct nps_py_memory *m, const struct nps_py_layout *layout, uint64_t address,
			 char *buf, size_t size);

/* A thread state. */
struct nps_py_thread {
	uint64_t state; /* address of the PyThreadState */
	uint64_t id; /* pthread_t */
	uint64_t native_id; /* in the pid namespace of the job; 0: this version has none */
};

/*
 * Calls `each` for the threads of all interpreters until it returns non-zero, and returns that; 0 at the end.
 * Ends after 64 interpreters, 16384 threads, or when no reads are left.
 */
int nps_python__each_thread(struct nps_py_memory *m, const struct nps_py_process *process,
			    int (*each)(const struct nps_py_thread *thread, void *arg), void *arg);

#endif
