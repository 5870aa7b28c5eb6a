/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Offsets of CPython's structs, compiled against the internal headers of one version. The program never runs:
 * layouts.py reads the values from the assembler's input, so any cross compiler will do.
 */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe_structs.h>
#include <internal/pycore_interp_structs.h>
#include <internal/pycore_runtime_structs.h>
#endif
#include <internal/pycore_pystate.h>
#if PY_VERSION_HEX >= 0x03090000
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#endif

#define NONE 0xffff
#define VALUE(name, value) __asm__ volatile("\n->" #name " %c0" : : "i"((long)(value)))
#define OFFSET(name, type, member) VALUE(name, offsetof(type, member))

static void runtime(void)
{
	OFFSET(runtime_interpreters, _PyRuntimeState, interpreters.head);
#if PY_VERSION_HEX >= 0x030f0000
	VALUE(runtime_tss_key, NONE);
#elif PY_VERSION_HEX >= 0x030c0000
	OFFSET(runtime_tss_key, _PyRuntimeState, autoTSSkey);
#else
	OFFSET(runtime_tss_key, _PyRuntimeState, gilstate.autoTSSkey);
#endif
	OFFSET(interpreter_next, PyInterpreterState, next);
#if PY_VERSION_HEX >= 0x030b0000
	OFFSET(interpreter_threads, PyInterpreterState, threads.head);
#else
	OFFSET(interpreter_threads, PyInterpreterState, tstate_head);
#endif
}

static void thread(void)
{
	OFFSET(thread_next, PyThreadState, next);
	OFFSET(thread_id, PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030b0000
	OFFSET(thread_native_id, PyThreadState, native_thread_id);
#else
	VALUE(thread_native_id, NONE);
#endif
#if PY_VERSION_HEX >= 0x030d0000
	OFFSET(thread_frame, PyThreadState, current_frame);
	VALUE(cframe_frame, NONE);
#elif PY_VERSION_HEX >= 0x030b0000
	OFFSET(thread_frame, PyThreadState, cframe);
	OFFSET(cframe_frame, _PyCFrame, current_frame);
#else
	OFFSET(thread_frame, PyThreadState, frame);
	VALUE(cframe_frame, NONE);
#endif
#if PY_VERSION_HEX >= 0x030b0000
	OFFSET(thread_datastack, PyThreadState, datastack_chunk);
#else
	VALUE(thread_datastack, NONE);
#endif
}

static void frame(void)
{
#if PY_VERSION_HEX >= 0x030b0000
	OFFSET(frame_previous, _PyInterpreterFrame, previous);
	OFFSET(frame_owner, _PyInterpreterFrame, owner);
#if PY_VERSION_HEX >= 0x030d0000
	OFFSET(frame_code, _PyInterpreterFrame, f_executable);
	OFFSET(frame_instruction, _PyInterpreterFrame, instr_ptr);
	VALUE(instruction, 2);
#else
	OFFSET(frame_code, _PyInterpreterFrame, f_code);
	OFFSET(frame_instruction, _PyInterpreterFrame, prev_instr);
	VALUE(instruction, 1);
#endif
#if PY_VERSION_HEX >= 0x030e0000
	VALUE(c_owner, FRAME_OWNED_BY_INTERPRETER);
#elif PY_VERSION_HEX >= 0x030c0000
	VALUE(c_owner, FRAME_OWNED_BY_CSTACK);
#else
	VALUE(c_owner, 0xff);
#endif
#else
	OFFSET(frame_previous, PyFrameObject, f_back);
	OFFSET(frame_code, PyFrameObject, f_code);
	OFFSET(frame_instruction, PyFrameObject, f_lasti);
	VALUE(frame_owner, NONE);
	VALUE(instruction, 0);
	VALUE(c_owner, 0xff);
#endif
	/* Stack references have tag bits from 3.14 on; 3.13's free-threaded build has them, too. */
	VALUE(pointer_tag, PY_VERSION_HEX >= 0x030d0000 ? 3 : 0);
}

static void code(void)
{
	OFFSET(code_filename, PyCodeObject, co_filename);
	OFFSET(code_name, PyCodeObject, co_name);
	OFFSET(code_firstlineno, PyCodeObject, co_firstlineno);
#if PY_VERSION_HEX >= 0x030b0000
	OFFSET(code_qualname, PyCodeObject, co_qualname);
	OFFSET(code_first_instruction, PyCodeObject, co_code_adaptive);
#else
	VALUE(code_qualname, NONE);
	VALUE(code_first_instruction, NONE);
#endif
#if PY_VERSION_HEX >= 0x030c0000
	OFFSET(code_framesize, PyCodeObject, co_framesize);
#else
	VALUE(code_framesize, NONE);
#endif
#if PY_VERSION_HEX >= 0x030a0000
	OFFSET(code_linetable, PyCodeObject, co_linetable);
#else
	OFFSET(code_linetable, PyCodeObject, co_lnotab);
#endif
}

static void text(void)
{
	OFFSET(text_length, PyASCIIObject, length);
	OFFSET(text_state, PyASCIIObject, state);
	VALUE(text_ascii, sizeof(PyASCIIObject));
	VALUE(text_compact, sizeof(PyCompactUnicodeObject));
	OFFSET(bytes_length, PyVarObject, ob_size);
	OFFSET(bytes_data, PyBytesObject, ob_sval);
}

/* Where the interpreter's own description of its structs has them. */
static void descriptors(void)
{
#if PY_VERSION_HEX >= 0x030d0000
#define DESCRIPTOR(name, member) OFFSET(debug_##name, _Py_DebugOffsets, member)
	DESCRIPTOR(runtime_interpreters, runtime_state.interpreters_head);
	DESCRIPTOR(interpreter_next, interpreter_state.next);
	DESCRIPTOR(interpreter_threads, interpreter_state.threads_head);
	DESCRIPTOR(thread_next, thread_state.next);
	DESCRIPTOR(thread_id, thread_state.thread_id);
	DESCRIPTOR(thread_native_id, thread_state.native_thread_id);
	DESCRIPTOR(thread_frame, thread_state.current_frame);
	DESCRIPTOR(thread_datastack, thread_state.datastack_chunk);
	DESCRIPTOR(frame_previous, interpreter_frame.previous);
	DESCRIPTOR(frame_code, interpreter_frame.executable);
	DESCRIPTOR(frame_instruction, interpreter_frame.instr_ptr);
	DESCRIPTOR(frame_owner, interpreter_frame.owner);
	DESCRIPTOR(code_filename, code_object.filename);
	DESCRIPTOR(code_name, code_object.name);
	DESCRIPTOR(code_qualname, code_object.qualname);
	DESCRIPTOR(code_firstlineno, code_object.firstlineno);
	DESCRIPTOR(code_linetable, code_object.linetable);
	DESCRIPTOR(code_first_instruction, code_object.co_code_adaptive);
	DESCRIPTOR(text_length, unicode_object.length);
	DESCRIPTOR(text_state, unicode_object.state);
	DESCRIPTOR(text_ascii, unicode_object.asciiobject_size);
	DESCRIPTOR(bytes_length, bytes_object.ob_size);
	DESCRIPTOR(bytes_data, bytes_object.ob_sval);
#endif
}

void nps_py_layouts(void)
{
	descriptors();
	VALUE(version, PY_VERSION_HEX >> 16);
	runtime();
	thread();
	frame();
	code();
	text();
}
