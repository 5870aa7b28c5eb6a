/* SPDX-License-Identifier: BSD-2-Clause */
/* The Python stack of a thread, read from outside while it runs: a witness for what BPF programs record. */
#ifndef NPS_PYTHON_WALK_H
#define NPS_PYTHON_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/python/python_memory.h"
#include "python.h"

struct nps_py_frame {
	uint64_t code; /* address of the code object */
	uint64_t line_table; /* ... of its bytes object */
	int32_t first_line;
	int32_t at; /* byte in the code: the instruction that runs, -1: none has run yet */
	char name[256]; /* qualified from 3.11 on, else as in `def` */
	char file[512];
};

/*
 * Reads the innermost MAX frames of a thread state, innermost first; frames without code of Python, which
 * the interpreter makes for calls from C, are left out. Returns their number, 0: no Python runs in it;
 * -EFAULT: what was read is no stack.
 */
int nps_python__frames(struct nps_py_memory *m, const struct nps_py_process *process, uint64_t state,
		       struct nps_py_frame *frames, size_t max);

/* The same of the thread with that native id in the job's pid namespace. -ENOENT: it has no state. */
int nps_python__walk(pid_t pid, const struct nps_py_process *process, pid_t tid, struct nps_py_frame *frames,
		     size_t max);

/* Reads a frame's line table. Returns its bytes, or -EFAULT; -E2BIG: it has more than SIZE. */
ssize_t nps_python__line_table(pid_t pid, const struct nps_py_process *process,
			       const struct nps_py_frame *frame, uint8_t *table, size_t size);

#endif
