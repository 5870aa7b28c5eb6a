/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/python_stacks.h"

#include "import/common/memo.h"
#include "python_stack.h"
#include "stack/python_lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PROBES 8 /* texts of one hash */
#define FRAME_BYTES (2 * NPS_PY_TEXT_MAX + 32) /* most of a frame's text */

/* A code object. */
struct python_code {
	uint32_t file, name; /* texts */
	uint32_t first_line;
	uint16_t version;
	uint32_t lines, n_lines; /* of the bytes of all line tables */
};

/* A stack, as texts: all frames, outermost first, joined by `;`, and the innermost one. */
struct python_stack {
	uint32_t frames, line;
};

void nps_python_stacks__init(struct nps_python_stacks *stacks, int tmpfd)
{
	nps_vec__init(&stacks->codes, tmpfd, sizeof(struct python_code));
	nps_vec__init(&stacks->lines, tmpfd, 1);
	nps_vec__init(&stacks->stacks, tmpfd, sizeof(struct python_stack));
}

void nps_python_stacks__free(struct nps_python_stacks *stacks)
{
	nps_vec__free(&stacks->codes);
	nps_vec__free(&stacks->lines);
	nps_vec__free(&stacks->stacks);
	nps_map__free(&stacks->code_of);
	nps_map__free(&stacks->stack_of);
	nps_map__free(&stacks->text_of);
}

static uint64_t code_key(uint32_t pid, uint64_t code, uint32_t fingerprint)
{
	return nps_hash2(nps_hash2(pid, code), fingerprint);
}

/* --- code objects --- */

static int python_code_add(struct nps_session *rec, const struct nps_py_code_record *r, const char *texts)
{
	struct nps_python_stacks *py = &rec->python;
	uint32_t at = (uint32_t)py->lines.len, file, name;
	struct python_code *code;
	int err;

	if (nps_map__get(&py->code_of, code_key(r->pid, r->code, r->fingerprint)) != NPS_NONE)
		return 0; /* sent again */
	if (py->lines.len > UINT32_MAX - r->lines_len || py->codes.len >= NPS_NONE - 1)
		return -EOVERFLOW;
	file = nps_fw_intern(&rec->strings, texts, r->file_len);
	name = nps_fw_intern(&rec->strings, texts + r->file_len, r->name_len);
	if (file == NPS_NONE || name == NPS_NONE)
		return -ENOMEM;
	if (r->lines_len) {
		err = nps_vec__resize(&py->lines, py->lines.len + r->lines_len);
		if (err)
			return err;
		memcpy((char *)py->lines.data + at, texts + r->file_len + r->name_len, r->lines_len);
	}
	code = nps_vec__push(&py->codes);
	if (!code)
		return -errno;
	*code = (struct python_code){ .file = file,
				      .name = name,
				      .first_line = r->first_line,
				      .version = r->version,
				      .lines = at,
				      .n_lines = r->lines_len };
	return nps_map__put(&py->code_of, code_key(r->pid, r->code, r->fingerprint), py->codes.len - 1);
}

static int python_codes_add(struct nps_session *rec, const char *payload, uint32_t len)
{
	struct nps_py_code_record r;
	uint32_t at = 0;
	int err = 0;

	while (!err && len - at >= sizeof(r)) {
		memcpy(&r, payload + at, sizeof(r));
		if (r.size > len - at || r.lines_len > NPS_PY_LINES_MAX ||
		    sizeof(r) + r.file_len + r.name_len + r.lines_len > r.size)
			break; /* the rest of the chunk makes no sense */
		err = python_code_add(rec, &r, payload + at + sizeof(r));
		at += r.size;
	}
	if (!err && at != len)
		rec->python.damaged++;
	return err;
}

/* --- stacks --- */

/* Appends a text without the characters that have a meaning in folded lines. Returns the new length. */
static size_t append_text(char *out, size_t len, size_t size, const char *text)
{
	for (; *text && len + 1 < size; text++)
		out[len++] = *text == ';' ? ':' : (unsigned char)*text < ' ' ? ' ' : *text;
	return len;
}

#define UNITS 0x030a /* the version whose f_lasti counts units of 2 bytes */

/* "file.py(12): function" */
static size_t frame_text(const struct nps_session *rec, uint32_t pid, const struct nps_py_stack_frame *f,
			 char *out, size_t size)
{
	const struct nps_python_stacks *py = &rec->python;
	uint32_t row = nps_map__get(&py->code_of, code_key(pid, f->code, f->fingerprint));
	const struct python_code *code;
	size_t len;
	int32_t at;
	int line;

	if (row == NPS_NONE)
		return (size_t)snprintf(out, size, "[unknown]");
	code = &NPS_AT(&py->codes, struct python_code, row);
	at = code->version == UNITS ? (int32_t)((uint32_t)f->instruction * 2) : f->instruction;
	line = nps_python_line(code->version, (int32_t)code->first_line,
			       (const uint8_t *)py->lines.data + code->lines, code->n_lines, at);
	len = append_text(out, 0, size - 20, nps_strings__get(&rec->strings, code->file));
	len += (size_t)snprintf(out + len, size - len, "(%d): ", line);
	len = append_text(out, len, size, nps_strings__get(&rec->strings, code->name));
	out[len] = '\0';
	return len;
}

/*
 * The id of a text of LEN bytes that a NUL follows, the same for the same text: interned texts are cut where
 * they are long, and these must not be.
 */
static uint32_t python_text_intern(struct nps_session *rec, const char *text, size_t len)
{
	uint64_t hash = nps_hash_bytes(text, len);
	uint32_t id;

	for (int i = 0; i < PROBES; i++, hash++) {
		id = nps_map__get(&rec->python.text_of, hash);
		if (id == NPS_NONE)
			break;
		if (!strcmp(nps_strings__get(&rec->strings, id), text))
			return id;
	}
	id = nps_strings__append_new(&rec->strings, text, len);
	if (id == NPS_NONE || nps_map__put(&rec->python.text_of, hash, id))
		return NPS_NONE;
	return id;
}

/* Appends LEN bytes to TEXT, which is NUL-terminated unless it is empty; `;` between them. */
static int join_frame(struct nps_vec *text, const char *frame, size_t len)
{
	size_t at = text->len;
	int err = nps_vec__resize(text, at + len + 1);

	if (err)
		return err;
	if (at)
		NPS_AT(text, char, at - 1) = ';';
	memcpy((char *)text->data + at, frame, len);
	return 0;
}

/* Joins the frames of S to TEXT, and sets the innermost one of OUT. */
static int join_frames(struct nps_session *rec, const struct nps_py_stack *s, struct nps_vec *text,
		       struct python_stack *out)
{
	const char *mark = s->flags & NPS_PY_F_BROKEN ? "[broken]" : "[cut]";
	int err = s->flags ? join_frame(text, mark, strlen(mark)) : 0;

	for (size_t i = s->n; !err && i-- > 0;) {
		char frame[FRAME_BYTES];
		size_t len = frame_text(rec, s->pid, &s->frames[i], frame, sizeof(frame));

		if (!i)
			out->line = python_text_intern(rec, frame, len);
		err = join_frame(text, frame, len);
	}
	return err;
}

static int stack_texts(struct nps_session *rec, const struct nps_py_stack *s, struct python_stack *out)
{
	struct nps_vec text;
	int err;

	nps_vec__init(&text, rec->tmpfd, 1);
	err = join_frames(rec, s, &text, out);
	if (err)
		goto out;
	out->frames = python_text_intern(rec, text.data, text.len - 1);
	err = out->line == NPS_NONE || out->frames == NPS_NONE ? -ENOMEM : 0;
out:
	nps_vec__free(&text);
	return err;
}

static int python_stack_add(struct nps_session *rec, const struct nps_py_stack *s)
{
	struct nps_python_stacks *py = &rec->python;
	struct python_stack texts = { NPS_NONE, NPS_NONE }, *row;
	int err;

	if (nps_map__get(&py->stack_of, s->id) != NPS_NONE)
		return 0; /* sent again */
	if (py->stacks.len >= NPS_NONE - 1)
		return -EOVERFLOW;
	err = stack_texts(rec, s, &texts);
	if (err)
		return err;
	row = nps_vec__push(&py->stacks);
	if (!row)
		return -errno;
	*row = texts;
	return nps_map__put(&py->stack_of, s->id, py->stacks.len - 1);
}

static int python_stacks_add(struct nps_session *rec, const char *payload, uint32_t len)
{
	struct nps_py_stack s;
	uint32_t at = 0, size;
	int err = 0;

	while (!err && len - at >= NPS_PY_STACK_HEAD) {
		memcpy(&s, payload + at, NPS_PY_STACK_HEAD);
		size = NPS_PY_STACK_HEAD + s.n * sizeof(*s.frames);
		if (s.kind != NPS_PY_STACK || !s.n || s.n > NPS_PY_FRAMES || size > len - at)
			break; /* the rest of the chunk makes no sense */
		memcpy(s.frames, payload + at + NPS_PY_STACK_HEAD, s.n * sizeof(*s.frames));
		err = python_stack_add(rec, &s);
		at += size;
	}
	if (!err && at != len)
		rec->python.damaged++;
	return err;
}

int nps_python_stacks__add(struct nps_session *rec, bool stacks, const struct nps_chunk *chunk,
			   const void *payload)
{
	if (chunk->type == NPS_CHUNK_PY_CODES)
		return stacks ? 0 : python_codes_add(rec, payload, chunk->len);
	if (chunk->type == NPS_CHUNK_PY_STACKS)
		return stacks ? python_stacks_add(rec, payload, chunk->len) : 0;
	return 1;
}

/* --- the calls that have them --- */

static uint64_t entry_key(uint32_t tid, uint64_t start)
{
	return nps_hash2(tid, start);
}

/* By thread and start: the row of a stack. */
static int map_entries(const struct nps_session *rec, const struct nps_proc *proc, struct nps_map *map)
{
	int err = 0;

	for (size_t i = 0; !err && i < proc->py_entries.len; i++) {
		const struct nps_event *ev = &NPS_AT(&proc->py_entries, struct nps_event, i);
		uint32_t row = nps_map__get(&rec->python.stack_of, ev->python.stack);

		if (row != NPS_NONE)
			err = nps_map__put(map, entry_key(ev->tid, ev->start), row);
	}
	return err;
}

int nps_python_stacks__fill(struct nps_model *model, struct nps_session *rec, const struct nps_proc *proc)
{
	struct nps_map entries = { 0 };
	int err = map_entries(rec, proc, &entries);

	for (size_t i = 0; !err && entries.len && i < proc->cann_order.len; i++) {
		const struct nps_cann *call =
			&NPS_AT(&proc->cann, struct nps_cann, NPS_AT(&proc->cann_order, uint32_t, i));
		uint32_t row = nps_map__get(&entries, entry_key(call->tid, call->start));
		const struct python_stack *stack;

		if (row == NPS_NONE)
			continue;
		stack = &NPS_AT(&rec->python.stacks, struct python_stack, row);
		err = nps_py_launch_table__add(&model->py_launch,
					       &(struct nps_py_launch_row){ .connection = call->conn,
									    .frames = stack->frames,
									    .line = stack->line });
	}
	nps_map__free(&entries);
	return err;
}
