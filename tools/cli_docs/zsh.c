/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion of zsh, by its _arguments. */
#include "cli_docs.h"

#include <string.h>

#include "cli/option_value.h"

/* Text inside of single quotes, with a backslash before each of SPECIAL. */
static void put_quoted(FILE *out, const char *text, const char *special)
{
	for (; *text; text++)
		if (*text == '\'') {
			fputs("'\\''", out);
		} else {
			if (strchr(special, *text))
				putc('\\', out);
			putc(*text, out);
		}
}

/* ((a\:"what it is" b\:"..." )), or (a b) */
static void put_words(FILE *out, const struct nps_option *option)
{
	bool described = nps_option__describes_words(option);

	fputs(described ? "((" : "(", out);
	for (const struct nps_option_word *word = option->words; word->name; word++) {
		fprintf(out, "%s%s", word == option->words ? "" : " ", word->name);
		if (described) {
			fputs("\\:\"", out);
			put_quoted(out, word->help, "\\\":$`");
			putc('"', out);
		}
	}
	fputs(described ? "))" : ")", out);
}

static void put_action(FILE *out, const struct nps_option *option)
{
	if (option->type == NPS_OPTION_SET || option->type == NPS_OPTION_FLAGS) {
		fputs("_sequence compadd -", out);
		for (const struct nps_option_word *word = option->words; word->name; word++)
			fprintf(out, " %s", word->name);
	} else if (option->words) {
		put_words(out, option);
	} else if (option->complete & NPS_COMPLETE_PIDS) {
		fputs("_sequence _pids", out);
	} else if (option->complete & NPS_COMPLETE_DIRECTORIES) {
		fputs("_files -/", out);
	} else if (option->complete & NPS_COMPLETE_FILES) {
		fputs("_files", out);
	}
}

/* '(-d --duration)'{-d+,--duration=}'[How long]:TIME:' */
static void put_option(FILE *out, const struct nps_option *option)
{
	bool has_value = nps_option__has_value(option), again = option->complete & NPS_COMPLETE_PIDS;
	const char *joint = !has_value ? "" : option->bare ? "=-" : "=";
	char value[NPS_OPTION_TEXT_MAX];

	fputs(" \\\n\t\t\t'", out);
	if (again)
		fputs("*", out);
	else if (option->letter)
		fprintf(out, "(-%c --%s)", option->letter, option->name);
	if (option->letter)
		fprintf(out, "'{-%c%s,--%s%s}'", option->letter, has_value ? "+" : "", option->name, joint);
	else
		fprintf(out, "--%s%s", option->name, joint);
	putc('[', out);
	put_quoted(out, option->help, "\\[]:");
	putc(']', out);
	if (has_value) {
		nps_option__placeholder(option, value);
		fputs(option->bare ? "::" : ":", out);
		put_quoted(out, value, "\\:");
		putc(':', out);
		put_action(out, option);
	}
	putc('\'', out);
}

/* What follows -- is a command line of its own. */
static const char somebody_elses[] = "\t\t\tlocal -i at=${words[(i)--]}\n"
				     "\t\t\tif (( at < CURRENT )); then\n"
				     "\t\t\t\tshift at words\n"
				     "\t\t\t\t(( CURRENT -= at ))\n"
				     "\t\t\t\t_normal\n"
				     "\t\t\t\treturn\n"
				     "\t\t\tfi\n";

static void put_command(FILE *out, const struct nps_command *command)
{
	fprintf(out, "\t\t%s)\n", command->name);
	if (command->operands & NPS_COMPLETE_COMMAND)
		fputs(somebody_elses, out);
	fputs("\t\t\t_arguments -s -S", out);
	for (const struct nps_option *option = command->options; option->type; option++)
		if (option->type != NPS_OPTION_GROUP)
			put_option(out, option);
	if (command->operands & NPS_COMPLETE_PIDS)
		fputs(" \\\n\t\t\t'1:process or library:_npuscope_target'", out);
	else if (command->operands & NPS_COMPLETE_FILES)
		fputs(" \\\n\t\t\t'*:input:_files'", out);
	fputs("\n\t\t\t;;\n", out);
}

void print_zsh(FILE *out)
{
	fputs("#compdef npuscope\n"
	      "# Completion of npuscope, made by `make` from the rows of options.\n"
	      "\n"
	      "_npuscope_target() {\n"
	      "\t_alternative 'pids:process:_pids' 'files:library:_files'\n"
	      "}\n"
	      "\n"
	      "_npuscope() {\n"
	      "\tlocal curcontext=\"$curcontext\" state line\n"
	      "\ttypeset -A opt_args\n"
	      "\tlocal -a subcommands=(\n",
	      out);
	for (const struct nps_command *const *command = commands; *command; command++) {
		fprintf(out, "\t\t'%s:", (*command)->name);
		put_quoted(out, (*command)->summary, "\\:");
		fputs("'\n", out);
	}
	fputs("\t\t'help:describe a command'\n"
	      "\t)\n"
	      "\n"
	      "\t_arguments -C '(- *)'{-h,--help}'[Print help]' '(- *)--version[Print the version]' \\\n"
	      "\t\t'1:command:->command' '*::options:->options' && return\n"
	      "\tcase $state in\n"
	      "\tcommand) _describe -t commands command subcommands ;;\n"
	      "\toptions)\n"
	      "\t\tcase $words[1] in\n",
	      out);
	for (const struct nps_command *const *command = commands; *command; command++)
		put_command(out, *command);
	fputs("\t\thelp) _describe -t commands command subcommands ;;\n"
	      "\t\tesac\n"
	      "\t\t;;\n"
	      "\tesac\n"
	      "}\n"
	      "\n"
	      "_npuscope \"$@\"\n",
	      out);
}
