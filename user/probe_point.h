/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where in a function a uprobe is cheap. A breakpoint on an instruction that the
 * kernel emulates costs some 0.5 us, on any other (endbr64, sub, mov) it is single-stepped
 * out of line for some 9.5 us.
 */
#ifndef NPS_PROBE_POINT_H
#define NPS_PROBE_POINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a probe reads. */
struct nps_probe_need {
	uint32_t arguments; /* bit n - 1: argument n; those beyond the registers are read from the stack */
	bool memory; /* what is behind one of them is read when the function is entered */
	bool returns; /* probed at its return too: the stack pointer and the return address are needed as they are at the entry */
	/*
	 * Reads up to `len` bytes of code that begins `at` bytes from the start of the function (before it, where negative): parts
	 * of it can lie elsewhere. Returns how many, or a negative errno. NULL: functions with such parts are probed at the
	 * start.
	 */
	int (*read)(void *ctx, int64_t at, uint8_t *buf, size_t len);
	void *ctx;
	/*
	 * Calls `each` with the landing pads of the function (landing_pads.h): exceptions go on there, and may go back to what was left.
	 * 0 or a negative errno. NULL: it has none.
	 */
	int (*landing_pads)(void *ctx, void (*each)(int64_t at, void *arg), void *arg);
};

/*
 * Bytes from the start of the function to the first instruction that the kernel emulates (else to the first nop, which newer
 * kernels do), if what the probe reads is still where the function got it, and every call reaches it exactly
 * once; 0 when there is none.
 *
 * machine: EM_X86_64 or EM_AARCH64. code: the function's bytes, the whole body, so that branches back are seen. need:
 * what is read there.
 */
size_t nps_probe_point(int machine, const uint8_t *code, size_t len, const struct nps_probe_need *need);

/* The same; where it returns 0, *why is set to a phrase: why the probe stays at the start. It has no owner. */
size_t nps_probe_point__explain(int machine, const uint8_t *code, size_t len,
				const struct nps_probe_need *need, const char **why);

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

/* Does a kernel of that version (LINUX_VERSION_CODE) single-step instructions of CLASS? */
bool nps_probe_class__is_stepped(enum nps_probe_class class, uint32_t kernel);

/* "emulated", "nop" or "single-stepped". */
const char *nps_probe_class__name(enum nps_probe_class class);

#endif
