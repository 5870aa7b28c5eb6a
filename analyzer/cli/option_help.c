/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/option_help.h"

#include "cli/option_value.h"

#include <string.h>

#define WIDTH 80 /* of a terminal */
#define HELP_COLUMN 29 /* where the texts of options begin */

struct line {
	FILE *out;
	int column, indent; /* indent: of the lines that follow */
};

static void line_end(struct line *line)
{
	putc('\n', line->out);
	line->column = 0;
}

static void line_pad(struct line *line, int column)
{
	for (; line->column < column; line->column++)
		putc(' ', line->out);
}

/* One word, on the next line where this one has no room. GAP: blanks before it on the same line. */
static void line_word(struct line *line, const char *word, int len, int gap)
{
	if (line->column > line->indent && line->column + gap + len >= WIDTH)
		line_end(line);
	if (line->column > line->indent)
		line->column += fprintf(line->out, "%*s", gap, "");
	line_pad(line, line->indent);
	line->column += fprintf(line->out, "%.*s", len, word);
}

static void line_text(struct line *line, const char *text)
{
	while (*text) {
		int len = (int)strcspn(text, " ");

		line_word(line, text, len, 1);
		text += len;
		text += strspn(text, " ");
	}
}

static void print_paragraph(FILE *out, const char *text)
{
	struct line line = { .out = out };

	line_text(&line, text);
	line_end(&line);
}

static void print_forms(FILE *out, const struct nps_command *command)
{
	for (size_t i = 0; command->forms[i]; i++)
		fprintf(out, "%s npuscope %s [OPTION]...%s%s\n", i ? "  or: " : "Usage:", command->name,
			*command->forms[i] ? " " : "", command->forms[i]);
}

/* "  -d, --duration=TIME" */
static void print_names(struct line *line, const struct nps_option *option)
{
	char value[NPS_OPTION_TEXT_MAX] = "", letter[] = { '-', option->letter, ',', ' ', '\0' };
	const char *before = "", *after = "";

	if (nps_option__has_value(option)) {
		nps_option__placeholder(option, value);
		before = option->bare ? "[=" : "=";
		after = option->bare ? "]" : "";
	}
	line->column += fprintf(line->out, "  %s--%s%s%s%s", option->letter ? letter : "    ", option->name,
				before, value, after);
}

static void print_words(struct line *line, const struct nps_option_word *words)
{
	int widest = 0;

	for (const struct nps_option_word *w = words; w->name; w++)
		widest = (int)strlen(w->name) > widest ? (int)strlen(w->name) : widest;
	for (const struct nps_option_word *w = words; w->name; w++) {
		line_pad(line, HELP_COLUMN + 2);
		line->column += fprintf(line->out, "%-*s", widest + 1, w->name);
		line->indent = HELP_COLUMN + 2 + widest + 2;
		line_pad(line, line->indent);
		line_text(line, w->help);
		line_end(line);
	}
}

static void print_option(FILE *out, const struct nps_option *option)
{
	struct line line = { .out = out, .indent = HELP_COLUMN };
	char note[NPS_OPTION_TEXT_MAX], text[NPS_OPTION_TEXT_MAX + 3];

	print_names(&line, option);
	if (line.column >= HELP_COLUMN - 1)
		line_end(&line);
	line_pad(&line, HELP_COLUMN);
	line_text(&line, option->help);
	nps_option__note(option, note);
	if (*note) {
		snprintf(text, sizeof(text), "(%s)", note);
		line_text(&line, text);
	}
	line_end(&line);
	if (nps_option__describes_words(option))
		print_words(&line, option->words);
}

static void print_exits(FILE *out, const struct nps_command *command)
{
	struct line line = { .out = out };
	char text[NPS_OPTION_TEXT_MAX];

	line_text(&line, "Exit status:");
	for (const struct nps_exit_code *exit = command->exits; exit->meaning; exit++) {
		snprintf(text, sizeof(text), "%d %s%s", exit->status, exit->meaning,
			 exit[1].meaning ? ";" : ".");
		line_text(&line, text);
	}
	line_end(&line);
}

void nps_options__print_help(FILE *out, const struct nps_command *command)
{
	print_forms(out, command);
	putc('\n', out);
	print_paragraph(out, command->description);
	for (const struct nps_option *option = command->options; option->type; option++)
		if (option->type == NPS_OPTION_GROUP)
			fprintf(out, "\n%s:\n", option->name);
		else
			print_option(out, option);
	putc('\n', out);
	print_exits(out, command);
}

void nps_options__print_usage(FILE *out, const struct nps_command *command)
{
	struct line line = { .out = out };
	char value[NPS_OPTION_TEXT_MAX], text[NPS_OPTION_TEXT_MAX + NPS_OPTION_TEXT_MAX];

	print_forms(out, command);
	line.indent = 7;
	line_pad(&line, line.indent);
	for (const struct nps_option *option = command->options; option->type; option++) {
		char letter[] = { '-', option->letter, '|', '\0' };

		if (option->type == NPS_OPTION_GROUP)
			continue;
		*value = '\0';
		if (nps_option__has_value(option))
			nps_option__placeholder(option, value);
		snprintf(text, sizeof(text), "[%s--%s%s%s%s]", option->letter ? letter : "", option->name,
			 *value ? option->bare ? "[=" : "=" : "", value, *value && option->bare ? "]" : "");
		line_word(&line, text, (int)strlen(text), 1);
	}
	line_end(&line);
}
