/* SPDX-License-Identifier: BSD-2-Clause */
/* Native and Python frames in one stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stack/python_mix.h"

#define MOST 128

/*
 * NATIVE: a letter for each frame, outermost first: L a loop, c a call, any other a function. PYTHON: the
 * same, where capital letters are entries. WHOLE, CUT, LINKED: as in struct nps_mix. The result has native
 * frames as they are in NATIVE and Python frames as in PYTHON; it begins with `?` if frames were left out.
 */
static const char *mixed(const char *native, const char *python, bool whole, bool cut, int linked)
{
	static char text[2 * MOST];
	uint8_t classes[MOST];
	bool entries[MOST];
	uint16_t out[2 * MOST];
	struct nps_mix mix = { .native = classes,
			       .nnative = strlen(native),
			       .whole = whole,
			       .npython = strlen(python),
			       .entries = entries,
			       .cut = cut,
			       .linked = linked };
	bool left_out;
	size_t n, at = 0;

	for (size_t i = 0; i < mix.nnative; i++) {
		char c = native[mix.nnative - 1 - i];

		classes[i] = c == 'L' ? NPS_MIX_LOOP : c == 'c' ? NPS_MIX_CALL : NPS_MIX_NATIVE;
	}
	for (size_t i = 0; i < mix.npython; i++) {
		char c = python[mix.npython - 1 - i];

		entries[i] = c >= 'A' && c <= 'Z';
	}
	n = nps_mix__frames(&mix, out, &left_out);
	assert_true(n <= mix.nnative + mix.npython);
	if (left_out)
		text[at++] = '?';
	while (n--) {
		size_t i = out[n] & ~NPS_MIX_PYTHON;
		bool is_python = out[n] & NPS_MIX_PYTHON;

		assert_true(i < (is_python ? mix.npython : mix.nnative));
		text[at++] = is_python ? python[mix.npython - 1 - i] : native[mix.nnative - 1 - i];
	}
	text[at] = '\0';
	return text;
}

static void classes(void **state)
{
	(void)state;
	assert_int_equal(nps_mix__class("_PyEval_EvalFrameDefault"), NPS_MIX_LOOP);
	assert_int_equal(nps_mix__class("_PyEval_EvalFrameDefault.cold"), NPS_MIX_LOOP);
	assert_int_equal(nps_mix__class("_TAIL_CALL_LOAD_FAST"), NPS_MIX_LOOP);
	assert_int_equal(nps_mix__class("_PyFunction_Vectorcall"), NPS_MIX_CALL);
	assert_int_equal(nps_mix__class("_PyEval_Vector.constprop.0"), NPS_MIX_CALL);
	assert_int_equal(nps_mix__class("_PyEval_EvalFrameDefaults"), NPS_MIX_NATIVE);
	assert_int_equal(nps_mix__class("PyObject_Repr"), NPS_MIX_NATIVE);
	assert_int_equal(nps_mix__class(""), NPS_MIX_NATIVE);
}

/* Each loop becomes its Python frames, and what passes calls on disappears beside them. */
static void replaced(void **state)
{
	(void)state;
	assert_string_equal(mixed("mrcL", "Aab", true, false, -1), "mrAab");
	assert_string_equal(mixed("mrcLcsx", "Aab", true, false, -1), "mrAabsx");
	assert_string_equal(mixed("mrcLcsxcLcy", "AabBC", true, false, -1), "?AabBCy");
	assert_string_equal(mixed("mrcLcsxcLcy", "AabBc", true, false, -1), "mrAabsxBcy");
	/* C calls Python directly below Python: two loops in one run */
	assert_string_equal(mixed("mLccLk", "AaBb", true, false, -1), "mAaBbk");
	/* before 3.11 each frame has its loop */
	assert_string_equal(mixed("mLcLcLsLk", "ABCD", true, false, -1), "mABCsDk");
	/* without loops around, what passes calls on is C like any other */
	assert_string_equal(mixed("mLscck", "A", true, false, -1), "mAscck");
}

/* The innermost loop was entered, or left, and has no frame: it stays. */
static void unlinked(void **state)
{
	(void)state;
	assert_string_equal(mixed("mLcscL", "Aa", true, false, -1), "mAascL");
	assert_string_equal(mixed("mLcscLc", "Aa", true, false, -1), "mAascLc");
	/* but not if it calls C: then the numbers contradict each other */
	assert_string_equal(mixed("mLcscLk", "Aa", true, false, -1), "?Aak");
	assert_string_equal(mixed("mLcscL", "AaBCc", true, false, -1), "?AaBCc");
}

/* What is missing at the outer end does not move what is inside. */
static void cut(void **state)
{
	(void)state;
	assert_string_equal(mixed("scLk", "AaBb", false, false, 1), "AasBbk");
	assert_string_equal(mixed("scL", "AaBb", false, false, 1), "AasBb");
	assert_string_equal(mixed("LcscL", "AaBb", false, false, 0), "AaBbscL");
	assert_string_equal(mixed("L", "AaBb", false, false, 0), "AaBbL");
	/* nobody knows whether the innermost loop has a frame */
	assert_string_equal(mixed("LcscL", "AaBb", false, false, -1), "?AaBb");
	assert_string_equal(mixed("LcscLk", "AaBb", false, false, -1), "AasBbk");
	/* Python frames are cut: outer loops stay */
	assert_string_equal(mixed("mLcsLcsLk", "abBb", true, true, 1), "mLcsabsBbk");
	assert_string_equal(mixed("mLcsL", "ab", true, true, 1), "mLcsab");
}

/* Loops without names: only the function that runs is known to be inside. */
static void no_loops(void **state)
{
	(void)state;
	assert_string_equal(mixed("mrsk", "Aa", true, false, -1), "?Aak");
	assert_string_equal(mixed("", "Aa", true, false, -1), "?Aa");
	assert_string_equal(mixed("c", "Aa", false, false, 1), "?Aa");
}

/* Any two stacks: all Python frames once, in their order, and native frames in theirs. */
static void any(void **state)
{
	char native[MOST / 2], python[MOST / 2];

	(void)state;
	srand(1);
	for (int round = 0; round < 100000; round++) {
		size_t n = (size_t)rand() % 20, p = 1 + (size_t)rand() % 20, at = 0;
		const char *got, *rest = native;

		for (size_t i = 0; i < n; i++)
			native[i] = "Lcx"[rand() % 3];
		native[n] = '\0';
		for (size_t i = 0; i < p; i++)
			python[i] = "0Z"[rand() % 2];
		python[p] = '\0';
		got = mixed(native, python, rand() % 2, rand() % 2, rand() % 3 - 1);
		for (got += *got == '?'; *got; got++) {
			if (*got == '0' || *got == 'Z') {
				assert_int_equal(*got, python[at++]);
				continue;
			}
			rest = strchr(rest, *got);
			assert_non_null(rest++);
		}
		assert_int_equal(at, p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes), cmocka_unit_test(replaced), cmocka_unit_test(unlinked),
		cmocka_unit_test(cut),	   cmocka_unit_test(no_loops), cmocka_unit_test(any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
