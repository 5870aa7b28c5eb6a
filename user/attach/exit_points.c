/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/exit_points.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/code_flow.h"
#include "attach/eh_frame.h"
#include "core/work_budget.h"

#define TRAMPOLINE 4 /* instructions of one, at most: arm64's adrp, ldr, add, br */
#define TRAMPOLINE_BYTES 32
#define VENEER 8 /* bytes of one */

struct function_range {
	uint64_t start, end;
};

struct nps_exit_finder {
	struct nps_elf *elf;
	struct nps_eh_frame frames;
	struct nps_insn_decoder decoder;
	struct function_range *functions; /* of .dynsym, by start */
	size_t n, room;
};

static int compare_starts(const void *a, const void *b)
{
	const struct function_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int keep_function(const struct nps_elf_function *fn, void *arg)
{
	struct nps_exit_finder *finder = arg;

	if (finder->n == NPS_BUDGET_SYMBOLS)
		return -E2BIG; /* a file can have several tables */
	if (finder->n == finder->room) {
		size_t room = finder->room ? 2 * finder->room : 4096;
		struct function_range *v = realloc(finder->functions, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		finder->functions = v;
		finder->room = room;
	}
	finder->functions[finder->n++] = (struct function_range){ fn->vaddr, fn->vaddr + fn->size };
	return 0;
}

static int read_file(struct nps_exit_finder *finder)
{
	int err = nps_insn_decoder__init(&finder->decoder, nps_elf__machine(finder->elf));

	if (err)
		return err;
	err = nps_eh_frame__init(&finder->frames, finder->elf);
	if (err || !finder->frames.header)
		return -EINVAL;
	err = nps_eh_frame__read_table(&finder->frames);
	if (err)
		return err == -E2BIG ? -EINVAL : err;
	err = nps_elf__for_each_function(finder->elf, false, keep_function, finder);
	if (err)
		return err == -E2BIG ? -EINVAL : err;
	if (finder->n)
		qsort(finder->functions, finder->n, sizeof(*finder->functions), compare_starts);
	return 0;
}

int nps_exit_finder__new(struct nps_elf *elf, struct nps_exit_finder **out)
{
	struct nps_exit_finder *finder = calloc(1, sizeof(*finder));
	int err;

	if (!finder)
		return -ENOMEM;
	finder->elf = elf;
	err = read_file(finder);
	if (err)
		nps_exit_finder__free(finder);
	else
		*out = finder;
	return err;
}

void nps_exit_finder__free(struct nps_exit_finder *finder)
{
	if (!finder)
		return;
	nps_insn_decoder__free(&finder->decoder);
	nps_eh_frame__free(&finder->frames);
	free(finder->functions);
	free(finder);
}

/* Index of the first function that begins at ADDRESS or after it. */
static size_t first_function(const struct nps_exit_finder *finder, uint64_t address)
{
	size_t low = 0, high = finder->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (finder->functions[middle].start < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool begins_function(const struct nps_exit_finder *finder, uint64_t address)
{
	size_t i = first_function(finder, address);

	return i < finder->n && finder->functions[i].start == address;
}

/* Does another function of .dynsym begin within the range, or extend into it? */
static bool shares_range(const struct nps_exit_finder *finder, uint64_t start, uint64_t size)
{
	size_t first = first_function(finder, start), i = first_function(finder, start + 1);

	return (first && finder->functions[first - 1].end > start) ||
	       (i < finder->n && finder->functions[i].start - start < size);
}

/* One function whose exits are searched. */
struct exit_search {
	struct nps_exit_finder *finder;
	const struct nps_elf_function *fn;
	struct nps_flow flow;
	struct nps_fde fdes[NPS_FLOW_PARTS]; /* of the flow's parts */
};

static int no_exits(struct exit_search *s, const char *why)
{
	s->flow.why = why;
	return -ENOENT;
}

/* Is RULE that of a function's first instruction, before it has a frame? */
static bool is_entry_rule(int machine, const struct nps_cfa *rule)
{
	return machine == EM_X86_64 ? rule->reg == 7 && rule->offset == 8 /* rsp */
				    : rule->reg == 31 && !rule->offset; /* sp */
}

/*
 * Bytes of the nop with which GCC begins a part that begins with a landing pad, since an offset of 0 means
 * that there is none. It is never run, and has the rule of the entry, whatever frame the rest has.
 */
static size_t leading_nop(const struct exit_search *s, const struct nps_fde *fde)
{
	static const uint8_t nop_x86[] = { 0x90 }, nop_arm64[] = { 0x1f, 0x20, 0x03, 0xd5 };
	bool x86 = s->finder->decoder.machine == EM_X86_64;
	size_t len = x86 ? sizeof(nop_x86) : sizeof(nop_arm64);
	uint8_t code[sizeof(nop_arm64)];

	if (fde->size <= len || nps_elf__data(s->finder->elf, fde->start, code, len) != (int)len)
		return 0;
	return memcmp(code, x86 ? nop_x86 : nop_arm64, len) ? 0 : len;
}

/* 1, 0, or -EINVAL: its unwind rules cannot be read. */
static int begins_at_entry(const struct exit_search *s, const struct nps_fde *fde)
{
	struct nps_cfa rule;
	int err = nps_fde__cfa(s->finder->elf, fde, fde->start + leading_nop(s, fde), &rule);

	if (err == -ENOTSUP)
		return 0;
	return err ? err : is_entry_rule(s->finder->decoder.machine, &rule);
}

static int pad_of_part(const struct nps_landing_pad *pad, void *arg)
{
	return nps_flow__add_pad(arg, pad);
}

/* Reads the code of a part into a new buffer. -ENOENT, -ENOMEM. */
static int read_code(struct exit_search *s, const struct nps_fde *fde, uint8_t **code)
{
	uint64_t first, last;
	int n;

	/* What its offsets in the file are computed from holds for all of it. */
	if (!fde->size || !nps_elf__offset(s->finder->elf, fde->start, &first) ||
	    !nps_elf__offset(s->finder->elf, fde->start + fde->size - 1, &last) ||
	    first - fde->start != s->fn->offset - s->fn->vaddr || last - first != fde->size - 1)
		return no_exits(s, "parts of it lie in different segments");
	if (fde->size > NPS_FLOW_BYTES)
		return no_exits(s, "it is too large");
	*code = malloc(fde->size);
	if (!*code)
		return -ENOMEM;
	n = nps_elf__code(s->finder->elf, first, *code, fde->size);
	if (n >= 0 && (uint64_t)n == fde->size)
		return 0;
	free(*code);
	return no_exits(s, "its code cannot be read");
}

/* Makes the code that FDE describes a part of the function. */
static int add_part(struct exit_search *s, const struct nps_fde *fde)
{
	uint8_t *code;
	int err;

	if (nps_eh_frame__next_start(&s->finder->frames, fde->start) - fde->start < fde->size)
		return no_exits(s, "unwind tables overlap");
	if (shares_range(s->finder, fde->start, fde->size))
		return no_exits(s, "it shares code with another function");
	err = read_code(s, fde, &code);
	if (err)
		return err;
	err = nps_flow__add_part(&s->flow, fde->start, fde->size, code);
	if (err)
		return err;
	s->fdes[s->flow.n_parts - 1] = *fde;
	err = nps_landing_pads__of(s->finder->elf, fde, pad_of_part, &s->flow);
	if (err == -EINVAL || err == -E2BIG)
		return no_exits(s, "where exceptions go on in it cannot be read");
	return err;
}

/* Does code at ADDRESS only jump on to a function of another file? */
static bool is_trampoline(const struct exit_search *s, uint64_t address)
{
	uint8_t code[TRAMPOLINE_BYTES];
	int n = nps_elf__data(s->finder->elf, address, code, sizeof(code));
	size_t at = 0;

	for (int i = 0; i < TRAMPOLINE && n > 0 && at < (size_t)n; i++) {
		struct nps_insn insn = nps_insn_decoder__decode(&s->finder->decoder, code + at,
								(size_t)n - at, address + at);

		if (insn.kind == NPS_INSN_TAIL_CALL || insn.kind == NPS_INSN_JUMP_INDIRECT)
			return true;
		if (insn.kind != NPS_INSN_PLAIN)
			return false;
		at += insn.size;
	}
	return false;
}

/*
 * Code that arm64 linkers move away for an erratum of the Cortex-A53 (843419): a load, and the way back. It
 * belongs to this jump alone.
 */
static bool is_veneer(const struct exit_search *s, uint64_t from, uint64_t to)
{
	const struct nps_insn_decoder *decoder = &s->finder->decoder;
	uint8_t code[VENEER];

	return decoder->machine == EM_AARCH64 && from != NPS_FLOW_NOWHERE &&
	       nps_elf__data(s->finder->elf, to, code, VENEER) == VENEER &&
	       nps_insn_decoder__decode(decoder, code, 4, to).kind == NPS_INSN_PLAIN &&
	       nps_insn_decoder__decode(decoder, code + 4, 4, to + 4).kind == NPS_INSN_JUMP &&
	       nps_insn_decoder__decode(decoder, code + 4, 4, to + 4).target == from + 4;
}

/* Is the frame the same before and after the jump? */
static bool keeps_frame(struct exit_search *s, uint64_t from, uint64_t to, const struct nps_fde *fde)
{
	struct nps_cfa before, after;
	size_t i = 0;

	if (from == NPS_FLOW_NOWHERE)
		return true; /* an exception sets the stack pointer */
	while (i < s->flow.n_parts && from - s->fdes[i].start >= s->fdes[i].size)
		i++;
	return i < s->flow.n_parts && !nps_fde__cfa(s->finder->elf, &s->fdes[i], from, &before) &&
	       !nps_fde__cfa(s->finder->elf, fde, to, &after) && before.reg == after.reg &&
	       before.offset == after.offset;
}

/*
 * The code jumps out of the known parts: into another part of the function, which compilers move away since
 * it is rarely run (.cold), or to another function. Such a part has a frame from its first instruction on.
 */
static int jumps_outside(struct nps_flow *flow, uint64_t from, uint64_t to, void *arg)
{
	struct exit_search *s = arg;
	struct nps_fde fde;
	int err = nps_eh_frame__find(&s->finder->frames, to, &fde),
	    at_entry = err ? err : begins_at_entry(s, &fde);

	(void)flow;
	if (is_trampoline(s, to) || (!err && fde.start == to && at_entry > 0))
		return no_exits(s, "it ends by a tail call");
	if (err == -ENOENT && is_veneer(s, from, to)) {
		fde = (struct nps_fde){ .start = to, .size = VENEER };
		return add_part(s, &fde);
	}
	if (err == -ENOENT)
		return no_exits(s, "it jumps to code without unwind tables");
	if (at_entry < 0)
		return no_exits(s, "unwind tables cannot be read");
	if (at_entry || begins_function(s->finder, fde.start))
		return no_exits(s, "it shares code with another function");
	if (!keeps_frame(s, from, to, &fde))
		return no_exits(s, "it jumps to code with another frame");
	return add_part(s, &fde);
}

static bool is_emulated_at(const struct exit_search *s, const struct nps_flow_part *part, uint64_t address)
{
	return nps_probe_point__class(s->finder->decoder.machine, part->code, part->size,
				      address - part->start) == NPS_PROBE_EMULATED;
}

/*
 * Is the instruction, in the first block, the one where the entry of the function is probed: the first one
 * that is emulated, or else the start?
 */
static bool is_entry_point(struct exit_search *s, const struct nps_insn *insn)
{
	const struct nps_flow_part *part = &s->flow.parts[0];
	uint64_t address = insn->address;

	if (address == part->start)
		return true;
	if (nps_flow__part(&s->flow, address) != part || !is_emulated_at(s, part, address))
		return false;
	while (!nps_flow__is_leader(&s->flow, address)) {
		insn = nps_flow__before(&s->flow, address);
		if (!insn || is_emulated_at(s, part, insn->address))
			return false;
		address = insn->address;
	}
	return address == part->start;
}

/*
 * Can a conditional jump to TARGET be the check of the stack protector? It leads to a call without
 * arguments, or a trap, and nothing returns from there. A throw passes arguments: its exception would have
 * passed the probe.
 */
static int is_protector(struct exit_search *s, uint64_t target)
{
	const struct nps_insn *insn = nps_flow__insn(&s->flow, target);
	int returns = nps_flow__returns(&s->flow, target);

	return returns < 0 ? returns
			   : !returns && insn && (insn->kind == NPS_INSN_CALL || insn->kind == NPS_INSN_TRAP);
}

/*
 * The instruction in front of a return, in the same basic block, where a probe is cheap: one that the kernel
 * emulates. A conditional jump is one if it is the check of the stack protector. NULL with *ERR 0: there is
 * none.
 */
static const struct nps_insn *cheap_instruction(struct exit_search *s, const struct nps_insn *ret, int *err)
{
	const struct nps_insn *insn = ret;

	*err = 0;
	while (!nps_flow__is_leader(&s->flow, insn->address)) {
		const struct nps_flow_part *part = nps_flow__part(&s->flow, insn->address);

		insn = nps_flow__before(&s->flow, insn->address);
		if (!insn || (insn->kind != NPS_INSN_PLAIN && insn->kind != NPS_INSN_BRANCH))
			return NULL;
		if (insn->kind == NPS_INSN_BRANCH) {
			int protector = is_protector(s, insn->target);

			*err = protector < 0 ? protector : 0;
			if (protector <= 0)
				return NULL;
		}
		if (is_emulated_at(s, part, insn->address))
			return is_entry_point(s, insn) ? NULL : insn;
		if (insn->kind == NPS_INSN_BRANCH)
			return NULL;
	}
	return NULL;
}

static int add_exit(struct exit_search *s, const struct nps_insn *ret, bool stepped, struct nps_exits *exits)
{
	const struct nps_flow_part *part = nps_flow__part(&s->flow, ret->address);
	const struct nps_insn *insn = ret;
	enum nps_probe_class class = nps_probe_point__class(s->finder->decoder.machine, part->code,
							    part->size, ret->address - part->start);
	int err;

	if (class != NPS_PROBE_EMULATED) {
		insn = cheap_instruction(s, ret, &err);
		if (err)
			return err;
		if (!insn && !stepped)
			return no_exits(s, "no instruction before its return is emulated");
		class = insn ? NPS_PROBE_EMULATED : class;
		insn = insn ? insn : ret;
	}
	if (is_entry_point(s, insn))
		return no_exits(s, "it ends where its entry is probed");
	if (exits->n == NPS_EXITS_MAX)
		return no_exits(s, "it returns at too many instructions");
	exits->v[exits->n++] = (struct nps_exit){ insn->address - s->fn->vaddr + s->fn->offset, class };
	return 0;
}

static int compare_exits(const void *a, const void *b)
{
	const struct nps_exit *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int add_exits(struct exit_search *s, bool stepped, struct nps_exits *exits)
{
	for (size_t i = 0; i < s->flow.n_insns; i++) {
		int err;

		if (s->flow.insns[i].kind != NPS_INSN_RETURN)
			continue;
		err = add_exit(s, &s->flow.insns[i], stepped, exits);
		if (err)
			return err;
	}
	if (!exits->n)
		return no_exits(s, "it does not return");
	qsort(exits->v, exits->n, sizeof(*exits->v), compare_exits);
	return 0;
}

static int find_exits(struct exit_search *s, bool stepped, struct nps_exits *exits)
{
	struct nps_fde fde;
	int err = nps_eh_frame__find(&s->finder->frames, s->fn->vaddr, &fde);

	if (err == -ENOENT)
		return no_exits(s, "it has no unwind tables");
	if (err)
		return no_exits(s, "unwind tables cannot be read");
	if (fde.start != s->fn->vaddr || fde.size != s->fn->size)
		return no_exits(s, "its symbol and its unwind tables differ");
	if (begins_at_entry(s, &fde) <= 0)
		return no_exits(s, "its unwind tables are not those of a function");
	err = add_part(s, &fde);
	if (err)
		return err;
	err = nps_flow__add_entry(&s->flow, NPS_FLOW_NOWHERE, fde.start);
	if (err)
		return err;
	err = nps_flow__run(&s->flow);
	return err ? err : add_exits(s, stepped, exits);
}

int nps_exit_finder__find(struct nps_exit_finder *finder, const struct nps_elf_function *fn, bool stepped,
			  struct nps_exits *exits, const char **why)
{
	struct exit_search s = { .finder = finder,
				 .fn = fn,
				 .flow = { .decoder = &finder->decoder,
					   .budget = nps_elf__budget(finder->elf),
					   .outside = jumps_outside } };
	int err;

	s.flow.arg = &s;
	exits->n = 0;
	*why = NULL;
	err = nps_budget__spent(s.flow.budget) ? -ETIME : find_exits(&s, stepped, exits);
	if (err == -ENOENT)
		*why = s.flow.why;
	if (err)
		exits->n = 0;
	nps_flow__free(&s.flow);
	return err;
}
