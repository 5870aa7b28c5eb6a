/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/python_stacks.h"

#include "import/common/memo.h"
#include "import/common/torch_owner.h"
#include "python_stack.h"
#include "stack/python_lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define INTERPRETER_FRAMES 0x030c /* the first version that has frames of its own */
#define PROBES 8 /* texts of one hash */
#define FRAME_BYTES (2 * NPS_PY_TEXT_MAX + 32) /* most of a frame's text */

/* Bytes of line tables that are searched in all, about 20 s: hostile frames can be in a large table each. */
#define SEARCHED_MOST (16ULL << 30)

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
	uint64_t entries; /* a bit for each frame, from the innermost on: C called it */
	bool cut; /* the outermost text is a mark, not a frame */
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

static uint32_t python_code_row(const struct nps_python_stacks *py, uint32_t pid,
				const struct nps_py_stack_frame *f)
{
	return nps_map__get(&py->code_of, code_key(pid, f->code & ~NPS_PY_ENTRY, f->fingerprint));
}

/* From 3.12 on the interpreter has frames of its own, whose code has one name for file and function. */
static bool is_of_interpreter(const struct nps_session *rec, uint32_t pid, const struct nps_py_stack_frame *f)
{
	uint32_t row = python_code_row(&rec->python, pid, f);
	const struct python_code *code;

	if (row == NPS_NONE)
		return false;
	code = &NPS_AT(&rec->python.codes, struct python_code, row);
	return code->version >= INTERPRETER_FRAMES && code->file == code->name &&
	       *nps_strings__get(&rec->strings, code->file); /* both empty: neither could be read */
}

#define UNITS 0x030a /* the version whose f_lasti counts units of 2 bytes */

/* "file.py(12): function" */
static size_t frame_text(struct nps_session *rec, uint32_t pid, const struct nps_py_stack_frame *f, char *out,
			 size_t size)
{
	struct nps_python_stacks *py = &rec->python;
	uint32_t row = python_code_row(py, pid, f);
	const struct python_code *code;
	size_t len;
	int32_t at;
	int line;

	if (row == NPS_NONE)
		return (size_t)snprintf(out, size, "[unknown]");
	code = &NPS_AT(&py->codes, struct python_code, row);
	at = code->version == UNITS ? (int32_t)((uint32_t)f->instruction * 2) : f->instruction;
	py->searched += code->n_lines;
	line = py->searched > SEARCHED_MOST
		       ? 0
		       : nps_python_line(code->version, (int32_t)code->first_line,
					 (const uint8_t *)py->lines.data + code->lines, code->n_lines, at);
	py->unsearched += py->searched > SEARCHED_MOST;
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

	out->cut = s->flags;
	for (size_t i = s->n; !err && i-- > 0;) {
		char frame[FRAME_BYTES];
		size_t len;

		if (i && is_of_interpreter(rec, s->pid, &s->frames[i]))
			continue;
		len = frame_text(rec, s->pid, &s->frames[i], frame, sizeof(frame));
		if (!i)
			out->line = python_text_intern(rec, frame, len);
		out->entries = out->entries << 1 | (s->frames[i].code & NPS_PY_ENTRY ? 1 : 0);
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
	struct python_stack texts = { .frames = NPS_NONE, .line = NPS_NONE }, *row;
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

static bool is_sample(const struct nps_event *ev)
{
	return ev->probe == NPS_PY_RAN || ev->probe == NPS_PY_SLEPT;
}

/* By thread and start: the row of a stack. */
static int map_entries(const struct nps_session *rec, const struct nps_proc *proc, struct nps_map *map)
{
	int err = 0;

	for (size_t i = 0; !err && i < proc->py_entries.len; i++) {
		const struct nps_event *ev = &NPS_AT(&proc->py_entries, struct nps_event, i);
		uint32_t row = nps_map__get(&rec->python.stack_of, ev->python.stack);

		if (row != NPS_NONE && !is_sample(ev))
			err = nps_map__put(map, entry_key(ev->tid, ev->start), row);
	}
	return err;
}

/* What stacks of kernels are looked for in. */
struct stack_search {
	const struct nps_model *m;
	const struct nps_proc *proc;
	struct nps_map entries; /* thread and start of a call -> row of a stack */
	struct nps_vec is_kernel; /* uint8_t by connection: whether the call launched one */
	struct nps_map planned; /* connection of a kernel -> row of the stack where it was planned */
	struct nps_torch_owner owner; /* of launches */
};

/* The Python stack when the operator began that is open innermost in GTID at TIME, which only grows. */
static int stack_of_op(const struct nps_model *m, struct nps_torch_owner *owner, uint64_t gtid, uint64_t time,
		       uint32_t *stack)
{
	uint32_t op = NPS_NONE;
	int err = nps_torch_owner__at(owner, gtid, time, &op);

	if (!err && op != NPS_NONE && m->torch.callchain[op] != NPS_NULL)
		*stack = (uint32_t)m->torch.callchain[op];
	return err;
}

static int mark_kernels(struct stack_search *s)
{
	const struct nps_model *m = s->m;
	int err = nps_vec__resize(&s->is_kernel, s->proc->cann_order.len + 1);

	if (err)
		return err;
	memset(s->is_kernel.data, 0, s->is_kernel.len);
	for (size_t i = 0; i < m->compute.t.len; i++) {
		uint32_t connection = m->task.connection[m->compute.task[i]];

		if (connection < s->is_kernel.len)
			NPS_AT(&s->is_kernel, uint8_t, connection) = 1;
		if (i & (NPS_TABLE_HOT - 1))
			continue;
		nps_table__cool(&m->compute.t);
		nps_table__cool(&m->task.t);
	}
	return 0;
}

/* Stacks of kernels that another thread planned: at the first phase, else where the operator began. */
static int map_planned(struct stack_search *s, const struct nps_session *rec)
{
	const struct nps_planned_table *t = &s->m->planned;
	struct nps_rows ops = nps_model__torch_rows(s->m, NPS_API_TORCH_OP);
	struct nps_torch_owner owner;
	int err = 0;

	nps_torch_owner__init(&owner, s->m, ops.begin, ops.end);
	for (size_t i = 0; !err && i < t->t.len; i++) {
		uint64_t mono = t->time[i] - (rec->begin_real - rec->begin);
		uint32_t stack = nps_map__get(&s->entries, entry_key((uint32_t)t->gtid[i], mono));

		if (stack == NPS_NONE)
			err = stack_of_op(s->m, &owner, t->gtid[i], t->time[i], &stack);
		if (!err && stack != NPS_NONE)
			err = nps_map__put(&s->planned, t->connection[i], stack);
	}
	nps_torch_owner__free(&owner);
	return err;
}

/* A kernel's stack is that of its launch; else of its first phase; else where its operator began. */
static int stack_of_call(struct stack_search *s, const struct nps_session *rec, const struct nps_cann *call,
			 uint32_t *stack)
{
	*stack = nps_map__get(&s->entries, entry_key(call->tid, call->start));
	if (*stack != NPS_NONE || call->conn >= s->is_kernel.len ||
	    !NPS_AT(&s->is_kernel, uint8_t, call->conn))
		return 0;
	*stack = nps_map__get(&s->planned, call->conn);
	if (*stack != NPS_NONE)
		return 0;
	return stack_of_op(s->m, &s->owner, nps_proc__gtid(s->proc, call->tid),
			   nps_session__real(rec, call->start), stack);
}

static int fill_launches(struct nps_model *model, const struct nps_session *rec, struct stack_search *s)
{
	int err = 0;

	for (size_t i = 0; !err && i < s->proc->cann_order.len; i++) {
		const struct nps_cann *call =
			&NPS_AT(&s->proc->cann, struct nps_cann, NPS_AT(&s->proc->cann_order, uint32_t, i));
		const struct python_stack *stack;
		uint32_t row;

		err = stack_of_call(s, rec, call, &row);
		if (err || row == NPS_NONE)
			continue;
		stack = &NPS_AT(&rec->python.stacks, struct python_stack, row);
		err = nps_py_launch_table__add(&model->py_launch,
					       &(struct nps_py_launch_row){ .connection = call->conn,
									    .frames = stack->frames,
									    .line = stack->line });
	}
	return err;
}

/* --- samples --- */

static int fill_samples(struct nps_model *model, const struct nps_session *rec, const struct nps_proc *proc)
{
	int err = 0;

	for (size_t i = 0; !err && i < proc->py_entries.len; i++) {
		const struct nps_event *ev = &NPS_AT(&proc->py_entries, struct nps_event, i);
		uint32_t row = nps_map__get(&rec->python.stack_of, ev->python.stack);
		uint64_t start = nps_session__real(rec, NPS_MAX(ev->start, rec->begin));

		if (row == NPS_NONE || !is_sample(ev) || ev->start + ev->dur <= rec->begin)
			continue;
		err = nps_py_sample_table__add(
			&model->py_sample,
			&(struct nps_py_sample_row){
				.start = start,
				.end = nps_session__real(rec, ev->start + ev->dur),
				.gtid = nps_proc__gtid(proc, ev->tid),
				.slept = ev->probe == NPS_PY_SLEPT,
				.frames = NPS_AT(&rec->python.stacks, struct python_stack, row).frames });
	}
	return err;
}

/* --- call chains of operators --- */

int nps_python_stacks__frames(struct nps_session *rec, uint64_t id, struct nps_python_frames *out)
{
	uint32_t row = nps_map__get(&rec->python.stack_of, id);
	const struct python_stack *stack;
	struct nps_vec text;
	size_t start, end;
	int err;

	out->n = 0;
	if (row == NPS_NONE)
		return 0;
	stack = &NPS_AT(&rec->python.stacks, struct python_stack, row);
	out->cut = stack->cut;
	end = strlen(nps_strings__get(&rec->strings, stack->frames));
	nps_vec__init(&text, rec->tmpfd, 1);
	err = nps_vec__resize(&text, end + 1); /* strings move when one is added */
	if (err)
		goto out;
	memcpy(text.data, nps_strings__get(&rec->strings, stack->frames), end + 1);
	for (;; end = start - 1, out->n++) {
		char *frames = text.data;

		frames[end] = '\0';
		for (start = end; start && frames[start - 1] != ';'; start--)
			;
		out->entries[out->n] = out->n < NPS_PY_FRAMES && stack->entries >> out->n & 1;
		out->texts[out->n] = python_text_intern(rec, frames + start, end - start);
		err = out->texts[out->n] == NPS_NONE ? -ENOMEM : 0;
		if (err || !start || out->n == NPS_PY_FRAMES)
			break;
	}
	out->n++;
out:
	nps_vec__free(&text);
	return err;
}

/* The frames of stack ROW, innermost first, as rows of `frame`. */
static int chain_fill(struct nps_model *model, struct nps_session *rec, uint32_t row, struct nps_vec *text)
{
	uint32_t id = NPS_AT(&rec->python.stacks, struct python_stack, row).frames, depth = 0;
	size_t end = strlen(nps_strings__get(&rec->strings, id)), start;
	int err = nps_vec__resize(text, end + 1); /* strings move when one is added */

	if (err)
		return err;
	memcpy(text->data, nps_strings__get(&rec->strings, id), end + 1);
	for (;; end = start - 1, depth++) {
		char *frames = text->data;
		uint32_t frame;

		frames[end] = '\0';
		for (start = end; start && frames[start - 1] != ';'; start--)
			;
		frame = python_text_intern(rec, frames + start, end - start);
		if (frame == NPS_NONE)
			return -ENOMEM;
		err = nps_frame_table__add(
			&model->frame, &(struct nps_frame_row){ .id = row, .stack = frame, .depth = depth });
		if (err || !start)
			return err;
	}
}

static int fill_chains(struct nps_model *model, struct nps_session *rec)
{
	size_t n = rec->python.stacks.len;
	struct nps_vec used, text;
	int err;

	nps_vec__init(&used, rec->tmpfd, 1);
	nps_vec__init(&text, rec->tmpfd, 1);
	err = nps_vec__resize(&used, n);
	if (err)
		goto out;
	memset(used.data, 0, n);
	for (size_t i = 0; i < model->torch.t.len; i++) {
		if (model->torch.callchain[i] != NPS_NULL)
			NPS_AT(&used, uint8_t, model->torch.callchain[i]) = 1;
		if (!(i & (NPS_TABLE_HOT - 1)))
			nps_table__cool(&model->torch.t);
	}
	for (size_t i = 0; !err && i < n; i++)
		if (NPS_AT(&used, uint8_t, i))
			err = chain_fill(model, rec, i, &text);
out:
	nps_vec__free(&used);
	nps_vec__free(&text);
	return err;
}

int nps_python_stacks__fill(struct nps_model *model, struct nps_session *rec, const struct nps_proc *proc)
{
	struct nps_rows ops = nps_model__torch_rows(model, NPS_API_TORCH_OP);
	struct stack_search s = { .m = model, .proc = proc };
	int err;

	if (!rec->python.stacks.len)
		return 0;
	nps_vec__init(&s.is_kernel, rec->tmpfd, 1);
	nps_torch_owner__init(&s.owner, model, ops.begin, ops.end);
	err = map_entries(rec, proc, &s.entries);
	if (err)
		goto out;
	err = mark_kernels(&s);
	if (err)
		goto out;
	err = map_planned(&s, rec);
	if (err)
		goto out;
	err = fill_launches(model, rec, &s);
	if (err)
		goto out;
	err = fill_samples(model, rec, proc);
	if (err)
		goto out;
	err = fill_chains(model, rec);
out:
	nps_torch_owner__free(&s.owner);
	nps_map__free(&s.entries);
	nps_map__free(&s.planned);
	nps_vec__free(&s.is_kernel);
	return err;
}
