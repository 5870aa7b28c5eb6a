/* SPDX-License-Identifier: BSD-2-Clause */
/* Layouts of CPython; what a process can make up: descriptions, structs that lead nowhere or in circles. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/python/python_find.h"
#include "attach/python/python_layout.h"
#include "attach/python/python_memory.h"
#include "attach/python/python_thread_id.h"
#include "attach/python/python_walk.h"

static void every_version_has_one(void **state)
{
	static const int machines[] = { EM_X86_64, EM_AARCH64 };

	(void)state;
	for (int i = 0; i < 2; i++)
		for (uint16_t version = 0x0308; version <= 0x030f; version++) {
			const struct nps_py_layout *l = nps_python_layout__find(version, machines[i]);

			assert_non_null(l);
			assert_int_equal(l->version, version);
			assert_true(l->frame_previous + 8 <= NPS_PY_FRAME_BYTES);
			assert_true(l->frame_instruction + 8 <= NPS_PY_FRAME_BYTES);
			assert_int_equal(l->code_qualname == NPS_PY_NONE, version < 0x030b);
			assert_int_equal(l->thread_native_id == NPS_PY_NONE, version < 0x030b);
			assert_int_equal(l->runtime_tss_key == NPS_PY_NONE, version >= 0x030f);
		}
	assert_null(nps_python_layout__find(0x0307, EM_X86_64));
	assert_null(nps_python_layout__find(0x0310, EM_X86_64));
	assert_null(nps_python_layout__find(0x030b, EM_PPC64));
}

/* Offsets that were measured in running interpreters and disassembled ones. */
static void offsets_are_those_measured(void **state)
{
	const struct nps_py_layout *l = nps_python_layout__find(0x030b, EM_X86_64);

	(void)state;
	assert_int_equal(l->runtime_tss_key, 592);
	assert_int_equal(nps_python_layout__find(0x030b, EM_AARCH64)->runtime_tss_key, 608);
	assert_int_equal(nps_python_layout__find(0x0309, EM_X86_64)->runtime_tss_key, 584);
	assert_int_equal(nps_python_layout__find(0x0309, EM_AARCH64)->runtime_tss_key, 600);
	assert_int_equal(l->thread_frame, 56);
	assert_int_equal(l->cframe_frame, 8);
	assert_int_equal(l->frame_previous, 48);
	assert_int_equal(l->frame_code, 32);
	assert_int_equal(l->code_qualname, 128);
	assert_int_equal(l->code_first_instruction, 184);
	l = nps_python_layout__find(0x0309, EM_X86_64);
	assert_int_equal(l->frame_instruction, 104);
	assert_int_equal(nps_python_layout__find(0x030a, EM_X86_64)->frame_instruction, 96);
}

static void put_word(uint8_t *bytes, size_t at, uint64_t value)
{
	memcpy(bytes + at, &value, sizeof(value));
}

/* A description as 3.13 has it, with the offsets of that version's table. */
static void describe_313(uint8_t *bytes, const struct nps_py_layout *l)
{
	memset(bytes, 0, NPS_PY_DESCRIPTION);
	put_word(bytes, 0, 0x7970677562656478); /* xdebugpy */
	put_word(bytes, 8, 0x030d05f0);
	put_word(bytes, 40, l->runtime_interpreters);
	put_word(bytes, 64, l->interpreter_next);
	put_word(bytes, 72, l->interpreter_threads + 8);
	put_word(bytes, 184, l->thread_frame);
	put_word(bytes, 240, l->frame_code);
	put_word(bytes, 248, l->frame_instruction);
	put_word(bytes, 560, l->text_ascii);
}

static void described_offsets_replace_the_table(void **state)
{
	struct nps_py_layout l = *nps_python_layout__find(0x030d, EM_X86_64), before = l;
	uint8_t bytes[NPS_PY_DESCRIPTION];
	const char *why;

	(void)state;
	describe_313(bytes, &l);
	assert_int_equal(nps_python_layout__describe(&l, bytes, sizeof(bytes), &why), 0);
	assert_null(why);
	assert_int_equal(l.interpreter_threads, before.interpreter_threads + 8);
	assert_int_equal(l.thread_frame, before.thread_frame);
	assert_int_equal(l.runtime_tss_key, before.runtime_tss_key); /* it has none */
	assert_int_equal(l.text_compact, before.text_compact);
}

static void made_up_descriptions_are_refused(void **state)
{
	const struct nps_py_layout *table = nps_python_layout__find(0x030d, EM_X86_64);
	/* Where, and what. */
	static const uint64_t wrong[][2] = {
		{ 0, 0 }, /* the cookie */
		{ 8, 0x030e00f0 }, /* another version */
		{ 16, 1 }, /* free-threaded */
		{ 248, NPS_PY_FRAME_BYTES - 7 }, /* beyond what is read of a frame */
		{ 64, 1ULL << 40 },
		{ 184, UINT64_MAX },
		{ 560, 1 << 16 },
	};
	uint8_t bytes[NPS_PY_DESCRIPTION];
	const char *why;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct nps_py_layout l = *table;

		describe_313(bytes, table);
		put_word(bytes, wrong[i][0], wrong[i][1]);
		assert_int_equal(nps_python_layout__describe(&l, bytes, sizeof(bytes), &why), -ENOTSUP);
		assert_non_null(why);
		assert_memory_equal(&l, table, sizeof(l));
	}
	describe_313(bytes, table);
	for (size_t n = 0; n < 568; n++) {
		struct nps_py_layout l = *table;

		assert_int_equal(nps_python_layout__describe(&l, bytes, n, &why), -ENOTSUP);
	}
}

/* Structs as 3.11 has them, in this process's memory. */
static struct {
	uint64_t runtime[16], interpreter[16], thread[32], cframe[4], frame[16], code[32];
	uint64_t text[16], table[8];
} made_up;

static uint64_t address_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static struct nps_py_process make_up(void)
{
	struct nps_py_process p = { .runtime = address_of(made_up.runtime),
				    .layout = *nps_python_layout__find(0x030b, EM_X86_64) };

	memset(&made_up, 0, sizeof(made_up));
	made_up.runtime[40 / 8] = address_of(made_up.interpreter);
	made_up.interpreter[16 / 8] = address_of(made_up.thread);
	made_up.thread[160 / 8] = 77;
	made_up.thread[56 / 8] = address_of(made_up.cframe);
	made_up.cframe[8 / 8] = address_of(made_up.frame);
	made_up.frame[32 / 8] = address_of(made_up.code);
	made_up.frame[56 / 8] = address_of(made_up.code) + 184 + 6;
	made_up.code[112 / 8] = address_of(made_up.text);
	made_up.code[128 / 8] = address_of(made_up.text);
	made_up.code[72 / 8] = 5;
	made_up.code[136 / 8] = address_of(made_up.table);
	made_up.text[16 / 8] = 3;
	made_up.text[32 / 8] = 1 << 2 | 1 << 5 | 1 << 6;
	memcpy(&made_up.text[48 / 8], "abc", 3);
	return p;
}

static int count_thread(const struct nps_py_thread *thread, void *arg)
{
	(void)thread;
	++*(unsigned int *)arg;
	return 0;
}

static void lists_in_circles_end(void **state)
{
	struct nps_py_process p = make_up();
	struct nps_py_memory m = { .pid = getpid(), .reads = 1 << 24 };
	unsigned int n = 0;

	(void)state;
	made_up.interpreter[0] = address_of(made_up.interpreter);
	assert_int_equal(nps_python__each_thread(&m, &p, count_thread, &n), 0);
	assert_int_equal(n, 64);
	made_up.thread[1] = address_of(made_up.thread);
	n = 0;
	assert_int_equal(nps_python__each_thread(&m, &p, count_thread, &n), 0);
	assert_int_equal(n, 16384);
	m.reads = 100;
	n = 0;
	assert_int_equal(nps_python__each_thread(&m, &p, count_thread, &n), 0);
	assert_true(n <= 50);
	assert_int_equal(m.reads, 0);
}

static void stacks_in_circles_end(void **state)
{
	struct nps_py_process p = make_up();
	struct nps_py_frame *frames = calloc(1000, sizeof(*frames));
	static uint64_t file[16];

	(void)state;
	assert_non_null(frames);
	memcpy(file, made_up.text, sizeof(file));
	made_up.code[112 / 8] = address_of(file);
	assert_int_equal(nps_python__walk(getpid(), &p, 77, frames, 1000), 1);
	assert_string_equal(frames[0].name, "abc");
	assert_int_equal(frames[0].at, 6);
	assert_int_equal(frames[0].first_line, 5);
	made_up.frame[48 / 8] = address_of(made_up.frame);
	assert_int_equal(nps_python__walk(getpid(), &p, 77, frames, 1000), 1000);
	/* Only frames that are not shown. */
	made_up.code[112 / 8] = made_up.code[128 / 8];
	assert_int_equal(nps_python__walk(getpid(), &p, 77, frames, 1000), -EFAULT);
	made_up.frame[48 / 8] = 0x1000; /* not mapped */
	assert_int_equal(nps_python__walk(getpid(), &p, 77, frames, 1000), -EFAULT);
	assert_int_equal(nps_python__walk(getpid(), &p, 78, frames, 1000), -ENOENT);
	free(frames);
}

/* Words that are numbers, or addresses of each other: the walk ends, and stays in its arrays. */
static void random_structs_end(void **state)
{
	static const uint16_t versions[] = { 0x0308, 0x030a, 0x030b, 0x030c, 0x030d, 0x030f };
	struct nps_py_process p = make_up();
	uint64_t *words = (uint64_t *)&made_up;
	size_t n = sizeof(made_up) / sizeof(*words);
	struct nps_py_frame *frames = calloc(20, sizeof(*frames));
	uint8_t table[64];

	(void)state;
	assert_non_null(frames);
	srand(1);
	for (int round = 0; round < 150; round++) {
		int found;

		p.layout = *nps_python_layout__find(versions[round % 6], EM_X86_64);
		p.runtime = address_of(words) - p.layout.runtime_interpreters;
		for (size_t i = 0; i < n; i++)
			words[i] = rand() % 4 ? address_of(words + (size_t)rand() % n)
					      : (uint64_t)rand() % 128;
		/* Offsets of an interpreter of 3.13 are far beyond these words. */
		p.layout.interpreter_threads %= sizeof(made_up) / 2;
		p.layout.interpreter_next %= sizeof(made_up) / 2;
		found = nps_python__walk(getpid(), &p, rand() % 128, frames, 20);
		assert_true(found >= -EFAULT && found <= 20);
		for (int i = 0; i < found; i++) {
			assert_true(strlen(frames[i].name) < sizeof(frames[i].name));
			assert_true(nps_python__line_table(getpid(), &p, &frames[i], table, sizeof(table)) <=
				    64);
		}
	}
	free(frames);
}

static void texts_of_each_width(void **state)
{
	const struct nps_py_layout *l = nps_python_layout__find(0x030b, EM_X86_64);
	struct nps_py_memory m = { .pid = getpid(), .reads = 1000 };
	uint64_t *text = made_up.text;
	static const uint16_t two[] = { 0x540d, 0x524d, 'x', 0xd800 };
	static const uint32_t four[] = { 0x10348, 0x7fffffff, 'y' };
	char buf[32];

	(void)state;
	make_up();
	text[2] = 4;
	text[4] = 1 << 2 | 1 << 5; /* latin-1 */
	memcpy(&text[72 / 8], "gr\xf6\xdf", 4);
	assert_true(nps_py_memory__text(&m, l, address_of(text), buf, sizeof(buf)));
	assert_string_equal(buf, "grö\xc3\x9f");
	assert_true(nps_py_memory__text(&m, l, address_of(text), buf, 4));
	assert_string_equal(buf, "gr"); /* cut before a character */
	text[4] = 2 << 2 | 1 << 5;
	memcpy(&text[72 / 8], two, sizeof(two));
	assert_true(nps_py_memory__text(&m, l, address_of(text), buf, sizeof(buf)));
	assert_string_equal(buf, "名前x\xef\xbf\xbd"); /* half of a surrogate pair is no character */
	text[2] = 3;
	text[4] = 4 << 2 | 1 << 5;
	memcpy(&text[72 / 8], four, sizeof(four));
	assert_true(nps_py_memory__text(&m, l, address_of(text), buf, sizeof(buf)));
	assert_string_equal(buf, "𐍈\xef\xbf\xbdy");
	text[4] = 3 << 2 | 1 << 5; /* no such width */
	assert_false(nps_py_memory__text(&m, l, address_of(text), buf, sizeof(buf)));
	text[4] = 1 << 2; /* not compact */
	assert_false(nps_py_memory__text(&m, l, address_of(text), buf, sizeof(buf)));
	text[4] = 1 << 2 | 1 << 5;
	text[2] = UINT64_MAX;
	assert_false(nps_py_memory__text(&m, l, address_of(text), buf, sizeof(buf)));
}

/* pthread_getspecific() of glibc 2.31, 2.36, 2.41 and 2.43 as Debian has them, and what it refers to. */
static void values_of_keys_on_arm64(void **state)
{
	static const uint32_t code[][16] = {
		{ 0x2a0003e1, 0x71007c1f, 0x54000248, 0xd53bd040, 0x11004422, 0xd11c0000, 0x8b021002,
		  0xf9400440, 0xb4000100, 0xd37c7c21, 0xb00000e3, 0x910c4063, 0xf9400044, 0xf8616861,
		  0xeb04003f, 0x54000041 },
		{ 0x2a0003e1, 0x71007c1f, 0x54000248, 0xd37c7c20, 0xd53bd042, 0xd118c000, 0x8b000042,
		  0xf9400440, 0xb4000140, 0xd37c7c21, 0xf00008e3, 0x911f6063, 0xf9400044, 0xf8616861,
		  0xeb04003f, 0x54000041 },
		{ 0xd503245f, 0x2a0003e1, 0x71007c1f, 0x54000248, 0x9280c1e0, 0xd53bd042, 0x8b215000,
		  0x8b000042, 0xf9400440, 0xb4000140, 0xd37c7c21, 0xf0000943, 0x91188063, 0xf9400044,
		  0xf8616861, 0xeb04003f },
		{ 0xd503245f, 0x71007c1f, 0x54000288, 0xd37c7c01, 0xd53bd042, 0xd1184021, 0x8b010042,
		  0xf9400444, 0xb4000164, 0xd37c7c01, 0xf0000923, 0x9116a063, 0xf9400040, 0xf8616861,
		  0xeb00003f, 0x54000061 },
	};
	static const int32_t values[] = { -0x5f0 + 8, -0x630 + 8, -0x610 + 8, -0x610 + 8 };
	uint32_t other[16];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(nps_python__arm64_values(code[i], 16), values[i]);
	memcpy(other, code[0], sizeof(other));
	other[3] = 0xd503201f; /* without the thread pointer */
	assert_int_equal(nps_python__arm64_values(other, 16), 0);
	assert_int_equal(nps_python__arm64_values(code[0], 5), 0);
	assert_int_equal(nps_python__arm64_values(code[0], 0), 0);
	memset(other, 0, sizeof(other));
	assert_int_equal(nps_python__arm64_values(other, 16), 0);
}

static void a_process_without_python(void **state)
{
	struct nps_py_process p;
	const char *why = "";

	(void)state;
	assert_int_equal(nps_python__find(getpid(), NULL, &p, &why), -ENOENT);
	assert_null(why);
	assert_int_equal(nps_python__find(0x7ffffff0, NULL, &p, &why), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_version_has_one),
		cmocka_unit_test(offsets_are_those_measured),
		cmocka_unit_test(described_offsets_replace_the_table),
		cmocka_unit_test(made_up_descriptions_are_refused),
		cmocka_unit_test(lists_in_circles_end),
		cmocka_unit_test(stacks_in_circles_end),
		cmocka_unit_test(random_structs_end),
		cmocka_unit_test(texts_of_each_width),
		cmocka_unit_test(values_of_keys_on_arm64),
		cmocka_unit_test(a_process_without_python),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
