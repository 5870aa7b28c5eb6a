/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/python/python_walk.h"

#include <errno.h>
#include <string.h>

#include "attach/python/python_thread_id.h"

#define READS 65536 /* of one walk: threads that are passed, and what the frames refer to */
#define LINES 10000000 /* of a file */
#define CODE (64 << 20) /* bytes of a function's */
#define SKIPPED 64 /* frames of the interpreter one after another */

struct raw_frame {
	uint64_t previous, code, instruction;
	uint8_t owner;
};

static uint64_t frame_word(const uint8_t *bytes, size_t at)
{
	uint64_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

/* Not more is read of a frame than is wanted of it: it can be at the end of what is mapped. */
static size_t frame_bytes(const struct nps_py_layout *l)
{
	size_t n = l->frame_previous + sizeof(uint64_t);

	if (l->frame_code + sizeof(uint64_t) > n)
		n = l->frame_code + sizeof(uint64_t);
	if (l->frame_instruction + sizeof(uint64_t) > n)
		n = l->frame_instruction + sizeof(uint64_t);
	if (l->frame_owner != NPS_PY_NONE && l->frame_owner + 1U > n)
		n = l->frame_owner + 1U;
	return n < NPS_PY_FRAME_BYTES ? n : NPS_PY_FRAME_BYTES;
}

static bool read_frame(struct nps_py_memory *m, const struct nps_py_layout *l, uint64_t address,
		       struct raw_frame *f)
{
	uint8_t bytes[NPS_PY_FRAME_BYTES];

	if (!nps_py_memory__read(m, address, bytes, frame_bytes(l)))
		return false;
	f->previous = frame_word(bytes, l->frame_previous) & ~(uint64_t)l->pointer_tag;
	f->code = frame_word(bytes, l->frame_code) & ~(uint64_t)l->pointer_tag;
	f->instruction = frame_word(bytes, l->frame_instruction);
	f->owner = l->frame_owner == NPS_PY_NONE ? 0 : bytes[l->frame_owner];
	return true;
}

/* The byte of the code that runs; -1: none has run. False: it is not in this code. */
static bool find_instruction(const struct nps_py_layout *l, const struct raw_frame *f, int32_t *at)
{
	int64_t byte;

	if (l->instruction == NPS_PY_LASTI)
		byte = (int64_t)(int32_t)f->instruction * (l->version >= 0x030a ? 2 : 1);
	else
		byte = (int64_t)(f->instruction - f->code - l->code_first_instruction);
	*at = byte < 0 ? -1 : (int32_t)byte;
	return byte >= -2 && byte < CODE;
}

/* Reads what a frame's code is. Sets *own: it is the interpreter's, for calls of __init__. */
static bool code_object_read(struct nps_py_memory *m, const struct nps_py_layout *l,
			     struct nps_py_frame *frame, bool *own)
{
	uint16_t named = l->code_qualname == NPS_PY_NONE ? l->code_name : l->code_qualname;
	uint64_t name = nps_py_memory__pointer(m, frame->code + named);
	uint64_t file = nps_py_memory__pointer(m, frame->code + l->code_filename);

	*own = name && name == file;
	frame->line_table = nps_py_memory__pointer(m, frame->code + l->code_linetable);
	return frame->line_table &&
	       nps_py_memory__read(m, frame->code + l->code_firstlineno, &frame->first_line,
				   sizeof(frame->first_line)) &&
	       frame->first_line >= 0 && frame->first_line <= LINES &&
	       nps_py_memory__text(m, l, name, frame->name, sizeof(frame->name)) &&
	       nps_py_memory__text(m, l, file, frame->file, sizeof(frame->file));
}

/* Address of the innermost frame, 0: none. */
static uint64_t innermost_frame(struct nps_py_memory *m, const struct nps_py_layout *l, uint64_t state)
{
	uint64_t frame = nps_py_memory__pointer(m, state + l->thread_frame);

	if (frame && l->cframe_frame != NPS_PY_NONE)
		frame = nps_py_memory__pointer(m, frame + l->cframe_frame);
	return frame;
}

int nps_python__frames(struct nps_py_memory *m, const struct nps_py_process *process, uint64_t state,
		       struct nps_py_frame *frames, size_t max)
{
	const struct nps_py_layout *l = &process->layout;
	uint64_t address = innermost_frame(m, l, state);
	size_t n = 0, skipped = 0;
	struct raw_frame raw;

	for (; address && n < max; address = raw.previous) {
		bool own = false;

		if (!read_frame(m, l, address, &raw))
			return -EFAULT;
		if (raw.owner < l->c_owner) {
			frames[n].code = raw.code;
			if (!find_instruction(l, &raw, &frames[n].at) ||
			    !code_object_read(m, l, &frames[n], &own))
				return -EFAULT;
		}
		if (raw.owner < l->c_owner && !own) {
			n++;
			skipped = 0;
		} else if (++skipped > SKIPPED) {
			return -EFAULT;
		}
	}
	return (int)n;
}

/* The search for the thread with a native id. */
struct thread_search {
	struct nps_py_memory *m;
	const struct nps_py_process *process;
	pid_t tid;
	uint64_t state;
};

static int match_thread(const struct nps_py_thread *t, void *arg)
{
	struct thread_search *s = arg;

	if (nps_python__native_id(s->m, t) != (uint64_t)s->tid)
		return 0;
	s->state = t->state;
	return 1;
}

int nps_python__walk(pid_t pid, const struct nps_py_process *process, pid_t tid, struct nps_py_frame *frames,
		     size_t max)
{
	struct nps_py_memory m = { .pid = pid, .reads = READS };
	struct thread_search search = { .m = &m, .process = process, .tid = tid };

	if (!nps_python__each_thread(&m, process, match_thread, &search))
		return -ENOENT;
	return nps_python__frames(&m, process, search.state, frames, max);
}

ssize_t nps_python__line_table(pid_t pid, const struct nps_py_process *process,
			       const struct nps_py_frame *frame, uint8_t *table, size_t size)
{
	const struct nps_py_layout *l = &process->layout;
	struct nps_py_memory m = { .pid = pid, .reads = 2 };
	uint64_t length;

	if (!nps_py_memory__read(&m, frame->line_table + l->bytes_length, &length, sizeof(length)))
		return -EFAULT;
	if (length > size)
		return -E2BIG;
	if (length && !nps_py_memory__read(&m, frame->line_table + l->bytes_data, table, length))
		return -EFAULT;
	return (ssize_t)length;
}
