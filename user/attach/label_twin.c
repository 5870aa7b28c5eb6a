/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/label_twin.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "attach/code_insn.h"
#include "attach/eh_frame.h"

#define DISTANCE (64UL << 10)
#define FUNCTIONS 4096 /* that are compared */
#define CODE_MAX 4096 /* bytes of one */
#define CALLS_MAX 64
#define CALLS_LEAST 3 /* that have to be equal: memory, the object of the label, and what begins it */

struct twin_search {
	struct nps_elf *elf;
	struct nps_eh_frame frames;
	struct nps_insn_decoder decoder;
	uint64_t wanted[CALLS_MAX]; /* targets of the calls of the function that is known */
	size_t n_wanted;
	uint8_t code[CODE_MAX];
};

static bool has_target(const uint64_t *targets, size_t n, uint64_t target)
{
	for (size_t i = 0; i < n; i++)
		if (targets[i] == target)
			return true;
	return false;
}

/* The different targets of the direct calls of a function, at most CALLS_MAX. 0: it cannot be decoded. */
static size_t calls_of(struct twin_search *s, const struct nps_fde *fde, uint64_t *targets)
{
	size_t n = 0;
	int len;

	if (!fde->size || fde->size > CODE_MAX)
		return 0;
	len = nps_elf__data(s->elf, fde->start, s->code, fde->size);
	if (len < 0 || (uint64_t)len != fde->size)
		return 0;
	for (size_t at = 0; at < fde->size && n < CALLS_MAX;) {
		struct nps_insn insn =
			nps_insn_decoder__decode(&s->decoder, s->code + at, fde->size - at, fde->start + at);

		if (insn.kind == NPS_INSN_UNKNOWN || !insn.size)
			return 0;
		if (insn.kind == NPS_INSN_CALL && !has_target(targets, n, insn.target))
			targets[n++] = insn.target;
		at += insn.size;
	}
	return n;
}

static bool is_twin(struct twin_search *s, const struct nps_fde *fde)
{
	uint64_t targets[CALLS_MAX];
	size_t n = calls_of(s, fde, targets);

	for (size_t i = 0; i < s->n_wanted; i++)
		if (!has_target(targets, n, s->wanted[i]))
			return false;
	return true;
}

/* Compares the functions near FN, whose own description is KNOWN. */
static int search_near(struct twin_search *s, const struct nps_fde *known, struct nps_fde *found)
{
	uint64_t at = known->start > DISTANCE ? known->start - DISTANCE : 0;
	size_t n = 0;

	for (int i = 0; i < FUNCTIONS; i++) {
		struct nps_fde fde;

		at = nps_eh_frame__next_start(&s->frames, at);
		if (at == UINT64_MAX || at > known->start + DISTANCE)
			break;
		if (nps_elf__spent(s->elf))
			return -ETIME;
		if (at == known->start || nps_eh_frame__find(&s->frames, at, &fde) || !is_twin(s, &fde))
			continue;
		*found = fde;
		n++;
	}
	return n == 1 ? 0 : -ENOENT;
}

static int twin_find(struct twin_search *s, const struct nps_elf_function *fn, struct nps_fde *found)
{
	struct nps_fde known;
	int err = nps_insn_decoder__init(&s->decoder, nps_elf__machine(s->elf));

	if (err)
		return err;
	err = nps_eh_frame__init(&s->frames, s->elf);
	if (err || !s->frames.header)
		return -EINVAL;
	err = nps_eh_frame__read_table(&s->frames);
	if (err)
		return err == -E2BIG ? -EINVAL : err;
	err = nps_eh_frame__find(&s->frames, fn->vaddr, &known);
	if (err || known.start != fn->vaddr)
		return -ENOENT;
	s->n_wanted = calls_of(s, &known, s->wanted);
	if (s->n_wanted < CALLS_LEAST || s->n_wanted == CALLS_MAX)
		return -ENOENT;
	return search_near(s, &known, found);
}

int nps_label_twin__find(struct nps_elf *elf, const struct nps_elf_function *fn,
			 struct nps_elf_function *twin)
{
	struct twin_search *s = calloc(1, sizeof(*s));
	struct nps_fde found = { 0 };
	uint64_t offset = 0;
	int err;

	if (!s)
		return -ENOMEM;
	s->elf = elf;
	err = twin_find(s, fn, &found);
	if (err)
		goto out;
	if (nps_elf__offset(elf, found.start, &offset))
		*twin = (struct nps_elf_function){ fn->name, offset, found.start, found.size };
	else
		err = -ENOENT;
out:
	nps_insn_decoder__free(&s->decoder);
	nps_eh_frame__free(&s->frames);
	free(s);
	return err;
}
