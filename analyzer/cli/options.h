/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines as tables: one row an option. Its parsing, its messages, the help, the man page and the
 * completions of shells come from that row, so they cannot differ from each other.
 */
#ifndef NPS_OPTIONS_H
#define NPS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nps_option_type {
	NPS_OPTION_END, /* of a table */
	NPS_OPTION_GROUP, /* no option: NAME is the title of those that follow */
	NPS_OPTION_FLAG, /* sets a bool */
	NPS_OPTION_CLEAR, /* clears a bool, which is true by default */
	NPS_OPTION_NUMBER, /* whole number, into an unsigned integer of any size */
	NPS_OPTION_TIME, /* with a unit, h m s ms us, or seconds; into uint64_t as ns */
	NPS_OPTION_SIZE, /* with a unit, K M G, or bytes; into uint64_t as bytes */
	NPS_OPTION_PERCENT, /* into double */
	NPS_OPTION_WORD, /* one of WORDS: its value, into an integer of any size */
	NPS_OPTION_SET, /* some of WORDS, commas between: their values ORed, into unsigned int */
	/* Some of WORDS, commas between: sets the bool of each, clears those of the others. */
	NPS_OPTION_FLAGS,
	NPS_OPTION_TEXT, /* const char * into argv; not empty */
	NPS_OPTION_CUSTOM, /* PARSE stores it */
	NPS_OPTION_HELP, /* prints the help */
	NPS_OPTION_USAGE /* prints the synopsis */
};

/* What a shell completes, beside WORDS. */
enum nps_complete {
	NPS_COMPLETE_NOTHING = 0,
	NPS_COMPLETE_FILES = 1,
	NPS_COMPLETE_DIRECTORIES = 2,
	NPS_COMPLETE_PIDS = 4, /* a list of them */
	NPS_COMPLETE_COMMAND = 8 /* a program and its arguments, after -- */
};

struct nps_option_word {
	const char *name; /* NULL after the last */
	int64_t value; /* of SET and FLAGS: 0 is the empty set, and stands alone */
	const char *help; /* NULL: the name is enough */
	size_t offset; /* of FLAGS: of its bool */
};

struct nps_option {
	enum nps_option_type type;
	char letter; /* short form, 0: none */
	const char *name; /* without its dashes */
	const char *arg; /* name of the value in the help; NULL: made of TYPE and WORDS */
	const char *help; /* what it does: neither its default nor what is valid, which are below */
	size_t offset, size; /* member of the options, see NPS_OPTION_MEMBER() */
	size_t requested; /* offset of a bool that is set when the option is there; 0: none */
	double min, max; /* of a NUMBER, TIME (ns), SIZE or PERCENT; max 0: no limit */
	const char *value; /* default, as one would type it; NULL: the caller's */
	const char *otherwise; /* help: the default in words; NULL: VALUE, and for flags "no" */
	const char *bare; /* value of the long form without one; NULL: it needs one */
	const struct nps_option_word *words; /* of CUSTOM: for the help and completions; NULL: none */
	const char *valid; /* of CUSTOM: what is valid, as in "is not ..."; NULL: WORDS */
	int (*parse)(void *opts, const char *text); /* of CUSTOM: 0, or -errno if TEXT is not valid */
	unsigned int complete; /* enum nps_complete */
};

/* A row's member of STRUCTURE, whose type has to be TYPE. */
#define NPS_OPTION_MEMBER(type, structure, member)                                                           \
	.offset = offsetof(structure, member) +                                                              \
		  0 * sizeof(char[__builtin_types_compatible_p(type, __typeof__(((structure *)0)->member))   \
					  ? 1                                                                \
					  : -1]),                                                            \
	.size = sizeof(type)

/* The last rows of each table. */
#define NPS_OPTION_HELP_ROWS                                                                                 \
	{ NPS_OPTION_HELP, 'h', "help", .help = "Print this help" },                                         \
		{ NPS_OPTION_USAGE, 0, "usage", .help = "Print a synopsis" },                                \
	{                                                                                                    \
		NPS_OPTION_END                                                                               \
	}

/* A subcommand. */
struct nps_command {
	const char *name, *summary; /* summary: part of a line, no capital */
	const char *forms[5]; /* what follows the options, one synopsis each; NULL after the last */
	const char *description;
	const struct nps_option *options;
	bool in_order; /* options end at the first operand, which is somebody else's command line */
	unsigned int operands; /* enum nps_complete */
	struct nps_exit_code {
		int status;
		const char *meaning; /* NULL after the last */
	} exits[5];
	const struct nps_example {
		const char *line, *meaning; /* line NULL after the last */
	} * examples;
};

/* What is left of a command line. */
struct nps_cli_operands {
	char **argv; /* NULL-terminated, part of the caller's */
	int argc;
	bool dashes; /* they follow -- */
};

/*
 * Stores the rows' defaults, then the options of ARGV (argv[0] is no option), into OPTS, the structure that
 * the rows of COMMAND describe. May reorder ARGV unless COMMAND is in order. True: go on. False: the
 * program is to end with *STATUS, after help or one line on stderr that explains what is wrong. Not
 * thread-safe.
 */
bool nps_options__parse(const struct nps_command *command, void *opts, int argc, char **argv,
			struct nps_cli_operands *operands, int *status);

/* Prints "npuscope: COMMAND: ..." for a command line that makes no sense. Returns the exit status for it. */
int nps_options__wrong(const struct nps_command *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
