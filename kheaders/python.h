/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * CPython's structs as BPF programs walk them, for one process: offsets in bytes, by version and processor,
 * or from the interpreter's own _Py_DebugOffsets.
 */
#ifndef NPS_PYTHON_H
#define NPS_PYTHON_H

#include <linux/types.h>

#define NPS_PY_FRAMES 64 /* of one stack; deeper ones are cut at the outermost end */
#define NPS_PY_FRAME_BYTES 128 /* of a frame, what is read at once: every offset below `frame_*` is inside */
#define NPS_PY_NO_TLS 0x7fffffff /* of tls_offset: the thread state is found by native thread id */
#define NPS_PY_NONE 0xffff /* an offset that this version does not have */

/* How the frame has the instruction that leads to the line. */
enum nps_py_instruction {
	NPS_PY_LASTI, /* int f_lasti: bytes, before 3.10 an index of bytes, 3.10 of units of 2 bytes */
	NPS_PY_PREVIOUS, /* pointer to the unit of code that was run last (3.11, 3.12) */
	NPS_PY_CURRENT, /* pointer to the unit that runs (3.13 and later) */
};

struct nps_py_layout {
	__u16 version; /* 0x030b: 3.11 */
	__u8 instruction; /* enum nps_py_instruction */
	__u8 c_owner; /* from this value of frame_owner on it is no frame of Python; 0xff: all are */
	__u8 pointer_tag; /* low bits of frame_code and frame_previous that are no part of the address */
	__u8 reserved;
	/* _PyRuntimeState and PyInterpreterState, of lists of threads */
	__u16 runtime_interpreters, runtime_tss_key;
	__u32 interpreter_next, interpreter_threads;
	/* PyThreadState */
	__u16 thread_next, thread_id, thread_native_id; /* native id: NPS_PY_NONE before 3.11 */
	__u16 thread_frame; /* pointer to the innermost frame, or to a cframe */
	__u16 cframe_frame; /* in a cframe, followed by the outer one; NPS_PY_NONE: there are no cframes */
	/* the memory that frames are in, followed by the end of the innermost; NPS_PY_NONE before 3.11 */
	__u16 thread_datastack;
	/* the frame: PyFrameObject before 3.11, then _PyInterpreterFrame */
	__u16 frame_previous, frame_code, frame_instruction, frame_owner;
	/* PyCodeObject */
	__u16 code_filename, code_name, code_qualname; /* qualname: NPS_PY_NONE before 3.11 */
	__u16 code_firstlineno, code_linetable;
	__u16 code_framesize; /* words of a frame; NPS_PY_NONE: sizes of locals and stack, and a constant */
	__u16 code_first_instruction; /* where code begins in the code object; NPS_PY_NONE: bytes co_code */
	/* PyUnicodeObject, PyBytesObject */
	__u16 text_length, text_state, text_ascii, text_compact;
	__u16 bytes_length, bytes_data;
};

/* Value in the map of processes that run Python, by thread group. */
struct nps_py_process {
	__u64 runtime; /* address of _PyRuntime */
	/* bytes from the thread pointer (fs base, TPIDR_EL0) to the thread state of the thread */
	__s32 tls_offset;
	__u32 reserved;
	struct nps_py_layout layout;
};

#endif
