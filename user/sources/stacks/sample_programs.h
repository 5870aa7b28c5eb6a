/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads the BPF programs of stacks (bpf/sample.bpf.c), with what this kernel lets them do. */
#ifndef NPS_SAMPLE_PROGRAMS_H
#define NPS_SAMPLE_PROGRAMS_H

#include "attach/bpf_loader.h"
#include "capture/record_opts.h"

struct sample_bpf;

/*
 * Loads the programs that OPTS need, with the maps of K. What the kernel refuses is left out, after one line:
 * Python frames, or sleeps if there are samples; OPTS then lack it. The caller destroys *OUT. 0 or -errno.
 */
int nps_sample_programs__load(struct nps_bpf_loader *k, struct nps_stacks_opts *opts,
			      struct sample_bpf **out);

#endif
