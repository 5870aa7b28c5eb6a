/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks of a session become rows: deep ones whole, damaged ones counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "gen_session.h"
#include "import/session/import_stacks.h"
#include "stack.h"

#define PID 7
#define FRAMES 60
#define BASE 0xffff0000ULL

struct fixture {
	char *dir;
	int dirfd;
	struct nps_session rec;
	struct nps_model model;
	FILE *file;
	uint64_t seq;
};

static void chunk(struct fixture *f, unsigned int type, const void *payload, size_t len)
{
	struct nps_chunk head = { .magic = NPS_CHUNK_MAGIC,
				  .version = NPS_SESSION_VERSION,
				  .type = type,
				  .seq = f->seq++,
				  .len = len,
				  .crc = crc32(crc32(0, NULL, 0), payload, len) };

	assert_int_equal(fwrite(&head, sizeof(head), 1, f->file), 1);
	assert_int_equal(fwrite(payload, 1, len, f->file), len);
}

static int begin(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[600];

	assert_non_null(f);
	*state = f;
	f->dir = gen_temp_dir();
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	nps_session__init(&f->rec, f->dirfd, f->dirfd);
	f->rec.begin = f->rec.begin_real = GEN_T0;
	f->rec.end = GEN_T0 + 1000000;
	f->rec.json = cJSON_Parse("{}");
	nps_session__proc(&f->rec, PID)->comm = nps_strings__addz(&f->rec.strings, "job");
	snprintf(path, sizeof(path), "%s/stacks.nps", f->dir);
	f->file = fopen(path, "we");
	assert_non_null(f->file);
	return nps_model__init(&f->model, f->dirfd, &f->rec.strings);
}

static int end(void **state)
{
	struct fixture *f = *state;

	nps_model__free(&f->model);
	nps_session__free(&f->rec);
	close(f->dirfd);
	gen_remove(f->dir);
	free(f);
	return 0;
}

/* Names as long as those of templates; which differ at their ends. */
static void write_symbols(struct fixture *f)
{
	struct nps_ksym syms[FRAMES] = { 0 };

	for (int i = 0; i < FRAMES; i++) {
		syms[i].address = BASE + i;
		memset(syms[i].name, 'x', 100);
		snprintf(syms[i].name + 100, 16, "_%d", i);
	}
	chunk(f, NPS_CHUNK_KSYMS, syms, sizeof(syms));
}

/* A stack of N frames whose innermost is LEAF. */
static void write_stack(struct fixture *f, unsigned int n, unsigned int leaf)
{
	struct {
		struct nps_stack head;
		uint64_t frames[FRAMES];
	} s = { .head = { .size = sizeof(s.head) + n * sizeof(uint64_t),
			  .kind = NPS_STACK_ONCPU,
			  .pid = PID,
			  .tid = PID,
			  .n_kernel = n,
			  .time = GEN_T0 + 5,
			  .weight = 1 } };

	s.frames[0] = BASE + leaf;
	for (unsigned int i = 1; i < n; i++)
		s.frames[i] = BASE + i;
	chunk(f, NPS_CHUNK_STACKS, &s, s.head.size);
}

static void import(struct fixture *f)
{
	fclose(f->file);
	assert_int_equal(nps_import__stacks(&f->model, &f->rec, 0), 0);
}

/* Frames of a row; *LEAF: whether its innermost one is number I. */
static unsigned int frames_of(struct fixture *f, size_t row, unsigned int i, bool *leaf)
{
	const char *text = nps_model__text(&f->model, f->model.stack.frames[row]);
	unsigned int n = 1;
	char ending[32];
	size_t len;

	for (const char *c = text; *c; c++)
		n += *c == ';';
	len = snprintf(ending, sizeof(ending), "x_%u_[k]", i);
	*leaf = strlen(text) > len && !strcmp(text + strlen(text) - len, ending);
	return n;
}

/* Two that differ at their ends only are two, and neither is cut. */
static void deep_stacks_are_whole(void **state)
{
	struct fixture *f = *state;
	bool leaf;

	write_symbols(f);
	write_stack(f, FRAMES, 0);
	write_stack(f, FRAMES, 59);
	write_stack(f, FRAMES, 0);
	import(f);
	assert_int_equal(f->model.stack.t.len, 3);
	assert_int_equal(frames_of(f, 0, 0, &leaf), FRAMES);
	assert_true(leaf);
	assert_int_equal(frames_of(f, 1, 59, &leaf), FRAMES);
	assert_true(leaf);
	assert_int_equal(f->model.stack.frames[0], f->model.stack.frames[2]);
}

static void damage_is_counted(void **state)
{
	struct fixture *f = *state;
	struct nps_stack s = {
		.size = sizeof(s), .kind = NPS_STACK_ONCPU, .pid = PID, .time = GEN_T0, .n_kernel = 9
	};

	chunk(f, NPS_CHUNK_STACKS, &s, sizeof(s)); /* frames that are not there */
	s.n_kernel = 0;
	s.kind = 77;
	chunk(f, NPS_CHUNK_STACKS, &s, sizeof(s));
	s.kind = NPS_STACK_OFFCPU;
	s.weight = UINT64_MAX;
	chunk(f, NPS_CHUNK_STACKS, &s, sizeof(s));
	s.weight = 1;
	s.size = 12;
	chunk(f, NPS_CHUNK_STACKS, &s, sizeof(s));
	s.size = sizeof(s);
	chunk(f, NPS_CHUNK_STACKS, &s, sizeof(s));
	import(f);
	assert_int_equal(f->model.stack.t.len, 1);
	assert_int_equal(f->model.losses.len, 1);
	assert_int_equal(NPS_AT(&f->model.losses, struct nps_lost, 0).count, 4);
}

/* --- user frames ---------------------------------------------------------------------------------------- */

#define CODE 0x400000ULL /* of a file that is not there */
#define PAGE 0x7000000ULL /* of the probes; returns that are probed lead to its beginning */

static void write_map(struct fixture *f, uint64_t start, const char *path)
{
	struct {
		struct nps_map_record head;
		char path[32];
	} m = { .head = { .size = sizeof(m),
			  .what = NPS_MAP_CODE,
			  .pid = PID,
			  .time = GEN_T0,
			  .start = start,
			  .end = start + 4096 } };

	snprintf(m.path, sizeof(m.path), "%s", path);
	chunk(f, NPS_CHUNK_MAPS, &m, sizeof(m));
}

#define MOST 4

struct user_stack {
	struct nps_stack head;
	uint64_t words[4 * MOST + 33];
	size_t n;
};

static void word(struct user_stack *s, uint64_t v)
{
	s->words[s->n++] = v;
}

static struct user_stack user_stack(unsigned int n_user, unsigned int n_returns)
{
	return (struct user_stack){ .head = { .kind = NPS_STACK_ONCPU,
					      .pid = PID,
					      .tid = PID,
					      .n_user = n_user,
					      .n_returns = n_returns,
					      .time = GEN_T0 + 5,
					      .weight = 1 } };
}

static void finish(struct fixture *f, struct user_stack *s)
{
	s->head.size = sizeof(s->head) + s->n * sizeof(uint64_t);
	chunk(f, NPS_CHUNK_STACKS, s, s->head.size);
}

static void expect_frames(struct fixture *f, size_t row, const char *want)
{
	assert_string_equal(nps_model__text(&f->model, f->model.stack.frames[row]), want);
}

/*
 * What the kernel's frame pointers give where it does not record the registers:
 * the trampoline instead of two callers.
 */
static void write_chain(struct fixture *f, unsigned int returns)
{
	struct user_stack s = user_stack(4, returns);

	word(&s, CODE + 1);
	word(&s, PAGE);
	word(&s, CODE + 3);
	word(&s, PAGE);
	for (unsigned int i = 0; i < returns; i++) {
		word(&s, 0x9000 + 16 * i);
		word(&s, CODE + 0x10 * (i + 1));
	}
	finish(f, &s);
}

static void chains_are_mended_if_it_is_sure(void **state)
{
	struct fixture *f = *state;

	write_map(f, CODE, "/no/job");
	write_map(f, PAGE, "[uprobes]");
	write_chain(f, 0);
	write_chain(f, 2);
	write_chain(f, 3); /* frame pointers have skipped one of them: which? */
	import(f);
	expect_frames(f, 0, "[job+0x1]");
	expect_frames(f, 1, "[job+0x1f];[job+0x2];[job+0xf];[job+0x1]");
	expect_frames(f, 2, "[job+0x1]");
	assert_int_equal(f->model.losses.len, 0);
	assert_int_equal(f->model.stacks, 3);
	assert_int_equal(f->model.whole_stacks, 0);
}

/*
 * With registers and a copy of the stack, of code without tables: frames by stack pointer. The chain ends
 * with 0, as at a thread's beginning.
 */
static void write_copy(struct fixture *f, unsigned int returns, uint64_t last)
{
	const uint64_t sp = 0x9000;
	struct user_stack s = user_stack(1, returns);

	s.head.n_regs = 17;
	s.head.n_bytes = 4 * 8 - 4; /* zeros follow */
	s.words[1 + 6] = s.words[1 + 7] = sp;
	s.words[1 + 16] = CODE + 1;
	s.words[0] = CODE + 1;
	s.n = 18;
	word(&s, sp + 16);
	word(&s, PAGE);
	word(&s, 0);
	word(&s, last);
	if (returns) {
		word(&s, sp + 8);
		word(&s, CODE + 0x20);
	}
	finish(f, &s);
}

static void copies_are_repaired_by_address(void **state)
{
	struct fixture *f = *state;

	write_map(f, CODE, "/no/job");
	write_map(f, PAGE, "[uprobes]");
	write_copy(f, 0, 0);
	write_copy(f, 1, CODE + 5); /* its last half is not in the copy: not whole */
	write_copy(f, 1, 0);
	import(f);
	expect_frames(f, 0, "[job+0x1]");
	expect_frames(f, 1, "[job+0x1f];[job+0x1]");
	expect_frames(f, 2, "[job+0x1f];[job+0x1]");
	assert_int_equal(f->model.stacks, 3);
	assert_int_equal(f->model.whole_stacks, 0);
}

static void whole_ones_end_with_no_return_address(void **state)
{
	struct fixture *f = *state;
	struct user_stack s = user_stack(1, 0);

	write_map(f, CODE, "/no/job");
	s.head.n_regs = 17;
	s.head.n_bytes = 16;
	s.words[1 + 6] = s.words[1 + 7] = 0x9000;
	s.words[1 + 16] = s.words[0] = CODE + 1;
	s.n = 20; /* a frame without a caller */
	finish(f, &s);
	s.words[18] = 0x9010;
	s.words[19] = CODE + 2; /* the copy does not reach its caller */
	finish(f, &s);
	import(f);
	assert_int_equal(f->model.stacks, 2);
	assert_int_equal(f->model.whole_stacks, 1);
}

/* More returns than the record has room for. */
static void damaged_returns(void **state)
{
	struct fixture *f = *state;
	struct user_stack s = user_stack(1, 2);

	word(&s, CODE);
	word(&s, 0x9000);
	word(&s, CODE);
	finish(f, &s);
	import(f);
	assert_int_equal(f->model.stack.t.len, 0);
	assert_int_equal(NPS_AT(&f->model.losses, struct nps_lost, 0).count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(deep_stacks_are_whole, begin, end),
		cmocka_unit_test_setup_teardown(damage_is_counted, begin, end),
		cmocka_unit_test_setup_teardown(chains_are_mended_if_it_is_sure, begin, end),
		cmocka_unit_test_setup_teardown(copies_are_repaired_by_address, begin, end),
		cmocka_unit_test_setup_teardown(whole_ones_end_with_no_return_address, begin, end),
		cmocka_unit_test_setup_teardown(damaged_returns, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
