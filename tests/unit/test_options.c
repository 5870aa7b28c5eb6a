/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines from rows: values of every type, what is wrong with others, the
 * help, and what somebody may have meant.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/nearest.h"
#include "cli/option_help.h"
#include "cli/option_value.h"
#include "cli/options.h"

struct opts {
	bool flag, on, on_requested, left, right;
	unsigned int number, set;
	uint64_t time, short_time, size;
	double percent;
	int word;
	char letter;
	const char *text;
	int custom;
};

static const struct nps_option_word words[] = { { "minus", -1, .help = "less than nothing" },
						{ "zero", 0, .help = "nothing" },
						{ "two", 2, .help = "more" },
						{ NULL } };
static const struct nps_option_word letters[] = { { "read", 'r', .help = NULL },
						  { "write", 'w', .help = NULL },
						  { NULL } };
static const struct nps_option_word parts[] = { { "a", 1, .help = NULL },
						{ "b", 2, .help = NULL },
						{ "c", 4, .help = NULL },
						{ "none", 0, .help = NULL },
						{ NULL } };
static const struct nps_option_word ends[] = {
	{ "left", 1, .help = NULL, .offset = offsetof(struct opts, left) },
	{ "right", 1, .help = NULL, .offset = offsetof(struct opts, right) },
	{ "none", 0, .help = NULL },
	{ NULL }
};

static int custom_parse(void *opts, const char *text)
{
	((struct opts *)opts)->custom += (int)strlen(text);
	return *text == 'x' ? 0 : -1;
}

#define AT(type, member) NPS_OPTION_MEMBER(type, struct opts, member)

static const struct nps_option options[] = {
	{ NPS_OPTION_GROUP, .name = "Numbers" },
	{ NPS_OPTION_NUMBER, 'n', "number", .help = "A number", AT(unsigned int, number), .min = 1, .max = 50,
	  .value = "7" },
	{ NPS_OPTION_TIME, 't', "time", .help = "A time", AT(uint64_t, time), .min = 1,
	  .otherwise = "for ever" },
	{ NPS_OPTION_TIME, 0, "short-time", .help = "Another", AT(uint64_t, short_time), .max = 4e9,
	  .value = "10us" },
	{ NPS_OPTION_SIZE, 0, "size", .help = "A size", AT(uint64_t, size), .min = 4096, .value = "1M" },
	{ NPS_OPTION_PERCENT, 0, "percent", .help = "A share", AT(double, percent), .min = 0.1, .max = 100 },
	{ NPS_OPTION_GROUP, .name = "Words" },
	{ NPS_OPTION_WORD, 'w', "word", .help = "A word", AT(int, word), .words = words, .value = "two" },
	{ NPS_OPTION_WORD, 0, "letter", .help = "A letter", AT(char, letter), .words = letters,
	  .value = "read", .bare = "write" },
	{ NPS_OPTION_SET, 0, "set", "LIST", "Parts", AT(unsigned int, set), .words = parts, .value = "a,c",
	  .requested = offsetof(struct opts, on_requested) },
	{ NPS_OPTION_FLAGS, 0, "sides", "LIST", "Sides", .words = ends },
	{ NPS_OPTION_GROUP, .name = "Others" },
	{ NPS_OPTION_FLAG, 'f', "flag", .help = "A flag", AT(bool, flag) },
	{ NPS_OPTION_CLEAR, 0, "no-on", .help = "Its opposite", AT(bool, on) },
	{ NPS_OPTION_TEXT, 'o', "output", "DIR", "A directory", AT(const char *, text), .value = "." },
	{ NPS_OPTION_CUSTOM, 0, "custom", "XS", "Begins with x", .parse = custom_parse,
	  .valid = "a word with an x" },
	NPS_OPTION_HELP_ROWS,
};

static const struct nps_command command = {
	.name = "try",
	.summary = "try things",
	.forms = { "THING...", "" },
	.description =
		"Tries things that are described in so many words that they do not fit into one line of a "
		"terminal.",
	.options = options,
	.exits = { { 0, "done" }, { 1, "failed" } },
};

static struct nps_command in_order;
static char messages[4096]; /* of the last run */

/* Parses ARGS, blanks between. True: go on. */
static bool run(const struct nps_command *cmd, struct opts *o, struct nps_cli_operands *rest,
		const char *args, int *status)
{
	static char copy[1024], *argv[32];
	FILE *file = tmpfile();
	char *save = NULL;
	int argc = 0;
	bool go_on;

	assert_non_null(file);
	assert_true(snprintf(copy, sizeof(copy), "npuscope-try %s", args) < (int)sizeof(copy));
	for (char *arg = strtok_r(copy, " ", &save); arg && argc < 31; arg = strtok_r(NULL, " ", &save))
		argv[argc++] = strcmp(arg, "''") ? arg : arg + 2;
	argv[argc] = NULL;
	memset(o, 0, sizeof(*o));
	*status = -1;
	nps_msg_into(file);
	go_on = nps_options__parse(cmd, o, argc, argv, rest, status);
	nps_msg_into(NULL);
	rewind(file);
	memset(messages, 0, sizeof(messages));
	assert_true(fread(messages, 1, sizeof(messages) - 1, file) < sizeof(messages) - 1);
	fclose(file);
	return go_on;
}

static struct opts good(const char *args)
{
	struct nps_cli_operands rest;
	struct opts o;
	int status;

	if (!run(&command, &o, &rest, args, &status))
		fail_msg("%s: %s", args, messages);
	assert_string_equal(messages, "");
	assert_int_equal(rest.argc, 0);
	return o;
}

static void bad(const char *args, const char *message)
{
	struct nps_cli_operands rest;
	char line[1024];
	struct opts o;
	int status;

	assert_false(run(&command, &o, &rest, args, &status));
	assert_int_equal(status, 2);
	snprintf(line, sizeof(line), "npuscope: try: %s\n", message);
	assert_string_equal(messages, line);
}

static void defaults(void **state)
{
	struct opts o = good("");

	(void)state;
	assert_int_equal(o.number, 7);
	assert_int_equal(o.time, 0);
	assert_int_equal(o.short_time, 10000);
	assert_int_equal(o.size, 1 << 20);
	assert_int_equal(o.word, 2);
	assert_int_equal(o.letter, 'r');
	assert_int_equal(o.set, 5);
	assert_true(!o.flag && o.on && !o.on_requested && !o.left && !o.right);
	assert_string_equal(o.text, ".");
}

static void values(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} times[] = { { "10s", 10000000000 }, { "2", 2000000000 },   { "500ms", 500000000 },
		      { "1.5us", 1500 },      { "1m", 60000000000 }, { "0.5h", 1800000000000 } };
	static const struct {
		const char *text;
		uint64_t bytes;
	} sizes[] = { { "4096", 4096 }, { "8K", 8192 }, { "1.5M", 3 << 19 }, { "20G", 20ULL << 30 } };
	char line[64];
	struct opts o;

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(times); i++) {
		snprintf(line, sizeof(line), "-t %s", times[i].text);
		assert_int_equal(good(line).time, times[i].ns);
	}
	for (size_t i = 0; i < NPS_ARRAY_SIZE(sizes); i++) {
		snprintf(line, sizeof(line), "--size=%s", sizes[i].text);
		assert_int_equal(good(line).size, sizes[i].bytes);
	}
	assert_int_equal(good("--short-time 0").short_time, 0);
	assert_int_equal(good("--short-time 4s").short_time, 4000000000);
	assert_true(good("--percent 3%").percent == 3 && good("--percent 0.1").percent == 0.1);
	assert_int_equal(good("-n50").number, 50);
	o = good("-w minus --letter --set none --sides right -f --no-on -o dir --custom xyz");
	assert_int_equal(o.word, -1);
	assert_int_equal(o.letter, 'w');
	assert_int_equal(o.set, 0);
	assert_true(o.on_requested && o.right && !o.left && o.flag && !o.on);
	assert_string_equal(o.text, "dir");
	assert_int_equal(o.custom, 3);
	assert_int_equal(good("--letter=read").letter, 'r');
	assert_int_equal(good("--set b,a,b").set, 3);
	o = good("--sides left --sides left,right --sides none");
	assert_true(!o.left && !o.right);
	assert_int_equal(good("--numb 9").number, 9); /* what begins one name alone */
}

static void wrong_values(void **state)
{
	static const char *const lists[] = { "''", ",", "a,", ",a", "a,,b" };
	char line[64], message[128];

	(void)state;
	bad("-n 51", "--number: '51' is not a number from 1 to 50");
	bad("-n 0", "--number: '0' is not a number from 1 to 50");
	bad("-n -1", "--number: '-1' is not a number from 1 to 50");
	bad("-n 5x", "--number: '5x' is not a number from 1 to 50");
	bad("-n 99999999999999999999", "--number: '99999999999999999999' is not a number from 1 to 50");
	bad("-t foo", "--time: 'foo' is not a time above 0, in h, m, s, ms or us");
	bad("-t 0", "--time: '0' is not a time above 0, in h, m, s, ms or us");
	bad("-t 0.0001us", "--time: '0.0001us' is not a time above 0, in h, m, s, ms or us");
	bad("-t 1e99", "--time: '1e99' is not a time above 0, in h, m, s, ms or us");
	bad("-t nan", "--time: 'nan' is not a time above 0, in h, m, s, ms or us");
	bad("-t 0x10", "--time: '0x10' is not a time above 0, in h, m, s, ms or us");
	bad("--short-time 0.0001us",
	    "--short-time: '0.0001us' is not a time from 0 to 4s, in h, m, s, ms or us");
	bad("-t 10M", "--time: '10M' is not a time above 0, in h, m, s, ms or us");
	bad("-t ''", "--time: '' is not a time above 0, in h, m, s, ms or us");
	bad("--short-time 4001ms", "--short-time: '4001ms' is not a time from 0 to 4s, in h, m, s, ms or us");
	bad("--size 1K", "--size: '1K' is not a size of at least 4K, in G, M or K");
	bad("--percent 101%", "--percent: '101%' is not a percentage from 0.1% to 100%");
	bad("--word foo", "--word: 'foo' is not one of minus, zero, two");
	bad("--word TWO", "--word: 'TWO' is not one of minus, zero, two");
	bad("--set d", "--set: 'd' is not one of a, b, c, none");
	bad("--set a,d", "--set: 'a,d': 'd' is not one of a, b, c, none");
	bad("--set none,a", "--set: 'none,a': 'none' stands alone");
	bad("--sides left,none", "--sides: 'left,none': 'none' stands alone");
	bad("--output ''", "--output: '' is not a name");
	bad("--custom y", "--custom: 'y' is not a word with an x");
	for (size_t i = 0; i < NPS_ARRAY_SIZE(lists); i++) {
		snprintf(line, sizeof(line), "--set %s", lists[i]);
		snprintf(message, sizeof(message), "--set: '%s'%s is not one of a, b, c, none",
			 *lists[i] == '\'' ? "" : lists[i], *lists[i] == '\'' ? "" : ": ''");
		bad(line, message);
	}
}

static void wrong_options(void **state)
{
	char line[400], message[200];

	(void)state;
	bad("--nunber 5", "no option --nunber: did you mean --number?");
	bad("--outptu=x", "no option --outptu: did you mean --output?");
	bad("--frobnicate", "no option --frobnicate: see npuscope try --help");
	bad("--=5", "no option --: see npuscope try --help");
	bad("-x", "no option -x: see npuscope try --help");
	bad("-fx", "no option -x: see npuscope try --help");
	bad("--s 5", "--s is ambiguous: it is one of --short-time, --size, --set, --sides");
	bad("--flag=yes", "--flag: it takes no value");
	bad("--number", "--number: it needs a value: a number from 1 to 50");
	bad("-w", "--word: it needs a value: one of minus, zero, two");
	bad("-f -o", "--output: it needs a value: a name");
	memset(line, 'x', sizeof(line) - 1);
	line[0] = line[1] = '-';
	line[sizeof(line) - 1] = '\0';
	snprintf(message, sizeof(message), "no option %.67s: see npuscope try --help", line);
	bad(line, message);
	bad("--\033[31m", "no option --?[31m: see npuscope try --help"); /* nothing for the terminal */
}

static void operands(void **state)
{
	struct nps_cli_operands rest;
	struct opts o;
	int status;

	(void)state;
	assert_true(run(&command, &o, &rest, "a -f b -- -n c", &status));
	assert_true(o.flag && rest.argc == 4);
	assert_string_equal(rest.argv[0], "a");
	assert_string_equal(rest.argv[1], "b");
	assert_string_equal(rest.argv[2], "-n");
	assert_string_equal(rest.argv[3], "c");
	in_order = command;
	in_order.in_order = true;
	assert_true(run(&in_order, &o, &rest, "-f a -n b", &status));
	assert_true(rest.argc == 3 && !rest.dashes && o.number == 7);
	assert_string_equal(rest.argv[0], "a");
	assert_true(run(&in_order, &o, &rest, "-f -- a -n b", &status));
	assert_true(rest.argc == 3 && rest.dashes && o.number == 7);
	assert_true(run(&in_order, &o, &rest, "--", &status));
	assert_true(rest.argc == 0 && rest.dashes);
	assert_true(run(&in_order, &o, &rest, "-o -- a", &status)); /* a directory of that name */
	assert_true(rest.argc == 1 && !rest.dashes);
	assert_string_equal(o.text, "--");
}

static void distances(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned int edits;
		bool near;
	} cases[] = { { "record", "record", 0, true },	 { "recrod", "record", 1, true },
		      { "ecord", "record", 1, true },	 { "rekord", "record", 1, true },
		      { "recordd", "record", 1, true },	 { "rceord", "record", 1, true },
		      { "recrdo", "record", 2, true },	 { "", "abc", 3, false },
		      { "abc", "", 3, false },		 { "irk", "irq", 1, true },
		      { "ikr", "irq", 2, false },	 { "doctor", "record", 4, false },
		      { "ca", "abc", 3, false },	 { "analyse", "analyze", 1, true },
		      { "kitten", "sitting", 3, false }, { "dration", "duration", 1, true } };
	char longer[NPS_NEAREST_NAME + 2];
	unsigned int distance;

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(cases); i++) {
		assert_int_equal(nps_edit_distance(cases[i].a, cases[i].b), cases[i].edits);
		assert_int_equal(nps_edit_distance(cases[i].b, cases[i].a), cases[i].edits);
		assert_int_equal(nps_is_near(cases[i].a, cases[i].b, &distance), cases[i].near);
	}
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(nps_edit_distance(longer, longer), UINT_MAX);
	assert_false(nps_is_near(longer, longer, &distance));
	assert_int_equal(nps_edit_distance(longer + 1, longer + 1), 0);
}

static void help(void **state)
{
	static const char expected[] =
		"Usage: npuscope try [OPTION]... THING...\n"
		"  or:  npuscope try [OPTION]...\n"
		"\n"
		"Tries things that are described in so many words that they do not fit into one\n"
		"line of a terminal.\n"
		"\n"
		"Numbers:\n"
		"  -n, --number=N             A number (1 to 50, default: 7)\n"
		"  -t, --time=TIME            A time (default: for ever)\n"
		"      --short-time=TIME      Another (0 to 4s, default: 10us)\n"
		"      --size=SIZE            A size (at least 4K, default: 1M)\n"
		"      --percent=PERCENT      A share (0.1% to 100%)\n"
		"\n"
		"Words:\n"
		"  -w, --word=minus|zero|two  A word (default: two)\n"
		"                               minus  less than nothing\n"
		"                               zero   nothing\n"
		"                               two    more\n"
		"      --letter[=read|write]  A letter (default: read)\n"
		"      --set=a,b,c|none       Parts (default: a,c)\n"
		"      --sides=left,right|none\n"
		"                             Sides\n"
		"\n"
		"Others:\n"
		"  -f, --flag                 A flag (default: no)\n"
		"      --no-on                Its opposite (default: no)\n"
		"  -o, --output=DIR           A directory (default: .)\n"
		"      --custom=XS            Begins with x\n"
		"  -h, --help                 Print this help\n"
		"      --usage                Print a synopsis\n"
		"\n"
		"Exit status: 0 done; 1 failed.\n";
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	assert_non_null(file);
	nps_options__print_help(file, &command);
	fclose(file);
	assert_string_equal(text, expected);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),	 cmocka_unit_test(values),   cmocka_unit_test(wrong_values),
		cmocka_unit_test(wrong_options), cmocka_unit_test(operands), cmocka_unit_test(distances),
		cmocka_unit_test(help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
