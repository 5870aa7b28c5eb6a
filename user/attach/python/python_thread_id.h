/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a thread of the job leads to its PyThreadState: the interpreter keeps it under a pthread key, whose
 * value glibc has at a fixed offset from the thread pointer.
 */
#ifndef NPS_PYTHON_THREAD_ID_H
#define NPS_PYTHON_THREAD_ID_H

#include <stdint.h>

#include "attach/python/python_memory.h"
#include "core/proc_maps.h"
#include "core/work_budget.h"

/*
 * The native id of a thread, in the job's pid namespace: from its PyThreadState, before 3.11 from glibc's
 * struct. 0: unknown.
 */
uint64_t nps_python__native_id(struct nps_py_memory *m, const struct nps_py_thread *thread);

/*
 * Finds the bytes from the thread pointer to the thread state, which at least one thread must have there.
 * NPS_PY_NO_TLS: this version has no such key, it is not glibc, or no thread has it there.
 */
int32_t nps_python__tls_offset(struct nps_py_memory *m, const struct nps_py_process *process,
			       const struct nps_maps *maps, struct nps_budget *budget);

/*
 * From the arm64 code of glibc's pthread_getspecific(), N instructions: bytes from the thread pointer to the
 * value of key 0, which is before it. 0: that is no code of glibc.
 */
int32_t nps_python__arm64_values(const uint32_t *code, size_t n);

#endif
