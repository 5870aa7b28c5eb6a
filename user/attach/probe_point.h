/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where in a function a uprobe is cheap. A breakpoint on an instruction that the kernel emulates costs some
 * 0.5 us; any other (endbr64, sub, mov) is single-stepped out of line for some 9.5 us.
 */
#ifndef NPS_PROBE_POINT_H
#define NPS_PROBE_POINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a probe reads. */
struct nps_probe_need {
	uint32_t arguments; /* bit n - 1: argument n; those beyond the registers are read from the stack */
	bool memory; /* memory that one of them points to is read at the entry */
	/* also probed at its return: the stack pointer and the return address are needed as at the entry */
	bool returns;
	/*
	 * Reads up to `len` bytes of code that begins `at` bytes from the start of the function (before it,
	 * if negative), because parts of it can be elsewhere. Returns their number, or a negative errno.
	 * NULL: functions with such parts are probed at the start.
	 */
	int (*read)(void *ctx, int64_t at, uint8_t *buf, size_t len);
	void *ctx;
	/*
	 * Calls `each` with the landing pads of the function (landing_pads.h): exceptions continue there,
	 * and may jump back. 0 or a negative errno. NULL: it has none.
	 */
	int (*landing_pads)(void *ctx, void (*each)(int64_t at, void *arg), void *arg);
};

/*
 * Bytes from the start of the function to the first instruction that the kernel emulates (else to the first
 * nop, which newer kernels emulate), provided that what the probe reads is unchanged there, and that every
 * call reaches it exactly once; 0 when there is none.
 *
 * machine: EM_X86_64 or EM_AARCH64. code: the whole body of the function, so that branches back are found.
 * need: what the probe reads.
 */
size_t nps_probe_point(int machine, const uint8_t *code, size_t len, const struct nps_probe_need *need);

/* The same; if it returns 0, *why is set to the reason why the probe stays at the start, a static phrase. */
size_t nps_probe_point__explain(int machine, const uint8_t *code, size_t len,
				const struct nps_probe_need *need, const char **why);

/* How the kernel runs the instruction that a uprobe replaced. */
enum nps_probe_class {
	/* emulated (x86-64) or simulated (arm64) in the trap, by every kernel since 4.19 */
	NPS_PROBE_EMULATED,
	NPS_PROBE_NOP, /* the 5-byte nop, which x86-64 kernels since 6.18 patch into a call: no trap */
	NPS_PROBE_STEPPED, /* single-stepped out of line: a second trap */
	NPS_PROBE_CLASSES
};

/*
 * The class of a uprobe on the instruction `offset` bytes into `code`, of which `len` are known.
 *
 * machine: EM_X86_64 or EM_AARCH64. NPS_PROBE_STEPPED, the most expensive, for everything unknown: any
 * other machine, and an instruction that is not completely in `code`.
 */
enum nps_probe_class nps_probe_point__class(int machine, const uint8_t *code, size_t len, size_t offset);

/* Does a kernel of that version (LINUX_VERSION_CODE) single-step instructions of CLASS? */
bool nps_probe_class__is_stepped(enum nps_probe_class class, uint32_t kernel);

/* "emulated", "nop" or "single-stepped". */
const char *nps_probe_class__name(enum nps_probe_class class);

#endif
