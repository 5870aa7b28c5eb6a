/* SPDX-License-Identifier: BSD-2-Clause */
/* The decoder of task-log records: each format with values put in by hand, and with bytes that mean harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "import/cann/breaks.h"
#include "import/cann/log_records.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint8_t p[256];

static void put(size_t at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		p[at + i] = (uint8_t)(value >> 8 * i);
}

static struct nps_log_record decode(const char *file)
{
	struct nps_log_record r;

	nps_log__decode(nps_log_format(file), p, &r);
	return r;
}

static int clear(void **state)
{
	(void)state;
	memset(p, 0, sizeof(p));
	return 0;
}

/* A record: its bytes, and what they mean. */
struct sample {
	const char *what, *file;
	struct {
		uint16_t at;
		uint8_t bytes;
		uint64_t value;
	} puts[10];
	struct nps_log_record record;
};

#define STARS(function, sequence, type)                                                                      \
	{ 0, 2, (function) | (sequence) << 6 | (type) << 10 },                                               \
	{                                                                                                    \
		2, 2, 0x6bd3                                                                                 \
	}
#define TRACK(tag)                                                                                           \
	{ 1, 1, tag }, { 2, 2, 40 }, { 8, 8, 99 },                                                           \
	{                                                                                                    \
		16, 2, 3                                                                                     \
	}
#define NONE .context = NPS_NO_CONTEXT, .sequence = NPS_NO_SEQUENCE

static const struct sample samples[] = {
	{ "a task starts",
	  "stars_soc.data",
	  { STARS(0, 7, 11),
	    { 4, 2, 0x1234 },
	    { 6, 2, 0x4321 },
	    { 8, 8, 0x1122334455667788 },
	    { 18, 2, 5 },
	    { 22, 2, 5 } },
	  { .kind = NPS_LOG_START,
	    .count = 0x1122334455667788,
	    .stream = 0x1234,
	    .task = 0x4321,
	    .context = NPS_NO_CONTEXT,
	    .source = NPS_RUN_STARS,
	    .type = 11,
	    .sequence = 7,
	    .mangled = true } },
	{ "a thread of a sub-task ends",
	  "stars_soc.data",
	  { STARS(0x23, 15, 0),
	    { 4, 2, 2 },
	    { 6, 2, 3 },
	    { 8, 8, 77 },
	    { 16, 1, 6 },
	    { 18, 2, 9 },
	    { 20, 2, 4 << 13 },
	    { 22, 2, 513 } },
	  { .kind = NPS_LOG_END,
	    .count = 77,
	    .stream = 2,
	    .task = 3,
	    .context = 9,
	    .thread = 513,
	    .source = NPS_RUN_CONTEXT,
	    .type = 6,
	    .sequence = 15,
	    .mangled = true } },
	{ "a block starts",
	  "stars_block.data",
	  { STARS(0x24, 4, 0),
	    { 4, 2, 2 },
	    { 6, 2, 3 },
	    { 8, 8, 77 },
	    { 17, 1, 3 },
	    { 20, 1, 1 },
	    { 21, 1, 40 },
	    { 26, 2, 300 } },
	  { .kind = NPS_LOG_START,
	    .count = 77,
	    .stream = 2,
	    .task = 3,
	    .context = 300,
	    .value = 1,
	    .source = NPS_RUN_BLOCK,
	    .type = 40,
	    .sequence = 4,
	    .mangled = true } },
	{ "of no known kind",
	  "stars_soc.data",
	  { STARS(0x3f, 15, 63) },
	  { .kind = NPS_LOG_UNKNOWN, .context = NPS_NO_CONTEXT, .sequence = 15 } },
	{ "a task of an older chip ends",
	  "hwts.data",
	  { { 0, 1, 1 | 12 << 4 }, { 1, 1, 9 }, { 6, 2, 0xfffe }, { 8, 8, 77 }, { 16, 4, 0x10005 } },
	  { .kind = NPS_LOG_END,
	    .count = 77,
	    .stream = 0x10005,
	    .task = 0xfffe,
	    .context = NPS_NO_CONTEXT,
	    .source = NPS_RUN_HWTS,
	    .type = 9,
	    .sequence = 12 } },
	{ "neither start nor end",
	  "hwts.data",
	  { { 0, 1, 5 } },
	  { .kind = NPS_LOG_NOTHING, .context = NPS_NO_CONTEXT, .sequence = 0 } },
	{ "the scheduler started a task",
	  "ts_track.data",
	  { TRACK(0x0c), { 18, 2, 4 }, { 20, 2, 2 }, { 22, 1, 1 } },
	  { .kind = NPS_LOG_START,
	    .count = 99,
	    .stream = 3,
	    .task = 4,
	    .source = NPS_RUN_TRACK,
	    .type = 2,
	    NONE } },
	{ "it received one, which does not run yet",
	  "ts_track.data",
	  { TRACK(0x0c), { 18, 2, 4 }, { 20, 2, 2 }, { 22, 1, 0 } },
	  { .kind = NPS_LOG_NOTHING, .count = 99, .stream = 3, NONE } },
	{ "a copy ended",
	  "ts_track.data",
	  { TRACK(0x0b), { 18, 2, 4 }, { 20, 1, 2 } },
	  { .kind = NPS_LOG_END,
	    .count = 99,
	    .stream = 3,
	    .task = 4,
	    .source = NPS_RUN_TRACK,
	    .type = 5,
	    NONE } },
	{ "ids begin anew",
	  "ts_track.data",
	  { TRACK(0x0e), { 18, 2, 8 }, { 22, 2, 5 } },
	  { .kind = NPS_LOG_FLIP, .count = 99, .stream = 3, .task = 5, .value = 8, NONE } },
	{ "blocks of a task",
	  "ts_track.data",
	  { TRACK(0x0f), { 18, 2, 4 }, { 20, 4, 70000 } },
	  { .kind = NPS_LOG_BLOCKS, .count = 99, .stream = 3, .task = 4, .value = 70000, NONE } },
	{ "a step",
	  "ts_track.data",
	  { TRACK(0x0a), { 16, 8, 3 } },
	  { .kind = NPS_LOG_STEP, .count = 99, .stream = 3, NONE } },
	{ "counters of a task",
	  "ffts_profile.data",
	  { STARS(0x28, 3, 0), { 4, 2, 2 }, { 6, 2, 10 }, { 120, 8, 555 } },
	  { .kind = NPS_LOG_PMU,
	    .count = 555,
	    .stream = 2,
	    .task = 10,
	    .context = NPS_NO_CONTEXT,
	    .sequence = 3,
	    .mangled = true } },
};

static void records_are_decoded(void **state)
{
	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(samples); i++) {
		const struct sample *s = &samples[i];
		struct nps_log_record r;

		clear(NULL);
		for (size_t k = 0; k < NPS_ARRAY_SIZE(s->puts); k++)
			put(s->puts[k].at, s->puts[k].value, s->puts[k].bytes);
		r = decode(s->file);
		if (r.kind != s->record.kind || r.count != s->record.count || r.stream != s->record.stream ||
		    r.task != s->record.task || r.context != s->record.context ||
		    r.thread != s->record.thread || r.value != s->record.value ||
		    r.source != s->record.source || r.type != s->record.type ||
		    r.sequence != s->record.sequence || r.mangled != s->record.mangled)
			fail_msg("%s: %s: kind %u count %llu stream %u task %u context %u thread %u value %u "
				 "source %u type %u sequence %u mangled %d",
				 s->file, s->what, r.kind, (unsigned long long)r.count, r.stream, r.task,
				 r.context, r.thread, r.value, r.source, r.type, r.sequence, r.mangled);
	}
}

/* The last generation: ten values, cycles at another offset; what is not the master's is added to it. */
static void ten_counters(void **state)
{
	struct nps_counters c;
	struct nps_log_record r;
	uint32_t stream, task;

	(void)state;
	put(0, 0x2a | 5 << 6, 2);
	put(4, 0x1234, 2);
	put(6, 0x7, 2);
	put(8, 77000, 8);
	put(17, 3, 1);
	for (int i = 0; i < 10; i++)
		put(32 + 8 * i, 100 + i, 8);
	put(112, 500, 8);
	put(120, 555, 8);
	r = decode("ffts_profile.data");
	assert_int_equal(r.kind, NPS_LOG_PMU);
	assert_int_equal(r.count, 555);
	assert_int_equal(r.sequence, 5);
	nps_log__unmangle(NPS_IDS_WHOLE, &r, &stream, &task);
	assert_int_equal(task, 0x71234);
	assert_false(nps_log__is_block(p));
	assert_int_equal(nps_log__counters(p, &c), NPS_NO_CONTEXT);
	assert_int_equal(c.core, 0);
	assert_int_equal(c.block, 0);
	assert_int_equal(c.cycles, 77000);
	assert_int_equal(c.values[0], 100);
	assert_int_equal(c.values[9], 109);
	put(17, 2, 1);
	put(20, 1, 1);
	nps_log__counters(p, &c);
	assert_int_equal(c.core, 1);
	assert_int_equal(c.block, 1);
}

static void counters(void **state)
{
	struct nps_counters c;
	uint32_t stream, task;

	(void)state;
	put(0, 0x28 | 3 << 6, 2);
	put(4, 2, 2);
	put(6, 10, 2);
	put(16, 6, 1);
	put(18, 1, 2);
	put(20, 4 << 13, 2);
	put(32, 1000, 8);
	for (int i = 0; i < 8; i++)
		put(48 + 8 * i, 100 + i, 8);
	put(120, 555, 8);
	assert_int_equal(nps_log__counters(p, &c), 1);
	assert_int_equal(c.core, 0);
	assert_int_equal(c.block, 0);
	assert_int_equal(c.cycles, 1000);
	assert_int_equal(c.values[7], 107);
	put(0, 0x29, 2);
	put(20, 1, 1);
	put(21, 5 << 5, 1);
	nps_log__counters(p, &c);
	assert_int_equal(c.block, 1);
	assert_int_equal(c.core, 1);
	assert_true(nps_log__is_block(p));
	clear(NULL);
	put(6, 7, 2);
	put(16, 42, 8);
	put(32, 1, 8);
	put(96, 6, 4);
	nps_log__old_counters(p, &c, &stream, &task);
	assert_int_equal(c.cycles, 42);
	assert_int_equal(c.values[0], 1);
	assert_int_equal(stream, 6);
	assert_int_equal(task, 7);
}

/* What a chip does to ids, written once more: the inverse of what is tested. */
static void mangle(enum nps_ids ids, uint32_t stream, uint32_t task, unsigned int way,
		   struct nps_log_record *r)
{
	*r = (struct nps_log_record){ .stream = stream, .task = task, .mangled = true };
	if (ids == NPS_IDS_BITS && way == 1) {
		r->stream = stream | 0x1000 | (task & 0xe000);
		r->task = task & 0x1fff;
	} else if (ids == NPS_IDS_BITS && way == 2) {
		r->stream = 0x2000 | (task & 0xfff);
		r->task = (stream & 0xfff) | (task & 0xf000);
	} else if (ids == NPS_IDS_EXPANDED && way) {
		r->stream = 0x8000 | (task & 0x7fff);
		r->task = stream | (task & 0x8000);
	} else if (ids == NPS_IDS_WHOLE) {
		r->stream = task & 0xffff;
		r->task = task >> 16;
	}
}

static void ids_come_back(void **state)
{
	static const uint32_t streams[] = { 0, 1, 5, 1023, 2047 };
	struct nps_log_record r;
	uint32_t stream, task;

	(void)state;
	for (enum nps_ids ids = NPS_IDS_PLAIN; ids <= NPS_IDS_WHOLE; ids++)
		for (size_t s = 0; s < NPS_ARRAY_SIZE(streams); s++)
			for (uint32_t t = 0; t <= UINT16_MAX; t++)
				for (unsigned int way = 0; way < 3; way++) {
					mangle(ids, streams[s], t, way, &r);
					nps_log__unmangle(ids, &r, &stream, &task);
					assert_int_equal(task, t);
					assert_int_equal(stream, ids == NPS_IDS_WHOLE ? 0 : streams[s]);
				}
	r = (struct nps_log_record){ .stream = 0xffff, .task = 0xfedc, .mangled = true };
	nps_log__unmangle(NPS_IDS_WHOLE, &r, &stream, &task);
	assert_int_equal(task, 0xfedcffff);
	/* events and placeholders are never swapped */
	r = (struct nps_log_record){ .stream = 0x8005, .task = 7, .type = 4, .mangled = true };
	nps_log__unmangle(NPS_IDS_EXPANDED, &r, &stream, &task);
	assert_int_equal(stream, 5);
	assert_int_equal(task, 7);
}

static void gaps_are_counted(void **state)
{
	struct nps_sequence s = { .last = NPS_NO_SEQUENCE };

	(void)state;
	nps_sequence__next(&s, 14);
	nps_sequence__next(&s, 15);
	nps_sequence__next(&s, 0);
	assert_int_equal(s.gaps, 0);
	nps_sequence__next(&s, 4);
	assert_int_equal(s.gaps, 3);
	nps_sequence__next(&s, 4); /* a whole round, or none */
	assert_int_equal(s.gaps, 18);
	nps_sequence__next(&s, NPS_NO_SEQUENCE);
	nps_sequence__next(&s, 5);
	assert_int_equal(s.gaps, 18);
}

static void any_bytes_are_some_record(void **state)
{
	struct nps_log_record r;
	struct nps_counters c;
	uint32_t stream, task;

	(void)state;
	srand(1);
	for (int round = 0; round < 200000; round++) {
		for (size_t i = 0; i < sizeof(p); i++)
			p[i] = rand() & (round % 3 ? 0xff : 0x2f);
		for (const struct nps_log_format *f = nps_log_formats; f->file; f++) {
			nps_log__decode(f, p, &r);
			assert_true(r.kind <= NPS_LOG_STEP && r.sequence <= NPS_NO_SEQUENCE);
			for (enum nps_ids ids = NPS_IDS_PLAIN; ids <= NPS_IDS_WHOLE; ids++)
				nps_log__unmangle(ids, &r, &stream, &task);
		}
		nps_log__counters(p, &c);
		assert_true(c.core <= 1 && c.block <= 1);
	}
	assert_null(nps_log_format("stars"));
}

static void breaks_of(const char *text, struct nps_breaks *breaks)
{
	char dir[] = "/tmp/nps_unit_XXXXXX";
	int dirfd, fd;

	assert_non_null(mkdtemp(dir));
	dirfd = open(dir, O_RDONLY | O_DIRECTORY);
	fd = openat(dirfd, "npuscope.breaks", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(nps_breaks__read(breaks, dirfd, "stars_soc.data.0"), 0);
	unlinkat(dirfd, "npuscope.breaks", 0);
	close(dirfd);
	rmdir(dir);
}

static void breaks_are_read(void **state)
{
	struct nps_breaks b;

	(void)state;
	breaks_of(
		"stars_soc.data.0 0 0 agent\nts_track.data.0 40 80 agent\nstars_soc.data.0 640 128 profiler\n"
		"stars_soc.data.01 9 9 agent\n",
		&b);
	assert_int_equal(b.n, 2);
	assert_int_equal(b.lost, 128);
	assert_true(nps_breaks__passed(&b, 0));
	assert_false(nps_breaks__passed(&b, 576));
	assert_true(nps_breaks__passed(&b, 704));
	assert_false(nps_breaks__passed(&b, 768));
	nps_breaks__free(&b);
	/* nonsense is none */
	breaks_of("stars_soc.data.0 x y\nstars_soc.data.0 10 18446744073709551615 a\nstars_soc.data.0\n\n"
		  "stars_soc.data.0 100 1 a\nstars_soc.data.0 50 1 a",
		  &b);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.lost, 1);
	nps_breaks__free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_decoded),	     cmocka_unit_test_setup(counters, clear),
		cmocka_unit_test_setup(ten_counters, clear), cmocka_unit_test_setup(ids_come_back, clear),
		cmocka_unit_test(gaps_are_counted),	     cmocka_unit_test(any_bytes_are_some_record),
		cmocka_unit_test(breaks_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
