/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of a session. The file is read twice, as mappings and names of the kernel's functions may follow
 * the stacks that need them.
 */
#include "import/session/import_stacks.h"

#include "base/memory.h"
#include "import/session/python_stacks.h"
#include "import/session/session_reader.h"
#include "stack/demangle.h"
#include "stack/python_mix.h"
#include "stack/spaces.h"
#include "stack/unwind.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAMES (NPS_UNWIND_MAX + UINT8_MAX)
#define MAX_PYTHON (NPS_PY_FRAMES + 2) /* with marks */

struct stack_import {
	struct nps_model *m;
	struct nps_session *rec;
	struct nps_proc *proc;
	bool all_cfi; /* --unwind dwarf */
	uint64_t trampoline_bytes; /* of [uprobes], of the machine that the session is of */
	struct nps_spaces spaces;
	struct nps_map kernel; /* address -> text */
	struct nps_map names; /* (module, address in it) -> text */
	struct nps_map stacks; /* hash of the frames -> text */
	uint32_t unknown, kernel_unknown; /* texts */
	uint64_t damaged;
	char *text; /* of a whole stack, while it is put together */
	size_t room;
	/* of the stack in hand */
	uint64_t time;
	uint32_t frames[MAX_FRAMES + MAX_PYTHON], nframes; /* texts, innermost first */
	bool whole; /* down to where the thread began */
	uint64_t caller_sp; /* of the innermost user frame; 0: unknown */
};

/* A record of stacks.nps, taken apart. */
struct stack_parts {
	const struct nps_stack *head;
	const uint64_t *kernel, *user, *regs;
	const uint8_t *bytes;
	const struct nps_return *returns;
	struct nps_stack_python python; /* stack 0: none */
};

/* --- names ---------------------------------------------------------------------------------------- */

/* What separates frames and lines cannot be in a name. */
static uint32_t stack_frame_text(struct stack_import *in, char *name)
{
	for (char *c = name; *c; c++)
		*c = *c == ';' ? ':' : (unsigned char)*c < ' ' ? ' ' : *c;
	return nps_strings__addz(in->m->strings, name);
}

static const char *code_path(const struct stack_import *in, const struct nps_code *code)
{
	return NPS_AT(&in->spaces.modules, struct nps_module, code->module).path;
}

static uint32_t code_function(struct stack_import *in, const struct nps_code *code, uint64_t offset)
{
	struct nps_elf_image *image = nps_spaces__image(&in->spaces, code);
	const char *path = code_path(in, code);
	const char *slash = strrchr(path, '/'), *symbol = NULL, *base = slash ? slash + 1 : path;
	char name[NPS_DEMANGLED_MAX];
	uint64_t vaddr;

	if (image && nps_elf_image__vaddr(image, offset, &vaddr))
		symbol = nps_elf_image__symbol(image, vaddr);
	if (symbol)
		nps_demangle(symbol, name, sizeof(name));
	else if (!strcmp(base, "anon"))
		snprintf(name, sizeof(name), "[anon]");
	else if (!strncmp(base, "[uprobes", 8)) /* what our probes cost */
		snprintf(name, sizeof(name), "[uprobes]");
	else
		snprintf(name, sizeof(name), base[0] == '[' ? "%.250s+0x%" PRIx64 : "[%.250s+0x%" PRIx64 "]",
			 base, offset);
	return stack_frame_text(in, name);
}

/* ADDRESS is inside the function. */
static uint32_t user_text(struct stack_import *in, uint64_t address)
{
	const struct nps_code *code = nps_spaces__find(&in->spaces, in->proc->pid, in->time, address);
	uint64_t offset, key;
	uint32_t text;

	if (!code)
		return in->unknown;
	offset = address - code->start + code->offset;
	key = nps_hash2(code->module, offset);
	text = nps_map__get(&in->names, key);
	if (text != NPS_NONE)
		return text;
	text = code_function(in, code, offset);
	return text == NPS_NONE || nps_map__put(&in->names, key, text) ? NPS_NONE : text;
}

static int add_ksym(struct stack_import *in, const struct nps_ksym *sym)
{
	char name[sizeof(sym->name) + 8];
	uint32_t text;

	if (!sym->name[0])
		return 0;
	snprintf(name, sizeof(name), "%.*s_[k]", (int)strnlen(sym->name, sizeof(sym->name)), sym->name);
	text = stack_frame_text(in, name);
	return text == NPS_NONE ? -ENOMEM : nps_map__put(&in->kernel, sym->address, text);
}

/* --- frames --------------------------------------------------------------------------------------- */

/*
 * The page of the probes begins with the trampoline of returns: on x86-64 code that calls the kernel, else
 * a breakpoint.
 */
#define TRAMPOLINE_X86 14
#define TRAMPOLINE_ARM64 1

static enum nps_unwind_code code_kind(const struct stack_import *in, const struct nps_code *code, uint64_t pc)
{
	const char *path = code_path(in, code);

	if (strncmp(path, "[uprobes", 8))
		return NPS_UNWIND_CODE;
	return !strcmp(path, "[uprobes]") && pc - code->start < in->trampoline_bytes ? NPS_UNWIND_RETURN
										     : NPS_UNWIND_PROBE;
}

static struct nps_elf_image *image_find(void *ctx, uint64_t pc, uint64_t *vaddr, enum nps_unwind_code *kind)
{
	struct stack_import *in = ctx;
	const struct nps_code *code = nps_spaces__find(&in->spaces, in->proc->pid, in->time, pc);
	struct nps_elf_image *image = code ? nps_spaces__image(&in->spaces, code) : NULL;

	if (code)
		*kind = code_kind(in, code, pc);
	if (!image || !nps_elf_image__vaddr(image, pc - code->start + code->offset, vaddr))
		return NULL;
	return image;
}

/* The length of a chain of frame pointers up to the first address outside of code: the rest is invalid. */
static size_t sane_length(struct stack_import *in, const uint64_t *chain, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (!nps_spaces__find(&in->spaces, in->proc->pid, in->time, chain[i] - 1))
			return i;
	return n;
}

/*
 * Chooses the better of the two stacks: that by .eh_frame if it reached the begin of the thread, else both
 * joined where they meet, else the longer one. Returns its length.
 */
static size_t chain_choose(struct stack_import *in, uint64_t *cfi, size_t ncfi, bool complete,
			   const uint64_t *chain, size_t nchain)
{
	if (complete || (in->all_cfi && ncfi))
		return ncfi;
	for (size_t i = 0; ncfi && i < nchain; i++) {
		if (chain[i] != cfi[ncfi - 1])
			continue;
		nchain = NPS_MIN(nchain - i, NPS_UNWIND_MAX - ncfi + 1);
		memcpy(cfi + ncfi - 1, chain + i, nchain * sizeof(*cfi));
		return ncfi - 1 + nchain;
	}
	if (ncfi >= nchain)
		return ncfi;
	memcpy(cfi, chain, nchain * sizeof(*cfi));
	return nchain;
}

static bool is_trampoline(const struct stack_import *in, uint64_t pc)
{
	const struct nps_code *code = nps_spaces__find(&in->spaces, in->proc->pid, in->time, pc);

	return code && code_kind(in, code, pc) == NPS_UNWIND_RETURN;
}

/*
 * Stacks by frame pointers in which a kernel before 5.15 reports no registers still contain the trampoline,
 * but not where on the stack it was. If there are as many trampolines as probed returns, they are those, in
 * their order. Else some were skipped, and all stay.
 */
static void mend_chain(const struct stack_import *in, uint64_t *chain, size_t n, const struct stack_parts *p)
{
	size_t found = 0, put = 0;

	for (size_t i = 1; i < n && p->head->n_returns; i++)
		found += is_trampoline(in, chain[i]);
	for (size_t i = 1; i < n && found == p->head->n_returns && put < found; i++)
		if (is_trampoline(in, chain[i]))
			chain[i] = p->returns[put++].address;
}

/* Functions that nothing calls, or only what starts threads. */
static bool begins_threads(const char *name)
{
	static const char *const roots[] = { "_start",
					     "__libc_start_main",
					     "__libc_start_main_impl",
					     "__libc_start_call_main",
					     "start_thread",
					     "clone",
					     "__clone",
					     "clone3",
					     "__clone3",
					     "thread_start",
					     "runtime.goexit",
					     "runtime.goexit.abi0" };

	for (size_t i = 0; i < NPS_ARRAY_SIZE(roots); i++)
		if (!strcmp(name, roots[i]))
			return true;
	return false;
}

static size_t unwind(struct stack_import *in, const struct stack_parts *p, uint64_t *cfi, bool *complete)
{
	const struct nps_stack *s = p->head;
	struct nps_unwind u = { .nregs = s->n_regs,
				.stack = p->bytes,
				.stack_len = s->n_bytes,
				.returns = p->returns,
				.nreturns = s->n_returns,
				.find = image_find,
				.ctx = in,
				.caller_sp = &in->caller_sp };

	*complete = false;
	if ((s->n_regs != 17 && s->n_regs != 33) || !s->n_bytes)
		return 0;
	in->trampoline_bytes = s->n_regs == 17 ? TRAMPOLINE_X86 : TRAMPOLINE_ARM64;
	memcpy(u.regs, p->regs, s->n_regs * sizeof(*p->regs));
	return nps_unwind__walk(&u, cfi, complete);
}

static void add_user(struct stack_import *in, const struct stack_parts *p)
{
	uint64_t cfi[NPS_UNWIND_MAX], chain[NPS_UNWIND_MAX];
	size_t n, nchain = NPS_MIN((size_t)p->head->n_user, (size_t)NPS_UNWIND_MAX), before = in->nframes;
	bool complete;

	memcpy(chain, p->user, nchain * sizeof(*chain));
	mend_chain(in, chain, nchain, p);
	nchain = sane_length(in, chain, nchain);
	n = unwind(in, p, cfi, &complete);
	n = chain_choose(in, cfi, n, complete, chain, nchain);
	for (size_t i = 0; i < n && in->nframes < MAX_FRAMES; i++)
		in->frames[in->nframes++] = user_text(in, cfi[i] - (i > 0));
	in->whole = complete || (in->nframes > before &&
				 begins_threads(nps_model__text(in->m, in->frames[in->nframes - 1])));
	in->m->stacks++;
	in->m->whole_stacks += in->whole;
}

/* --- Python ----------------------------------------------------------------------------------------- */

/* Is the innermost Python frame in the loop of the interpreter that runs? -1: unknown. */
static int innermost_is_linked(const struct stack_import *in, const struct stack_parts *p, uint8_t innermost)
{
	if (!p->python.entry)
		return -1;
	if (innermost != NPS_MIX_LOOP)
		return 1;
	return in->caller_sp ? p->python.entry < in->caller_sp : -1;
}

/* Mixes PY into the user frames, which begin at frame FIRST. */
static void python_mix(struct stack_import *in, const struct stack_parts *p, uint32_t first,
		       const struct nps_python_frames *py)
{
	uint32_t user[MAX_FRAMES];
	uint16_t mixed[MAX_FRAMES + MAX_PYTHON];
	uint8_t native[MAX_FRAMES];
	struct nps_mix mix = { .native = native,
			       .nnative = in->nframes - first,
			       .whole = in->whole,
			       .npython = py->n,
			       .entries = py->entries,
			       .cut = py->cut };
	bool left_out;
	size_t n;

	memcpy(user, in->frames + first, mix.nnative * sizeof(*user));
	for (size_t i = 0; i < mix.nnative; i++)
		native[i] = (uint8_t)nps_mix__class(nps_model__text(in->m, user[i]));
	mix.linked = innermost_is_linked(in, p, mix.nnative ? native[0] : (uint8_t)NPS_MIX_NATIVE);
	n = nps_mix__frames(&mix, mixed, &left_out);
	in->nframes = first;
	for (size_t i = 0; i < n; i++)
		in->frames[in->nframes++] = mixed[i] & NPS_MIX_PYTHON ? py->texts[mixed[i] & ~NPS_MIX_PYTHON]
								      : user[mixed[i]];
	if (left_out)
		in->frames[in->nframes++] = nps_strings__addz(in->m->strings, "[native frames left out]");
}

static int add_python(struct stack_import *in, const struct stack_parts *p, uint32_t first)
{
	struct nps_python_frames py = { 0 };
	int err = 0;

	if (p->python.stack != NPS_PY_UNREAD)
		err = nps_python_stacks__frames(in->rec, p->python.stack, &py);
	if (err)
		return err;
	if (py.n)
		python_mix(in, p, first, &py);
	else
		in->frames[in->nframes++] = nps_strings__addz(in->m->strings, "[Python frames unread]");
	return 0;
}

/* A sleep begins in the scheduler: what is deeper is the tracing of it. */
static void stack_add_kernel(struct stack_import *in, const struct nps_stack *s, const uint64_t *frames)
{
	size_t begin = in->nframes;

	for (size_t i = 0; i < s->n_kernel && in->nframes < UINT8_MAX; i++) {
		uint32_t text = nps_map__get(&in->kernel, frames[i]);

		if (text == NPS_NONE)
			text = in->kernel_unknown;
		if (s->kind == NPS_STACK_OFFCPU && !strcmp(nps_model__text(in->m, text), "__schedule_[k]"))
			in->nframes = begin;
		in->frames[in->nframes++] = text;
	}
}

/* --- rows ----------------------------------------------------------------------------------------- */

/* The frames as one text, which most stacks share with others. */
static uint32_t stack_text(struct stack_import *in)
{
	uint64_t key = nps_hash_bytes(in->frames, in->nframes * sizeof(in->frames[0]));
	uint32_t text = nps_map__get(&in->stacks, key);
	size_t len = 0, at = 0;

	if (text != NPS_NONE)
		return text;
	for (uint32_t i = 0; i < in->nframes; i++)
		len += strlen(nps_model__text(in->m, in->frames[i])) + 1;
	if (len + 1 > in->room) {
		char *bigger = realloc(in->text, 2 * len + 1);

		if (!bigger)
			nps_memory__fail(-ENOMEM);
		if (!bigger)
			return NPS_NONE;
		in->text = bigger;
		in->room = 2 * len + 1;
	}
	for (uint32_t i = in->nframes; i--;) {
		const char *frame = nps_model__text(in->m, in->frames[i]);
		size_t n = strlen(frame);

		memcpy(in->text + at, frame, n);
		at += n;
		if (i)
			in->text[at++] = ';';
	}
	text = nps_strings__append_new(in->m->strings, in->text, at); /* whole: interned texts are cut */
	return text == NPS_NONE || nps_map__put(&in->stacks, key, text) ? NPS_NONE : text;
}

static int stack_add_row(struct stack_import *in, const struct nps_stack *s)
{
	struct nps_stack_table *t = &in->m->stack;
	uint32_t comm = nps_session__comm_at(in->rec, s->tid, s->time), text;
	size_t row;
	int err;

	if (nps_session__is_helper(in->rec, s->pid, s->tid, s->time))
		return 0;
	text = stack_text(in);

	for (uint32_t i = 0; i < in->nframes; i++)
		if (in->frames[i] == NPS_NONE)
			return -ENOMEM;
	err = text == NPS_NONE ? -ENOMEM : nps_table__add(&t->t, &row);
	if (err)
		return err;
	t->start[row] = nps_session__real(in->rec, s->time);
	t->gtid[row] = (uint64_t)s->pid << 32 | s->tid;
	t->kind[row] = s->kind;
	t->weight[row] = s->weight;
	t->comm[row] = comm == NPS_NONE ? in->proc->comm : comm;
	t->frames[row] = text;
	nps_model__cover(in->m, t->start[row], t->start[row]);
	return 0;
}

#define THIRTY_DAYS (30ULL * 24 * 3600 * 1000000000)

static bool is_sane(const struct nps_stack *s)
{
	return (s->kind == NPS_STACK_ONCPU || s->kind == NPS_STACK_OFFCPU) && s->time < INT64_MAX &&
	       s->weight < THIRTY_DAYS;
}

static int one_stack(struct stack_import *in, const struct stack_parts *p)
{
	const struct nps_stack *s = p->head;
	uint32_t kernel;
	int err = 0;

	if (s->pid != in->proc->pid)
		return 0;
	if (!is_sane(s) || s->time + THIRTY_DAYS < in->rec->begin || s->time > in->rec->begin + THIRTY_DAYS) {
		in->damaged++;
		return 0;
	}
	in->time = s->time;
	in->nframes = 0;
	stack_add_kernel(in, s, p->kernel);
	in->whole = false;
	in->caller_sp = 0;
	kernel = in->nframes;
	if (s->n_user || s->n_regs)
		add_user(in, p);
	if (p->python.stack)
		err = add_python(in, p, kernel);
	if (!in->nframes)
		in->frames[in->nframes++] = in->unknown;
	return err ? err : stack_add_row(in, s);
}

/* Calls EACH for every record of a chunk of records that begin with their size. */
static int chunk_walk(struct stack_import *in, const void *payload, size_t len, size_t least,
		      int (*each)(struct stack_import *in, const void *record, size_t size))
{
	size_t at = 0;
	int err = 0;

	while (!err && at < len) {
		const uint8_t *record = (const uint8_t *)payload + at;
		uint32_t size = 0;

		if (len - at >= least)
			memcpy(&size, record, sizeof(size));
		if (size < least || size > len - at || size % 8) {
			in->damaged++;
			return 0;
		}
		err = each(in, record, size);
		at += size;
	}
	return err;
}

static int on_stack(struct stack_import *in, const void *record, size_t size)
{
	const struct nps_stack *s = record;
	struct stack_parts p = { .head = s };
	size_t need = sizeof(*s) + 8UL * (s->n_kernel + s->n_user + s->n_regs);

	p.kernel = (const uint64_t *)(s + 1);
	p.user = p.kernel + s->n_kernel;
	p.regs = p.user + s->n_user;
	p.bytes = (const uint8_t *)(p.regs + s->n_regs);
	if (need > size || s->n_bytes > size - need) {
		in->damaged++;
		return 0;
	}
	need += (s->n_bytes + 7UL) & ~7UL;
	p.returns = (const struct nps_return *)((const uint8_t *)record + need);
	if (s->n_returns * sizeof(struct nps_return) > size - need) {
		in->damaged++;
		return 0;
	}
	need += s->n_returns * sizeof(struct nps_return);
	if (s->flags & NPS_STACK_F_PYTHON) {
		if (sizeof(p.python) > size - need) {
			in->damaged++;
			return 0;
		}
		memcpy(&p.python, (const uint8_t *)record + need, sizeof(p.python));
	}
	return one_stack(in, &p);
}

static int on_mapping(struct stack_import *in, const void *record, size_t size)
{
	const struct nps_map_record *r = record;
	const char *path = (const char *)(r + 1);

	if (size <= sizeof(*r) || !memchr(path, 0, size - sizeof(*r))) {
		in->damaged++;
		return 0;
	}
	return nps_spaces__add(&in->spaces, r, path);
}

static int first_pass(void *ctx, const struct nps_chunk *chunk, const void *payload)
{
	const struct nps_ksym *syms = payload;
	struct stack_import *in = ctx;
	int err = 0;

	if (chunk->type == NPS_CHUNK_MAPS)
		return chunk_walk(in, payload, chunk->len, sizeof(struct nps_map_record), on_mapping);
	if (chunk->type == NPS_CHUNK_VDSO)
		nps_spaces__set_vdso(&in->spaces, payload, chunk->len);
	if (chunk->type == NPS_CHUNK_KSYMS)
		for (size_t i = 0; !err && i < chunk->len / sizeof(*syms); i++)
			err = add_ksym(in, &syms[i]);
	return err;
}

static int second_pass(void *ctx, const struct nps_chunk *chunk, const void *payload)
{
	return chunk->type == NPS_CHUNK_STACKS
		       ? chunk_walk(ctx, payload, chunk->len, sizeof(struct nps_stack), on_stack)
		       : 0;
}

/* --- the file ------------------------------------------------------------------------------------- */

static void report_chunks(struct stack_import *in, const struct nps_chunks *result)
{
	const char *example = "";
	size_t missing = nps_spaces__missing(&in->spaces, &example);

	if (result->end != NPS_CHUNKS_COMPLETE)
		nps_model__lost(in->m, 1, "part of stacks.nps, which is cut or damaged");
	nps_model__lost(in->m, in->damaged, "records of stacks.nps, which is damaged");
	nps_model__lost(in->m, in->spaces.left_out, "mappings of processes that have too many");
	nps_model__lost(in->m, in->spaces.limits.refused, "files of stacks that need too much memory");
	if (in->spaces.limits.exceeded)
		nps_msg("process %u: its stacks have frames without names: its files have more symbols, or "
			"longer unwind tables, "
			"than npuscope reads",
			in->proc->pid);
	if (missing)
		nps_msg("process %u: %zu files have no names in its stacks: %s is not here or another build: "
			"analyse where they are",
			in->proc->pid, missing, example);
}

static int read_stacks(struct stack_import *in)
{
	const cJSON *request = cJSON_GetObjectItemCaseSensitive(in->rec->json, "request");
	const char *way = nps_json_str(cJSON_GetObjectItemCaseSensitive(request, "stacks"), "unwind", "auto");
	struct nps_chunks result;
	int err;

	in->trampoline_bytes =
		TRAMPOLINE_ARM64; /* where a stack has no registers: what any return leads to */
	in->all_cfi = !strcmp(way, "dwarf");
	in->unknown = nps_strings__addz(in->m->strings, "[unknown]");
	in->kernel_unknown = nps_strings__addz(in->m->strings, "[kernel]_[k]");
	if (in->unknown == NPS_NONE || in->kernel_unknown == NPS_NONE)
		return -ENOMEM;
	err = nps_chunks__read(in->rec->dirfd, "stacks.nps", first_pass, in, &result);
	if (err || (!result.chunks && result.end >= NPS_CHUNKS_MISSING))
		return err;
	err = nps_spaces__finish(&in->spaces);
	if (err)
		return err;
	err = nps_chunks__read(in->rec->dirfd, "stacks.nps", second_pass, in, &result);
	if (err)
		return err;
	report_chunks(in, &result);
	return 0;
}

int nps_import__stacks(struct nps_model *model, struct nps_session *rec, uint32_t proc_row)
{
	struct stack_import *in = calloc(1, sizeof(*in));
	int err;

	if (!in)
		return -ENOMEM;
	in->m = model;
	in->rec = rec;
	in->proc = &rec->procs[proc_row];
	nps_spaces__init(&in->spaces, model->tmpfd);
	err = read_stacks(in);
	nps_spaces__free(&in->spaces);
	nps_map__free(&in->kernel);
	nps_map__free(&in->names);
	nps_map__free(&in->stacks);
	free(in->text);
	free(in);
	return err;
}
