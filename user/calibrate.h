/* SPDX-License-Identifier: BSD-2-Clause */
/* What a probe costs here and now: measured on this very process before the capture. */
#ifndef NPS_CALIBRATE_H
#define NPS_CALIBRATE_H

#include "kernel_side.h"
#include "probes.h"

/* Added time of one occurrence, ns; negative when it could not be measured. */
struct nps_cost {
	double probe_ns; /* a call probed at entry and return */
	double mark_ns; /* a call probed at entry only */
	double probe_program_ns,
		mark_program_ns; /* what of them the BPF programs took, as the kernel counts it */
	double syscall_ns; /* a system call with a record of its own */
	double sum_ns; /* one that is summed up */
	double fault_ns; /* a page fault */
	double switch_ns; /* a context switch, with the wake-up before it */
};

/* Takes some 40 ms. Needs the tracepoints attached; `osrt`: they include system calls and scheduling. */
void nps_calibrate(struct nps_kernel_side *k, struct nps_probes *p, bool osrt, struct nps_cost *cost);

#endif
