/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd.h"
#include "launch.h"
#include "show.h"

static const struct command {
	const char *name;
	char *full_name; /* what argp and getopt call the program */
	const char *what;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "record", "npuscope record", "capture a job and write its results", nps_cmd_record },
	{ "analyze", "npuscope analyze", "write results from captured sessions, here or on another machine",
	  nps_cmd_analyze },
	{ "show", "npuscope show", "print where the time of a job went", nps_cmd_show },
	{ "doctor", "npuscope doctor", "what this host can deliver, and what is missing", nps_cmd_doctor },
};
#define N_COMMANDS (sizeof(commands) / sizeof(*commands))

static void usage(FILE *out)
{
	fprintf(out, "Usage: npuscope COMMAND [OPTION]...\n\n");
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].what);
	fprintf(out, "\n`npuscope COMMAND --help` describes its options.\n");
}

/* The exit status of a command whose results are told on stdout: to whom, if they cannot be written? */
static int written(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr,
		"npuscope: cannot write to standard output: %s: free space, or write somewhere else\n",
		strerror(errno));
	return status == NPS_OK ? NPS_PARTIAL : status;
}

int main(int argc, char **argv)
{
	/* Captures hold other people's arguments and file names: nothing for the world. */
	nps_caller_umask = umask(0027);
	if (argc < 2) {
		usage(stderr);
		return NPS_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		usage(stdout);
		return written(NPS_OK);
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("npuscope %s\n", NPS_VERSION);
		return written(NPS_OK);
	}
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(argv[1], commands[i].name) == 0) {
			argv[1] = commands[i].full_name;
			return written(commands[i].run(argc - 1, argv + 1));
		}
	fprintf(stderr, "npuscope: no command %s: see npuscope --help\n", argv[1]);
	return NPS_USAGE;
}
