/* SPDX-License-Identifier: BSD-2-Clause */
/* Man pages, in the macros of man(7). */
#include "cli_docs.h"

#include <ctype.h>
#include <string.h>

#include "cli/option_value.h"

/* Text in the middle of a line. `words` in backquotes are bold. */
static void put_text(FILE *out, const char *text)
{
	bool bold = false;

	for (; *text; text++)
		switch (*text) {
		case '`':
			bold = !bold;
			fputs(bold ? "\\fB" : "\\fR", out);
			break;
		case '\\':
			fputs("\\e", out);
			break;
		case '-':
			fputs("\\-", out);
			break;
		case '\'':
			fputs("\\(aq", out);
			break;
		case '~':
			fputs("\\(ti", out);
			break;
		case '^':
			fputs("\\(ha", out);
			break;
		default:
			putc(*text, out);
		}
}

/* A line of text, which is no request to the formatter whatever it begins with. */
static void put_line(FILE *out, const char *text)
{
	if (*text == '.')
		fputs("\\&", out);
	put_text(out, text);
	putc('\n', out);
}

static void put_upper(FILE *out, const char *text)
{
	for (; *text; text++)
		if (*text == '-')
			fputs("\\-", out);
		else
			putc(toupper((unsigned char)*text), out);
}

static void put_title(FILE *out, const char *page, const char *summary)
{
	fputs(".\\\" Made by `make` from the rows of options.\n.TH ", out);
	put_upper(out, page);
	fprintf(out, " 1 \"%s\" \"npuscope %s\" \"User Commands\"\n.SH NAME\n", date, NPS_VERSION);
	put_text(out, page);
	fputs(" \\- ", out);
	put_text(out, summary);
	putc('\n', out);
}

static void put_forms(FILE *out, const struct nps_command *command)
{
	fputs(".SH SYNOPSIS\n.nf\n", out);
	for (size_t i = 0; command->forms[i]; i++) {
		fputs("\\fBnpuscope ", out);
		put_text(out, command->name);
		fputs("\\fR [\\fIOPTION\\fR]... ", out);
		put_text(out, command->forms[i]);
		putc('\n', out);
	}
	fputs(".fi\n", out);
}

static void put_words(FILE *out, const struct nps_option_word *words)
{
	fputs(".RS\n", out);
	for (const struct nps_option_word *word = words; word->name; word++) {
		fputs(".TP\n\\fB", out);
		put_text(out, word->name);
		fputs("\\fR\n", out);
		put_line(out, word->help);
	}
	fputs(".RE\n", out);
}

static void put_option(FILE *out, const struct nps_option *option)
{
	char text[NPS_OPTION_TEXT_MAX];

	fputs(".TP\n", out);
	if (option->letter)
		fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
	fputs("\\fB\\-\\-", out);
	put_text(out, option->name);
	fputs("\\fR", out);
	if (nps_option__has_value(option)) {
		nps_option__placeholder(option, text);
		fputs(option->bare ? "[=\\fI" : "=\\fI", out);
		put_text(out, text);
		fputs(option->bare ? "\\fR]" : "\\fR", out);
	}
	putc('\n', out);
	put_line(out, option->help);
	nps_option__note(option, text);
	if (*text) {
		putc('(', out);
		put_text(out, text);
		fputs(")\n", out);
	}
	if (nps_option__describes_words(option))
		put_words(out, option->words);
}

static void put_options(FILE *out, const struct nps_command *command)
{
	fputs(".SH OPTIONS\nA long option may be cut to what no other one begins with.\n", out);
	for (const struct nps_option *option = command->options; option->type; option++)
		if (option->type == NPS_OPTION_GROUP) {
			fputs(".SS ", out);
			put_line(out, option->name);
		} else {
			put_option(out, option);
		}
}

static void put_exits(FILE *out, const struct nps_command *command)
{
	fputs(".SH \"EXIT STATUS\"\n", out);
	for (const struct nps_exit_code *exit = command->exits; exit->meaning; exit++) {
		fprintf(out, ".TP\n%d\n", exit->status);
		put_line(out, exit->meaning);
	}
}

static void put_example(FILE *out, const struct nps_example *example)
{
	fputs(".TP\n\\fB", out);
	put_text(out, example->line);
	fputs("\\fR\n", out);
	put_line(out, example->meaning);
}

/* All pages but OWN. */
static void put_others(FILE *out, const struct nps_command *own)
{
	const char *before = "";

	fputs(".SH \"SEE ALSO\"\n", out);
	if (own) {
		fputs("\\fBnpuscope\\fR(1)", out);
		before = ",\n";
	}
	for (const struct nps_command *const *command = commands; *command; command++)
		if (*command != own) {
			fprintf(out, "%s\\fBnpuscope\\-%s\\fR(1)", before, (*command)->name);
			before = ",\n";
		}
	putc('\n', out);
}

void print_man_of_command(FILE *out, const struct nps_command *command)
{
	char page[64];

	snprintf(page, sizeof(page), "npuscope-%s", command->name);
	put_title(out, page, command->summary);
	put_forms(out, command);
	fputs(".SH DESCRIPTION\n", out);
	put_line(out, command->description);
	put_options(out, command);
	put_exits(out, command);
	fputs(".SH EXAMPLES\n", out);
	for (const struct nps_example *example = command->examples; example->line; example++)
		put_example(out, example);
	put_others(out, command);
}

void print_man_of_program(FILE *out)
{
	put_title(out, "npuscope", "trace training and serving jobs on Ascend NPUs");
	fputs(".SH SYNOPSIS\n.nf\n", out);
	for (const struct nps_command *const *command = commands; *command; command++)
		fprintf(out, "\\fBnpuscope %s\\fR [\\fIOPTION\\fR]...\n", (*command)->name);
	fputs("\\fBnpuscope help\\fR [\\fICOMMAND\\fR]\n\\fBnpuscope \\-\\-version\\fR\n.fi\n.SH "
	      "DESCRIPTION\n",
	      out);
	put_line(out, "Attaches to a job on Ascend NPUs that already runs, by PID, watches it with eBPF, "
		      "and writes the files that the vendor's profiler writes: trace_view.json, CSV tables "
		      "and SQLite databases, which "
		      "MindStudio Insight, Perfetto and chrome://tracing open.");
	fputs(".SH COMMANDS\n", out);
	for (const struct nps_command *const *command = commands; *command; command++) {
		fprintf(out, ".TP\n\\fBnpuscope\\-%s\\fR(1)\n", (*command)->name);
		put_line(out, (*command)->summary);
	}
	fputs(".SH EXAMPLES\n", out);
	for (const struct nps_command *const *command = commands; *command; command++)
		put_example(out, (*command)->examples);
	put_others(out, NULL);
}
