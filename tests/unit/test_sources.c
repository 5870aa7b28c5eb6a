/* SPDX-License-Identifier: BSD-2-Clause */
/* Event sources: the order of their hooks, sources that fail, and a whole capture of fake ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/capture.h"
#include "core/clocks.h"

#define TEST(f) cmocka_unit_test_setup(f, setup)

/* What the hooks below do, by source: 'a', 'b', 'c'. */
static struct fake {
	int fail_stage, error; /* its start fails there */
	int fd;
	int wait_ms;
	const char *reason; /* of its READY turn */
	int turns, signal, turn_of_signal; /* that it sends at that turn */
	int event_error;
	bool waits; /* at STOP, for all the time that there is */
	uint64_t left; /* ns that were left then */
} fakes[3];

static char calls[4096]; /* "a0 b0 ..." */
static bool wanted[3];

static void note(char name, const char *what, int stage)
{
	size_t used = strlen(calls);

	snprintf(calls + used, sizeof(calls) - used, "%s%c%s%d", used ? " " : "", name, what, stage);
}

static void forget(void)
{
	calls[0] = '\0';
}

static int fake_start(struct nps_source *s, int i, enum nps_start_stage stage)
{
	note((char)('a' + i), "", stage);
	s->state = &fakes[i];
	return fakes[i].error && fakes[i].fail_stage == (int)stage ? fakes[i].error : 0;
}

static const char *fake_turn(int i, enum nps_turn_kind kind)
{
	if (kind != NPS_TURN_READY)
		return NULL;
	if (fakes[i].turns < 1)
		note((char)('a' + i), "t", kind);
	if (++fakes[i].turns == fakes[i].turn_of_signal)
		kill(getpid(), fakes[i].signal);
	return fakes[i].reason;
}

static void fake_end(struct nps_capture *c, int i, enum nps_end_stage stage)
{
	note((char)('a' + i), "e", stage);
	if (stage == NPS_END_DISARM)
		c->patience.left = 20000000; /* so that this test does not take 1.5 s */
	if (stage != NPS_END_STOP)
		return;
	fakes[i].left = nps_deadline__left(&c->patience);
	while (fakes[i].waits && nps_deadline__left(&c->patience))
		usleep(1000);
}

#define FAKE(letter, i)                                                                                      \
	static bool letter##_wanted(const struct nps_record_opts *o)                                         \
	{                                                                                                    \
		(void)o;                                                                                     \
		return wanted[i];                                                                            \
	}                                                                                                    \
	static int letter##_start(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage)   \
	{                                                                                                    \
		(void)c;                                                                                     \
		return fake_start(s, i, stage);                                                              \
	}                                                                                                    \
	static int letter##_fd(struct nps_capture *c, struct nps_source *s, int *wait_ms)                    \
	{                                                                                                    \
		(void)c;                                                                                     \
		(void)s;                                                                                     \
		if (fakes[i].wait_ms && fakes[i].wait_ms < *wait_ms)                                         \
			*wait_ms = fakes[i].wait_ms;                                                         \
		return fakes[i].fd;                                                                          \
	}                                                                                                    \
	static const char *letter##_turn(struct nps_capture *c, struct nps_source *s,                        \
					 enum nps_turn_kind kind)                                            \
	{                                                                                                    \
		(void)c;                                                                                     \
		(void)s;                                                                                     \
		return fake_turn(i, kind);                                                                   \
	}                                                                                                    \
	static int letter##_process(struct nps_capture *c, struct nps_source *s,                             \
				    const struct nps_source_event *e)                                        \
	{                                                                                                    \
		(void)c;                                                                                     \
		(void)s;                                                                                     \
		note((#letter)[0], "p", e->kind);                                                            \
		return fakes[i].event_error;                                                                 \
	}                                                                                                    \
	static void letter##_end(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage)      \
	{                                                                                                    \
		(void)s;                                                                                     \
		fake_end(c, i, stage);                                                                       \
	}                                                                                                    \
	static void letter##_count(const struct nps_capture *c, const struct nps_source *s,                  \
				   struct nps_lost_counts *n)                                                \
	{                                                                                                    \
		(void)c;                                                                                     \
		(void)s;                                                                                     \
		n->dropped += 1U << (i);                                                                     \
		n->lost[NPS_EV_API] += 10;                                                                   \
	}                                                                                                    \
	static void letter##_describe(const struct nps_capture *c, const struct nps_source *s,               \
				      enum nps_section section, cJSON *session, cJSON *part)                 \
	{                                                                                                    \
		(void)c;                                                                                     \
		(void)session;                                                                               \
		if (section == NPS_SECTION_SESSION)                                                          \
			cJSON_AddBoolToObject(part, "source_" #letter, s->state != NULL);                    \
	}                                                                                                    \
	static void letter##_free(struct nps_capture *c, struct nps_source *s)                               \
	{                                                                                                    \
		(void)c;                                                                                     \
		note((#letter)[0], s->state ? "f" : "F", 0);                                                 \
	}

FAKE(a, 0)
FAKE(b, 1)
FAKE(c, 2)

#define HOOKS(letter)                                                                                        \
	.wanted = letter##_wanted, .start = letter##_start, .fd = letter##_fd, .turn = letter##_turn,        \
	.process = letter##_process, .end = letter##_end, .count = letter##_count,                           \
	.describe = letter##_describe, .free = letter##_free

static const struct nps_source_ops fake_a = { .name = "a", .uncosted = "apples", HOOKS(a) };
static const struct nps_source_ops fake_b = { .name = "b", .optional = true, HOOKS(b) };
static const struct nps_source_ops fake_c = { .name = "c", .uncosted = "cherries", HOOKS(c) };
static const struct nps_source_ops no_hooks = { .name = "none" };
static const struct nps_source_ops *const rows[] = { &fake_a, &fake_b, &no_hooks, &fake_c, NULL };

static struct nps_record_opts opts = { .sz = sizeof(opts) };
static struct nps_capture capture;

static int setup(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		fakes[i] = (struct fake){ .fd = -1 };
		wanted[i] = true;
	}
	forget();
	memset(&capture, 0, sizeof(capture));
	capture.opts = &opts;
	nps_deadline__init(&capture.patience, 1000000000);
	return 0;
}

static void start_all(void)
{
	nps_sources__init(&capture, rows);
	for (enum nps_start_stage stage = 0; stage < NPS_START_STAGES; stage++)
		assert_int_equal(nps_sources__start(&capture, stage), 0);
}

/* --- walks --- */

static void stages_of_the_start_run_in_table_order(void **state)
{
	(void)state;
	start_all();
	assert_string_equal(calls, "a0 b0 c0 a1 b1 c1 a2 b2 c2 a3 b3 c3 a4 b4 c4 a5 b5 c5");
	assert_false(capture.degraded);
}

/* A source that uses another's programs or processes ends before it. */
static void stages_of_the_end_have_their_directions(void **state)
{
	static const struct {
		enum nps_end_stage stage;
		bool backwards;
	} stages[] = { { NPS_END_ACCOUNT, true },  { NPS_END_DISARM, true },  { NPS_END_COLLECT, false },
		       { NPS_END_RESTORE, false }, { NPS_END_STOP, true },    { NPS_END_DETACH, true },
		       { NPS_END_SETTLE, false },  { NPS_END_FINISH, false }, { NPS_END_REPORT, false },
		       { NPS_END_RELEASE, false }, { NPS_END_LAST, false },   { NPS_END_CANCEL, true } };

	(void)state;
	assert_int_equal(sizeof(stages) / sizeof(*stages), NPS_END_STAGES);
	start_all();
	for (size_t i = 0; i < NPS_END_STAGES; i++) {
		char expected[32];
		int n = stages[i].stage;

		forget();
		nps_sources__end(&capture, stages[i].stage);
		snprintf(expected, sizeof(expected),
			 stages[i].backwards ? "ce%d be%d ae%d" : "ae%d be%d ce%d", n, n, n);
		assert_string_equal(calls, expected);
	}
	forget();
	nps_sources__free(&capture);
	assert_string_equal(calls, "cf0 bf0 af0");
}

static void what_is_not_wanted_has_no_hooks_called(void **state)
{
	struct pollfd fds[NPS_SOURCES_MAX];
	struct nps_lost_counts n;
	int wait_ms = 50;

	(void)state;
	wanted[0] = false;
	fakes[0].fd = 0;
	fakes[0].reason = "a ends it";
	start_all();
	assert_string_equal(calls, "b0 c0 b1 c1 b2 c2 b3 c3 b4 c4 b5 c5");
	forget();
	assert_null(nps_sources__turn(&capture, NPS_TURN_READY));
	assert_int_equal(nps_sources__fds(&capture, fds, &wait_ms), 0);
	nps_sources__process(&capture, &(struct nps_source_event){ .kind = NPS_EVENT_WATCHED });
	nps_sources__end(&capture, NPS_END_SETTLE);
	nps_sources__count(&capture, &n);
	assert_int_equal(n.dropped, 1 + 2 + 4); /* its keys are in session.json all the same */
	nps_sources__free(&capture);
	assert_string_equal(calls, "bt2 ct2 bp1 cp1 be6 ce6 cf0 bf0");
}

/* b is optional: the capture goes on without it, as a degraded one. */
static void an_optional_source_that_fails_degrades(void **state)
{
	(void)state;
	fakes[1].fail_stage = NPS_START_ATTACH;
	fakes[1].error = -ENOTSUP;
	fakes[1].reason = "b ends it";
	start_all();
	assert_true(capture.degraded);
	assert_string_equal(calls, "a0 b0 c0 a1 b1 c1 a2 b2 c2 a3 c3 a4 c4 a5 c5");
	forget();
	assert_null(nps_sources__turn(&capture, NPS_TURN_READY));
	nps_sources__end(&capture, NPS_END_STOP);
	/* What it began may have to be undone. */
	nps_sources__end(&capture, NPS_END_RESTORE);
	nps_sources__end(&capture, NPS_END_CANCEL);
	nps_sources__free(&capture);
	assert_string_equal(calls, "at2 ct2 ce4 ae4 ae3 be3 ce3 ce11 be11 ae11 cf0 bf0 af0");
}

/* What uses another source's part of a program ends first. */
static void programs_end_backwards(void **state)
{
	(void)state;
	start_all();
	forget();
	nps_sources__process(&capture, &(struct nps_source_event){ .kind = NPS_EVENT_EXITED });
	nps_sources__process(&capture, &(struct nps_source_event){ .kind = NPS_EVENT_EXECUTED });
	nps_sources__free(&capture);
	assert_string_equal(calls, "ap6 bp6 cp6 cp5 bp5 ap5 cf0 bf0 af0");
}

/* c is not: the walk ends there; what was started in part is freed, and what was not, too. */
static void a_source_that_fails_ends_the_start(void **state)
{
	(void)state;
	fakes[0].fail_stage = NPS_START_ATTACH;
	fakes[0].error = -EPERM;
	nps_sources__init(&capture, rows);
	assert_int_equal(nps_sources__start(&capture, NPS_START_PREPARE), 0);
	assert_int_equal(nps_sources__start(&capture, NPS_START_ATTACH), -EPERM);
	assert_string_equal(calls, "a0 b0 c0 a2");
	assert_false(capture.degraded);
	forget();
	nps_sources__end(&capture, NPS_END_RESTORE);
	nps_sources__end(&capture, NPS_END_CANCEL);
	nps_sources__free(&capture);
	assert_string_equal(calls, "ae3 be3 ce3 ce11 be11 ae11 cf0 bf0 af0");
}

static void one_that_was_not_reached_is_freed_without_state(void **state)
{
	(void)state;
	fakes[0].fail_stage = NPS_START_PREPARE;
	fakes[0].error = -ENOMEM;
	nps_sources__init(&capture, rows);
	assert_int_equal(nps_sources__start(&capture, NPS_START_PREPARE), -ENOMEM);
	forget();
	nps_sources__free(&capture);
	assert_string_equal(calls, "cF0 bF0 af0");
}

static void all_have_their_turn_and_the_first_reason_counts(void **state)
{
	(void)state;
	fakes[1].reason = "b ends it";
	fakes[2].reason = "c ends it";
	start_all();
	forget();
	assert_string_equal(nps_sources__turn(&capture, NPS_TURN_READY), "b ends it");
	assert_string_equal(calls, "at2 bt2 ct2");
	assert_null(nps_sources__turn(&capture, NPS_TURN_SECOND));
}

static void all_get_an_event_and_the_first_error_is_returned(void **state)
{
	(void)state;
	fakes[0].event_error = -ETIME;
	start_all();
	forget();
	assert_int_equal(nps_sources__process(&capture, &(struct nps_source_event){ .kind = NPS_EVENT_SCAN }),
			 -ETIME);
	assert_string_equal(calls, "ap2 bp2 cp2");
}

static void descriptors_and_waits_are_collected(void **state)
{
	struct pollfd fds[NPS_SOURCES_MAX];
	int wait_ms = 50;

	(void)state;
	fakes[0].fd = 7;
	fakes[2].fd = 9;
	fakes[1].wait_ms = 2;
	start_all();
	assert_int_equal(nps_sources__fds(&capture, fds, &wait_ms), 2);
	assert_int_equal(fds[0].fd, 7);
	assert_int_equal(fds[1].fd, 9);
	assert_int_equal(fds[1].events, POLLIN);
	assert_int_equal(wait_ms, 2);
}

static void counts_are_sums(void **state)
{
	struct nps_lost_counts n;

	(void)state;
	start_all();
	nps_sources__count(&capture, &n);
	assert_int_equal(n.dropped, 7);
	assert_int_equal(n.lost[NPS_EV_API], 30);
	assert_int_equal(nps_capture__dropped(&capture), 37);
}

static void sources_without_costs_are_named(void **state)
{
	char text[64];

	(void)state;
	start_all();
	nps_sources__uncosted(&capture, text, sizeof(text));
	assert_string_equal(text, "apples and cherries");
	nps_sources__uncosted(&capture, text, 8); /* what does not fit is cut */
	assert_string_equal(text, "apples ");
	capture.sources[0].state = NULL; /* nothing of it is recorded */
	nps_sources__uncosted(&capture, text, sizeof(text));
	assert_string_equal(text, "cherries");
}

static void npuscopes_own_rows_have_names(void **state)
{
	size_t n = 0;

	(void)state;
	while (nps_source_rows[n]) {
		assert_non_null(nps_source_rows[n]->name);
		for (size_t i = 0; i < n; i++)
			assert_string_not_equal(nps_source_rows[i]->name, nps_source_rows[n]->name);
		n++;
	}
	assert_true(n > 0 && n <= NPS_SOURCES_MAX);
}

/* --- a capture --- */

static char directory[64];

#define CHECK(what)                                                                                          \
	do {                                                                                                 \
		if (!(what)) {                                                                               \
			fprintf(stderr, "%s:%d: not so: %s; calls: %s\n", __FILE__, __LINE__, #what, calls); \
			_exit(1);                                                                            \
		}                                                                                            \
	} while (0)

/* In a process of its own, since a capture gives up capabilities. */
static void in_child(void (*what)(void))
{
	char command[128];
	int status;
	pid_t pid;

	snprintf(directory, sizeof(directory), "/tmp/nps_test_sources.XXXXXX");
	assert_non_null(mkdtemp(directory));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		opts.out = directory;
		what();
		nps_capture__free(&capture);
		exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	assert_int_equal(system(command), 0);
	assert_int_equal(status, 0);
}

static cJSON *read_session(void)
{
	char path[PATH_MAX + 32], *text = calloc(1, 1 << 20);
	cJSON *j;
	FILE *f;

	snprintf(path, sizeof(path), "%s/session.json", capture.session.path);
	f = fopen(path, "r");
	CHECK(f && text && fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	j = cJSON_Parse(text);
	free(text);
	CHECK(j);
	return j;
}

static void is_reason(const cJSON *session, const char *reason)
{
	const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "end_reason"));

	CHECK(found && !strcmp(found, reason) && !strcmp(capture.end_reason, reason));
}

/* Each hook once and in order; session.json has what each described. */
static void capture_that_a_source_ends(void)
{
	cJSON *j;

	fakes[1].reason = "targets exited";
	CHECK(!nps_capture__run_sources(&capture, &opts, rows));
	CHECK(!strcmp(calls,
		      "a0 b0 c0 a1 b1 c1 a2 b2 c2 a3 b3 c3 a4 b4 c4 a5 b5 c5 at2 bt2 ct2 "
		      "ce0 be0 ae0 ce1 be1 ae1 ae2 be2 ce2 ae3 be3 ce3 ce4 be4 ae4 ce5 be5 ae5 ae6 be6 ce6 "
		      "ae7 be7 ce7 ae8 be8 ce8 ae9 be9 ce9 ae10 be10 ce10"));
	j = read_session();
	is_reason(j, "targets exited");
	CHECK(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(j, "complete")));
	CHECK(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(j, "source_a")));
	CHECK(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(j, "source_c")));
	cJSON_Delete(j);
	CHECK(capture.degraded); /* records were lost */
}

static void a_source_ends_a_capture(void **state)
{
	(void)state;
	in_child(capture_that_a_source_ends);
}

static void capture_that_a_signal_ends(void)
{
	cJSON *j;

	fakes[0].signal = SIGINT;
	fakes[0].turn_of_signal = 2;
	CHECK(!nps_capture__run_sources(&capture, &opts, rows));
	CHECK(fakes[0].turns >= 2);
	j = read_session();
	is_reason(j, "signal");
	cJSON_Delete(j);
}

static void a_signal_ends_a_capture(void **state)
{
	(void)state;
	in_child(capture_that_a_signal_ends);
}

static void capture_of_a_duration(void)
{
	cJSON *j;

	opts.duration_ns = 1; /* it is over at the first look at the clock */
	CHECK(!nps_capture__run_sources(&capture, &opts, rows));
	CHECK(!fakes[0].turns);
	j = read_session();
	is_reason(j, "duration");
	cJSON_Delete(j);
}

static void a_capture_ends_in_time(void **state)
{
	(void)state;
	in_child(capture_of_a_duration);
}

/*
 * c takes all the time that the end may wait: nothing is left for a,
 * which comes after it; the session is whole.
 */
static void capture_of_a_source_that_waits(void)
{
	cJSON *j;

	fakes[0].waits = fakes[2].waits = true;
	fakes[1].reason = "b ends it";
	CHECK(!nps_capture__run_sources(&capture, &opts, rows));
	CHECK(!fakes[1].left && !fakes[0].left);
	CHECK(strstr(calls, "ce4 be4 ae4") && strstr(calls, "ae10 be10 ce10"));
	j = read_session();
	CHECK(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(j, "complete")));
	cJSON_Delete(j);
}

static void the_end_is_bounded_for_all_sources_together(void **state)
{
	(void)state;
	in_child(capture_of_a_source_that_waits);
}

static bool is_directory_empty(void)
{
	return !rmdir(directory) && !mkdir(directory, 0700);
}

/* a fails when the session is there: every thread ends, then the session is removed. */
static void capture_that_cannot_begin(void)
{
	fakes[0].fail_stage = NPS_START_TARGETS;
	fakes[0].error = -ESRCH;
	CHECK(nps_capture__run_sources(&capture, &opts, rows) == -ESRCH);
	CHECK(!strcmp(calls, "a0 b0 c0 a1 b1 c1 a2 b2 c2 a3 ae3 be3 ce3 ce11 be11 ae11"));
	CHECK(!capture.end_reason && is_directory_empty());
	forget();
	nps_capture__free(&capture);
	CHECK(!strcmp(calls, "cf0 bf0 af0"));
}

static void a_capture_that_cannot_begin_leaves_no_session(void **state)
{
	(void)state;
	in_child(capture_that_cannot_begin);
}

/* No session has been made by then. */
static void capture_that_cannot_be_prepared(void)
{
	fakes[0].fail_stage = NPS_START_PREPARE;
	fakes[0].error = -EPERM;
	CHECK(nps_capture__run_sources(&capture, &opts, rows) == -EPERM);
	CHECK(!strcmp(calls, "a0 ae3 be3 ce3 ce11 be11 ae11"));
	CHECK(is_directory_empty());
}

static void a_capture_that_cannot_be_prepared_writes_nothing(void **state)
{
	(void)state;
	in_child(capture_that_cannot_be_prepared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stages_of_the_start_run_in_table_order),
		TEST(stages_of_the_end_have_their_directions),
		TEST(what_is_not_wanted_has_no_hooks_called),
		TEST(an_optional_source_that_fails_degrades),
		TEST(programs_end_backwards),
		TEST(a_source_that_fails_ends_the_start),
		TEST(one_that_was_not_reached_is_freed_without_state),
		TEST(all_have_their_turn_and_the_first_reason_counts),
		TEST(all_get_an_event_and_the_first_error_is_returned),
		TEST(descriptors_and_waits_are_collected),
		TEST(counts_are_sums),
		TEST(sources_without_costs_are_named),
		TEST(npuscopes_own_rows_have_names),
		TEST(a_source_ends_a_capture),
		TEST(a_signal_ends_a_capture),
		TEST(a_capture_ends_in_time),
		TEST(the_end_is_bounded_for_all_sources_together),
		TEST(a_capture_that_cannot_begin_leaves_no_session),
		TEST(a_capture_that_cannot_be_prepared_writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
