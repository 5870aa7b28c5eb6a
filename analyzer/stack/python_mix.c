/* SPDX-License-Identifier: BSD-2-Clause */
#include "stack/python_mix.h"

#include "base/util.h"

#include <string.h>

#define LOOP "_PyEval_EvalFrameDefault"
#define TAIL_CALL "_TAIL_CALL_" /* 3.14 and later: an instruction of the loop, where it is built so */

/* Of 3.8 to 3.15, exported or not. */
static const char *const calls[] = {
	"PyEval_EvalFrame",
	"PyEval_EvalFrameEx",
	"PyObject_Call",
	"PyObject_CallNoArgs",
	"PyObject_CallOneArg",
	"PyObject_Vectorcall",
	"PyObject_VectorcallDict",
	"PyVectorcall_Call",
	"_PyEval_EvalCode",
	"_PyEval_EvalCodeWithName",
	"_PyEval_EvalFrame",
	"_PyEval_Vector",
	"_PyFunction_FastCallDict",
	"_PyFunction_FastCallKeywords",
	"_PyFunction_Vectorcall",
	"_PyObject_Call",
	"_PyObject_Call_Prepend",
	"_PyObject_FastCallDict",
	"_PyObject_FastCallDictTstate",
	"_PyObject_MakeTpCall",
	"_PyObject_Vectorcall",
	"_PyObject_VectorcallTstate",
	"_PyVectorcall_Call",
	"_Py_CheckFunctionResult",
	"call_function",
	"function_code_fastcall",
	"method_vectorcall",
};

/* A compiler adds suffixes to the name of what it split or cloned. */
static bool is_function(const char *name, const char *function)
{
	size_t len = strlen(function);

	return !strncmp(name, function, len) && (!name[len] || name[len] == '.');
}

enum nps_mix_class nps_mix__class(const char *function)
{
	if (is_function(function, LOOP) || !strncmp(function, TAIL_CALL, strlen(TAIL_CALL)))
		return NPS_MIX_LOOP;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(calls); i++)
		if (is_function(function, calls[i]))
			return NPS_MIX_CALL;
	return NPS_MIX_NATIVE;
}

/* What is known of the two stacks. */
struct mix_counts {
	size_t loops, entries;
	size_t first; /* the innermost loop */
	bool at_loop; /* nothing but the interpreter runs inside of the innermost loop */
	size_t unlinked; /* innermost loops that have no Python frames */
};

static void mix_count(const struct nps_mix *mix, struct mix_counts *c)
{
	*c = (struct mix_counts){ .at_loop = true };
	for (size_t i = 0; i < mix->nnative; i++) {
		if (mix->native[i] == NPS_MIX_LOOP && !c->loops++)
			c->first = i;
		if (mix->native[i] == NPS_MIX_NATIVE && !c->loops)
			c->at_loop = false;
	}
	for (size_t i = 0; i < mix->npython; i++)
		c->entries += mix->entries[i] || i + 1 == mix->npython;
}

/* Which entry each loop runs follows from their numbers, or from the innermost end. False: it is unknown. */
static bool mix_align(const struct nps_mix *mix, struct mix_counts *c)
{
	if (!c->loops)
		return false;
	if (mix->whole && !mix->cut) {
		c->unlinked = c->loops - c->entries;
		return c->loops == c->entries || (c->loops == c->entries + 1 && c->at_loop);
	}
	c->unlinked = c->at_loop && !mix->linked;
	return !c->at_loop || mix->linked >= 0;
}

struct mix_out {
	uint16_t *out;
	size_t n, python; /* frames written, and Python frames among them */
};

/* Writes the Python frames of the next entry, or with ALL of all others. */
static void put_python(const struct nps_mix *mix, struct mix_out *o, bool all)
{
	while (o->python < mix->npython) {
		o->out[o->n++] = (uint16_t)(NPS_MIX_PYTHON | o->python);
		if (mix->entries[o->python++] && !all)
			return;
	}
}

/* Native frames inside of the innermost loop, and all Python frames. */
static size_t mix_apart(const struct nps_mix *mix, const struct mix_counts *c, uint16_t *out, bool *left_out)
{
	struct mix_out o = { .out = out };
	/* Without a loop only the function that runs is known to be inside. */
	size_t inside = c->loops ? c->first : mix->nnative && mix->native[0] == NPS_MIX_NATIVE;

	while (c->loops && inside && mix->native[inside - 1] == NPS_MIX_CALL)
		inside--;
	for (size_t i = 0; i < inside; i++)
		out[o.n++] = (uint16_t)i;
	put_python(mix, &o, true);
	*left_out = true;
	return o.n;
}

/* The end of the run of the interpreter's functions that begins at I. */
static size_t mix_run_end(const struct nps_mix *mix, size_t i)
{
	while (i < mix->nnative && mix->native[i] != NPS_MIX_NATIVE)
		i++;
	return i;
}

/* Native frames I up to END, which are the interpreter's, *LOOP loops after the innermost one. */
static void put_run(const struct nps_mix *mix, const struct mix_counts *c, struct mix_out *o, size_t i,
		    size_t end, size_t *loop)
{
	size_t seen = *loop;
	bool replaced = false;

	for (size_t j = i; j < end; j++) {
		if (mix->native[j] != NPS_MIX_LOOP)
			continue;
		replaced |= seen >= c->unlinked && seen - c->unlinked < c->entries;
		seen++;
	}
	for (; i < end; i++) {
		if (mix->native[i] == NPS_MIX_CALL) {
			if (!replaced)
				o->out[o->n++] = (uint16_t)i;
			continue;
		}
		if (*loop >= c->unlinked && o->python < mix->npython)
			put_python(mix, o, false);
		else
			o->out[o->n++] = (uint16_t)i;
		++*loop;
	}
}

size_t nps_mix__frames(const struct nps_mix *mix, uint16_t *out, bool *left_out)
{
	struct mix_out o = { .out = out };
	struct mix_counts c;
	size_t loop = 0;

	*left_out = false;
	mix_count(mix, &c);
	if (!mix_align(mix, &c))
		return mix_apart(mix, &c, out, left_out);
	for (size_t i = 0; i < mix->nnative;) {
		size_t end = mix_run_end(mix, i);

		put_run(mix, &c, &o, i, end, &loop);
		for (i = end; i < mix->nnative && mix->native[i] == NPS_MIX_NATIVE; i++)
			o.out[o.n++] = (uint16_t)i;
	}
	put_python(mix, &o, true);
	return o.n;
}
