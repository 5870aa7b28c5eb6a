/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a process runs CPython, and how its stacks are read. */
#ifndef NPS_PYTHON_FIND_H
#define NPS_PYTHON_FIND_H

#include <sys/types.h>

#include "core/work_budget.h"
#include "python.h"

/*
 * Finds the interpreter of a process among the files it has mapped: an executable or a library that exports
 * _PyRuntime. A stack of one of its threads is read, to check that the structs are where they are expected.
 * BUDGET: of the process, NULL: none. 0, and *OUT is set; -ENOENT: there is no Python; -ENOTSUP: its stacks
 * cannot be read, *why is the reason, a static phrase; -EAGAIN: not yet, no thread runs Python code now, with
 * *why, too; else -errno, as -ETIME: the budget is spent.
 */
int nps_python__find(pid_t pid, struct nps_budget *budget, struct nps_py_process *out, const char **why);

#endif
