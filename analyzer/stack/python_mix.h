/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One stack of the native frames of a thread and its Python frames. Each call of C into Python is a native
 * frame of the interpreter's loop, and an entry among the Python frames: the frame that C called, and all
 * that it called without C. The Python frames of an entry replace its loop, and the functions of the
 * interpreter around it that only pass calls on.
 */
#ifndef NPS_PYTHON_MIX_H
#define NPS_PYTHON_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nps_mix_class {
	NPS_MIX_NATIVE, /* any other function */
	NPS_MIX_LOOP, /* the interpreter's loop */
	NPS_MIX_CALL, /* passes a call on to the loop, or from it */
};

enum nps_mix_class nps_mix__class(const char *function);

struct nps_mix {
	const uint8_t *native; /* enum nps_mix_class of each native frame, innermost first */
	size_t nnative;
	bool whole; /* the native frames reach the begin of the thread */
	size_t npython; /* at most 65 */
	const bool *entries; /* of each Python frame, innermost first: C called it */
	bool cut; /* Python frames are missing at the outer end */
	/*
	 * Is the innermost Python frame in the innermost loop? That can have been entered a moment ago,
	 * without a frame yet. Only needed when WHOLE is false or CUT is true. Below 0: unknown.
	 */
	int linked;
};

#define NPS_MIX_PYTHON 0x8000 /* in a result: it is a Python frame */

/*
 * Writes the mixed stack to OUT, innermost first: numbers of native frames, and of Python frames with
 * NPS_MIX_PYTHON; at most NNATIVE + NPYTHON. Returns how many. *LEFT_OUT: which native frames are between
 * the Python frames is not known, and only those inside of all Python frames are in the result.
 */
size_t nps_mix__frames(const struct nps_mix *mix, uint16_t *out, bool *left_out);

#endif
