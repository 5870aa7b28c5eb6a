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
#include "session/import_stacks.h"
#include "stack.h"

#define PID 7
#define FRAMES 60
#define BASE 0xffff0000ULL

struct fixture {
	char *dir;
	int dirfd;
	struct nps_recording rec;
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
	nps_recording__init(&f->rec, f->dirfd, f->dirfd);
	f->rec.begin = f->rec.begin_real = GEN_T0;
	f->rec.end = GEN_T0 + 1000000;
	f->rec.json = cJSON_Parse("{}");
	nps_recording__proc(&f->rec, PID)->comm = nps_strings__addz(&f->rec.strings, "job");
	snprintf(path, sizeof(path), "%s/stacks.nps", f->dir);
	f->file = fopen(path, "we");
	assert_non_null(f->file);
	return nps_model__init(&f->model, f->dirfd, &f->rec.strings);
}

static int end(void **state)
{
	struct fixture *f = *state;

	nps_model__free(&f->model);
	nps_recording__free(&f->rec);
	close(f->dirfd);
	gen_remove(f->dir);
	free(f);
	return 0;
}

/* Names as long as those of templates; told apart at their ends. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(deep_stacks_are_whole, begin, end),
		cmocka_unit_test_setup_teardown(damage_is_counted, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
