/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "launch.h"
#include "show.h"

static const struct command {
	const char *name;
	char *full_name; /* what argp and getopt call the program */
	const char *what;
	int (*run)(int argc, char **argv);
	int unwritten; /* exit status if its standard output is lost: is that all it made, or are results in files? */
} commands[] = {
	{ "record", "npuscope record", "capture a job and write its results", nps_cmd_record, NPS_PARTIAL },
	{ "analyze", "npuscope analyze", "write results from captured sessions, here or on another machine",
	  nps_cmd_analyze, NPS_PARTIAL },
	{ "show", "npuscope show", "print where the time of a job went", nps_cmd_show, NPS_FAILED },
	{ "doctor", "npuscope doctor", "what this host can deliver, and what is missing", nps_cmd_doctor,
	  NPS_FAILED },
};
#define N_COMMANDS (sizeof(commands) / sizeof(*commands))

static void usage(FILE *out)
{
	fprintf(out, "Usage: npuscope COMMAND [OPTION]...\n\n");
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].what);
	fprintf(out, "\n`npuscope COMMAND --help` describes its options.\n");
}

static pid_t main_pid; /* children that end have nothing to report */
static bool reported;

/* Was all that is on stdout written? Complains once if not. */
static bool is_written(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return true;
	if (!reported)
		fprintf(stderr,
			"npuscope: cannot write to standard output: %s: free space, or write somewhere "
			"else\n",
			strerror(errno));
	reported = true;
	return false;
}

/* The exit status of a command that ended with STATUS, UNWRITTEN if its standard output is lost and that is worse. */
static int written(int status, int unwritten)
{
	if (is_written() || status == NPS_USAGE || status == NPS_FAILED)
		return status;
	return unwritten;
}

/* argp ends the process itself after --help. */
static void check_output_at_exit(void)
{
	if (getpid() == main_pid && !reported && !is_written())
		_exit(NPS_FAILED);
}

int main(int argc, char **argv)
{
	/* Captures hold other people's arguments and file names: nothing for the world. */
	nps_caller_umask = umask(0027);
	main_pid = getpid();
	if (atexit(check_output_at_exit))
		fprintf(stderr, "npuscope: standard output is not checked at exit: no memory\n");
	if (argc < 2) {
		usage(stderr);
		return NPS_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		usage(stdout);
		return written(NPS_OK, NPS_FAILED);
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("npuscope %s\n", NPS_VERSION);
		return written(NPS_OK, NPS_FAILED);
	}
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(argv[1], commands[i].name) == 0) {
			argv[1] = commands[i].full_name;
			return written(commands[i].run(argc - 1, argv + 1), commands[i].unwritten);
		}
	fprintf(stderr, "npuscope: no command %s: see npuscope --help\n", argv[1]);
	return NPS_USAGE;
}
