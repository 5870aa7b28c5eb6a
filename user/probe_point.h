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

/* How the kernel runs the instruction that a uprobe replaced. */
enum nps_probe_class {
	NPS_PROBE_EMULATED, /* emulated (x86-64) or simulated (arm64) in the trap, by every kernel since 4.19 */
	NPS_PROBE_NOP, /* the 5-byte nop, which x86-64 kernels since 6.18 patch into a call: no trap */
	NPS_PROBE_STEPPED, /* single-stepped out of line: a second trap */
	NPS_PROBE_CLASSES
};

/*
 * The class of a uprobe on the instruction `offset` bytes into `code`, of which `len` are known.
 * machine: EM_X86_64 or EM_AARCH64. NPS_PROBE_STEPPED, the dearest, for whatever is not known to be another: any other
 * machine, and an instruction that does not lie in `code` as a whole.
 */
enum nps_probe_class nps_probe_point__class(int machine, const uint8_t *code, size_t len, size_t offset);

#endif
