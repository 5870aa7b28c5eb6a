/* SPDX-License-Identifier: BSD-2-Clause */
/* What threads were doing when the capture ended: their last stretches are records too. */
#ifndef NPS_OPEN_SLICES_H
#define NPS_OPEN_SLICES_H

#include "kernel_side.h"
#include "reader.h"

/*
 * Writes a record with NPS_F_OPEN for each thread that the kernel side has an open stretch or wait of, cut at END
 * (CLOCK_MONOTONIC ns). The programs are detached and the reader has stopped.
 */
void nps_open_slices__write(struct nps_kernel_side *k, struct nps_reader *reader, uint64_t end);

#endif
