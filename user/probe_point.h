/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where in a function a uprobe is cheap. A breakpoint on an instruction that the
 * kernel emulates costs some 0.5 us, on any other (endbr64, sub, mov) it is single-stepped
 * out of line for some 9.5 us.
 */
#ifndef NPS_PROBE_POINT_H
#define NPS_PROBE_POINT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes from the start of the function to the first instruction that the kernel
 * emulates, provided that nothing before it has touched the arguments, the stack pointer or memory and that no
 * branch of the function leads back to it; 0 when there is none.
 *
 * machine: EM_X86_64 or EM_AARCH64. code: the function's bytes, len of them, as
 * far as known (the whole body, so that branches back are seen).
 */
size_t nps_probe_point(int machine, const uint8_t *code, size_t len);

#endif
