/* SPDX-License-Identifier: BSD-2-Clause */
/* What was written is decoded here, without the writer's library and field numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen_session.h"
#include "export/pftrace_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BEGIN = 1, END, INSTANT, COUNTER };

/* cmocka's assertions are no end of the function for those that analyse it. */
#define must(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fail_msg("not so: %s", #condition);                                                  \
			abort();                                                                             \
		}                                                                                            \
	} while (0)

struct bytes {
	const unsigned char *at, *end;
};

struct field {
	unsigned int number, wire;
	uint64_t value; /* of a number */
	struct bytes bytes; /* of a text or a message */
};

struct event {
	uint64_t ts, type, track, name, category, flow, end_of_flow;
	struct bytes name_in_full, arg; /* the last argument */
	double value;
};

static struct nps_pftrace *w;
static int dirfd_;
static char *dir;
static struct bytes file;

/* --- decoder --- */

static uint64_t varint(struct bytes *b)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		must(b->at && b->at < b->end);
		value |= (uint64_t)(*b->at & 127) << (shift & 63);
		if (*b->at++ < 128)
			return value;
	}
	fail_msg("a number of more than ten bytes");
	return 0;
}

static bool next(struct bytes *b, struct field *f)
{
	uint64_t tag;

	*f = (struct field){ .number = 0 };
	if (!b->at || b->at == b->end)
		return false;
	tag = varint(b);
	f->number = tag >> 3;
	f->wire = tag & 7;
	if (f->wire == 0) {
		f->value = varint(b);
	} else if (f->wire == 1) {
		must(b->at && b->end - b->at >= 8);
		memcpy(&f->value, b->at, 8);
		b->at += 8;
	} else {
		assert_int_equal(f->wire, 2);
		f->value = varint(b);
		must(f->value <= (uint64_t)(b->end - b->at));
		f->bytes = (struct bytes){ b->at, b->at + f->value };
		b->at += f->value;
	}
	return true;
}

/* The field of that number, the Nth of them; false: there is none. */
static bool find(struct bytes b, unsigned int number, unsigned int n, struct field *f)
{
	while (next(&b, f))
		if (f->number == number && !n--)
			return true;
	return false;
}

static uint64_t number_of(struct bytes b, unsigned int number)
{
	struct field f;

	return find(b, number, 0, &f) ? f.value : 0;
}

static struct bytes bytes_of(struct bytes b, unsigned int number)
{
	struct field f;

	return find(b, number, 0, &f) ? f.bytes : (struct bytes){ NULL, NULL };
}

static bool is_text(struct bytes b, const char *text)
{
	return b.at && (size_t)(b.end - b.at) == strlen(text) && !memcmp(b.at, text, strlen(text));
}

/* The next packet that holds that field. */
static bool next_packet(struct bytes *rest, unsigned int kind, struct bytes *packet, struct bytes *payload)
{
	struct field f, p;

	while (next(rest, &f)) {
		assert_int_equal(f.number, 1);
		if (find(f.bytes, kind, 0, &p)) {
			*packet = f.bytes;
			*payload = p.bytes;
			return true;
		}
	}
	return false;
}

static bool next_event(struct bytes *rest, struct event *e)
{
	struct bytes packet, payload;
	struct field f;

	if (!next_packet(rest, 11, &packet, &payload))
		return false;
	assert_int_equal(number_of(packet, 10), 1);
	assert_int_equal(number_of(packet, 13), 2);
	*e = (struct event){
		.ts = number_of(packet, 8),
		.type = number_of(payload, 9),
		.track = number_of(payload, 11),
		.name = number_of(payload, 10),
		.category = number_of(payload, 3),
		.flow = number_of(payload, 47),
		.end_of_flow = number_of(payload, 48),
		.name_in_full = bytes_of(payload, 23),
	};
	for (unsigned int i = 0; find(payload, 4, i, &f); i++)
		e->arg = f.bytes;
	if (find(payload, 44, 0, &f))
		memcpy(&e->value, &f.value, 8);
	return true;
}

/* --- fixture --- */

static int setup(void **state)
{
	(void)state;
	dir = gen_temp_dir();
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return nps_pftrace__open(&w, dirfd_, "file");
}

static int teardown(void **state)
{
	(void)state;
	if (file.at)
		munmap((void *)file.at, file.end - file.at);
	file = (struct bytes){ NULL, NULL };
	close(dirfd_);
	gen_remove(dir);
	return 0;
}

/* Closes the writer and returns what it wrote. */
static struct bytes written(void)
{
	int fd = openat(dirfd_, "file", O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *map;

	assert_int_equal(nps_pftrace__close(w), 0);
	assert_int_equal(fstat(fd, &st), 0);
	map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	file = (struct bytes){ map, (unsigned char *)map + st.st_size };
	return file;
}

/* The events of that type and track, played back: fails unless each end has a begin, in order of time. */
static unsigned int count(struct bytes rest, uint64_t type, uint64_t track)
{
	uint64_t last = 0;
	unsigned int n = 0;
	int depth = 0;
	struct event e;

	while (next_event(&rest, &e)) {
		if (e.track != track)
			continue;
		assert_true(e.ts >= last);
		last = e.ts;
		depth += e.type == BEGIN;
		depth -= e.type == END;
		assert_true(depth >= 0);
		n += e.type == type;
	}
	return n;
}

/* --- tests --- */

static void an_existing_file_is_left_alone(void **state)
{
	struct nps_pftrace *other;
	struct stat st;

	(void)state;
	assert_int_equal(nps_pftrace__open(&other, dirfd_, "file"), -EEXIST);
	assert_int_equal(symlinkat("elsewhere", dirfd_, "link"), 0);
	assert_int_equal(nps_pftrace__open(&other, dirfd_, "link"), -EEXIST);
	assert_int_equal(fstatat(dirfd_, "file", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	written();
}

static void tracks_are_described(void **state)
{
	uint64_t process = nps_pftrace__process(w, 42, "python3", -1);
	uint64_t thread = nps_pftrace__thread(w, process, 43, "loop", 2);
	uint64_t group = nps_pftrace__track(w, 0, "Ascend Hardware", 14);
	uint64_t counter = nps_pftrace__counter(w, group, "freq", "MHz", 3);
	struct bytes rest = written(), packet, d;

	(void)state;
	must(next_packet(&rest, 60, &packet, &d)); /* the root */
	assert_int_equal(number_of(d, 1), 0);
	assert_int_equal(number_of(d, 19), 1);
	must(next_packet(&rest, 60, &packet, &d));
	assert_int_equal(number_of(d, 1), process);
	assert_int_equal(number_of(bytes_of(d, 3), 1), 42);
	assert_true(is_text(bytes_of(bytes_of(d, 3), 6), "python3"));
	assert_int_equal((int64_t)number_of(d, 12), -1);
	must(next_packet(&rest, 60, &packet, &d));
	assert_int_equal(number_of(d, 1), thread);
	assert_int_equal(number_of(d, 5), process);
	assert_int_equal(number_of(bytes_of(d, 4), 1), 42);
	assert_int_equal(number_of(bytes_of(d, 4), 2), 43);
	assert_true(is_text(bytes_of(bytes_of(d, 4), 5), "loop"));
	must(next_packet(&rest, 60, &packet, &d));
	assert_int_equal(number_of(d, 1), group);
	assert_true(is_text(bytes_of(d, 2), "Ascend Hardware"));
	must(next_packet(&rest, 60, &packet, &d));
	assert_int_equal(number_of(d, 1), counter);
	assert_int_equal(number_of(d, 5), group);
	assert_true(is_text(bytes_of(bytes_of(d, 8), 6), "MHz"));
	assert_false(next_packet(&rest, 60, &packet, &d));
}

static void a_counter_needs_no_unit(void **state)
{
	struct bytes rest, packet, d;

	(void)state;
	nps_pftrace__counter(w, 0, "count", "", 0);
	rest = written();
	must(next_packet(&rest, 60, &packet, &d));
	must(next_packet(&rest, 60, &packet, &d));
	assert_non_null(bytes_of(d, 8).at);
	assert_null(bytes_of(bytes_of(d, 8), 6).at);
}

static void clocks_come_before_events(void **state)
{
	const struct nps_pftrace_clock clocks[] = { { NPS_PFTRACE_MONOTONIC, 5 },
						    { NPS_PFTRACE_REALTIME, UINT64_MAX } };
	struct bytes rest, packet, d;
	struct field f;

	(void)state;
	nps_pftrace__clocks(w, clocks, 2);
	nps_pftrace__instant(w, nps_pftrace__track(w, 0, "a", 0), 1, "", "i");
	rest = written();
	must(next_packet(&rest, 6, &packet, &d));
	assert_int_equal(number_of(d, 2), 3);
	must(find(d, 1, 1, &f));
	assert_int_equal(number_of(f.bytes, 1), 1);
	assert_true(number_of(f.bytes, 2) == UINT64_MAX);
	must(next_packet(&rest, 59, &packet, &d));
	assert_int_equal(number_of(d, 58), 3);
	assert_int_equal(number_of(packet, 13), 1);
	must(next_packet(&rest, 11, &packet, &d));
}

static void slices_nest(void **state)
{
	static const uint64_t order[][2] = { { 10, BEGIN }, { 10, BEGIN }, { 15, END }, { 15, BEGIN },
					     { 15, END },   { 15, BEGIN }, { 20, END }, { 20, END },
					     { 20, BEGIN }, { 20, END } };
	uint64_t track = nps_pftrace__track(w, 0, "a", 0);
	struct bytes rest;
	struct event e;

	(void)state;
	nps_pftrace__slice(w, track, 10, 10, "c", "outer");
	nps_pftrace__slice(w, track, 10, 5, "c", "first");
	nps_pftrace__slice(w, track, 15, 0, "c", "nothing");
	nps_pftrace__slice(w, track, 15, 5, "c", "second");
	nps_pftrace__slice(w, track, 20, 0, "c", "after");
	rest = written();
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		must(next_event(&rest, &e));
		assert_int_equal(e.ts, order[i][0]);
		assert_int_equal(e.type, order[i][1]);
		assert_int_equal(e.track, track);
	}
	assert_false(next_event(&rest, &e));
}

static void overlapping_slices_get_lanes(void **state)
{
	uint64_t track = nps_pftrace__track(w, 0, "a", 7);
	struct bytes rest, packet, d;

	(void)state;
	nps_pftrace__slice(w, track, 10, 10, "", "first");
	nps_pftrace__slice(w, track, 15, 10, "", "overlaps");
	nps_pftrace__slice(w, track, 16, 20, "", "overlaps both");
	nps_pftrace__slice(w, track, 30, 1, "", "is back");
	nps_pftrace__slice(w, track, 5, 1, "", "out of order");
	nps_pftrace__slice(w, track, 40, NPS_PFTRACE_ENDLESS, "", "endless");
	nps_pftrace__slice(w, track, 50, 5, "", "inside");
	assert_int_equal(nps_pftrace__crowded(w), 0);
	rest = written();
	assert_int_equal(count(rest, BEGIN, track), 4);
	assert_int_equal(count(rest, END, track), 3);
	for (uint64_t lane = track + 1; lane <= track + 3; lane++) {
		assert_int_equal(count(rest, BEGIN, lane), 1);
		assert_int_equal(count(rest, END, lane), 1);
	}
	for (int i = 0; i < 3; i++)
		must(next_packet(&rest, 60, &packet, &d));
	assert_int_equal(number_of(d, 1), track + 1);
	assert_true(is_text(bytes_of(d, 2), "a"));
	assert_int_equal(number_of(d, 12), 7);
}

static void a_crowded_track_loses_nothing(void **state)
{
	uint64_t track = nps_pftrace__track(w, 0, "a", 0);
	struct bytes rest;
	struct event e;
	unsigned int instants = 0;

	(void)state;
	for (unsigned int i = 0; i < 1030; i++)
		nps_pftrace__slice(w, track, i, 5000, "", "s");
	assert_int_equal(nps_pftrace__crowded(w), 6);
	rest = written();
	while (next_event(&rest, &e)) {
		if (e.type != INSTANT)
			continue;
		instants++;
		assert_int_equal(e.track, track);
		assert_int_equal(number_of(e.arg, 3), 5000);
	}
	assert_int_equal(instants, 6);
}

static void arguments_are_exact(void **state)
{
	uint64_t track = nps_pftrace__track(w, 0, "a", 0);
	struct bytes rest;
	struct field f;
	struct event e;
	double ratio;

	(void)state;
	nps_pftrace__arg_u64(w, "of nothing", 1);
	nps_pftrace__instant(w, track, UINT64_MAX, "c", "a");
	nps_pftrace__arg_u64(w, "k", UINT64_MAX);
	nps_pftrace__flow(w, 0xfedcba9876543210);
	nps_pftrace__instant(w, track, 2, "c", "a");
	nps_pftrace__arg_i64(w, "k", INT64_MIN);
	nps_pftrace__flow_end(w, UINT64_MAX);
	nps_pftrace__instant(w, track, 3, "c", "a");
	nps_pftrace__arg_double(w, "k", 0.1);
	nps_pftrace__instant(w, track, 4, "c", "a");
	nps_pftrace__arg_pointer(w, "k", 0xffff800000000000);
	nps_pftrace__instant(w, track, 5, "c", "a");
	nps_pftrace__arg_bool(w, "k", true);
	nps_pftrace__value(w, track, 6, -1.5);
	nps_pftrace__arg_u64(w, "of a counter", 1);
	rest = written();
	must(next_event(&rest, &e));
	assert_true(e.ts == INT64_MAX);
	assert_true(number_of(e.arg, 3) == UINT64_MAX);
	assert_true(e.flow == 0xfedcba9876543210);
	must(next_event(&rest, &e));
	assert_true((int64_t)number_of(e.arg, 4) == INT64_MIN);
	assert_true(e.end_of_flow == UINT64_MAX);
	must(next_event(&rest, &e));
	must(find(e.arg, 5, 0, &f));
	memcpy(&ratio, &f.value, 8);
	assert_true(ratio == 0.1);
	must(next_event(&rest, &e));
	assert_true(number_of(e.arg, 7) == 0xffff800000000000);
	must(next_event(&rest, &e));
	assert_int_equal(number_of(e.arg, 2), 1);
	must(next_event(&rest, &e));
	assert_int_equal(e.type, COUNTER);
	assert_true(e.value == -1.5);
	assert_null(e.arg.at);
}

static void texts_are_written_once(void **state)
{
	uint64_t track = nps_pftrace__track(w, 0, "a", 0);
	struct bytes rest, packet, d;
	struct field f;
	struct event e;

	(void)state;
	nps_pftrace__instant(w, track, 1, "same", "same");
	nps_pftrace__arg_text(w, "same", "same");
	nps_pftrace__instant(w, track, 2, "same", "same");
	rest = written();
	must(next_packet(&rest, 12, &packet, &d));
	for (unsigned int kind = 1; kind <= 3; kind++) {
		must(find(d, kind, 0, &f));
		assert_true(is_text(bytes_of(f.bytes, 2), "same"));
		assert_false(find(d, kind, 1, &f));
	}
	assert_false(next_packet(&rest, 12, &packet, &d));
	rest = file;
	must(next_event(&rest, &e));
	assert_true(e.name && e.name == e.category && e.name == number_of(e.arg, 1));
	assert_true(is_text(bytes_of(e.arg, 6), "same"));
	must(next_event(&rest, &e));
	assert_true(e.name && e.name == e.category);
}

/* Follows the texts as a reader does: what an event refers to has been written since the last restart. */
static void texts_do_not_pile_up(void **state)
{
	enum { EVENTS = 150000 };
	uint64_t track = nps_pftrace__track(w, 0, "a", 0), known = 0;
	unsigned int restarts = 0, events = 0;
	struct bytes rest;
	struct field packet, news, text;
	char name[32];

	(void)state;
	for (unsigned int i = 0; i < EVENTS; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		nps_pftrace__instant(w, track, i, "c", name);
	}
	rest = written();
	while (next(&rest, &packet)) {
		if (number_of(packet.bytes, 13) == 1) {
			restarts++;
			known = 0;
		}
		if (find(packet.bytes, 12, 0, &news) && find(news.bytes, 2, 0, &text)) {
			known = number_of(text.bytes, 1);
			snprintf(name, sizeof(name), "name %u", events);
			assert_true(is_text(bytes_of(text.bytes, 2), name));
		}
		if (find(packet.bytes, 11, 0, &text)) {
			assert_int_equal(number_of(text.bytes, 10), known);
			events++;
		}
	}
	assert_int_equal(events, EVENTS);
	assert_int_equal(restarts, 3);
}

static void texts_may_be_anything(void **state)
{
	enum { LENGTH = 1000000 };
	uint64_t track = nps_pftrace__track(w, 0, "bad \xff", 0);
	static char text[LENGTH + 1];
	struct bytes rest, packet, d;
	struct event e;

	(void)state;
	memset(text, 'x', LENGTH);
	nps_pftrace__instant(w, track, 1, text, text);
	nps_pftrace__arg_text(w, text, text);
	nps_pftrace__instant(w, track, 2, "", "\xe7\x9f");
	rest = written();
	must(next_event(&rest, &e));
	assert_true(is_text(e.name_in_full, text));
	assert_true(is_text(bytes_of(e.arg, 10), text));
	assert_true(is_text(bytes_of(e.arg, 6), text));
	must(next_packet(&rest, 12, &packet, &d));
	assert_true(is_text(bytes_of(bytes_of(d, 2), 2), "\xef\xbf\xbd\xef\xbf\xbd"));
	rest = file;
	must(next_packet(&rest, 60, &packet, &d));
	must(next_packet(&rest, 60, &packet, &d));
	assert_true(is_text(bytes_of(d, 2), "bad \xef\xbf\xbd"));
}

static void the_first_error_sticks(void **state)
{
	const struct rlimit tiny = { 100000, RLIM_INFINITY };
	struct rlimit before;
	uint64_t track = nps_pftrace__track(w, 0, "a", 0);

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
	for (unsigned int i = 0; i < 50000; i++)
		nps_pftrace__slice(w, track, i, 1, "c", "name");
	assert_int_equal(nps_pftrace__close(w), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void an_unknown_track_is_an_error(void **state)
{
	(void)state;
	nps_pftrace__slice(w, 0, 1, 1, "c", "dropped");
	nps_pftrace__slice(w, 99, 1, 1, "c", "name");
	assert_int_equal(nps_pftrace__track(w, 0, "too late", 0), 0);
	assert_int_equal(nps_pftrace__close(w), -EINVAL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_existing_file_is_left_alone),
		TEST(tracks_are_described),
		TEST(a_counter_needs_no_unit),
		TEST(clocks_come_before_events),
		TEST(slices_nest),
		TEST(overlapping_slices_get_lanes),
		TEST(a_crowded_track_loses_nothing),
		TEST(arguments_are_exact),
		TEST(texts_are_written_once),
		TEST(texts_do_not_pile_up),
		TEST(texts_may_be_anything),
		TEST(the_first_error_sticks),
		TEST(an_unknown_track_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
