/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Python stacks: the records that BPF programs send, and those of python.nps, byte for byte.
 * docs/session-format.md is the full description.
 */
#ifndef NPS_PYTHON_STACK_H
#define NPS_PYTHON_STACK_H

#include "python.h"

/* Where stacks are walked. */
#define NPS_PY_AT_LAUNCH 0x1 /* calls that queue a kernel, phases of operators, queries of their cache */
#define NPS_PY_AT_OP 0x2 /* operators of PyTorch */
#define NPS_PY_AT_SAMPLE 0x4 /* samples of what runs on the CPU (stack.h) */
#define NPS_PY_AT_OFFCPU 0x8 /* sleeps that have a stack */
#define NPS_PY_AT_CALLS (NPS_PY_AT_LAUNCH | NPS_PY_AT_OP)
#define NPS_PY_AT_STACKS (NPS_PY_AT_SAMPLE | NPS_PY_AT_OFFCPU)

/*
 * `probe` of samples, which belong to no call: `start` and `dur` are what they stand for. The stack of a
 * sleep is that of its begin.
 */
#define NPS_PY_RAN 0xffff /* ran at the end of it, and is one sample of the clock */
#define NPS_PY_SLEPT 0xfffe /* had no CPU all the time */
#define NPS_PY_SAMPLE_HZ 99 /* of what runs, with NPS_PY_AT_OP */

/* First byte of a record in the rings, beyond enum nps_kind and enum nps_string_what. */
enum nps_py_record { NPS_PY_STACK = 96, NPS_PY_CODE = 97 };

/* A frame: code object, distinguished by its content from others at its address, and where it was. */
struct nps_py_stack_frame {
	/* address; NPS_PY_ENTRY: C called this frame, and the frame outside of it called that C */
	__u64 code;
	__u32 fingerprint; /* of the content */
	/* bytes of code before the instruction (below 0: before the first); before 3.11 f_lasti as it is */
	__s32 instruction;
};

/* Only stacks of samples and sleeps have it: it is no bit of an address of a process. */
#define NPS_PY_ENTRY (1ULL << 63)

#define NPS_PY_F_CUT 0x1 /* there are more frames outside of these */
#define NPS_PY_F_BROKEN 0x2 /* the frame outside of these could not be read */
#define NPS_PY_F_INVALID 0x4 /* the frames contradict each other: such a stack is not sent */

/* Instead of the id of a stack: the thread runs Python, and its frames could not be read, or are invalid. */
#define NPS_PY_UNREAD (~0ULL)

/* A stack; in a ring it ends after its last frame. Frames are innermost first. */
struct nps_py_stack {
	__u8 kind; /* NPS_PY_STACK */
	__u8 flags; /* NPS_PY_F_* */
	__u16 n; /* frames */
	__u32 pid;
	__u64 id; /* hash of process and frames; never 0 */
	__u64 time; /* CLOCK_MONOTONIC ns: first seen then */
	struct nps_py_stack_frame frames[NPS_PY_FRAMES];
};

#define NPS_PY_STACK_HEAD __builtin_offsetof(struct nps_py_stack, frames)

#define NPS_PY_TEXT 256 /* bytes of a text that are read at once: longer ones are read by the collector */
#define NPS_PY_LINES 1024 /* the same of a line table */

/* A str object, as it is in memory. */
struct nps_py_text {
	__u64 address;
	__u64 length; /* characters */
	__u32 state; /* bits: interned, kind, compact, ascii, by version */
	__u32 n; /* bytes in RAW, of the characters; 0: it could not be read */
	__u8 raw[NPS_PY_TEXT];
};

/* A code object, sent when it is first in a stack. */
struct nps_py_code {
	__u8 kind; /* NPS_PY_CODE */
	__u8 reserved;
	__u16 version; /* of the interpreter, as in nps_py_layout */
	__u32 pid;
	__u64 code;
	__u32 fingerprint;
	__u32 first_line;
	struct nps_py_text file, name;
	__u64 lines_at;
	__u64 lines_length; /* bytes */
	__u32 n_lines; /* bytes in LINES */
	__u32 reserved2;
	__u8 lines[NPS_PY_LINES];
};

/*
 * NPS_CHUNK_PY_STACKS: struct nps_py_stack, each as long as its frames, one after another.
 * NPS_CHUNK_PY_CODES: records of this header, followed by the file's name, the function's name (UTF-8, not
 * terminated), the line table, and zeros up to the next 8 bytes.
 */
struct nps_py_code_record {
	__u32 size; /* bytes of the record, a multiple of 8 */
	__u32 pid;
	__u64 code;
	__u32 fingerprint;
	__u32 first_line;
	__u16 version;
	__u8 flags; /* NPS_PY_CODE_* */
	__u8 reserved;
	__u16 file_len, name_len; /* bytes */
	__u32 lines_len;
	__u32 reserved2;
};

#define NPS_PY_CODE_CUT 0x1 /* a text or the line table was longer, or a part of it could not be read */
#define NPS_PY_TEXT_MAX 1024 /* bytes of a name in a session */
#define NPS_PY_LINES_MAX 65536 /* of a line table */

_Static_assert(sizeof(struct nps_py_stack_frame) == 16, "a frame");
_Static_assert(NPS_PY_STACK_HEAD == 24, "a stack");
_Static_assert(sizeof(struct nps_py_code_record) == 40, "a code object");
_Static_assert((NPS_PY_FRAMES & (NPS_PY_FRAMES - 1)) == 0, "frames");

#endif
