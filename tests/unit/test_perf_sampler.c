/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of the kernel's sampler, whole and cut anywhere; and names of kernel addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sources/stacks/kallsyms.h"
#include "sources/stacks/perf_sampler.h"

struct got {
	int samples, maps, forks, execs;
	uint64_t lost, sum, time;
	struct nps_perf_sample sample;
	uint32_t parent, child, map_id;
	char path[64];
};

static void on_sample(void *ctx, const struct nps_perf_sample *s)
{
	struct got *g = ctx;

	g->samples++;
	g->sample = *s;
	g->sum = 0;
	for (uint64_t i = 0; i < s->n_chain; i++)
		g->sum += s->chain[i];
	for (uint32_t i = 0; i < s->n_stack; i++)
		g->sum += s->stack[i];
}

static void on_map(void *ctx, const struct nps_perf_map *m)
{
	struct got *g = ctx;

	g->maps++;
	g->time = m->time;
	g->map_id = m->build_id_len;
	snprintf(g->path, sizeof(g->path), "%s", m->path);
}

static void on_fork(void *ctx, uint32_t parent, uint32_t child, uint64_t time)
{
	struct got *g = ctx;

	g->forks++;
	g->parent = parent;
	g->child = child;
	g->time = time;
}

static void on_exec(void *ctx, uint32_t pid, uint64_t time)
{
	struct got *g = ctx;

	g->execs++;
	g->child = pid;
	g->time = time;
}

static void on_lost(void *ctx, uint64_t n)
{
	((struct got *)ctx)->lost += n;
}

/* Parsed from a block of its very size, so that a byte read behind it is seen. */
static struct got parse(const void *record, size_t size)
{
	struct got g = { 0 };
	const struct nps_perf_sink sink = { .sample = on_sample,
					    .map = on_map,
					    .fork = on_fork,
					    .exec = on_exec,
					    .lost = on_lost,
					    .ctx = &g };
	void *exact = malloc(size);

	assert_non_null(exact);
	memcpy(exact, record, size);
	nps_perf_sampler__parse(exact, size, &sink);
	free(exact);
	return g;
}

struct record {
	_Alignas(8) uint8_t bytes[4096];
	size_t size;
};

static void word(struct record *r, uint64_t v)
{
	memcpy(r->bytes + r->size, &v, sizeof(v));
	r->size += sizeof(v);
}

static void begin(struct record *r, uint32_t type, uint16_t misc)
{
	struct perf_event_header h = { .type = type, .misc = misc };

	memset(r, 0, sizeof(*r));
	memcpy(r->bytes, &h, sizeof(h));
	r->size = sizeof(h);
}

static void finish(struct record *r)
{
	((struct perf_event_header *)(void *)r->bytes)->size = (uint16_t)r->size;
}

static void ids(struct record *r)
{
	word(r, 5ULL | 6ULL << 32);
	word(r, 777);
	word(r, 1);
	finish(r);
}

#if defined(__x86_64__)
#define REGS 17
#define PERF_SP 7
#define DWARF_SP 7
#else
#define REGS 33
#define PERF_SP 31
#define DWARF_SP 31
#endif

static void full_sample(struct record *r)
{
	begin(r, PERF_RECORD_SAMPLE, 0);
	ids(r);
	word(r, 4);
	word(r, PERF_CONTEXT_KERNEL);
	word(r, 100);
	word(r, PERF_CONTEXT_USER);
	word(r, 200);
	word(r, PERF_SAMPLE_REGS_ABI_64);
	for (uint64_t i = 0; i < REGS; i++)
		word(r, 1000 + i);
	word(r, 16);
	word(r, 0x0101010101010101);
	word(r, 0);
	word(r, 8);
	finish(r);
}

static void samples(void **state)
{
	struct record r;
	struct got g;

	(void)state;
	full_sample(&r);
	g = parse(r.bytes, r.size);
	assert_int_equal(g.samples, 1);
	assert_int_equal(g.sample.pid, 5);
	assert_int_equal(g.sample.tid, 6);
	assert_int_equal(g.sample.time, 777);
	assert_int_equal(g.sample.cpu, 1);
	assert_int_equal(g.sample.n_chain, 4);
	assert_int_equal(g.sample.n_regs, REGS);
	assert_int_equal(g.sample.regs[DWARF_SP], 1000 + PERF_SP);
	assert_int_equal(g.sample.n_stack, 8);
	for (size_t size = sizeof(struct perf_event_header); size < r.size; size++)
		assert_true(parse(r.bytes, size).samples <= 1);
	/* a chain longer than the record */
	memset(r.bytes + sizeof(struct perf_event_header) + 24, 0xff, 8);
	assert_int_equal(parse(r.bytes, r.size).samples, 0);
}

static void a_stack_without_bounds(void **state)
{
	struct record r;

	(void)state;
	full_sample(&r);
	memset(r.bytes + r.size - 32, 0xff, 8); /* its size */
	assert_int_equal(parse(r.bytes, r.size).sample.n_stack, 0);
	full_sample(&r);
	memset(r.bytes + r.size - 8, 0xff, 8); /* how much of it is used */
	assert_int_equal(parse(r.bytes, r.size).sample.n_stack, 16);
}

static void map_record(struct record *r, uint32_t prot, const char *path, size_t len)
{
	begin(r, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
	word(r, 5);
	word(r, 0x1000);
	word(r, 0x2000);
	word(r, 0);
	r->bytes[r->size] = 20; /* of the build-id */
	r->size += 24;
	word(r, prot);
	memcpy(r->bytes + r->size, path, len);
	r->size += (len + 7) & ~7UL;
	ids(r);
}

static void records_of_other_kinds(void **state)
{
	struct record r;
	struct got g;

	(void)state;
	map_record(&r, 5, "/lib/libx.so", 13);
	g = parse(r.bytes, r.size);
	assert_int_equal(g.maps, 1);
	assert_string_equal(g.path, "/lib/libx.so");
	assert_int_equal(g.map_id, 20);
	assert_int_equal(g.time, 777);
	for (size_t size = sizeof(struct perf_event_header); size < r.size; size++)
		parse(r.bytes, size);
	map_record(&r, 3, "/lib/libx.so", 13); /* data */
	assert_int_equal(parse(r.bytes, r.size).maps, 0);
	map_record(&r, 5, "/lib/lib", 8); /* no end of the text */
	assert_int_equal(parse(r.bytes, r.size).maps, 0);
	begin(&r, PERF_RECORD_FORK, 0);
	word(&r, 9ULL | 5ULL << 32);
	word(&r, 9ULL | 5ULL << 32);
	word(&r, 1);
	ids(&r);
	g = parse(r.bytes, r.size);
	assert_int_equal(g.forks, 1);
	assert_int_equal(g.parent, 5);
	assert_int_equal(g.child, 9);
	begin(&r, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	word(&r, 5);
	word(&r, 0x41);
	ids(&r);
	assert_int_equal(parse(r.bytes, r.size).execs, 1);
	begin(&r, PERF_RECORD_LOST, 0);
	word(&r, 0);
	word(&r, 42);
	ids(&r);
	assert_int_equal(parse(r.bytes, r.size).lost, 42);
}

/* --- /proc/kallsyms ------------------------------------------------------------------------------------- */

static void kernel_names(void **state)
{
	static char text[] =
		"ffffffff81000100 T beta\nffffffff81000000 T alpha\nffffffffc0000010 t gamma\t[mod]\n"
		"ffffffff81000180 d no_code\nnonsense\nffffffff81000150 t\n0000000000000000 T hidden\n";
	struct nps_ksym v[] = { { .address = 0xffffffff80ffffff }, { .address = 0xffffffff81000000 },
				{ .address = 0xffffffff810000ff }, { .address = 0xffffffff81000100 },
				{ .address = 0xffffffff81000190 }, { .address = 0xffffffffb0000000 },
				{ .address = 0xffffffffc0000020 } };
	static const char *const want[] = { "", "alpha", "alpha", "beta", "beta", "", "gamma [mod]" };
	FILE *f = fmemopen(text, strlen(text), "r");

	(void)state;
	assert_non_null(f);
	assert_int_equal(nps_kallsyms__name(f, v, 7), 0);
	for (int i = 0; i < 7; i++)
		assert_string_equal(v[i].name, want[i]);
	assert_int_equal(nps_kallsyms__name(f, v, 0), 0);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples),
		cmocka_unit_test(a_stack_without_bounds),
		cmocka_unit_test(records_of_other_kinds),
		cmocka_unit_test(kernel_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
