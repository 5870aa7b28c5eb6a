/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Python stacks of calls that are probed. */
#ifndef NPS_PYTHON_CALLS_BPF_H
#define NPS_PYTHON_CALLS_BPF_H

#include "call_stack.bpf.h"
#include "python.bpf.h"

/*
 * Do calls of PROBE, which queue kernels, have a Python stack? First phases have one, and queries of the
 * cache that replaces them, because the thread of a task queue, which launches, runs no Python.
 */
static __always_inline bool walks_python_at(__u16 probe)
{
	return python_at & NPS_PY_AT_LAUNCH &&
	       (spec_of(probe)->call == NPS_CALL_LAUNCH || probe == NPS_PROBE_NN_PHASE1 ||
		probe == NPS_PROBE_NN_PHASE2 || probe == NPS_PROBE_NN_EXPORT || probe == NPS_PROBE_PTA_GET ||
		probe == NPS_PROBE_PTA_FIND);
}

/* Sends that STACK is where PID_TGID entered the call that began at START; 0: there is none. */
static __always_inline void python_stack_send(__u64 stack, __u16 probe, __u64 pid_tgid, __u64 start)
{
	if (python_at && stack)
		python_event_send(stack, probe, pid_tgid, start, 0, true);
}

#endif
