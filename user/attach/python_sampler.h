/* SPDX-License-Identifier: BSD-2-Clause */
/* Python stacks of what runs, by the clock, and of sleeps, of processes whose interpreter is known. */
#ifndef NPS_PYTHON_SAMPLER_H
#define NPS_PYTHON_SAMPLER_H

#include "attach/bpf_loader.h"

struct nps_python_sampler;

/* Samples go to the rings of K, which must outlive it. 0 or -errno. */
int nps_python_sampler__open(struct nps_bpf_loader *k, struct nps_python_sampler **out);

/* Programs are detached. NULL: does nothing. */
void nps_python_sampler__close(struct nps_python_sampler *sampler);

#endif
