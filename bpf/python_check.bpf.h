/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Checks of Python frames where the thread was interrupted anywhere. The interpreter enters and leaves a
 * function in several steps, and between two of them what leads to the innermost frame can be of a call
 * before: its memory, or that of the frames outside of it, may be in use for something else.
 *
 * From 3.11 on a thread has its frames in chunks of memory, one directly behind the other, except those of
 * generators. So frames are valid if the innermost one ends where the memory in use ends, and each one where
 * the frame inside of it begins, down to where the first chunk begins: memory of a call before is either
 * beyond that end, or inside of a frame that is in use, and does not fit. Versions before 3.11 link an object
 * that is complete, in one step, and need no check.
 *
 * In 3.11 and 3.12 the loop of the interpreter keeps the innermost frame in a struct on the stack of C, which
 * is linked before it is complete. The frame that called the loop is also in the struct of the loop outside
 * of it: the two have to be the same.
 */
#ifndef NPS_PYTHON_CHECK_BPF_H
#define NPS_PYTHON_CHECK_BPF_H

#define PY_OWNED_BY_THREAD 0 /* values of the owner of a frame; above: the interpreter, or invalid */
#define PY_OWNED_MOST 2
#define PY_CHUNK_DATA 24 /* bytes of a chunk before its frames: previous chunk, size, end */
#define PY_WORD 8
#define PY_FRAME_HEAD_3_11 9 /* words of a frame before its locals */

/* Begins to check frames. STATE is the state of the thread, and points to FRAME, which may be a cframe. */
static __always_inline void check_begin(struct python_state *s, const struct nps_py_layout *l, __u64 state,
					__u64 frame)
{
	__u64 ends[2] = {};

	s->inner = 0;
	s->entry = s->cframe = l->cframe_frame != NPS_PY_NONE ? frame : 0;
	if (l->thread_datastack != NPS_PY_NONE)
		bpf_probe_read_user(ends, sizeof(ends), (void *)(state + l->thread_datastack));
	s->chunk = ends[0];
	s->top = ends[1];
}

/* Bytes of a frame of the code object that was read. */
static __always_inline __u64 frame_size(const struct python_state *s, const struct nps_py_layout *l)
{
	if (l->code_framesize != NPS_PY_NONE)
		return (__u64)code_number(s, l, l->code_framesize) * PY_WORD;
	return ((__u64)code_number(s, l, l->code_firstlineno - 4) +
		code_number(s, l, l->code_firstlineno + 4) + PY_FRAME_HEAD_3_11) *
	       PY_WORD;
}

/* Is it the innermost frame that ends at END? Behind it there may be one that is not linked, yet or still. */
static __always_inline bool ends_innermost(struct python_state *s, const struct nps_py_layout *l, __u64 end)
{
	__u64 code;

	if (end == s->top)
		return true;
	code = py_read(end + l->frame_code) & ~(__u64)l->pointer_tag;
	return end < s->top && code && read_code(s, l, code) && end + frame_size(s, l) == s->top;
}

/* Does the frame at s->inner begin its chunk? The first chunk has a word before its frames. */
static __always_inline bool begins_chunk(const struct python_state *s)
{
	__u64 at = s->inner - s->chunk;

	return at == PY_CHUNK_DATA || at == PY_CHUNK_DATA + PY_WORD;
}

/* Has the frame outside of what a loop of the interpreter runs, which is at PREVIOUS, called that loop? */
static __always_inline bool check_caller(struct python_state *s, const struct nps_py_layout *l,
					 __u64 previous)
{
	__u64 cframe = s->cframe;

	s->cframe = 0;
	if (!cframe)
		return true;
	cframe = py_read(cframe + l->cframe_frame + PY_WORD);
	return cframe && py_read(cframe + l->cframe_frame) == previous;
}

static __always_inline void mark_entry(struct python_state *s)
{
	__u32 n = s->n;

	if (!n)
		return;
	s->stack.frames[PY_AT(n - 1, NPS_PY_FRAMES)].code |= NPS_PY_ENTRY;
	s->hash = py_mix(s->hash, n);
}

/* A frame of the interpreter itself, at ADDRESS, outside of those that C called; s->next is its caller. */
static __always_inline bool check_c_frame(struct python_state *s, const struct nps_py_layout *l,
					  __u64 address)
{
	if (!s->entry)
		s->entry = address;
	mark_entry(s);
	return check_caller(s, l, s->next);
}

/* The frame at ADDRESS, which was appended, and whose caller is s->next. */
static __always_inline bool check_frame(struct python_state *s, const struct nps_py_layout *l, __u64 address)
{
	__u64 end;
	__u8 owner;

	if (l->thread_datastack == NPS_PY_NONE) {
		mark_entry(s); /* C calls each function */
		return true;
	}
	/* 3.11: is_entry, before the owner */
	if (l->c_owner == 0xff && (__u8)frame_word(s, l->frame_owner - 1)) {
		mark_entry(s);
		if (!check_caller(s, l, s->next))
			return false;
	}
	owner = (__u8)frame_word(s, l->frame_owner);
	if (owner != PY_OWNED_BY_THREAD)
		return owner <= PY_OWNED_MOST;
	end = address + frame_size(s, l);
	if (!s->inner) {
		if (address < s->chunk || !ends_innermost(s, l, end))
			return false;
	} else if (begins_chunk(s)) {
		s->chunk = py_read(s->chunk);
	} else if (end != s->inner) {
		return false;
	}
	s->inner = address;
	return true;
}

/* At the end of the walk: was the outermost frame reached? */
static __always_inline bool check_end(struct python_state *s, const struct nps_py_layout *l)
{
	if (l->thread_datastack == NPS_PY_NONE)
		return true;
	return !s->cframe && (!s->inner || s->inner == s->chunk + PY_CHUNK_DATA + PY_WORD);
}

#endif
