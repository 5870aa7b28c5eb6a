/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion of bash. It does not need the package bash-completion, but uses its completion of commands. */
#include "cli_docs.h"

#include <string.h>

#include "cli/option_value.h"

static void put_words(FILE *out, const struct nps_option_word *words)
{
	for (const struct nps_option_word *word = words; word->name; word++)
		fprintf(out, "%s%s", word == words ? "" : " ", word->name);
}

static const char *kind_of(const struct nps_option *option)
{
	if (option->type == NPS_OPTION_SET || option->type == NPS_OPTION_FLAGS)
		return "list";
	if (option->words)
		return "word";
	if (option->complete & NPS_COMPLETE_PIDS)
		return "pids";
	if (option->complete & NPS_COMPLETE_DIRECTORIES)
		return "directories";
	return option->complete & NPS_COMPLETE_FILES ? "files" : "any";
}

static void put_value(FILE *out, const struct nps_command *command, const struct nps_option *option)
{
	putc('\t', out);
	if (option->letter)
		fprintf(out, "%s:-%c | ", command->name, option->letter);
	if (!option->bare)
		fprintf(out, "%s:--%s | ", command->name, option->name);
	fprintf(out, "%s:--%s=) kind=%s", command->name, option->name, kind_of(option));
	if (option->words) {
		fputs(" words='", out);
		put_words(out, option->words);
		putc('\'', out);
	}
	fputs(" ;;\n", out);
}

static void put_values(FILE *out)
{
	fputs("# The kind of the value of $1, COMMAND:OPTION, and its words.\n"
	      "_npuscope_value()\n{\n"
	      "\tkind='' words=''\n"
	      "\tcase $1 in\n",
	      out);
	for (const struct nps_command *const *command = commands; *command; command++)
		for (const struct nps_option *option = (*command)->options; option->type; option++)
			if (nps_option__has_value(option))
				put_value(out, *command, option);
	fputs("\tesac\n}\n\n", out);
}

static const char *operands_of(const struct nps_command *command)
{
	if (command->operands & NPS_COMPLETE_PIDS)
		return "pids_or_files";
	return command->operands & NPS_COMPLETE_FILES ? "files" : "";
}

static void put_commands(FILE *out)
{
	fputs("# The options of command $1, and the kind of its operands.\n"
	      "_npuscope_options()\n{\n"
	      "\tkind='' words=''\n"
	      "\tcase $1 in\n",
	      out);
	for (const struct nps_command *const *command = commands; *command; command++) {
		const char *before = "";

		fprintf(out, "\t%s) kind='%s' words='", (*command)->name, operands_of(*command));
		for (const struct nps_option *option = (*command)->options; option->type; option++)
			if (option->type != NPS_OPTION_GROUP) {
				fprintf(out, "%s--%s", before, option->name);
				before = " ";
			}
		fputs("' ;;\n", out);
	}
	fputs("\tesac\n}\n\n", out);
}

/* How the words above are used. Readline may split --option=value at its =, and does not split at commas. */
static const char functions[] =
	"# COMPREPLY: those of $words that $cur begins, after $before.\n"
	"_npuscope_reply()\n"
	"{\n"
	"\tmapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$words\" -- \"$cur\")\n"
	"}\n"
	"\n"
	"# The same for the last word of a list; those that are there already are left out.\n"
	"_npuscope_reply_list()\n"
	"{\n"
	"\tlocal have=${cur%\"${cur##*,}\"} word left=''\n"
	"\n"
	"\tfor word in $words; do\n"
	"\t\t[[ ,$have == *,$word,* || ($word == none && -n $have) ]] || left+=\" $word\"\n"
	"\tdone\n"
	"\tbefore+=$have cur=${cur##*,} words=$left\n"
	"\t_npuscope_reply\n"
	"\tcompopt -o nospace 2> /dev/null\n"
	"}\n"
	"\n"
	"# $1: -d, directories; -f, files\n"
	"_npuscope_reply_files()\n"
	"{\n"
	"\tmapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen \"$1\" -P \"$before\" -- \"$cur\")\n"
	"\tcompopt -o filenames 2> /dev/null\n"
	"}\n"
	"\n"
	"_npuscope_reply_kind()\n"
	"{\n"
	"\tcase $kind in\n"
	"\tword) _npuscope_reply ;;\n"
	"\tlist) _npuscope_reply_list ;;\n"
	"\tpids)\n"
	"\t\twords=$(cd /proc && echo [0-9]*)\n"
	"\t\t_npuscope_reply_list\n"
	"\t\t;;\n"
	"\tpids_or_files)\n"
	"\t\twords=$(cd /proc && echo [0-9]*)\n"
	"\t\t_npuscope_reply\n"
	"\t\t_npuscope_reply_files -f\n"
	"\t\t;;\n"
	"\tdirectories) _npuscope_reply_files -d ;;\n"
	"\tfiles) _npuscope_reply_files -f ;;\n"
	"\tesac\n"
	"}\n"
	"\n"
	"# The command line of somebody else, which begins at word $1.\n"
	"_npuscope_reply_command()\n"
	"{\n"
	"\tif declare -F _command_offset > /dev/null; then\n"
	"\t\t_command_offset \"$1\"\n"
	"\telif [ \"$1\" = \"$COMP_CWORD\" ]; then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
	"\telse\n"
	"\t\t_npuscope_reply_files -f\n"
	"\tfi\n"
	"}\n"
	"\n"
	"_npuscope()\n"
	"{\n"
	"\tlocal command=${COMP_WORDS[1]} cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	"\tlocal before='' kind words i\n"
	"\n"
	"\tCOMPREPLY=()\n"
	"\tif [ \"$COMP_CWORD\" -lt 2 ] || { [ \"$command\" = help ] && [ \"$COMP_CWORD\" = 2 ]; }; then\n"
	"\t\twords=$_npuscope_commands\n"
	"\t\t_npuscope_reply\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tif [ \"$command\" = record ]; then\n"
	"\t\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	"\t\t\tif [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
	"\t\t\t\t_npuscope_reply_command $((i + 1))\n"
	"\t\t\t\treturn\n"
	"\t\t\tfi\n"
	"\t\tdone\n"
	"\tfi\n"
	"\tif [ \"$cur\" = = ]; then\n"
	"\t\tprev+='=' cur=''\n"
	"\telif [ \"$prev\" = = ]; then\n"
	"\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}=\n"
	"\telif [[ $cur == --*=* ]]; then\n"
	"\t\tprev=${cur%%=*}= before=${cur%%=*}= cur=${cur#*=}\n"
	"\tfi\n"
	"\t_npuscope_value \"$command:$prev\"\n"
	"\tif [ -n \"$kind\" ]; then\n"
	"\t\t_npuscope_reply_kind\n"
	"\t\treturn\n"
	"\tfi\n"
	"\t_npuscope_options \"$command\"\n"
	"\tif [[ $cur == -* || -z $kind ]]; then\n"
	"\t\t_npuscope_reply\n"
	"\telse\n"
	"\t\t_npuscope_reply_kind\n"
	"\tfi\n"
	"}\n"
	"\n"
	"complete -F _npuscope npuscope\n";

void print_bash(FILE *out)
{
	fputs("# shellcheck shell=bash\n"
	      "# Completion of npuscope, made by `make` from the rows of options.\n\n"
	      "_npuscope_commands='",
	      out);
	for (const struct nps_command *const *command = commands; *command; command++)
		fprintf(out, "%s ", (*command)->name);
	fputs("help --help --version'\n\n", out);
	put_values(out);
	put_commands(out);
	fputs(functions, out);
}
