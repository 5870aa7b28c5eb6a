/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/options.h"

#include "base/util.h"
#include "cli/nearest.h"
#include "cli/option_help.h"
#include "cli/option_value.h"
#include "cli/exit_status.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROW (UCHAR_MAX + 1) /* getopt's value of the first row: no letter */
#define LONGEST_VALUE 1000 /* characters of it in a message */

/* The rows as getopt has them. */
struct getopt_rows {
	struct option *longs; /* ends with zeros */
	char *letters;
};

int nps_options__wrong(const struct nps_command *command, const char *fmt, ...)
{
	char text[3 * PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	nps_msg("%s: %s", command->name, text);
	return EXIT_USAGE;
}

static size_t count_rows(const struct nps_option *options)
{
	size_t n = 0;

	while (options[n].type)
		n++;
	return n;
}

/* Free both members either way. 0 or -ENOMEM. */
static int getopt_rows_make(struct getopt_rows *rows, const struct nps_command *command)
{
	size_t n = count_rows(command->options);
	struct option *to;
	char *letter;

	rows->longs = calloc(n + 1, sizeof(*rows->longs));
	rows->letters = malloc(2 * n + 3);
	if (!rows->longs || !rows->letters)
		return -ENOMEM;
	to = rows->longs;
	letter = rows->letters;
	if (command->in_order)
		*letter++ = '+';
	*letter++ = ':'; /* a missing value is ':', an unknown option '?' */
	for (size_t i = 0; i < n; i++) {
		const struct nps_option *option = &command->options[i];
		bool has_value = nps_option__has_value(option);

		if (option->type == NPS_OPTION_GROUP)
			continue;
		*to++ = (struct option){ .name = option->name,
					 .has_arg = option->bare ? optional_argument
						    : has_value	 ? required_argument
								 : no_argument,
					 .val = FIRST_ROW + (int)i };
		if (!option->letter)
			continue;
		*letter++ = option->letter;
		if (has_value)
			*letter++ = ':';
	}
	*letter = '\0';
	return 0;
}

static const struct nps_option *option_find(const struct nps_command *command, int key)
{
	if (key >= FIRST_ROW)
		return &command->options[key - FIRST_ROW];
	for (const struct nps_option *option = command->options; option->type; option++)
		if (option->letter && option->letter == key)
			return option;
	return NULL;
}

/* NAME, LEN bytes, is the beginning of several names, or of none. */
static int wrong_name(const struct nps_command *command, const char *name, size_t len)
{
	char word[NPS_NEAREST_NAME + 2], list[NPS_OPTION_TEXT_MAX] = "";
	unsigned int distance, least = UINT_MAX;
	const char *nearest = NULL;

	snprintf(word, sizeof(word), "%.*s", (int)NPS_MIN(len, sizeof(word)), name);
	for (const struct nps_option *option = command->options; option->type; option++) {
		size_t end = strlen(list);

		if (option->type == NPS_OPTION_GROUP)
			continue;
		if (len && !strncmp(option->name, name, len))
			snprintf(list + end, sizeof(list) - end, "%s--%s", end ? ", " : "", option->name);
		if (nps_is_near(word, option->name, &distance) && distance < least) {
			least = distance;
			nearest = option->name;
		}
	}
	if (*list)
		return nps_options__wrong(command, "--%s is ambiguous: it is one of %s", word, list);
	if (nearest)
		return nps_options__wrong(command, "no option --%s: did you mean --%s?", word, nearest);
	return nps_options__wrong(command, "no option --%s: see npuscope %s --help", word, command->name);
}

/* What getopt calls '?', with ARG, which it stopped at. */
static int wrong_option(const struct nps_command *command, const char *arg)
{
	if (optopt >= FIRST_ROW)
		return nps_options__wrong(command, "--%s: it takes no value",
					  option_find(command, optopt)->name);
	if (optopt)
		return nps_options__wrong(command, "no option -%c: see npuscope %s --help", optopt,
					  command->name);
	return wrong_name(command, arg + 2, strcspn(arg + 2, "="));
}

static int value_missing(const struct nps_command *command, const struct nps_option *option)
{
	char valid[NPS_OPTION_TEXT_MAX];

	nps_option__valid(option, valid);
	return nps_options__wrong(command, "--%s: it needs a value: %s", option->name, valid);
}

static int print_and_end(const struct nps_command *command,
			 void (*print)(FILE *out, const struct nps_command *command))
{
	print(stdout, command);
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : 0;
}

/* Option KEY, as getopt returned it. True: go on. */
static bool option_handle(const struct nps_command *command, void *opts, int key, const char *arg,
			  int *status)
{
	const struct nps_option *option;
	char why[NPS_OPTION_TEXT_MAX];
	const char *value = optarg;

	if (key == '?' && optopt == '?') {
		*status = print_and_end(command, nps_options__print_help);
		return false;
	}
	if (key == '?') {
		*status = wrong_option(command, arg);
		return false;
	}
	option = option_find(command, key == ':' ? optopt : key);
	if (key == ':') {
		*status = value_missing(command, option);
		return false;
	}
	if (option->type == NPS_OPTION_HELP || option->type == NPS_OPTION_USAGE) {
		*status = print_and_end(command, option->type == NPS_OPTION_HELP ? nps_options__print_help
										 : nps_options__print_usage);
		return false;
	}
	if (!value)
		value = option->bare;
	if (nps_option__set(option, opts, value, why))
		return true;
	*status = nps_options__wrong(command, "--%s: '%.*s'%s", option->name, LONGEST_VALUE, value, why);
	return false;
}

/* False: a row's default is not valid for itself, which tests would find. */
static bool defaults_set(const struct nps_command *command, void *opts, int *status)
{
	char why[NPS_OPTION_TEXT_MAX];

	for (const struct nps_option *option = command->options; option->type; option++) {
		if (option->type == NPS_OPTION_CLEAR)
			*(bool *)((char *)opts + option->offset) = true;
		if (!option->value || nps_option__set(option, opts, option->value, why)) {
			if (option->requested)
				*(bool *)((char *)opts + option->requested) = false;
			continue;
		}
		*status = nps_options__wrong(command, "--%s: its default '%s'%s", option->name, option->value,
					     why);
		return false;
	}
	return true;
}

static bool options_read(const struct nps_command *command, const struct getopt_rows *rows, void *opts,
			 int argc, char **argv, struct nps_cli_operands *operands, int *status)
{
	optind = 0; /* getopt's own state of the last time is forgotten */
	opterr = 0;
	for (;;) {
		int before = NPS_MAX(optind, 1), key;

		optopt = 0;
		key = getopt_long(argc, argv, rows->letters, rows->longs, NULL);
		if (key == -1) {
			operands->dashes = optind > before && !strcmp(argv[optind - 1], "--");
			operands->argv = argv + optind;
			operands->argc = argc - optind;
			return true;
		}
		if (!option_handle(command, opts, key, argv[optind - 1], status))
			return false;
	}
}

bool nps_options__parse(const struct nps_command *command, void *opts, int argc, char **argv,
			struct nps_cli_operands *operands, int *status)
{
	struct getopt_rows rows;
	bool go_on = false;

	if (getopt_rows_make(&rows, command)) {
		nps_msg("cannot read the options: %s", strerror(ENOMEM));
		*status = EXIT_FAILED;
	} else {
		go_on = defaults_set(command, opts, status) &&
			options_read(command, &rows, opts, argc, argv, operands, status);
	}
	free(rows.longs);
	free(rows.letters);
	return go_on;
}
